t if input.tool.id == "b"
match := {"matched": true} if { t with input as {"tool": {"id": "b"}} }ÿ{"tool.id":"a"}