//! The signed listing of a version, and what it must agree with.

use super::reference::Reference;
use crate::cli::{Exit, Failure};
use provost_skill_package::{Manifest, ManifestFile, digest_of};
use serde::Deserialize;

/// What the registry signed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// The organization's key.
    pub organization_id: String,
    /// The item's id.
    pub item_id: String,
    /// The item's namespace, if it has one.
    pub namespace: Option<String>,
    /// The skill's name.
    pub name: String,
    /// The version.
    pub version: String,
    /// The digest of the package.
    pub digest: String,
    /// The files.
    pub files: Vec<ManifestFile>,
}

impl Listing {
    /// Reads a payload whose signature was checked.
    ///
    /// Errors: conflict, when it is no listing or its digest is not that of its files.
    pub fn read(payload: &[u8]) -> Result<Self, Failure> {
        let listing: Self = serde_json::from_slice(payload)
            .map_err(|error| conflict(format!("the signed document is no listing of a skill: {error}")))?;
        if digest_of(&listing.files) != listing.digest {
            return Err(conflict(
                "the signed digest is not that of the signed files".into(),
            ));
        }
        Ok(listing)
    }

    /// `[namespace/]name`.
    pub fn item_ref(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Refuses a listing of another item or version than the one that was asked for.
    // INVARIANT SL-2: a good signature over another skill, or over another version of this one, is no good here.
    pub fn must_answer(&self, wanted: &Reference, organization: &str) -> Result<(), Failure> {
        let is_item = self.item_ref() == wanted.item || self.item_id == wanted.item;
        let is_version = |version: &String| *version == self.version || *version == self.digest;
        if is_item && wanted.version.as_ref().is_none_or(is_version) && self.organization_id == organization {
            return Ok(());
        }
        Err(conflict(format!(
            "the server answered with {}@{} of {}, signed, instead of {} of {organization}",
            self.item_ref(),
            self.version,
            self.organization_id,
            wanted.segment()
        )))
    }

    /// Refuses a package that is not the listed one.
    pub fn must_list(&self, manifest: &Manifest) -> Result<(), Failure> {
        if manifest.name == self.name && manifest.digest == self.digest && manifest.files == self.files {
            return Ok(());
        }
        Err(conflict(format!(
            "the archive is not the signed one: it holds {} {}, signed is {} {}",
            manifest.name, manifest.digest, self.name, self.digest
        )))
    }
}

fn conflict(line: String) -> Failure {
    Failure::new(Exit::Conflict, line)
}
