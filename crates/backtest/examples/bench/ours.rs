//! Backtests over the histories, round by round, and the others beside them.

use super::measure::{self, Cost, Goal, count, line, note};
use super::policies::{self, Policy, Reads};
use super::sample::Sample;
use super::{Arguments, world};
use provost_backtest::record;
use provost_backtest::run::{self, Control, Filters, Job, Outcome, RunEnd, Tuning};
use provost_history::scan::{self, Projection, Watch};
use provost_history::synthetic::Recording;
use provost_history::{Plan, Question, Segment, Source, Storage};
use provost_policy::{Field, PolicySet};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use world::{DAY_MS, DAYS, FROM};

type Fault = Box<dyn Error>;

/// The first two histories.
const HISTORIES: [&str; 2] = ["repeated calls", "every event distinct"];

/// Everything that is measured against.
struct Bench<'a> {
    arguments: &'a Arguments,
    recording: &'a Recording,
    storage: &'a Arc<dyn Storage>,
    folder: &'a Path,
}

/// One backtest that is measured again and again.
struct Backtest {
    table: String,
    measure: String,
    goal: Goal,
    history: &'static str,
    events: u64,
    sets: [Arc<PolicySet>; 2],
    costs: Vec<Cost>,
}

/// Measures everything but Cedar.
pub fn measure(
    arguments: &Arguments,
    recording: &Recording,
    storage: &Arc<dyn Storage>,
    folder: &Path,
) -> Result<(), Fault> {
    let bench = Bench {
        arguments,
        recording,
        storage,
        folder,
    };
    if let Some(only) = &arguments.only {
        return bench.only(only);
    }
    note(&format!(
        "regorus and cedar-policy judge {} events a round",
        arguments.sample
    ));
    bench.memory_and_first_progress()?;
    let mut backtests = bench.backtests()?;
    let mut decoded = [Vec::new(), Vec::new()];
    let mut judged = [Vec::new(), Vec::new()];
    let samples = [
        Sample::new(arguments, recording, 0, Reads::Behaviour)?,
        Sample::new(arguments, recording, 1, Reads::Tokens)?,
    ];
    for round in 0..arguments.rounds {
        for backtest in &mut backtests {
            let (outcome, cost) = bench.run(backtest)?;
            backtest.costs.push(cost);
            if round == 0 {
                backtest.tell(&outcome);
            }
        }
        for (costs, history) in decoded.iter_mut().zip(["repeated", "distinct"]) {
            costs.push(bench.decode(history)?);
        }
        for (costs, sample) in judged.iter_mut().zip(&samples) {
            costs.push(sample.rego(arguments.threads));
        }
    }
    let rate = |costs: &[Cost], events| measure::rates(events, arguments.threads, costs);
    for backtest in &backtests {
        backtest.line(arguments.threads);
    }
    let title = &backtests[0].table;
    for (costs, what) in decoded.iter().zip(HISTORIES) {
        let (values, busy) = rate(costs, arguments.events);
        line(
            title,
            &format!("for comparison: decoding the columns alone, {what}"),
            " M/s",
            Goal::None,
            &values,
            &busy,
        );
    }
    for (costs, what) in judged.iter().zip(HISTORIES) {
        let (values, busy) = rate(costs, arguments.sample);
        let measure = format!("for comparison: regorus, virtual machine, per event, {what}");
        line(title, &measure, " M/s", Goal::None, &values, &busy);
    }
    for (nth, goal) in [(0, 500.0), (1, 100.0)] {
        let (ours, theirs) = (&backtests[nth].costs, &judged[nth]);
        let times = |of: fn(&Cost) -> f64| -> Vec<f64> {
            let each = ours.iter().zip(theirs).map(|(ours, theirs)| {
                of(theirs) / count(arguments.sample) / (of(ours) / count(arguments.events))
            });
            each.collect()
        };
        let measure = format!("{}: times the rate of regorus", backtests[nth].measure);
        line(
            title,
            &measure,
            " ×",
            Goal::AtLeast(goal),
            &times(|cost| cost.wall),
            &times(|cost| cost.processor),
        );
    }
    Ok(())
}

