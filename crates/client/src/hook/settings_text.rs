//! A client's settings as text: what is registered in them, and the text with and without it.

use crate::cli::{Exit, Failure, replace_file};
use provost_hooks::{
    Client, Conflict, Mode, Registration, found, hooks, merged, merged_text, removed, removed_text,
};
use provost_words::json;
use serde_json::{Map, Value};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// LIMIT: levels of a settings file.
const MAX_DEPTH: usize = 100;

/// A client's settings file as it is.
pub struct SettingsFile {
    client: Client,
    path: PathBuf,
    text: String,
    is_there: bool,
}

impl SettingsFile {
    /// Reads it; one that is not there has no text.
    ///
    /// Errors: usage, when it cannot be read.
    pub fn read(client: Client, path: PathBuf) -> Result<Self, Failure> {
        // Settings are often links into a folder that is kept elsewhere: what they mean is changed, not the link.
        let path = fs::canonicalize(&path).unwrap_or(path);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self {
                client,
                path,
                text,
                is_there: true,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self {
                client,
                path,
                text: String::new(),
                is_there: false,
            }),
            Err(error) => Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its members.
    ///
    /// Errors: a conflict, when it is not what the client reads; no sentence quotes it.
    pub fn members(&self) -> Result<Map<String, Value>, Failure> {
        self.parsed(&self.text)
    }

    /// Returns what is registered of ours.
    ///
    /// Errors: as [`Self::members`].
    pub fn found(&self) -> Result<Option<Registration>, Failure> {
        Ok(found(self.client, &Value::Object(self.members()?)))
    }

    /// Returns the text with this command line registered.
    ///
    /// Errors: a conflict, when it cannot be put together.
    pub fn with(&self, mode: Mode, command: &str, program: &Path) -> Result<String, Failure> {
        let text = if self.client == Client::Codex {
            let rest = self.parsed(&removed_text(&self.text))?;
            let folder = program.parent().unwrap_or(Path::new("/")).display().to_string();
            merged_text(&self.text, &rest, command, &folder).map_err(|why| self.conflict(&why))?
        } else {
            let ours = hooks(self.client, mode, command);
            let merged = merged(self.client, self.members()?, &ours).map_err(|why| self.conflict(&why))?;
            pretty(merged)
        };
        // What was put together is read again before it takes the place of what works.
        self.parsed(&text)?;
        Ok(text)
    }

    /// Returns the text without what is registered of ours.
    ///
    /// Errors: as [`Self::with`].
    pub fn without(&self) -> Result<String, Failure> {
        if self.client == Client::Codex {
            return Ok(removed_text(&self.text));
        }
        let before = self.members()?;
        let after = removed(self.client, before.clone()).map_err(|why| self.conflict(&why))?;
        Ok(if after == before {
            self.text.clone()
        } else {
            pretty(after)
        })
    }

    /// Writes another text in its place, keeps what was there before the first change beside it, and says whether anything changed.
    ///
    /// Errors: what cannot be written.
    pub fn replace(&self, text: &str, new_mode: u32) -> Result<bool, Failure> {
        if self.is_there && self.text == text {
            return Ok(false);
        }
        let cannot = |path: &Path, error: std::io::Error| {
            Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display()))
        };
        let mut mode = new_mode;
        if self.is_there {
            let metadata = fs::metadata(&self.path).map_err(|error| cannot(&self.path, error))?;
            mode = metadata.permissions().mode() & 0o777;
            let backup = self.backup();
            if !backup.exists() {
                replace_file(&backup, self.text.as_bytes(), mode).map_err(|error| cannot(&backup, error))?;
            }
        } else if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|error| cannot(folder, error))?;
        }
        replace_file(&self.path, text.as_bytes(), mode).map_err(|error| cannot(&self.path, error))?;
        Ok(true)
    }

    /// Returns where the text of before the first change is kept.
    pub fn backup(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".before-provost");
        self.path.with_file_name(name)
    }

    fn parsed(&self, text: &str) -> Result<Map<String, Value>, Failure> {
        let shown = self.path.display();
        let wrong = |why: String| {
            Failure::new(Exit::Conflict, format!("{shown} {why}; nothing was changed"))
                .and("correct it, or add what --print shows by hand")
        };
        if self.client == Client::Codex {
            let table: toml::Table = toml::from_str(text).map_err(|error: toml::de::Error| {
                let at = error.span().map_or(0, |span| span.start);
                let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
                wrong(format!("is not TOML: line {line}"))
            })?;
            return match serde_json::to_value(table) {
                Ok(Value::Object(members)) => Ok(members),
                _ => Err(wrong("has a value that cannot be read".to_owned())),
            };
        }
        if text.trim().is_empty() {
            return Ok(Map::new());
        }
        // Strict: of a member that stands twice one would be lost.
        match json::parse(text.as_bytes(), MAX_DEPTH) {
            Ok(Value::Object(_)) => {}
            Ok(_) => return Err(wrong("is no JSON object".to_owned())),
            Err(error) => {
                return Err(wrong(format!(
                    "is not JSON that can be changed: {}",
                    error.message()
                )));
            }
        }
        serde_json::from_str(text).map_err(|_| wrong("is no JSON object".to_owned()))
    }

    fn conflict(&self, why: &Conflict) -> Failure {
        Failure::new(
            Exit::Conflict,
            format!("{} was not changed: {}", self.path.display(), why.0),
        )
    }
}

fn pretty(members: Map<String, Value>) -> String {
    format!("{:#}\n", Value::Object(members))
}
