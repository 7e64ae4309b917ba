//! What clients of the probed versions were seen to do, beside what stays refused and what is only warned of.

use super::*;
use serde_json::json;

fn findings(target: Target, enforced: &Value, defaults: &Value) -> Findings {
    let content = serde_json::from_value(json!({ "enforced": enforced, "defaults": defaults })).unwrap();
    target.findings(&content, None)
}

fn refused_at(target: Target, enforced: &Value) -> Vec<String> {
    let faults = findings(target, enforced, &json!({})).faults;
    faults.into_iter().map(|fault| fault.path).collect()
}

fn warned(target: Target, enforced: &Value, defaults: &Value) -> Vec<(&'static str, String)> {
    let found = findings(target, enforced, defaults);
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    let warnings = found.warnings.into_iter();
    warnings
        .map(|warning| (warning.code, warning.paths.concat()))
        .collect()
}

fn hook(event: &str, more: &Value) -> Value {
    let mut hook = json!({ "type": "command", "command": "true" });
    for (name, value) in more.as_object().into_iter().flatten() {
        hook[name] = value.clone();
    }
    json!({ "hooks": { event: [{ "hooks": [hook] }] } })
}

/// Proves MC-6.
#[test]
fn what_newer_versions_take_is_taken_and_its_neighbours_are_not() {
    let mode = |mode: &str| json!({ "permissions": { "defaultMode": mode } });
    let ports = |http: Value, socks: Value| json!({ "sandbox": { "network": { "httpProxyPort": http, "socksProxyPort": socks } } });
    let env = |value: Value| json!({ "env": { "X": value } });
    for taken in [
        mode("manual"),
        mode("plan"),
        hook("DirectoryAdded", &json!({})),
        ports(Value::Null, Value::Null),
        ports(json!(8080), json!(8081)),
        env(json!(7)),
        env(json!("7")),
    ] {
        assert_eq!(warned(Target::ClaudeCode, &taken, &json!({})), [], "{taken}");
    }
    for (refused, path) in [
        (mode("manuel"), "/enforced/permissions/defaultMode"),
        (mode(""), "/enforced/permissions/defaultMode"),
        (
            json!({ "permissions": { "defaultMode": null } }),
            "/enforced/permissions/defaultMode",
        ),
        (hook("DirectoryAded", &json!({})), "/enforced/hooks/DirectoryAded"),
        (
            ports(json!("8080"), json!(1)),
            "/enforced/sandbox/network/httpProxyPort",
        ),
        (
            ports(json!(1), json!(true)),
            "/enforced/sandbox/network/socksProxyPort",
        ),
        (
            json!({ "sandbox": { "enabled": null } }),
            "/enforced/sandbox/enabled",
        ),
        (env(Value::Null), "/enforced/env/X"),
        (env(json!({})), "/enforced/env/X"),
        (env(json!([])), "/enforced/env/X"),
    ] {
        let found = refused_at(Target::ClaudeCode, &refused);
        assert!(found.iter().any(|found| found == path), "{refused}: {found:?}");
    }
}

/// Proves MC-6.
#[test]
fn a_guard_with_a_shell_that_the_program_does_not_know_is_refused() {
    let path = "/enforced/hooks/PreToolUse/0/hooks/0/shell";
    for shell in ["fish", "sh", ""] {
        let found = refused_at(
            Target::ClaudeCode,
            &hook("PreToolUse", &json!({ "shell": shell })),
        );
        assert_eq!(found, [path], "{shell}");
    }
    assert_eq!(
        warned(
            Target::ClaudeCode,
            &hook("PreToolUse", &json!({ "shell": "bash" })),
            &json!({})
        ),
        []
    );
}

/// Proves MC-6.
#[test]
fn what_keeps_codex_from_starting_is_refused() {
    let approvals = |item: Value| json!({ "allowed_approval_policies": ["on-request", item] });
    let granular =
        json!({ "granular": { "sandbox_approval": true, "rules": true, "mcp_elicitations": true } });
    assert_eq!(warned(Target::Codex, &approvals(granular), &json!({})), []);
    for (refused, path) in [
        (
            approvals(json!("granular")),
            "/enforced/allowed_approval_policies/1",
        ),
        (
            approvals(json!({ "granular": true })),
            "/enforced/allowed_approval_policies/1/granular",
        ),
        (
            json!({ "allow_login_shell": "no" }),
            "/enforced/allow_login_shell",
        ),
        (
            json!({ "otel": { "log_user_prompt": "yes" } }),
            "/enforced/otel/log_user_prompt",
        ),
        (json!({ "otel": { "unknown": 1 } }), "/enforced/otel/unknown"),
        (
            json!({ "browser_use": { "disable_auto_review": "x" } }),
            "/enforced/browser_use/disable_auto_review",
        ),
        (
            json!({ "apps": { "x": { "enabled": "yes" } } }),
            "/enforced/apps/x/enabled",
        ),
        (
            json!({ "experimental_network": { "unix_sockets": { "/tmp/a.sock": "maybe" } } }),
            "/enforced/experimental_network/unix_sockets/~1tmp~1a.sock",
        ),
        (
            json!({ "hooks": { "PreToolUse": [{ "matcher": "x", "hooks": [{ "type": "script", "command": "true" }] }] } }),
            "/enforced/hooks/PreToolUse/0/hooks/0/type",
        ),
        (
            json!({ "remote_sandbox_config": [{ "allowed_sandbox_modes": ["read-only"] }] }),
            "/enforced/remote_sandbox_config/0",
        ),
        (
            json!({ "permissions": { "p": { "extends": 7 } } }),
            "/enforced/permissions/p/extends",
        ),
        (
            json!({ "marketplaces": { "x": { "source": 7 } } }),
            "/enforced/marketplaces/x",
        ),
        (json!({ "models": 7 }), "/enforced/models"),
    ] {
        let found = refused_at(Target::Codex, &refused);
        assert!(found.iter().any(|found| found == path), "{refused}: {found:?}");
    }
}

