//! All SQL of words: who has one of many words, in few statements.
//!
//! Words travel as match keys in JSON arrays, so that one statement serves any number of them. Ids are their own match
//! keys, and so are the names of skills and the access names of resources: lower-case ASCII all of them.
//!
//! Keeps WD-3.

use super::Kind;
use crate::directory::store::{generation, visible};
use provost_kernel::db::{Row, Tx};
use provost_kernel::{Error, OperationContext, Result, Timestamp, params, statements};

/// The texts of a JSON array, as SQLite and as PostgreSQL spells it.
macro_rules! array {
    (sqlite, $place:literal) => {
        concat!("(SELECT value FROM json_each(", $place, "))")
    };
    (postgres, $place:literal) => {
        concat!(
            "(SELECT jsonb_array_elements_text(CAST(CAST(",
            $place,
            " AS TEXT) AS JSONB)))"
        )
    };
}

/// The visible users whose `$column` is among `$list`: kind, id, directory, login name, address.
macro_rules! users {
    ($column:literal, $list:expr) => {
        concat!(
            "SELECT 'user', u.id, u.directory_id, u.login_name, u.email FROM directory_users u WHERE u.organization_id = ?1 AND u.",
            $column,
            " IN ",
            $list,
            " AND ",
            visible!("u")
        )
    };
}

/// The visible groups whose `$column` is among `$list`: kind, id, directory, name, nothing.
macro_rules! groups {
    ($column:literal, $list:expr) => {
        concat!(
            "SELECT 'group', g.id, g.directory_id, g.name, CAST(NULL AS TEXT) FROM directory_groups g WHERE g.organization_id = ?1 AND g.",
            $column,
            " IN ",
            $list,
            " AND ",
            visible!("g")
        )
    };
}

/// The accounts that are not deleted whose `$column` is among `$list`: kind, id, no directory, name, nothing.
macro_rules! accounts {
    ($column:literal, $list:expr) => {
        concat!(
            "SELECT 'service_account', a.id, CAST(NULL AS TEXT), a.name, CAST(NULL AS TEXT) FROM service_accounts a WHERE a.organization_id = ?1 AND a.",
            $column,
            " IN ",
            $list,
            " AND a.deleted_at IS NULL"
        )
    };
}

/// The skills whose `$column` is among `$list`: kind, id, no directory, name, namespace.
macro_rules! skills {
    ($column:literal, $list:expr) => {
        concat!(
            "SELECT 'skill', s.id, CAST(NULL AS TEXT), s.name, s.namespace FROM skill_items s WHERE s.organization_id = ?1 AND s.",
            $column,
            " IN ",
            $list
        )
    };
}

/// The resources whose `$column` is among `$list`: kind, id, no directory, name, access name.
macro_rules! resources {
    ($column:literal, $list:expr) => {
        concat!(
            "SELECT 'resource', r.id, CAST(NULL AS TEXT), r.name, r.access_name FROM resources r WHERE r.organization_id = ?1 AND r.",
            $column,
            " IN ",
            $list
        )
    };
}

/// Who and what is there and has one of the words: users `?2`, groups `?3`, service accounts `?4`, skills `?5` (by their names
/// without namespaces, and by what else they are called) and resources `?6`.
macro_rules! living {
    ($engine:ident) => {
        concat!(
            users!("id", array!($engine, "?2")),
            " UNION ",
            users!("login_match", array!($engine, "?2")),
            " UNION ",
            users!("email_match", array!($engine, "?2")),
            " UNION ",
            users!(
                "id",
                concat!(
                    "(SELECT m.user_id FROM identity_mappings m WHERE m.organization_id = ?1 AND m.match_key IN ",
                    array!($engine, "?2"),
                    ")"
                )
            ),
            " UNION ",
            groups!("id", array!($engine, "?3")),
            " UNION ",
            groups!("name_match", array!($engine, "?3")),
            " UNION ",
            accounts!("id", array!($engine, "?4")),
            " UNION ",
            accounts!("name_match", array!($engine, "?4")),
            " UNION ",
            skills!("id", array!($engine, "?5")),
            " UNION ",
            skills!("name", array!($engine, "?5")),
            " UNION ",
            skills!(
                "id",
                concat!(
                    "(SELECT k.item_id FROM skill_words k WHERE k.organization_id = ?1 AND k.match_key IN ",
                    array!($engine, "?5"),
                    ")"
                )
            ),
            " UNION ",
            resources!("id", array!($engine, "?6")),
            " UNION ",
            resources!("name_match", array!($engine, "?6")),
            " UNION ",
            resources!("access_name", array!($engine, "?6"))
        )
    };
}

