//! Lists that are narrowed by filters and paged by `limit` and `offset`, newest first, with a total.
//!
//! Every item of such a list has a number, and a larger number is newer. An area declares its filters and a few statements;
//! [`Listing::find`] chooses among them and returns the numbers of one page. Every statement has one text for both engines.
//! Its first parameters are the same: `?1` the organization, `?2` the instant of the request, `?3` and on the filters in
//! declared order (`NULL` is not asked for), and behind them, as `m`, how many numbers are wanted at most.
//!
//! ```text
//! ranges   m, m+1 = the last number that is not wanted: a row for each range of an index, its newest numbers as one text
//! named    m, m+1 = pattern of the text, m+2 = part of it: rows of numbers, of whatever has the text, in any order
//! scan     m, m+1 = pattern, m+2 = part, m+3 = offset: a number in each row, newest first; the text may be NULL
//! ```
//!
//! A *range* is what one index holds together and in order. A list that asks for thirty kinds reads thirty ranges: a few
//! of the newest of each at first, and more of those that may have more on the page. A subquery that returns its numbers as
//! one text ([`as_text!`]) is run for each range by either engine, and it stops at its limit; a join would read everything.
//!
//! The total is counted by the same statements, and therefore costs no more than it says: it is exact up to what the caller
//! wants to know, and beyond that only that there are more.
//!
//! Absent on purpose: statistics, counters that have to be kept, and hints to an engine.

use crate::db::{Param, Statement};
use crate::{Error, OperationContext, Result, params};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;

/// Pages that end behind this are read by their offset instead of by everything before them.
const FAR: i64 = 10_000;
/// So many more are read of each range at first than its share would be.
const MARGIN: i64 = 16;
/// An index of substrings is asked for so much of a text: the end, which tells more than the beginning.
/// Units: characters.
const MAX_PART: usize = 12;

/// Returns SQL for the numbers that a subquery finds, as one text with a space between them.
#[macro_export]
macro_rules! as_text {
    ($found:expr) => {
        concat!(
            "(SELECT string_agg(CAST(found.seq AS TEXT), ' ') FROM (",
            $found,
            ") AS found)"
        )
    };
}
pub use as_text;

/// How many items one statement fetches by their numbers: as many as a page can have.
pub const FETCHED: usize = 100;

/// Returns SQL for the places of [`FETCHED`] numbers.
#[macro_export]
macro_rules! fetched {
    () => {
        "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51, ?52, ?53, ?54, ?55, ?56, ?57, ?58, ?59, ?60, ?61, ?62, ?63, ?64, ?65, ?66, ?67, ?68, ?69, ?70, ?71, ?72, ?73, ?74, ?75, ?76, ?77, ?78, ?79, ?80, ?81, ?82, ?83, ?84, ?85, ?86, ?87, ?88, ?89, ?90, ?91, ?92, ?93, ?94, ?95, ?96, ?97, ?98, ?99, ?100)"
    };
}
pub use fetched;

/// One list of an area.
#[derive(Debug)]
pub struct Listing {
    /// The names of the filters, in the order of their parameters.
    pub filters: &'static [&'static str],
    /// The ranges that can be read. The first entry of which every lead is asked for is taken; the last one has no lead.
    pub ranges: &'static [Ranges],
    /// Finds what has a text.
    pub named: &'static Statement,
    /// Reads the list from its beginning, whatever is asked for.
    pub scan: &'static Statement,
}

/// Ranges of one index.
#[derive(Debug)]
pub struct Ranges {
    /// The filters that lead to the index: of every group at least one must be asked for.
    pub leads: &'static [&'static [&'static str]],
    /// Reads the newest of each range.
    pub statement: &'static Statement,
    /// Among how many ranges a page is expected to be spread: each is first asked for this part of it.
    pub spread: i64,
}

/// What somebody asks of a list.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// The values of the filters in declared order, `NULL` for those that are not asked for.
    pub filters: Vec<Param<'a>>,
    /// A text that items must have, folded as the store holds it.
    pub text: Option<String>,
    /// Whether the indexes do not show yet what the store's rows say, so that every row has to be looked at.
    pub is_unsettled: bool,
    /// How many items the page has at most.
    pub limit: i64,
    /// How many items stand before the page.
    pub offset: i64,
    /// Up to how many the total is exact.
    pub counted: i64,
}

impl Query<'_> {
    fn end(&self) -> i64 {
        self.limit.saturating_add(self.offset)
    }
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The numbers of its items, newest first.
    pub numbers: Vec<i64>,
    /// How many items there are in all, at most as many as were to be counted.
    pub total: i64,
    /// Whether there are no more than that.
    pub is_exact: bool,
}

