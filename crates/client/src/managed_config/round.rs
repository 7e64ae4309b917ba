//! One round of a pull: ask, check, write, keep, report.

use super::applied_release::{self, AppliedRelease};
use super::file::{self, FileState};
use super::manifest::{Manifest, Mark, Text};
use super::report::{Origin, Report};
use super::verify;
use crate::cli::{Exit, Failure, TrustedKeys};
use provost_words::dsse::SignedKind;
use provost_words::time::{Clock, SystemClock};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// What is pulled where.
pub struct Pull {
    pub profile_id: String,
    pub to: PathBuf,
    pub defaults_to: Option<PathBuf>,
    /// Whether FILE may go from one profile of the organization to another: people say at the server which one a device has.
    pub may_change: bool,
    /// The program that reads FILE, where whoever pulls knows it: a release for another one is refused, whatever the server says.
    pub target: Option<&'static str>,
    /// How far the profile had come on this machine, whatever FILE holds now.
    pub highest: Option<Mark>,
}

/// How a round ended well.
pub struct Done {
    pub manifest: Manifest,
    /// `written`, `unchanged` or `healed`.
    pub outcome: &'static str,
    pub poll_interval_seconds: u64,
}

/// What the server offers.
struct Offer {
    manifest: Manifest,
    kept: AppliedRelease,
}

impl Pull {
    /// Does one round. Whatever fails, FILE stays what it was, or becomes the last applied release again.
    ///
    /// Errors: conflict, when the offer is not signed, not ours or older; output, when FILE cannot be written;
    /// else why the server did not answer.
    pub async fn round(
        &self,
        client: &impl Origin,
        trusted: &mut TrustedKeys,
        reports: bool,
    ) -> Result<Done, Failure> {
        let _lock = applied_release::lock(&self.to).await?;
        let kept = AppliedRelease::load(&self.to)?;
        if let Some(kept) = &kept {
            self.is_ours(kept, client)?;
        }
        // Of another profile nothing is put back: it is replaced where this one succeeds, and stays as it is until then.
        let kept = kept.filter(|kept| kept.profile_id == self.profile_id);
        let applied = kept.as_ref().map(AppliedRelease::manifest).transpose()?;
        let found = FileState::at(&self.to)?;
        let is_drifted = applied
            .as_ref()
            .and_then(|m| m.file("enforced"))
            .is_some_and(|entry| !found.is(entry));
        // Before anybody is asked: a server that hangs must not leave the machine with what somebody wrote.
        if is_drifted && let Some(kept) = &kept {
            match self.put_back(kept, trusted) {
                Ok(_) => client.note(&format!(
                    "{} was changed on this machine and holds the release pulled before again",
                    self.to.display()
                )),
                Err(failure) => client.note(&failure.lines.join("; ")),
            }
        }
        let offer = match self.offer(client, trusted).await {
            Ok(offer) => offer,
            Err(failure) => return Err(self.without_offer(failure, kept.as_ref(), trusted, client).await),
        };
        if let (true, Some(applied)) = (is_drifted, &applied) {
            let report = failed(
                applied,
                found.digest(Some(applied)),
                "drifted: the file was changed on this machine",
            );
            self.report(client, report).await;
        }
        let behind = applied.as_ref().map(Manifest::mark);
        let allowed = [&behind, &self.highest]
            .into_iter()
            .flatten()
            .try_for_each(|mark| offer.manifest.may_follow(mark));
        let written = allowed.and_then(|()| {
            if self.may_change {
                // Whoever leaves files alone that it did not write has to know its own, also after a kill between the two.
                offer.kept.save(&self.to)?;
            }
            self.apply(client, &offer)
        });
        let has_written = match written {
            Ok(has_written) => has_written,
            Err(failure) => {
                let failure = self.healed(failure, kept.as_ref(), trusted);
                let known = applied.as_ref().unwrap_or(&offer.manifest);
                let found = FileState::at(&self.to)?;
                let why = failure.lines.first().map_or("", String::as_str);
                self.report(client, failed(known, found.digest(applied.as_ref()), why))
                    .await;
                return Err(failure);
            }
        };
        offer.kept.save(&self.to)?;
        let outcome = match (is_drifted, has_written) {
            (true, _) => "healed",
            (false, true) => "written",
            (false, false) => "unchanged",
        };
        let is_news = outcome != "unchanged";
        if is_news || reports {
            let message = is_drifted.then(|| "healed: the file was written again".to_owned());
            let report = Report {
                release_id: &offer.manifest.release_id,
                content_digest: offer.manifest.content_digest.clone(),
                state: "verified",
                message,
            };
            self.report(client, report).await;
        }
        Ok(Done {
            poll_interval_seconds: offer.kept.poll_interval_seconds,
            manifest: offer.manifest,
            outcome,
        })
    }

