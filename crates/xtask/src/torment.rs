//! Storms, histories and hostile input, as long as one likes: the tests of `crates/server/tests/it/torment`.
//!
//! The tests are the same that the suite runs small. This task builds them, tells them how much to do and where to
//! write what they reached, and makes a record of it.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::{Context, Failure, Outcome};
use crate::postgres::{self, Cluster, Durability};
use crate::process;
use crate::random;
use crate::record::Record;
use crate::{Engine, clock};

/// Storm the whole application with hostile requests, and look for what must not be
#[derive(clap::Args)]
pub struct Arguments {
    /// What is done
    #[arg(value_enum)]
    subject: Subject,
    /// How much, on each engine: requests, storms, mutations of a field, histories, tokens, paths, interleavings; without it as little
    /// as in the suite
    #[arg(long)]
    count: Option<u64>,
    /// Repeats the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// The engines to test
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// The cargo profile: `ci` is built already, `long` takes minutes to build and then runs faster
    #[arg(long, default_value = "ci")]
    profile: String,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

/// What a run does.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Subject {
    /// Requests by chance over every operation and caller; the goal's size is 10000000
    Requests,
    /// One request sent many times at once, for every operation; the goal's size is 10000
    Storms,
    /// Other requests under a used key, for every field; the goal's size is 100 mutations of each
    Misuse,
    /// What clients saw at the same time, put in order; the goal's size is 10000
    Histories,
    /// Forged tokens; the goal's size is 10000000
    Tokens,
    /// Forged and odd access tokens of an issuer; the goal's size is 10000000
    Jwts,
    /// Issued tokens, their duplicates and their letters; the goal's size is 1000000
    Issued,
    /// Orders of what happens to an approval; the goal's size is 100000
    Approvals,
    /// Every state by every operation by every actor
    Cells,
    /// Every string of every body with text that breaks lines
    Strings,
    /// Paths that scanners try; the goal's size is 10000
    Paths,
    /// Blocked events in other words and bytes; the goal's size is 100000
    Verdicts,
    /// Every operation as whoever holds its scope alone, and this many steps by chance behind it
    Rights,
}

/// How a subject is run and what it speaks for.
struct Plan {
    word: &'static str,
    test: &'static str,
    goals: &'static [&'static str],
    /// What the figures are about; they follow.
    says: &'static str,
}

