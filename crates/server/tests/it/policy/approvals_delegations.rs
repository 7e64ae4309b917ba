//! Delegations: who votes in whose name, for how long, and who cannot be lent anything.

use super::approvals::{Scene, rm, scene};
use super::approvals_hands::sweep;
use super::approvals_people::Person;
use crate::areas::approvals::wish;
use crate::areas::inventory::one;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::{OperationContext, params};
use serde_json::{Value, json};
use std::sync::Arc;

const DAY: i64 = 86_400;

/// A scene in which a route names two people, whom a third one may vote for.
struct Lending {
    scene: Scene,
    ann: Person,
    cay: Person,
    dan: Person,
}

/// Returns a scene whose calls ann and cay alone decide about, so many of them.
async fn lending(app: &Arc<App>, quorum: i64) -> Lending {
    let scene = scene(app).await;
    let (ann, cay) = (
        Person::of(app, "ann", "admin").await,
        Person::of(app, "cay", "admin").await,
    );
    let dan = Person::of(app, "dan", "admin").await;
    let route = json!({ "name": "named", "approvers": { "users": [ann.id, cay.id] }, "quorum": quorum,
        "deadlineSeconds": 2_592_000, "onDeadline": "expire" });
    let body = json!({ "routes": [route], "expectedRevision": 0 });
    app.write("PUT", "/approval-routes", body).await.ok();
    Lending { scene, ann, cay, dan }
}

impl Lending {
    fn app(&self) -> &App {
        &self.scene.app
    }

    async fn says(&self, by: &Person, of: Option<&Person>, id: &str, word: &str) -> Reply {
        let digest = self.scene.shown(id).await["preview"]["bindingDigest"].clone();
        let mut body = json!({ "decision": word, "bindingDigest": digest });
        if let Some(of) = of {
            body["inNameOf"] = of.id.clone().into();
        }
        let token = by.token(self.app()).await;
        self.scene.act(&token, id, "decision", body).await
    }

    /// Has dan vote for somebody for a day, and returns the id of the delegation.
    async fn lent_by(&self, of: &Person) -> String {
        lent(self.app(), of, &self.dan).await
    }

    /// Has dan approve a call in the name of ann, and returns its request and the delegation.
    async fn approved(&self, path: &str) -> (String, String) {
        let delegation = self.lent_by(&self.ann).await;
        let id = self.scene.waits(&rm(path)).await;
        self.says(&self.dan, Some(&self.ann), &id, "approve").await.ok();
        assert_eq!(self.scene.state(&id).await.0, "approved");
        (id, delegation)
    }

    /// Says that what was approved lets nothing pass any more.
    async fn lapsed(&self, path: &str, id: &str) {
        assert_ne!(self.scene.waits(&rm(path)).await, id);
        assert_eq!(self.scene.state(id).await, ("void".into(), json!("voter_ended")));
    }
}

fn until(app: &App, secs: i64) -> String {
    app.now().plus_secs(secs).to_rfc3339()
}

async fn lend_as(app: &App, token: &str, body: Value) -> Reply {
    let call = app.request("POST", "/approval-delegations").token(token);
    call.json(with_trio(body, &fresh_key())).send().await
}

fn for_a_day(app: &App, to: &Person) -> Value {
    json!({ "toUserId": to.id, "kinds": ["tool_call"], "until": until(app, DAY) })
}

async fn lent(app: &App, of: &Person, to: &Person) -> String {
    let reply = lend_as(app, &of.token(app).await, for_a_day(app, to)).await;
    assert_eq!(reply.status.as_u16(), 201, "{}", reply.text());
    reply.json["delegation"]["id"].as_str().unwrap().to_owned()
}

async fn ended_as(app: &App, token: &str, id: &str) -> Reply {
    let call = app.request("DELETE", &format!("/approval-delegations/{id}"));
    let call = call.token(token).header("x-reason", "back");
    call.header("idempotency-key", &fresh_key()).send().await
}

