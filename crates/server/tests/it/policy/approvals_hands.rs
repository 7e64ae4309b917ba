//! By whose hands somebody can vote, where one act changes many people at once; whose requests are counted together; and what a clock that
//! was set back leaves.

use super::approvals::{Scene, request, rm, scene};
use super::approvals_people::Person;
use crate::areas::directory::{self, chunk, import};
use crate::areas::inventory::one;
use crate::support::{App, each, fresh_key, with_trio};
use provost_areas_platform::audit;
use provost_kernel::{Code, OperationContext, Timestamp, params};
use serde_json::{Value, json};
use std::sync::Arc;

const HOUR: i64 = 3_600_000;
const ISSUER: &str = "https://login.hands.example";

/// Makes an account of everything that a person owns, and returns its id and token.
async fn account_of(app: &App, owner: Option<&str>) -> (String, String) {
    let mut body = json!({ "name": fresh_key(), "permissionRole": "admin", "allOfRole": true });
    if let Some(owner) = owner {
        body["ownerConsoleUserId"] = owner.into();
    }
    let made = app.write("POST", "/service-accounts", body).await;
    let text = |pointer: &str| made.ok().pointer(pointer).unwrap().as_str().unwrap().to_owned();
    (text("/serviceAccount/id"), text("/token/token"))
}

/// Has a request for a call of somebody be asked by the holder of a token, and returns it.
async fn asks(app: &App, token: &str, subject: &str) -> String {
    let attributes = json!({ "identity.user_id": subject, "tool.id": "Bash", "tool.input": rm(&format!("/{}", fresh_key())) });
    let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": attributes }] });
    let call = app.request("POST", "/policies/decisions").token(token);
    request(&call.json(body).send().await.ok()["decisions"][0])
}

/// Imports one line about a user as the caller of `app`; says how many users it changed and how many changes it held.
async fn imports(app: &App, line: &Value) -> (i64, i64) {
    let id = import(app, json!({ "format": "jsonl", "mode": "merge" })).await;
    chunk(app, &id, 1, &line.to_string()).await.ok();
    let applied = directory::end(app, &id, "apply").await;
    let counts = &applied.ok()["import"]["counts"];
    let count = |value: &Value| value.as_i64().unwrap();
    (count(&counts["users"]["updated"]), count(&counts["held"]))
}

/// What gives somebody what they are in one act that may change many.
const ACTS: [&str; 6] = [
    "import",
    "settle",
    "allow",
    "allow all",
    "remove link",
    "add member",
];

/// Does one of these to a person, as the caller of `hers`; what has to be there before was made by `app`.
async fn act(app: &App, hers: &App, what: &str, person: &Person) {
    let user = person.id.as_str();
    match what {
        "import" => {
            let line = json!({ "type": "user", "loginName": person.login, "displayName": "Mallory" });
            assert_eq!(imports(hers, &line).await, (1, 0), "{what}");
        }
        "settle" => {
            let narrow = directory::narrow(app).await;
            let line = json!({ "type": "user", "loginName": person.login, "email": format!("{}@acme.example", fresh_key().to_lowercase()) });
            assert_eq!(imports(&narrow, &line).await.1, 1, "{what}");
            let page = app.get("/directory/held-changes").await;
            let held = page.ok()["heldChanges"].as_array().unwrap();
            let mine = held.iter().find(|one| one["userId"] == json!(user)).unwrap();
            let body = json!({ "apply": [mine["id"]] });
            hers.write("POST", "/directory/held-changes/settle", body)
                .await
                .ok();
        }
        "allow" | "allow all" => {
            let mut body = json!({ "issuer": ISSUER, "expiresInSeconds": 3_600 });
            if what == "allow" {
                body["userIds"] = json!([user]);
            } else {
                body["all"] = true.into();
            }
            hers.write("POST", "/directory/identity-links/allow", body)
                .await
                .ok();
        }
        "remove link" => {
            let subject = fresh_key();
            let link = json!({ "issuer": ISSUER, "subject": subject, "userId": user });
            app.write("POST", "/directory/identity-links", link).await.ok();
            let gone = json!({ "issuer": ISSUER, "subject": subject, "confirm": true });
            hers.write("POST", "/directory/identity-links/remove", gone)
                .await
                .ok();
        }
        _ => {
            let group = app
                .write("POST", "/directory/groups", json!({ "name": fresh_key() }))
                .await;
            let id = group.ok()["group"]["id"].as_str().unwrap().to_owned();
            hers.write(
                "PUT",
                &format!("/directory/groups/{id}/members/{user}"),
                json!({}),
            )
            .await
            .ok();
        }
    }
}

