//! The ledger driver (R1): mutations over many connections, `kill -9`, restart, comparison.
//!
//! The driver is another process than the server: what it was told survives the kill. Every
//! connection has at most one request without an answer, which it sends again after the restart.

mod atomicity;
mod crud_worker;
mod decision_worker;
mod model;
mod request_log;
mod verdict;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::postgres::Durability;
use crate::product::{self, Installation, Server, Store, Workplace};
use crate::random::{self, Random};
use crate::record::Record;
use crate::{Engine, clock, traffic};
use crud_worker::CrudWorker;
use decision_worker::DecisionWorker;
use model::issued;
use request_log::RequestLog;
use worker::{Counts, Scene, Worker, lifetime_in};

/// Kill the server at random times and compare what it was with what it had acknowledged
#[derive(clap::Args)]
pub struct Arguments {
    /// How often the server is killed, for each engine
    #[arg(long, default_value_t = 20)]
    cycles: u32,
    /// Repeats the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// The engines to test
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// How many connections send mutations at once
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How many more connections keep people, configuration, resources and skills
    #[arg(long, default_value_t = 4)]
    keepers: usize,
    /// How many more connections ask for decisions and import recorded calls
    #[arg(long, default_value_t = 4)]
    deciders: usize,
    /// After how many kills the store and the audit chain are checked offline
    #[arg(long, default_value_t = 5)]
    check_every: u32,
    /// Test this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

#[derive(Default)]
struct Totals {
    kills: u32,
    lost: usize,
    half_applied: usize,
    offline_checks: u32,
    slowest_restart: Duration,
}

/// Every connection.
struct WorkerPool {
    workers: Vec<Worker>,
    keepers: Vec<CrudWorker>,
    deciders: Vec<DecisionWorker>,
}

impl WorkerPool {
    fn gather(arguments: &Arguments, scene: &Scene, server: &Server, workplace: &Workplace) -> Outcome<Self> {
        let mut connection = Connection::new(server.address);
        let mut keeper = |number| CrudWorker::begin(scene, number, &mut connection, &workplace.folder);
        Ok(Self {
            workers: (0..arguments.connections)
                .map(|number| Worker::new(scene.seed, number))
                .collect(),
            keepers: (0..arguments.keepers).map(&mut keeper).collect::<Outcome<_>>()?,
            deciders: (0..arguments.deciders)
                .map(|number| DecisionWorker::new(scene.seed, number))
                .collect(),
        })
    }

