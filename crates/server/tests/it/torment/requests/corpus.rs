//! Requests that were a finding once or that take a special path, each with the status that it must have.

use super::super::run;
use super::form;
use super::oracles::{self, Counts};
use super::scene::Scene;
use crate::support::{App, each_with};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Read when the test runs: a new line needs no build.
fn lines() -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(folder.join("tests/it/corpus/requests.jsonl")).unwrap()
}

#[test]
fn requests_of_the_corpus_are_answered_as_before() {
    each_with("requests_corpus", &run::roomy(), |app: Arc<App>| async move {
        let scene = Scene::set(app).await;
        let (mut counts, mut changed) = (Counts::default(), String::new());
        let lines = lines();
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let (form, status) = form::read(&scene, &line);
            let reply = form
                .send(&scene)
                .await
                .unwrap_or_else(|| panic!("no request: {line}"));
            oracles::judge(&scene, &form, &reply, Duration::ZERO, &mut counts);
            if u64::from(reply.status.as_u16()) != status {
                let _ = writeln!(changed, "{} {} for {line}", reply.status, reply.text());
            }
        }
        assert!(changed.is_empty(), "\n{changed}");
        assert_eq!(counts.requests, lines.lines().count() as u64);
    });
}