/// The deleted records that have one of the words of `$list` and ended after `?3`, each with every word that it had: kind, id,
/// word, nothing.
macro_rules! ended_words {
    ($list:expr) => {
        concat!(
            "SELECT w.kind, w.record_id, w.word, CAST(NULL AS TEXT) FROM ended_words e JOIN ended_words w ON w.organization_id = e.organization_id AND w.kind = e.kind AND w.record_id = e.record_id AND w.ended_at > ?3 WHERE e.organization_id = ?1 AND e.match_key IN ",
            $list,
            " AND e.ended_at > ?3 AND e.kind <> 'membership'"
        )
    };
}

/// The users whose `$column` is among `$list` and whose last version a swap has ended: kind, id, name, address. Nobody has
/// cleared them away yet.
macro_rules! dead_users {
    ($column:literal, $list:expr) => {
        concat!(
            "SELECT 'user', u.id, u.login_name, u.email FROM directory_users u WHERE u.organization_id = ?1 AND u.",
            $column,
            " IN ",
            $list,
            " AND u.valid_to <= ",
            generation!(),
            " AND NOT EXISTS (SELECT 1 FROM directory_users v WHERE v.organization_id = ?1 AND v.id = u.id AND ",
            visible!("v"),
            ")"
        )
    };
}

/// As `dead_users`, of groups.
macro_rules! dead_groups {
    ($column:literal, $list:expr) => {
        concat!(
            "SELECT 'group', g.id, g.name, CAST(NULL AS TEXT) FROM directory_groups g WHERE g.organization_id = ?1 AND g.",
            $column,
            " IN ",
            $list,
            " AND g.valid_to <= ",
            generation!(),
            " AND NOT EXISTS (SELECT 1 FROM directory_groups v WHERE v.organization_id = ?1 AND v.id = g.id AND ",
            visible!("v"),
            ")"
        )
    };
}

/// Who and what has ended and had one of the words `?2`.
macro_rules! ended {
    ($engine:ident) => {
        concat!(
            ended_words!(array!($engine, "?2")),
            " UNION ",
            dead_users!("id", array!($engine, "?2")),
            " UNION ",
            dead_users!("login_match", array!($engine, "?2")),
            " UNION ",
            dead_users!("email_match", array!($engine, "?2")),
            " UNION ",
            dead_groups!("id", array!($engine, "?2")),
            " UNION ",
            dead_groups!("name_match", array!($engine, "?2"))
        )
    };
}

/// The mappings of the words `?2` and those to the users `?3`: the word, the user.
macro_rules! mapped {
    ($engine:ident) => {
        concat!(
            "SELECT m.word, m.user_id FROM identity_mappings m WHERE m.organization_id = ?1 AND m.match_key IN ",
            array!($engine, "?2"),
            " UNION SELECT m.word, m.user_id FROM identity_mappings m WHERE m.organization_id = ?1 AND m.user_id IN ",
            array!($engine, "?3")
        )
    };
}

/// What the skills `?2` are called beside their names: the skill, the word.
macro_rules! skill_words {
    ($engine:ident) => {
        concat!(
            "SELECT k.item_id, k.word FROM skill_words k WHERE k.organization_id = ?1 AND k.item_id IN ",
            array!($engine, "?2"),
            " ORDER BY k.item_id, k.match_key"
        )
    };
}

