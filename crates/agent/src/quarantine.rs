//! Whether this machine is held apart, as the server said last.
//!
//! ```text
//! heartbeat ──► held apart: the mark beside mode.json, which hooks look at ──► the same in the agent's folder
//!          └──► free: the agent's folder first, the mark last
//! an answer without the word, or no answer ──► nothing changes
//! ```
//!
//! A kill on the way leaves one of the two, and what is stricter counts until the next heartbeat. Keeps LJ-13.

use crate::folder::Folder;
use crate::trouble::Trouble;
use provost_bundle::HookMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the mark, at both places.
pub(crate) const QUARANTINE: &str = "quarantine.json";
/// LIMIT: bytes of the mark. Ours.
pub(crate) const MOST_QUARANTINE: u64 = 4 << 10;

/// What becomes of calls on a machine that is held apart, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quarantine {
    /// They are judged as on any other machine, and people are told.
    Monitor,
    /// None passes.
    Block,
}

/// What an answer to a heartbeat says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineWord {
    /// Nothing: what was known stays.
    Unsaid,
    /// The machine is not held apart.
    Free,
    /// It is, in an organization whose hooks do this; nothing where the answer does not say it.
    Held(Quarantine, Option<HookMode>),
}

/// A mark on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptQuarantine {
    /// The server that said it.
    pub server: String,
    /// The organization.
    pub organization: String,
    /// What it said.
    pub quarantine: Quarantine,
}

impl Quarantine {
    /// Returns the word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Block => "block",
        }
    }

    /// Returns what that means, for whoever owns the machine.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Monitor => {
                "this machine is held apart (quarantined); calls go on being judged, by the server where the machine has no policies any more, and an admin has to release it"
            }
            Self::Block => {
                "this machine is held apart (quarantined), and nothing passes on it until an admin releases it: provost devices release"
            }
        }
    }
}

impl QuarantineWord {
    /// Returns what the answer to a heartbeat says. A word that this version does not know is the strongest.
    pub(crate) fn heard(answer: &Value) -> Self {
        match answer.get("quarantine") {
            None => Self::Unsaid,
            Some(word) if word == "none" => Self::Free,
            Some(word) if word == Quarantine::Monitor.word() => Self::Held(Quarantine::Monitor, mode(answer)),
            Some(_) => Self::Held(Quarantine::Block, mode(answer)),
        }
    }
}

/// Returns what the organization's hooks do, by an answer.
fn mode(answer: &Value) -> Option<HookMode> {
    let word = answer.get("hooksMode")?.as_str()?;
    Some(if word == "monitor" {
        HookMode::Monitor
    } else {
        HookMode::Enforce
    })
}

/// Returns what the bytes of a mark say for an organization of a server, or for whatever organization it is. What cannot be read is a
/// mark all the same: it lies there because the machine was held apart.
pub(crate) fn of_mark(bytes: &[u8], of: Option<(&str, &str)>) -> Option<Quarantine> {
    let Ok(kept) = serde_json::from_slice::<KeptQuarantine>(bytes) else {
        return Some(Quarantine::Block);
    };
    let is_meant = of.is_none_or(|of| of == (kept.server.as_str(), kept.organization.as_str()));
    is_meant.then_some(kept.quarantine)
}

/// Returns what the agent's folder says.
///
/// Errors: folder, disk.
pub fn kept_quarantine(folder: &Folder, of: (&str, &str)) -> Result<Option<Quarantine>, Trouble> {
    let bytes = folder.read_up_to(QUARANTINE, MOST_QUARANTINE)?;
    Ok(bytes.and_then(|bytes| of_mark(&bytes, Some(of))))
}

/// Keeps it in the agent's folder, or forgets it there.
///
/// Errors: folder, disk.
pub fn keep_quarantine(folder: &Folder, kept: Option<&KeptQuarantine>) -> Result<(), Trouble> {
    match kept {
        Some(kept) => {
            let bytes = serde_json::to_vec(kept).unwrap_or_default();
            if folder
                .read_up_to(QUARANTINE, MOST_QUARANTINE)
                .ok()
                .flatten()
                .as_ref()
                == Some(&bytes)
            {
                return Ok(());
            }
            folder.replace(QUARANTINE, &bytes)
        }
        None => folder.remove(QUARANTINE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Proves LJ-13.
    #[test]
    fn an_answer_without_the_word_says_nothing_and_an_unknown_word_the_most() {
        let heard = |answer: Value| QuarantineWord::heard(&answer);
        assert_eq!(heard(json!({})), QuarantineWord::Unsaid);
        assert_eq!(heard(json!([])), QuarantineWord::Unsaid);
        assert_eq!(heard(json!({ "quarantine": "none" })), QuarantineWord::Free);
        let held = |word: Value| heard(json!({ "quarantine": word }));
        assert_eq!(
            held(json!("monitor")),
            QuarantineWord::Held(Quarantine::Monitor, None)
        );
        for word in [
            json!("block"),
            json!("isolate"),
            json!(""),
            json!("None"),
            json!(null),
            json!({}),
        ] {
            assert_eq!(
                held(word.clone()),
                QuarantineWord::Held(Quarantine::Block, None),
                "{word}"
            );
        }
        assert!(Quarantine::Block > Quarantine::Monitor);
        for (word, mode) in [
            ("monitor", HookMode::Monitor),
            ("enforce", HookMode::Enforce),
            ("strict", HookMode::Enforce),
        ] {
            let heard = heard(json!({ "quarantine": "block", "hooksMode": word }));
            assert_eq!(
                heard,
                QuarantineWord::Held(Quarantine::Block, Some(mode)),
                "{word}"
            );
        }
    }

    /// Proves LJ-13.
    #[test]
    fn a_mark_that_cannot_be_read_is_a_mark_and_another_organizations_is_none() {
        let of = |server, organization| Some((server, organization));
        let kept = KeptQuarantine {
            server: "https://a".into(),
            organization: "acme".into(),
            quarantine: Quarantine::Monitor,
        };
        let bytes = serde_json::to_vec(&kept).unwrap();
        assert_eq!(
            of_mark(&bytes, of("https://a", "acme")),
            Some(Quarantine::Monitor)
        );
        assert_eq!(of_mark(&bytes, None), Some(Quarantine::Monitor));
        assert_eq!(of_mark(&bytes, of("https://a", "other")), None);
        assert_eq!(of_mark(&bytes, of("https://b", "acme")), None);
        let cut = &bytes[..bytes.len() - 1];
        let strange = br#"{"server":"https://a","organization":"acme","quarantine":"isolate"}"#;
        for damaged in [cut, b"", b"{}", strange.as_slice()] {
            assert_eq!(
                of_mark(damaged, of("https://b", "acme")),
                Some(Quarantine::Block),
                "{damaged:?}"
            );
        }
    }
}
