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
use super::store::ended::{self, DeletedRecord, EndedRecords};
use super::store::{groups, memberships, users};
use super::users::orphans;
use crate::directory::fences;
use crate::subjects::{Record, SubjectKind};
use crate::words::{self, Kind};
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, params};

impl From<&User> for DeletedRecord {
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

impl From<&Group> for DeletedRecord {
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
pub fn note(ctx: &mut OperationContext<'_>, record: impl Into<DeletedRecord>) -> Result<()> {
    let ended = DeletedRecord {
        ended_at: ctx.now(),
        ..record.into()
    };
    ended::note(ctx, &ended)
}

/// Returns the record of a kind that comes back to a directory under a name and an external id, ready to be there again.
pub fn find(
    ctx: &mut OperationContext<'_>,
    kind: &'static str,
    directory: &str,
    name: &str,
    external_id: Option<&str>,
) -> Result<Option<DeletedRecord>> {
    let key = name_key(name);
    let external: Vec<&str> = external_id.into_iter().collect();
    let mut found = EndedRecords::load(ctx, kind, directory, &[&key], &external)?;
    let found = found.take(&key, external_id);
    if let Some(ended) = &found {
        clear_away(ctx, ended)?;
    }
    Ok(found)
}

/// Does for an ended record at once what the job behind an import would do for it soon: the record that comes back must not
/// lose what it gets from now on.
pub fn clear_away(ctx: &mut OperationContext<'_>, ended: &DeletedRecord) -> Result<()> {
    if !ended::awaits_removal(ctx, ended)? {
        return Ok(());
    }
    let org = ctx.org();
    if ended.kind == "user" {
        let id = UserId::from_store(ended.id.clone());
        words::end_user(ctx, id.as_str())?;
        ctx.queue(&users::DELETE, params![org, id.as_str()])?;
        return user_gone(ctx, &id);
    }
    let id = GroupId::from_store(ended.id.clone());
    words::end_group(ctx, id.as_str())?;
    ctx.queue(&groups::DELETE, params![org, id.as_str()])?;
    group_gone(ctx, &id)
}

/// Makes a new user of a file the one that comes back. A suspension by the API comes back with it (DI-6).
pub fn as_before(user: &mut User, ended: &DeletedRecord) {
    user.id = UserId::from_store(ended.id.clone());
    if let Some(at) = ended.suspended_at {
        user.status = Status::Suspended;
        user.suspended = Some((at, SuspendedBy::Api));
    }
}

/// Ends what a user leaves behind that is no longer there, and tells of it.
pub fn user_gone(ctx: &mut OperationContext<'_>, id: &UserId) -> Result<()> {
    let org = ctx.org();
    words::end_memberships(ctx, id.as_str())?;
    ctx.queue(&memberships::DELETE_OF_USER, params![org, id.as_str()])?;
    ctx.announce(&PrincipalEnded {
        kind: SubjectKind::User,
        id: id.as_str().to_owned(),
        how: Departure::Deleted,
    })?;
    ctx.emit(&fences::USER_DELETED, &fences::OfUser::of(id));
    orphans(ctx, id)
}

/// Ends what a group leaves behind that is no longer there, and tells of it.
pub fn group_gone(ctx: &mut OperationContext<'_>, id: &GroupId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&memberships::DELETE_OF_GROUP, params![org, id.as_str()])?;
    ctx.announce(&PrincipalEnded {
        kind: SubjectKind::Group,
        id: id.as_str().to_owned(),
        how: Departure::Deleted,
    })?;
    ctx.emit(&fences::GROUP_DELETED, &fences::OfGroup::of(id));
    Ok(())
}
