//! Tests of the suite at a size that a change has no time for.
//!
//! A test that repeats something takes its number from the environment; the suite runs it small. Here each is run
//! once at the figure that its goal names, on both engines, with a seed that can be given again. A test that tries all
//! there is has no size; it writes down how much that was.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};
use crate::postgres::{self, Cluster, Durability};
use crate::record::Record;
use crate::{clock, process, random};

/// Run tests of the suite at a large size
#[derive(clap::Args)]
pub struct Arguments {
    /// Which ones; all if none is named
    names: Vec<String>,
    /// Show what there is
    #[arg(long)]
    list: bool,
    /// A part of the full size
    #[arg(long, default_value_t = 100, value_name = "PERCENT")]
    size: u64,
    /// Repeats the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

struct Large {
    name: &'static str,
    goals: &'static [&'static str],
    /// Which of the workspace's targets holds the test, in cargo's words.
    target: &'static [&'static str],
    test: &'static str,
    /// The variable of its number, and the number.
    size: Option<(&'static str, u64)>,
    /// The variable of its seed, if it draws anything.
    seed: Option<&'static str>,
    /// What was done so often, and what came of it. Names in braces stand for figures that the test writes down.
    figure: &'static str,
    engines: Engines,
}

/// Where a test runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Engines {
    Each,
    /// SQLite has no such thing.
    Postgres,
    /// It stores nothing.
    Neither,
}

/// Most tests stand here.
const IT: &[&str] = &["--test", "it"];

const fn large(
    name: &'static str,
    goals: &'static [&'static str],
    test: &'static str,
    variable: &'static str,
    full: u64,
    figure: &'static str,
) -> Large {
    Large {
        name,
        goals,
        target: IT,
        test,
        size: Some((variable, full)),
        seed: Some("PROVOST_TEST_SEED"),
        figure,
        engines: Engines::Each,
    }
}

/// A test that leaves nothing to chance and tries all that there is.
const fn whole(
    name: &'static str,
    goals: &'static [&'static str],
    test: &'static str,
    figure: &'static str,
) -> Large {
    Large {
        name,
        goals,
        target: IT,
        test,
        size: None,
        seed: None,
        figure,
        engines: Engines::Each,
    }
}

impl Large {
    /// How much is done, if that can be chosen.
    fn count(&self, percent: u64) -> Option<(&'static str, u64)> {
        // A test that tries all there is has a step: a part of that would be more, not less.
        let (variable, full) = self.size?;
        let count = if self.is_told() {
            full
        } else {
            (full * percent / 100).max(1)
        };
        Some((variable, count))
    }

    /// Whether the test itself says how much it did.
    fn is_told(&self) -> bool {
        self.figure.contains('{')
    }
}

