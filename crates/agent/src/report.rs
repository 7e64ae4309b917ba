//! The report of a scan, as it is sent.

use crate::counter;
use crate::folder::Folder;
use crate::mark::Mark;
use crate::trouble::{Cause, Trouble};
use crate::{Agent, Mode, NO_SCANS, State};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_inventory::wire::{self, Report, Section, SectionFault, Unchanged};
use provost_inventory::{Client, Fault, InventoryKey, Machine, Platform, scan_watched};
use provost_words::Secret;
use provost_words::entropy::Entropy;
use provost_words::time::{Clock, Timestamp};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ACKNOWLEDGED: &str = "acknowledged.json";
const INVENTORY_KEY: &str = "inventory.key";
/// LIMIT: the time of a scan. Ours, as for `provost scan`.
const MOST: Duration = Duration::from_secs(20);
/// How often everything is sent, whatever the server has (F3.9). Units: seconds.
const FULL_SECS: i64 = 86_400;

/// What the server has of this machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Acknowledged {
    #[serde(skip_serializing_if = "Option::is_none")]
    full_at: Option<Timestamp>,
    sections: Vec<Unchanged>,
}

impl Acknowledged {
    /// A file that cannot be read is as good as none: everything is sent.
    fn load(folder: &Folder) -> Result<Self, Trouble> {
        let bytes = folder.read(ACKNOWLEDGED)?.unwrap_or_default();
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Returns what need not be sent again; nothing where it is time to send everything.
    fn current(&self, now: Timestamp) -> BTreeMap<(Client, String), String> {
        let is_current = self
            .full_at
            .is_some_and(|at| at <= now && now < at.plus_secs(FULL_SECS));
        let sections = self.sections.iter().filter(|_| is_current);
        sections.cloned().map(entry).collect()
    }
}

fn entry(section: Unchanged) -> ((Client, String), String) {
    ((section.client, section.user), section.digest)
}

/// What is scanned, and under which key.
pub(crate) struct Plan {
    scan_id: String,
    /// Which scan of the device it is: by it the server knows which of two is the later one.
    number: u64,
    home: PathBuf,
    key: InventoryKey,
    /// When the scan begins, by the server's clock.
    started_at: Timestamp,
    /// What a scan is known by whose process is ended.
    mark: Mark,
    acknowledged: BTreeMap<(Client, String), String>,
    /// What the server has, however long ago it had it; nothing where this scan cannot tell that something is gone.
    known: Vec<Unchanged>,
    /// Nobody knows here what the server has, although it had something: a file was lost.
    has_forgotten: bool,
    /// Whether it says what folders of projects are called.
    names_projects: bool,
}

impl Plan {
    /// Reads what a scan needs. The home itself is not touched: it may lie on a machine that is away, and whoever calls may not wait.
    ///
    /// Errors: enrolment, for the agent of the machine; folder, disk.
    pub fn new(
        agent: &Agent,
        home: &Path,
        state: &State,
        clock: &dyn Clock,
        entropy: &dyn Entropy,
    ) -> Result<Self, Trouble> {
        if agent.device.mode == Mode::System {
            return Err(Trouble::new(Cause::Enrolment, NO_SCANS));
        }
        let folder = &agent.folder;
        let mut known = Acknowledged::load(folder)?;
        let number = counter::next_scan(folder)?;
        let has_forgotten = known.full_at.is_none() && number > 1;
        let acknowledged = known.current(clock.now());
        // Only a home in which the agent itself lies is known to be there, and not the empty place of a disk that is away.
        let is_there = folder.path().starts_with(home);
        if !is_there {
            known.sections.clear();
        }
        Ok(Self {
            scan_id: format!("scan-{}", URL_SAFE_NO_PAD.encode(&entropy.seed()[..12])),
            number,
            home: home.to_owned(),
            key: inventory_key(folder, entropy)?,
            started_at: clock.now().plus_ms(state.skew_ms),
            mark: Mark::unmarked(folder, state, clock.now()),
            acknowledged,
            known: known.sections,
            has_forgotten: is_there && has_forgotten,
            names_projects: state.shows_project_names(),
        })
    }

    /// Counts the scan and marks it. Who only looks at a report does not.
    ///
    /// Errors: folder, disk.
    pub fn counted(self, folder: &Folder, state: &State, clock: &dyn Clock) -> Result<Self, Trouble> {
        counter::scanned(folder, self.number)?;
        let mark = Mark::begin(folder, state, clock.now())?;
        Ok(Self { mark, ..self })
    }

