//! Proofs of rows that decide rights: written once for a store of an earlier build, and verified.
//!
//! What a unit writes the kernel proves ([`provost_kernel::proofs`]). Here is who reads all of it: `store check` and the
//! hourly round ([`crate::proofs::round`]).
//!
//! ```text
//! row without a proof, or with another   named by its table and key
//! proof without a row                    named
//! row that the newest entry contradicts   named, with the entry ([`entries`])
//! sum or number of all others            named
//! ```
//!
//! INVARIANT PF-3: what another hand changed, inserted, took away or put back among the rows that decide rights is
//! named by `store check` and by the hourly round, which tells it once.
//! INVARIANT PF-4: a store without proofs gets them once, and its log says that what was there is trusted; the
//! operator's word makes all anew.

pub mod entries;
pub mod round;
mod seal;
pub mod triggers;

pub use seal::{renew, write_once};

use provost_kernel::area::Areas;
use provost_kernel::audit::Head;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{self, Column, ColumnKind, Engine, Param, RightsTable, Row, Statement, Tx};
use provost_kernel::keys::Keys;
use provost_kernel::proofs::{Proof, Sum};
use provost_kernel::{Error, Result, params, statements};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

statements! {
    /// Every chain's head, in the columns of [`Head::read`].
    HEADS = unscoped("the sums of all chains are one") "SELECT seq, hash, mac, event_sequence, created_at, rights_changes, rights_rows, rights_sum, rights_key, organization_id FROM chain_heads ORDER BY organization_id";
    /// A page of proofs.
    PROOFS = unscoped("the sums of all chains are one") "SELECT organization_id, table_name, row_key, key_id, mac FROM right_proofs WHERE (organization_id, table_name, row_key) > (?1, ?2, ?3) ORDER BY organization_id, table_name, row_key LIMIT 2000";
    /// Forgets every proof, before all are made anew.
    FORGET = unscoped("the operator takes every row as it is") "DELETE FROM right_proofs";
}

/// How many rows are looked at in one snapshot.
const PAGE: usize = 500;

/// What disagrees.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Whose row it is; none for the sum.
    pub organization: Option<String>,
    /// Its table and its key.
    pub row: Option<(String, String)>,
    /// What is wrong.
    pub fault: Fault,
}

/// What may be wrong with rows that decide rights.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The row is not what Provost wrote.
    Changed,
    /// Provost never wrote the row, or wrote it as the copy of one that disagreed.
    Inserted,
    /// Provost wrote the row and did not take it away.
    Removed,
    /// Nothing of that: rows and their proofs went, or came back, together.
    Together {
        /// How many rows there are, beyond those that Provost left.
        more: i64,
    },
    /// The row fits its proof, and the newest entry of the audit log about it says something else.
    Contradicted {
        /// The member of the entry.
        path: String,
        /// The entry's id.
        entry: String,
    },
    /// A trigger or rule that Provost did not make, or one of its own that is gone, off or another.
    Trigger {
        /// The table.
        table: String,
        /// The trigger.
        name: String,
        /// What is wrong with it.
        act: triggers::Act,
    },
    /// The sum, or what entries say, cannot be judged.
    Unreadable(String),
}

