//! Which server of MCP a call is for, at the desk.

use super::{Open, action, bench, block, open, registered};
use crate::desk::bench::{Told, Word};
use crate::desk::frame::Intent;
use crate::desk::servers::Unread;
use provost_bundle::{BundleServer, PolicyBundle, ServerStanding};
use provost_hooks::{Client, Message, hear};
use provost_words::time::SystemClock;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Policies by which only one package may be used.
pub(super) fn only(package: &str) -> Value {
    block(
        "only-acme",
        &json!({ "conditions": { "all": [
            { "field": "mcp.server_id", "op": "exists" },
            { "field": "mcp.package_id", "op": "neq", "value": package },
        ] } }),
    )
}

impl Open {
    /// Returns the home of whoever asks.
    pub fn home(&self) -> PathBuf {
        self.scratch.0.join("home")
    }

    /// Writes a file of the home; it is long ago that it was.
    pub fn configure(&self, path: &str, text: &str) {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Asks about a call of a server's tool in a project of the home.
    pub fn call(&self, intent: Intent, server: &str) -> Told {
        let project = self.home().join("shop");
        fs::create_dir_all(&project).unwrap();
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s1", "tool_use_id": "c1", "cwd": project,
            "tool_name": format!("mcp__{server}__search"), "tool_input": {},
        });
        self.ask(intent, payload.to_string().as_bytes())
    }
}

pub(super) fn server(name: &str, package: &str) -> String {
    json!({ "mcpServers": { name: { "command": "npx", "args": ["-y", package] } } }).to_string()
}

/// Proves LJ-11.
#[test]
fn a_call_is_of_the_server_that_is_configured_under_its_name_and_not_of_the_name() {
    let policies = [only("npm:@acme/github")];
    let open = open(Some(bench(&policies, |_| {})), registered(Word::OfAccount));
    // Nobody says what it is: missing, and so it counts as matched.
    let told = open.call(Intent::Judge, "github");
    assert_eq!((action(&told), &told.mcp_server), (Some("block"), &None));
    open.configure(".claude.json", &server("github", "@acme/github@1.2.3"));
    let told = open.call(Intent::Judge, "github");
    assert_eq!(action(&told), Some("allow"), "{told:?}");
    let known = told.mcp_server.unwrap();
    assert_eq!(
        (
            known.package_id.as_str(),
            known.package_version.as_deref(),
            known.remote_url
        ),
        ("npm:@acme/github", Some("1.2.3"), None)
    );
    // One's own server is not the organization's by its name, and nothing that was looked at before is held against what is there now.
    for _ in 0..2 {
        open.configure(".claude.json", &server("github", "@evil/github@1.2.3"));
        assert_eq!(action(&open.call(Intent::Judge, "github")), Some("block"));
        open.configure(".claude.json", &server("github", "@acme/github@1.2.3"));
        assert_eq!(action(&open.call(Intent::Judge, "github")), Some("allow"));
        // What is old enough to be held is held, and seen to change.
        std::thread::sleep(Duration::from_millis(150));
        assert_eq!(action(&open.call(Intent::Judge, "github")), Some("allow"));
    }
    // A configuration of the project appears between two calls.
    open.configure("shop/.mcp.json", &server("github", "@evil/github@1.2.3"));
    assert_eq!(action(&open.call(Intent::Judge, "github")), Some("block"));
    fs::remove_file(open.home().join("shop/.mcp.json")).unwrap();
    assert_eq!(action(&open.call(Intent::Judge, "github")), Some("allow"));
    // What is told of it says which server it was, where that is known.
    let told: Vec<Value> = open.entries();
    let package = |entry: &Value| entry["attributes"]["mcp.package_id"].as_str().map(str::to_owned);
    let packages: Vec<Option<String>> = told
        .iter()
        .filter(|entry| entry["occasion"] == "pre_tool")
        .map(package)
        .collect();
    let evil = Some("npm:@evil/github".to_owned());
    assert_eq!(packages, [None, evil.clone(), evil, None]);
    for entry in told.iter().filter(|entry| entry["occasion"] == "pre_tool") {
        let is_missing = entry["missing"]
            .as_array()
            .unwrap()
            .contains(&json!("mcp.package_id"));
        assert_eq!(is_missing, package(entry).is_none(), "{entry}");
    }
}

