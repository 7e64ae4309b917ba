//! What extensions of Claude Desktop and of Visual Studio Code bring along.

use super::{CANARY, Folder, faults, servers};
use crate::syntax::Format;
use crate::{Client, Fault, Observation, Platform, Scan, ServerFacts};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

const EXTENSIONS: &str = "home/ada/.config/Claude/Claude Extensions";
const SETTINGS: &str = "home/ada/.config/Claude/Claude Extensions Settings";
const OF_EDITOR: &str = "home/ada/.vscode/extensions";

/// A manifest of an extension of Claude Desktop.
fn manifest(name: &str, server: &Value) -> String {
    json!({ "manifest_version": "0.3", "name": name, "version": "1.4.0", "author": { "name": "Acme" }, "server": server })
        .to_string()
}

/// A server that is started.
fn started(command: &str, args: &[&str]) -> Value {
    json!({ "type": "node", "entry_point": "server/index.js", "mcp_config": { "command": command, "args": args } })
}

/// A manifest of an extension of Visual Studio Code.
fn provider(publisher: &str, name: &str, ids: &[&str]) -> String {
    let providers: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "label": id })).collect();
    json!({ "publisher": publisher, "name": name, "version": "2.0.1", "contributes": { "mcpServerDefinitionProviders": providers } })
        .to_string()
}

/// What was found of the servers by their names: key, version, weak, enabled.
fn found(scan: &Scan) -> Vec<(&str, &str, Option<&str>, bool, bool)> {
    let one = |facts: &'_ ServerFacts| (facts.weak, facts.enabled);
    let mut found: Vec<_> = servers(scan)
        .into_iter()
        .map(|(_, facts)| {
            let (weak, enabled) = one(facts);
            (
                facts.configured_name.as_str(),
                facts.key.as_str(),
                facts.version.as_deref(),
                weak,
                enabled,
            )
        })
        .collect();
    found.sort_unstable();
    found
}

/// The extensions, and whether they are on.
fn extensions(scan: &Scan) -> Vec<(Client, &str, bool)> {
    let found = scan
        .sections
        .iter()
        .flat_map(|section| section.observations.iter().map(|found| (section.client, found)));
    found
        .filter_map(|(client, found)| match &found.observation {
            Observation::Extension { name, enabled } => Some((client, name.as_str(), *enabled)),
            _ => None,
        })
        .collect()
}

#[test]
fn an_extension_of_claude_desktop_is_what_it_starts_from_elsewhere_or_itself() {
    let folder = Folder::new("bundles");
    let write = |id: &str, text: &str| folder.write(&format!("{EXTENSIONS}/{id}/manifest.json"), text);
    let own = started("node", &["${__dirname}/server/index.js", "${user_config.folder}"]);
    write("ant.dir.acme.ledger", &manifest("ledger", &own));
    write(
        "local.mcpb.acme.Files",
        &manifest("files", &started("npx", &["-y", "@acme/files@1.2.3"])),
    );
    write(
        "local.mcpb.acme.far",
        &manifest(
            "far",
            &started("npx", &["mcp-remote", "https://far.acme.example/mcp"]),
        ),
    );
    write(
        "local.mcpb.acme.lazy",
        &manifest("lazy", &json!({ "type": "uv", "entry_point": "src/server.py" })),
    );
    // What is said for this platform counts.
    let mut other = started("node", &["${__dirname}/index.js"]);
    other["mcp_config"]["platform_overrides"] = json!({
        "linux": { "command": "uvx", "args": ["acme-till==2.0"] }, "win32": { "command": "evil.exe" },
    });
    write("local.mcpb.acme.till", &manifest("till", &other));
    // One whose folder has a name that is none has a key of the device alone.
    write("no name", &manifest("nameless", &own));
    folder.write(
        &format!("{SETTINGS}/local.mcpb.acme.Files.json"),
        r#"{"isEnabled": false}"#,
    );
    folder.write(
        &format!("{SETTINGS}/ant.dir.acme.ledger.json"),
        &json!({ "isEnabled": true, "userConfig": { "api_key": "ghp_0123456789abcdefghijklmnopqrstuvwxyz" } }).to_string(),
    );
    let scan = folder.scan();
    assert_eq!(faults(&scan), []);
    let all = found(&scan);
    assert_eq!(
        all[0],
        ("far", "url:https://far.acme.example/mcp", None, all[0].3, true)
    );
    assert_eq!(all[1], ("files", "npm:@acme/files", Some("1.2.3"), false, false));
    assert_eq!(
        all[2],
        ("lazy", "ext:local.mcpb.acme.lazy", Some("1.4.0"), true, true)
    );
    assert_eq!(
        all[3],
        ("ledger", "ext:ant.dir.acme.ledger", Some("1.4.0"), true, true)
    );
    assert!(
        all[4].0 == "nameless" && all[4].1.starts_with("cmd:hmac:") && all[4].3,
        "{all:?}"
    );
    assert_eq!(all[5], ("till", "pypi:acme-till", Some("2.0"), false, true));
    assert_eq!(all.len(), 6);
    let off: Vec<&str> = extensions(&scan)
        .into_iter()
        .filter(|(client, _, enabled)| *client == Client::ClaudeDesktop && !enabled)
        .map(|(_, name, _)| name)
        .collect();
    assert_eq!(off, ["local.mcpb.acme.Files"]);
    assert_eq!(extensions(&scan).len(), 6);
    // A key that a person typed is found where it lies, and not told.
    let text = scan.report().unwrap();
    assert!(
        text.contains("Claude Extensions Settings/*.json") && !text.contains("ghp_0123"),
        "{text}"
    );
    // On macOS the same lies elsewhere.
    assert_eq!(found(&folder.scan_on(Platform::Macos)).len(), 0);
}

