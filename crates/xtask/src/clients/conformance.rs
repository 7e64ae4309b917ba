//! The conformance suite of the Model Context Protocol against `/mcp` and the authorization server.
//!
//! `crates/xtask/clients/CONFORMANCE.md` says what it asks, `expected-failures-*.yaml` what needs another server and why;
//! an entry that passes is a failure too.

use std::process::Command;

use super::program::Program;
use super::served::{self, Row};
use super::{Scene, install, sign_in};
use crate::failure::{Context, Failure, Outcome};
use crate::process;

const MAIN: &str = "@modelcontextprotocol/conformance/dist/index.js";
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];
/// Where the suite listens for the answer to its authorization request.
const PORT: &str = "38532";

pub fn run(scene: &mut Scene<'_>) -> Outcome<Vec<Row>> {
    let mut forward = scene.tools.script("forward.mjs");
    forward
        .arg(scene.origin())
        .env("PROVOST_TOKEN", &scene.bootstrap.token);
    let mut forwarder = Program::start(&mut forward)?;
    let origin = forwarder.line()?;
    let suite = served::named("@modelcontextprotocol/conformance", "package.json")?;
    let row = |revision: &str, works: String| [suite.clone(), "http".to_owned(), revision.to_owned(), works];
    let mut rows = Vec::new();
    // Both revisions and the authorization server are told before one of them fails the task.
    let mut outcome = Ok(());
    for revision in REVISIONS {
        println!("{revision}");
        let expected = install::sources().join(format!("expected-failures-{revision}.yaml"));
        let mut suite = scene.tools.package(MAIN);
        suite
            .args([
                "server",
                "--url",
                &format!("{origin}/mcp"),
                "--requirements",
                revision,
            ])
            .arg("--output-dir")
            .arg(scene.folder.join(revision))
            .arg("--expected-failures")
            .arg(expected);
        match judge(scene, &mut suite, revision) {
            Ok(said) => rows.push(row(
                revision,
                format!("`server --requirements {revision}`: {said}"),
            )),
            failure => outcome = outcome.and(failure.map(drop)),
        }
    }
    forwarder.ends()?;
    let said = authorization(scene);
    outcome?;
    rows.push(row("–", format!("`authorization`: {}", said?)));
    Ok(rows)
}

/// Runs the suite, shows its summary, and fails with it; all that it said is kept beside the server's log. Returns how many
/// checks passed.
fn judge(scene: &Scene<'_>, suite: &mut Command, name: &str) -> Outcome<String> {
    process::without_settings(suite);
    suite.current_dir(&scene.folder);
    let output = suite
        .output()
        .map_err(|error| Failure::new(format!("cannot run the suite: {error}")))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = scene.folder.join(format!("{name}.log"));
    std::fs::write(&log, [&output.stdout[..], &output.stderr].concat())
        .map_err(|error| Failure::new(format!("cannot keep what the suite said: {error}")))?;
    let summary = said.split("=== SUMMARY ===").nth(1).unwrap_or(&said);
    for line in summary.lines().filter(|line| !line.trim().is_empty()) {
        println!("    {line}");
    }
    if output.status.success() {
        return told(summary);
    }
    Err(Failure::new(format!(
        "the suite ended with {}; all that it said is in {}",
        output.status,
        log.display()
    )))
}

/// The counts of the suite's last line, in words. What failed, or the task would have failed, is a fixture that is asked for.
fn told(summary: &str) -> Outcome<String> {
    let total = summary.lines().find_map(|line| line.strip_prefix("Total: "));
    let total = total.context("the suite says no total")?;
    let Some((passed, failed)) = total.split_once(" passed, ") else {
        return Err(Failure::new(format!("the suite's total is {total:?}")));
    };
    Ok(match failed.strip_suffix(" failed") {
        Some("0") | None => format!("{passed} checks pass"),
        Some(failed) => format!(
            "{passed} checks pass, {failed} ask for fixtures of a demonstration server or for options that are not served"
        ),
    })
}

/// The suite as a client of the authorization server; a person's browser does the rest.
fn authorization(scene: &Scene<'_>) -> Outcome<String> {
    println!("authorization server");
    let mut administrator = scene.administrator();
    sign_in::person(&mut administrator)?;
    let callback = format!("http://127.0.0.1:{PORT}/callback");
    let client = sign_in::client(&mut administrator, "conformance", &[&callback])?;
    let origin = scene.origin();
    let mut command = scene.tools.package(MAIN);
    process::without_settings(&mut command);
    command
        .args([
            "authorization",
            "--url",
            &origin,
            "--client-id",
            &client,
            "--port",
            PORT,
        ])
        .args(["--resource", &format!("{origin}/mcp")])
        .current_dir(&scene.folder);
    let mut suite = Program::start(&mut command)?;
    let mut said = String::new();
    loop {
        let line = suite.line().context(&said)?;
        said = said + &line + "\n";
        if line.starts_with(&format!("{origin}/oauth/authorize?")) {
            let mut browser = scene.tools.script("browser.mjs");
            let mut browser = Program::start(browser.arg(&line))?;
            browser.step("arrived")?;
            browser.ends()?;
        }
        if line.contains("passed") {
            println!("    {line}");
            // A scenario that was left out has passed nothing.
            if !line.contains(" 0 failed") || line.contains(" 0 passed") {
                return Err(Failure::new("the authorization server does not conform"));
            }
        }
        if line.starts_with("Total") {
            suite.ends()?;
            return told(&line);
        }
    }
}
