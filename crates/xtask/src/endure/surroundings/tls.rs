//! A PostgreSQL server on another address, with TLS and without: what its password goes through (TL-1).

use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use super::instance::Instance;
use super::scene::{Scene, expect, refusal, says};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};
use crate::postgres::{self, as_owner_of};
use crate::process;
use crate::product::{Installation, Store, free_address};

const PASSWORD: &str = "a-password-of-a-drill";

/// How many of its connections have no TLS.
const PLAIN: &str = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE NOT ssl AND usename = 'provost'";

pub fn run(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let Some(address) = own_address() else {
        return Ok(Report::Absent("this machine has no address but loopback".into()));
    };
    if let Err(failure) = process::find_or_install("openssl") {
        return Ok(Report::Absent(failure.to_string()));
    }
    let binaries = postgres::find_or_install()?;
    let cluster = place.cluster().context("TLS is for a cluster")?;
    let folder = cluster.folder();
    let mut initdb = postgres::initdb(&binaries.folder, &folder.join("tls"));
    as_owner_of(folder, &mut initdb)?;
    process::output(&mut initdb)?;
    certify(folder, address)?;
    // Whoever comes over the network needs the password, with TLS and without.
    let rules = format!("local all postgres trust\nhost all all {address}/32 scram-sha-256\n");
    std::fs::write(folder.join("tls/pg_hba.conf"), rules).context("cannot write the rules")?;
    let port = free_address()?.port();
    let listen = format!("listen_addresses={address}");
    let settings = |ssl: &'static str| [listen.clone(), ssl.to_owned(), "log_connections=on".to_owned()];
    let start = |ssl: &'static str| {
        let settings = settings(ssl);
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        Instance::start(&binaries, folder, "tls", port, &settings)
    };

    let bare = start("ssl=off")?;
    bare.ask(&format!("CREATE ROLE provost LOGIN PASSWORD '{PASSWORD}'"))?;
    bare.ask("CREATE DATABASE provost OWNER provost")?;
    let root = folder.join("root.crt").display().to_string();
    let at = |options: &str| Installation {
        store: Store::Postgres {
            url: format!("postgresql://provost:{PASSWORD}@{address}:{port}/provost{options}"),
            keys: place.folder().join("tls-keys"),
        },
        log: place.folder().join("tls.log"),
        ..place.installation.clone()
    };
    // Nobody who listens in its place is told the password.
    for options in ["", "?sslmode=require", &format!("?sslrootcert={root}")] {
        says(
            &refusal(&at(options))?,
            "TLS",
            &format!("the refusal without TLS ({options})"),
        )?;
    }
    let heard = std::fs::read_to_string(folder.join("tls.log")).unwrap_or_default();
    if heard.contains("user=provost") {
        return Err(Failure::new(format!(
            "VIOLATION: a connection without TLS was tried with the name of the role:\n{heard}"
        )));
    }
    says(
        &refusal(&at("?sslmode=disable"))?,
        "--database-plaintext",
        "the refusal of plain text",
    )?;
    drop(bare);

    let sealed = start("ssl=on")?;
    // Its certificate is nobody's whom the system knows.
    says(
        &refusal(&at(""))?,
        "certificate",
        "the refusal of an unknown certificate",
    )?;
    let scene = Scene::of(at(&format!("?sslrootcert={root}")), seed)?;
    let server = scene.installation.serve()?;
    for number in 0..10 {
        expect(
            server.address,
            &scene.account(&format!("sealed {number}")),
            &[201],
            "over TLS",
        )?;
    }
    let plain = sealed.ask(PLAIN)?;
    server.stop()?;
    if plain != "0" {
        return Err(Failure::new(format!(
            "VIOLATION: {plain} connections have no TLS"
        )));
    }
    scene.installation.check(&["store", "check"])?;
    Ok(Report::Seen(format!(
        "at {} without TLS nothing was said of the role, with a certificate that is not known neither, and with its root 10 \
         changes were made",
        kind(address)
    )))
}

const fn kind(address: IpAddr) -> &'static str {
    if address.is_ipv4() {
        "an IPv4 address"
    } else {
        "an IPv6 address"
    }
}

/// An address of this machine that is not loopback.
fn own_address() -> Option<IpAddr> {
    let said = process::output(Command::new("hostname").arg("-I")).ok()?;
    said.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .find(|address: &IpAddr| address.is_ipv4() && TcpListener::bind((*address, 0)).is_ok())
}

/// A root, and a certificate of the address under it.
fn certify(folder: &Path, address: IpAddr) -> Outcome {
    let data = folder.join("tls");
    let openssl = |words: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(words);
        as_owner_of(folder, &mut command)?;
        process::output(&mut command).map(drop)
    };
    let key = data.join("server.key").display().to_string();
    let name = format!("subjectAltName=IP:{address}");
    let curve = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ];
    let root = [
        "req",
        "-x509",
        "-days",
        "2",
        "-subj",
        "/CN=Root of a drill",
        "-keyout",
        "root.key",
        "-out",
        "root.crt",
    ];
    openssl(&[&root[..], &curve].concat())?;
    let request = [
        "req",
        "-subj",
        "/CN=database",
        "-addext",
        &name,
        "-keyout",
        &key,
        "-out",
        "server.csr",
    ];
    openssl(&[&request[..], &curve].concat())?;
    let certificate = data.join("server.crt").display().to_string();
    openssl(&[
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "root.crt",
        "-CAkey",
        "root.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-copy_extensions",
        "copy",
        "-out",
        &certificate,
    ])
}