/// Proves LJ-11.
#[test]
fn without_a_home_or_beside_a_server_nothing_is_said() {
    let policies = [only("npm:@acme/github")];
    let open = open(Some(bench(&policies, |_| {})), registered(Word::OfAccount));
    open.configure(".claude.json", &server("Bash", "@acme/github@1.2.3"));
    let told = open.ask(Intent::Judge, &super::call("Bash"));
    assert_eq!((action(&told), &told.mcp_server), (Some("allow"), &None));
    // A remote one has an address and no version that anybody says.
    open.configure(
        ".claude.json",
        &json!({ "mcpServers": { "docs": { "type": "http", "url": "https://mcp.acme.example/docs" } } })
            .to_string(),
    );
    let told = open.call(Intent::Judge, "docs");
    let known = told.mcp_server.clone().unwrap();
    assert_eq!(
        (
            known.package_id.as_str(),
            known.package_version,
            known.remote_url.as_deref()
        ),
        (
            "url:https://mcp.acme.example/docs",
            None,
            Some("https://mcp.acme.example/docs")
        )
    );
    assert_eq!(action(&told), Some("block"));
    fs::rename(open.home(), open.scratch.0.join("away")).unwrap();
    let call =
        json!({ "hook_event_name": "PreToolUse", "tool_name": "mcp__docs__x", "cwd": "/", "tool_input": {} });
    assert_eq!(
        open.ask(Intent::Judge, call.to_string().as_bytes()).mcp_server,
        None
    );
}

/// Proves LJ-11.
#[test]
fn who_keeps_conversations_elsewhere_has_the_configuration_there() {
    let policies = [only("npm:@acme/github")];
    let open = open(Some(bench(&policies, |_| {})), registered(Word::OfAccount));
    open.configure(".claude.json", &server("github", "@acme/github@1.2.3"));
    let project = open.home().join("shop");
    fs::create_dir_all(&project).unwrap();
    let file = "-shop/0d7c5a4e-1111-2222-3333-444455556666.jsonl";
    let below = |folder: &str| format!("{}/{folder}/projects/{file}", open.home().display());
    std::os::unix::fs::symlink(open.home(), open.scratch.0.join("link")).unwrap();
    let behind_a_link = open.scratch.0.join("link/.claude/projects").join(file);
    for (path, is_known) in [
        // What the caller names is not looked at: nobody knows where the link leads.
        (behind_a_link.to_str().unwrap().to_owned(), false),
        (below(".claude"), true),
        (below(".work-claude"), false),
        (format!("/data/claude/projects/{file}"), false),
        (format!("/home/eve/.claude/projects/{file}"), false),
    ] {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s1", "tool_use_id": "c1", "cwd": project, "transcript_path": path,
            "tool_name": "mcp__github__search", "tool_input": {},
        });
        let told = open.ask(Intent::Judge, payload.to_string().as_bytes());
        let verdict = if is_known { "allow" } else { "block" };
        assert_eq!(
            (action(&told), told.mcp_server.is_some()),
            (Some(verdict), is_known),
            "{path}"
        );
    }
}