#[test]
fn what_is_taken_and_guards_nothing_is_warned_of() {
    let deny = |rule: &str| json!({ "permissions": { "deny": [rule] } });
    let none = json!({});
    let denies_nothing = ("denies_nothing", "/enforced/permissions/deny/0".to_owned());
    for rule in [
        "mcp__docs(search)",
        "Write(src/**)",
        "NotebookEdit(x)",
        "WebFetch(example.com)",
        "Bsh(rm *)",
    ] {
        assert_eq!(
            warned(Target::ClaudeCode, &deny(rule), &none),
            std::slice::from_ref(&denies_nothing),
            "{rule}"
        );
    }
    for rule in [
        "mcp__docs",
        "Edit(src/**)",
        "Write",
        "Bash(rm *)",
        "*",
        "Agent(x)",
    ] {
        assert_eq!(warned(Target::ClaudeCode, &deny(rule), &none), [], "{rule}");
    }
    for (target, enforced, code, path) in [
        (
            Target::ClaudeCode,
            json!({ "permisions": { "deny": ["Bash"] } }),
            "unknown_member",
            "/enforced/permisions",
        ),
        (
            Target::ClaudeCode,
            json!({ "deny": ["Bash"] }),
            "misplaced_member",
            "/enforced/deny",
        ),
        (
            Target::ClaudeCode,
            json!({ "zzzUnknown": 7 }),
            "unknown_member",
            "/enforced/zzzUnknown",
        ),
        (
            Target::Codex,
            json!({ "approval_policy": "never" }),
            "misplaced_member",
            "/enforced/approval_policy",
        ),
        (
            Target::Codex,
            json!({ "allowed_sandbox_mode": ["read-only"] }),
            "unknown_member",
            "/enforced/allowed_sandbox_mode",
        ),
        (
            Target::Codex,
            hook("PreTolUse", &none),
            "unknown_member",
            "/enforced/hooks/PreTolUse",
        ),
    ] {
        assert_eq!(
            warned(target, &enforced, &none),
            [(code, path.to_owned())],
            "{enforced}"
        );
    }
    let in_defaults = |target, defaults: &Value| warned(target, &none, defaults);
    assert_eq!(
        in_defaults(
            Target::ClaudeCode,
            &json!({ "permissions": { "deny": ["Bash"] }, "model": "opus" })
        ),
        [("guard_can_be_changed", "/defaults/permissions/deny".to_owned())]
    );
    assert_eq!(
        in_defaults(Target::Codex, &json!({ "allowed_sandbox_modes": ["read-only"] })),
        [("misplaced_member", "/defaults/allowed_sandbox_modes".to_owned())]
    );
    let suggestion = findings(Target::ClaudeCode, &json!({ "permisions": {} }), &none).warnings;
    assert!(
        suggestion[0].message.contains("did you mean permissions?"),
        "{suggestion:?}"
    );
}

/// Proves MC-5.
#[test]
fn no_warning_quotes_a_value() {
    let secret = "hunter2-secret";
    let enforced = json!({ "permissions": { "deny": [format!("Write({secret})"), format!("mcp__x({secret})")] }, "deny": secret });
    let found = findings(
        Target::ClaudeCode,
        &enforced,
        &json!({ "autoUpdatesChannel": secret }),
    );
    let said: Vec<String> = found.faults.iter().map(|fault| fault.message.clone()).collect();
    let warned: Vec<String> = found
        .warnings
        .iter()
        .map(|warning| warning.message.clone())
        .collect();
    assert!(warned.len() > 2);
    assert!(!(said.concat() + &warned.concat()).contains(secret));
}

/// Proves MC-6.
#[test]
fn codex_sends_its_traces_by_both_protocols() {
    let exporter = |name: &str| json!({ name: { "endpoint": "https://example.com/" } });
    for member in ["exporter", "trace_exporter", "metrics_exporter"] {
        for name in ["otlp-http", "otlp-grpc"] {
            let otel = json!({ "otel": { member: exporter(name) } });
            assert_eq!(warned(Target::Codex, &otel, &json!({})), [], "{otel}");
            assert_eq!(warned(Target::Codex, &json!({}), &otel), [], "{otel}");
        }
        for wrong in [json!(7), json!(true), json!([])] {
            let otel = json!({ "otel": { member: wrong } });
            assert_eq!(
                refused_at(Target::Codex, &otel),
                [format!("/enforced/otel/{member}")]
            );
        }
    }
}

