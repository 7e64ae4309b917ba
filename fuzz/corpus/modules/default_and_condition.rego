default match := {"matched": false}
match := {"matched": true, "reasonCode": "shell"} if input.tool.id == "shell"ÿ{"tool.id":"shell"}