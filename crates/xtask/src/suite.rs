//! `test`, `golden`, `fmt-check`, `lint`: what the compiler's own tools run over the workspace.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::failure::Outcome;
use crate::postgres::{self, Cluster, Durability};
use crate::{Engine, oidc, process, python, s3};

/// Runs every test on both engines, with a throw-away PostgreSQL of its own.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run only the tests whose names contain one of these.
    filters: Vec<String>,
    /// Whether a PostgreSQL is started; SQLite needs nothing and is always tested.
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// How many tests run at once.
    #[arg(long, short)]
    jobs: Option<usize>,
    /// Let every test do all that it is for, on every engine; a change has no time for it.
    #[arg(long)]
    nightly: bool,
}

/// Ends with the runner's own summary: nothing is printed after it.
pub fn test(arguments: &Arguments) -> Outcome<ExitCode> {
    let with_nextest = process::works(process::cargo().args(["nextest", "--version"]));
    let mut runner = if with_nextest {
        nextest(arguments)
    } else {
        cargo_test(arguments)
    };
    let surroundings = Surroundings::start(arguments.engine)?;
    surroundings.tell(&mut runner);
    if arguments.nightly {
        runner.env("PROVOST_TEST_NIGHTLY", "1");
    }
    let words: Vec<_> = runner.get_args().map(|word| word.to_string_lossy()).collect();
    println!(
        "Running cargo {} on {}.",
        words.join(" "),
        arguments.engine.name()
    );
    let status = process::status(&mut runner)?;
    drop(surroundings);
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// What the tests need beside the repository; it runs for as long as this lives.
pub struct Surroundings {
    cluster: Option<Cluster>,
    store: s3::Server,
    exporter: PathBuf,
    provider: PathBuf,
}

impl Surroundings {
    /// Installs what is missing, starts what must run, and says so.
    pub fn start(engine: Engine) -> Outcome<Self> {
        let cluster = if engine.has_postgres() {
            Some(start_cluster()?)
        } else {
            None
        };
        let store = s3::Server::start()?;
        println!("Started an S3-compatible server at {}.", store.endpoint);
        let clients = process::root().join("crates/server/tests/clients/requirements.txt");
        let exporter = python::programs("opentelemetry", &clients)?.join("python");
        Ok(Self {
            cluster,
            store,
            exporter,
            provider: oidc::install()?,
        })
    }

    /// Tells a runner of tests where everything is, and takes the developer's own settings away from it.
    pub fn tell(&self, runner: &mut Command) {
        process::without_settings(runner);
        // With `REQUIRE` a test that does not find its peer fails instead of passing without it.
        if let Some(cluster) = &self.cluster {
            runner.env("PROVOST_TEST_POSTGRES_URL", cluster.connection("postgres"));
            runner.env("PROVOST_TEST_REQUIRE_POSTGRES", "1");
        }
        runner.env("PROVOST_TEST_S3_ENDPOINT", &self.store.endpoint);
        runner.env("PROVOST_TEST_REQUIRE_S3", "1");
        runner.env("PROVOST_TEST_EXPORTER_PYTHON", &self.exporter);
        runner.env("PROVOST_TEST_REQUIRE_EXPORTER", "1");
        runner.env("PROVOST_TEST_OIDC_PROVIDER", &self.provider);
        runner.env("PROVOST_TEST_REQUIRE_OIDC", "1");
    }
}

fn start_cluster() -> Outcome<Cluster> {
    let binaries = postgres::find_or_install()?;
    println!("Using {} in {}.", binaries.version, binaries.folder.display());
    let cluster = Cluster::start(&binaries, Durability::None)?;
    println!("Started a throw-away cluster in {}.", cluster.folder().display());
    Ok(cluster)
}

fn nextest(arguments: &Arguments) -> Command {
    let profile = match std::env::var_os("CI") {
        _ if arguments.nightly => "nightly",
        Some(_) => "ci",
        None => "default",
    };
    let mut command = process::cargo();
    command.args([
        "nextest",
        "run",
        "--cargo-profile",
        "ci",
        "--workspace",
        "--profile",
        profile,
    ]);
    if let Some(jobs) = arguments.jobs {
        command.args(["--test-threads", &jobs.to_string()]);
    }
    command.args(&arguments.filters);
    command
}

fn cargo_test(arguments: &Arguments) -> Command {
    let mut command = process::cargo();
    command.args(["test", "--profile", "ci", "--workspace", "--no-fail-fast", "--"]);
    if let Some(jobs) = arguments.jobs {
        command.args(["--test-threads", &jobs.to_string()]);
    }
    command.args(&arguments.filters);
    command
}

/// Rewrites the goldens by running the tests that compare them, then shows what changed.
pub fn golden(arguments: &Arguments) -> Outcome<ExitCode> {
    let mut runner = process::cargo();
    // Every test runs: the goldens belong to whichever tests compare them.
    runner
        .args(["test", "--profile", "ci", "--workspace", "--no-fail-fast", "--"])
        .args(&arguments.filters);
    process::without_settings(&mut runner);
    runner.env("UPDATE_GOLDENS", "1");
    let cluster = if arguments.engine.has_postgres() {
        Some(start_cluster()?)
    } else {
        None
    };
    if let Some(cluster) = &cluster {
        runner.env("PROVOST_TEST_POSTGRES_URL", cluster.connection("postgres"));
    }
    let status = process::status(&mut runner)?;
    drop(cluster);
    let mut git = Command::new("git");
    git.current_dir(process::root())
        .args(["status", "--short", "--", "*golden*", "openapi"]);
    let changed = process::output(&mut git)?;
    if changed.is_empty() {
        println!("No golden changed.");
    } else {
        print!("Changed goldens, to be read before they are committed:\n{changed}");
    }
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

pub fn check_format() -> Outcome {
    process::run(process::cargo().args(["fmt", "--all", "--check"]))
}

pub fn lint() -> Outcome {
    let mut clippy = process::cargo();
    clippy.args([
        "clippy",
        "--all-targets",
        "--workspace",
        "--profile",
        "ci",
        "--",
        "-D",
        "warnings",
    ]);
    process::run(&mut clippy)
}
