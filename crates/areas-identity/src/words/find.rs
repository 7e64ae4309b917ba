//! Which records words mean.
//!
//! ```text
//! word ─ match key ─► records that are there, in whatever state ─ none ─► records deleted less than 90 days ago
//! ```
//!
//! A record that has a word for its id has it like any other word: whoever else has it as well makes it ambiguous.
//!
//! Keeps WD-1.

use super::store::{self, Hit};
use super::{Kind, REMEMBERED_SECS};
use provost_kernel::db::Tx;
use provost_kernel::{Error, Result, Timestamp};
use provost_policy::name_key;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// No record has a longer word. Units: bytes of a match key.
const LONGEST_KEY: usize = 4_096;

/// Words that somebody asks about.
#[derive(Clone, Debug, Default)]
pub struct WordQuery {
    keys: BTreeMap<Kind, BTreeSet<String>>,
}

impl WordQuery {
    /// Adds a word. One that no record can have is left out, and so is one that is empty once it is folded.
    pub fn add(&mut self, kind: Kind, word: &str) {
        let key = key_of(kind, word);
        // PostgreSQL takes no NUL in a text, and no key has one (MK-2).
        if !key.is_empty() && key.len() <= LONGEST_KEY {
            self.keys.entry(kind).or_default().insert(key);
        }
    }

    /// Returns the match keys of the words of a kind.
    pub(super) fn of(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.keys.get(&kind).into_iter().flatten().map(String::as_str)
    }

    /// Says whether nothing is asked about.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// Returns the match key of a word. That of a skill leaves the version away: a policy is about all of them.
pub fn key_of(kind: Kind, word: &str) -> String {
    name_key(kind.field(), word).into_owned()
}

/// A record that has a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRecord {
    /// Its id.
    pub id: String,
    /// Its directory, if it has one.
    pub directory_id: Option<String>,
    /// Every word that it has now, or had when it was deleted; its id left out.
    pub words: Vec<String>,
    /// It was deleted, less than 90 days ago.
    pub is_deleted: bool,
}

/// Which records words mean.
#[derive(Clone, Debug, Default)]
pub struct WordMatches {
    by_key: HashMap<(Kind, String), Vec<NamedRecord>>,
}

