//! What each client hears of each decision, and what each is understood to say.

mod measured;

use crate::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn event(client: Client, moment: Moment) -> Value {
    let name = moment.event_name(client);
    let mut event = json!({
        "session_id": "s-1", "transcript_path": "/t", "cwd": "/srv", "hook_event_name": name, "tool_use_id": "c-1",
    });
    match moment {
        Moment::Prompt => event["prompt"] = "hello".into(),
        Moment::PreTool | Moment::PostTool => {
            event["tool_name"] = "Bash".into();
            event["tool_input"] = json!({ "command": "rm -rf /srv" });
        }
    }
    if moment == Moment::PostTool {
        event["tool_response"] =
            json!({ "stdout": "secret", "stderr": "", "interrupted": false, "isImage": false });
    }
    event
}

fn question(client: Client, event: &Value) -> Question {
    match hear(client, event.to_string().as_bytes()).unwrap() {
        Message::Question(question) => *question,
        Message::Remark => panic!("a remark: {event}"),
    }
}

fn decision(action: Action, self_serve: bool) -> Decision {
    Decision {
        action,
        policies: vec!["p".to_owned()],
        messages: vec!["ask Ann".to_owned()],
        unknown: false,
        self_serve,
        requests: Vec::new(),
        basis: Basis::Policies,
        refusals: Vec::new(),
        user_unresolved: false,
    }
}

const MOMENTS: [Moment; 3] = [Moment::Prompt, Moment::PreTool, Moment::PostTool];

/// In one word what the client does with an answer, by the members that it was seen to obey.
fn obeyed(client: Client, moment: Moment, answer: &Answer) -> &'static str {
    if answer.exit == 2 {
        assert!(answer.stdout.is_empty() && !answer.stderr.is_empty());
        return "refused";
    }
    assert_eq!((answer.exit, answer.stderr.as_str()), (0, ""));
    let said: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let own = &said["hookSpecificOutput"];
    assert!(own.is_null() || own["hookEventName"] == moment.event_name(client));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (
        word(&own["permissionDecision"]).as_str(),
        word(&said["decision"]).as_str(),
    ) {
        ("ask", "") => "asked",
        ("deny", "") | ("", "block" | "deny") => "refused",
        ("", "") if !own["updatedToolOutput"].is_null() => "replaced",
        ("", "") if said["continue"] == json!(false) => "stopped",
        ("", "") if said["systemMessage"].is_string() => "told",
        ("", "") if said == json!({}) => "passed",
        _ => panic!("{said}"),
    }
}

/// What a client does, by client, moment and decision.
///
/// Proves HK-3.
#[test]
fn every_decision_is_answered_as_the_table_says() {
    let mut lines = Vec::new();
    for client in Client::ALL {
        for moment in MOMENTS {
            let question = question(client, &event(client, moment));
            let mut words = Vec::new();
            for action in Action::ALL {
                let said = answer(&question, Mode::Enforce, &decision(action, false));
                words.push(obeyed(client, moment, &said));
            }
            let own_yes = answer(&question, Mode::Enforce, &decision(Action::RequireApproval, true));
            words.push(obeyed(client, moment, &own_yes));
            words.push(obeyed(
                client,
                moment,
                &undecided(Some(&question), Mode::Enforce, "no server"),
            ));
            lines.push(format!("{} {moment:?}: {}", client.word(), words.join(" ")));
        }
    }
    // allow, flag, nudge, redact, filter, somebody else's approval, block, one's own approval, nobody decided.
    let expected = [
        "claude-code Prompt: passed passed told refused refused refused refused refused refused",
        "claude-code PreTool: passed passed told refused refused refused refused asked refused",
        "claude-code PostTool: passed passed told replaced replaced replaced replaced replaced replaced",
        "codex Prompt: passed passed told refused refused refused refused refused refused",
        "codex PreTool: passed passed told refused refused refused refused refused refused",
        "codex PostTool: passed passed told refused refused refused refused refused refused",
        "gemini Prompt: passed passed told refused refused refused refused refused refused",
        "gemini PreTool: passed passed told refused refused refused refused refused refused",
        "gemini PostTool: passed passed told refused refused refused refused refused refused",
    ];
    assert_eq!(lines, expected);
}

