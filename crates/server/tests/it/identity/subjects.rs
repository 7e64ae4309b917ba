//! Names become subjects exactly as a naive model says (D6).

use crate::areas::directory::{chunk, end, group, import, user};
use crate::support::{App, Dice, Reply, each, workload};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const RESOLVE: &str = "/llm-gateway/subjects/resolve";

async fn resolve(app: &App, subjects: Value) -> Reply {
    app.request("POST", RESOLVE)
        .json(json!({ "subjects": subjects }))
        .send()
        .await
}

/// Spellings of one name, by name. What is in one row is one name, and no two rows are.
const NAMES: [[&str; 3]; 8] = [
    ["anna@acme.test", "ANNA@ACME.TEST", "Anna@Acme.Test"],
    ["straße", "STRASSE", "Strasse"],
    ["Å", "A\u{30a}", "å"],
    ["Ops", "OPS", "ops"],
    ["Ops Team", "ops team", "OPS TEAM"],
    ["ſerver", "Server", "SERVER"],
    ["日本", "日本", "日本"],
    ["first-admin", "FIRST-admin", "First-Admin"],
];
const DIRECTORIES: [&str; 2] = ["default", "okta"];

#[derive(Clone, Debug)]
struct KnownSubject {
    kind: &'static str,
    id: String,
    directory: Option<&'static str>,
    name: usize,
    is_active: bool,
    /// Suspended by a line of a file.
    by_import: bool,
}

impl KnownSubject {
    fn is_the_name_of(&self, other: &Self) -> bool {
        (self.kind, self.directory, self.name) == (other.kind, other.directory, other.name)
    }
}

/// Who is there, and who was deleted while the API had them suspended: they come back as they went (DI-9).
#[derive(Default)]
struct Model(Vec<KnownSubject>, Vec<KnownSubject>);

impl Model {
    fn find(&mut self, kind: &str, directory: &str, name: usize) -> Option<&mut KnownSubject> {
        self.0
            .iter_mut()
            .find(|k| k.kind == kind && k.directory == Some(directory) && k.name == name)
    }

    /// The naive answer to a request.
    fn resolve(&self, asked: &[(usize, Value)]) -> Vec<Value> {
        let mut items: Vec<Value> = Vec::new();
        for (name, item) in asked {
            let fits = |known: &&KnownSubject| {
                known.is_active
                    && known.name == *name
                    && item.get("kind").is_none_or(|kind| kind == known.kind)
                    && item
                        .get("directoryId")
                        .is_none_or(|d| d.as_str() == known.directory)
            };
            let found: Vec<&KnownSubject> = self.0.iter().filter(fits).collect();
            if let [one] = found.as_slice() {
                let answer = json!({ "kind": one.kind, "name": item["name"], "subjectId": one.id });
                if !items.contains(&answer) {
                    items.push(answer);
                }
            }
        }
        items
    }
}

async fn step(app: &App, dice: &mut Dice, model: &mut Model) {
    let name = dice.below(NAMES.len());
    let spelt = *dice.pick(&NAMES[name]);
    let directory = *dice.pick(&DIRECTORIES);
    let made = |kind, id: &Value, directory| KnownSubject {
        kind,
        id: id.as_str().unwrap().to_owned(),
        directory,
        name,
        is_active: true,
        by_import: false,
    };
    match dice.below(9) {
        0 | 1 => {
            let body = json!({ "loginName": spelt, "directoryId": directory });
            let reply = app.write("POST", "/directory/users", body).await;
            if reply.status == 201 {
                model
                    .0
                    .push(made("user", &reply.json["user"]["id"], Some(directory)));
            }
        }
        2 => {
            let body = json!({ "name": spelt, "directoryId": directory });
            let reply = app.write("POST", "/directory/groups", body).await;
            if reply.status == 201 {
                model
                    .0
                    .push(made("group", &reply.json["group"]["id"], Some(directory)));
            }
        }
        3 => {
            let body = json!({ "name": spelt, "permissionRole": "viewer", "allOfRole": true });
            let reply = app.write("POST", "/service-accounts", body).await;
            if reply.status == 201 {
                let id = &reply.json["serviceAccount"]["id"];
                model.0.push(made("service_account", id, None));
            }
        }
        4 | 5 if !model.0.is_empty() => {
            let place = dice.below(model.0.len());
            let known = &mut model.0[place];
            let path = match known.kind {
                "user" => format!("/directory/users/{}", known.id),
                "group" => format!("/directory/groups/{}", known.id),
                _ => format!("/service-accounts/{}", known.id),
            };
            match (dice.below(3), known.kind) {
                (0, _) if known.id != app.admin_id => {
                    app.delete(&path).await.ok();
                    let gone = model.0.remove(place);
                    model.1.retain(|other| !gone.is_the_name_of(other));
                    model.1.push(gone);
                }
                (_, "group") => {}
                (1, kind) => {
                    let verb = if kind == "user" { "suspend" } else { "disable" };
                    let done = app.write("POST", &format!("{path}/{verb}"), json!({})).await;
                    if done.status == 200 {
                        (known.is_active, known.by_import) = (false, false);
                    }
                }
                (_, kind) => {
                    let verb = if kind == "user" { "reactivate" } else { "enable" };
                    app.write("POST", &format!("{path}/{verb}"), json!({})).await.ok();
                    known.is_active = true;
                }
            }
        }
        _ => file(app, dice, model, directory).await,
    }
}