/// Proves AP-3, DI-17.
#[test]
fn whom_who_asked_reached_with_many_others_since_says_no_yes() {
    each("approvals_hands", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let alice = Person::of(&app, "alice", "admin").await;
        let (_, asker) = account_of(&app, Some(&alice.id)).await;
        let carl = Person::of(&app, "carl", "viewer").await.id;
        let (_, token) = account_of(&app, None).await;
        let hers = app.view_of(app.organization.clone(), asker.clone());
        let others = app.view_of(app.organization.clone(), token);
        for what in ACTS {
            // What was done before counts as it did.
            let before = Person::of(&app, "before", "admin").await;
            if what != "allow all" {
                act(&app, &hers, what, &before).await;
            }
            // Longer than clocks of servers differ by.
            app.advance(61);
            let id = asks(&app, &asker, &carl).await;
            app.advance(1);
            let mallory = Person::of(&app, "mallory", "admin").await;
            act(&app, &hers, what, &mallory).await;
            let reply = scene.vote(&mallory.token(&app).await, &id, "approve").await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (403, "escalation_forbidden"),
                "{what}"
            );
            assert_eq!(scene.state(&id).await.0, "pending", "{what}");
            if what == "allow all" {
                continue;
            }
            // Hands that have nothing to do with it take nothing away.
            let other = Person::of(&app, "other", "admin").await;
            act(&app, &others, what, &other).await;
            let next = asks(&app, &asker, &carl).await;
            for (id, voter) in [(&id, &before), (&next, &other)] {
                scene.vote(&voter.token(&app).await, id, "approve").await.ok();
                assert_eq!(scene.state(id).await.0, "approved", "{what}");
            }
        }
    });
}

/// Proves SA-13.
#[test]
fn nobody_is_pushed_out_from_behind_an_account_by_what_is_done_often() {
    each("approvals_pushed_out", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let yvonne = Person::of(&app, "yvonne", "admin").await;
        let (id, _) = app.account(&fresh_key(), "operator", &["policies:decide"]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let token = yvonne.token(&app).await;
        let rotate = app.request("POST", &path).token(&token);
        rotate.json(with_trio(json!({}), &fresh_key())).send().await.ok();
        let mut last = String::new();
        for _ in 0..257 {
            app.advance(1);
            let made = app.write("POST", &path, json!({})).await;
            made.ok()["token"]["token"]
                .as_str()
                .unwrap()
                .clone_into(&mut last);
        }
        let carl = Person::of(&app, "carl", "viewer").await.id;
        let asked = asks(&app, &last, &carl).await;
        scene
            .vote(&yvonne.token(&app).await, &asked, "approve")
            .await
            .refused(403, "escalation_forbidden");
    });
}

provost_kernel::statements! {
    /// Has somebody have done an act on a record as often as said, at one instant.
    ACT_OFTEN = "INSERT INTO audit_entries (organization_id, seq, time, action, actor_id, target_id, decision, entry, hash) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?6 AS BIGINT)) SELECT CAST(?1 AS TEXT), CAST(?2 AS BIGINT) + i, CAST(?3 AS BIGINT), 'rotateHeadlessServiceAccountToken', CAST(?4 AS TEXT), CAST(?5 AS TEXT), 'allowed', '{}', (SELECT h.hash FROM chain_heads h WHERE h.organization_id = ?7) FROM n";
    /// Has as many have done one each as said.
    ACT_ONCE = "INSERT INTO audit_entries (organization_id, seq, time, action, actor_id, target_id, decision, entry, hash) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?5 AS BIGINT)) SELECT CAST(?1 AS TEXT), CAST(?2 AS BIGINT) + i, CAST(?3 AS BIGINT), 'enableHeadlessServiceAccount', 'usr_' || CAST(i AS TEXT), CAST(?4 AS TEXT), 'allowed', '{}', (SELECT h.hash FROM chain_heads h WHERE h.organization_id = ?6) FROM n";
    /// Has as many hands be on a user as said.
    HANDS = "INSERT INTO directory_hands (organization_id, user_id, hand, done_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?4 AS BIGINT)) SELECT CAST(?1 AS TEXT), CAST(?2 AS TEXT), 'usr_' || CAST(i AS TEXT), CAST(?3 AS BIGINT) FROM n";
    /// The hands on a user that are known of acts on many.
    HANDS_OF = "SELECT hand FROM directory_hands WHERE organization_id = ?1 AND user_id = ?2 ORDER BY hand || ''";
}

