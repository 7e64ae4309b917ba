//! Two servers, one truth (R51): rights, revocations, verdicts and plain records, written and read at two servers of one
//! PostgreSQL while either is killed, stopped for a moment or loses its connections.
//!
//! Every answer is noted with the instants of its request and of its arrival. After each round the answers about each
//! record must have an order in which they could have been given by one server alone (linearizability). A request without
//! an answer is sent again, byte for byte, to the other server; its interval begins with the first attempt.
//!
//! Absent on purpose: SQLite, whose file one server owns.

mod hand;
mod order;
mod register;
mod scene;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::http::Connection;
use crate::postgres::{self, Cluster, Durability};
use crate::product::{self, Installation, Server, Store, Workplace};
use crate::random::{self, Random};
use crate::record::Record;
use crate::{clock, process};
use hand::ask;
use order::{Act, Observation};
use register::{Register, ServerAnswer};
use scene::{Scene, renew_tokens, set_up};

/// Write and read at two servers of one PostgreSQL under kills: the answers about each record have an order
#[derive(clap::Args)]
pub struct Arguments {
    /// How many rounds, with one disturbance each
    #[arg(long, default_value_t = 30)]
    rounds: u32,
    /// How long a round lasts, in milliseconds
    #[arg(long, default_value_t = 1_200)]
    millis: u64,
    /// How many connections ask at once
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Repeats the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<std::path::PathBuf>,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

/// A request is sent again for so long; a server that was killed is back long before.
const PATIENCE: Duration = Duration::from_mins(1);
const DATABASE: &str = "main";

/// What happens to the servers in the middle of a round.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    /// `kill -9`, and a start.
    Kill(usize),
    /// It stands still for a moment, and then goes on with what it believed before.
    Pause(usize),
    /// Every connection to the database ends.
    Cut,
    Nothing,
}

#[derive(Default)]
struct Totals {
    answers: usize,
    writes: usize,
    /// Of each record.
    writes_of: BTreeMap<String, usize>,
    refusals: usize,
    retries: usize,
    kills: u32,
    pauses: u32,
    cuts: u32,
}

impl Totals {
    fn count(&mut self, disturbance: Disturbance) {
        match disturbance {
            Disturbance::Kill(_) => self.kills += 1,
            Disturbance::Pause(_) => self.pauses += 1,
            Disturbance::Cut => self.cuts += 1,
            Disturbance::Nothing => {}
        }
    }

