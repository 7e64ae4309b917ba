f(x) := "a" if { x > 1 } else := "b" if { x > 0 } else := "c"
match := {"matched": f(input.llm.input_tokens) == "b"}ÿ{"llm.input_tokens":1}