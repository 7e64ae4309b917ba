match := {"matched": false} if count(5) == 1
match := {"matched": true} if not to_number("x")ÿ{}