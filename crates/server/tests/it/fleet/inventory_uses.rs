//! What events of hooks and telemetry say of servers: joined with the person's own machines, and with nothing by a guess.

use super::inventory::{decide, in_days, of_key, prune, servers};
use crate::areas::directory::user;
use crate::areas::fleet::Machine;
use crate::areas::inventory::{report, section, server, skill};
use crate::policy::decisions;
use crate::support::{App, each, fresh_key};
use provost_areas_fleet::inventory::join_uses;
use provost_areas_policy::history::count_values;
use provost_kernel::{OperationContext, params, statements};
use serde_json::{Value, json};
use std::sync::{Arc, mpsc};
use tokio::task::JoinSet;

const ADA: &str = "ada@acme.test";
const BOB: &str = "bob@acme.test";

/// A machine of somebody.
async fn machine_of(app: &App, id: &str) -> Machine {
    let machine = Machine::new(app).await;
    let body = json!({ "ownerUserId": id });
    app.write("PATCH", &format!("/devices/{}", machine.id), body)
        .await
        .ok();
    // What is looked at in the same moment may be of before.
    app.advance(1);
    machine
}

/// Counts what was recorded, and joins what that names.
pub async fn count(app: &App) {
    count_values(&app.kernel).await.unwrap();
    join_uses(&app.kernel).await.unwrap();
}

/// Asks as a hook does before a tool of a server; a gateway names itself.
pub async fn ask(app: &App, user: &str, server: &str, gateway: Option<&str>) {
    let mut attributes = json!({
        "identity.user_id": user, "tool.id": format!("mcp__{server}__read"), "mcp.server_id": server, "mcp.tool_id": "read",
    });
    if let Some(gateway) = gateway {
        attributes["mcp.gateway_endpoint_id"] = json!(gateway);
    }
    decisions::decide(app, &[decisions::call(&attributes)]).await;
}

/// Tells of a call as Claude Code's telemetry does.
async fn tell(app: &App, user: &str, server: &str) {
    let attributes: Vec<Value> = [
        ("tool_name", format!("mcp__{server}__read")),
        ("tool_use_id", "toolu_1".to_owned()),
        ("session.id", "s-9".to_owned()),
        ("user.email", user.to_owned()),
    ]
    .into_iter()
    .map(|(key, text)| json!({ "key": key, "value": { "stringValue": text } }))
    .collect();
    let at = (app.now().as_ms() * 1_000_000).to_string();
    let record =
        json!({ "eventName": "claude_code.tool_result", "timeUnixNano": at, "attributes": attributes });
    let payload = json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": [record] }] }] });
    let call = app.request("POST", "/otlp/v1/logs");
    let reply = call
        .content("application/json", payload.to_string().into_bytes())
        .send()
        .await;
    assert_eq!(reply.ok(), &json!({}));
}

async fn uses(app: &App, query: &str) -> Vec<Value> {
    let page = app.get(&format!("/inventory/uses{query}")).await.ok().clone();
    page["uses"].as_array().unwrap().clone()
}

/// Returns how a server is known: evidence and certainty.
fn known(server: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let evidence = server["evidence"].as_array().unwrap();
    evidence
        .iter()
        .map(|one| (text(&one["evidence"]), text(&one["certainty"])))
        .collect()
}

fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(one, other): &(&str, &str)| ((*one).to_owned(), (*other).to_owned());
    wanted.iter().map(own).collect()
}

/// Deletes a user of the directory.
async fn delete(app: &App, user: &str) {
    let call = app.request("DELETE", &format!("/directory/users/{user}"));
    let call = call.header("idempotency-key", &fresh_key());
    let call = call.header("x-reason", "she left").header("x-confirm", "true");
    call.send().await.ok();
}

