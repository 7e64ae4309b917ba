default match := {"matched": false}
match := {"matched": true} if { every x in input.event.labels { startswith(x, "p") } }ÿ{"event.labels":["pii"]}