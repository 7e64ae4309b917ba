//! What the agent says of how far a client is guarded, beside what the client really does: registered and run, switched off by a person, taken
//! out of the settings, and in again while a conversation was held without it.
//!
//! Settings of a person switch the machine's hooks of Gemini CLI off, and the agent of the machine reads no settings of people: it says of the client that
//! there is this way around, before and while somebody goes it, and of a conversation that was held so that it asked nothing.
//!
//! ```text
//! the client asks for a blocked call ──► did the file stay?      the agent looks, twice ──► what does it say?
//! ```

use std::time::Duration;

use serde_json::{Value, json};

use super::device::{Device, OVER, Start};
use super::{Client, People};
use crate::clients::Scene;
use crate::clients::hooks::{called, program, write};
use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

/// How long a conversation may have asked nothing before that counts, with room.
const BETWEEN_LOOKS: Duration = Duration::from_secs(125);
const READY: Duration = Duration::from_mins(1);

/// What is done to a client's settings before it runs.
struct Step {
    name: &'static str,
    change: Change,
    /// Whether a call that a policy blocks runs then, by the machine's settings, by a person's, and by the machine's of Gemini CLI.
    runs: [bool; 3],
    /// What the agent says then, likewise: the level, and reasons that must be among those that it names. Absent where there is no such step.
    says: [Option<(&'static str, &'static [&'static str])>; 3],
}

#[derive(Clone, Copy, PartialEq)]
enum Change {
    Nothing,
    /// A person switches hooks off in settings of their own.
    SwitchedOff,
    /// A person switches this hook off by its name.
    LeftOut,
    TakenOut,
    PutBack,
}

const PERSON: &[&str] = &["person_registration", "person_agent"];

/// What is known of Gemini CLI, where nothing else is missing.
const GAPS: &[&str] = &["gap_environment", "gap_person_settings"];

const STEPS: [Step; 5] = [
    Step {
        name: "registered",
        change: Change::Nothing,
        runs: [false, false, false],
        says: [
            Some(("enforced", &[])),
            Some(("observed", PERSON)),
            Some(("bypassable", GAPS)),
        ],
    },
    Step {
        name: "switched off by the person",
        change: Change::SwitchedOff,
        runs: [false, true, true],
        says: [
            Some(("enforced", &[])),
            Some(("none", &["hooks_disabled"])),
            Some(("bypassable", GAPS)),
        ],
    },
    Step {
        name: "left out by its name by the person",
        change: Change::LeftOut,
        runs: [false, false, true],
        says: [None, None, Some(("observed", &["session_without_events"]))],
    },
    Step {
        name: "taken out of the settings",
        change: Change::TakenOut,
        runs: [true, true, true],
        says: [Some(("none", &["not_registered"])); 3],
    },
    Step {
        name: "put back, after a conversation without it",
        change: Change::PutBack,
        runs: [false, false, false],
        says: [Some(("observed", &["session_without_events"])); 3],
    },
];

pub fn run(scene: &Scene<'_>, clients: &[&Client], people: &People) -> Outcome {
    let mut wrong = Vec::new();
    for client in clients {
        let whose = match client.word {
            "gemini" => 2,
            _ => usize::from(!client.is_of_the_machine),
        };
        let column = format!("{} by {} settings", client.word, client.whose());
        let mut device = Device::make(scene, client, "enforce", people)?;
        is_installed(scene, client, &device)?;
        for step in &STEPS {
            let Some((wanted, among)) = step.says[whose] else {
                continue;
            };
            step.apply(scene, client, &device)?;
            device.start(&Start::default())?;
            device.wait_until_it_judges()?;
            let ran = runs(scene, client, &device, step)?;
            if matches!(step.change, Change::LeftOut | Change::PutBack) {
                // The conversation that was held without it is seen at two looks.
                looked(scene, client, &mut device)?;
                std::thread::sleep(BETWEEN_LOOKS);
            }
            let said = looked(scene, client, &mut device)?;
            let level = said["level"].as_str().unwrap_or_default().to_owned();
            let reasons = said["reasons"].to_string();
            let at_server = device.coverage_at_server(scene, client)?;
            let word = if ran { "ran" } else { "did not run" };
            println!(
                "    {column}, {}: a blocked call {word}; {level} {reasons}",
                step.name
            );
            let has_reasons = among.iter().all(|reason| reasons.contains(reason));
            if ran != step.runs[whose]
                || level != wanted
                || !has_reasons
                || at_server["level"] != said["level"]
            {
                wrong.push(format!(
                    "{column}, {}: a blocked call {word}, the agent says {said}, the server shows {at_server}; wanted {wanted} {among:?}",
                    step.name
                ));
            }
        }
        device.kill()?;
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("wrong:\n  {}", wrong.join("\n  "))))
}

/// Has the place hold what an installation of the client by npm leaves in a home: the package's own description, with its version.
fn is_installed(scene: &Scene<'_>, client: &Client, device: &Device) -> Outcome {
    let name = match client.word {
        "codex" => "@openai/codex",
        "gemini" => "@google/gemini-cli",
        _ => "@anthropic-ai/claude-code",
    };
    let words = program(scene, client.word);
    let main = std::path::Path::new(words.get(1).context("a client without a file")?);
    let package = main
        .ancestors()
        .find(|folder| folder.ends_with(name))
        .context("a client without a package")?;
    let text =
        std::fs::read_to_string(package.join("package.json")).context("a package without a description")?;
    let modules = device.folder.join("home/.npm-global/lib/node_modules");
    std::fs::create_dir_all(modules.join(name)).context("cannot make a place")?;
    write(&modules.join(name).join("package.json"), &text, 0o644)?;
    // The agent of the machine looks into the homes of its accounts.
    let account = "root:x:0:0:root:/home:/bin/sh\n";
    write(&device.folder.join("etc/passwd"), account, 0o644)
}

/// Lets the client ask for a call that a policy blocks, and says whether it ran.
fn runs(scene: &Scene<'_>, client: &Client, device: &Device, step: &Step) -> Outcome<bool> {
    device.put_victim()?;
    let config = if step.change == Change::SwitchedOff {
        "\n[features]\nhooks = false\n"
    } else {
        ""
    };
    let settings = match step.change {
        Change::SwitchedOff => json!({ "hooksConfig": { "enabled": false } }),
        Change::LeftOut => json!({ "hooksConfig": { "disabled": ["provost"] } }),
        _ => json!({}),
    };
    let said = called(&json!({
        "client": client.word, "program": program(scene, client.word), "place": device.folder, "victim": device.victim(),
        "command": format!("{} {}", client.guarded, device.victim()), "over": OVER, "config": config, "settings": settings,
    }))?;
    said["ran"].as_bool().context(format_args!("no answer in {said}"))
}

/// Has the agent look anew, and returns what it says of the client.
fn looked(scene: &Scene<'_>, client: &Client, device: &mut Device) -> Outcome<Value> {
    let before = device.coverage()?["at"].clone();
    device.start(&Start::default())?;
    let mut said = Value::Null;
    let has_looked = clock::poll_until(READY, Duration::from_millis(200), || {
        said = device.coverage().unwrap_or_default();
        said["at"].is_string() && said["at"] != before
    });
    if !has_looked {
        return Err(Failure::new(format!("the agent does not look: {said}")));
    }
    // What it found is told in the same round.
    let told = clock::poll_until(READY, Duration::from_millis(200), || {
        let found = of_client(client, &device.coverage().unwrap_or_default());
        device
            .coverage_at_server(scene, client)
            .is_ok_and(|shown| shown["level"] == found["level"])
    });
    if !told {
        return Err(Failure::new(format!("the server is not told of {said}")));
    }
    Ok(of_client(client, &said))
}

impl Step {
    fn apply(&self, scene: &Scene<'_>, client: &Client, device: &Device) -> Outcome {
        let own = device.folder.join("home/.claude/settings.json");
        let switched = |off: bool| -> Outcome {
            let mut settings: Value = std::fs::read_to_string(&own)
                .ok()
                .and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_else(|| json!({}));
            settings["disableAllHooks"] = off.into();
            std::fs::create_dir_all(device.folder.join("home/.claude")).context("cannot make a place")?;
            write(&own, &settings.to_string(), 0o600)
        };
        match self.change {
            Change::SwitchedOff if client.word == "claude-code" => switched(true),
            // Codex and Gemini CLI have their own settings written with each call.
            Change::Nothing | Change::SwitchedOff | Change::LeftOut => Ok(()),
            Change::TakenOut => {
                if client.word == "claude-code" {
                    switched(false)?;
                }
                device.unregister(client)
            }
            Change::PutBack => device.register(scene, client),
        }
    }
}

/// Returns what is said of a client.
fn of_client(client: &Client, coverage: &Value) -> Value {
    let word = match client.word {
        "gemini" => "gemini_cli".to_owned(),
        word => word.replace('-', "_"),
    };
    let clients = coverage["clients"].as_array();
    let found = clients.and_then(|clients| clients.iter().find(|one| one["client"] == word.as_str()));
    found.cloned().unwrap_or_default()
}

impl Device {
    /// What `provost agent coverage` says.
    fn coverage(&self) -> Outcome<Value> {
        let mut status = self.command(&self.binary);
        status.args(["agent", "status", "--json"]).args(self.flags());
        let said: Value =
            serde_json::from_str(&process::output(&mut status)?).context("status said no JSON")?;
        Ok(said["coverage"].clone())
    }

    fn coverage_at_server(&self, scene: &Scene<'_>, client: &Client) -> Outcome<Value> {
        let said = scene.administrator().get(&format!("devices/{}", self.id))?;
        let shown = json!({ "clients": said["device"]["coverage"] });
        Ok(of_client(client, &shown))
    }
}
