//! Stages a chunk: writes the versions that the swap will show.
//!
//! Keeps DI-3.

use super::super::held::model::{HeldChange, Picture};
use super::super::model::{Group, GroupId, Status, SuspendedBy, User, Validity};
use super::super::returning;
use super::super::rights::may_change;
use super::super::store::ended::EndedRecords;
use super::super::store::staging::{self, Membership};
use super::super::store::{clashes, held};
use super::lines::{Chunk, ChunkLine, GroupLine, Record, Refusal, UserLine};
use super::model::{Format, Import, Mode, RefusedLine};
use crate::directory::model::FOR_GOOD;
use crate::words;
use provost_kernel::patch::Patch;
use provost_kernel::text::{LongName, name_key};
use provost_kernel::{OperationContext, Result};
use provost_policy::match_key;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is known about the names of a chunk before it is staged, and what its lines add.
struct ChunkNames {
    /// Names and ids of the file by kind: the line, or `None` for a deletion through the API.
    seen: HashMap<(&'static str, String), Option<i64>>,
    users: Records<User>,
    groups: Records<Group>,
    ended_users: EndedRecords,
    ended_groups: EndedRecords,
    /// Memberships by user.
    memberships: HashMap<String, Vec<Membership>>,
    /// Users whose groups nobody has set since they came back.
    unsettled: BTreeSet<String>,
    last_user: i64,
    last_group: i64,
    /// The match keys of users whom the chunk stages.
    words: BTreeSet<String>,
}

/// The records of a directory that a chunk can mean, as the lines before leave them.
struct Records<T> {
    by_name: HashMap<String, T>,
    by_external: HashMap<String, Vec<T>>,
}

/// What a user and a group have in common here.
trait NamedRecord: Clone {
    /// The kind of its names among those of a file.
    const NAMES: &'static str;
    /// The kind of its external ids among those of a file.
    const IDS: &'static str;
    /// What people call it.
    const WORD: &'static str;
    /// The member that holds its name.
    const MEMBER: &'static str;
    fn id(&self) -> &str;
    fn name(&self) -> &str;
    fn external(&self) -> Option<&str>;
}

impl NamedRecord for User {
    const NAMES: &'static str = "user";
    const IDS: &'static str = "user id";
    const WORD: &'static str = "user";
    const MEMBER: &'static str = "/loginName";
    fn id(&self) -> &str {
        self.id.as_str()
    }
    fn name(&self) -> &str {
        &self.login_name
    }
    fn external(&self) -> Option<&str> {
        self.external_id.as_deref()
    }
}

impl NamedRecord for Group {
    const NAMES: &'static str = "group";
    const IDS: &'static str = "group id";
    const WORD: &'static str = "group";
    const MEMBER: &'static str = "/name";
    fn id(&self) -> &str {
        self.id.as_str()
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn external(&self) -> Option<&str> {
        self.external_id.as_deref()
    }
}

impl<T: NamedRecord> Records<T> {
    fn of(named: Vec<(String, T)>, external: Vec<(String, T)>) -> Self {
        let mut by_external: HashMap<String, Vec<T>> = HashMap::new();
        for (id, record) in external {
            by_external.entry(id).or_default().push(record);
        }
        Self {
            by_name: named.into_iter().collect(),
            by_external,
        }
    }

    fn all(&self) -> impl Iterator<Item = &T> {
        self.by_name.values().chain(self.by_external.values().flatten())
    }

    /// Returns the record that a line means: the one of its external id, else the one of its name.
    fn meant(&self, key: &str, external: Option<&str>) -> std::result::Result<Option<T>, Refusal> {
        let named = self.by_name.get(key);
        let having = external.and_then(|id| self.by_external.get(id));
        let having = having.map_or(&[][..], Vec::as_slice);
        let is_named = |record: &&T| named.is_some_and(|named| named.id() == record.id());
        match having {
            [] => Ok(named.cloned()),
            several if several.iter().any(|record| is_named(&record)) => Ok(named.cloned()),
            [_] if named.is_some() => Err(Refusal {
                path: Some(T::MEMBER.to_owned()),
                message: format!(
                    "another {} of the directory has this name, and no earlier line gives it another one",
                    T::WORD
                ),
            }),
            [one] => Ok(Some(one.clone())),
            several => Err(Refusal {
                path: Some("/externalId".to_owned()),
                message: format!("{} {}s of the directory have this id", several.len(), T::WORD),
            }),
        }
    }