impl Selection {
    /// Returns a page of the newest items, of which at least one more than are counted are known if there are so many.
    fn of(mut newest: Vec<i64>, query: &Query<'_>) -> Self {
        let known = length(&newest);
        let before = usize::try_from(query.offset).unwrap_or(usize::MAX);
        newest.drain(..before.min(newest.len()));
        newest.truncate(usize::try_from(query.limit).unwrap_or(0));
        Self {
            numbers: newest,
            total: known.min(query.counted),
            is_exact: known <= query.counted,
        }
    }

    /// Returns a page of more items than are counted.
    fn of_many(numbers: Vec<i64>, query: &Query<'_>) -> Self {
        Self {
            numbers,
            total: query.counted,
            is_exact: false,
        }
    }
}

impl Listing {
    /// Returns the numbers of one page, and how many items there are in all.
    ///
    /// Errors: `Internal` when the declaration and the question do not fit each other; those of the store.
    ///
    /// Cost: without a text some reads of indexes for each item up to the end of the page or up to those that are counted,
    /// whichever is more. A text that no more items have than are counted costs as much as these; one that more have, and a
    /// page that ends behind 10 000 items, costs reading the list down to the page.
    pub fn find(&self, ctx: &mut OperationContext<'_>, query: &Query<'_>) -> Result<Selection> {
        if query.filters.len() != self.filters.len() {
            return Err(Error::internal(
                "a list was asked for other filters than it declares",
            ));
        }
        if let Some(text) = &query.text {
            return match self.named(ctx, query, text)? {
                Some(newest) => Ok(Selection::of(newest, query)),
                None => Ok(Selection::of_many(
                    self.scan(ctx, query, query.limit, query.offset)?,
                    query,
                )),
            };
        }
        let mut wanted = query.counted.saturating_add(1);
        if query.end() <= FAR {
            wanted = wanted.max(query.end());
        }
        let newest = if query.is_unsettled {
            self.scan(ctx, query, wanted, 0)?
        } else {
            self.merged(ctx, query, wanted)?
        };
        if length(&newest) < wanted || query.end() <= wanted {
            return Ok(Selection::of(newest, query));
        }
        Ok(Selection::of_many(
            self.scan(ctx, query, query.limit, query.offset)?,
            query,
        ))
    }

    /// Returns the newest of all ranges, as many as are wanted.
    fn merged(&self, ctx: &mut OperationContext<'_>, query: &Query<'_>, wanted: i64) -> Result<Vec<i64>> {
        let ranges = self.ranges.iter().find(|ranges| self.leads(ranges, query));
        let ranges = ranges.ok_or_else(|| Error::internal("no ranges of a list need no lead"))?;
        let most = usize::try_from(wanted).map_err(Error::internal)?;
        let mut share = (wanted / ranges.spread.max(1) + MARGIN).min(wanted);
        let mut newest: Vec<i64> = Vec::new();
        loop {
            // What is older than the last of a full page cannot be on it.
            let behind = last_of(&newest, most);
            let values = values(ctx, query, params![share, behind]);
            let lists = ctx.query(ranges.statement, &values, numbers)?;
            let full = lists.iter().filter(|list| length(list) >= share);
            let ends: Vec<i64> = full.filter_map(|list| list.last().copied()).collect();
            newest.extend(lists.into_iter().flatten());
            sort(&mut newest);
            newest.truncate(most);
            // A range that gave all that it was asked for has more, which matters if it is newer than the page's last.
            let behind = last_of(&newest, most);
            if share == wanted || ends.iter().all(|end| *end <= behind) {
                return Ok(newest);
            }
            share = share.saturating_mul(4).min(wanted);
        }
    }

    fn leads(&self, ranges: &Ranges, query: &Query<'_>) -> bool {
        let is_asked = |name: &&str| {
            let place = self.filters.iter().position(|filter| filter == name);
            place.is_some_and(|place| !matches!(query.filters[place], Param::Null))
        };
        ranges.leads.iter().all(|group| group.iter().any(is_asked))
    }

    /// Returns everything that has a text, newest first; `None` when that is more than is counted.
    fn named(
        &self,
        ctx: &mut OperationContext<'_>,
        query: &Query<'_>,
        text: &str,
    ) -> Result<Option<Vec<i64>>> {
        let most = query.counted.saturating_add(1);
        let values = values(ctx, query, params![most, containing(text), part_of(text)]);
        let lists = ctx.query(self.named, &values, numbers)?;
        let is_cut = lists.iter().any(|list| length(list) >= most);
        let mut newest = lists.concat();
        // What is found in two ways is there once.
        sort(&mut newest);
        Ok((!is_cut && length(&newest) < most).then_some(newest))
    }

    /// Returns the numbers of one page, read from the beginning of the list.
    fn scan(
        &self,
        ctx: &mut OperationContext<'_>,
        query: &Query<'_>,
        limit: i64,
        offset: i64,
    ) -> Result<Vec<i64>> {
        let pattern = query.text.as_deref().map(containing);
        let part = query.text.as_deref().map(part_of);
        let values = values(ctx, query, params![limit, pattern, part, offset]);
        ctx.query(self.scan, &values, |row| row.get(0))
    }
}

