//! The words and rules of devices, without storage.

use super::bypass::Bypass;
use super::clones::{Heartbeat, TamperReason};
use super::coverage::Said;
use provost_kernel::auth::{Permission, Role, may_mint};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{Timestamp, id, word};

id!(DeviceId, "dev", "Names a device.");
id!(EnrolmentTokenId, "ent", "Names an enrolment token.");
id!(DeviceTokenId, "dvt", "Names a token of a device.");

/// How often a device calls. Units: seconds.
pub const INTERVAL_SECS: i64 = 300;
/// How soon after a heartbeat another one is answered and not kept. Units: seconds.
pub const EARLY_SECS: i64 = 10;
/// How long a device waits for approval before it is retired. Units: seconds.
pub const UNAPPROVED_SECS: i64 = 30 * 86_400;
/// LIMIT: devices that wait for their first call or for approval, by one enrolment token.
pub const MOST_PENDING: i64 = 1000;
/// LIMIT: enrolment tokens of one maker that still make devices: all of them end in the unit in which the maker ends.
pub const MOST_TOKENS: usize = 100;
/// The life of a device's token. Units: seconds.
pub const TOKEN_SECS: i64 = 30 * 86_400;
/// From which age on a device's token is renewed. Units: seconds.
pub const RENEWAL_SECS: i64 = 15 * 86_400;
/// LIMIT: successors of one token that work at a time: those of copies, and those whose answers were lost. Ours.
pub const MOST_SUCCESSORS: i64 = 8;
/// LIMIT: tokens of a device that work at a time, those of copies among them. Ours: all of them are revoked when it is retired. An honest
/// machine has two.
pub const MOST_LIVING: i64 = 32;
/// How long nobody may have used a successor before it gives way where there are too many. Units: seconds.
pub const UNUSED_SECS: i64 = 86_400;
/// How long whoever renewed may still call with the earlier token before that says that there are two. Units: seconds.
pub const GRACE_SECS: i64 = 600;
/// LIMIT: keys that a device gave up and beside which a token works still: how often a key changes in thirty days. Ours.
pub const MOST_FORMER: i64 = 3;
/// LIMIT: how often one enrolment and one change of a key are answered, to a machine that lost the answers before. Ours.
pub const MOST_ANSWERS: i64 = 8;
/// How long a device that never called waits before it is retired, and its enrolment may be repeated. Units: seconds.
pub const PENDING_SECS: i64 = 86_400;
/// LIMIT: devices of one owner, the retired ones among them: all of them lose the owner in the unit in which the user goes,
/// and an import ends a hundred users in one.
pub const MOST_OWNED: usize = 32;
/// LIMIT: devices of an organization (F2.15).
pub const MOST_DEVICES: i64 = 100_000;

word! {
    /// Where a device stands.
    pub enum Status {
        /// Enrolled, and not heard of since, or not approved yet.
        Pending = "pending",
        /// At work.
        Active = "active",
        /// Held apart by somebody: it calls, and nothing trusts it.
        Quarantined = "quarantined",
        /// Gone for ever.
        Retired = "retired",
    }
}

word! {
    /// For whom an agent works.
    pub enum Mode {
        /// Everybody on the machine.
        System = "system",
        /// One person.
        User = "user",
    }
}

word! {
    /// What a machine runs.
    pub enum Platform {
        /// Linux.
        Linux = "linux",
        /// macOS.
        Macos = "macos",
        /// Windows.
        Windows = "windows",
    }
}

word! {
    /// Where a device keeps its key, by its own word.
    pub enum KeyProtection {
        /// In a file.
        File = "file",
        /// In the store of the operating system.
        OsKeystore = "os_keystore",
        /// In a TPM.
        Tpm = "tpm",
        /// In a Secure Enclave.
        SecureEnclave = "secure_enclave",
    }
}

/// What somebody could give who said whom a device is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach(pub Permission);

impl Reach {
    /// The reach of nobody.
    pub fn none() -> Self {
        Self(Permission::none())
    }

    /// Returns what both give.
    pub fn and(self, other: Self) -> Self {
        let (one, two) = (self.0, other.0);
        let role = if one.role.covers(two.role) {
            two.role
        } else if two.role.covers(one.role) {
            one.role
        } else {
            Role::Viewer
        };
        Self(Permission {
            role,
            scopes: one.scopes.and(two.scopes),
            all_of_role: one.all_of_role && two.all_of_role,
        })
    }

    /// Says whether this gives all that another does.
    pub fn covers(self, other: Self) -> bool {
        may_mint(self.0, other.0).is_ok()
    }

    /// Returns it in words, for the log.
    pub fn words(self) -> String {
        match self.scopes() {
            None => self.role().to_owned(),
            Some(scopes) => format!("{}: {scopes}", self.role()),
        }
    }

    /// Returns its role, as it is stored.
    pub fn role(self) -> &'static str {
        self.0.role.as_str()
    }

    /// Returns its scopes, as they are stored: nothing is all of the role.
    pub fn scopes(self) -> Option<String> {
        (!self.0.all_of_role).then(|| self.0.scopes.to_list().join(" "))
    }
}

/// Whose machine a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub user_id: String,
    /// What whoever said so could give.
    pub reach: Reach,
}

/// What somebody asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Let a device work that waits for it.
    Approve,
    /// Hold it apart.
    Quarantine,
    /// Let it work again.
    Release,
    /// End it.
    Retire,
}

