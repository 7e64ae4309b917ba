//! Other stores beside one keys folder: a rehearsed restore leaves the live store alone, and of a move one side is served.

use std::process::Command;

use super::scene::{Account, Scene, expect, keep_keys_in, refusal, says};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Failure, Outcome};
use crate::process;
use crate::product::{Installation, Server, Store};

pub fn rehearse(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let live = Scene::create(place, "live", seed)?;
    let server = live.installation.serve()?;
    let backup = place.folder().join("live.db");
    let path = backup.display().to_string();
    live.installation.check(&["store", "backup", &path])?;
    let account = live.make_account(server.address, "after the backup")?;
    expect(
        server.address,
        &live.disable(&account),
        &[200],
        "after the backup",
    )?;
    let lines = || std::fs::read(live.keys().join("checkpoints.jsonl")).unwrap_or_default();
    let known = lines();

    let mut rehearsal = place.beside("rehearsal")?;
    keep_keys_in(&mut rehearsal, &live.keys());
    rehearsal.check(&["store", "restore", &path, "--rehearse"])?;
    let second = rehearsal.serve()?;
    live.acts(
        second.address,
        &live.bootstrap.token,
        &[401],
        "at a rehearsal, whose tokens are all over",
    )?;
    second.stop()?;
    says(
        &std::fs::read_to_string(&rehearsal.log).unwrap_or_default(),
        "is a rehearsal",
        "its log",
    )?;
    // What the live server signed meanwhile comes behind; nothing of the rehearsal's is among it.
    if !lines().starts_with(&known) {
        return Err(Failure::new(
            "VIOLATION: lines of the live store changed during a rehearsal",
        ));
    }
    server.stop()?;
    let server = live.installation.serve()?;
    live.acts(server.address, &live.bootstrap.token, &[200], "after a rehearsal")?;
    live.acts(
        server.address,
        &account.token,
        &[401, 403],
        "of an account that was disabled",
    )?;
    server.stop()?;
    live.installation.check(&["audit", "verify"])?;
    live.installation.check(&["store", "check"])?;
    Ok(Report::Seen(
        "a restore was rehearsed and served beside the live store, which started again and is whole".into(),
    ))
}

pub fn take_over(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let targets = [place.beside("moved-first")?, place.beside("moved-again")?];
    let data = place.folder().join("moved-data");
    let source = Scene::of(
        Installation {
            store: Store::Sqlite { data },
            log: place.folder().join("source.log"),
            ..place.installation.clone()
        },
        seed,
    )?;
    let server = source.installation.serve()?;
    let account = source.make_account(server.address, "disabled before the move")?;
    expect(
        server.address,
        &source.disable(&account),
        &[200],
        "before the move",
    )?;
    server.stop()?;
    let [first, again] = &targets;

    // Nobody used the database: the move can be taken back.
    let (first, url) = move_to(&source, first)?;
    let server = first.serve()?;
    server.stop()?;
    let back = ["store", "accept", "--moved-back", "--moved-to", &url];
    source.installation.check(&back)?;
    says(&refusal(&first)?, "moved", "the refusal of the database")?;
    let server = source.installation.serve()?;
    serves(&source, &server, &account, "at a store that was taken back")?;
    server.stop()?;

    // Somebody did: what they did would be lost.
    let (again, url) = move_to(&source, again)?;
    let server = again.serve()?;
    serves(&source, &server, &account, "at the database that it moved to")?;
    server.stop()?;
    let back = ["store", "accept", "--moved-back", "--moved-to", &url];
    if source.installation.check(&back).is_ok() {
        return Err(Failure::new(
            "VIOLATION: a move was taken back that had been used",
        ));
    }
    says(
        &refusal(&source.installation)?,
        "moved",
        "the refusal of the source",
    )?;
    again.check(&["audit", "verify"])?;
    again.check(&["store", "check"])?;
    Ok(Report::Seen(
        "a store was moved, served there, refused here and taken back; after a move that was used it was not"
            .into(),
    ))
}

/// Moves a store; returns the installation that it is from then on, and the address of its database.
fn move_to(source: &Scene, target: &Installation) -> Outcome<(Installation, String)> {
    let mut target = target.clone();
    let (Store::Postgres { url, keys }, Store::Sqlite { data }) =
        (&mut target.store, &source.installation.store)
    else {
        return Err(Failure::new("a move leads from SQLite to PostgreSQL"));
    };
    *keys = source.keys();
    let url = url.clone();
    let mut command = Command::new(&source.installation.binary);
    process::without_settings(&mut command);
    command
        .args(["store", "move", "--from"])
        .arg(data)
        .args(["--to", &url]);
    process::output(&mut command)?;
    says(
        &refusal(&source.installation)?,
        "moved",
        "the refusal of the source",
    )?;
    Ok((target, url))
}

fn serves(scene: &Scene, server: &Server, ended: &Account, when: &str) -> Outcome {
    scene.acts(server.address, &scene.bootstrap.token, &[200], when)?;
    scene.acts(
        server.address,
        &ended.token,
        &[401, 403],
        &format!("of an account that had ended, {when}"),
    )
}
