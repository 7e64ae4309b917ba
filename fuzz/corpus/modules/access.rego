package forge.access
import rego.v1
match := {"matched": input.device.id == "d1"}ÿ{"device.id":"d1"}