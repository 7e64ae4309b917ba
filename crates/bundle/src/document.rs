//! The bundle as a document, and how it is put together.

use crate::known::KnownNames;
use crate::reduce::{Reduced, reduce};
use crate::told::ToldContent;
use provost_policy::{Action, Family, Occasion, PolicySet};
use provost_words::Timestamp;
use provost_words::json::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The form of bundles that this version makes and reads. Members may be added to it that a device does well without; what a
/// device must understand to judge rightly makes another one.
pub const FORMAT: u32 = 1;
/// LIMIT: bytes of a bundle. In base64 they are the 4 MiB that an envelope holds.
pub const PAYLOAD_LIMIT: usize = 3 << 20;
/// LIMIT: bytes of its policies; what is beyond is asked about.
const POLICIES_LIMIT: usize = 2 << 20;
/// LIMIT: bytes of the keys of servers that are denied; where there are more, a call of a server that is not among them is asked about.
pub const SERVERS_LIMIT: usize = 256 << 10;

/// LIMIT: how long a bypass lasts behind the bundle that says it. Units: milliseconds.
const LONGEST_BYPASS_MS: i64 = 86_400_000;

provost_words::word! {
    /// What hooks of devices do with verdicts.
    pub enum HookMode {
        /// Everything passes, and verdicts are reported.
        Monitor = "monitor",
        /// What is denied does not happen.
        Enforce = "enforce",
    }
}

provost_words::word! {
    /// What a device does without any bundle.
    pub enum OnUnknown {
        /// Everything passes.
        Allow = "allow",
        /// Nothing passes.
        Block = "block",
    }
}

provost_words::word! {
    /// What a device tells of what passes without a reason.
    pub enum Recording {
        /// An event of each call.
        All = "all",
        /// How often, and no event.
        Counted = "counted",
    }
}

provost_words::word! {
    /// When policies count that a bundle does not hold.
    pub enum WhenWithheld {
        /// Where nobody can say for sure that an event is of the device's own people.
        OfOthers = "of_others",
        /// Always: there was no room for them.
        Always = "always",
    }
}

/// Everything by which one device judges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyBundle {
    /// [`FORMAT`].
    pub format: u32,
    /// The organization.
    pub organization_id: String,
    /// The device.
    pub device_id: String,
    /// The epoch of the store that made it.
    pub store_epoch: u64,
    /// Grows with every change of the organization, within an epoch.
    pub sequence: u64,
    /// The whole set of which its policies are taken.
    pub policy_set_version: PolicySetVersion,
    /// When it was made, by the server's clock.
    pub issued_at: Timestamp,
    /// Until when it is fresh. What is judged by it afterwards is judged all the same, and said to be old.
    pub not_after: Timestamp,
    /// What hooks do with verdicts.
    pub mode: HookMode,
    /// How hooks ask.
    pub hooks: Hooks,
    /// Whether everything that is judged has to be told, what passes without a reason too: a policy of the organization looks at the
    /// past, and counts alone would hide from it what it asks about.
    #[serde(default = "yes")]
    pub record_all: bool,
    /// What the device tells of what passes without a reason.
    #[serde(default = "all")]
    pub record: Recording,
    /// What of prompts, and of what tools are given and bring, the device tells. A device that does not know it tells everything, and the
    /// server keeps no more of it.
    #[serde(default)]
    pub told: ToldContent,
    /// The people of the device.
    pub users: Vec<BundleUser>,
    /// The groups of these people.
    pub groups: Vec<BundleGroup>,
    /// The policies that can concern them.
    pub policies: Vec<BundlePolicy>,
    /// What the bundle does not hold.
    pub withheld: Vec<Withheld>,
    /// The MCP servers of which no call passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<BundleServer>,
    /// Whether more of them are denied than there was room for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub servers_withheld: bool,
    /// The bypasses of the device: at most one. An agent that passes it over enforces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bypass: Vec<BundleBypass>,
}

/// What lets calls pass that policies refuse, for a time; they are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleBypass {
    /// Its id.
    pub id: String,
    /// Until when, by the server's clock.
    pub not_after: Timestamp,
    /// The clients, by the words of the inventory; none of them is all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
