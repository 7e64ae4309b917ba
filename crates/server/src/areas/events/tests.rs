//! Scenarios of the area.

use crate::areas::audit::testing::{HAPPENED, HIDDEN_HAPPENED, World, on_every_store};
use provost_kernel::auth::OrganizationId;
use provost_kernel::fence::EventKind;
use serde_json::{Value, json};

const LIST: &str = "listHeadlessEvents";

fn emit(world: &World, organization: &str, number: i64) {
    emit_as(world, organization, &HAPPENED, number);
}

fn emit_as(world: &World, organization: &str, kind: &'static EventKind, number: i64) {
    let organization = OrganizationId::parse(organization).unwrap();
    let emitted = world
        .kernel
        .system(organization, Some("test.emitted"), move |cx| {
            cx.emit(kind, json!({ "number": number }));
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

#[test]
fn an_organization_sees_its_own_events_only() {
    on_every_store("events_tenant", |world| {
        emit(world, "acme", 1);
        emit(world, "globex", 2);
        assert_eq!(numbers(&world.get("stranger", LIST, &[], "").json()), [2]);
        assert_eq!(numbers(&world.get("admin", LIST, &[], "").json()), [1]);
    });
}

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
