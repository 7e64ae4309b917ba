//! A laptop whose calls are judged by an agent that is killed again and again.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use provost_words::digest::sha256_hex;
use serde_json::{Value, json};

use crate::bench::hook::laptop::Laptop;
use crate::failure::{Context, Failure, Outcome};
use crate::random::Random;
use crate::{clock, process};

/// The policies: id, action, and the word of a command that they are about.
pub const POLICIES: [(&str, &str, &str); 2] = [
    ("no-shutdown", "block", "shutdown"),
    ("looks-at-curl", "flag_for_review", "curl"),
];
/// How long an agent may not answer anything while it was not killed, or decide nothing.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long the agent may take for what waits once nobody is killed any more; it may be told to wait for its turn.
const TO_TELL: Duration = Duration::from_mins(10);

/// What is said of the two events of a call: its content, and the use of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub action: &'static str,
    /// The policy whose action it is; none where it passes without a word.
    pub policy: Option<&'static str>,
}

const PASSES: Verdict = Verdict {
    action: "allow",
    policy: None,
};

/// Returns the command of the call of a number.
fn command(number: u32) -> String {
    match number % 64 {
        7 => format!("shutdown -h +{number}"),
        rest if rest % 4 == 1 => format!("curl https://files.example/{number}"),
        _ => format!("ls /srv/app/{number}"),
    }
}

/// Returns what the policies say of the content of the call of a number, and of the use of the client.
pub fn verdicts(number: u32) -> [Verdict; 2] {
    let command = command(number);
    let found = POLICIES.iter().find(|(_, _, word)| command.contains(word));
    let content = found.map_or(PASSES, |(id, action, _)| Verdict {
        action,
        policy: Some(id),
    });
    [content, PASSES]
}

/// A laptop, and what became of its calls.
pub struct Person {
    laptop: Laptop,
    /// So many calls have to be answered.
    goal: u32,
    /// The number of the next call.
    next: u32,
    /// Calls that were not answered, and may have been judged.
    lost: BTreeSet<u32>,
    pub unsure: u64,
    pub kills: u64,
    pub kills_that_left_something: u64,
}

/// Why a question has no answer.
enum Lost {
    /// Nobody heard it.
    Unheard,
    /// It may have been judged and recorded.
    Unsure,
}

impl Person {
    pub fn new(laptop: Laptop, goal: u32) -> Self {
        Self {
            laptop,
            goal,
            next: 0,
            lost: BTreeSet::new(),
            unsure: 0,
            kills: 0,
            kills_that_left_something: 0,
        }
    }

    /// The id of the device.
    pub fn device(&self) -> &str {
        &self.laptop.id
    }

    /// How many calls were answered.
    pub fn answered(&self) -> u32 {
        self.asked() - u32::try_from(self.lost.len()).unwrap_or(u32::MAX)
    }

    /// How many calls there were: their numbers are below.
    pub fn asked(&self) -> u32 {
        self.next
    }

    /// Whether the call of a number was answered.
    pub fn was_answered(&self, number: u32) -> bool {
        number < self.next && !self.lost.contains(&number)
    }

    /// Has every call be judged, by one agent after the other.
    pub fn work(&mut self, lives: u32, random: &mut Random, stop: &AtomicBool) -> Outcome {
        while self.answered() < self.goal && !stop.load(Ordering::SeqCst) {
            self.laptop.starts()?;
            let life = random.millis(50, u64::from(lives));
            let (is_over, socket) = (AtomicBool::new(false), self.laptop.socket());
            let mut asker = Asker {
                socket: &socket,
                next: self.next,
                answered: self.answered(),
                goal: self.goal,
                lost: Vec::new(),
            };
            let ended = std::thread::scope(|scope| {
                let asks = scope.spawn(|| asker.ask_on(&is_over));
                clock::poll_until(life, Duration::from_millis(2), || asks.is_finished());
                // Also the last one, whatever it is about.
                let killed = self.laptop.dies();
                is_over.store(true, Ordering::SeqCst);
                let ended = asks
                    .join()
                    .map_err(|_| Failure::new("a thread of calls panicked"));
                killed.and(ended?)
            });
            self.next = asker.next;
            self.unsure += asker.lost.len() as u64;
            self.lost.extend(asker.lost);
            ended.context(format_args!("{} said: {}", self.device(), self.said()))?;
            self.kills += 1;
            self.kills_that_left_something += u64::from(self.waiting()? > 0);
        }
        Ok(())
    }

