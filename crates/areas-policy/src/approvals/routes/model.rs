//! Routes without storage: what they fit, and whom they name.

use crate::approvals::model::Kind;
use provost_areas_access::resources::definition::AtMost;
use provost_kernel::text::{IntegerBetween, LongName, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// LIMIT: routes of an organization. Ours: somebody reads them from the first to the last.
pub const MOST: usize = 50;
/// LIMIT: people, or groups, that one route names. Ours.
pub const MOST_NAMED: usize = 100;

provost_kernel::word! {
    /// What becomes of a request that nobody decided in time.
    #[schemars(extend("x-open" = true))]
    pub enum OnDeadline {
        /// It is expired: whoever needs it asks again.
        Expire = "expire",
        /// It is denied.
        Deny = "deny",
    }
}

provost_kernel::word! {
    /// The roles that may decide.
    pub enum DecidingRole {
        /// Admins.
        Admin = "admin",
    }
}

/// Who decides about what fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ApprovalRoute")]
pub struct Route {
    /// What people call it; no two have one name.
    pub name: Name,
    /// What it fits; all of it must. Without a member it fits everything.
    #[serde(default, rename = "match")]
    fits: Fit,
    /// Who decides, of those who may decide anyway.
    pub approvers: Approvers,
    /// How many people have to say yes.
    quorum: IntegerBetween<1, 5>,
    /// How long a request waits for its decision. Units: seconds.
    deadline_seconds: IntegerBetween<60, 2_592_000>,
    /// What becomes of it then: `expire` or `deny`.
    pub on_deadline: OnDeadline,
}

/// What a route fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
struct Fit {
    /// What is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    /// The tool of the call, or the key of the server, letter by letter; `*` at its end stands for whatever follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<LongName>,
    /// The ids of groups, in one of which is for whom it is; where that is an account, who asks.
    #[serde(skip_serializing_if = "is_empty")]
    #[schemars(default)]
    requester_groups: AtMost<LongName, MOST_NAMED>,
}

/// Whom a route has decide: whoever is named by one of the members and may decide anyway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Approvers {
    /// The ids of users.
    #[serde(skip_serializing_if = "is_empty")]
    #[schemars(default)]
    pub users: AtMost<LongName, MOST_NAMED>,
    /// The ids of groups: who is in one when they vote.
    #[serde(skip_serializing_if = "is_empty")]
    #[schemars(default)]
    pub groups: AtMost<LongName, MOST_NAMED>,
    /// Roles.
    #[serde(skip_serializing_if = "is_empty")]
    #[schemars(default)]
    roles: AtMost<DecidingRole, 1>,
}

/// A route as it was when something was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Frozen {
    /// What it was called.
    pub name: String,
    /// Whom it named.
    pub approvers: Approvers,
    /// What becomes of the request at its deadline. Open.
    pub on_deadline: OnDeadline,
    /// Fewer of the approvers could be reached than have to say yes: all who may decide do.
    pub falls_to_admins: bool,
}

fn is_empty<T, const MAX: usize>(list: &AtMost<T, MAX>) -> bool {
    list.is_empty()
}

fn has<const MAX: usize>(list: &AtMost<LongName, MAX>, id: &str) -> bool {
    list.iter().any(|named| named.as_str() == id)
}

impl Route {
    /// Returns how many people have to say yes.
    pub fn quorum(&self) -> i64 {
        self.quorum.get()
    }

    /// Returns how long a request waits. Units: seconds.
    pub fn deadline_secs(&self) -> i64 {
        self.deadline_seconds.get()
    }

    /// Says whether what is asked for is what the route is about, whoever asks.
    pub fn is_about(&self, kind: Kind, tool: &str) -> bool {
        let fits_tool = match self.fits.tool.as_ref().map(LongName::as_str) {
            None => true,
            Some(wanted) => match wanted.strip_suffix('*') {
                Some(beginning) => tool.starts_with(beginning),
                None => tool == wanted,
            },
        };
        self.fits.kind.is_none_or(|wanted| wanted == kind) && fits_tool
    }

    /// Says whether it matters in which groups somebody is.
    pub fn has_groups(&self) -> bool {
        !self.fits.requester_groups.is_empty()
    }

    /// Says whether it is about somebody in these groups.
    pub fn is_of(&self, groups: &[String]) -> bool {
        !self.has_groups() || groups.iter().any(|group| has(&self.fits.requester_groups, group))
    }

    /// Returns the groups that it names, with the places of each below the route.
    pub fn groups(&self) -> impl Iterator<Item = (String, &str)> {
        let wanted = self.fits.requester_groups.iter().enumerate();
        let wanted = wanted.map(|(at, id)| (format!("/match/requesterGroups/{at}"), id.as_str()));
        let deciding = self.approvers.groups.iter().enumerate();
        wanted.chain(deciding.map(|(at, id)| (format!("/approvers/groups/{at}"), id.as_str())))
    }

    /// Returns the route as it stands in a request.
    pub fn frozen(&self, falls_to_admins: bool) -> Frozen {
        Frozen {
            name: self.name.as_str().to_owned(),
            approvers: self.approvers.clone(),
            on_deadline: self.on_deadline,
            falls_to_admins,
        }
    }
}

impl Approvers {
    /// Says whether a user is named.
    pub fn name(&self, user: &str) -> bool {
        has(&self.users, user)
    }

    /// Says whether everybody is named who has a role that may decide.
    pub fn name_everybody(&self) -> bool {
        !self.roles.is_empty()
    }

    /// Says whether it matters in which groups somebody is.
    pub fn have_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Says whether one of these groups is named.
    pub fn name_one_of(&self, groups: &[String]) -> bool {
        groups.iter().any(|group| has(&self.groups, group))
    }

    /// Says whether nobody is named.
    pub fn name_nobody(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty() && self.roles.is_empty()
    }
}
