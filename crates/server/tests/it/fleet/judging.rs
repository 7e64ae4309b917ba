//! What devices judge by: who gets it, what is in it, and when there is another one.

use super::act;
use crate::areas::device_judging::set;
use crate::areas::directory::{group, user};
use crate::areas::fleet::Machine;
use crate::areas::inventory::server;
use crate::policy::decisions::{content, policy};
use crate::support::{App, Reply, each};
use provost_bundle::{
    Addressee, AskedEvent, Judge, Judgement, PolicyBundle, ToldArguments, ToldContent, open,
};
use provost_kernel::dsse::Envelope;
use provost_policy::{Action, Family};
use serde_json::{Value, json};
use std::sync::Arc;

const ADA: &str = "ada@acme.test";

/// Makes somebody the owner of a machine, where devices judge.
pub async fn owned(app: &App, owner: &str) -> Machine {
    set(app, "on").await;
    let machine = Machine::new(app).await;
    let body = json!({ "ownerUserId": owner });
    let path = format!("/devices/{}", machine.id);
    app.write("PATCH", &path, body).await.ok();
    machine
}

/// Asks for what a machine judges by.
pub async fn fetch(app: &App, machine: &Machine, etag: Option<&str>) -> Reply {
    let path = format!("/devices/{}/policy-bundle", machine.id);
    let mut call = app.request("GET", &path).token(&machine.token);
    if let Some(etag) = etag {
        call = call.header("if-none-match", etag);
    }
    call.send().await
}

/// Returns the bundle of an answer, as the device believes it.
pub fn opened(app: &App, machine: &Machine, reply: &Reply) -> PolicyBundle {
    let envelope: Envelope = serde_json::from_value(reply.ok().clone()).unwrap();
    let addressee = Addressee {
        organization_id: &app.organization,
        device_id: &machine.id,
        floor: None,
    };
    open(&envelope, &app.kernel.keys.signing_public_keys(), &addressee).unwrap()
}

/// Proves DJ-1, LJ-3.
#[test]
fn a_device_gets_its_own_bundle_with_nobody_but_its_owner_in_it() {
    each("judging_bundle", |app: Arc<App>| async move {
        let (ada, bob) = (user(&app, ADA).await, user(&app, "bob@acme.test").await);
        let (ours, theirs) = (group(&app, "engineering").await, group(&app, "law").await);
        for (group, member) in [(&ours, &ada), (&theirs, &bob)] {
            let path = format!("/directory/groups/{group}/members/{member}");
            app.write("PUT", &path, json!({})).await.ok();
        }
        let of = |users: Value| json!({ "appliesTo": { "users": users } });
        policy(
            &app,
            Family::Content,
            content("of.bob", "block", &of(json!([bob]))),
        )
        .await;
        policy(
            &app,
            Family::Content,
            content("of.both", "block", &of(json!([ada, bob]))),
        )
        .await;
        let (hers, nobodys) = (owned(&app, &ada).await, Machine::new(&app).await);
        let reply = fetch(&app, &hers, None).await;
        let bundle = opened(&app, &hers, &reply);
        assert_eq!(bundle.users.len(), 1);
        assert_eq!(bundle.users[0].user_id, ada);
        assert!(bundle.users[0].words.iter().any(|word| word == ADA));
        assert_eq!(
            bundle.users[0].group_ids.as_deref(),
            Some([ours.clone()].as_slice())
        );
        let text = bundle.canonical();
        for other in [bob.as_str(), "bob@", "law", theirs.as_str(), "of.bob"] {
            assert!(!text.contains(other), "{other} stands in {text}");
        }
        assert_eq!(
            bundle.not_after.as_ms() - bundle.issued_at.as_ms(),
            7 * 86_400_000
        );
        assert_eq!((bundle.mode.as_str(), bundle.record_all), ("monitor", false));
        // It judges as the server does.
        let judge = Judge::new(bundle).unwrap();
        let event =
            json!({ "occasion": "pre_tool", "attributes": { "tool.id": "x", "identity.user_id": ADA } });
        let said = judge.judge(app.now(), &AskedEvent::of(&event).unwrap()).unwrap();
        assert!(matches!(said, Judgement::Verdict(_)));
        assert_eq!(said.verdict().action(), Action::Block);
        let nobody = opened(&app, &nobodys, &fetch(&app, &nobodys, None).await);
        assert!(nobody.users.is_empty() && nobody.groups.is_empty());
        // Nobody else gets it: no other device, no admin.
        let path = format!("/devices/{}/policy-bundle", hers.id);
        for token in [&nobodys.token, &app.admin] {
            let reply = app.request("GET", &path).token(token).send().await;
            reply.refused(403, "role_forbidden");
        }
        act(&app, &hers.id, "quarantine").await.ok();
        let reply = fetch(&app, &hers, None).await;
        reply.refused(409, "conflict");
        assert_eq!(reply.json["status"], "quarantined");
        act(&app, &hers.id, "release").await.ok();
        fetch(&app, &hers, None).await.ok();
        act(&app, &hers.id, "retire").await.ok();
        fetch(&app, &hers, None).await.refused(401, "token_revoked");
        app.kernel.stop().await;
    });
}