/// Proves LJ-12.
#[test]
fn what_is_denied_is_refused_to_whoever_asks_and_wherever_they_are() {
    let denies = || {
        bench(&[], |bundle| {
            bundle.servers = vec![BundleServer {
                key: "npm:evil".into(),
                standing: ServerStanding::Denied,
            }];
        })
    };
    let basis = |told: &Told| {
        told.decided
            .as_ref()
            .map(|decided| decided["decisions"][0]["basis"].clone())
    };
    let standing = Some(json!("standing"));
    for word in [Word::Unsaid, Word::Named("bob".into())] {
        let open = open(Some(denies()), registered(word.clone()));
        open.configure(".claude.json", &server("nice", "evil@1.0.0"));
        let told = open.call(Intent::Judge, "nice");
        assert_eq!(
            (action(&told), basis(&told)),
            (Some("block"), standing.clone()),
            "{word:?}"
        );
        assert!(told.judges && !open.entries().is_empty());
        // Of another one the organization's server hears which it is.
        open.configure(".claude.json", &server("nice", "fine@1.0.0"));
        let told = open.call(Intent::Judge, "nice");
        let known = told.mcp_server.clone().map(|known| known.package_id);
        assert_eq!(
            (&told.decided, known.as_deref()),
            (&None, Some("npm:fine")),
            "{word:?}"
        );
        assert!(told.judges && told.why.is_some(), "{word:?}: {told:?}");
    }
    let open_at = open(Some(denies()), registered(Word::OfAccount));
    let in_folder = |cwd: &str| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": cwd, "tool_name": "mcp__nice__x", "tool_input": {},
        });
        open_at.ask(Intent::Judge, payload.to_string().as_bytes())
    };
    open_at.configure(".claude.json", &server("nice", "fine@1.0.0"));
    assert_eq!(action(&in_folder("/")), Some("allow"));
    let told = in_folder(&format!("/{}", "deep/".repeat(1_000)));
    assert_eq!(
        (action(&told), basis(&told)),
        (Some("block"), standing.clone()),
        "too deep"
    );
    // Nobody knows where the home is.
    let payload = br#"{"hook_event_name":"PreToolUse","tool_name":"mcp__nice__x","cwd":"/","tool_input":{}}"#;
    let Ok(Message::Question(question)) = hear(Client::ClaudeCode, payload) else {
        panic!("it is a question");
    };
    let found = super::looked_up().of((0, None), &question, None, &SystemClock::new());
    assert_eq!((found.known, found.unread), (None, Some(Unread::Nowhere)));
    // A home that is there and cannot be looked at, as one on another machine.
    let home = open_at.home();
    fs::remove_dir_all(&home).unwrap();
    std::os::unix::fs::symlink(&home, &home).unwrap();
    let found = super::looked_up().of((0, Some(&home)), &question, None, &SystemClock::new());
    assert_eq!(found.unread, Some(Unread::Nowhere));
    // Without policies nobody judges.
    let open = open(None, registered(Word::OfAccount));
    assert!(!open.call(Intent::Judge, "nice").judges);
}

/// Proves LJ-12.
#[test]
fn what_reads_the_resources_of_a_denied_server_is_refused_as_its_tools_are() {
    let bench = bench(&[], |bundle| {
        bundle.servers = vec![BundleServer {
            key: "npm:evil".into(),
            standing: ServerStanding::Denied,
        }];
    });
    let open = open(Some(bench), registered(Word::OfAccount));
    let basis = |told: &Told| told.decided.as_ref().unwrap()["decisions"][0]["basis"].clone();
    let of = |tool: &str, input: Value| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s1", "tool_use_id": "c1", "cwd": "/", "tool_name": tool, "tool_input": input,
        });
        open.ask(Intent::Judge, payload.to_string().as_bytes())
    };
    let both = json!({ "mcpServers": {
        "n i c e": { "command": "npx", "args": ["-y", "evil@1.0.0"] },
        "fine": { "command": "npx", "args": ["-y", "fine@1.0.0"] },
    } });
    open.configure(".claude.json", &both.to_string());
    for (tool, input) in [
        (
            "ReadMcpResourceTool",
            json!({ "server": "n i c e", "uri": "file:///x" }),
        ),
        ("ListMcpResourcesTool", json!({ "server": "n i c e" })),
        // All of them are asked.
        ("ListMcpResourcesTool", json!({})),
    ] {
        let told = of(tool, input.clone());
        assert_eq!(
            (action(&told), basis(&told)),
            (Some("block"), json!("standing")),
            "{tool} {input}"
        );
    }
    let told = of(
        "ReadMcpResourceTool",
        json!({ "server": "fine", "uri": "file:///x" }),
    );
    let known = told.mcp_server.clone().map(|known| known.package_id);
    assert_eq!(
        (action(&told), known.as_deref()),
        (Some("allow"), Some("npm:fine"))
    );
    open.configure(".claude.json", &server("fine", "fine@1.0.0"));
    let told = of("ListMcpResourcesTool", json!({}));
    assert_eq!((action(&told), &told.mcp_server), (Some("allow"), &None));
}

