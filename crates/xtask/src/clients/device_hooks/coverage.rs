//! What the agent says of how far a client is guarded, beside what the client really does: registered and run, switched off by a person, taken
//! out of the settings, and in again while a conversation was held without it.
//!
//! ```text
//! the client asks for a blocked call ──► did the file stay?      the agent looks, twice ──► what does it say?
//! ```

use std::time::Duration;

use serde_json::{Value, json};

use super::device::{Device, OVER, Start};
use super::{Client, People};
use crate::clients::Scene;
use crate::clients::hooks::{called, write};
use crate::clients::terminal::{CLAUDE, CODEX};
use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

/// How long a conversation may have asked nothing before that counts, with room.
const BETWEEN_LOOKS: Duration = Duration::from_secs(125);
const READY: Duration = Duration::from_mins(1);

/// What is done to a client's settings before it runs.
struct Step {
    name: &'static str,
    change: Change,
    /// Whether a call that a policy blocks runs then, by the machine's settings and by a person's.
    runs: [bool; 2],
    /// What the agent says then, likewise: the level, and reasons that must be among those that it names.
    says: [(&'static str, &'static [&'static str]); 2],
}

#[derive(Clone, Copy, PartialEq)]
enum Change {
    Nothing,
    /// A person switches hooks off in settings of their own.
    SwitchedOff,
    TakenOut,
    PutBack,
}

const PERSON: &[&str] = &["person_registration", "person_agent"];

const STEPS: [Step; 4] = [
    Step {
        name: "registered",
        change: Change::Nothing,
        runs: [false, false],
        says: [("enforced", &[]), ("observed", PERSON)],
    },
    Step {
        name: "switched off by the person",
        change: Change::SwitchedOff,
        runs: [false, true],
        says: [("enforced", &[]), ("none", &["hooks_disabled"])],
    },
    Step {
        name: "taken out of the settings",
        change: Change::TakenOut,
        runs: [true, true],
        says: [("none", &["not_registered"]), ("none", &["not_registered"])],
    },
    Step {
        name: "put back, after a conversation without it",
        change: Change::PutBack,
        runs: [false, false],
        says: [
            ("observed", &["session_without_events"]),
            ("observed", &["session_without_events"]),
        ],
    },
];

pub fn run(scene: &Scene<'_>, clients: &[&Client], people: &People) -> Outcome {
    let mut wrong = Vec::new();
    for client in clients {
        let whose = usize::from(!client.is_of_the_machine);
        let column = format!(
            "{} by {} settings",
            client.word,
            ["the machine's", "a person's"][whose]
        );
        let mut device = Device::make(scene, client, "enforce", people)?;
        is_installed(scene, client, &device)?;
        for step in &STEPS {
            step.apply(scene, client, &device)?;
            device.start(&Start::default())?;
            device.wait_until_it_judges()?;
            let ran = runs(scene, client, &device, step)?;
            if step.change == Change::PutBack {
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
            let (wanted, among) = step.says[whose];
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
    let (name, main) = match client.word {
        "codex" => ("@openai/codex", CODEX),
        _ => ("@anthropic-ai/claude-code", CLAUDE),
    };
    let program = scene.tools.command(main);
    let main = program.get_args().next().context("a client without a file")?;
    let main = std::path::Path::new(main);
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
    let program = match client.word {
        "codex" => scene.tools.command(CODEX),
        _ => scene.tools.command(CLAUDE),
    };
    let words: Vec<_> = std::iter::once(program.get_program())
        .chain(program.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let config = if step.change == Change::SwitchedOff {
        "\n[features]\nhooks = false\n"
    } else {
        ""
    };
    let said = called(&json!({
        "client": client.word, "program": words, "place": device.folder, "victim": device.victim(),
        "command": format!("{} {}", client.guarded, device.victim()), "over": OVER, "config": config,
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
            // Codex has its own settings written with each call.
            Change::Nothing | Change::SwitchedOff => Ok(()),
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
    let word = client.word.replace('-', "_");
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
