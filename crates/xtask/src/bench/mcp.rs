//! MCP under load: what a call of a tool costs here, what gateways of others add to it, and what a signed token costs.

mod peers;
mod tokens;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::load::{self, Script};
use super::machine;
use super::place::{self, Place};
use super::report::{self, Goal, Row, median};
use super::scripts::create_accounts;
use crate::Engine;
use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};
use crate::postgres::{self, Binaries};
use crate::product::{self, Bootstrap, Server};
use peers::Peer;

/// How many connections read with tokens, and how many tokens there are.
const READERS: usize = 32;
const TOKENS: usize = 64;
const ACCOUNTS: u32 = 64;
const TOOL: &str = "getHeadlessServiceAccount";
const REVISION: &str = "2025-11-25";

/// Measure MCP: reads with signed tokens, lists and calls of tools beside gateways of others
#[derive(clap::Args)]
pub struct Arguments {
    /// The engines to measure
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// How often everything is measured; the table shows medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each load lasts, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    secs: u64,
    /// Over how many connections tools are called
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    connections: Vec<usize>,
    /// Leave out the gateways of others, one built from crates.io, one installed from the index of Python
    #[arg(long)]
    without_peers: bool,
    /// Also write the table, with date, machine and versions, to this file
    #[arg(long)]
    write: Option<PathBuf>,
    /// Measure this binary instead of building one with the release profile
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let binary = arguments
        .binary
        .clone()
        .map_or_else(|| product::build("release"), Ok)?;
    let postgres = if arguments.engine.has_postgres() {
        Some(postgres::find_or_install()?)
    } else {
        None
    };
    let measured = place::each(arguments.engine, "mcp", &binary, postgres.as_ref(), |place| {
        measure(arguments, place)
    })?;
    let rows: Vec<Row> = measured.into_iter().flatten().collect();
    let table = report::table(&rows);
    println!("{table}");
    match &arguments.write {
        Some(path) => write(path, arguments, postgres.as_ref(), &table),
        None => Ok(()),
    }
}

fn write(path: &Path, arguments: &Arguments, postgres: Option<&Binaries>, table: &str) -> Outcome {
    let mut facts = machine::describe();
    facts.extend(postgres.map(|binaries| format!("PostgreSQL: {}", binaries.version)));
    if !arguments.without_peers {
        facts.push(format!("Beside it: {}", peers::VERSIONS));
    }
    let facts = facts.join("\n- ");
    let text = format!(
        "# Benchmark: MCP and signed tokens\n\n\
         Written by `cargo xtask bench mcp --rounds {} --secs {} --write docs/benchmarks-mcp.md`.\n\n\
         - {facts}\n\n\
         Load generator (one thread), server and gateways share the cores. The tool reads one service account from \
         the store; each call is authenticated, judged and counted as its account's, and sensitive reads are audited. \
         A signed token is an access token of this server (EdDSA), {TOKENS} of them in turn. \
         The gateways of others pass the same call on to the same server, with what they do by default and without \
         authentication of their own: of them the processor time is theirs alone, without the server's, and \"added\" \
         is their p50 less that of the direct call over as many connections. On PostgreSQL, processor time includes \
         the database's.\n\n\
         {table}",
        arguments.rounds, arguments.secs
    );
    std::fs::write(path, text).context(format_args!("cannot write {}", path.display()))
}

/// Something that is asked over so many connections, one script each.
struct Load<'a> {
    name: String,
    server: &'a Server,
    /// Who answers instead of the server.
    peer: Option<&'a Peer>,
    scripts: Vec<Script>,
    goal: Goal,
    /// The most µs of processor time that a request may take.
    cpu_goal: Goal,
}

/// The rounds' figures of one load.
#[derive(Default)]
struct Series {
    rates: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    cpu: Vec<f64>,
}

fn measure(arguments: &Arguments, place: &Place) -> Outcome<Vec<Row>> {
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    let numbers: Vec<u32> = (0..ACCOUNTS).collect();
    let ids = create_accounts(&mut Connection::new(server.address), &bootstrap, &numbers)?;
    let signed = tokens::issue(&server, &bootstrap, TOKENS)?;
    let peers = if arguments.without_peers || place.engine == Engine::Postgres {
        Vec::new()
    } else {
        peers::start(&server, &bootstrap, place.folder())?
    };
    let loads = loads(arguments, &server, &bootstrap, &ids, &signed, &peers)?;
    let mut series: Vec<_> = loads.iter().map(|_| Series::default()).collect();
    for round in 1..=arguments.rounds {
        for (load, series) in loads.iter().zip(&mut series) {
            one_load(arguments, place, load, series).context(&load.name)?;
            let last = |values: &[f64]| report::figure(values.last().copied().unwrap_or_default());
            eprintln!(
                "{} round {round}/{}: {}: {}/s, p50 {} ms, CPU {} µs",
                place.engine.name(),
                arguments.rounds,
                load.name,
                last(&series.rates),
                last(&series.p50),
                last(&series.cpu)
            );
        }
    }
    let rows = rows(place.engine, &loads, &series);
    drop(loads);
    drop(peers);
    server.stop()?;
    Ok(rows)
}