/// Proves IN-4, IN-9.
#[test]
fn a_name_in_an_event_is_what_that_persons_own_machines_have_under_it() {
    each("inventory_used", |app: Arc<App>| async move {
        let (ada, bob) = (user(&app, ADA).await, user(&app, BOB).await);
        let (hers, his) = (machine_of(&app, &ada).await, machine_of(&app, &bob).await);
        let of_ada = json!([
            server("files", "npm:files", false),
            server("idle", "npm:idle", false),
            skill("pdf", "a"),
        ]);
        hers.has(&app, "ada", &of_ada).await.ok();
        // Another server, under the name of one that is approved.
        his.has(&app, "bob", &json!([server("files", "npm:evil", false)]))
            .await
            .ok();
        let approve = json!({ "standing": "approved", "expiresAt": in_days(&app, 9) });
        decide(&app, &of_key(&app, "npm:files").await, approve).await.ok();
        app.advance(60);
        ask(&app, ADA, "files", None).await;
        ask(&app, ADA, "files", Some("gateway-1")).await;
        ask(&app, ADA, "unheard", None).await;
        tell(&app, BOB, "files").await;
        ask(&app, "stranger@acme.test", "files", None).await;
        count(&app).await;
        // What was counted is counted once.
        count(&app).await;
        let files = of_key(&app, "npm:files").await;
        assert_eq!(
            known(&files),
            pairs(&[("configuration", ""), ("gateway", "sole"), ("hook", "sole")])
        );
        let hook = &files["evidence"][2];
        assert_eq!(
            (&hook["events"], &hook["lastSeenAt"]),
            (&json!(1), &json!(app.now().to_rfc3339()))
        );
        let evil = of_key(&app, "npm:evil").await;
        assert_eq!(
            known(&evil),
            pairs(&[("configuration", ""), ("telemetry", "sole")])
        );
        assert_eq!(
            (&evil["standing"], &files["standing"]),
            (&json!("shadow"), &json!("approved"))
        );
        assert_eq!(
            known(&of_key(&app, "npm:idle").await),
            pairs(&[("configuration", "")])
        );
        let assets = app.get("/inventory/assets").await.ok().clone();
        assert_eq!(known(&assets["assets"][0]), pairs(&[("configuration", "")]));
        // Used and not configured, as far as anybody knows; whoever is unknown is not named.
        let unresolved = uses(&app, "?certainty=unresolved").await;
        let told: Vec<_> = unresolved
            .iter()
            .map(|one| {
                (
                    one["name"].as_str().unwrap(),
                    one.get("userId"),
                    one.get("serverId"),
                )
            })
            .collect();
        assert_eq!(told.len(), 2, "{unresolved:?}");
        assert!(told.contains(&("unheard", Some(&json!(ada)), None)), "{told:?}");
        assert!(told.contains(&("files", None, None)), "{told:?}");
        let summary = app.get("/inventory/summary").await.ok().clone();
        assert_eq!(summary["usedNotConfigured"], 2);
        let keys = async |query: &str| -> Vec<String> {
            let found = servers(&app, query).await;
            let mut keys: Vec<String> = found
                .iter()
                .map(|one| one["key"].as_str().unwrap().to_owned())
                .collect();
            keys.sort_unstable();
            keys
        };
        assert_eq!(keys("?used=yes").await, ["npm:evil", "npm:files"]);
        assert_eq!(keys("?used=no").await, ["npm:idle"]);
        assert_eq!(keys("?used=yes&standing=shadow").await, ["npm:evil"]);
        assert_eq!(keys("?used=30d").await.len(), 2);
        let of_server = format!("?evidence=hook&serverId={}", files["id"].as_str().unwrap());
        assert_eq!(uses(&app, &of_server).await.len(), 1);
        app.kernel.stop().await;
    });
}

