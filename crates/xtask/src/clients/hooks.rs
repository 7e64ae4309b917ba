//! Whether the hook stops real agents: Claude Code, Codex and Gemini CLI of pinned versions, a model that is a script and asks for one
//! command that removes a file, a real server, and everything that can fail between them.
//!
//! What is looked at is the file: a client that lets the call run when its hook fails removes it, whatever it says. Each client runs first
//! without a hook, and through one that allows the call, so that a file that stays proves something.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::terminal::{CLAUDE, CODEX};
use super::{Scene, install};
use crate::failure::{Context, Failure, Outcome};
use crate::process;

const GEMINI: &str = "@google/gemini-cli/bundle/gemini.js";
pub(super) const USER: &str = "ada@acme.example";
/// The files of `/etc` that a program needs to know who it is.
pub(super) const OF_ETC: [&str; 4] = ["passwd", "group", "hosts", "nsswitch.conf"];

/// A client, and whose settings have its hook.
struct Client {
    word: &'static str,
    flags: &'static [&'static str],
    /// What the model asks the shell for, with the file behind it. Codex refuses `rm -f` of its own accord.
    command: &'static str,
}

const CLIENTS: [Client; 4] = [
    Client {
        word: "claude-code",
        flags: &[],
        command: "rm -rf",
    },
    Client {
        word: "claude-code",
        flags: &["--system"],
        command: "rm -rf",
    },
    Client {
        word: "codex",
        flags: &["--system"],
        command: "rm -r",
    },
    Client {
        word: "gemini",
        flags: &["--system"],
        command: "rm -rf",
    },
];

