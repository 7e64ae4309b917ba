//! The skills of a person's machine, kept equal to those that an admin assigned to its device.
//!
//! ```text
//! heartbeat ──► which skills, which versions ──► here as written: nothing
//!                                            └─► signed listing, archive ──► checked as `skills install` does ──► ~/.claude/skills/<name>/
//! no longer assigned, or withdrawn ──► the files that were written go; what a person changed or put there stays
//! ```
//!
//! The receipts are the agent's own: a skill that a person installed is that person's, and is left alone. Keeps SL-1, SL-2, SL-3.

use super::asked::{Device, KNOWN_KEYS, disk, of_failure};
use crate::cli::{Exit, Failure, TrustedKeys};
use crate::skills::install::{checked, must_fit};
use crate::skills::receipt::{Receipt, Receipts, State, cannot};
use crate::skills::signed::Listing;
use crate::skills::skill_folder::SkillFolder;
use provost_agent::{Agent, Cause, Mode, Station, Trouble, Visit, Visited};
use provost_skill_package::is_valid_name;
use provost_words::dsse::SignedKind;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Where Claude Code looks for skills, below the home.
const PLACE: &str = ".claude/skills";
/// The receipts, in the folder of the agent.
const RECEIPTS: &str = "skills";

/// Skills below a home.
pub struct Skills {
    home: PathBuf,
}

/// A skill, as the server offers it to a device. Members of later servers are left out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Offer {
    item_id: String,
    version: String,
    digest: String,
}

impl Skills {
    /// Returns the skills of a home.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    async fn work(&self, visit: &Visit<'_>) -> Result<(), Trouble> {
        let answer = match visit.get("skills").await {
            // An earlier server has no such operation; what it is asked for by a command it is told that nothing came of.
            Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405)) && !visit.is_commanded => {
                return Ok(());
            }
            answer => answer?,
        };
        // What is not there is removed: a list that cannot be read is none.
        let offers = answer.get("skills").cloned().unwrap_or_default();
        let offers: Vec<Offer> = serde_json::from_value(offers)
            .map_err(|error| disk(format!("the server's list of skills cannot be read: {error}")))?;
        if visit.agent.device.mode != Mode::User {
            return match offers.first() {
                None => Ok(()),
                Some(_) => Err(disk(
                    "skills are people's, and this is the agent of the machine: assign them to the device of a person",
                )),
            };
        }
        let folder = visit.agent.folder.path().join(RECEIPTS);
        let receipts = Receipts::change_in(folder).map_err(of_failure)?;
        let all = receipts.all().map_err(of_failure)?;
        let mut first = None;
        for receipt in &all {
            if !offers.iter().any(|offer| offer.item_id == receipt.item_id) {
                let gone = remove(&receipts, receipt, visit.say);
                first = first.or(gone.err().map(of_failure));
            }
        }
        for offer in &offers {
            let known = all.iter().find(|receipt| receipt.item_id == offer.item_id);
            match self.install(visit, &receipts, known, offer).await {
                Ok(()) => {}
                Err(trouble) if trouble.cause == Cause::Gone => return Err(trouble),
                Err(trouble) => first = first.or(Some(trouble)),
            }
        }
        first.map_or(Ok(()), Err)
    }

    async fn install(
        &self,
        visit: &Visit<'_>,
        receipts: &Receipts,
        known: Option<&Receipt>,
        offer: &Offer,
    ) -> Result<(), Trouble> {
        if let Some(known) = known
            && is_here(known, offer).map_err(of_failure)?
        {
            return Ok(());
        }
        let device = Device::new(visit);
        let done = self.fetch(&device, receipts, known, offer).await;
        match (done, device.lost()) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(trouble)) if trouble.cause == Cause::Gone => Err(trouble),
            (Err(failure), _) => Err(of_failure(failure)),
        }
    }

    async fn fetch(
        &self,
        device: &Device<'_>,
        receipts: &Receipts,
        known: Option<&Receipt>,
        offer: &Offer,
    ) -> Result<(), Failure> {
        let visit = device.visit;
        let enrolled = &visit.agent.device;
        let below = format!("skills/{}", offer.item_id);
        let answer = device.heard(visit.get(&below).await)?;
        let envelope = answer.get("envelope").cloned().unwrap_or(Value::Null);
        let mut trusted = TrustedKeys::kept_in(
            visit.agent.folder.file(KNOWN_KEYS),
            (&enrolled.server, &enrolled.organization),
        )?;
        let payload = trusted.open(device, &envelope, SignedKind::Skill).await?;
        let listing = Listing::read(&payload)?;
        // INVARIANT SL-2: a good signature over another skill or version is no good here.
        let is_offered = listing.item_id == offer.item_id
            && listing.organization_id == enrolled.organization
            && listing.version == offer.version
            && listing.digest == offer.digest;
        if !is_offered || !is_valid_name(&listing.name) {
            let line = format!(
                "the server answered with {}@{} of {}, signed, instead of {}@{}",
                listing.item_ref(),
                listing.version,
                listing.organization_id,
                offer.item_id,
                offer.version
            );
            return Err(Failure::new(Exit::Conflict, line));
        }
        let place = self.place(&listing.name)?;
        let before = receipts.at(&place)?;
        judge(&place, before.as_ref().or(known), offer)?;
        let archive = device.bytes(&format!("{below}/content")).await?;
        let package = checked(&archive, &listing)?;
        let mut receipt = Receipt {
            state: State::Installing,
            server: enrolled.server.clone(),
            organization: enrolled.organization.clone(),
            item_id: listing.item_id.clone(),
            item_ref: listing.item_ref(),
            name: listing.name.clone(),
            version: listing.version.clone(),
            digest: listing.digest.clone(),
            client: "claude-code".into(),
            device: enrolled.device_id.clone(),
            path: place.folder.clone(),
            install_id: String::new(),
            installed_at: visit.clock.now().to_rfc3339(),
            files: Vec::new(),
            previous: before.map(|before| before.known()).unwrap_or_default(),
            envelope: Value::Null,
        };
        // INVARIANT SL-3: the receipt is there before the first file.
        receipts.save(&receipt)?;
        must_fit(&place, &receipt, &listing)?;
        receipt.files.clone_from(&listing.files);
        receipt.envelope = envelope;
        receipts.save(&receipt)?;
        place
            .replace(&package, &receipt.known())
            .map_err(|error| cannot("write", &place.folder, &error))?;
        receipt.state = State::Installed;
        receipt.previous.clear();
        receipts.save(&receipt)?;
        let shown = receipt.path.display();
        (visit.say)(&format!(
            "installed {}@{} in {shown}",
            receipt.item_ref, receipt.version
        ));
        Ok(())
    }

    /// Returns the place of a skill; the folder of skills is made when it is not there.
    fn place(&self, name: &str) -> Result<SkillFolder, Failure> {
        let skills = self.home.join(PLACE);
        let skills = fs::create_dir_all(&skills)
            .and_then(|()| skills.canonicalize())
            .map_err(|error| cannot("make", &skills, &error))?;
        Ok(SkillFolder {
            folder: skills.join(name),
        })
    }
}

