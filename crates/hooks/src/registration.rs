//! What stands in a client's settings, so that it asks.
//!
//! Only forms are written that the clients were seen to obey (ADR 0097). A command line that is not there, is killed or does not answer
//! lets calls of Codex and Gemini CLI run; the tail of the line refuses instead.

use crate::client::{Client, Mode};
use crate::question::Moment;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// How long a client waits for its hook. Units: seconds.
pub const CLIENT_SECONDS: u64 = 5;

pub(crate) const MOMENTS: [Moment; 3] = [Moment::PreTool, Moment::PostTool, Moment::Prompt];
/// What the end of a registered line says where the program before it did not answer.
pub const UNDECIDED: &str = "no decision; run: provost hook doctor";
const BEGIN: &str = "# provost hook: begin (written by `provost hook install`; do not edit)";
const END: &str = "# provost hook: end";

/// Why settings were left as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict(pub String);

/// What is registered in settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The command line.
    pub command: String,
    /// The names of the events at which it is asked.
    pub events: Vec<String>,
    /// Whether the client refuses when the command fails, by a member of its own.
    pub on_failure: bool,
}

/// Returns the command line of a hook: the program by its absolute path, and in enforce the tail that refuses.
pub fn command_line(program: &str, client: Client, mode: Mode, flags: &[&str]) -> String {
    let words = [program, "hook", "run", client.word(), "--mode", mode.word()];
    let words: Vec<String> = words.iter().chain(flags).map(|word| quoted(word)).collect();
    let line = words.join(" ");
    match mode {
        Mode::Enforce => {
            format!("{line} || {{ echo 'provost: {UNDECIDED}' >&2; exit 2; }}")
        }
        Mode::Monitor => line,
    }
}

/// Quotes a word for a shell where it has to be.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the member `hooks` of the client's settings.
pub fn hooks(client: Client, mode: Mode, command: &str) -> Value {
    let mut hook = json!({ "type": "command", "command": command, "timeout": CLIENT_SECONDS });
    match client {
        Client::ClaudeCode if mode == Mode::Enforce => hook["onFailure"] = "block".into(),
        Client::ClaudeCode | Client::Codex => {}
        Client::Gemini => {
            hook["timeout"] = (CLIENT_SECONDS * 1_000).into();
            hook["name"] = "provost".into();
        }
    }
    let of = |moment: &Moment| {
        let name = moment.event_name(client).to_owned();
        (name, json!([{ "hooks": [hook] }]))
    };
    Value::Object(MOMENTS.iter().map(of).collect())
}

fn is_ours(client: Client, hook: &Value) -> bool {
    let command = hook["command"].as_str().unwrap_or_default();
    command.contains(&format!(" hook run {} ", client.word()))
        || command.ends_with(&format!(" hook run {}", client.word()))
}

/// Returns what is registered of ours; `None` when nothing is.
pub fn found(client: Client, settings: &Value) -> Option<Registration> {
    let mut found: Option<Registration> = None;
    for (event, groups) in settings["hooks"].as_object()? {
        let groups = groups.as_array().into_iter().flatten();
        let hooks = groups.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
        for hook in hooks.filter(|hook| is_ours(client, hook)) {
            let one = found.get_or_insert_with(|| Registration {
                command: hook["command"].as_str().unwrap_or_default().to_owned(),
                events: Vec::new(),
                on_failure: true,
            });
            one.events.push(event.clone());
            one.on_failure &= hook["onFailure"] == "block";
        }
    }
    found
}

/// Returns settings with these hooks, and with everything else that is in them.
///
/// Errors: a member on the way is of another type than the client takes.
pub fn merged(
    client: Client,
    settings: Map<String, Value>,
    ours: &Value,
) -> Result<Map<String, Value>, Conflict> {
    let mut settings = removed(client, settings)?;
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    let Some(hooks) = hooks.as_object_mut() else {
        return Err(Conflict("its member hooks is no object".to_owned()));
    };
    for (event, groups) in ours.as_object().into_iter().flatten() {
        let before = hooks.entry(event.clone()).or_insert_with(|| json!([]));
        let Some(before) = before.as_array_mut() else {
            return Err(Conflict(format!("its member hooks.{event} is no list")));
        };
        before.extend(groups.as_array().into_iter().flatten().cloned());
    }
    Ok(settings)
}