/// What is between the client and its server.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    /// No hook at all.
    Nothing,
    /// A hook of this mode, and the real server.
    Hook(&'static str),
    /// A server that behaves like this.
    StandIn(&'static str),
    /// A program that is not there.
    MissingProgram,
    /// A program that kills itself.
    KilledProgram,
    /// A token that nobody has.
    DeadToken,
}

/// A row: its name, what is between, whether the policy is about the command, and whether the command must have run.
const ROWS: [(&str, Between, bool, bool); 12] = [
    ("without a hook", Between::Nothing, true, true),
    ("allowed", Between::Hook("enforce"), false, true),
    ("blocked by a policy", Between::Hook("enforce"), true, false),
    ("blocked in monitor", Between::Hook("monitor"), true, true),
    ("server killed", Between::StandIn("gone"), false, false),
    ("server slow", Between::StandIn("slow"), false, false),
    ("server says garbage", Between::StandIn("garbage"), false, false),
    ("server says half of it", Between::StandIn("half"), false, false),
    ("server's disk full", Between::StandIn("full"), false, false),
    ("program missing", Between::MissingProgram, false, false),
    ("program killed", Between::KilledProgram, false, false),
    ("token dead", Between::DeadToken, false, false),
];

pub fn run(scene: &Scene<'_>) -> Outcome {
    let mut administrator = scene.administrator();
    administrator.post(
        "content-policies",
        json!({ "definition": { "id": "no-rm", "name": "no rm -r", "action": "block", "message": "ask the platform team first",
            "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
            "conditions": { "field": "tool.input.command", "op": "contains", "value": "rm -r" } } }),
    )?;
    let token = administrator
        .account("hooks", "operator", &["policies:decide"])?
        .token;
    let mut wrong = Vec::new();
    for client in &CLIENTS {
        let whose = if client.flags.is_empty() {
            "a person's settings"
        } else {
            "the machine's settings"
        };
        println!("    {} by {whose}", client.word);
        for (place, row) in ROWS.iter().enumerate() {
            let folder = scene
                .folder
                .join(format!("{}{}-{place}", client.word, client.flags.concat()));
            let ran = tried(scene, client, row, &token, &folder).context(row.0)?;
            let is_right = ran == row.3;
            let word = if ran { "ran" } else { "did not run" };
            println!(
                "      {}: the call {word}{}",
                row.0,
                if is_right { "" } else { ", which is WRONG" }
            );
            if !is_right {
                wrong.push(format!("{} by {whose}, {}", client.word, row.0));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("wrong: {}", wrong.join("; "))))
}

/// Lets the model ask for the command, and says whether it ran.
fn tried(
    scene: &Scene<'_>,
    client: &Client,
    (_, between, is_guarded, _): &(&str, Between, bool, bool),
    token: &str,
    folder: &Path,
) -> Outcome<bool> {
    let victim = put_place(folder)?;
    let home = folder.join("home");
    let dead = matches!(between, Between::DeadToken);
    write(
        &home.join("hook.token"),
        if dead { "provost_nobody" } else { token },
        0o600,
    )?;
    registered(scene, client, *between, folder)?;
    let command = if *is_guarded { client.command } else { "unlink" };
    let words = program(scene, client.word);
    let mut asked = json!({
        "client": client.word, "program": words, "place": folder, "victim": victim,
        "command": format!("{command} {}", victim.display()),
        "only_tools": !matches!(between, Between::Hook(_)),
    });
    if let Between::StandIn(behaviour) = between {
        asked["stand_in"] = json!(behaviour);
    }
    let said = called(&asked)?;
    said["ran"].as_bool().context(format_args!("no answer in {said}"))
}

/// Makes the home, the `/etc` and the working folder of a machine, and returns the file in it that a call takes away.
pub(super) fn put_place(folder: &Path) -> Outcome<PathBuf> {
    let (etc, work) = (folder.join("etc"), folder.join("work"));
    for folder in [&folder.join("home"), &etc, &work] {
        std::fs::create_dir_all(folder).context("cannot make a place")?;
    }
    for name in OF_ETC {
        let text = std::fs::read_to_string(Path::new("/etc").join(name)).unwrap_or_default();
        write(&etc.join(name), &text, 0o644)?;
    }
    // No name can be looked up: nothing but the model and the server is reached.
    write(&etc.join("resolv.conf"), "", 0o644)?;
    let victim = work.join("victim");
    write(&victim, "x", 0o644)?;
    Ok(victim)
}

/// Returns the words that start a client.
pub(super) fn program(scene: &Scene<'_>, client: &str) -> Vec<String> {
    let program = match client {
        "claude-code" => scene.tools.command(CLAUDE),
        "codex" => scene.tools.command(CODEX),
        _ => scene.tools.hook_client(GEMINI),
    };
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Installs the hook as a person does.
fn registered(scene: &Scene<'_>, client: &Client, between: Between, folder: &Path) -> Outcome {
    let wrapper = folder.join("program");
    let mode = match between {
        Between::Nothing => return Ok(()),
        Between::Hook(mode) => mode,
        _ => "enforce",
    };
    if between == Between::KilledProgram {
        write(&wrapper, "#!/bin/sh\nkill -9 $$\n", 0o755)?;
    }
    let mut install = Command::new(&scene.installation.binary);
    install
        .args([
            "hook",
            "install",
            client.word,
            "--mode",
            mode,
            "--user",
            USER,
            "--token-file",
        ])
        .arg(folder.join("home/hook.token"))
        .args(client.flags);
    if client.flags.contains(&"--system") {
        install.arg("--root").arg(folder);
    }
    if matches!(between, Between::MissingProgram | Between::KilledProgram) {
        install.arg("--program").arg(&wrapper);
    }
    if between == Between::DeadToken {
        install.arg("--unchecked");
    }
    process::without_settings(&mut install);
    install
        .env("HOME", folder.join("home"))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("CLAUDE_CONFIG_DIR")
        .env("PROVOST_URL", scene.origin())
        .env("PROVOST_ORGANIZATION", &scene.bootstrap.organization);
    process::output(&mut install).map(drop)
}

pub(super) fn called(asked: &Value) -> Outcome<Value> {
    let mut python = Command::new("python3");
    python.arg(script()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().context("the clients need Python 3")?;
    let input = child.stdin.take().context("a script without input")?;
    serde_json::to_writer(input, asked).context("a script does not listen")?;
    let output = child.wait_with_output().context("cannot wait for a script")?;
    serde_json::from_slice(&output.stdout).context(format_args!("the script ended with {}", output.status))
}

pub(super) fn script() -> PathBuf {
    install::sources().join("hooks/call.py")
}

pub(super) fn write(path: &Path, text: &str, mode: u32) -> Outcome {
    std::fs::write(path, text).context(format_args!("cannot write {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).context("cannot set who may read")
}
