//! Forms that clients write and read themselves: none of them is a fault, and what is configured is in the list.

use super::{Folder, faults, servers};
use crate::{Client, Observation, Scan};
use serde_json::{Value, json};

fn names(scan: &Scan) -> Vec<(&str, &str)> {
    let found = servers(scan);
    let names = found.iter();
    names
        .map(|(_, facts)| (facts.configured_name.as_str(), facts.key.as_str()))
        .collect()
}

fn npx(name: &str) -> Value {
    json!({"command": "npx", "args": ["-y", name]})
}

#[test]
fn servers_of_a_plugin_stand_with_and_without_a_member_around_them() {
    let folder = Folder::new("plugin-forms");
    let cache = "home/ada/.claude/plugins/cache/market";
    let write = |path: &str, value: Value| folder.write(&format!("{cache}/{path}"), &value.to_string());
    write(
        "github/1/.mcp.json",
        json!({"$schema": "https://acme.example/x.json", "github": {"type": "http", "url": "https://api.acme.example/mcp"}}),
    );
    write(
        "wrapped/1/.mcp.json",
        json!({"mcpServers": {"wrapped": npx("wrapped")}}),
    );
    write(
        "named/1/.claude-plugin/plugin.json",
        json!({"name": "named", "mcpServers": "./servers.json"}),
    );
    write("named/1/servers.json", json!({"named": npx("named")}));
    write(
        "several/1/.claude-plugin/plugin.json",
        json!({"mcpServers": ["${CLAUDE_PLUGIN_ROOT}/a.json", "gone.json"]}),
    );
    write(
        "several/1/a.json",
        json!({"mcpServers": {"several": npx("several")}}),
    );
    write(
        "inline/1/.claude-plugin/plugin.json",
        json!({"mcpServers": {"inline": npx("inline")}}),
    );
    let scan = folder.scan();
    let mut found = names(&scan);
    found.sort_unstable();
    let wanted = [
        ("github", "url:https://api.acme.example/mcp"),
        ("inline", "npm:inline"),
        ("named", "npm:named"),
        ("several", "npm:several"),
        ("wrapped", "npm:wrapped"),
    ];
    assert_eq!(found, wanted);
    assert_eq!(faults(&scan), []);
}

#[test]
fn what_a_marketplace_has_on_offer_is_not_configured() {
    let folder = Folder::new("plugin-offers");
    let plugins = "home/ada/.claude/plugins";
    let plugin = |place: &str, name: &str| {
        folder.write(
            &format!("{plugins}/{place}/.mcp.json"),
            &json!({name: npx(name)}).to_string(),
        );
        folder.write(&format!("{plugins}/{place}/skills/{name}/SKILL.md"), "x");
    };
    plugin("marketplaces/market/offered", "offered");
    plugin("marketplaces/market/old", "old");
    plugin("cache/market/new/2", "new");
    plugin("cache/market/new/1", "earlier");
    let found = || {
        let scan = folder.scan();
        let skills = scan.sections.iter().flat_map(|section| &section.observations);
        let skills = skills.filter_map(|found| match &found.observation {
            Observation::Skill { name, .. } => Some(name.clone()),
            _ => None,
        });
        let servers = servers(&scan);
        let servers = servers.iter().map(|(_, facts)| facts.configured_name.clone());
        let (mut skills, mut servers): (Vec<_>, Vec<_>) = (skills.collect(), servers.collect());
        skills.sort_unstable();
        servers.sort_unstable();
        assert_eq!(skills, servers);
        (servers, faults(&scan).is_empty())
    };
    // Where nothing says what is installed, everything that was is taken for it.
    assert_eq!(found(), (vec!["earlier".to_owned(), "new".to_owned()], true));
    let home = "/home/ada/.claude/plugins";
    let lists = [
        json!({"version": 2, "plugins": {
            "new@market": [{"scope": "user", "installPath": format!("{home}/cache/market/new/2")}],
            "old@market": [{"installPath": format!("{home}/marketplaces/market/old")}],
            "gone@market": [{"installPath": format!("{home}/cache/market/gone/1")}],
        }}),
        json!({"version": 1, "plugins": {
            "new@market": {"installPath": format!("{home}/cache/market/new/2")},
            "old@market": {"installPath": format!("{home}/marketplaces/market/old")},
        }}),
    ];
    for list in lists {
        folder.write(&format!("{plugins}/installed_plugins.json"), &list.to_string());
        assert_eq!(found(), (vec!["new".to_owned(), "old".to_owned()], true));
    }
    // A list of another form is a fault.
    folder.write(&format!("{plugins}/installed_plugins.json"), r#"{"plugins": []}"#);
    assert_eq!(found(), (vec!["earlier".to_owned(), "new".to_owned()], false));
}

#[test]
fn a_server_that_only_its_client_can_name_is_one_whose_key_is_weak() {
    let folder = Folder::new("client-forms");
    folder.write(
        "home/ada/.config/goose/config.yaml",
        "extensions:\n  developer: {bundled: true, enabled: true, name: developer, timeout: 300, type: builtin}\n  \
         todo: {enabled: true, name: todo, type: platform, bundled: true, available_tools: []}\n  \
         code:\n    enabled: true\n    type: inline_python\n    name: code\n    code: |\n      print(1)\n    dependencies: [mcp]\n  \
         front: {enabled: false, type: frontend, name: front, tools: []}\n",
    );
    folder.write(
        "home/ada/.config/zed/settings.json",
        r#"{"context_servers": {"mcp-server-github": {"source": "extension", "enabled": true, "settings": {"token": "x"}},
            "own": {"source": "custom", "command": "npx", "args": ["own"]}}}"#,
    );
    folder.write(
        "home/ada/.config/opencode/opencode.json",
        r#"{"mcp": {"far": {"enabled": false}}}"#,
    );
    let scan = folder.scan();
    super::sent_and_kept(&scan);
    assert_eq!(faults(&scan), []);
    assert!(scan.sections.iter().all(|section| section.complete));
    let found = servers(&scan);
    let mut found: Vec<(Client, &str, bool, bool)> = found
        .iter()
        .map(|(client, facts)| (*client, facts.configured_name.as_str(), facts.weak, facts.enabled))
        .collect();
    let wanted = [
        (Client::Zed, "mcp-server-github", true, true),
        (Client::Zed, "own", false, true),
        (Client::Goose, "code", true, true),
        (Client::Goose, "developer", false, true),
        (Client::Goose, "front", true, false),
        (Client::Goose, "todo", true, true),
        (Client::Opencode, "far", true, false),
    ];
    found.sort_unstable();
    assert_eq!(found, wanted);
    // Other code is another server.
    let key = |scan: &Scan| {
        let found = servers(scan);
        let code = found.iter().find(|(_, facts)| facts.configured_name == "code");
        code.unwrap().1.key.clone()
    };
    let first = key(&scan);
    folder.write(
        "home/ada/.config/goose/config.yaml",
        "extensions:\n  code: {type: inline_python, name: code, code: 'print(2)'}\n",
    );
    assert_ne!(first, key(&folder.scan()));
}