async fn delegation(app: &App, id: &str) -> Value {
    let list = app.get("/approval-delegations?limit=100").await;
    let mut found = list.ok()["delegations"].as_array().unwrap().iter();
    found.find(|one| one["id"] == *id).unwrap().clone()
}

async fn assigned(app: &App, to: &Person) -> Vec<String> {
    let call = app.request("GET", "/approvals?assignedTo=me");
    let reply = call.token(&to.token(app).await).send().await;
    let found = reply.ok()["approvals"].as_array().unwrap().iter();
    found.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// Proves AP-19.
#[test]
fn who_was_lent_a_vote_says_it_in_the_name_of_whom_the_route_names() {
    each("delegations_vote", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let (ann, cay, dan) = (&of.ann, &of.cay, &of.dan);
        let id = of.scene.waits(&rm("/a")).await;
        assert_eq!(assigned(&app, dan).await, Vec::<String>::new());
        of.says(dan, Some(ann), &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        let delegation_id = of.lent_by(ann).await;
        assert_eq!(
            (assigned(&app, dan).await, assigned(&app, ann).await),
            (vec![id.clone()], vec![id.clone()])
        );
        // The own name is no better than before, nor is one that nobody lent.
        for name in [None, Some(cay)] {
            of.says(dan, name, &id, "approve")
                .await
                .refused(403, "escalation_forbidden");
        }
        of.says(dan, Some(ann), &id, "abstain")
            .await
            .refused(422, "invalid_definition");
        assert_eq!(of.scene.shown(&id).await["votes"], json!([]));
        of.says(dan, Some(ann), &id, "approve").await.ok();
        let shown = of.scene.shown(&id).await;
        assert_eq!(shown["state"], "approved");
        assert_eq!(
            (&shown["votes"][0]["by"]["id"], &shown["votes"][0]["inNameOf"]),
            (
                &json!(dan.id),
                &json!({ "userId": ann.id, "delegationId": delegation_id })
            )
        );
        assert_eq!(of.scene.ask(&rm("/a")).await["grant"]["requestId"], json!(id));
        let entries = app.entries(app.org().as_str(), 0).await;
        let voted = entries.iter().rfind(|entry| {
            entry["action"] == "decideHeadlessApproval" && entry["actor"]["id"] == json!(dan.id)
        });
        assert!(voted.unwrap().to_string().contains("/inNameOf"), "{voted:?}");
        let told: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        assert!(
            told.iter().any(|kind| kind == "approval.delegation_created"),
            "{told:?}"
        );
        assert_eq!(delegation(&app, &delegation_id).await["state"], "active");
    });
}

/// Proves AP-19.
#[test]
fn one_person_fills_no_quorum_of_two_and_one_place_is_one() {
    each("delegations_quorum", |app: Arc<App>| async move {
        let of = lending(&app, 2).await;
        let (ann, cay, dan) = (&of.ann, &of.cay, &of.dan);
        of.lent_by(ann).await;
        of.lent_by(cay).await;
        let id = of.scene.waits(&rm("/a")).await;
        for name in [ann, cay, ann] {
            of.says(dan, Some(name), &id, "approve").await.ok();
        }
        let shown = of.scene.shown(&id).await;
        assert_eq!(
            (&shown["state"], shown["votes"].as_array().unwrap().len()),
            (&json!("pending"), 1)
        );
        // Whose vote was said, and who says it as well, is one place.
        of.says(ann, None, &id, "approve").await.ok();
        assert_eq!(of.scene.state(&id).await.0, "pending");
        of.says(dan, Some(cay), &id, "approve").await.ok();
        assert_eq!(of.scene.state(&id).await.0, "approved");
        // Two to whom one place is lent are one as well.
        let eve = Person::of(&app, "eve", "admin").await;
        lent(&app, ann, &eve).await;
        app.advance(120);
        let id = of.scene.waits(&rm("/b")).await;
        for by in [dan, &eve] {
            of.says(by, Some(ann), &id, "approve").await.ok();
        }
        assert_eq!(of.scene.state(&id).await.0, "pending");
        of.says(cay, None, &id, "approve").await.ok();
        assert_eq!(of.scene.state(&id).await.0, "approved");
    });
}

/// Proves AP-3, AP-19.
#[test]
fn what_holds_no_more_counts_neither_at_the_last_vote_nor_when_it_is_used() {
    each("delegations_end", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let (ann, dan) = (&of.ann, &of.dan);
        // Taken back, by who lent it.
        let (id, lent) = of.approved("/a").await;
        ended_as(&app, &ann.token(&app).await, &lent).await;
        of.lapsed("/a", &id).await;
        let shown = delegation(&app, &lent).await;
        assert_eq!(
            (&shown["state"], &shown["endReason"]),
            (&json!("ended"), &json!("taken_back"))
        );
        // Another one of the same two is another one: the vote was said by the first.
        let (id, lent) = of.approved("/b").await;
        ended_as(&app, &dan.token(&app).await, &lent).await;
        of.lent_by(ann).await;
        of.lapsed("/b", &id).await;
        // Who lent it may not decide any more; nor who says it.
        for person in [ann, dan] {
            let (id, lent) = of.approved("/c").await;
            let path = format!("/directory/users/{}", person.id);
            let role = |role: &str| json!({ "permissionRole": role });
            app.write("PATCH", &path, role("operator")).await.ok();
            of.lapsed("/c", &id).await;
            app.write("PATCH", &path, role("admin")).await.ok();
            app.advance(120);
            ended_as(&app, &app.admin, &lent).await;
        }
        // Who lent it was suspended, which ends it for good.
        let (id, lent) = of.approved("/d").await;
        let path = format!("/directory/users/{}", ann.id);
        app.write("POST", &format!("{path}/suspend"), json!({}))
            .await
            .ok();
        of.lapsed("/d", &id).await;
        app.write("POST", &format!("{path}/reactivate"), json!({}))
            .await
            .ok();
        let shown = delegation(&app, &lent).await;
        assert_eq!(
            (&shown["state"], &shown["endReason"]),
            (&json!("ended"), &json!("person_ended"))
        );
        let told: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        assert!(
            told.iter().any(|kind| kind == "approval.delegation_ended"),
            "{told:?}"
        );
    });
}