/// The groups of the users `?2`, and nothing of those who came back and whose groups nobody has set since they were deleted,
/// behind `?3`.
macro_rules! memberships {
    ($list:expr) => {
        concat!(
            "SELECT m.user_id, m.group_id FROM directory_memberships m WHERE m.organization_id = ?1 AND m.user_id IN ",
            $list,
            " AND ",
            visible!("m"),
            " UNION ALL SELECT DISTINCT e.record_id, CAST(NULL AS TEXT) FROM ended_words e WHERE e.organization_id = ?1 AND e.kind = 'membership' AND e.record_id IN ",
            $list,
            " AND e.ended_at > ?3 ORDER BY 1, 2"
        )
    };
}

statements! {
    /// Who and what is there and has one of these words.
    LIVING = { sqlite: living!(sqlite), postgres: living!(postgres) };
    /// Who and what has ended and had one of the words `?2`, with every word of each.
    ENDED = { sqlite: ended!(sqlite), postgres: ended!(postgres) };
    /// The mappings of the words `?2` and those to the users `?3`.
    MAPPED = { sqlite: mapped!(sqlite), postgres: mapped!(postgres) };
    /// What the skills `?2` are called beside their names.
    SKILL_WORDS = { sqlite: skill_words!(sqlite), postgres: skill_words!(postgres) };
    /// The groups that the users `?2` are in.
    MEMBERSHIPS = { sqlite: memberships!(array!(sqlite, "?2")), postgres: memberships!(array!(postgres, "?2")) };
    /// Keeps a word of a record that is being deleted.
    END = "INSERT INTO ended_words (organization_id, kind, record_id, match_key, word, ended_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (organization_id, kind, record_id, match_key) DO UPDATE SET word = excluded.word, ended_at = excluded.ended_at";
    /// Keeps the words of a user whose versions are about to be removed.
    END_USER = "INSERT INTO ended_words (organization_id, kind, record_id, match_key, word, ended_at) \
        SELECT ?1, 'user', CAST(?2 AS TEXT), w.match_key, MIN(w.word), CAST(?3 AS BIGINT) \
        FROM (SELECT u.id AS match_key, u.id AS word FROM directory_users u WHERE u.organization_id = ?1 \
        AND u.id = ?2 UNION SELECT u.login_match, u.login_name FROM directory_users u \
        WHERE u.organization_id = ?1 AND u.id = ?2 UNION SELECT u.email_match, u.email FROM directory_users u \
        WHERE u.organization_id = ?1 AND u.id = ?2) w \
        WHERE w.match_key IS NOT NULL GROUP BY w.match_key \
        ON CONFLICT (organization_id, kind, record_id, match_key) DO UPDATE \
        SET word = excluded.word, ended_at = excluded.ended_at";
    /// Keeps the words of a group whose versions are about to be removed.
    END_GROUP = "INSERT INTO ended_words (organization_id, kind, record_id, match_key, word, ended_at) \
        SELECT ?1, 'group', CAST(?2 AS TEXT), w.match_key, MIN(w.word), CAST(?3 AS BIGINT) \
        FROM (SELECT g.id AS match_key, g.id AS word FROM directory_groups g WHERE g.organization_id = ?1 \
        AND g.id = ?2 UNION SELECT g.name_match, g.name FROM directory_groups g WHERE g.organization_id = ?1 \
        AND g.id = ?2) w \
        WHERE w.match_key IS NOT NULL GROUP BY w.match_key \
        ON CONFLICT (organization_id, kind, record_id, match_key) DO UPDATE \
        SET word = excluded.word, ended_at = excluded.ended_at";
    /// Forgets the words of records that were deleted long ago.
    PRUNE_ENDED = unscoped("every record is remembered for the same time") "DELETE FROM ended_words WHERE (organization_id, kind, record_id, match_key) IN (SELECT w.organization_id, w.kind, w.record_id, w.match_key FROM ended_words w WHERE w.ended_at <= ?1 ORDER BY w.ended_at, w.organization_id, w.kind, w.record_id, w.match_key LIMIT ?2)";
    /// Forgets the mappings to users who are neither there nor remembered.
    PRUNE_MAPPINGS = unscoped("every record is remembered for the same time") "DELETE \
        FROM identity_mappings \
        WHERE NOT EXISTS (SELECT 1 FROM directory_users u \
        WHERE u.organization_id = identity_mappings.organization_id AND u.id = identity_mappings.user_id) \
        AND NOT EXISTS (SELECT 1 FROM ended_words e \
        WHERE e.organization_id = identity_mappings.organization_id AND e.kind = 'user' \
        AND e.record_id = identity_mappings.user_id)";
}

