//! Many people at once: who is meant by ids, login names and addresses, and which groups they are in.

use super::visible;
use provost_kernel::db::Tx;
use provost_kernel::text::name_key;
use provost_kernel::{Error, Result, params, statements};
use std::collections::{HashMap, HashSet};

/// The visible version of users whose `$column` is in the JSON array `$list`: id, folded name, address, active.
macro_rules! users {
    ($column:literal, $list:expr) => {
        concat!(
            "SELECT u.id, u.name_key, u.email, CASE WHEN u.status = 'active' THEN 1 ELSE 0 END FROM directory_users u WHERE u.organization_id = ?1 AND u.",
            $column,
            " IN (",
            $list,
            ") AND ",
            visible!("u")
        )
    };
}

/// The groups of the users in the JSON array `$list`.
macro_rules! memberships {
    ($list:expr) => {
        concat!(
            "SELECT m.user_id, m.group_id FROM directory_memberships m WHERE m.organization_id = ?1 AND m.user_id IN (",
            $list,
            ") AND ",
            visible!("m"),
            " ORDER BY m.user_id, m.group_id"
        )
    };
}

/// The texts of a JSON array, as SQLite and as PostgreSQL spells it.
macro_rules! array {
    (sqlite, $place:literal) => {
        concat!("SELECT value FROM json_each(", $place, ")")
    };
    (postgres, $place:literal) => {
        concat!(
            "SELECT jsonb_array_elements_text(CAST(CAST(",
            $place,
            " AS TEXT) AS JSONB))"
        )
    };
}

statements! {
    /// The users who have one of the words `?2` for an id or an address, or one of the folded names `?3`.
    USERS = {
        sqlite: concat!(users!("id", array!(sqlite, "?2")), " UNION ", users!("email", array!(sqlite, "?2")), " UNION ", users!("name_key", array!(sqlite, "?3"))),
        postgres: concat!(users!("id", array!(postgres, "?2")), " UNION ", users!("email", array!(postgres, "?2")), " UNION ", users!("name_key", array!(postgres, "?3"))),
    };
    /// The groups that the users `?2` are in.
    GROUPS = {
        sqlite: memberships!(array!(sqlite, "?2")),
        postgres: memberships!(array!(postgres, "?2")),
    };
}

/// Whom words mean, and in which groups they are.
#[derive(Debug, Default)]
pub struct People {
    ids: HashMap<String, String>,
    groups: HashMap<String, Vec<String>>,
}

impl People {
    /// Returns the id of the user whom a word means: who has it for an id, else the one active user who has it for
    /// a login name or an address.
    pub fn id(&self, word: &str) -> Option<&str> {
        self.ids.get(word).map(String::as_str)
    }

    /// Returns the ids of the groups of a user of the directory, sorted.
    pub fn groups(&self, id: &str) -> &[String] {
        self.groups.get(id).map_or(&[], Vec::as_slice)
    }
}

/// Returns whom these words mean.
///
/// Cost: two statements, whatever the number of words; none without words.
#[expect(
    clippy::implicit_hasher,
    clippy::similar_names,
    reason = "one caller; words and what they name"
)]
pub fn people(tx: &mut Tx<'_>, org: &str, words: &HashSet<&str>) -> Result<People> {
    // PostgreSQL takes no NUL in a text, and nobody has one in a name.
    let keys: HashMap<&str, String> = words
        .iter()
        .filter(|word| !word.contains('\0'))
        .map(|word| (*word, name_key(word)))
        .collect();
    let mut people = People::default();
    if keys.is_empty() {
        return Ok(people);
    }
    let (wanted, names) = (list(keys.keys())?, list(keys.values())?);
    let mut users: HashSet<String> = HashSet::new();
    let mut named: HashMap<String, HashSet<String>> = HashMap::new();
    tx.query(&USERS, params![org, wanted, names], |row| {
        let id: String = row.get(0)?;
        if row.get::<i64>(3)? == 1 {
            let address: Option<String> = row.get(2)?;
            let words = [
                Some(format!("n{}", row.str(1)?)),
                address.map(|address| format!("a{address}")),
            ];
            for word in words.into_iter().flatten() {
                named.entry(word).or_default().insert(id.clone());
            }
        }
        users.insert(id);
        Ok(())
    })?;
    for (word, key) in &keys {
        if users.contains(*word) {
            people.ids.insert((*word).to_owned(), (*word).to_owned());
            continue;
        }
        let have = [format!("n{key}"), format!("a{word}")];
        let have: HashSet<&String> = have.iter().filter_map(|name| named.get(name)).flatten().collect();
        if let [one] = Vec::from_iter(have).as_slice() {
            people.ids.insert((*word).to_owned(), (*one).clone());
        }
    }
    let found: HashSet<&String> = people.ids.values().collect();
    if found.is_empty() {
        return Ok(people);
    }
    let mut groups: HashMap<String, Vec<String>> = HashMap::new();
    tx.query(&GROUPS, params![org, list(found)?], |row| {
        groups.entry(row.get(0)?).or_default().push(row.get(1)?);
        Ok(())
    })?;
    people.groups = groups;
    Ok(people)
}

/// Returns a JSON array of texts.
fn list<T: serde::Serialize>(texts: impl IntoIterator<Item = T>) -> Result<String> {
    let texts: Vec<T> = texts.into_iter().collect();
    serde_json::to_string(&texts).map_err(Error::internal)
}