/// Imports a small file, or gives it up.
async fn file(app: &App, dice: &mut Dice, model: &mut Model, directory: &'static str) {
    let body = json!({ "format": "jsonl", "mode": "merge", "directoryId": directory });
    let id = import(app, body).await;
    let mut said = BTreeMap::new();
    for _ in 0..=dice.below(4) {
        let (name, is_user) = (dice.below(NAMES.len()), dice.chance(2));
        let status = *dice.pick(&["", "active", "suspended"]);
        said.insert((name, is_user), (*dice.pick(&NAMES[name]), status));
    }
    let mut lines = String::new();
    for ((_, is_user), (spelt, status)) in &said {
        let line = match (is_user, *status) {
            (false, _) => json!({ "type": "group", "name": spelt }),
            (true, "") => json!({ "type": "user", "loginName": spelt }),
            (true, status) => json!({ "type": "user", "loginName": spelt, "status": status }),
        };
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    let taken = chunk(app, &id, 1, &lines).await.ok().clone();
    assert_eq!(taken["refusedLines"], json!([]), "{lines}");
    if dice.chance(4) {
        end(app, &id, "abort").await.ok();
        return;
    }
    end(app, &id, "apply").await.ok();
    for ((name, is_user), (_, status)) in said {
        let (kind, list, member) = if is_user {
            ("user", "users", "loginName")
        } else {
            ("group", "groups", "name")
        };
        if model.find(kind, directory, name).is_none() {
            let bytes = NAMES[name][0].bytes();
            let encoded = bytes.fold(String::new(), |escaped, byte| escaped + &format!("%{byte:02X}"));
            let path = format!("/directory/{list}?{member}={encoded}&directoryId={directory}");
            let page = app.get(&path).await.ok().clone();
            assert_eq!(page[list].as_array().unwrap().len(), 1, "{page}");
            let mut known = KnownSubject {
                kind,
                id: page[list][0]["id"].as_str().unwrap().to_owned(),
                directory: Some(directory),
                name,
                is_active: true,
                by_import: false,
            };
            let before = model.1.iter().find(|gone| gone.is_the_name_of(&known));
            known.is_active = before.is_none_or(|gone| gone.is_active || gone.by_import);
            model.0.push(known);
        }
        let known = model.find(kind, directory, name).unwrap();
        match status {
            _ if !is_user => {}
            "suspended" if known.is_active => (known.is_active, known.by_import) = (false, true),
            "active" if known.by_import => (known.is_active, known.by_import) = (true, false),
            _ => {}
        }
    }
}

/// Proves DI-6, SU-1, SU-2, SU-3.
#[test]
fn resolving_equals_a_naive_model() {
    each("subjects_model", |app: Arc<App>| async move {
        let mut dice = Dice::new("subjects");
        let mut model = Model(
            vec![KnownSubject {
                kind: "service_account",
                id: app.admin_id.clone(),
                directory: None,
                name: 7,
                is_active: true,
                by_import: false,
            }],
            Vec::new(),
        );
        let mut resolved = 0;
        for _ in 0..workload("PROVOST_TEST_SUBJECT_STEPS", 60, 120) {
            step(&app, &mut dice, &mut model).await;
            let mut asked = Vec::new();
            for _ in 0..=dice.below(30) {
                let name = dice.below(NAMES.len());
                let mut item = json!({ "name": *dice.pick(&NAMES[name]) });
                if dice.chance(3) {
                    item["kind"] = (*dice.pick(&["user", "group", "service_account"])).into();
                }
                if dice.chance(4) {
                    item["directoryId"] = (*dice.pick(&["default", "okta", "none"])).into();
                }
                asked.push((name, item));
            }
            let subjects: Vec<&Value> = asked.iter().map(|(_, item)| item).collect();
            let reply = resolve(&app, json!(subjects)).await;
            let expected = model.resolve(&asked);
            assert_eq!(
                reply.ok()["items"],
                json!(expected),
                "{subjects:?}\n{:?}",
                model.0
            );
            resolved += expected.len();
        }
        assert!(resolved > 20, "{resolved}");
    });
}

/// Proves SU-1, SU-3.
#[test]
fn a_request_is_judged_as_a_whole() {
    each("subjects_limits", |app: Arc<App>| async move {
        let name = |name: &str| json!({ "name": name });
        let many = |count: usize| Value::from(vec![name("first-admin"); count]);
        for refused in [
            json!([]),
            many(257),
            json!([{}]),
            json!(["first-admin"]),
            json!([name("")]),
            json!([name(&"x".repeat(321))]),
            json!([name("first-admin"), name("")]),
            json!([{ "name": "first-admin", "kind": "robot" }]),
            json!([{ "name": "first-admin", "directoryId": "No" }]),
            json!([{ "name": "first-admin", "exact": true }]),
        ] {
            resolve(&app, refused).await.refused(400, "invalid_request");
        }
        app.request("POST", RESOLVE)
            .json(json!({}))
            .send()
            .await
            .refused(400, "invalid_request");
        let expected = json!({ "items": [
            { "kind": "service_account", "name": "first-admin", "subjectId": app.admin_id },
        ] });
        assert_eq!(resolve(&app, many(256)).await.ok(), &expected);
        let odd = json!([
            name(&"😀".repeat(320)),
            name("first-admin "),
            name("first\0admin"),
            name("first-admi"),
            name("%"),
            name("first-admin"),
        ]);
        assert_eq!(resolve(&app, odd).await.ok(), &expected);
        let (organization, admin) = app.other_organization("Globex").await;
        let other = app.view_of(organization, admin);
        user(&app, "ada").await;
        assert_eq!(
            resolve(&other, json!([name("ada")])).await.ok()["items"],
            json!([])
        );
    });
}

#[test]
fn a_gateway_that_is_switched_off_resolves_nothing() {
    each("subjects_off", |app: Arc<App>| async move {
        let mut settings = app.get("/automation/settings").await.ok().clone();
        settings["llmGateway"]["enabled"] = false.into();
        let settings = json!({ "llmGateway": settings["llmGateway"] });
        app.write("PATCH", "/automation/settings", settings).await.ok();
        resolve(&app, json!([{ "name": "first-admin" }]))
            .await
            .refused(404, "llm_gateway_not_enabled");
    });
}

/// Proves SU-4.
#[test]
fn what_was_asked_is_recorded_as_keyed_hashes() {
    each("subjects_audit", |app: Arc<App>| async move {
        user(&app, "very-private@acme.test").await;
        app.settle().await;
        let before = app.entries(&app.organization, 0).await.len();
        let asked = json!([{ "name": "very-private@acme.test" }, { "name": "nobody-at-all" }]);
        resolve(&app, asked.clone()).await.ok();
        resolve(&app, asked).await.ok();
        app.settle().await;
        let entries = app
            .entries(&app.organization, i64::try_from(before).unwrap())
            .await;
        let of_resolve: Vec<&Value> = entries
            .iter()
            .filter(|e| e["action"] == "resolveHeadlessLlmGatewaySubjects")
            .collect();
        assert_eq!(of_resolve.len(), 2);
        let change = &of_resolve[0]["changes"][0];
        assert_eq!(
            (&change["path"], &change["after"]["count"]),
            (&json!("/subjects"), &json!(2))
        );
        let macs = change["after"]["nameMacs"].as_array().unwrap();
        assert_eq!(macs.len(), 2);
        assert_ne!(macs[0], macs[1]);
        assert_eq!(
            change["after"], of_resolve[1]["changes"][0]["after"],
            "the same name is the same hash"
        );
        let text = json!(of_resolve).to_string();
        assert!(
            !text.contains("very-private") && !text.contains("nobody-at-all"),
            "{text}"
        );
    });
}

#[test]
fn a_reference_of_a_policy_names_one_record_or_is_refused() {
    each("subjects_references", |app: Arc<App>| async move {
        let ada = user(&app, "ada").await;
        let dev = group(&app, "Dev").await;
        let get = |query: String| {
            let app = app.clone();
            async move { app.get(&format!("/policy-references/resolve?{query}")).await }
        };
        let item = |kind: &str, id: &str, selector: &str, qualifier: Option<&str>| {
            let mut item = json!({ "kind": kind, "id": id, "selector": selector });
            if let Some(qualifier) = qualifier {
                item["qualifier"] = qualifier.into();
            }
            json!({ "item": item })
        };
        app.write("POST", &format!("/directory/users/{ada}/suspend"), json!({}))
            .await
            .ok();
        for (query, expected) in [
            (
                "kind=user&selector=ADA".into(),
                item("user", &ada, "ADA", Some("default")),
            ),
            (
                format!("kind=user&selector={ada}"),
                item("user", &ada, &ada, Some("default")),
            ),
            (
                "kind=group&selector=dev".into(),
                item("group", &dev, "dev", Some("default")),
            ),
            (
                "kind=service_account&selector=First-Admin".into(),
                item("service_account", &app.admin_id, "First-Admin", None),
            ),
        ] {
            assert_eq!(get(query).await.ok(), &expected);
        }
        for missing in [
            "kind=user&selector=dev",
            "kind=group&selector=de",
            "kind=skill&selector=none",
            "kind=user&selector=ada&qualifier=okta",
        ] {
            get(missing.into()).await.refused(404, "not_found");
        }
        get("kind=device&selector=x".into())
            .await
            .refused(400, "invalid_request");
        let elsewhere = json!({ "loginName": "Ada", "directoryId": "okta" });
        app.write("POST", "/directory/users", elsewhere).await.ok();
        let ambiguous = get("kind=user&selector=ada".into()).await;
        ambiguous.refused(409, "conflict");
        assert!(
            ambiguous.json["message"]
                .as_str()
                .unwrap()
                .starts_with("2 records")
        );
        get("kind=user&selector=ada&qualifier=okta".into()).await.ok();
        // By e-mail address too, in any spelling; who is called so by login name is another one.
        let bob = json!({ "loginName": "bob", "email": "Bob.B@acme.test" });
        let bob = app.write("POST", "/directory/users", bob).await;
        let bob = bob.ok()["user"]["id"].as_str().unwrap();
        for selector in ["bob", "bob.b@ACME.test", bob] {
            let found = get(format!("kind=user&selector={selector}")).await;
            assert_eq!(found.ok()["item"]["id"], bob, "{selector}");
        }
        let namesake = json!({ "loginName": "bob.b@acme.test", "directoryId": "okta" });
        app.write("POST", "/directory/users", namesake).await.ok();
        get("kind=user&selector=bob.b@acme.test".into())
            .await
            .refused(409, "conflict");
        let qualified = get("kind=user&selector=bob.b@acme.test&qualifier=default".into()).await;
        assert_eq!(qualified.ok()["item"]["id"], bob);
        for missing in [
            "kind=user&selector=bob.b",
            "kind=user&selector=%E2%80%8B",
            "kind=group&selector=bob",
        ] {
            get(missing.into()).await.refused(404, "not_found");
        }
        let skill = app.skill("deploy").await;
        for (selector, status) in [
            ("Deploy", 200),
            (skill.as_str(), 200),
            ("deploy@1.0.0", 404),
            ("@acme/deploy", 404),
        ] {
            let found = get(format!("kind=skill&selector={selector}")).await;
            assert_eq!(found.status, status, "{selector}");
        }
    });
}