impl Subject {
    fn plan(self) -> Plan {
        let plan = |word, test, goals, says| Plan {
            word,
            test,
            goals,
            says,
        };
        match self {
            Self::Requests => plan(
                "requests",
                "torment::requests::no_request_is_a_fault",
                &["R22", "R25"],
                "Random requests over every operation as every kind of caller, without a fault",
            ),
            Self::Storms => plan(
                "storms",
                "mechanisms::idempotency::a_storm_of_one_request_has_one_effect_and_one_answer",
                &["R10"],
                "Storms of one request with disconnects and retries, each with one effect and one answer",
            ),
            Self::Misuse => plan(
                "misuse",
                "torment::storms::another_request_under_a_key_is_refused_whatever_differs",
                &["R13"],
                "Changed fields under a used key, all refused",
            ),
            Self::Histories => plan(
                "histories",
                "torment::histories::what_clients_saw_has_an_order",
                &["R14"],
                "Histories of 8 clients by 50 calls on 4 objects, each accepted by the checker",
            ),
            Self::Tokens => plan(
                "tokens",
                "torment::tokens::no_forged_token_is_accepted",
                &["R32"],
                "Forged tokens, none accepted",
            ),
            Self::Jwts => plan(
                "jwts",
                "torment::jwts::no_forged_jwt_is_accepted_and_no_odd_one_for_what_it_is_not",
                &["R33"],
                "Access tokens by chance, of which no forged one was accepted and no odd one for what it does not say",
            ),
            Self::Issued => plan(
                "issued",
                "torment::tokens::issued_tokens_are_distinct_and_evenly_random",
                &["R32"],
                "Issued tokens without a duplicate, letters evenly likely (p > 0.001 below chi-square 100.888)",
            ),
            Self::Approvals => plan(
                "approvals",
                "torment::approvals::no_order_of_what_happens_lets_more_pass_than_was_approved",
                &["F8.5"],
                "Interleavings of plans, commits that are late, lost or repeated, votes, ends, clocks and rights, in which no more calls passed \
                 than was approved, and each that passed is recorded",
            ),
            Self::Cells => plan(
                "cells",
                "torment::cells::every_cell_is_as_the_table_says",
                &["R15"],
                "Cells of state, operation and actor, each answered as the table says",
            ),
            Self::Strings => plan(
                "strings",
                "torment::strings::no_text_breaks_a_line",
                &["R37"],
                "Strings of bodies by texts that break lines, each refused or kept whole on one line of the export",
            ),
            Self::Paths => plan(
                "paths",
                "torment::paths::only_declared_routes_answer",
                &["R42"],
                "Common paths by every method, only declared routes answered",
            ),
            Self::Verdicts => plan(
                "verdicts",
                "torment::verdicts::no_other_words_or_bytes_make_a_verdict_weaker",
                &["R48"],
                "Events and their changes in words, bytes and surroundings, none answered weaker, live or, recorded and imported, in backtests",
            ),
            Self::Rights => plan(
                "rights",
                "rights_graph::rights_grow_by_no_detour",
                &["R49"],
                "Calls of every operation as whoever holds its scope alone, with its example and hostile neighbours, and acts by chance one behind the other; no right grew but by the edges that have a reason",
            ),
        }
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let plan = arguments.subject.plan();
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    let command = command(arguments, &plan);
    println!("seed {seed} (again with: {command} --seed {seed})");
    let report = process::target().join(format!("torment-{}.json", plan.word));
    let _ = std::fs::remove_file(&report);
    let began = clock::now();
    perform(arguments, &plan, seed, &report)?;
    let text = std::fs::read_to_string(&report).context("the test wrote no figures; was it run?")?;
    let figures: Value = serde_json::from_str(&text).context("the figures are not JSON")?;
    let sentence = format!("{}: {}.", plan.says, said(&figures));
    println!("{sentence}\nDone in {} s.", began.elapsed().as_secs());
    if arguments.record {
        let record = Record::new(plan.goals, sentence, command).with_seeds(seed.to_string());
        record.write(&record_name(&plan, arguments.engine))?;
    }
    Ok(())
}

/// A run on one engine has a record of its own, so that a long one does not replace what was reached on both.
fn record_name(plan: &Plan, engine: Engine) -> String {
    match engine {
        Engine::Both => format!("torment-{}", plan.word),
        one => format!("torment-{}-{}", plan.word, one.word()),
    }
}

fn command(arguments: &Arguments, plan: &Plan) -> String {
    let mut command = format!("cargo xtask torment {}", plan.word);
    if let Some(count) = arguments.count {
        let _ = write!(command, " --count {count}");
    }
    if arguments.engine != Engine::Both {
        let _ = write!(command, " --engine {}", arguments.engine.word());
    }
    command
}

/// Runs the one test, on a throw-away PostgreSQL where it is asked for.
fn perform(arguments: &Arguments, plan: &Plan, seed: u64, report: &Path) -> Outcome {
    let mut test = process::cargo();
    test.args([
        "test",
        "--profile",
        &arguments.profile,
        // Of the whole workspace, so that dependencies have the features of the suite and are not built again.
        "--workspace",
        "--test",
        "it",
        "--",
    ]);
    test.args(["--exact", plan.test, "--nocapture"]);
    process::without_settings(&mut test);
    test.env("PROVOST_TEST_SEED", seed.to_string());
    test.env("PROVOST_TEST_ENGINE", arguments.engine.word());
    test.env("PROVOST_TEST_REPORT", report);
    if let Some(count) = arguments.count {
        test.env("PROVOST_TEST_COUNT", count.to_string());
    }
    let mut cluster = None;
    if arguments.engine.has_postgres() {
        let started = Cluster::start(&postgres::find_or_install()?, Durability::None)?;
        test.env("PROVOST_TEST_POSTGRES_URL", started.connection("postgres"));
        test.env("PROVOST_TEST_REQUIRE_POSTGRES", "1");
        cluster = Some(started);
    }
    let status = process::status(&mut test)?;
    drop(cluster);
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} found a fault with seed {seed}",
        plan.word
    )))
}

/// Figures as words: `SQLite: storms 10, operations 5; PostgreSQL: …`.
fn said(figures: &Value) -> String {
    let list = |members: &Map<String, Value>| {
        let flat = members
            .iter()
            .filter(|(name, value)| !value.is_object() && *name != "seed");
        let flat =
            flat.map(|(name, value)| format!("{} {}", words(name), value.to_string().replace('"', "")));
        flat.collect::<Vec<_>>().join(", ")
    };
    let Some(members) = figures.as_object() else {
        return figures.to_string();
    };
    let engines = members
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}: {}", list(value.as_object()?))));
    let engines: Vec<String> = engines.collect();
    if engines.is_empty() {
        list(members)
    } else {
        engines.join("; ")
    }
}

/// `doubleEffects` as `double effects`.
fn words(name: &str) -> String {
    name.chars().fold(String::new(), |mut text, letter| {
        if letter.is_uppercase() {
            text.push(' ');
        }
        text.push(letter.to_ascii_lowercase());
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use serde_json::json;

    #[test]
    fn every_subject_is_a_test_of_the_suite() {
        for subject in Subject::value_variants() {
            let plan = subject.plan();
            let (module, test) = plan.test.rsplit_once("::").unwrap();
            let root = format!("server/tests/it/{}", module.replace("::", "/"));
            let all = process::sources("crates");
            let is_there = all.iter().any(|(path, text)| {
                let is_module =
                    path.ends_with(&format!("{root}.rs")) || path.ends_with(&format!("{root}/mod.rs"));
                is_module && text.contains(&format!("fn {test}("))
            });
            assert!(is_there, "{}: no test {}", plan.word, plan.test);
        }
    }

    #[test]
    fn figures_are_said_by_engine() {
        let figures = json!({ "SQLite": { "storms": 3, "doubleEffects": 0, "seed": 1, "statuses": {} } });
        assert_eq!(said(&figures), "SQLite: double effects 0, storms 3");
        assert_eq!(
            said(&json!({ "tokens": 3, "chiSquare": "60.1" })),
            "chi square 60.1, tokens 3"
        );
    }
}