const fn is_false(value: &bool) -> bool {
    !*value
}

provost_words::word! {
    /// How a server stands that a bundle names.
    pub enum ServerStanding {
        /// An admin denied it.
        Denied = "denied",
    }
}

/// An MCP server of an organization's inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleServer {
    /// Its key.
    pub key: String,
    /// How it stands.
    pub standing: ServerStanding,
}

/// What a bundle means that does not say it: the more of the two.
const fn yes() -> bool {
    true
}

/// The same of what is told.
const fn all() -> Recording {
    Recording::All
}

/// A version of an organization's policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicySetVersion {
    /// Its id.
    pub id: String,
    /// Its number.
    pub sequence: u64,
    /// The digest of all its policies: 64 hexadecimal digits.
    pub digest: String,
}

/// How hooks ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hooks {
    /// How long the server is waited for.
    pub deadline_ms: u32,
    /// What happens without any bundle.
    pub on_unknown: OnUnknown,
}

/// One of the device's people, with every word by which events name them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleUser {
    /// The user's id.
    pub user_id: String,
    /// Login name, address and mapped words.
    pub words: Vec<String>,
    /// Those of `words` that somebody else has as well: a device cannot say who is meant by them.
    pub shared: Vec<String>,
    /// The ids of the user's groups; absent where nobody knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_ids: Option<Vec<String>>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleGroup {
    /// Its id.
    pub group_id: String,
    /// Its names.
    pub words: Vec<String>,
    /// Those of `words` that another group has as well.
    pub shared: Vec<String>,
}

/// A policy, with what the device needs of its definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundlePolicy {
    /// Its id.
    pub id: String,
    /// Its family.
    pub family: Family,
    /// The definition, its names bound to ids, without what does not decide here.
    pub definition: Value,
    /// Whether a device that cannot rule it out has to ask the server about it.
    pub needs_server: bool,
}

/// Policies that the bundle does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Withheld {
    /// Where they judge.
    pub occasion: Occasion,
    /// When they count.
    pub when: WhenWithheld,
    /// The strongest of their actions.
    pub action: Action,
}

/// Of what a bundle is made.
#[derive(Clone, Debug)]
pub struct BundleInputs {
    /// The organization.
    pub organization_id: String,
    /// The device.
    pub device_id: String,
    /// The epoch of the store.
    pub store_epoch: u64,
    /// See [`PolicyBundle::sequence`].
    pub sequence: u64,
    /// The version that decides now: its id and number; the digest is the set's.
    pub version: (String, u64),
    /// Now.
    pub issued_at: Timestamp,
    /// See [`PolicyBundle::not_after`].
    pub not_after: Timestamp,
    /// What hooks do.
    pub mode: HookMode,
    /// How hooks ask.
    pub hooks: Hooks,
    /// See [`PolicyBundle::record`].
    pub record: Recording,
    /// See [`PolicyBundle::told`].
    pub told: ToldContent,
    /// The people of the device; each is meant by its id and by no other record's.
    pub users: Vec<BundleUser>,
    /// Their groups.
    pub groups: Vec<BundleGroup>,
    /// The keys of the MCP servers that are denied, in their order; more of them than have room are no mistake.
    pub denied: Vec<String>,
    /// The bypass that is live on the device.
    pub bypass: Option<BundleBypass>,
}

/// A bundle would not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleTooLarge;

impl fmt::Display for BundleTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the people of the device are in so many groups that its policy bundle would have more than 3 MiB")
    }
}

impl std::error::Error for BundleTooLarge {}

impl PolicyBundle {
    /// Returns the bundle of a device, with what of these policies can concern it.
    ///
    ///
    /// Errors: it would be too large for its users and groups.
    pub fn of(set: &PolicySet, inputs: BundleInputs) -> Result<Self, BundleTooLarge> {
        Self::within(set, inputs, POLICIES_LIMIT)
    }

