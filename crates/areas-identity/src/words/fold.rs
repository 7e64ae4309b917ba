//! Match keys of rows that were written before there were match keys, or with keys of another version (WD-2).
//!
//! SQL cannot fold, so a migration cannot do it: a start does, after the migrations and before anybody is answered. It takes
//! slices, each in a transaction of its own; one that is stopped goes on at the next start, and one that finds nothing to do
//! asks four empty indexes.
//!
//! The store says with which version of the keys it was filled. After a change of the version a start goes through every word
//! once and writes the keys that are others now; each row has a key at every moment, so that nobody is without one meanwhile.
//! What cannot be written because another row of the record, or of the organization, has the new key already, stays.
//!
//! Keeps WD-2.

use super::{Kind, key_of};
use provost_areas_platform::store;
use provost_kernel::db::{Call, Conn, Param, Row, Statement};
use provost_kernel::{Result, params, statements};
use provost_policy::{MATCH_KEY_VERSION, match_key};

/// How many rows one transaction changes.
const SLICE: i64 = 500;
const SLICES: usize = 500;

statements! {
    /// Versions of users without match keys.
    USERS = unscoped("a start folds the words of every organization") "SELECT organization_id, id, valid_from, login_name, email FROM directory_users WHERE login_match IS NULL ORDER BY organization_id, id, valid_from LIMIT ?1";
    /// Sets those of one.
    SET_USER = "UPDATE directory_users SET login_match = ?4, email_match = ?5 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3 AND login_match IS NULL";
    /// Versions of groups without match keys.
    GROUPS = unscoped("a start folds the words of every organization") "SELECT organization_id, id, valid_from, name, CAST(NULL AS TEXT) FROM directory_groups WHERE name_match IS NULL ORDER BY organization_id, id, valid_from LIMIT ?1";
    /// Sets that of one.
    SET_GROUP = "UPDATE directory_groups SET name_match = ?4 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3 AND name_match IS NULL";
    /// Service accounts without match keys.
    ACCOUNTS = unscoped("a start folds the words of every organization") "SELECT organization_id, id, CAST(0 AS BIGINT), name, CAST(NULL AS TEXT) FROM service_accounts WHERE name_match IS NULL ORDER BY organization_id, id LIMIT ?1";
    /// Sets that of one.
    SET_ACCOUNT = "UPDATE service_accounts SET name_match = ?3 WHERE organization_id = ?1 AND id = ?2 AND name_match IS NULL";
    /// Keeps the name of an account that is deleted and not purged yet, where nothing has kept it.
    END_ACCOUNT = "INSERT INTO ended_words (organization_id, kind, record_id, match_key, word, ended_at) \
        SELECT a.organization_id, 'service_account', a.id, CAST(?3 AS TEXT), CAST(?4 AS TEXT), a.deleted_at \
        FROM service_accounts a \
        WHERE a.organization_id = ?1 AND a.id = ?2 AND a.deleted_at IS NOT NULL \
        ON CONFLICT DO NOTHING";
    /// Resources without match keys.
    RESOURCES = unscoped("a start folds the words of every organization") "SELECT organization_id, id, CAST(0 AS BIGINT), name, CAST(NULL AS TEXT) FROM resources WHERE name_match IS NULL ORDER BY organization_id, id LIMIT ?1";
    /// Users behind a place, with their keys.
    EVERY_USER = unscoped("a start folds the words of every organization") "SELECT organization_id, id, valid_from, login_name, email, login_match, email_match FROM directory_users WHERE (organization_id, id, valid_from) > (?2, ?3, ?4) ORDER BY organization_id, id, valid_from LIMIT ?1";
    /// Sets the keys of one anew.
    RENEW_USER = "UPDATE directory_users SET login_match = ?4, email_match = ?5 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Groups behind a place.
    EVERY_GROUP = unscoped("a start folds the words of every organization") "\
        SELECT organization_id, id, valid_from, name, CAST(NULL AS TEXT), name_match, CAST(NULL AS TEXT) \
        FROM directory_groups \
        WHERE (organization_id, id, valid_from) > (?2, ?3, ?4) ORDER BY organization_id, id, valid_from \
        LIMIT ?1";
    /// Sets the key of one anew.
    RENEW_GROUP = "UPDATE directory_groups SET name_match = ?4 WHERE organization_id = ?1 AND id = ?2 AND valid_from = ?3";
    /// Service accounts behind a place; each has one version.
    EVERY_ACCOUNT = unscoped("a start folds the words of every organization") "\
        SELECT organization_id, id, CAST(0 AS BIGINT), name, CAST(NULL AS TEXT), name_match, \
        CAST(NULL AS TEXT) \
        FROM service_accounts \
        WHERE (organization_id, id, CAST(0 AS BIGINT)) > (?2, ?3, ?4) ORDER BY organization_id, id LIMIT ?1";
    /// Sets the key of one anew.
    RENEW_ACCOUNT = "UPDATE service_accounts SET name_match = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// Resources behind a place; each has one version.
    EVERY_RESOURCE = unscoped("a start folds the words of every organization") "SELECT organization_id, id, CAST(0 AS BIGINT), name, CAST(NULL AS TEXT), name_match, CAST(NULL AS TEXT) FROM resources WHERE (organization_id, id, CAST(0 AS BIGINT)) > (?2, ?3, ?4) ORDER BY organization_id, id LIMIT ?1";
    /// Sets the key of one anew.
    RENEW_RESOURCE = "UPDATE resources SET name_match = ?3 WHERE organization_id = ?1 AND id = ?2";
    /// The words of deleted records.
    EVERY_ENDED = unscoped("a start folds the words of every organization") "SELECT organization_id, record_id, word, match_key, kind FROM ended_words WHERE kind <> 'membership' ORDER BY organization_id, kind, record_id, match_key";
    /// Sets the key of one anew, unless the record has that word already.
    RENEW_ENDED = "UPDATE ended_words SET match_key = ?5 WHERE organization_id = ?1 AND kind = ?2 AND record_id = ?3 AND match_key = ?4 AND NOT EXISTS (SELECT 1 FROM ended_words o WHERE o.organization_id = ?1 AND o.kind = ?2 AND o.record_id = ?3 AND o.match_key = ?5)";
    /// The words of telemetry.
    EVERY_MAPPING = unscoped("a start folds the words of every organization") "SELECT organization_id, id, word, match_key, CAST(NULL AS TEXT) FROM identity_mappings ORDER BY organization_id, id";
    /// Sets the key of one anew, unless another one has it.
    RENEW_MAPPING = "UPDATE identity_mappings SET match_key = ?3 WHERE organization_id = ?1 AND id = ?2 AND NOT EXISTS (SELECT 1 FROM identity_mappings o WHERE o.organization_id = ?1 AND o.match_key = ?3)";
    /// What skills are called beside their names.
    EVERY_SKILL_WORD = unscoped("a start folds the words of every organization") "SELECT organization_id, item_id, word, match_key, CAST(NULL AS TEXT) FROM skill_words ORDER BY organization_id, item_id, match_key";
    /// Sets the key of one anew, unless the skill has that word already.
    RENEW_SKILL_WORD = "UPDATE skill_words SET match_key = ?4 WHERE organization_id = ?1 AND item_id = ?2 AND match_key = ?3 AND NOT EXISTS (SELECT 1 FROM skill_words o WHERE o.organization_id = ?1 AND o.item_id = ?2 AND o.match_key = ?4)";
    /// Sets that of one.
    SET_RESOURCE = "UPDATE resources SET name_match = ?3 WHERE organization_id = ?1 AND id = ?2 AND name_match IS NULL";
}

