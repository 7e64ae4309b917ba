//! Which words a run comes across that may mean records: a register must know them before anything is judged.

use super::work::is_lost;
use super::{Job, plan};
use crate::record::{add_texts, position};
use provost_history::scan::Watch;
use provost_history::{MAX_EVENTS, Question, Result};
use provost_policy::{Field, Projection, WITHIN_LIMIT_MS};
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [Field; 5] = [
    Field::USER,
    Field::SERVICE_ACCOUNT,
    Field::GROUPS,
    Field::SKILL,
    Field::RESOURCE,
];

/// Returns, for each attribute that names records and that one of the two sets reads, every word that the events of a run
/// have there, those of its past included. A word of an event that does not count may be among them.
///
/// What cannot be read has no words: its events are counted as errors.
///
/// Errors: `Canceled`; those of a storage that may pass.
/// Cost: reads these columns alone, and looks at each entry of a dictionary once.
pub fn words(job: &Job, watch: &Watch) -> Result<BTreeMap<Field, BTreeSet<String>>> {
    let read = Projection::of(&[&job.baseline, &job.candidate]);
    let reads = |field: Field| read.fields().binary_search(&field).is_ok();
    // The groups of a user whom several may be are those of each of them.
    let is_read = |field: &Field| reads(*field) || (*field == Field::USER && reads(Field::GROUPS));
    let fields: Vec<Field> = NAMES.into_iter().filter(is_read).collect();
    let mut words: BTreeMap<Field, BTreeSet<String>> = BTreeMap::new();
    if fields.is_empty() {
        return Ok(words);
    }
    let columns: Vec<usize> = fields.iter().map(|field| position(*field)).collect();
    let mut asked = job.question.of_history();
    if job.baseline.has_history() || job.candidate.has_history() {
        asked = Question {
            from: asked.from.saturating_sub(WITHIN_LIMIT_MS),
            max_events: MAX_EVENTS,
            ..asked
        };
    }
    let (plan, _, _) = plan(job, asked)?;
    for unit in plan.units() {
        watch.check()?;
        let batch = match plan.read(unit, &columns, false) {
            Ok(batch) => batch,
            Err(cause) if is_lost(&cause) => continue,
            Err(cause) => return Err(cause),
        };
        for (field, column) in fields.iter().zip(&batch.columns) {
            add_texts(&column.dictionary, words.entry(*field).or_default());
        }
    }
    Ok(words)
}