    fn figure(&self, connections: usize, registers: usize) -> String {
        format!(
            "On PostgreSQL two servers, {} kills, {} pauses and {} losses of every connection: {} answers ({} of them writes) \
         over {} connections about {} records of rights, revocations, verdicts and descriptions; {} requests were sent \
         again, {} writes were refused for what was there; every history has an order; audit verify and store check passed.",
            self.kills,
            self.pauses,
            self.cuts,
            self.answers,
            self.writes,
            connections,
            registers,
            self.retries,
            self.refusals,
        )
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    let command = format!("cargo xtask endure servers --rounds {}", arguments.rounds);
    println!("seed {seed} (again with: {command} --seed {seed})");
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let workplace = Workplace::create("endure-servers")?;
    let folder = workplace.folder.display().to_string();
    let figure = drive(arguments, &binary, &workplace, seed)
        .context(format_args!("with seed {seed} (logs are kept in {folder})"))?;
    workplace.remove()?;
    println!("{figure}");
    if arguments.record {
        Record::new(&["R51"], figure, command)
            .with_seeds(seed.to_string())
            .write("endure-servers")?;
    }
    Ok(())
}

fn drive(
    arguments: &Arguments,
    binary: &std::path::Path,
    workplace: &Workplace,
    seed: u64,
) -> Outcome<String> {
    let binaries = postgres::find_or_install()?;
    let cluster = Cluster::start(&binaries, Durability::Full)?;
    cluster.create_database(DATABASE)?;
    let store = Store::Postgres {
        url: cluster.url(DATABASE),
        keys: workplace.folder.join("keys"),
    };
    let installation = |name: &str| Installation {
        log: workplace.folder.join(format!("{name}.log")),
        ..Installation::new(binary, store.clone(), &workplace.folder)
    };
    let installations = [installation("first"), installation("second")];
    let bootstrap = installations[0].initialize()?;
    let mut servers = [Some(installations[0].serve()?), Some(installations[1].serve()?)];
    let address = |server: &Option<Server>| server.as_ref().map(|server| server.address);
    let addresses = [
        address(&servers[0]).context("no first server")?,
        address(&servers[1]).context("no second server")?,
    ];
    let scene = Scene {
        bootstrap,
        addresses,
        began: clock::now(),
        seed,
        count: AtomicU64::new(1),
    };
    let mut random = Random::part(seed, 0);
    let mut totals = Totals::default();
    let (mut registers, mut values) = set_up(&scene)?;
    for round in 1..=arguments.rounds {
        // A token that was revoked is over: each round has tokens of its own.
        renew_tokens(&scene, &mut registers, &mut values, round)?;
        let answers = Mutex::new(vec![Vec::new(); registers.len()]);
        let is_over = AtomicBool::new(false);
        let disturbance = choose(&mut random, round);
        let outcome = std::thread::scope(|scope| -> Outcome {
            let hands: Vec<_> = (0..arguments.connections)
                .map(|number| {
                    let (scene, registers, answers, is_over) = (&scene, &registers, &answers, &is_over);
                    scope.spawn(move || ask(scene, registers, answers, is_over, round, number))
                })
                .collect();
            let half = Duration::from_millis(arguments.millis / 2);
            std::thread::sleep(half);
            let disturbed = disturb(disturbance, &mut servers, &installations, &cluster, &addresses);
            std::thread::sleep(half);
            is_over.store(true, Ordering::SeqCst);
            let mut outcome = disturbed;
            for hand in hands {
                let told = hand
                    .join()
                    .map_err(|_| Failure::new("a connection of the driver panicked"));
                match told.and_then(|told| told) {
                    Ok(counts) => {
                        totals.refusals += counts.0;
                        totals.retries += counts.1;
                    }
                    Err(failure) => outcome = outcome.and(Err(failure)),
                }
            }
            outcome
        });
        outcome.context(format_args!("round {round}, {disturbance:?}"))?;
        totals.count(disturbance);
        let mut answers = answers
            .into_inner()
            .map_err(|_| Failure::new("a connection of the driver panicked"))?;
        for (at, register) in registers.iter().enumerate() {
            judge(&scene, register, &mut values[at], &mut answers[at], &mut totals)
                .context(format_args!("round {round}, {disturbance:?}"))?;
        }
        if round <= 3 || round % 10 == 0 || round == arguments.rounds {
            println!(
                "{round}/{}: {disturbance:?}, {} answers so far, each history has an order",
                arguments.rounds, totals.answers
            );
        }
    }
    for server in servers.into_iter().flatten() {
        server.stop()?;
    }
    installations[0].check(&["audit", "verify"])?;
    installations[0].check(&["store", "check"])?;
    if let Some((name, _)) = totals.writes_of.iter().find(|(_, writes)| **writes == 0) {
        return Err(Failure::new(format!(
            "nothing was written about {name}: more rounds are needed"
        )));
    }
    Ok(totals.figure(arguments.connections, registers.len()))
}

/// Every kind of disturbance comes before one is drawn.
fn choose(random: &mut Random, round: u32) -> Disturbance {
    let which = match round {
        1..=5 => u64::from(round),
        _ => random.between(0, 5),
    };
    match which {
        1 => Disturbance::Kill(0),
        2 => Disturbance::Cut,
        3 => Disturbance::Kill(1),
        4 => Disturbance::Pause(0),
        5 => Disturbance::Pause(1),
        _ => Disturbance::Nothing,
    }
}

fn disturb(
    disturbance: Disturbance,
    servers: &mut [Option<Server>; 2],
    installations: &[Installation; 2],
    cluster: &Cluster,
    addresses: &[SocketAddr; 2],
) -> Outcome {
    match disturbance {
        Disturbance::Kill(which) => {
            let server = servers[which].take().context("no server to kill")?;
            server.kill()?;
            let mut started = installations[which].launch_at(addresses[which])?;
            started.wait_until_ready(PATIENCE)?;
            servers[which] = Some(started);
            Ok(())
        }
        Disturbance::Pause(which) => {
            let pid = servers[which].as_ref().context("no server to pause")?.pid();
            process::signal(pid, "STOP");
            std::thread::sleep(Duration::from_millis(400));
            process::signal(pid, "CONT");
            Ok(())
        }
        Disturbance::Cut => {
            let mut psql = Command::new("psql");
            psql.args(["-X", "-q", "-At", "-d", &cluster.url(DATABASE), "-c"]);
            psql.arg(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                 where datname = current_database() and pid <> pg_backend_pid()",
            );
            process::output(&mut psql).map(drop)
        }
        Disturbance::Nothing => Ok(()),
    }
}

/// Reads the record at both servers once more, looks for an order, and keeps what it holds now.
fn judge(
    scene: &Scene,
    register: &Register,
    value: &mut u64,
    answers: &mut Vec<Observation>,
    totals: &mut Totals,
) -> Outcome {
    let mut last = *value;
    for (server, address) in scene.addresses.iter().enumerate() {
        let mut connection = Connection::new(*address);
        let begin = clock::now();
        loop {
            let sent = scene.began.elapsed();
            let told = match connection.send(&register.read(&scene.bootstrap)) {
                Ok(answer) => register.hear_read(&answer)?,
                Err(_) => ServerAnswer::Unavailable,
            };
            if let ServerAnswer::Answer(act) = told {
                if let Act::Read(read) = act {
                    last = read;
                }
                answers.push(Observation {
                    sent,
                    arrived: scene.began.elapsed(),
                    act,
                    server,
                });
                break;
            }
            if begin.elapsed() > PATIENCE {
                return Err(Failure::new(format!(
                    "server {server} does not answer after the round"
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    answers.sort_by_key(|answered| answered.sent);
    totals.answers += answers.len();
    let is_write = |answered: &&Observation| matches!(answered.act, Act::Write(_));
    let writes = answers.iter().filter(is_write).count();
    totals.writes += writes;
    *totals.writes_of.entry(register.name()).or_default() += writes;
    if let Err(fitting) = order::find(*value, answers) {
        let lines: Vec<String> = answers.iter().map(line).collect();
        let lines = lines.concat();
        return Err(Failure::new(format!(
            "VIOLATION: the answers about {} have no order (it held {value} before; {fitting} of {} fit):{lines}",
            register.name(),
            answers.len()
        )));
    }
    *value = last;
    Ok(())
}

fn line(answered: &Observation) -> String {
    format!(
        "\n  {:>12.6} to {:>12.6} at server {}: {:?}",
        answered.sent.as_secs_f64(),
        answered.arrived.as_secs_f64(),
        answered.server,
        answered.act
    )
}
