default match := {"matched": false}
match := {"matched": true} if input.tool.id
match := {"matched": false, "reasonCode":"b"} if input.llm.modelÿ{"tool.id":"a","llm.model":"b"}