//! Stages a chunk: writes the versions that the swap will show.
//!
//! INVARIANT DI-3: a refused line writes nothing, and an unchanged one stages nothing.

use super::super::model::{Group, Status, SuspendedBy, User, Validity};
use super::super::store::staging::{self, Membership};
use super::lines::{Chunk, GroupLine, Line, Record, Refusal, UserLine};
use super::model::{Format, Import, Mode, RefusedLine};
use crate::areas::directory::model::FOR_GOOD;
use provost_kernel::text::name_key;
use provost_kernel::{Cx, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is known about the names of a chunk before it is staged, and what its lines add.
struct Known {
    /// Names of the file by kind: the line, or `None` for a deletion through the API.
    seen: HashMap<(&'static str, String), Option<i64>>,
    users: HashMap<String, User>,
    groups: HashMap<String, Group>,
    /// Memberships by user.
    memberships: HashMap<String, Vec<Membership>>,
    last_user: i64,
    last_group: i64,
}

/// Stages the lines of a chunk, counts them, and returns those that were refused.
pub fn chunk(cx: &mut Cx<'_>, import: &mut Import, chunk: &Chunk) -> Result<Vec<RefusedLine>> {
    let mut known = Known::load(cx, import, chunk)?;
    let repeated = match (chunk.format, import.next_sequence) {
        (Format::Csv, 2..) => chunk.header_lines,
        _ => 0,
    };
    let before = import.file_lines - repeated;
    let mut refused = Vec::new();
    for line in &chunk.lines {
        import.counts.lines += 1;
        let number = before + line.line;
        if let Err(why) = known.stage(cx, import, line, number)? {
            import.counts.refused += 1;
            refused.push(RefusedLine {
                line: number,
                path: why.path,
                message: why.message,
            });
        }
    }
    import.file_lines = before + chunk.all_lines;
    Ok(refused)
}

/// A line is staged or refused; the outer error is the store's.
type Staged = Result<std::result::Result<(), Refusal>>;

impl Known {
    fn load(cx: &mut Cx<'_>, import: &Import, chunk: &Chunk) -> Result<Self> {
        let (mut users, mut groups) = (BTreeSet::new(), BTreeSet::new());
        for line in &chunk.lines {
            match &line.record {
                Ok(Record::User(user)) => {
                    users.insert(name_key(user.login_name.as_str()));
                    let named = user.groups.iter().flatten();
                    groups.extend(named.map(|name| name_key(name.as_str())));
                }
                Ok(Record::Group(group)) => {
                    groups.insert(name_key(group.name.as_str()));
                }
                Err(_) => {}
            }
        }
        let users: Vec<&str> = users.iter().map(String::as_str).collect();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let mut seen = HashMap::new();
        for (kind, keys) in [("user", &users), ("group", &groups)] {
            let found = staging::seen(cx, import.id.as_str(), kind, keys)?;
            seen.extend(found.into_iter().map(|(key, line)| ((kind, key), line)));
        }
        let directory = import.directory_id.as_str();
        // Of two versions the staged one comes later and so stays in the map.
        let users: HashMap<_, _> = staging::users_named(cx, directory, &users)?.into_iter().collect();
        let groups: HashMap<_, _> = staging::groups_named(cx, directory, &groups)?
            .into_iter()
            .collect();
        let ids: BTreeSet<&str> = users.values().map(|user| user.id.as_str()).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let mut memberships: HashMap<String, Vec<Membership>> = HashMap::new();
        for found in staging::memberships_of(cx, directory, &ids)? {
            memberships.entry(found.user_id.clone()).or_default().push(found);
        }
        let (last_user, last_group) = staging::last_places(cx)?;
        Ok(Self {
            seen,
            users,
            groups,
            memberships,
            last_user,
            last_group,
        })
    }

    fn stage(&mut self, cx: &mut Cx<'_>, import: &mut Import, line: &Line, number: i64) -> Staged {
        match &line.record {
            Err(why) => Ok(Err(why.clone())),
            Ok(Record::User(user)) => self.user(cx, import, user, number),
            Ok(Record::Group(group)) => self.group(cx, import, group, number),
        }
    }

    /// Notes that a line names a record. `Ok(Ok(false))`: the record was deleted through the API since.
    fn name(
        &mut self,
        cx: &mut Cx<'_>,
        import: &mut Import,
        (kind, member): (&'static str, &str),
        key: &str,
        number: i64,
    ) -> Result<std::result::Result<bool, Refusal>> {
        match self.seen.get(&(kind, key.to_owned())) {
            Some(Some(earlier)) => Ok(Err(Refusal {
                path: Some(member.to_owned()),
                message: format!("line {earlier} names this {kind} already"),
            })),
            Some(None) => {
                import.counts.superseded += 1;
                Ok(Ok(false))
            }
            None => {
                staging::note(cx, import.id.as_str(), kind, key, number)?;
                self.seen.insert((kind, key.to_owned()), Some(number));
                Ok(Ok(true))
            }
        }
    }

    fn group(&mut self, cx: &mut Cx<'_>, import: &mut Import, line: &GroupLine, number: i64) -> Staged {
        let key = name_key(line.name.as_str());
        match self.name(cx, import, ("group", "/name"), &key, number)? {
            Err(why) => return Ok(Err(why)),
            Ok(false) => return Ok(Ok(())),
            Ok(true) => {}
        }
        let before = self.groups.get(&key).cloned();
        let mut after = before.clone().unwrap_or_else(|| {
            self.last_group += 1;
            Group {
                id: cx.new_id(),
                validity: staged(import),
                seq: self.last_group,
                organization_id: import.organization_id.clone(),
                directory_id: import.directory_id.clone(),
                name: String::new(),
                description: None,
                created_at: cx.now(),
                updated_at: cx.now(),
            }
        });
        line.name.as_str().clone_into(&mut after.name);
        line.description
            .apply(&mut after.description, |d| d.as_str().to_owned());
        let counts = &mut import.counts.groups;
        match &before {
            None => counts.created += 1,
            Some(before) if *before == after => counts.unchanged += 1,
            Some(_) => {
                counts.updated += 1;
                after.touch(cx.now());
            }
        }
        if before.as_ref() != Some(&after) {
            staging::group(cx, import.generation, before.as_ref(), &after)?;
            self.groups.insert(key, after);
        }
        Ok(Ok(()))
    }

    fn user(&mut self, cx: &mut Cx<'_>, import: &mut Import, line: &UserLine, number: i64) -> Staged {
        let wanted = match self.groups_of(import, line) {
            Ok(wanted) => wanted,
            Err(why) => return Ok(Err(why)),
        };
        let key = name_key(line.login_name.as_str());
        match self.name(cx, import, ("user", "/loginName"), &key, number)? {
            Err(why) => return Ok(Err(why)),
            Ok(false) => return Ok(Ok(())),
            Ok(true) => {}
        }
        let before = self.users.get(&key).cloned();
        let mut after = before.clone().unwrap_or_else(|| self.new_user(cx, import));
        say(cx, &mut after, line, before.is_none());
        let counts = &mut import.counts.users;
        match &before {
            None => counts.created += 1,
            Some(before) if *before == after => counts.unchanged += 1,
            Some(_) => counts.updated += 1,
        }
        if before.as_ref() != Some(&after) {
            staging::user(cx, import.generation, before.as_ref(), &after)?;
        }
        if let Some(wanted) = wanted {
            self.join(cx, import, &after, &wanted)?;
        }
        Ok(Ok(()))
    }

    fn new_user(&mut self, cx: &mut Cx<'_>, import: &Import) -> User {
        self.last_user += 1;
        User {
            id: cx.new_id(),
            validity: staged(import),
            seq: self.last_user,
            organization_id: import.organization_id.clone(),
            directory_id: import.directory_id.clone(),
            login_name: String::new(),
            display_name: None,
            email: None,
            external_id: None,
            role: None,
            status: Status::Active,
            suspended: None,
            created_at: cx.now(),
            updated_at: cx.now(),
        }
    }

    /// Returns the ids of the groups that a line names, or why it cannot name one of them.
    fn groups_of(
        &self,
        import: &Import,
        line: &UserLine,
    ) -> std::result::Result<Option<BTreeSet<String>>, Refusal> {
        let Some(names) = &line.groups else {
            return Ok(None);
        };
        let mut wanted = BTreeSet::new();
        for (place, name) in names.iter().enumerate() {
            let key = name_key(name.as_str());
            let is_deleted = self.seen.get(&("group", key.clone())) == Some(&None);
            if is_deleted {
                // The API won: the group is gone, and the user is in one group less.
                continue;
            }
            let is_named = self.seen.contains_key(&("group", key.clone()));
            let group = self.groups.get(&key);
            match group.filter(|_| is_named || import.mode == Mode::Merge) {
                Some(group) => wanted.insert(group.id.as_str().to_owned()),
                None => {
                    return Err(Refusal {
                        path: Some(format!("/groups/{place}")),
                        message: "is no group of the directory; name it on an earlier line".into(),
                    });
                }
            };
        }
        Ok(Some(wanted))
    }

    /// Stages that a user is in exactly these groups of the directory.
    fn join(
        &self,
        cx: &mut Cx<'_>,
        import: &mut Import,
        user: &User,
        wanted: &BTreeSet<String>,
    ) -> Result<()> {
        let empty = Vec::new();
        let live = self.memberships.get(user.id.as_str()).unwrap_or(&empty);
        // Of two versions of one membership the later decides.
        let latest: BTreeMap<&str, &Membership> = live.iter().map(|m| (m.group_id.as_str(), m)).collect();
        for group in wanted {
            let version = latest.get(group.as_str()).copied();
            if version.is_none_or(|m| m.to != FOR_GOOD) {
                staging::join(cx, import.generation, group, user, version)?;
                import.counts.memberships.added += 1;
            }
        }
        for (group, version) in latest {
            if version.to == FOR_GOOD && !wanted.contains(group) {
                staging::leave(cx, import.generation, version)?;
                import.counts.memberships.removed += 1;
            }
        }
        Ok(())
    }
}

fn staged(import: &Import) -> Validity {
    Validity {
        from: import.generation,
        to: FOR_GOOD,
    }
}

/// Lets a user be as a line says.
///
/// INVARIANT DI-6: a line lifts no suspension that the API made.
fn say(cx: &Cx<'_>, user: &mut User, line: &UserLine, is_new: bool) {
    let before = user.clone();
    line.login_name.as_str().clone_into(&mut user.login_name);
    line.display_name
        .apply(&mut user.display_name, |v| v.as_str().to_owned());
    line.email.apply(&mut user.email, |v| v.as_str().to_owned());
    line.external_id
        .apply(&mut user.external_id, |v| v.as_str().to_owned());
    let is_held = user.suspended.is_some_and(|(_, by)| by == SuspendedBy::Api);
    let status_changed = match line.status {
        Some(Status::Suspended) => user.suspend(cx.now(), SuspendedBy::Import),
        Some(Status::Active) if !is_held => user.reactivate(cx.now()),
        _ => false,
    };
    if *user != before && !status_changed && !is_new {
        user.touch(cx.now());
    }
}
