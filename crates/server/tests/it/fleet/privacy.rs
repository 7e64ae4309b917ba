//! What of people and of their machines others see, where the settings hide it (F5, ADR 0120).

use super::inventory::{in_days, of_key};
use super::inventory_uses::{ask, count};
use super::lives;
use crate::access::oauth::{token, trusting, user, workshop};
use crate::areas::device_judging;
use crate::areas::fleet::{Machine, TOKENS, beat, laptop, let_people_enrol, new_key, send};
use crate::areas::inventory::{SERVERS, report, section, server};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_areas_fleet::inventory::forget_hidden_names;
use provost_bundle::CHAIN_START;
use provost_kernel::operation::Method;
use provost_kernel::{params, statements};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const DAY: u64 = 86_400;
const ANN: &str = "ann@acme.example";
const BOB: &str = "bob@acme.example";
const ALL: &str = "fleet:enrol_self fleet:enrol fleet:write fleet:read inventory:read inventory:write directory:read llm_gateway:read";
/// What stands in the store of Ann, beside her id.
const SHOWN: [&str; 4] = [
    "ann-host-canary",
    "ann-own-token-canary",
    "ann-token-canary",
    "ann-account-canary",
];
/// What the directory knows of her.
const KNOWN: [&str; 2] = [ANN, "Ann Canary"];

async fn set(app: &App, privacy: Value, confirm: bool) -> Reply {
    let mut body = json!({ "fleet": { "privacy": privacy } });
    if confirm {
        body["confirm"] = true.into();
    }
    app.write("PATCH", "/automation/settings", body).await
}

async fn hide(app: &App) {
    let hidden = json!({ "people": "pseudonymous", "hostNames": "hide" });
    set(app, hidden, false).await.ok();
}

async fn post(app: &App, by: &str, path: &str, body: Value) -> Value {
    let call = app.request("POST", path).token(by);
    call.json(with_trio(body, &fresh_key())).send().await.ok().clone()
}

async fn get(app: &App, by: &str, path: &str) -> Reply {
    app.request("GET", path).token(by).send().await
}

/// Enrols a machine by an enrolment token.
async fn enrolled(app: &App, secret: &str, name: &str) -> Machine {
    let key = new_key();
    let reply = send(app, &key, secret, "/devices/enrol", laptop(name)).await;
    assert_eq!(
        reply.ok()["device"]["name"],
        name,
        "a machine sees what it is called"
    );
    Machine::of(app, key, &reply)
}

/// Has a machine tell that something of Ann passed.
async fn tell(app: &App, machine: &Machine) {
    let passed = json!({ "kind": "count", "user": ANN, "client": "codex", "tool": "Read", "minute": app.now().to_rfc3339(), "count": 3 });
    let told = device_judging::report(1, CHAIN_START, &[passed]);
    let path = format!("/devices/{}/decisions", machine.id);
    send(app, &machine.key, &machine.token, &path, told).await.ok();
}