impl Fault {
    /// Returns the word of the fault.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Inserted => "inserted",
            Self::Removed => "removed",
            Self::Together { .. } => "sum",
            Self::Contradicted { .. } => "contradicted",
            Self::Trigger { .. } => "trigger",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(organization), Some((table, key))) = (&self.organization, &self.row) {
            write!(f, "the row {key} of the table {table}, of {organization}, ")?;
        }
        match &self.fault {
            Fault::Changed => f.write_str("was changed from outside: it is not what Provost wrote"),
            Fault::Inserted => f.write_str("was not written by Provost"),
            Fault::Removed => f.write_str("was taken away from outside"),
            Fault::Together { more: 0 } => f.write_str(
                "among the rows that decide rights are some that were put back as they once were: their sum is not the one \
                 in the heads of the audit log",
            ),
            Fault::Together { more } if *more < 0 => write!(
                f,
                "{} of the rows that decide rights were taken away from outside: their number is not the one in the heads of \
                 the audit log",
                -more
            ),
            Fault::Together { more } => write!(
                f,
                "{more} of the rows that decide rights were put back from outside: their number is not the one in the heads \
                 of the audit log"
            ),
            Fault::Contradicted { path, entry } => write!(
                f,
                "is not what the newest entry of the audit log about it says: {path} is another than in {entry}. The row was put \
                 back as it once was, or the entry was changed"
            ),
            Fault::Trigger { table, name, act } => match act {
                triggers::Act::Strange => write!(
                    f,
                    "the table {table} has a trigger or rule {name} that Provost did not make; it may change rows that decide \
                     rights while Provost writes"
                ),
                triggers::Act::Missing => write!(
                    f,
                    "the trigger {name} of the table {table} is gone or off: what Provost writes there is no longer noted as \
                     its migrations say"
                ),
                triggers::Act::Replaced => write!(
                    f,
                    "the trigger {name} of the table {table}, or the function that it runs, is not what Provost's migrations \
                     make: what another hand changes may be proven as if Provost had written it"
                ),
            },
            Fault::Unreadable(why) => write!(f, "the rows that decide rights cannot be judged: {why}"),
        }
    }
}

fn of_row(organization: &str, table: &str, key: &str, fault: Fault) -> Finding {
    Finding {
        organization: Some(organization.to_owned()),
        row: Some((table.to_owned(), key.to_owned())),
        fault,
    }
}

/// Returns every finding of one snapshot. Cost: every row that decides rights is read.
///
/// Errors: those of the connection.
pub fn findings(areas: &Areas, tx: &mut Tx<'_>, keys: &Keys) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    if !is_proven(tx)? {
        return Ok(found);
    }
    for deciding in areas.rights() {
        found.extend(every_page(areas, tx, keys, deciding)?);
    }
    found.extend(ends(areas, tx, keys)?);
    found.sort();
    found.dedup();
    Ok(found)
}

