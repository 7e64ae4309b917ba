//! What carries the program names flags, variables, ports, folders and a user: those of the program, and the same everywhere.

use clap::Command;
use provost_server::commands;
use provost_server::config::{Config, Environment};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The files, with the names below `packaging`.
const UNIT: &str = "systemd/provost.service";
const CONTAINER: &str = "container/Containerfile";
const COMPOSE: &str = "container/compose.yaml";
const CHART: &str = "helm/provost/templates/statefulset.yaml";

fn read(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging")
        .join(name);
    std::fs::read_to_string(&path).unwrap()
}

/// The lines of a list in YAML, without their dashes and without comments and templates.
fn items(text: &str) -> Vec<&str> {
    let items = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    items.filter(|item| !item.contains("{{")).collect()
}

fn flags(text: &str) -> Vec<String> {
    let is_of_flag = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    text.split_whitespace()
        .map(|word| word.trim_start_matches(['[', '"']))
        .filter_map(|word| word.strip_prefix("--"))
        .map(|word| word.chars().take_while(|letter| is_of_flag(*letter)).collect())
        .filter(|flag: &String| !flag.is_empty())
        .collect()
}

fn serve() -> Command {
    commands::command().find_subcommand("serve").unwrap().clone()
}

#[test]
fn every_flag_of_a_package_is_one_of_serve() {
    let unit = read(UNIT);
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    let compose = read(COMPOSE);
    let compose = compose
        .split("command:")
        .nth(1)
        .unwrap()
        .split("env_file:")
        .next()
        .unwrap();
    let chart = read(CHART);
    let chart = chart
        .split("args:")
        .nth(1)
        .unwrap()
        .split("ports:")
        .next()
        .unwrap();
    let container = read(CONTAINER);
    let container = container.lines().find(|line| line.starts_with("CMD ")).unwrap();
    let serve = serve();
    let known: Vec<&str> = serve.get_arguments().filter_map(|flag| flag.get_long()).collect();
    for (text, least) in [(line, 2), (compose, 4), (chart, 6), (container, 1)] {
        let named = flags(text);
        assert!(named.len() >= least, "{named:?}");
        for flag in named {
            assert!(known.contains(&flag.as_str()), "serve has no --{flag}");
        }
    }
    // What compose says is understood as it stands there.
    let words = items(compose);
    let said = serve.try_get_matches_from(&words[..]).unwrap();
    assert!(said.get_flag("behind_proxy"));
}

#[test]
fn ports_and_folders_are_those_of_the_configuration_everywhere() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging/provost.toml");
    let config = Config::load(Some(&path), &Environment::default()).unwrap();
    config.check().unwrap();
    let (data, keys) = (config.store.data_dir(), config.store.keys_dir().0);
    let keys = keys.parent().unwrap();
    for name in [UNIT, CONTAINER, COMPOSE, CHART, "debian/postinst"] {
        let text = read(name);
        if name == UNIT {
            // systemd makes the folders below /var/lib.
            assert!(text.contains("\nStateDirectory=provost provost-keys\n"));
            assert_eq!(data.to_str(), Some("/var/lib/provost"));
            assert_eq!(keys.to_str(), Some("/var/lib/provost-keys"));
        } else {
            assert!(text.contains(data.to_str().unwrap()), "{name}");
            assert!(text.contains(keys.to_str().unwrap()), "{name}");
        }
        if name != "debian/postinst" {
            assert!(text.contains("/etc/provost/provost.toml"), "{name}");
        }
    }
    // The container listens where it is told, on the ports that everything else expects.
    let mut variables = BTreeMap::new();
    let container = read(CONTAINER);
    let set = container
        .split("ENV ")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    for word in set.split_whitespace().filter(|word| *word != "\\") {
        let (name, value) = word.split_once('=').unwrap();
        variables.insert(name, value);
    }
    let environment = Environment::of([
        ("PROVOST_HTTP_LISTEN", variables["PROVOST_HTTP_LISTEN"]),
        (
            "PROVOST_HTTP_METRICS_LISTEN",
            variables["PROVOST_HTTP_METRICS_LISTEN"],
        ),
        ("PROVOST_HTTP_BEHIND_PROXY", "true"),
    ]);
    let inside = Config::load(Some(&path), &environment).unwrap();
    let port = inside.http.address().unwrap().port();
    let (metrics, _) = inside.http.metrics_address().unwrap().unwrap();
    assert_eq!(port, config.http.address().unwrap().port());
    assert!(container.contains(&format!("\nEXPOSE {port} {}\n", metrics.port())));
    assert_eq!(variables["PROVOST_URL"], format!("http://127.0.0.1:{port}"));
    assert!(read(COMPOSE).contains(&format!("127.0.0.1:{port}:{port}")));
    let chart = read(CHART);
    for port in [port, metrics.port()] {
        assert!(chart.contains(&format!("containerPort: {port}\n")));
    }
    for path in ["/healthz", "/readyz"] {
        assert!(chart.contains(&format!("path: {path}\n")));
    }
    // Without a word for plain HTTP the container refuses to listen for others.
    let alone = Environment::of([("PROVOST_HTTP_LISTEN", variables["PROVOST_HTTP_LISTEN"])]);
    let refused = Config::load(Some(&path), &alone).unwrap().check();
    assert!(refused.unwrap_err().0.contains("--behind-proxy"));
}

#[test]
fn the_user_is_nobody_else_and_the_root_is_read_only() {
    let (container, compose, chart) = (read(CONTAINER), read(COMPOSE), read(CHART));
    let user = container
        .lines()
        .find_map(|line| line.strip_prefix("USER "))
        .unwrap();
    let (uid, gid) = user.split_once(':').unwrap();
    assert!(container.contains(&format!("useradd --system --uid {uid} ")));
    assert!(container.contains(&format!("groupadd --system --gid {gid} ")));
    assert!(compose.contains(&format!("user: {user}\n")) && compose.contains("read_only: true\n"));
    for words in [
        &format!("runAsUser: {uid}\n"),
        &format!("runAsGroup: {gid}\n"),
        "runAsNonRoot: true\n",
        "readOnlyRootFilesystem: true\n",
        "allowPrivilegeEscalation: false\n",
        "automountServiceAccountToken: false\n",
    ] {
        assert!(chart.contains(words), "{words}");
    }
    assert!(read(UNIT).contains("\nUser=provost\n") && read(UNIT).contains("\nProtectSystem=strict\n"));
}

/// Nobody but this project may be the one who hands out what is called Provost.
#[test]
fn no_image_of_the_program_comes_from_a_registry() {
    let (container, compose) = (read(CONTAINER), read(COMPOSE));
    let images = compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix("image: "));
    let bases = container.lines().filter_map(|line| line.strip_prefix("FROM "));
    let named: Vec<&str> = images.chain(bases).collect();
    assert_eq!(
        named,
        ["provost:local", "postgres:17-bookworm", "debian:bookworm-slim"]
    );
    // Compose builds the first of them.
    assert!(compose.contains("dockerfile: ../packaging/container/Containerfile\n"));
    assert!(read("helm/provost/values.yaml").contains("\n  repository: \"\"\n"));
    assert!(read(CHART).contains("{{ required \"image.repository"));
}
