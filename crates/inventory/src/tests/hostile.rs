//! Configurations that were written to be read wrongly: by a repository that somebody cloned, or by a package.

use super::{Folder, faults, servers};
use crate::{Fault, InventoryKey, Machine, Observation, Platform, Scan, ServerFacts, scan};
use serde_json::{Map, Value, json};
use std::os::unix::fs::PermissionsExt;

/// Scans servers of Cursor, in the order of their names.
fn scanned(folder: &Folder, entries: &[Value]) -> Scan {
    let named = entries.iter().enumerate();
    let named: Map<String, Value> = named
        .map(|(at, entry)| (format!("{at:04}"), entry.clone()))
        .collect();
    folder.write(
        "home/ada/.cursor/mcp.json",
        &json!({"mcpServers": named}).to_string(),
    );
    folder.scan()
}

fn facts(entries: &[Value]) -> Vec<ServerFacts> {
    let folder = Folder::new(&format!("hostile-{}", entries.len()));
    let scan = scanned(&folder, entries);
    assert!(faults(&scan).is_empty(), "{scan:?}");
    servers(&scan)
        .into_iter()
        .map(|(_, facts)| facts.clone())
        .collect()
}

/// Proves IV-4.
#[test]
fn a_document_that_is_too_deep_is_a_fault_and_ends_no_scan() {
    let folder = Folder::new("deep");
    let key = vec!["a"; 79].join(".");
    let toml = format!("{key} = {{ ").repeat(40) + "a = 1" + &" }".repeat(40);
    folder.write("home/ada/.codex/config.toml", &toml);
    let json = |levels: usize| {
        let begin = r#"{"mcpServers": {"near": {"command": "npx", "args": ["near"]}}, "a": "#;
        begin.to_owned()
            + &r#"{"a": "#.repeat(levels)
            + r#"{"apiKey": "sk-ant-api03-CaNaRyAbCdEfGhIjKlMnOpQrStUv"}"#
            + &"}".repeat(levels + 1)
    };
    folder.write("home/ada/.claude.json", &json(70));
    folder.write("home/ada/.cursor/mcp.json", &json(5_000));
    folder.write(
        "home/ada/.config/goose/config.yaml",
        &format!("a: {}", "[".repeat(900) + &"]".repeat(900)),
    );
    let scan = folder.scan();
    let faults = faults(&scan);
    assert!(
        faults.len() >= 4 && faults.iter().all(|fault| *fault == Fault::Malformed),
        "{scan:?}"
    );
    assert!(scan.sections.iter().all(|section| !section.complete));
    assert_eq!(servers(&scan)[0].1.key, "npm:near", "what stands above is read");
}

/// Proves IV-2.
#[test]
fn no_part_of_an_address_that_may_be_a_value_is_shown() {
    const SHOWN: [(&str, &str, bool); 8] = [
        (
            "https://MCP.acme.example:443/v1/Mcp/",
            "url:https://mcp.acme.example/v1/Mcp",
            false,
        ),
        ("http://[::1]:8080/mcp#part", "url:http://[::1]:8080/mcp", true),
        (
            "https://acme.example/key=hunter2/mcp",
            "url:https://acme.example/*/mcp",
            true,
        ),
        (
            "https://acme.example/a;hunter2",
            "url:https://acme.example/*",
            true,
        ),
        (
            "https://acme.example/a%3Dhunter2",
            "url:https://acme.example/*",
            true,
        ),
        (
            "https://acme.example/123456789012345678901234/mcp",
            "url:https://acme.example/*/mcp",
            true,
        ),
        (
            "https://abcdefghijklmnopqrstuvwx.acme.example/mcp",
            "url:https://*.acme.example/mcp",
            true,
        ),
        (
            "https://acme.example/mcp?key=hunter2",
            "url:https://acme.example/mcp",
            true,
        ),
    ];
    const REFUSED: [&str; 11] = [
        "https://ada:S3cr/et!@hunter2.example/mcp",
        "https://ada:hunter2?2@mcp.example",
        "https://ada:12345/@hunter2/mcp",
        "https://hunter2@acme.example/mcp",
        "https://acme.example\\hunter2@other/mcp",
        "https://acme.example:hunter2/mcp",
        "https://acme.example/mcp?user=hunter2@acme.example",
        "https://acme\u{202e}hunter2.example/mcp",
        "https://acme.example/hunter2\u{200b}/mcp",
        "https://[hunter2]/mcp",
        "https://hunter2_.example/\n/mcp",
    ];
    let urls = SHOWN.iter().map(|(url, ..)| url).chain(&REFUSED);
    let entries: Vec<Value> = urls.map(|url| json!({ "url": url })).collect();
    let found = facts(&entries);
    for ((url, key, is_weak), facts) in SHOWN.iter().zip(&found) {
        assert_eq!((facts.key.as_str(), facts.weak), (*key, *is_weak), "{url}");
    }
    for (url, facts) in REFUSED.iter().zip(&found[SHOWN.len()..]) {
        assert!(
            facts.key.starts_with("cmd:hmac:") && facts.weak,
            "{url}: {}",
            facts.key
        );
    }
    assert!(!serde_json::to_string(&found).unwrap().contains("hunter2"));
}

