//! The managed settings of this machine, kept equal to the releases of the profiles that an admin assigned to its device.
//!
//! ```text
//! heartbeat ──► which profiles, which revision ──► unchanged, in place, confirmed lately: nothing
//!                                              └─► the release ──► checked as `managed-config pull` does ──► FILE ──► report
//! no server ──► FILE holds the release applied last again, by its signature
//! ```
//!
//! Where a program's file lies this program knows, and no server says it. Keeps MP-1, MP-2, MP-3.
//!
//! INVARIANT MP-4: the agent writes the file of managed settings of a program that it knows, in a folder that root alone can change,
//! and no file that somebody else wrote there; what is assigned no longer it leaves as it is.

mod offers;

use super::asked::{Device, KNOWN_KEYS, disk, of_failure};
use super::marks::highest;
use crate::cli::{Failure, TrustedKeys};
use crate::managed_config::applied_release::AppliedRelease;
use crate::managed_config::manifest::Mark;
use crate::managed_config::report::Report;
use crate::managed_config::round::Pull;
use offers::{Offer, Offers, assigned, keep_assigned, read};
use provost_agent::{Agent, Cause, Mode, Station, Trouble, Visit, Visited};
use rustix::process::geteuid;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Programs, and where each reads its managed settings.
const PLACES: [(&str, &str); 2] = [
    ("claude_code", "etc/claude-code/managed-settings.json"),
    ("codex", "etc/codex/requirements.toml"),
];

/// Managed settings below a root.
pub struct Configuration {
    root: PathBuf,
    /// By profile, what was done last.
    done: RefCell<BTreeMap<String, Done>>,
}

/// What was done last of a profile.
struct Done {
    revision: String,
    /// By the clock since the machine started.
    at: Duration,
    /// Whether the release was applied; else the server was told that it is not.
    is_applied: bool,
}

