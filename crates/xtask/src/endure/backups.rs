//! Online backups (R7): taken while connections change things, restored elsewhere with keys that were exported and
//! imported, started, and compared with what had been acknowledged before the backup began.
//!
//! A restored store revokes every token unless it is told to keep them, so the rounds take turns: with the tokens kept,
//! those that had ended before the backup must stay refused and the others must work; without, none may work and the
//! token that the restore prints must.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::Choices;
use super::fixture::{self, Purpose, millis};
use super::known::{Judge, KnownRecords};
use super::workload::{Scene, Step, Workload};
use crate::bench::bench_store::BenchStore;
use crate::bench::load::quantile;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::Connection;
use crate::product::{Installation, Server, Store};
use crate::random::Random;

const PASSPHRASE: &str = "correct horse battery staple";

/// Back up a busy store again and again, restore each copy elsewhere, and compare it with what was acknowledged
#[derive(clap::Args)]
pub struct Arguments {
    /// How many backups are taken, for each engine
    #[arg(long, default_value_t = 6)]
    backups: u32,
    /// How many connections keep the server busy
    #[arg(long, default_value_t = 8)]
    connections: usize,
    #[command(flatten)]
    choices: Choices,
}

#[derive(Default)]
struct Totals {
    taken: Vec<Duration>,
    compared: u64,
    kept: u32,
    during: u64,
    largest: u64,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let sizes = format!(
        "--backups {} --connections {}",
        arguments.backups, arguments.connections
    );
    let purpose = Purpose {
        name: "backups",
        goals: &["R7"],
        sizes,
        profile: "ci",
    };
    fixture::each(&arguments.choices, &purpose, |place, seed| {
        drive(arguments, place, seed)
    })
}

fn drive(arguments: &Arguments, place: &BenchStore, seed: u64) -> Outcome<String> {
    let installation = &place.installation;
    let bootstrap = installation.initialize()?;
    let scene = Scene { bootstrap, seed };
    let server = installation.serve()?;
    let keys = export_keys(installation, place.folder())?;
    let mut hands: Vec<Workload<'_>> = (0..arguments.connections)
        .map(|number| Workload::new(&scene, number))
        .collect();
    let mut random = Random::part(seed, 0);
    let mut totals = Totals::default();
    for round in 1..=arguments.backups {
        let folder = place.folder().join(format!("restored-{round}"));
        std::fs::create_dir_all(&folder).context("cannot make a folder")?;
        let delay = random.millis(100, 600);
        let (before, after) = back_up(&mut hands, &server, installation, &folder, delay, &mut totals)?;
        let keeps_tokens = round % 2 == 1;
        totals.kept += u32::from(keeps_tokens);
        let restored = restore(installation, &folder, &keys, keeps_tokens)?;
        let compared = judge(&scene, &restored, &before, &after)?;
        totals.compared += compared;
        println!(
            "{} {round}/{}: backed up after {} ms of load in {}, {}; {compared} comparisons, 0 differences",
            fixture::word(place.engine),
            arguments.backups,
            delay.as_millis(),
            totals
                .taken
                .last()
                .map_or_else(String::new, |taken| millis(*taken)),
            if keeps_tokens {
                "tokens kept"
            } else {
                "tokens revoked"
            }
        );
        std::fs::remove_dir_all(&folder).context("cannot remove a restored store")?;
    }
    server.stop()?;
    installation.check(&["audit", "verify"])?;
    totals.taken.sort_unstable();
    Ok(format!(
        "{} backups under load of {} connections ({} requests answered meanwhile, all with success; p50 {}, at most {}, \
         up to {:.1} MiB), each restored elsewhere and started: {} comparisons of accounts, tokens and decisions that were \
         acknowledged before the backup began, 0 differences; audit verify and store check passed for each; in {} \
         restores with --keep-tokens the tokens that had ended stayed refused, in the others every token.",
        totals.taken.len(),
        arguments.connections,
        totals.during,
        millis(quantile(&totals.taken, 50)),
        millis(quantile(&totals.taken, 100)),
        f64::from(u32::try_from(totals.largest >> 10).unwrap_or(u32::MAX)) / 1024.0,
        totals.compared,
        totals.kept
    ))
}

/// The keys as an operator brings them to a new machine: exported, and imported there.
fn export_keys(installation: &Installation, folder: &Path) -> Outcome<Keys> {
    let keys = Keys {
        file: folder.join("keys.age").display().to_string(),
        passphrase: folder.join("passphrase").display().to_string(),
    };
    std::fs::write(&keys.passphrase, PASSPHRASE).context("cannot write the passphrase")?;
    installation.check(&[
        "keys",
        "export",
        &keys.file,
        "--passphrase-file",
        &keys.passphrase,
    ])?;
    Ok(keys)
}

struct Keys {
    file: String,
    passphrase: String,
}

