//! What takes away, written beside the keys before it is answered (D12.9).
//!
//! A store that went back has lost its newest commits, and with them what they ended: a disabled account would work again.
//! Therefore every commit that takes something away leaves lines outside the store, of ids alone, and
//! `provost store accept --lost` takes away again what they say.
//!
//! ```text
//! the units ran → the engine says which rows changed → what of it takes away (the areas' tables) → lines, fsync → COMMIT
//! ```
//!
//! What takes away is read from the rows that the engine noted, as their proofs are: no operation, job or endpoint can
//! forget to say so. A line names the last entry of its commit by number and hash, and so can be found or missed in any
//! chain, also in one that went back and grew again.
//!
//! INVARIANT EN-1: what takes something away is answered after its lines in `ends.jsonl` are durable; where there is
//! no room or no right to write them, it is refused, and everything else goes on; after a failed write or sync of
//! theirs nothing is acknowledged until a restart, as of the store's (WK-2).
//! INVARIANT EN-2: a line of `ends.jsonl` holds ids and the words of the program, and no name and no value.
//!
//! Absent on purpose: taking a line back whose commit failed. It takes away too much at most, and only after a loss.

use crate::auth::OrganizationId;
use crate::db::{Conn, TouchedRow, Tx};
use crate::error::{Error, Result};
use crate::hex::hex;
use crate::keys::Keys;
use crate::time::Timestamp;
use crate::witness::ChainPosition;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// LIMIT: ids of one line, so that a line can be read by a person; more are several lines.
const MAX_IDS: usize = 200;

/// One side of a row that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side(Map<String, Value>);

impl Side {
    /// Reads what the engine noted.
    ///
    /// Errors: `Internal` for what is no object.
    pub fn read(content: &str) -> Result<Self> {
        serde_json::from_str(content).map(Self).map_err(Error::internal)
    }

    fn value(&self, column: &str) -> Result<&Value> {
        let value = self.0.get(column);
        value.ok_or_else(|| Error::internal(format!("a row that decides rights has no column {column}")))
    }

    /// Returns a text, or nothing where the column is null.
    ///
    /// Errors: `Internal` for a column that the table does not have: a renamed one must not look like an empty one.
    pub fn text(&self, column: &str) -> Result<Option<&str>> {
        Ok(self.value(column)?.as_str())
    }

    /// Returns a number or an instant, or nothing where the column is null.
    ///
    /// Errors: as [`Self::text`].
    pub fn number(&self, column: &str) -> Result<Option<i64>> {
        Ok(self.value(column)?.as_i64())
    }

    /// Returns a truth value, which SQLite keeps as a number.
    ///
    /// Errors: as [`Self::text`].
    pub fn truth(&self, column: &str) -> Result<bool> {
        let value = self.value(column)?;
        Ok(value.as_bool().unwrap_or(value.as_i64() == Some(1)))
    }

    /// Says whether a column holds something.
    ///
    /// Errors: as [`Self::text`].
    pub fn has(&self, column: &str) -> Result<bool> {
        Ok(!self.value(column)?.is_null())
    }

    /// Says whether these columns hold what they hold in another side of the row.
    ///
    /// Errors: as [`Self::text`].
    pub fn agrees(&self, other: &Self, columns: &[&str]) -> Result<bool> {
        for column in columns {
            if self.value(column)? != other.value(column)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns what these columns hold, as the ids of a line.
    ///
    /// Errors: as [`Self::text`], and for a column that is null.
    pub fn ids(&self, columns: &[&str]) -> Result<Vec<String>> {
        let id = |column: &&str| match self.value(column)? {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(Error::internal(format!("the column {column} names nothing"))),
        };
        columns.iter().map(id).collect()
    }
}

/// What a commit did to one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// Whose row it is.
    pub organization: String,
    /// What it was; nothing for a row that came.
    pub was: Option<Side>,
    /// What it is; nothing for a row that went.
    pub is: Option<Side>,
}

/// A right, a record or a membership that a commit takes away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revocation {
    /// The kind of what ended, in the words of its area.
    pub what: &'static str,
    /// What became of it.
    pub how: &'static str,
    /// What names it.
    pub ids: Vec<String>,
}