/// Proves MC-6.
#[test]
fn every_event_of_codex_is_judged_as_the_probed_one() {
    let none = json!({});
    for event in ["PreToolUse", "PostToolUse", "SessionStart", "Stop"] {
        let good = hook(event, &json!({ "timeout": 5 }));
        assert_eq!(warned(Target::Codex, &good, &none), [], "{event}");
        let text = json!({ "hooks": { event: "x" } });
        let place = format!("/enforced/hooks/{event}");
        assert_eq!(refused_at(Target::Codex, &text), std::slice::from_ref(&place));
        let number = hook(event, &json!({ "command": 7 }));
        assert_eq!(
            refused_at(Target::Codex, &number),
            [format!("{place}/0/hooks/0/command")]
        );
        let faults = findings(Target::Codex, &none, &number).faults;
        assert_eq!(
            faults[0].path,
            format!("/defaults/hooks/{event}/0/hooks/0/command")
        );
        assert_eq!(
            warned(Target::Codex, &none, &good),
            [("guard_can_be_changed", format!("/defaults/hooks/{event}"))]
        );
    }
    let folders = json!({ "hooks": { "managed_dir": "/srv", "windows_managed_dir": "C:\\srv" } });
    assert_eq!(warned(Target::Codex, &folders, &none), []);
    let unknown = json!({ "hooks": { "Nothing": "x" } });
    assert_eq!(refused_at(Target::Codex, &unknown), ["/enforced/hooks/Nothing"]);
}

#[test]
fn hooks_that_codex_skips_are_warned_of() {
    for (more, member) in [
        (json!({ "type": "prompt" }), "type"),
        (json!({ "type": "agent" }), "type"),
        (json!({ "async": true }), "async"),
    ] {
        let path = format!("/enforced/hooks/PreToolUse/0/hooks/0/{member}");
        let found = warned(Target::Codex, &hook("PreToolUse", &more), &json!({}));
        assert_eq!(found, [("denies_nothing", path)], "{more}");
    }
    let waited = hook("PreToolUse", &json!({ "async": false }));
    assert_eq!(warned(Target::Codex, &waited, &json!({})), []);
}

#[test]
fn what_claude_code_reads_in_one_event_it_reads_in_all() {
    let asks = json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "prompt", "prompt": "done?" }] }] } });
    assert_eq!(warned(Target::ClaudeCode, &asks, &json!({})), []);
    let misspelt = hook("Stop", &json!({ "promt": "done?" }));
    assert_eq!(
        warned(Target::ClaudeCode, &misspelt, &json!({})),
        [(
            "unknown_member",
            "/enforced/hooks/Stop/0/hooks/0/promt".to_owned()
        )]
    );
}

#[test]
fn a_guard_is_known_by_its_whole_path() {
    assert!(lies_in("/defaults/deny", "/defaults/deny") && lies_in("/defaults/deny/0", "/defaults/deny"));
    assert!(!lies_in("/defaults/deny", "/defaults/den"));
    let loose = hook("PreToolUse", &json!({}));
    assert_eq!(
        warned(Target::ClaudeCode, &json!({}), &loose),
        [("guard_can_be_changed", "/defaults/hooks/PreToolUse".to_owned())]
    );
}

#[test]
fn a_content_that_is_made_to_be_slow_is_judged_at_once() {
    let long = "permissions".repeat(200_000);
    let name = json!({ long: 1 });
    let found = findings(Target::ClaudeCode, &name, &json!({}));
    assert!(found.faults.is_empty());
    assert!(
        found
            .warnings
            .iter()
            .any(|warning| warning.code == "unknown_member")
    );

    let many: serde_json::Map<String, Value> =
        (0..1_000).map(|n| (format!("permision{n}"), json!(n))).collect();
    let found = findings(Target::ClaudeCode, &many.into(), &json!({}));
    assert_eq!(found.warnings.len(), 201);
    let last = found.warnings.last().unwrap();
    assert_eq!((last.code, last.paths.len()), ("more_warnings", 0));
    assert!(last.message.contains("1000"), "{}", last.message);

    let large = json!({ "x": vec![json!({ "permisions": 1 }); 50_000] });
    let found = findings(Target::ClaudeCode, &large, &json!({}));
    assert_eq!((found.faults.len(), found.warnings.len()), (1, 0));
}

#[test]
fn only_a_version_that_was_asked_can_be_pinned() {
    for target in [Target::ClaudeCode, Target::Codex] {
        let newest = probed::versions(target.as_str())[0];
        assert!(target.must_know(Some(newest)).is_ok());
        assert!(target.must_know(None).is_ok());
        assert!(target.must_know(Some("0.0.1")).is_err());
    }
    assert!(Target::GenericJson.must_know(Some("1")).is_err());
    assert!(Target::GenericJson.must_know(None).is_ok());
}
