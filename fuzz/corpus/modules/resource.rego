package forge.resource
import rego.v1
match := {"matched": input.resource.id == "ledger"}ÿ{"resource.id":"ledger"}