/// Says whether a skill lies here as it is offered. What a person changed of it is that person's, and not written again.
fn is_here(known: &Receipt, offer: &Offer) -> Result<bool, Failure> {
    let is_offered = known.version == offer.version && known.digest == offer.digest;
    if !is_offered || known.state != State::Installed {
        return Ok(false);
    }
    let place = SkillFolder {
        folder: known.path.clone(),
    };
    let sight = place
        .survey(&known.known())
        .map_err(|error| cannot("read", &known.path, &error))?;
    Ok(sight.missing.is_empty())
}

/// Refuses a place that is a person's, and one whose files a person changed.
///
/// Keeps SL-1.
fn judge(place: &SkillFolder, before: Option<&Receipt>, offer: &Offer) -> Result<(), Failure> {
    let shown = place.folder.display();
    let Some(before) = before.filter(|before| before.path == place.folder) else {
        if place.is_taken() {
            let line = format!("{shown} is there and was not installed by this agent; it stays as it is");
            return Err(
                Failure::new(Exit::Conflict, line).and("move it away to get the one of the organization")
            );
        }
        return Ok(());
    };
    if before.item_id != offer.item_id {
        let line = format!("{shown} belongs to another skill, {}", before.item_ref);
        return Err(Failure::new(Exit::Conflict, line));
    }
    let known = before.known();
    let sight = place
        .settle(&known)
        .and_then(|()| place.survey(&known))
        .map_err(|error| cannot("read", &place.folder, &error))?;
    match sight.changed.first() {
        None => Ok(()),
        Some(changed) => {
            let line = format!("{shown}/{changed} was changed since it was installed; the new version waits");
            Err(Failure::new(Exit::Conflict, line).and("move the folder away to get it"))
        }
    }
}

/// Removes what was written of a skill; what a person changed or put there stays and is that person's from now on.
fn remove(receipts: &Receipts, receipt: &Receipt, say: &dyn Fn(&str)) -> Result<(), Failure> {
    let mut receipt = receipt.clone();
    receipt.state = State::Uninstalling;
    receipts.save(&receipt)?;
    let place = SkillFolder {
        folder: receipt.path.clone(),
    };
    let left = place
        .remove(&receipt.known(), false)
        .map_err(|error| cannot("remove the files in", &receipt.path, &error))?;
    let shown = receipt.path.display();
    for path in left.changed.iter().chain(&left.foreign) {
        say(&format!("{shown}/{path} stays"));
    }
    say(&format!(
        "removed {}@{} from {shown}",
        receipt.item_ref, receipt.version
    ));
    receipts.forget(&receipt)
}

impl Station for Skills {
    fn command(&self) -> &'static str {
        "sync_skills"
    }

    fn visit<'a>(&'a self, visit: &'a Visit<'a>) -> Visited<'a> {
        Box::pin(self.work(visit))
    }

    /// Without the server everything stays as it is.
    fn alone<'a>(&'a self, _: &'a Agent, _: &'a dyn Fn(&str)) -> Visited<'a> {
        Box::pin(std::future::ready(Ok(())))
    }
}
