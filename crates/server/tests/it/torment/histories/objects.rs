//! The four objects of a history, as small as they can be said.

use super::checker::Object;

/// A service account: what it says, whether it works, and its newest token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    pub description: String,
    pub active: bool,
    pub token: String,
}

#[derive(Clone, Debug)]
pub enum AccountAct {
    Describe(String, Account),
    Disable(Account),
    Enable(Account),
    /// The new token, or a refusal because the account is disabled.
    Rotate(Option<String>),
    Read(Account),
}

impl Object for Account {
    type Act = AccountAct;

    /// Every answer shows the whole account as it is after the act.
    fn after(&self, act: &AccountAct) -> Option<Self> {
        let mut after = self.clone();
        let shown = match act {
            AccountAct::Describe(text, shown) => {
                after.description.clone_from(text);
                shown
            }
            AccountAct::Disable(shown) => {
                after.active = false;
                shown
            }
            AccountAct::Enable(shown) => {
                after.active = true;
                shown
            }
            AccountAct::Rotate(Some(token)) => {
                after.token.clone_from(token);
                return self.active.then_some(after);
            }
            AccountAct::Rotate(None) => return (!self.active).then_some(after),
            AccountAct::Read(shown) => shown,
        };
        (*shown == after).then_some(after)
    }
}

/// A number that is put and got: a setting, or a member of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Register(pub u64);

#[derive(Clone, Debug)]
pub enum RegisterAct {
    /// What was put and what the answer showed.
    Put(u64, u64),
    Get(u64),
}

impl Object for Register {
    type Act = RegisterAct;

    fn after(&self, act: &RegisterAct) -> Option<Self> {
        match act {
            RegisterAct::Put(value, shown) => (value == shown).then_some(Self(*value)),
            RegisterAct::Get(value) => (*value == self.0).then(|| self.clone()),
        }
    }
}

/// A policy: its revision and its name. It is put by those who saw the revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    pub revision: u64,
    pub name: String,
}

#[derive(Clone, Debug)]
pub enum PolicyAct {
    /// The revision that was expected, the name, and the revision of the answer; none for a conflict.
    Put(u64, String, Option<u64>),
    Get(Policy),
}

impl Object for Policy {
    type Act = PolicyAct;

    fn after(&self, act: &PolicyAct) -> Option<Self> {
        match act {
            PolicyAct::Put(expected, name, Some(revision)) => {
                let fits = *expected == self.revision && *revision == self.revision + 1;
                fits.then(|| Self {
                    revision: *revision,
                    name: name.clone(),
                })
            }
            PolicyAct::Put(expected, _, None) => (*expected != self.revision).then(|| self.clone()),
            PolicyAct::Get(shown) => (shown == self).then(|| self.clone()),
        }
    }
}