/// Proves DJ-2.
#[test]
fn whoever_has_the_newest_bundle_hears_so_until_something_changes_or_a_day_ends() {
    each("judging_etag", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let first = fetch(&app, &machine, None).await;
        let first_bundle = opened(&app, &machine, &first);
        let (mut newest, told) = (first_bundle.floor(), first_bundle.told);
        let mut etag = first.header("etag").to_owned();
        let unchanged = async |etag: &str| {
            let same = fetch(&app, &machine, Some(etag)).await;
            (same.status.as_u16(), same.bytes.len())
        };
        assert_eq!(unchanged(&etag).await, (304, 0));
        // What is none of its business: another machine.
        Machine::new(&app).await;
        assert_eq!(unchanged(&etag).await, (304, 0));
        for change in ["policy", "settings", "privacy", "group", "day"] {
            match change {
                "policy" => policy(&app, Family::Content, content("p", "block", &json!({}))).await,
                "settings" => {
                    let body = json!({ "fleet": { "hooks": { "mode": "enforce" } } });
                    app.write("PATCH", "/automation/settings", body).await.ok();
                }
                "privacy" => {
                    assert_eq!(told, ToldContent::LEAST, "the factory values tell the least");
                    let body =
                        json!({ "fleet": { "privacy": { "toolArguments": "full" } }, "confirm": true });
                    app.write("PATCH", "/automation/settings", body).await.ok();
                }
                "group" => {
                    let group = group(&app, "engineering").await;
                    let path = format!("/directory/groups/{group}/members/{ada}");
                    app.write("PUT", &path, json!({})).await.ok();
                }
                _ => app.advance(86_400),
            }
            let reply = fetch(&app, &machine, Some(&etag)).await;
            let next = opened(&app, &machine, &reply);
            assert!(next.floor() > newest, "{change}: {newest:?} {:?}", next.floor());
            assert!(next.not_after.as_ms() > app.now().as_ms() + 6 * 86_400_000);
            newest = next.floor();
            reply.header("etag").clone_into(&mut etag);
            assert_eq!(unchanged(&etag).await, (304, 0), "{change}");
        }
        let last = opened(&app, &machine, &fetch(&app, &machine, None).await);
        assert_eq!(
            (last.mode.as_str(), last.hooks.on_unknown.as_str()),
            ("enforce", "block")
        );
        let arguments = ToldContent {
            tool_arguments: ToldArguments::Full,
            ..ToldContent::LEAST
        };
        assert_eq!(last.told, arguments);
        app.kernel.stop().await;
    });
}