impl Configuration {
    /// Returns the managed settings below a root: `/`, or a folder in its place.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            done: RefCell::default(),
        }
    }

    async fn work(&self, visit: &Visit<'_>) -> Result<(), Trouble> {
        let list = visit.get("profiles").await;
        let done = match list.and_then(|answer| read(&answer)) {
            Ok(offers) => return self.apply_all(visit, offers).await,
            Err(trouble) if trouble.cause == Cause::Gone => return Err(trouble),
            // An earlier server has no such operation; what it is asked for by a command it is told that nothing came of.
            Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405)) && !visit.is_commanded => {
                Ok(())
            }
            Err(trouble) => Err(trouble),
        };
        // Whatever stands in the way of the list must not leave the machine with what somebody wrote.
        let healed = self.heal(visit.agent, visit.say).await;
        done.and(healed)
    }

    /// Applies what is offered. Whatever stands in the way, FILE holds what was applied last and is assigned still.
    async fn apply_all(&self, visit: &Visit<'_>, offers: Offers) -> Result<(), Trouble> {
        // By what the server says now: it may be that it could not be kept.
        let assigned = offers.assigned(assigned(visit.agent).unwrap_or_default());
        match self.apply_each(visit, offers).await {
            Err(trouble) if trouble.cause != Cause::Gone => {
                if let Err(other) = self.put_back(visit.agent, visit.say, &assigned).await {
                    (visit.say)(&format!("warning: {other}"));
                }
                Err(trouble)
            }
            done => done,
        }
    }

    /// Two offers for one program are a server's fault: then nothing is applied.
    async fn apply_each(&self, visit: &Visit<'_>, offers: Offers) -> Result<(), Trouble> {
        let is_twice = |offer: &Offer| {
            let same = offers.read.iter().filter(|other| other.target == offer.target);
            same.count() > 1
        };
        if let Some(offer) = offers.read.iter().find(|offer| is_twice(offer)) {
            let line = format!(
                "the server offers two profiles for {}; none is applied",
                offer.target
            );
            return Err(disk(line));
        }
        // A full disk keeps nothing from being applied.
        let unkept = keep_assigned(visit.agent, &offers).err();
        let Offers { read, trouble, .. } = offers;
        self.done
            .borrow_mut()
            .retain(|id, _| read.iter().any(|offer| offer.profile_id == *id));
        let mut first = trouble.or(unkept);
        for offer in &read {
            match self.apply(visit, offer).await {
                Ok(()) => {}
                Err(trouble) if trouble.cause == Cause::Gone => return Err(trouble),
                Err(trouble) => {
                    first.get_or_insert(trouble);
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    async fn apply(&self, visit: &Visit<'_>, offer: &Offer) -> Result<(), Trouble> {
        // Before the first publication nothing is to be done.
        let Some(release) = &offer.release else {
            return Ok(());
        };
        let device = Device::new(visit);
        let now = visit.clock.since_boot();
        let (target, to) = match self.place(visit.agent, &offer.target) {
            Ok(place) => place,
            Err(why) => return self.refuse(&device, offer, &release.id, why, now).await,
        };
        let highest = highest(visit.agent, &to, &offer.profile_id)?;
        let pull = pull(offer.profile_id.clone(), target, to, highest);
        let mut trusted = trusted(visit.agent, &pull.to).map_err(of_failure)?;
        if let Some(why) = &offer.withheld {
            let organization = &visit.agent.device.organization;
            if pull.heal(organization, &trusted).await.map_err(of_failure)? {
                (visit.say)(&healed(&pull.to));
            }
            let why = format!("the server withholds the release: {why}");
            return self.refuse(&device, offer, &release.id, why, now).await;
        }
        if !visit.is_commanded
            && self.is_recent(offer, true, now)
            && pull.is_in_place().map_err(of_failure)?
        {
            return Ok(());
        }
        match pull.round(&device, &mut trusted, true).await {
            Ok(done) => {
                if done.outcome != "unchanged" {
                    let (shown, version) = (pull.to.display(), done.manifest.version);
                    (visit.say)(&format!("{shown}: version {version} {}", done.outcome));
                }
                self.keep(offer, true, now);
                Ok(())
            }
            Err(failure) => match device.lost() {
                Some(trouble) if trouble.cause == Cause::Gone => Err(trouble),
                // Of what was never applied here the round says nothing to the server.
                None if AppliedRelease::load(&pull.to).is_ok_and(|kept| kept.is_none()) => {
                    let why = failure.lines.join("; ");
                    self.refuse(&device, offer, &release.id, why, now).await
                }
                _ => Err(of_failure(failure)),
            },
        }
    }

    /// Says whether this was done of this revision within its interval. What failed is tried at each heartbeat.
    fn is_recent(&self, offer: &Offer, is_applied: bool, now: Duration) -> bool {
        let every = Duration::from_secs(offer.poll_interval_seconds);
        let done = self.done.borrow();
        let done = done.get(&offer.profile_id);
        done.is_some_and(|done| {
            done.is_applied == is_applied
                && done.revision == offer.revision
                && now.saturating_sub(done.at) < every
        })
    }

    fn keep(&self, offer: &Offer, is_applied: bool, at: Duration) {
        let done = Done {
            revision: offer.revision.clone(),
            at,
            is_applied,
        };
        self.done.borrow_mut().insert(offer.profile_id.clone(), done);
    }

    /// Tells the server that a release is not applied here, once for each revision and interval; the log and the status say it at each
    /// round.
    async fn refuse(
        &self,
        device: &Device<'_>,
        offer: &Offer,
        release: &str,
        why: String,
        now: Duration,
    ) -> Result<(), Trouble> {
        if !self.is_recent(offer, false, now) {
            let report = Report {
                release_id: release,
                content_digest: format!("sha256:{}", "0".repeat(64)),
                state: "failed",
                message: Some(why.clone()),
            };
            let path = format!("profiles/{}/reports", offer.profile_id);
            device.visit.post(&path, &report.body()).await?;
            self.keep(offer, false, now);
        }
        Err(disk(why))
    }

    /// Returns the file of a program.
    ///
    /// Errors: why it is not this agent's to write (MP-4).
    fn place(&self, agent: &Agent, target: &str) -> Result<(&'static str, PathBuf), String> {
        if agent.device.mode != Mode::System {
            return Err(
                "managed settings are root's, and this is the agent of one person: enrol one of the machine (--system)"
                    .to_owned(),
            );
        }
        let place = PLACES.iter().find(|(program, _)| *program == target);
        let Some((target, place)) = place else {
            return Err(format!("this agent knows no place for the settings of {target}"));
        };
        let to = self.root.join(place);
        self.guarded(to.parent().unwrap_or(&self.root))?;
        let is_ours = AppliedRelease::load(&to).is_ok_and(|kept| kept.is_some());
        let stands = match to.symlink_metadata() {
            Ok(_) => true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => return Err(format!("cannot look at {}: {error}", to.display())),
        };
        if stands && !is_ours {
            return Err(format!(
                "{} is there and was not written by this agent: publish it (provost managed-config import) and move it away",
                to.display()
            ));
        }
        Ok((target, to))
    }

    /// Refuses a folder that somebody else could change, itself or above: root would write where a link leads.
    fn guarded(&self, folder: &Path) -> Result<(), String> {
        let below = folder.strip_prefix(&self.root).unwrap_or(folder);
        let mut path = self.root.clone();
        for part in below {
            path.push(part);
            let shown = path.display();
            let found = path.symlink_metadata().map_err(|error| {
                let why = format!("cannot use the folder {shown}: {error}");
                match error.kind() {
                    std::io::ErrorKind::NotFound => format!("{why}; make it: sudo mkdir -p -m 755 {shown}"),
                    _ => why,
                }
            })?;
            if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
                return Err(format!(
                    "{shown} is no folder that root alone can change; nothing was written"
                ));
            }
        }
        Ok(())
    }

    /// Puts back what was applied last and is assigned still. What stands in the way of one program does not stand in that of another.
    async fn heal(&self, agent: &Agent, say: &dyn Fn(&str)) -> Result<(), Trouble> {
        self.put_back(agent, say, &assigned(agent)?).await
    }

    async fn put_back(&self, agent: &Agent, say: &dyn Fn(&str), assigned: &[String]) -> Result<(), Trouble> {
        let mut first = None;
        for (target, _) in PLACES {
            let Ok((target, to)) = self.place(agent, target) else {
                continue;
            };
            match put_back(agent, target, to, assigned).await {
                Ok(None) => {}
                Ok(Some(line)) => say(&line),
                Err(failure) => {
                    first.get_or_insert(of_failure(failure));
                }
            }
        }
        first.map_or(Ok(()), Err)
    }
}

/// Puts the file of one program back; says so where it did.
async fn put_back(
    agent: &Agent,
    target: &'static str,
    to: PathBuf,
    assigned: &[String],
) -> Result<Option<String>, Failure> {
    let Some(kept) = AppliedRelease::load(&to)? else {
        return Ok(None);
    };
    if !assigned.contains(&kept.profile_id) {
        return Ok(None);
    }
    let trusted = trusted(agent, &to)?;
    let pull = pull(kept.profile_id, target, to, None);
    let is_healed = pull.heal(&agent.device.organization, &trusted).await?;
    Ok(is_healed.then(|| healed(&pull.to)))
}

fn pull(profile_id: String, target: &'static str, to: PathBuf, highest: Option<Mark>) -> Pull {
    Pull {
        profile_id,
        to,
        defaults_to: None,
        may_change: true,
        target: Some(target),
        highest,
    }
}

/// Returns the keys that count: those of the server from which the file came, else of the one that the machine enrolled at.
fn trusted(agent: &Agent, to: &Path) -> Result<TrustedKeys, Failure> {
    let kept = AppliedRelease::load(to)?;
    let url = kept.map_or_else(|| agent.device.server.clone(), |kept| kept.url);
    TrustedKeys::kept_in(agent.folder.file(KNOWN_KEYS), (&url, &agent.device.organization))
}

fn healed(to: &Path) -> String {
    let shown = to.display();
    format!("{shown} was changed on this machine and holds the release pulled before again")
}

impl Station for Configuration {
    fn command(&self) -> &'static str {
        "reapply_config"
    }

    fn visit<'a>(&'a self, visit: &'a Visit<'a>) -> Visited<'a> {
        Box::pin(self.work(visit))
    }

    fn alone<'a>(&'a self, agent: &'a Agent, say: &'a dyn Fn(&str)) -> Visited<'a> {
        Box::pin(self.heal(agent, say))
    }
}
