//! What accompanies every write: why, the key under which it acts once, and that it cannot be undone.

use super::api::{Effect, MetadataPlacement, Operation};
use super::failure::Failure;
use super::flags::FlagTarget;
use super::terminal::{Prompt, Terminal};
use bytes::Bytes;
use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches};
use http::{HeaderMap, HeaderName, HeaderValue};
use provost_words::entropy::{Entropy, SystemEntropy};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// LIMIT: the server takes keys of up to 255 characters (D1.10).
const MAX_KEY: usize = 255;

/// The mutation metadata of D4.1.
#[derive(Clone, Debug)]
pub struct Consent {
    /// Why; goes into the audit log.
    pub reason: String,
    /// The key under which the request acts once.
    pub key: String,
    /// Says that nothing can undo the act and that this is known.
    pub confirm: bool,
    /// What a person still has to type, once it is known what would be lost.
    pub(super) unasked: Option<String>,
    /// The key of the whole command, which repeats it; [`Consent::step`] makes the others of it.
    base: String,
}

/// What a command written by hand has to do with `--confirm`.
#[derive(Clone, Copy, Debug)]
pub enum Confirm<'a> {
    /// It has no such flag.
    Absent,
    /// The flag decides.
    Offered,
    /// Nothing can undo the act: the flag, or a person who types this word.
    Demanded(&'a str),
    /// The same, of a person who is asked once the server has said what would be lost.
    DemandedLater(&'a str),
}

/// Returns the flags that say reason and key.
pub fn consent_args() -> Vec<Arg> {
    let args = [
        Arg::new("global.reason")
            .long("reason")
            .value_name("TEXT")
            .value_parser(NonEmptyStringValueParser::new())
            .help("Why; goes into the audit log (1 to 500 characters) [asked for on a terminal]"),
        Arg::new("global.idempotency-key")
            .long("idempotency-key")
            .value_name("KEY")
            .value_parser(NonEmptyStringValueParser::new())
            .help("The key under which the command acts once (1 to 255 visible characters) [default: a new one]"),
    ];
    args.map(|arg| arg.help_heading("Request")).into()
}

/// Returns the flag `--confirm`.
pub fn confirm_arg(help: &'static str) -> Arg {
    Arg::new("global.confirm")
        .long("confirm")
        .visible_alias("yes")
        .action(ArgAction::SetTrue)
        .help(help)
        .help_heading("Request")
}

impl Consent {
    /// Takes the mutation metadata from the flags and asks a person for what is missing; `None` for a read.
    ///
    /// Errors: usage, when something must be said and nobody is there to say it.
    pub(super) fn obtain(
        operation: &Operation,
        matches: &ArgMatches,
        terminal: &Terminal,
    ) -> Result<Option<Self>, Failure> {
        let Effect::Write {
            confirm: must_confirm,
            metadata,
        } = operation.kind
        else {
            return Ok(None);
        };
        if operation.performs.is_some() && !matches.get_flag("global.confirm") {
            return Ok(None);
        }
        let target = operation.path_parameters.last();
        let target = target.and_then(|field| matches.get_one::<String>(&FlagTarget::Path.id(field)));
        let confirm = match target {
            _ if !must_confirm && !operation.takes_confirm() => Confirm::Absent,
            _ if !must_confirm => Confirm::Offered,
            Some(id) if operation.weighs => Confirm::DemandedLater(id),
            Some(id) => Confirm::Demanded(id),
            None => Confirm::Demanded("yes"),
        };
        let must_say_why = metadata != MetadataPlacement::OptionalHeaders;
        Self::take(matches, terminal, confirm, must_say_why).map(Some)
    }

    /// Takes the mutation metadata from the flags of [`consent_args`] and asks a person for what is missing.
    ///
    /// Errors: usage, when something must be said and nobody is there to say it.
    pub fn of(matches: &ArgMatches, terminal: &Terminal, confirm: Confirm<'_>) -> Result<Self, Failure> {
        Self::take(matches, terminal, confirm, true)
    }

    fn take(
        matches: &ArgMatches,
        terminal: &Terminal,
        confirm: Confirm<'_>,
        must_say_why: bool,
    ) -> Result<Self, Failure> {
        let key = match matches.get_one::<String>("global.idempotency-key") {
            Some(key) if key.len() <= MAX_KEY && key.bytes().all(|b| b.is_ascii_graphic()) => key.clone(),
            Some(_) => {
                return Err(Failure::usage(
                    "--idempotency-key takes 1 to 255 visible ASCII characters",
                ));
            }
            None => new_key(),
        };
        let said = !matches!(confirm, Confirm::Absent) && matches.get_flag("global.confirm");
        let is_unconfirmed = matches!(confirm, Confirm::Demanded(_) | Confirm::DemandedLater(_)) && !said;
        let reason = match matches.get_one::<String>("global.reason") {
            Some(reason) => reason.clone(),
            // Both at once, so that nobody has to type the command three times.
            None if must_say_why && is_unconfirmed && terminal.prompt.is_none() => {
                return Err(Failure::usage(
                    "this command needs --reason TEXT and --confirm: nothing can undo it",
                ));
            }
            None if !must_say_why => String::new(),
            None => ask(terminal, "reason (goes into the audit log)", "--reason TEXT")?,
        };
        if must_say_why && reason.trim().is_empty() {
            return Err(Failure::usage("the reason is empty; nothing was sent"));
        }
        let (mut must_confirm, mut unasked) = (false, None);
        match confirm {
            Confirm::Demanded(target) => {
                if !said {
                    ask_to_confirm(target, terminal, "sent")?;
                }
                must_confirm = true;
            }
            Confirm::DemandedLater(target) if !said => {
                asking(terminal, "--confirm: nothing can undo it")?;
                unasked = Some(target.to_owned());
            }
            Confirm::Absent | Confirm::Offered | Confirm::DemandedLater(_) => {}
        }
        Ok(Self {
            reason: reason.trim().to_owned(),
            base: key.clone(),
            key,
            confirm: said || must_confirm,
            unasked,
        })
    }

    /// Returns the consent to a write that the program makes by itself, under a new key.
    pub fn new(reason: &str) -> Self {
        let key = new_key();
        Self {
            reason: reason.to_owned(),
            base: key.clone(),
            key,
            confirm: false,
            unasked: None,
        }
    }

    /// Asks the person who was not asked yet; says yes for the one who types the word.
    ///
    /// Errors: usage, when something else is typed.
    pub(super) fn ask(&mut self, terminal: &Terminal) -> Result<(), Failure> {
        if let Some(target) = self.unasked.take() {
            ask_to_confirm(&target, terminal, "done")?;
            self.confirm = true;
        }
        Ok(())
    }

    /// Returns the same with `confirm: true`.
    #[must_use]
    pub fn confirmed(self) -> Self {
        Self {
            confirm: true,
            ..self
        }
    }

    /// Returns the consent to one of the several requests of a command.
    ///
    /// Its key is made of the command's, so that the command repeated with its key repeats every request.
    #[must_use]
    pub fn step(&self, name: &str) -> Self {
        let mut key = format!("{}.{name}", self.base);
        if key.len() > MAX_KEY {
            key = format!("{}.{name}", sha256_hex(self.base.as_bytes()));
        }
        Self { key, ..self.clone() }
    }

    /// Adds the mutation metadata to a body, which is an object.
    pub(super) fn add_to_body(&self, body: Option<&[u8]>) -> Result<Bytes, Failure> {
        let mut body: Map<String, Value> = serde_json::from_slice(body.unwrap_or(b"{}"))
            .map_err(|_| Failure::usage("the body of this command must be a JSON object"))?;
        body.insert("reason".into(), self.reason.as_str().into());
        body.insert("idempotencyKey".into(), self.key.as_str().into());
        if self.confirm {
            body.insert("confirm".into(), true.into());
        }
        Ok(Value::Object(body).to_string().into())
    }

    /// Adds the mutation metadata to the headers.
    pub(super) fn add_to_headers(&self, headers: &mut HeaderMap) -> Result<(), Failure> {
        // A key that begins with a quote would read as a structured-field string (D4.1).
        let key = match self.key.strip_prefix('"') {
            Some(_) => format!("\"{}\"", self.key.replace('\\', r"\\").replace('"', "\\\"")),
            None => self.key.clone(),
        };
        let confirm = if self.confirm { "true" } else { "" };
        for (name, value) in [
            ("idempotency-key", key.as_str()),
            ("x-reason", &self.reason),
            ("x-confirm", confirm),
        ] {
            if value.is_empty() {
                continue;
            }
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| Failure::usage(format!("{name} must be one line without control characters")))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(())
    }

    /// Returns the flags that repeat this very write.
    pub fn repeat(&self) -> String {
        let key = format!("--idempotency-key {}", quoted(&self.base));
        if self.reason.is_empty() {
            return key;
        }
        format!("{key} --reason {}", quoted(&self.reason))
    }
}

/// Returns who can be asked.
fn asking<'a>(terminal: &'a Terminal, flag: &str) -> Result<&'a dyn Prompt, Failure> {
    let prompt = terminal.prompt.as_deref();
    prompt.ok_or_else(|| Failure::usage(format!("this command needs {flag}")))
}

fn ask(terminal: &Terminal, question: &str, flag: &str) -> Result<String, Failure> {
    asking(terminal, flag)?
        .line(question)
        .map_err(|error| Failure::usage(format!("no answer: {error}; nothing was sent")))
}

/// Lets a person type what the act will hit; a reflex types `y`.
fn ask_to_confirm(target: &str, terminal: &Terminal, nothing_was: &str) -> Result<(), Failure> {
    let question = format!("nothing can undo this; type {target} to confirm");
    let typed = ask(terminal, &question, "--confirm: nothing can undo it")?;
    if typed.trim() == target {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "not confirmed; nothing was {nothing_was}"
    )))
}

/// 128 bits: enough that a retry after a lost rotation may have its secret (D5.5: at least 22 characters).
fn new_key() -> String {
    hex(&SystemEntropy.seed()[..16])
}

/// Returns the SHA-256 of bytes in lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref())
}

/// Returns lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
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
