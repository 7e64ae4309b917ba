//! Records that end and come back.
//!
//! ```text
//! deleted ── within 90 days, under its external id, or under its name where neither has one ──► the same id
//!         └─ later, or under another external id ──► a new id
//! ```
//!
//! What guards comes back with the id: policies, ACLs and exceptions name it. What gives does not: the role, sessions, links to
//! identities, memberships and assignments ended with the record (DI-9). Which groups it was in is noted: a guard of one of
//! them counts as matched for who came back until somebody has set its groups (WD-6).
//!
//! Keeps WD-6.

use super::model::{Group, GroupId, Status, SuspendedBy, User, UserId};
use super::store::ended::{self, Ended, EndedRecords};
use super::store::{groups, memberships, users};
use super::users::orphans;
use crate::directory::fences;
use crate::subjects::{Record, SubjectKind};
use crate::words::{self, Kind};
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::text::name_key;
use provost_kernel::{Cx, Result, params};

impl From<&User> for Ended {
    fn from(user: &User) -> Self {
        let by_api = user.suspended.filter(|(_, by)| *by == SuspendedBy::Api);
        Self {
            kind: "user",
            id: user.id.as_str().to_owned(),
            directory_id: user.directory_id.clone(),
            name: user.login_name.clone(),
            name_key: name_key(&user.login_name),
            external_id: user.external_id.clone(),
            suspended_at: by_api.map(|(at, _)| at),
            ended_at: user.updated_at,
        }
    }
}

impl From<&Group> for Ended {
    fn from(group: &Group) -> Self {
        Self {
            kind: "group",
            id: group.id.as_str().to_owned(),
            directory_id: group.directory_id.clone(),
            name: group.name.clone(),
            name_key: name_key(&group.name),
            external_id: group.external_id.clone(),
            suspended_at: None,
            ended_at: group.updated_at,
        }
    }
}

/// Returns a user as policies may name it.
pub fn user_record(user: &User) -> Record {
    let words = [Some(&user.login_name), user.email.as_ref()];
    Record {
        kind: Kind::User,
        id: user.id.as_str().to_owned(),
        words: words.into_iter().flatten().cloned().collect(),
    }
}

/// Returns a group as policies may name it.
pub fn group_record(group: &Group) -> Record {
    Record {
        kind: Kind::Group,
        id: group.id.as_str().to_owned(),
        words: vec![group.name.clone()],
    }
}

/// Notes who a record was that is deleted now.
pub fn note(cx: &mut Cx<'_>, record: impl Into<Ended>) -> Result<()> {
    let ended = Ended {
        ended_at: cx.now(),
        ..record.into()
    };
    ended::note(cx, &ended)
}

/// Returns the record of a kind that comes back to a directory under a name and an external id, ready to be there again.
pub fn find(
    cx: &mut Cx<'_>,
    kind: &'static str,
    directory: &str,
    name: &str,
    external_id: Option<&str>,
) -> Result<Option<Ended>> {
    let key = name_key(name);
    let external: Vec<&str> = external_id.into_iter().collect();
    let mut found = EndedRecords::load(cx, kind, directory, &[&key], &external)?;
    let found = found.take(&key, external_id);
    if let Some(ended) = &found {
        clear_away(cx, ended)?;
    }
    Ok(found)
}

/// Does for an ended record at once what the job behind an import would do for it soon: the record that comes back must not
/// lose what it gets from now on.
pub fn clear_away(cx: &mut Cx<'_>, ended: &Ended) -> Result<()> {
    if !ended::awaits_removal(cx, ended)? {
        return Ok(());
    }
    let org = cx.org();
    if ended.kind == "user" {
        let id = UserId::from_store(ended.id.clone());
        words::end_user(cx, id.as_str())?;
        cx.queue(&users::DELETE, params![org, id.as_str()])?;
        return user_gone(cx, &id);
    }
    let id = GroupId::from_store(ended.id.clone());
    words::end_group(cx, id.as_str())?;
    cx.queue(&groups::DELETE, params![org, id.as_str()])?;
    group_gone(cx, &id)
}

/// Makes a new user of a file the one that comes back. A suspension by the API comes back with it (DI-6).
pub fn as_before(user: &mut User, ended: &Ended) {
    user.id = UserId::from_store(ended.id.clone());
    if let Some(at) = ended.suspended_at {
        user.status = Status::Suspended;
        user.suspended = Some((at, SuspendedBy::Api));
    }
}

/// Ends what a user leaves behind that is no longer there, and tells of it.
pub fn user_gone(cx: &mut Cx<'_>, id: &UserId) -> Result<()> {
    let org = cx.org();
    words::end_memberships(cx, id.as_str())?;
    cx.queue(&memberships::DELETE_OF_USER, params![org, id.as_str()])?;
    cx.announce(&PrincipalEnded {
        kind: SubjectKind::User,
        id: id.as_str().to_owned(),
        how: Departure::Deleted,
    })?;
    cx.emit(&fences::USER_DELETED, &fences::OfUser::of(id));
    orphans(cx, id)
}

/// Ends what a group leaves behind that is no longer there, and tells of it.
pub fn group_gone(cx: &mut Cx<'_>, id: &GroupId) -> Result<()> {
    let org = cx.org();
    cx.queue(&memberships::DELETE_OF_GROUP, params![org, id.as_str()])?;
    cx.announce(&PrincipalEnded {
        kind: SubjectKind::Group,
        id: id.as_str().to_owned(),
        how: Departure::Deleted,
    })?;
    cx.emit(&fences::GROUP_DELETED, &fences::OfGroup::of(id));
    Ok(())
}
