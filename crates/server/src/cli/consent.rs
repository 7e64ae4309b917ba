//! What accompanies every write: why, the key under which it acts once, and that it cannot be undone.

use super::api::{Effect, Operation};
use super::failure::Failure;
use super::flags::Place;
use super::terminal::Terminal;
use clap::ArgMatches;
use provost_kernel::entropy::{Entropy, SystemEntropy};
use std::fmt::Write as _;

/// The trio of D4.1.
pub(super) struct Consent {
    pub(super) reason: String,
    pub(super) key: String,
    pub(super) confirm: bool,
}

impl Consent {
    /// Takes the trio from the flags and asks a person for what is missing; `None` for a read.
    ///
    /// Errors: usage, when something must be said and nobody is there to say it.
    pub(super) fn obtain(
        operation: &Operation,
        matches: &ArgMatches,
        terminal: &Terminal,
    ) -> Result<Option<Self>, Failure> {
        let Effect::Write {
            confirm: must_confirm,
            ..
        } = operation.kind
        else {
            return Ok(None);
        };
        let key = match matches.get_one::<String>("global.idempotency-key") {
            Some(key) if key.len() <= 255 && key.bytes().all(|b| b.is_ascii_graphic()) => key.clone(),
            Some(_) => {
                return Err(Failure::usage(
                    "--idempotency-key takes 1 to 255 visible ASCII characters",
                ));
            }
            None => new_key(),
        };
        let reason = match matches.get_one::<String>("global.reason") {
            Some(reason) => reason.clone(),
            None => ask(terminal, "reason (goes into the audit log)", "--reason TEXT")?,
        };
        if reason.trim().is_empty() {
            return Err(Failure::usage("the reason is empty; nothing was sent"));
        }
        let said = operation.takes_confirm() && matches.get_flag("global.confirm");
        if must_confirm && !said {
            confirm(operation, matches, terminal)?;
        }
        Ok(Some(Self {
            reason: reason.trim().to_owned(),
            key,
            confirm: said || must_confirm,
        }))
    }

    /// Returns the flags that repeat this very write.
    pub(super) fn repeat(&self) -> String {
        format!(
            "--idempotency-key {} --reason {}",
            quoted(&self.key),
            quoted(&self.reason)
        )
    }
}

fn ask(terminal: &Terminal, question: &str, flag: &str) -> Result<String, Failure> {
    let prompt = terminal
        .prompt
        .as_ref()
        .ok_or_else(|| Failure::usage(format!("this command needs {flag}")))?;
    prompt
        .line(question)
        .map_err(|error| Failure::usage(format!("no answer: {error}; nothing was sent")))
}

/// Lets a person type what the act will hit; a reflex types `y`.
fn confirm(operation: &Operation, matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let target = operation.path_parameters.last();
    let target = target.and_then(|field| matches.get_one::<String>(&Place::Path.id(field)));
    let (question, wanted) = match target {
        Some(id) => (
            format!("nothing can undo this; type {id} to confirm"),
            id.as_str(),
        ),
        None => ("nothing can undo this; type yes to confirm".to_owned(), "yes"),
    };
    let typed = ask(terminal, &question, "--confirm: nothing can undo it")?;
    if typed.trim() == wanted {
        return Ok(());
    }
    Err(Failure::usage("not confirmed; nothing was sent"))
}

/// 128 bits: enough that a retry after a lost rotation may have its secret (D5.5: at least 22 characters).
fn new_key() -> String {
    SystemEntropy.seed()[..16]
        .iter()
        .fold(String::new(), |mut key, byte| {
            let _ = write!(key, "{byte:02x}");
            key
        })
}

/// Quotes for a POSIX shell.
fn quoted(text: &str) -> String {
    let is_plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.:/@%+=,".contains(&b));
    if is_plain {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
