//! Tests of the suite at a size that a change has no time for.
//!
//! A test that repeats something takes its number from the environment; the suite runs it small. Here each is run
//! once at the figure that its goal names, on both engines, with a seed that can be given again.

use std::process::Stdio;

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
    test: &'static str,
    variable: &'static str,
    full: u64,
    /// What was done so often, and what came of it.
    figure: &'static str,
    /// SQLite has no such thing.
    needs_postgres: bool,
}

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
        test,
        variable,
        full,
        figure,
        needs_postgres: false,
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
    large(
        "races",
        &["R34"],
        "an_account_that_was_disabled_does_not_enable_itself",
        "PROVOST_TEST_RACES",
        2_000,
        "accounts that were disabled while they enabled themselves: none did behind its end",
    ),
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
        needs_postgres: true,
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
        needs_postgres: true,
        ..large(
            "lost-connections",
            &["R10"],
            "a_lost_connection_loses_and_doubles_nothing",
            "PROVOST_TEST_LOST",
            1_000,
            "mutations of each of 8 clients while the backends of PostgreSQL are killed: nothing lost or doubled",
        )
    },
];

pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.list {
        for large in ALL {
            println!("{:20} {:>7} {}", large.name, large.full, large.figure);
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
    let count = (large.full * arguments.size / 100).max(1);
    let seed = arguments.seed.unwrap_or_else(|| random::fresh_seed() >> 1);
    println!("{}: {count} {}, seed {seed}", large.name, large.figure);
    let mut command = process::cargo();
    command.args([
        "test",
        "--quiet",
        "--profile",
        "ci",
        // Of the whole workspace, so that dependencies have the features of the suite and are not built again.
        "--workspace",
        "--test",
        "it",
    ]);
    command.args(["--", large.test]);
    process::without_settings(&mut command);
    command
        .env("PROVOST_TEST_POSTGRES_URL", cluster.connection("postgres"))
        .env("PROVOST_TEST_REQUIRE_POSTGRES", "1")
        .env("PROVOST_TEST_SEED", seed.to_string())
        .env(large.variable, count.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let began = clock::now();
    let output = command.output().context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !said.contains("1 passed") {
        print!("{said}");
        return Err(Failure::new(format!(
            "{} failed; again with: cargo xtask scale {} --seed {seed} --size {}",
            large.name, large.name, arguments.size
        )));
    }
    println!("{}: passed in {} s", large.name, began.elapsed().as_secs());
    if arguments.record {
        let engines = if large.needs_postgres {
            "On PostgreSQL"
        } else {
            "On each engine"
        };
        let figure = format!("{engines} {count} {}.", large.figure);
        let command = format!("cargo xtask scale {}", large.name);
        let record = Record::new(large.goals, figure, command).with_seeds(seed.to_string());
        record.write(&format!("scale-{}", large.name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_an_unknown_one_is_refused() {
        for (place, large) in ALL.iter().enumerate() {
            assert!(ALL[place + 1..].iter().all(|other| other.name != large.name));
        }
        assert!(chosen(&["audit".to_owned(), "no such".to_owned()]).is_err());
        assert_eq!(chosen(&["audit".to_owned()]).unwrap().len(), 1);
    }
}
