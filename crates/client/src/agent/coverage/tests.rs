//! A machine below a folder, with settings of clients, homes, conversations and a program that stands for this one.

use super::super::judging::tests::{Server, World, now, refusal};
use super::*;
use provost_agent::{Loop, once};
use provost_hooks::{Conversation, Mode as HookMode, command_line, hooks};
use provost_words::entropy::SystemEntropy;
use rustix::process::geteuid;
use std::os::unix::fs::PermissionsExt;

const ID: &str = "0d7c5a4e-1111-2222-3333-444455556666";
/// Says that a harmless call may run, and counts how often it was started.
const GOOD: &str = "#!/bin/sh\ncat >/dev/null\necho x >> \"$0.ran\"\necho '{}'\n";

/// A machine whose agent judges.
struct Machine {
    world: World,
    judging: Judging,
}

impl Machine {
    fn new() -> Self {
        let world = World::new();
        let root = world.path.join("machine");
        let judging = Judging::below(&root, geteuid().as_raw(), Box::new(world.clock.clone()));
        let machine = Self { world, judging };
        machine.put(
            "etc/provost/hook.toml",
            "url = \"https://provost.test\"\norganization = \"acme\"\ntoken_file = \"/nowhere\"\n",
            0o644,
        );
        machine.put("usr/local/bin/provost", GOOD, 0o755);
        machine.put(
            "usr/lib/node_modules/@anthropic-ai/claude-code/package.json",
            r#"{"name":"@anthropic-ai/claude-code","version":"2.1.331"}"#,
            0o644,
        );
        let account = format!("ada:x:{}:1000::/home/ada:/bin/sh\n", geteuid().as_raw());
        machine.put("etc/passwd", &account, 0o644);
        machine.put("etc/nsswitch.conf", "passwd: files systemd\n", 0o644);
        machine.put(
            &format!("home/ada/.claude/projects/-work/{ID}.jsonl"),
            "secret",
            0o600,
        );
        machine.registers(&Value::Null);
        machine.judging.begin(&machine.world.agent, &|_| {}).unwrap();
        machine.asks();
        machine
    }

    fn root(&self) -> PathBuf {
        self.world.path.join("machine")
    }

