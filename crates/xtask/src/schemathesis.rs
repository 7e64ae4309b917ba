//! Schemathesis (from `PyPI`) against the real binary: the OpenAPI document is the truth or the build fails.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::postgres::{self, Cluster, Durability};
use crate::product::{self, Bootstrap, Installation, Server, Store, Workplace};
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
}

pub fn run(arguments: &Arguments) -> Outcome {
    let program = install()?;
    let binary = arguments
        .binary
        .clone()
        .map_or_else(|| product::build("ci"), Ok)?;
    for engine in arguments.engine.each() {
        let workplace = Workplace::create(&format!("schemathesis-{}", engine.word()))?;
        let folder = workplace.folder.clone();
        let tested = test(arguments, engine, &program, &binary, &folder);
        tested.context(format_args!(
            "{}, server log and store are kept in {}",
            engine.name(),
            folder.display()
        ))?;
        workplace.remove()?;
    }
    Ok(())
}

fn test(arguments: &Arguments, engine: Engine, program: &Path, binary: &Path, folder: &Path) -> Outcome {
    let mut cluster = None;
    let store = if engine == Engine::Postgres {
        let started = Cluster::start(&postgres::find_or_install()?, Durability::None)?;
        let url = started.url("postgres");
        cluster = Some(started);
        Store::Postgres {
            url,
            keys: folder.join("keys"),
        }
    } else {
        Store::Sqlite {
            data: folder.join("data"),
        }
    };
    let log = folder.join("server.log");
    let installation = Installation {
        binary: binary.to_path_buf(),
        store,
        environment: Vec::new(),
        log,
        configuration: None,
    };
    let bootstrap = installation.initialize()?;
    let server = installation.serve()?;

    let status = process::status(&mut command(arguments, program, &bootstrap, &server))?;
    // A token that was lost on the way would have turned every later check into a 401.
    Connection::new(server.address)
        .fetch(&Request::get(bootstrap.path("capabilities"), &bootstrap.token))
        .context("the tests' own token does not work any more")?;
    server.stop()?;
    drop(cluster);
    if status.success() {
        Ok(())
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
    command.args([
        "--checks",
        "all",
        "--max-examples",
        &arguments.max_examples.to_string(),
    ]);
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
