//! Finds the sessions of a filter: one page, newest first, and how many there are in all.
//!
//! Three ways lead to the same answer. Exact filters are ranges of indexes (`pages.rs`): actor type, scope and toolset
//! name kinds, of which an organization has few. A substring goes through the substring index. Everything else reads what
//! there is: short substrings, far pages, and the moments in which a job writes the end of many sessions down.
//!
//! INVARIANT MS-3: every way gives the sessions of the filter at the instant of the request, in the order of `issuedAt`,
//!   `id`, and each exactly once.

use super::model::{Cut, Session, State, StatusFilter};
use super::{pages, store};
use provost_kernel::auth::{ScopeSet, TOOLSETS};
use provost_kernel::db::{Param, Statement};
use provost_kernel::text::name_key;
use provost_kernel::{Cx, Result, Timestamp, params};
use std::collections::{BTreeSet, HashMap};

/// LIMIT: what a total says exactly (D7.8).
pub const MAX_TOTAL: i64 = 10_000;
/// Pages behind this are read by a scan: merging ranges holds all that stands before them.
const MAX_MERGED: i64 = 10_000;
/// More kinds than this are not merged; an organization has them when clients ask for scopes at random.
const MAX_KINDS: usize = 128;
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
        Way::Ranges(kinds) => merged(cx, filter, kinds.as_deref(), limit, offset)?,
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
    text: Option<String>,
}

fn way(cx: &mut Cx<'_>, filter: &Filter<'_>, offset: i64, cuts: &[Cut]) -> Result<Way> {
    if let Some(text) = filter.text {
        return Ok(Way::Read(asked(cx, &name_key(text))));
    }
    let scan = || {
        Way::Read(Question {
            page: &pages::SCAN,
            count: &pages::COUNT_SCAN,
            text: None,
        })
    };
    if !cuts.is_empty() || offset > MAX_MERGED || filter.user.is_some() {
        return Ok(scan());
    }
    let Some(kinds) = kinds(cx, filter)? else {
        return Ok(scan());
    };
    Ok(Way::Ranges(kinds))
}

/// Returns how a folded substring is looked for.
fn asked(cx: &mut Cx<'_>, text: &str) -> Question {
    let pattern = format!("%{}%", escaped(text));
    if text.chars().count() < MIN_INDEXED {
        return Question {
            page: &pages::SCAN,
            count: &pages::COUNT_SCAN,
            text: Some(pattern),
        };
    }
    let text = match cx.tx().engine() {
        // A phrase of the query language of SQLite's index: in it quotes alone mean something.
        provost_kernel::db::Engine::Sqlite => format!("\"{}\"", text.replace('"', "\"\"")),
        provost_kernel::db::Engine::Postgres => pattern,
    };
    Question {
        page: &pages::SEARCH,
        count: &pages::COUNT_SEARCH,
        text: Some(text),
    }
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

/// Returns the kinds that the filter names: `Some(None)` for every kind, `None` when there are too many to merge.
#[expect(
    clippy::option_option,
    reason = "the two absences differ: all of them, and too many"
)]
fn kinds(cx: &mut Cx<'_>, filter: &Filter<'_>) -> Result<Option<Option<Vec<i64>>>> {
    if filter.actor_type.is_none() && filter.scope.is_none() && filter.toolset.is_none() {
        return Ok(Some(None));
    }
    let org = cx.org();
    let most = i64::try_from(MAX_KINDS * 8).unwrap_or(i64::MAX);
    let mut all = 0;
    let mut named = Vec::new();
    cx.query(&pages::KINDS, params![org, most + 1], |row| {
        all += 1;
        let mut scopes = row.str(2)?.split(' ');
        let in_toolset = |toolset: &str| {
            let of = |scope: &str| {
                scope
                    .strip_prefix(toolset)
                    .is_some_and(|rest| rest.starts_with(':'))
            };
            scopes.clone().any(of)
        };
        let has_toolset = filter.toolset.is_none_or(in_toolset);
        let has_actor = filter
            .actor_type
            .is_none_or(|word| row.str(1).is_ok_and(|actor| actor == word));
        if has_toolset
            && has_actor
            && filter
                .scope
                .is_none_or(|wanted| scopes.any(|scope| scope == wanted))
        {
            named.push(row.get(0)?);
        }
        Ok(())
    })?;
    if all > most || named.len() > MAX_KINDS {
        return Ok(None);
    }
    Ok(Some(
        (named.len() != usize::try_from(all).unwrap_or(0)).then_some(named),
    ))
}

/// The statements of a filter's ranges.
fn statements(filter: &Filter<'_>, by_kind: bool) -> [&'static Statement; 2] {
    match (filter.client.is_some(), filter.account.is_some(), by_kind) {
        (false, false, false) => [&pages::NEWEST, &pages::COUNT],
        (true, false, false) => [&pages::NEWEST_OF_CLIENT, &pages::COUNT_OF_CLIENT],
        (false, true, false) => [&pages::NEWEST_OF_ACCOUNT, &pages::COUNT_OF_ACCOUNT],
        (true, true, false) => [&pages::NEWEST_OF_BOTH, &pages::COUNT_OF_BOTH],
        (false, false, true) => [&pages::NEWEST_OF_KINDS, &pages::COUNT_OF_KINDS],
        (true, false, true) => [&pages::NEWEST_OF_CLIENT_KINDS, &pages::COUNT_OF_CLIENT_KINDS],
        (false, true, true) => [&pages::NEWEST_OF_ACCOUNT_KINDS, &pages::COUNT_OF_ACCOUNT_KINDS],
        (true, true, true) => [&pages::NEWEST_OF_BOTH_KINDS, &pages::COUNT_OF_BOTH_KINDS],
    }
}