/// Proves DJ-7.
#[test]
fn no_device_gets_anything_to_judge_by_and_tells_nothing_where_nobody_switched_it_on() {
    each("judging_off", |app: Arc<App>| async move {
        let machine = Machine::new(&app).await;
        let entry = json!({ "kind": "dropped", "events": 1, "why": "queue_full" });
        let told = crate::areas::device_judging::report(1, provost_bundle::CHAIN_START, &[entry]);
        let tell = async || {
            let path = format!("/devices/{}/decisions", machine.id);
            let call = app.request("POST", &path).token(&machine.token);
            call.json(told.clone()).send().await
        };
        for (is_on, wanted) in [(false, 404), (true, 200), (false, 404)] {
            set(&app, if is_on { "on" } else { "off" }).await;
            assert_eq!(fetch(&app, &machine, None).await.status, wanted);
            // What was begun is told to its end.
            let may_tell = wanted == 200
                || app.get(&format!("/devices/{}/decisions", machine.id)).await.ok()["told"].is_object();
            assert_eq!(tell().await.status, if may_tell { 200 } else { 404 });
        }
    });
}

/// What a standing refused says so afterwards, in every place where it is read, and names the server; no policy is.
async fn says_why(app: &App) {
    let page = app.get("/policies/violations?tool=mcp__a__b").await.ok().clone();
    let found = page["violations"].as_array().unwrap().clone();
    let keys: Vec<&Value> = found.iter().map(|one| &one["mcpServer"]["key"]).collect();
    assert_eq!(keys, ["npm:odd", "npm:evil"], "{page}");
    for one in found {
        assert_eq!(
            (&one["basis"], &one["policyIds"]),
            (&json!("standing"), &json!([]))
        );
        let id = one["eventId"].as_str().unwrap();
        let whole = app.get(&format!("/policies/violations/{id}")).await.ok().clone();
        assert_eq!(
            (&whole["basis"], &whole["mcpServer"]),
            (&json!("standing"), &one["mcpServer"])
        );
        let event = app.get(&format!("/policies/history/{id}")).await;
        assert_eq!(event.ok()["decision"]["basis"], "standing");
    }
    provost_areas_policy::violations::count_days(&app.kernel)
        .await
        .unwrap();
    let counted = app.get("/policies/violations?groupBy=policy").await.ok()["groups"].clone();
    assert_eq!(
        (&counted[0]["rest"], &counted[0]["events"]),
        (&json!("no_policy"), &json!(2))
    );
    assert!(counted[0].get("policyId").is_none());
}

/// A key that differs from one that is denied in the case of a letter alone.
const LIKE: &str = "url:https://mcp.acme.test/Evil";

