//! What a long task found so far, one line for each thing, kept when the task is stopped.

use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Context, Outcome};

/// The lines of one task.
pub struct Journal<E> {
    file: PathBuf,
    pub entries: Vec<E>,
}

impl<E: Serialize + DeserializeOwned> Journal<E> {
    /// Reads the journal; a line that a stopped task left half-written is as if it were not there.
    pub fn open(workplace: &Path) -> Outcome<Self> {
        let file = workplace.join("journal.jsonl");
        let text = if file.exists() {
            std::fs::read_to_string(&file).context(file.display())?
        } else {
            String::new()
        };
        let entries = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        Ok(Self { file, entries })
    }

    pub fn add(&mut self, entry: E) -> Outcome {
        let line = serde_json::to_string(&entry).context("cannot write the journal")?;
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)
            .context(self.file.display())?;
        // The line break comes first, so that a half-written line spoils itself alone.
        file.write_all(format!("\n{line}").as_bytes())
            .context(self.file.display())?;
        self.entries.push(entry);
        Ok(())
    }
}

/// A number that another binary has with no likelihood worth naming.
pub fn name_of(binary: &Path) -> Outcome<u64> {
    let bytes = std::fs::read(binary).context(binary.display())?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn a_journal_is_read_again_and_a_half_written_line_is_skipped() {
        let folder = process::target().join(format!("journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut journal = Journal::<String>::open(&folder).unwrap();
        journal.add("first".to_owned()).unwrap();
        std::fs::OpenOptions::new()
            .append(true)
            .open(folder.join("journal.jsonl"))
            .unwrap()
            .write_all(b"\n\"seco")
            .unwrap();
        journal.add("third".to_owned()).unwrap();
        let entries = Journal::<String>::open(&folder).unwrap().entries;
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(entries, ["first", "third"]);
    }
}
