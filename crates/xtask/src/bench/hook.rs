//! What a hook costs from its start to its last byte, beside the least that a program costs; whether a device says what the server says;
//! and how fast what devices judged becomes durable.

pub mod laptop;
mod parity;
mod runs;
mod uploads;

use serde_json::json;

use super::bench_store::BenchStore;
use super::decisions::material;
use super::report::{self, Row};
use super::rounds::Rounds;
use crate::clients::administrator::{Administrator, text};
use crate::failure::Outcome;
use crate::random;
use laptop::Laptop;

/// Measure a hook from its start to its last byte, with an agent and without, and what devices tell; compare device and server
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    rounds: Rounds,
    /// The program of the laptop, as `agent-build` builds it; without it the laptop has the program that is measured
    #[arg(long)]
    laptop: Option<std::path::PathBuf>,
    /// How many policies the device judges by
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(10..=2_000))]
    policies: u32,
    /// How many processes of each kind run in a round
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(100..))]
    runs: u32,
    /// How many random events are judged by the device and by the server; none with 0
    #[arg(long, default_value_t = 100_000)]
    pairs: u64,
    /// Repeats the policies and events of an earlier comparison
    #[arg(long)]
    seed: Option<u64>,
}

/// What a policy blocks, beside those of the benchmark of decisions.
const BLOCKED: &str = "shutdown -h now";

const EXPLANATION: &str = "The device, its server and the processes share the cores. A hook is started as clients start it, is given the event \
of a shell call of half a kilobyte, and is over when its output ends; the floor is a program that does nothing, and this program when it says its \
version. The laptop has the program without the server (`cargo xtask agent-build`), where the command names one with `--laptop`. \"By the agent\" is judged on the device, without a request; \"recorded\" is a call that a policy blocks, which is on the disk before it is \
answered; \"asked\" has no agent, so that the server judges and records; \"nobody\" has neither, and is refused. Processor time is that of the process, \
and beside it that of the agent. Entries of decisions are told by devices at once, 1 000 a request, and are durable when they are answered. A pair is \
an event that the device and the server judged by the same policies.";

pub fn run(arguments: &Arguments) -> Outcome {
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    let measured = arguments
        .rounds
        .each("hook", |place| measure(arguments, place, seed))?;
    arguments.rounds.conclude(
        "Benchmark: hooks of devices that judge",
        EXPLANATION,
        &report::table(measured.engines.iter().flatten()),
        &measured,
    )
}

fn measure(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<Vec<Row>> {
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    let mut administrator = Administrator::new(&server, &bootstrap);
    let hooks = json!({ "fleet": { "hooks": { "judging": "on", "mode": "enforce" } }, "confirm": true });
    administrator.change("PATCH", "automation/settings", hooks)?;
    let program = arguments.laptop.as_ref().unwrap_or(&place.installation.binary);
    let ada = json!({ "loginName": laptop::USER, "displayName": "ada", "email": laptop::USER });
    let ada = text(&administrator.post("directory/users", ada)?, "/user/id")?;
    let make = |name: &str| Laptop::make(place, (name, &ada), program, &server, &bootstrap);
    let mut rows = Vec::new();
    if arguments.pairs > 0 {
        // Of its own: it judges more than a device may tell on a day.
        let mut laptop = make("p")?;
        let compared = parity::compare(&mut laptop, &server, &bootstrap, seed, arguments.pairs)?;
        rows.extend(compared.rows(place.engine));
    }
    let mut laptop = make("h")?;
    material::add_policies(&server, &bootstrap, 1..arguments.policies as usize)?;
    administrator.post(
        "content-policies",
        json!({ "definition": { "id": "no-shutdown", "name": "no shutdown", "action": "block", "evaluateOn": ["pre_tool"],
            "acknowledgeBroadScope": true, "conditions": { "field": "tool.input.command", "op": "eq", "value": BLOCKED } } }),
    )?;
    rows.extend(runs::measure(arguments, place, &mut laptop, &server, &bootstrap)?);
    rows.extend(uploads::measure(
        &arguments.rounds,
        place,
        &server,
        &bootstrap,
        &laptop,
    )?);
    server.stop()?;
    Ok(rows)
}
