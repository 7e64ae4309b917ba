//! Lists of MCP sessions under load, by kind of filter, with the plans by which the engines read them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::load::{self, Script};
use super::report::{self, Goal, Row, median};
use crate::Engine;
use crate::failure::{Context, Outcome};
use crate::http::Request;
use crate::postgres::{self, Binaries, Cluster, Durability};
use crate::process;
use crate::product::{self, Bootstrap, Installation, Store, Workplace};

const CONNECTIONS: usize = 16;
/// What the filling program writes.
const CLIENTS: usize = 40;
const ACCOUNTS: usize = 2000;

/// Measure lists of a million MCP sessions, by kind of filter
#[derive(clap::Args)]
pub struct Arguments {
    /// The engines to measure
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// How often everything is measured; the table shows medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each load lasts, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    secs: u64,
    /// How many sessions there are
    #[arg(long, default_value_t = 1_000_000)]
    sessions: usize,
    /// The cargo profile of the programs that are built
    #[arg(long, default_value = "release")]
    profile: String,
}

/// One kind of filter: its name, its goal, and the queries that are sent in turn.
struct Load {
    name: &'static str,
    goal: Goal,
    queries: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let binary = product::build(&arguments.profile)?;
    let filler = build_filler(&arguments.profile)?;
    let postgres = if arguments.engine.has_postgres() {
        Some(postgres::find_or_install()?)
    } else {
        None
    };
    let mut rows = Vec::new();
    for engine in arguments.engine.each() {
        let workplace = Workplace::create(&format!("sessions-{}", engine.word()))?;
        let programs = (binary.as_path(), filler.as_path());
        let measured = measure(arguments, engine, programs, &workplace, postgres.as_ref());
        rows.extend(measured.context(format_args!(
            "{}, log in {}",
            engine.name(),
            workplace.folder.display()
        ))?);
        workplace.remove()?;
    }
    println!("{}", report::table(&rows));
    Ok(())
}

/// Builds the program that fills the store: no operation opens sessions, and this crate knows no store.
fn build_filler(profile: &str) -> Outcome<PathBuf> {
    let package = ["--package", "provost-server", "--example", "fill_sessions"];
    let mut build = process::cargo();
    process::run(
        build
            .args(["build", "--quiet", "--profile", profile])
            .args(package),
    )?;
    Ok(process::target()
        .join(profile)
        .join("examples")
        .join("fill_sessions"))
}

fn measure(
    arguments: &Arguments,
    engine: Engine,
    (binary, filler): (&Path, &Path),
    workplace: &Workplace,
    binaries: Option<&Binaries>,
) -> Outcome<Vec<Row>> {
    let cluster = match binaries {
        Some(binaries) if engine == Engine::Postgres => Some(Cluster::start(binaries, Durability::Full)?),
        _ => None,
    };
    let (store, place) = if let Some(cluster) = &cluster {
        cluster.create_database("main")?;
        let url = cluster.url("main");
        let keys = workplace.folder.join("main-keys");
        (
            Store::Postgres {
                url: url.clone(),
                keys,
            },
            url,
        )
    } else {
        let data = workplace.folder.join("main");
        let file = data.join("provost.db").display().to_string();
        (Store::Sqlite { data }, file)
    };
    let installation = Installation {
        binary: binary.to_path_buf(),
        store,
        environment: Vec::new(),
        configuration: None,
        log: workplace.folder.join("server.log"),
    };
    let bootstrap = installation.initialize()?;
    let call = |task: &str| {
        let mut program = std::process::Command::new(filler);
        program.args([task, engine.word(), &place, &bootstrap.organization]);
        process::output(program.arg(arguments.sessions.to_string()))
    };
    eprintln!("{}: filling {} sessions", engine.name(), arguments.sessions);
    call("fill")?;
    println!("{}: plans\n{}", engine.name(), call("plans")?);
    let server = installation.serve()?;
    let mut rows = Vec::new();
    for load in loads() {
        let script = Script::new(load.queries.iter().map(|query| question(&bootstrap, query)));
        load::send(server.address, CONNECTIONS, Duration::from_millis(500), &script)?;
        let (mut rates, mut p50, mut p99) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..arguments.rounds {
            let duration = Duration::from_secs(arguments.secs);
            let measured = load::send(server.address, CONNECTIONS, duration, &script)?;
            rates.push(measured.per_second());
            p50.push(measured.p50.as_secs_f64() * 1e3);
            p99.push(measured.p99.as_secs_f64() * 1e3);
        }
        eprintln!(
            "{}: {}: {:.0}/s, p50 {:.1} ms, p99 {:.1} ms",
            engine.name(),
            load.name,
            median(&rates),
            median(&p50),
            median(&p99)
        );
        let mut row = Row::new(load.name, engine.name(), " ms", load.goal, p99.clone());
        row.latencies = Some((median(&p50), median(&p99)));
        rows.push(row);
    }
    server.stop()?;
    Ok(rows)
}

