//! Forms that clients write and read themselves: none of them is a fault, and what is configured is in the list.

use super::{Folder, faults, servers};
use crate::{Client, Fault, Observation, Scan};
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
        json!({"mcpServers": ["${CLAUDE_PLUGIN_ROOT}/a.json", "gone.json", {"beside": npx("beside")}]}),
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
        ("beside", "npm:beside"),
        ("github", "url:https://api.acme.example/mcp"),
        ("inline", "npm:inline"),
        ("named", "npm:named"),
        ("several", "npm:several"),
        ("wrapped", "npm:wrapped"),
    ];
    assert_eq!(found, wanted);
    assert_eq!(faults(&scan), []);
}

/// Returns at which events commands run, and how many.
fn hooks(scan: &Scan) -> Vec<(&str, usize)> {
    let found = scan.sections.iter().flat_map(|section| &section.observations);
    let mut hooks: Vec<(&str, usize)> = found
        .filter_map(|found| match &found.observation {
            Observation::Hook { event, commands } => Some((event.as_str(), *commands)),
            _ => None,
        })
        .collect();
    hooks.sort_unstable();
    hooks
}

#[test]
fn hooks_of_a_plugin_stand_in_its_manifest_and_in_files() {
    let folder = Folder::new("plugin-hooks");
    let cache = "home/ada/.claude/plugins/cache/market";
    let write = |path: &str, value: Value| folder.write(&format!("{cache}/{path}"), &value.to_string());
    let at = |event: &str| json!({event: [{"hooks": [{"type": "command", "command": "./a.sh"}]}]});
    write("own/1/hooks/hooks.json", json!({"hooks": at("Stop")}));
    write(
        "own/1/.claude-plugin/plugin.json",
        json!({"name": "own", "hooks": "./hooks/hooks.json"}),
    );
    write(
        "here/1/.claude-plugin/plugin.json",
        json!({"name": "here", "hooks": at("PreToolUse")}),
    );
    write(
        "named/1/.claude-plugin/plugin.json",
        json!({"name": "named", "hooks": ["./more.json"]}),
    );
    write("named/1/more.json", json!({"hooks": at("SessionStart")}));
    let scan = folder.scan();
    assert_eq!(
        hooks(&scan),
        [("PreToolUse", 1), ("SessionStart", 1), ("Stop", 1)]
    );
    assert_eq!(faults(&scan), []);
}

#[test]
fn servers_of_gemini_in_heads_of_subagents_and_in_a_command_line_are_found() {
    let folder = Folder::new("gemini-heads");
    folder.write(
        "home/ada/.gemini/trustedFolders.json",
        r#"{"/home/ada/work/repo": "TRUST_FOLDER"}"#,
    );
    let head = |name: &str, entry: &str| {
        format!("---\nname: x\ndescription: x\ntools: ['*']\nmcp_servers:\n  {name}: {entry}\n---\nDo it.\n")
    };
    let npx = |name: &str| {
        head(
            name,
            &format!("{{command: npx, args: ['-y', {name}], exclude_tools: [rm]}}"),
        )
    };
    folder.write("home/ada/.gemini/agents/own.md", &npx("own"));
    folder.write(
        "home/ada/.gemini/agents/far.md",
        &head(
            "far",
            "{http_url: 'https://far.example/mcp', include_tools: [find]}",
        ),
    );
    folder.write("home/ada/.gemini/agents/none.md", "no head\n");
    // Gemini CLI reads no folder within it.
    folder.write("home/ada/.gemini/agents/deep/x.md", &npx("deep"));
    folder.write("home/ada/.gemini/extensions/kit/agents/x.md", &npx("kit"));
    folder.write("home/ada/work/repo/.gemini/agents/x.md", &npx("project"));
    folder.write(
        "home/ada/.gemini/settings.json",
        r#"{"mcp": {"serverCommand": "npx -y line@1.0.0"}}"#,
    );
    folder.write(
        "home/ada/work/repo/.gemini/settings.json",
        r#"{"mcp": {"serverCommand": ""}}"#,
    );
    let scan = folder.scan();
    super::sent_and_kept(&scan);
    let mut found = names(&scan);
    found.sort_unstable();
    let wanted = [
        ("far", "url:https://far.example/mcp"),
        ("kit", "npm:kit"),
        ("mcp", "npm:line"),
        ("own", "npm:own"),
        ("project", "npm:project"),
    ];
    assert_eq!(found, wanted);
    assert_eq!(faults(&scan), []);
    folder.write(
        "home/ada/.gemini/settings.json",
        r#"{"mcp": {"serverCommand": ["npx"]}}"#,
    );
    assert_eq!(
        faults(&folder.scan()).len(),
        1,
        "a type that its client does not read"
    );
}

