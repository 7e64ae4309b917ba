//! What the server offers to a device, and what is kept of it for when something stands in the way.

use super::disk;
use provost_agent::{Agent, Trouble};
use serde::Deserialize;
use serde_json::Value;

/// The profiles that the server assigned last, in the folder of the agent.
const ASSIGNED: &str = "profiles.json";
/// LIMIT: bytes of the id of a profile.
const LONGEST_ID: usize = 64;

/// A profile, as the server offers it to a device. Members of later servers are left out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub profile_id: String,
    pub target: String,
    pub poll_interval_seconds: u64,
    pub revision: String,
    pub release: Option<OfferedRelease>,
    pub withheld: Option<String>,
}

/// The release of a profile.
#[derive(Deserialize)]
pub struct OfferedRelease {
    pub id: String,
}

/// What the server offers.
#[derive(Default)]
pub struct Offers {
    pub read: Vec<Offer>,
    /// The profiles of offers that cannot be read: they are assigned nevertheless.
    pub unread: Vec<String>,
    /// Whether of an offer not even the profile can be read.
    pub has_nameless: bool,
    /// What stands in the way of reading some of them.
    pub trouble: Option<Trouble>,
}

/// Returns the offers of an answer.
///
/// Errors: disk, when there is no list.
pub fn read(answer: &Value) -> Result<Offers, Trouble> {
    let list = answer.get("profiles").and_then(Value::as_array);
    let list = list.ok_or_else(|| disk("the server's list of profiles cannot be read"))?;
    let mut offers = Offers::default();
    for one in list {
        let trouble = match serde_json::from_value::<Offer>(one.clone()) {
            Ok(offer) if is_plain(&offer.profile_id) => {
                offers.read.push(offer);
                continue;
            }
            Ok(_) => disk("the server offers a profile whose id is none"),
            Err(error) => disk(format!("an offer of the server cannot be read: {error}")),
        };
        offers.trouble = Some(trouble);
        match one.get("profileId").and_then(Value::as_str) {
            Some(id) if is_plain(id) => offers.unread.push(id.to_owned()),
            _ => offers.has_nameless = true,
        }
    }
    Ok(offers)
}

/// Says whether an id can stand in a path.
fn is_plain(id: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(is_word)
}

/// Returns the profiles that were assigned when the server said it last.
///
/// Errors: folder.
pub fn assigned(agent: &Agent) -> Result<Vec<String>, Trouble> {
    Ok(listed(agent.folder.read(ASSIGNED)?.as_deref()))
}

impl Offers {
    /// Returns the profiles that are assigned. Where nobody knows whose an offer is, it may be one that was assigned before: none of those
    /// is forgotten then.
    pub fn assigned(&self, before: Vec<String>) -> Vec<String> {
        let read = self.read.iter().map(|offer| &offer.profile_id);
        let mut ids: Vec<String> = read.chain(&self.unread).cloned().collect();
        if self.has_nameless {
            ids.extend(before);
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Keeps which profiles are assigned, for when no server says it.
///
/// Errors: folder, disk.
pub fn keep_assigned(agent: &Agent, offers: &Offers) -> Result<(), Trouble> {
    let before = agent.folder.read(ASSIGNED)?;
    let ids = offers.assigned(listed(before.as_deref()));
    let bytes = serde_json::to_vec(&ids).unwrap_or_default();
    if before.as_deref() == Some(&bytes[..]) {
        return Ok(());
    }
    agent.folder.replace(ASSIGNED, &bytes)
}

fn listed(bytes: Option<&[u8]>) -> Vec<String> {
    serde_json::from_slice(bytes.unwrap_or_default()).unwrap_or_default()
}
