//! The API under load, server and load generator on the same cores.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::figures::{self, Others, Series};
use super::load::{self, Script};
use super::machine;
use super::report::{self, Goal, Row};
use super::scripts::{Scripts, create_accounts};
use crate::failure::{Context, Failure, Outcome};
use crate::http::Connection;
use crate::postgres::{self, Binaries, Cluster, Durability};
use crate::product::{self, Bootstrap, Installation, Server, Store, Workplace};
use crate::{Engine, clock};

/// Measure the API: reads, lists and durable mutations beside the disk's raw speed
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
    /// How many service accounts the store holds
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..))]
    accounts: u32,
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
    let mut rows = Vec::new();
    for engine in arguments.engine.each() {
        let workplace = Workplace::create(&format!("bench-{}", engine.word()))?;
        let measured = Bench {
            arguments,
            engine,
            binary: &binary,
            workplace: &workplace,
        }
        .measure(postgres.as_ref());
        rows.extend(measured.context(format_args!(
            "{}, log in {}",
            engine.name(),
            workplace.folder.display()
        ))?);
        workplace.remove()?;
    }
    let size = binary.metadata().context("cannot read the binary's size")?.len();
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    let mib = size as f64 / f64::from(1 << 20);
    rows.push(Row::new(
        "Stripped binary",
        "–",
        " MiB",
        Goal::AtMost(30.0),
        vec![mib],
    ));

    let table = report::table(&rows);
    println!("{table}");
    if let Some(path) = &arguments.write {
        write(path, arguments, postgres.as_ref(), &table)?;
    }
    Ok(())
}

fn write(path: &Path, arguments: &Arguments, postgres: Option<&Binaries>, table: &str) -> Outcome {
    let mut facts = machine::describe();
    facts.extend(postgres.map(|binaries| format!("PostgreSQL: {}", binaries.version)));
    let facts = facts.join("\n- ");
    let text = format!(
        "# Benchmarks\n\n\
         Written by `cargo xtask bench api --rounds {} --secs {} --accounts {} --write docs/benchmarks.md`.\n\n\
         - {facts}\n\n\
         Load generator (one thread) and server share the cores. Every mutation is on the disk before it is \
         answered (SQLite: WAL with synchronous=FULL; PostgreSQL: fsync and synchronous_commit on). Audit of \
         sensitive reads is on, rate limits are off. A ratio of 1 or more is a goal that is reached; where two \
         figures of processor time are given, the second is PostgreSQL's.\n\n\
         {table}",
        arguments.rounds, arguments.secs, arguments.accounts
    );
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).context(format_args!("cannot create {}", folder.display()))?;
    }
    std::fs::write(path, text).context(format_args!("cannot write {}", path.display()))
}

struct Bench<'a> {
    arguments: &'a Arguments,
    engine: Engine,
    binary: &'a Path,
    workplace: &'a Workplace,
}

