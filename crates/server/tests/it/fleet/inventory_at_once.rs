//! Reports of one device at once, and one that is on its way: bounds hold, and nothing reads as complete that is not.

use super::inventory::held;
use crate::areas::fleet::Machine;
use crate::areas::inventory::{PATH, report, section};
use crate::support::{App, each};
use provost_kernel::{params, statements};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;

statements! {
    /// How many observations are there, and how many assets are known.
    SIZES = unscoped("a test") "SELECT (SELECT COUNT(*) FROM inventory_observations WHERE removed_at IS NULL), (SELECT COUNT(*) FROM inventory_assets)";
}

async fn sizes(app: &App) -> (i64, i64) {
    let read = app
        .kernel
        .read_system(|tx| tx.query_opt(&SIZES, params![], |row| Ok((row.get(0)?, row.get(1)?))));
    read.await.unwrap().unwrap()
}

/// Skills that nobody else has.
fn skills(begin: usize, count: usize) -> Value {
    let skill = |number: usize| {
        json!({
            "kind": "skill", "place": { "class": "~/.claude/skills", "path": PATH }, "name": format!("skill-{number}"),
            "digest": format!("sha256:{number:064x}"),
        })
    };
    (begin..begin + count).map(skill).collect()
}

/// Proves IN-3, IN-8.
#[test]
fn copies_of_a_scan_at_once_keep_to_the_bounds_of_their_device() {
    each("inventory_at_once", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let mut copies = JoinSet::new();
        for copy in 0..20 {
            let (app, laptop) = (app.clone(), laptop.clone());
            copies.spawn(async move {
                // Each of one name, with what none of the others has.
                let found = [skills(copy * 1_000, 300), skills(copy * 1_000 + 500, 300)];
                let sections: Vec<Value> = found
                    .iter()
                    .enumerate()
                    .map(|(at, found)| section(&format!("account-{copy}-{at}"), found, true))
                    .collect();
                laptop.report(&app, report(&app, 0, &json!(sections))).await.ok();
            });
        }
        copies.join_all().await;
        let (there, assets) = sizes(&app).await;
        assert!(
            there <= 2_000 && assets <= 1_000,
            "{there} observations, {assets} assets"
        );
        assert!(there > 250, "{there}");
        // What came last is whole, and it can be ended.
        let retire = format!("/devices/{}/retire", laptop.id);
        app.write("POST", &retire, json!({ "confirm": true })).await.ok();
        assert_eq!(sizes(&app).await.0, 0);
        app.kernel.stop().await;
    });
}

/// Proves IN-2, IN-8.
#[test]
fn a_section_that_is_being_taken_says_that_it_is_not_all() {
    each("inventory_under_way", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        laptop.has(&app, "ada", &skills(0, 400)).await.ok();
        let (other, there) = (app.clone(), laptop.clone());
        let mut sending = JoinSet::new();
        sending.spawn(async move {
            there.has(&other, "ada", &skills(400, 900)).await.ok();
        });
        // Whoever looks meanwhile sees all of it, or that it is not.
        while sending.try_join_next().is_none() {
            let seen = held(&app, &laptop).await["sections"][0].clone();
            if seen["complete"] == false {
                assert_eq!(
                    (&seen["truncated"], &seen["notKept"]),
                    (&json!(true), &json!(900))
                );
            }
            tokio::task::yield_now().await;
        }
        let seen = held(&app, &laptop).await["sections"][0].clone();
        // A device makes a thousand things known.
        assert_eq!((&seen["complete"], &seen["notKept"]), (&json!(true), &json!(300)));
        assert_eq!(sizes(&app).await, (600, 1_000));
        app.kernel.stop().await;
    });
}