fn every_page(areas: &Areas, tx: &mut Tx<'_>, keys: &Keys, deciding: &RightsTable) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = page(areas, tx, keys, deciding, after.as_deref())?;
        found.extend(page.found);
        after = page.last;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// Says whether a store has proofs. One of an earlier build gets them at the first start; that it lost all of them would take
/// heads older than the checkpoints beside the keys.
fn is_proven(tx: &mut Tx<'_>) -> Result<bool> {
    let heads = tx.query(&HEADS, params![], |row| {
        Head::read(&OrganizationId::from_store(row.get(9)?), row)
    })?;
    Ok(heads.iter().any(Head::has_rights))
}

/// What a page of rows told.
pub struct Page {
    /// What disagrees.
    pub found: Vec<Finding>,
    /// The key of the last row, if there may be more.
    pub last: Option<String>,
}

/// Looks at the rows of a table after a key.
///
/// Errors: those of the connection.
pub fn page(
    areas: &Areas,
    tx: &mut Tx<'_>,
    keys: &Keys,
    deciding: &RightsTable,
    after: Option<&str>,
) -> Result<Page> {
    let columns = db::columns(tx, deciding.table)?;
    let statement = rows_of(tx.engine(), deciding, &columns, after.is_some());
    let params = after.map_or_else(|| Ok(Vec::new()), |key| values(key, &columns))?;
    let mut last = None;
    let mut count = 0;
    let testimony = areas.testimonies().find(|one| one.table == deciding.table);
    let mut claims = Vec::new();
    let found = tx.query(statement, &params, |row| {
        count += 1;
        let (organization, key, content) = (row.str(0)?, row.str(1)?, row.str(2)?);
        last = Some(key.to_owned());
        let fault = match proof_of(row, 3)? {
            None => Some(Fault::Inserted),
            Some(proof) if proof.fits(keys, deciding, content)? => {
                if let Some(testimony) = testimony {
                    claims.extend(entries::claim(testimony, organization, key, content)?);
                }
                None
            }
            Some(_) => Some(Fault::Changed),
        };
        Ok(fault.map(|fault| of_row(organization, deciding.table, key, fault)))
    })?;
    let mut found: Vec<Finding> = found.into_iter().flatten().collect();
    if let Some(testimony) = testimony {
        found.extend(entries::contradictions(testimony, tx, keys, claims)?);
    }
    Ok(Page {
        found,
        last: last.filter(|_| count == PAGE),
    })
}

fn proof_of(row: &Row<'_>, first: usize) -> Result<Option<Proof>> {
    let proof = Option::zip(row.get(first)?, row.get(first + 1)?);
    Ok(proof.map(|(key_id, mac)| Proof { key_id, mac }))
}

/// Compares all proofs with the heads, and with the rows whose number is another.
///
/// Errors: those of the connection.
pub fn ends(areas: &Areas, tx: &mut Tx<'_>, keys: &Keys) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    let mut held: (i64, Sum) = (0, Sum::default());
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    let mut after = [String::new(), String::new(), String::new()];
    loop {
        let [organization, table, key] = &after;
        let proofs = tx.query(
            &PROOFS,
            params![organization.as_str(), table.as_str(), key.as_str()],
            |row| {
                let place: [String; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
                let proof = proof_of(row, 3)?;
                Ok((place, proof.and_then(|proof| proof.share(keys))))
            },
        )?;
        let Some((last, _)) = proofs.last() else { break };
        after.clone_from(last);
        for ([organization, table, key], share) in proofs {
            match share {
                Some(share) => held = (held.0 + 1, held.1.plus(&share)),
                None => found.push(of_row(&organization, &table, &key, Fault::Changed)),
            }
            *counts.entry(table).or_default() += 1;
        }
    }
    found.extend(without_rows(areas, tx, &counts)?);
    found.extend(sum(tx, keys, held)?);
    found.extend(triggers::findings(areas, tx)?);
    Ok(found)
}

/// Compares the sum of the proofs with that of the heads.
fn sum(tx: &mut Tx<'_>, keys: &Keys, held: (i64, Sum)) -> Result<Option<Finding>> {
    let heads = tx.query(&HEADS, params![], |row| {
        Head::read(&OrganizationId::from_store(row.get(9)?), row)
    })?;
    let mut booked = (0, Sum::default());
    for head in &heads {
        // A head that is not authentic is a finding of its own, and nothing that it says counts.
        match head.rights(keys) {
            Ok((rows, sum)) => booked = (booked.0 + rows, booked.1.and(sum)),
            Err(error) => {
                return Ok(Some(Finding {
                    organization: None,
                    row: None,
                    fault: Fault::Unreadable(error.to_string()),
                }));
            }
        }
    }
    let differs = booked != held;
    Ok(differs.then(|| Finding {
        organization: None,
        row: None,
        fault: Fault::Together {
            more: held.0 - booked.0,
        },
    }))
}

/// Returns the proofs whose rows are gone, in the tables that have fewer rows than proofs or as many and others.
fn without_rows(areas: &Areas, tx: &mut Tx<'_>, counts: &BTreeMap<String, i64>) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    let mut short = BTreeSet::new();
    for deciding in areas.rights() {
        let columns = db::columns(tx, deciding.table)?;
        let statement = proven_rows_of(tx.engine(), deciding, &columns);
        let proven = tx.query_opt(statement, params![], |row| row.get::<i64>(0))?;
        if proven.unwrap_or(0) != counts.get(deciding.table).copied().unwrap_or(0) {
            short.insert(deciding.table);
        }
    }
    for table in short {
        let Some(deciding) = areas.rights().iter().find(|deciding| deciding.table == table) else {
            continue;
        };
        let columns = db::columns(tx, table)?;
        let statement = keys_of(tx.engine(), deciding, &columns);
        let there: Vec<(String, String)> =
            tx.query(statement, params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let there: HashSet<(String, String)> = there.into_iter().collect();
        let mut after = [String::new(), String::new(), String::new()];
        loop {
            let [organization, known, key] = &after;
            let places = tx.query(
                &PROOFS,
                params![organization.as_str(), known.as_str(), key.as_str()],
                |row| Ok([row.get::<String>(0)?, row.get(1)?, row.get(2)?]),
            )?;
            let Some(last) = places.last() else { break };
            after.clone_from(last);
            for [organization, of, key] in places {
                let place = (organization, key);
                if of == table && !there.contains(&place) {
                    found.push(of_row(&place.0, table, &place.1, Fault::Removed));
                }
            }
        }
    }
    let strange = counts
        .keys()
        .filter(|table| !areas.rights().iter().any(|deciding| deciding.table == *table));
    found.extend(strange.map(|table| Finding {
        organization: None,
        row: None,
        fault: Fault::Unreadable(format!("there are proofs of a table {table} that carries none")),
    }));
    Ok(found)
}

/// The rows of a table in the order of its key, each with its proof.
fn rows_of(
    engine: Engine,
    deciding: &RightsTable,
    columns: &[Column],
    has_start: bool,
) -> &'static Statement {
    let table = deciding.table;
    let (key, content) = (
        db::key_of(engine, "t", columns),
        db::content_of(engine, "t", columns, deciding.loose),
    );
    let list = key_list(columns);
    let count = list.len();
    let list = list.join(", ");
    let start = if has_start {
        let marks: Vec<String> = (1..=count).map(|place| format!("?{place}")).collect();
        format!("WHERE ({list}) > ({})", marks.join(", "))
    } else {
        String::new()
    };
    kept(format!(
        "SELECT t.organization_id, {key}, {content}, p.key_id, p.mac FROM \"{table}\" t LEFT JOIN right_proofs p \
         ON p.organization_id = t.organization_id AND p.table_name = '{table}' AND p.row_key = {key} {start} \
         ORDER BY {list} LIMIT {PAGE}"
    ))
}

/// How many rows of a table have a proof.
fn proven_rows_of(engine: Engine, deciding: &RightsTable, columns: &[Column]) -> &'static Statement {
    let (table, key) = (deciding.table, db::key_of(engine, "t", columns));
    kept(format!(
        "SELECT COUNT(*) FROM \"{table}\" t JOIN right_proofs p ON p.organization_id = t.organization_id \
         AND p.table_name = '{table}' AND p.row_key = {key}"
    ))
}

/// The keys of a table's rows.
fn keys_of(engine: Engine, deciding: &RightsTable, columns: &[Column]) -> &'static Statement {
    let (table, key) = (deciding.table, db::key_of(engine, "t", columns));
    kept(format!("SELECT t.organization_id, {key} FROM \"{table}\" t"))
}