    /// Puts the last applied release back where something else stands in its place, and asks nobody; says whether it did.
    ///
    /// Errors: conflict, when what is kept is not signed by a trusted key or belongs to another profile or organization; output, when
    /// FILE cannot be written.
    pub async fn heal(&self, organization: &str, trusted: &TrustedKeys) -> Result<bool, Failure> {
        let _lock = applied_release::lock(&self.to).await?;
        let Some(kept) = AppliedRelease::load(&self.to)? else {
            return Ok(false);
        };
        let is_ours = kept.organization == organization && kept.profile_id == self.profile_id;
        if !is_ours || self.is_in_place()? {
            return Ok(false);
        }
        self.put_back(&kept, trusted).map(|_| true)
    }

    /// Says whether FILE holds the release applied last; also where none was.
    ///
    /// Errors: conflict, when what is kept cannot be read; output, when FILE cannot.
    pub fn is_in_place(&self) -> Result<bool, Failure> {
        let Some(kept) = AppliedRelease::load(&self.to)? else {
            return Ok(true);
        };
        let manifest = kept.manifest()?;
        let found = FileState::at(&self.to)?;
        Ok(manifest.file("enforced").is_none_or(|entry| found.is(entry)))
    }

    fn is_ours(&self, kept: &AppliedRelease, client: &impl Origin) -> Result<(), Failure> {
        let is_same = self.may_change || kept.profile_id == self.profile_id;
        if is_same && kept.organization == client.organization() {
            return Ok(());
        }
        let line = format!(
            "{} belongs to the profile {} of the organization {}",
            self.to.display(),
            kept.profile_id,
            kept.organization
        );
        let path = AppliedRelease::path(&self.to);
        Err(Failure::new(Exit::Conflict, line)
            .and(format!("to give it to another profile remove {}", path.display())))
    }

    /// Fetches the current release and checks everything that does not depend on this machine's past.
    async fn offer(&self, client: &impl Origin, trusted: &mut TrustedKeys) -> Result<Offer, Failure> {
        let current = client.current(&self.profile_id).await?;
        if current.get("redacted") == Some(&Value::Bool(true)) {
            let line = "the server shows this account the release with its secret values hidden, which is for reading only";
            return Err(Failure::new(Exit::Forbidden, line).and(
                "pull with a service account that has the scope managed_config:pull; no account has it that does not name it"
                    .to_owned(),
            ));
        }
        let wrong = || {
            Failure::new(
                Exit::ServerFault,
                "the answer is no release; is this a Provost server?",
            )
        };
        let envelope = current.get("envelope").ok_or_else(wrong)?;
        let contents: Vec<Text> =
            serde_json::from_value(current.get("files").cloned().unwrap_or_default()).map_err(|_| wrong())?;
        let payload = trusted.open(client, envelope, SignedKind::Release).await?;
        let manifest = Manifest::checked(&payload, &contents)?;
        manifest.is_of(client.organization(), &self.profile_id)?;
        self.target.map_or(Ok(()), |target| manifest.is_for(target))?;
        let interval = current
            .pointer("/profile/pollIntervalSeconds")
            .and_then(Value::as_u64);
        let kept = AppliedRelease {
            url: trusted.url().to_owned(),
            organization: client.organization().to_owned(),
            profile_id: self.profile_id.clone(),
            confirmed_at: SystemClock::new().now(),
            poll_interval_seconds: interval.unwrap_or(3600).clamp(10, 86_400),
            envelope: envelope.clone(),
            files: contents,
        };
        Ok(Offer { manifest, kept })
    }

    /// Writes what is not in place yet; returns whether the enforced file was written.
    fn apply(&self, client: &impl Origin, offer: &Offer) -> Result<bool, Failure> {
        let contents = &offer.kept.files;
        let mut has_written = false;
        if let Some(entry) = offer.manifest.file("enforced")
            && !FileState::at(&self.to)?.is(entry)
        {
            file::put(&self.to, entry, contents)?;
            has_written = true;
        }
        match (offer.manifest.file("defaults"), &self.defaults_to) {
            (Some(entry), Some(path)) => {
                let found = FileState::at(path)?;
                // Claude Code's starting values go into the user's own file: whatever is there is the user's.
                if offer.manifest.target == "claude_code" && found != FileState::Nothing {
                    if has_written {
                        client.note(&format!("{} is there already and stays", path.display()));
                    }
                } else if !found.is(entry) {
                    file::put(path, entry, contents)?;
                }
            }
            (None, Some(path)) => self.forget_defaults(path, client)?,
            (Some(_), None) if has_written => {
                client.note("the release has defaults: --defaults-to FILE writes them");
            }
            _ => {}
        }
        Ok(has_written)
    }