/// Returns settings without our hooks, and with everything else that is in them.
///
/// Errors: as [`merged`].
pub fn removed(client: Client, mut settings: Map<String, Value>) -> Result<Map<String, Value>, Conflict> {
    let Some(hooks) = settings.get_mut("hooks") else {
        return Ok(settings);
    };
    let Some(hooks) = hooks.as_object_mut() else {
        return Err(Conflict("its member hooks is no object".to_owned()));
    };
    let mut is_changed = false;
    for groups in hooks.values_mut().filter_map(Value::as_array_mut) {
        groups.retain_mut(|group| {
            let Some(hooks) = group["hooks"].as_array_mut() else {
                return true;
            };
            let before = hooks.len();
            hooks.retain(|hook| !is_ours(client, hook));
            let is_ours_alone = hooks.is_empty() && before > 0;
            is_changed |= hooks.len() < before;
            !is_ours_alone
        });
    }
    if is_changed {
        hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
        if hooks.is_empty() {
            settings.remove("hooks");
        }
    }
    Ok(settings)
}

/// Returns the text of Codex's `requirements.toml` with these hooks between two marks, and with what keeps a person from switching hooks
/// off; what stands around them stays as it is written. `around` is what that says: TOML does not let a table stand twice.
///
/// Errors: it has hooks of its own, or a table of features that leaves hooks to the person.
pub fn merged_text(
    text: &str,
    around: &Map<String, Value>,
    command: &str,
    folder: &str,
) -> Result<String, Conflict> {
    let rest = removed_text(text);
    if around.contains_key("hooks") {
        return Err(Conflict(
            "it has hooks of its own, which cannot be put together without a person: --print shows what to add".to_owned(),
        ));
    }
    // Measured with 0.169.0: without it `[features] hooks = false` of a person, or `--disable hooks`, switches the machine's hooks off.
    let pin = match around.get("features") {
        None => "[features]\nhooks = true\n\n",
        Some(features) if features.get("hooks") == Some(&Value::Bool(true)) => "",
        Some(_) => {
            return Err(Conflict(
                "its table features leaves it to each person to switch hooks off: write hooks = true into it"
                    .to_owned(),
            ));
        }
    };
    let literal = |text: &str| Value::from(text).to_string();
    let mut block = format!("{BEGIN}\n{pin}[hooks]\nmanaged_dir = {}\n", literal(folder));
    for moment in MOMENTS {
        let event = moment.event_name(Client::Codex);
        let _ = write!(
            block,
            "\n[[hooks.{event}]]\n[[hooks.{event}.hooks]]\ntype = \"command\"\ncommand = {}\ntimeout = {CLIENT_SECONDS}\n",
            literal(command)
        );
    }
    // Members of the top stand before the first table, so the block stands last.
    let gap = if rest.is_empty() { "" } else { "\n" };
    Ok(format!("{rest}{gap}{block}{END}\n"))
}

/// Returns the text without what stands between the marks.
pub fn removed_text(text: &str) -> String {
    let Some((before, rest)) = text.split_once(BEGIN) else {
        return text.to_owned();
    };
    // Without its end nobody knows where the block ends, and what stands behind it would be lost.
    let Some((_, after)) = rest.split_once(END) else {
        return text.to_owned();
    };
    let after = after.strip_prefix('\n').unwrap_or(after);
    let before = before.strip_suffix('\n').unwrap_or(before);
    if before.is_empty() {
        return after.to_owned();
    }
    let end = if before.ends_with('\n') { "" } else { "\n" };
    format!("{before}{end}{after}")
}