/// Proves LJ-12.
#[test]
fn a_call_of_a_denied_server_is_refused_whatever_it_is_called_and_whatever_stands_beside_it() {
    let deny = |keys: &[&str], is_cut: bool| {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        bench(&[], move |bundle| {
            bundle.servers = keys
                .into_iter()
                .map(|key| BundleServer {
                    key,
                    standing: ServerStanding::Denied,
                })
                .collect();
            bundle.servers_withheld = is_cut;
        })
    };
    let open = open(Some(deny(&["npm:evil"], false)), registered(Word::OfAccount));
    let basis = |told: &Told| told.decided.as_ref().unwrap()["decisions"][0]["basis"].clone();
    open.configure(".claude.json", &server("nice", "nice@1.0.0"));
    assert_eq!(action(&open.call(Intent::Judge, "nice")), Some("allow"));
    assert_eq!(action(&open.call(Intent::Judge, "unknown")), Some("allow"));
    for name in ["nice", "Nice", "n i c e"] {
        open.configure(".claude.json", &server(name, "evil@1.0.0"));
        let told = open.call(Intent::Judge, &name.replace(' ', "_"));
        assert_eq!(
            (action(&told), basis(&told)),
            (Some("block"), json!("standing")),
            "{name}"
        );
        let words = told.decided.unwrap().to_string();
        assert!(words.contains("npm:evil is denied in the inventory"), "{words}");
    }
    // One more configuration of the name, one that cannot be read, a variable that makes the key weak: it may still be the one.
    open.configure(".claude.json", &server("nice", "evil@1.0.0"));
    open.configure("shop/.mcp.json", &server("nice", "nice@1.0.0"));
    let told = open.call(Intent::Judge, "nice");
    assert_eq!((action(&told), &told.mcp_server), (Some("block"), &None));
    open.configure("shop/.mcp.json", "{");
    assert_eq!(action(&open.call(Intent::Judge, "nice")), Some("block"));
    fs::remove_file(open.home().join("shop/.mcp.json")).unwrap();
    let weak = json!({ "mcpServers": { "nice": { "command": "npx", "args": ["evil"], "env": { "NPM_CONFIG_X": "y" } } } });
    open.configure(".claude.json", &weak.to_string());
    assert_eq!(action(&open.call(Intent::Judge, "nice")), Some("block"));
    // It is recorded as what it is; what the server could not come to from the event is not told as certain.
    let told: Vec<(Value, Value)> = open
        .entries()
        .iter()
        .filter(|entry| entry["occasion"] == "pre_tool")
        .map(|entry| (entry["decision"]["action"].clone(), entry["basis"].clone()))
        .collect();
    let block = |basis: &str| (json!("block"), json!(basis));
    let (sure, unsure) = (block("judged"), block("unanswered"));
    assert_eq!(
        told,
        [
            sure.clone(),
            sure.clone(),
            sure,
            unsure.clone(),
            unsure.clone(),
            unsure
        ]
    );
    // A bundle that is out of date refuses it as well, and so does one by which everything is asked about.
    let change = |change: fn(&mut PolicyBundle)| {
        let bench = bench(&[], |bundle| {
            bundle.servers = vec![BundleServer {
                key: "npm:evil".into(),
                standing: ServerStanding::Denied,
            }];
            change(bundle);
        });
        open.standing.lock().unwrap().bench = Some(std::sync::Arc::new(bench));
    };
    for with in [
        (|bundle| bundle.not_after = super::past()) as fn(&mut PolicyBundle),
        |bundle| bundle.record_all = true,
        |bundle| bundle.users.clear(),
    ] {
        change(with);
        for intent in [Intent::Judge, Intent::Hold] {
            assert_eq!(action(&open.call(intent, "nice")), Some("block"));
        }
    }
    // Of more than have room nobody here can say that one is not denied.
    open.standing.lock().unwrap().bench = Some(std::sync::Arc::new(deny(&["npm:evil"], true)));
    open.configure(".claude.json", &server("nice", "nice@1.0.0"));
    let told = open.call(Intent::Judge, "nice");
    assert!(told.decided.is_none() && told.holds, "{told:?}");
    assert_eq!(action(&open.call(Intent::Hold, "nice")), Some("block"));
    assert_eq!(
        action(&open.ask(Intent::Judge, &super::call("Read"))),
        Some("allow")
    );
}

