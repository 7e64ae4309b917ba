//! What was sent last, kept for a week, so that whoever owns the machine can read it.

use crate::desk::waiting;
use crate::folder::{Folder, disk};
use crate::queue::{MAX_SEGMENT, Queue, body_of};
use crate::trouble::Trouble;
use provost_bundle::{ToldArguments, ToldContent, ToldPrompts};
use provost_words::durable::sync_folder;
use provost_words::time::Timestamp;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How long it is kept. Units: seconds.
pub(crate) const KEPT_SECS: i64 = 7 * 86_400;
/// LIMIT: reports that are kept: two an hour for a week. Ours.
const MAX_KEPT: usize = 400;
/// LIMIT: bytes of them, as of the queue. Ours.
const MAX_BYTES: u64 = 64 << 20;
const HEARTBEAT: &str = "heartbeat.json";
const COVERAGE: &str = "coverage.json";
const DECISIONS: &str = "decisions.json";
/// LIMIT: bytes of the last decisions: a batch of at most 1 MiB, whose quotes are written twice within JSON. Ours.
const MAX_DECISIONS: u64 = 4 << 20;
const REPORT: &str = ".report";
/// Where the rule about decisions stands among the others: behind what hooks send.
const TELLING_AT: usize = 8;

/// What is collected on every machine, and what never is.
const RULES: [&str; 12] = [
    "sent: that this machine is there: its name, its system and processor, the version of the agent, how often it called, and the system's name for its present run",
    "sent: which AI clients are configured, and the name of the home's account; of MCP servers the package or the address, without user, query and what looks secret in it, the names of variables and headers, and of arguments the flags and the kinds",
    "sent: of skills, extensions, hooks and settings the names, digests, counts and known words; how many conversations a client keeps, and none of them",
    "sent: of a credential in such a file its form, the member that holds it, a fingerprint, and who may read the file; of a token of Provost the part that lists show",
    "sent: of each AI client how far its hooks guard it, what is missing of a proof, in words of a fixed list, its version, and the hours in which its hook was tried and asked last; which policy bundle lies here",
    "sent, by the agent of the machine: which release of managed settings that an admin assigned lies here, by digest, or why none does",
    "sent only where the server says that names of projects are shown: what the folder of a project is called, where that looks like no secret, and nothing else of its path",
    "sent, by hooks and not by the agent, wherever one is registered that asks the server: what is about to happen or has happened, as the client says it: the prompt, or the tool's arguments and result, with the user and the conversation, and of a call the client's folder and this machine's name",
    "never sent of what is configured here: values of variables, headers and arguments; credentials; prompts and conversations; the content of any file",
    "never sent: lists of processes, screens, places, browser histories, serial numbers; paths of files that are found leave as fingerprints under a key of this machine",
    "the agent starts no program but itself, by the line of the hook that a client's settings register, takes no script, and asks no server but the one it enrolled at, through the proxy of the surroundings if there is one",
    "reports and the last decisions are kept here for up to seven days as they were sent, byte for byte, and the last heartbeat; what waits may have been sent, and the answer lost",
];

/// What an agent tells of the calls about which hooks ask it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// It has nothing to judge by, and nothing waits.
    Nothing,
    /// It has nothing to judge by, and what it judged before waits.
    Rest,
    /// An event of each.
    Events(ToldContent),
    /// An event of each that did not pass without a reason, and of the others how many there were.
    Counts(ToldContent),
    /// What it judges by cannot be believed or read, so that nobody can say which.
    Unsure,
}

impl Telling {
    /// Returns what that means, for whoever owns the machine.
    pub fn says(self) -> String {
        const ANY: &str = "the prompt or the tool's arguments and result as far as the policies told it that were there when it was judged";
        let to = "sent to …/decisions";
        match self {
            Self::Nothing => format!("nothing is {to}: this machine has nothing to judge by"),
            Self::Rest => format!(
                "{to}: this machine has nothing to judge by now, and what it judged before waits, an event of each call: {OF_EACH}, and {ANY}"
            ),
            Self::Events(told) => format!(
                "{to}, because this machine judges: an event of each call that was decided here: {OF_EACH}; {}",
                contents(told)
            ),
            Self::Counts(told) => format!(
                "{to}, because this machine judges: how many calls passed without a reason, by minute, user, client and tool; of every other one that was decided here an event: {OF_EACH}; {}",
                contents(told)
            ),
            Self::Unsure => format!(
                "{to}, whenever this machine judges: what it judges by cannot be believed or read now, so take it that there is an event of each call: {OF_EACH}, and {ANY}"
            ),
        }
    }
}

/// What is told of a call in any case.
const OF_EACH: &str = "the user and the conversation, the names of the model, of the tool and of its server, and what was decided";

/// Returns what of contents is told by the words that hold.
fn contents(told: ToldContent) -> String {
    let prompts = match told.prompts {
        ToldPrompts::Off => "no prompt",
        ToldPrompts::Full => "the prompt, as the client says it",
    };
    let arguments = match told.tool_arguments {
        ToldArguments::Nothing => "nothing of a tool's arguments and results",
        ToldArguments::Full => "a tool's arguments and results, as the client says them",
    };
    format!(
        "{prompts} (prompts: {}), and {arguments} (toolArguments: {}). These are the words of the policies that lie here, and hold until others do; all of it is judged here, what is not sent is written to no file of the agent, and what waits has what was told when it was judged",
        told.prompts.as_str(),
        told.tool_arguments.as_str(),
    )
}