/// Proves AP-19.
#[test]
fn a_vote_that_was_lent_no_more_is_none_when_the_last_one_comes() {
    each("delegations_last_vote", |app: Arc<App>| async move {
        let of = lending(&app, 2).await;
        let lent = of.lent_by(&of.ann).await;
        let id = of.scene.waits(&rm("/a")).await;
        of.says(&of.dan, Some(&of.ann), &id, "approve").await.ok();
        ended_as(&app, &of.ann.token(&app).await, &lent).await;
        of.says(&of.cay, None, &id, "approve").await.ok();
        assert_eq!(of.scene.state(&id).await.0, "pending");
        of.says(&of.dan, Some(&of.ann), &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        of.says(&of.ann, None, &id, "approve").await.ok();
        assert_eq!(of.scene.state(&id).await.0, "approved");
    });
}

/// Proves AP-12, AP-19.
#[test]
fn a_delegation_lends_in_its_time_alone_whatever_the_clock_does() {
    each("delegations_time", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let (ann, dan) = (&of.ann, &of.dan);
        let token = ann.token(&app).await;
        let body = json!({ "toUserId": dan.id, "kinds": ["tool_call"], "from": until(&app, 600), "until": until(&app, 1_200) });
        let made = lend_as(&app, &token, body).await;
        assert_eq!(made.json["delegation"]["state"], "scheduled", "{}", made.text());
        let lent = made.json["delegation"]["id"].as_str().unwrap().to_owned();
        let id = of.scene.waits(&rm("/a")).await;
        let refused = async |why: &str| {
            let reply = of.says(dan, Some(ann), &id, "approve").await;
            assert_eq!(reply.code(), "escalation_forbidden", "{why}: {}", reply.text());
        };
        refused("before").await;
        app.advance(600);
        let used = of.scene.waits(&rm("/b")).await;
        of.says(dan, Some(ann), &used, "approve").await.ok();
        app.advance(600);
        refused("after").await;
        of.lapsed("/b", &used).await;
        sweep(&app).await;
        let shown = delegation(&app, &lent).await;
        assert_eq!(
            (&shown["state"], &shown["endReason"]),
            (&json!("ended"), &Value::Null)
        );
        // A clock that was set back ends what is lent within a minute, and it stays ended once the clock has come there again.
        let lent = of.lent_by(ann).await;
        app.advance(600);
        app.kernel.keep_time().await.unwrap();
        app.clock.step_ms(-1_800_000);
        sweep(&app).await;
        app.advance(31 * 60);
        let shown = delegation(&app, &lent).await;
        assert_eq!(
            (&shown["state"], &shown["endReason"]),
            (&json!("ended"), &json!("clock_set_back"))
        );
    });
}

