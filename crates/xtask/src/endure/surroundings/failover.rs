//! A PostgreSQL failover that loses what was answered: a standby that lags is promoted behind the address of the primary.
//!
//! The servers must say so and serve nothing (WT-1), sign nothing smaller, and refuse to start again, until the operator takes
//! the loss; then what was taken away is taken away again.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::instance::{self, Instance};
use super::scene::{Account, Scene, expect, readiness, refusal, says, wait};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};
use crate::http::Request;
use crate::postgres::{self, Binaries, Cluster, Durability, as_owner_of};
use crate::process;
use crate::product::{Installation, Server, Store};

const DATABASE: &str = "main";
/// Of the standby's socket.
const PORT: u16 = 5_433;
/// A checkpoint comes within a minute, on a machine that does nothing else.
const CHECKPOINT: Duration = Duration::from_secs(150);
/// So long nothing may be signed after the loss: the next checkpoint was due meanwhile.
const SILENCE: Duration = Duration::from_secs(80);

pub fn run(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let binaries = postgres::find_or_install()?;
    let primary = Cluster::start(&binaries, Durability::Full)?;
    primary.create_database(DATABASE)?;
    let proxy = Proxy::start(primary.folder().join(".s.PGSQL.5432"))?;
    let installation = Installation {
        store: Store::Postgres {
            url: format!("postgresql://postgres@{}/{DATABASE}", proxy.address),
            keys: place.folder().join("failover-keys"),
        },
        log: place.folder().join("failover.log"),
        ..place.installation.clone()
    };
    let scene = Scene::of(installation, seed)?;
    let server = scene.installation.serve()?;
    let kept = scene.make_account(server.address, "kept")?;
    let ended = scene.make_account(server.address, "ended")?;
    let standby = Standby::start(&binaries, &primary)?;
    standby.catch_up()?;
    standby.lag()?;

    // What is answered from here on will be lost.
    expect(
        server.address,
        &scene.disable(&ended),
        &[200],
        "before the failover",
    )?;
    let made = scene.make_account(server.address, "lost")?;
    for number in 0..10 {
        expect(
            server.address,
            &scene.account(&format!("lost {number}")),
            &[201],
            "before the failover",
        )?;
    }
    let lines = || std::fs::read(scene.keys().join("checkpoints.jsonl")).unwrap_or_default();
    let before = lines();
    wait(
        CHECKPOINT,
        "no checkpoint was signed over what will be lost",
        || lines().len() > before.len(),
    )?;

    let lost = LostAccounts { kept, ended, made };
    standby.promote()?;
    proxy.lead_to(standby.instance.socket());
    is_noticed(&scene, server, &lost)?;
    is_accepted(&scene, &lost)?;
    Ok(Report::Seen(
        "a standby that lagged 12 changes was promoted: nothing was served or signed until the loss was accepted, and what \
         had ended was ended again"
            .into(),
    ))
}

/// Accounts of before the loss.
struct LostAccounts {
    /// Nobody touched it.
    kept: Account,
    /// Its end is lost.
    ended: Account,
    /// It is lost.
    made: Account,
}

/// Nothing is served and signed, and no server starts.
fn is_noticed(scene: &Scene, server: Server, lost: &LostAccounts) -> Outcome {
    let lines = || std::fs::read(scene.keys().join("checkpoints.jsonl")).unwrap_or_default();
    wait(
        Duration::from_secs(30),
        "a failover with loss was not noticed",
        || readiness(server.address).is_ok_and(|status| status == 503),
    )?;
    let signed = lines();
    std::thread::sleep(SILENCE);
    if lines() != signed {
        return Err(Failure::new(
            "VIOLATION: a checkpoint was signed over a store that went back",
        ));
    }
    scene.acts(
        server.address,
        &lost.ended.token,
        &[503],
        "of an account whose end was lost",
    )?;
    scene.acts(
        server.address,
        &scene.bootstrap.token,
        &[503],
        "at a store that went back",
    )?;
    says(&scene.log(), "the store has gone back", "the log")?;
    server.stop()?;
    says(
        &refusal(&scene.installation)?,
        "accept --lost",
        "the refusal to start",
    )
}

