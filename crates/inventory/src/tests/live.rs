//! Which server a call is for.

use super::Folder;
use crate::{Called, Client, InventoryKey, Live, Machine, Platform, Reach, live, said};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

impl Folder {
    pub(super) fn live_of(&self, client: Client, folder: Option<&str>) -> Live {
        self.live_within(client, folder, Reach::All)
    }

    pub(super) fn live_within(&self, client: Client, folder: Option<&str>, reach: Reach) -> Live {
        let machine = Machine {
            root: &self.0,
            home: &self.home(),
            platform: Platform::Linux,
            stop: &|| false,
        };
        live(
            &machine,
            (client, folder.map(Path::new)),
            reach,
            &InventoryKey::new(&[7; 32]),
        )
        .unwrap()
    }

    /// Returns what Claude Code's call of a tool in the project is for.
    fn key(&self, tool: &str) -> Option<String> {
        self.key_of(&called(tool))
    }

    fn key_of(&self, called: &Called) -> Option<String> {
        let live = self.live_of(Client::ClaudeCode, Some("/home/ada/shop"));
        live.resolve(called).map(|server| server.key)
    }

    fn may_be(&self, tool: &str) -> Vec<String> {
        let live = self.live_of(Client::ClaudeCode, Some("/home/ada/shop"));
        let found = live.candidates(&called(tool));
        let mut keys: Vec<String> = found.iter().map(|server| server.key.clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

pub(super) fn called(tool: &str) -> Called {
    Called {
        tool: tool.into(),
        ..Called::default()
    }
}

pub(super) fn machine(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("home/ada/shop/README", "a project");
    folder
}

fn npx(package: &str) -> String {
    format!(r#"{{"command":"npx","args":["-y","{package}"]}}"#)
}

pub(super) fn servers(named: &[(&str, String)]) -> String {
    let named: Vec<String> = named
        .iter()
        .map(|(name, server)| format!("\"{name}\":{server}"))
        .collect();
    format!(r#"{{"mcpServers":{{{}}}}}"#, named.join(","))
}

/// What somebody does to a machine.
type Change = fn(&Folder);

const GITHUB: &str = "mcp__github__search";
const ACME: &str = "@acme/github@1.2.3";

/// Proves IV-6.
#[test]
fn a_name_is_the_server_of_the_configuration_and_nothing_else() {
    let folder = machine("live-name");
    assert_eq!(folder.key(GITHUB), None);
    folder.write(
        "home/ada/.claude.json",
        &servers(&[("github", npx(ACME)), ("Git Hub-Two", npx("two@1.0.0"))]),
    );
    let live = folder.live_of(Client::ClaudeCode, Some("/home/ada/shop"));
    let found = live.resolve(&called(GITHUB)).unwrap();
    assert_eq!(
        (found.key.as_str(), found.version.as_deref()),
        ("npm:@acme/github", Some("1.2.3"))
    );
    assert_eq!(found.address(), None);
    // Clients write other signs in the place of those that a tool's name cannot have.
    for tool in [
        "mcp__Git_Hub-Two__x",
        "mcp__git_hub_two__x",
        "mcp__Git_Hub-Two__x__y",
    ] {
        assert_eq!(folder.key(tool).as_deref(), Some("npm:two"), "{tool}");
    }
    for tool in [
        "mcp__gitlab__x",
        "mcp__github2__x",
        "github",
        "Bash",
        "mcp__git__hub",
    ] {
        assert_eq!(folder.key(tool), None, "{tool}");
    }
    // Another client has other servers.
    assert_eq!(
        folder
            .live_of(Client::Codex, Some("/home/ada/shop"))
            .resolve(&called(GITHUB)),
        None
    );
    // Without the folder nobody knows what else is configured there.
    for place in [None, Some("shop"), Some("/home/ada/none")] {
        assert_eq!(
            folder.live_of(Client::ClaudeCode, place).resolve(&called(GITHUB)),
            None,
            "{place:?}"
        );
    }
}

/// Proves IV-6.
#[test]
fn the_readers_of_each_client_of_hooks_say_who_is_called() {
    let folder = machine("live-clients");
    folder.write(
        "home/ada/.codex/config.toml",
        "[mcp_servers.docs]\nurl = \"https://MCP.acme.example/docs/\"\n",
    );
    folder.write(
        "home/ada/.gemini/settings.json",
        r#"{"mcpServers":{"docs":{"httpUrl":"https://mcp.acme.example/g"}}}"#,
    );
    let codex = folder.live_of(Client::Codex, Some("/home/ada/shop"));
    let found = codex.resolve(&called("mcp__docs__find")).unwrap();
    assert_eq!(found.address(), Some("https://mcp.acme.example/docs"));
    let gemini = folder.live_of(Client::GeminiCli, Some("/home/ada/shop"));
    let told = Called {
        tool: "find".into(),
        server: Some("docs".into()),
        source: None,
    };
    assert_eq!(
        gemini.resolve(&told).unwrap().key,
        "url:https://mcp.acme.example/g"
    );
    assert_eq!(gemini.resolve(&called("find")), None);
    // What the machine gives everybody is another one of that name.
    folder.write(
        "etc/gemini-cli/system-defaults.json",
        &servers(&[("docs", npx("@evil/docs@1.0.0"))]),
    );
    let gemini = folder.live_of(Client::GeminiCli, Some("/home/ada/shop"));
    let keys: Vec<&str> = gemini
        .candidates(&told)
        .iter()
        .map(|one| one.key.as_str())
        .collect();
    assert!(
        gemini.resolve(&told).is_none() && keys.contains(&"npm:@evil/docs"),
        "{keys:?}"
    );
}

/// Proves IV-6.
#[test]
fn what_a_client_says_beside_a_call_takes_away_and_names_nobody_alone() {
    let folder = machine("live-said");
    folder.write(
        "home/ada/.gemini/settings.json",
        &servers(&[("docs", npx("@acme/docs@1.0.0"))]),
    );
    let told = Called {
        server: Some("docs".into()),
        ..Called::default()
    };
    let live = folder.live_of(Client::GeminiCli, Some("/home/ada/shop"));
    let known = live.resolve(&told).unwrap();
    let of = |entry: &str, home: &Path| {
        let machine = Machine {
            root: &folder.0,
            home,
            platform: Platform::Linux,
            stop: &|| false,
        };
        let entry = serde_json::from_str(entry).unwrap();
        said(
            &machine,
            Client::GeminiCli,
            ("docs", &entry),
            &InventoryKey::new(&[7; 32]),
        )
        .unwrap()
    };
    let beside = |entry: &str| {
        let said = of(entry, &folder.home());
        assert_eq!(said.resolve(&told), None, "{entry}: nobody is said by it alone");
        let known = known.clone().with_said(&said.servers()[0]);
        known.map(|server| (server.key, server.version))
    };
    let docs = "npm:@acme/docs".to_owned();
    let same = beside(&npx("@acme/docs@1.0.0"));
    assert_eq!(same, Some((docs.clone(), Some("1.0.0".to_owned()))));
    assert_eq!(beside(&npx("@acme/docs@2.0.0")), Some((docs, None)));
    assert_eq!(beside(&npx("evil@1.0.0")), None);
    assert_eq!(
        beside(r#"{"command":"npx","args":["-y","@acme/docs@1.0.0"],"cwd":"/srv"}"#),
        None
    );
    // What is no entry is a fault, and where there is no home an entry is read all the same.
    let odd = of(r#"{"command":7}"#, &folder.home());
    assert!(odd.servers().is_empty() && odd.unread().is_some());
    let nowhere = of(&npx("evil@1.0.0"), Path::new("/home/nobody/here"));
    assert_eq!(nowhere.servers()[0].key, "npm:evil");
}

/// Proves IV-6.
#[test]
fn two_configurations_of_one_name_are_nobody_unless_they_say_the_same() {
    let own = servers(&[("github", npx(ACME))]);
    let evil = servers(&[("GitHub", npx("evil@1.0.0"))]);
    for place in [
        "home/ada/shop/.mcp.json",
        "home/ada/.mcp.json",
        "home/.mcp.json",
        "etc/claude-code/managed-mcp.json",
    ] {
        let folder = machine("live-two");
        folder.write("home/ada/.claude.json", &own);
        assert!(folder.key(GITHUB).is_some());
        folder.write(place, &evil);
        assert_eq!(folder.key(GITHUB), None, "{place}");
        assert_eq!(folder.may_be(GITHUB), ["npm:@acme/github", "npm:evil"], "{place}");
        folder.write(place, &own);
        assert_eq!(folder.key(GITHUB).as_deref(), Some("npm:@acme/github"), "{place}");
        // A version that one of them does not name is nobody's.
        folder.write(place, &servers(&[("github", npx("@acme/github"))]));
        let live = folder.live_of(Client::ClaudeCode, Some("/home/ada/shop"));
        assert_eq!(live.resolve(&called(GITHUB)).unwrap().version, None, "{place}");
    }
    // Another project may be the one in which the conversation began.
    let folder = machine("live-other");
    let known = own.replacen('{', r#"{"projects":{"/home/ada/other":{}},"#, 1);
    folder.write("home/ada/.claude.json", &known);
    folder.write("home/ada/other/README", "another");
    assert!(folder.key(GITHUB).is_some());
    folder.write("home/ada/other/.mcp.json", &evil);
    assert_eq!(folder.key(GITHUB), None);
    // And so may a server that stands in the record of one.
    let folder = machine("live-local");
    let local = own.replacen('{', &format!(r#"{{"projects":{{"/home/ada/other":{evil}}},"#), 1);
    folder.write("home/ada/.claude.json", &local);
    assert_eq!(folder.key(GITHUB), None);
}

/// Proves IV-6.
#[test]
fn what_is_weak_or_cannot_be_read_is_nobody_and_may_still_be_meant() {
    let folder = machine("live-weak");
    for weak in [
        r#"{"command":"npx","args":["-y","@acme/github"],"env":{"NPM_CONFIG_REGISTRY":"https://evil.example"}}"#,
        r#"{"command":"npx","args":["-y","@acme/github"],"envFile":".env"}"#,
    ] {
        folder.write("home/ada/.claude.json", &servers(&[("github", weak.into())]));
        assert_eq!(folder.key(GITHUB), None, "{weak}");
        assert_eq!(folder.may_be(GITHUB), ["npm:@acme/github"], "{weak}");
    }
    for weak in [
        r#"{"command":"./run.sh"}"#,
        r#"{"url":"http://localhost:3000/mcp"}"#,
        r#"{"command":"sh","args":["-c","a | b"]}"#,
    ] {
        folder.write("home/ada/.claude.json", &servers(&[("github", weak.into())]));
        assert_eq!(folder.key(GITHUB), None, "{weak}");
    }
    let own = servers(&[("github", npx(ACME))]);
    folder.write("home/ada/.claude.json", &own);
    assert!(folder.key(GITHUB).is_some());
    // A project brings its own package of that name.
    let brought = folder.write("home/ada/node_modules/@acme/github/package.json", "{}");
    assert_eq!(folder.key(GITHUB), None);
    std::fs::remove_dir_all(brought.ancestors().nth(3).unwrap()).unwrap();
    assert!(folder.key(GITHUB).is_some());
    // What cannot be read may say anything, and a link that leaves is not followed.
    let file = folder.write("home/ada/shop/.mcp.json", "{");
    assert_eq!(folder.key(GITHUB), None);
    assert_eq!(folder.may_be(GITHUB), ["npm:@acme/github"]);
    std::fs::remove_file(&file).unwrap();
    symlink(
        folder.write("srv/evil.json", &servers(&[("github", npx("evil"))])),
        &file,
    )
    .unwrap();
    assert_eq!(folder.key(GITHUB), None);
    std::fs::remove_file(&file).unwrap();
    assert!(folder.key(GITHUB).is_some());
    // One that stays within counts as what it leads to.
    symlink(
        folder.write("home/ada/kept.json", &servers(&[("github", npx("evil@1.0.0"))])),
        &file,
    )
    .unwrap();
    assert_eq!(folder.may_be(GITHUB), ["npm:@acme/github", "npm:evil"]);
    // Time that is up left something out.
    std::fs::remove_file(&file).unwrap();
    let machine = Machine {
        root: &folder.0,
        home: &folder.home(),
        platform: Platform::Linux,
        stop: &|| true,
    };
    let key = InventoryKey::new(&[7; 32]);
    let place = Some(Path::new("/home/ada/shop"));
    let live = live(&machine, (Client::ClaudeCode, place), Reach::All, &key).unwrap();
    assert_eq!(live.resolve(&called(GITHUB)), None);
}

/// Proves IV-6.
#[test]
fn a_client_that_says_whose_a_server_is_takes_away_and_adds_nothing() {
    let folder = machine("live-source");
    folder.write("home/ada/.claude.json", &servers(&[("github", npx(ACME))]));
    let told = |server: Option<&str>, source: Option<&str>| Called {
        tool: GITHUB.into(),
        server: server.map(Into::into),
        source: source.map(Into::into),
    };
    for (server, source, is_known) in [
        (None, None, true),
        (Some("github"), None, true),
        (Some("github"), Some("user"), true),
        // By the command line, by a project that is not seen here, by something of tomorrow.
        (None, Some("dynamic"), false),
        (None, Some("project"), false),
        (None, Some("enterprise"), false),
        (None, Some(""), false),
        // It contradicts the name of the tool.
        (Some("evil"), None, false),
    ] {
        let found = folder.key_of(&told(server, source));
        assert_eq!(found.is_some(), is_known, "{server:?} {source:?}");
    }
    // It chooses none of two.
    folder.write(
        "home/ada/shop/.mcp.json",
        &servers(&[("github", npx("evil@1.0.0"))]),
    );
    assert_eq!(folder.key_of(&told(Some("github"), Some("user"))), None);
}

/// Proves IV-6.
#[test]
fn a_server_of_a_plugin_may_be_meant_and_is_said_to_be_nobodys() {
    let folder = machine("live-plugin");
    let place = folder.home().join(".claude/plugins/cache/shop/tools/1.0.0");
    let installed = format!(
        r#"{{"plugins":{{"tools@shop":[{{"installPath":"{}"}}]}}}}"#,
        "/home/ada/.claude/plugins/cache/shop/tools/1.0.0"
    );
    folder.write("home/ada/.claude/plugins/installed_plugins.json", &installed);
    std::fs::create_dir_all(&place).unwrap();
    folder.write(
        "home/ada/.claude/plugins/cache/shop/tools/1.0.0/.mcp.json",
        &servers(&[("files", npx("files@1.0.0"))]),
    );
    // Another plugin may bring one of that name along where nothing is read: in the entry of its marketplace, in a folder of skills.
    for tool in ["mcp__plugin_tools_files__read", "mcp__plugin_other_files__read"] {
        assert_eq!(folder.key(tool), None, "{tool}");
        assert_eq!(folder.may_be(tool), ["npm:files"], "{tool}");
    }
    // Nor is it what has no plugin in front.
    assert_eq!(folder.key("mcp__files__read"), None);
    let told = |server: &str, source: Option<&str>| Called {
        tool: "mcp__files__read".into(),
        server: Some(server.into()),
        source: source.map(Into::into),
    };
    folder.write(
        "home/ada/.claude.json",
        &servers(&[("files", npx("files@1.0.0"))]),
    );
    assert!(folder.key_of(&told("files", None)).is_some());
    assert_eq!(folder.key_of(&told("files", Some("plugin"))), None);
    assert_eq!(folder.key_of(&told("plugin:tools:files", None)), None);
    // A person's own server may be called as one of a plugin is.
    folder.write(
        "home/ada/.claude.json",
        &servers(&[("plugin_tools_files", npx("evil@1.0.0"))]),
    );
    assert_eq!(folder.key("mcp__plugin_tools_files__read"), None);
    assert_eq!(
        folder.may_be("mcp__plugin_tools_files__read"),
        ["npm:evil", "npm:files"]
    );
}

/// Proves IV-6.
#[test]
fn a_name_that_was_cut_may_still_be_meant_and_is_nobodys() {
    let folder = machine("live-cut");
    let long = "the_server_of_the_department_for_files_and_folders";
    folder.write("home/ada/.claude.json", &servers(&[(long, npx("files@1.0.0"))]));
    assert!(folder.key(&format!("mcp__{long}__read")).is_some());
    for tool in [
        "mcp__the_server_of_the_departme0123456789abcdef0123456789abcdef0",
        // One of another server whose name begins as this one does.
        "mcp__the_server_of_the_department_of_nobody__delete_everything",
    ] {
        assert_eq!(folder.may_be(tool), ["npm:files"], "{tool}");
        assert_eq!(folder.key(tool), None, "{tool}");
    }
    assert!(folder.may_be("mcp__the_server_of_the__x").is_empty());
}

/// Proves IV-6.
#[test]
fn codex_is_read_in_every_folder_down_to_the_one_in_which_it_works() {
    let toml =
        |package: &str| format!("[mcp_servers.github]\ncommand = \"npx\"\nargs = [\"-y\", \"{package}\"]\n");
    let folder = machine("live-codex");
    folder.write("home/ada/.codex/config.toml", &toml(ACME));
    folder.write("home/ada/shop/web/src/main.ts", "");
    let live = || folder.live_of(Client::Codex, Some("/home/ada/shop/web/src"));
    assert!(live().resolve(&called(GITHUB)).is_some());
    let held = live();
    for place in ["home/ada/shop/web", "home/ada/shop", "home"] {
        let file = folder.write(&format!("{place}/.codex/config.toml"), &toml("evil@1.0.0"));
        assert_eq!(live().resolve(&called(GITHUB)), None, "{place}");
        assert!(!held.holds(), "{place}");
        std::fs::remove_file(file).unwrap();
    }
}

/// Proves IV-6.
#[test]
fn a_subagent_of_another_project_may_be_meant() {
    let folder = machine("live-agents");
    let own = servers(&[("github", npx(ACME))]);
    let known = own.replacen('{', r#"{"projects":{"/home/ada/evil":{}},"#, 1);
    folder.write("home/ada/.claude.json", &known);
    folder.write("home/ada/evil/README", "where the conversation began");
    assert!(folder.key(GITHUB).is_some());
    folder.write(
        "home/ada/evil/.claude/agents/a.md",
        "---\nname: a\nmcpServers:\n  - github:\n      command: npx\n      args: [-y, evil@1.0.0]\n---\n",
    );
    assert_eq!(folder.key(GITHUB), None);
    assert_eq!(folder.may_be(GITHUB), ["npm:@acme/github", "npm:evil"]);
}

/// Proves IV-6.
#[test]
fn who_looks_for_others_reads_no_project_outside_of_their_home_and_says_nothing_there() {
    let folder = machine("live-reach");
    let own = servers(&[("github", npx(ACME))]);
    folder.write("home/ada/.claude.json", &own);
    folder.write(
        "home/bob/secret/.mcp.json",
        &servers(&[("jira", npx("jira@1.0.0"))]),
    );
    folder.write("tmp/x/README", "");
    let within = |place: &str| folder.live_within(Client::ClaudeCode, Some(place), Reach::Home);
    assert!(within("/home/ada/shop").resolve(&called(GITHUB)).is_some());
    let jira = called("mcp__jira__x");
    let keys = |live: &Live, of: &Called| live.candidates(of).len();
    for place in ["/home/bob/secret", "/tmp/x", "/"] {
        let live = within(place);
        assert_eq!(
            (live.resolve(&called(GITHUB)), live.resolve(&jira)),
            (None, None),
            "{place}"
        );
        // A denied server of the home may still be the one.
        assert_eq!(
            (keys(&live, &called(GITHUB)), keys(&live, &jira)),
            (1, 0),
            "{place}"
        );
    }
    let all = folder.live_of(Client::ClaudeCode, Some("/home/bob/secret"));
    assert!(all.resolve(&jira).is_some());
    // By a link in the home, by the record of a project, and by one that is not there for who looks.
    symlink("/home/bob/secret", folder.home().join("link")).unwrap();
    assert_eq!(within("/home/ada/link").resolve(&jira), None);
    for project in ["/home/bob/secret", "/tmp/gone"] {
        let known = own.replacen('{', &format!(r#"{{"projects":{{"{project}":{{}}}},"#), 1);
        folder.write("home/ada/.claude.json", &known);
        let live = within("/home/ada/shop");
        assert_eq!(
            (live.resolve(&called(GITHUB)), live.resolve(&jira)),
            (None, None),
            "{project}"
        );
        assert_eq!(keys(&live, &jira), 0, "{project}");
    }
}

/// Proves IV-6.
#[test]
fn what_was_looked_at_is_taken_again_only_while_all_of_it_is_as_it_was() {
    let changes: [(&str, Change); 9] = [
        ("a project's file appears", |folder| {
            folder.write("home/ada/shop/.mcp.json", "{}");
        }),
        ("one above it", |folder| {
            folder.write("home/.mcp.json", "{}");
        }),
        ("the own one changes, as long as before", |folder| {
            folder.write(
                "home/ada/.claude.json",
                &servers(&[("github", npx("@evil/github@1.2.3"))]),
            );
        }),
        ("it goes", |folder| {
            std::fs::remove_file(folder.home().join(".claude.json")).unwrap();
        }),
        ("it is another file", |folder| {
            let other = folder.write("home/ada/other", &servers(&[("github", npx(ACME))]));
            std::fs::rename(other, folder.home().join(".claude.json")).unwrap();
        }),
        ("it is behind a link", |folder| {
            let file = folder.home().join(".claude.json");
            std::fs::rename(&file, folder.home().join("moved")).unwrap();
            symlink("moved", file).unwrap();
        }),
        ("what a project brings appears", |folder| {
            folder.write("home/ada/node_modules/@acme/github/package.json", "{}");
        }),
        ("a subagent appears", |folder| {
            folder.write("home/ada/.claude/agents/a.md", "---\nname: a\n---\n");
        }),
        ("the folder is another one", |folder| {
            std::fs::rename(folder.home().join("shop"), folder.home().join("old")).unwrap();
            std::fs::create_dir(folder.home().join("shop")).unwrap();
        }),
    ];
    for (what, change) in changes {
        let folder = machine("live-held");
        folder.write("home/ada/.claude.json", &servers(&[("github", npx(ACME))]));
        std::fs::create_dir_all(folder.home().join(".claude/agents")).unwrap();
        let live = folder.live_of(Client::ClaudeCode, Some("/home/ada/shop"));
        assert!(live.resolve(&called(GITHUB)).is_some(), "{what}");
        assert!(live.holds(), "{what}");
        // What lies beside it is nobody's.
        folder.write("home/ada/shop/notes", "x");
        assert!(live.holds(), "{what}");
        // A clock of files has ticks.
        std::thread::sleep(Duration::from_millis(30));
        change(&folder);
        assert!(!live.holds(), "{what}");
    }
    let folder = machine("live-young");
    let path = folder.write("home/ada/.claude.json", "{}");
    let live = folder.live_of(Client::ClaudeCode, Some("/home/ada/shop"));
    let written = std::os::unix::fs::MetadataExt::ctime(&path.metadata().unwrap()) * 1_000;
    // In the tick of its last change it may change once more and look the same; a clock behind it says nothing.
    assert!(!live.may_be_held(written - 5_000) && !live.may_be_held(written));
    assert!(live.may_be_held(written + 5_000));
}
