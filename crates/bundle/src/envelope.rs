//! A bundle as it comes over the wire: whose it is, who signed it, and whether it goes back.
//!
//! Keeps LJ-2.

use crate::document::{FORMAT, PAYLOAD_LIMIT, PolicyBundle};
use provost_words::dsse::{self, Envelope, PublicKey, SignedKind, VerificationError};
use provost_words::json;
use serde::{Deserialize, Serialize};
use std::fmt;

/// LIMIT: how deep a bundle is nested: a definition is no deeper than a body, and stands three levels down.
const DEPTH: usize = 127;

/// For whom a bundle has to be.
#[derive(Clone, Copy, Debug)]
pub struct Addressee<'a> {
    /// The organization.
    pub organization_id: &'a str,
    /// The device.
    pub device_id: &'a str,
    /// The newest bundle that the device has had, if it has had one.
    pub floor: Option<Floor>,
}

/// How new a bundle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Floor {
    /// The epoch of its store.
    pub store_epoch: u64,
    /// Its number.
    pub sequence: u64,
    /// When it was made. Units: milliseconds since the Unix epoch.
    pub issued_at_ms: i64,
}

/// Why a bundle is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no envelope of a bundle.
    Malformed,
    /// No trusted key signed it.
    Untrusted,
    /// It has more than [`PAYLOAD_LIMIT`] bytes.
    TooLarge,
    /// What is signed is no bundle that this version reads.
    Unreadable(String),
    /// It is of another form; this version of the agent is too old for it, or too new.
    OtherFormat(u32),
    /// It is another organization's.
    OtherOrganization,
    /// It is another device's.
    OtherDevice,
    /// The device has had a newer one.
    Older {
        /// The one that is refused.
        offered: Floor,
        /// The newest one that the device has had.
        newest: Floor,
    },
}

impl Refusal {
    /// Returns the word by which it is reported.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Malformed => "bundle_malformed",
            Self::Untrusted => "bundle_untrusted",
            Self::TooLarge => "bundle_too_large",
            Self::Unreadable(_) => "bundle_unreadable",
            Self::OtherFormat(_) => "bundle_other_format",
            Self::OtherOrganization => "bundle_of_another_organization",
            Self::OtherDevice => "bundle_of_another_device",
            Self::Older { .. } => "bundle_older",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the policy bundle is no signed document of its kind"),
            Self::Untrusted => f.write_str("no trusted key signed the policy bundle"),
            Self::TooLarge => f.write_str("the policy bundle has more than 3 MiB"),
            Self::Unreadable(why) => write!(f, "the policy bundle cannot be read: {why}"),
            Self::OtherFormat(format) => {
                write!(
                    f,
                    "the policy bundle has the form {format}, and this agent reads {FORMAT}"
                )
            }
            Self::OtherOrganization => f.write_str("the policy bundle is another organization's"),
            Self::OtherDevice => f.write_str("the policy bundle is another device's"),
            Self::Older { offered, newest } => write!(
                f,
                "the policy bundle {} of store epoch {} is older than {} of epoch {}, which this device has had",
                offered.sequence, offered.store_epoch, newest.sequence, newest.store_epoch
            ),
        }
    }
}

impl std::error::Error for Refusal {}

impl PolicyBundle {
    /// Returns how new it is.
    pub fn floor(&self) -> Floor {
        Floor {
            store_epoch: self.store_epoch,
            sequence: self.sequence,
            issued_at_ms: self.issued_at.as_ms(),
        }
    }
}

/// Returns the bundle of an envelope.
///
/// Errors: see [`Refusal`].
pub fn open(
    envelope: &Envelope,
    trusted: &[PublicKey],
    addressee: &Addressee<'_>,
) -> Result<PolicyBundle, Refusal> {
    let payload = dsse::verify(envelope, SignedKind::PolicyBundle, trusted);
    let payload = payload.map_err(|why| match why {
        VerificationError::Malformed => Refusal::Malformed,
        VerificationError::Untrusted => Refusal::Untrusted,
    })?;
    read(&payload, addressee)
}

/// Returns the bundle that a payload spells whose signature was found to be right.
///
/// Errors: see [`Refusal`].
pub fn read(payload: &[u8], addressee: &Addressee<'_>) -> Result<PolicyBundle, Refusal> {
    if payload.len() > PAYLOAD_LIMIT {
        return Err(Refusal::TooLarge);
    }
    let value = json::parse(payload, DEPTH).map_err(|why| Refusal::Unreadable(why.to_string()))?;
    // Its form first: one of another form may lack what is read below.
    let form = value.get("format").and_then(serde_json::Value::as_u64);
    match form.and_then(|form| u32::try_from(form).ok()) {
        Some(FORMAT) => {}
        Some(other) => return Err(Refusal::OtherFormat(other)),
        None => return Err(Refusal::Unreadable("it does not say its form".to_owned())),
    }
    let bundle: PolicyBundle =
        serde_json::from_value(value).map_err(|why| Refusal::Unreadable(why.to_string()))?;
    if bundle.organization_id != addressee.organization_id {
        return Err(Refusal::OtherOrganization);
    }
    if bundle.device_id != addressee.device_id {
        return Err(Refusal::OtherDevice);
    }
    if let Some(newest) = addressee.floor
        && bundle.floor() < newest
    {
        return Err(Refusal::Older {
            offered: bundle.floor(),
            newest,
        });
    }
    Ok(bundle)
}
