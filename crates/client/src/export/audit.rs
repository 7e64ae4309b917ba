//! The audit log, oldest first.
//!
//! `audit export` leaves an entry of each call, and would feed itself if it were asked again and again. So a connection begins with it, and
//! asks it once more each hour, which is how the log says who follows it; between the two the list is read, which is counted only.

use super::cursor::Cursor;
use crate::cli::{Client, Exit, Failure, Request};
use provost_words::time::Timestamp;
use serde_json::Value;

/// How often a connection that goes on leaves an entry. Units: milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// LIMIT: entries of one call of the export.
const EXPORT_LIMIT: usize = 10_000;
/// LIMIT: entries of one page of the list.
const PAGE: &str = "100";
/// LIMIT: pages of the list that are read for what is new; beyond them the export is cheaper.
const PAGES: usize = 20;

/// Who reads the log, and when it last left an entry.
#[derive(Default)]
pub struct Follower {
    entry_at: Option<Timestamp>,
    /// The export had more than it answered.
    is_behind: bool,
}

/// New entries, and how far the log is read with them.
pub struct Batch {
    pub entries: Vec<Value>,
    pub is_behind: bool,
}

impl Follower {
    /// Returns the next entries after the cursor, the oldest first.
    ///
    /// Errors: those of the server; a log that is shorter than the cursor, or that is not chained to its hash.
    pub async fn next(&mut self, client: &Client<'_>, cursor: &Cursor) -> Result<Batch, Failure> {
        let now = client.terminal.clock.now();
        let is_due = self.entry_at.is_none_or(|at| now.as_ms() - at.as_ms() >= HOUR_MS);
        let last = cursor.audit_seq;
        let entries = if is_due || self.is_behind {
            self.entry_at = Some(now);
            self.exported(client, last).await?
        } else {
            match listed(client, last).await? {
                Some(entries) => entries,
                None => self.exported(client, last).await?,
            }
        };
        let entries = behind(cursor, entries)?;
        chained(cursor, &entries)?;
        Ok(Batch {
            entries,
            is_behind: self.is_behind,
        })
    }

    /// Returns the entries from a place on, that place among them.
    async fn exported(&mut self, client: &Client<'_>, last: i64) -> Result<Vec<Value>, Failure> {
        let request = Request::get(&["audit", "export"])
            .query("after", (last - 1).max(0).to_string())
            .query("limit", EXPORT_LIMIT.to_string())
            .download();
        let answer = client.send(&request).await?;
        self.is_behind = answer.header("x-provost-next-after").is_some();
        let bytes = answer.bytes();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).map_err(|error| strange(&error)))
            .collect()
    }
}

/// Returns what the list has from a place on, that place among it; `None` where that is too much for it.
async fn listed(client: &Client<'_>, last: i64) -> Result<Option<Vec<Value>>, Failure> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..PAGES {
        let mut request = Request::get(&["audit", "events"]).query("limit", PAGE);
        if let Some(cursor) = &cursor {
            request = request.query("cursor", cursor.as_str());
        }
        let mut page = client.send(&request).await?.json()?;
        let Some(Value::Array(entries)) = page.get_mut("events").map(Value::take) else {
            return Err(strange(&"a page of the audit log has no events"));
        };
        for entry in entries {
            if place(&entry) < last {
                found.reverse();
                return Ok(Some(found));
            }
            found.push(entry);
        }
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() {
            found.reverse();
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the place of an entry.
pub fn place(entry: &Value) -> i64 {
    entry["seq"].as_i64().unwrap_or_default()
}

/// Returns the entries behind the cursor, of those from its last one on.
///
/// The last one is asked for again, because a log that went back behind it has nothing to be chained to it. Where it was pruned, the next
/// one is chained to its hash.
fn behind(cursor: &Cursor, mut entries: Vec<Value>) -> Result<Vec<Value>, Failure> {
    let Some(hash) = cursor.audit_hash.as_deref() else {
        entries.retain(|entry| place(entry) > cursor.audit_seq);
        return Ok(entries);
    };
    match entries.first() {
        Some(first) if place(first) > cursor.audit_seq => Ok(entries),
        Some(last) if place(last) == cursor.audit_seq && last["hash"].as_str() == Some(hash) => {
            entries.remove(0);
            Ok(entries)
        }
        _ => Err(went_back(cursor.audit_seq)),
    }
}

/// Sees that the entries go on where the cursor ends, without a gap, and that each is chained to the one before it.
fn chained(cursor: &Cursor, entries: &[Value]) -> Result<(), Failure> {
    let (mut seq, mut hash) = (cursor.audit_seq, cursor.audit_hash.as_deref());
    for entry in entries {
        if place(entry) != seq + 1 {
            return Err(strange(&format!(
                "the audit log goes on with entry {} after {seq}",
                place(entry)
            )));
        }
        if hash.is_some_and(|hash| entry["previousHash"].as_str() != Some(hash)) {
            return Err(went_back(seq));
        }
        (seq, hash) = (place(entry), entry["hash"].as_str());
    }
    Ok(())
}

fn went_back(seq: i64) -> Failure {
    Failure::new(
        Exit::Conflict,
        format!("the audit log of this server is not the one that was exported up to entry {seq}"),
    )
    .and("its store went back or was restored; keep what was exported, and begin a new cursor")
}

fn strange(what: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::ServerFault, format!("{what}; is this a Provost server?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cursor(seq: i64, hash: Option<&str>) -> Cursor {
        Cursor {
            url: "http://127.0.0.1:8080".into(),
            organization: "acme".into(),
            audit_seq: seq,
            audit_hash: hash.map(str::to_owned),
            decisions_until: None,
        }
    }

    #[test]
    fn a_log_that_does_not_hold_what_was_exported_went_back() {
        let entry = |seq: i64, hash: &str| json!({ "seq": seq, "hash": hash });
        let cursor = cursor(7, Some("h7"));
        let rest = |entries: Vec<Value>| behind(&cursor, entries).map(|rest| rest.len());
        assert_eq!(rest(vec![entry(7, "h7")]).unwrap(), 0);
        assert_eq!(rest(vec![entry(7, "h7"), entry(8, "h8")]).unwrap(), 1);
        // The seventh was pruned.
        assert_eq!(rest(vec![entry(8, "h8")]).unwrap(), 1);
        for gone in [vec![], vec![entry(7, "x7")], vec![entry(7, "x7"), entry(8, "h8")]] {
            assert_eq!(rest(gone).unwrap_err().exit, Exit::Conflict);
        }
    }

    #[test]
    fn entries_go_on_without_a_gap_and_in_one_chain() {
        let entry = |seq: i64, previous: &str, hash: &str| json!({ "seq": seq, "previousHash": previous, "hash": hash });
        let log = [entry(8, "h7", "h8"), entry(9, "h8", "h9")];
        assert!(chained(&cursor(7, Some("h7")), &log).is_ok());
        assert!(chained(&cursor(7, None), &log).is_ok());
        assert_eq!(
            chained(&cursor(7, Some("x7")), &log).unwrap_err().exit,
            Exit::Conflict
        );
        assert_eq!(
            chained(&cursor(6, None), &log).unwrap_err().exit,
            Exit::ServerFault
        );
        let torn = [entry(8, "h7", "h8"), entry(9, "x8", "h9")];
        assert_eq!(
            chained(&cursor(7, Some("h7")), &torn).unwrap_err().exit,
            Exit::Conflict
        );
    }
}
