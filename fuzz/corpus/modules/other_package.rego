package other
match := {"matched": true}ÿ{}