/// Proves AP-3, AP-19.
#[test]
fn neither_of_the_two_stands_behind_the_call() {
    each("delegations_behind", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let (ann, cay, dan) = (&of.ann, &of.cay, &of.dan);
        of.lent_by(ann).await;
        of.lent_by(cay).await;
        let owner = async |person: &Person| {
            let body = json!({ "ownerConsoleUserId": person.id });
            let path = format!("/service-accounts/{}", of.scene.hook_id);
            app.write("PATCH", &path, body).await.ok();
        };
        // Whose vote it is owns the account that asked; who says it does; one of the two was let in by it since.
        owner(ann).await;
        let id = of.scene.waits(&rm("/a")).await;
        of.says(dan, Some(ann), &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        of.says(dan, Some(cay), &id, "approve").await.ok();
        assert_eq!(of.scene.state(&id).await.0, "approved");
        owner(dan).await;
        let id = of.scene.waits(&rm("/b")).await;
        of.says(dan, Some(cay), &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        // Who came to stand behind it when it is used lets nothing pass.
        let eve = Person::of(&app, "eve", "admin").await;
        lent(&app, cay, &eve).await;
        app.advance(120);
        let id = of.scene.waits(&rm("/c")).await;
        of.says(&eve, Some(cay), &id, "approve").await.ok();
        owner(cay).await;
        assert_ne!(of.scene.waits(&rm("/c")).await, id);
        assert_eq!(of.scene.state(&id).await, ("void".into(), json!("voter_behind")));
    });
}

/// Proves AP-3, AP-19.
#[test]
fn nobody_votes_in_the_name_of_whom_who_asked_gave_a_role_since() {
    each("delegations_hands", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let (_, asker) = app.account(&fresh_key(), "admin", &[]).await;
        of.lent_by(&of.ann).await;
        app.advance(120);
        let attributes =
            json!({ "identity.service_account_id": of.scene.ada, "tool.id": "Bash", "tool.input": rm("/d") });
        let body = json!({ "events": [{ "occasion": "pre_tool", "attributes": attributes }] });
        let call = app.request("POST", "/policies/decisions").token(&asker);
        let id = super::approvals::request(&call.json(body).send().await.ok()["decisions"][0]);
        app.advance(1);
        for role in ["operator", "admin"] {
            let call = app.request("PATCH", &format!("/directory/users/{}", of.ann.id));
            let body = with_trio(json!({ "permissionRole": role, "confirm": true }), &fresh_key());
            call.token(&asker).json(body).send().await.ok();
        }
        of.says(&of.dan, Some(&of.ann), &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
    });
}

provost_kernel::statements! {
    /// As if two had lent at once, each before the other was there.
    LEND = "INSERT INTO approval_delegations (organization_id, id, from_user_id, to_user_id, kinds, starts_at, until_at, created_at) VALUES (?1, 'dlg_01kaf9q2m4x7t8v3c5d6e0g1h2', ?2, ?3, '[\"tool_call\"]', ?4, ?5, ?4)";
}

/// Proves AP-19.
#[test]
fn what_is_lent_is_not_lent_on() {
    each("delegations_chain", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let (ann, cay, dan) = (&of.ann, &of.cay, &of.dan);
        let lent_to_dan = of.lent_by(ann).await;
        let eve = Person::of(&app, "eve", "admin").await;
        // Who votes for others lends nothing on, and whom somebody votes for is lent nothing, at one time and about one kind.
        for (from, to) in [(dan, &eve), (dan, ann), (cay, ann)] {
            let reply = lend_as(&app, &from.token(&app).await, for_a_day(&app, to)).await;
            reply.refused(409, "conflict");
            assert_eq!(reply.json["delegationId"], json!(lent_to_dan), "{}", reply.text());
        }
        let mut other = for_a_day(&app, &eve);
        other["kinds"] = json!(["mcp_server"]);
        lend_as(&app, &dan.token(&app).await, other).await.ok();
        let mut later = for_a_day(&app, &eve);
        (later["from"], later["until"]) = (until(&app, DAY).into(), until(&app, 2 * DAY).into());
        lend_as(&app, &dan.token(&app).await, later).await.ok();
        // Where it came to be a chain all the same, the vote does not count.
        let id = of.scene.waits(&rm("/a")).await;
        let (to, from, now) = (ann.id.clone(), cay.id.clone(), app.now());
        let run = move |ctx: &mut OperationContext<'_>| {
            let (org, until) = (ctx.org(), now.plus_secs(DAY));
            let values = params![org, from.as_str(), to.as_str(), now, until];
            ctx.execute(&LEND, values).map(drop)
        };
        let done = app.kernel.system(app.org(), Some("approvals.settled"), run);
        done.await.unwrap();
        of.says(dan, Some(ann), &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        // Nor does one that was said before it came to be one.
        ended_as(&app, &app.admin, "dlg_01kaf9q2m4x7t8v3c5d6e0g1h2").await;
        of.says(dan, Some(ann), &id, "approve").await.ok();
        assert_eq!(of.scene.state(&id).await.0, "approved");
    });
}

