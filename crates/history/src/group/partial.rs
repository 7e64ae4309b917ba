//! The groups that one thread has found so far.

use super::{GroupingContext, Groups, ranks};
use crate::batch::{Column, Dictionary, Values};
use crate::error::{Error, Result};
use crate::plan::{EventPosition, Plan, Unit};
use crate::segment::{DAY_MS, mix};
use crate::symbols::Symbols;
use crate::texts::Texts;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) struct Partial {
    symbols: Vec<Symbols>,
    /// For each group its codes, one for each column.
    keys: Vec<u32>,
    table: HashTable<u32>,
    /// How many groups there are.
    count: usize,
    /// The newest event of each group; of those at one instant the last of the source that was seen first.
    newest: Vec<(i64, EventPosition)>,
    /// The newest events of other sources at the same instant: their ids decide, at the end.
    rivals: HashMap<u32, Vec<EventPosition>>,
    /// For each day, for each group that was known then, how many events. One day's counts lie side by side, as
    /// events come day after day.
    days: Vec<Vec<u32>>,
    /// For each local code how many events and the last row; used again for every day.
    tally: Vec<(u32, u32)>,
}

/// Rows of a unit: their instants, and for each a local code.
pub(super) struct Run<'a> {
    pub(super) unit: &'a Unit,
    pub(super) at: &'a [i64],
    pub(super) codes: &'a [u32],
    /// For each local code the place of its projection in what is known of the source.
    pub(super) places: &'a [u32],
}

/// What is known of a distinct projection of a source.
#[derive(Clone, Copy, Default)]
pub(super) struct SourceProjections {
    group: Option<u32>,
    /// The newest event of the source that has this projection.
    newest: Option<(i64, EventPosition)>,
}

/// Columns in the codes of a partial.
pub(super) struct Keys<'a> {
    columns: &'a [Column],
    translated: Vec<Vec<u32>>,
}

impl Keys<'_> {
    /// Puts the codes of a row into `key`.
    fn read(&self, row: u32, key: &mut Vec<u32>) {
        key.clear();
        let columns = self.columns.iter().zip(&self.translated);
        key.extend(columns.map(|(column, translated)| translated[column.codes[row as usize] as usize]));
    }
}

impl Partial {
    pub(super) fn new(frame: &GroupingContext<'_>) -> Self {
        let symbols = frame
            .columns
            .iter()
            .map(|index| Symbols::new(frame.schema.columns()[*index].kind));
        Self {
            symbols: symbols.collect(),
            keys: Vec::new(),
            table: HashTable::new(),
            count: 0,
            newest: Vec::new(),
            rivals: HashMap::new(),
            days: vec![Vec::new(); frame.days.count],
            tally: Vec::new(),
        }
    }

