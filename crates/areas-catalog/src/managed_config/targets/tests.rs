use super::*;
use serde_json::json;

fn content(enforced: &Value, defaults: &Value) -> Content {
    serde_json::from_value(json!({ "enforced": enforced, "defaults": defaults })).unwrap()
}

fn paths(target: Target, enforced: &Value, defaults: &Value) -> Vec<String> {
    let findings = target.findings(&content(enforced, defaults), None);
    let faults = findings.faults;
    faults.into_iter().map(|fault| fault.path).collect()
}

/// What Claude Code 2.1.197 was seen to take.
pub fn claude_code_valid() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "unknownMember": 7 }),
        json!({
            "permissions": {
                "deny": ["Read(./.env)", "Bash(rm *)", "mcp__a__*", "*"], "ask": ["Bash(git push *)"], "allow": ["WebFetch(domain:example.com)"],
                "defaultMode": "plan", "disableBypassPermissionsMode": "disable", "additionalDirectories": ["/srv"],
            },
            "env": { "HTTPS_PROXY": "http://proxy.example:3128" },
            "allowedMcpServers": [{ "serverName": "docs" }, { "serverUrl": "https://mcp.example.com/*" }],
            "deniedMcpServers": [{ "serverCommand": ["npx", "evil"] }],
            "allowManagedHooksOnly": true,
            "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "/opt/check", "timeout": 5 }] }] },
            "sandbox": { "enabled": true, "allowUnsandboxedCommands": false, "network": { "allowedDomains": ["example.com"] } },
            "companyAnnouncements": ["be kind"], "cleanupPeriodDays": 30, "strictKnownMarketplaces": [],
        }),
    ]
}

/// What Claude Code 2.1.197 was seen to refuse or to skip with a complaint, and where.
pub fn claude_code_invalid() -> Vec<(Value, &'static str)> {
    vec![
        (
            json!({ "permissions": { "deny": "oops" } }),
            "/enforced/permissions/deny",
        ),
        (
            json!({ "permissions": { "deny": ["Bash("] } }),
            "/enforced/permissions/deny/0",
        ),
        (
            json!({ "permissions": { "deny": ["Bash()"] } }),
            "/enforced/permissions/deny/0",
        ),
        (
            json!({ "permissions": { "deny": ["bash(rm)"] } }),
            "/enforced/permissions/deny/0",
        ),
        (
            json!({ "permissions": { "defaultMode": "zzz" } }),
            "/enforced/permissions/defaultMode",
        ),
        (
            json!({ "permissions": { "disableBypassPermissionsMode": true } }),
            "/enforced/permissions/disableBypassPermissionsMode",
        ),
        (json!({ "cleanupPeriodDays": 0 }), "/enforced/cleanupPeriodDays"),
        (
            json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "zzz" }] }] } }),
            "/enforced/hooks/PreToolUse/0/hooks/0/type",
        ),
        (json!({ "hooks": { "Nonsense": [] } }), "/enforced/hooks/Nonsense"),
        (
            json!({ "allowedMcpServers": [{}] }),
            "/enforced/allowedMcpServers/0",
        ),
        (
            json!({ "allowedMcpServers": [{ "serverName": "a b" }] }),
            "/enforced/allowedMcpServers/0/serverName",
        ),
        (
            json!({ "sandbox": { "enabled": "yes" } }),
            "/enforced/sandbox/enabled",
        ),
        (
            json!({ "strictKnownMarketplaces": [{ "x": 1 }] }),
            "/enforced/strictKnownMarketplaces/0",
        ),
        (
            json!({ "autoUpdatesChannel": "zzz" }),
            "/enforced/autoUpdatesChannel",
        ),
        (
            json!({ "allowManagedHooksOnly": "x" }),
            "/enforced/allowManagedHooksOnly",
        ),
        (json!({ "model": 7 }), "/enforced/model"),
    ]
}

/// What Codex 0.169.0 was seen to take.
pub fn codex_valid() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "zzz_unknown": 7 }),
        json!({
            "allowed_approval_policies": ["untrusted", "on-request"], "allowed_sandbox_modes": ["read-only", "workspace-write"],
            "allowed_web_search_modes": [], "features": { "web_search_request": false },
            "mcp_servers": { "docs": { "identity": { "command": "docs-mcp" } } },
            "rules": { "prefix_rules": [{
                "decision": "forbidden", "justification": "no",
                "pattern": [{ "token": "rm" }, { "any_of": ["-rf", "-fr"] }],
            }] },
            "permissions": { "filesystem": { "deny_read": ["/etc/shadow"] } },
            "experimental_network": { "enabled": true, "domains": { "a.example": "deny" } },
            "enforce_residency": "us",
        }),
    ]
}