/// The operator takes the loss: what had ended is ended again, and the others live.
fn is_accepted(scene: &Scene, lost: &LostAccounts) -> Outcome {
    let (asked, printed) = accept(scene, &[])?;
    if asked {
        return Err(Failure::new(format!(
            "VIOLATION: a loss was accepted without a word: {printed}"
        )));
    }
    let (is_accepted, printed) = accept(scene, &["--yes"])?;
    if !is_accepted {
        return Err(Failure::new(format!(
            "VIOLATION: a loss cannot be accepted: {printed}"
        )));
    }
    says(&printed, &lost.ended.id, "what was taken away again")?;
    let server = scene.installation.serve()?;
    scene.acts(
        server.address,
        &lost.kept.token,
        &[200],
        "of an account that nobody touched",
    )?;
    scene.acts(
        server.address,
        &lost.ended.token,
        &[401, 403],
        "of an account whose end was lost",
    )?;
    scene.acts(
        server.address,
        &lost.made.token,
        &[401],
        "of an account that was lost",
    )?;
    let gone = Request::get(
        scene
            .bootstrap
            .path(&format!("service-accounts/{}", lost.made.id)),
        &scene.bootstrap.token,
    );
    expect(server.address, &gone, &[404], "about an account that was lost")?;
    expect(
        server.address,
        &scene.account("afterwards"),
        &[201],
        "after the loss was accepted",
    )?;
    server.stop()?;
    scene.installation.check(&["audit", "verify"])?;
    scene.installation.check(&["store", "check"])
}

fn accept(scene: &Scene, words: &[&str]) -> Outcome<(bool, String)> {
    let words: Vec<&str> = ["store", "accept", "--lost"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    let output = scene
        .installation
        .command(&words)
        .stdin(Stdio::null())
        .output()
        .context("cannot run store accept")?;
    let said = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

/// A second server of the same cluster's data, which follows it.
struct Standby {
    instance: Instance,
    binaries: Binaries,
    folder: PathBuf,
}

impl Standby {
    fn start(binaries: &Binaries, primary: &Cluster) -> Outcome<Self> {
        let folder = primary.folder().to_path_buf();
        let mut copy = binaries.program("pg_basebackup");
        copy.args(["-U", "postgres", "-R", "-X", "stream", "-c", "fast", "-h"])
            .arg(&folder)
            .arg("-D")
            .arg(folder.join("standby"));
        as_owner_of(&folder, &mut copy)?;
        process::output(&mut copy)?;
        let settings = ["listen_addresses=", "max_connections=200"];
        Ok(Self {
            instance: Instance::start(binaries, &folder, "standby", PORT, &settings)?,
            binaries: binaries.clone(),
            folder,
        })
    }

    /// Waits until an answer of it is this.
    fn wait(&self, what: &str, question: &str, answer: &str) -> Outcome {
        wait(Duration::from_secs(30), what, || {
            self.instance.ask(question).is_ok_and(|said| said == answer)
        })
    }

    /// Waits until it has all that the primary has now.
    fn catch_up(&self) -> Outcome {
        let at = instance::ask(&self.binaries, &self.folder, 5_432, "SELECT pg_current_wal_lsn()")?;
        let question = format!("SELECT pg_last_wal_replay_lsn() >= '{at}'");
        self.wait("the standby did not catch up", &question, "t")
    }

    /// Cuts it off from what comes.
    fn lag(&self) -> Outcome {
        self.instance.ask("ALTER SYSTEM SET primary_conninfo = ''")?;
        self.instance.ask("SELECT pg_reload_conf()")?;
        self.wait(
            "the standby still receives",
            "SELECT count(*) FROM pg_stat_wal_receiver",
            "0",
        )
    }

    fn promote(&self) -> Outcome {
        self.instance.ask("SELECT pg_promote(true, 30)")?;
        self.wait("the standby was not promoted", "SELECT pg_is_in_recovery()", "f")
    }
}

/// An address that stays the same while what is behind it changes.
struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<Route>>,
}

struct Route {
    target: PathBuf,
    open: Vec<TcpStream>,
}

impl Proxy {
    fn start(target: PathBuf) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let address = listener.local_addr().context("cannot say where it listens")?;
        let state = Arc::new(Mutex::new(Route {
            target,
            open: Vec::new(),
        }));
        let own = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut route = own.lock().unwrap_or_else(PoisonError::into_inner);
                let Ok(copy) = stream.try_clone() else { continue };
                route.open.push(copy);
                join(stream, &route.target);
            }
        });
        Ok(Self { address, state })
    }

    /// Ends every connection, and leads the next ones elsewhere.
    fn lead_to(&self, target: PathBuf) {
        let mut route = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        route.target = target;
        for stream in route.open.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

/// Copies both ways until either side ends.
fn join(client: TcpStream, target: &Path) {
    let Ok(server) = UnixStream::connect(target) else {
        drop(client.shutdown(Shutdown::Both));
        return;
    };
    drop(client.set_nodelay(true));
    let (Ok(client_in), Ok(server_in)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    std::thread::spawn(move || {
        copy(client_in, &server);
        drop(server.shutdown(Shutdown::Both));
    });
    std::thread::spawn(move || {
        copy(server_in, &client);
        drop(client.shutdown(Shutdown::Both));
    });
}

fn copy(mut from: impl Read, mut to: impl Write) {
    drop(std::io::copy(&mut from, &mut to));
}
