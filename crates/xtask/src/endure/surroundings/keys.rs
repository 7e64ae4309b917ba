//! Keys that change while two servers run: no valid token is refused, and no write fails, at the one that has not been told.

use std::time::Duration;

use super::scene::{Account, Scene, expect, readiness, wait};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Failure, Outcome};
use crate::product::Server;

/// Servers read the folder again every 15 seconds.
const ROUND: Duration = Duration::from_secs(40);
/// Each has stopped somebody at the server that was not started anew.
const PURPOSES: [&str; 5] = ["audit", "pepper", "signing", "sealing", "checkpoint"];

pub fn run(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let scene = Scene::create(place, "keys", seed)?;
    let mut first = scene.installation.serve()?;
    let second = scene.installation.serve()?;
    let mut accounts = vec![scene.make_account(first.address, "before")?];
    let mut asked = 0;
    for purpose in PURPOSES {
        scene.installation.check(&["keys", "rotate", purpose])?;
        asked += both(
            &scene,
            [&first, &second],
            &accounts,
            &format!("after `keys rotate {purpose}`"),
        )?;
        // One of them starts with the new key, and the other one has never been told.
        first.stop()?;
        first = scene.installation.serve()?;
        // The other one has read it within its round.
        let activate = || scene.installation.check(&["keys", "activate", purpose]).is_ok();
        wait(ROUND, "a new key was not read by every server", activate)?;
        accounts.push(scene.make_account(first.address, &format!("with another {purpose}"))?);
        asked += both(
            &scene,
            [&first, &second],
            &accounts,
            &format!("after `keys activate {purpose}`"),
        )?;
    }
    // The operator's command beside two servers uses the newest of everything.
    scene
        .installation
        .check(&["recover", "--organization", &scene.bootstrap.organization])?;
    asked += both(&scene, [&first, &second], &accounts, "after `recover`")?;
    first.stop()?;
    second.stop()?;
    scene.installation.check(&["audit", "verify"])?;
    scene.installation.check(&["store", "check"])?;
    Ok(Report::Seen(format!(
        "{} kinds of keys were rotated and used under two servers, of which one was never told: {asked} requests succeeded",
        PURPOSES.len()
    )))
}

/// Lets everybody act at both servers, and makes something at both.
fn both(scene: &Scene, servers: [&Server; 2], accounts: &[Account], when: &str) -> Outcome<usize> {
    let mut asked = 0;
    for (number, server) in servers.iter().enumerate() {
        let when = format!("{when}, at server {number},");
        for token in accounts
            .iter()
            .map(|account| &account.token)
            .chain([&scene.bootstrap.token])
        {
            scene.acts(server.address, token, &[200], &when)?;
            asked += 1;
        }
        expect(server.address, &scene.account(&when), &[201], &when)?;
        asked += 1;
        if readiness(server.address)? != 200 {
            return Err(Failure::new(format!(
                "VIOLATION: {when} the server takes no requests"
            )));
        }
    }
    Ok(asked)
}