/// Ann, her machine, and what she did.
struct World {
    ann: String,
    session: String,
    machine: Machine,
    ids: Vec<(&'static str, String)>,
}

async fn world(app: &Arc<App>) -> (Arc<App>, World) {
    let workshop = workshop(app);
    let app = trusting(app, &workshop);
    let_people_enrol(&app).await;
    let ann = user(&app, ANN, Some("admin")).await;
    let path = format!("/directory/users/{ann}");
    app.write("PATCH", &path, json!({ "displayName": KNOWN[1] }))
        .await
        .ok();
    let session = token(&workshop, |claims| claims["scope"] = ALL.into());
    let own = post(
        &app,
        &session,
        "/devices/own/enrolment-tokens",
        json!({ "name": SHOWN[1] }),
    )
    .await;
    let machine = enrolled(&app, own["token"].as_str().unwrap(), SHOWN[0]).await;
    machine.beat(&app).await.ok();
    let made = post(&app, &session, TOKENS, json!({ "name": SHOWN[2] })).await;
    let found = json!([server("files", "npm:files", false)]);
    machine.has(&app, SHOWN[3], &found).await.ok();
    app.advance(60);
    ask(&app, ANN, "files", None).await;
    count(&app).await;
    device_judging::set(&app, "on").await;
    tell(&app, &machine).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let server = text(&of_key(&app, "npm:files").await["id"]);
    let verdict = json!({ "standing": "approved", "expiresAt": in_days(&app, 30) });
    post(&app, &session, &format!("{SERVERS}/{server}/standing"), verdict).await;
    let told = format!("/devices/{}/commands", machine.id);
    let told = post(&app, &session, &told, json!({ "kind": "rescan" })).await;
    let ids = vec![
        ("deviceId", machine.id.clone()),
        ("serverId", server),
        ("enrolmentTokenId", text(&made["enrolmentToken"]["id"])),
        ("commandId", text(&told["command"]["id"])),
    ];
    let world = World {
        ann,
        session,
        machine,
        ids,
    };
    (app, world)
}

/// Returns the answers of every read of devices, whatever area has it, and of the inventory to somebody, refusals among them.
async fn answers(app: &App, world: &World, by: &str) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let reads = app.kernel.registry.entries().iter().filter(|entry| {
        let is_of_devices =
            matches!(entry.meta.toolset, "fleet" | "inventory") || entry.meta.path.starts_with("/devices");
        is_of_devices && entry.meta.method == Method::Get
    });
    for entry in reads {
        let path = world
            .ids
            .iter()
            .fold(entry.meta.path.to_owned(), |path, (name, id)| {
                path.replace(&format!("{{{name}}}"), id)
            });
        // What a device is given of a profile or a skill is no answer about people, and there is none here.
        let path = path
            .replace("{profileId}", "prf_none")
            .replace("{skillItemId}", "ski_none");
        assert!(!path.contains('{'), "{path}");
        all.push((entry.meta.id, get(app, by, &path).await.text()));
    }
    assert!(all.len() >= 12, "{}", all.len());
    all
}

/// Proves PV-1.
#[test]
fn no_answer_names_somebody_else_where_people_are_pseudonymous() {
    each("fleet_privacy", |app: Arc<App>| async move {
        let (app, world) = world(&app).await;
        let mut readers = vec![app.admin.clone()];
        for role in ["operator", "auditor", "viewer"] {
            readers.push(app.account(role, role, &[]).await.1);
        }
        let mut seen = BTreeSet::new();
        let secret: Vec<&str> = SHOWN.into_iter().chain([world.ann.as_str()]).collect();
        for by in &readers {
            for (_, text) in answers(&app, &world, by).await {
                seen.extend(secret.iter().filter(|word| text.contains(**word)).copied());
            }
        }
        assert_eq!(
            seen,
            secret.iter().copied().collect(),
            "what is not shown before proves nothing"
        );
        hide(&app).await;
        let check = |id: &str, text: &str| {
            for word in secret.iter().copied().chain(KNOWN) {
                assert!(!text.contains(word), "{id} says {word}: {text}");
            }
        };
        for by in &readers {
            for (id, text) in answers(&app, &world, by).await {
                check(id, &text);
            }
        }
        // What is answered to who changes something.
        let device = format!("/devices/{}", world.machine.id);
        for (path, body) in [
            (format!("{device}/quarantine"), json!({})),
            (format!("{device}/commands"), json!({ "kind": "rescan" })),
            (
                format!("{SERVERS}/{}/standing", world.ids[1].1),
                json!({ "standing": "denied" }),
            ),
            (format!("{TOKENS}/{}/revoke", world.ids[2].1), json!({})),
        ] {
            let text = app.write("POST", &path, body).await;
            text.ok();
            check(&path, &text.text());
        }
        let labelled = app
            .write("PATCH", &device, json!({ "labels": ["site:berlin"] }))
            .await;
        assert_eq!(labelled.ok()["device"]["nameHidden"], true);
        check("update", &labelled.text());
        lives::hold(&app, &world.machine.id).await;
        let held = app.get("/restore/held").await;
        assert_eq!(held.ok()["held"].as_array().map(Vec::len), Some(1));
        check("held", &held.text());
        let retired = app
            .write("POST", &format!("{device}/retire"), json!({ "confirm": true }))
            .await;
        retired.ok();
        check("retire", &retired.text());
        app.kernel.stop().await;
    });
}