/// A row without match keys.
struct UnfoldedRow {
    organization_id: String,
    id: String,
    valid_from: i64,
    name: String,
    email: Option<String>,
}

fn read(row: &Row<'_>) -> Result<UnfoldedRow> {
    Ok(UnfoldedRow {
        organization_id: row.get(0)?,
        id: row.get(1)?,
        valid_from: row.get(2)?,
        name: row.get(3)?,
        email: row.get(4)?,
    })
}

/// The fact that says with which version of the match keys the store was filled.
const VERSION: &str = "match_keys";

/// Gives every row its match keys that has none, or those of another version.
///
/// Errors: those of the store. What was done until then stays done.
/// Cost: four reads of empty indexes and one fact when there is nothing to do.
pub fn fold(conn: &mut Conn) -> Result<()> {
    fill(conn)?;
    let version = MATCH_KEY_VERSION.to_string();
    if conn.read(|tx| store::fact(tx, VERSION))?.as_ref() == Some(&version) {
        return Ok(());
    }
    renew(conn)?;
    let name = Param::from(VERSION);
    conn.change(&[call(&store::SET_FACT, vec![name, version.into()])])
}

fn fill(conn: &mut Conn) -> Result<()> {
    slices(conn, &USERS, |row| {
        let mut params = version(row);
        params.push(match_key(&row.name).into());
        params.push(row.email.as_deref().map(match_key).into());
        vec![call(&SET_USER, params)]
    })?;
    slices(conn, &GROUPS, |row| {
        let mut params = version(row);
        params.push(match_key(&row.name).into());
        vec![call(&SET_GROUP, params)]
    })?;
    slices(conn, &ACCOUNTS, |row| {
        let key = match_key(&row.name);
        let (organization, id) = (row.organization_id.as_str(), row.id.as_str());
        let ended = |key: &str, word: &str| {
            let params = vec![
                Param::from(organization),
                Param::from(id),
                Param::from(key.to_owned()),
                Param::from(word.to_owned()),
            ];
            call(&END_ACCOUNT, params)
        };
        let set = vec![
            Param::from(organization),
            Param::from(id),
            Param::from(key.clone()),
        ];
        vec![ended(id, id), ended(&key, &row.name), call(&SET_ACCOUNT, set)]
    })?;
    slices(conn, &RESOURCES, |row| {
        let (organization, id) = (row.organization_id.as_str(), row.id.as_str());
        let params = vec![
            Param::from(organization),
            Param::from(id),
            Param::from(match_key(&row.name)),
        ];
        vec![call(&SET_RESOURCE, params)]
    })
}