const ALL: &[Large] = &[
    large(
        "revocations",
        &["R34"],
        "no_dead_token_is_accepted_after_the_answer",
        "PROVOST_TEST_REVOCATIONS",
        10_000,
        "rotations, revocations and disablings, each followed by a request on another connection: 0 accepted",
    ),
    large(
        "gateway-revocations",
        &["R34"],
        "no_gateway_token_is_accepted_after_the_uninstall",
        "PROVOST_TEST_REVOCATIONS",
        2_000,
        "uninstalled skills, each followed by a request with the gateway's token: 0 accepted",
    ),
    Large {
        seed: None,
        ..large(
            "races",
            &["R34"],
            "an_account_that_was_disabled_does_not_enable_itself",
            "PROVOST_TEST_RACES",
            2_000,
            "accounts that were disabled while they enabled themselves: none did behind its end",
        )
    },
    large(
        "escalation",
        &["R35"],
        "an_act_that_hands_out_rights_is_allowed_iff_the_caller_holds_them",
        "PROVOST_TEST_PAIRS",
        10_000,
        "random pairs of caller and target, every act judged as an oracle does",
    ),
    large(
        "previews",
        &["R19"],
        "a_performance_changes_exactly_what_its_preview_said",
        "PROVOST_TEST_ROLLBACKS",
        10_000,
        "random pairs of contents: the preview's changes are the performance's",
    ),
    large(
        "cancels",
        &["R17"],
        "cancel_at_any_moment_ends_a_run_once_and_frees_its_worker",
        "PROVOST_TEST_CANCELS",
        1_000,
        "cancels at random moments of a run's life: canceled or terminal before, never both, and the worker free",
    ),
    Large {
        size: Some(("PROVOST_TEST_OFFSET_STEP", 1)),
        ..whole(
            "cut-rotations",
            &["R11"],
            "a_cut_answer_of_a_rotation_is_repaired_at_every_offset",
            "{cuts} answers of a rotation of up to {bytes} bytes, each cut behind another byte: all repaired",
        )
    },
    Large {
        size: Some(("PROVOST_TEST_OFFSET_STEP", 1)),
        ..whole(
            "cut-self-rotations",
            &["R11"],
            "a_cut_answer_of_a_self_rotation_is_repaired_with_the_dead_token",
            "{cuts} answers of up to {bytes} bytes to an account that rotates itself, each cut behind another byte: all \
             repaired with the dead token",
        )
    },
    Large {
        size: Some(("PROVOST_TEST_OFFSET_STEP", 1)),
        ..whole(
            "cut-creations",
            &["R11"],
            "a_cut_answer_of_a_creation_is_repaired",
            "{cuts} answers of a creation of up to {bytes} bytes, each cut behind another byte: all repaired",
        )
    },
    Large {
        seed: None,
        ..large(
            "live-replays",
            &["R12"],
            "the_secret_stands_nowhere_while_it_can_be_replayed",
            "PROVOST_TEST_ROTATIONS",
            1_000,
            "rotations, each repeated with its own secret: no form of a secret in the store or the keys folder",
        )
    },
    Large {
        seed: None,
        ..large(
            "first-uses",
            &["R12"],
            "first_use_ends_it",
            "PROVOST_TEST_ROTATIONS",
            1_000,
            "rotations whose token was used: 409 for each repetition, its cell erased, its secret nowhere",
        )
    },
    Large {
        seed: None,
        ..large(
            "old-replays",
            &["R12"],
            "a_day_ends_it",
            "PROVOST_TEST_ROTATIONS",
            1_000,
            "rotations, repeated a millisecond before the end of a day and at it: 200, then 409, the cell erased, the \
             secret nowhere",
        )
    },
    Large {
        seed: None,
        ..large(
            "ended-replays",
            &["R12"],
            "revocation_supersession_disabling_and_deletion_end_it",
            "PROVOST_TEST_ROTATIONS",
            1_000,
            "rotations for each of revocation, rotation, rotation with grace, disabling and deletion: 409 for each \
             repetition (404 behind a deletion), its cell erased, its secret nowhere",
        )
    },
    Large {
        target: &["--test", "differential"],
        engines: Engines::Neither,
        ..large(
            "verdicts",
            &["R18"],
            "row_columns_and_naive_agree_on_random_sets_and_histories",
            "PROVOST_TEST_CASES",
            5_000,
            "random sets of policies, each over a history of 80 events: row by row, column by column and a naive \
             evaluator agree",
        )
    },
    Large {
        target: &["--test", "differential"],
        engines: Engines::Neither,
        ..large(
            "devices",
            &["R18"],
            "a_device_says_what_the_server_says_or_asks_it",
            "PROVOST_TEST_CASES",
            1_250,
            "random sets of policies, each over a history of 80 events: what a device says by its bundle is what the engine says, or that the \
             server has to be asked, which is no weaker",
        )
    },
    Large {
        target: &["--test", "differential"],
        engines: Engines::Neither,
        ..large(
            "comparisons",
            &["R18"],
            "every_count_of_a_comparison_agrees",
            "PROVOST_TEST_CASES",
            5_000,
            "pairs of random sets of policies, each over a history of 150 events: every count of the comparison is the \
             naive evaluator's",
        )
    },
    Large {
        seed: Some("PROVOST_BACKTEST_SEED"),
        engines: Engines::Neither,
        ..large(
            "backtests",
            &["R18"],
            "the_engine_equals_the_naive_evaluator_in_every_count",
            "PROVOST_BACKTEST_CASES",
            5_000,
            "random backtests over events in three layouts: every count is the naive evaluator's, and one digest with \
             one thread, with two, and behind kills",
        )
    },
    whole(
        "matrix",
        &["R29"],
        "every_cell_of_the_matrix_is_as_declared",
        "{cells} cells of {operations} operations, {callers} callers, {strangers} strangers and {objects} kinds of \
         object: each answered as declared, and no refusal left an effect",
    ),
    Large {
        target: &["--lib"],
        engines: Engines::Neither,
        ..whole(
            "rates",
            &["R39"],
            "ten_minutes_allow_the_burst_and_the_rate_within_one_request",
            "{buckets} kinds of limit, asked {asked} times in 10 simulated minutes: {allowed} allowed, {worst} more or \
             less than burst and rate at the most",
        )
    },
    Large {
        size: Some(("PROVOST_TEST_SECRETS", 30)),
        ..whole(
            "foreign-rows",
            &["R40"],
            "a_ciphertext_opens_in_no_other_row",
            "{moves} moves of a data key, a ciphertext or both among the rows of {secrets} secrets, and of earlier ones \
             back into their own rows: none opened, and each secret did where it belongs",
        )
    },
    Large {
        size: Some(("PROVOST_TEST_SECRET_STEP", 1)),
        ..whole(
            "rewraps",
            &["R40"],
            "a_rewrap_that_is_killed_between_any_steps_loses_nothing",
            "{secrets} secrets put under a new sealing key in {steps} steps, each by a server that ended behind it: \
             {opened} of them opened behind each step",
        )
    },
    Large {
        target: &["--lib"],
        engines: Engines::Neither,
        ..whole(
            "closed-cells",
            &["R40"],
            "a_cell_opens_only_with_all_that_it_was_sealed_with",
            "{refused} ways to open a cell with another key, salt, place or day, with a byte changed or cut off: none \
             opened it",
        )
    },
    large(
        "model",
        &["R15"],
        "accounts_and_tokens_are_what_the_model_says",
        "PROVOST_TEST_MODEL_CASES",
        2_000,
        "random lives of accounts and tokens, every step as the reference model says",
    ),
    large(
        "audit",
        &["R36"],
        "the_log_is_the_drivers_own_list",
        "PROVOST_TEST_AUDIT_REQUESTS",
        100_000,
        "random requests: the audit log is the driver's own list, one to one and in order",
    ),
    large(
        "versions",
        &["R15", "R18"],
        "every_version_gives_its_set_for_ever",
        "PROVOST_TEST_CASES",
        2_000,
        "random policy writes: versions without a gap, and each gives its set for ever",
    ),
    large(
        "resolving",
        &["R15"],
        "resolving_equals_a_naive_model",
        "PROVOST_TEST_SUBJECT_STEPS",
        2_000,
        "steps of a directory: names resolve as a naive model says",
    ),
    Large {
        engines: Engines::Postgres,
        seed: None,
        ..large(
            "two-servers",
            &["R10"],
            "two_servers_on_one_store_act_as_one",
            "PROVOST_TEST_TWO_SERVERS",
            5_000,
            "keys sent to two servers of one PostgreSQL at once: one effect and one answer each",
        )
    },
    Large {
        engines: Engines::Postgres,
        seed: None,
        ..large(
            "lost-connections",
            &["R10"],
            "a_lost_connection_loses_and_doubles_nothing",
            "PROVOST_TEST_LOST",
            1_000,
            "mutations of each of 8 clients, at whose beginning PostgreSQL's backends are killed 20 times: nothing lost or \
             doubled",
        )
    },
];

pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.list {
        for large in ALL {
            let count = large.count(arguments.size).filter(|_| !large.is_told());
            let count = count.map_or_else(|| "all".to_owned(), |(_, count)| count.to_string());
            println!("{:20} {count:>7} {}", large.name, large.figure);
        }
        return Ok(());
    }
    let chosen = chosen(&arguments.names)?;
    let cluster = Cluster::start(&postgres::find_or_install()?, Durability::None)?;
    for large in chosen {
        perform(large, arguments, &cluster)?;
    }
    Ok(())
}

fn chosen(names: &[String]) -> Outcome<Vec<&'static Large>> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| {
        let found = ALL.iter().find(|large| large.name == name);
        found.context(format_args!("there is no {name}; show what there is with --list"))
    };
    names.iter().map(find).collect()
}

fn perform(large: &Large, arguments: &Arguments, cluster: &Cluster) -> Outcome {
    let count = large.count(arguments.size);
    let mut again = format!("cargo xtask scale {}", large.name);
    if count.is_some() && !large.is_told() && arguments.size != 100 {
        again = format!("{again} --size {}", arguments.size);
    }
    let seed = large.seed.map(|variable| {
        let seed = arguments.seed.unwrap_or_else(|| random::fresh_seed() >> 1);
        (variable, seed)
    });
    let with_seed = seed.map_or_else(|| again.clone(), |(_, seed)| format!("{again} --seed {seed}"));
    println!("{} (again with: {with_seed})", large.name);
    let report = process::target().join(format!("scale-{}.json", large.name));
    // What an earlier run left is not what this one did.
    let _ = std::fs::remove_file(&report);
    let mut command = process::cargo();
    // Of the whole workspace, so that dependencies have the features of the suite and are not built again.
    command.args(["test", "--quiet", "--profile", "ci", "--workspace"]);
    command.args(large.target).args(["--", large.test]);
    process::without_settings(&mut command);
    command
        .env("PROVOST_TEST_POSTGRES_URL", cluster.connection("postgres"))
        .env("PROVOST_TEST_REQUIRE_POSTGRES", "1")
        .env("PROVOST_TEST_REPORT", &report)
        .envs(seed.map(|(variable, seed)| (variable, seed.to_string())))
        .envs(count.map(|(variable, count)| (variable, count.to_string())))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let began = clock::now();
    let output = command.output().context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !said.contains("ok. 1 passed;") {
        print!("{said}");
        return Err(Failure::new(format!(
            "{} failed; again with: {with_seed}",
            large.name
        )));
    }
    let sentence = if large.is_told() {
        told(large, &read(&report)?)?
    } else {
        let count = count.map_or_else(String::new, |(_, count)| format!("{count} "));
        said_of(large.engines, &format!("{count}{}", large.figure))
    };
    println!(
        "{}: {sentence} Passed in {} s.",
        large.name,
        began.elapsed().as_secs()
    );
    if arguments.record {
        let mut record = Record::new(large.goals, sentence, again);
        if let Some((_, seed)) = seed {
            record = record.with_seeds(seed.to_string());
        }
        record.write(&format!("scale-{}", large.name))?;
    }
    Ok(())
}