    /// As [`Self::of`], with room for so many bytes of policies: where there is less than there is, what is left out is asked about,
    /// and counts with an action that is no weaker.
    ///
    /// Keeps LJ-1, LJ-3. Errors: as [`Self::of`].
    pub fn within(set: &PolicySet, inputs: BundleInputs, room: usize) -> Result<Self, BundleTooLarge> {
        let known = KnownNames::of(&inputs.device_id, &inputs.users, &inputs.groups);
        let mut policies = Vec::new();
        let mut withheld: BTreeMap<(Occasion, bool), Action> = BTreeMap::new();
        let mut bytes = 0;
        for policy in set.policies() {
            let always = match reduce(policy, &known) {
                Reduced::Kept(kept) => {
                    // With all that stands around a definition: of many small policies that is more than the half.
                    let size =
                        serde_json::to_value(&kept).map_or(usize::MAX, |kept| canonical(&kept).len() + 1);
                    if size <= room - bytes {
                        bytes += size;
                        policies.push(kept);
                        continue;
                    }
                    true
                }
                Reduced::OfOthers => false,
                Reduced::Unsayable => true,
            };
            let action = if policy.is_monitored() {
                // What is only reported raises nothing, and is asked about all the same.
                Action::Allow
            } else if policy.acl().is_some_and(|acl| acl.allows) {
                // A list that lets its subjects in keeps out whom it does not name.
                Action::Block
            } else if policy.transform().is_some() {
                // Nobody on the device knows how the request would have to be changed.
                Action::Block
            } else {
                policy.action()
            };
            for occasion in Occasion::ALL.into_iter().filter(|at| policy.judges_at(*at)) {
                let strongest = withheld.entry((occasion, always)).or_insert(action);
                *strongest = action.max(*strongest);
            }
        }
        let (mut servers, mut bytes) = (Vec::new(), 0);
        let count = inputs.denied.len();
        for key in inputs.denied {
            bytes += key.len();
            if bytes > SERVERS_LIMIT {
                break;
            }
            servers.push(BundleServer {
                key,
                standing: ServerStanding::Denied,
            });
        }
        let servers_withheld = servers.len() < count;
        let (id, sequence) = inputs.version;
        let bundle = Self {
            format: FORMAT,
            organization_id: inputs.organization_id,
            device_id: inputs.device_id,
            store_epoch: inputs.store_epoch,
            sequence: inputs.sequence,
            policy_set_version: PolicySetVersion {
                id,
                sequence,
                digest: set.digest().to_owned(),
            },
            issued_at: inputs.issued_at,
            not_after: inputs.not_after,
            mode: inputs.mode,
            hooks: inputs.hooks,
            record_all: set.has_history(),
            record: inputs.record,
            told: inputs.told,
            users: inputs.users,
            groups: inputs.groups,
            policies,
            withheld: withheld
                .into_iter()
                .map(|((occasion, always), action)| Withheld {
                    occasion,
                    when: if always {
                        WhenWithheld::Always
                    } else {
                        WhenWithheld::OfOthers
                    },
                    action,
                })
                .collect(),
            servers,
            servers_withheld,
            bypass: inputs.bypass.into_iter().collect(),
        };
        if bundle.canonical().len() > PAYLOAD_LIMIT {
            return Err(BundleTooLarge);
        }
        Ok(bundle)
    }

    /// Returns the text that is signed.
    pub fn canonical(&self) -> String {
        // Its members are texts, whole numbers, and values that were parsed: none of them can fail to be a value.
        serde_json::to_value(self).map_or_else(|_| String::new(), |value| canonical(&value))
    }

    /// Says whether it is older than it should be. It judges all the same.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now > self.not_after
    }

    /// Returns the bypass by which calls of a client pass at an instant, and until when: never in a bundle that is out of date, and never
    /// longer than a day after it was made, whatever it says.
    ///
    /// Keeps LJ-15.
    pub fn bypass_of(&self, client: &str, now: Timestamp) -> Option<(&BundleBypass, Timestamp)> {
        let end = |bypass: &BundleBypass| {
            let longest = self.issued_at.plus_ms(LONGEST_BYPASS_MS);
            bypass.not_after.min(longest).min(self.not_after)
        };
        let is_of = |bypass: &BundleBypass| {
            bypass.clients.is_empty() || bypass.clients.iter().any(|one| one == client)
        };
        let mut live = self.bypass.iter().map(|bypass| (bypass, end(bypass)));
        live.find(|(bypass, end)| is_of(bypass) && now < *end)
    }
}
