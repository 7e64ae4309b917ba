//! MCP under load: what a call of a tool costs, and what a signed token costs.

mod tokens;

use serde_json::{Value, json};

use super::bench_store::BenchStore;
use super::load::Script;
use super::report::{self, Goal, Row};
use super::rounds::{Rounds, Series};
use super::scripts::create_accounts;
use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;

/// How many connections read with tokens, and how many tokens there are.
const READERS: usize = 32;
const TOKENS: usize = 64;
const ACCOUNTS: u32 = 64;
const TOOL: &str = "getHeadlessServiceAccount";
const REVISION: &str = "2025-11-25";

/// Measure MCP: reads with signed tokens, lists and calls of tools
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    rounds: Rounds,
    /// Over how many connections tools are called
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    connections: Vec<usize>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let measured = arguments.rounds.each("mcp", |place| measure(arguments, place))?;
    arguments.rounds.conclude(
        "Benchmark: MCP and signed tokens",
        &format!(
            "Load generator (one thread) and server share the cores. The tool reads one service account from the store; \
             each call is authenticated, judged and counted as its account's, and sensitive reads are audited. A signed \
             token is an access token of this server (EdDSA), {TOKENS} of them in turn."
        ),
        &report::table(measured.engines.iter().flatten()),
        &measured,
    )
}

/// What is asked over so many connections.
struct Load {
    name: String,
    connections: usize,
    script: Script,
    goal: Goal,
    /// The most µs of processor time that a request may take.
    cpu_goal: Goal,
}

fn measure(arguments: &Arguments, place: &BenchStore) -> Outcome<Vec<Row>> {
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    let numbers: Vec<u32> = (0..ACCOUNTS).collect();
    let ids = create_accounts(&mut Connection::new(server.address), &bootstrap, &numbers)?;
    let signed = tokens::issue(&server, &bootstrap, TOKENS)?;
    let loads = loads(arguments, &bootstrap, &ids, &signed);
    let mut series: Vec<_> = loads.iter().map(|_| Series::default()).collect();
    let rounds = &arguments.rounds;
    for round in 1..=rounds.count {
        for (load, series) in loads.iter().zip(&mut series) {
            let sent = rounds.send(place, &server, load.connections, &load.script, series);
            sent.context(&load.name)?;
            rounds.say(place.engine, round, &load.name, series);
        }
    }
    server.stop()?;
    let mut rows = Vec::new();
    for (load, series) in loads.iter().zip(&series) {
        rows.push(series.row(&load.name, place.engine, load.goal));
        if load.cpu_goal.ratio(1.0).is_some() {
            let name = format!("CPU of {}", load.name);
            let values = series.whole_cpu();
            rows.push(Row::new(&name, place.engine.name(), " µs", load.cpu_goal, values));
        }
    }
    Ok(rows)
}

fn loads(arguments: &Arguments, bootstrap: &Bootstrap, ids: &[String], signed: &[String]) -> Vec<Load> {
    let read = |id: &String, token: &str| {
        Request::get(bootstrap.path(&format!("service-accounts/{id}")), token).bytes()
    };
    let load = |name: String, connections, script| Load {
        name,
        connections,
        script,
        goal: Goal::None,
        cpu_goal: Goal::None,
    };
    let own = Script::new(ids.iter().map(|id| read(id, &bootstrap.token)));
    let with_signed = Script::new(ids.iter().zip(signed).map(|(id, token)| read(id, token)));
    let name = |token: &str| format!("read with {token} token, {READERS} connections");
    let mut loads = vec![
        load(name("an account's"), READERS, own),
        Load {
            goal: Goal::AtLeast(15_000.0),
            ..load(name("a signed"), READERS, with_signed)
        },
    ];
    let ask = |path: &str, message: Value| {
        let mut request = Request::new("POST", path, &bootstrap.token).with_body(message);
        request.headers.extend([
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("MCP-Protocol-Version", REVISION.to_owned()),
        ]);
        request.bytes()
    };
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    for &count in &arguments.connections {
        let calls = Script::new(ids.iter().map(|id| ask("/mcp?toolsets=all", call(id))));
        loads.push(Load {
            cpu_goal: Goal::AtMost(60.0),
            ..load(format!("tools/call, {count} connections"), count, calls)
        });
        for (what, path) in [
            ("all toolsets", "/mcp?toolsets=all"),
            ("one toolset", "/mcp?toolsets=service_accounts"),
        ] {
            let name = format!("tools/list, {what}, {count} connections");
            loads.push(load(name, count, Script::new([ask(path, list.clone())])));
        }
    }
    loads
}

fn call(id: &str) -> Value {
    let params = json!({ "name": TOOL, "arguments": { "serviceAccountId": id } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}
