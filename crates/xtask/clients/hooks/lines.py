"""The line that stands in a client's settings, run as often as one likes, as clients run it: by a shell, with an event.

Standard input is one object: `line`, `payload` (the event) and `times`. The answer is one line of JSON: how many of these calls the client
would have let run, how many it would have stopped, and how long the slowest took, in milliseconds.
"""

import json
import os
import subprocess
import sys
import time

asked = json.load(sys.stdin)
payload = json.dumps(asked["payload"]).encode()
said = {"passed": 0, "stopped": 0, "slowest": 0.0, "last": ""}
for _ in range(asked["times"]):
    start = time.monotonic()
    done = subprocess.run(["/bin/sh", "-c", asked["line"]], input=payload, capture_output=True, env=os.environ)
    said["slowest"] = max(said["slowest"], 1000 * (time.monotonic() - start))
    # What the clients were seen to obey: this code, or this word.
    stops = done.returncode == 2 and done.stderr or b'"deny"' in done.stdout
    said["stopped" if stops else "passed"] += 1
    said["last"] = (done.stdout + done.stderr).decode(errors="replace")[-600:]
print(json.dumps(said))
