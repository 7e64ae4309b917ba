default match := {"matched": false}
match := {"matched": object.get(json.unmarshal("{\"a\": true}"), "a", false)}ÿ{}