/// Returns what every statement is given, and behind it what one of them needs.
fn values<'a>(ctx: &OperationContext<'_>, query: &Query<'a>, others: &[Param<'a>]) -> Vec<Param<'a>> {
    let mut values = params![ctx.org().to_owned(), ctx.now()].to_vec();
    values.extend(query.filters.iter().cloned());
    values.extend(others.iter().cloned());
    values
}

/// Reads numbers that came as one text.
fn numbers(row: &crate::db::Row<'_>) -> Result<Vec<i64>> {
    let text = row.get::<Option<String>>(0)?.unwrap_or_default();
    let numbers = text.split_ascii_whitespace();
    numbers
        .map(|number| number.parse().map_err(Error::internal))
        .collect()
}

fn sort(numbers: &mut Vec<i64>) {
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.dedup();
}

/// Returns the last number of a full page, or one that is older than every number.
fn last_of(newest: &[i64], most: usize) -> i64 {
    let last = most.checked_sub(1).and_then(|place| newest.get(place));
    last.copied().unwrap_or(-1)
}

fn length(numbers: &[i64]) -> i64 {
    i64::try_from(numbers.len()).unwrap_or(i64::MAX)
}

/// Returns the values of a statement that fetches up to [`FETCHED`] items; the last number fills what is left.
pub fn places(numbers: &[i64]) -> Vec<Param<'static>> {
    let last = numbers.last().copied().unwrap_or(-1);
    let number = |place| Param::from(numbers.get(place).copied().unwrap_or(last));
    (0..FETCHED).map(number).collect()
}

/// Returns a pattern for what contains a text; it needs `ESCAPE '\'`.
pub fn containing(text: &str) -> String {
    format!("%{}%", escaped(text))
}

/// Returns a pattern that matches exactly this text; it needs `ESCAPE '\'`.
pub fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Returns a pattern for an index of substrings: whatever contains the text matches it, and it needs no escape, with
/// which neither engine could use the index.
fn part_of(text: &str) -> String {
    let plain = text
        .split(['%', '_', '\\'])
        .max_by_key(|part| part.chars().count());
    let plain = plain.unwrap_or_default();
    let skipped = plain.chars().count().saturating_sub(MAX_PART);
    let part: String = plain.chars().skip(skipped).collect();
    format!("%{part}%")
}

/// What a filter compares with: 1 to `MAX` characters, none of them a control character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterText<const MAX: usize>(String);

impl<const MAX: usize> FilterText<MAX> {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for FilterText<MAX> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        if (1..=MAX).contains(&text.chars().count()) && !text.contains(char::is_control) {
            return Ok(Self(text.into_owned()));
        }
        Err(serde::de::Error::custom(format!(
            "must have 1 to {MAX} characters and no control character"
        )))
    }
}

impl<const MAX: usize> JsonSchema for FilterText<MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("FilterText_{MAX}").into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "minLength": 1, "maxLength": MAX,
            "pattern": r"^[^\u0000-\u001F\u007F-\u009F]+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(limit: i64, offset: i64) -> Query<'static> {
        Query {
            filters: Vec::new(),
            text: None,
            is_unsettled: false,
            limit,
            offset,
            counted: 3,
        }
    }

    #[test]
    fn a_page_says_how_many_there_are_as_far_as_they_are_counted() {
        for (limit, offset, expected) in [
            (2, 0, vec![9, 8]),
            (2, 2, vec![7]),
            (2, 3, vec![]),
            (100, (1 << 53) - 1, vec![]),
        ] {
            let found = Selection::of(vec![9, 8, 7], &query(limit, offset));
            assert_eq!(found.numbers, expected);
            assert_eq!((found.total, found.is_exact), (3, true));
        }
        let found = Selection::of(vec![9, 8, 7, 6], &query(2, 2));
        assert_eq!(found.numbers, [7, 6]);
        assert_eq!((found.total, found.is_exact), (3, false));
    }

    #[test]
    fn patterns_mean_the_text_itself() {
        assert_eq!(containing("a_b%c\\"), "%a\\_b\\%c\\\\%");
        assert_eq!(part_of("100%_sure"), "%sure%");
        assert_eq!(part_of("%"), "%%");
        assert_eq!(part_of("person number10303 of"), "%mber10303 of%");
        assert_eq!(part_of("straße"), "%straße%");
    }

    #[test]
    fn places_are_always_as_many_as_a_statement_has() {
        assert_eq!(places(&[5, 4]).len(), FETCHED);
        let last = format!("?{FETCHED})");
        assert!(fetched!().ends_with(&last) && fetched!().matches('?').count() == FETCHED);
    }
}