/// No kind and no state has this number; it fills the places of a statement that are not needed.
const NONE: i64 = -1;

/// Merges ranges: the numbers of one page, and the total up to one more than [`MAX_TOTAL`].
fn merged(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    kinds: Option<&[i64]>,
    limit: i64,
    offset: i64,
) -> Result<(Vec<i64>, i64)> {
    let states: &[i64] = match filter.status {
        None => &[0, 1, 2],
        Some(StatusFilter::Active) => &[0],
        Some(StatusFilter::Revoked) => &[1],
        Some(StatusFilter::Expired) => &[2],
    };
    // Active is what has not run out; among the others the time does not matter.
    let ends_behind = if filter.status == Some(StatusFilter::Active) {
        cx.now()
    } else {
        Timestamp::from_ms(-1)
    };
    let wanted = usize::try_from(limit.saturating_add(offset)).unwrap_or(usize::MAX);
    let [newest, count] = statements(filter, kinds.is_some());
    let slots: Vec<i64> = match kinds {
        None => states.to_vec(),
        Some(kinds) => kinds
            .iter()
            .flat_map(|kind| states.iter().flat_map(move |state| [*kind, *state]))
            .collect(),
    };
    let width = if kinds.is_some() { pages::SLOTS * 2 } else { 3 };
    let overdue = match filter.status {
        Some(StatusFilter::Expired) => unswept(cx, filter, kinds)?,
        _ => Vec::new(),
    };
    let mut best = overdue.clone();
    let keep = |best: &mut Vec<i64>| {
        best.sort_unstable_by(|a, b| b.cmp(a));
        best.truncate(wanted);
    };
    keep(&mut best);
    for slots in slots.chunks(width) {
        // What lies behind the last of a full page cannot be on it.
        let behind = best.get(wanted.saturating_sub(1)).copied().unwrap_or(NONE);
        let values = values(
            cx.org(),
            filter,
            [
                behind,
                ends_behind.as_ms(),
                i64::try_from(wanted).unwrap_or(i64::MAX),
            ],
            &[],
            (slots, width),
        );
        best.extend(cx.query(newest, &values, |row| row.get::<i64>(0))?);
        keep(&mut best);
    }
    let total = if best.len() < wanted {
        i64::try_from(best.len()).unwrap_or(i64::MAX)
    } else {
        let range = [states[0], states[states.len() - 1], ends_behind.as_ms()];
        let known = i64::try_from(overdue.len()).unwrap_or(i64::MAX);
        sum(cx, filter, kinds, count, range, known)?
    };
    let page = best.split_off(best.len().min(usize::try_from(offset).unwrap_or(usize::MAX)));
    Ok((page, total))
}

/// The values of a statement over ranges: `?1` to `?6`, what is `between`, and the places, filled up.
fn values<'a>(
    org: &'a str,
    filter: &Filter<'a>,
    three: [i64; 3],
    between: &[i64],
    (slots, width): (&[i64], usize),
) -> Vec<Param<'a>> {
    let mut values = vec![Param::from(org)];
    values.extend(three.map(Param::from));
    values.push(Param::from(filter.client));
    values.push(Param::from(filter.account));
    values.extend(between.iter().copied().map(Param::from));
    values.extend((0..width).map(|place| Param::from(*slots.get(place).unwrap_or(&NONE))));
    values
}

/// Sums the sizes of ranges, up to one more than [`MAX_TOTAL`].
fn sum(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    kinds: Option<&[i64]>,
    count: &'static Statement,
    range: [i64; 3],
    known: i64,
) -> Result<i64> {
    let mut total = known;
    let (places, width): (Vec<&[i64]>, usize) = match kinds {
        None => (vec![&[]], 0),
        Some(kinds) => (kinds.chunks(pages::SLOTS).collect(), pages::SLOTS),
    };
    for kinds in places {
        let most = MAX_TOTAL + 1 - total;
        if most <= 0 {
            break;
        }
        let values = values(cx.org(), filter, range, &[most], (kinds, width));
        total += cx
            .query_opt(count, &values, |row| row.get::<i64>(0))?
            .unwrap_or(0);
    }
    Ok(total)
}

/// Returns the numbers of what has run out and is not written down.
fn unswept(cx: &mut Cx<'_>, filter: &Filter<'_>, kinds: Option<&[i64]>) -> Result<Vec<i64>> {
    let (org, now) = (cx.org(), cx.now());
    let kinds: Option<BTreeSet<i64>> = kinds.map(|kinds| kinds.iter().copied().collect());
    let found = cx.query(
        &pages::UNSWEPT,
        params![org, now, filter.client, filter.account],
        |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?)),
    )?;
    let wanted = |kind: &i64| kinds.as_ref().is_none_or(|kinds| kinds.contains(kind));
    Ok(found
        .into_iter()
        .filter(|(_, kind)| wanted(kind))
        .map(|(seq, _)| seq)
        .collect())
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
    let mut paged = values.clone();
    paged.extend(params![limit, offset].iter().cloned());
    let seqs = cx.query(question.page, &paged, |row| row.get::<i64>(0))?;
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
