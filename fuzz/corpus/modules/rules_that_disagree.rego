match := {"matched": true} if input.tool.id
match := {"matched": false} if input.llm.modelÿ{"tool.id":"a","llm.model":"b"}