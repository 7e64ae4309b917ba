//! Histories in memory, jobs over them, and what the naive evaluator finds in them.

use crate::naive::Plain;
use crate::random::{self, Dice};
use provost_backtest::record::{self, OwnedRecord};
use provost_backtest::run::{Control, Filters, Job, Outcome, Question, Results, RunEnd, Tuning, run};
use provost_history::scan::Watch;
use provost_history::{Chunk, Recorder, Sealer, Segment, Source, Storage, chunk};
use provost_policy::{Definition, Family, Occasion, PolicySet};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Objects in memory.
#[derive(Default)]
pub struct Memory(pub Mutex<HashMap<String, Vec<u8>>>);

impl Storage for Memory {
    fn size(&self, name: &str) -> io::Result<u64> {
        let all = self.0.lock().unwrap();
        all.get(name)
            .map(|bytes| bytes.len() as u64)
            .ok_or(io::ErrorKind::NotFound.into())
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<bytes::Bytes> {
        let all = self.0.lock().unwrap();
        let bytes = all.get(name).ok_or(io::ErrorKind::NotFound)?;
        let start = usize::try_from(offset).unwrap();
        let part = bytes.get(start..start + length);
        Ok(bytes::Bytes::copy_from_slice(
            part.ok_or(io::ErrorKind::UnexpectedEof)?,
        ))
    }

    fn put(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut (dyn Write + Send)) -> provost_history::Result<()>,
    ) -> provost_history::Result<()> {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        self.0.lock().unwrap().insert(name.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }
}

pub type Policies = Vec<(&'static str, Value)>;

pub fn family(word: &str) -> Family {
    Family::ALL.into_iter().find(|f| f.word() == word).unwrap()
}

pub fn compile(policies: &Policies) -> Arc<PolicySet> {
    let read = policies.iter().map(|(of, policy)| {
        Arc::new(Definition::read(family(of), policy).unwrap_or_else(|e| panic!("{policy}: {e}")))
    });
    Arc::new(PolicySet::new(read).unwrap())
}

pub fn policies(dice: &mut Dice, most: usize) -> Policies {
    let count = 1 + dice.below(most);
    (0..count)
        .map(|n| random::policy(dice, &format!("p{n}")))
        .collect()
}

pub fn occasion(event: &Plain) -> Occasion {
    Occasion::named(family(event.family), event.occasion).unwrap()
}

/// The id of the event at this place; ids follow the order of the events.
pub fn id(at: usize) -> String {
    format!("hev_{at:06}")
}

fn batch(events: &[(usize, &Plain)]) -> provost_history::Batch {
    let mut recorder = Recorder::new(record::schema());
    for (at, event) in events {
        let owned = OwnedRecord::read(event.at_ms, occasion(event), &event.attributes, &event.missing)
            .unwrap_or_else(|faults| panic!("{faults}"));
        record::put(&owned, &id(*at), &mut recorder).unwrap();
    }
    recorder.finish().unwrap()
}

/// Stores the events in so many parts, those that are true as segments, the others as chunks; they overlap in time.
pub fn sources(storage: &Arc<Memory>, events: &[Plain], layout: &[bool]) -> Vec<Source> {
    let schema = record::schema();
    let mut parts: Vec<Vec<(usize, &Plain)>> = vec![Vec::new(); layout.len()];
    for (at, event) in events.iter().enumerate() {
        // Runs of events lie together, and some others among them.
        let part = if at % 5 == 0 {
            at * 7
        } else {
            at * layout.len() / events.len()
        };
        parts[part % layout.len()].push((at, event));
    }
    let mut all = Vec::new();
    for (nth, (part, is_sealed)) in parts.iter().zip(layout).enumerate() {
        if part.is_empty() {
            continue;
        }
        let name = format!("part-{}-{nth}", layout.len());
        let shared: Arc<dyn Storage> = Arc::clone(storage) as _;
        all.push(if *is_sealed {
            let mut sealer = Sealer::new(Arc::clone(&schema));
            for some in part.chunks(1000) {
                sealer.add(&batch(some)).unwrap();
            }
            sealer.seal(storage.as_ref(), &name).unwrap();
            Source::Segment(Segment::open(shared, &name, &schema).unwrap())
        } else {
            let bytes = chunk::encode(&schema, &batch(part)).unwrap();
            storage.put(&name, &mut |out| Ok(out.write_all(&bytes)?)).unwrap();
            Source::Chunk(Chunk::new(shared, &name, chunk::summary(&bytes).unwrap()))
        });
    }
    all
}

pub fn everything() -> Question {
    Question {
        from_ms: i64::MIN,
        to_ms: i64::MAX,
        max_events: 1_000_000_000,
        filters: Filters::default(),
    }
}

pub fn job(
    baseline: &Arc<PolicySet>,
    candidate: &Arc<PolicySet>,
    sources: Vec<Source>,
    question: &Question,
) -> Job {
    Job {
        baseline: Arc::clone(baseline),
        candidate: Arc::clone(candidate),
        sources,
        unreadable: Vec::new(),
        question: question.clone(),
        register: Arc::default(),
        threads: 1,
        tuning: Tuning::default(),
    }
}

/// Runs to the end without being disturbed.
pub fn whole(job: &Job) -> Outcome {
    let watch = Watch::default();
    let control = Control {
        watch: &watch,
        is_expired: &|| false,
        checkpoint: &|_| {},
    };
    let outcome = run(job, None, &control).unwrap();
    assert_eq!(outcome.finished, RunEnd::Whole);
    assert_eq!(outcome.events_processed, outcome.events_total);
    outcome
}

/// Brings the samples, and the ids of their policies, into one order.
pub fn plain(mut results: Value) -> Value {
    let samples = results["samples"].as_array_mut().unwrap();
    for sample in samples.iter_mut() {
        for which in ["baseline", "candidate"] {
            let ids = sample[which]["policyIds"].as_array_mut().unwrap();
            ids.sort_by_key(ToString::to_string);
        }
    }
    samples.sort_by_key(ToString::to_string);
    results
}

/// Checks what every result has to keep (RP-1).
pub fn check(results: &Results) {
    let parts = results.unchanged + results.changed + results.errors + results.unknown;
    assert_eq!(parts, results.events_evaluated);
    let changes: u64 = results.by_change.0.iter().map(|(_, _, count)| count).sum();
    assert_eq!(changes, results.changed);
    let days: (u64, u64) = results
        .by_day
        .iter()
        .fold((0, 0), |sum, day| (sum.0 + day.evaluated, sum.1 + day.changed));
    assert_eq!(days, (results.events_evaluated - results.errors, results.changed));
    let counts: Vec<u64> = results.samples.iter().map(|sample| sample.count).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b));
    let json = serde_json::to_string(results).unwrap();
    assert_eq!(&serde_json::from_str::<Results>(&json).unwrap(), results);
}