#[test]
fn an_extension_of_an_editor_says_that_it_may_bring_servers_and_not_which() {
    let folder = Folder::new("providers");
    let write = |id: &str, text: &str| folder.write(&format!("{OF_EDITOR}/{id}/package.json"), text);
    write(
        "acme.shelves-2.0.1",
        &provider("Acme", "Shelves", &["acme.shelves.one", "two"]),
    );
    folder.write(
        "home/ada/.vscode-insiders/extensions/acme.early-2.0.1/package.json",
        &provider("acme", "early", &["early"]),
    );
    // No server stands in these, were they damaged.
    write(
        "acme.theme-1.0.0",
        r#"{"publisher": "acme", "name": "theme", "contributes": {"themes": []}}"#,
    );
    write("acme.broken-1.0.0", "{ not json");
    write("acme.none-1.0.0", &provider("acme", "none", &[]));
    folder.write(&format!("{OF_EDITOR}/extensions.json"), "[]");
    let scan = folder.scan();
    assert_eq!(faults(&scan), []);
    assert_eq!(
        found(&scan),
        [
            ("acme.shelves.one", "ext:acme.shelves", Some("2.0.1"), true, true),
            ("early", "ext:acme.early", Some("2.0.1"), true, true),
            ("two", "ext:acme.shelves", Some("2.0.1"), true, true),
        ]
    );
    let names = extensions(&scan);
    assert_eq!(
        names,
        [
            (Client::Vscode, "Acme.Shelves", true),
            (Client::Vscode, "acme.early", true)
        ]
    );
    // A name that is written with escapes hides nothing.
    let folder = Folder::new("providers-escaped");
    let escaped = provider("acme", "sly", &["sly"]).replace("mcpServer", "\\u006dcpServer");
    folder.write(&format!("{OF_EDITOR}/acme.sly-1.0.0/package.json"), &escaped);
    assert_eq!(found(&folder.scan()).len(), 1, "{escaped}");
}

/// Proves IV-4.
#[test]
fn extensions_that_cannot_be_read_are_faults_and_nobody_is_waited_for() {
    let folder = Folder::new("bundles-hostile");
    let bundle = |id: &str| format!("{EXTENSIONS}/{id}/manifest.json");
    let own = started("node", &["${__dirname}/server/index.js"]);
    folder.write(&bundle("a.torn"), "{\"name\": ");
    folder.write(
        &bundle("a.odd"),
        &json!({ "name": "odd", "server": ["node"] }).to_string(),
    );
    folder.write(&bundle("a.nameless"), &json!({ "server": own }).to_string());
    let most = usize::try_from(Format::Json.most()).unwrap();
    folder.write(
        &bundle("a.large"),
        &format!("{}{}", manifest("large", &own), " ".repeat(most)),
    );
    let outside = folder.write("srv/outside.json", &manifest("outside", &own));
    let link = folder.write(&bundle("a.linked"), "{}");
    std::fs::remove_file(&link).unwrap();
    symlink(&outside, &link).unwrap();
    let fifo = folder.write(&bundle("a.fifo"), "");
    std::fs::remove_file(&fifo).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    folder.write(&bundle("a.good"), &manifest("good", &own));
    // Settings that cannot be read switch nothing off, and are a fault of their own.
    folder.write(&format!("{SETTINGS}/a.good.json"), "{\"isEnabled\": fal");
    folder.write(
        &format!("{OF_EDITOR}/acme.odd-1.0.0/package.json"),
        r#"{"publisher": "acme", "name": "odd", "contributes": {"mcpServerDefinitionProviders": {"id": "x"}}}"#,
    );
    folder.write(
        &format!("{OF_EDITOR}/acme.torn-1.0.0/package.json"),
        r#"{"mcpServerDefinitionProviders": "#,
    );
    let scan = folder.scan();
    let mut all = faults(&scan);
    all.sort_unstable();
    let count = |fault: Fault| all.iter().filter(|one| **one == fault).count();
    assert_eq!(
        (count(Fault::Malformed), count(Fault::TooLarge)),
        (6, 1),
        "{all:?}"
    );
    assert_eq!(found(&scan), [("good", "ext:a.good", Some("1.4.0"), true, true)]);
    // A link out of the home, and what is no file.
    assert_eq!(all.len(), 9, "{all:?}");
    assert!(scan.sections.iter().all(|section| !section.faults.is_empty()));
}

#[test]
fn nothing_of_an_extension_is_a_value() {
    let folder = Folder::new("bundles-silent");
    let secret = format!("sk-{CANARY}");
    let mut server = started(
        "node",
        &[
            "${__dirname}/index.js",
            "--key",
            &secret,
            &format!("--token={secret}"),
        ],
    );
    server["mcp_config"]["env"] = json!({ "API_KEY": secret });
    folder.write(
        &format!("{EXTENSIONS}/{secret}/manifest.json"),
        &manifest(&secret, &server),
    );
    folder.write(
        &format!("{SETTINGS}/{secret}.json"),
        &json!({ "userConfig": { "token": secret } }).to_string(),
    );
    folder.write(
        &format!("{OF_EDITOR}/x-1/package.json"),
        &provider(&secret, &secret, &[&secret]),
    );
    let text = folder.scan().report().unwrap();
    assert!(!text.to_lowercase().contains(&CANARY.to_lowercase()), "{text}");
}