/// What a test wrote down; by engine if it ran on each.
fn read(report: &Path) -> Outcome<Value> {
    let text = std::fs::read_to_string(report).context("the test wrote no figures")?;
    serde_json::from_str(&text).context("the figures are not JSON")
}

fn said_of(engines: Engines, what: &str) -> String {
    match engines {
        Engines::Each => format!("On each engine {what}."),
        Engines::Postgres => format!("On PostgreSQL {what}."),
        Engines::Neither => format!("{what}."),
    }
}

/// The sentence of a test that says itself how much it did.
fn told(large: &Large, found: &Value) -> Outcome<String> {
    if large.engines == Engines::Neither {
        return Ok(said_of(large.engines, &filled(large.figure, found)?));
    }
    let on = |engine: &str| {
        let found = found.get(engine);
        filled(
            large.figure,
            found.context(format_args!("no figures of {engine}"))?,
        )
    };
    let (one, other) = (on("SQLite")?, on("PostgreSQL")?);
    if one == other {
        return Ok(said_of(large.engines, &one));
    }
    Ok(format!("On SQLite {one}. On PostgreSQL {other}."))
}

/// Puts figures in the place of their names in braces.
fn filled(figure: &str, found: &Value) -> Outcome<String> {
    let mut text = figure.to_owned();
    for (name, value) in found.as_object().into_iter().flatten() {
        text = text.replace(&format!("{{{name}}}"), &value.to_string());
    }
    if text.contains('{') {
        return Err(Failure::new(format!("a figure is missing: {text}")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_said_of_both_engines_at_once_where_they_are_the_same() {
        let large = whole("a", &["R0"], "a", "{cells} cells of {kinds} kinds");
        let found = json!({ "SQLite": { "cells": 3, "kinds": 2 }, "PostgreSQL": { "cells": 3, "kinds": 2 } });
        assert_eq!(
            told(&large, &found).unwrap(),
            "On each engine 3 cells of 2 kinds."
        );
        let found = json!({ "SQLite": { "cells": 3, "kinds": 2 }, "PostgreSQL": { "cells": 4, "kinds": 2 } });
        assert_eq!(
            told(&large, &found).unwrap(),
            "On SQLite 3 cells of 2 kinds. On PostgreSQL 4 cells of 2 kinds."
        );
        assert!(told(&large, &json!({ "SQLite": { "cells": 3, "kinds": 2 } })).is_err());
        let large = Large {
            engines: Engines::Neither,
            ..large
        };
        assert_eq!(
            told(&large, &json!({ "cells": 3, "kinds": 2 })).unwrap(),
            "3 cells of 2 kinds."
        );
        assert!(told(&large, &json!({ "cells": 3 })).is_err());
    }

    #[test]
    fn every_test_stands_in_the_target_that_is_run() {
        let all = process::sources("crates");
        for large in ALL {
            let place = match large.target {
                ["--test", target] => format!("/tests/{target}/"),
                _ => "/src/".to_owned(),
            };
            let test = format!("fn {}(", large.test);
            let found = all
                .iter()
                .filter(|(path, text)| path.contains(&place) && text.contains(&test));
            assert_eq!(found.count(), 1, "{}: {} in {place}", large.name, large.test);
        }
    }

    #[test]
    fn names_are_unique_and_an_unknown_one_is_refused() {
        for (place, large) in ALL.iter().enumerate() {
            assert!(ALL[place + 1..].iter().all(|other| other.name != large.name));
        }
        assert!(chosen(&["audit".to_owned(), "no such".to_owned()]).is_err());
        assert_eq!(chosen(&["audit".to_owned()]).unwrap().len(), 1);
    }
}