/// Proves LJ-12.
#[test]
fn where_a_configuration_cannot_be_read_a_call_may_be_for_a_denied_server() {
    let deny = |keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let denied = |key| BundleServer {
            key,
            standing: ServerStanding::Denied,
        };
        bench(&[], move |bundle| {
            bundle.servers = keys.into_iter().map(denied).collect();
        })
    };
    let open = open(
        Some(deny(&["url:https://mcp.acme.example/mcp"])),
        registered(Word::OfAccount),
    );
    let remote = |url: &str| json!({ "mcpServers": { "tickets": { "type": "http", "url": url } } });
    fs::create_dir_all(open.home()).unwrap();
    let file = open.home().join(".claude.json");
    let away = open.scratch.0.join("dotfiles.json");
    let first = remote("https://mcp.acme.example/mcp");
    fs::write(&away, first.to_string()).unwrap();
    let mut padded = first.clone();
    padded["pad"] = "x".repeat(3_000_000).into();
    let faults: [(&str, &dyn Fn()); 4] = [
        ("larger than the agent reads", &|| {
            fs::write(&file, padded.to_string()).unwrap();
        }),
        ("a link out of the home", &|| {
            std::os::unix::fs::symlink(&away, &file).unwrap();
        }),
        ("cannot be read, or is none", &|| {
            rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR).unwrap();
        }),
        ("not what the client reads", &|| fs::write(&file, "{").unwrap()),
    ];
    for (why, put) in faults {
        put();
        for _ in 0..2 {
            let told = open.call(Intent::Judge, "tickets");
            assert_eq!(action(&told), Some("block"), "{why}");
            let said = told.decided.unwrap().to_string();
            assert!(said.contains(why) && said.contains("may be meant"), "{said}");
        }
        let other = open.ask(Intent::Judge, &super::call("Bash"));
        assert_eq!(action(&other), Some("allow"), "{why}: what is no server's");
        fs::remove_file(&file).unwrap();
    }
    // A way to write the address by which its client asks for the same.
    for url in [
        "https://u:p@mcp.acme.example/mcp",
        "https://${H:-mcp.acme.example}/mcp",
        "https://mcp.acme.example/%6dcp",
        "http://mcp.acme.example/mcp",
    ] {
        open.configure(".claude.json", &remote(url).to_string());
        assert_eq!(
            action(&open.call(Intent::Judge, "tickets")),
            Some("block"),
            "{url}"
        );
        let bridged =
            json!({ "mcpServers": { "tickets": { "command": "npx", "args": ["-y", "mcp-remote", url] } } });
        open.configure(".claude.json", &bridged.to_string());
        assert_eq!(
            action(&open.call(Intent::Judge, "tickets")),
            Some("block"),
            "{url}"
        );
    }
    open.configure(
        ".claude.json",
        &remote("https://mcp.acme.example/other").to_string(),
    );
    assert_eq!(action(&open.call(Intent::Judge, "tickets")), Some("allow"));
    // What is wrong with another project refuses nothing; in the folder of the call it does.
    let mut other = remote("https://mcp.acme.example/other");
    let project = open.home().join("other").display().to_string();
    other["projects"] = json!({ project: {} });
    open.configure(".claude.json", &other.to_string());
    open.configure("other/.mcp.json", "{");
    assert_eq!(action(&open.call(Intent::Judge, "tickets")), Some("allow"));
    open.configure("shop/.mcp.json", "{");
    assert_eq!(action(&open.call(Intent::Judge, "tickets")), Some("block"));
    fs::remove_file(open.home().join("shop/.mcp.json")).unwrap();
    // An agent that sees no homes denies nobody's servers.
    let away = open.scratch.0.join("away");
    fs::rename(open.home(), &away).unwrap();
    let call = json!({ "hook_event_name": "PreToolUse", "tool_name": "mcp__tickets__x", "cwd": "/", "tool_input": {} });
    let told = open.ask(Intent::Judge, call.to_string().as_bytes());
    assert_eq!(action(&told), Some("allow"));
    fs::rename(&away, open.home()).unwrap();
    // Where nothing is denied a fault refuses nothing.
    open.standing.lock().unwrap().bench = Some(std::sync::Arc::new(deny(&[])));
    open.configure(".claude.json", "{");
    assert_eq!(action(&open.call(Intent::Judge, "tickets")), Some("allow"));
}

