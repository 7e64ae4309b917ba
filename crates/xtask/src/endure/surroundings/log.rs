//! Whoever reads the log goes away: nothing stops (the log is written best effort, and what is lost is counted).

use std::process::{Command, Stdio};
use std::time::Duration;

use super::scene::{Scene, expect, metric, readiness, wait};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// A checkpoint comes within a minute, on a machine that does nothing else.
const CHECKPOINT: Duration = Duration::from_secs(150);

pub fn run(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let mut scene = Scene::create(place, "log", seed)?;
    let pipe = place.folder().join("log.pipe");
    process::run(Command::new("mkfifo").arg(&pipe))?;
    let mut reader = Command::new("cat")
        .arg(&pipe)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot read the log")?;
    scene.installation.log = pipe;
    scene
        .installation
        .environment
        .push(("PROVOST_LOG", "debug".into()));
    let server = scene.installation.serve()?;
    drop(reader.kill());
    reader.wait().context("cannot end the reader")?;

    let lines = || {
        std::fs::read_to_string(scene.keys().join("checkpoints.jsonl"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    let before = lines();
    for number in 0..50 {
        expect(
            server.address,
            &scene.account(&format!("unread {number}")),
            &[201],
            "with a log that nobody reads",
        )?;
    }
    wait(
        CHECKPOINT,
        "no checkpoint was signed with a log that nobody reads",
        || lines() > before,
    )?;
    let lost = metric(&server, "provost_log_lines_lost_total ")?;
    if lost.is_empty() || lost.trim_end().ends_with(" 0") {
        return Err(Failure::new(format!(
            "VIOLATION: lines that were lost are not counted: {lost:?}"
        )));
    }
    if readiness(server.address)? != 200 {
        return Err(Failure::new(
            "VIOLATION: a log that nobody reads stops the server",
        ));
    }
    server
        .stop()
        .map_err(|failure| Failure::new(format!("VIOLATION: {failure}")))?;
    scene.installation.check(&["store", "check"])?;
    Ok(Report::Seen(
        "with a log that nobody reads 50 changes and a checkpoint were made, lost lines were counted, and a stop ended with 0"
            .into(),
    ))
}
