//! Routes: which of those who may decide do, how many, and until when.
//!
//! ```text
//!   asked for ──► the first route that fits ──► frozen into the request ──► votes of its approvers alone
//!                 none fits                 ──► all who may decide, one of them
//! ```
//!
//! INVARIANT AP-13: a route gives nobody a right: it says of those who may decide anyway which do. It stands in the request as it was
//! when that was asked for, whatever becomes of the routes. Where fewer of its approvers can be reached then than have to say yes, all
//! who may decide do, as many of them, and the request says so.
//!
//! Keeps AP-14.

mod get;
mod model;
mod preview;
mod put;
mod store;
mod weaker;

pub use model::{Approvers, Frozen, OnDeadline, Route};
pub(super) use store::STATEMENTS;

use super::model::Behind;
use super::model::{Kind, Party};
use super::rights;
use provost_areas_identity::directory;
use provost_kernel::Result;
use provost_kernel::auth::Role;
use provost_kernel::db::Tx;
use provost_kernel::operation::Entry;
use provost_kernel::text::LongName;
use std::collections::BTreeSet;

/// Returns the operations on routes.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<get::GetRoutes>(),
        Entry::of::<put::PutRoutes>(),
        Entry::of::<preview::PreviewRoute>(),
    ]
}

/// What is asked for, as far as routes tell one from another.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// What is asked for.
    pub kind: Kind,
    /// The tool of the call, the key of the server, or the id of the operation.
    pub tool: &'a str,
    /// Who asks.
    pub asker: &'a Party,
    /// For whom.
    pub subject: &'a Party,
}

impl Wanted<'_> {
    /// Returns the groups that count: those of the people for whom it is and who ask, and of those who own them where they are accounts.
    ///
    /// Cost: at most four statements.
    fn groups(&self, tx: &mut Tx<'_>, org: &str) -> Result<Vec<String>> {
        let mut groups = Vec::new();
        for party in [self.subject, self.asker] {
            let person = rights::owner_of(tx, org, party)?;
            groups.extend(directory::groups_of(tx, org, &person)?);
        }
        Ok(groups)
    }
}

/// Returns the first route that fits what is asked for.
///
/// Cost: one statement, and four more where a route names groups.
pub fn fitting(tx: &mut Tx<'_>, org: &str, wanted: &Wanted<'_>) -> Result<Option<Route>> {
    let routes = store::load(tx, org)?.map_or_else(Vec::new, |stored| stored.routes);
    let mut groups: Option<Vec<String>> = None;
    for route in routes {
        if !route.is_about(wanted.kind, wanted.tool) {
            continue;
        }
        if route.has_groups() && groups.is_none() {
            groups = Some(wanted.groups(tx, org)?);
        }
        if route.is_of(groups.as_deref().unwrap_or_default()) {
            return Ok(Some(route));
        }
    }
    Ok(None)
}

/// Returns a route as it stands in a request from now on.
///
/// Keeps AP-13.
pub fn freeze(
    tx: &mut Tx<'_>,
    org: &str,
    route: &Route,
    wanted: &Wanted<'_>,
    behind: &Behind,
) -> Result<Frozen> {
    let quorum = usize::try_from(route.quorum()).unwrap_or(usize::MAX);
    let reached = reachable(tx, org, Some(&route.approvers), wanted, behind, quorum)?;
    Ok(route.frozen(reached.len() < quorum))
}

/// Returns the ids of people who could say yes now, so many at most: of the approvers, or of all who may decide.
///
/// Cost: one statement for each user and group that is named, or one for all, and one for each person until there are enough.
pub(super) fn reachable(
    tx: &mut Tx<'_>,
    org: &str,
    approvers: Option<&Approvers>,
    wanted: &Wanted<'_>,
    behind: &Behind,
    most: usize,
) -> Result<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut open = Candidates::of(approvers);
    while found.len() < most
        && let Some(candidates) = open.next(tx, org)?
    {
        for id in candidates {
            let party = Party::person(id);
            let is_behind = behind.contains(&party.id) || party == *wanted.asker || party == *wanted.subject;
            if found.len() < most
                && !is_behind
                && !found.contains(&party.id)
                && rights::may_decide(tx, org, &party)?
            {
                found.insert(party.id);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Whom to look at for who could say yes: where people and groups are named these alone, however many may decide otherwise.
enum Candidates<'a> {
    /// All who may decide.
    Everybody,
    /// The users and the groups that are named.
    Named(std::vec::IntoIter<&'a str>, std::vec::IntoIter<&'a str>),
    /// Nobody more.
    Nobody,
}

impl<'a> Candidates<'a> {
    fn of(approvers: Option<&'a Approvers>) -> Self {
        let ids = |list: &'a [LongName]| list.iter().map(LongName::as_str).collect::<Vec<_>>().into_iter();
        match approvers {
            Some(named) if !named.name_everybody() => Self::Named(ids(&named.users), ids(&named.groups)),
            _ => Self::Everybody,
        }
    }

    /// Returns some more of them.
    fn next(&mut self, tx: &mut Tx<'_>, org: &str) -> Result<Option<Vec<String>>> {
        match self {
            // Who may decide has the one role that may.
            Self::Everybody => {
                *self = Self::Nobody;
                directory::with_role(tx, org, Role::Admin).map(Some)
            }
            Self::Named(users, groups) => match (users.next(), groups.next()) {
                (None, None) => Ok(None),
                (user, group) => {
                    let mut some: Vec<String> = user.map(str::to_owned).into_iter().collect();
                    if let Some(group) = group {
                        some.append(&mut directory::with_role_in(tx, org, Role::Admin, group)?);
                    }
                    Ok(Some(some))
                }
            },
            Self::Nobody => Ok(None),
        }
    }
}

/// Says whether approvers name a person, who may decide.
fn names(tx: &mut Tx<'_>, org: &str, approvers: &Approvers, party: &Party) -> Result<bool> {
    if approvers.name(&party.id) {
        return Ok(true);
    }
    // Who may decide has the one role that may.
    if approvers.name_everybody() {
        return Ok(true);
    }
    if !approvers.have_groups() {
        return Ok(false);
    }
    Ok(approvers.name_one_of(&directory::groups_of(tx, org, &party.id)?))
}

/// Says whether the route of a request has somebody decide, who may decide anyway and is in these groups.
///
/// Keeps AP-13.
pub fn lets_one_of(route: Option<&Frozen>, party: &Party, groups: &[String]) -> bool {
    route.is_none_or(|route| {
        let named = &route.approvers;
        route.falls_to_admins || named.name(&party.id) || named.name_everybody() || named.name_one_of(groups)
    })
}

/// Says whether the route of a request has somebody decide who may decide anyway.
///
/// Keeps AP-13.
pub fn lets(tx: &mut Tx<'_>, org: &str, route: Option<&Frozen>, party: &Party) -> Result<bool> {
    match route {
        None => Ok(true),
        Some(route) if route.falls_to_admins => Ok(true),
        Some(route) => names(tx, org, &route.approvers, party),
    }
}
