//! How much a report may hold, and of what form its texts are.

use super::key::is_key;
use super::{Place, Report, Section, SectionFault, Sighting, digest};
use crate::hide::{LONG, is_no_name};
use crate::secrets::{has_long_run, looks_secret};
use provost_words::visible::visible;
use std::collections::BTreeSet;

/// LIMIT: bytes of a report (F3.9).
pub const MAX_BYTES: usize = 4 << 20;
/// LIMIT: sections of a report. Ours: eleven clients in some twenty homes.
pub const MAX_SECTIONS: usize = 256;
/// LIMIT: observations of a report, and of a device (F3.9).
pub const MAX_OBSERVATIONS: usize = 2_000;
/// LIMIT: faults of a section. Ours; a scan makes no more.
pub const MAX_FAULTS: usize = 100;
/// LIMIT: the name of a scan. Ours.
const MAX_SCAN_ID: usize = 64;
/// LIMIT: the identity of a server. Ours; a longer address is left out and said.
pub(super) const MAX_KEY: usize = 512;
/// LIMIT: a name. Ours; a scan cuts at 128 characters and says so with one more.
const MAX_NAME: usize = 160;
/// LIMIT: what a folder of a project is called. Ours; a longer name is not said.
const MAX_PROJECT_NAME: usize = 128;
/// LIMIT: the count of scans; JSON has no larger whole number that every reader keeps.
const MAX_COUNTER: i64 = 9_007_199_254_740_991;
/// LIMIT: a version; a tag of an image has no more.
const MAX_VERSION: usize = 128;
/// LIMIT: the value of a setting. Ours.
const MAX_VALUE: usize = 64;
/// LIMIT: lists of names of a server. Those of a scan.
const MAX_SHAPES: usize = 32;
const MAX_VARIABLES: usize = 64;
const MAX_HEADERS: usize = 32;

/// What is said of a place that is none.
const NO_PLACE: &str = "a place is a kind of file and fingerprints of 32 hexadecimal digits; what its project is called has 1 to 128 \
                        characters on one line, and stands beside the project's fingerprint";

impl Report {
    /// Returns why this is no report, in a sentence that holds nothing of it; `None` where it is one.
    pub fn refusal(&self) -> Option<&'static str> {
        let is_id = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if !(1..=MAX_SCAN_ID).contains(&self.scan_id.len()) || !self.scan_id.chars().all(is_id) {
            return Some("scanId must have 1 to 64 letters, digits, - and _");
        }
        if self
            .counter
            .is_some_and(|counter| !(1..=MAX_COUNTER).contains(&counter))
        {
            return Some("counter must lie between 1 and 9007199254740991");
        }
        if self.finished_at < self.started_at {
            return Some("finishedAt must not be before startedAt");
        }
        if self.sections.len() + self.unchanged.len() > MAX_SECTIONS {
            return Some("a report has at most 256 sections");
        }
        let found = self.sections.iter().map(|section| section.observations.len());
        if found.sum::<usize>() > MAX_OBSERVATIONS {
            return Some("a report has at most 2000 observations in all its sections");
        }
        let mut seen = BTreeSet::new();
        let sent = self
            .sections
            .iter()
            .map(|section| (section.client, &section.user));
        let kept = self
            .unchanged
            .iter()
            .map(|section| (section.client, &section.user));
        if !sent.chain(kept).all(|section| seen.insert(section)) {
            return Some("a report names a client of an account at most once");
        }
        let is_good = |section: &super::Unchanged| is_account(&section.user) && is_digest(&section.digest);
        if !self.unchanged.iter().all(is_good) {
            return Some("an unchanged section has the name of an account and a digest");
        }
        self.sections.iter().find_map(Section::refusal)
    }
}

impl Section {
    fn refusal(&self) -> Option<&'static str> {
        if !is_account(&self.user) {
            return Some(
                "the account of a section must have 1 to 160 characters on one line, and none of /, \\ and =",
            );
        }
        if self.faults.len() > MAX_FAULTS {
            return Some("a section has at most 100 faults");
        }
        if self.complete != self.faults.is_empty() {
            return Some("a section is complete where and only where it has no faults");
        }
        if !self
            .faults
            .iter()
            .all(|SectionFault { place, .. }| place.is_good())
        {
            return Some(NO_PLACE);
        }
        if let Some(refusal) = self.observations.iter().find_map(Sighting::refusal) {
            return Some(refusal);
        }
        (self.digest != digest(&self.observations, &self.faults))
            .then_some("the digest of a section is not that of its observations and faults")
    }
}

