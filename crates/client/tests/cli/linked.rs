//! What the client is made of.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// What only a server needs, by the names of packages.
const OF_A_SERVER: [&str; 12] = [
    "libsqlite3-sys",
    "parquet",
    "postgres-protocol",
    "provost-history",
    "provost-kernel",
    "provost-mcp",
    "provost-policy",
    "provost-server",
    "regorus",
    "rusqlite",
    "tokio-postgres",
    "zstd-sys",
];

/// The packages that are linked into a package, itself among them.
fn linked(package: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    cargo.args([
        "tree",
        "--locked",
        "--offline",
        "--package",
        package,
        "--edges",
        "normal",
    ]);
    cargo.args(["--prefix", "none", "--format", "{p}"]);
    let output = cargo.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let tree = String::from_utf8(output.stdout).expect("UTF-8");
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_agent_links_neither_a_server_nor_http() {
    let agent = linked("provost-agent");
    assert!(
        agent.contains("provost-inventory") && agent.contains("aws-lc-rs"),
        "{agent:?}"
    );
    for name in OF_A_SERVER.into_iter().chain(["hyper", "rustls", "clap"]) {
        assert!(!agent.contains(name), "the agent links {name}");
    }
}

#[test]
fn the_client_links_nothing_that_only_a_server_needs() {
    let client = linked("provost-client");
    assert!(
        client.contains("provost-words") && client.contains("hyper-rustls"),
        "{client:?}"
    );
    for name in OF_A_SERVER {
        assert!(!client.contains(name), "the client links {name}");
    }
    // The names are those of packages that the server has, not of some that were renamed.
    let server = linked("provost-server");
    for name in OF_A_SERVER {
        assert!(server.contains(name), "no package is called {name} any more");
    }
}
