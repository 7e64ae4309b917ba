//! What `packaging/monitoring` asks Prometheus for is what the server exports.

use crate::harness::{Server, get, home, post};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Figures that are there once something has happened, or where the server terminates TLS itself: these are only looked for in the
/// sources.
const LATER: [&str; 6] = [
    "provost_clock_doubted",
    "provost_history_unsealed_events",
    "provost_module_workers_unavailable",
    "provost_policy_evaluations_failed_total",
    "provost_rights_disagreeing",
    "provost_tls_certificate_expires_in_seconds",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every name of a figure in a text, without the ends that a histogram gives it.
fn names(text: &str) -> BTreeSet<String> {
    let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    text.split(|letter| !is_of_name(letter))
        .filter(|word| word.starts_with("provost_") || word.starts_with("process_"))
        .map(|word| word.trim_end_matches("_bucket").to_owned())
        .collect()
}

/// The names in what is computed: the rules' expressions, and the dashboard's.
fn asked() -> BTreeSet<String> {
    let folder = root().join("packaging/monitoring");
    let rules = std::fs::read_to_string(folder.join("alerts.yaml")).unwrap();
    let expressions: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "))
        .collect();
    assert!(expressions.len() > 10, "{expressions:?}");
    let dashboard = std::fs::read_to_string(folder.join("grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let mut asked = names(&expressions.join("\n"));
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            asked.extend(names(target["expr"].as_str().unwrap()));
        }
    }
    let variables = dashboard["templating"]["list"].to_string();
    asked.extend(names(&variables));
    asked
}

/// Waits for the figures that the server reads from its store after its start.
fn exported(metrics: u16) -> String {
    let mut text = String::new();
    for _ in 0..300 {
        text = get(metrics, "/metrics", None).1;
        if text.contains("provost_checkpoint_lag_seconds") {
            return text;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("the figures of the store do not come:\n{text}");
}

fn sources() -> String {
    let mut folders = vec![root().join("crates")];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs")
                && path.to_string_lossy().contains("/src/")
            {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

#[test]
fn rules_and_dashboard_name_figures_that_the_server_exports() {
    let home = home("monitoring");
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "127.0.0.1:0",
    ];
    let server = Server::start(home.command(&words), &home.path("stdout"));
    let token = server.token();
    let (status, said) = post(
        server.port,
        "/api/headless/v1/organizations/default/policies/decisions",
        &token,
        r#"{"events":[{"occasion":"pre_tool","attributes":{"tool.id":"Bash"}}]}"#,
    );
    assert_eq!(status, 200, "{said}");
    home.run(&["store", "backup", "--to", "backups"]);
    let (_, after) = server.log.split_once("metrics on http://127.0.0.1:").unwrap();
    let text = exported(after.split('/').next().unwrap().parse().unwrap());
    let exported = names(&text);
    let sources = sources();
    let mut missing = BTreeSet::new();
    for name in asked() {
        let is_later = LATER.contains(&name.as_str()) && sources.contains(&format!("!(\"{name}\""));
        if !exported.contains(&name) && !is_later {
            missing.insert(name);
        }
    }
    assert!(
        missing.is_empty(),
        "nobody exports {missing:?}; there is:\n{text}"
    );
    // Whoever reads the figures is told what each means.
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = line.split(' ').next().unwrap();
        assert!(
            text.contains(&format!("# HELP {name} ")),
            "{name} has no help text"
        );
    }
    // The ages are what they should be: no token of the first start ends soon, a backup was just made.
    for line in [
        r#"provost_tokens_ending{within="1d"} 0"#,
        r#"provost_tokens_ending{within="7d"} 0"#,
        r#"provost_tokens_ending{within="14d"} 0"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    assert!((0.0..600.0).contains(&value("provost_backup_age_seconds ")));
    let next = value("provost_tokens_next_end_in_seconds ");
    assert!((89.0 * 86_400.0..=90.0 * 86_400.0).contains(&next), "{next}");
    assert!((0.0..600.0).contains(&value("provost_checkpoint_lag_seconds ")));
}
