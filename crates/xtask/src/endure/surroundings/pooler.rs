//! `PgBouncer` between the server and PostgreSQL: refused where it shares sessions, served where it does not.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::scene::{Scene, expect, refusal, says, wait};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Outcome};
use crate::postgres::{Cluster, as_owner_of};
use crate::process;
use crate::product::{Installation, Store, free_address};

/// A running pooler; killed when dropped.
struct Pooler {
    child: Child,
    address: SocketAddr,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub fn run(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    if let Err(failure) = process::find_or_install("pgbouncer") {
        return Ok(Report::Absent(failure.to_string()));
    }
    let cluster = place.cluster().context("a pooler stands before a cluster")?;
    let scene = Scene::create(place, "pooler", seed)?;
    for mode in ["transaction", "statement"] {
        let pooler = start(cluster, mode)?;
        let said = refusal(&through(&scene.installation, &pooler)?)?;
        says(
            &said,
            "pool_mode = session",
            &format!("the refusal behind {mode} mode"),
        )?;
    }
    let pooler = start(cluster, "session")?;
    let installation = through(&scene.installation, &pooler)?;
    let server = installation.serve()?;
    for number in 0..20 {
        expect(
            server.address,
            &scene.account(&format!("pooled {number}")),
            &[201],
            "behind session mode",
        )?;
    }
    server.stop()?;
    drop(pooler);
    scene.installation.check(&["store", "check"])?;
    Ok(Report::Seen(
        "PgBouncer in transaction and statement mode is refused in one sentence, in session mode 20 changes were made".into(),
    ))
}

fn start(cluster: &Cluster, mode: &str) -> Outcome<Pooler> {
    let address = free_address()?;
    let folder = cluster.folder();
    let settings = folder.join(format!("pooler-{mode}.ini"));
    // One connection to the database, so that a mode that shares has to.
    let pool = if mode == "session" { 40 } else { 1 };
    let text = format!(
        "[databases]\n* = host={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\nauth_type = any\n\
         pool_mode = {mode}\ndefault_pool_size = {pool}\nmax_client_conn = 200\nunix_socket_dir =\n\
         ignore_startup_parameters = extra_float_digits,options\n",
        folder.display(),
        address.port(),
    );
    std::fs::write(&settings, text).context("cannot write the pooler's settings")?;
    let mut command = Command::new(program());
    command.arg(&settings);
    as_owner_of(folder, &mut command)?;
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start PgBouncer")?;
    let pooler = Pooler { child, address };
    wait(Duration::from_secs(10), "PgBouncer did not listen", || {
        std::net::TcpStream::connect(address).is_ok()
    })?;
    Ok(pooler)
}

fn program() -> &'static str {
    let debian = "/usr/sbin/pgbouncer";
    if Path::new(debian).is_file() {
        debian
    } else {
        "pgbouncer"
    }
}

/// The same installation by way of the pooler.
fn through(installation: &Installation, pooler: &Pooler) -> Outcome<Installation> {
    let mut through = installation.clone();
    if let Store::Postgres { url, .. } = &mut through.store {
        let (_, database) = url.rsplit_once('/').context("a URL without a database")?;
        *url = format!("postgresql://postgres@{}/{database}", pooler.address);
    }
    through.log = installation.log.with_extension("pooled.log");
    Ok(through)
}
