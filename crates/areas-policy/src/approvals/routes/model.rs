//! Routes without storage: what they fit, and whom they name.

use crate::approvals::model::Kind;
use provost_areas_access::resources::definition::AtMost;
use provost_kernel::text::{IntegerBetween, LongName, Name};
use provost_policy::{match_beginning, match_key};
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
#[schemars(inline)]
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
    /// The tool of the call, the key of the server, or the id of the operation, in any case and spelling, as policies compare it; `*` at its end stands for
    /// whatever follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<LongName>,
    /// The ids of groups, in one of which is for whom it is, or who asks; of an account whoever owns it.
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

/// The tools that a route fits, in the form in which policies compare names.
#[derive(Debug, PartialEq, Eq)]
enum Tools {
    /// None: nobody sees a letter of the name.
    None,
    /// The one of this key.
    Named(String),
    /// Those whose keys begin so.
    Beginning(String),
}

impl Tools {
    fn of(text: &str) -> Self {
        let tools = match text.strip_suffix('*') {
            Some("") => return Self::Beginning(String::new()),
            Some(beginning) => Self::Beginning(match_beginning(beginning)),
            None => Self::Named(match_key(text)),
        };
        match &tools {
            Self::Beginning(key) | Self::Named(key) if key.is_empty() => Self::None,
            _ => tools,
        }
    }

    /// Says whether the one of a key is among them.
    fn have(&self, tool: &str) -> bool {
        match self {
            Self::None => false,
            Self::Named(key) => tool == key,
            Self::Beginning(beginning) => tool.starts_with(beginning.as_str()),
        }
    }

    /// Says whether one tool can be among both.
    fn meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => false,
            (Self::Named(key), other) | (other, Self::Named(key)) => other.have(key),
            (Self::Beginning(one), Self::Beginning(other)) => {
                one.starts_with(other.as_str()) || other.starts_with(one.as_str())
            }
        }
    }
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
    ///
    /// Keeps AP-14.
    pub fn is_about(&self, kind: Kind, tool: &str) -> bool {
        let fits_tool = self.tools().is_none_or(|tools| tools.have(&match_key(tool)));
        self.fits.kind.is_none_or(|wanted| wanted == kind) && fits_tool
    }

    /// Returns the tools that it fits; nothing where it fits every one.
    fn tools(&self) -> Option<Tools> {
        self.fits.tool.as_ref().map(|tool| Tools::of(tool.as_str()))
    }

    /// Says whether it names a tool of which nobody sees a letter, which no name is.
    pub fn names_nothing_seen(&self) -> bool {
        matches!(self.tools(), Some(Tools::None))
    }

    /// Says whether one thing that is asked for can fit both routes; in whose groups who asks is, nobody can say before.
    pub fn meets(&self, other: &Self) -> bool {
        let is_of_one_kind =
            self.fits.kind.is_none() || other.fits.kind.is_none() || self.fits.kind == other.fits.kind;
        let of_one_tool = match (self.tools(), other.tools()) {
            (Some(one), Some(other)) => one.meet(&other),
            (Some(one), None) | (None, Some(one)) => one != Tools::None,
            (None, None) => true,
        };
        is_of_one_kind && of_one_tool
    }

    /// Says whether it fits the same as another.
    pub fn fits_as(&self, other: &Self) -> bool {
        self.fits == other.fits
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn route(tool: &str) -> Route {
        let route = json!({ "name": "one", "match": { "tool": tool }, "approvers": { "roles": ["admin"] }, "quorum": 2,
            "deadlineSeconds": 60, "onDeadline": "deny" });
        serde_json::from_value(route).unwrap()
    }

    /// Proves AP-14.
    #[test]
    fn a_route_fits_every_spelling_of_a_tool_that_a_policy_fits() {
        let fits = |wanted: &str, tool: &str| route(wanted).is_about(Kind::ToolCall, tool);
        for spelt in ["Bash", "bash", "BASH", "Ba\u{200b}sh"] {
            for asked in ["Bash", "bash", "BASH", "Bash ", "B\u{ad}ash"] {
                assert!(fits(spelt, asked), "{spelt:?} {asked:?}");
            }
            for other in ["Bas", "Bash2", "B ash", "B\u{430}sh", ""] {
                assert!(!fits(spelt, other), "{spelt:?} {other:?}");
            }
        }
        assert!(fits("Caf\u{e9}", "CAFE\u{301}"));
        assert!(fits("stra\u{df}e", "STRASSE"));
        for (beginning, tool, is) in [
            ("MCP__*", "mcp__tickets__read", true),
            ("mcp__*", "MCP__", true),
            ("mcp__*", "mcp_", false),
            // A blank before the star stands inside of a name.
            ("Run *", "run tests", true),
            ("Run *", "runtests", false),
            ("*", "whatever", true),
            ("*", "", true),
            // A star that is not at the end is a letter.
            ("*sh", "bash", false),
            ("*sh", "*SH", true),
            // What nobody sees is no name, and no beginning of every one.
            ("\u{200b}", "", false),
            ("\u{200b}*", "bash", false),
        ] {
            assert_eq!(fits(beginning, tool), is, "{beginning:?} {tool:?}");
        }
        assert!(route("\u{200b}*").names_nothing_seen() && !route("*").names_nothing_seen());
    }
}