    /// Puts a record as it is now in the place of what it was.
    fn replace(&mut self, before: Option<&T>, after: &T) {
        if let Some(before) = before {
            self.by_name.remove(&name_key(before.name()));
            if let Some(others) = before.external().and_then(|id| self.by_external.get_mut(id)) {
                others.retain(|other| other.id() != before.id());
            }
        }
        self.by_name.insert(name_key(after.name()), after.clone());
        if let Some(id) = after.external() {
            self.by_external
                .entry(id.to_owned())
                .or_default()
                .push(after.clone());
        }
    }
}

/// Stages the lines of a chunk, counts them, and returns those that were refused.
pub fn chunk(ctx: &mut OperationContext<'_>, import: &mut Import, chunk: &Chunk) -> Result<Vec<RefusedLine>> {
    let mut known = ChunkNames::load(ctx, import, chunk)?;
    let repeated = match (chunk.format, import.next_sequence) {
        (Format::Csv, 2..) => chunk.header_lines,
        _ => 0,
    };
    let before = import.file_lines - repeated;
    let mut refused = Vec::new();
    for line in &chunk.lines {
        import.counts.lines += 1;
        let number = before + line.line;
        if let Err(why) = known.stage(ctx, import, line, number)? {
            import.counts.refused += 1;
            refused.push(RefusedLine {
                line: number,
                path: why.path,
                message: why.message,
            });
        }
    }
    import.file_lines = before + chunk.all_lines;
    let words: Vec<&str> = known.words.iter().map(String::as_str).collect();
    clashes::note(ctx, import.generation, &words)?;
    Ok(refused)
}

/// A line is staged or refused; the outer error is the store's.
type StagingResult = Result<std::result::Result<(), Refusal>>;

/// The names and external ids of a chunk's lines of one kind.
#[derive(Default)]
struct Words {
    names: BTreeSet<String>,
    external: BTreeSet<String>,
}

impl Words {
    fn add(&mut self, name: &str, external: Option<&str>) {
        self.names.insert(name_key(name));
        self.external.extend(external.map(str::to_owned));
    }

    fn lists(&self) -> [Vec<&str>; 2] {
        [&self.names, &self.external].map(|set| set.iter().map(String::as_str).collect())
    }
}

fn external(member: &Patch<LongName>) -> Option<&str> {
    match member {
        Patch::Set(id) => Some(id.as_str()),
        Patch::Absent | Patch::Clear => None,
    }
}

impl ChunkNames {
    fn load(ctx: &mut OperationContext<'_>, import: &Import, chunk: &Chunk) -> Result<Self> {
        let (mut users, mut groups) = (Words::default(), Words::default());
        for line in &chunk.lines {
            match &line.record {
                Ok(Record::User(user)) => {
                    users.add(user.login_name.as_str(), external(&user.external_id));
                    let named = user.groups.iter().flatten();
                    groups.names.extend(named.map(|name| name_key(name.as_str())));
                }
                Ok(Record::Group(group)) => groups.add(group.name.as_str(), external(&group.external_id)),
                Err(_) => {}
            }
        }
        let directory = import.directory_id.as_str();
        let ([names, ids], [group_names, group_ids]) = (users.lists(), groups.lists());
        let users = Records::of(
            staging::users_named(ctx, directory, &names)?,
            staging::users_external(ctx, directory, &ids)?,
        );
        let groups = Records::of(
            staging::groups_named(ctx, directory, &group_names)?,
            staging::groups_external(ctx, directory, &group_ids)?,
        );
        let ended_users = EndedRecords::load(ctx, "user", directory, &names, &ids)?;
        let ended_groups = EndedRecords::load(ctx, "group", directory, &group_names, &group_ids)?;
        // Also under the names that records have now: an earlier line may have named one by it.
        let user_keys = with_own_names(&names, &users);
        let group_keys = with_own_names(&group_names, &groups);
        let mut seen = HashMap::new();
        for (kind, keys) in [
            (User::NAMES, user_keys.iter().map(String::as_str).collect()),
            (Group::NAMES, group_keys.iter().map(String::as_str).collect()),
            (User::IDS, ids),
            (Group::IDS, group_ids),
        ] {
            let found = staging::seen(ctx, import.id.as_str(), kind, &keys)?;
            seen.extend(found.into_iter().map(|(key, line)| ((kind, key), line)));
        }
        let ids: BTreeSet<&str> = users.all().map(NamedRecord::id).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let mut memberships: HashMap<String, Vec<Membership>> = HashMap::new();
        for found in staging::memberships_of(ctx, directory, &ids)? {
            memberships.entry(found.user_id.clone()).or_default().push(found);
        }
        let unsettled = staging::unsettled(ctx, &ids)?.into_iter().collect();
        let (last_user, last_group) = staging::last_places(ctx)?;
        Ok(Self {
            seen,
            users,
            groups,
            ended_users,
            ended_groups,
            memberships,
            unsettled,
            last_user,
            last_group,
            words: BTreeSet::new(),
        })
    }

