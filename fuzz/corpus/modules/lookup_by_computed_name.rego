a := 1
match := {"matched": data.forge.content[input.tool.id] == 1}ÿ{"tool.id":"match"}