/// Proves PV-1.
#[test]
fn who_does_not_see_owners_puts_no_machines_together_by_the_tokens_that_enrolled_them() {
    each("fleet_own_tokens", |app: Arc<App>| async move {
        let (app, world) = world(&app).await;
        hide(&app).await;
        let owner = app.get(&format!("/devices/{}", world.machine.id)).await;
        let name = owner.ok()["device"]["ownerUserId"].as_str().unwrap().to_owned();
        // Programs are no people.
        let (program, secret) = app.account("program", "operator", &["fleet:enrol_self"]).await;
        let more = "/devices/own/enrolment-tokens";
        post(&app, &secret, more, json!({ "name": "of a program" })).await;
        post(&app, &world.session, more, json!({ "name": "another" })).await;
        let (_, blind) = app.account("blind", "operator", &["fleet:read"]).await;
        for is_blind in [true, false] {
            let tokens = if is_blind {
                get(&app, &blind, TOKENS).await.ok().clone()
            } else {
                app.get(TOKENS).await.ok().clone()
            };
            let tokens = tokens["enrolmentTokens"].as_array().unwrap();
            let own = tokens.iter().filter(|token| token["mode"] == "user");
            let makers: Vec<&str> = own.map(|token| token["createdBy"].as_str().unwrap()).collect();
            assert!(makers.contains(&program.as_str()), "{makers:?}");
            let of_ann: Vec<&&str> = makers.iter().filter(|maker| **maker != program).collect();
            assert!(
                of_ann.len() == 2 && of_ann.iter().all(|maker| maker.starts_with("psn_")),
                "{makers:?}"
            );
            assert_eq!(of_ann[0] != of_ann[1], is_blind);
            assert_eq!(of_ann.iter().any(|maker| **maker == name.as_str()), !is_blind);
        }
        app.kernel.stop().await;
    });
}