    fn stage(
        &mut self,
        ctx: &mut OperationContext<'_>,
        import: &mut Import,
        line: &ChunkLine,
        number: i64,
    ) -> StagingResult {
        match &line.record {
            Err(why) => Ok(Err(why.clone())),
            Ok(Record::User(user)) => self.user(ctx, import, user, number),
            Ok(Record::Group(group)) => self.group(ctx, import, group, number),
        }
    }

    /// Notes that a line names a record. `Ok(Ok(false))`: the record was deleted through the API since.
    fn claim<T: NamedRecord>(
        &mut self,
        ctx: &mut OperationContext<'_>,
        import: &mut Import,
        (name, external): (&str, Option<&str>),
        before: Option<&T>,
        number: i64,
    ) -> Result<std::result::Result<bool, Refusal>> {
        let key = name_key(name);
        let mut claims = vec![(T::NAMES, T::MEMBER, key.clone())];
        claims.extend(external.map(|id| (T::IDS, "/externalId", id.to_owned())));
        let own = before.map(|before| name_key(before.name()));
        let renamed = own.filter(|own| *own != key);
        let renamed = renamed.map(|own| (T::NAMES, T::MEMBER, own));
        for (kind, member, word) in claims.iter().chain(&renamed) {
            match self.seen.get(&(*kind, word.clone())) {
                Some(Some(earlier)) => {
                    return Ok(Err(Refusal {
                        path: Some((*member).to_owned()),
                        message: format!("line {earlier} names this {} already", T::WORD),
                    }));
                }
                Some(None) => {
                    import.counts.superseded += 1;
                    return Ok(Ok(false));
                }
                None => {}
            }
        }
        for (kind, _, word) in claims {
            self.note(ctx, import, kind, word, number)?;
        }
        Ok(Ok(true))
    }

    fn note(
        &mut self,
        ctx: &mut OperationContext<'_>,
        import: &Import,
        kind: &'static str,
        word: String,
        number: i64,
    ) -> Result<()> {
        staging::note(ctx, import.id.as_str(), kind, &word, number)?;
        self.seen.insert((kind, word), Some(number));
        Ok(())
    }

    fn group(
        &mut self,
        ctx: &mut OperationContext<'_>,
        import: &mut Import,
        line: &GroupLine,
        number: i64,
    ) -> StagingResult {
        let (key, external) = (name_key(line.name.as_str()), external(&line.external_id));
        let before = match self.groups.meant(&key, external) {
            Ok(before) => before,
            Err(why) => return Ok(Err(why)),
        };
        match self.claim(
            ctx,
            import,
            (line.name.as_str(), external),
            before.as_ref(),
            number,
        )? {
            Err(why) => return Ok(Err(why)),
            Ok(false) => return Ok(Ok(())),
            Ok(true) => {}
        }
        let mut after = match &before {
            Some(before) => before.clone(),
            None => self.new_group(ctx, import, &key, external)?,
        };
        line.name.as_str().clone_into(&mut after.name);
        line.description
            .apply(&mut after.description, |d| d.as_str().to_owned());
        line.external_id
            .apply(&mut after.external_id, |id| id.as_str().to_owned());
        let counts = &mut import.counts.groups;
        match &before {
            None => counts.created += 1,
            Some(before) if *before == after => counts.unchanged += 1,
            Some(_) => {
                counts.updated += 1;
                after.touch(ctx.now());
            }
        }
        if before.as_ref() != Some(&after) {
            after.validity = staged(import);
            staging::group(ctx, import.generation, before.as_ref(), &after)?;
            self.groups.replace(before.as_ref(), &after);
        }
        Ok(Ok(()))
    }

