//! Which public keys a server's signatures are checked with: pinned at the first contact, or given (D12.8).
//!
//! ```text
//! first contact      the server's list is taken and pinned; a note says so
//! later              only pinned keys count
//! an unknown key     the server's list is asked for; it counts if a pinned key signed it, and is pinned then
//!                    otherwise: refused, until somebody says --trust-key
//! ```
//!
//! INVARIANT CL-4: a signature counts only if a key made it that was pinned before, was given, or is vouched for by a
//! pinned one; the first contact pins.

use super::client::{Client, Request};
use super::connection;
use super::failure::{Exit, Failure};
use super::whole_file::replace_file;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};
use provost_words::dsse::{self, Envelope, PublicKey, SignedKind, VerificationError};
use provost_words::durable::folder_of;
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const KEYS_DOCUMENT: &str = "/.well-known/provost-keys.json";

/// Returns the flags about trust.
pub fn trust_args() -> Vec<Arg> {
    let args = [
        Arg::new("global.trust-key")
            .long("trust-key")
            .value_name("BASE64")
            .action(ArgAction::Append)
            .value_parser(public_key)
            .help(
                "Pins this public signing key of the server, instead of those it shows at the first contact",
            ),
        Arg::new("global.known-keys")
            .long("known-keys")
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
            .help("The file of pinned keys [default: known-keys.json beside the profiles]"),
    ];
    args.map(|arg| arg.help_heading("Trust")).into()
}

/// Returns the flags about trust for a command that asks no server.
pub fn offline_trust_args() -> Vec<Arg> {
    let profiles = connection::profile_file_arg().help_heading("Trust");
    trust_args().into_iter().chain([profiles]).collect()
}

fn public_key(text: &str) -> Result<PublicKey, String> {
    decoded("given", text).ok_or_else(|| "this is not the 32 bytes of an Ed25519 key in base64".to_owned())
}

fn decoded(id: &str, base64: &str) -> Option<PublicKey> {
    let key = STANDARD.decode(base64.trim()).ok()?.try_into().ok()?;
    Some(PublicKey {
        id: id.to_owned(),
        key,
    })
}

/// The file: for each server and organization, its keys.
type KnownKeys = BTreeMap<String, Vec<Pin>>;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pin {
    id: String,
    key: String,
    pinned_at: Timestamp,
    /// `first contact`, `--trust-key` or `announced`.
    by: String,
}

/// A server that signs, as whoever asks it reaches it.
pub(crate) trait Signer {
    /// Returns the document of its keys, which lies at this path.
    ///
    /// Errors: why there is none.
    async fn keys(&self, path: &str) -> Result<Value, Failure>;

    /// Tells whoever looks on.
    fn note(&self, line: &str);
}

impl Signer for Client<'_> {
    async fn keys(&self, path: &str) -> Result<Value, Failure> {
        self.send(&Request::public(path)).await?.json()
    }

    fn note(&self, line: &str) {
        Client::note(self, line);
    }
}

/// The keys that count for one server and organization.
pub struct TrustedKeys {
    /// Absent where there is no home folder; nothing is pinned then.
    path: Option<PathBuf>,
    url: String,
    place: String,
    keys: Vec<PublicKey>,
}

impl TrustedKeys {
    /// Reads the pinned keys of the client's server, and pins those that are given.
    ///
    /// Errors: usage, when the file cannot be read or written.
    pub fn of(client: &Client<'_>, matches: &ArgMatches) -> Result<Self, Failure> {
        let place = (client.url(), client.organization());
        Self::at(place, matches, connection::profile_path(matches, client.terminal))
    }

    /// Reads the pinned keys of a server that is not asked.
    ///
    /// Errors: usage, when the file cannot be read or written.
    pub fn offline(
        place: (&str, &str),
        matches: &ArgMatches,
        terminal: &super::Terminal,
    ) -> Result<Self, Failure> {
        Self::at(place, matches, connection::profile_path(matches, terminal))
    }

    /// Reads the keys that are pinned in a file of whoever works without flags.
    ///
    /// Errors: usage, when the file cannot be read.
    pub fn kept_in(path: PathBuf, place: (&str, &str)) -> Result<Self, Failure> {
        Self::pinned(Some(path), place)
    }

    fn at(
        (url, organization): (&str, &str),
        matches: &ArgMatches,
        profiles: Option<(PathBuf, bool)>,
    ) -> Result<Self, Failure> {
        let named = matches.get_one::<PathBuf>("global.known-keys").cloned();
        let path = named.or_else(|| Some(folder_of(&profiles?.0).join("known-keys.json")));
        let mut trusted = Self::pinned(path, (url, organization))?;
        let given = matches
            .get_many::<PublicKey>("global.trust-key")
            .into_iter()
            .flatten();
        trusted.pin(given.cloned().collect(), "--trust-key")?;
        Ok(trusted)
    }

    fn pinned(path: Option<PathBuf>, (url, organization): (&str, &str)) -> Result<Self, Failure> {
        let place = format!("{url} {organization}");
        let pinned = match &path {
            Some(path) => load(path)?.remove(&place).unwrap_or_default(),
            None => Vec::new(),
        };
        let keys = pinned
            .iter()
            .filter_map(|pin| decoded(&pin.id, &pin.key))
            .collect();
        Ok(Self {
            path,
            url: url.to_owned(),
            place,
            keys,
        })
    }

