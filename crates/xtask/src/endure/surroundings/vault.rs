//! A vault that takes connections and never answers: one organization waits for it, and nobody else.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::scene::{Scene, ask, expect, wait};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{Bootstrap, parse_bootstrap};
use crate::{clock, process};

/// How many checks wait for it.
const WAITING: u32 = 40;
/// What a neighbour's check may take meanwhile.
const GOAL: Duration = Duration::from_secs(2);

pub fn run(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let silence = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
    let port = silence
        .local_addr()
        .context("cannot say where it listens")?
        .port();
    std::thread::spawn(move || {
        // They are held until the task ends.
        let held: Vec<_> = silence.incoming().flatten().collect();
        drop(held);
    });
    let mut scene = Scene::create(place, "vault", seed)?;
    let token = place.folder().join("vault-token");
    std::fs::write(&token, "s.token").context("cannot write the vault's token")?;
    let file = place.folder().join("vault.toml");
    let settings = format!(
        "[[external_managers]]\nname = \"corp\"\nkind = \"vault\"\naddress = \"http://127.0.0.1:{port}\"\n\
         token_file = \"{}\"\nallow_private_address = true\n[external_managers.organizations]\n{} = \"provost\"\n",
        token.display(),
        scene.bootstrap.organization
    );
    std::fs::write(&file, settings).context("cannot write the settings")?;
    let printed =
        process::output(
            &mut scene
                .installation
                .command(&["init", "--organization", "Beta", "--json"]),
        )?;
    let neighbour = parse_bootstrap(&printed)?;
    scene.installation.configuration = Some(file);
    let server = scene.installation.serve()?;
    let mut connection = Connection::new(server.address);

    let resource = made(&connection.fetch(&scene.change("POST", "resources", body("hanging")))?)?;
    for number in 0..WAITING {
        let credential = json!({ "name": format!("external {number}"), "kind": "bearer_token", "managementMode": "external",
                                 "managerInstance": "corp", "externalPath": format!("team/{number}") });
        let path = format!("resources/{resource}/credentials");
        let credential = made(&connection.fetch(&scene.change("POST", &path, credential))?)?;
        connection.fetch(&scene.change("POST", &format!("{path}/{credential}/verify"), json!({})))?;
    }
    let mut longest = Duration::ZERO;
    for number in 0..3 {
        longest = longest.max(check(&scene, &neighbour, &server, number)?);
    }
    expect(
        server.address,
        &scene.account("beside a vault that hangs"),
        &[201],
        "beside a vault that hangs",
    )?;
    server.stop()?;
    if longest > GOAL {
        return Err(Failure::new(format!(
            "VIOLATION: a neighbour's check took {longest:?} beside {WAITING} checks of a vault that hangs; the goal is {GOAL:?}"
        )));
    }
    Ok(Report::Seen(format!(
        "beside {WAITING} checks of a vault that never answers a neighbour's took {:.0} ms at most",
        longest.as_secs_f64() * 1e3
    )))
}

/// One check of the neighbour's, from its request to its end.
fn check(
    scene: &Scene,
    neighbour: &Bootstrap,
    server: &crate::product::Server,
    number: u32,
) -> Outcome<Duration> {
    let mut connection = Connection::new(server.address);
    let mut change = |rest: &str, body: Value| {
        let mut request = scene.change("POST", "", body);
        request.path = neighbour.path(rest);
        request.token = Some(neighbour.token.clone());
        connection.fetch(&request)
    };
    let resource = made(&change("resources", body(&format!("quick {number}")))?)?;
    let path = format!("resources/{resource}/credentials");
    let secret = json!({ "name": "one", "kind": "bearer_token", "secret": "a secret of a drill" });
    let credential = made(&change(&path, secret)?)?;
    let start = clock::now();
    let begun = change(&format!("{path}/{credential}/verify"), json!({}))?;
    let id = begun["checkId"]
        .as_str()
        .context(format_args!("no check in {begun}"))?;
    let look = Request::get(
        neighbour.path(&format!("{path}/{credential}/checks/{id}")),
        &neighbour.token,
    );
    let is_over = || {
        let state = ask(server.address, &look).and_then(|answer| answer.json());
        state.is_ok_and(|state| state["state"] != "pending")
    };
    wait(
        Duration::from_secs(30),
        "the neighbour's check did not end",
        is_over,
    )?;
    Ok(start.elapsed())
}

fn body(name: &str) -> Value {
    json!({ "name": name, "protocol": "http", "upstreamHost": "api.internal", "upstreamPort": 443, "upstreamTls": true,
            "enabled": true, "transparentRouting": false })
}

fn made(answer: &Value) -> Outcome<String> {
    let id = answer["id"].as_str().map(str::to_owned);
    id.context(format_args!("no id in {answer}"))
}