/// The bytes that were sent to the clients when it was measured what they obey.
#[test]
fn answers_have_the_forms_that_were_measured() {
    let said = |client, moment, action| {
        let question = question(client, &event(client, moment));
        let answer = answer(&question, Mode::Enforce, &decision(action, true));
        String::from_utf8(answer.stdout).unwrap()
    };
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Blocked by the policy p: ask Ann"}}"#;
    assert_eq!(said(Client::ClaudeCode, Moment::PreTool, Action::Block), deny);
    assert_eq!(said(Client::Codex, Moment::PreTool, Action::Block), deny);
    assert_eq!(
        said(Client::Gemini, Moment::PreTool, Action::Block),
        r#"{"decision":"deny","reason":"Blocked by the policy p: ask Ann"}"#
    );
    assert_eq!(
        said(Client::ClaudeCode, Moment::PreTool, Action::RequireApproval),
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"An approval is required by the policy p: ask Ann"}}"#
    );
    assert_eq!(
        said(Client::ClaudeCode, Moment::PostTool, Action::Block),
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"interrupted":false,"isImage":false,"stderr":"","stdout":"Blocked by the policy p: ask Ann"}}}"#
    );
    assert_eq!(
        said(Client::Codex, Moment::PostTool, Action::Block),
        r#"{"decision":"block","reason":"Blocked by the policy p: ask Ann"}"#
    );
    assert_eq!(
        said(Client::Codex, Moment::Prompt, Action::Block),
        r#"{"decision":"block","reason":"Blocked by the policy p: ask Ann"}"#
    );
    assert_eq!(
        said(Client::Gemini, Moment::PreTool, Action::Nudge),
        r#"{"systemMessage":"Note of the policy p: ask Ann"}"#
    );
}

#[test]
fn what_a_client_cannot_express_is_stronger_and_says_so() {
    for (client, action) in [
        (Client::Codex, Action::RequireApproval),
        (Client::Gemini, Action::RequireApproval),
        (Client::ClaudeCode, Action::Redact),
        (Client::ClaudeCode, Action::Filter),
    ] {
        let question = question(client, &event(client, Moment::PreTool));
        let answer = answer(&question, Mode::Enforce, &decision(action, true));
        let said = String::from_utf8(answer.stdout).unwrap();
        assert!(
            said.contains("strengthened: client_cannot") && said.contains("deny"),
            "{said}"
        );
    }
}

#[test]
fn a_result_whose_form_nobody_knows_stops_the_agent() {
    for (tool, response) in [
        ("Read", json!({ "file": "x" })),
        ("Bash", json!("a text")),
        ("mcp__a__b", json!({})),
    ] {
        let mut event = event(Client::ClaudeCode, Moment::PostTool);
        event["tool_name"] = tool.into();
        event["tool_response"] = response;
        let question = question(Client::ClaudeCode, &event);
        let said = answer(&question, Mode::Enforce, &decision(Action::Block, false));
        assert_eq!(
            obeyed(Client::ClaudeCode, Moment::PostTool, &said),
            "stopped",
            "{tool}"
        );
    }
}

#[test]
fn monitor_lets_everything_go_on_and_tells_of_failures() {
    for client in Client::ALL {
        for moment in MOMENTS {
            let question = question(client, &event(client, moment));
            for action in Action::ALL {
                assert_eq!(
                    answer(&question, Mode::Monitor, &decision(action, false)),
                    Answer::pass()
                );
            }
            let said = undecided(Some(&question), Mode::Monitor, "no server");
            assert_eq!(obeyed(client, moment, &said), "told");
        }
    }
    let said = undecided(None, Mode::Monitor, "garbage");
    assert_eq!((said.exit, said.stderr.as_str()), (0, ""));
}

/// Proves HK-2.
#[test]
fn who_enforces_without_a_decision_refuses_with_words() {
    let said = undecided(None, Mode::Enforce, "no\nserver");
    assert_eq!(said.exit, 2);
    assert!(said.stdout.is_empty());
    assert_eq!(said.stderr, "provost: no\\u000aserver\n");
}

proptest! {
    /// Proves HK-1, HK-4.
    #[test]
    fn no_answer_gives_a_permission_and_each_is_one_object_or_nothing(
        client in 0_usize..3, moment in 0_usize..3, action in 0_usize..7, own in any::<bool>(), unknown in any::<bool>(),
        words in "\\PC{0,40}", enforced in any::<bool>(), is_decided in any::<bool>(),
    ) {
        let (client, moment) = (Client::ALL[client], MOMENTS[moment]);
        let question = question(client, &event(client, moment));
        let mode = if enforced { Mode::Enforce } else { Mode::Monitor };
        let decision = Decision {
            messages: vec![words.clone()],
            unknown,
            ..decision(Action::ALL[action], own)
        };
        let said = if is_decided { answer(&question, mode, &decision) } else { undecided(Some(&question), mode, &words) };
        if said.stdout.is_empty() {
            prop_assert!(said.exit == 2 && said.stderr.len() > "provost: ".len());
        } else {
            let object: Map<String, Value> = serde_json::from_slice(&said.stdout).unwrap();
            prop_assert_eq!(said.exit, 0);
            let own = object.get("hookSpecificOutput").cloned().unwrap_or_default();
            prop_assert!(own["permissionDecision"] != "allow" && own["updatedInput"].is_null());
            let word = object.get("decision").and_then(Value::as_str).unwrap_or("deny");
            prop_assert!(word != "allow" && word != "approve");
        }
    }

    /// Whatever the bytes are, there is a question, a remark or a refusal.
    #[test]
    fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for client in Client::ALL {
            let _ = hear(client, &bytes);
        }
    }
}

