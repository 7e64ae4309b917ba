//! What Gemini CLI says beside a call of what it starts for it, at the desk.

use super::{Open, action, bench, open, registered};
use crate::desk::bench::Word;
use crate::desk::frame::{Asked, Intent};
use crate::desk::servers::{ServerOfCall, Servers, Unread};
use provost_bundle::{BundleServer, ServerStanding};
use provost_hooks::{Client, Message, Mode, hear, session_of};
use provost_inventory::Fault;
use provost_words::time::SystemClock;
use serde_json::{Value, json};

/// Two servers of the person's settings.
fn both() -> Value {
    json!({ "mcpServers": {
        "my_files": { "command": "npx", "args": ["-y", "evil@1.0.0"] },
        "fine": { "command": "npx", "args": ["-y", "fine@1.0.0"] },
    } })
}

/// What is said beside a call of a server that is started by this.
fn beside(server: &str, started: &Value) -> Value {
    let mut context = started.clone();
    context["server_name"] = server.into();
    context["tool_name"] = "remove".into();
    context
}

fn npx(package: &str) -> Value {
    json!({ "command": "npx", "args": ["-y", package] })
}

impl Open {
    fn event_of(&self, tool: &str, context: &Value) -> Value {
        let path = self.home().join(".gemini/tmp/shop/chats/session-1.jsonl");
        json!({
            "hook_event_name": "BeforeTool", "session_id": "s1", "transcript_path": path, "cwd": "/", "tool_name": tool, "tool_input": {},
            "mcp_context": context,
        })
    }

    fn found(&self, servers: &Servers, event: &Value) -> ServerOfCall {
        let bytes = event.to_string();
        let Ok(Message::Question(question)) = hear(Client::Gemini, bytes.as_bytes()) else {
            panic!("it is a question");
        };
        let conversation = session_of(bytes.as_bytes());
        servers.of(
            (0, Some(&self.home())),
            &question,
            conversation.as_ref(),
            &SystemClock::new(),
        )
    }
}

/// Returns the package that is said, and those that may be meant: beside each stand other spellings of it.
fn packages(found: ServerOfCall) -> (Option<String>, Vec<String>) {
    let of_npm = found.may_be.into_iter().filter(|key| key.starts_with("npm:"));
    (found.known.map(|known| known.package_id), of_npm.collect())
}

/// Proves LJ-11, LJ-12.
///
/// Gemini CLI says the server beside the tool. Where it does not, nobody can say where in the tool's name that of the server ends.
#[test]
fn a_tool_of_gemini_whose_server_is_not_told_may_be_of_every_server() {
    let open = open(None, registered(Word::OfAccount));
    let servers = super::looked_up();
    open.configure(".gemini/settings.json", &both().to_string());
    let of = |tool: &str, context: &Value| packages(open.found(&servers, &open.event_of(tool, context)));
    let (evil, fine) = ("npm:evil".to_owned(), "npm:fine".to_owned());
    let told_evil = beside("my_files", &npx("evil@1.0.0"));
    assert_eq!(
        of("mcp_my_files_remove", &told_evil),
        (Some(evil.clone()), vec![evil.clone()])
    );
    // The name of the tool says nothing against what is told.
    let told_fine = beside("fine", &npx("fine@1.0.0"));
    assert_eq!(
        of("mcp_my_files_remove", &told_fine),
        (Some(fine.clone()), vec![fine.clone()])
    );
    for tool in ["mcp_my_files_remove", "mcp__my_files__remove", "mcp__x_remove"] {
        let any = of(tool, &Value::Null);
        assert_eq!(any, (None, vec![evil.clone(), fine.clone()]), "{tool}");
    }
    assert_eq!(of("run_shell_command", &Value::Null), (None, Vec::new()));
}

