//! Scenarios of the area.

use crate::audit::testing::{HAPPENED, HIDDEN_HAPPENED, Numbered, World, on_every_store};
use provost_kernel::auth::OrganizationId;
use provost_kernel::event::EventOf;
use serde_json::{Value, json};

const LIST: &str = "listHeadlessEvents";
const FIRST: &str = "epo_00000000000000000000000000";

fn emit(world: &World, organization: &str, number: i64) {
    emit_as(world, organization, &HAPPENED, number);
}

fn emit_as(world: &World, organization: &str, kind: &'static EventOf<Numbered>, number: i64) {
    let organization = OrganizationId::parse(organization).unwrap();
    let emitted = world
        .kernel
        .system(organization, Some("test.emitted"), move |ctx| {
            ctx.emit(kind, &Numbered { number });
            Ok(())
        });
    world.run(emitted).unwrap();
}

fn numbers(page: &Value) -> Vec<i64> {
    page["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["data"]["number"].as_i64().unwrap())
        .collect()
}

/// Proves EV-1.
#[test]
fn events_are_listed_in_order_after_a_sequence() {
    on_every_store("events_order", |world| {
        for number in 1..=7 {
            emit(world, "acme", number);
            world.advance_secs(1);
        }
        let (mut after, mut seen) = (0, Vec::new());
        loop {
            let page = world
                .get("operator", LIST, &[], &format!("after={after}&limit=3"))
                .json();
            seen.extend(numbers(&page));
            match page["nextAfter"].as_i64() {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(after, 7);
        let first = world.get("auditor", LIST, &[], "limit=1").json();
        assert_eq!(
            first,
            json!({
                "events": [{
                    "id": first["events"][0]["id"],
                    "type": "test.happened",
                    "timestamp": "2026-11-20T03:15:00.000Z",
                    "data": { "number": 1, "sequence": 1 },
                }],
                "nextAfter": 1,
                "epoch": FIRST,
            })
        );
        assert!(first["events"][0]["id"].as_str().unwrap().starts_with("evt_"));
    });
}

#[test]
fn data_that_are_not_for_a_reader_are_withheld_and_the_event_is_not() {
    on_every_store("events_withheld", |world| {
        emit(world, "acme", 1);
        emit_as(world, "acme", &HIDDEN_HAPPENED, 2);
        for who in ["admin", "auditor", "narrow"] {
            let page = world.get(who, LIST, &[], "").json();
            assert_eq!(numbers(&page), [1, 2], "{who}");
            assert_eq!(page["events"][1].get("withheld"), None);
        }
        let whole = world.get("admin", LIST, &[], "").json();
        let page = world.get("operator", LIST, &[], "").json();
        assert_eq!(page["events"][0], whole["events"][0]);
        assert_eq!(
            page["events"][1],
            json!({
                "id": whole["events"][1]["id"],
                "type": "test.hidden",
                "timestamp": whole["events"][1]["timestamp"],
                "data": { "sequence": 2 },
                "withheld": true,
            })
        );
        assert_eq!(page["nextAfter"], 2);
    });
}

fn begin_epoch(world: &World, organization: &str) {
    let organization = OrganizationId::parse(organization).unwrap();
    let begun = world
        .kernel
        .system(organization, Some("test.went_back"), super::begin_epoch);
    world.run(begun).unwrap();
}

/// Proves EV-2.
#[test]
fn who_read_before_the_store_went_back_is_told_where_to_go_on() {
    on_every_store("events_epochs", |world| {
        let ask = |query: &str| world.get("operator", LIST, &[], query);
        for number in 1..=3 {
            emit(world, "acme", number);
        }
        let end = ask("after=3").json();
        assert_eq!(
            end,
            json!({ "events": [], "epoch": FIRST }),
            "the end is no mistake"
        );
        for query in ["after=4".to_owned(), format!("after=4&epoch={FIRST}")] {
            let gone = ask(&query);
            assert_eq!(gone.status, 410, "{query}");
            assert_eq!(
                (
                    &gone.json()["code"],
                    &gone.json()["nextAfter"],
                    &gone.json()["epoch"],
                    &gone.json()["retryable"]
                ),
                (&json!("sequence_gone"), &json!(0), &json!(FIRST), &json!(false)),
                "{query}"
            );
        }
        begin_epoch(world, "acme");
        for number in 4..=6 {
            emit(world, "acme", number);
        }
        let page = ask(&format!("after=3&epoch={FIRST}")).json();
        assert_eq!(numbers(&page), [4, 5, 6], "what both epochs have is read on from");
        let now = page["epoch"].as_str().unwrap().to_owned();
        assert_ne!(now, FIRST);
        // Somebody read five events before the store went back to three; two of those of now have the same numbers.
        let gone = ask(&format!("after=5&epoch={FIRST}"));
        assert_eq!(gone.status, 410);
        let gone = gone.json();
        assert_eq!((&gone["nextAfter"], &gone["epoch"]), (&json!(3), &json!(now)));
        let said = gone["message"].as_str().unwrap();
        assert!(
            said.contains(&format!("go on with after=3 and epoch={now}")),
            "{said}"
        );
        let on = ask(&format!("after={}&epoch={now}", gone["nextAfter"])).json();
        assert_eq!(numbers(&on), [4, 5, 6]);
        // A bare number is taken as before; one that nothing has yet is answered with the place that everybody shares.
        assert_eq!(numbers(&ask("after=5").json()), [6]);
        assert_eq!(ask("after=6").json(), json!({ "events": [], "epoch": now }));
        assert_eq!(ask("after=7").json()["nextAfter"], 3);
        for unknown in ["epo_zzzzzzzzzzzzzzzzzzzzzzzzzz", "4"] {
            assert_eq!(ask(&format!("after=1&epoch={unknown}")).json()["nextAfter"], 0);
            assert_eq!(
                numbers(&ask(&format!("epoch={unknown}")).json()),
                [1, 2, 3, 4, 5, 6]
            );
        }
        let other = world.get("stranger", LIST, &[], "").json();
        assert_eq!(other["epoch"], FIRST, "each organization has epochs of its own");
    });
}

/// Proves EV-2.
#[test]
fn the_end_is_where_the_counter_stands_and_not_the_newest_event_that_is_kept() {
    on_every_store("events_pruned", |world| {
        for number in 1..=3 {
            emit(world, "acme", number);
        }
        world.open().batch("DELETE FROM outbox").unwrap();
        assert_eq!(
            world.get("operator", LIST, &[], "after=3").json()["events"],
            json!([])
        );
        assert_eq!(world.get("operator", LIST, &[], "after=2").status, 200);
        assert_eq!(world.get("operator", LIST, &[], "after=4").status, 410);
    });
}

/// Proves CX-1.
#[test]
fn an_organization_sees_its_own_events_only() {
    on_every_store("events_tenant", |world| {
        emit(world, "acme", 1);
        emit(world, "globex", 2);
        assert_eq!(numbers(&world.get("stranger", LIST, &[], "").json()), [2]);
        assert_eq!(numbers(&world.get("admin", LIST, &[], "").json()), [1]);
    });
}

/// Proves DP-2.
#[test]
fn who_may_not_read_events_is_told_so_before_the_query_is_judged() {
    on_every_store("events_rights", |world| {
        assert_eq!(
            world.get("viewer", LIST, &[], "after=x").json()["code"],
            "role_forbidden"
        );
        assert_eq!(world.get("narrow", LIST, &[], "").status, 200);
        for query in [
            "after=-1",
            "after=x",
            "limit=0",
            "limit=101",
            "after=9007199254740992",
        ] {
            assert_eq!(
                world.get("admin", LIST, &[], query).json()["code"],
                "invalid_request",
                "{query}"
            );
        }
        assert_eq!(
            world.get("admin", LIST, &[], "afer=1").json()["code"],
            "unknown_parameter"
        );
    });
}