/// Proves HK-5.
#[test]
fn a_tool_call_is_its_content_and_the_use_of_the_product() {
    let question = question(Client::ClaudeCode, &event(Client::ClaudeCode, Moment::PreTool));
    let asked = question.request(Some("ada@acme.test"), Some("laptop"), Mode::Enforce);
    assert_eq!(question.count(), 2);
    assert_eq!(
        asked,
        json!({ "mode": "enforce", "events": [
            { "occasion": "pre_tool", "session": "s-1", "callId": "c-1", "folder": "/srv", "host": "laptop",
              "attributes": { "identity.user_id": "ada@acme.test", "tool.id": "Bash", "tool.input": "{\"command\":\"rm -rf /srv\"}" },
              "missing": ["llm.model", "llm.provider"] },
            { "occasion": "inline_hook", "session": "s-1", "callId": "c-1", "folder": "/srv", "host": "laptop",
              "attributes": { "identity.user_id": "ada@acme.test", "product.id": "anthropic/claude-code",
                              "device.platform": std::env::consts::OS },
              "missing": ["account.access_state", "account.posture", "account.profile_id", "device.id", "process.entrypoint_id",
                          "process.id", "process.name", "process.path", "provider.id"] },
        ] })
    );
    let asked = question.request(None, None, Mode::Monitor);
    for event in asked["events"].as_array().unwrap() {
        assert!(
            event["missing"]
                .as_array()
                .unwrap()
                .contains(&json!("identity.user_id")),
            "{event}"
        );
    }
}

#[test]
fn the_server_of_a_tool_is_named_or_missing() {
    let attributes = |client, more: &[(&str, Value)]| {
        let mut event = event(client, Moment::PreTool);
        for (name, value) in more {
            event[*name] = value.clone();
        }
        question(client, &event).request(None, None, Mode::Enforce)["events"][0].clone()
    };
    let named = attributes(Client::Codex, &[("tool_name", json!("mcp__docs__search_all"))]);
    assert_eq!(named["attributes"]["mcp.server_id"], "docs");
    assert_eq!(named["attributes"]["mcp.tool_id"], "search_all");
    assert!(
        named["missing"]
            .as_array()
            .unwrap()
            .contains(&json!("mcp.package_id"))
    );
    let told = attributes(
        Client::ClaudeCode,
        &[
            ("tool_name", json!("mcp__my_docs__search")),
            ("mcp_server", json!({ "name": "my docs", "source": "user" })),
        ],
    );
    assert_eq!(told["attributes"]["mcp.server_id"], "my docs");
    let gemini = attributes(
        Client::Gemini,
        &[
            ("tool_name", json!("search")),
            (
                "mcp_context",
                json!({ "server_name": "docs", "tool_name": "search" }),
            ),
        ],
    );
    assert_eq!(gemini["attributes"]["mcp.server_id"], "docs");
    let odd = attributes(Client::Codex, &[("tool_name", json!("mcp__odd"))]);
    assert!(
        odd["missing"]
            .as_array()
            .unwrap()
            .contains(&json!("mcp.server_id")),
        "{odd}"
    );
    let own = attributes(Client::Codex, &[]);
    assert!(!own.to_string().contains("mcp."), "{own}");
}