    fn new_group(
        &mut self,
        ctx: &mut OperationContext<'_>,
        import: &Import,
        key: &str,
        external: Option<&str>,
    ) -> Result<Group> {
        let id = match self.ended_groups.take(key, external) {
            Some(ended) => {
                returning::clear_away(ctx, &ended)?;
                GroupId::from_store(ended.id)
            }
            None => ctx.new_id(),
        };
        self.last_group += 1;
        Ok(Group {
            id,
            validity: staged(import),
            seq: self.last_group,
            organization_id: import.organization_id.clone(),
            directory_id: import.directory_id.clone(),
            name: String::new(),
            description: None,
            external_id: None,
            created_at: ctx.now(),
            updated_at: ctx.now(),
        })
    }

    fn user(
        &mut self,
        ctx: &mut OperationContext<'_>,
        import: &mut Import,
        line: &UserLine,
        number: i64,
    ) -> StagingResult {
        let wanted = match self.groups_of(import, line) {
            Ok(wanted) => wanted,
            Err(why) => return Ok(Err(why)),
        };
        let (key, external) = (name_key(line.login_name.as_str()), external(&line.external_id));
        let before = match self.users.meant(&key, external) {
            Ok(before) => before,
            Err(why) => return Ok(Err(why)),
        };
        let name = (line.login_name.as_str(), external);
        match self.claim(ctx, import, name, before.as_ref(), number)? {
            Err(why) => return Ok(Err(why)),
            Ok(false) => return Ok(Ok(())),
            Ok(true) => {}
        }
        let mut after = match &before {
            Some(before) => before.clone(),
            None => self.new_user(ctx, import, &key, external)?,
        };
        say(ctx, &mut after, line, before.is_none());
        if let Some(before) = &before
            && may_change(ctx.actor().permission, before, &after).is_err()
        {
            return self.hold(ctx, import, (before, &after), wanted, number).map(Ok);
        }
        let counts = &mut import.counts.users;
        match &before {
            None => counts.created += 1,
            Some(before) if *before == after => counts.unchanged += 1,
            Some(_) => counts.updated += 1,
        }
        if before.as_ref() != Some(&after) {
            after.validity = staged(import);
            staging::user(ctx, import.generation, before.as_ref(), &after)?;
            let words = [Some(&after.login_name), after.email.as_ref()];
            self.words
                .extend(words.into_iter().flatten().map(|word| match_key(word)));
            self.users.replace(before.as_ref(), &after);
        }
        if let Some(wanted) = wanted {
            if self.unsettled.remove(after.id.as_str()) {
                staging::note(ctx, import.id.as_str(), words::GIVEN, after.id.as_str(), number)?;
            }
            self.join(ctx, import, &after, &wanted)?;
            self.leave(ctx, import, &after, &wanted)?;
        }
        Ok(Ok(()))
    }

    /// Holds what a line wants of a user that its caller could not make. What takes away is staged: whoever suspends a user
    /// or takes it out of a group needs nothing for it.
    ///
    /// INVARIANT DI-10: of a held line nothing but what it takes away is staged.
    fn hold(
        &mut self,
        ctx: &mut OperationContext<'_>,
        import: &mut Import,
        (before, after): (&User, &User),
        wanted: Option<BTreeSet<String>>,
        number: i64,
    ) -> Result<()> {
        import.counts.held += 1;
        let own = name_key(before.name());
        if own != name_key(after.name()) {
            // The file knows the user: mode replace must not remove it under the name that it keeps.
            self.note(ctx, import, User::NAMES, own, number)?;
        }
        let mut kept = before.clone();
        if after.status == Status::Suspended && kept.suspend(ctx.now(), SuspendedBy::Import) {
            kept.validity = staged(import);
            staging::user(ctx, import.generation, Some(before), &kept)?;
            self.users.replace(Some(before), &kept);
        }
        let mut joins = Vec::new();
        if let Some(wanted) = wanted {
            self.leave(ctx, import, &kept, &wanted)?;
            let new = self.groups_to_join(&kept, &wanted).into_iter();
            joins = new
                .map(|(group, _)| GroupId::from_store(group.to_owned()))
                .collect();
        }
        let change = HeldChange {
            id: ctx.new_id(),
            seq: 0,
            import_id: import.id.clone(),
            line: number,
            user_id: before.id.clone(),
            before: Picture::from(&kept),
            after: Picture::from(after),
            joins,
            created_at: ctx.now(),
        };
        held::insert(ctx, &change)
    }