impl Bench<'_> {
    fn policies(&self, count: usize, reads: Reads) -> Result<Vec<Policy>, Fault> {
        super::policies_of(self.arguments, self.recording, count, reads)
    }

    /// Returns the baseline, and the candidate, in which every tenth policy is stricter.
    fn sets(&self, count: usize, reads: Reads) -> Result<[Arc<PolicySet>; 2], Fault> {
        let baseline = self.policies(count, reads)?;
        let candidate = policies::stricter(self.policies(count, reads)?);
        Ok([
            Arc::new(policies::native(&baseline)),
            Arc::new(policies::native(&candidate)),
        ])
    }

    /// Runs the backtests whose description has this text.
    fn only(&self, text: &str) -> Result<(), Fault> {
        for mut backtest in self
            .backtests()?
            .into_iter()
            .filter(|one| one.measure.contains(text))
        {
            for _ in 0..self.arguments.rounds {
                backtest.costs.push(self.run(&backtest)?.1);
            }
            backtest.line(self.arguments.threads);
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one measurement after the other")]
    fn backtests(&self) -> Result<Vec<Backtest>, Fault> {
        let (large, small) = (self.arguments.events, self.arguments.events / 10);
        let policies = self.arguments.policies;
        let title = title(self.arguments);
        let growth = "How cost grows".to_owned();
        let mut all = Vec::new();
        let mut add =
            |table: &str, measure: &str, goal, history, events, policies, reads| -> Result<(), Fault> {
                all.push(Backtest {
                    table: table.to_owned(),
                    measure: measure.to_owned(),
                    goal,
                    history,
                    events,
                    sets: self.sets(policies, reads)?,
                    costs: Vec::new(),
                });
                Ok(())
            };
        let none = Goal::None;
        add(
            &title,
            "grouped: repeated calls",
            Goal::AtLeast(100.0),
            "repeated",
            large,
            policies,
            Reads::Behaviour,
        )?;
        add(
            &title,
            "per event: every event distinct",
            Goal::AtLeast(15.0),
            "distinct",
            large,
            policies,
            Reads::Tokens,
        )?;
        add(
            &title,
            "history conditions in a fifth of the policies",
            Goal::AtLeast(2.0),
            "repeated",
            large,
            policies,
            Reads::Past,
        )?;
        add(
            &title,
            "repeated calls, a fifth of the policies reads the number of tokens",
            none,
            "repeated",
            large,
            policies,
            Reads::Tokens,
        )?;
        add(
            &title,
            "repeated calls, a fifth of the policies reads arguments",
            none,
            "repeated",
            large,
            policies,
            Reads::Input,
        )?;
        add(
            &title,
            "a tenth: every event distinct, arguments too, which a fifth of the policies reads",
            none,
            "arguments",
            small,
            policies,
            Reads::Input,
        )?;
        for (kind, history, large_history, reads) in [
            ("grouped", "fewer-repeated", "repeated", Reads::Behaviour),
            ("per event", "fewer-distinct", "distinct", Reads::Tokens),
        ] {
            add(
                &growth,
                &format!("{kind}: {small} events, {policies} policies"),
                none,
                history,
                small,
                policies,
                reads,
            )?;
            add(
                &growth,
                &format!("{kind}: events × 10"),
                none,
                large_history,
                large,
                policies,
                reads,
            )?;
            add(
                &growth,
                &format!("{kind}: policies × 10"),
                none,
                history,
                small,
                policies * 10,
                reads,
            )?;
        }
        add(
            &growth,
            "grouped: distinct behaviour × 10",
            none,
            "more-users",
            small,
            policies,
            Reads::Behaviour,
        )?;
        Ok(all)
    }

    /// Opens the segments of a history.
    fn sources(&self, history: &str) -> Result<Vec<Source>, Fault> {
        let mut sources = Vec::new();
        let prefix = format!("{history}-");
        for entry in std::fs::read_dir(self.folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with(&prefix)) else {
                continue;
            };
            sources.push(Source::Segment(Segment::open(
                Arc::clone(self.storage),
                name,
                &record::schema(),
            )?));
        }
        Ok(sources)
    }

    fn run(&self, backtest: &Backtest) -> Result<(Outcome, Cost), Fault> {
        let (outcome, cost) = measure::cost(|| self.outcome(backtest, &Watch::default()));
        Ok((outcome?, cost))
    }

    fn outcome(&self, backtest: &Backtest, watch: &Watch) -> Result<Outcome, Fault> {
        let job = Job {
            baseline: Arc::clone(&backtest.sets[0]),
            candidate: Arc::clone(&backtest.sets[1]),
            sources: self.sources(backtest.history)?,
            unreadable: Vec::new(),
            question: run::Question {
                from_ms: FROM,
                to_ms: FROM + DAYS * DAY_MS,
                max_events: 1_000_000_000,
                filters: Filters::default(),
            },
            register: Arc::default(),
            threads: self.arguments.threads,
            tuning: Tuning::default(),
        };
        let control = Control {
            watch,
            is_expired: &|| false,
            checkpoint: &|_| {},
        };
        let outcome = run::run(&job, None, &control)?;
        assert_eq!(outcome.finished, RunEnd::Whole);
        assert_eq!(outcome.results.events_evaluated, backtest.events);
        assert_eq!(outcome.results.errors, 0);
        Ok(outcome)
    }

    /// Measures what one backtest of each kind needs in memory, and when its first events were counted.
    fn memory_and_first_progress(&self) -> Result<(), Fault> {
        for backtest in self.backtests()?.into_iter().take(3) {
            let (watch, is_done) = (Watch::default(), AtomicBool::new(false));
            measure::reset_peak_memory();
            let start = measure::now();
            let (outcome, first) = std::thread::scope(|scope| {
                let first = scope.spawn(|| {
                    while watch.processed.load(Ordering::Relaxed) == 0 && !is_done.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    start.elapsed().as_secs_f64()
                });
                let outcome = self.outcome(&backtest, &watch);
                is_done.store(true, Ordering::Relaxed);
                (outcome, first.join().expect("a thread"))
            });
            outcome?;
            let table = "Memory and first progress";
            let peak = measure::peak_memory_mib();
            line(
                table,
                &format!("memory of the whole process: {}", backtest.measure),
                " MiB",
                Goal::AtMost(512.0),
                &[peak],
                &[],
            );
            line(
                table,
                &format!("first progress: {}", backtest.measure),
                " s",
                Goal::AtMost(1.0),
                &[first],
                &[],
            );
        }
        Ok(())
    }

    /// Decodes the columns that a backtest reads, and nothing else.
    fn decode(&self, history: &str) -> Result<Cost, Fault> {
        let reads = if history == "distinct" {
            Reads::Tokens
        } else {
            Reads::Behaviour
        };
        let set = policies::native(&self.policies(self.arguments.policies, reads)?);
        let fields = provost_policy::Projection::of(&[&set]).fields().to_vec();
        let columns: Vec<usize> = fields
            .into_iter()
            .map(|field: Field| record::position(field))
            .collect();
        let (sum, cost) = measure::cost(|| -> Result<u64, Fault> {
            let question = Question {
                from: FROM,
                to: FROM + DAYS * DAY_MS,
                max_events: 1_000_000_000,
            };
            let plan = Plan::new(record::schema(), self.sources(history)?, question)?;
            let projection = Projection {
                columns: &columns,
                with_ids: false,
            };
            let sums = scan::fold(
                &plan,
                projection,
                self.arguments.threads,
                &Watch::default(),
                || 0,
                |sum, _, batch| {
                    *sum += batch.rows() as u64;
                    Ok(())
                },
            )?;
            Ok(sums.into_iter().sum())
        });
        assert_eq!(sum?, self.arguments.events);
        Ok(cost)
    }
}

