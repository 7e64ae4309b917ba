//! Signed checkpoints, and the keys whose signatures count.

use crate::commands::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_areas_platform::audit::origin;
use provost_areas_platform::identity::Identity;
use provost_kernel::checkpoint::{Checkpoint, parse_and_verify};
use provost_kernel::keys::Keys;
use serde_json::Value;
use std::path::Path;

/// The public keys that the operator trusts, and with a keys folder what lies in it.
pub struct TrustAnchors {
    public_keys: Vec<(String, [u8; 32])>,
    /// The keys folder, when it is what is trusted.
    pub keys: Option<Keys>,
}

impl TrustAnchors {
    /// Returns the keys of a folder; `None` when there is no folder, as on an auditor's machine.
    pub fn of_folder(dir: &Path) -> Result<Option<Self>, Failure> {
        if !dir.exists() {
            return Ok(None);
        }
        let keys = Keys::open(dir)?;
        Ok(Some(Self {
            public_keys: keys.checkpoint_public_keys(),
            keys: Some(keys),
        }))
    }

    /// Returns the keys of a published document.
    pub fn of_file(path: &Path) -> Result<Self, Failure> {
        let wrong = || {
            Failure::new(format!(
                "{} is no answer of /.well-known/provost-keys.json",
                path.display()
            ))
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::of_file("the public keys cannot be read", path, &error))?;
        let document: Value = serde_json::from_str(&text).map_err(|_| wrong())?;
        let key = |key: &Value| {
            let bytes = STANDARD.decode(key.get("key")?.as_str()?).ok()?;
            Some((key.get("name")?.as_str()?.to_owned(), bytes.try_into().ok()?))
        };
        let listed = document.get("keys").and_then(Value::as_array).ok_or_else(wrong)?;
        let public_keys: Option<Vec<_>> = listed.iter().map(key).collect();
        Ok(Self {
            public_keys: public_keys.filter(|keys| !keys.is_empty()).ok_or_else(wrong)?,
            keys: None,
        })
    }

    /// Returns the checkpoints of a file: one note, or JSON of which each line holds one.
    pub fn read(&self, path: &Path) -> Result<Vec<Checkpoint>, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::of_file("the checkpoint cannot be read", path, &error))?;
        if !text.starts_with('{') {
            return Ok(vec![self.verified(&text)?]);
        }
        let whole: Result<Value, _> = serde_json::from_str(&text);
        // Lines of the keys folder that are about a store, and hold no checkpoint, are passed over.
        let is_mark = |object: &Value| object.get("storeId").is_some() && object.get("note").is_none();
        let mut objects: Vec<Value> = match whole {
            Ok(one) => vec![one],
            Err(_) => text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
        };
        objects.retain(|object| !is_mark(object));
        let note = |object: &Value| {
            let member = object.get("note").or_else(|| object.get("checkpoint"))?;
            member.as_str().map(str::to_owned)
        };
        let notes: Option<Vec<String>> = objects.iter().map(note).collect();
        let notes = notes.filter(|notes| !notes.is_empty());
        let notes = notes.ok_or_else(|| Failure::new(format!("{} holds no checkpoint", path.display())))?;
        notes.iter().map(|note| self.verified(note)).collect()
    }

    /// Returns the checkpoints of one chain in the lines of `checkpoints.jsonl` that are about a store. A restore begins anew:
    /// what was signed before it may cover entries that the restored store never had (D12.9).
    pub fn of_lines(
        &self,
        lines: &[String],
        store: &CheckpointFilter,
        organization: &str,
    ) -> Result<Vec<Checkpoint>, Failure> {
        let mut checkpoints = Vec::new();
        for line in lines {
            let broken = || Failure::new("a line of checkpoints.jsonl in the keys folder is no checkpoint");
            let line: Value = serde_json::from_str(line).map_err(|_| broken())?;
            if !store.is_meant(&line) {
                continue;
            }
            if line.get("organizationId").and_then(Value::as_str) != Some(organization) {
                continue;
            }
            if line.get("event").and_then(Value::as_str) == Some("restored") {
                checkpoints.clear();
            }
            checkpoints.push(self.verified(line.get("note").and_then(Value::as_str).ok_or_else(broken)?)?);
        }
        Ok(checkpoints)
    }

    /// Returns what a note says, when a trusted key signed it.
    pub fn verified(&self, note: &str) -> Result<Checkpoint, Failure> {
        Ok(parse_and_verify(note, &self.public_keys)?)
    }
}

/// Which lines of `checkpoints.jsonl` are about the store that is verified.
pub struct CheckpointFilter {
    /// What the store says that it is.
    pub identity: Option<Identity>,
    /// Whether the lines that name no store are its own.
    pub unnamed: bool,
}

impl CheckpointFilter {
    fn is_meant(&self, line: &Value) -> bool {
        let named = line.get("storeId").and_then(Value::as_str);
        let epoch = line.get("storeEpoch").and_then(Value::as_i64).unwrap_or(0);
        match (named, &self.identity) {
            (None, _) => self.unnamed,
            (Some(_), None) => false,
            (Some(id), Some(known)) => known.id == id && known.epoch == epoch,
        }
    }
}

/// Returns those checkpoints that are about an organization's chain.
pub fn about(checkpoints: &[Checkpoint], organization: &str) -> Vec<Checkpoint> {
    let own = origin(organization);
    checkpoints
        .iter()
        .filter(|checkpoint| checkpoint.origin == own)
        .cloned()
        .collect()
}