    fn counts(&self) -> Counts {
        let workers = self.workers.iter().map(|worker| worker.counts);
        let all = workers
            .chain(self.keepers.iter().map(|keeper| keeper.counts))
            .chain(self.deciders.iter().map(|decider| decider.counts));
        all.fold(Counts::default(), |sum, counts| Counts {
            acknowledged: sum.acknowledged + counts.acknowledged,
            unanswered: sum.unanswered + counts.unanswered,
            replayed: sum.replayed + counts.replayed,
            first_answers: sum.first_answers + counts.first_answers,
        })
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    println!(
        "seed {seed} (again with: cargo xtask crash --seed {seed} --engine {} --cycles {} --connections {})",
        arguments.engine.word(),
        arguments.cycles,
        arguments.connections
    );
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let mut figures = Vec::new();
    for engine in arguments.engine.each() {
        let workplace = Workplace::create(&format!("crash-{}", engine.word()))?;
        let folder = workplace.folder.clone();
        let driven = drive(arguments, seed, engine, &binary, &workplace);
        let figure = driven.context(format_args!(
            "{} with seed {seed} (ledger, server log and store are kept in {})",
            engine.name(),
            folder.display()
        ))?;
        workplace.remove()?;
        figures.push(figure);
    }
    if arguments.record {
        let command = format!(
            "cargo xtask crash --cycles {} --engine {}",
            arguments.cycles,
            arguments.engine.word()
        );
        let record = Record::new(&["R1"], figures.join(" "), command).with_seeds(seed.to_string());
        record.write("crash")?;
    }
    Ok(())
}

fn drive(
    arguments: &Arguments,
    seed: u64,
    engine: Engine,
    binary: &std::path::Path,
    workplace: &Workplace,
) -> Outcome<String> {
    let (store, cluster) = Store::create(engine, &workplace.folder, Durability::Full)?;
    let installation = Installation::new(binary, store, &workplace.folder);
    let bootstrap = installation.initialize()?;
    let mut server = installation.serve()?;
    let scene = set_scene(
        bootstrap,
        seed,
        RequestLog::new(workplace.file("ledger.jsonl")?),
        &server,
    )?;
    let mut crew = WorkerPool::gather(arguments, &scene, &server, workplace)?;
    let mut random = Random::part(seed, 0);
    let mut totals = Totals::default();

    for cycle in 1..=arguments.cycles {
        let before = crew.counts();
        let delay = random.millis(5, 500);
        kill_under_load(&scene, &mut crew, server, delay)?;
        totals.kills += 1;
        scene.ledger.sync()?;

        let killed = clock::now();
        server = installation.serve()?;
        let restart = killed.elapsed();
        totals.slowest_restart = totals.slowest_restart.max(restart);

        let verdict = retry_and_judge(&scene, &mut crew, &server)?;
        let after = crew.counts();
        println!(
            "{} {cycle}/{}: killed after {} ms, {} acknowledged, {} unanswered and retried \
             ({} replayed, {} first answers), ready again in {} ms, {} lost, {} half-applied",
            engine.word(),
            arguments.cycles,
            delay.as_millis(),
            after.acknowledged - before.acknowledged,
            after.unanswered - before.unanswered,
            after.replayed - before.replayed,
            after.first_answers - before.first_answers,
            restart.as_millis(),
            verdict.lost.len(),
            verdict.half_applied.len(),
        );
        totals.lost += verdict.lost.len();
        totals.half_applied += verdict.half_applied.len();
        if !verdict.is_clean() {
            verdict.print();
            print_totals(engine, &totals, crew.counts());
            return Err(Failure::new(
                "the server lost or half-applied acknowledged mutations",
            ));
        }
        if cycle % arguments.check_every.max(1) == 0 || cycle == arguments.cycles {
            server.stop()?;
            installation.check(&["audit", "verify"])?;
            installation.check(&["store", "check"])?;
            totals.offline_checks += 1;
            server = installation.serve()?;
        }
    }
    server.stop()?;
    drop(cluster);
    print_totals(engine, &totals, crew.counts());
    let records: usize = crew.keepers.iter().map(CrudWorker::known).sum();
    let decisions: usize = crew.deciders.iter().map(DecisionWorker::known).sum();
    println!(
        "{}: {records} records beside accounts were compared after every kill, {decisions} decisions read after the \
         next one",
        engine.name()
    );
    Ok(format!(
        "{}: {} kills, {} mutations acknowledged, {} lost, {} half-applied; slowest restart {} ms.",
        engine.name(),
        totals.kills,
        crew.counts().acknowledged,
        totals.lost,
        totals.half_applied,
        totals.slowest_restart.as_millis()
    ))
}

/// Creates the account that everybody rotates and reads the settings that one connection changes.
fn set_scene(
    bootstrap: product::Bootstrap,
    seed: u64,
    ledger: RequestLog,
    server: &Server,
) -> Outcome<Scene> {
    let mut connection = Connection::new(server.address);
    let key = format!("crash-{seed:016x}-shared");
    let shared = traffic::account("Shared", "viewer");
    let create = bootstrap.change("POST", "service-accounts", shared, &key, "crash driver");
    let created = connection.fetch(&create)?;
    let (account, token) = issued(&created)?;
    let began = account["createdAt"]
        .as_str()
        .context("an account without createdAt")?
        .to_owned();
    let shared_account = account["id"]
        .as_str()
        .context("an account without an id")?
        .to_owned();
    let settings = connection.fetch(&Request::get(
        bootstrap.path("automation/settings"),
        &bootstrap.token,
    ))?;
    lifetime_in(&settings).context("the automation settings show no tokens.maxLifetimeSeconds")?;
    let shared_tokens = Mutex::new(BTreeMap::from([(token.id, Some(token.secret))]));
    Ok(Scene {
        bootstrap,
        seed,
        ledger,
        shared_account,
        shared_tokens,
        killing: AtomicBool::new(false),
        settings,
        began,
    })
}

fn kill_under_load(scene: &Scene, crew: &mut WorkerPool, server: Server, delay: Duration) -> Outcome {
    let address = server.address;
    scene.killing.store(false, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for worker in &mut crew.workers {
            running.push(scope.spawn(move || worker.mutate_until_lost(scene, &mut Connection::new(address))));
        }
        for keeper in &mut crew.keepers {
            running.push(scope.spawn(move || keeper.mutate_until_lost(scene, &mut Connection::new(address))));
        }
        for decider in &mut crew.deciders {
            running.push(scope.spawn(move || decider.ask_until_lost(scene, &mut Connection::new(address))));
        }
        std::thread::sleep(delay);
        scene.killing.store(true, Ordering::SeqCst);
        let killed = server.kill();
        for thread in running {
            thread
                .join()
                .map_err(|_| Failure::new("a connection's thread panicked"))??;
        }
        killed
    })
}

fn retry_and_judge(scene: &Scene, crew: &mut WorkerPool, server: &Server) -> Outcome<verdict::Verdict> {
    let workers = &mut crew.workers;
    let address = server.address;
    let mut verdict = verdict::Verdict::default();
    let shown = verdict::list_accounts(scene, &mut Connection::new(address), &mut verdict)?;
    verdict.half_applied.extend(
        workers
            .iter_mut()
            .filter_map(|worker| worker.look_for_effect(&shown)),
    );
    if !verdict.is_clean() {
        return Ok(verdict);
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(move || worker.retry(scene, &mut Connection::new(address))))
            .collect();
        for thread in running {
            thread
                .join()
                .map_err(|_| Failure::new("a connection's thread panicked"))??;
        }
        Ok(())
    })?;
    let mut connection = Connection::new(address);
    let mut verdict = verdict::judge(scene, workers, &mut connection)?;
    for keeper in &mut crew.keepers {
        keeper.retry(scene, &mut connection, &mut verdict)?;
        keeper.judge(scene, &mut connection, &mut verdict)?;
    }
    for decider in &mut crew.deciders {
        decider.judge(scene, &mut connection, &mut verdict)?;
    }
    Ok(verdict)
}

fn print_totals(engine: Engine, totals: &Totals, counts: Counts) {
    println!(
        "{}: {} kills, {} acknowledged, {} retried ({} replayed, {} first answers), {} lost, {} half-applied; \
         slowest restart {} ms; audit verify and store check passed {} times",
        engine.name(),
        totals.kills,
        counts.acknowledged,
        counts.unanswered,
        counts.replayed,
        counts.first_answers,
        totals.lost,
        totals.half_applied,
        totals.slowest_restart.as_millis(),
        totals.offline_checks,
    );
}