/// Proves IN-13, LJ-12, VI-7.
#[test]
fn a_denied_server_is_refused_by_the_device_and_by_the_server_alike() {
    each("judging_denied", |app: Arc<App>| async move {
        let ada = user(&app, ADA).await;
        let machine = owned(&app, &ada).await;
        let found = json!([
            server("evil", "npm:evil", false),
            server("nice", "npm:nice", false),
            server("odd", "npm:odd", true),
            server("far", "url:https://mcp.acme.test/evil", false),
            server("like", LIKE, false),
        ]);
        machine.has(&app, "ada", &found).await.ok();
        let before = fetch(&app, &machine, None).await;
        let (bundle, tag) = (opened(&app, &machine, &before), before.header("etag").to_owned());
        assert!(bundle.servers.is_empty() && !bundle.servers_withheld);
        let stand = async |key: &str, body: Value| {
            let page = app.get("/inventory/mcp-servers").await.ok().clone();
            let all = page["servers"].as_array().unwrap();
            let id = all.iter().find(|one| one["key"] == key).unwrap()["id"].clone();
            let path = format!("/inventory/mcp-servers/{}/standing", id.as_str().unwrap());
            app.write("POST", &path, body).await.ok();
        };
        let denied = ["npm:evil", "npm:odd", "url:https://mcp.acme.test/evil"];
        for key in denied {
            stand(key, json!({ "standing": "denied" })).await;
        }
        // Within one round: another name, and so another bundle.
        let after = fetch(&app, &machine, Some(&tag)).await;
        let bundle = opened(&app, &machine, &after);
        let keys: Vec<&str> = bundle.servers.iter().map(|server| server.key.as_str()).collect();
        assert_eq!(keys, denied);
        let judge = Judge::new(bundle).unwrap();
        for (attributes, missing, action) in [
            (json!({ "mcp.package_id": "npm:evil" }), json!([]), "block"),
            (json!({ "mcp.package_id": "npm:odd" }), json!([]), "block"),
            (json!({ "mcp.package_id": "npm:nice" }), json!([]), "allow"),
            (json!({ "mcp.package_id": "npm:unknown" }), json!([]), "allow"),
            (json!({}), json!(["mcp.package_id"]), "allow"),
            (
                json!({ "mcp.package_id": "npm:evil" }),
                json!(["mcp.package_id"]),
                "allow",
            ),
        ] {
            let mut attributes = attributes;
            attributes["identity.user_id"] = ADA.into();
            attributes["tool.id"] = "mcp__a__b".into();
            attributes["mcp.server_id"] = "a".into();
            let event = json!({ "occasion": "pre_tool", "attributes": attributes, "missing": missing });
            let said = judge.judge(app.now(), &AskedEvent::of(&event).unwrap()).unwrap();
            let Judgement::Verdict(verdict) = said else {
                panic!("{event}");
            };
            let asked = app
                .request("POST", "/policies/decisions")
                .json(json!({ "events": [event] }));
            let answer = asked.send().await.ok()["decisions"][0].clone();
            assert_eq!(answer["action"], action, "{event}");
            let mut device = serde_json::to_value(&verdict).unwrap();
            device["eventId"] = answer["eventId"].clone();
            assert_eq!(device, answer, "{event}");
        }
        says_why(&app).await;
        // Another spelling is refused by the server; a device does not know whether it is another server's own key, and asks.
        for key in [" NPM:evil\u{200b}", "npm:eV\u{ad}il", "npm:Evil"] {
            let attributes = json!({ "identity.user_id": ADA, "tool.id": "mcp__a__b", "mcp.server_id": "a", "mcp.package_id": key });
            let event = json!({ "occasion": "pre_tool", "attributes": attributes });
            let said = judge.judge(app.now(), &AskedEvent::of(&event).unwrap()).unwrap();
            assert!(matches!(said, Judgement::Ask(_)), "{event}");
            assert_eq!(said.verdict().action(), Action::Block, "{event}");
            let asked = app
                .request("POST", "/policies/decisions")
                .json(json!({ "events": [event] }));
            let answer = asked.send().await.ok()["decisions"][0].clone();
            assert_eq!(answer["action"], "block", "{event}");
            assert_eq!(answer["mcpServer"]["key"], "npm:evil");
        }
        // That a device has it makes it no other server; that somebody decided about it does.
        let event = json!({ "occasion": "pre_tool", "attributes": { "identity.user_id": ADA, "tool.id": "mcp__a__b", "mcp.server_id": "a",
            "mcp.package_id": LIKE } });
        let action = async || {
            let call = app.request("POST", "/policies/decisions");
            let answer = call.json(json!({ "events": [event] })).send().await;
            answer.ok()["decisions"][0]["action"].clone()
        };
        let approval = || json!({ "standing": "approved", "expiresAt": app.now().plus_secs(60) });
        stand(LIKE, approval()).await;
        assert_eq!(action().await, "allow", "approved");
        app.advance(60);
        assert_eq!(action().await, "block", "the approval ended");
        stand(LIKE, approval()).await;
        assert_eq!(action().await, "allow", "approved again");
        stand(LIKE, json!({ "standing": "shadow" })).await;
        assert_eq!(action().await, "block", "taken back");
        // What is taken back is refused by nobody any more.
        for key in denied {
            stand(key, json!({ "standing": "shadow" })).await;
        }
        let again = fetch(&app, &machine, None).await;
        assert!(opened(&app, &machine, &again).servers.is_empty());
        app.kernel.stop().await;
    });
}