/// Proves PV-1.
#[test]
fn a_person_sees_herself_and_has_one_pseudonym_in_a_quarter() {
    each("fleet_pseudonyms", |app: Arc<App>| async move {
        let (app, world) = world(&app).await;
        hide(&app).await;
        let device = format!("/devices/{}", world.machine.id);
        let hers = get(&app, &world.session, &device).await.ok()["device"].clone();
        assert_eq!(
            (&hers["name"], &hers["ownerUserId"]),
            (&json!(SHOWN[0]), &json!(world.ann))
        );
        assert_eq!(hers.get("nameHidden"), None);
        let own = get(&app, &world.session, "/devices/own").await.ok().clone();
        assert_eq!(own["devices"][0]["name"], SHOWN[0]);
        assert_eq!(
            own["privacy"],
            json!({ "people": "pseudonymous", "hostNames": "hide", "projectNames": "hide", "prompts": "off", "toolArguments": "none" })
        );
        let inventory = format!("{device}/inventory");
        let found = get(&app, &world.session, &inventory).await.ok().clone();
        assert_eq!(found["observations"][0]["account"], SHOWN[3]);
        assert_eq!(found["sections"][0]["account"], SHOWN[3]);

        let pseudonyms = async || {
            let owner = app.get(&device).await.ok()["device"]["ownerUserId"].clone();
            let uses = app.get("/inventory/uses").await.ok()["uses"][0]["userId"].clone();
            let made = app.get(TOKENS).await.ok()["enrolmentTokens"][0]["createdBy"].clone();
            let by = app.get(&format!("{SERVERS}/{}", world.ids[1].1)).await;
            [owner, uses, made, by.ok()["server"]["standingBy"].clone()]
        };
        let first = pseudonyms().await;
        let name = first[0].as_str().unwrap().to_owned();
        assert!(name.starts_with("psn_") && name.len() == 36, "{name}");
        // What somebody did is known from elsewhere, and does not say whose machines there are.
        assert_eq!((&first[1], &first[3]), (&first[0], &first[2]));
        assert_ne!(first[0], first[2]);
        assert!(first[2].as_str().unwrap().starts_with("psn_"), "{first:?}");
        // An own token is its maker's as the machine is: it joins no act with a machine.
        let tokens = app.get(TOKENS).await.ok()["enrolmentTokens"].clone();
        let own = tokens
            .as_array()
            .unwrap()
            .iter()
            .find(|token| token["mode"] == "user");
        assert_eq!(own.unwrap()["createdBy"], first[0], "{tokens}");
        // Hers by the word of somebody who can say all that she can do.
        let second = Machine::new(&app).await;
        let lent = format!("/devices/{}", second.id);
        app.write("PATCH", &lent, json!({ "ownerUserId": world.ann }))
            .await
            .ok();
        tell(&app, &second).await;
        let told = app.get(&format!("{lent}/decisions")).await.ok().clone();
        assert_eq!(told["counts"][0]["user"], first[0], "{told}");
        let narrow = app.account("history", "auditor", &["policies:history"]).await.1;
        let told = get(&app, &narrow, &format!("{lent}/decisions"))
            .await
            .ok()
            .clone();
        assert_eq!(
            (told["counts"][0].get("user"), &told["counts"][0]["passed"]),
            (None, &json!(3))
        );
        // The same word on another machine is another one: whoever has a machine could try words out.
        let bob = Machine::new(&app).await;
        bob.has(&app, SHOWN[3], &json!([server("files", "npm:files", false)]))
            .await
            .ok();
        let account = async |id: &str| {
            let found = app.get(&format!("/devices/{id}/inventory")).await.ok().clone();
            let account = found["observations"][0]["account"].clone();
            assert_eq!(account, found["sections"][0]["account"]);
            account
        };
        let (hers, his) = (account(&world.machine.id).await, account(&bob.id).await);
        assert!(hers.as_str().unwrap().starts_with("psn_"), "{hers}");
        assert_ne!(hers, his);
        // No word that is not hers says it to who counts characters.
        assert!(!name.contains(&hers.as_str().unwrap()[4..]));
        app.advance(50 * DAY);
        let later = app.get(&device).await.ok()["device"]["ownerUserId"].clone();
        assert!(
            later.as_str().unwrap().starts_with("psn_") && later != first[0],
            "{later}"
        );
        app.kernel.stop().await;
    });
}