/// What Codex 0.169.0 was seen to refuse, and where.
pub fn codex_invalid() -> Vec<(Value, &'static str)> {
    let rule = |rule: Value| json!({ "rules": { "prefix_rules": [rule] } });
    let mut cases = vec![
        (
            json!({ "allowed_approval_policies": ["zzz"] }),
            "/enforced/allowed_approval_policies/0",
        ),
        (
            json!({ "allowed_approval_policies": [] }),
            "/enforced/allowed_approval_policies",
        ),
        (
            json!({ "allowed_sandbox_modes": ["zzz", "read-only"] }),
            "/enforced/allowed_sandbox_modes/0",
        ),
        (
            json!({ "allowed_sandbox_modes": ["workspace-write"] }),
            "/enforced/allowed_sandbox_modes",
        ),
        (
            json!({ "allowed_sandbox_modes": [] }),
            "/enforced/allowed_sandbox_modes",
        ),
        (
            json!({ "allowed_web_search_modes": ["zzz"] }),
            "/enforced/allowed_web_search_modes/0",
        ),
        (
            json!({ "allowed_login_methods": ["zzz"] }),
            "/enforced/allowed_login_methods/0",
        ),
        (
            json!({ "enforce_residency": "zzz" }),
            "/enforced/enforce_residency",
        ),
        (json!({ "features": { "x": "y" } }), "/enforced/features/x"),
        (
            json!({ "mcp_servers": { "a": { "zzz": 1 } } }),
            "/enforced/mcp_servers/a",
        ),
        (
            json!({ "mcp_servers": { "a": { "identity": { "zzz": 1 } } } }),
            "/enforced/mcp_servers/a/identity",
        ),
        (
            rule(json!({ "pattern": ["rm"], "decision": "forbidden" })),
            "/enforced/rules/prefix_rules/0/pattern/0",
        ),
        (
            rule(json!({ "pattern": [{ "token": "rm" }], "decision": "allow" })),
            "/enforced/rules/prefix_rules/0/decision",
        ),
        (
            rule(json!({ "pattern": [], "decision": "forbidden" })),
            "/enforced/rules/prefix_rules/0/pattern",
        ),
        (
            rule(json!({ "pattern": [{ "token": "rm" }] })),
            "/enforced/rules/prefix_rules/0",
        ),
        (
            rule(json!({ "pattern": [{ "token": "rm", "any_of": ["x"] }], "decision": "forbidden" })),
            "/enforced/rules/prefix_rules/0/pattern/0",
        ),
        (
            json!({ "permissions": { "filesystem": { "deny_read": 7 } } }),
            "/enforced/permissions/filesystem/deny_read",
        ),
        (
            json!({ "experimental_network": { "domains": { "a": "zzz" } } }),
            "/enforced/experimental_network/domains/a",
        ),
        (json!({ "x": [null] }), "/enforced/x/0"),
    ];
    for name in [
        "allowed_permission_profiles",
        "features",
        "hooks",
        "mcp_servers",
        "plugins",
        "apps",
        "rules",
    ] {
        cases.push((
            json!({ name: 7 }),
            Box::leak(format!("/enforced/{name}").into_boxed_str()),
        ));
    }
    cases
}

/// Proves MC-6.
#[test]
fn what_the_programs_were_seen_to_take_is_taken() {
    for (target, valid) in [
        (Target::ClaudeCode, claude_code_valid()),
        (Target::Codex, codex_valid()),
        (
            Target::GenericJson,
            vec![json!({ "anything": [null, { "goes": 1.5 }] })],
        ),
    ] {
        for enforced in valid {
            assert_eq!(
                paths(target, &enforced, &json!({})),
                Vec::<String>::new(),
                "{enforced}"
            );
        }
    }
}

/// Proves MC-6.
#[test]
fn what_the_programs_were_seen_to_refuse_is_refused_at_its_place() {
    for (target, invalid) in [
        (Target::ClaudeCode, claude_code_invalid()),
        (Target::Codex, codex_invalid()),
    ] {
        for (enforced, path) in invalid {
            let found = paths(target, &enforced, &json!({}));
            assert!(found.iter().any(|p| p == path), "{enforced}: {found:?}");
        }
    }
}