    /// Removes the defaults of an earlier release if they are still what was written.
    fn forget_defaults(&self, path: &std::path::Path, client: &impl Origin) -> Result<(), Failure> {
        let Some(kept) = AppliedRelease::load(&self.to)? else {
            return Ok(());
        };
        let earlier = kept.manifest()?;
        let is_it = match earlier.file("defaults") {
            Some(entry) => earlier.target != "claude_code" && FileState::at(path)?.is(entry),
            None => false,
        };
        if is_it {
            client.note(&format!(
                "the release has no defaults; removing {}",
                path.display()
            ));
            let removed = fs::remove_file(path);
            removed.map_err(|error| {
                Failure::new(Exit::Output, format!("cannot remove {}: {error}", path.display()))
            })?;
        }
        Ok(())
    }

    /// Puts the last applied release back, and says what is in place.
    async fn without_offer(
        &self,
        failure: Failure,
        kept: Option<&AppliedRelease>,
        trusted: &TrustedKeys,
        client: &impl Origin,
    ) -> Failure {
        let is_refusal = failure.exit == Exit::Conflict;
        let failure = self.healed(failure, kept, trusted);
        let Some(applied) = kept.and_then(|kept| kept.manifest().ok()) else {
            return failure;
        };
        if let (true, Ok(found)) = (is_refusal, FileState::at(&self.to)) {
            let why = failure.lines.first().map_or("", String::as_str);
            self.report(client, failed(&applied, found.digest(Some(&applied)), why))
                .await;
        }
        failure
    }

    fn healed(&self, failure: Failure, kept: Option<&AppliedRelease>, trusted: &TrustedKeys) -> Failure {
        let Some(kept) = kept else { return failure };
        let shown = self.to.display();
        match self.put_back(kept, trusted) {
            Ok(manifest) => {
                let failure = failure.and(format!(
                    "{shown} holds version {}, pulled before",
                    manifest.version
                ));
                if !verify::is_overdue(&manifest, kept, SystemClock::new().now()) {
                    return failure;
                }
                let words = verify::overdue(kept).lines.concat();
                failure.and(format!("{words}: `provost managed-config verify` refuses it"))
            }
            Err(other) => failure.and(other.lines.join("; ")),
        }
    }

    /// Writes the enforced file of the kept release where it is not in place.
    fn put_back(&self, kept: &AppliedRelease, trusted: &TrustedKeys) -> Result<Manifest, Failure> {
        let payload = trusted.verified(&kept.envelope, SignedKind::Release)?;
        let manifest = Manifest::checked(&payload, &kept.files)?;
        self.target.map_or(Ok(()), |target| manifest.is_for(target))?;
        if let Some(entry) = manifest.file("enforced")
            && !FileState::at(&self.to)?.is(entry)
        {
            file::put(&self.to, entry, &kept.files)?;
        }
        Ok(manifest)
    }

    /// A report that is not taken is no reason to leave the machine without its file.
    async fn report(&self, client: &impl Origin, report: Report<'_>) {
        if let Err(failure) = client.report(&self.profile_id, report).await {
            let why = failure.lines.first().map_or("", String::as_str);
            client.note(&format!("warning: the report was not taken: {why}"));
        }
    }
}

impl Done {
    /// Returns the round as the answer of the command.
    pub fn answer(&self, pull: &Pull) -> Value {
        let manifest = &self.manifest;
        json!({
            "outcome": self.outcome, "profileId": manifest.profile_id, "releaseId": manifest.release_id,
            "version": manifest.version, "storeEpoch": manifest.store_epoch,
            "contentDigest": manifest.content_digest, "file": pull.to.display().to_string(),
        })
    }
}

fn failed<'a>(manifest: &'a Manifest, content_digest: String, why: &str) -> Report<'a> {
    Report {
        release_id: &manifest.release_id,
        content_digest,
        state: "failed",
        message: Some(why.to_owned()),
    }
}
