//! What is told of credentials on disk: that one was found, and that it is gone. Its form, its fingerprint and the kind of its file, and
//! nothing that it could be guessed by.
//!
//! Only a complete look says that one is gone (IN-2), and a device that is retired says nothing of its files.
//!
//! INVARIANT IN-11: each credential that appears in a section, and each that a complete look no longer finds, is counted in an entry of the
//! audit log; entries and events hold no value.

use super::fences;
use crate::fleet::DeviceId;
use provost_inventory::wire::{Pattern, Sighting};
use provost_kernel::OperationContext;
use provost_kernel::rate::Bucket;
use serde_json::{Value, json};

/// LIMIT: credentials of a device of which an event tells: so many at once, and then fifty an hour. Ours; a laptop has a handful. The
/// entry counts those beyond.
const TOLD: Bucket = Bucket {
    name: "device-credentials",
    burst: 200,
    per_second_num: 50,
    per_second_den: 3600,
};
/// LIMIT: credentials that an entry lists. Ours: a person reads it.
const LISTED: usize = 50;

/// A credential that came or went.
pub struct CredentialChange {
    is_found: bool,
    pattern: Pattern,
    fingerprint: String,
    place: String,
}

impl CredentialChange {
    /// Returns that something came or went, if it is a credential.
    pub fn of(sighting: &Sighting, is_found: bool) -> Option<Self> {
        match sighting {
            Sighting::Credential {
                place,
                pattern,
                fingerprint,
                ..
            } => Some(Self {
                is_found,
                pattern: *pattern,
                fingerprint: fingerprint.clone(),
                place: place.class.clone(),
            }),
            _ => None,
        }
    }

    /// Returns that something went, if it is a credential, by what is stored of it.
    pub fn gone(facts: &str) -> Option<Self> {
        let sighting: Sighting = serde_json::from_str(facts).ok()?;
        Self::of(&sighting, false)
    }
}

/// Tells of credentials, in the entry of the unit in which they came or went.
pub fn tell(ctx: &mut OperationContext<'_>, device: &DeviceId, changes: &[CredentialChange]) {
    if changes.is_empty() {
        return;
    }
    let found = changes.iter().filter(|change| change.is_found).count();
    let listed: Vec<Value> = changes
        .iter()
        .take(LISTED)
        .map(|change| {
            json!({ "found": change.is_found, "pattern": change.pattern, "fingerprint": change.fingerprint, "place": change.place })
        })
        .collect();
    ctx.change("/credentialsFound", Value::Null, found);
    ctx.change("/credentialsGone", Value::Null, changes.len() - found);
    ctx.change("/credentials", Value::Null, listed);
    let org = ctx.org();
    for change in changes {
        if !ctx.services().may_tell(&TOLD, &[org, device.as_str()]) {
            return;
        }
        let kind = if change.is_found {
            &fences::CREDENTIAL_FOUND
        } else {
            &fences::CREDENTIAL_GONE
        };
        let of = fences::OfCredential {
            device_id: device.clone(),
            pattern: change.pattern,
            fingerprint: change.fingerprint.clone(),
            place: change.place.clone(),
        };
        ctx.emit(kind, &of);
    }
}