    /// Translates the dictionaries of these columns, once per entry.
    pub(super) fn keys<'a>(
        &mut self,
        columns: &'a [Column],
        frame: &GroupingContext<'_>,
    ) -> Result<Keys<'a>> {
        let mut translated = Vec::with_capacity(columns.len());
        for (symbols, column) in self.symbols.iter_mut().zip(columns) {
            translated.push(symbols.translate(&column.dictionary)?);
        }
        self.check_values(frame)?;
        Ok(Keys { columns, translated })
    }

    /// Adds the rows of a run.
    ///
    /// The projection at place `p` of `known` is that of row `p` of the columns of `keys`, or of the row that
    /// `rows` names for it.
    pub(super) fn add(
        &mut self,
        frame: &GroupingContext<'_>,
        run: &Run<'_>,
        keys: &Keys<'_>,
        rows: Option<&[u32]>,
        known: &mut [SourceProjections],
    ) -> Result<()> {
        let mut tally = std::mem::take(&mut self.tally);
        let mut key = Vec::with_capacity(frame.columns.len());
        let mut start = 0;
        while start < run.at.len() {
            let day = run.at[start].div_euclid(DAY_MS);
            let end = start + run.at[start..].partition_point(|at| at.div_euclid(DAY_MS) == day);
            let day = usize::try_from(day - frame.days.first).unwrap_or(usize::MAX);
            tally.clear();
            tally.resize(run.places.len(), (0, 0));
            for (row, code) in (0..).zip(&run.codes[start..end]) {
                let (count, last) = &mut tally[*code as usize];
                *count += 1;
                *last = row;
            }
            for ((count, last), place) in tally.iter().zip(run.places) {
                if *count == 0 {
                    continue;
                }
                let known = &mut known[*place as usize];
                let group = if let Some(group) = known.group {
                    group
                } else {
                    keys.read(rows.map_or(*place, |rows| rows[*place as usize]), &mut key);
                    *known.group.insert(self.group(frame, &key)?)
                };
                let row = start + *last as usize;
                known.newest = Some((run.at[row], run.unit.place(row)));
                self.count_on(day, group, *count);
            }
            start = end;
        }
        self.tally = tally;
        Ok(())
    }

    /// Remembers the newest events of a source, of which all rows were added.
    pub(super) fn settle(&mut self, known: &[SourceProjections]) {
        for known in known {
            if let (Some(group), Some((at, place))) = (known.group, known.newest) {
                self.see(group, at, place);
            }
        }
    }

    fn count_on(&mut self, day: usize, group: u32, count: u32) {
        let day = &mut self.days[day];
        if day.len() <= group as usize {
            day.resize(self.count, 0);
        }
        day[group as usize] += count;
    }

    /// Remembers the event if it may be the newest of the group.
    fn see(&mut self, group: u32, at: i64, place: EventPosition) {
        let newest = &mut self.newest[group as usize];
        if newest.1 == NOWHERE {
            *newest = (at, place);
            return;
        }
        if at > newest.0 {
            *newest = (at, place);
            self.rivals.remove(&group);
        } else if at == newest.0 && place.source == newest.1.source {
            // Within a source events lie in the order of (instant, event id).
            newest.1 = newest.1.max(place);
        } else if at == newest.0 {
            let rivals = self.rivals.entry(group).or_default();
            match rivals.iter_mut().find(|rival| rival.source == place.source) {
                Some(rival) => *rival = (*rival).max(place),
                None => rivals.push(place),
            }
        }
    }

    /// Returns the group with this key, a new one if there is none.
    fn group(&mut self, frame: &GroupingContext<'_>, key: &[u32]) -> Result<u32> {
        let hash = key.iter().fold(0, |hash, code| mix(hash, *code));
        let width = key.len();
        let keys = &self.keys;
        if let Some(group) = self
            .table
            .find(hash, |group| &keys[*group as usize * width..][..width] == key)
        {
            return Ok(*group);
        }
        let count = self.count + 1;
        if count > frame.limits.groups || count.saturating_mul(frame.days.count) > frame.limits.cells {
            return Err(Error::TooDistinct);
        }
        let group = index(self.count);
        self.keys.extend_from_slice(key);
        let keys = &self.keys;
        self.table.insert_unique(hash, group, |group| {
            keys[*group as usize * width..][..width]
                .iter()
                .fold(0, |hash, code| mix(hash, *code))
        });
        self.newest.push((i64::MIN, NOWHERE));
        self.count = count;
        Ok(group)
    }

    fn check_values(&self, frame: &GroupingContext<'_>) -> Result<()> {
        if self.symbols.iter().map(Symbols::memory).sum::<usize>() > frame.limits.value_bytes {
            return Err(Error::TooDistinct);
        }
        Ok(())
    }

    /// Adds what another thread has found.
    pub(super) fn join(&mut self, other: &Self, frame: &GroupingContext<'_>) -> Result<()> {
        let mut translated = Vec::new();
        for (symbols, others) in self.symbols.iter_mut().zip(&other.symbols) {
            translated.push(symbols.translate(others.dictionary())?);
        }
        self.check_values(frame)?;
        let mut groups = Vec::with_capacity(other.count);
        for key in other.keys.chunks(frame.columns.len()) {
            let key: Vec<u32> = key
                .iter()
                .zip(&translated)
                .map(|(code, codes)| codes[*code as usize])
                .collect();
            groups.push(self.group(frame, &key)?);
        }
        for (day, counts) in other.days.iter().enumerate() {
            for (count, group) in counts.iter().zip(&groups).filter(|(count, _)| **count > 0) {
                self.count_on(day, *group, *count);
            }
        }
        for (theirs, ((at, place), group)) in (0..).zip(other.newest.iter().zip(&groups)) {
            self.see(*group, *at, *place);
            for rival in other.rivals.get(&theirs).into_iter().flatten() {
                self.see(*group, *at, *rival);
            }
        }
        Ok(())
    }

    /// Of the newest events of a group at one instant, takes that with the highest id.
    fn decide_rivals(&mut self, plan: &Plan) -> Result<()> {
        let mut groups = Vec::new();
        let mut places = Vec::new();
        for (group, rivals) in std::mem::take(&mut self.rivals) {
            places.push(self.newest[group as usize].1);
            places.extend(rivals);
            groups.resize(places.len(), group);
        }
        let mut best: HashMap<u32, (String, EventPosition)> = HashMap::new();
        for ((group, id), place) in groups.into_iter().zip(plan.ids(&places)?).zip(places) {
            let candidate = (id, place);
            match best.get_mut(&group) {
                Some(best) if *best >= candidate => {}
                Some(best) => *best = candidate,
                None => drop(best.insert(group, candidate)),
            }
        }
        for (group, (_, place)) in best {
            self.newest[group as usize].1 = place;
        }
        Ok(())
    }

    /// Returns the groups in the order of their values, in dictionaries of the values that occur.
    pub(super) fn finish(mut self, plan: &Plan, frame: &GroupingContext<'_>) -> Result<Groups> {
        self.decide_rivals(plan)?;
        let width = frame.columns.len();
        let ranks: Vec<Vec<u32>> = self
            .symbols
            .iter()
            .map(|symbols| ranks(symbols.dictionary()))
            .collect();
        for (place, code) in self.keys.iter_mut().enumerate() {
            *code = ranks[place % width][*code as usize];
        }
        let order = order(&self.keys, &ranks);
        let key = |group: u32| &self.keys[group as usize * width..][..width];
        let mut columns = Vec::with_capacity(width);
        for (place, symbols) in self.symbols.iter().enumerate() {
            let codes = order.iter().map(|group| key(*group)[place]).collect();
            columns.push(compact(codes, symbols.dictionary(), &ranks[place])?);
        }
        let mut days = Vec::with_capacity(frame.days.count);
        let mut counts = vec![0; self.count];
        for day in &self.days {
            let day: Vec<u32> = order
                .iter()
                .map(|group| day.get(*group as usize).copied().unwrap_or(0))
                .collect();
            for (sum, count) in counts.iter_mut().zip(&day) {
                *sum += u64::from(*count);
            }
            days.push(day);
        }
        let newest = order.iter().map(|group| self.newest[*group as usize]);
        let (newest_at, newest) = newest.unzip();
        Ok(Groups {
            columns,
            counts,
            newest_at,
            newest,
            first_day: frame.days.first,
            days,
        })
    }
}

