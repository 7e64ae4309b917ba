//! The words and rules of the skill registry, without storage.
//!
//! Keeps SK-2.

use super::reference::{VersionReference, full_name};
use super::version::Version;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{Timestamp, id};
use provost_skill_package::Manifest;
use schemars::JsonSchema;
use serde::Serialize;

id!(SkillItemId, "ski", "Names an item of the skill registry.");
id!(InstallId, "inst", "Names an install of an item.");
id!(GatewayTokenId, "gwt", "Names a gateway token.");

/// LIMIT: versions of one item; publishing reads them all.
pub const MAX_VERSIONS: i64 = 1_000;
/// LIMIT: places where one principal has one item installed.
pub const MAX_PLACES: usize = 100;
/// The life of a gateway token unless the organization allows less. Units: seconds (D2.4: 90 days).
pub const GATEWAY_LIFETIME_SECS: i64 = 90 * 86_400;

provost_kernel::word! {
    /// Whether an item or a version can be installed.
    pub enum Status {
        /// It can.
        Available = "available",
        /// It cannot, for good; what is installed can be uninstalled.
        Withdrawn = "withdrawn",
    }
}

impl Status {
    /// Returns the status of what was withdrawn at an instant, or never.
    pub const fn of(withdrawn_at: Option<Timestamp>) -> Self {
        match withdrawn_at {
            Some(_) => Status::Withdrawn,
            None => Status::Available,
        }
    }
}

/// An item as it is stored.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its id.
    pub id: SkillItemId,
    /// Its organization, for the view.
    pub organization_id: String,
    /// Its namespace; empty for none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What its newest version says that it does.
    pub description: String,
    /// The version that is installed when none is named.
    pub latest_version: Option<String>,
    /// How many versions it has.
    pub version_count: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was withdrawn.
    pub withdrawn_at: Option<Timestamp>,
}

impl Item {
    /// Returns the instant of a change: never before the last one (D1.2).
    pub fn changed_at(&self, now: Timestamp) -> Timestamp {
        now.max(self.updated_at.plus_ms(1))
    }

    /// Returns `[namespace/]name`.
    pub fn full_name(&self) -> String {
        full_name(&self.namespace, &self.name)
    }
}

/// What is known of a version without its content.
#[derive(Clone, Debug)]
pub struct VersionSummary {
    /// The version.
    pub version: Version,
    /// The digest of its content.
    pub digest: String,
    /// Its place among the item's versions, in the order in which they were published.
    pub number: i64,
    /// When it was withdrawn.
    pub withdrawn_at: Option<Timestamp>,
}

/// Returns the version that is installed when none is named: the highest release that is not withdrawn, else the
/// highest prerelease.
pub fn latest(known: &[VersionSummary]) -> Option<&VersionSummary> {
    known
        .iter()
        .filter(|k| k.withdrawn_at.is_none())
        .max_by_key(|k| (k.version.is_release(), &k.version))
}

/// Returns the version that a reference means: the named one, the newest of the named content, or the latest.
pub fn find<'a>(
    known: &'a [VersionSummary],
    wanted: Option<&VersionReference>,
) -> Option<&'a VersionSummary> {
    let Some(wanted) = wanted else {
        return latest(known);
    };
    known
        .iter()
        .filter(|k| wanted.is(&k.version, &k.digest))
        .max_by_key(|k| (k.withdrawn_at.is_none(), k.number))
}

/// What publishing does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publication {
    /// This version is there already, with the same content.
    Nothing(Version),
    /// This version is new.
    New(Version),
}

/// Decides what publishing this content does (SK-2).
///
/// Errors: `AlreadyExists` when the version has other content, `Conflict` when the content was withdrawn.
pub fn publication(known: &[VersionSummary], asked: Option<&Version>, digest: &str) -> Result<Publication> {
    if let Some(withdrawn) = known
        .iter()
        .find(|k| k.withdrawn_at.is_some() && k.digest == digest)
    {
        let message = format!("this content was withdrawn as version {}", withdrawn.version);
        return Err(Error::new(Code::Conflict, message).with("status", Status::Withdrawn.as_str()));
    }
    let Some(asked) = asked else {
        if let Some(same) = latest(known).filter(|k| k.digest == digest) {
            return Ok(Publication::Nothing(same.version.clone()));
        }
        let highest = known.iter().map(|k| &k.version).max();
        return Ok(Publication::New(
            highest.map_or_else(Version::first, Version::next_patch),
        ));
    };
    match known.iter().find(|k| k.version == *asked) {
        None => Ok(Publication::New(asked.clone())),
        Some(there) if there.digest == digest => Ok(Publication::Nothing(asked.clone())),
        Some(_) => Err(Error::new(
            Code::AlreadyExists,
            format!("version {asked} exists with other content; versions never change"),
        )),
    }
}