/// Proves IN-9.
#[test]
fn where_something_else_can_be_meant_a_server_is_a_candidate_and_no_more() {
    each("inventory_used_maybe", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let (one, other) = (machine_of(&app, &ada).await, machine_of(&app, &ada).await);
        // Before any machine was looked at nothing is known.
        ask(&app, ADA, "files", None).await;
        count(&app).await;
        let found = json!([server("files", "npm:files", false)]);
        one.has(&app, "ada", &found).await.ok();
        app.advance(60);
        // Her other machine was never looked at.
        ask(&app, ADA, "files", None).await;
        count(&app).await;
        let files = of_key(&app, "npm:files").await;
        assert_eq!(
            known(&files),
            pairs(&[("configuration", ""), ("hook", "candidate")])
        );
        // Not all of it could be read.
        let partly = section("ada", &json!([]), false);
        other.report(&app, report(&app, 0, &json!([partly]))).await.ok();
        ask(&app, ADA, "files", None).await;
        count(&app).await;
        assert_eq!(known(&of_key(&app, "npm:files").await), known(&files));
        // Two servers of one name.
        other
            .has(&app, "ada", &json!([server("files", "npm:evil", false)]))
            .await
            .ok();
        app.advance(60);
        ask(&app, ADA, "files", None).await;
        count(&app).await;
        let evil = of_key(&app, "npm:evil").await;
        assert_eq!(
            known(&evil),
            pairs(&[("configuration", ""), ("hook", "candidate")])
        );
        // Only now all of it is known, and what was said before stays what it was.
        other.has(&app, "ada", &json!([])).await.ok();
        app.advance(60);
        ask(&app, ADA, "files", None).await;
        count(&app).await;
        assert_eq!(
            known(&of_key(&app, "npm:files").await),
            pairs(&[("configuration", ""), ("hook", "candidate"), ("hook", "sole")])
        );
        // What comes back may have been something else in between, and late telemetry is about then.
        one.has(&app, "ada", &json!([])).await.ok();
        app.advance(60);
        ask(&app, ADA, "files", None).await;
        app.advance(60);
        one.has(&app, "ada", &found).await.ok();
        count(&app).await;
        let unsure = uses(&app, "?certainty=candidate").await;
        assert_eq!(
            unsure
                .iter()
                .map(|one| one["events"].as_i64().unwrap())
                .sum::<i64>(),
            5,
            "{unsure:?}"
        );
        let sole = uses(&app, "?certainty=sole").await;
        assert_eq!((sole.len(), &sole[0]["events"]), (1, &json!(1)));
        let nothing = uses(&app, "?certainty=unresolved").await;
        assert_eq!((nothing.len(), &nothing[0]["events"]), (1, &json!(1)));
        app.kernel.stop().await;
    });
}

statements! {
    /// How many rows there are.
    ROWS = unscoped("a test") "SELECT COUNT(*) FROM inventory_uses";
}

async fn rows(app: &App) -> i64 {
    let read = app
        .kernel
        .read_system(|tx| tx.query_opt(&ROWS, params![], |row| row.get::<i64>(0)));
    read.await.unwrap().unwrap()
}

#[test]
fn whose_events_they_are_is_seen_by_those_who_see_owners_and_ends_with_the_person() {
    each("inventory_used_whose", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        ask(&app, ADA, "files", None).await;
        // What looks like a value is no name.
        ask(&app, ADA, "ghp_CaNaRyCaNaRyCaNaRy0123456789abcdef", None).await;
        count(&app).await;
        let of = async |role: &str, scopes: &[&str]| {
            let (_, token) = app
                .account(&format!("{role}-{}", scopes.len()), role, scopes)
                .await;
            app.request("GET", "/inventory/uses").token(&token).send().await
        };
        of("viewer", &["inventory:read"])
            .await
            .refused(403, "role_forbidden");
        let blind = of("auditor", &["inventory:read"]).await.ok().clone();
        assert_eq!(blind["uses"].as_array().unwrap().len(), 2);
        assert!(
            !blind.to_string().contains(&ada) && !blind.to_string().contains("CaNaRy"),
            "{blind}"
        );
        let seeing = of("auditor", &["inventory:read", "directory:read"]).await;
        assert_eq!(seeing.ok()["uses"][0]["userId"], json!(ada));
        // Another organization knows nothing of it.
        let (organization, admin) = app.other_organization("Stark").await;
        let there = app.view_of(organization, admin);
        assert_eq!(uses(&there, "").await, [] as [Value; 0]);
        delete(&app, &ada).await;
        assert_eq!(rows(&app).await, 0);
        app.kernel.stop().await;
    });
}

#[test]
fn what_was_used_long_ago_is_forgotten() {
    each("inventory_used_forgotten", |app: Arc<App>| async move {
        ask(&app, ADA, "files", None).await;
        count(&app).await;
        prune(&app).await;
        assert_eq!(rows(&app).await, 1);
        app.advance(91 * 86_400);
        prune(&app).await;
        assert_eq!(rows(&app).await, 0);
        app.kernel.stop().await;
    });
}