/// Proves AP-19.
#[test]
fn a_delegation_that_would_not_do_what_it_says_is_refused_by_name() {
    each("delegations_refused", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let (ann, dan) = (&of.ann, &of.dan);
        let vera = Person::of(&app, "vera", "operator").await;
        let gone = Person::of(&app, "gone", "admin").await;
        let path = format!("/directory/users/{}/suspend", gone.id);
        app.write("POST", &path, json!({})).await.ok();
        let token = ann.token(&app).await;
        let nobody = "usr_01kaf9q2m4x7t8v3c5d6e0g1h2";
        for (change, place) in [
            (json!({ "toUserId": ann.id }), "/toUserId"),
            (json!({ "toUserId": vera.id }), "/toUserId"),
            (json!({ "toUserId": gone.id }), "/toUserId"),
            (json!({ "toUserId": nobody }), "/toUserId"),
            (json!({ "toUserId": of.scene.hook_id }), "/toUserId"),
            (json!({ "kinds": [] }), "/kinds"),
            (json!({ "kinds": ["tool_call", "operation"] }), "/kinds/1"),
            (json!({ "from": until(&app, -61) }), "/from"),
            (
                json!({ "from": until(&app, 91 * DAY), "until": until(&app, 92 * DAY) }),
                "/from",
            ),
            (json!({ "until": until(&app, 0) }), "/until"),
            (json!({ "until": until(&app, 30 * DAY + 1) }), "/until"),
        ] {
            let mut body = for_a_day(&app, dan);
            body.as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            let reply = lend_as(&app, &token, body).await;
            reply.refused(422, "invalid_definition");
            assert!(reply.text().contains(place), "{place}: {}", reply.text());
        }
        // Nobody can say who has the token of an account; who may not decide has nothing to lend.
        let reply = lend_as(&app, &app.admin, for_a_day(&app, dan)).await;
        reply.refused(403, "escalation_forbidden");
        let token = vera.token_for(&app, &["mcp_approvals:read"]).await;
        let reply = lend_as(&app, &token, for_a_day(&app, dan)).await;
        assert_eq!(reply.status.as_u16(), 403, "{}", reply.text());
        assert_eq!(
            app.get("/approval-delegations").await.ok()["delegations"],
            json!([])
        );
        // What somebody else lent is nobody's to end who may not end each.
        let lent = of.lent_by(ann).await;
        let token = of.cay.token_for(&app, &["mcp_approvals:decide"]).await;
        ended_as(&app, &token, &lent).await.refused(404, "not_found");
        assert_eq!(delegation(&app, &lent).await["state"], "active");
        // Twice is once.
        for _ in 0..2 {
            let reply = ended_as(&app, &app.admin, &lent).await;
            assert_eq!(reply.status.as_u16(), 204, "{}", reply.text());
        }
        // So many of one person are open, and no more.
        let token = ann.token(&app).await;
        for _ in 0..20 {
            of.lent_by(ann).await;
        }
        lend_as(&app, &token, for_a_day(&app, dan))
            .await
            .refused(409, "conflict");
    });
}