/// Returns what is collected on this machine, and what never is.
pub fn rules(telling: Telling) -> Vec<String> {
    let mut rules: Vec<String> = RULES.map(str::to_owned).into();
    rules.insert(TELLING_AT, telling.says());
    rules
}

/// Says whether decisions wait to be sent.
///
/// Errors: folder, disk.
pub fn has_waiting_decisions(agent: &Folder) -> Result<bool, Trouble> {
    Ok(waiting(agent)?.is_some())
}

/// Something that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// `heartbeat`, `coverage`, `decisions` or `report`.
    pub kind: &'static str,
    /// `taken` by the server, `refused` by it, or `waits`: perhaps it was sent, and the answer lost.
    pub state: &'static str,
    /// When the server had it, or when it was made, by this machine's clock.
    pub at: Timestamp,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// Keeps the body of a heartbeat in the place of the one before.
pub(crate) fn keep_heartbeat(agent: &Folder, body: &[u8]) -> Result<(), Trouble> {
    agent.below("sent")?.replace(HEARTBEAT, body)
}

/// Keeps the body of a report of coverage in the place of the one before.
///
/// Errors: folder, disk.
pub fn keep_coverage(agent: &Folder, body: &[u8]) -> Result<(), Trouble> {
    agent.below("sent")?.replace(COVERAGE, body)
}

/// Keeps the body of an upload of decisions in the place of the one before.
pub(crate) fn keep_decisions(agent: &Folder, body: &[u8]) -> Result<(), Trouble> {
    agent.below("sent")?.replace(DECISIONS, body)
}

/// Forgets the last upload of decisions: there is no round any more in which it would be.
///
/// Errors: folder, disk.
pub fn forget_decisions(agent: &Folder) -> Result<(), Trouble> {
    agent.below("sent")?.remove(DECISIONS)
}

/// Moves the file of a report here.
///
/// Errors: folder, disk.
pub(crate) fn keep_report(agent: &Folder, from: &Path, number: u64, now: Timestamp) -> Result<(), Trouble> {
    let folder = agent.below("sent")?;
    let to = folder.file(&format!("{:015}-{number}{REPORT}", now.as_ms().max(0)));
    fs::rename(from, &to)
        .and_then(|()| sync_folder(folder.path()))
        .map_err(|error| disk(from, "rename", &error))
}

/// Removes what is older than a week, and more than is kept.
///
/// Errors: folder, disk.
pub(crate) fn forget(agent: &Folder, now: Timestamp) -> Result<(), Trouble> {
    let folder = agent.below("sent")?;
    let names = folder.names()?;
    let reports: Vec<&String> = names.iter().filter(|name| name.ends_with(REPORT)).collect();
    let oldest = now.plus_secs(-KEPT_SECS);
    let mut bytes = 0;
    for (place, name) in reports.into_iter().rev().enumerate() {
        bytes += fs::symlink_metadata(folder.file(name)).map_or(0, |found| found.len());
        let is_surplus = place >= MAX_KEPT || bytes > MAX_BYTES;
        if is_surplus || sent_at(name).is_none_or(|at| at < oldest) {
            folder.remove(name)?;
        }
    }
    // Prompts may stand in them.
    if changed_at(&folder.file(DECISIONS)).is_some_and(|at| at < oldest) {
        folder.remove(DECISIONS)?;
    }
    Ok(())
}

/// Returns what was sent or waits to be, the oldest first, the last of coverage, decisions and heartbeats at the end. Of the decisions
/// that wait it has those that are sent next.
///
/// Errors: folder, disk.
pub fn uploads(agent: &Folder) -> Result<Vec<Upload>, Trouble> {
    let folder = agent.below("sent")?;
    let mut uploads = Vec::new();
    for name in folder.names()? {
        let Some(at) = sent_at(&name) else { continue };
        let Some(bytes) = folder.read_up_to(&name, MAX_SEGMENT)? else {
            continue;
        };
        if let Some(body) = body_of(&bytes) {
            let body = body.to_vec();
            uploads.push(Upload {
                kind: "report",
                state: "taken",
                at,
                body,
            });
        }
    }
    uploads.extend(Queue::look(agent)?.contents()?);
    uploads.sort_by_key(|upload| upload.at);
    let last = [
        ("coverage", COVERAGE),
        ("decisions", DECISIONS),
        ("heartbeat", HEARTBEAT),
    ];
    for (kind, name) in last {
        let body = folder.read_up_to(name, MAX_DECISIONS)?;
        if let (Some(body), Some(at)) = (body, changed_at(&folder.file(name))) {
            uploads.push(Upload {
                kind,
                state: "taken",
                at,
                body,
            });
        }
    }
    if let Some((batch, at)) = waiting(agent)? {
        uploads.push(Upload {
            kind: "decisions",
            state: "waits",
            at,
            body: batch.body().to_string().into_bytes(),
        });
    }
    Ok(uploads)
}

fn sent_at(name: &str) -> Option<Timestamp> {
    let (at, _) = name.strip_suffix(REPORT)?.split_once('-')?;
    at.parse().ok().map(Timestamp::from_ms)
}

/// Returns when a file was changed last.
pub(crate) fn changed_at(path: &Path) -> Option<Timestamp> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(Timestamp::from_ms(found.mtime().checked_mul(1000)?))
}
