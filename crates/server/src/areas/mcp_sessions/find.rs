//! Finds the sessions of a filter: one page, newest first, and how many there are in all.
//!
//! Three ways lead to the same answer. Exact filters are ranges of indexes (`pages.rs`): actor type, scope and toolset
//! name kinds, of which an organization has few. A substring goes through the substring index. Everything else reads what
//! there is: short substrings, far pages, and the moments in which a job writes the end of many sessions down.
//!
//! INVARIANT MS-3: every way gives the sessions of the filter at the instant of the request, in the order of `issuedAt`,
//!   `id`, and each exactly once.

use super::model::{Cut, Session, State};
use super::view::StatusFilter;
use super::{pages, ranges, store};
use provost_kernel::auth::{ScopeSet, TOOLSETS};
use provost_kernel::db::{Engine, Param, Statement};
use provost_kernel::text::name_key;
use provost_kernel::{Cx, Result, params};
use std::collections::{BTreeSet, HashMap};

/// LIMIT: what a total says exactly (D7.8).
pub const MAX_TOTAL: i64 = 10_000;
/// Pages behind this are read by a scan: merging ranges holds all that stands before them.
const MAX_MERGED: i64 = 10_000;
/// So many of the newest sessions tell which trigrams are rare.
const SAMPLE: i64 = 100;
/// So many trigrams are looked up: those that more would rule out are few, and each costs.
const MAX_TRIGRAMS: usize = 5;
/// Substrings shorter than this have no trigram. Units: characters, folded.
const MIN_INDEXED: usize = 3;

/// What a list narrows to; all of it at once (D7.7).
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// See there.
    pub status: Option<StatusFilter>,
    /// The client.
    pub client: Option<&'a str>,
    /// The account.
    pub account: Option<&'a str>,
    /// The user; not a filter of the API.
    pub user: Option<&'a str>,
    /// The actor type.
    pub actor_type: Option<&'a str>,
    /// A scope that it has.
    pub scope: Option<&'a str>,
    /// A toolset of which it has a scope.
    pub toolset: Option<&'a str>,
    /// A substring of its members, not folded.
    pub text: Option<&'a str>,
}

/// One page.
#[derive(Debug, Default)]
pub struct Found {
    /// Newest first, as they are now.
    pub sessions: Vec<Session>,
    /// How many there are in all, at most [`MAX_TOTAL`].
    pub total: i64,
    /// Whether there are no more than that.
    pub is_exact: bool,
}

/// Returns one page.
pub fn page(cx: &mut Cx<'_>, filter: &Filter<'_>, limit: i64, offset: i64) -> Result<Found> {
    // Stored scopes are scopes of today's list, so that nothing has another (D7.7: an open set, no error).
    let has_scope = filter.scope.is_none_or(ScopeSet::is_known);
    if !has_scope || filter.toolset.is_some_and(|toolset| !TOOLSETS.contains(&toolset)) {
        return Ok(Found {
            is_exact: true,
            ..Found::default()
        });
    }
    let org = cx.org();
    let cuts = store::cuts(&mut cx.tx(), org)?;
    let (seqs, total) = match way(cx, filter, offset, &cuts)? {
        Way::Ranges(kinds) => ranges::merged(cx, filter, kinds.as_deref(), limit, offset)?,
        Way::Read(question) => read(cx, filter, &question, limit, offset)?,
    };
    Ok(Found {
        sessions: fetch(cx, &seqs, &cuts)?,
        total: total.min(MAX_TOTAL),
        is_exact: total <= MAX_TOTAL,
    })
}

enum Way {
    /// By ranges of these kinds, or of all.
    Ranges(Option<Vec<i64>>),
    /// By reading.
    Read(Question),
}

struct Question {
    page: &'static Statement,
    count: &'static Statement,
    /// A pattern.
    text: Option<String>,
    /// What the substring index is asked for.
    words: Option<String>,
}

fn way(cx: &mut Cx<'_>, filter: &Filter<'_>, offset: i64, cuts: &[Cut]) -> Result<Way> {
    if let Some(text) = filter.text {
        return Ok(Way::Read(asked(cx, &name_key(text))?));
    }
    let scan = || {
        Way::Read(Question {
            page: &pages::SCAN,
            count: &pages::COUNT_SCAN,
            text: None,
            words: None,
        })
    };
    if !cuts.is_empty() || offset > MAX_MERGED || filter.user.is_some() {
        return Ok(scan());
    }
    let Some(kinds) = ranges::kinds(cx, filter)? else {
        return Ok(scan());
    };
    Ok(Way::Ranges(kinds))
}

/// Returns how a folded substring is looked for.
fn asked(cx: &mut Cx<'_>, text: &str) -> Result<Question> {
    let pattern = format!("%{}%", escaped(text));
    if text.chars().count() < MIN_INDEXED {
        return Ok(Question {
            page: &pages::SCAN,
            count: &pages::COUNT_SCAN,
            text: Some(pattern),
            words: None,
        });
    }
    let words = match cx.tx().engine() {
        Engine::Sqlite => trigrams(cx, text)?,
        Engine::Postgres => {
            cx.query(&pages::PLAN_ANEW, params![], |_| Ok(()))?;
            pattern.clone()
        }
    };
    Ok(Question {
        page: &pages::SEARCH,
        count: &pages::COUNT_SEARCH,
        text: Some(pattern),
        words: Some(words),
    })
}