    /// Returns the URL that the keys are pinned for.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the payload of an envelope that a trusted key signed as this kind of document.
    ///
    /// Errors: conflict, when the signature is no good or made by a key that is not trusted.
    pub fn verified(&self, envelope: &Value, kind: SignedKind) -> Result<Vec<u8>, Failure> {
        self.check(&read(envelope)?, kind)
            .map_err(|why| self.refused(why))
    }

    /// Returns the payload of a server's envelope; pins the keys of the first contact, and those announced.
    ///
    /// Errors: conflict, when the signature is no good or made by a key that is not trusted.
    pub(crate) async fn open(
        &mut self,
        signer: &impl Signer,
        envelope: &Value,
        kind: SignedKind,
    ) -> Result<Vec<u8>, Failure> {
        let envelope = read(envelope)?;
        let is_first = self.keys.is_empty();
        if !is_first {
            match self.check(&envelope, kind) {
                Err(VerificationError::Untrusted) => {}
                done => return done.map_err(|why| self.refused(why)),
            }
        }
        let document = signer.keys(KEYS_DOCUMENT).await?;
        let listed = if is_first {
            signing_keys(&document)
        } else {
            self.announced(&document)
                .ok_or_else(|| self.refused(VerificationError::Untrusted))?
        };
        let payload = dsse::verify(&envelope, kind, &listed).map_err(|why| self.refused(why))?;
        let how = if is_first { "first contact" } else { "announced" };
        for key in listed.iter().filter(|key| !self.knows(key)) {
            let base64 = STANDARD.encode(key.key);
            signer.note(&format!(
                "trusting the key {} {base64} of {} ({how})",
                key.id, self.place
            ));
        }
        self.pin(listed, how)?;
        Ok(payload)
    }

    fn check(&self, envelope: &Envelope, kind: SignedKind) -> Result<Vec<u8>, VerificationError> {
        dsse::verify(envelope, kind, &self.keys)
    }

    fn knows(&self, key: &PublicKey) -> bool {
        self.keys.iter().any(|known| known.key == key.key)
    }

    /// Returns the keys of the server's list if a trusted key signed it.
    fn announced(&self, document: &Value) -> Option<Vec<PublicKey>> {
        let signed = serde_json::from_value(document.get("signed")?.clone()).ok()?;
        let list = self.check(&signed, SignedKind::Keys).ok()?;
        Some(signing_keys(&serde_json::from_slice(&list).ok()?))
    }

    fn pin(&mut self, keys: Vec<PublicKey>, by: &str) -> Result<(), Failure> {
        let new: Vec<PublicKey> = keys.into_iter().filter(|key| !self.knows(key)).collect();
        if new.is_empty() {
            return Ok(());
        }
        if let Some(path) = &self.path {
            let pin = |key: &PublicKey| Pin {
                id: key.id.clone(),
                key: STANDARD.encode(key.key),
                pinned_at: SystemClock::new().now(),
                by: by.to_owned(),
            };
            let mut known = load(path)?;
            let pins = known.entry(self.place.clone()).or_default();
            pins.extend(new.iter().map(pin));
            save(path, &known)?;
        }
        self.keys.extend(new);
        Ok(())
    }

    fn refused(&self, why: VerificationError) -> Failure {
        let place = &self.place;
        match why {
            VerificationError::Malformed => Failure::new(Exit::Conflict, "the signed document is malformed"),
            VerificationError::Untrusted => {
                let line = format!("no key that is trusted for {place} signed this document");
                let failure = Failure::new(Exit::Conflict, line);
                let failure = match &self.path {
                    Some(path) => failure.and(format!("the trusted keys stand in {}", path.display())),
                    None => failure,
                };
                failure.and("if the server has a new key, ask its operator for it and say --trust-key BASE64")
            }
        }
    }
}

fn read(envelope: &Value) -> Result<Envelope, Failure> {
    serde_json::from_value(envelope.clone())
        .map_err(|_| Failure::new(Exit::Conflict, "the signed document is malformed"))
}

fn signing_keys(document: &Value) -> Vec<PublicKey> {
    let key = |key: &Value| {
        let text = |member: &str| key.get(member).and_then(Value::as_str);
        (text("use") == Some("signing")).then(|| decoded(text("id")?, text("key")?))?
    };
    let keys = document.get("keys").and_then(Value::as_array);
    keys.into_iter().flatten().filter_map(key).collect()
}

fn load(path: &Path) -> Result<KnownKeys, Failure> {
    let shown = path.display();
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| Failure::usage(format!("{shown} is no file of pinned keys: {error}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(KnownKeys::new()),
        Err(error) => Err(Failure::usage(format!("cannot read {shown}: {error}"))),
    }
}

fn save(path: &Path, known: &KnownKeys) -> Result<(), Failure> {
    let written = serde_json::to_vec_pretty(known)
        .map_err(io::Error::other)
        .and_then(|bytes| {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder_of(path))?;
            replace_file(path, &bytes, 0o600)
        });
    written.map_err(|error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display())))
}
