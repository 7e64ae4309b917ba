default match := {"matched": false}
match := {"matched": true} if count([x | some x in input.event.labels; x != "pii"]) > 1ÿ{"event.labels":["a","b"]}