f(x) := f(x)
match := {"matched": false} if f(1)ÿ{}