#[test]
fn servers_and_hooks_in_the_head_of_a_subagent_are_found_wherever_it_lies() {
    let folder = Folder::new("heads");
    folder.write(
        "home/ada/.claude.json",
        r#"{"projects": {"/home/ada/work/repo": {}}}"#,
    );
    let one = |name: &str| {
        format!("---\nname: x\nmcpServers:\n  - {name}: {{command: npx, args: ['-y', {name}]}}\n---\nbody\n")
    };
    folder.write(
        "home/ada/work/repo/.claude/agents/a.md",
        "---\nname: a\ndescription: one\nmcpServers:\n  - github\n  - zz:\n      command: npx\n      args: ['-y', evil]\n\
         hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - {type: command, command: ./a.sh}\n---\nbody: [\n",
    );
    folder.write(
        "home/ada/.claude/agents/deep/b.md",
        "---\nmcpServers: {far: {type: http, url: 'https://far.example/mcp'}}\n---\n",
    );
    folder.write("home/ada/work/.claude/agents/above.md", &one("above"));
    folder.write("home/ada/.claude/plugins/p/agents/c.md", &one("plugged"));
    folder.write("etc/claude-code/.claude/agents/d.md", &one("managed"));
    folder.write(
        "home/ada/.claude/agents/none.md",
        "no head, and mcpServers: of no account\n",
    );
    folder.write(
        "home/ada/.claude/agents/usual.md",
        "---\ndescription: Use when: tests fail\n---\n",
    );
    folder.write(
        "home/ada/work/repo/.claude/skills/tidy/SKILL.md",
        "---\nname: tidy\nhooks: {Stop: [{hooks: [{type: command, command: ./b.sh}]}]}\n---\n",
    );
    folder.write(
        "home/ada/.claude/commands/go/now.md",
        "---\nhooks: {SessionStart: [{hooks: [{type: command, command: ./c.sh}]}]}\n---\n",
    );
    let scan = folder.scan();
    super::sent_and_kept(&scan);
    let mut found = names(&scan);
    found.sort_unstable();
    let wanted = [
        ("above", "npm:above"),
        ("far", "url:https://far.example/mcp"),
        ("managed", "npm:managed"),
        ("plugged", "npm:plugged"),
        ("zz", "npm:evil"),
    ];
    assert_eq!(found, wanted);
    assert_eq!(
        hooks(&scan),
        [("PreToolUse", 1), ("SessionStart", 1), ("Stop", 1)]
    );
    assert_eq!(faults(&scan), []);
    assert!(scan.sections.iter().all(|section| section.complete));
}

/// Proves IV-4.
#[test]
fn a_subagent_that_cannot_be_read_is_a_fault() {
    let head = |text: &str| format!("---\n{text}\n---\n");
    let texts = [
        (
            "a.md",
            head("description: Use when: x\nmcpServers: [{a: {command: evil}}]"),
            Fault::Malformed,
        ),
        ("a.md", head("mcpServers: true"), Fault::Malformed),
        (
            "a.md",
            head("mcpServers: [{name: a, command: evil}]"),
            Fault::Malformed,
        ),
        ("a.md", head("hooks: [a]"), Fault::Malformed),
        ("a.md", head("a: x") + &"x".repeat(300 << 10), Fault::TooLarge),
        ("1/2/3/4/5/6/a.md", head("mcpServers: []"), Fault::Truncated),
    ];
    for (at, (path, text, fault)) in texts.iter().enumerate() {
        for place in ["home/ada/.claude/agents", "home/ada/work/.claude/agents"] {
            let folder = Folder::new(&format!("heads-bad-{at}"));
            folder.write("home/ada/.claude.json", r#"{"projects": {"/home/ada/work": {}}}"#);
            folder.write(&format!("{place}/{path}"), text);
            let scan = folder.scan();
            assert_eq!(faults(&scan), [*fault], "{place}/{path}: {text:.40}");
            assert!(!scan.sections[0].complete);
        }
    }
    let folder = Folder::new("heads-link");
    folder.write(
        "home/ada/elsewhere/a.md",
        &head("mcpServers: [{a: {command: evil}}]"),
    );
    folder.write("home/ada/.claude/agents/b.md", "");
    let link = folder.home().join(".claude/agents/link");
    std::os::unix::fs::symlink("../../elsewhere", link).unwrap();
    assert_eq!(faults(&folder.scan()), [Fault::NotPermitted]);
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
