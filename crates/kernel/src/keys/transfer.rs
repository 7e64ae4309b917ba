//! Moving the long-lived keys to another machine (D12.8).

use super::key::{Key, KeyFile};
use super::{Keys, folder, setup};
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

const FORMAT: &str = "provost-keys/1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Export {
    format: String,
    keys: Vec<KeyFile>,
    /// The lines of `checkpoints.jsonl`, the oldest first.
    checkpoints: Vec<String>,
    /// The lines of `ends.jsonl`, the oldest first; none in an export of an earlier build.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ends: Vec<String>,
}

impl Keys {
    /// Returns one JSON document with every long-lived key and the checkpoints. It is not encrypted.
    ///
    /// Day keys are left out: they must not outlive their days (D4.8).
    pub fn export_plain(&self) -> Result<Secret<String>> {
        let ring = self.ring();
        let file = |key: &Arc<Key>| {
            let mut file = key.to_file();
            file.pending = ring.waits(key);
            file
        };
        let export = Export {
            format: FORMAT.to_owned(),
            keys: ring.keys().iter().map(file).collect(),
            checkpoints: self.checkpoint_lines()?,
            ends: self
                .end_lines()
                .map_err(|e| setup("ends.jsonl in the keys folder cannot be read").caused_by(e))?,
        };
        // Room from the start, so that growing leaves no copy of the keys behind.
        let both = export.checkpoints.iter().chain(&export.ends);
        let lines: usize = both.map(|line| 2 * line.len() + 8).sum();
        let mut json = Zeroizing::new(Vec::with_capacity(lines + 256 * (export.keys.len() + 1)));
        serde_json::to_writer(&mut *json, &export).map_err(Error::internal)?;
        let text = std::str::from_utf8(&json).map_err(Error::internal)?;
        Ok(Secret::new(text.to_owned()))
    }

    /// Writes an export into an empty or missing folder and opens it. What was taken away between the export and `now` is in no
    /// line of `ends.jsonl`, which says so.
    pub fn import_plain(dir: &Path, export: &Secret<String>, now: Timestamp) -> Result<Self> {
        // The parser's words may quote the document, so they are not kept.
        let export: Export = serde_json::from_str(export.expose())
            .map_err(|_| setup("the export is not a document of provost keys"))?;
        if export.format != FORMAT {
            return Err(setup(
                "the export has a format that this version does not understand",
            ));
        }
        let keys = export
            .keys
            .iter()
            .map(Key::from_file)
            .collect::<Result<Vec<_>>>()?;
        let waiting = export.keys.iter().filter(|key| key.pending);
        let pending = waiting.map(|key| key.id.clone()).collect();
        let imported = Self::assemble(dir, keys, &pending)?;
        folder::make(dir)?;
        if !folder::names(dir)?.is_empty() {
            return Err(setup(
                "the keys folder is not empty; keys are imported into an empty one only",
            ));
        }
        for id in &pending {
            folder::mark_pending(dir, id)?;
        }
        for key in imported.ring().keys() {
            folder::add(dir, key)?;
        }
        for line in &export.checkpoints {
            imported.append_checkpoint_line(line)?;
        }
        imported
            .adopt_ends(now, &export.ends)
            .map_err(|e| setup("ends.jsonl cannot be written to the keys folder").caused_by(e))?;
        Ok(imported)
    }
}