/// Proves AP-11, AP-19.
#[test]
fn a_delegation_is_about_its_kinds_and_what_a_vote_does_its_voter_may_do() {
    each("delegations_kinds", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let (ann, dan) = (&of.ann, &of.dan);
        of.lent_by(ann).await;
        let vic = Person::of(&app, "vic", "viewer").await;
        let call = app.request("POST", "/approvals").token(&vic.token(&app).await);
        let body = with_trio(wish(&one(&app).await), &fresh_key());
        let asked = call.json(body).send().await;
        let id = asked.ok()["approval"]["id"].as_str().unwrap().to_owned();
        of.says(dan, Some(ann), &id, "approve")
            .await
            .refused(403, "escalation_forbidden");
        let body = json!({ "toUserId": dan.id, "kinds": ["mcp_server"], "until": until(&app, DAY) });
        lend_as(&app, &ann.token(&app).await, body).await.ok();
        let digest = of.scene.shown(&id).await["preview"]["bindingDigest"].clone();
        let body = json!({ "decision": "approve", "bindingDigest": digest, "inNameOf": ann.id });
        let token = dan.token_for(&app, &["mcp_approvals:decide"]).await;
        let reply = of.scene.act(&token, &id, "decision", body).await;
        reply.refused(403, "insufficient_scope");
        assert_eq!(of.scene.state(&id).await.0, "pending");
        of.says(dan, Some(ann), &id, "approve").await.ok();
        assert_eq!(of.scene.state(&id).await.0, "used");
    });
}

#[test]
fn a_restore_ends_what_is_lent() {
    each("delegations_restored", |app: Arc<App>| async move {
        let of = lending(&app, 1).await;
        let lent = of.lent_by(&of.ann).await;
        let end = |ctx: &mut OperationContext<'_>| {
            let areas = ctx.services().areas().iter();
            let mut areas = areas.filter(|area| area.name == "approvals");
            areas.try_for_each(|area| area.restore.map_or(Ok(()), |end| end(ctx, "restored")))
        };
        let done = app.kernel.system(app.org(), Some("approvals.expired"), end);
        done.await.unwrap();
        let shown = delegation(&app, &lent).await;
        assert_eq!(
            (&shown["state"], &shown["endReason"]),
            (&json!("ended"), &json!("restored"))
        );
    });
}