/// An organization of which the log says nothing else.
const ELSEWHERE: &str = "elsewhere";

/// Proves SA-13, AL-5.
#[test]
fn hands_are_counted_by_hand_and_not_by_act() {
    each("hands_by_hand", |app: Arc<App>| async move {
        let write = async |statement: &'static provost_kernel::db::Statement,
                           from: i64,
                           at: i64,
                           who: &'static str,
                           target: &'static str,
                           many: i64| {
            let run = move |ctx: &mut OperationContext<'_>| {
                let (at, org) = (Timestamp::from_ms(at), ctx.org());
                let values = match who {
                    "" => params![ELSEWHERE, from, at, target, many, org].to_vec(),
                    who => params![ELSEWHERE, from, at, who, target, many, org].to_vec(),
                };
                ctx.execute(statement, &values).map(drop)
            };
            app.kernel
                .system(app.org(), Some("approvals.settled"), run)
                .await
                .unwrap();
        };
        let hands = async |target: &'static str, since: i64| {
            let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
                let since = Timestamp::from_ms(since);
                Ok(audit::hands_since(tx, ELSEWHERE, target, since).map_err(|error| error.code()))
            };
            app.kernel.read_system(read).await.unwrap()
        };
        // More than was ever looked at, by the account itself, and by somebody else.
        write(&ACT_OFTEN, 0, 1_000, "sa_own", "sa_own", 60_000).await;
        write(&ACT_OFTEN, 100_000, 1_000, "usr_often", "sa_own", 120_000).await;
        write(&ACT_OFTEN, 300_000, 2_000, "usr_once", "sa_own", 1).await;
        assert_eq!(
            hands("sa_own", 0).await,
            Ok(vec!["usr_often".into(), "usr_once".into()])
        );
        assert_eq!(hands("sa_own", 1_001).await, Ok(vec!["usr_once".into()]));
        assert_eq!(hands("sa_own", 2_001).await, Ok(vec![]));
        // As many as may be, and one more; those of before are not counted, until they are too many to look at.
        write(&ACT_ONCE, 400_000, 1_000, "", "sa_many", 256).await;
        assert_eq!(hands("sa_many", 0).await.map(|hands| hands.len()), Ok(256));
        write(&ACT_ONCE, 410_000, 1_000, "", "sa_more", 257).await;
        assert_eq!(hands("sa_more", 0).await, Err(Code::Unavailable));
        assert_eq!(hands("sa_more", 1_001).await, Ok(vec![]));
        write(&ACT_ONCE, 420_000, 1_000, "", "sa_most", 1_025).await;
        assert_eq!(hands("sa_most", 1_001).await, Err(Code::Unavailable));
    });
}

/// Proves SA-13.
#[test]
fn an_account_that_rotates_itself_pushes_nobody_out_and_stops_no_vote() {
    each("approvals_own_rotations", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let yvonne = Person::of(&app, "yvonne", "admin").await;
        let (id, mut last) = app.account(&fresh_key(), "operator", &["policies:decide"]).await;
        let path = format!("/service-accounts/{id}/tokens");
        let rotate = app.request("POST", &path).token(&yvonne.token(&app).await);
        let made = rotate.json(with_trio(json!({}), &fresh_key())).send().await;
        let mut token = |made: &crate::support::Reply| {
            made.ok()["token"]["token"]
                .as_str()
                .unwrap()
                .clone_into(&mut last);
            last.clone()
        };
        let mut own = token(&made);
        let scopes = json!({ "scopes": ["policies:decide", "service_accounts:rotate_self"] });
        app.write("PATCH", &format!("/service-accounts/{id}"), scopes)
            .await
            .ok();
        for _ in 0..260 {
            app.advance(1);
            let rotate = app.request("POST", &path).token(&own);
            own = token(&rotate.json(with_trio(json!({}), &fresh_key())).send().await);
        }
        let carl = Person::of(&app, "carl", "viewer").await.id;
        let asked = asks(&app, &own, &carl).await;
        scene
            .vote(&yvonne.token(&app).await, &asked, "approve")
            .await
            .refused(403, "escalation_forbidden");
        scene.vote(&scene.bob().await, &asked, "approve").await.ok();
        assert_eq!(scene.state(&asked).await.0, "approved");
    });
}