/// Takes a backup while the hands work; returns what was known when it began, and after it.
fn back_up(
    hands: &mut [Workload<'_>],
    server: &Server,
    installation: &Installation,
    folder: &Path,
    delay: Duration,
    totals: &mut Totals,
) -> Outcome<(Vec<KnownRecords>, Vec<KnownRecords>)> {
    let address = server.address;
    let over = AtomicBool::new(false);
    let told: Vec<_> = hands.iter().map(Workload::told).collect();
    let answers = || -> u64 {
        let all = told.iter().map(|told| told.lock().map_or(0, |told| told.answers));
        all.sum()
    };
    let before = std::thread::scope(|scope| {
        let over = &over;
        let busy = |hand: &mut Workload<'_>| -> Outcome {
            let mut connection = Connection::new(address);
            while !over.load(Ordering::SeqCst) {
                if let Step::Lost = hand.step(&mut connection)? {
                    return Err(Failure::new("a request got no answer from a living server"));
                }
            }
            Ok(())
        };
        let running: Vec<_> = hands
            .iter_mut()
            .map(|hand| scope.spawn(move || busy(hand)))
            .collect();
        std::thread::sleep(delay);
        let known = told
            .iter()
            .map(|told| told.lock().map(|told| told.known.clone()))
            .collect::<Result<Vec<_>, _>>();
        let answered = answers();
        let start = clock::now();
        let taken = installation.check(&["store", "backup", &folder.join("copy.db").display().to_string()]);
        totals.taken.push(start.elapsed());
        totals.during += answers() - answered;
        over.store(true, Ordering::SeqCst);
        for thread in running {
            thread
                .join()
                .map_err(|_| Failure::new("a connection's thread panicked"))??;
        }
        taken?;
        known.context("a connection's thread panicked")
    })?;
    let size = std::fs::metadata(folder.join("copy.db")).context("there is no copy")?;
    totals.largest = totals.largest.max(size.len());
    let after = hands.iter().map(|hand| hand.look().known.clone()).collect();
    Ok((before, after))
}

/// A server of the restored store, and what it was restored with.
struct RestoredServer {
    server: Server,
    /// A token that works there.
    token: String,
    keeps_tokens: bool,
}

fn restore(
    installation: &Installation,
    folder: &Path,
    keys: &Keys,
    keeps_tokens: bool,
) -> Outcome<RestoredServer> {
    let keys_folder = folder.join("keys");
    let configuration = folder.join("provost.toml");
    let text = format!("[store]\nkeys_dir = {:?}\n", keys_folder.display().to_string());
    std::fs::write(&configuration, text).context("cannot write a configuration")?;
    let data = folder.join("data");
    let restored = Installation {
        configuration: Some(configuration),
        ..Installation::new(&installation.binary, Store::Sqlite { data }, folder)
    };
    restored.check(&[
        "keys",
        "import",
        &keys.file,
        "--passphrase-file",
        &keys.passphrase,
    ])?;
    let copy = folder.join("copy.db").display().to_string();
    // The export of the keys may know more than the copy, which is what the restore is about.
    let mut words = vec!["store", "restore", &copy, "--json", "--replace-live"];
    if keeps_tokens {
        words.push("--keep-tokens");
    }
    let printed = restored.ask(&words)?;
    restored.check(&["audit", "verify"])?;
    restored.check(&["store", "check"])?;
    Ok(RestoredServer {
        server: restored.serve()?,
        token: new_token(&printed).unwrap_or_default(),
        keeps_tokens,
    })
}

/// The first token in what a restore prints.
fn new_token(printed: &str) -> Option<String> {
    let printed: Value = serde_json::from_str(printed).ok()?;
    let text = printed.to_string();
    let at = text.find("prov_sat_")?;
    text[at..].split('"').next().map(str::to_owned)
}

fn judge(
    scene: &Scene,
    restored: &RestoredServer,
    before: &[KnownRecords],
    after: &[KnownRecords],
) -> Outcome<u64> {
    let bootstrap = &scene.bootstrap;
    let token = if restored.keeps_tokens {
        &bootstrap.token
    } else {
        &restored.token
    };
    let mut judge = Judge::new(restored.server.address, bootstrap, token);
    let (status, text, _) = judge.read("capabilities")?;
    if status != 200 {
        return Err(Failure::new(format!(
            "the token that should work after the restore is answered {text}"
        )));
    }
    if !restored.keeps_tokens {
        let mut old = Judge::new(restored.server.address, bootstrap, &bootstrap.token);
        let (status, text, _) = old.read("capabilities")?;
        if status != 401 {
            return Err(Failure::new(format!(
                "the admin's token of before the restore is answered {text}"
            )));
        }
    }
    for (before, after) in before.iter().zip(after) {
        judge.compare(before, after, restored.keeps_tokens)?;
    }
    if judge.faults.is_empty() {
        return Ok(judge.compared);
    }
    Err(Failure::new(format!(
        "the restored store differs:\n  {}",
        judge.faults.join("\n  ")
    )))
}