    /// Scans, until time is up or `stop` says so, and returns the bytes of the report.
    ///
    /// Errors: disk, when the home cannot be read.
    pub fn carry_out(self, clock: &dyn Clock, stop: &dyn Fn() -> bool) -> Result<Vec<u8>, Trouble> {
        let begin = clock.monotonic();
        let is_over = || stop() || clock.monotonic().saturating_sub(begin) >= MOST;
        let machine = Machine {
            root: Path::new("/"),
            home: &self.home,
            platform: Platform::HERE,
            stop: &is_over,
        };
        owned(&self.home)?;
        let watch = |path: &Path| self.mark.reads(path);
        let found = scan_watched(&machine, &self.key, &watch).map_err(|error| {
            let line = format!("cannot read the home {}: {error}", self.home.display());
            Trouble::new(Cause::Disk, line)
        })?;
        self.mark.has_read();
        // A client without a section is gone where there was time, and where nothing says that it may have files in a project.
        let is_in_time = !is_over();
        let missed = Client::ALL.map(|client| found.may_miss(client).then_some(client));
        let took = clock.monotonic().saturating_sub(begin);
        let started = self.started_at;
        let finished = started.plus_ms(i64::try_from(took.as_millis()).unwrap_or_default());
        // Keeps PV-2.
        let found = if self.names_projects {
            found.name_projects()
        } else {
            found
        };
        let mut report = Report::of(self.scan_id, (started, finished), &[found], &self.acknowledged);
        report.counter = i64::try_from(self.number).ok();
        if is_in_time {
            let mut known = self.known;
            if let Some(user) = report.sections.first().filter(|_| self.has_forgotten) {
                known.extend(Client::ALL.map(|client| Unchanged {
                    client,
                    user: user.user.clone(),
                    digest: String::new(),
                }));
            }
            known.retain(|had| !missed.contains(&Some(had.client)));
            add_vanished(&mut report, known, self.acknowledged.is_empty());
        }
        fitted(report)
    }
}

/// Refuses the home of another account: root, with somebody's `HOME` in its surroundings, would read what that person's links name.
fn owned(home: &Path) -> Result<(), Trouble> {
    // The scan says why one cannot be looked at.
    let Ok(found) = home.metadata() else {
        return Ok(());
    };
    let (owner, own) = (found.uid(), geteuid().as_raw());
    if owner == own {
        return Ok(());
    }
    let line = format!(
        "the home {} belongs to the account {owner}, and the agent runs as {own}",
        home.display()
    );
    Err(Trouble::new(Cause::Disk, line).fix("run the agent as the home's owner"))
}

/// Returns the bytes of a report. Where they are more than a server reads, the longest section is cut until they are not: what was left
/// out is a fault of that section, which removes nothing then.
pub(crate) fn fitted(mut report: Report) -> Result<Vec<u8>, Trouble> {
    loop {
        let bytes = serde_json::to_vec(&report)
            .map_err(|error| Trouble::new(Cause::Disk, format!("the report cannot be written: {error}")))?;
        let length = |section: &Section| serde_json::to_vec(section).map_or(0, |bytes| bytes.len());
        let longest = report.sections.iter_mut().max_by_key(|section| length(section));
        let Some(section) = longest.filter(|_| bytes.len() > wire::MAX_BYTES) else {
            return Ok(bytes);
        };
        let kept = section.observations.len() / 2;
        let Some(first) = section.observations.get(kept) else {
            return Ok(bytes);
        };
        let fault = SectionFault {
            place: first.place().clone().without_project_name(),
            fault: Fault::Truncated,
        };
        section.observations.truncate(kept);
        section.faults.truncate(wire::MAX_FAULTS - 1);
        if !section.faults.contains(&fault) {
            section.faults.push(fault);
        }
        section.complete = false;
        section.digest = wire::digest(&section.observations, &section.faults);
    }
}

/// Adds an empty section for each that the server has and of which nothing is left here: what is not named stays there. Once a day
/// (`is_full`) it is said again of what the server knows already: it may have been restored since.
fn add_vanished(report: &mut Report, known: Vec<Unchanged>, is_full: bool) {
    let nothing = wire::digest(&[], &[]);
    for had in known {
        let sent = report
            .sections
            .iter()
            .map(|section| (section.client, &section.user));
        let kept = report
            .unchanged
            .iter()
            .map(|section| (section.client, &section.user));
        let has_room = report.sections.len() + report.unchanged.len() < wire::MAX_SECTIONS;
        let is_named = sent.chain(kept).any(|named| named == (had.client, &had.user));
        if has_room && !is_named && (is_full || had.digest != nothing) {
            report.sections.push(Section {
                client: had.client,
                user: had.user,
                digest: nothing.clone(),
                complete: true,
                faults: Vec::new(),
                observations: Vec::new(),
            });
        }
    }
}

/// Scans and returns the bytes of the report that would be sent now.
///
/// Errors: enrolment, for the agent of the machine; folder, disk.
pub fn report(
    agent: &Agent,
    home: &Path,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<Vec<u8>, Trouble> {
    let state = State::load(&agent.folder)?;
    Plan::new(agent, home, &state, clock, entropy)?.carry_out(clock, &|| false)
}

/// Keeps what the server has after a report, and says whether it wants something again.
///
/// Errors: disk.
pub(crate) fn acknowledge(
    folder: &Folder,
    body: &[u8],
    answer: &Value,
    now: Timestamp,
) -> Result<bool, Trouble> {
    let Ok(report) = serde_json::from_slice::<Report>(body) else {
        return Ok(false);
    };
    // The server knows a later scan of this device: this folder is older than that, or has a copy. The next scan follows that one.
    if answer.get("ignored").is_some() {
        if let Some(last) = answer.get("lastCounter").and_then(Value::as_u64) {
            counter::scanned(folder, last)?;
        }
        return Ok(true);
    }
    let unknown: Vec<&str> = answer
        .get("unknownDigests")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let before = Acknowledged::load(folder)?;
    let is_full = report.unchanged.is_empty();
    // What this report does not name the server has as before: it may be gone, and could not be said to be.
    let mut sections: BTreeMap<(Client, String), String> = before.sections.into_iter().map(entry).collect();
    let sent = report.sections.into_iter().map(|section| Unchanged {
        client: section.client,
        user: section.user,
        digest: section.digest,
    });
    sections.extend(sent.chain(report.unchanged).map(|mut section| {
        // The server has something else of it: it is sent whole, or said to be gone.
        if unknown.contains(&section.digest.as_str()) {
            section.digest = String::new();
        }
        entry(section)
    }));
    let section = |((client, user), digest)| Unchanged { client, user, digest };
    let after = Acknowledged {
        full_at: if is_full { Some(now) } else { before.full_at },
        sections: sections.into_iter().map(section).collect(),
    };
    folder.replace(
        ACKNOWLEDGED,
        &serde_json::to_vec_pretty(&after).unwrap_or_default(),
    )?;
    Ok(!unknown.is_empty())
}

/// Returns the key under which this machine names commands of no known form: that of its reports, or, where it has sent none, one by which
/// nothing is told and nothing else is equal.
///
/// Errors: folder, disk.
pub(crate) fn key_of_commands(folder: &Folder) -> Result<InventoryKey, Trouble> {
    match folder.read(INVENTORY_KEY)? {
        Some(text) => key_in(folder, &Secret::new(text)),
        None => Ok(InventoryKey::new(&[0; 32])),
    }
}

/// Returns the key of this machine's fingerprints, which is drawn once and leaves it never.
fn inventory_key(folder: &Folder, entropy: &dyn Entropy) -> Result<InventoryKey, Trouble> {
    let text = if let Some(text) = folder.read(INVENTORY_KEY)? {
        Secret::new(text)
    } else {
        let text = Secret::new(URL_SAFE_NO_PAD.encode(entropy.seed()).into_bytes());
        folder.create(INVENTORY_KEY, text.expose())?;
        text
    };
    key_in(folder, &text)
}

/// Returns the key that a text spells.
fn key_in(folder: &Folder, text: &Secret<Vec<u8>>) -> Result<InventoryKey, Trouble> {
    let wrong = || {
        let line = format!("{} holds no key", folder.file(INVENTORY_KEY).display());
        Trouble::new(Cause::Folder, line).fix("remove it: a new one is drawn, and fingerprints begin anew")
    };
    let bytes = URL_SAFE_NO_PAD
        .decode(text.expose().trim_ascii())
        .map_err(|_| wrong())?;
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| wrong())?;
    Ok(InventoryKey::new(&bytes))
}