/// Proves AP-3, DI-17.
#[test]
fn where_nobody_can_say_whose_hands_made_a_voter_nothing_is_approved() {
    each("approvals_many_hands", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let (ann, dan) = (
            Person::of(&app, "ann", "admin").await,
            Person::of(&app, "dan", "admin").await,
        );
        let id = scene.waits(&rm("/a")).await;
        app.advance(1);
        for (person, many) in [(&ann, 257), (&dan, 256)] {
            let user = person.id.clone();
            let run = move |ctx: &mut OperationContext<'_>| {
                let (org, now) = (ctx.org(), ctx.latest());
                ctx.execute(&HANDS, params![org, user.as_str(), now, many])
                    .map(drop)
            };
            app.kernel
                .system(app.org(), Some("approvals.settled"), run)
                .await
                .unwrap();
        }
        scene
            .vote(&ann.token(&app).await, &id, "approve")
            .await
            .refused(503, "unavailable");
        assert_eq!(scene.state(&id).await.0, "pending");
        assert!(scene.ask(&rm("/a")).await["grant"].is_null());
        scene.vote(&dan.token(&app).await, &id, "approve").await.ok();
        assert_eq!(scene.state(&id).await.0, "approved");
    });
}

/// Proves AP-3, SA-13.
#[test]
fn whose_machine_is_taken_for_an_account_says_no_yes_to_its_calls() {
    each("hands_of_machines", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let mal = Person::of(&app, "mal", "admin").await;
        let machine = crate::areas::fleet::Machine::new(&app).await;
        let path = format!("/devices/{}", machine.id);
        let owner = json!({ "ownerUserId": mal.id });
        app.write("PATCH", &path, owner).await.ok();
        let identity = json!({ "serviceAccountId": scene.ada, "source": "a-test" });
        app.write("PUT", &format!("{path}/gateway-identity"), identity)
            .await
            .ok();
        app.advance(1);
        // The call names no machine.
        let id = scene.waits(&rm("/a")).await;
        let token = mal.token(&app).await;
        scene
            .vote(&token, &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        assert_eq!(scene.state(&id).await.0, "pending");
        scene.vote(&scene.bob().await, &id, "approve").await.ok();
        assert_eq!(scene.state(&id).await.0, "approved");
    });
}

/// An import that comes every hour is as many hands as people and accounts bring it.
///
/// Proves DI-17.
#[test]
fn an_import_that_comes_again_by_the_same_hand_is_one_hand() {
    each("hands_of_imports", |app: Arc<App>| async move {
        let person = Person::of(&app, "ann", "admin").await;
        let view = async |token: String| app.view_of(app.organization.clone(), token);
        let (first, token) = account_of(&app, None).await;
        let (first, one) = (first, view(token).await);
        let (second, token) = account_of(&app, None).await;
        let (second, other) = (second, view(token).await);
        let hands = async || {
            let (org, user) = (app.organization.clone(), person.id.clone());
            let read = move |tx: &mut provost_kernel::db::Tx<'_>| {
                tx.query(&HANDS_OF, params![org.as_str(), user.as_str()], |row| {
                    row.get::<String>(0)
                })
            };
            app.kernel.read_system(read).await.unwrap()
        };
        for round in 0..3 {
            let line =
                json!({ "type": "user", "loginName": person.login, "displayName": format!("Ann {round}") });
            assert_eq!(imports(&one, &line).await, (1, 0));
            app.advance(60);
        }
        assert_eq!(hands().await, std::slice::from_ref(&first));
        // Who sends a part of it has a hand in it, whoever applies it.
        let id = import(&one, json!({ "format": "jsonl", "mode": "merge" })).await;
        let line = json!({ "type": "user", "loginName": person.login, "displayName": "Ann" });
        chunk(&other, &id, 1, &line.to_string()).await.ok();
        directory::end(&one, &id, "apply").await.ok();
        let mut both = vec![first, second];
        both.sort_unstable();
        assert_eq!(hands().await, both);
    });
}

