"""One call of a tool by a real client whose model is a script, and whether it ran.

Standard input is one object: `client` (claude-code, codex, gemini), `program` (the words that start it), `place` (a folder of its own with
`home`, `etc` and `work`), `command` (what the model asks the shell for), `victim` (a file that the command removes) and `stand_in` (how a
server behaves that takes the place of the real one; absent for the real one). With `only_tools` the client asks before tools alone, so that
it is the tool's own gate that is seen. `over` names the folders of the place that stand over the machine's; `etc` alone where it is absent.
With `turn` the client goes on with one session from the second turn on (1, 2, …), in which each call has an id of its own.
With `hook` the machine's settings register this hook and no other one: `moment` (pre_tool, post_tool, prompt), `line` (a command line),
`seconds` (how long the client waits) and `on_failure` (whether the client is to refuse where the hook fails, if it has a switch for that).
`settings` are members of Gemini CLI's own settings of the person, besides those that it needs; `config` is text behind those of Codex.
With `server` the person has a server of MCP in the client's settings, called files, by these words of a command line: the model asks for its
tool `remove` in place of the shell. `npx` is what a package of it would start, and stands for every package.
The answer is one line of JSON: whether the victim is gone, what the client said, and of the texts that `looks_for` names those that the
model was shown.
"""

import json
import os
import pathlib
import re
import shlex
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


MOMENTS = {
    "pre_tool": ("PreToolUse", "BeforeTool"),
    "post_tool": ("PostToolUse", "AfterTool"),
    "prompt": ("UserPromptSubmit", "BeforeAgent"),
}


def register(hook):
    """Writes the machine's settings of the client, with one hook."""
    event = MOMENTS[hook["moment"]][client == "gemini"]
    one = {"type": "command", "command": hook["line"], "timeout": hook["seconds"]}
    if client == "codex":
        folder, text = etc / "codex/requirements.toml", '[features]\nhooks = true\n\n[hooks]\nmanaged_dir = "/etc/codex"\n\n'
        text += f"[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in one.items())
    else:
        folder = etc / ("gemini-cli/settings.json" if client == "gemini" else "claude-code/managed-settings.json")
        if client == "gemini":
            one |= {"name": "provost", "timeout": 1_000 * hook["seconds"]}
        elif hook["on_failure"]:
            one["onFailure"] = "block"
        text = json.dumps({"hooks": {event: [{"hooks": [one]}]}})
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text(text)


if asked.get("hook"):
    register(asked["hook"])


class Gemini(model.Model):
    """The model as Gemini CLI asks it."""

    def do_POST(self):
        asked_model = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        model.SEEN.append(json.dumps(asked_model))
        names = [tool["name"] for tools in asked_model.get("tools", []) for tool in tools.get("functionDeclarations", [])]
        part = {"text": model.ANSWER}
        wanted, input_ = "run_shell_command", {"command": asked["command"], "description": "Tidy up"}
        if asked.get("server"):
            wanted, input_ = "mcp_files_remove", {}
        # Of a session that goes on it hears everything that was said before.
        if "functionResponse" not in json.dumps(asked_model.get("contents", [])[-1:]) and wanted in names:
            part = {"functionCall": {"name": wanted, "args": input_}}
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


path = "/usr/bin:/bin"
if asked.get("server"):
    path = f"{work}/bin:{path}"
    (work / "bin").mkdir(exist_ok=True)
    words = [sys.executable, str(pathlib.Path(__file__).parent / "files.py"), str(victim)]
    (work / "bin/npx").write_text("#!/bin/sh\nexec " + " ".join(shlex.quote(word) for word in words) + "\n")
    (work / "bin/npx").chmod(0o755)
over = asked.get("over", ["etc"])
environment = {"PATH": path, "HOME": "/home" if "home" in over else str(home), "TERM": "dumb", "NO_COLOR": "1"}
question = "Tidy up, please."
turn = asked.get("turn", 0)
if turn:
    model.CALL = f"call_turn_{turn}"
SESSION = "5f0f3a52-6a55-4c59-9a0f-0d6c7d0c2a11"
if client == "claude-code":
    tools = ["Bash"]
    base = None
    if asked.get("server"):
        tools.append("mcp__files")
        base = model.start("mcp__files__remove", {"path": "."})
        program_word, *arguments = asked["server"]
        (home / ".claude.json").write_text(json.dumps({"mcpServers": {"files": {"command": program_word, "args": arguments}}}))
    elif (home / ".claude.json").exists():
        kept = json.loads((home / ".claude.json").read_text())
        kept.pop("mcpServers", None)
        (home / ".claude.json").write_text(json.dumps(kept))
    base = base or model.start("Bash", {"command": asked["command"], "description": "Tidy up"})
    environment |= {
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # Tools of servers stand in the list that the model is given, and do not have to be looked for.
        "ENABLE_TOOL_SEARCH": "false",
    }
    words = ["-p", question, "--allowedTools", ",".join(tools), "--model", "claude-sonnet-5"]
    if turn:
        words += ["--session-id" if turn == 1 else "--resume", SESSION]
elif client == "codex":
    if asked.get("server"):
        base = model.start("remove", {"path": "."}, "mcp__files")
    else:
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
        + (f"[mcp_servers.files]\ncommand = {json.dumps(asked['server'][0])}\nargs = {json.dumps(asked['server'][1:])}\n" if asked.get("server") else "")
        + asked.get("config", "")
    )
    words = ["exec", "--skip-git-repo-check", *(["resume", "--last"] if turn > 1 else []), question]
else:
    environment |= {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": start_gemini()}
    (home / ".gemini").mkdir(exist_ok=True)
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}} | asked.get("settings", {})
    if asked.get("server"):
        settings["mcpServers"] = {"files": {"command": asked["server"][0], "args": asked["server"][1:]}}
    (home / ".gemini/settings.json").write_text(json.dumps(settings))
    words = ["-p", question, "--yolo", "-m", "gemini-2.5-pro"]
    if turn:
        words += ["--session-id" if turn == 1 else "--resume", SESSION]

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
shown = [text for text in asked.get("looks_for", []) if any(text in seen for seen in model.SEEN)]
said = (done.stdout + done.stderr)[-4000:]
print(json.dumps({"ran": not victim.exists(), "exit": done.returncode, "said": said, "shown": shown}))
