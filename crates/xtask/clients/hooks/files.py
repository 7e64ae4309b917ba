"""A server of MCP over standard input and output with one tool, which removes the file that the first argument names."""

import json
import pathlib
import sys


def say(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        say(asked["id"], {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "files", "version": "1"}})
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "properties": {}}
        say(asked["id"], {"tools": [{"name": "remove", "description": "Removes the file", "inputSchema": schema}]})
    elif asked["method"] == "tools/call":
        pathlib.Path(sys.argv[1]).unlink(missing_ok=True)
        say(asked["id"], {"content": [{"type": "text", "text": "removed"}]})
    else:
        say(asked["id"], {})