/// Proves LJ-11, LJ-12.
#[test]
fn what_is_said_beside_a_call_may_be_meant_and_takes_away_what_it_does_not_say_alike() {
    let open = open(None, registered(Word::OfAccount));
    let servers = super::looked_up();
    let mut files = both();
    files["mcpServers"]["docs"] = json!({ "httpUrl": "https://mcp.acme.example/docs" });
    open.configure(".gemini/settings.json", &files.to_string());
    let of = |server: &str, started: &Value| {
        open.found(&servers, &open.event_of("mcp_x_remove", &beside(server, started)))
    };
    let with = |mut started: Value, name: &str, value: Value| {
        started[name] = value;
        started
    };
    let fine = npx("fine@1.0.0");
    for (started, known, also) in [
        (fine.clone(), Some(("npm:fine", Some("1.0.0"))), None),
        // A version that not both of them say is nobody's.
        (npx("fine@2.0.0"), Some(("npm:fine", None)), None),
        (npx("evil@1.0.0"), None, Some("npm:evil")),
        (json!({ "command": "npx -y evil@1.0.0" }), None, Some("npm:evil")),
        (
            json!({ "url": "https://evil.example/mcp" }),
            None,
            Some("url:https://evil.example/mcp"),
        ),
        (
            with(fine.clone(), "url", json!("https://evil.example/mcp")),
            None,
            Some("url:https://evil.example/mcp"),
        ),
        // Another folder may bring its own package of the name.
        (with(fine.clone(), "cwd", json!("/srv/other")), None, None),
        (json!({ "tcp": "localhost:4000" }), None, None),
        // What a later version says besides may be what runs.
        (
            with(fine.clone(), "wrapper", json!("evil")),
            None,
            Some("npm:evil"),
        ),
    ] {
        for _ in 0..2 {
            let found = of("fine", &started);
            let said = found.known.as_ref();
            let said = said.map(|known| (known.package_id.as_str(), known.package_version.as_deref()));
            assert_eq!(said, known, "{started}");
            let may_be = |key: &str| found.may_be.iter().any(|one| one == key);
            assert!(may_be("npm:fine"), "{started} {found:?}");
            assert!(also.is_none_or(may_be), "{started} {found:?}");
            assert_eq!(found.unread, None, "{started}");
        }
    }
    let docs = of("docs", &json!({ "url": "https://MCP.acme.example/docs/" }))
        .known
        .unwrap();
    assert_eq!(docs.remote_url.as_deref(), Some("https://mcp.acme.example/docs"));
    // Of a name that stands in no file nobody is said: its variables and headers are not told, and they may bring another package.
    let linked = of("linked", &npx("evil@1.0.0"));
    assert_eq!(packages(linked), (None, vec!["npm:evil".to_owned()]));
    // Nobody knows what is started: any server may be.
    let long = "x".repeat(70_000);
    for context in [
        beside("fine", &json!({})),
        beside("fine", &json!({ "command": "", "args": ["fine@1.0.0"] })),
        beside("fine", &json!({ "command": ["npx", { "fine": 1 }], "url": null })),
        beside(
            "fine",
            &json!({ "command": 7, "url": "https://mcp.acme.example/fine" }),
        ),
        beside("fine", &json!({ "command": "npx", "args": "-y fine@1.0.0" })),
        beside("fine", &json!({ "command": "npx", "url": { "fine": 1 } })),
        beside("fine", &npx(&long)),
        json!("fine"),
        json!(["fine"]),
        json!(7),
    ] {
        let found = open.found(&servers, &open.event_of("mcp_fine_remove", &context));
        let shown = context.to_string().chars().take(200).collect::<String>();
        assert_eq!(
            (&found.known, found.unread),
            (&None, Some(Unread::Said)),
            "{shown}"
        );
        let may_be = found.may_be.iter().any(|key| key == "npm:fine");
        assert!(may_be, "{shown}: what the files say stays");
    }
    // An agent that sees no home has the client's word alone.
    let away = open.scratch.0.join("away");
    std::fs::rename(open.home(), away).unwrap();
    let found = of("fine", &npx("evil@1.0.0"));
    assert_eq!(
        (found.unread, packages(found)),
        (None, (None, vec!["npm:evil".to_owned()]))
    );
    assert_eq!(of("fine", &json!({})).unread, Some(Unread::Said));
}

/// Proves LJ-12.
#[test]
fn a_denied_server_that_is_said_beside_a_call_is_refused_under_the_name_of_a_good_one() {
    let denies = bench(&[], |bundle| {
        bundle.servers = vec![BundleServer {
            key: "npm:evil".into(),
            standing: ServerStanding::Denied,
        }];
    });
    let open = open(Some(denies), registered(Word::OfAccount));
    let good = json!({ "mcpServers": { "fine": npx("fine@1.0.0") } });
    open.configure(".gemini/settings.json", &good.to_string());
    let told = |context: &Value| {
        let payload = open.event_of("mcp_fine_remove", context).to_string();
        let asked = Asked {
            intent: Intent::Judge,
            client: Client::Gemini,
            mode: Mode::Monitor,
            length: payload.len(),
            by_hand: false,
            preloaded: false,
        };
        open.ask_of(asked, payload.as_bytes())
    };
    for server in ["fine", "of-no-file"] {
        let passed = told(&beside(server, &npx("fine@1.0.0")));
        assert_eq!(action(&passed), Some("allow"), "{server}");
        let refused = told(&beside(server, &npx("evil@1.0.0")));
        assert_eq!(
            (action(&refused), &refused.mcp_server),
            (Some("block"), &None),
            "{server}"
        );
        let said = refused.decided.unwrap().to_string();
        assert!(said.contains("npm:evil is denied"), "{said}");
        let unread = told(&beside(server, &json!({})));
        let said = unread.decided.clone().unwrap().to_string();
        assert_eq!(action(&unread), Some("block"), "{server}");
        assert!(said.contains("beside the call of what it starts"), "{said}");
    }
}

