default match := {"matched": false}
match := {"matched": true} if count({x | some x in input.identity.group_ids} & {"eng"}) > 0ÿ{"identity.group_ids":["eng"]}