impl WordMatches {
    /// Returns the records that a word means: none, one, or several among which nobody can choose.
    pub fn of(&self, kind: Kind, word: &str) -> &[NamedRecord] {
        self.by_key
            .get(&(kind, key_of(kind, word)))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns every match key that means something, with what it means.
    pub fn all(&self) -> impl Iterator<Item = (Kind, &str, &[NamedRecord])> {
        self.by_key
            .iter()
            .map(|((kind, key), named)| (*kind, key.as_str(), named.as_slice()))
    }
}

/// Returns which records these words mean, among those that are there and, for words that none of them has, among those
/// that were deleted less than 90 days before `now`.
///
/// Cost: two statements, and two to four more where a word is nobody's; whatever the number of words.
pub fn find(tx: &mut Tx<'_>, org: &str, asked: &WordQuery, now: Timestamp) -> Result<WordMatches> {
    let mut found = living(tx, org, asked)?;
    let mut open = WordQuery::default();
    for (kind, keys) in &asked.keys {
        for key in keys {
            if !found.by_key.contains_key(&(*kind, key.clone())) {
                open.keys.entry(*kind).or_default().insert(key.clone());
            }
        }
    }
    if !open.is_empty() {
        ended(tx, org, &open, now, &mut found)?;
    }
    Ok(found)
}

/// Returns which records that are there have these words.
///
/// Cost: one statement, one for the mapped words of users, and one for the other words of skills; whatever the number of words.
pub fn living(tx: &mut Tx<'_>, org: &str, asked: &WordQuery) -> Result<WordMatches> {
    let mut found = WordMatches::default();
    if asked.is_empty() {
        return Ok(found);
    }
    let nothing = BTreeSet::new();
    let mut lists = [const { String::new() }; Kind::ALL.len()];
    for (kind, at) in Kind::ALL.into_iter().zip(&mut lists) {
        let keys = asked.keys.get(&kind).unwrap_or(&nothing);
        // A skill may also be called by a text that only looks like a namespace and a name.
        let asked = keys.iter().flat_map(|key| [name_alone(kind, key), key.as_str()]);
        *at = list(asked.collect::<BTreeSet<&str>>())?;
    }
    let mut hits = store::living(tx, org, &lists)?;
    with_mapped(tx, org, &mut hits)?;
    with_other_names(tx, org, &mut hits)?;
    for (kind, hit) in hits {
        let named = NamedRecord {
            id: hit.id,
            directory_id: hit.directory_id,
            words: hit.words,
            is_deleted: false,
        };
        if let Some(keys) = asked.keys.get(&kind) {
            found.note(kind, keys, &named);
        }
    }
    Ok(found)
}

/// Returns the part of a key that the store has in one column: of a skill what stands behind its namespace, which has no slash.
fn name_alone(kind: Kind, key: &str) -> &str {
    match key.split_once('/') {
        Some((_, name)) if kind == Kind::Skill => name,
        _ => key,
    }
}

/// Adds to users the words that are mapped to them.
fn with_mapped(tx: &mut Tx<'_>, org: &str, hits: &mut [(Kind, Hit)]) -> Result<()> {
    let mut users: HashMap<String, &mut Hit> = HashMap::new();
    for (kind, hit) in hits {
        if *kind == Kind::User {
            users.insert(hit.id.clone(), hit);
        }
    }
    if users.is_empty() {
        return Ok(());
    }
    for (word, user) in store::mapped(tx, org, "[]", &list(users.keys())?)? {
        if let Some(hit) = users.get_mut(&user) {
            hit.words.push(word);
        }
    }
    Ok(())
}

/// Adds to skills what they are called beside their names, with and without the namespace.
fn with_other_names(tx: &mut Tx<'_>, org: &str, hits: &mut [(Kind, Hit)]) -> Result<()> {
    let mut skills: HashMap<String, (&mut Hit, Option<String>)> = HashMap::new();
    for (kind, hit) in hits {
        if *kind == Kind::Skill {
            // The name, and behind it the full name of one in a namespace.
            let full = hit.words.get(1).and_then(|full| full.rsplit_once('/'));
            let namespace = full.map(|(namespace, _)| namespace.to_owned());
            skills.insert(hit.id.clone(), (hit, namespace));
        }
    }
    if skills.is_empty() {
        return Ok(());
    }
    for (id, word) in store::skill_words(tx, org, &list(skills.keys())?)? {
        let Some((hit, namespace)) = skills.get_mut(&id) else {
            continue;
        };
        let full = namespace.as_ref().map(|namespace| format!("{namespace}/{word}"));
        hit.words.push(word);
        hit.words.extend(full);
    }
    Ok(())
}

/// Adds the deleted records that have words which nobody has any more.
fn ended(
    tx: &mut Tx<'_>,
    org: &str,
    open: &WordQuery,
    now: Timestamp,
    found: &mut WordMatches,
) -> Result<()> {
    let mut wanted: BTreeSet<&str> = BTreeSet::new();
    for (kind, keys) in &open.keys {
        wanted.extend(keys.iter().map(|key| name_alone(*kind, key)));
    }
    let mapped = match open.keys.get(&Kind::User) {
        Some(keys) => store::mapped(tx, org, &list(keys)?, "[]")?,
        None => Vec::new(),
    };
    wanted.extend(mapped.iter().map(|(_, user)| user.as_str()));
    let after = now.plus_secs(-REMEMBERED_SECS);
    let mut records: BTreeMap<(Kind, String), Vec<String>> = BTreeMap::new();
    for (kind, id, word) in store::ended(tx, org, &list(&wanted)?, after)? {
        let words = records.entry((kind, id.clone())).or_default();
        if word != id {
            words.push(word);
        }
    }
    for (word, user) in mapped {
        if let Some(words) = records.get_mut(&(Kind::User, user)) {
            words.push(word);
        }
    }
    // A record that came back has its words of before as well: for 90 days they guard as they did.
    let mut again = WordQuery::default();
    for (kind, id) in records.keys() {
        again.keys.entry(*kind).or_default().insert(id.clone());
    }
    let back = if again.is_empty() {
        WordMatches::default()
    } else {
        living(tx, org, &again)?
    };
    for ((kind, id), words) in records {
        let Some(keys) = open.keys.get(&kind) else {
            continue;
        };
        let is_back = back.of(kind, &id).iter().find(|named| named.id == id);
        let named = match is_back {
            Some(living) => {
                let mut living = living.clone();
                living.words.extend(words);
                living
            }
            None => NamedRecord {
                id,
                directory_id: None,
                words,
                is_deleted: true,
            },
        };
        found.note(kind, keys, &named);
    }
    Ok(())
}

impl WordMatches {
    /// Notes a record under each of these match keys that it has.
    fn note(&mut self, kind: Kind, keys: &BTreeSet<String>, named: &NamedRecord) {
        let words = named.words.iter().map(String::as_str).chain([named.id.as_str()]);
        let had: BTreeSet<String> = words.map(|word| key_of(kind, word)).collect();
        for key in had.into_iter().filter(|key| keys.contains(key)) {
            self.by_key.entry((kind, key)).or_default().push(named.clone());
        }
    }
}

/// Returns a JSON array of texts.
pub(super) fn list<T: serde::Serialize>(texts: impl IntoIterator<Item = T>) -> Result<String> {
    let texts: Vec<T> = texts.into_iter().collect();
    serde_json::to_string(&texts).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_skill_has_no_version() {
        for (word, key) in [
            ("Deploy", "deploy"),
            ("deploy@1.0.0", "deploy"),
            (" deploy @ 1.0.0 ", "deploy"),
            ("@Acme/Deploy@sha256:00", "@acme/deploy"),
            ("com.acme/deploy@2", "com.acme/deploy"),
            ("@acme", "@acme"),
            ("@acme/deploy", "@acme/deploy"),
            ("deploy@feature/x", "deploy"),
            ("@acme/deploy@sha512-a/b==", "@acme/deploy"),
        ] {
            assert_eq!(key_of(Kind::Skill, word), key, "{word}");
        }
        assert_eq!(key_of(Kind::User, "Ada@ACME.test "), "ada@acme.test");
    }

    /// Proves NW-2.
    #[test]
    fn whoever_finds_a_skill_and_whoever_judges_it_have_one_key() {
        let mut dice = Lcg(7);
        let letters = ['@', '/', 'a', 'B', '.', ' ', '\u{200b}', '\u{e9}', '1'];
        for _ in 0..200_000 {
            let length = dice.below(9);
            let word: String = (0..length).map(|_| letters[dice.below(letters.len())]).collect();
            let key = key_of(Kind::Skill, &word);
            assert_eq!(key, name_key(provost_policy::Field::SKILL, &word), "{word:?}");
            assert_eq!(key_of(Kind::Skill, &key), key, "{word:?}");
            // A version, whatever it is, changes nothing behind a name that has none.
            if !key.is_empty() && key != "@" && !key.ends_with('/') && key == provost_policy::match_key(&word)
            {
                assert_eq!(key_of(Kind::Skill, &format!("{word}@x/y@z")), key, "{word:?}");
            }
        }
    }

    /// Words by chance, the same in every run.
    struct Lcg(u64);

    impl Lcg {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(self.0 >> 33).unwrap_or(0) % limit
        }
    }

    #[test]
    fn nothing_is_asked_about_words_that_nobody_can_have() {
        let mut asked = WordQuery::default();
        for word in ["", " ", "\u{200b}\u{feff} ", "\0\u{1}", &"x".repeat(5_000)] {
            asked.add(Kind::User, word);
        }
        assert!(asked.is_empty());
    }
}
