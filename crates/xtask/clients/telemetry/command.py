"""One question to the command line of Claude Code or Codex before a model that asks for one command; its records go to the server.

Arguments: `claude` or `codex`, and the words that start it. HOME is a folder of its own; PROVOST_LOGS says where the records go, and
PROVOST_TOKEN with which token.
"""

import os
import pathlib
import subprocess
import sys

import model

client, program = sys.argv[1], sys.argv[2:]
home, logs, token = (os.environ[name] for name in ("HOME", "PROVOST_LOGS", "PROVOST_TOKEN"))
environment = {name: value for name, value in os.environ.items() if not name.startswith("PROVOST_")}
environment["OTEL_RESOURCE_ATTRIBUTES"] = "user.email=ann@example.com"
QUESTION = "Weather in Oslo?"

if client == "claude":
    base = model.start("Bash", {"command": f"echo {model.RESULT}", "description": "Say how the weather is"})
    # As the guide has it.
    environment |= {
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": logs,
        "OTEL_EXPORTER_OTLP_LOGS_HEADERS": f"Authorization=Bearer {token}",
        "OTEL_LOG_TOOL_DETAILS": "1",
        "OTEL_LOG_USER_PROMPTS": "1",
    }
    words = ["-p", QUESTION, "--allowedTools", "Bash", "--model", "claude-sonnet-5"]
else:
    base = model.start("exec_command", {"cmd": f"echo {model.RESULT}"})
    environment["OPENAI_API_KEY"] = "k"
    folder = pathlib.Path(home, ".codex")
    folder.mkdir(exist_ok=True)
    folder.joinpath("config.toml").write_text(
        f"""model = "gpt-5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"

[otel]
log_user_prompt = true

[otel.exporter.otlp-http]
endpoint = "{logs}"
protocol = "binary"
headers = {{ "Authorization" = "Bearer {token}" }}
"""
    )
    words = ["exec", "--skip-git-repo-check", QUESTION]

done = subprocess.run(program + words, env=environment, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
if done.returncode != 0 or model.ANSWER not in done.stdout:
    sys.exit(f"{client} ended with {done.returncode}: {done.stdout}{done.stderr}")
print("answered")
