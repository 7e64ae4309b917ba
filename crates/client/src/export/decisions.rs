//! Recorded decisions, oldest first.
//!
//! The server lists them newest first, between two instants. So a span of time is read whole, turned round and written out, and the next
//! span begins where it ended. A span that holds too much is halved.

use super::cursor::Cursor;
use crate::cli::{Client, Exit, Failure, Request, Trail};
use provost_words::time::Timestamp;
use serde_json::Value;

/// The longest span. Units: milliseconds.
const LONGEST_MS: i64 = 6 * 3_600_000;
/// LIMIT: events of a span that are held at once; a shorter span than a second is not made for it.
const MOST: usize = 20_000;
const SHORTEST_MS: i64 = 1_000;
/// LIMIT: events of one page of the history.
const PAGE: &str = "100";

/// How the spans go on.
pub struct Spans {
    length_ms: i64,
}

impl Default for Spans {
    fn default() -> Self {
        Self {
            length_ms: LONGEST_MS,
        }
    }
}

/// The events of a span.
pub struct Span {
    pub events: Vec<Value>,
    /// Where the next one begins.
    pub until: Timestamp,
    /// Events that are there and cannot be read.
    pub unreadable: u64,
    /// There is more before the end that was asked for.
    pub is_behind: bool,
}

impl Spans {
    /// Returns the events after the cursor and before `end`, at most those of one span.
    pub async fn next(
        &mut self,
        client: &Client<'_>,
        cursor: &Cursor,
        end: Timestamp,
    ) -> Result<Option<Span>, Failure> {
        let from = cursor.decisions_until.as_deref().and_then(Timestamp::parse);
        let Some(from) = from.filter(|from| *from < end) else {
            return Ok(None);
        };
        loop {
            let until = from.plus_ms(self.length_ms).min(end);
            match read(client, from, until, self.length_ms > SHORTEST_MS).await? {
                Some((events, unreadable)) => {
                    if events.len() < MOST / 4 {
                        self.length_ms = (self.length_ms * 2).min(LONGEST_MS);
                    }
                    return Ok(Some(Span {
                        events,
                        until,
                        unreadable,
                        is_behind: until < end,
                    }));
                }
                None => self.length_ms = (self.length_ms / 2).max(SHORTEST_MS),
            }
        }
    }
}

/// Returns the events of a span, the oldest first, and how many cannot be read; `None` where there are too many for one.
async fn read(
    client: &Client<'_>,
    from: Timestamp,
    until: Timestamp,
    may_halve: bool,
) -> Result<Option<(Vec<Value>, u64)>, Failure> {
    let (mut events, mut unreadable) = (Vec::new(), 0);
    let (mut cursor, mut trail) = (None::<String>, Trail::default());
    loop {
        let mut request = Request::get(&["policies", "history"])
            .query("from", from.to_rfc3339())
            .query("to", until.to_rfc3339())
            .query("limit", PAGE);
        if let Some(cursor) = &cursor {
            request = request.query("cursor", cursor.as_str());
        }
        let mut page = client.send(&request).await?.json()?;
        let Some(Value::Array(found)) = page.get_mut("events").map(Value::take) else {
            return Err(Failure::new(
                Exit::ServerFault,
                "a page of the history has no events; is this a Provost server?",
            ));
        };
        let count = found.len();
        events.extend(found);
        let parts = page["unreadable"].as_array().into_iter().flatten();
        unreadable += parts.filter_map(|part| part["events"].as_u64()).sum::<u64>();
        if events.len() > MOST && may_halve {
            return Ok(None);
        }
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let Some(next) = next else {
            events.reverse();
            return Ok(Some((events, unreadable)));
        };
        trail.go_on("page", &next, count)?;
        cursor = Some(next);
    }
}
