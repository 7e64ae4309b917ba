//! What counts for a server, what is a row and what a shape says are one judgement.

use super::{Folder, faults, sent_and_kept};
use crate::secrets::Pattern;
use crate::{Observation, Scan, ServerFacts};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A value that nobody finds by trying.
const HARD: &str = "CaNaRy7x9Q2w4E6r8T0yU1";

fn rows(scan: &Scan) -> Vec<(Pattern, String, String)> {
    let found = scan.sections.iter().flat_map(|section| &section.observations);
    found
        .filter_map(|found| match &found.observation {
            Observation::Credential {
                pattern,
                member_name,
                fingerprint,
                ..
            } => Some((*pattern, member_name.clone(), fingerprint.clone())),
            _ => None,
        })
        .collect()
}

fn scanned(folder: &Folder, server: &Value) -> (ServerFacts, Vec<(Pattern, String, String)>) {
    folder.write(
        "home/ada/.cursor/mcp.json",
        &json!({"mcpServers": {"one": server}}).to_string(),
    );
    let scan = folder.scan();
    assert_eq!(faults(&scan), []);
    sent_and_kept(&scan);
    let (_, facts) = super::servers(&scan)[0];
    (facts.clone(), rows(&scan))
}

/// The servers in which a text stands at each place, and whether the shape of the text is told.
fn places(name: &str, text: &str) -> Vec<(&'static str, Value, bool)> {
    let line = |words: Value| json!({"command": "acme", "args": words});
    vec![
        ("env", json!({"command": "acme", "env": {name: text}}), false),
        (
            "header",
            json!({"url": "https://acme.example/mcp", "headers": {name: text}}),
            false,
        ),
        (
            "assignment",
            line(json!(["run", "-e", format!("{name}={text}"), "image"])),
            true,
        ),
        (
            "flag with its value",
            line(json!([format!("--{name}={text}")])),
            true,
        ),
        (
            "flag before its value",
            line(json!([format!("--{name}"), text])),
            true,
        ),
        (
            "line",
            line(json!(["-c", format!("acme --{name} '{text}' run")])),
            true,
        ),
        (
            "one text",
            json!({"command": format!("acme run {name}={text} image")}),
            false,
        ),
        (
            "Zed",
            json!({"command": {"path": "acme", "args": [format!("{name}={text}")], "env": {}}}),
            true,
        ),
    ]
}

/// Forms by their names: whether a text under this name is a credential wherever it stands.
const FORMS: [(&str, &str, bool); 29] = [
    ("DATABASE_URL", "postgres://u:pw@host/db", true),
    ("DATABASE_URL", "postgres://u:p/w@host/db", true),
    ("DATABASE_URL", "postgres://u@host:5432/db", false),
    ("DATABASE_URL", "postgres://u:${PW}@host/db", false),
    ("DATABASE_URL", "postgres://host:${PORT}/a@b", false),
    ("DB_PASSWORD", "Summer2026!", true),
    ("PGPASSWORD", "hunter2", true),
    ("SMTP_PASS", "hunter2", true),
    ("DB_PASSWORD", "${input:pw}", false),
    ("DB_PASSWORD", "$PW", false),
    ("DB_PASSWORD", "%PW%", false),
    ("DB_PASSWORD", "<password>", false),
    ("DB_PASSWORD", "op://vault/db", false),
    ("DB_PASSWORD", "/run/secrets/db", false),
    ("DB_PASSWORD_FILE", "db.txt", false),
    ("ask-password", "always", false),
    ("BYPASS", "loopback", false),
    ("PWD", "work", false),
    ("CONNECTION", "Server=db;User=u;Password=Summer2026!", true),
    ("API_KEY", HARD, true),
    ("API_KEY", "short", false),
    (
        "AWS_SECRET_ACCESS_KEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        true,
    ),
    ("API_KEY_PATH", "Config/auth/Production1.json", false),
    ("NOTES", "ghp_CaNaRy7x9Q2w4E6r8T0yU1", true),
    (
        "NOTES_URL",
        "https://acme.example/hooks/CaNaRy7x9Q2w4E6r8T0yU1",
        true,
    ),
    (
        "NOTES_URL",
        "https://acme.example/hooks?sig=CaNaRy7x9Q2w4E6r8T0yU1",
        true,
    ),
    ("NOTES_URL", "https://ada:hunter2@acme.example/mcp", true),
    ("NOTES_URL", "https://Tickets.acme.example:443/mcp?page=2", false),
    ("MODEL", "Claude-Sonnet-4-5-20250929", false),
];

