//! Whom a credential is for, and which one a caller gets (D11.4).

use super::model::CredentialId;
use crate::resources::definition::{AtMost, Breaches, SingleLine};
use provost_areas_identity::subjects::SubjectKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The member `assignedTo` as a client writes it. LIMIT: 256 of each kind (client contract §4.2).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct AssignedBody {
    #[serde(default)]
    users: Option<AtMost<SingleLine<1, 256>, 256>>,
    #[serde(default)]
    groups: Option<AtMost<SingleLine<1, 256>, 256>>,
    #[serde(default)]
    service_accounts: Option<AtMost<SingleLine<1, 256>, 256>>,
}

/// Every kind of subject, in the order of D11.4, with its word in the store and on the wire.
pub const KINDS: [(SubjectKind, &str, &str); 3] = [
    (SubjectKind::User, "user", "users"),
    (SubjectKind::ServiceAccount, "service_account", "serviceAccounts"),
    (SubjectKind::Group, "group", "groups"),
];

impl AssignedBody {
    /// Returns the ids of one kind in the order in which they were sent.
    pub fn ids(&self, kind: SubjectKind) -> Vec<&str> {
        let list = match kind {
            SubjectKind::User => &self.users,
            SubjectKind::Group => &self.groups,
            SubjectKind::ServiceAccount => &self.service_accounts,
        };
        list.iter()
            .flat_map(|list| list.iter())
            .map(SingleLine::as_str)
            .collect()
    }

    /// Notes the ids of a kind that name nobody.
    pub fn note_missing(&self, kind: SubjectKind, missing: &[String], breaches: &mut Breaches) {
        let word = KINDS
            .iter()
            .find(|(known, ..)| *known == kind)
            .map_or("", |(_, _, word)| word);
        for (place, id) in self.ids(kind).into_iter().enumerate() {
            if missing.iter().any(|missing| missing == id) {
                breaches.add(
                    format!("/assignedTo/{word}/{place}"),
                    "names nobody of this organization",
                );
            }
        }
    }

    /// Returns what is kept: sorted and without repetitions (D11.1).
    pub fn stored(&self) -> Assignees {
        let mut assigned = Assignees::default();
        for (kind, ..) in KINDS {
            let ids = assigned.of_mut(kind);
            ids.extend(self.ids(kind).into_iter().map(str::to_owned));
            ids.sort_unstable();
            ids.dedup();
        }
        assigned
    }
}

/// Whom a credential is for: sorted ids of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ResourceCredentialAssignees")]
pub struct Assignees {
    users: Vec<String>,
    groups: Vec<String>,
    service_accounts: Vec<String>,
}

impl Assignees {
    /// Returns the ids of a kind.
    pub fn of(&self, kind: SubjectKind) -> &[String] {
        match kind {
            SubjectKind::User => &self.users,
            SubjectKind::Group => &self.groups,
            SubjectKind::ServiceAccount => &self.service_accounts,
        }
    }

    /// Returns the ids of a kind, to be changed.
    pub fn of_mut(&mut self, kind: SubjectKind) -> &mut Vec<String> {
        match kind {
            SubjectKind::User => &mut self.users,
            SubjectKind::Group => &mut self.groups,
            SubjectKind::ServiceAccount => &mut self.service_accounts,
        }
    }

    /// Says whether it is for nobody in particular.
    pub fn is_empty(&self) -> bool {
        KINDS.iter().all(|(kind, ..)| self.of(*kind).is_empty())
    }
}

/// Who asks for a credential: a person, a service account, or a service account for a person.
#[derive(Clone, Debug, Default)]
pub struct CredentialSeeker {
    /// The person.
    pub user: Option<String>,
    /// The service account.
    pub service_account: Option<String>,
    /// The person's groups.
    pub groups: Vec<String>,
}

impl CredentialSeeker {
    /// Returns the ids of everybody who asks, by kind.
    pub fn subjects(&self) -> [(SubjectKind, &[String]); 3] {
        [
            (SubjectKind::User, self.user.as_slice()),
            (SubjectKind::ServiceAccount, self.service_account.as_slice()),
            (SubjectKind::Group, &self.groups),
        ]
    }

    /// Says whether a credential is assigned to somebody who asks.
    pub fn is_assigned(&self, assigned: &Assignees) -> bool {
        let has = |kind, id: &String| assigned.of(kind).binary_search(id).is_ok();
        let mut subjects = self.subjects().into_iter();
        subjects.any(|(kind, ids)| ids.iter().any(|id| has(kind, id)))
    }
}

/// What the store knows about who asks: for each kind the lowest id of a credential that is assigned, and the
/// default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Of the person.
    pub user: Option<CredentialId>,
    /// Of the service account.
    pub service_account: Option<CredentialId>,
    /// Of any of the person's groups.
    pub group: Option<CredentialId>,
    /// The default.
    pub default: Option<CredentialId>,
}

impl Candidates {
    /// Returns the credential to be used: user before service account before group before default (D11.4).
    pub fn choose(self) -> Option<CredentialId> {
        // INVARIANT RC-4: the order of D11.4; within a kind the lowest id.
        self.user.or(self.service_account).or(self.group).or(self.default)
    }
}
