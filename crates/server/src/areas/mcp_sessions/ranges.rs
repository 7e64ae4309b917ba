//! Lists by ranges of indexes: exact filters name states and kinds, and the newest of each range are merged.
//!
//! INVARIANT MS-9: the counts that lists of sessions take their totals from are those of the rows, with every change.

use super::find::{Filter, MAX_TOTAL};
use super::pages;
use super::view::StatusFilter;
use provost_kernel::db::{Param, Statement};
use provost_kernel::{Cx, Result, Timestamp, params};
use std::collections::BTreeSet;

/// More kinds than this are not merged; an organization has them when clients ask for scopes at random.
const MAX_KINDS: usize = 128;
/// Returns the kinds that the filter names: `Some(None)` for every kind, `None` when there are too many to merge.
#[expect(
    clippy::option_option,
    reason = "the two absences differ: all of them, and too many"
)]
pub fn kinds(cx: &mut Cx<'_>, filter: &Filter<'_>) -> Result<Option<Option<Vec<i64>>>> {
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
struct Statements {
    newest: &'static Statement,
    /// What counts the sessions of an account; without one the store has the sizes of the ranges.
    of_account: Option<OfAccount>,
}

#[derive(Clone, Copy)]
struct OfAccount {
    more: &'static Statement,
    count: &'static Statement,
}

fn statements(filter: &Filter<'_>, by_kind: bool) -> Statements {
    let counted = |more, count| Some(OfAccount { more, count });
    let (newest, of_account) = match (filter.client.is_some(), filter.account.is_some(), by_kind) {
        (false, false, false) => (&pages::NEWEST, None),
        (true, false, false) => (&pages::NEWEST_OF_CLIENT, None),
        (false, false, true) => (&pages::NEWEST_OF_KINDS, None),
        (true, false, true) => (&pages::NEWEST_OF_CLIENT_KINDS, None),
        (false, true, false) => (
            &pages::NEWEST_OF_ACCOUNT,
            counted(&pages::MORE_OF_ACCOUNT, &pages::COUNT_OF_ACCOUNT),
        ),
        (true, true, false) => (
            &pages::NEWEST_OF_BOTH,
            counted(&pages::MORE_OF_BOTH, &pages::COUNT_OF_BOTH),
        ),
        (false, true, true) => (
            &pages::NEWEST_OF_ACCOUNT_KINDS,
            counted(&pages::MORE_OF_ACCOUNT_KINDS, &pages::COUNT_OF_ACCOUNT_KINDS),
        ),
        (true, true, true) => (
            &pages::NEWEST_OF_BOTH_KINDS,
            counted(&pages::MORE_OF_BOTH_KINDS, &pages::COUNT_OF_BOTH_KINDS),
        ),
    };
    Statements { newest, of_account }
}

/// How many states there are.
const STATES: usize = 3;

/// No kind and no state has this number; it fills the places of a statement that are not needed.
const NONE: i64 = -1;

/// Merges ranges: the numbers of one page, and the total, of which no more is exact than one more than [`MAX_TOTAL`].
pub fn merged(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    kinds: Option<&[i64]>,
    limit: i64,
    offset: i64,
) -> Result<(Vec<i64>, i64)> {
    let states = states(filter);
    // Active is what has not run out; among the others the time does not matter.
    let ends_behind = if filter.status == Some(StatusFilter::Active) {
        cx.now()
    } else {
        Timestamp::from_ms(-1)
    };
    let wanted = usize::try_from(limit.saturating_add(offset)).unwrap_or(usize::MAX);
    let statements = statements(filter, kinds.is_some());
    let ranges: Vec<Vec<i64>> = match kinds {
        None => states.iter().map(|state| vec![*state]).collect(),
        Some(kinds) => kinds
            .iter()
            .flat_map(|kind| states.iter().map(|state| vec![*kind, *state]))
            .collect(),
    };
    let overdue = match filter.status {
        Some(StatusFilter::Expired) => unswept(cx, filter, kinds)?,
        _ => Vec::new(),
    };
    let mut best = Newest::of(overdue.clone(), wanted);
    // Ranges hold about as much of a page as their sizes say, so that a part of each is enough as a rule; of one that
    // gave all it was asked for, there may be more that is newer than the last of the page.
    let share = (wanted / ranges.len().max(1) * 2 + 16).min(wanted);
    let unread = best.take(cx, filter, statements.newest, ends_behind, &ranges, share)?;
    if share < wanted {
        best.take(cx, filter, statements.newest, ends_behind, &unread, wanted)?;
    }
    let mut best = best.seqs;
    let total = if best.len() < wanted {
        i64::try_from(best.len()).unwrap_or(i64::MAX)
    } else {
        let known = i64::try_from(overdue.len()).unwrap_or(i64::MAX);
        match statements.of_account {
            Some(of_account) => {
                let range = [states[0], states[states.len() - 1], ends_behind.as_ms()];
                sum(cx, filter, kinds, of_account, range, known)?
            }
            None => known + kept(cx, filter, kinds, states)?,
        }
    };
    let page = best.split_off(best.len().min(usize::try_from(offset).unwrap_or(usize::MAX)));
    Ok((page, total))
}

/// The newest of all that was read, as many as are wanted.
struct Newest {
    seqs: Vec<i64>,
    wanted: usize,
}

impl Newest {
    fn of(seqs: Vec<i64>, wanted: usize) -> Self {
        let mut newest = Self { seqs, wanted };
        newest.keep();
        newest
    }

    fn keep(&mut self) {
        self.seqs.sort_unstable_by(|a, b| b.cmp(a));
        self.seqs.dedup();
        self.seqs.truncate(self.wanted);
    }

    /// Reads so many of the newest of each range; returns the ranges that have as many, and may have more.
    fn take(
        &mut self,
        cx: &mut Cx<'_>,
        filter: &Filter<'_>,
        statement: &'static Statement,
        ends_behind: Timestamp,
        ranges: &[Vec<i64>],
        most: usize,
    ) -> Result<Vec<Vec<i64>>> {
        let Some(width) = ranges.first().map(Vec::len) else {
            return Ok(Vec::new());
        };
        let places = if width == 1 { STATES } else { pages::SLOTS };
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let mut full = Vec::new();
        for ranges in ranges.chunks(places) {
            // What lies behind the last of a full page cannot be on it.
            let behind = self
                .seqs
                .get(self.wanted.saturating_sub(1))
                .copied()
                .unwrap_or(NONE);
            let three = [behind, ends_behind.as_ms(), limit];
            let slots = ranges.concat();
            let values = values(cx.org(), filter, three, &[], (&slots, places * width));
            let mut read = vec![0; places];
            cx.query(statement, &values, |row| {
                let place = usize::try_from(row.get::<i64>(0)?).unwrap_or(usize::MAX);
                if let Some(read) = read.get_mut(place) {
                    *read += 1;
                }
                self.seqs.push(row.get(1)?);
                Ok(())
            })?;
            self.keep();
            let reached = ranges.iter().zip(read).filter(|(_, read)| *read >= most);
            full.extend(reached.map(|(range, _)| range.clone()));
        }
        Ok(full)
    }
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

/// Returns how many sessions clients have at least, by the store's own counts.
pub fn known(cx: &mut Cx<'_>, filter: &Filter<'_>, clients: &[String], kinds: Option<&[i64]>) -> Result<i64> {
    let mut total = 0;
    for client in clients {
        let filter = Filter {
            client: Some(client),
            ..*filter
        };
        total += kept(cx, &filter, kinds, states(&filter))?;
    }
    Ok(total)
}

/// The states that a filter asks for, as the store has them.
fn states(filter: &Filter<'_>) -> &'static [i64] {
    match filter.status {
        None => &[0, 1, 2],
        Some(StatusFilter::Active) => &[0],
        Some(StatusFilter::Revoked) => &[1],
        Some(StatusFilter::Expired) => &[2],
    }
}

/// Returns how many sessions of these states there are, by the store's own counts. What has run out counts as active there
/// until that is written down.
///
/// INVARIANT MS-9: the counts are those of the rows: triggers write them in the transaction of every change.
fn kept(cx: &mut Cx<'_>, filter: &Filter<'_>, kinds: Option<&[i64]>, states: &[i64]) -> Result<i64> {
    let client = filter.client.unwrap_or_default();
    let (org, mut total) = (cx.org(), 0);
    match kinds {
        None => cx.query(&pages::COUNTS, params![org, client], |row| {
            if states.contains(&row.get(0)?) {
                total += row.get::<i64>(1)?;
            }
            Ok(())
        })?,
        Some(kinds) => cx.query(&pages::COUNTS_OF_KINDS, params![org, client], |row| {
            if kinds.contains(&row.get(0)?) && states.contains(&row.get(1)?) {
                total += row.get::<i64>(2)?;
            }
            Ok(())
        })?,
    };
    if filter.status == Some(StatusFilter::Active) {
        total -= i64::try_from(unswept(cx, filter, kinds)?.len()).unwrap_or(i64::MAX);
    }
    Ok(total)
}

/// Sums the sizes of an account's ranges, up to one more than [`MAX_TOTAL`].
fn sum(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    kinds: Option<&[i64]>,
    of_account: OfAccount,
    range: [i64; 3],
    known: i64,
) -> Result<i64> {
    let mut total = known;
    let (places, width): (Vec<&[i64]>, usize) = match kinds {
        None => (vec![&[]], 0),
        Some(kinds) => (kinds.chunks(pages::SLOTS).collect(), pages::SLOTS),
    };
    for kinds in places {
        let room = MAX_TOTAL - total;
        if room < 0 {
            break;
        }
        let beyond = values(cx.org(), filter, range, &[room], (kinds, width));
        if cx.query_opt(of_account.more, &beyond, |_| Ok(()))?.is_some() {
            return Ok(MAX_TOTAL + 1);
        }
        let values = values(cx.org(), filter, range, &[room + 1], (kinds, width));
        total += cx
            .query_opt(of_account.count, &values, |row| row.get::<i64>(0))?
            .unwrap_or(0);
    }
    Ok(total)
}

/// Returns the numbers of what has run out and is not written down.
fn unswept(cx: &mut Cx<'_>, filter: &Filter<'_>, kinds: Option<&[i64]>) -> Result<Vec<i64>> {
    let (org, now) = (cx.org(), cx.now());
    let kinds: Option<BTreeSet<i64>> = kinds.map(|kinds| kinds.iter().copied().collect());
    let mut found = Vec::new();
    cx.query(&pages::UNSWEPT, params![org, now], |row| {
        let (client, account) = (row.get::<Option<String>>(2)?, row.get::<Option<String>>(3)?);
        let kind = row.get::<i64>(1)?;
        let fits = kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
            && (filter.client.is_none() || filter.client == client.as_deref())
            && (filter.account.is_none() || filter.account == account.as_deref());
        if fits {
            found.push(row.get::<i64>(0)?);
        }
        Ok(())
    })?;
    Ok(found)
}
