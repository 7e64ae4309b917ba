//! Raw bytes on sockets (R26): request smuggling, odd framing, limits to the byte, slow peers, rapid resets.
//!
//! The suite of the kernel proves the edge in its own process; here it is the shipped binary, its routes, and a real
//! change that somebody tries to smuggle in. Whether a byte of a body became a request is seen twice: by the answers on
//! the connection, of which there are exactly as many as the case says, and by the accounts that exist afterwards.
//!
//! The cases are a table (`wire/cases.rs`). Each is sent whole, byte by byte, and cut in pieces by the seed.

mod cases;
mod limits;
pub mod resets;
mod slow;
mod socket;

use std::net::SocketAddr;
use std::time::Duration;

use super::Choices;
use super::fixture::{self, Purpose};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;
use crate::random::Random;
use cases::{CASES, CONTROL, Case, Means};
use socket::{Segmentation, Socket};

/// Send odd, slow and hostile bytes to the shipped binary: no smuggled request, exact limits, others served
#[derive(clap::Args)]
pub struct Arguments {
    /// How often each case is cut into random pieces, beside being sent whole and byte by byte
    #[arg(long, default_value_t = 3)]
    cuts: u32,
    /// How many slow connections there are while others are served; the goal is 1000
    #[arg(long, default_value_t = 200)]
    slow: usize,
    /// How many streams are opened and reset at once, in thousands; the goal is 10000 a second
    #[arg(long, default_value_t = 50)]
    thousand_resets: u64,
    /// How long each load of the others lasts, in seconds
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    secs: u64,
    /// How often the others are measured, without and with slow connections; medians are compared
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    #[command(flatten)]
    choices: Choices,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let sizes = format!(
        "--cuts {} --slow {} --thousand-resets {} --secs {} --rounds {}",
        arguments.cuts, arguments.slow, arguments.thousand_resets, arguments.secs, arguments.rounds
    );
    let purpose = Purpose {
        name: "wire",
        goals: &["R26"],
        sizes,
        profile: "ci",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

fn drive(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<String> {
    let bootstrap = place.installation.initialize()?;
    let server = place.installation.serve()?;
    let address = server.address;
    let sent = corpus(arguments, address, &bootstrap, seed)?;
    println!("{} cases in {sent} conversations: 0 desyncs", CASES.len());
    let exact = limits::check(address, &bootstrap)?;
    println!("{exact} limits are exact at -1, 0 and +1");
    let secs = Duration::from_secs(arguments.secs);
    let slow = slow::check(address, &bootstrap, arguments.slow, secs, arguments.rounds)?;
    println!("{slow}");
    let resets = resets::check(&server, arguments.thousand_resets * 1_000)?;
    println!("{resets}");
    server.stop()?;
    Ok(format!(
        "{} cases of smuggling and odd framing in {sent} conversations, 0 desyncs, 0 smuggled changes; {exact} limits of \
         heads and bodies exact at -1, 0 and +1 byte; {slow}; {resets}.",
        CASES.len()
    ))
}

/// Sends every case in every way; returns how many conversations that were.
fn corpus(arguments: &Arguments, address: SocketAddr, bootstrap: &Bootstrap, seed: u64) -> Outcome<u64> {
    let mut random = Random::part(seed, 0);
    let mut sent = 0;
    let mut faults = Vec::new();
    for case in CASES {
        let mut cuts = vec![Segmentation::Whole, Segmentation::Bytes];
        cuts.extend((0..arguments.cuts).map(|_| Segmentation::Pieces(random.next())));
        for cut in cuts {
            sent += 1;
            let bytes = case.bytes(bootstrap, sent);
            if let Err(fault) = converse(address, case, &bytes, cut) {
                faults.push(format!("\n  {} ({cut:?}): {fault}", case.name));
                break;
            }
        }
    }
    if !faults.is_empty() {
        let count = faults.len();
        return Err(Failure::new(format!(
            "{count} of {} cases:{}",
            CASES.len(),
            faults.concat()
        )));
    }
    // The control shows that a request that does get through would be seen.
    let bytes = CONTROL.bytes(bootstrap, 0);
    converse(address, &CONTROL, &bytes, Segmentation::Whole).context(CONTROL.name)?;
    let smuggled = smuggled(address, bootstrap)?;
    if smuggled != ["smuggled-00000000"] {
        return Err(Failure::new(format!(
            "of all smuggled requests the control alone may act, but there are {smuggled:?}"
        )));
    }
    Ok(sent)
}

fn smuggled(address: SocketAddr, bootstrap: &Bootstrap) -> Outcome<Vec<String>> {
    let request = Request::get(bootstrap.path("service-accounts?limit=100"), &bootstrap.token);
    let list = Connection::new(address).fetch(&request)?;
    let accounts = list["serviceAccounts"].as_array().context("no serviceAccounts")?;
    let names = accounts.iter().filter_map(|account| account["name"].as_str());
    Ok(names
        .filter(|name| name.starts_with("smuggled"))
        .map(str::to_owned)
        .collect())
}

/// Sends one case and judges what comes back.
fn converse(address: SocketAddr, case: &Case, bytes: &[u8], cut: Segmentation) -> Outcome {
    let mut socket = Socket::connect(address)?;
    socket.send(bytes, cut);
    let mut got = Vec::new();
    for (number, means) in case.answers.iter().enumerate() {
        let answer = socket.answer(*means == Means::Head)?;
        let Some(answer) = answer else {
            return Err(Failure::new(format!(
                "the connection ends after {got:?}, {} answers are due",
                case.answers.len()
            )));
        };
        got.push(answer.status);
        if !means.allows(answer.status) {
            return Err(Failure::new(format!(
                "answer {} is {}, {means:?} is due: {}",
                number + 1,
                answer.status,
                answer.text
            )));
        }
        if !answer.is_ours {
            return Err(Failure::new(format!(
                "an answer without X-Request-Id: {}",
                answer.text
            )));
        }
    }
    if case.stays {
        // The next request is understood as such: nothing of the case was left over.
        socket.send(
            b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            Segmentation::Whole,
        );
        match socket.answer(false)? {
            Some(answer) if answer.status == 200 => {}
            Some(answer) => {
                return Err(Failure::new(format!(
                    "after {got:?} the connection answers the next request {}: {}",
                    answer.status, answer.text
                )));
            }
            None => return Err(Failure::new(format!("after {got:?} the connection is closed"))),
        }
    }
    match socket.answer(false)? {
        None => Ok(()),
        Some(answer) => Err(Failure::new(format!(
            "DESYNC: after {got:?} there is one more answer: {} {}",
            answer.status, answer.text
        ))),
    }
}