/// Proves IN-8, IN-9.
#[test]
fn whom_the_directory_does_not_know_is_nobody_and_the_deleted_do_not_come_back() {
    each("inventory_used_nobody", |app: Arc<App>| async move {
        ask(&app, "usr_01m7w5ws2557r5efywan1hf0t3", "files", None).await;
        count(&app).await;
        let found = uses(&app, "").await;
        assert_eq!((found.len(), found[0].get("userId")), (1, None), "{found:?}");
        let ada = user(&app, ADA).await;
        // Deleted while what she used waits, and named by her id behind that.
        ask(&app, ADA, "files", None).await;
        count_values(&app.kernel).await.unwrap();
        delete(&app, &ada).await;
        join_uses(&app.kernel).await.unwrap();
        ask(&app, &ada, "files", None).await;
        count(&app).await;
        let found = uses(&app, "").await;
        assert_eq!((found.len(), found[0].get("userId")), (1, None), "{found:?}");
        assert_eq!(found[0]["events"], 2);
        app.kernel.stop().await;
    });
}

/// Proves IN-8.
#[test]
fn whoever_is_deleted_while_names_are_joined_does_not_come_back() {
    each("inventory_used_deleted", |app: Arc<App>| async move {
        let (ada, bob) = (user(&app, ADA).await, user(&app, BOB).await);
        // What is Bob's waits first.
        for one in [BOB, ADA] {
            ask(&app, one, "files", None).await;
            count_values(&app.kernel).await.unwrap();
            app.advance(1);
        }
        // The writer is busy: the deletion waits behind it, and what was read before the deletion is written behind that.
        let (release, end) = mpsc::channel::<()>();
        let (began, start) = mpsc::channel::<()>();
        let (kernel, org) = (app.kernel.clone(), app.org());
        let mut busy = JoinSet::new();
        busy.spawn(async move {
            let wait = move |_: &mut OperationContext<'_>| {
                began.send(()).unwrap();
                end.recv().unwrap();
                Ok(())
            };
            kernel.system(org, None, wait).await
        });
        while start.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        let waiting = async |count| {
            while app.kernel.waiting_units() < count {
                tokio::task::yield_now().await;
            }
        };
        let ((), joined, ()) = tokio::join!(
            delete(&app, &ada),
            async {
                waiting(1).await;
                join_uses(&app.kernel).await
            },
            async {
                waiting(2).await;
                release.send(()).unwrap();
            }
        );
        busy.join_next().await.unwrap().unwrap().unwrap();
        joined.unwrap();
        let found = uses(&app, "").await;
        assert_eq!((found.len(), &found[0]["userId"]), (1, &json!(bob)), "{found:?}");
        assert_eq!(rows(&app).await, 1);
        app.kernel.stop().await;
    });
}

/// Proves IN-8.
#[test]
fn a_machine_with_many_servers_and_events_with_many_names_are_counted_as_far_as_there_is_room() {
    each("inventory_used_much", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let laptop = machine_of(&app, &ada).await;
        let many: Vec<Value> = (0..400)
            .map(|n| server(&format!("s-{n}"), &format!("npm:s-{n}"), false))
            .collect();
        laptop.has(&app, "ada", &json!(many)).await.ok();
        app.advance(60);
        let calls: Vec<Value> = (0..300)
            .map(|n| {
                decisions::call(&json!({
                    "identity.user_id": ADA, "tool.id": "read", "mcp.server_id": format!("s-{n}"),
                }))
            })
            .collect();
        decisions::decide(&app, &calls).await;
        count(&app).await;
        assert_eq!(rows(&app).await, 200);
        let page = app.get("/inventory/uses?limit=100").await.ok().clone();
        assert_eq!(page["notKept"], 100);
        assert!(
            page["uses"]
                .as_array()
                .unwrap()
                .iter()
                .all(|one| one["certainty"] == "sole")
        );
        app.kernel.stop().await;
    });
}
