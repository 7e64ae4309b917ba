#!/usr/bin/env bash
# Lets the real clients read what a server renders, and shows what they say. Needs root (a mount namespace of its own
# stands in for /etc/claude-code and /etc/codex), curl, jq, and the two programs:
#
#   npm install --prefix /tmp/clients @anthropic-ai/claude-code @openai/codex
#   PROVOST_URL=… PROVOST_ORGANIZATION=… PROVOST_TOKEN=… PROVOST_PULL_TOKEN=… CLAUDE=/path/to/claude \
#     CODEX=/path/to/codex managed_config.sh
#
# PROVOST_TOKEN publishes (managed_config:write), PROVOST_PULL_TOKEN fetches as machines do (managed_config:pull).
# No network is needed: both programs read their managed files before they ask anybody. Exits 1 when one of them does
# not take a rendered file, or takes a broken one.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  exec unshare --mount -- "$0" inside
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p /etc/claude-code /etc/codex "$work/claude-code" "$work/codex" "$work/home/.codex"
mount --bind "$work/claude-code" /etc/claude-code
mount --bind "$work/codex" /etc/codex
base="$PROVOST_URL/api/headless/v1/organizations/$PROVOST_ORGANIZATION/managed-config/profiles"
failed=0

call() { # METHOD PATH [BODY]
  curl -sS -X "$1" "$base$2" -H "Authorization: Bearer $PROVOST_TOKEN" -H 'Content-Type: application/json' ${3:+--data "$3"}
}

trio() { jq -c --arg key "clients-$(date +%s%N)-$RANDOM" '. + {reason: "client check", idempotencyKey: $key}' <<<"$1"; }

deliver() { # TARGET CONTENT FOLDER: publishes and writes the enforced file, as a machine would
  local id
  id=$(call POST "" "$(trio "{\"name\":\"clients $1 $RANDOM$RANDOM\",\"target\":\"$1\"}")" | jq -r .profile.id)
  call POST "/$id/releases" "$(trio "{\"content\":$2}")" | jq -e .created >/dev/null
  PROVOST_TOKEN=$PROVOST_PULL_TOKEN call GET "/$id/current" | jq -c '.files[]' | while read -r file; do
    jq -rj .content <<<"$file" >"$3/$(jq -r .name <<<"$file")"
  done
}

expect() { # WHAT PATTERN WANTED TEXT: WANTED says whether the pattern must be there
  if grep -qE "$2" <<<"$4"; then found=yes; else found=no; fi
  if [ "$found" = "$3" ]; then echo "ok    $1"; else echo "WRONG $1:"; head -c 400 <<<"$4"; failed=1; fi
}

run() { (cd "$work/home" && HOME="$work/home" CODEX_HOME="$work/home/.codex" IS_SANDBOX=1 timeout 60 "$@" </dev/null 2>&1) || true; }

complaint='Unable to read managed policy|Managed settings contain invalid|failed to parse|failed to load|Error loading'
echo "Claude Code: $(run "$CLAUDE" --version)"
deliver claude_code "$(cat "$(dirname "$0")/claude_code.json")" /etc/claude-code
expect 'the rendered managed-settings.json is read without complaint' "$complaint" no "$(run "$CLAUDE" -p hi)"
if command -v strace >/dev/null; then
  opened=$(run strace -f -e trace=openat,open -o /dev/stdout "$CLAUDE" -p hi)
  expect 'managed-settings.json is opened' '"/etc/claude-code/managed-settings.json", O_RDONLY.* = [0-9]' yes "$opened"
fi
echo '{"permissions":{"deny":"everything"}}' >/etc/claude-code/managed-settings.json
expect 'a broken managed-settings.json is refused' "$complaint" yes "$(run "$CLAUDE" -p hi)"

echo "Codex: $(run "$CODEX" --version | tail -1)"
deliver codex "$(cat "$(dirname "$0")/codex.json")" /etc/codex
listed=$(run "$CODEX" -c 'mcp_servers.docs.command="docs-mcp"' -c 'mcp_servers.other.command="other"' mcp list)
expect 'the rendered requirements.toml is read without complaint' "$complaint" no "$listed"
expect 'an MCP server that it names is enabled' '^docs .*enabled' yes "$listed"
expect 'an MCP server that it does not name is disabled' '^other .*disabled: requirements' yes "$listed"
expect 'a default of the rendered config.toml acts' 'sandbox: read-only' yes "$(run "$CODEX" exec --skip-git-repo-check hi)"
echo 'allowed_sandbox_modes = ["everything"]' >/etc/codex/requirements.toml
expect 'a broken requirements.toml is refused' "$complaint" yes "$(run "$CODEX" features list)"
exit "$failed"