/// The index has the acts that are asked for, and these are acts that there are: one that was renamed would be nobody's.
#[test]
fn the_acts_by_which_somebody_has_a_hand_are_acts_and_stand_in_the_index() {
    let areas = crate::areas_beside::every_area();
    let registry = areas.registry();
    let index = areas
        .migrations()
        .iter()
        .find(|one| one.sqlite.contains("audit_entries_by_hand"))
        .unwrap();
    for text in [index.sqlite, index.postgres] {
        assert!(text.contains(&format!("action IN ({})", audit::ACTS)), "{text}");
    }
    for act in audit::ACTS.split(", ") {
        let act = act.trim_matches('\'');
        let is_own = areas
            .iter()
            .filter_map(|area| area.fences)
            .any(|fences| fences.own_acts.contains(&act));
        assert!(is_own || registry.find(act).is_some(), "{act}");
    }
}

/// Returns how many of these calls have a request, and how many are refused because there are too many.
async fn opened(scene: &Scene, token: &str, subject: &str, calls: std::ops::Range<usize>) -> (usize, usize) {
    let event = |n: usize| {
        let mut event = scene.event(&rm(&format!("/{n}")));
        event["attributes"]["identity.service_account_id"] = subject.into();
        event
    };
    let events: Vec<Value> = calls.map(event).collect();
    let call = scene.app.request("POST", "/policies/decisions").token(token);
    let reply = call.json(json!({ "events": events })).send().await;
    let decisions = reply.ok()["decisions"].as_array().unwrap();
    let of = |is: &dyn Fn(&Value) -> bool| decisions.iter().filter(|one| is(&one["approval"])).count();
    (
        of(&|approval| approval["requestId"].is_string()),
        of(&|approval| approval["refused"] == "too_many_open"),
    )
}

/// Proves AP-8.
#[test]
fn whatever_one_person_owns_has_one_share_of_the_queue() {
    each("approvals_owners_share", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let alice = Person::of(&app, "alice", "admin").await;
        let (_, first) = account_of(&app, Some(&alice.id)).await;
        let (_, second) = account_of(&app, Some(&alice.id)).await;
        let (_, nobodys) = account_of(&app, None).await;
        let mut subjects = Vec::new();
        for n in 0..10 {
            subjects.push(
                app.account(&format!("subject {n}"), "viewer", &["policies:read"])
                    .await
                    .0,
            );
        }
        assert_eq!(opened(&scene, &first, &subjects[0], 0..20).await, (20, 0));
        // The same subject by another agent of hers, and by herself.
        let herself = alice.token(&app).await;
        for hers in [&second, &herself] {
            assert_eq!(opened(&scene, hers, &subjects[0], 20..22).await, (0, 2));
        }
        assert_eq!(opened(&scene, &nobodys, &subjects[0], 20..22).await, (2, 0));
        for (n, subject) in subjects.iter().enumerate().skip(1) {
            let hers = if n % 2 == 0 { &first } else { &second };
            assert_eq!(opened(&scene, hers, subject, 0..20).await, (20, 0), "{n}");
        }
        for hers in [&first, &second, &herself] {
            assert_eq!(opened(&scene, hers, &scene.ada, 0..1).await, (0, 1));
        }
        assert_eq!(opened(&scene, &nobodys, &scene.ada, 0..1).await, (1, 0));
    });
}

/// Proves AP-8.
#[test]
fn by_hand_whatever_one_person_owns_has_a_hundred_requests_waiting() {
    each("approvals_owners_hand", |app: Arc<App>| async move {
        let server = one(&app).await;
        let ann = Person::of(&app, "ann", "viewer").await;
        let mut agents = Vec::new();
        for name in ["one", "other"] {
            let scopes = ["mcp_approvals:request", "inventory:read"];
            let (id, token) = app.account(name, "viewer", &scopes).await;
            let owner = json!({ "ownerConsoleUserId": ann.id });
            app.write("PATCH", &format!("/service-accounts/{id}"), owner)
                .await
                .ok();
            agents.push(token);
        }
        let ask = async |token: &str, more: usize| {
            let mut body = crate::areas::approvals::wish(&server);
            body["expiresInSeconds"] = (3_600 + more).into();
            let call = app.request("POST", "/approvals").token(token);
            call.json(with_trio(body, &fresh_key())).send().await
        };
        for more in 0..100 {
            ask(&agents[more % 2], more).await.ok();
        }
        ask(&agents[0], 100).await.refused(429, "rate_limited");
        ask(&ann.token(&app).await, 100)
            .await
            .refused(429, "rate_limited");
    });
}