/// Computes every key anew, and writes those that are others.
fn renew(conn: &mut Conn) -> Result<()> {
    every(conn, &EVERY_USER, &RENEW_USER, |row| {
        let mut params = version(row);
        params.push(match_key(&row.name).into());
        params.push(row.email.as_deref().map(match_key).into());
        params
    })?;
    every(conn, &EVERY_GROUP, &RENEW_GROUP, |row| {
        let mut params = version(row);
        params.push(match_key(&row.name).into());
        params
    })?;
    for (all, set) in [
        (&EVERY_ACCOUNT, &RENEW_ACCOUNT),
        (&EVERY_RESOURCE, &RENEW_RESOURCE),
    ] {
        every(conn, all, set, |row| {
            let mut params = version(row);
            params[2] = match_key(&row.name).into();
            params
        })?;
    }
    // Words of the deleted are kept for 90 days, and mappings are made one by one: they fit into memory.
    let ended = conn.read(|tx| tx.query(&EVERY_ENDED, params![], kept))?;
    let ended = ended.iter().filter_map(|row| {
        let key = key_of(Kind::parse(row.kind.as_deref()?)?, &row.word);
        (key != row.key).then(|| {
            let mut params: Vec<Param<'_>> = vec![Param::from(row.organization_id.as_str())];
            params.extend([row.kind.as_deref().unwrap_or_default(), &row.id, &row.key].map(Param::from));
            params.push(key.into());
            call(&RENEW_ENDED, params)
        })
    });
    let ended: Vec<Call<'_>> = ended.collect();
    let mapped = conn.read(|tx| tx.query(&EVERY_MAPPING, params![], kept))?;
    let mapped = mapped.iter().filter_map(|row| {
        let key = match_key(&row.word);
        (key != row.key).then(|| {
            let mut params: Vec<Param<'_>> = [row.organization_id.as_str(), &row.id].map(Param::from).into();
            params.push(key.into());
            call(&RENEW_MAPPING, params)
        })
    });
    let mapped: Vec<Call<'_>> = mapped.collect();
    // A skill has a few, and most have none.
    let skills = conn.read(|tx| tx.query(&EVERY_SKILL_WORD, params![], kept))?;
    let skills = skills.iter().filter_map(|row| {
        let key = key_of(Kind::Skill, &row.word);
        (key != row.key).then(|| {
            let mut params: Vec<Param<'_>> = [row.organization_id.as_str(), &row.id, &row.key]
                .map(Param::from)
                .into();
            params.push(key.into());
            call(&RENEW_SKILL_WORD, params)
        })
    });
    let skills: Vec<Call<'_>> = skills.collect();
    for calls in [ended, mapped, skills].iter().flat_map(|all| all.chunks(SLICES)) {
        conn.change(calls)?;
    }
    Ok(())
}