#[test]
fn a_default_is_judged_like_a_default() {
    let managed = json!({ "allowManagedHooksOnly": true, "model": "opus" });
    assert_eq!(
        paths(Target::ClaudeCode, &json!({}), &managed),
        ["/defaults/allowManagedHooksOnly"]
    );
    let codex = json!({ "approval_policy": "untrusted", "sandbox_mode": "zzz", "model": 1, "x": null });
    let expected = [
        "/defaults/approval_policy",
        "/defaults/model",
        "/defaults/sandbox_mode",
        "/defaults/x",
    ];
    let mut found = paths(Target::Codex, &json!({}), &codex);
    found.sort();
    assert_eq!(found, expected);
}

/// Proves MC-5.
#[test]
fn no_refusal_quotes_a_value() {
    let secret = "hunter2-secret";
    for (target, invalid) in [
        (Target::ClaudeCode, claude_code_invalid()),
        (Target::Codex, codex_invalid()),
    ] {
        for (enforced, _) in invalid {
            let text = enforced
                .to_string()
                .replace("zzz", secret)
                .replace("oops", secret)
                .replace("bash(rm)", secret);
            let enforced: Value = serde_json::from_str(&text).unwrap();
            let faults = target
                .findings(&content(&enforced, &json!({ "model": { "k": secret } })), None)
                .faults;
            let shown: Vec<String> = faults.iter().map(|f| f.message.clone()).collect();
            assert!(!shown.concat().contains(secret), "{shown:?}");
        }
    }
}

#[test]
fn files_hold_exactly_what_the_content_says() {
    for (target, enforced) in [
        (Target::ClaudeCode, claude_code_valid()),
        (Target::Codex, codex_valid()),
        (Target::GenericJson, claude_code_valid()),
    ] {
        for enforced in enforced {
            for defaults in [json!({}), json!({ "model": "x", "a b": { "c": [1, 2.5, -3] } })] {
                let files = target.files(&content(&enforced, &defaults));
                assert_eq!(files.len(), if defaults == json!({}) { 1 } else { 2 });
                for (file, wanted) in files.iter().zip([&enforced, &defaults]) {
                    let read: Value = if target == Target::Codex {
                        toml::from_str(&file.text).unwrap_or_else(|e| panic!("{e}\n{}", file.text))
                    } else {
                        serde_json::from_str(&file.text).unwrap()
                    };
                    assert_eq!(&read, wanted, "{}", file.text);
                    assert!(file.text.is_empty() || file.text.ends_with('\n'));
                }
            }
        }
    }
    let names = |target: Target| {
        let files = target.files(&content(&json!({}), &json!({ "x": 1 })));
        files.into_iter().map(|f| f.name).collect::<Vec<_>>()
    };
    assert_eq!(
        names(Target::ClaudeCode),
        ["managed-settings.json", "settings.json"]
    );
    assert_eq!(names(Target::Codex), ["requirements.toml", "config.toml"]);
    assert_eq!(names(Target::GenericJson), ["enforced.json", "defaults.json"]);
}

