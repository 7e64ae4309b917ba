//! The driver's own record of what was asked and answered, in a process that is not killed.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::failure::{Context, Outcome};
use crate::http::Answer;

/// One JSON object per line; kept for the post-mortem of a failed run.
pub struct RequestLog {
    file: Mutex<File>,
}

impl RequestLog {
    pub fn new(file: File) -> Self {
        Self {
            file: Mutex::new(file),
        }
    }

    pub fn note(
        &self,
        worker: usize,
        event: &str,
        key: &str,
        intent: &impl std::fmt::Debug,
        answer: Option<&Answer>,
    ) {
        let mut line = json!({"worker": worker, "event": event, "key": key, "intent": format!("{intent:?}")});
        if let Some(answer) = answer {
            line["status"] = json!(answer.status);
            line["replayed"] = json!(answer.replayed);
            line["body"] = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // The checks use the memory of this process; a full disk shows at the next sync.
        drop(writeln!(file, "{line}"));
    }

    /// Puts the lines on the disk, once per cycle: more often would compete with the server's syncs.
    pub fn sync(&self) -> Outcome {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.sync_data().context("cannot keep the ledger")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_one_line() {
        let path = std::env::temp_dir().join(format!("provost-ledger-{}", std::process::id()));
        let ledger = RequestLog::new(File::create(&path).unwrap());
        ledger.note(3, "unanswered", "key-1", &"Create\n{}", None);
        ledger.note(4, "acknowledged", "key-2", &(), None);
        ledger.sync().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["key"], "key-1");
    }
}