/// Proves LJ-12.
#[test]
fn who_writes_a_denied_server_in_another_way_is_refused_and_told_what_is_odd_of_it() {
    let denied = |key: &str| BundleServer {
        key: key.into(),
        standing: ServerStanding::Denied,
    };
    let deny = bench(&[], move |bundle| {
        bundle.servers = vec![
            denied("npm:@acme/files"),
            denied("url:https://mcp.linear.app/sse"),
        ];
    });
    let open = open(Some(deny), registered(Word::OfAccount));
    let remote = |url: &str| json!({ "type": "http", "url": url });
    let many: Vec<String> = (0..600).map(|at| format!("w{at}")).collect();
    let shell = |line: &str| json!({ "command": "sh", "args": ["-c", line] });
    for (entry, says) in [
        (
            remote("https:\\\\mcp.linear.app\\sse"),
            "url:https://mcp.linear.app/sse is denied",
        ),
        (
            remote("https://mcp.lin%65ar.app/s\tse"),
            "url:https://mcp.linear.app/sse is denied",
        ),
        (
            remote("https://mcp。linear。app/sse"),
            "whose host is not plainly written",
        ),
        (remote("${LINEAR}"), "a variable where its address leads"),
        (shell("npx -y @acme/files | tee log"), "npm:@acme/files is denied"),
        (
            shell("npx -y $PACKAGE"),
            "a variable in a command that starts packages",
        ),
        (shell(&many.join(" ")), "more than the agent reads of one"),
    ] {
        let file = json!({ "mcpServers": { "nice": entry, "other": server_of("other@1.0.0") } });
        open.configure(".claude.json", &file.to_string());
        let told = open.call(Intent::Judge, "nice");
        assert_eq!(action(&told), Some("block"), "{says}");
        let said = told.decided.unwrap().to_string();
        assert!(
            said.contains(says) && said.contains("denied in the inventory"),
            "{said}"
        );
        // What is odd of one entry refuses no other.
        assert_eq!(
            action(&open.call(Intent::Judge, "other")),
            Some("allow"),
            "{says}"
        );
    }
    for entry in [
        remote("https://mcp.linear.app.evil.test/sse"),
        remote("https://mcp.linear.app/other"),
        server_of("@acme/files-other"),
    ] {
        let file = json!({ "mcpServers": { "nice": entry } });
        open.configure(".claude.json", &file.to_string());
        assert_eq!(action(&open.call(Intent::Judge, "nice")), Some("allow"), "{file}");
    }
    // Where no address is denied, an address that nobody can read is none of them.
    let deny = bench(&[], move |bundle| {
        bundle.servers = vec![denied("npm:@acme/files")];
    });
    open.standing.lock().unwrap().bench = Some(std::sync::Arc::new(deny));
    let file = json!({ "mcpServers": { "nice": remote("${LINEAR}") } });
    open.configure(".claude.json", &file.to_string());
    assert_eq!(action(&open.call(Intent::Judge, "nice")), Some("allow"));
}

fn server_of(package: &str) -> Value {
    json!({ "command": "npx", "args": ["-y", package] })
}
