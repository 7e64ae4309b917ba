//! What a release says about itself, and whether it may be applied. Pure.
//!
//! Keeps MP-1, MP-2.

use crate::cli::sha256_hex;
use crate::cli::{Exit, Failure};
use provost_words::Timestamp;
use serde::{Deserialize, Serialize};

/// The payload of the signed envelope. Unknown members are those of later versions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub organization_id: String,
    pub profile_id: String,
    pub release_id: String,
    pub store_epoch: u64,
    pub version: u64,
    pub content_digest: String,
    pub signed_at: Timestamp,
    pub on_unavailable: OnUnavailable,
    pub target: String,
    pub files: Vec<FileEntry>,
}

/// What a machine does that cannot ask the server.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum OnUnavailable {
    LastKnown,
    FailClosed,
}

/// One file of the release.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    pub name: String,
    pub role: String,
    pub mode: String,
    pub sha256: String,
    pub size_bytes: u64,
}

/// The bytes of one file, as the server sends and this machine keeps them.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Text {
    pub name: String,
    pub role: String,
    pub content: String,
}

/// How far a profile has come: what no later release may go behind (MP-2).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    pub store_epoch: u64,
    pub version: u64,
    pub content_digest: String,
    pub signed_at: Timestamp,
}

impl Manifest {
    /// Returns how far its profile has come with it.
    pub fn mark(&self) -> Mark {
        Mark {
            store_epoch: self.store_epoch,
            version: self.version,
            content_digest: self.content_digest.clone(),
            signed_at: self.signed_at,
        }
    }

    /// Refuses what another program reads.
    pub fn is_for(&self, target: &str) -> Result<(), Failure> {
        if self.target == target {
            return Ok(());
        }
        Err(refused(format!(
            "the release was signed for {} and not for {target}",
            self.target
        )))
    }

    /// Reads a payload that was signed, and checks that the contents are those that it names.
    ///
    /// Errors: conflict, when anything does not fit.
    pub fn checked(payload: &[u8], contents: &[Text]) -> Result<Self, Failure> {
        let manifest: Self = serde_json::from_slice(payload)
            .map_err(|error| refused(format!("the signed manifest cannot be read: {error}")))?;
        if manifest.files.len() != contents.len() {
            return Err(refused("the files are not those that the manifest names"));
        }
        for entry in &manifest.files {
            let is_plain = !entry.name.is_empty()
                && !entry.name.starts_with('.')
                && !entry.name.contains(['/', '\\', '\0']);
            if !is_plain {
                return Err(refused(format!("{:?} is no plain file name", entry.name)));
            }
            entry.permissions()?;
            let named: Vec<&Text> = contents.iter().filter(|c| c.name == entry.name).collect();
            let [content] = named[..] else {
                return Err(refused(format!("the file {} is not there once", entry.name)));
            };
            let bytes = content.content.as_bytes();
            if bytes.len() as u64 != entry.size_bytes || sha256_hex(bytes) != entry.sha256 {
                return Err(refused(format!(
                    "the file {} has another digest than was signed",
                    entry.name
                )));
            }
        }
        if manifest
            .files
            .iter()
            .filter(|entry| entry.role == "enforced")
            .count()
            != 1
        {
            return Err(refused("the manifest names no enforced file, or several"));
        }
        Ok(manifest)
    }

    /// Refuses what another organization or profile would get.
    pub fn is_of(&self, organization: &str, profile: &str) -> Result<(), Failure> {
        if self.organization_id == organization && self.profile_id == profile {
            return Ok(());
        }
        Err(refused(format!(
            "the release was signed for the profile {} of the organization {}",
            self.profile_id, self.organization_id
        )))
    }

    /// Refuses a release that is older than one applied before (MP-2).
    pub fn may_follow(&self, applied: &Mark) -> Result<(), Failure> {
        let new = (self.store_epoch, self.version);
        let old = (applied.store_epoch, applied.version);
        if new < old {
            return Err(refused(format!(
                "the server offers version {} of store epoch {}, older than the applied version {} of epoch {}",
                new.1, new.0, old.1, old.0
            )));
        }
        if new == old && self.content_digest != applied.content_digest {
            return Err(refused(format!(
                "the server offers another content as version {}",
                new.1
            )));
        }
        if new == old && self.signed_at < applied.signed_at {
            return Err(refused(
                "the server offers an earlier signature of the applied release",
            ));
        }
        Ok(())
    }