fn question(bootstrap: &Bootstrap, query: &str) -> Vec<u8> {
    let path = bootstrap.path(&format!("mcp/sessions{query}"));
    Request::get(path, &bootstrap.token).bytes()
}

fn loads() -> Vec<Load> {
    let goal = Goal::AtMost(20.0);
    let client = |n: usize| {
        format!(
            "clientId=https%3A%2F%2Fclient-{:02}.example%2Fmetadata.json",
            n % CLIENTS
        )
    };
    let account = |n: usize| format!("serviceAccountId=sa_{:026}", n * 7 % ACCOUNTS);
    let every = |make: &dyn Fn(usize) -> String| (0..40).map(make).collect::<Vec<_>>();
    let status = |n: usize| ["active", "revoked", "expired"][n % 3];
    let scope = |n: usize| {
        [
            "scope=policies%3Aread",
            "scope=mcp%3Aread",
            "toolset=mcp",
            "toolset=registry",
        ][n % 4]
    };
    let offset = |n: usize| n * 25;
    let load = |name, goal, queries| Load { name, goal, queries };
    vec![
        load("no filter", goal, vec![String::new()]),
        load(
            "status",
            goal,
            every(&|n| format!("?status={}&offset={}", status(n), offset(n))),
        ),
        load(
            "client",
            goal,
            every(&|n| format!("?{}&offset={}", client(n), offset(n))),
        ),
        load("account", goal, every(&|n| format!("?{}", account(n)))),
        load(
            "actor type",
            goal,
            every(&|n| {
                let actor = ["agent", "console_user", "service_account"][n % 3];
                format!("?actorType={actor}&offset={}", offset(n))
            }),
        ),
        load(
            "scope or toolset",
            goal,
            every(&|n| format!("?{}&offset={}", scope(n), offset(n))),
        ),
        load(
            "client, scope, status",
            goal,
            every(&|n| {
                format!(
                    "?{}&{}&status={}&offset={}",
                    client(n),
                    scope(n),
                    status(n),
                    offset(n)
                )
            }),
        ),
        load(
            "account, client, actor type, scope, toolset, status",
            goal,
            every(&|n| {
                format!(
                    "?{}&{}&actorType=service_account&scope=policies%3Aread&toolset=mcp&status={}",
                    account(n),
                    client(n),
                    status(n)
                )
            }),
        ),
        load(
            "query of one person",
            goal,
            every(&|n| format!("?query=NUMBER{}%20of", 10_000 + n * 101)),
        ),
        load(
            "query of one session",
            goal,
            every(&|n| format!("?query=agent%20{:07}", n * 20_011)),
        ),
        load(
            "query of a department, status",
            goal,
            every(&|n| format!("?query=department%20{}&status={}", 10 + n, status(n))),
        ),
        load(
            "query of many thousands",
            Goal::None,
            vec!["?query=robot".to_owned()],
        ),
        load(
            "query of two characters",
            Goal::None,
            vec!["?query=zz".to_owned()],
        ),
        load("offset 500 000", Goal::None, vec!["?offset=500000".to_owned()]),
    ]
}
