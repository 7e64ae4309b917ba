//! The register of what the words of some events mean.

use super::find::{NamedRecord, WordMatches, WordQuery, find, key_of, list, living};
use super::{Kind, REMEMBERED_SECS, store};
use provost_areas_platform::settings;
use provost_kernel::db::Tx;
use provost_kernel::{Result, Timestamp};
use provost_policy::{Field, Record, Register, claim, claimed};
use std::collections::{BTreeMap, BTreeSet};

impl Kind {
    /// Returns the attribute of events that names records of this kind.
    pub const fn field(self) -> Field {
        match self {
            Self::User => Field::USER,
            Self::Group => Field::GROUPS,
            Self::ServiceAccount => Field::SERVICE_ACCOUNT,
            Self::Skill => Field::SKILL,
            Self::Resource => Field::RESOURCE,
        }
    }
}

/// Returns what these words mean at an instant, with everything that a policy can ask of the records: their other words,
/// and the groups of users who are there.
///
/// A group that is claimed (`provost_policy::claim`) is put as what it may be.
///
/// A deleted user has no groups that anybody knows: what she was in has ended with her, and a guard of a group must not end
/// with it. Nor has one who came back, until somebody has set them (WD-6).
///
/// Cost: as [`find`]; two statements for who else has the other words, and three for the groups.
pub fn register(tx: &mut Tx<'_>, org: &str, asked: &WordQuery, now: Timestamp) -> Result<Register> {
    let is_complete = settings::of(tx, org)?.directory.complete;
    let mut register = Register::new(is_complete);
    if asked.is_empty() {
        return Ok(register);
    }
    let (claims, asked) = with_claimed(asked);
    let found = find(tx, org, &asked, now)?;
    let mut others = WordQuery::default();
    let mut users: BTreeSet<&str> = BTreeSet::new();
    for (kind, _, named) in found.all() {
        for named in named {
            named.words.iter().for_each(|word| others.add(kind, word));
            if kind == Kind::User && !named.is_deleted {
                users.insert(&named.id);
            }
        }
    }
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut of_users = WordQuery::default();
    let mut unsettled: BTreeSet<String> = BTreeSet::new();
    if !users.is_empty() {
        let after = now.plus_secs(-REMEMBERED_SECS);
        for (user, group) in store::memberships(tx, org, &list(&users)?, after)? {
            let Some(group) = group else {
                unsettled.insert(user);
                continue;
            };
            of_users.add(Kind::Group, &group);
            groups.entry(user).or_default().push(group);
        }
    }
    // Policies may name the groups of users by their names.
    let of_users = living(tx, org, &of_users)?;
    for (kind, _, named) in of_users.all() {
        for named in named {
            named.words.iter().for_each(|word| others.add(kind, word));
        }
    }
    // Who else has the other words: only a record's own words speak for it alone.
    let others = living(tx, org, &others)?;
    let known = [&found, &of_users, &others];
    for (kind, key, named) in of_users.all() {
        let of_id = named.iter().filter(|named| named.id == key);
        let records: Vec<Record> = of_id.map(|named| record(kind, named, None, &known)).collect();
        register.put(kind.field(), key, &records);
    }
    for (kind, key, named) in found.all() {
        let records = named.iter().map(|named| {
            let groups = (kind == Kind::User && !named.is_deleted && !unsettled.contains(&named.id))
                .then(|| groups.get(&named.id).cloned().unwrap_or_default());
            record(kind, named, groups, &known)
        });
        let records: Vec<Record> = records.collect();
        register.put(kind.field(), key, &records);
    }
    for group in &claims {
        register.put(Field::GROUPS, &claim(group), &[told_of(group, &found)]);
    }
    Ok(register)
}

/// Returns the groups that are claimed among these words, and the words with what is claimed.
fn with_claimed(asked: &WordQuery) -> (Vec<String>, WordQuery) {
    let claims: Vec<String> = asked
        .of(Kind::Group)
        .filter_map(claimed)
        .map(str::to_owned)
        .collect();
    let mut asked = asked.clone();
    for group in &claims {
        asked.add(Kind::Group, group);
    }
    (claims, asked)
}

/// Returns what a claimed group is: a record of which nobody knows whether it is there, by every word of every group that is
/// meant, and by the word that was told.
///
/// INVARIANT WD-5: what somebody unknown claims of groups holds for nobody for sure: it opens no exception and no allow list.
fn told_of(group: &str, found: &WordMatches) -> Record {
    let named = found.of(Kind::Group, group);
    let id = match named {
        [one] => claim(&one.id),
        _ => claim(group),
    };
    let words = named
        .iter()
        .flat_map(|one| one.words.iter().chain([&one.id]))
        .cloned();
    let mut words: Vec<String> = words.chain([group.to_owned()]).collect();
    words.sort_unstable();
    words.dedup();
    Record {
        shared: words.iter().cloned().chain([id.clone()]).collect(),
        id,
        words,
        groups: None,
    }
}

fn record(kind: Kind, named: &NamedRecord, groups: Option<Vec<String>>, known: &[&WordMatches]) -> Record {
    let is_shared = |word: &&String| {
        known
            .iter()
            .flat_map(|found| found.of(kind, word))
            .any(|other| other.id != named.id)
    };
    let mut words: Vec<String> = Vec::with_capacity(named.words.len());
    for word in &named.words {
        if !words.iter().any(|had| key_of(kind, had) == key_of(kind, word)) {
            words.push(word.clone());
        }
    }
    Record {
        id: named.id.clone(),
        shared: words.iter().filter(is_shared).cloned().collect(),
        words,
        groups,
    }
}