/// Returns a question to SQLite's index: the trigrams of a text that fewest of the newest sessions have. Asked for the
/// whole text it would read what it holds of every trigram, and of common ones that is most of it.
fn trigrams(cx: &mut Cx<'_>, text: &str) -> Result<String> {
    let org = cx.org();
    let sample = cx.query(&pages::SAMPLE, params![org, SAMPLE], |row| row.get::<String>(0))?;
    let chars: Vec<char> = text.chars().collect();
    let all: BTreeSet<String> = chars
        .windows(MIN_INDEXED)
        .map(|part| part.iter().collect())
        .collect();
    let mut counted: Vec<(usize, String)> = all
        .into_iter()
        .map(|part| (sample.iter().filter(|known| known.contains(&part)).count(), part))
        .collect();
    counted.sort();
    // One that every fourth has rules out less than it costs, unless there is no better one.
    let rare = counted.iter().take_while(|(count, _)| count * 4 <= sample.len());
    let wanted = rare.count().clamp(1, MAX_TRIGRAMS);
    counted.truncate(wanted);
    // In the index's language quotes alone mean something within quotes.
    let quoted = counted
        .iter()
        .map(|(_, part)| format!("\"{}\"", part.replace('"', "\"\"")));
    Ok(quoted.collect::<Vec<_>>().join(" AND "))
}

/// Returns a pattern that matches exactly this text.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Reads what there is: the numbers of one page, and the total up to one more than [`MAX_TOTAL`].
fn read(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    question: &Question,
    limit: i64,
    offset: i64,
) -> Result<(Vec<i64>, i64)> {
    let state = filter.status.map(|status| status.state().code());
    let scope = filter.scope.map(|scope| format!("% {} %", escaped(scope)));
    let toolset = filter.toolset.map(|toolset| format!("% {}:%", escaped(toolset)));
    let (org, now) = (cx.org(), cx.now());
    let mut values = params![
        org,
        now,
        state,
        filter.client,
        filter.account,
        filter.actor_type,
        scope,
        toolset,
        question.text.as_deref(),
        filter.user,
    ]
    .to_vec();
    values.extend(question.words.as_deref().map(Param::from));
    let engine = cx.tx().engine();
    let mut ask = |limit: i64, offset: i64| {
        let mut paged = values.clone();
        paged.extend(params![limit, offset].iter().cloned());
        cx.query(question.page, &paged, |row| row.get::<i64>(0))
    };
    // A count reads all that the page is taken from, so that one reading gives both. SQLite's substring index counts
    // oldest first in half the time that it takes newest first, and few of a page are soon found.
    let is_by_index = question.words.is_some() && engine == Engine::Sqlite;
    if offset + limit <= MAX_TOTAL && !is_by_index {
        let mut seqs = ask(MAX_TOTAL + 1, 0)?;
        let total = i64::try_from(seqs.len()).unwrap_or(i64::MAX);
        let (first, length) = (usize::try_from(offset), usize::try_from(limit));
        seqs.drain(..first.unwrap_or(0).min(seqs.len()));
        seqs.truncate(length.unwrap_or(0));
        return Ok((seqs, total));
    }
    let seqs = ask(limit, offset)?;
    let length = i64::try_from(seqs.len()).unwrap_or(i64::MAX);
    if length < limit && (length > 0 || offset == 0) {
        return Ok((seqs, offset + length));
    }
    values.push(Param::from(MAX_TOTAL + 1));
    let total = cx.query_opt(question.count, &values, |row| row.get::<i64>(0))?;
    Ok((seqs, total.unwrap_or(0)))
}

/// Returns the sessions of these numbers as they are now, in the same order.
fn fetch(cx: &mut Cx<'_>, seqs: &[i64], cuts: &[Cut]) -> Result<Vec<Session>> {
    let (org, now) = (cx.org(), cx.now());
    let mut found: HashMap<i64, Session> = HashMap::new();
    for chunk in seqs.chunks(pages::FETCHED) {
        let last = chunk[chunk.len() - 1];
        let values: Vec<Param<'_>> = (0..pages::FETCHED)
            .map(|place| Param::from(*chunk.get(place).unwrap_or(&last)))
            .collect();
        for session in cx.query(&pages::FETCH, &values, store::read)? {
            if session.organization_id == org {
                found.insert(session.seq, session.at(now, cuts));
            }
        }
    }
    Ok(seqs.iter().filter_map(|seq| found.remove(seq)).collect())
}

/// Returns how many active sessions a user has, up to one more than [`MAX_TOTAL`], and the newest ones.
pub fn of_user(cx: &mut Cx<'_>, user: &str, limit: i64) -> Result<Found> {
    let filter = Filter {
        status: Some(StatusFilter::Active),
        user: Some(user),
        ..Filter::default()
    };
    let (org, now) = (cx.org(), cx.now());
    let cuts = store::cuts(&mut cx.tx(), org)?;
    if !cuts.is_empty() {
        return page(cx, &filter, limit, 0);
    }
    let seqs = cx.query(&pages::NEWEST_OF_USER, params![org, user, limit, now], |row| {
        row.get(0)
    })?;
    let most = MAX_TOTAL + 1;
    let total = cx.query_opt(&pages::COUNT_OF_USER, params![org, user, most, now], |row| {
        row.get::<i64>(0)
    })?;
    let total = total.unwrap_or(0);
    let sessions = fetch(cx, &seqs, &cuts)?;
    debug_assert!(sessions.iter().all(|session| session.state == State::Active));
    Ok(Found {
        sessions,
        total: total.min(MAX_TOTAL),
        is_exact: total <= MAX_TOTAL,
    })
}