    /// Returns the file of a role.
    pub fn file(&self, role: &str) -> Option<&FileEntry> {
        self.files.iter().find(|entry| entry.role == role)
    }
}

impl FileEntry {
    /// Returns the permissions: some of 0644.
    ///
    /// Errors: conflict, when more would be allowed.
    pub fn permissions(&self) -> Result<u32, Failure> {
        let mode = u32::from_str_radix(&self.mode, 8)
            .ok()
            .filter(|mode| mode & !0o644 == 0);
        mode.ok_or_else(|| {
            refused(format!(
                "the file {} would get the permissions {}",
                self.name, self.mode
            ))
        })
    }
}

fn refused(line: impl Into<String>) -> Failure {
    Failure::new(Exit::Conflict, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest(epoch: u64, version: u64, digest: &str, signed_at: i64) -> Manifest {
        let value = json!({
            "organizationId": "acme", "profileId": "prof_1", "releaseId": "mcr_1", "storeEpoch": epoch,
            "version": version, "contentDigest": digest, "signedAt": Timestamp::from_ms(signed_at),
            "onUnavailable": "last_known", "target": "codex", "files": [], "later": 1,
        });
        serde_json::from_value(value).unwrap()
    }

    /// Proves MP-2.
    #[test]
    fn only_the_same_or_a_newer_release_follows() {
        let applied = manifest(1, 5, "a", 10);
        let follows = |next: Manifest| next.may_follow(&applied.mark()).is_ok();
        assert!(follows(manifest(1, 5, "a", 10)));
        assert!(follows(manifest(1, 5, "a", 11)));
        assert!(follows(manifest(1, 6, "b", 9)));
        assert!(follows(manifest(2, 1, "b", 9)));
        assert!(!follows(manifest(1, 4, "a", 11)));
        assert!(!follows(manifest(0, 9, "a", 11)));
        assert!(!follows(manifest(1, 5, "b", 11)));
        assert!(!follows(manifest(1, 5, "a", 9)));
    }

    #[test]
    fn a_release_is_for_the_program_that_was_signed() {
        let codex = manifest(1, 5, "a", 10);
        assert!(codex.is_for("codex").is_ok());
        assert!(codex.is_for("claude_code").is_err() && codex.is_for("").is_err());
    }

    #[test]
    fn contents_are_those_that_were_signed() {
        let payload = |name: &str, mode: &str, role: &str| {
            let mut value = json!({
                "organizationId": "acme", "profileId": "prof_1", "releaseId": "mcr_1", "storeEpoch": 0,
                "version": 1, "contentDigest": "d", "signedAt": Timestamp::EPOCH, "onUnavailable": "fail_closed",
                "target": "codex",
            });
            value["files"] = json!([{ "name": name, "mode": mode, "role": role, "sha256": sha256_hex(b"x"), "sizeBytes": 1 }]);
            value.to_string()
        };
        let content = |name: &str, text: &str| Text {
            name: name.into(),
            role: "enforced".into(),
            content: text.into(),
        };
        let checked =
            |payload: &str, contents: &[Text]| Manifest::checked(payload.as_bytes(), contents).is_ok();
        let good = payload("a.json", "0644", "enforced");
        assert!(checked(&good, &[content("a.json", "x")]));
        assert!(!checked(&good, &[content("a.json", "y")]));
        assert!(!checked(&good, &[content("b.json", "x")]));
        assert!(!checked(&good, &[]));
        assert!(!checked(&good, &[content("a.json", "x"), content("a.json", "x")]));
        for name in ["../a", "a/b", ".a", "", "a\\b"] {
            assert!(
                !checked(&payload(name, "0644", "enforced"), &[content(name, "x")]),
                "{name}"
            );
        }
        for mode in ["0755", "4644", "666", "", "rw"] {
            assert!(
                !checked(&payload("a", mode, "enforced"), &[content("a", "x")]),
                "{mode}"
            );
        }
        assert!(!checked(&payload("a", "0644", "defaults"), &[content("a", "x")]));
    }
}