/// A device as it is stored.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its id.
    pub id: DeviceId,
    /// Its organization.
    pub organization_id: String,
    /// Its place in lists.
    pub seq: i64,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub status: Status,
    /// Whether an admin has yet to approve it.
    pub needs_approval: bool,
    /// For whom it works.
    pub mode: Mode,
    /// What it runs.
    pub platform: Platform,
    /// Its processor.
    pub arch: String,
    /// The thumbprint of its key.
    pub key_thumbprint: String,
    /// Where it keeps the key.
    pub key_protection: KeyProtection,
    /// The token by which it enrolled.
    pub enrolment_token_id: EnrolmentTokenId,
    /// When it enrolled.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Since when it is held apart.
    pub quarantined_at: Option<Timestamp>,
    /// When it was retired.
    pub retired_at: Option<Timestamp>,
    /// Why, where nobody did it.
    pub retire_reason: Option<String>,
    /// Since when a restore holds it back.
    pub held_at: Option<Timestamp>,
    /// Its labels, in their order.
    pub labels: Vec<String>,
    /// Whose machine it is.
    pub owner: Option<Owner>,
    /// What its heartbeats say against each other, and since when.
    pub tamper: Option<(TamperReason, Timestamp)>,
    /// What it said last.
    pub heartbeat: Option<Heartbeat>,
    /// What it said last of its clients.
    pub coverage: Option<Said>,
    /// The bypass that did not end, as far as that was written down: see [`Device::live_bypass`].
    pub bypass: Option<Bypass>,
}

impl Device {
    /// Moves the device where a verb leads, and says whether that changed anything (F0.2, F2.3).
    ///
    /// INVARIANT FL-3: a retired device stays retired.
    ///
    /// Errors: `Conflict` where no way leads from here.
    pub fn go(&mut self, verb: Verb, now: Timestamp) -> Result<bool> {
        use Status::{Active, Pending, Quarantined, Retired};
        let waits = self.needs_approval;
        match (verb, self.status) {
            (Verb::Approve, Pending) if waits => {
                self.needs_approval = false;
                if self.heartbeat.is_some() {
                    self.status = Active;
                }
            }
            (Verb::Quarantine, Active) => {
                self.status = Quarantined;
                self.quarantined_at = Some(now);
            }
            (Verb::Release, Quarantined) => {
                // After a restore it may be one that nobody approved: no release does that.
                self.status = if waits { Pending } else { Active };
                self.quarantined_at = None;
            }
            (Verb::Retire, Pending | Active | Quarantined) => {
                self.status = Retired;
                self.retired_at = Some(now);
            }
            (Verb::Approve, Pending | Active)
            | (Verb::Release, Active)
            | (Verb::Quarantine, Quarantined)
            | (Verb::Retire, Retired) => return Ok(false),
            (Verb::Approve | Verb::Release | Verb::Quarantine, _) => {
                let status = self.status.as_str();
                let message = format!("the device is {status}, from where no way leads there");
                return Err(Error::new(Code::Conflict, message).with("status", status));
            }
        }
        self.updated_at = now.max(self.updated_at.plus_ms(1));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(status: Status, needs_approval: bool) -> Device {
        Device {
            id: DeviceId::from_text("dev_01kaf9q2m4x7t8v3c5d6e0g1h2"),
            organization_id: "acme".into(),
            seq: 1,
            name: "laptop".into(),
            status,
            needs_approval,
            mode: Mode::System,
            platform: Platform::Linux,
            arch: "x86_64".into(),
            key_thumbprint: "t".into(),
            key_protection: KeyProtection::File,
            enrolment_token_id: EnrolmentTokenId::from_text("ent_01kaf9q2m4x7t8v3c5d6e0g1h2"),
            created_at: Timestamp::EPOCH,
            updated_at: Timestamp::EPOCH,
            quarantined_at: None,
            retired_at: None,
            retire_reason: None,
            held_at: None,
            labels: Vec::new(),
            owner: None,
            tamper: None,
            heartbeat: None,
            coverage: None,
            bypass: None,
        }
    }

    /// Proves FL-3.
    #[test]
    fn no_verb_leads_out_of_retirement() {
        for verb in [Verb::Approve, Verb::Quarantine, Verb::Release] {
            let mut gone = device(Status::Retired, false);
            assert_eq!(
                gone.go(verb, Timestamp::EPOCH).unwrap_err().code(),
                Code::Conflict
            );
            assert_eq!(gone.status, Status::Retired);
        }
        let mut gone = device(Status::Retired, false);
        assert!(!gone.go(Verb::Retire, Timestamp::EPOCH).unwrap());
    }

    #[test]
    fn an_approval_makes_nothing_active_that_was_not_heard_of() {
        let mut fresh = device(Status::Pending, true);
        assert!(fresh.go(Verb::Approve, Timestamp::EPOCH).unwrap());
        assert_eq!((fresh.status, fresh.needs_approval), (Status::Pending, false));
        assert!(!fresh.go(Verb::Approve, Timestamp::EPOCH).unwrap());
        assert!(fresh.go(Verb::Quarantine, Timestamp::EPOCH).is_err());
        assert!(fresh.go(Verb::Release, Timestamp::EPOCH).is_err());
    }

    #[test]
    fn a_release_approves_nothing() {
        let mut apart = device(Status::Quarantined, true);
        assert!(apart.go(Verb::Release, Timestamp::EPOCH).unwrap());
        assert_eq!((apart.status, apart.needs_approval), (Status::Pending, true));
    }
}