impl Place {
    fn is_good(&self) -> bool {
        is_name(&self.class)
            && is_fingerprint(&self.path)
            && self.project.as_deref().is_none_or(is_fingerprint)
            && self
                .project_name
                .as_deref()
                .is_none_or(|name| self.project.is_some() && fits(name, MAX_PROJECT_NAME))
    }
}

impl Sighting {
    /// Returns why a report may not hold this.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        if !self.place().is_good() {
            return Some(NO_PLACE);
        }
        let is_good = match self {
            Self::McpServer {
                key,
                configured_name,
                version,
                arg_shapes,
                env_names,
                header_names,
                ..
            } => {
                fits(key, MAX_KEY)
                    && is_key(key)
                    && is_name(configured_name)
                    && version.as_deref().is_none_or(is_name)
                    && are_names(arg_shapes, MAX_SHAPES)
                    && are_names(env_names, MAX_VARIABLES)
                    && are_names(header_names, MAX_HEADERS)
            }
            Self::Skill { name, digest, .. } => is_name(name) && digest.as_deref().is_none_or(is_digest),
            Self::Extension { name, .. } => is_name(name),
            Self::Hook { event, .. } => is_name(event),
            Self::Setting { name, value, .. } => is_name(name) && fits(value, MAX_VALUE),
            Self::Environment { names, .. } => are_names(names, MAX_VARIABLES),
            Self::Credential {
                member_name,
                fingerprint,
                file_mode,
                ..
            } => {
                (member_name.is_empty() || is_name(member_name))
                    && (is_fingerprint(fingerprint) || is_public_part(fingerprint))
                    && (1..=6).contains(&file_mode.len())
                    && file_mode.bytes().all(|b| (b'0'..=b'7').contains(&b))
            }
            Self::Sessions { .. } => true,
        };
        (!is_good).then_some(
            "an observation has a text that is empty, too long, of several lines or of another form",
        )
    }
}

pub(super) fn fits(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.chars().count()) && !text.contains(|c: char| c.is_control())
}

fn is_name(text: &str) -> bool {
    fits(text, MAX_NAME)
}

/// Sections are told apart by it, so that one which is not kept as it is written would stand for another.
fn is_account(text: &str) -> bool {
    is_name(text) && !is_no_name(text)
}

fn are_names(names: &[String], most: usize) -> bool {
    names.len() <= most && names.iter().all(|name| is_name(name))
}

fn is_hex(text: &str, length: usize) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == length && text.bytes().all(is_digit)
}

pub(super) fn is_fingerprint(text: &str) -> bool {
    is_hex(text, 32)
}

pub(super) fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| is_hex(hex, 64))
}

/// Says whether a text is no name that may be shown: it looks like a credential, a path or an assignment, or is shown otherwise than it is
/// written.
pub(super) fn is_hidden(text: &str) -> bool {
    is_no_name(text) || looks_secret(text) || has_long_run(text, LONG) || visible(text) != text
}

/// Says whether a text is a name that may be shown.
pub fn is_shown_name(text: &str) -> bool {
    is_name(text) && !is_hidden(text)
}

/// Says whether a folder of a project may be said to be called so: a name that may be shown, of at most 128 characters, and no address of a person.
///
/// Keeps PV-2.
pub fn is_project_name(text: &str) -> bool {
    fits(text, MAX_PROJECT_NAME) && is_shown_name(text) && !text.contains('@')
}

/// Says whether a text is a version: of a release, a tag, or a digest.
pub(crate) fn is_version(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"-.+!_".contains(&b);
    is_digest(text) || (fits(text, MAX_VERSION) && text.bytes().all(is_part))
}

/// Says whether a text is `prov_sat_` and the lookup id of one of our tokens, without its secret.
fn is_public_part(text: &str) -> bool {
    let mut parts = text.split('_');
    let (lead, kind, lookup) = (parts.next(), parts.next(), parts.next());
    let kind_fits = kind.is_some_and(|kind| kind.len() == 3 && kind.bytes().all(|b| b.is_ascii_lowercase()));
    let lookup_fits =
        lookup.is_some_and(|id| id.len() == 12 && id.bytes().all(|b| b.is_ascii_alphanumeric()));
    lead == Some("prov") && kind_fits && lookup_fits && parts.next().is_none()
}