    /// The end of what its agents said.
    fn said(&self) -> String {
        let text = fs::read_to_string(self.laptop.agent_log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" / ")
    }

    /// How many entries wait, each of which follows the one before it.
    pub fn waiting(&self) -> Outcome<u64> {
        Ok(self.chain()?.waiting)
    }

    /// Walks what is in the log. A last line that a kill cut is no entry; anything else that does not follow is a fault.
    pub fn chain(&self) -> Outcome<Chain> {
        let folder = self.laptop.state().join("decisions");
        let mut names: Vec<PathBuf> = fs::read_dir(&folder)
            .context(folder.display())?
            .flatten()
            .map(|file| file.path())
            .collect();
        names.sort();
        let mut chain = Chain::default();
        for path in names {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            // A draft was never part of it.
            if name.starts_with('.') {
                continue;
            }
            if name.len() != 20 {
                return Err(Failure::new(format!("{} was set aside", path.display())));
            }
            let bytes = fs::read(&path).context(path.display())?;
            chain.walk(&bytes).context(path.display())?;
        }
        Ok(chain)
    }

    /// Has the agent tell what waits, and looks whether the server takes it as it is.
    pub fn empty(&mut self) -> Outcome {
        let mut said = String::new();
        let is_told = clock::poll_until(TO_TELL, Duration::from_secs(1), || {
            let mut once = self.laptop.command(&["agent", "run", "--once"]);
            said = process::output(&mut once).unwrap_or_else(|failure| failure.to_string());
            self.waiting().is_ok_and(|waiting| waiting == 0)
        });
        let chain = self.chain()?;
        if !is_told || chain.waiting > 0 {
            return Err(Failure::new(format!(
                "{} entries of {} still wait; its agent said last: {}",
                chain.waiting,
                self.device(),
                said.trim()
            )));
        }
        // What was bound anew behind another chain would be there twice or not at all. A server that has too much to do says 503, and is asked again.
        let text = fs::read_to_string(self.laptop.agent_log()).unwrap_or_default();
        let odd = ["another chain", "damaged", "set aside", "panicked"];
        let is_refused = |line: &str| line.contains("refused") && !line.contains("(503); next in");
        let is_odd = |line: &&str| odd.iter().any(|word| line.contains(word)) || is_refused(line);
        match text.lines().find(is_odd) {
            Some(line) => Err(Failure::new(format!(
                "an agent of {} said: {line}",
                self.device()
            ))),
            None => Ok(()),
        }
    }
}

/// Where the chain of a log stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The number of the next entry.
    pub next: u64,
    /// The hash of the one before it.
    pub head: String,
    /// Entries that are there.
    pub waiting: u64,
}

impl Chain {
    /// Walks a segment.
    fn walk(&mut self, segment: &[u8]) -> Outcome {
        let text = std::str::from_utf8(segment).context("no text")?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.split('\n');
        let head = lines
            .next()
            .and_then(|line| line.strip_prefix("provost-decisions 1 "));
        let (first, previous) = head.and_then(|head| head.split_once(' ')).context("no head")?;
        let first: u64 = first.parse().ok().context("no number")?;
        // One whose entries the server has, or that a kill left beside the one that it was made of, begins elsewhere.
        if self.next > 0 && self.next == first && self.head != previous {
            return Err(Failure::new(format!(
                "entry {first} does not follow the segment before it"
            )));
        }
        previous.clone_into(&mut self.head);
        self.next = first;
        for line in lines {
            let (hash, entry) = line.split_once(' ').context("a line without a hash")?;
            if sha256_hex([self.head.as_bytes(), entry.as_bytes()].concat().as_slice()) != hash {
                return Err(Failure::new(format!("entry {} does not follow", self.next)));
            }
            hash.clone_into(&mut self.head);
            self.next += 1;
            self.waiting += 1;
        }
        Ok(())
    }
}

/// Whoever asks one call after the other.
struct Asker<'a> {
    socket: &'a Path,
    next: u32,
    answered: u32,
    goal: u32,
    /// Calls that were not answered.
    lost: Vec<u32>,
}

