//! Lists by exact filters on PostgreSQL, which merges ranges itself: two statements are one list (ADR 0028).
//!
//! The first says how many there are, by the store's own counts or, of an account, by counting; the second gives the page.
//! An index of states is read newest first, and what the filter does not ask for is passed over; where that would pass over
//! more than there is to read, every kind is read by itself. Both give the same page.
//!
//! Keeps MS-3: as everywhere, the sessions of the filter at the instant of the request, newest first, each once.

use super::find::{Filter, Found, MAX_TOTAL};
use super::merged_pages::{
    PAGE, PAGE_OF_ACCOUNT, PAGE_OF_BOTH, PAGE_OF_CLIENT, PAGE_OF_CLIENT_KINDS, PAGE_OF_KINDS, PLAN_ONCE,
    TOTALS, TOTALS_OF_ACCOUNT, TOTALS_OF_BOTH,
};
use super::store;
use super::view::StatusFilter;
use provost_kernel::db::{Param, Statement};
use provost_kernel::{Cx, Result, Timestamp, params};

/// Returns one page; `None` while ends of many sessions at once are being written down, which no index shows.
pub fn page(cx: &mut Cx<'_>, filter: &Filter<'_>, limit: i64, offset: i64) -> Result<Option<Found>> {
    let (org, now) = (cx.org(), cx.now());
    let wanted = limit.saturating_add(offset);
    // Active is what has not run out; among the others the time does not matter.
    let ends_behind = match filter.status {
        Some(StatusFilter::Active) => now,
        _ => Timestamp::from_ms(-1),
    };
    let state = filter.status.map(|status| status.state().code());
    let (scope, toolset) = (filter.scope_pattern(), filter.toolset_pattern());
    let (scope, toolset) = (scope.as_deref(), toolset.as_deref());
    let narrowed = |time: Timestamp, others: &[Param<'static>]| {
        let (client, account) = (filter.client, filter.account);
        let mut values = params![
            org,
            time,
            state,
            client,
            account,
            filter.actor_type,
            scope,
            toolset
        ]
        .to_vec();
        values.extend_from_slice(others);
        values
    };
    cx.queue(&PLAN_ONCE, params![])?;
    let (of, most) = match (filter.client, filter.account) {
        (_, None) => (&TOTALS, wanted),
        (None, Some(_)) => (&TOTALS_OF_ACCOUNT, MAX_TOTAL + 1),
        (Some(_), Some(_)) => (&TOTALS_OF_BOTH, MAX_TOTAL + 1),
    };
    let totals = cx.query_opt(of, &narrowed(now, params![most]), |row| {
        Ok(Totals {
            all: row.get(0)?,
            named: row.get(1)?,
            by_kind: row.get(2)?,
            overdue: row.get::<Option<String>>(3)?.unwrap_or_default(),
            are_ending: row.get(4)?,
        })
    })?;
    let Some(totals) = totals.filter(|totals| !totals.are_ending) else {
        return Ok(None);
    };
    let overdue = i64::try_from(totals.overdue.split_ascii_whitespace().count()).unwrap_or(i64::MAX);
    // What has run out counts as active in the store until that is written down.
    let total = match filter.status {
        Some(StatusFilter::Active) => totals.named - overdue,
        Some(StatusFilter::Expired) => totals.named + overdue,
        _ => totals.named,
    };
    let mut found = Found {
        total: total.min(MAX_TOTAL),
        is_exact: total <= MAX_TOTAL,
        ..Found::default()
    };
    if total > offset {
        let page = statement(filter, &totals, wanted);
        // They are active in the store, and with every other state they are among its rows.
        let overdue = match filter.status {
            Some(StatusFilter::Expired) => totals.overdue,
            _ => String::new(),
        };
        let others = params![limit, offset, wanted, overdue];
        let read = cx.query(page, &narrowed(ends_behind, others), store::read)?;
        found.sessions = read.into_iter().map(|session| session.at(now, &[])).collect();
    }
    Ok(Some(found))
}

/// How many there are; of an account only those that are asked for.
struct Totals {
    all: i64,
    named: i64,
    by_kind: i64,
    overdue: String,
    are_ending: bool,
}

/// Returns what gives the page.
fn statement(filter: &Filter<'_>, totals: &Totals, wanted: i64) -> &'static Statement {
    // One in so many is of a kind that is asked for.
    let passed_over = wanted.saturating_mul(totals.all) / totals.named.max(1);
    let is_rare = totals.by_kind < passed_over.min(totals.all);
    match (filter.client.is_some(), filter.account.is_some()) {
        (false, false) if is_rare => &PAGE_OF_KINDS,
        (true, false) if is_rare => &PAGE_OF_CLIENT_KINDS,
        (false, false) => &PAGE,
        (true, false) => &PAGE_OF_CLIENT,
        (false, true) => &PAGE_OF_ACCOUNT,
        (true, true) => &PAGE_OF_BOTH,
    }
}
