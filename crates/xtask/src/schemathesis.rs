//! Schemathesis (from `PyPI`) against the real binary: the OpenAPI document is the truth or the build fails.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::postgres::Durability;
use crate::product::{self, Bootstrap, Installation, Server, Store, Workplace};
use crate::record::Record;
use crate::{Engine, process, python};

/// Run schemathesis with all checks against the real binary
#[derive(clap::Args)]
pub struct Arguments {
    /// How many random requests are made of each operation
    #[arg(long, default_value_t = 100)]
    max_examples: u32,
    /// Repeats the requests of an earlier run
    #[arg(long)]
    seed: Option<u128>,
    /// The engine that the server stores in
    #[arg(long, value_enum, default_value_t = Engine::Sqlite)]
    engine: Engine,
    /// Test this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

/// What schemathesis says of its own run.
#[derive(Deserialize)]
struct Report {
    schemathesis_version: String,
    seed: u128,
    /// Whether it came to its end.
    complete: bool,
    operations: Operations,
    test_cases: Cases,
    errors: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Operations {
    selected: u64,
    tested: u64,
}

#[derive(Deserialize)]
struct Cases {
    generated: u64,
    with_failures: u64,
    without_checks: u64,
    errored: u64,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let program = install()?;
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let mut reports = Vec::new();
    for engine in arguments.engine.each() {
        let workplace = Workplace::create(&format!("schemathesis-{}", engine.word()))?;
        let folder = workplace.folder.clone();
        let tested = test(arguments, engine, &program, &binary, &folder);
        let report = tested.context(format_args!(
            "{}, server log and store are kept in {}",
            engine.name(),
            folder.display()
        ))?;
        reports.push((engine, report));
        workplace.remove()?;
    }
    for (engine, report) in &reports {
        println!("{}", sentence(*engine, report));
    }
    if arguments.record {
        record(arguments, &reports)?;
    }
    Ok(())
}

fn record(arguments: &Arguments, reports: &[(Engine, Report)]) -> Outcome {
    let sentences: Vec<String> = reports
        .iter()
        .map(|(engine, report)| sentence(*engine, report))
        .collect();
    let mut seeds: Vec<String> = reports
        .iter()
        .map(|(_, report)| report.seed.to_string())
        .collect();
    seeds.dedup();
    let (engine, examples) = (arguments.engine.word(), arguments.max_examples);
    let command = format!("cargo xtask schemathesis --engine {engine} --max-examples {examples}");
    let name = match arguments.engine {
        Engine::Both => "schemathesis".to_owned(),
        one => format!("schemathesis-{}", one.word()),
    };
    let record = Record::new(&["R24"], sentences.join(" "), command);
    record.with_seeds(seeds.join(", ")).write(&name)
}

fn sentence(engine: Engine, report: &Report) -> String {
    let (cases, operations) = (&report.test_cases, &report.operations);
    format!(
        "On {} schemathesis {} made {} cases of all {} operations with all its checks: {} failed, {} could not be made \
         and {} met no check.",
        engine.name(),
        report.schemathesis_version,
        cases.generated,
        operations.tested,
        cases.with_failures,
        cases.errored,
        cases.without_checks
    )
}

/// Reads the report of a run that found nothing, and refuses one that says otherwise or left something out.
fn read(report: &Path) -> Outcome<Report> {
    let text = std::fs::read_to_string(report).context("schemathesis wrote no report")?;
    let read: Report = serde_json::from_str(&text).context("the report of schemathesis cannot be read")?;
    let is_whole = read.complete && read.operations.tested == read.operations.selected;
    if !is_whole || read.test_cases.with_failures > 0 || !read.errors.is_empty() {
        return Err(Failure::new(format!(
            "schemathesis says that it succeeded, and its report does not: {text}"
        )));
    }
    Ok(read)
}

fn test(
    arguments: &Arguments,
    engine: Engine,
    program: &Path,
    binary: &Path,
    folder: &Path,
) -> Outcome<Report> {
    let (store, cluster) = Store::create(engine, folder, Durability::None)?;
    let installation = Installation::new(binary, store, folder);
    let bootstrap = installation.initialize()?;
    let server = installation.serve()?;

    let report = folder.join("schemathesis.json");
    let mut schemathesis = command(arguments, program, &bootstrap, &server);
    schemathesis
        .args(["--report", "json", "--report-json-path"])
        .arg(&report);
    let status = process::status(&mut schemathesis)?;
    // A token that was lost on the way would have turned every later check into a 401.
    Connection::new(server.address)
        .fetch(&Request::get(bootstrap.path("capabilities"), &bootstrap.token))
        .context("the tests' own token does not work any more")?;
    server.stop()?;
    drop(cluster);
    if status.success() {
        read(&report)
    } else {
        Err(Failure::new(format!("schemathesis found failures ({status})")))
    }
}

fn command(arguments: &Arguments, program: &Path, bootstrap: &Bootstrap, server: &Server) -> Command {
    let settings = settings();
    let origin = format!("http://{}", server.address);
    let mut command = Command::new(program);
    command
        .arg("--config-file")
        .arg(settings.join("schemathesis.toml"));
    command
        .arg("run")
        .arg(format!("{origin}/api/headless/v1/openapi.json"))
        .args(["--origin", &origin]);
    // All checks are on by themselves. Named here, they would be on as well where the settings switch one off.
    command.args(["--max-examples", &arguments.max_examples.to_string()]);
    if let Some(seed) = arguments.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    command.env("PROVOST_ORGANIZATION", &bootstrap.organization);
    command.env("PROVOST_ACCOUNT", &bootstrap.account);
    command.env("PROVOST_TOKEN", &bootstrap.token);
    command
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", &settings);
    // The settings are part of the repository; neither bytecode nor examples are.
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(process::target());
    command
}

fn settings() -> PathBuf {
    process::root().join("crates/xtask/schemathesis")
}

/// The program of the version that the repository pins, in an environment of its own.
fn install() -> Outcome<PathBuf> {
    let programs = python::programs("schemathesis", &settings().join("requirements.txt"))?;
    Ok(programs.join("schemathesis"))
}