/// Proves PV-1.
#[test]
fn no_filter_no_name_and_no_gateway_says_whose_a_machine_is() {
    each("fleet_oracles", |app: Arc<App>| async move {
        let (app, world) = world(&app).await;
        let bob = user(&app, BOB, None).await;
        let his = Machine::new(&app).await;
        let path = format!("/devices/{}", his.id);
        app.write("PATCH", &path, json!({ "ownerUserId": bob }))
            .await
            .ok();
        let identity = format!("{path}/gateway-identity");
        assert_eq!(app.get(&identity).await.ok()["subjectId"], json!(bob));
        hide(&app).await;
        let by_owner = format!("/devices?ownerUserId={}", world.ann);
        for filter in [
            by_owner.as_str(),
            "/devices?query=ann-host",
            &format!("/devices?ownerUserId={bob}"),
        ] {
            app.get(filter).await.refused(422, "invalid_definition");
        }
        let found = get(&app, &world.session, &by_owner).await;
        assert_eq!(
            found.ok()["devices"].as_array().map(Vec::len),
            Some(1),
            "her own she finds"
        );
        get(&app, &world.session, &format!("/devices?ownerUserId={bob}"))
            .await
            .refused(422, "invalid_definition");
        app.write("PATCH", &path, json!({ "name": "bob-laptop" }))
            .await
            .refused(409, "conflict");
        // The family's client needs no person: anything but `explicit` is none of its own.
        let taken = app.get(&identity).await.ok().clone();
        let owner = app.get(&path).await.ok()["device"]["ownerUserId"].clone();
        assert_eq!(
            (&taken["resolution"], &taken["subjectKind"]),
            (&json!("assigned_user"), &json!("user"))
        );
        assert_eq!(taken["subjectId"], owner);
        assert!(owner.as_str().unwrap().starts_with("psn_"), "{owner}");
        app.write("PATCH", &path, json!({ "ownerUserId": owner }))
            .await
            .refused(422, "invalid_definition");
        // Who may not say whose a machine is does not find it out by guesses.
        let (_, guesser) = app.account("guesser", "admin", &["fleet:write"]).await;
        let guess = async |user: &str| {
            let call = app.request("PATCH", &path).token(&guesser);
            let body = with_trio(json!({ "ownerUserId": user }), &fresh_key());
            call.json(body).send().await
        };
        let (right, wrong) = (guess(&bob).await, guess(&world.ann).await);
        right.refused(403, "insufficient_scope");
        wrong.refused(403, "insufficient_scope");
        assert_eq!(right.json["message"], wrong.json["message"]);
        let unmoved = app.get(&path).await.ok()["device"].clone();
        // Who may say it learns it, and that is an entry although nothing changes.
        app.write("PATCH", &path, json!({ "ownerUserId": bob }))
            .await
            .ok();
        let operator = app.account("operator", "operator", &[]).await.1;
        let entries = "/audit/events?action=updateHeadlessDevice&limit=1";
        let seen = get(&app, &operator, entries).await;
        assert!(
            seen.ok()["events"].as_array().map(Vec::len) == Some(1) && !seen.text().contains(&bob),
            "{}",
            seen.text()
        );
        assert_eq!(
            app.get(&path).await.ok()["device"]["updatedAt"],
            unmoved["updatedAt"]
        );
        let asked = app.get(entries).await;
        let change = asked.ok()["events"][0]["changes"][0].clone();
        assert_eq!(
            (&change["path"], &change["after"]),
            (&json!("/ownerNamed"), &json!(bob))
        );
        // Who is suspended stands in the directory, beside the name.
        let beyond = app
            .get(&format!("/devices/{}/gateway-identity", world.machine.id))
            .await;
        beyond.refused(404, "not_found");
        app.write("POST", &format!("/directory/users/{bob}/suspend"), json!({}))
            .await
            .ok();
        let suspended = app.get(&identity).await;
        suspended.refused(404, "not_found");
        assert_eq!(suspended.json["message"], beyond.json["message"]);
        assert!(
            beyond.text().contains("suspended, deleted, or can do more"),
            "{}",
            beyond.text()
        );
        app.kernel.stop().await;
    });
}

