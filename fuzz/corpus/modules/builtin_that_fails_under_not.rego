default match := {"matched": false}
match := {"matched": true} if not count(input.llm.input_tokens) > 1ÿ{"llm.input_tokens":3}