//! How people and their machines are shown to the caller (F5.2, F5.3; ADR 0120).
//!
//! A pseudonym is a keyed hash of the person and of the quarter. The key is the installation's: who reads answers computes none, not for
//! somebody whom they know either. One person has one pseudonym in a quarter as an owner and user, in every answer of devices and of the inventory,
//! another one for what that person did, and none that is comparable in the next one.
//!
//! INVARIANT PV-1: where people are pseudonymous, no answer of devices and of the inventory names a person, an account of a machine or a
//! machine to anybody but that person and the machine, and no filter says whose something is.
//! INVARIANT PV-2: what a folder of a project is called leaves no machine before its server said that names of projects are shown, and not
//! where it said otherwise since; where the settings hide it, no answer has it, nothing keeps it that is taken then, and what is kept is
//! forgotten. It is the last part of the path, of no home, and nothing that looks like a credential.

use super::model::{Device, DeviceId};
use super::owners;
use provost_areas_platform::settings::{self, Privacy};
use provost_kernel::audit::hex;
use provost_kernel::error::{Code, Error};
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::{OperationContext, Result, Timestamp};

const PSEUDONYM: MacPurpose = MacPurpose::Own("provost/mac/pseudonym/v1");
/// Letters of an id that stand where a name is hidden.
const TAIL: usize = 6;
/// How ids of people begin.
const USER: &str = "usr_";

/// Returns the year and the quarter in which an instant lies, in UTC.
fn quarter(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    let year = text.get(..4).unwrap_or_default();
    let month = text.get(5..7).and_then(|month| month.parse::<u8>().ok());
    format!("{year}-{}", month.unwrap_or(1).div_ceil(3))
}

/// How people and their machines are shown to the caller.
pub struct Sight<'a> {
    privacy: Privacy,
    keys: &'a Keys,
    organization: &'a str,
    me: &'a str,
    /// Whether the caller sees whose machines there are.
    sees_owners: bool,
    quarter: String,
}

impl<'a> Sight<'a> {
    /// Returns how the settings of the caller's organization have people shown to the caller.
    pub fn load(ctx: &mut OperationContext<'a>) -> Result<Self> {
        let privacy = settings::load(ctx)?.fleet.privacy;
        Ok(Self {
            privacy,
            keys: &ctx.services().keys,
            organization: ctx.org(),
            me: ctx.actor().id.as_str(),
            sees_owners: owners::are_seen(ctx),
            quarter: quarter(ctx.now()),
        })
    }

    /// Returns how the settings have people shown.
    pub fn privacy(&self) -> Privacy {
        self.privacy
    }

    /// Says whether a person is the caller.
    pub fn is_me(&self, user: &str) -> bool {
        self.me == user
    }

    /// Says whether the caller sees who a person is.
    pub fn shows(&self, user: &str) -> bool {
        !self.privacy.is_pseudonymous() || self.is_me(user)
    }

    /// Says whether the caller sees what a machine is called.
    pub fn shows_name(&self, device: &Device) -> bool {
        let owner = device.owner.as_ref();
        !self.privacy.hides_names() || owner.is_some_and(|owner| self.is_me(&owner.user_id))
    }

    /// Returns what stands for a person.
    ///
    /// Keeps PV-1.
    pub fn person(&self, user: String) -> String {
        if self.shows(&user) {
            user
        } else {
            self.pseudonym(&["person", &user])
        }
    }

    /// Returns what stands for whoever did something: programs are no people. It is another one than that of the same person as an owner:
    /// who did something is often known from elsewhere, and would say whose machines there are.
    ///
    /// Keeps PV-1.
    pub fn maker(&self, id: String) -> String {
        if !id.starts_with(USER) || self.shows(&id) {
            return id;
        }
        self.pseudonym(&["maker", &id])
    }

    /// Returns what stands for whoever made an own enrolment token: its machines are that person's, and say so to whoever sees owners. To
    /// everybody else it is another one for each token, so that nobody puts machines together by it. Programs are no people.
    ///
    /// Keeps PV-1.
    pub fn maker_of_own(&self, token: &str, id: String) -> String {
        if !id.starts_with(USER) || self.is_me(&id) {
            return id;
        }
        if self.sees_owners {
            self.person(id)
        } else {
            self.pseudonym(&["own token", token, &id])
        }
    }

    /// Returns what stands for whom a machine is taken: programs are no people.
    pub fn subject(&self, id: String) -> String {
        if id.starts_with(USER) { self.person(id) } else { id }
    }

    /// Returns what stands for an account of a machine. It is another one for the same word on another machine: whoever has one reports
    /// any word, and would look for it elsewhere.
    ///
    /// Keeps PV-1.
    pub fn account(&self, device: &DeviceId, is_own: bool, account: String) -> String {
        if is_own || !self.privacy.is_pseudonymous() {
            account
        } else {
            self.pseudonym(&["account", device.as_str(), &account])
        }
    }

    /// Returns the name of something, or what stands for it: the end of its id.
    ///
    /// Keeps PV-1.
    pub fn name(&self, is_shown: bool, (what, id): (&str, &str), name: String) -> String {
        if is_shown || !self.privacy.hides_names() {
            return name;
        }
        let tail: String = id.chars().skip(id.chars().count().saturating_sub(TAIL)).collect();
        format!("{what} {tail}")
    }

    fn pseudonym(&self, of: &[&str]) -> String {
        let said = [self.organization, self.quarter.as_str()];
        let parts: Vec<&[u8]> = said.iter().chain(of).map(|part| part.as_bytes()).collect();
        let mac = self.keys.mac(PSEUDONYM, &parts);
        format!("psn_{}", hex(mac.get(..16).unwrap_or(&mac)))
    }

    /// Refuses to look for machines of a person who is not the caller: what is found would say whose it is.
    ///
    /// Errors: `InvalidDefinition`.
    pub fn may_find_by_owner(&self, user: &str) -> Result<()> {
        if self.shows(user) {
            return Ok(());
        }
        let message = "people are pseudonymous here (fleet.privacy.people): nobody finds the machines of somebody else; find them by a label";
        Err(Error::unfit("/query/ownerUserId", message))
    }

    /// Refuses to look for machines by names that the caller does not see.
    ///
    /// Errors: `InvalidDefinition`.
    pub fn may_find_by_name(&self) -> Result<()> {
        if !self.privacy.hides_names() {
            return Ok(());
        }
        let message = "names of machines are hidden here (fleet.privacy.hostNames): nothing is found by them; find it by a label";
        Err(Error::unfit("/query/query", message))
    }

    /// Refuses to give a machine a name that nobody would see.
    ///
    /// Errors: `Conflict`.
    pub fn may_name(&self) -> Result<()> {
        if !self.privacy.hides_names() {
            return Ok(());
        }
        let message = "names of machines are hidden here (fleet.privacy.hostNames), and another name would be, too; say it by a label";
        Err(Error::new(Code::Conflict, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_begins_with_its_month() {
        let of = |text: &str| quarter(Timestamp::parse(text).unwrap());
        assert_eq!(of("2026-12-31T23:59:59.999Z"), "2026-4");
        assert_eq!(of("2027-01-01T00:00:00Z"), "2027-1");
        assert_eq!(of("2027-03-31T23:59:59Z"), "2027-1");
        assert_eq!(of("2027-04-01T00:00:00Z"), "2027-2");
        assert_eq!(of("2027-10-01T00:00:00Z"), "2027-4");
    }
}