/// Proves LJ-11, LJ-12.
///
/// Both lie over an entry of the settings, as Gemini CLI 0.61.0 puts them there.
#[test]
fn a_command_of_the_settings_and_heads_of_subagents_are_servers_of_their_names() {
    let servers = super::looked_up();
    let head = "---\nname: x\ndescription: x\nmcp_servers:\n  mcp:\n    command: npx\n    args: [-y, evil@1.0.0]\n---\nDo it.\n";
    let with_line = json!({ "mcpServers": { "mcp": npx("fine@1.0.0") }, "mcp": { "serverCommand": "npx -y evil@1.0.0" } });
    let of_subagent = json!({ "mcpServers": { "mcp": npx("fine@1.0.0") },
        "agents": { "overrides": { "generalist": { "mcpServers": { "mcp": npx("evil@1.0.0") } } } } });
    for (path, text) in [
        (".gemini/settings.json", with_line.to_string()),
        (".gemini/settings.json", of_subagent.to_string()),
        (".gemini/agents/x.md", head.to_owned()),
        (".gemini/extensions/kit/agents/x.md", head.to_owned()),
        ("shop/.gemini/agents/x.md", head.to_owned()),
        (
            "shop/.gemini/settings.json",
            json!({ "mcp": { "serverCommand": "npx -y evil@1.0.0" } }).to_string(),
        ),
    ] {
        let open = open(None, registered(Word::OfAccount));
        let good = json!({ "mcpServers": { "mcp": npx("fine@1.0.0") } });
        open.configure(".gemini/settings.json", &good.to_string());
        open.configure("shop/README", "a project");
        let mut event = open.event_of("mcp_mcp_remove", &beside("mcp", &npx("fine@1.0.0")));
        event["cwd"] = open.home().join("shop").display().to_string().into();
        let (evil, fine) = ("npm:evil".to_owned(), "npm:fine".to_owned());
        let before = packages(open.found(&servers, &event));
        assert_eq!(before, (Some(fine.clone()), vec![fine.clone()]), "{path}");
        open.configure(path, &text);
        let after = packages(open.found(&servers, &event));
        assert_eq!(after, (None, vec![evil, fine]), "{path}");
    }
}

/// Proves LJ-11, LJ-12.
///
/// Its reader of YAML takes a head that ours does not: who is in there nobody can say.
#[test]
fn a_head_of_a_subagent_that_cannot_be_read_may_be_of_every_server() {
    let servers = super::looked_up();
    let open = open(None, registered(Word::OfAccount));
    open.configure(".gemini/settings.json", &both().to_string());
    let event = open.event_of("mcp_fine_remove", &beside("fine", &npx("fine@1.0.0")));
    assert_eq!(open.found(&servers, &event).unread, None);
    for (head, unread) in [
        ("name: &d x\nkind: *d", None),
        (
            "name: &d x\nkind: *d\nmcp_servers:\n  fine: {http_url: 'https://evil.example/mcp'}",
            Some(Unread::File(Fault::Malformed)),
        ),
    ] {
        open.configure(".gemini/agents/x.md", &format!("---\n{head}\n---\nDo it.\n"));
        assert_eq!(open.found(&servers, &event).unread, unread, "{head}");
    }
}

/// Of two addresses of one entry each may be meant, and nobody is said.
#[test]
fn an_entry_with_two_addresses_is_for_either() {
    let servers = super::looked_up();
    let open = open(None, registered(Word::OfAccount));
    let two = json!({ "mcpServers": { "docs": { "url": "https://ok.example/mcp", "httpUrl": "https://evil.example/mcp" } } });
    open.configure(".gemini/settings.json", &two.to_string());
    let started = json!({ "url": "https://ok.example/mcp" });
    let found = open.found(
        &servers,
        &open.event_of("mcp_docs_read", &beside("docs", &started)),
    );
    assert_eq!(found.known, None);
    for key in ["url:https://ok.example/mcp", "url:https://evil.example/mcp"] {
        assert!(found.may_be.iter().any(|one| one == key), "{found:?}");
    }
}

/// Proves LJ-11.
#[test]
fn where_gemini_keeps_no_conversation_nobody_is_said() {
    let open = open(None, registered(Word::OfAccount));
    let servers = super::looked_up();
    open.configure(".gemini/settings.json", &both().to_string());
    let good = open.event_of("mcp_fine_remove", &beside("fine", &npx("fine@1.0.0")));
    let fine = vec!["npm:fine".to_owned()];
    assert_eq!(
        packages(open.found(&servers, &good)),
        (Some(fine[0].clone()), fine.clone())
    );
    for (member, value) in [
        ("transcript_path", json!("")),
        ("transcript_path", Value::Null),
        ("session_id", Value::Null),
    ] {
        let mut event = good.clone();
        event[member] = value;
        let found = open.found(&servers, &event);
        assert_eq!(found.unread, None, "{event}");
        assert_eq!(packages(found), (None, fine.clone()), "{event}");
    }
}
