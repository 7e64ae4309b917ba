bad contains x if { some x in ["rm","dd"] }
names[k] := v if { some k, v in {"a": 1} }
match := {"matched": input.tool.id in bad, "reasonCode": "x"}ÿ{"tool.id":"dd"}