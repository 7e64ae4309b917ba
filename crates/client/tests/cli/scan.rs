//! What a scan of a home shows, and that nothing of it is a value.

use crate::provost::{Outcome, Provost, folder};
use provost_client::cli::Surroundings;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Stands wherever a configuration can hold a value.
const CANARY: &str = "CaNaRy7x9Q2w4E6r8T0yU1";
/// Has a form that is known.
const KEY: &str = "sk-ant-api03-CaNaRyAbCdEfGhIjKlMnOpQrStUv";

fn put(home: &Path, place: &str, text: &str) {
    let path = home.join(place);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// A home with Claude Code and Codex, a project of its own, and a secret in every value.
fn home() -> PathBuf {
    let home = folder();
    let work = home.join("work");
    let of_claude = json!({
        "mcpServers": {
            "files": {
                "command": "npx",
                "args": ["-y", "@acme/files@1.2.3", "--token", CANARY, CANARY],
                "env": { "ACME_TOKEN": KEY },
            },
            "far": {
                "url": format!("https://mcp.acme.example/mcp?key={CANARY}"),
                "headers": { "Authorization": format!("Bearer {CANARY}") },
            },
            "named": { "url": format!("https://ada:{CANARY}@mcp.acme.example/mcp") },
        },
        "projects": { work.to_str().expect("UTF-8"): {} },
    });
    put(&home, ".claude.json", &of_claude.to_string());
    let of_project =
        json!({ "mcpServers": { "local": { "command": "sh", "args": ["-c", format!("a | b {CANARY}")] } } });
    put(&home, "work/.mcp.json", &of_project.to_string());
    put(
        &home,
        ".codex/config.toml",
        &format!(
            "approval_policy = \"never\"\n[mcp_servers.search]\ncommand = \"uvx\"\nargs = [\"acme-search==2.0\", \"{CANARY}\"]\n\
             env = {{ SEARCH_KEY = \"{CANARY}\" }}\n"
        ),
    );
    home
}

/// Scans without a server, a token and a configuration.
async fn scans(home: &Path, more: &[&str]) -> Outcome {
    let home = home.to_str().expect("UTF-8");
    let words = [&["scan", "--home", home], more].concat();
    Provost::script().token(None).says(&words).await
}

/// Returns the text without what a key of one run alone makes.
fn without_fingerprints(text: &str) -> String {
    let is_hex = |word: &str| word.len() >= 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(|word| {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_hex(bare) {
                word.replace(bare, "#")
            } else {
                word.to_owned()
            }
        })
        .collect()
}

fn observations<'a>(report: &'a Value, client: &str) -> Vec<&'a Value> {
    let sections = report["sections"].as_array().expect("sections").iter();
    let of_client = sections.filter(|section| section["client"] == client);
    of_client
        .flat_map(|section| section["observations"].as_array().expect("observations"))
        .collect()
}

#[tokio::test]
async fn a_scan_needs_no_server_and_reports_names_without_values() {
    let home = home();
    let scanned = scans(&home, &["--output", "json"]).await;
    assert_eq!(scanned.code, 0, "{scanned:?}");
    assert!(
        scanned.err.starts_with("nothing was sent; ") && scanned.err.lines().count() == 1,
        "{}",
        scanned.err
    );
    let report: Value = serde_json::from_str(&scanned.out).expect("JSON");
    let of_claude = observations(&report, "claude_code");
    let server = |key: &str| {
        let found = of_claude.iter().find(|found| found["key"] == key);
        *found.unwrap_or_else(|| panic!("{key}: {}", scanned.out))
    };
    let files = server("npm:@acme/files");
    assert_eq!(files["configuredName"], "files");
    assert_eq!(files["version"], "1.2.3");
    assert_eq!(files["weak"], false);
    assert_eq!(files["envNames"], json!(["ACME_TOKEN"]));
    assert_eq!(files["place"]["class"], "~/.claude.json");
    let far = server("url:https://mcp.acme.example/mcp");
    assert_eq!(far["headerNames"], json!(["Authorization"]));
    assert_eq!(far["weak"], true, "its query is not in its key");
    let named = of_claude.iter().find(|found| found["configuredName"] == "named");
    let named = named.expect("the address with a name");
    assert!(
        named["key"]
            .as_str()
            .is_some_and(|key| key.starts_with("cmd:hmac:")),
        "{named}"
    );
    let pipeline = of_claude.iter().find(|found| found["shape"] == "pipeline");
    let pipeline = pipeline.expect("the server of the project");
    assert_eq!(
        (&pipeline["place"]["class"], &pipeline["weak"]),
        (&json!("P/.mcp.json"), &json!(true))
    );
    let credential = of_claude.iter().find(|found| found["kind"] == "credential");
    let patterns = of_claude.iter().filter_map(|found| found["pattern"].as_str());
    assert!(
        credential.is_some() && patterns.into_iter().any(|pattern| pattern == "anthropic_api_key"),
        "{}",
        scanned.out
    );
    let of_codex = observations(&report, "codex");
    let keys: Vec<&Value> = of_codex
        .iter()
        .map(|found| &found["key"])
        .filter(|key| key.is_string())
        .collect();
    assert!(keys.contains(&&json!("pypi:acme-search")), "{keys:?}");
    assert!(
        of_codex
            .iter()
            .any(|found| found["name"] == "approval_policy" && found["value"] == "never")
    );
}