impl Backtest {
    fn line(&self, threads: usize) {
        // History conditions take one thread.
        let threads = if self.sets[0].has_history() { 1 } else { threads };
        let (values, busy) = measure::rates(self.events, threads, &self.costs);
        line(&self.table, &self.measure, " M/s", self.goal, &values, &busy);
        if !matches!(self.goal, Goal::None) {
            let wall: Vec<f64> = self.costs.iter().map(|cost| cost.wall).collect();
            let processor: Vec<f64> = self.costs.iter().map(|cost| cost.processor).collect();
            let measure = format!("{}: seconds", self.measure);
            line(&self.table, &measure, " s", Goal::None, &wall, &processor);
        }
    }

    /// Says once what the backtest found.
    fn tell(&self, outcome: &Outcome) {
        let results = &outcome.results;
        let share = 100.0 * count(results.changed) / count(results.events_evaluated);
        note(&format!(
            "{}: {} of {} decisions changed ({share:.2} %)",
            self.measure, results.changed, results.events_evaluated
        ));
    }
}

/// Measures Cedar, which this program has only when it is built with the feature `cedar`: Cedar's crates turn features
/// of ours on that would falsify the other figures.
#[cfg(feature = "cedar")]
pub fn cedar(arguments: &Arguments, recording: &Recording) -> Result<(), Fault> {
    for (history, (reads, what)) in [Reads::Behaviour, Reads::Tokens]
        .into_iter()
        .zip(HISTORIES)
        .enumerate()
    {
        let sample = Sample::new(arguments, recording, history, reads)?;
        let costs: Vec<Cost> = (0..arguments.rounds)
            .map(|_| sample.cedar(arguments.threads))
            .collect();
        let (values, busy) = measure::rates(arguments.sample, arguments.threads, &costs);
        let measure = format!("for comparison: cedar-policy, per event, {what}");
        line(&title(arguments), &measure, " M/s", Goal::None, &values, &busy);
    }
    Ok(())
}

fn title(arguments: &Arguments) -> String {
    let Arguments {
        events,
        policies,
        threads,
        ..
    } = arguments;
    format!("Backtests of {events} events with {policies} policies, {threads} threads")
}
