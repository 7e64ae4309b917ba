default match := {"matched": false}
match := {"matched": regex.match(`^a+$`, lower(trim_space(input.request.prompt))), "reasonCode": `x`}ÿ{"request.prompt":" AAA "}