/// A word that is kept beside its record.
struct StoredWord {
    organization_id: String,
    id: String,
    word: String,
    key: String,
    kind: Option<String>,
}

fn kept(row: &Row<'_>) -> Result<StoredWord> {
    Ok(StoredWord {
        organization_id: row.get(0)?,
        id: row.get(1)?,
        word: row.get(2)?,
        key: row.get(3)?,
        kind: row.get(4)?,
    })
}

/// Goes through all rows of a table in slices, and sets the keys of those that have others.
fn every(
    conn: &mut Conn,
    all: &'static Statement,
    set: &'static Statement,
    keys: impl for<'a> Fn(&'a UnfoldedRow) -> Vec<Param<'a>>,
) -> Result<()> {
    let mut after = (String::new(), String::new(), i64::MIN);
    loop {
        let (organization, id, valid_from) = &after;
        let rows = conn.read(|tx| {
            tx.query(
                all,
                params![SLICE, organization.as_str(), id.as_str(), *valid_from],
                |row| {
                    let had: [Option<String>; 2] = [row.get(5)?, row.get(6)?];
                    Ok((read(row)?, had))
                },
            )
        })?;
        let Some((last, _)) = rows.last() else {
            return Ok(());
        };
        let next = (last.organization_id.clone(), last.id.clone(), last.valid_from);
        let is_other = |(row, [key, of_email]): &&(UnfoldedRow, [Option<String>; 2])| {
            *key != Some(match_key(&row.name)) || *of_email != row.email.as_deref().map(match_key)
        };
        let others = rows.iter().filter(is_other);
        let calls: Vec<Call<'_>> = others.map(|(row, _)| call(set, keys(row))).collect();
        conn.change(&calls)?;
        after = next;
    }
}

fn version(row: &UnfoldedRow) -> Vec<Param<'_>> {
    vec![
        Param::from(row.organization_id.as_str()),
        Param::from(row.id.as_str()),
        Param::from(row.valid_from),
    ]
}

fn call<'a>(statement: &'static Statement, params: Vec<Param<'a>>) -> Call<'a> {
    Call { statement, params }
}

fn slices(
    conn: &mut Conn,
    unfolded: &'static Statement,
    set: impl for<'a> Fn(&'a UnfoldedRow) -> Vec<Call<'a>>,
) -> Result<()> {
    loop {
        let rows = conn.read(|tx| tx.query(unfolded, params![SLICE], read))?;
        if rows.is_empty() {
            return Ok(());
        }
        let calls: Vec<Call<'_>> = rows.iter().flat_map(&set).collect();
        conn.change(&calls)?;
    }
}