/// Proves IV-2, IV-8.
#[test]
fn what_counts_for_a_server_is_a_row_and_has_the_shape_of_one() {
    let folder = Folder::new("one-judgement");
    let mut wrong = Vec::new();
    for (name, text, is_one) in FORMS {
        for (place, server, has_shape) in places(name, text) {
            let (facts, rows) = scanned(&folder, &server);
            let has_secret = facts.arg_shapes.iter().any(|shape| shape.contains("<secret>"));
            let is_wanted = facts.secrets_inline == usize::from(is_one)
                && rows.len() == usize::from(is_one)
                && has_secret == (is_one && has_shape);
            if !is_wanted {
                wrong.push(format!(
                    "{name} {text} as {place}: {} {rows:?} {:?}",
                    facts.secrets_inline, facts.arg_shapes
                ));
            }
            let said = format!("{facts:?} {rows:?}");
            for part in ["hunter2", "Summer", "CaNaRy", "wJalr", ":pw@"] {
                assert!(!said.contains(part), "{said}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Words of a command line that have no name of their own, and addresses.
///
/// Proves IV-8.
#[test]
fn what_has_no_name_is_judged_by_itself_alike_in_arguments_and_addresses() {
    let folder = Folder::new("without-names");
    let digest = "0123456789abcdef".repeat(4);
    let mut wrong = Vec::new();
    for (word, is_one) in [
        (HARD.to_owned(), true),
        (format!("-p{HARD}"), true),
        (format!("https://acme.example/{HARD}/mcp"), true),
        ("https://u:pw@acme.example/mcp".to_owned(), true),
        ("Authorization: Basic dTpwdw==".to_owned(), true),
        ("X-Password: hunter2".to_owned(), true),
        ("Authorization: Bearer ${TOKEN}".to_owned(), false),
        ("@acme/files@1.2.3".to_owned(), false),
        (format!("ghcr.io/acme/files@sha256:{digest}"), false),
        (format!("github:acme/files#{}", &digest[..40]), false),
        (
            format!("git+https://github.com/acme/files@{}", &digest[..40]),
            false,
        ),
        ("0f8fad5b-d9cb-469f-a165-70867728950e".to_owned(), false),
        (format!("/home/ada/.cache/{HARD}/bin/acme"), false),
        ("Claude-Sonnet-4-5-20250929".to_owned(), false),
    ] {
        let (facts, rows) = scanned(&folder, &json!({"command": "acme", "args": ["run", word]}));
        let is_shown = facts.arg_shapes[1].contains("secret");
        if (facts.secrets_inline, rows.len(), is_shown) != (usize::from(is_one), usize::from(is_one), is_one)
        {
            wrong.push(format!(
                "{word}: {} {rows:?} {:?}",
                facts.secrets_inline, facts.arg_shapes
            ));
        }
    }
    for (url, is_one) in [
        (format!("https://acme.example/{HARD}/mcp"), true),
        (format!("https://acme.example/mcp?key={HARD}"), true),
        (
            "https://mcp.zapier.example/api/s/0f8fad5b-d9cb-469f-a165-70867728950e/mcp".to_owned(),
            true,
        ),
        ("https://ada:pw@acme.example/mcp".to_owned(), true),
        ("https://acme.example/mcp?page=2".to_owned(), false),
        ("https://${HOST}/mcp".to_owned(), false),
    ] {
        let (facts, rows) = scanned(&folder, &json!({"url": url}));
        if (facts.secrets_inline, rows.len()) != (usize::from(is_one), usize::from(is_one)) {
            wrong.push(format!("{url}: {} {rows:?}", facts.secrets_inline));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Who has the key of the organization, as every machine has, cannot try passwords: two of one place have one fingerprint.
///
/// Proves IV-8.
#[test]
fn what_could_be_guessed_has_the_fingerprint_of_its_place() {
    let folder = Folder::new("guessed");
    let of = |name: &str, text: &str| {
        let server = json!({"command": "acme", "env": {name: text}});
        let (_, rows) = scanned(&folder, &server);
        rows[0].2.clone()
    };
    let summer = of("DB_PASSWORD", "Summer2026!");
    assert_eq!(summer, of("DB_PASSWORD", "Winter2027!"));
    assert_ne!(summer, of("OTHER_PASSWORD", "Summer2026!"));
    let key = of("API_KEY", HARD);
    assert_ne!(key, of("API_KEY", "CaNaRy7x9Q2w4E6r8T0yU2"));
    assert_eq!(key, of("OTHER_KEY", HARD));
    // Two places in one file are two.
    let both = json!({"command": "acme", "args": ["--password", "hunter2"], "env": {"password": "hunter2"}});
    let (facts, rows) = scanned(&folder, &both);
    let fingerprints: BTreeSet<&String> = rows.iter().map(|(_, _, fingerprint)| fingerprint).collect();
    assert_eq!((facts.secrets_inline, fingerprints.len()), (2, 2));
}