fn weakened(target: Target, before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = (content(before, &json!({})), content(after, &json!({})));
    target
        .weakened(&before, &after)
        .into_iter()
        .map(|w| w.path)
        .collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_kind_of_rule_says_what_weakens_and_what_does_not() {
    // Target, before, after, and what is named going there and coming back.
    type Case = (
        Target,
        Value,
        Value,
        &'static [&'static str],
        &'static [&'static str],
    );
    let (cc, codex, json_) = (Target::ClaudeCode, Target::Codex, Target::GenericJson);
    let cases: Vec<Case> = vec![
        // Deny rules, allow rules.
        (
            cc,
            json!({ "permissions": { "deny": ["A", "B"] } }),
            json!({ "permissions": { "deny": ["B"] } }),
            &["/enforced/permissions/deny"],
            &[],
        ),
        (
            cc,
            json!({ "permissions": { "deny": ["A", "B"] } }),
            json!({ "permissions": { "deny": ["B", "A"] } }),
            &[],
            &[],
        ),
        (
            cc,
            json!({ "permissions": { "deny": ["A"] } }),
            json!({}),
            &["/enforced/permissions/deny"],
            &[],
        ),
        (
            cc,
            json!({ "permissions": { "allow": [] } }),
            json!({ "permissions": { "allow": ["A"] } }),
            &["/enforced/permissions/allow"],
            &[],
        ),
        (
            cc,
            json!({}),
            json!({ "permissions": { "allow": ["A"] } }),
            &["/enforced/permissions/allow"],
            &[],
        ),
        // A list that limits: its loss opens everything, a first one opens nothing.
        (
            cc,
            json!({ "allowedMcpServers": [] }),
            json!({}),
            &["/enforced/allowedMcpServers"],
            &[],
        ),
        (
            cc,
            json!({ "availableModels": ["a"] }),
            json!({ "availableModels": ["b"] }),
            &["/enforced/availableModels"],
            &["/enforced/availableModels"],
        ),
        // Switches.
        (
            cc,
            json!({ "sandbox": { "enabled": true } }),
            json!({ "sandbox": { "enabled": false } }),
            &["/enforced/sandbox/enabled"],
            &[],
        ),
        (
            cc,
            json!({ "sandbox": { "enabled": true } }),
            json!({}),
            &["/enforced/sandbox/enabled"],
            &[],
        ),
        (
            cc,
            json!({ "sandbox": { "allowUnsandboxedCommands": false } }),
            json!({ "sandbox": {} }),
            &["/enforced/sandbox/allowUnsandboxedCommands"],
            &[],
        ),
        (
            cc,
            json!({}),
            json!({ "disableAllHooks": true }),
            &["/enforced/disableAllHooks"],
            &[],
        ),
        (
            cc,
            json!({ "permissions": { "disableBypassPermissionsMode": "disable" } }),
            json!({ "permissions": {} }),
            &["/enforced/permissions/disableBypassPermissionsMode"],
            &[],
        ),
        // From strict to loose.
        (
            cc,
            json!({ "permissions": { "defaultMode": "plan" } }),
            json!({ "permissions": { "defaultMode": "acceptEdits" } }),
            &["/enforced/permissions/defaultMode"],
            &[],
        ),
        // Hooks are guards; an added one is none the less no loss.
        (
            cc,
            json!({ "hooks": { "PreToolUse": [{ "hooks": [] }] } }),
            json!({ "hooks": {} }),
            &["/enforced/hooks/PreToolUse"],
            &[],
        ),
        // What no rule names: only its loss counts. What guards nothing: never.
        (
            cc,
            json!({ "env": { "A": "1" }, "model": "a" }),
            json!({ "model": "b" }),
            &["/enforced/env/A"],
            &[],
        ),
        (cc, json!({ "companyAnnouncements": ["x"] }), json!({}), &[], &[]),
        (
            codex,
            json!({ "allowed_sandbox_modes": ["read-only"] }),
            json!({}),
            &["/enforced/allowed_sandbox_modes"],
            &[],
        ),
        (
            codex,
            json!({ "mcp_servers": { "a": { "identity": { "command": "x" } } } }),
            json!({ "mcp_servers": { "a": { "identity": { "command": "y" } } } }),
            &["/enforced/mcp_servers"],
            &["/enforced/mcp_servers"],
        ),
        (
            codex,
            json!({ "mcp_servers": {} }),
            json!({}),
            &["/enforced/mcp_servers"],
            &[],
        ),
        (
            codex,
            json!({ "features": { "a": false } }),
            json!({ "features": { "a": true } }),
            &["/enforced/features/a"],
            &["/enforced/features/a"],
        ),
        (
            codex,
            json!({ "experimental_network": { "domains": { "a": "deny", "b": "allow" } } }),
            json!({ "experimental_network": { "domains": { "a": "allow" } } }),
            &["/enforced/experimental_network/domains"],
            &["/enforced/experimental_network/domains"],
        ),
        (
            codex,
            json!({ "rules": { "prefix_rules": [{ "decision": "forbidden" }] } }),
            json!({ "rules": { "prefix_rules": [{ "decision": "prompt" }] } }),
            &["/enforced/rules/prefix_rules"],
            &["/enforced/rules/prefix_rules"],
        ),
        (
            codex,
            json!({ "allow_remote_control": false }),
            json!({ "allow_remote_control": true }),
            &["/enforced/allow_remote_control"],
            &[],
        ),
        (
            json_,
            json!({ "a": { "b": 1, "c": 2 } }),
            json!({ "a": { "b": 3 } }),
            &["/enforced/a/c"],
            &[],
        ),
        (
            json_,
            json!({ "a": { "b": 1 } }),
            json!({}),
            &["/enforced/a/b"],
            &[],
        ),
        (json_, json!({ "a": {} }), json!({}), &["/enforced/a"], &[]),
    ];
    for (target, before, after, there, back) in cases {
        assert_eq!(weakened(target, &before, &after), there, "{before} → {after}");
        assert_eq!(weakened(target, &after, &before), back, "{after} → {before}");
        assert!(weakened(target, &before, &before).is_empty());
    }
}