/// Proves SE-9.
#[test]
fn machines_are_told_how_they_are_shown_and_what_is_not_kept_is_no_setting() {
    each("fleet_privacy_told", |app: Arc<App>| async move {
        let machine = Machine::new(&app).await;
        let told = async || {
            app.advance(60);
            machine.beat(&app).await.ok()["privacy"].clone()
        };
        assert_eq!(
            told().await,
            json!({ "people": "directory", "hostNames": "show", "projectNames": "hide", "prompts": "off", "toolArguments": "none" })
        );
        let half = json!({ "people": "pseudonymous" });
        set(&app, half, true).await.refused(422, "invalid_definition");
        hide(&app).await;
        assert_eq!(
            told().await,
            json!({ "people": "pseudonymous", "hostNames": "hide", "projectNames": "hide", "prompts": "off", "toolArguments": "none" })
        );
        // A name of a folder may say whose it is.
        let named = json!({ "projectNames": "show" });
        let refused = set(&app, named.clone(), true).await;
        refused.refused(422, "invalid_definition");
        assert!(
            refused.text().contains("/fleet/privacy/projectNames"),
            "{}",
            refused.text()
        );
        for open in [
            json!({ "people": "directory" }),
            json!({ "people": "directory", "hostNames": "show" }),
        ] {
            set(&app, open, false).await.refused(400, "confirmation_required");
        }
        set(&app, json!({ "hostNames": "show" }), true)
            .await
            .refused(422, "invalid_definition");
        set(&app, json!({ "people": "directory", "hostNames": "show" }), true)
            .await
            .ok();
        assert_eq!(told().await["people"], "directory");
        set(&app, named.clone(), false)
            .await
            .refused(400, "confirmation_required");
        set(&app, named, true).await.ok();
        assert_eq!(told().await["projectNames"], "show");
        set(
            &app,
            json!({ "people": "pseudonymous", "hostNames": "hide" }),
            true,
        )
        .await
        .refused(422, "invalid_definition");
        set(&app, json!({ "projectNames": "hide" }), false).await.ok();
        assert_eq!(told().await["projectNames"], "hide");
        for word in ["prompts", "toolArguments"] {
            set(&app, json!({ word: "full" }), false)
                .await
                .refused(400, "confirmation_required");
            set(&app, json!({ word: "full" }), true).await.ok();
            assert_eq!(told().await[word], "full");
        }
        let least = json!({ "prompts": "off", "toolArguments": "none" });
        set(&app, least, false).await.ok();
        assert_eq!(told().await["toolArguments"], "none");
        // No word that nothing keeps.
        for member in ["prompts", "toolArguments", "ask", "personalDevices"] {
            let refused = set(&app, json!({ member: "hide" }), true).await;
            refused.refused(400, "invalid_request");
            assert!(
                refused.text().contains(&format!("/fleet/privacy/{member}")),
                "{}",
                refused.text()
            );
        }
        // One that is early is answered without, and means nothing by it.
        let again = send(
            &app,
            &machine.key,
            &machine.token,
            &format!("/devices/{}/heartbeat", machine.id),
            beat(),
        )
        .await;
        assert_eq!(again.ok().get("privacy"), None);
        app.kernel.stop().await;
    });
}

/// Returns a server in a project of the machine, and what the machine says that its folder is called.
fn of_project(called: &str, name: Option<&str>) -> Value {
    let mut found = server(called, &format!("npm:@acme/{called}"), false);
    found["place"]["project"] = "fedcba9876543210fedcba9876543210".into();
    if let Some(name) = name {
        found["place"]["projectName"] = name.into();
    }
    found
}

statements! {
    /// What is kept of names of projects, and of how sections were sent.
    NAMES = unscoped("a test") "SELECT o.project_name, c.digest, o.facts FROM inventory_observations o JOIN inventory_sections c ON c.organization_id = o.organization_id AND c.device_id = o.device_id AND c.client = o.client AND c.account = o.account ORDER BY o.id";
}

async fn names(app: &App) -> Vec<(Option<String>, String)> {
    let kept = app.kernel.read_system(|tx| {
        tx.query(&NAMES, params![], |row| {
            assert!(
                !row.str(2)?.contains("projectName"),
                "what was found is kept apart"
            );
            Ok((row.get(0)?, row.get(1)?))
        })
    });
    kept.await.unwrap()
}

/// Returns what the answers call the project of the server `files`; nothing names that of another one.
async fn shown_name(app: &App, machine: &Machine) -> Option<Value> {
    let inventory = app
        .get(&format!("/devices/{}/inventory", machine.id))
        .await
        .ok()
        .clone();
    let server = of_key(app, "npm:@acme/files").await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let instances = app
        .get(&format!("{SERVERS}/{server}/instances"))
        .await
        .ok()
        .clone();
    let name = instances["instances"][0].get("projectName").cloned();
    let listed: Vec<Value> = inventory["observations"].as_array().unwrap().clone();
    let of = |key: &str| {
        listed
            .iter()
            .find(|one| one["found"]["key"] == key)
            .unwrap()
            .clone()
    };
    assert_eq!(of("npm:@acme/files").get("projectName").cloned(), name);
    assert_eq!(of("npm:@acme/web").get("projectName"), None);
    name
}