impl Asker<'_> {
    /// Asks until everything was answered, or the agent was killed.
    fn ask_on(&mut self, is_over: &AtomicBool) -> Outcome {
        let mut since = clock::now();
        while self.answered < self.goal && !is_over.load(Ordering::SeqCst) {
            let why = match ask(self.socket, &payload(self.next)) {
                Ok(told) if told["decided"].is_object() => {
                    is_right(self.next, &told)?;
                    self.answered += 1;
                    self.next += 1;
                    since = clock::now();
                    continue;
                }
                // It has no room until the server takes something, or has not read its policies yet: nothing was recorded.
                Ok(told) => told["why"].to_string(),
                Err(Lost::Unheard) => "nobody listens".to_owned(),
                Err(Lost::Unsure) => {
                    self.lost.push(self.next);
                    self.next += 1;
                    "no answer".to_owned()
                }
            };
            if since.elapsed() > PATIENCE {
                return Err(Failure::new(format!(
                    "the agent decides nothing for {PATIENCE:?}: {why}"
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// What the client gives its hook of the call of a number.
fn payload(number: u32) -> Vec<u8> {
    json!({
        "hook_event_name": "PreToolUse", "session_id": "6a1d6f3e-4f0c-4c66-9a4c-0d3b4f5a1c11", "cwd": "/srv/app", "permission_mode": "default",
        "tool_name": "Bash", "tool_use_id": format!("call-{number}"), "tool_input": { "command": command(number) },
    })
    .to_string()
    .into_bytes()
}

/// Asks the agent as a hook does.
fn ask(socket: &Path, payload: &[u8]) -> Result<Value, Lost> {
    let Ok(mut stream) = UnixStream::connect(socket) else {
        return Err(Lost::Unheard);
    };
    let head = format!("provost-desk 1 judge claude-code enforce {}\n", payload.len());
    let mut told = Vec::new();
    let done = stream
        .write_all(&[head.as_bytes(), payload].concat())
        .and_then(|()| stream.read_to_end(&mut told));
    match done {
        // It is written in one piece, and nothing that is not whole is judged; whoever is not sure says so.
        Err(error) if error.kind() == ErrorKind::NotConnected => return Err(Lost::Unheard),
        Err(_) => return Err(Lost::Unsure),
        Ok(_) => {}
    }
    let end = told.iter().position(|byte| *byte == b'\n').ok_or(Lost::Unsure)?;
    let (head, body) = (&told[..end], &told[end + 1..]);
    if head != format!("provost-desk 1 {}", body.len()).as_bytes() {
        return Err(Lost::Unsure);
    }
    serde_json::from_slice(body).map_err(|_| Lost::Unsure)
}

/// Refuses an answer that is not what the policies say.
fn is_right(number: u32, told: &Value) -> Outcome {
    let decisions = told["decided"]["decisions"].as_array();
    let decisions = decisions.map_or(&[][..], Vec::as_slice);
    let due = verdicts(number);
    let is = |(decision, due): (&Value, &Verdict)| {
        decision["action"] == due.action && decision["policyIds"] == json!(Vec::from_iter(due.policy))
    };
    if decisions.len() == due.len() && decisions.iter().zip(&due).all(is) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the agent says {told} of call {number}, and the policies say {due:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_verdicts_that_their_commands_have() {
        let of = |action: &str| {
            (0..64)
                .filter(|number| verdicts(*number)[0].action == action)
                .count()
        };
        assert_eq!((of("block"), of("flag_for_review"), of("allow")), (1, 16, 47));
        assert_eq!(verdicts(71)[0].policy, Some("no-shutdown"));
        assert!(!command(7).contains("curl"));
    }

    #[test]
    fn a_chain_is_walked_and_what_does_not_follow_is_told() {
        let zeros = "0".repeat(64);
        let line = |previous: &str, entry: &str| {
            let hash = sha256_hex(format!("{previous}{entry}").as_bytes());
            (format!("{hash} {entry}\n"), hash)
        };
        let (one, after_one) = line(&zeros, "{\"a\":1}");
        let (two, after_two) = line(&after_one, "{\"b\":2}");
        let whole = format!("provost-decisions 1 1 {zeros}\n{one}{two}");
        let mut chain = Chain::default();
        chain.walk(format!("{whole}torn by a ki").as_bytes()).unwrap();
        assert_eq!(
            (chain.next, chain.waiting, chain.head.as_str()),
            (3, 2, after_two.as_str())
        );
        // The next segment begins where it ended.
        assert!(
            chain
                .clone()
                .walk(format!("provost-decisions 1 3 {after_two}\n").as_bytes())
                .is_ok()
        );
        assert!(
            chain
                .clone()
                .walk(format!("provost-decisions 1 3 {zeros}\n").as_bytes())
                .is_err()
        );
        let swapped = format!("provost-decisions 1 1 {zeros}\n{two}{one}");
        assert!(Chain::default().walk(swapped.as_bytes()).is_err());
        assert!(Chain::default().walk(b"").is_err());
    }
}