/// Proves IV-2.
#[test]
fn a_short_secret_is_not_shown_either() {
    let folder = Folder::new("short-secrets");
    for (path, key) in [
        ("s/Xk3pQ9vLm2Rt7YzB/mcp", "s/*/mcp"),
        ("a1B2c3D4e5F6g7H8i9J/mcp", "*/mcp"),
        ("u9f2k-x81mz-q0r7t-55abc/sse", "*/sse"),
        ("0a1b2c3d4e5f607/mcp", "*/mcp"),
        ("gmail/itchy-red-chicken-ab12cd", "gmail/*"),
        ("XkpQvLmRtYzB/mcp", "*/mcp"),
        ("xkpqvlmrtzb/mcp", "*/mcp"),
        ("4711/mcp", "*/mcp"),
        ("v1/mcp2", "v1/mcp2"),
        (
            "api/v1beta1/modelContext/2025-06-18",
            "api/v1beta1/modelContext/2025-06-18",
        ),
        ("my-server_v2/streamableHttp", "my-server_v2/streamableHttp"),
    ] {
        let scan = scanned(&folder, &[json!({"url": format!("https://acme.example/{path}")})]);
        let key = format!("url:https://acme.example/{key}");
        let (_, facts) = servers(&scan)[0];
        assert_eq!((&facts.key, facts.weak), (&key, key.contains('*')), "{path}");
        super::sent_and_kept(&scan);
    }
    let scan = scanned(
        &folder,
        &[json!({
            "command": "npx",
            "args": ["server-a", "--Xk3pQ9vLm2Rt7YzB", "--a1b2c3d4=x", "--api-key", "--streamableHttp", "--http1.1"],
        })],
    );
    super::sent_and_kept(&scan);
    let (_, facts) = servers(&scan)[0];
    let (plain, odd): (Vec<&String>, Vec<&String>) = facts
        .arg_shapes
        .iter()
        .partition(|shape| !shape.starts_with("hidden:"));
    assert_eq!(plain, ["<word>", "--api-key", "--streamableHttp", "--http1.1"]);
    assert_eq!(odd.len(), 2);
    let folder = Folder::new("member-names");
    folder.write(
        "home/ada/.cursor/mcp.json",
        r#"{"tokens": {"ada.lovelace@customer.example": "sk-ant-api03-CaNaRyAbCdEfGhIjKlMnOpQrStUv"}}"#,
    );
    let scan = folder.scan();
    super::sent_and_kept(&scan);
    let said = serde_json::to_string(&scan).unwrap();
    assert!(
        said.contains("anthropic_api_key") && !said.contains("lovelace"),
        "{said}"
    );
}