    fn new_user(
        &mut self,
        ctx: &mut OperationContext<'_>,
        import: &Import,
        key: &str,
        external: Option<&str>,
    ) -> Result<User> {
        self.last_user += 1;
        let mut user = User {
            id: ctx.new_id(),
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
            created_at: ctx.now(),
            updated_at: ctx.now(),
        };
        if let Some(ended) = self.ended_users.take(key, external) {
            returning::clear_away(ctx, &ended)?;
            returning::as_before(&mut user, &ended);
            self.unsettled.insert(ended.id);
        }
        Ok(user)
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
            let is_deleted = self.seen.get(&(Group::NAMES, key.clone())) == Some(&None);
            if is_deleted {
                // The API won: the group is gone, and the user is in one group less.
                continue;
            }
            let is_named = self.seen.contains_key(&(Group::NAMES, key.clone()));
            let group = self.groups.by_name.get(&key);
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

    /// Returns the user's memberships in the directory by group; of two versions of one the later decides.
    fn latest(&self, user: &User) -> BTreeMap<&str, &Membership> {
        let live = self.memberships.get(user.id.as_str()).into_iter().flatten();
        live.map(|m| (m.group_id.as_str(), m)).collect()
    }

    /// Returns the wanted groups that the user will not be in, each with its membership that ends, if there is one.
    fn groups_to_join<'a>(
        &'a self,
        user: &User,
        wanted: &'a BTreeSet<String>,
    ) -> Vec<(&'a str, Option<&'a Membership>)> {
        let latest = self.latest(user);
        let version = |group: &'a String| (group.as_str(), latest.get(group.as_str()).copied());
        let is_new = |(_, version): &(&str, Option<&Membership>)| version.is_none_or(|m| m.to != FOR_GOOD);
        wanted.iter().map(version).filter(is_new).collect()
    }

    /// Stages that a user is in these groups of the directory.
    fn join(
        &self,
        ctx: &mut OperationContext<'_>,
        import: &mut Import,
        user: &User,
        wanted: &BTreeSet<String>,
    ) -> Result<()> {
        for (group, version) in self.groups_to_join(user, wanted) {
            staging::join(ctx, import.generation, group, user, version)?;
            import.counts.memberships.added += 1;
        }
        Ok(())
    }

    /// Stages that a user is in no other groups of the directory.
    fn leave(
        &self,
        ctx: &mut OperationContext<'_>,
        import: &mut Import,
        user: &User,
        wanted: &BTreeSet<String>,
    ) -> Result<()> {
        for (group, version) in self.latest(user) {
            if version.to == FOR_GOOD && !wanted.contains(group) {
                staging::leave(ctx, import.generation, version)?;
                import.counts.memberships.removed += 1;
            }
        }
        Ok(())
    }
}

fn with_own_names<T: NamedRecord>(names: &[&str], records: &Records<T>) -> BTreeSet<String> {
    let own = records.all().map(|record| name_key(record.name()));
    names.iter().map(|name| (*name).to_owned()).chain(own).collect()
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
fn say(ctx: &OperationContext<'_>, user: &mut User, line: &UserLine, is_new: bool) {
    let before = user.clone();
    line.login_name.as_str().clone_into(&mut user.login_name);
    line.display_name
        .apply(&mut user.display_name, |v| v.as_str().to_owned());
    line.email.apply(&mut user.email, |v| v.as_str().to_owned());
    line.external_id
        .apply(&mut user.external_id, |v| v.as_str().to_owned());
    let is_held = user.suspended.is_some_and(|(_, by)| by != SuspendedBy::Import);
    let status_changed = match line.status {
        Some(Status::Suspended) => user.suspend(ctx.now(), SuspendedBy::Import),
        Some(Status::Active) if !is_held => user.reactivate(ctx.now()),
        _ => false,
    };
    if *user != before && !status_changed && !is_new {
        user.touch(ctx.now());
    }
}