#[test]
fn content_that_is_not_said_null_unreadable_or_too_long_is_missing() {
    let long = "x".repeat(1 << 20);
    for (written, what) in [
        (String::new(), "not said"),
        (r#","tool_input":null"#.to_owned(), "null"),
        (r#","tool_input":"\ud800""#.to_owned(), "half a surrogate"),
        (format!(r#","tool_input":{{"command":"{long}"}}"#), "long"),
    ] {
        let text = format!(r#"{{"hook_event_name":"PreToolUse","tool_name":"Bash"{written}}}"#);
        let Message::Question(question) = hear(Client::ClaudeCode, text.as_bytes()).unwrap() else {
            panic!("a remark");
        };
        let event = question.request(None, None, Mode::Enforce)["events"][0].clone();
        assert!(event["attributes"].get("tool.input").is_none(), "{what}");
        assert!(
            event["missing"]
                .as_array()
                .unwrap()
                .contains(&json!("tool.input")),
            "{what}"
        );
    }
}

#[test]
fn an_input_reaches_the_server_as_it_was_written() {
    // The server judges what it says: numbers without a nearest one, members that are there twice.
    let input = r#"{"command":"ls","command":"rm","n":1e999}"#;
    let text = format!(r#"{{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{input}}}"#);
    let Message::Question(question) = hear(Client::Codex, text.as_bytes()).unwrap() else {
        panic!("a remark");
    };
    let event = question.request(None, None, Mode::Enforce)["events"][0].clone();
    assert_eq!(event["attributes"]["tool.input"], input);
}

#[test]
fn what_is_no_event_is_not_understood() {
    let good = event(Client::ClaudeCode, Moment::PreTool).to_string();
    for (bytes, what) in [
        (String::new(), "empty"),
        ("garbage".to_owned(), "no JSON"),
        (format!("[{good}]"), "a list"),
        (format!("{good} x"), "something behind"),
        (format!("\u{feff}{good}"), "a byte order mark"),
        (good.replace("\"Bash\"", "7"), "a tool without a name"),
        (good.replace("\"tool_name\"", "\"toolName\""), "no tool"),
        (good.replace("PreToolUse", "BeforeEverything"), "an unknown event"),
        (
            good.replace("{\"cwd\"", "{\"hook_event_name\":\"Stop\",\"cwd\""),
            "a name twice",
        ),
        (
            event(Client::Gemini, Moment::PreTool).to_string(),
            "another client's",
        ),
    ] {
        let heard = hear(Client::ClaudeCode, bytes.as_bytes());
        assert!(heard.is_err(), "{what}: {heard:?}");
        assert!(!format!("{heard:?}").contains("rm -rf"), "{what}");
    }
    assert!(matches!(
        hear(Client::ClaudeCode, br#"{"hook_event_name":"SessionStart"}"#),
        Ok(Message::Remark)
    ));
}

#[test]
fn the_strongest_of_all_events_is_the_decision() {
    let one = |action: &str, policy: &str, message: &str| {
        json!({ "eventId": "hev_1", "action": action, "basis": "policies", "unknown": false, "unreadable": [], "unresolved": [],
                "policyIds": [policy], "reasons": [], "obligations": [], "messages": [message] })
    };
    let read = |decisions: Value, count| {
        Decision::read(json!({ "decisions": decisions }).to_string().as_bytes(), count)
    };
    let both = read(json!([one("nudge", "a", "x"), one("block", "b", "y")]), 2).unwrap();
    assert_eq!(
        (both.action, both.policies, both.messages),
        (Action::Block, vec!["b".to_owned()], vec!["y".to_owned()])
    );
    // A word that is not known is the strongest.
    assert_eq!(
        read(json!([one("vaporize", "a", "x")]), 1).unwrap().action,
        Action::Block
    );
    for (decisions, count) in [
        (json!([]), 1),
        (json!([one("allow", "a", "x")]), 2),
        (json!([{ "action": "allow" }]), 1),
    ] {
        assert!(read(decisions, count).is_err());
    }
    assert!(Decision::read(b"<html>", 1).is_err());
    assert!(Decision::read(br#"{"decisions":[]}"#, 0).is_err());
    for (approval, own) in [
        (json!({ "policyId": "p", "selfServe": true }), true),
        (json!({ "policyId": "p", "selfServe": false }), false),
        // Nothing else of the answer says it: not even what the policy was written with.
        (json!({ "policyId": "p", "mode": "self_serve" }), false),
        (
            json!({ "policyId": "p", "mode": "admin_approval", "selfServe": false }),
            false,
        ),
        (json!({ "policyId": "p", "autoApproveOnRequest": true }), false),
        (json!({ "policyId": "p" }), false),
        (Value::Null, false),
        // What waits for somebody, or was refused to, is not asked of the person.
        (
            json!({ "policyId": "p", "selfServe": true, "requestId": "apr_1" }),
            false,
        ),
        (
            json!({ "policyId": "p", "selfServe": true, "refused": "too_many_open" }),
            false,
        ),
    ] {
        let mut asks = one("require_approval", "p", "x");
        if !approval.is_null() {
            asks["approval"] = approval.clone();
        }
        assert_eq!(
            read(json!([asks, one("allow", "q", "z")]), 2).unwrap().self_serve,
            own,
            "{approval}"
        );
    }
}

#[test]
fn a_call_that_waits_for_somebody_names_the_request() {
    let mut asks = json!({ "action": "require_approval", "unknown": false, "policyIds": ["p"], "messages": ["ask Ann"] });
    asks["approval"] = json!({ "policyId": "p", "mode": "admin_approval", "selfServe": false, "requestId": "apr_1", "state": "pending" });
    let told = json!({ "decisions": [asks] }).to_string();
    let decision = Decision::read(told.as_bytes(), 1).unwrap();
    assert_eq!(decision.requests, ["apr_1"]);
    for client in [Client::ClaudeCode, Client::Codex] {
        let question = question(client, &event(client, Moment::PreTool));
        let said = answer(&question, Mode::Enforce, &decision);
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.contains(r#""permissionDecision":"deny""#), "{said}");
        assert!(
            said.contains("apr_1") && said.contains("provost approvals"),
            "{said}"
        );
        assert!(said.contains("Your approvers see this call"), "{said}");
        // Where there is no request, the cause is said.
        let refused = Decision {
            requests: Vec::new(),
            refusals: vec!["call_not_certain".to_owned()],
            ..decision.clone()
        };
        let told = String::from_utf8(answer(&question, Mode::Enforce, &refused).stdout).unwrap();
        assert!(
            told.contains(r#""permissionDecision":"deny""#) && told.contains("call_not_certain"),
            "{told}"
        );
        // Each cause has its next step, and so has one that nobody says or that is not known here.
        let mut said = std::collections::BTreeSet::new();
        for (word, step) in [
            ("not_a_tool_call", "before they run"),
            ("subject_unknown", "hook.toml"),
            ("call_not_certain", "each argument once"),
            ("call_holds_credential", "by a variable or a file"),
            ("call_too_large", "smaller"),
            ("call_is_blocked", "another policy blocks"),
            ("too_many_open", "provost approvals cancel"),
            ("clock_set_back", "clock of the server"),
            ("of_a_later_version", "who writes the policy"),
            ("", "when the server answers"),
        ] {
            let refused = Decision {
                requests: Vec::new(),
                refusals: Some(word.to_owned())
                    .filter(|word| !word.is_empty())
                    .into_iter()
                    .collect(),
                ..decision.clone()
            };
            let told = String::from_utf8(answer(&question, Mode::Enforce, &refused).stdout).unwrap();
            assert!(told.contains(step) && told.contains(word), "{word}: {told}");
            assert!(said.insert(told));
        }
        // The person's own yes, where it is enough, is asked for as before.
        let own = Decision {
            self_serve: true,
            requests: Vec::new(),
            ..decision.clone()
        };
        let said = String::from_utf8(answer(&question, Mode::Enforce, &own).stdout).unwrap();
        assert_eq!(
            said.contains(r#""permissionDecision":"ask""#),
            client == Client::ClaudeCode,
            "{said}"
        );
    }
}

#[test]
fn a_registration_keeps_what_is_there_and_is_written_once() {
    for client in Client::ALL {
        let before = json!({
            "model": "m", "permissions": { "deny": ["Read(./.env)"] },
            "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "notify" }] }],
                       "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "/opt/other hook run" }] }] },
        });
        let before = before.as_object().unwrap().clone();
        let line = command_line("/usr/bin/provost", client, Mode::Enforce, &[]);
        let ours = hooks(client, Mode::Enforce, &line);
        let once = merged(client, before.clone(), &ours).unwrap();
        let twice = merged(client, once.clone(), &ours).unwrap();
        assert_eq!(once, twice);
        let registered = found(client, &Value::Object(once.clone())).unwrap();
        assert_eq!(
            (registered.command.as_str(), registered.events.len()),
            (line.as_str(), 3)
        );
        assert_eq!(registered.on_failure, client == Client::ClaudeCode);
        assert_eq!(removed(client, once).unwrap(), before);
        // Another mode takes its place.
        let watched = command_line("/usr/bin/provost", client, Mode::Monitor, &[]);
        let changed = merged(client, twice, &hooks(client, Mode::Monitor, &watched)).unwrap();
        assert_eq!(found(client, &Value::Object(changed)).unwrap().command, watched);
    }
    let alone = merged(
        Client::ClaudeCode,
        Map::new(),
        &hooks(Client::ClaudeCode, Mode::Enforce, "p hook run claude-code"),
    )
    .unwrap();
    assert_eq!(removed(Client::ClaudeCode, alone).unwrap(), Map::new());
    let odd = json!({ "hooks": [] }).as_object().unwrap().clone();
    assert!(merged(Client::ClaudeCode, odd, &json!({})).is_err());
}

#[test]
fn the_forms_are_those_that_clients_were_seen_to_obey() {
    let line = command_line("/opt/my tools/provost", Client::ClaudeCode, Mode::Enforce, &[]);
    assert_eq!(
        line,
        "'/opt/my tools/provost' hook run claude-code --mode enforce || { echo 'provost: no decision; run: provost hook doctor' >&2; exit 2; }"
    );
    assert_eq!(
        hooks(Client::ClaudeCode, Mode::Enforce, "x")["PreToolUse"],
        json!([{ "hooks": [{ "type": "command", "command": "x", "timeout": 5, "onFailure": "block" }] }])
    );
    assert_eq!(
        hooks(Client::Gemini, Mode::Enforce, "x")["BeforeTool"],
        json!([{ "hooks": [{ "name": "provost", "type": "command", "command": "x", "timeout": 5000 }] }])
    );
    assert_eq!(
        command_line("/p", Client::Codex, Mode::Monitor, &["--config", "/etc/x y"]),
        "/p hook run codex --mode monitor --config '/etc/x y'"
    );
}

#[test]
fn requirements_keep_their_text_around_the_block() {
    let line = "p hook run codex || { echo 'x' >&2; exit 2; }";
    let nothing = json!({});
    let pinned = json!({ "a": 1, "features": { "hooks": true } });
    for (before, around, pins) in [
        ("", &nothing, true),
        (
            "# mine\nallowed_sandbox_modes = [\"read-only\"]\n",
            &nothing,
            true,
        ),
        ("a = 1\n\n[features]\nhooks = true\n", &pinned, false),
    ] {
        let around = around.as_object().unwrap();
        let once = merged_text(before, around, line, "/usr/bin").unwrap();
        assert!(
            once.starts_with(before) && once.contains("[[hooks.PreToolUse.hooks]]"),
            "{once}"
        );
        // Measured: without it a person switches the machine's hooks off.
        assert_eq!(once.matches("[features]\nhooks = true\n").count(), 1, "{once}");
        assert_eq!(once[before.len()..].contains("[features]"), pins, "{once}");
        assert_eq!(merged_text(&once, around, line, "/usr/bin").unwrap(), once);
        assert_eq!(removed_text(&once), before);
    }
    for (text, around, why) in [
        ("[hooks]\n", json!({ "hooks": {} }), "hooks of its own"),
        (
            "[features]\ngoals = true\n",
            json!({ "features": { "goals": true } }),
            "hooks = true",
        ),
        (
            "[features]\nhooks = false\n",
            json!({ "features": { "hooks": false } }),
            "hooks = true",
        ),
        ("features = 1\n", json!({ "features": 1 }), "hooks = true"),
    ] {
        let refused = merged_text(text, around.as_object().unwrap(), "p", "/").unwrap_err();
        assert!(refused.0.contains(why), "{text}: {}", refused.0);
    }
    let cut = "a = 1\n# provost hook: begin (written by `provost hook install`; do not edit)\nb = 2\n";
    assert_eq!(removed_text(cut), cut);
}

#[test]
fn the_conversation_of_an_event_is_known_whatever_event_it_is() {
    for (event, session) in [
        (r#"{"session_id":"a","hook_event_name":"PreToolUse"}"#, Some("a")),
        (
            r#"{"hook_event_name":"Other","x":[1,{"session_id":"b"}],"session_id":"a"}"#,
            Some("a"),
        ),
        (r#"{"session_id":"a","session_id":"b"}"#, None),
        (r#"{"session_id":7}"#, None),
        (r#"{"session_id":""}"#, None),
        ("{}", None),
        ("[]", None),
        ("", None),
    ] {
        let named = crate::session_of(event.as_bytes()).map(|of| of.session);
        assert_eq!(named.as_deref(), session, "{event}");
    }
    for (path, kept) in [
        (r#""/a/b.jsonl""#, Some("/a/b.jsonl")),
        ("null", None),
        (r#""""#, None),
        ("7", None),
    ] {
        let event = format!(r#"{{"session_id":"a","transcript_path":{path}}}"#);
        let named = crate::session_of(event.as_bytes()).unwrap();
        assert_eq!(named.path.as_deref(), kept, "{event}");
    }
    let long = format!(r#"{{"session_id":"{}"}}"#, "a".repeat(257));
    assert_eq!(crate::session_of(long.as_bytes()), None);
}

/// Proves HK-8.
#[test]
fn what_is_known_of_a_server_fills_what_is_missing_and_replaces_nothing() {
    let call = |more: &Value| {
        let mut call = json!({ "hook_event_name": "PreToolUse", "tool_name": "mcp__docs__find", "cwd": "/srv", "tool_input": {} });
        for (name, value) in more.as_object().unwrap() {
            call[name] = value.clone();
        }
        question(Client::ClaudeCode, &call)
    };
    let known = KnownServer {
        package_id: "npm:docs".into(),
        package_version: Some("1.0.0".into()),
        remote_url: None,
    };
    let event = |question: &Question| question.request(None, None, Mode::Enforce)["events"][0].clone();
    let mut asked = call(&json!({}));
    let before = event(&asked);
    for name in ["mcp.package_id", "mcp.package_version", "mcp.remote_url"] {
        assert!(before["missing"].as_array().unwrap().contains(&json!(name)));
    }
    asked.know(&known);
    let told = event(&asked);
    assert_eq!(told["attributes"]["mcp.package_id"], "npm:docs");
    assert_eq!(told["attributes"]["mcp.package_version"], "1.0.0");
    // A program has no address.
    assert!(told["attributes"].get("mcp.remote_url").is_none());
    assert!(!told["missing"].to_string().contains("mcp.p") && !told["missing"].to_string().contains("mcp.r"));
    assert_eq!(
        told["attributes"]["mcp.server_id"],
        before["attributes"]["mcp.server_id"]
    );
    // What is there stays, and a version that nobody says is still missing.
    let other = KnownServer {
        package_id: "npm:evil".into(),
        package_version: None,
        remote_url: Some("https://evil.example".into()),
    };
    asked.know(&other);
    assert_eq!(event(&asked)["attributes"], told["attributes"]);
    let mut asked = call(&json!({}));
    asked.know(&other);
    let remote = event(&asked);
    assert_eq!(remote["attributes"]["mcp.remote_url"], "https://evil.example");
    assert!(remote["missing"].to_string().contains("mcp.package_version"));
    // What is too long is missing.
    let mut asked = call(&json!({}));
    asked.know(&KnownServer {
        package_id: "n".repeat(600),
        ..known.clone()
    });
    assert!(event(&asked)["missing"].to_string().contains("mcp.package_id"));
    // A tool of no server has none.
    let mut asked = call(&json!({ "tool_name": "Bash" }));
    let before = event(&asked);
    asked.know(&known);
    assert_eq!((event(&asked), asked.server), (before, None));
    // How the server is called is what the client says, also where that is no word.
    let called = |more: &Value| call(more).server.unwrap();
    assert_eq!(called(&json!({})).tool, "mcp__docs__find");
    assert_eq!((called(&json!({})).name, called(&json!({})).source), (None, None));
    let said = called(&json!({ "mcp_server": { "name": "docs", "source": "user" } }));
    assert_eq!(
        (said.name.as_deref(), said.source.as_deref()),
        (Some("docs"), Some("user"))
    );
    assert_eq!(
        called(&json!({ "mcp_server": { "name": "docs", "source": 7 } }))
            .source
            .as_deref(),
        Some("")
    );
}

/// Proves HK-8.
#[test]
fn a_tool_of_gemini_that_may_be_of_a_server_is_of_the_told_one_or_of_any() {
    let of = |tool: &str, context: Value| {
        let mut event = event(Client::Gemini, Moment::PreTool);
        (event["tool_name"], event["mcp_context"]) = (tool.into(), context);
        let asked = question(Client::Gemini, &event);
        let event = asked.request(None, None, Mode::Enforce)["events"][0].clone();
        (asked.server.clone(), event)
    };
    let told = json!({ "server_name": "my_files", "tool_name": "remove", "command": "npx" });
    for tool in ["mcp_my_files_remove", "remove", "mcp__files__remove"] {
        let (server, event) = of(tool, told.clone());
        let server = server.unwrap();
        assert_eq!(
            (server.name.as_deref(), server.tool.as_str()),
            (Some("my_files"), "")
        );
        assert_eq!(event["attributes"]["mcp.server_id"], "my_files", "{event}");
        assert_eq!(event["attributes"]["mcp.tool_id"], "remove", "{event}");
    }
    // It says none, or none that can be read: where in the name of the tool that of the server ends nobody knows.
    for (tool, context) in [
        ("mcp_my_files_remove", Value::Null),
        ("mcp__x_remove", Value::Null),
        ("mcp__files__remove", Value::Null),
        ("mcp_my_files_remove", json!({ "server_name": 7 })),
        ("mcp_my_files_remove", json!("my_files")),
        ("remove", json!({ "tool_name": "remove" })),
    ] {
        let (server, event) = of(tool, context.clone());
        let server = server.unwrap();
        assert_eq!(
            (server.name.as_deref(), server.tool.as_str()),
            (None, ""),
            "{tool} {context}"
        );
        let missing = event["missing"].as_array().unwrap();
        assert!(
            missing.contains(&json!("mcp.server_id")) && missing.contains(&json!("mcp.package_id")),
            "{event}"
        );
    }
    let (server, event) = of("run_shell_command", Value::Null);
    assert!(server.is_none() && !event.to_string().contains("mcp."), "{event}");
}

/// Proves HK-5.
#[test]
fn what_gemini_says_that_it_starts_is_an_entry_or_cannot_be_read() {
    let of = |client, context: Value| {
        let mut event = event(client, Moment::PreTool);
        (event["tool_name"], event["mcp_context"]) = ("mcp_docs_find".into(), context);
        let server = question(client, &event).server.clone();
        server.and_then(|server| server.said)
    };
    let names = json!({ "server_name": "docs", "tool_name": "find" });
    let with = |members: Value| {
        let mut context = names.clone();
        let members = members.as_object().unwrap().clone();
        context.as_object_mut().unwrap().extend(members);
        context
    };
    let entry = json!({ "command": "npx", "args": ["-y", "docs"], "cwd": "/srv" });
    for started in [
        entry.clone(),
        json!({ "url": "https://mcp.acme.example/docs" }),
        json!({ "tcp": "docs:4000" }),
        // Who reads an entry says whether its types are those of one.
        json!({ "command": "npx", "args": "x" }),
    ] {
        let said = of(Client::Gemini, with(started.clone()));
        assert_eq!(said, Some(SaidServer::Entry(started)));
    }
    let mut nulls = with(entry.clone());
    nulls["url"] = Value::Null;
    assert_eq!(of(Client::Gemini, nulls), Some(SaidServer::Entry(entry.clone())));
    let most = "x".repeat(64 * 1024 - r#"{"command":""}"#.len());
    let said = of(Client::Gemini, with(json!({ "command": most })));
    assert!(matches!(said, Some(SaidServer::Entry(_))));
    // What variables hold is in it, and in no debug print.
    let shown = format!(
        "{said:?} {:?}",
        SaidServer::Entry(json!({ "args": ["--token=s3cret"] }))
    );
    assert_eq!(shown, "Some(Entry(…)) Entry(…)");
    for context in [
        names.clone(),
        with(json!({ "command": "", "url": "" })),
        with(json!({ "command": 7 })),
        with(json!({ "args": ["docs"] })),
        with(json!({ "command": format!("{most}x") })),
        json!("docs"),
        json!([]),
        json!({}),
    ] {
        let said = of(Client::Gemini, context);
        assert_eq!(said, Some(SaidServer::Unreadable));
    }
    assert_eq!(of(Client::Gemini, Value::Null), None);
    // The others say nothing so.
    for client in [Client::ClaudeCode, Client::Codex] {
        assert_eq!(of(client, with(entry.clone())), None);
    }
}

/// Proves HK-8.
#[test]
fn a_clients_own_tool_that_reads_from_a_server_asks_that_server() {
    let of = |client, tool: &str, input: Value| {
        let mut event = event(client, Moment::PreTool);
        (event["tool_name"], event["tool_input"]) = (tool.into(), input);
        let asked = question(client, &event);
        let server = asked.server.clone().map(|server| (server.tool, server.name));
        (
            server,
            asked.request(None, None, Mode::Enforce)["events"][0].clone(),
        )
    };
    let input = json!({ "server": "files", "uri": "file:///etc/hosts" });
    for (client, tool, input) in [
        (Client::ClaudeCode, "ReadMcpResourceTool", input.clone()),
        (
            Client::ClaudeCode,
            "ListMcpResourcesTool",
            json!({ "server": "files" }),
        ),
        (Client::Codex, "read_mcp_resource", input.clone()),
        (
            Client::Codex,
            "list_mcp_resource_templates",
            json!({ "server": "files" }),
        ),
        (
            Client::Gemini,
            "list_mcp_resources",
            json!({ "serverName": "files" }),
        ),
    ] {
        let (server, event) = of(client, tool, input);
        assert_eq!(
            server,
            Some((tool.to_owned(), Some("files".to_owned()))),
            "{tool}"
        );
        assert_eq!(event["attributes"]["mcp.server_id"], "files", "{tool}");
        let missing = event["missing"].as_array().unwrap();
        assert!(missing.contains(&json!("mcp.package_id")), "{event}");
        // No tool of the server runs: a policy about one does not count as matched.
        assert!(!missing.contains(&json!("mcp.tool_id")) && event["attributes"].get("mcp.tool_id").is_none());
    }
    // Of none, of several, and by a member that another client reads, nobody says which one it is: any of them may be asked.
    for (client, tool, input) in [
        (Client::ClaudeCode, "ListMcpResourcesTool", json!({})),
        (Client::ClaudeCode, "ListMcpResourcesTool", json!([])),
        (Client::ClaudeCode, "ListMcpResourcesTool", json!({ "server": 7 })),
        (
            Client::ClaudeCode,
            "ListMcpResourcesTool",
            json!({ "server": "a", "serverName": "b" }),
        ),
        (
            Client::ClaudeCode,
            "ListMcpResourcesTool",
            json!({ "serverName": "fine" }),
        ),
        (Client::Codex, "list_mcp_resources", json!({ "server": " " })),
        (
            Client::Codex,
            "list_mcp_resources",
            json!({ "server_name": "fine" }),
        ),
        (Client::Gemini, "list_mcp_resources", json!({ "server": "fine" })),
        (
            Client::Gemini,
            "read_mcp_resource",
            json!({ "uri": "evil:file:///x", "server": "fine" }),
        ),
        (
            Client::Gemini,
            "read_mcp_resource",
            json!({ "uri": "evil:file:///x" }),
        ),
    ] {
        let (server, event) = of(client, tool, input);
        assert_eq!(server, Some((tool.to_owned(), None)), "{event}");
        assert!(
            event["missing"]
                .as_array()
                .unwrap()
                .contains(&json!("mcp.server_id")),
            "{event}"
        );
    }
    // What a tool of another name has in its input is no server.
    let (server, event) = of(
        Client::ClaudeCode,
        "Bash",
        json!({ "server": "files", "command": "ls" }),
    );
    assert!(server.is_none() && !event.to_string().contains("mcp."), "{event}");
}

/// Proves HK-3.
#[test]
fn a_refusal_by_a_standing_says_so() {
    let one = json!({ "action": "block", "basis": "standing", "unknown": false, "policyIds": [],
        "messages": ["the MCP server npm:evil is denied in the inventory of this organization"] });
    let other = json!({ "action": "allow", "basis": "no_policy_matched", "unknown": false, "policyIds": [], "messages": [] });
    let decision = Decision::read(json!({ "decisions": [one, other] }).to_string().as_bytes(), 2).unwrap();
    assert_eq!(
        (decision.action, decision.basis),
        (Action::Block, Basis::Standing)
    );
    let call = question(Client::ClaudeCode, &event(Client::ClaudeCode, Moment::PreTool));
    let refused = answer(&call, Mode::Enforce, &decision);
    let said = String::from_utf8(refused.stdout).unwrap();
    assert!(
        said.contains("the standing of an MCP server: the MCP server npm:evil is denied"),
        "{said}"
    );
    // Who only looks on is told, and nothing is refused.
    let told = String::from_utf8(answer(&call, Mode::Monitor, &decision).stdout).unwrap();
    assert!(!told.contains("deny"), "{told}");
}