#[tokio::test]
async fn no_form_of_the_answer_shows_a_secret_or_a_path() {
    let home = home();
    let forms = ["table", "wide", "csv", "yaml", "json", "jsonl"].map(|form| vec!["-o", form]);
    for more in forms.into_iter().chain([vec!["--explain"]]) {
        let scanned = scans(&home, &more).await;
        assert_eq!(scanned.code, 0, "{more:?}: {scanned:?}");
        assert!(scanned.out.contains("npm:@acme/files"), "{more:?}: {scanned:?}");
        for secret in ["CaNaRy", home.to_str().expect("UTF-8")] {
            let said = [&scanned.out, &scanned.err];
            assert!(
                said.iter().all(|text| !text.contains(secret)),
                "{more:?} shows {secret}: {scanned:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_table_says_what_is_weak_and_that_no_standing_is_known() {
    let home = home();
    put(&home, ".cursor/mcp.json", "{ no JSON");
    let scanned = scans(&home, &["-o", "csv"]).await;
    assert_eq!(scanned.code, 0, "a fault is a part of the answer: {scanned:?}");
    let row = |begin: &str| {
        let found = scanned.out.lines().find(|line| line.starts_with(begin));
        found.unwrap_or_else(|| panic!("{begin}: {}", scanned.out))
    };
    assert_eq!(row("client"), "client,kind,what,place,detail,weak,standing");
    assert_eq!(
        row("claude_code,mcp_server,npm:"),
        "claude_code,mcp_server,npm:@acme/files,~/.claude.json,\"files, version 1.2.3, 3 credentials in it\",no,unknown"
    );
    assert!(row("claude_code,mcp_server,cmd:").ends_with(",yes,unknown"));
    assert!(row("claude_code,credential,anthropic_api_key").contains("ACME_TOKEN"));
    assert!(row("codex,setting,approval_policy").contains(",never,"));
    assert_eq!(
        row("cursor,fault"),
        "cursor,fault,malformed,~/.cursor/mcp.json,,,"
    );
    assert!(
        scanned.err.contains("one place could not be read"),
        "{}",
        scanned.err
    );
    let shown = Provost::person(&[])
        .token(None)
        .home(home.clone())
        .says(&["scan"])
        .await;
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown.out.contains("KEY OR NAME") && shown.out.contains("~/.codex/config.toml"),
        "its own home, as a table: {shown:?}"
    );
}

#[tokio::test]
async fn what_is_explained_is_the_report_and_its_fingerprints_are_of_one_run() {
    let home = home();
    let one = scans(&home, &["-o", "json"]).await.out;
    for more in [&["--explain"][..], &["--explain", "-o", "json"]] {
        let other = scans(&home, more).await.out;
        assert_eq!(without_fingerprints(&one), without_fingerprints(&other));
        let path = |text: &str| {
            let report: Value = serde_json::from_str(text).expect("JSON");
            report["sections"][0]["observations"][0]["place"]["path"].clone()
        };
        assert!(path(&one).is_string());
        assert_ne!(path(&one), path(&other), "a key for each run");
    }
    let refused = scans(&home, &["--explain", "-o", "yaml"]).await;
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
}

#[tokio::test]
async fn a_home_that_cannot_be_read_is_an_error_and_no_empty_answer() {
    let folder = folder();
    fs::write(folder.join("file"), "").expect("a file");
    for wrong in ["nothing", "file"] {
        let wrong = folder.join(wrong);
        let refused = scans(&wrong, &[]).await;
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
        let begin = format!("error: cannot read the home {}: ", wrong.display());
        assert!(refused.err.starts_with(&begin), "{}", refused.err);
    }
    let refused = Provost::script().token(None).says(&["scan"]).await;
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
    assert!(refused.err.contains("HOME is not set"), "{}", refused.err);
}

#[tokio::test]
async fn variables_of_a_server_are_not_looked_at() {
    let surroundings = Surroundings {
        empty: vec!["PROVOST_URL".into(), "PROVOST_TOKEN".into()],
        ..Surroundings::default()
    };
    let home = home();
    let scan = Provost::script()
        .token(None)
        .surroundings(surroundings)
        .home(home);
    let scanned = scan.says(&["scan", "-o", "jsonl"]).await;
    assert_eq!(scanned.code, 0, "{scanned:?}");
    let clients = scanned.out.lines().map(|line| {
        let section: Value = serde_json::from_str(line).expect("a section a line");
        section["client"].clone()
    });
    let clients: Vec<Value> = clients.collect();
    assert!(
        clients.contains(&json!("claude_code")) && clients.contains(&json!("codex")),
        "{clients:?}"
    );
}
