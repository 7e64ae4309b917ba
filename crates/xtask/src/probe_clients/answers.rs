//! What a client answered before: a run that was stopped, as by a machine that went down, goes on where it was.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::{Context, Failure, Outcome};

/// The answers of one client of one version to files of one class, each on a line of its own as soon as it is known.
pub struct Answers {
    known: BTreeMap<String, Value>,
    file: Mutex<std::fs::File>,
}

impl Answers {
    /// Opens the file of answers; forgets what it holds unless an earlier run is gone on with.
    pub fn open(path: &Path, goes_on: bool) -> Outcome<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).context(format_args!("cannot create {}", folder.display()))?;
        }
        let text = match std::fs::read_to_string(path) {
            Ok(text) if goes_on => text,
            _ => String::new(),
        };
        // A line that was not written to its end is asked for again.
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let known: BTreeMap<String, Value> = lines.collect::<Vec<(String, Value)>>().into_iter().collect();
        if !known.is_empty() {
            println!("  {} answers are known from before", known.len());
        }
        let cannot = format!("cannot write {}", path.display());
        let mut file = std::fs::File::create(path).context(&cannot)?;
        for (question, answer) in &known {
            writeln!(file, "{}", json!([question, answer])).context(&cannot)?;
        }
        Ok(Self {
            known,
            file: Mutex::new(file),
        })
    }

    /// Returns the answer to a question about a document: the one that is known, or that of the client.
    pub fn of<T: Serialize + DeserializeOwned>(
        &self,
        question: &str,
        document: &Value,
        ask: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        let question = format!("{question} {document}");
        if let Some(known) = self.known.get(&question) {
            return serde_json::from_value(known.clone())
                .context("an answer that is known is of another kind");
        }
        let answer = ask()?;
        let line = format!("{}\n", json!([question, answer]));
        let mut file = self
            .file
            .lock()
            .map_err(|_| Failure::new("another probe panicked"))?;
        file.write_all(line.as_bytes()).context("cannot keep an answer")?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_asks_only_for_what_is_not_known() {
        let path = std::env::temp_dir().join(format!("provost-answers-{}.jsonl", std::process::id()));
        let document = json!({ "model": 7 });
        let answers = Answers::open(&path, false).unwrap();
        let asked = answers.of("doctor", &document, || Ok(Some("no".to_owned())));
        assert_eq!(asked.unwrap().as_deref(), Some("no"));
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, whole + r#"["doctor {}","#).unwrap();

        let answers = Answers::open(&path, true).unwrap();
        let known: Option<String> = answers.of("doctor", &document, || panic!("it is known")).unwrap();
        assert_eq!(known.as_deref(), Some("no"));
        assert!(answers.of("doctor", &json!({}), || Ok(true)).unwrap());

        let answers = Answers::open(&path, false).unwrap();
        let anew = answers.of("doctor", &document, || Ok(None::<String>));
        assert_eq!(anew.unwrap(), None);
        std::fs::remove_file(path).unwrap();
    }
}
