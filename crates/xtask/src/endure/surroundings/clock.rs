//! A server whose clock is 401 days ahead removes nothing of anybody's, and beside a database with another time it dates
//! nothing (CK-1 to CK-4). The clock is libfaketime's.

use std::time::Duration;

use super::scene::{Scene, expect, metric, readiness, says, wait};
use super::{Arguments, Report};
use crate::Engine;
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::process;
use crate::product::Installation;

/// As far ahead as an installation was once seen to be, beyond every time for which something is kept.
const AHEAD: &str = "+401d";
/// Every round that removes has had its turn by then: they begin with the start.
const ROUNDS: Duration = Duration::from_secs(4);

pub fn run(place: &BenchStore, arguments: &Arguments, seed: u64) -> Outcome<Report> {
    let Some(library) = process::faketime() else {
        return Ok(Report::Absent(
            "libfaketime is not installed (Debian: faketime)".into(),
        ));
    };
    let scene = Scene::create(place, "clock", seed)?;
    let server = scene.installation.serve()?;
    let first = scene.account("remembered");
    Connection::new(server.address).fetch(&first)?;
    let imported = import(&scene, &server)?;
    let before = kept(&scene, &server)?;

    let ahead = with_clock(&scene.installation, &library, &[("FAKETIME", AHEAD.into())]);
    // What became of everybody's records is judged first, and what it said of itself afterwards.
    let said;
    if place.engine == Engine::Postgres {
        // The one whose clock is right goes on beside it.
        let mut wrong = ahead.launch()?;
        let refused = || readiness(wrong.address).is_ok_and(|status| status == 503);
        wait(
            Duration::from_secs(30),
            "/readyz of the wrong one was no 503",
            refused,
        )?;
        expect(
            wrong.address,
            &scene.account("misdated"),
            &[503],
            "at a server 401 days ahead of its database",
        )?;
        expect(
            server.address,
            &scene.account("dated"),
            &[201],
            "at the server whose clock is right",
        )?;
        std::thread::sleep(ROUNDS);
        said = metric(&wrong, "provost_clock_doubted{")?;
        if wrong.has_ended() {
            return Err(Failure::new(
                "VIOLATION: the server with a wrong clock ended by itself",
            ));
        }
        wrong.stop()?;
    } else {
        server.stop()?;
        let wrong = ahead.serve()?;
        std::thread::sleep(ROUNDS);
        said = metric(&wrong, "provost_clock_doubted{")?;
        if readiness(wrong.address)? != 200 {
            return Err(Failure::new(
                "VIOLATION: a doubt without a database's clock stops a server",
            ));
        }
        wrong.stop()?;
    }
    let server = scene.installation.serve()?;
    let after = kept(&scene, &server)?;
    if after < before {
        return Err(Failure::new(format!(
            "VIOLATION: of {before} recorded events {after} are left after a server whose clock was ahead"
        )));
    }
    let again = expect(server.address, &first, &[201], "that was answered before")?;
    if !again.replayed {
        return Err(Failure::new("VIOLATION: an idempotency record of today is gone"));
    }
    says(&said, " 1", "the metric of the wrong one")?;
    says(
        &std::fs::read_to_string(&ahead.log).unwrap_or_default(),
        "is doubted",
        "the log of the wrong one",
    )?;
    server.stop()?;
    scene.installation.check(&["audit", "verify"])?;
    scene.installation.check(&["store", "check"])?;
    let jumped = if arguments.minutes {
        jump(&scene, &library)?
    } else {
        ""
    };
    Ok(Report::Seen(format!(
        "a server 401 days ahead removed none of {imported} events and no idempotency record, and said so{jumped}"
    )))
}

/// Moves the clock while a server runs: it has to be noticed within its round of a minute.
fn jump(scene: &Scene, library: &std::path::Path) -> Outcome<&'static str> {
    let file = scene.installation.log.with_extension("clock");
    std::fs::write(&file, "+0").context("cannot write the time")?;
    let movable = with_clock(
        &scene.installation,
        library,
        &[
            ("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".into()),
        ],
    );
    let server = movable.serve()?;
    std::fs::write(&file, "+2h").context("cannot write the time")?;
    let is_doubted = || metric(&server, "provost_clock_doubted{").is_ok_and(|lines| lines.contains(" 1"));
    wait(
        Duration::from_secs(90),
        "a clock that moved two hours was not doubted",
        is_doubted,
    )?;
    std::fs::write(&file, "+0").context("cannot write the time")?;
    let is_believed = || metric(&server, "provost_clock_doubted{").is_ok_and(|lines| !lines.contains(" 1"));
    wait(
        Duration::from_secs(150),
        "a clock that came back was not believed",
        is_believed,
    )?;
    server.stop()?;
    Ok("; one that jumped two hours was doubted within its round, and believed when it came back")
}

/// The same installation with another clock; the one that counts sleep stays the machine's.
fn with_clock(
    installation: &Installation,
    library: &std::path::Path,
    settings: &[(&'static str, String)],
) -> Installation {
    let mut ahead = installation.clone();
    ahead.log = installation.log.with_extension("ahead.log");
    let preload = ("LD_PRELOAD", library.display().to_string());
    let even = ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned());
    for (name, value) in [preload, even].iter().chain(settings) {
        ahead.environment.push((name, value.clone().into()));
    }
    ahead
}

/// Events of half a year, so that most of them would go.
fn import(scene: &Scene, server: &crate::product::Server) -> Outcome<u64> {
    let day = |number: u64| {
        let secs = crate::clock::since_epoch().as_secs() - 86_400 * (number % 180) - 60;
        let (year, month, day) = crate::clock::civil_date(secs / 86_400);
        format!("{year:04}-{month:02}-{day:02}T00:00:{:02}.000Z", number % 60)
    };
    let lines: Vec<String> = (1..=2_000)
        .map(|number| {
            serde_json::json!({ "id": format!("clock-{number}"), "at": day(number), "occasion": "pre_tool",
                                "attributes": { "tool.id": format!("tool-{}", number % 5) } })
            .to_string()
        })
        .collect();
    let request = Request {
        content: Some(("application/x-ndjson", lines.join("\n").into_bytes())),
        ..Request::new(
            "POST",
            scene.bootstrap.path("policies/history/import?source=clock"),
            &scene.bootstrap.token,
        )
    };
    let said = Connection::new(server.address).fetch(&request)?;
    said["accepted"]
        .as_u64()
        .context(format_args!("no count in {said}"))
}

/// How many recorded events there are.
fn kept(scene: &Scene, server: &crate::product::Server) -> Outcome<u64> {
    let request = Request::get(
        scene.bootstrap.path("policies/history/status"),
        &scene.bootstrap.token,
    );
    let status = Connection::new(server.address).fetch(&request)?;
    status["events"]
        .as_u64()
        .context(format_args!("no count in {status}"))
}
