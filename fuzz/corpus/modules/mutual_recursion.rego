a if b
b if not a
match := {"matched": true} if aÿ{}