//! What the server asks for out of turn, by the answer to a heartbeat.
//!
//! ```text
//! told at each heartbeat ──► done once ──► commands.json ──► result ──► forgotten
//!                                └── kill: it is told again, and done again, which changes nothing
//! ```
//!
//! INVARIANT AG-5: a command makes the agent do what it does anyway, and what it does not know it refuses by a word; no command brings
//! a program, a path or an address along.

use crate::caller::Caller;
use crate::folder::Folder;
use crate::trouble::{Cause, Trouble};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const NAME: &str = "commands.json";
/// LIMIT: commands that one answer tells, and results that wait. The server tells eight.
const MOST: usize = 16;
/// LIMIT: bytes of the id of a command.
const LONGEST_ID: usize = 64;
/// A kind that this agent does not know, or cannot do in its mode.
pub(crate) const UNSUPPORTED: &str = "unsupported";
/// It was tried and did not succeed.
pub(crate) const FAILED: &str = "failed";

/// What the server asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub id: String,
    pub kind: String,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    id: String,
    /// Why it failed, in a word; absent where it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// Returns the commands of an answer. One without an id that can stand in a path is none.
pub(crate) fn told(answer: &Value) -> Vec<Command> {
    let commands = answer.get("commands").and_then(Value::as_array);
    let command = |one: &Value| {
        let text = |member: &str| one.get(member).and_then(Value::as_str).map(str::to_owned);
        let (id, kind) = (text("id")?, text("kind")?);
        let is_plain = id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_plain && (1..=LONGEST_ID).contains(&id.len())).then_some(Command { id, kind })
    };
    commands
        .into_iter()
        .flatten()
        .filter_map(command)
        .take(MOST)
        .collect()
}

/// What was done and whose result the server has not taken.
#[derive(Debug, Default)]
pub(crate) struct Done(Vec<Outcome>);

impl Done {
    /// A file that cannot be read is as good as none: what is told again is done again.
    ///
    /// Errors: folder.
    pub fn load(folder: &Folder) -> Result<Self, Trouble> {
        let bytes = folder.read(NAME)?.unwrap_or_default();
        Ok(Self(serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// Returns the commands that were not done yet.
    pub fn without(&self, commands: Vec<Command>) -> Vec<Command> {
        let is_done = |command: &Command| self.0.iter().any(|done| done.id == command.id);
        commands.into_iter().filter(|command| !is_done(command)).collect()
    }

    /// Remembers what became of a command.
    pub fn add(&mut self, command: &Command, code: Option<&str>) {
        self.0.push(Outcome {
            id: command.id.clone(),
            code: code.map(str::to_owned),
        });
        let surplus = self.0.len().saturating_sub(MOST);
        self.0.drain(..surplus);
    }

    /// Tells the server what became of commands; what it does not take now is told in the next round.
    ///
    /// Errors: gone; folder, disk.
    pub async fn tell(&mut self, folder: &Folder, device: &str, caller: &Caller<'_>) -> Result<(), Trouble> {
        if self.0.is_empty() {
            return Ok(());
        }
        // First on the disk: a kill between the two tells it again, and does not do it again.
        self.save(folder)?;
        let mut left = Vec::new();
        for outcome in std::mem::take(&mut self.0) {
            let below = format!("devices/{device}/commands/{}/result", outcome.id);
            let mut body = json!({ "outcome": if outcome.code.is_none() { "succeeded" } else { "failed" } });
            if let Some(code) = &outcome.code {
                body["code"] = json!(code);
            }
            match caller.post(&below, body.to_string().as_bytes()).await {
                // It is there, ended otherwise, or nobody knows it any more.
                Ok(_) => {}
                Err(trouble) if trouble.cause == Cause::Gone => return Err(trouble),
                Err(trouble) if is_final(&trouble) => {}
                Err(_) => left.push(outcome),
            }
        }
        self.0 = left;
        self.save(folder)
    }

    /// Keeps what was done.
    ///
    /// Errors: folder, disk.
    pub fn save(&self, folder: &Folder) -> Result<(), Trouble> {
        folder.replace(NAME, &serde_json::to_vec_pretty(&self.0).unwrap_or_default())
    }
}

/// Says whether the same result would be refused again.
fn is_final(trouble: &Trouble) -> bool {
    matches!(trouble.cause, Cause::Refused(400 | 404 | 409 | 422))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_that_can_stand_in_a_path_are_commands() {
        let answer = json!({ "commands": [
            { "id": "cmd_1", "kind": "rescan", "expiresAt": "later" }, { "id": "../../x", "kind": "rescan" }, { "id": "", "kind": "rescan" },
            { "id": "a".repeat(65), "kind": "rescan" }, { "kind": "rescan" }, { "id": 7, "kind": "rescan" }, "rescan",
            { "id": "cmd_2", "kind": "a kind of tomorrow" },
        ] });
        let kinds: Vec<String> = told(&answer).into_iter().map(|command| command.kind).collect();
        assert_eq!(kinds, ["rescan", "a kind of tomorrow"]);
        assert!(told(&json!({})).is_empty() && told(&json!({ "commands": null })).is_empty());
        let many = vec![json!({ "id": "c", "kind": "rescan" }); 1000];
        assert_eq!(told(&json!({ "commands": many })).len(), MOST);
    }

    #[test]
    fn what_is_done_is_remembered_and_the_oldest_gives_way() {
        let command = |number: usize| Command {
            id: format!("cmd_{number}"),
            kind: "rescan".into(),
        };
        let mut done = Done::default();
        for number in 0..=MOST {
            done.add(&command(number), None);
        }
        let left = done.without((0..=MOST).map(command).collect());
        assert_eq!(left, [command(0)]);
    }
}
