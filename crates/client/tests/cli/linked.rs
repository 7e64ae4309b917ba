//! What the client is made of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What only a server needs, by the names of packages.
const OF_A_SERVER: [&str; 11] = [
    "libsqlite3-sys",
    "parquet",
    "postgres-protocol",
    "provost-history",
    "provost-kernel",
    "provost-mcp",
    "provost-server",
    "regorus",
    "rusqlite",
    "tokio-postgres",
    "zstd-sys",
];

/// The packages that are linked into a package, itself among them.
fn linked(package: &str) -> BTreeSet<String> {
    linked_with(package, &[])
}

/// As [`linked`], with these words more.
fn linked_with(package: &str, words: &[&str]) -> BTreeSet<String> {
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
    cargo.args(["--prefix", "none", "--format", "{p}"]).args(words);
    let output = cargo.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let tree = String::from_utf8(output.stdout).expect("UTF-8");
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// The sources in a folder and below, without those of tests, with their paths.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let is_of_tests = path.file_stem().is_some_and(|stem| stem == "tests");
        if is_of_tests {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else {
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            found.push((path, text));
        }
    }
}

/// Without HTTP of its own the agent asks whom the caller's door leads to, and that is made of the server in its folder alone.
/// Proves AG-1.
#[test]
fn the_agent_starts_no_program_and_has_one_door() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["agent/src", "inventory/src", "client/src/agent"] {
        sources(&crates.join(folder), &mut found);
    }
    assert!(found.len() > 40, "{}", found.len());
    for (path, text) in &found {
        for word in [
            "std::process",
            "process::Command",
            ".exec(",
            "fork(",
            "TcpStream",
            "UdpSocket",
        ] {
            assert!(!text.contains(word), "{} has {word}", path.display());
        }
    }
    let doors: Vec<&str> = found
        .iter()
        .flat_map(|(_, text)| text.split("DeviceServer::new(").skip(1))
        .map(|behind| behind.trim_start().split(',').next().unwrap_or_default())
        .collect();
    assert_eq!(doors.len(), 3, "enrol, run and doctor: {doors:?}");
    assert!(
        doors
            .iter()
            .all(|server| ["&device.server", "text(\"server\")"].contains(server)),
        "{doors:?}"
    );
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

#[test]
fn the_program_without_the_server_links_nothing_of_one() {
    let words = ["--no-default-features", "--features", "agent"];
    let program = linked_with("provost-server", &words);
    assert!(program.contains("provost-agent"), "{program:?}");
    for name in OF_A_SERVER.into_iter().filter(|name| *name != "provost-server") {
        assert!(
            !program.contains(name),
            "the program without the server links {name}"
        );
    }
}