/// A record as a statement finds it.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    /// Its id.
    pub id: String,
    /// Its directory, if it has one.
    pub directory_id: Option<String>,
    /// What it is called, its id left out.
    pub words: Vec<String>,
}

/// Returns the records that are there and have one of these words, given as JSON arrays in the order of [`Kind::ALL`]. A skill
/// is found by its name alone: whoever asks compares namespaces.
pub(super) fn living(tx: &mut Tx<'_>, org: &str, keys: &[String; 5]) -> Result<Vec<(Kind, Hit)>> {
    let [users, groups, accounts, skills, resources] = keys.each_ref().map(String::as_str);
    tx.query(
        &LIVING,
        params![org, users, groups, accounts, skills, resources],
        |row| {
            let kind = kind(row)?;
            let (name, other): (String, Option<String>) = (row.get(3)?, row.get(4)?);
            let words = match (kind, other) {
                (Kind::Skill, Some(namespace)) if !namespace.is_empty() => {
                    let full = format!("{namespace}/{name}");
                    vec![name, full]
                }
                (Kind::Skill, _) | (_, None) => vec![name],
                (_, Some(other)) => vec![name, other],
            };
            let hit = Hit {
                id: row.get(1)?,
                directory_id: row.get(2)?,
                words,
            };
            Ok((kind, hit))
        },
    )
}

fn kind(row: &Row<'_>) -> Result<Kind> {
    Kind::parse(row.str(0)?).ok_or_else(|| Error::internal("a word is of no kind"))
}

/// Returns each word of the records that have ended and had one of these words: kind, id, word.
pub(super) fn ended(
    tx: &mut Tx<'_>,
    org: &str,
    keys: &str,
    after: Timestamp,
) -> Result<Vec<(Kind, String, String)>> {
    let rows = tx.query(&ENDED, params![org, keys, after], |row| {
        let (kind, id): (Kind, String) = (kind(row)?, row.get(1)?);
        let words = [Some(row.get::<String>(2)?), row.get::<Option<String>>(3)?];
        Ok((kind, id, words))
    })?;
    let mut found = Vec::with_capacity(rows.len());
    for (kind, id, words) in rows {
        found.extend(words.into_iter().flatten().map(|word| (kind, id.clone(), word)));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns the mappings of these words and those to these users: the word as it was mapped, and the user.
pub(super) fn mapped(tx: &mut Tx<'_>, org: &str, keys: &str, ids: &str) -> Result<Vec<(String, String)>> {
    tx.query(&MAPPED, params![org, keys, ids], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// Returns what these skills are called beside their names: the skill, the word.
pub(super) fn skill_words(tx: &mut Tx<'_>, org: &str, ids: &str) -> Result<Vec<(String, String)>> {
    tx.query(&SKILL_WORDS, params![org, ids], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// Returns the memberships of these users: the user, the group; no group of one who came back after an instant and whose
/// groups nobody has set.
pub(super) fn memberships(
    tx: &mut Tx<'_>,
    org: &str,
    ids: &str,
    after: Timestamp,
) -> Result<Vec<(String, Option<String>)>> {
    tx.query(&MEMBERSHIPS, params![org, ids, after], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// Keeps a word of a record that is being deleted.
pub(super) fn end(ctx: &mut OperationContext<'_>, kind: Kind, id: &str, key: &str, word: &str) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    ctx.queue(&END, params![org, kind.word(), id, key, word, now])
}