/// Returns the groups in the order of their keys, which are ranks.
fn order(keys: &[u32], ranks: &[Vec<u32>]) -> Vec<u32> {
    let groups = (0_u32..).zip(keys.chunks(ranks.len()));
    let all = ranks
        .iter()
        .try_fold(1_u128, |all, ranks| all.checked_mul(ranks.len() as u128));
    if all.is_none() {
        let mut order: Vec<(u32, &[u32])> = groups.collect();
        order.sort_unstable_by_key(|(_, key)| *key);
        return order.into_iter().map(|(group, _)| group).collect();
    }
    // Mostly a key is one number, and numbers are sorted several times as fast as lists.
    let number = |key: &[u32]| {
        let digits = key.iter().zip(ranks);
        digits.fold(0, |number, (rank, ranks)| {
            number * ranks.len() as u128 + u128::from(*rank)
        })
    };
    let mut order: Vec<(u128, u32)> = groups.map(|(group, key)| (number(key), group)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, group)| group).collect()
}

/// The place of the newest event of a group that was made just now.
const NOWHERE: EventPosition = EventPosition {
    source: u32::MAX,
    group: u32::MAX,
    row: u32::MAX,
};

/// Returns the column of these ranks with a sorted dictionary of the values that occur.
fn compact(mut codes: Vec<u32>, dictionary: &Dictionary, ranks: &[u32]) -> Result<Column> {
    let mut by_rank = vec![0_usize; ranks.len()];
    for (code, rank) in ranks.iter().enumerate() {
        by_rank[*rank as usize] = code;
    }
    let mut occurs = vec![dictionary.kind == crate::schema::Kind::Boolean; ranks.len()];
    for code in &codes {
        occurs[*code as usize] = true;
    }
    let kept: Vec<usize> = (1..ranks.len()).filter(|rank| occurs[*rank]).collect();
    let mut renamed = vec![0; ranks.len()];
    for (code, rank) in (1..).zip(&kept) {
        renamed[*rank] = code;
    }
    for code in &mut codes {
        *code = renamed[*code as usize];
    }
    let kept = kept.into_iter().map(|rank| by_rank[rank] - 1);
    let values = match &dictionary.values {
        Values::Texts(texts) => {
            let mut all = Texts::default();
            kept.into_iter()
                .try_for_each(|place| all.push(texts.get(place)))?;
            Values::Texts(all)
        }
        Values::Numbers(all) => Values::Numbers(kept.map(|place| all[place]).collect()),
        Values::Instants(all) => Values::Instants(kept.map(|place| all[place]).collect()),
        Values::Booleans => Values::Booleans,
    };
    Ok(Column {
        codes,
        dictionary: Arc::new(Dictionary {
            kind: dictionary.kind,
            values,
        }),
    })
}

/// Returns a place as it is kept; sources, row groups and rows are counted in 32 bits.
fn index(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Eight columns of 65 536 values are one number more than 128 bits hold.
        #[test]
        fn groups_are_in_the_order_of_their_lists(seeds in prop::collection::vec(any::<[u16; 9]>(), 1..40), width in 1_usize..=9) {
            let ranks: Vec<Vec<u32>> = vec![vec![0; 65_536]; width];
            let mut lists: Vec<Vec<u32>> =
                seeds.iter().map(|seed| seed[..width].iter().map(|rank| u32::from(*rank % 4)).collect()).collect();
            lists.sort_unstable();
            lists.dedup();
            lists.reverse();
            let want: Vec<u32> = (0..index(lists.len())).rev().collect();
            prop_assert_eq!(order(&lists.concat(), &ranks), want);
        }
    }
}
