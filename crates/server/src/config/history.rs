//! Where recorded events are kept once they are sealed.

use super::Problem;
use crate::areas::history::Place;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where recorded events are kept once they are sealed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct History {
    /// A folder. Servers on one database share it. Default: `history` in the data folder.
    pub folder: Option<PathBuf>,
}

impl History {
    /// Checks what the types do not say.
    pub fn check(&self) -> Result<(), Problem> {
        match &self.folder {
            Some(folder) if folder.as_os_str().is_empty() => {
                Err(Problem("history.folder must not be empty".into()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the folder of the segments.
    pub fn folder(&self, data_dir: &Path) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| data_dir.join("history"))
    }

    /// Opens the place of the segments; a folder is made if it is absent.
    pub fn open(&self, data_dir: &Path) -> Result<Place, Problem> {
        let folder = self.folder(data_dir);
        Place::folder(&folder).map_err(|error| {
            Problem(format!(
                "history.folder: {} cannot be opened: {error}",
                folder.display()
            ))
        })
    }
}