    fn put(&self, below: &str, text: &str, mode: u32) {
        let path = self.root().join(below);
        fs::create_dir_all(folder_of(&path)).unwrap();
        for folder in folder_of(&path).ancestors() {
            if folder.starts_with(&self.world.path) {
                fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn program(&self) -> PathBuf {
        self.root().join("usr/local/bin/provost")
    }

    fn line(&self, mode: HookMode) -> String {
        let program = self.program().display().to_string();
        command_line(&program, Client::ClaudeCode, mode, &[])
    }

    /// Registers the hook for the machine; `more` replaces members.
    fn registers(&self, more: &Value) {
        let line = self.line(HookMode::Enforce);
        let mut settings = json!({ "hooks": hooks(Client::ClaudeCode, HookMode::Enforce, &line) });
        for (name, value) in more.as_object().into_iter().flatten() {
            settings[name] = value.clone();
        }
        self.put(
            "etc/claude-code/managed-settings.json",
            &settings.to_string(),
            0o644,
        );
    }

    /// The conversation asks its hook.
    fn asks(&self) {
        self.notes(HookMode::Enforce, ID);
    }

    /// A conversation asks a hook of a mode.
    fn notes(&self, mode: HookMode, session: &str) {
        let (account, now) = (geteuid().as_raw(), self.world.clock.now());
        let fired = self.judging.fired();
        fired.heard_of(account, now);
        fired.note(account, Client::ClaudeCode, mode, session, now);
    }

    /// Makes a round, and returns what was found of Claude Code.
    fn round(&self) -> Option<ClientCoverage> {
        let guarding = Guarding::at(
            &self.judging,
            Homes::default(),
            self.root(),
            (Some(self.program()), geteuid().as_raw()),
            Box::new(self.world.clock.clone()),
        );
        guarding.begin(&self.world.agent, &|_| {}).unwrap();
        let done = now(once(&Loop {
            agent: &self.world.agent,
            door: &self.world.server,
            home: &self.world.path,
            clock: &self.world.clock,
            entropy: &SystemEntropy,
            say: &|_| {},
            stations: &[&guarding],
            stop: Arc::default(),
        }));
        done.unwrap();
        let kept = kept_coverage(&self.world.agent.folder).unwrap();
        let mut clients = kept.clients.into_iter();
        clients.find(|client| client.client == "claude_code")
    }

    fn found(&self) -> (String, Vec<String>) {
        let found = self.round().expect("Claude Code is there");
        (found.level, found.reasons)
    }

    fn is(&self, level: &str, reasons: &[&str]) {
        let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        assert_eq!(self.found(), (level.to_owned(), reasons));
    }

    /// How often the program was started.
    fn ran(&self) -> usize {
        let path = self.root().join("usr/local/bin/provost.ran");
        fs::read_to_string(path).map_or(0, |text| text.lines().count())
    }
}

fn server(machine: &Machine) -> &Server {
    &machine.world.server
}

/// Proves FH-8.
#[test]
fn an_agent_that_was_installed_and_is_not_started_with_the_machine_is_bypassable() {
    let machine = Machine::new();
    let unit = machine.root().join("etc/systemd/system/provost-agent.service");
    // A container, or another manager of services.
    machine.is("enforced", &[]);
    machine.put(
        "usr/lib/systemd/system/provost-agent.service",
        "[Service]\n",
        0o644,
    );
    machine.is("bypassable", &["service_not_enabled"]);
    machine.put(
        "etc/systemd/system/multi-user.target.wants/other.service",
        "",
        0o644,
    );
    machine.is("bypassable", &["service_not_enabled"]);
    let wants = machine
        .root()
        .join("etc/systemd/system/multi-user.target.wants/provost-agent.service");
    std::os::unix::fs::symlink("/usr/lib/systemd/system/provost-agent.service", &wants).unwrap();
    machine.is("enforced", &[]);
    // Masked, whoever wants it.
    std::os::unix::fs::symlink("/dev/null", &unit).unwrap();
    machine.is("bypassable", &["service_not_enabled"]);
    fs::remove_file(&unit).unwrap();
    machine.is("enforced", &[]);
    // Taken away while the agent works.
    fs::remove_file(&wants).unwrap();
    fs::remove_file(
        machine
            .root()
            .join("usr/lib/systemd/system/provost-agent.service"),
    )
    .unwrap();
    machine.is("bypassable", &["service_not_enabled"]);
}

/// Proves FH-6, FH-8.
#[test]
fn a_conversation_that_was_written_while_no_agent_worked_is_told_for_a_day() {
    let machine = Machine::new();
    machine.is("enforced", &[]);
    let stopped = machine.world.clock.now();
    let file = machine
        .root()
        .join(format!("home/ada/.claude/projects/-work/{ID}.jsonl"));
    let written = |at: Timestamp| {
        let since = Duration::from_millis(at.as_ms().unsigned_abs());
        let file = fs::File::options().append(true).open(&file).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + since).unwrap();
    };
    // The last look was a round before its end.
    written(stopped.plus_secs(590));
    machine.world.clock.pass(3_600);
    machine.is("enforced", &[]);
    written(stopped.plus_secs(3_600 + 1_800));
    machine.world.clock.pass(3_600);
    machine.is("bypassable", &["agent_was_silent"]);
    machine.world.clock.pass(300);
    machine.is("bypassable", &["agent_was_silent"]);
    machine.world.clock.pass(86_400);
    machine.asks();
    machine.is("enforced", &[]);
}

/// Proves FH-8.
#[test]
fn a_hook_that_was_preloaded_proves_no_refusal_for_a_day() {
    let machine = Machine::new();
    machine
        .judging
        .fired()
        .preloaded(Client::ClaudeCode, machine.world.clock.now());
    machine.is("observed", &["hook_preloaded"]);
    machine
        .judging
        .fired()
        .preloaded(Client::Codex, machine.world.clock.now());
    machine.world.clock.pass(86_401);
    machine.asks();
    machine.is("enforced", &[]);
}

/// Proves FH-1, FH-6.
#[test]
fn what_is_registered_in_effect_executed_and_fires_is_enforced_and_is_told_once() {
    let machine = Machine::new();
    server(&machine).says("/coverage", 200, &json!({ "now": "2026-11-27T10:00:00.000Z" }));
    machine.is("enforced", &[]);
    assert_eq!(machine.ran(), 1);
    let told = server(&machine).told("/coverage");
    let said = &told[0]["clients"][0];
    assert_eq!(
        (
            &said["client"],
            &said["clientVersion"],
            &said["level"],
            &said["basis"]
        ),
        (
            &json!("claude_code"),
            &json!("2.1.331"),
            &json!("enforced"),
            &json!("measured")
        )
    );
    assert!(said["executedAt"].is_string() && said["firedAt"].is_string());
    // Nothing of a person stands in it.
    let text = told[0].to_string();
    for private in [ID, "ada", "home", "projects", "work", "secret"] {
        assert!(!text.contains(private), "{private}: {text}");
    }
    for _ in 0..5 {
        machine.world.clock.pass(300);
        machine.is("enforced", &[]);
    }
    assert_eq!((machine.ran(), server(&machine).told("/coverage").len()), (1, 1));
    // What changed is told once more when the server's hour between two drops is over, and then every six hours.
    machine.world.clock.pass(3_660 - 1_500);
    for _ in 0..71 {
        machine.is("enforced", &[]);
        machine.world.clock.pass(300);
    }
    assert_eq!((machine.ran(), server(&machine).told("/coverage").len()), (1, 2));
    machine.world.clock.pass(300);
    machine.is("enforced", &[]);
    assert_eq!((machine.ran(), server(&machine).told("/coverage").len()), (1, 3));
    // The next day the line is executed again.
    machine.world.clock.pass(18 * 3_600);
    machine.asks();
    machine.is("enforced", &[]);
    assert_eq!(machine.ran(), 2);
}

/// Proves FH-6.
///
/// Within two rounds, and told at the second.
#[test]
fn a_conversation_that_asks_nothing_is_noticed_within_two_rounds() {
    let machine = Machine::new();
    server(&machine).says("/coverage", 200, &json!({}));
    machine.is("enforced", &[]);
    let silent = "ffffffff-1111-2222-3333-444455556666";
    machine.put(
        &format!("home/ada/.claude/projects/-work/{silent}.jsonl"),
        "",
        0o600,
    );
    machine.is("enforced", &[]);
    machine.world.clock.pass(300);
    machine.is("observed", &["session_without_events"]);
    let told = server(&machine).told("/coverage");
    assert_eq!(
        (told.len(), &told[1]["clients"][0]["level"]),
        (2, &json!("observed"))
    );
    // A person's own hook that looks on asks, and the machine's does not.
    machine.notes(HookMode::Monitor, silent);
    machine.is("observed", &["session_without_events"]);
    // It asks after all.
    machine.notes(HookMode::Enforce, silent);
    machine.is("enforced", &[]);
    // A name that nobody understands, and a home that is hidden, prove nothing.
    machine.put("home/ada/.claude/projects/-work/talk.jsonl", "", 0o600);
    machine.is("bypassable", &["sessions_unseen"]);
    fs::remove_file(machine.root().join("home/ada/.claude/projects/-work/talk.jsonl")).unwrap();
    machine.is("enforced", &[]);
    let account = geteuid().as_raw();
    let accounts = format!(
        "ada:x:{account}:1::/home/ada:/bin/sh\nbob:x:1000:1::/hidden/bob:/bin/sh\nd:x:2:2::/d:/bin/sh\n"
    );
    machine.put("etc/passwd", &accounts, 0o644);
    machine.is("bypassable", &["sessions_unseen"]);
    // Of an account whose home is gone it is known that nothing is there.
    machine.put("hidden/carol/x", "", 0o644);
    machine.is("enforced", &[]);
}

/// Proves FH-6.
///
/// A client whose folder lies elsewhere: by what its own hook says of a conversation, and by what sets environments on the machine.
#[test]
fn a_client_that_keeps_its_conversations_elsewhere_is_not_enforced() {
    let machine = Machine::new();
    let (account, root) = (geteuid().as_raw(), machine.root());
    let keeps = |session: &str, path: PathBuf| {
        let of = Conversation {
            session: session.to_owned(),
            path: Some(path.display().to_string()),
        };
        let now = machine.world.clock.now();
        machine
            .judging
            .fired()
            .keeps(account, Client::ClaudeCode, &of, now);
    };
    keeps(ID, root.join("home/ada/.claude/projects/-work/x.jsonl"));
    keeps("provost-hook-doctor", "/dev/null".into());
    machine.is("enforced", &[]);
    keeps(ID, "/data/claude/projects/-work/x.jsonl".into());
    machine.is("bypassable", &["configuration_elsewhere"]);
    // It is forgotten with the conversation.
    machine.world.clock.pass(2 * 86_400 + 1);
    machine.asks();
    machine.put(
        &format!("home/ada/.claude/projects/-work/{ID}.jsonl"),
        "secret",
        0o600,
    );
    machine.is("enforced", &[]);
    for (file, text, level) in [
        (
            "etc/environment",
            "CLAUDE_CONFIG_DIR=/data/claude\n",
            "bypassable",
        ),
        ("etc/environment", "GEMINI_CLI_HOME=/data\n", "enforced"),
        ("etc/environment", "LANG=C\nCODEX_HOME=/data/codex\n", "enforced"),
        (
            "etc/profile.d/ai.sh",
            "export CLAUDE_CONFIG_DIR=$HOME/.config/claude\n",
            "bypassable",
        ),
        ("etc/profile.d/ai.sh", "true\n", "enforced"),
        (
            "etc/environment.d/70-ai.conf",
            "CLAUDE_CONFIG_DIR=/data/claude\n",
            "bypassable",
        ),
    ] {
        machine.put(file, text, 0o644);
        let reasons: &[&str] = if level == "enforced" {
            &[]
        } else {
            &["configuration_elsewhere"]
        };
        machine.is(level, reasons);
    }
}

/// Proves FH-6.
///
/// Somebody whom the file of accounts does not know: by the source of accounts, by a folder, by a question.
#[test]
fn a_machine_on_which_somebody_may_be_whom_nobody_looked_at_is_not_enforced() {
    let machine = Machine::new();
    machine.is("enforced", &[]);
    machine.put("etc/nsswitch.conf", "passwd: files sss\n", 0o644);
    machine.is("bypassable", &["sessions_unseen"]);
    machine.put("etc/nsswitch.conf", "passwd: files systemd\n", 0o644);
    machine.put("etc/userdb/lena.user", "{}", 0o644);
    machine.is("bypassable", &["sessions_unseen"]);
    fs::remove_dir_all(machine.root().join("etc/userdb")).unwrap();
    machine.is("enforced", &[]);
    // What lies in a folder among homes is looked at, whosever account made it.
    machine.put("home/old/.claude/remote-settings.json", "{}", 0o600);
    machine.is("observed", &["managed_elsewhere"]);
    fs::remove_dir_all(machine.root().join("home/old")).unwrap();
    let silent = "ffffffff-1111-2222-3333-444455556666";
    machine.put(
        &format!("home/old/.claude/projects/-work/{silent}.jsonl"),
        "",
        0o600,
    );
    machine.is("enforced", &[]);
    machine.world.clock.pass(300);
    machine.is("observed", &["session_without_events"]);
    machine.notes(HookMode::Enforce, silent);
    machine.is("enforced", &[]);
    let now = machine.world.clock.now();
    machine.judging.fired().heard_of(1_234_600_001, now);
    machine.is("bypassable", &["sessions_unseen"]);
}

/// Proves FH-6.
///
/// Another home of the same account keeps nobody's silence from counting.
#[test]
fn two_homes_of_one_account_are_looked_at_together() {
    let machine = Machine::new();
    let account = geteuid().as_raw();
    let accounts = format!("ada:x:{account}:1::/home/ada:/bin/sh\ntoor:x:{account}:1::/home/toor:/bin/sh\n");
    machine.put("etc/passwd", &accounts, 0o644);
    machine.put("home/toor/x", "", 0o644);
    let silent = "ffffffff-1111-2222-3333-444455556666";
    machine.put(
        &format!("home/ada/.claude/projects/-work/{silent}.jsonl"),
        "",
        0o600,
    );
    machine.is("enforced", &[]);
    machine.world.clock.pass(300);
    machine.is("observed", &["session_without_events"]);
}

/// Proves FH-6.
///
/// Each file and each folder that decides is root's alone, and what the client does not read decides nothing.
#[test]
fn what_others_could_write_is_no_registration_of_the_machine_and_a_hidden_part_is_none() {
    let machine = Machine::new();
    let part = "etc/claude-code/managed-settings.d/10.json";
    let chmod = |below: &str, mode: u32| {
        fs::set_permissions(machine.root().join(below), fs::Permissions::from_mode(mode)).unwrap();
    };
    machine.put(part, "{}", 0o644);
    machine.is("enforced", &[]);
    chmod(part, 0o666);
    machine.is("observed", &["person_registration"]);
    chmod(part, 0o644);
    for folder in ["etc/claude-code/managed-settings.d", "etc/claude-code"] {
        chmod(folder, 0o777);
        machine.is("observed", &["person_registration"]);
        chmod(folder, 0o755);
        machine.is("enforced", &[]);
    }
    // Also where it is empty.
    fs::remove_file(machine.root().join(part)).unwrap();
    chmod("etc/claude-code/managed-settings.d", 0o777);
    machine.is("observed", &["person_registration"]);
    chmod("etc/claude-code/managed-settings.d", 0o755);
    machine.is("enforced", &[]);
    // One that leads to where others write.
    machine.put("open/20.json", "{}", 0o644);
    chmod("open", 0o777);
    let way = machine.root().join("etc/claude-code/managed-settings.d/20.json");
    std::os::unix::fs::symlink(machine.root().join("open/20.json"), &way).unwrap();
    machine.is("observed", &["person_registration"]);
    fs::remove_file(&way).unwrap();
    // The client reads none that is hidden: what switches hooks off there does not, and what registers them there does not either.
    machine.put(
        "etc/claude-code/managed-settings.d/.10.json",
        r#"{"disableAllHooks":true}"#,
        0o644,
    );
    machine.is("enforced", &[]);
    let whole = fs::read_to_string(machine.root().join("etc/claude-code/managed-settings.json")).unwrap();
    machine.put("etc/claude-code/managed-settings.d/.10.json", &whole, 0o644);
    machine.registers(&json!({ "hooks": {} }));
    machine.is("none", &["not_registered"]);
    // A registration of a part alone is as good as that of the file.
    fs::remove_file(machine.root().join("etc/claude-code/managed-settings.json")).unwrap();
    machine.put("etc/claude-code/managed-settings.d/10.json", &whole, 0o644);
    machine.is("enforced", &[]);
}

/// Proves FH-6.
#[test]
fn files_that_switch_hooks_of_codex_on_and_off_are_roots_as_well() {
    let machine = Machine::new();
    let program = machine.program().display().to_string();
    let line = command_line(&program, Client::Codex, HookMode::Enforce, &[]);
    let hooks = hooks(Client::Codex, HookMode::Enforce, &line);
    machine.put(
        "usr/lib/node_modules/@openai/codex/package.json",
        r#"{"name":"@openai/codex","version":"0.130.0"}"#,
        0o644,
    );
    let text = toml::to_string(&json!({ "hooks": hooks })).unwrap();
    machine.put("etc/codex/requirements.toml", &text, 0o644);
    machine.put("etc/codex/config.toml", "model = \"x\"\n", 0o644);
    let codex = || {
        machine.round();
        let kept = kept_coverage(&machine.world.agent.folder).unwrap();
        let found = kept.clients.into_iter().find(|client| client.client == "codex");
        found.map(|found| (found.level, found.reasons)).unwrap()
    };
    let before = codex();
    assert!(
        !before.1.contains(&"person_registration".to_owned()),
        "{before:?}"
    );
    for name in ["config.toml", "managed_config.toml"] {
        let below = format!("etc/codex/{name}");
        machine.put(&below, "model = \"x\"\n", 0o666);
        let found = codex();
        assert!(
            found.1.contains(&"person_registration".to_owned()),
            "{name}: {found:?}"
        );
        machine.put(&below, "model = \"x\"\n", 0o644);
    }
    assert_eq!(codex(), before);
}

/// Proves FH-6, FH-8.
#[test]
fn both_files_of_the_machine_count_for_gemini_and_its_conversations_are_seen() {
    let machine = Machine::new();
    let program = machine.program().display().to_string();
    let line = command_line(&program, Client::Gemini, HookMode::Enforce, &[]);
    let hooks = hooks(Client::Gemini, HookMode::Enforce, &line);
    machine.put(
        "usr/lib/node_modules/@google/gemini-cli/package.json",
        r#"{"name":"@google/gemini-cli","version":"0.61.0"}"#,
        0o644,
    );
    let settings = json!({ "hooks": hooks }).to_string();
    machine.put("etc/gemini-cli/settings.json", &settings, 0o644);
    let gemini = || {
        machine.round();
        let kept = kept_coverage(&machine.world.agent.folder).unwrap();
        let found = kept
            .clients
            .into_iter()
            .find(|client| client.client == "gemini_cli");
        found.map(|found| (found.level, found.reasons)).unwrap()
    };
    let before = gemini();
    let has = |found: &(String, Vec<String>), reason: &str| found.1.iter().any(|one| one == reason);
    assert!(
        has(&before, "gap_environment") && has(&before, "gap_person_settings"),
        "{before:?}"
    );
    assert!(!has(&before, "person_registration"), "{before:?}");
    let defaults = "etc/gemini-cli/system-defaults.json";
    machine.put(defaults, "{}", 0o666);
    let found = gemini();
    assert!(has(&found, "person_registration"), "{found:?}");
    for off in [json!({ "enabled": false }), json!({ "disabled": ["provost"] })] {
        machine.put(defaults, &json!({ "hooksConfig": off }).to_string(), 0o644);
        assert_eq!(gemini().1, ["hooks_disabled"], "{off}");
    }
    machine.put(defaults, "{}", 0o644);
    assert_eq!(gemini(), before);
    let silent = "home/ada/.gemini/tmp/work/chats/session-2026-11-29T11-13-d5ee2e4a.jsonl";
    machine.put(silent, "secret", 0o600);
    gemini();
    machine.world.clock.pass(300);
    let found = gemini();
    assert!(has(&found, "session_without_events"), "{found:?}");
    machine.put("etc/environment", "GEMINI_CLI_HOME=/data\n", 0o644);
    let found = gemini();
    assert!(has(&found, "configuration_elsewhere"), "{found:?}");
}

/// Proves FH-6, FH-8.
#[test]
fn what_is_taken_out_of_the_settings_is_noticed_in_the_next_round() {
    let machine = Machine::new();
    machine.is("enforced", &[]);
    machine.registers(&json!({ "disableAllHooks": true }));
    machine.is("none", &["hooks_disabled"]);
    machine.registers(&json!({ "hooks": {} }));
    machine.is("none", &["not_registered"]);
    machine.put("etc/claude-code/managed-settings.json", "{", 0o644);
    machine.is("none", &["registration_unreadable"]);
    machine.registers(&Value::Null);
    machine.is("enforced", &[]);
    // A part that stands over it counts, and whoever can write the file is not root alone.
    machine.put(
        "etc/claude-code/managed-settings.d/10.json",
        r#"{"disableAllHooks":true}"#,
        0o644,
    );
    machine.is("none", &["hooks_disabled"]);
    machine.put("etc/claude-code/managed-settings.d/10.json", "[]", 0o644);
    machine.is("none", &["registration_unreadable"]);
    fs::remove_dir_all(machine.root().join("etc/claude-code/managed-settings.d")).unwrap();
    let path = machine.root().join("etc/claude-code/managed-settings.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    machine.is("observed", &["person_registration"]);
    machine.registers(&Value::Null);
    // The client may take its settings from elsewhere; the version may be another one.
    machine.put("home/ada/.claude/remote-settings.json", "{}", 0o600);
    machine.is("observed", &["managed_elsewhere"]);
    fs::remove_file(machine.root().join("home/ada/.claude/remote-settings.json")).unwrap();
    machine.put("home/ada/.local/share/claude/versions/2.1.100", "", 0o755);
    fs::create_dir_all(machine.root().join("home/ada/.local/bin")).unwrap();
    let link = machine.root().join("home/ada/.local/bin/claude");
    std::os::unix::fs::symlink("../share/claude/versions/2.1.100", &link).unwrap();
    let found = machine.round().unwrap();
    assert_eq!(found.version.as_deref(), Some("2.1.100"));
    machine.is("observed", &["version_too_old"]);
    fs::remove_file(&link).unwrap();
    // Claude Code's own place counts, and what an editor's extension brings has no version that is known.
    machine.put(
        "home/ada/.claude/local/node_modules/@anthropic-ai/claude-code/package.json",
        r#"{"name":"@anthropic-ai/claude-code","version":"1.0.50"}"#,
        0o644,
    );
    machine.is("observed", &["version_too_old"]);
    fs::remove_dir_all(machine.root().join("home/ada/.claude/local")).unwrap();
    machine.put(
        "home/ada/.vscode/extensions/anthropic.claude-code-2.1.331-linux-x64/package.json",
        "{}",
        0o644,
    );
    machine.is("observed", &["version_unknown"]);
    fs::remove_dir_all(machine.root().join("home/ada/.vscode")).unwrap();
    fs::remove_dir_all(machine.root().join("usr/lib")).unwrap();
    machine.is("observed", &["version_unknown"]);
    assert_eq!(machine.ran(), 1, "once a day, whatever else changes");
}

/// Proves FH-1, AG-1.
#[test]
fn no_program_is_started_but_this_one_by_the_line_that_an_installation_writes() {
    let machine = Machine::new();
    machine.is("enforced", &[]);
    // Another program, another line around ours, another place to ask.
    machine.put("usr/local/bin/other", GOOD, 0o755);
    let other = machine.root().join("usr/local/bin/other").display().to_string();
    let ours = machine.line(HookMode::Enforce);
    let elsewhere = command_line(
        &machine.program().display().to_string(),
        Client::ClaudeCode,
        HookMode::Enforce,
        &["--config", "/tmp/x"],
    );
    for (line, reasons) in [
        (
            command_line(&other, Client::ClaudeCode, HookMode::Enforce, &[]),
            &["program_other", "not_executed"][..],
        ),
        (
            format!("touch {}/x; {ours}", machine.root().display()),
            &["registration_changed", "program_other", "not_executed"],
        ),
        (
            elsewhere,
            &["registration_changed", "program_other", "not_executed"],
        ),
    ] {
        let hooks = hooks(Client::ClaudeCode, HookMode::Enforce, &line);
        machine.registers(&json!({ "hooks": hooks }));
        machine.is("observed", reasons);
    }
    assert!(!machine.root().join("x").exists() && !machine.root().join("usr/local/bin/other.ran").exists());
    assert_eq!(machine.ran(), 1);
    // One that others can change, or that nobody can start, is not started either.
    machine.registers(&Value::Null);
    for mode in [0o777, 0o644] {
        fs::set_permissions(machine.program(), fs::Permissions::from_mode(mode)).unwrap();
        machine.is("observed", &["program_open", "not_executed"]);
    }
    assert_eq!(machine.ran(), 1);
    // A way to it on which somebody else could put another one is no way, whatever it leads to now.
    fs::set_permissions(machine.program(), fs::Permissions::from_mode(0o755)).unwrap();
    machine.put("open/x", "", 0o644);
    let (open, way) = (
        machine.root().join("open"),
        machine.root().join("usr/local/bin/linked"),
    );
    std::os::unix::fs::symlink(machine.program(), open.join("provost")).unwrap();
    std::os::unix::fs::symlink(open.join("provost"), &way).unwrap();
    let line = command_line(
        &way.display().to_string(),
        Client::ClaudeCode,
        HookMode::Enforce,
        &[],
    );
    machine.registers(&json!({ "hooks": hooks(Client::ClaudeCode, HookMode::Enforce, &line) }));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    machine.is("observed", &["program_open", "not_executed"]);
    assert_eq!(machine.ran(), 1);
    machine.registers(&Value::Null);
    // A line that falls silent is found out by starting it: its end alone speaks.
    machine.put("usr/local/bin/provost", "#!/bin/sh\nexit 1\n", 0o755);
    machine.is("observed", &["execution_failed"]);
    machine.put(
        "usr/local/bin/provost",
        "#!/bin/sh\necho 'provost: the token cannot be read' >&2\nexit 2\n",
        0o755,
    );
    machine.is("enforced", &[]);
    machine.put("usr/local/bin/provost", "#!/bin/sh\necho 'no json'\n", 0o755);
    machine.is("observed", &["execution_failed"]);
    machine.put("usr/local/bin/provost", GOOD, 0o755);
    machine.is("observed", &["not_executed"]);
    assert_eq!(machine.ran(), 1, "four times a day and no more");
}

#[test]
fn an_earlier_server_and_one_that_is_away_lose_nothing() {
    let machine = Machine::new();
    for status in [404, 405] {
        server(&machine).says("/coverage", status, &refusal("not_found"));
        machine.is("enforced", &[]);
    }
    server(&machine).says("/coverage", 503, &refusal("unavailable"));
    machine.is("enforced", &[]);
    server(&machine).says("/coverage", 200, &json!({}));
    machine.is("enforced", &[]);
    let told = server(&machine).told("/coverage").len();
    machine.is("enforced", &[]);
    assert_eq!(server(&machine).told("/coverage").len(), told, "it was taken");
}

/// Proves FH-6.
#[test]
fn an_agent_that_hears_of_no_hook_proves_less() {
    let machine = Machine::new();
    machine.is("enforced", &[]);
    machine.put(
        "etc/provost/hook.toml",
        "url = \"https://other.test\"\norganization = \"acme\"\ntoken_file = \"/nowhere\"\n",
        0o644,
    );
    machine.is("bypassable", &["events_unheard"]);
    // The desk is closed, as while an agent makes one round.
    let apart = Machine::new();
    apart.judging.retire(&apart.world.agent).unwrap();
    apart.is("bypassable", &["events_unheard"]);
}

#[test]
fn a_client_that_is_not_there_is_not_told_of_and_one_of_documents_is_never_enforced() {
    let machine = Machine::new();
    fs::create_dir_all(machine.root().join("home/ada/.cursor")).unwrap();
    machine.round();
    let kept = kept_coverage(&machine.world.agent.folder).unwrap();
    let told: Vec<(&str, &str, Basis)> = kept
        .clients
        .iter()
        .map(|client| (client.client.as_str(), client.level.as_str(), client.basis))
        .collect();
    assert_eq!(
        told,
        [
            ("claude_code", "enforced", Basis::Measured),
            ("cursor", "none", Basis::Documents)
        ]
    );
    let findings = findings(&machine.world.agent);
    assert!(findings.iter().all(|finding| finding.good), "{findings:?}");
    assert!(findings[0].says.contains("claude_code is enforced"));
    let shown = status(&machine.world.agent).unwrap();
    assert_eq!(shown["clients"][1]["reasons"], json!(["no_adapter"]));
    machine.registers(&json!({ "disableAllHooks": true }));
    machine.round();
    let found = super::findings(&machine.world.agent);
    assert!(!found[0].good && found[0].fix.as_ref().unwrap().contains("hooks_disabled"));
}