impl Bench<'_> {
    fn measure(&self, binaries: Option<&Binaries>) -> Outcome<Vec<Row>> {
        let cluster = match binaries {
            Some(binaries) if self.engine == Engine::Postgres => {
                Some(Cluster::start(binaries, Durability::Full)?)
            }
            _ => None,
        };
        let installation = self.installation("main", cluster.as_ref())?;
        let one_by_one = Installation {
            environment: vec![("PROVOST_WRITER_MAX_BATCH", "1".into())],
            ..installation.clone()
        };
        let bootstrap = installation.initialize()?;
        let ids = self.seed(&installation, &bootstrap)?;
        let scripts = Scripts::new(&bootstrap, &ids);

        let names: [(&str, usize, &Script); 5] = [
            ("read one account", 32, &scripts.read),
            ("read capabilities", 32, &scripts.capabilities),
            ("list 100 accounts", 32, &scripts.list),
            ("durable mutation, 1 connection", 1, &scripts.mutate),
            ("durable mutation, 64 connections", 64, &scripts.mutate),
        ];
        let mut series: Vec<_> = names.iter().map(|_| Series::default()).collect();
        let (mut ungrouped, mut memory, mut ready) = (Series::default(), Vec::new(), Vec::new());
        let (mut syncs, mut gains) = (Vec::new(), Vec::new());

        for round in 1..=self.arguments.rounds {
            let disk = cluster
                .as_ref()
                .map_or(self.workplace.folder.as_path(), Cluster::folder);
            syncs.push(machine::measure_syncs(disk, Duration::from_secs(1))?);
            ready.push(self.time_first_start(round, cluster.as_ref())?);

            let server = installation.serve()?;
            std::thread::sleep(Duration::from_secs(1));
            memory.extend(machine::resident_mib(server.pid()));
            for ((name, connections, script), series) in names.iter().zip(&mut series) {
                self.load(
                    &server,
                    cluster.as_ref(),
                    (name, round),
                    *connections,
                    script,
                    series,
                )?;
            }
            server.stop()?;

            let server = one_by_one.serve()?;
            let name = ("one commit per mutation, 64 connections", round);
            self.load(
                &server,
                cluster.as_ref(),
                name,
                64,
                &scripts.mutate,
                &mut ungrouped,
            )?;
            server.stop()?;
            let grouped = series.last().and_then(|series| series.rates.last());
            gains.extend(
                grouped
                    .zip(ungrouped.rates.last())
                    .map(|(grouped, single)| grouped / single),
            );
        }
        Ok(figures::rows(
            self.engine,
            &names.map(|(name, _, _)| name),
            &series,
            &ungrouped,
            &Others {
                memory,
                ready,
                syncs,
                gains,
            },
        ))
    }

    fn installation(&self, name: &str, cluster: Option<&Cluster>) -> Outcome<Installation> {
        let folder = &self.workplace.folder;
        let store = match cluster {
            Some(cluster) => {
                cluster.create_database(name)?;
                Store::Postgres {
                    url: cluster.url(name),
                    keys: folder.join(format!("{name}-keys")),
                }
            }
            None => Store::Sqlite {
                data: folder.join(name),
            },
        };
        let log = folder.join("server.log");
        Ok(Installation {
            binary: self.binary.to_path_buf(),
            store,
            environment: Vec::new(),
            log,
            configuration: None,
        })
    }

    /// Creates the accounts over some connections at once and returns their ids.
    fn seed(&self, installation: &Installation, bootstrap: &Bootstrap) -> Outcome<Vec<String>> {
        eprintln!(
            "{}: creating {} accounts",
            self.engine.name(),
            self.arguments.accounts
        );
        let server = installation.serve()?;
        let address = server.address;
        let numbers: Vec<u32> = (0..self.arguments.accounts).collect();
        let ids = std::thread::scope(|scope| {
            let share = numbers.len().div_ceil(16);
            let create = |numbers| move || create_accounts(&mut Connection::new(address), bootstrap, numbers);
            let threads: Vec<_> = numbers
                .chunks(share)
                .map(|numbers| scope.spawn(create(numbers)))
                .collect();
            let mut ids = Vec::new();
            for thread in threads {
                ids.extend(
                    thread
                        .join()
                        .map_err(|_| Failure::new("a creating thread panicked"))??,
                );
            }
            Ok(ids)
        })?;
        server.stop()?;
        Ok(ids)
    }

    /// From an empty store to the first 200 of `/readyz`, in ms.
    fn time_first_start(&self, round: u32, cluster: Option<&Cluster>) -> Outcome<f64> {
        let installation = self.installation(&format!("empty{round}"), cluster)?;
        let start = clock::now();
        let server = installation.serve()?;
        let elapsed = start.elapsed();
        server.stop()?;
        Ok(elapsed.as_secs_f64() * 1e3)
    }

    fn load(
        &self,
        server: &Server,
        cluster: Option<&Cluster>,
        (name, round): (&str, u32),
        connections: usize,
        script: &Script,
        series: &mut Series,
    ) -> Outcome {
        let cpu = || {
            let postgres = cluster
                .and_then(Cluster::pid)
                .and_then(machine::cpu_time_of_family);
            (machine::cpu_time(server.pid()), postgres)
        };
        load::send(server.address, connections, Duration::from_millis(300), script)?;
        let before = cpu();
        let measured = load::send(
            server.address,
            connections,
            Duration::from_secs(self.arguments.secs),
            script,
        )
        .context(name)?;
        let after = cpu();
        #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
        let per_request = |after: Option<Duration>, before: Option<Duration>| {
            Some(after?.saturating_sub(before?).as_secs_f64() * 1e6 / measured.answers as f64)
        };
        series.rates.push(measured.per_second());
        series.p50.push(measured.p50.as_secs_f64() * 1e3);
        series.p99.push(measured.p99.as_secs_f64() * 1e3);
        series.cpu.extend(per_request(after.0, before.0));
        series.postgres_cpu.extend(per_request(after.1, before.1));
        eprintln!(
            "{} round {round}/{}: {name}: {}/s",
            self.engine.name(),
            self.arguments.rounds,
            report::figure(measured.per_second())
        );
        Ok(())
    }
}