fn loads<'a>(
    arguments: &Arguments,
    server: &'a Server,
    bootstrap: &Bootstrap,
    ids: &[String],
    signed: &[String],
    peers: &'a [Peer],
) -> Outcome<Vec<Load<'a>>> {
    let read = |id: &String, token: &str| {
        Request::get(bootstrap.path(&format!("service-accounts/{id}")), token).bytes()
    };
    let own = Script::new(ids.iter().map(|id| read(id, &bootstrap.token)));
    let with_signed = Script::new(ids.iter().zip(signed).map(|(id, token)| read(id, token)));
    let load = |name: String, scripts: Vec<Script>| Load {
        name,
        server,
        peer: None,
        scripts,
        goal: Goal::None,
        cpu_goal: Goal::None,
    };
    let mut loads = vec![
        load(
            format!("read with an account's token, {READERS} connections"),
            vec![own; READERS],
        ),
        Load {
            goal: Goal::AtLeast(15_000.0),
            ..load(
                format!("read with a signed token, {READERS} connections"),
                vec![with_signed; READERS],
            )
        },
    ];
    let here = |path: &str, message: &Value| {
        let request = Request::new("POST", path, &bootstrap.token).with_body(message.clone());
        with_mcp_headers(request).bytes()
    };
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    for count in &arguments.connections {
        let calls = Script::new(ids.iter().map(|id| here("/mcp", &call(TOOL, id))));
        loads.push(Load {
            cpu_goal: Goal::AtMost(60.0),
            ..load(format!("tools/call, {count} connections"), vec![calls; *count])
        });
        for (what, path) in [
            ("all toolsets", "/mcp?toolsets=all"),
            ("one toolset", "/mcp?toolsets=service_accounts"),
        ] {
            loads.push(load(
                format!("tools/list, {what}, {count} connections"),
                vec![Script::new([here(path, &list)]); *count],
            ));
        }
        for peer in peers {
            let messages = |message: &dyn Fn(&Peer) -> Vec<Value>| {
                let scripts = (0..*count).map(|_| peer.script(&message(peer)));
                scripts.collect::<Outcome<Vec<_>>>()
            };
            let calls = messages(&|peer| ids.iter().map(|id| call(&peer.tool, id)).collect())?;
            loads.push(Load {
                peer: Some(peer),
                ..load(
                    format!("tools/call through {}, {count} connections", peer.name),
                    calls,
                )
            });
            let lists = messages(&|_| vec![list.clone()])?;
            loads.push(Load {
                peer: Some(peer),
                ..load(format!("tools/list of {}, {count} connections", peer.name), lists)
            });
        }
    }
    Ok(loads)
}

fn call(tool: &str, id: &str) -> Value {
    let params = json!({ "name": tool, "arguments": { "serviceAccountId": id } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

fn with_mcp_headers(mut request: Request) -> Request {
    request.headers.extend([
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("MCP-Protocol-Version", REVISION.to_owned()),
    ]);
    request
}

fn one_load(arguments: &Arguments, place: &Place, load: &Load<'_>, series: &mut Series) -> Outcome {
    let address = load.peer.map_or(load.server.address, |peer| peer.address);
    let cpu = || match load.peer {
        Some(peer) => machine::cpu_time_of_family(peer.pid()),
        None => place.spent(load.server).whole(),
    };
    load::send_each(address, &load.scripts, Duration::from_millis(300))?;
    let before = cpu();
    let measured = load::send_each(address, &load.scripts, Duration::from_secs(arguments.secs))?;
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    if let (Some(before), Some(after)) = (before, cpu()) {
        let spent = after.saturating_sub(before).as_secs_f64() * 1e6;
        series.cpu.push(spent / measured.answers as f64);
    }
    series.rates.push(measured.per_second());
    series.p50.push(measured.p50.as_secs_f64() * 1e3);
    series.p99.push(measured.p99.as_secs_f64() * 1e3);
    Ok(())
}

fn rows(engine: Engine, loads: &[Load<'_>], series: &[Series]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut direct = 0.0;
    for (load, series) in loads.iter().zip(series) {
        let mut row = Row::new(&load.name, engine.name(), "/s", load.goal, series.rates.clone());
        row.latencies = Some((median(&series.p50), median(&series.p99)));
        row.cpu = report::figure(median(&series.cpu));
        rows.push(row);
        if load.cpu_goal.ratio(1.0).is_some() {
            direct = median(&series.p50);
            let name = format!("CPU of {}", load.name);
            rows.push(Row::new(
                &name,
                engine.name(),
                " µs",
                load.cpu_goal,
                series.cpu.clone(),
            ));
        }
        if load.peer.is_some() && load.name.starts_with("tools/call") {
            let added = series.p50.iter().map(|p50| p50 - direct).collect();
            let name = format!("added p50 of {}", load.name);
            rows.push(Row::new(&name, engine.name(), " ms", Goal::None, added));
        }
    }
    rows
}