/// Says what the change of a row takes away, at an instant, before the commit.
pub type Find = fn(&mut Tx<'_>, &RowChange, Timestamp) -> Result<Vec<Revocation>>;

/// The store that lines are about, as id and epoch.
pub type StoreName = (String, i64);

/// Returns the store that a transaction is in; nothing for one of which there are no lines.
pub type StoreOf = fn(&mut Tx<'_>, &Keys) -> Result<Option<StoreName>>;

/// What the product says of what takes away.
#[derive(Clone)]
pub struct Endings {
    /// The tables whose changes can take something away, each with what says it of one change.
    pub tables: Vec<(&'static str, Find)>,
    /// Returns the store that the transaction is in.
    pub store: StoreOf,
}

impl Endings {
    /// Nothing takes away: for a store that is not served.
    pub const NONE: Self = Self {
        tables: Vec::new(),
        store: |_, _| Ok(None),
    };

    fn of(&self, table: &str) -> Option<Find> {
        let mut all = self.tables.iter();
        all.find(|(name, _)| *name == table).map(|(_, find)| *find)
    }
}

/// A line of `ends.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndLine {
    /// The store.
    pub store_id: String,
    /// Its epoch.
    pub store_epoch: i64,
    /// Whose they were.
    pub organization_id: String,
    /// The chain whose entry says so; nothing where it is the organization's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The number of the last entry of the commit.
    pub sequence: i64,
    /// Its hash; nothing for a commit that left no entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// When.
    pub time: Timestamp,
    /// The acts of the commit.
    pub acts: Vec<String>,
    /// The kind of what ended.
    pub what: String,
    /// What became of it.
    pub how: String,
    /// What names each.
    pub ids: Vec<Vec<String>>,
}

impl EndLine {
    /// Returns the chain in which the entry stands.
    pub fn chain(&self) -> &str {
        self.chain.as_deref().unwrap_or(&self.organization_id)
    }
}

/// What `ends.jsonl` says.
#[derive(Debug, Default)]
pub struct EndJournal {
    /// From when on it is whole; nothing when nobody can say.
    pub since: Option<Timestamp>,
    /// The lines, the oldest first.
    pub lines: Vec<EndLine>,
    /// The numbers of lines that say nothing that this version understands.
    pub damaged: Vec<usize>,
}

#[derive(Deserialize)]
struct Since {
    event: String,
    time: Timestamp,
}

impl EndJournal {
    /// Returns what the lines of the file say.
    pub fn of(lines: &[String]) -> Self {
        let mut journal = Self::default();
        for (place, text) in lines.iter().enumerate() {
            if let Ok(line) = serde_json::from_str::<EndLine>(text) {
                journal.lines.push(line);
            } else if let Ok(since) = serde_json::from_str::<Since>(text)
                && since.event == "since"
            {
                journal.since = journal.since.max(Some(since.time));
            } else {
                journal.damaged.push(place + 1);
            }
        }
        journal
    }
}

/// Says whether a line of the file is kept when those before an instant go. One that is not understood stays.
pub fn is_kept(text: &str, before: Timestamp) -> bool {
    if let Ok(line) = serde_json::from_str::<EndLine>(text) {
        return line.time >= before;
    }
    match serde_json::from_str::<Since>(text) {
        Ok(since) => since.event != "since" || since.time >= before,
        Err(_) => true,
    }
}

/// What a commit takes away, and of which store.
pub(crate) struct CommitRevocations {
    store: StoreName,
    ended: BTreeMap<(String, &'static str, &'static str), BTreeSet<Vec<String>>>,
}

/// Returns what the open transaction takes away, by what the engine noted of it; nothing when that is nothing.
///
/// Errors: those of the connection, and `Internal` for a row that cannot be read.
pub(crate) fn find(
    endings: &Endings,
    keys: &Keys,
    conn: &mut Conn,
    touched: &[TouchedRow],
    now: Timestamp,
) -> Result<Option<CommitRevocations>> {
    let mut rows: BTreeMap<(&str, &str, &str), [Vec<&str>; 2]> = BTreeMap::new();
    for one in touched {
        let sides = rows.entry((&one.organization, &one.table, &one.key)).or_default();
        sides[usize::from(one.is_new)].push(&one.content);
    }
    let mut ended: BTreeMap<_, BTreeSet<Vec<String>>> = BTreeMap::new();
    for ((organization, table, _), [mut was, mut is]) in rows {
        let Some(find) = endings.of(table) else { continue };
        // What was undone within the transaction is on both sides.
        was.retain(|content| match is.iter().position(|other| other == content) {
            Some(place) => {
                is.swap_remove(place);
                false
            }
            None => true,
        });
        if was.is_empty() && is.is_empty() {
            continue;
        }
        let side = |content: Option<&&str>| content.map(|content| Side::read(content)).transpose();
        let change = RowChange {
            organization: organization.to_owned(),
            was: side(was.first())?,
            is: side(is.first())?,
        };
        for one in find(&mut conn.tx(), &change, now)? {
            let place = (organization.to_owned(), one.what, one.how);
            ended.entry(place).or_default().insert(one.ids);
        }
    }
    if ended.is_empty() {
        return Ok(None);
    }
    let store = (endings.store)(&mut conn.tx(), keys)?;
    Ok(store.map(|store| CommitRevocations { store, ended }))
}

/// An end of a chain in a commit: what it is behind it, and which acts left entries.
pub(crate) struct ChainEnd {
    pub place: ChainPosition,
    pub has_moved: bool,
    pub acts: BTreeSet<&'static str>,
}

impl CommitRevocations {
    /// Returns the lines of the commit.
    ///
    /// Errors: `Internal` for a line that cannot be written.
    pub fn lines(&self, chains: &BTreeMap<OrganizationId, ChainEnd>, now: Timestamp) -> Result<Vec<String>> {
        let (store_id, store_epoch) = &self.store;
        let mut lines = Vec::new();
        for ((organization, what, how), ids) in &self.ended {
            let own = chains
                .iter()
                .find(|(chain, end)| chain.as_str() == organization && end.has_moved);
            // A unit of the installation may end what other organizations hold: its entry is in its own chain.
            let chain = own.or_else(|| chains.iter().find(|(_, end)| end.has_moved));
            let ids: Vec<Vec<String>> = ids.iter().cloned().collect();
            for ids in ids.chunks(MAX_IDS) {
                let line = EndLine {
                    store_id: store_id.clone(),
                    store_epoch: *store_epoch,
                    organization_id: organization.clone(),
                    chain: chain
                        .filter(|(chain, _)| chain.as_str() != organization)
                        .map(|(chain, _)| chain.as_str().to_owned()),
                    sequence: chain.map_or(0, |(_, end)| end.place.seq),
                    hash: chain.map(|(_, end)| hex(&end.place.hash)),
                    time: now,
                    acts: chain.map_or_else(Vec::new, |(_, end)| {
                        end.acts.iter().map(|act| (*act).to_owned()).collect()
                    }),
                    what: (*what).to_owned(),
                    how: (*how).to_owned(),
                    ids: ids.to_vec(),
                };
                lines.push(serde_json::to_string(&line).map_err(Error::internal)?);
            }
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chains(seq: i64, has_moved: bool) -> BTreeMap<OrganizationId, ChainEnd> {
        let end = ChainEnd {
            place: ChainPosition { seq, hash: [7; 32] },
            has_moved,
            acts: BTreeSet::from(["disable"]),
        };
        BTreeMap::from([(OrganizationId::parse("acme").unwrap(), end)])
    }

    fn taken(organization: &str, count: usize) -> CommitRevocations {
        let ids = (0..count).map(|n| vec![format!("usr_{n:04}")]).collect();
        CommitRevocations {
            store: ("store_a".into(), 3),
            ended: BTreeMap::from([((organization.into(), "user", "suspended"), ids)]),
        }
    }

    #[test]
    fn a_line_names_the_entry_and_many_ids_are_several_lines() {
        let at = Timestamp::from_ms(5);
        let lines = taken("acme", 401).lines(&chains(9, true), at).unwrap();
        assert_eq!(lines.len(), 3);
        let journal = EndJournal::of(&lines);
        let first = &journal.lines[0];
        assert_eq!((first.sequence, first.store_epoch, first.chain()), (9, 3, "acme"));
        assert_eq!(first.hash.as_deref(), Some("07".repeat(32).as_str()));
        assert_eq!(
            (first.acts.clone(), first.ids.len()),
            (vec!["disable".to_owned()], 200)
        );
        assert_eq!(journal.lines[2].ids, [["usr_0400"]]);
        assert!(journal.damaged.is_empty() && journal.since.is_none());
    }

    #[test]
    fn what_another_chain_says_names_that_chain_and_what_none_says_has_no_hash() {
        let at = Timestamp::from_ms(5);
        let of = |lines: Vec<String>| EndJournal::of(&lines).lines.remove(0);
        let other = of(taken("globex", 1).lines(&chains(9, true), at).unwrap());
        assert_eq!(
            (other.chain(), other.organization_id.as_str()),
            ("acme", "globex")
        );
        let silent = of(taken("acme", 1).lines(&chains(9, false), at).unwrap());
        assert_eq!((silent.hash, silent.chain), (None, None));
    }

    #[test]
    fn a_journal_says_from_when_on_it_is_whole_and_which_lines_are_damaged() {
        let line = taken("acme", 1)
            .lines(&chains(9, true), Timestamp::from_ms(5))
            .unwrap();
        let since = |ms| serde_json::json!({ "event": "since", "time": Timestamp::from_ms(ms) }).to_string();
        let lines = vec![
            since(3),
            line[0].clone(),
            "{".into(),
            since(8),
            r#"{"event":"later"}"#.into(),
        ];
        let journal = EndJournal::of(&lines);
        assert_eq!(journal.since, Some(Timestamp::from_ms(8)));
        assert_eq!((journal.lines.len(), journal.damaged), (1, vec![3, 5]));
        let kept = |before| {
            let kept = lines
                .iter()
                .filter(|line| is_kept(line, Timestamp::from_ms(before)));
            kept.count()
        };
        assert_eq!((kept(3), kept(5), kept(6), kept(9)), (5, 4, 3, 2));
    }

    #[test]
    fn a_column_that_is_not_there_is_an_error_and_null_is_nothing() {
        let side = Side::read(r#"{"id":"a","gone_at":null,"on":1,"off":false,"at":7}"#).unwrap();
        assert_eq!(side.text("id").unwrap(), Some("a"));
        assert_eq!(side.text("gone_at").unwrap(), None);
        assert_eq!(side.number("at").unwrap(), Some(7));
        assert!(side.truth("on").unwrap() && !side.truth("off").unwrap());
        assert!(!side.has("gone_at").unwrap() && side.has("id").unwrap());
        assert!(side.text("other").is_err() && side.has("other").is_err());
        assert_eq!(side.ids(&["id", "at"]).unwrap(), ["a", "7"]);
        assert!(side.ids(&["gone_at"]).is_err());
        let other = Side::read(r#"{"id":"a","at":8}"#).unwrap();
        assert!(side.agrees(&other, &["id"]).unwrap() && !side.agrees(&other, &["id", "at"]).unwrap());
    }
}
