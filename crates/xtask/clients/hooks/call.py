"""One call of a tool by a real client whose model is a script, and whether it ran.

Standard input is one object: `client` (claude-code, codex, gemini), `program` (the words that start it), `place` (a folder of its own with
`home`, `etc` and `work`), `command` (what the model asks the shell for), `victim` (a file that the command removes) and `stand_in` (how a
server behaves that takes the place of the real one; absent for the real one). With `only_tools` the client asks before tools alone, so that
it is the tool's own gate that is seen. `over` names the folders of the place that stand over the machine's; `etc` alone where it is absent.
With `turn` the client goes on with one session from the second turn on (1, 2, …), in which each call has an id of its own.
The answer is one line of JSON: whether the victim is gone, and what the client said.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "telemetry"))
import model

asked = json.load(sys.stdin)
client, program, place = asked["client"], asked["program"], pathlib.Path(asked["place"])
home, etc, work, victim = place / "home", place / "etc", place / "work", pathlib.Path(asked["victim"])


def serve(behaviour):
    """Returns the address of a server that is no help."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    if behaviour == "gone":
        listener.close()
        return address
    listener.listen()
    texts = {
        "garbage": "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>",
        "half": "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"decisions\":[",
        "full": "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 23\r\n\r\n{\"message\":\"disk full\"}",
    }

    def answer(stream):
        stream.recv(1 << 20)
        if behaviour != "slow":
            stream.sendall(texts[behaviour].encode())
            stream.close()
        else:
            threading.Event().wait(60)

    def accept():
        while True:
            stream, _ = listener.accept()
            threading.Thread(target=answer, args=(stream,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return address


if asked.get("stand_in"):
    address = serve(asked["stand_in"])
    for file in (home / ".config/provost/hook.toml", etc / "provost/hook.toml"):
        if file.exists():
            file.write_text(re.sub(r'^url = .*$', f'url = "{address}"', file.read_text(), flags=re.M))

if asked.get("only_tools"):
    for file in (home / ".claude/settings.json", etc / "claude-code/managed-settings.json", etc / "gemini-cli/settings.json"):
        if file.exists():
            settings = json.loads(file.read_text())
            for name in ("UserPromptSubmit", "BeforeAgent"):
                settings["hooks"].pop(name, None)
            file.write_text(json.dumps(settings))
    file = etc / "codex/requirements.toml"
    if file.exists():
        file.write_text(re.sub(r"\[\[hooks\.UserPromptSubmit\]\]\n(.+\n)+", "", file.read_text()))


class Gemini(model.Model):
    """The model as Gemini CLI asks it."""

    def do_POST(self):
        asked_model = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        names = [tool["name"] for tools in asked_model.get("tools", []) for tool in tools.get("functionDeclarations", [])]
        part = {"text": model.ANSWER}
        if "functionResponse" not in json.dumps(asked_model) and "run_shell_command" in names:
            part = {"functionCall": {"name": "run_shell_command", "args": {"command": asked["command"], "description": "Tidy up"}}}
        said = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18},
        }
        if "stream" not in self.path:
            return self.answer(said)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(said)}\n\n".encode())
        self.close_connection = True


def start_gemini():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gemini)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


over = asked.get("over", ["etc"])
environment = {"PATH": "/usr/bin:/bin", "HOME": "/home" if "home" in over else str(home), "TERM": "dumb", "NO_COLOR": "1"}
question = "Tidy up, please."
turn = asked.get("turn", 0)
if turn:
    model.CALL = f"call_turn_{turn}"
SESSION = "5f0f3a52-6a55-4c59-9a0f-0d6c7d0c2a11"
if client == "claude-code":
    base = model.start("Bash", {"command": asked["command"], "description": "Tidy up"})
    environment |= {
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    words = ["-p", question, "--allowedTools", "Bash", "--model", "claude-sonnet-5"]
    if turn:
        words += ["--session-id" if turn == 1 else "--resume", SESSION]
elif client == "codex":
    base = model.start("exec_command", {"cmd": asked["command"]})
    environment["OPENAI_API_KEY"] = "k"
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex/config.toml").write_text(
        f"""model = "gpt-5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""
        + asked.get("config", "")
    )
    words = ["exec", "--skip-git-repo-check", *(["resume", "--last"] if turn > 1 else []), question]
else:
    environment |= {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": start_gemini()}
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini/settings.json").write_text(
        json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}})
    )
    words = ["-p", question, "--yolo", "-m", "gemini-2.5-pro"]

# The machine's settings are those of the place: its etc stands over the machine's, for this process alone.
alone = f'for name in {" ".join(over)}; do mount --bind "$0/$name" "/$name" || exit 1; done; exec "$@"'
done = subprocess.run(
    ["unshare", "--mount", "--map-root-user", "sh", "-c", alone, str(place), *program, *words],
    env=environment,
    cwd=work,
    stdin=subprocess.DEVNULL,
    capture_output=True,
    text=True,
    timeout=180,
)
print(json.dumps({"ran": not victim.exists(), "exit": done.returncode, "said": (done.stdout + done.stderr)[-4000:]}))