/// Returns which digests are asked for when the section is said to be as it was.
async fn unknown(app: &App, machine: &Machine, digest: &Value) -> Value {
    app.advance(60);
    let mut body = report(app, 0, &json!([]));
    body["unchanged"] = json!([{ "client": "claude_code", "user": "ada", "digest": digest }]);
    machine.report(app, body).await.ok()["unknownDigests"].clone()
}

/// Proves PV-2.
#[test]
fn projects_are_named_while_the_settings_show_it_and_neither_before_nor_after() {
    each("fleet_project_names", |app: Arc<App>| async move {
        let machine = Machine::new(&app).await;
        let named = json!([of_project("files", Some("billing")), of_project("web", None)]);
        let digest = section("ada", &named, true)["digest"].clone();
        let shown = async || shown_name(&app, &machine).await;
        let unchanged = async || unknown(&app, &machine, &digest).await;
        // An agent that has not heard that names are hidden loses nothing but the name, and is asked again.
        let taken = machine.has(&app, "ada", &named).await;
        assert_eq!(
            (&taken.ok()["accepted"], &taken.json["notKept"]),
            (&json!(1), &json!(0))
        );
        assert_eq!(shown().await, None);
        assert!(
            names(&app)
                .await
                .iter()
                .all(|(name, digest)| name.is_none() && digest.is_empty())
        );
        assert_eq!(unchanged().await, json!([digest]));
        set(&app, json!({ "projectNames": "show" }), true).await.ok();
        app.advance(60);
        machine.has(&app, "ada", &named).await.ok();
        assert_eq!(shown().await, Some(json!("billing")));
        assert_eq!(unchanged().await, json!([]), "the server has it as it was sent");
        // The round forgets nothing that is shown.
        forget_hidden_names(&app.kernel).await.unwrap();
        assert_eq!(shown().await, Some(json!("billing")));
        // What looks like a secret is not kept, whoever writes it, and a name that goes goes alone.
        for name in [format!("ghp_{}", "CaNaRy0123".repeat(3)), "/home/ada/plan".into()] {
            app.advance(60);
            let found = json!([of_project("files", Some(&name)), of_project("web", None)]);
            machine.has(&app, "ada", &found).await.ok();
            assert_eq!(shown().await, None, "{name}");
        }
        app.advance(60);
        machine.has(&app, "ada", &named).await.ok();
        assert_eq!(shown().await, Some(json!("billing")));
        // Hidden again: at once not shown, soon forgotten, and asked for as a whole where an agent slept through it.
        set(&app, json!({ "projectNames": "hide" }), false).await.ok();
        assert_eq!(shown().await, None);
        assert_eq!(
            names(&app)
                .await
                .iter()
                .filter(|(name, _)| name.is_some())
                .count(),
            1
        );
        forget_hidden_names(&app.kernel).await.unwrap();
        assert!(
            names(&app)
                .await
                .iter()
                .all(|(name, digest)| name.is_none() && digest.is_empty())
        );
        set(&app, json!({ "projectNames": "show" }), true).await.ok();
        assert_eq!(
            shown().await,
            None,
            "what was forgotten does not come back by itself"
        );
        assert_eq!(unchanged().await, json!([digest]));
        app.advance(60);
        machine.has(&app, "ada", &named).await.ok();
        assert_eq!(shown().await, Some(json!("billing")));
        // What nobody forgot yet when a report comes goes with it.
        set(&app, json!({ "projectNames": "hide" }), false).await.ok();
        app.advance(60);
        machine
            .has(
                &app,
                "ada",
                &json!([of_project("files", None), of_project("web", None)]),
            )
            .await
            .ok();
        assert!(
            names(&app)
                .await
                .iter()
                .all(|(name, digest)| name.is_none() && !digest.is_empty())
        );
        app.kernel.stop().await;
    });
}