/// Refuses what was withdrawn.
pub fn refuse_withdrawn(what: &str, withdrawn_at: Option<Timestamp>) -> Result<()> {
    match withdrawn_at {
        None => Ok(()),
        Some(_) => Err(Error::new(Code::Conflict, format!("{what} was withdrawn"))
            .with("status", Status::Withdrawn.as_str())),
    }
}

provost_kernel::word! {
    /// Where an install stands.
    pub enum InstallStatus {
        /// It is in use.
        Installed = "installed",
        /// It was uninstalled, and no client has said yet that the files are gone (D10.7).
        PendingCleanup = "pending_cleanup",
        /// Its files are gone.
        Removed = "removed",
    }
}

/// Where an install lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallPlace {
    /// The client that uses it.
    pub client: String,
    /// The machine, as the client names it.
    pub device: Option<String>,
    /// The folder, as the client names it. It is shown to people and used for nothing else.
    pub path: Option<String>,
}

impl InstallPlace {
    /// Returns a short text that is the same for the same place.
    pub fn key(&self) -> String {
        let text = provost_kernel::json::canonical(&serde_json::json!([self.client, self.device, self.path]));
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
        provost_kernel::audit::hex(digest.as_ref())
    }
}

/// An install as it is stored.
#[derive(Clone, Debug)]
pub struct Install {
    /// Its id.
    pub id: InstallId,
    /// What is installed.
    pub item_id: SkillItemId,
    /// The item's full name.
    pub item_ref: String,
    /// Whose install it is.
    pub principal_id: String,
    /// Where it lies.
    pub place: InstallPlace,
    /// The client's version.
    pub client_version: Option<String>,
    /// The installed version.
    pub version: String,
    /// The digest of its content.
    pub digest: String,
    /// Where it stands.
    pub status: InstallStatus,
    /// When it was installed.
    pub installed_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was uninstalled.
    pub uninstalled_at: Option<Timestamp>,
    /// When its files were gone.
    pub removed_at: Option<Timestamp>,
}

impl Install {
    /// Returns the instant of a change: never before the last one (D1.2).
    pub fn changed_at(&self, now: Timestamp) -> Timestamp {
        now.max(self.updated_at.plus_ms(1))
    }

    /// Says whether an uninstall of this version, or of any, means it (D10.1).
    pub fn is_meant(&self, wanted: Option<&VersionReference>) -> bool {
        wanted.is_none_or(|wanted| {
            Version::parse(&self.version).is_some_and(|version| wanted.is(&version, &self.digest))
        })
    }
}

/// An item of the skill registry.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SkillItem")]
pub struct ItemView {
    id: SkillItemId,
    organization_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    namespace: String,
    name: String,
    /// `[namespace/]name`, by which paths may name the item.
    #[serde(rename = "ref")]
    full_name: String,
    /// What its newest version says that it does.
    description: String,
    status: Status,
    /// The highest release that is not withdrawn, else the highest such prerelease.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_version: Option<String>,
    version_count: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn_at: Option<Timestamp>,
}

impl From<Item> for ItemView {
    fn from(item: Item) -> Self {
        Self {
            full_name: item.full_name(),
            id: item.id,
            organization_id: item.organization_id,
            namespace: item.namespace,
            name: item.name,
            description: item.description,
            status: Status::of(item.withdrawn_at),
            latest_version: item.latest_version,
            version_count: item.version_count,
            created_at: item.created_at,
            updated_at: item.updated_at,
            withdrawn_at: item.withdrawn_at,
        }
    }
}

/// An immutable version of an item.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SkillVersion")]
pub struct VersionView {
    /// The item.
    pub item_id: SkillItemId,
    /// The version.
    pub version: String,
    /// The digest of the content.
    pub digest: String,
    /// The size of the archive. Units: bytes.
    pub size_bytes: i64,
    /// Whether it can be installed.
    pub status: Status,
    /// What the package says of itself, and its files; absent in lists and receipts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    /// When it was published.
    pub published_at: Timestamp,
    /// Who published it.
    pub published_by: String,
    /// When it was withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn_at: Option<Timestamp>,
}

/// One install of an item.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SkillInstall")]
pub struct InstallView {
    install_id: InstallId,
    item_id: SkillItemId,
    /// The item's `[namespace/]name`.
    #[serde(rename = "ref")]
    item_ref: String,
    principal_id: String,
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    version: String,
    digest: String,
    status: InstallStatus,
    installed_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    uninstalled_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed_at: Option<Timestamp>,
}

impl From<Install> for InstallView {
    fn from(install: Install) -> Self {
        Self {
            install_id: install.id,
            item_id: install.item_id,
            item_ref: install.item_ref,
            principal_id: install.principal_id,
            client: install.place.client,
            client_version: install.client_version,
            device: install.place.device,
            path: install.place.path,
            version: install.version,
            digest: install.digest,
            status: install.status,
            installed_at: install.installed_at,
            updated_at: install.updated_at,
            uninstalled_at: install.uninstalled_at,
            removed_at: install.removed_at,
        }
    }
}

#[cfg(test)]
mod tests;