pub async fn sweep(app: &App) {
    for area in app.kernel.areas().iter().filter(|area| area.name == "approvals") {
        for timer in area.timers {
            (timer.run)(app.kernel.clone(), false).await.unwrap();
        }
    }
}

/// Proves AP-5, AP-12.
#[test]
fn a_clock_that_was_set_back_neither_lengthens_nor_revives_anything() {
    each("approvals_set_back", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let server = one(&app).await;
        let (waits, approved) = (scene.waits(&rm("/a")).await, scene.approved(&rm("/b")).await);
        let kept = scene.approved(&rm("/c")).await;
        app.advance(600);
        app.kernel.keep_time().await.unwrap();
        // A minute is within what clocks of servers differ by.
        app.clock.step_ms(-HOUR / 60);
        assert_eq!(scene.ask(&rm("/c")).await["grant"]["requestId"], json!(kept));
        app.clock.step_ms(-HOUR / 2);
        for path in ["/a", "/b", "/new"] {
            let decision = scene.ask(&rm(path)).await;
            assert_eq!(decision["action"], "require_approval", "{path}");
            assert_eq!(
                decision["approval"]["refused"], "clock_set_back",
                "{path}: {decision}"
            );
        }
        // Sessions of people do not hold then either; of the others it is said before who they are.
        scene
            .vote(&app.admin, &waits, "approve")
            .await
            .refused(503, "unavailable");
        let wish = with_trio(crate::areas::approvals::wish(&server), &fresh_key());
        app.request("POST", "/approvals")
            .token(&app.admin)
            .json(wish)
            .send()
            .await
            .refused(503, "unavailable");
        assert_eq!(scene.state(&waits).await.0, "pending");
        sweep(&app).await;
        for id in [&waits, &approved] {
            assert_eq!(scene.state(id).await, ("void".into(), json!("clock_set_back")));
        }
        // Once the clock has come there again, everything goes on, and nothing of before.
        app.advance(31 * 60);
        let again = scene.waits(&rm("/b")).await;
        assert_ne!(again, approved);
        scene.vote(&scene.bob().await, &again, "approve").await.ok();
        assert_eq!(scene.ask(&rm("/b")).await["grant"]["requestId"], json!(again));
    });
}

/// Proves AP-12.
#[test]
fn a_clock_that_is_set_back_by_less_again_and_again_was_set_back() {
    each("approvals_set_back_often", |app: Arc<App>| async move {
        let scene = scene(&app).await;
        let approved = scene.approved(&rm("/a")).await;
        app.kernel.undoubted().await.unwrap();
        app.kernel.keep_time().await.unwrap();
        app.clock.step_ms(-59_000);
        let other = scene.waits(&rm("/b")).await;
        app.advance(59);
        app.clock.step_ms(-59_000);
        assert_eq!(
            scene.ask(&rm("/a")).await["approval"]["refused"],
            "clock_set_back"
        );
        sweep(&app).await;
        for id in [&approved, &other] {
            assert_eq!(scene.state(id).await, ("void".into(), json!("clock_set_back")));
        }
        app.advance(120);
        assert_ne!(scene.waits(&rm("/a")).await, approved);
    });
}

/// The one tool that would let a model say yes in the place of the person whose session it has.
#[test]
fn no_tool_of_mcp_votes() {
    use provost_kernel::expose::mcp::is_offered;
    each("approvals_no_tool", |app: Arc<App>| async move {
        let meta = |id: &str| app.kernel.registry.find(id).unwrap().meta;
        for id in ["decideHeadlessApproval", "createHeadlessApprovalDelegation"] {
            assert!(!is_offered(meta(id)), "{id}");
        }
        for id in [
            "getHeadlessApproval",
            "createHeadlessApproval",
            "cancelHeadlessApproval",
        ] {
            assert!(is_offered(meta(id)), "{id}");
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "decideHeadlessApproval", "arguments": {} } });
        let request = http::Request::post("/mcp?toolsets=all")
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {}", app.admin))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        let request = request.body(axum::body::Body::from(body.to_string())).unwrap();
        let reply = crate::access::oauth::answer(&app, request).await;
        let text = reply.text();
        assert!(
            text.contains("\"error\"") && !text.contains("\"result\""),
            "{text}"
        );
    });
}
