//! Finds the sessions of a filter: one page, newest first, and how many there are in all.
//!
//! Three ways lead to the same answer. Exact filters are ranges of indexes (`ranges.rs`, on PostgreSQL `merged.rs`): actor
//! type, scope and toolset name kinds, of which an organization has few. A substring names actors, clients and ids
//! (`named.rs`). Everything else reads what there is: pages of substrings that more sessions have than are counted, far
//! pages, and the moments in which a job writes the end of many sessions down.
//!
//! Keeps MS-3: every way gives the sessions of the filter at the instant of the request, in the order of `issuedAt`,
//! `id`, and each exactly once.

use super::merged_pages::FETCH_ALL;
use super::model::{Cut, Session, State};
use super::named::Named;
use super::view::StatusFilter;
use super::{merged, named, pages, ranges, store};
use provost_kernel::auth::{ScopeSet, TOOLSETS};
use provost_kernel::db::{Engine, Param};
use provost_kernel::text::name_key;
use provost_kernel::{Cx, Result, params};
use std::collections::HashMap;

/// LIMIT: what a total says exactly (D7.8).
pub const MAX_TOTAL: i64 = 10_000;
/// Pages behind this are read by a scan: merging ranges holds all that stands before them.
const MAX_MERGED: i64 = 10_000;

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

impl Filter<'_> {
    /// Returns what the scopes of a kind are compared with: all of them stand in one text, with a space around each.
    pub fn scope_pattern(&self) -> Option<String> {
        self.scope.map(|scope| format!("% {} %", named::escaped(scope)))
    }

    /// The same for the toolset, which every scope begins with.
    pub fn toolset_pattern(&self) -> Option<String> {
        self.toolset
            .map(|toolset| format!("% {}:%", named::escaped(toolset)))
    }
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
    // A substring that every id has narrows nothing.
    let text = filter
        .text
        .map(name_key)
        .filter(|text| !named::is_in_every_id(text));
    // A merge passes over all that stands before a page, one by one; far pages are read faster in one go.
    let is_merged = text.is_none() && filter.user.is_none() && offset <= MAX_MERGED;
    if is_merged
        && cx.tx().engine() == Engine::Postgres
        && let Some(found) = merged::page(cx, filter, limit, offset)?
    {
        return Ok(found);
    }
    let org = cx.org();
    let cuts = store::cuts(&mut cx.tx(), org)?;
    let (seqs, total) = numbers(cx, filter, text.as_deref(), &cuts, (limit, offset))?;
    Ok(Found {
        sessions: fetch(cx, &seqs, &cuts)?,
        total: total.min(MAX_TOTAL),
        is_exact: total <= MAX_TOTAL,
    })
}

/// Returns the numbers of one page, and the total up to one more than [`MAX_TOTAL`].
fn numbers(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    text: Option<&str>,
    cuts: &[Cut],
    (limit, offset): (i64, i64),
) -> Result<(Vec<i64>, i64)> {
    // What is not written down yet, and a user, stand in no index of these.
    let is_indexed = cuts.is_empty() && filter.user.is_none();
    match text {
        Some(text) if is_indexed => match named::newest(cx, filter, text, limit.saturating_add(offset))? {
            Named::Newest(seqs, total) => Ok((page_of(seqs, limit, offset), total)),
            Named::Many => Ok((scan(cx, filter, Some(text), (limit, offset))?, MAX_TOTAL + 1)),
            Named::Unknown => scanned(cx, filter, Some(text), (limit, offset)),
        },
        None if is_indexed && offset <= MAX_MERGED => match ranges::kinds(cx, filter)? {
            Some(kinds) => ranges::merged(cx, filter, kinds.as_deref(), limit, offset),
            None => scanned(cx, filter, None, (limit, offset)),
        },
        _ => scanned(cx, filter, text, (limit, offset)),
    }
}

fn page_of(mut seqs: Vec<i64>, limit: i64, offset: i64) -> Vec<i64> {
    let (first, length) = (usize::try_from(offset), usize::try_from(limit));
    seqs.drain(..first.unwrap_or(usize::MAX).min(seqs.len()));
    seqs.truncate(length.unwrap_or(0));
    seqs
}

/// Reads what there is: the numbers of one page, and the total up to one more than [`MAX_TOTAL`].
fn scanned(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    text: Option<&str>,
    (limit, offset): (i64, i64),
) -> Result<(Vec<i64>, i64)> {
    // A count reads all that the page is taken from, so that one reading gives both.
    if offset + limit <= MAX_TOTAL {
        let seqs = scan(cx, filter, text, (MAX_TOTAL + 1, 0))?;
        let total = i64::try_from(seqs.len()).unwrap_or(i64::MAX);
        return Ok((page_of(seqs, limit, offset), total));
    }
    let seqs = scan(cx, filter, text, (limit, offset))?;
    let length = i64::try_from(seqs.len()).unwrap_or(i64::MAX);
    if length < limit && length > 0 {
        return Ok((seqs, offset + length));
    }
    let mut values = narrowing(cx, filter, text);
    values.push(Param::from(MAX_TOTAL + 1));
    let total = cx.query_opt(&pages::COUNT_SCAN, &values, |row| row.get::<i64>(0))?;
    Ok((seqs, total.unwrap_or(0)))
}

/// Returns the numbers of one page, met one by one.
fn scan(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    text: Option<&str>,
    (limit, offset): (i64, i64),
) -> Result<Vec<i64>> {
    if cx.tx().engine() == Engine::Postgres {
        cx.queue(&pages::PLAN_ANEW, params![])?;
    }
    let mut values = narrowing(cx, filter, text);
    values.extend(params![limit, offset].iter().cloned());
    cx.query(&pages::SCAN, &values, |row| row.get::<i64>(0))
}

/// The values of a scan.
fn narrowing<'a>(cx: &Cx<'_>, filter: &Filter<'a>, text: Option<&str>) -> Vec<Param<'a>> {
    let state = filter.status.map(|status| status.state().code());
    let (org, now) = (cx.org(), cx.now());
    params![
        org.to_owned(),
        now,
        state,
        filter.client,
        filter.account,
        filter.actor_type,
        filter.scope_pattern(),
        filter.toolset_pattern(),
        text.map(named::containing),
        filter.user,
    ]
    .to_vec()
}

/// Returns the sessions of these numbers as they are now, in the same order.
fn fetch(cx: &mut Cx<'_>, seqs: &[i64], cuts: &[Cut]) -> Result<Vec<Session>> {
    let (org, now) = (cx.org(), cx.now());
    let mut read = Vec::with_capacity(seqs.len());
    if cx.tx().engine() == Engine::Postgres {
        let numbers: Vec<String> = seqs.iter().map(i64::to_string).collect();
        read = cx.query(&FETCH_ALL, params![numbers.join(" ")], store::read)?;
    } else {
        for chunk in seqs.chunks(pages::FETCHED) {
            let last = chunk[chunk.len() - 1];
            let values: Vec<Param<'_>> = (0..pages::FETCHED)
                .map(|place| Param::from(*chunk.get(place).unwrap_or(&last)))
                .collect();
            read.extend(cx.query(&pages::FETCH, &values, store::read)?);
        }
    }
    let own = read.into_iter().filter(|session| session.organization_id == org);
    let mut found: HashMap<i64, Session> = own.map(|session| (session.seq, session.at(now, cuts))).collect();
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