/// Proves IV-2.
#[test]
fn no_digest_is_made_of_what_is_no_program_or_is_its_owners_alone() {
    let folder = Folder::new("no-programs");
    let text = "machine acme.example login ada password hunter2 and more of it so that it is long\n";
    let files = [
        (".netrc", 0o600, false),
        (".netrc-open", 0o644, false),
        ("secret.py", 0o600, false),
        ("tool", 0o700, false),
        ("open.py", 0o644, true),
        ("open-tool", 0o755, true),
    ];
    for (name, mode, is_hashed) in files {
        let path = folder.write(&format!("home/ada/{name}"), text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        let scan = scanned(
            &folder,
            &[
                json!({"command": "bash", "args": [format!("~/{name}")]}),
                json!({"command": format!("~/{name}")}),
            ],
        );
        for (_, facts) in servers(&scan) {
            assert_eq!(
                !facts.key.starts_with("cmd:hmac:"),
                is_hashed,
                "{name}: {}",
                facts.key
            );
            assert!(facts.weak);
        }
    }
}

/// Proves IV-2.
#[test]
fn two_secrets_do_not_share_a_key_that_could_be_approved() {
    let entry = |secret: &str| {
        [
            json!({"url": format!("https://acme.example/{secret}/mcp")}),
            json!({"url": format!("https://{secret}.acme.example/mcp")}),
            json!({"url": format!("https://acme.example/mcp?key={secret}")}),
            json!({"command": "deno", "args": ["run", format!("https://acme.example/{secret}/a.ts")]}),
        ]
    };
    let pair = [
        entry("abcdefghijklmnopqrstuvwx"),
        entry("zyxwvutsrqponmlkjihgfedc"),
    ]
    .concat();
    let found = facts(&pair);
    for (one, other) in found[..4].iter().zip(&found[4..]) {
        assert!(one.key != other.key || (one.weak && other.weak), "{}", one.key);
    }
}

/// Proves IV-2.
#[test]
fn a_list_of_names_shows_no_value() {
    let found = facts(&[json!({
        "command": "npx", "args": ["-y", "server-a"],
        "env_vars": ["TOKEN=hunter2", "GOOD"],
        "env": {"TOKEN=hunter2": "", "hunter2 x": "", "GOOD_2": "", "123456789012345678901234": "",
            "abcdefghijklmnopqrstuvwxyz": ""},
        "headers": {"X-Key": "", "X: hunter2": ""},
    })]);
    let said = serde_json::to_string(&found).unwrap();
    for secret in [
        "hunter2",
        "123456789012345678901234",
        "abcdefghijklmnopqrstuvwxyz",
    ] {
        assert!(!said.contains(secret), "{said}");
    }
    assert_eq!(found[0].header_names, ["X-Key", "*"]);
    let is_shown = |name: &str| found[0].env_names.iter().any(|shown| shown == name);
    assert!(is_shown("GOOD") && is_shown("GOOD_2") && is_shown("*"), "{said}");
}

/// Proves IV-2.
#[test]
fn what_a_command_names_cannot_be_found_by_trying() {
    let folder = Folder::new("trying");
    folder.write("etc/passwd", &"root:x:0:0:root:/root:/bin/bash\n".repeat(9));
    folder.write("work/.keep", "");
    let command = json!({"command": "db-mcp", "args": ["--password", "hunter2"]});
    let file = json!({"command": "bash", "args": ["/etc/passwd"]});
    folder.write(
        "home/ada/.claude.json",
        &json!({
            "mcpServers": {"one": command, "two": file},
            "projects": {"/": {"mcpServers": {"three": file}}, "/home": {"mcpServers": {"four": file}}},
        })
        .to_string(),
    );
    let keys = |seed: u8| -> Vec<String> {
        let machine = Machine {
            root: &folder.0,
            home: &folder.home(),
            platform: Platform::Linux,
            stop: &|| false,
        };
        let scan = scan(&machine, &InventoryKey::new(&[seed; 32])).unwrap();
        servers(&scan)
            .iter()
            .map(|(_, facts)| facts.key.clone())
            .collect()
    };
    let (one, other) = (keys(7), keys(8));
    assert_eq!((one.len(), one.clone()), (4, keys(7)));
    for (one, other) in one.iter().zip(&other) {
        assert!(one.starts_with("cmd:hmac:") && one != other, "{one} {other}");
    }
}

/// What a project may bring in the place of a package: its files, and the command of which they turn the key.
const BROUGHT: [(&str, &str, &str); 24] = [
    ("node_modules/server-a/index.js", "", "npx -y server-a@1.2.3"),
    ("node_modules/@acme/server-a/index.js", "", "npx @acme/server-a"),
    ("node_modules/.bin/server-a", "", "bunx server-a"),
    ("../node_modules/server-a/index.js", "", "npx server-a"),
    (
        "node_modules/mcp-remote/index.js",
        "",
        "npx mcp-remote@9.9.9 https://good.example/mcp",
    ),
    (".npmrc", "registry=https://evil.example", "npx server-a"),
    (".npmrc", "", "pnpm dlx server-a"),
    (".npmrc", "", "deno run npm:server-a"),
    ("../.npmrc", "", "npm exec server-a"),
    (".yarnrc.yml", "", "yarn dlx server-a"),
    ("bunfig.toml", "", "bun x server-a"),
    ("deno.json", "", "deno run https://acme.example/a.ts"),
    ("nuget.config", "", "dnx Acme.Server@1.0.0"),
    (
        "package.json",
        r#"{"name": "x", "bin": {"server-a": "evil.js"}}"#,
        "npx server-a",
    ),
    (
        "package.json",
        r#"{"name": "@x/server-a", "bin": "evil.js"}"#,
        "npx server-a",
    ),
    ("server-a", "", "pipx run server-a"),
    (
        "package.json",
        r#"{"name": "x", "version": "1.0.0", "directories": {"bin": "bins"}}"#,
        "npx -y server-a",
    ),
    (
        "../package.json",
        r#"{"directories": {"lib": "l"}}"#,
        "npx -y server-a",
    ),
    (
        "package.json",
        r#"{"bin": {"../server-a": "evil.js"}}"#,
        "npx server-a",
    ),
    (
        "package.json",
        r#"{"bin": {"Server-A": "evil.js"}}"#,
        "npx server-a",
    ),
    ("package.json", r#"{"bin": ["server-a"]}"#, "npx server-a"),
    ("package.json", "[]", "npx server-a"),
    (
        ".env",
        "BUN_CONFIG_REGISTRY=https://evil.example",
        "bunx server-a",
    ),
    ("../.env.local", "", "bun x server-a"),
];

/// Returns whether keys of a command in a project are weak.
fn is_weak_in_project(folder: &Folder, line: &str) -> bool {
    folder.write(
        "home/ada/.claude.json",
        r#"{"projects": {"/home/ada/far/work": {}}}"#,
    );
    let words: Vec<&str> = line.split(' ').collect();
    let entry = json!({"mcpServers": {"a": {"command": words[0], "args": words[1..]}}});
    folder.write("home/ada/far/work/.mcp.json", &entry.to_string());
    let scan = folder.scan();
    let found = servers(&scan);
    assert_eq!(found.len(), 1, "{line}");
    found[0].1.weak
}

#[test]
fn what_a_project_brings_in_the_place_of_a_package_makes_its_key_weak() {
    for (at, (file, text, line)) in BROUGHT.iter().enumerate() {
        let folder = Folder::new(&format!("brought-{at}"));
        // What has other names, and what is the home's own, turns nothing.
        folder.write("home/ada/far/work/node_modules/other/index.js", "");
        folder.write(
            "home/ada/far/work/package.json",
            r#"{"name": "x", "bin": {"other": "x"}}"#,
        );
        folder.write("home/ada/.npmrc", "");
        assert!(!is_weak_in_project(&folder, line), "{line}");
        folder.write(&format!("home/ada/far/work/{file}"), text);
        assert!(is_weak_in_project(&folder, line), "{file}: {line}");
    }
}

#[test]
fn a_file_of_variables_in_a_project_turns_what_a_client_starts_with_it() {
    let folder = Folder::new("variables");
    folder.write("home/ada/.claude.json", r#"{"projects": {"/home/ada/work": {}}}"#);
    let entry = r#"{"mcpServers": {"a": {"command": "npx", "args": ["server-a"]}, "b": {"url": "https://good.example/mcp"}}}"#;
    folder.write("home/ada/.gemini/settings.json", entry);
    folder.write("home/ada/work/.gemini/settings.json", entry);
    folder.write("home/ada/work/.cursor/mcp.json", entry);
    let weak = || {
        let scan = folder.scan();
        servers(&scan).iter().filter(|(_, facts)| facts.weak).count()
    };
    folder.write("home/ada/.env", "KEY=x");
    assert_eq!(weak(), 0, "that of the home is its owner's");
    folder.write("home/ada/work/.env", "npm_config_registry=https://evil.example");
    assert_eq!(weak(), 1, "of the one that Gemini CLI starts there");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of spellings")]
fn an_entry_that_says_two_things_is_weak() {
    let good = "https://good.example/mcp";
    let weak = [
        json!({"command": "npx", "args": ["server-a"], "url": good}),
        json!({"command": "npx", "cmd": "evil", "args": ["server-a"]}),
        json!({"url": good, "serverUrl": "https://evil.example"}),
        json!({"url": good, "httpUrl": good}),
        json!({"command": "npx", "args": ["server-a"], "type": "http"}),
        json!({"url": good, "type": "stdio"}),
        json!({"command": "npx", "args": ["server-a"], "type": "builtin"}),
        json!({"command": {"path": "npx", "args": ["server-a"]}, "args": ["x"]}),
        json!({"command": "npx", "args": ["server-a"], "cwd": "/tmp/evil"}),
        json!({"command": "npx", "args": ["server-a"], "envFile": ".env"}),
        json!({"command": "evil", "transport": {"type": "http", "url": good}}),
    ];
    let found = facts(&weak);
    assert_eq!(found.len(), weak.len());
    for (entry, facts) in weak.iter().zip(&found) {
        assert!(facts.weak, "{entry}");
    }
    assert!(!found[10].key.contains("good"), "{}", found[10].key);
    // What nobody knows may decide what runs, and a client of tomorrow reads it.
    let started = json!({"command": "npx", "args": ["server-a"]});
    let remote = json!({"type": "http", "url": good});
    let others = [
        ("headersHelper", json!("./get-token.sh")),
        ("xyz", json!("./a.sh")),
        ("xyz", json!(["./a.sh"])),
        ("xyz", json!({"run": "./a.sh"})),
        ("tcp", json!("evil.example:1")),
        ("socket", json!("/tmp/evil.sock")),
        ("transport", json!("evil")),
        ("transportType", json!({"command": "evil"})),
        ("requestOptions", json!({"proxy": "http://evil.example"})),
        ("requestOptions", json!({"verifySsl": false})),
        (
            "dev",
            json!({"debug": {"type": "debugpy", "debugpyPath": "./evil"}}),
        ),
    ];
    let with = |(name, value): &(&str, Value)| {
        [&started, &remote].map(|entry| {
            let mut entry = entry.clone();
            entry[*name] = value.clone();
            entry
        })
    };
    let mut entries: Vec<Value> = others.iter().flat_map(with).collect();
    entries.extend(["shell", "cwd"].map(|name| {
        let mut inner = json!({"path": "npx", "args": ["server-a"]});
        inner[name] = json!("./evil");
        json!({"command": inner})
    }));
    for (entry, facts) in entries.iter().zip(facts(&entries)) {
        assert!(facts.weak, "{entry}");
    }
    let known = [
        ("timeout", json!(30)),
        ("xyz", json!(true)),
        ("xyz", json!("")),
        ("xyz", Value::Null),
        ("description", json!("Files of the team")),
        ("autoApprove", json!(["read"])),
        ("oauth", json!({"clientId": "x"})),
        (
            "requestOptions",
            json!({"headers": {"X": "y"}, "timeout": 3, "verifySsl": true}),
        ),
        ("env", json!({"API_KEY": "x"})),
        ("tools", json!(["*"])),
    ];
    let mut entries: Vec<Value> = known.iter().flat_map(with).collect();
    entries.push(json!({"command": "npx", "args": ["server-a"], "transport": "stdio"}));
    entries.push(json!({"url": good, "transport": "sse"}));
    for (entry, facts) in entries.iter().zip(facts(&entries)) {
        assert!(!facts.weak, "{entry}");
    }
    let strong = facts(&[
        json!({"command": "npx", "args": ["server-a"], "url": null, "type": "stdio", "cwd": null}),
        json!({"url": good, "type": "streamable-http"}),
    ]);
    assert!(strong.iter().all(|facts| !facts.weak), "{strong:?}");

    let folder = Folder::new("transports");
    folder.write(
        "home/ada/.continue/config.yaml",
        "experimental:\n  modelContextProtocolServers:\n    - transport: {type: stdio, command: npx, args: [server-a]}\n    \
            - transport: {type: stdio, command: npx, args: [server-a]}\n      command: evil\n",
    );
    folder.write(
        "home/ada/.config/goose/config.yaml",
        "extensions:\n  developer: {type: builtin, name: other}\n  memory: {type: builtin, name: memory}\n",
    );
    let scan = folder.scan();
    let found: Vec<(&str, bool)> = servers(&scan)
        .iter()
        .map(|(_, facts)| (facts.key.as_str(), facts.weak))
        .collect();
    let wanted = [
        ("builtin:goose/developer", true),
        ("builtin:goose/memory", false),
        ("npm:server-a", false),
        ("npm:server-a", true),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_variable_that_brings_other_code_makes_a_key_weak() {
    let turning = [
        "npm_config_registry",
        "NPM_CONFIG_PREFIX",
        "UV_PYTHON",
        "PIP_TARGET",
        "LD_AUDIT",
        "DYLD_X",
        "NODE_EXTRA",
        "PYTHONINSPECT",
        "BUN_INSTALL",
        "DOCKER_HOST",
        "GOPROXY",
        "GOFLAGS",
        "BASH_ENV",
        "ENV",
        "PERL5OPT",
        "RUBYOPT",
        "Path",
        "HOME",
    ];
    let harmless = ["API_KEY", "GOOGLE_API_KEY", "ENVIRONMENT", "MY_NODE", "DEBUG"];
    let entry = |name: &&str| json!({"command": "npx", "args": ["server-a"], "env": {*name: "x"}});
    let entries: Vec<Value> = turning.iter().chain(&harmless).map(entry).collect();
    let found = facts(&entries);
    for (name, facts) in turning.iter().chain(&harmless).zip(&found) {
        assert_eq!(facts.weak, turning.contains(name), "{name}");
    }
}

/// Proves IV-4.
#[test]
fn one_file_takes_no_more_than_its_part() {
    let folder = Folder::new("part");
    let many = vec![json!({"command": "npx", "args": ["server-a"]}); 300];
    let bad = json!({"mcpServers": {"bad": 1}}).to_string();
    for at in 0..150 {
        folder.write(&format!("home/ada/.claude/plugins/p{at:03}/.mcp.json"), &bad);
    }
    folder.write(
        "home/ada/.gemini/settings.json",
        r#"{"mcpServers": {"far": {"command": "npx", "args": ["far"]}}}"#,
    );
    let scan = scanned(&folder, &many);
    let found = servers(&scan);
    assert_eq!(found.len(), 201);
    assert!(found.iter().any(|(_, facts)| facts.key == "npm:far"));
    let counts: Vec<usize> = scan.sections.iter().map(|section| section.faults.len()).collect();
    assert_eq!(counts, [100, 1, 0]);
    assert_eq!(scan.sections[1].faults[0].fault, Fault::Truncated);
}

/// Proves IV-4.
#[test]
fn time_is_asked_for_before_each_server() {
    let folder = Folder::new("time");
    let many = vec![json!({"command": "npx", "args": ["server-a"]}); 50];
    scanned(&folder, &many);
    let asked = std::cell::Cell::new(0);
    let machine = Machine {
        root: &folder.0,
        home: &folder.home(),
        platform: Platform::Linux,
        stop: &|| asked.replace(asked.get() + 1) >= 20,
    };
    let scan = scan(&machine, &InventoryKey::new(&[7; 32])).unwrap();
    assert!(
        (1..20).contains(&servers(&scan).len()),
        "{}",
        servers(&scan).len()
    );
    assert!(faults(&scan).contains(&Fault::Truncated));
}

/// Proves IV-4.
#[test]
fn a_folder_that_cannot_be_read_hides_no_other() {
    let folder = Folder::new("folders");
    let text = |name: &str| json!({"mcpServers": {name: {"command": "npx", "args": [name]}}}).to_string();
    for name in ["a", "z"] {
        folder.write(&format!("home/ada/.claude/plugins/{name}/.mcp.json"), &text(name));
    }
    // More names than are looked at.
    for at in 0..2_001 {
        folder.write(&format!("home/ada/.claude/plugins/m/{at}"), "");
    }
    let scan = folder.scan();
    let keys: Vec<&str> = servers(&scan)
        .iter()
        .map(|(_, facts)| facts.key.as_str())
        .collect();
    assert_eq!(keys, ["npm:a", "npm:z"]);
    // One of each pattern: of servers, of plugins, of hooks, of subagents and of skills.
    assert_eq!(faults(&scan), [Fault::Truncated; 5]);
}

/// Proves IV-4.
#[test]
fn a_project_takes_nothing_from_a_home_or_from_another_project() {
    let folder = Folder::new("projects");
    folder.write(
        "home/ada/.claude.json",
        r#"{"projects": {"/home/ada/a": {}, "/home/ada/z": {}}}"#,
    );
    let many: Vec<String> = (0..200)
        .map(|at| format!("  - {{name: s{at}, command: npx, args: [s{at}]}}\n"))
        .collect();
    for at in 0..11 {
        folder.write(
            &format!("home/ada/a/.continue/mcpServers/{at:02}.yaml"),
            &format!("mcpServers:\n{}", many.concat()),
        );
    }
    // Nor does it name projects: neither of its own, nor so many that the person's are none of them.
    let others: Vec<String> = (0..600)
        .map(|at| format!("[projects.\"/home/ada/o{at}\"]\n"))
        .collect();
    folder.write("home/ada/a/.codex/config.toml", &others.concat());
    folder.write(
        "home/ada/o1/.cursor/mcp.json",
        r#"{"mcpServers": {"o": {"command": "npx", "args": ["o"]}}}"#,
    );
    // Files that are read before those of the other.
    for at in 0..600 {
        folder.write(&format!("home/ada/a/.claude/skills/s{at:03}/SKILL.md"), "x");
    }
    let text = r#"{"mcpServers": {"far": {"command": "npx", "args": ["far"]}}}"#;
    folder.write("home/ada/z/.cursor/mcp.json", text);
    folder.write("home/ada/.claude/skills/own/SKILL.md", "x");
    let scan = folder.scan();
    let found = servers(&scan);
    let of = |key: &str| found.iter().filter(|(_, facts)| facts.key == key).count();
    assert_eq!((of("npm:far"), of("npm:o"), found.len()), (1, 0, 101));
    let skills = scan.sections.iter().flat_map(|section| &section.observations);
    let skills: Vec<&Observation> = skills
        .map(|found| &found.observation)
        .filter(|found| matches!(found, Observation::Skill { .. }))
        .collect();
    assert_eq!(skills.len(), 1, "{skills:?}");
    assert!(scan.sections.iter().any(|section| section.complete));
    assert!(faults(&scan).contains(&Fault::Truncated));
}

/// Proves IV-4.
#[test]
fn names_of_servers_take_no_more_than_their_part() {
    let variables: Map<String, Value> = (0..60)
        .map(|at| (format!("V{at}_{}", "word_".repeat(20)), json!("")))
        .collect();
    let folder = Folder::new("names");
    let many = vec![json!({"command": "npx", "args": ["server-a"], "env": variables}); 150];
    let scan = scanned(&folder, &many);
    let bytes = serde_json::to_vec(&scan).unwrap().len();
    assert!(bytes < 640 << 10, "{bytes}");
    assert!(faults(&scan).contains(&Fault::Truncated) && servers(&scan).len() > 50);
}

/// Proves IV-4.
#[test]
fn a_manifest_names_files_of_its_plugin_alone_and_not_many() {
    let folder = Folder::new("named");
    let text = |name: &str| json!({"mcpServers": {name: {"command": "npx", "args": [name]}}}).to_string();
    let plugin = "home/ada/.claude/plugins/p";
    for file in [
        "home/ada/secret.json",
        "home/ada/.claude/plugins/other.json",
        &format!("{plugin}/own.json"),
    ] {
        folder.write(
            file,
            &text("theirs").replace("theirs", file.rsplit('/').next().unwrap()),
        );
    }
    let home = folder.home();
    let manifest = json!({"mcpServers": [
        "./own.json", "../other.json", "../../../secret.json", "./x/../../../../secret.json", format!("{}/secret.json", home.display()),
    ]});
    folder.write(
        &format!("{plugin}/.claude-plugin/plugin.json"),
        &manifest.to_string(),
    );
    let keys =
        |scan: &Scan| -> Vec<String> { servers(scan).iter().map(|(_, facts)| facts.key.clone()).collect() };
    let scan = folder.scan();
    assert_eq!(keys(&scan), ["npm:own.json"]);
    let told = faults(&scan);
    assert!(
        !told.is_empty() && told.iter().all(|fault| *fault == Fault::NotPermitted),
        "{told:?}"
    );
    // A plugin that names many files leaves the others theirs.
    let many: Vec<String> = (0..30).map(|at| format!("many/{at:02}.json")).collect();
    for path in &many {
        folder.write(&format!("{plugin}/{path}"), &text(&path.replace('/', "-")));
    }
    let manifest = json!({ "mcpServers": many });
    folder.write(
        &format!("{plugin}/.claude-plugin/plugin.json"),
        &manifest.to_string(),
    );
    let scan = folder.scan();
    assert_eq!(keys(&scan).len(), 20);
    assert_eq!(faults(&scan), [Fault::Truncated]);
}

/// A file that the digest leaves out, or that reads in it as two, would make of another folder a version of the registry.
/// Proves IV-4.
#[test]
fn a_skill_with_a_name_that_no_line_holds_has_no_digest() {
    use std::os::unix::ffi::OsStrExt;
    let line = format!("SKILL.md\n0644 {} z.md", "0".repeat(64));
    for (at, name) in [b"run\xff.sh".as_slice(), line.as_bytes()]
        .into_iter()
        .enumerate()
    {
        for is_folder in [false, true] {
            let folder = Folder::new(&format!("unwritten-{at}-{is_folder}"));
            let file = folder.write("home/ada/.claude/skills/tidy/SKILL.md", "x");
            let other = file.with_file_name(std::ffi::OsStr::from_bytes(name));
            if is_folder {
                std::fs::create_dir(&other).unwrap();
                std::fs::write(other.join("run.sh"), "x").unwrap();
            } else {
                std::fs::write(&other, "x").unwrap();
            }
            let scan = folder.scan();
            let skill = Observation::Skill {
                name: "tidy".to_owned(),
                digest: None,
            };
            assert_eq!(scan.sections[0].observations[0].observation, skill);
            assert_eq!(faults(&scan), [Fault::Malformed]);
        }
    }
}