fn key_list(columns: &[Column]) -> Vec<String> {
    let mut key: Vec<&Column> = columns.iter().filter(|column| column.place > 0).collect();
    key.sort_by_key(|column| column.place);
    key.into_iter()
        .map(|column| format!("t.\"{}\"", column.name))
        .collect()
}

/// Returns the values of a key, as its columns take them.
fn values(key: &str, columns: &[Column]) -> Result<Vec<Param<'static>>> {
    let values: Vec<serde_json::Value> = serde_json::from_str(key).map_err(Error::internal)?;
    let mut of_key: Vec<&Column> = columns.iter().filter(|column| column.place > 0).collect();
    of_key.sort_by_key(|column| column.place);
    let of_key = of_key.into_iter().zip(values);
    of_key
        .map(|(column, value)| {
            let param = match (column.kind, value) {
                (ColumnKind::Text, serde_json::Value::String(text)) => Some(Param::from(text)),
                (ColumnKind::Int, serde_json::Value::Number(number)) => number.as_i64().map(Param::from),
                (ColumnKind::Bytes, serde_json::Value::String(text)) => bytes(&text).map(Param::from),
                _ => None,
            };
            param.ok_or_else(|| Error::internal("a row's key cannot be read"))
        })
        .collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?;
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|place| u8::from_str_radix(digits.get(place..place + 2)?, 16).ok())
        .collect()
}

/// Returns the statement of a text made from the schema. The seam takes statements that live as long as the program; each
/// is made once.
fn kept(sql: String) -> &'static Statement {
    static MADE: Mutex<BTreeMap<String, &'static Statement>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = made.get(&sql) {
        return known;
    }
    let text: &'static str = Box::leak(sql.clone().into_boxed_str());
    let statement: &'static Statement = Box::leak(Box::new(Statement {
        name: "provost_server::proofs",
        sqlite: text,
        postgres: text,
        unscoped: Some("every organization's rows are verified"),
    }));
    made.insert(sql, statement);
    statement
}
