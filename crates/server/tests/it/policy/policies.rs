//! Policies over the API: ids that hold anything an id may, names, owners, lists, audit.

use crate::areas::directory::{group, user};
use crate::areas::policies::definition;
use crate::areas::resources::make_resource;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_areas_policy::policies;
use serde_json::{Value, json};
use std::sync::Arc;

async fn create(app: &App, definition: &Value) -> Reply {
    app.write("POST", "/content-policies", json!({ "definition": definition }))
        .await
}

fn put(definition: &Value, revision: i64) -> Value {
    json!({ "definition": definition, "expectedRevision": revision })
}

/// Proves RT-1.
#[test]
fn an_id_is_addressed_with_and_without_escapes() {
    each("policy_ids", |app: Arc<App>| async move {
        let longest = format!("a/{}", "b".repeat(254));
        for id in [
            "plain",
            "a/b/c",
            "a:b@c.d-e_f",
            "a/..b/c.",
            "9/claim",
            "x/release",
            "claim",
            &longest,
        ] {
            create(&app, &definition("content-policies", id, "")).await.ok();
            let escaped: String = id
                .chars()
                .map(|c| match c {
                    '/' => "%2F".to_owned(),
                    ':' => "%3a".to_owned(),
                    '@' => "%40".to_owned(),
                    c => c.to_string(),
                })
                .collect();
            let half = id.replacen('/', "%2f", 1);
            for spelling in [id, &escaped, &half] {
                for path in ["content-policies", "policy-authority"] {
                    let found = app.get(&format!("/{path}/{spelling}")).await;
                    assert_eq!(found.ok()["item"]["id"], id, "{spelling}");
                }
                let revisions = app.get(&format!("/policies/revisions/{spelling}")).await;
                assert_eq!(revisions.ok()["revisions"].as_array().unwrap().len(), 1);
            }
            let location = format!("/content-policies/{id}");
            let changed = app
                .write("PUT", &location, put(&definition("content-policies", id, ""), 1))
                .await;
            assert_eq!(changed.ok()["item"]["currentRevision"], 2);
            let claim = json!({ "expectedRevision": 2, "managerId": "a", "managerInstance": "b" });
            let claimed = app
                .write("POST", &format!("/policy-authority/{escaped}/claim"), claim)
                .await;
            assert_eq!(claimed.ok()["item"]["id"], id);
            let release = app
                .request("POST", &format!("/policy-authority/{id}/release"))
                .header("x-forge-terraform-manager", "a")
                .header("x-forge-terraform-instance", "b")
                .json(with_trio(json!({ "expectedRevision": 2 }), &fresh_key()));
            assert_eq!(release.send().await.status.as_u16(), 204, "{id}");
            let gone = app
                .delete(&format!("/content-policies/{escaped}?expectedRevision=2"))
                .await;
            assert_eq!(gone.status.as_u16(), 204);
        }
        // Twice escaped is another text, and none of these can be an id.
        let too_long = "a".repeat(257);
        for none in [
            "a%252Fb",
            "%2Fa",
            "/a",
            "-a",
            "a%20b",
            "%00",
            "%ff",
            "a%zz",
            "%C3%A9",
            "nothing",
            too_long.as_str(),
        ] {
            for path in ["content-policies", "policy-authority", "policies/revisions"] {
                app.get(&format!("/{path}/{none}"))
                    .await
                    .refused(404, "not_found");
            }
            let gone = app
                .delete(&format!("/content-policies/{none}?expectedRevision=1"))
                .await;
            gone.refused(404, "not_found");
        }
        // Without an id there is no such route, or another one.
        app.get("/content-policies/").await.refused(404, "not_found");
        app.get("/content-policies")
            .await
            .refused(405, "method_not_allowed");
        app.get("/policy-authority").await.refused(404, "not_found");
        // Ids are as they were written: no case, no normal form.
        create(&app, &definition("content-policies", "Case", ""))
            .await
            .ok();
        app.get("/content-policies/case").await.refused(404, "not_found");
        let other = app
            .write(
                "PUT",
                "/content-policies/Case",
                put(&definition("content-policies", "other", ""), 1),
            )
            .await;
        other.refused(422, "invalid_definition");
        assert_eq!(other.json["errors"][0]["path"], "/definition/id");
    });
}

provost_kernel::statements! {
    /// A policy like another one, under an id that nobody can give any more.
    COPIED = "INSERT INTO policies (organization_id, id, seq, family, name, search_key, action, enabled, current_revision, definition_sha256, created_at, updated_at) SELECT organization_id, CAST(?2 AS TEXT), (SELECT MAX(seq) + 1 FROM policies WHERE organization_id = ?1), family, name, search_key, action, enabled, current_revision, definition_sha256, created_at, updated_at FROM policies WHERE organization_id = ?1 AND id = CAST(?3 AS TEXT)";
    /// Its revisions.
    COPIED_REVISIONS = "INSERT INTO policy_revisions (organization_id, policy_id, revision, family, definition, definition_sha256, bound, bound_sha256, source_ref, action, enabled, set_from, set_to, created_at, created_by_type, created_by_id) SELECT organization_id, CAST(?2 AS TEXT), revision, family, definition, definition_sha256, bound, bound_sha256, source_ref, action, enabled, set_from, set_to, created_at, created_by_type, created_by_id FROM policy_revisions WHERE organization_id = ?1 AND policy_id = CAST(?3 AS TEXT)";
}

/// Makes a policy that is not enabled, under an id of an earlier build.
async fn of_an_earlier_build(app: &App, family: &str, id: &'static str) {
    let seed = format!("seed-{family}");
    let mut wanted = definition(family, &seed, "");
    wanted["enabled"] = false.into();
    if app.get(&format!("/{family}/{seed}")).await.status.as_u16() == 404 {
        app.write("POST", &format!("/{family}"), json!({ "definition": wanted }))
            .await
            .ok();
    }
    let copy = move |ctx: &mut provost_kernel::OperationContext<'_>| {
        let org = ctx.org();
        ctx.execute(&COPIED, provost_kernel::params![org, id, seed.as_str()])?;
        ctx.execute(&COPIED_REVISIONS, provost_kernel::params![org, id, seed.as_str()])
            .map(drop)
    };
    app.kernel.system(app.org(), None, copy).await.unwrap();
}

const FAMILIES: [&str; 4] = [
    "content-policies",
    "access-policies",
    "resource-policies",
    "skill-acls",
];
/// Ids that proxies make others of.
const REWRITTEN: [&str; 7] = ["a/", "a//b", "a/.", "a/..", "a/./b", "a/../b", "a//"];

/// Proves PO-9.
#[test]
fn no_policy_is_made_whose_id_a_path_cannot_carry() {
    each("policy_ids_refused", |app: Arc<App>| async move {
        app.skill("pdf-filler").await;
        for family in FAMILIES {
            for id in REWRITTEN {
                let wanted = definition(family, id, "pdf-filler");
                let made = app
                    .write("POST", &format!("/{family}"), json!({ "definition": wanted }))
                    .await;
                made.refused(422, "invalid_definition");
                assert_eq!(made.json["errors"][0]["path"], "/definition/id", "{id}");
                let word = match family {
                    "skill-acls" => "skill_acl",
                    other => other.trim_end_matches("-policies"),
                };
                let plan = json!({ "family": word, "definition": wanted, "expectedRevision": 0 });
                let planned = app
                    .request("POST", "/policy-plans/validate")
                    .json(plan)
                    .send()
                    .await;
                planned.refused(422, "invalid_definition");
                assert_eq!(planned.json["errors"][0]["path"], "/definition/id", "{id}");
            }
        }
        let listed = app.get("/policies").await;
        assert_eq!(listed.ok()["policies"], json!([]), "{}", listed.text());
    });
}

/// Proves PO-9.
#[test]
#[expect(clippy::too_many_lines, reason = "one policy's way, for every id")]
fn an_id_that_no_path_carries_is_said_in_the_query() {
    each("policy_ids_said", |app: Arc<App>| async move {
        create(&app, &definition("content-policies", "a/b", ""))
            .await
            .ok();
        for id in REWRITTEN {
            of_an_earlier_build(&app, "content-policies", id).await;
            let said = format!("policyId={}", id.replace('/', "%2F"));
            for path in ["content-policies", "policy-authority"] {
                let found = app.get(&format!("/{path}/-?{said}")).await;
                assert_eq!(found.ok()["item"]["id"], id);
            }
            let revisions = app.get(&format!("/policies/revisions/-?{said}")).await;
            assert_eq!(revisions.ok()["revisions"].as_array().unwrap().len(), 1);
            assert_eq!(revisions.header("x-policy-id"), id);
            let changed = put(&definition("content-policies", id, ""), 1);
            let changed = app
                .write("PUT", &format!("/content-policies/-?policyId={id}"), changed)
                .await;
            assert_eq!(changed.ok()["item"]["id"], id);
            let claim = json!({ "expectedRevision": 2, "managerId": "a", "managerInstance": "b" });
            let claimed = app
                .write("POST", &format!("/policy-authority/-/claim?{said}"), claim)
                .await;
            assert_eq!(claimed.ok()["item"]["id"], id);
            let release = app
                .request("POST", &format!("/policy-authority/-/release?{said}"))
                .header("x-forge-terraform-manager", "a")
                .header("x-forge-terraform-instance", "b")
                .json(with_trio(json!({ "expectedRevision": 2 }), &fresh_key()));
            let released = release.send().await;
            assert_eq!(
                (released.status.as_u16(), released.header("x-policy-id")),
                (204, id)
            );
        }
        let listed = app
            .kernel
            .read_system(policies::ids_no_path_carries)
            .await
            .unwrap();
        assert_eq!(listed.len(), REWRITTEN.len(), "{listed:?}");
        assert!(REWRITTEN.iter().all(|id| {
            listed
                .iter()
                .any(|line| line.contains(&format!("policy {id} of")))
        }));
        // Both at once, twice, nothing, or nobody: no guess.
        for (wrong, code) in [
            ("a/b?policyId=a//b&expectedRevision=1", 400),
            ("a/b?policyId=a/b&expectedRevision=1", 400),
            ("-?policyId=a//b&policyId=a/b&expectedRevision=2", 400),
            ("-?policyId=&expectedRevision=1", 400),
            ("-?policyId=%ff&expectedRevision=1", 400),
            ("-?policyId=nobody&expectedRevision=1", 404),
            ("-?expectedRevision=1", 404),
            ("-/b?policyId=a//b&expectedRevision=2", 400),
        ] {
            let refused = app.delete(&format!("/content-policies/{wrong}")).await;
            assert_eq!(refused.status.as_u16(), code, "{wrong}: {}", refused.text());
        }
        // A word of the query is read for nobody who may not call.
        let (_, viewer) = app.account("reader", "viewer", &["policies:read"]).await;
        let denied = app
            .request("DELETE", "/content-policies/-?policyId=&expectedRevision=x")
            .token(&viewer)
            .header("idempotency-key", &fresh_key())
            .header("x-reason", "test")
            .send()
            .await;
        assert_eq!(denied.status.as_u16(), 403, "{}", denied.text());
        // The same request under one key is one, and another id is another request.
        let remove = async |said: &str, key: &str| {
            let path = format!("/content-policies/-?policyId={said}&expectedRevision=2");
            let call = app.request("DELETE", &path).header("idempotency-key", key);
            call.header("x-reason", "test").send().await
        };
        let key = fresh_key();
        let gone = remove("a//b", &key).await;
        assert_eq!((gone.status.as_u16(), gone.header("x-policy-id")), (204, "a//b"));
        let again = remove("a//b", &key).await;
        assert_eq!(
            (again.status.as_u16(), again.header("x-policy-id")),
            (204, "a//b"),
            "a repeat says the same"
        );
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(remove("a/", &key).await.status.as_u16(), 422);
        for id in REWRITTEN.into_iter().filter(|id| *id != "a//b") {
            assert_eq!(remove(id, &fresh_key()).await.status.as_u16(), 204, "{id}");
        }
        app.get("/content-policies/a/b").await.ok();
        let listed = app
            .kernel
            .read_system(policies::ids_no_path_carries)
            .await
            .unwrap();
        assert!(listed.is_empty(), "{listed:?}");
        let document = provost_kernel::expose::openapi::document(&app.kernel.registry);
        let named = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|item| item.as_object().unwrap().values());
        let named = named.filter(|operation| {
            let parameters = operation["parameters"].as_array().unwrap();
            // A list that is filtered by a policy has the word in the query alone.
            ["path", "query"].iter().all(|place| {
                let is_meant = |p: &&Value| p["name"] == "policyId" && p["in"] == *place;
                let found = parameters.iter().find(is_meant);
                found.is_some_and(|p| p["required"] == (*place == "path"))
            })
        });
        assert_eq!(
            named.count(),
            16,
            "four families of three, authority of three, revisions"
        );
    });
}

/// Proves PO-9.
#[test]
fn every_family_takes_an_id_from_the_query() {
    each("policy_ids_families", |app: Arc<App>| async move {
        app.skill("pdf-filler").await;
        for (family, id) in FAMILIES.into_iter().zip(["c//d", "a//d", "r//d", "s//d"]) {
            if family == "skill-acls" {
                let mut seed = definition(family, "seed-skill-acls", "pdf-filler");
                seed["enabled"] = false.into();
                app.write("POST", "/skill-acls", json!({ "definition": seed }))
                    .await
                    .ok();
            }
            of_an_earlier_build(&app, family, id).await;
            let found = app.get(&format!("/{family}/-?policyId={id}")).await;
            assert_eq!(found.ok()["item"]["id"], id);
            let mut next = definition(family, id, "pdf-filler");
            next["enabled"] = false.into();
            let changed = app
                .write("PUT", &format!("/{family}/-?policyId={id}"), put(&next, 1))
                .await;
            assert_eq!(changed.ok()["item"]["currentRevision"], 2);
            let gone = app
                .delete(&format!("/{family}/-?policyId={id}&expectedRevision=2"))
                .await;
            assert_eq!((gone.status.as_u16(), gone.header("x-policy-id")), (204, id));
        }
    });
}

/// Proves RT-1.
#[test]
fn a_path_with_words_behind_its_id_has_the_methods_of_what_it_names() {
    each("policy_methods", |app: Arc<App>| async move {
        for (path, method, allow) in [
            ("/policy-authority/a", "POST", "GET, HEAD, OPTIONS"),
            ("/policy-authority/claim", "POST", "GET, HEAD, OPTIONS"),
            ("/policy-authority/a%2Fclaim", "POST", "GET, HEAD, OPTIONS"),
            ("/policy-authority/a/claim", "PUT", "POST, GET, HEAD, OPTIONS"),
            (
                "/policy-authority/a/b/release",
                "DELETE",
                "POST, GET, HEAD, OPTIONS",
            ),
            ("/content-policies/a/b", "POST", "GET, PUT, DELETE, HEAD, OPTIONS"),
        ] {
            let refused = app.request(method, path).json(json!({})).send().await;
            refused.refused(405, "method_not_allowed");
            assert_eq!(refused.header("allow"), allow, "{path}");
            let options = app.request("OPTIONS", path).send().await;
            assert_eq!(
                (options.status.as_u16(), options.header("allow")),
                (204, allow),
                "{path}"
            );
        }
        let document = provost_kernel::expose::openapi::document(&app.kernel.registry);
        let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
        for shown in [
            "/policy-authority/{policyId}/claim",
            "/policy-authority/{policyId}",
            "/skill-acls/{policyId}",
        ] {
            assert!(paths.iter().any(|path| path.ends_with(shown)), "{shown}");
        }
        assert!(!document.to_string().contains("{*"));
    });
}

#[test]
fn names_are_resolved_to_ids_and_the_definition_keeps_them() {
    each("policy_names", |app: Arc<App>| async move {
        let (alice, staff) = (user(&app, "Alice@Acme.example").await, group(&app, "Staff").await);
        let (account, _) = app.account("deployer", "viewer", &["policies:read"]).await;
        let resource = make_resource(&app).await;
        let resource_name = app.get(&format!("/resources/{resource}")).await.ok()["name"].clone();
        let skill = app.skill("pdf-filler").await;
        let mut wanted = definition("resource-policies", "names", "");
        wanted["appliesTo"] = json!({
            "users": ["alice@acme.EXAMPLE", { "name": "Alice@Acme.example", "directoryId": "default" }], "groups": [staff, "staff"],
            "serviceAccounts": ["Deployer"], "resources": [resource_name], "devices": ["laptop 7"],
        });
        wanted["conditions"] = json!({ "any": [
            { "field": "identity.user_id", "op": "in", "value": ["alice@acme.example", "somebody else"] },
            { "field": "identity.group_ids", "op": "contains", "value": "STAFF" },
            { "field": "identity.service_account_id", "op": "neq", "value": "deployer" },
            { "field": "identity.user_id", "op": "starts_with", "value": "alice@acme.example" },
            { "field": "resource.id", "op": "eq", "value": resource_name },
        ] });
        wanted["except"] =
            json!({ "not": { "field": "identity.user_id", "op": "eq", "value": "Alice@acme.example" } });
        let made = app
            .write("POST", "/resource-policies", json!({ "definition": wanted }))
            .await;
        assert_eq!(made.ok()["item"]["definition"], wanted, "as authored");
        let mut acl = definition("skill-acls", "acl", "pdf-filler");
        acl["subjects"] = json!({ "groups": ["staff"] });
        app.write("POST", "/skill-acls", json!({ "definition": acl }))
            .await
            .ok();
        let org = app.organization.clone();
        let live = app
            .kernel
            .read_system(move |tx| policies::live(tx, &org))
            .await
            .unwrap();
        let bound = |id: &str| {
            live.set
                .policies()
                .iter()
                .find(|p| p.id() == id)
                .unwrap()
                .authored()
                .clone()
        };
        let resolved = bound("names");
        let scope = json!({ "users": [alice], "groups": [staff], "serviceAccounts": [account], "resources": [resource], "devices": ["laptop 7"] });
        assert_eq!(resolved["appliesTo"], scope);
        let any = &resolved["conditions"]["any"];
        assert_eq!(any[0]["value"], json!([alice, "somebody else"]));
        assert_eq!(
            (&any[1]["value"], &any[2]["value"]),
            (&json!(staff), &json!(account))
        );
        assert_eq!(
            (&any[3]["value"], &any[4]["value"]),
            (&json!("alice@acme.example"), &json!(resource))
        );
        assert_eq!(resolved["except"]["not"]["value"], json!(alice));
        assert_eq!(
            (&bound("acl")["skillId"], &bound("acl")["subjects"]),
            (&json!(skill), &json!({ "groups": [staff] }))
        );
    });
}

#[test]
fn missing_and_ambiguous_names_are_told_apart() {
    each("policy_bad_names", |app: Arc<App>| async move {
        user(&app, "twin").await;
        let other = json!({ "loginName": "twin", "directoryId": "another" });
        app.write("POST", "/directory/users", other).await.ok();
        let suspended = json!({ "loginName": "Twin", "directoryId": "third" });
        let third = app.write("POST", "/directory/users", suspended).await.ok()["user"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        app.write("POST", &format!("/directory/users/{third}/suspend"), json!({}))
            .await
            .ok();
        let mut wanted = definition("content-policies", "names", "");
        wanted["appliesTo"] = json!({
            "users": ["twin", "nobody", { "name": "twin", "directoryId": "another" }, { "name": "twin", "directoryId": "nowhere" }],
            "groups": ["nothing"], "serviceAccounts": ["nothing"],
        });
        wanted["conditions"] = json!({ "field": "identity.user_id", "op": "eq", "value": "twin" });
        let refused = create(&app, &wanted).await;
        refused.refused(422, "invalid_definition");
        let errors: Vec<(String, String)> = refused.json["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| {
                (
                    e["path"].as_str().unwrap().to_owned(),
                    e["message"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        let told = |path: &str| {
            let path = format!("/definition{path}");
            errors
                .iter()
                .find(|(known, _)| *known == path)
                .map_or("", |(_, message)| message)
        };
        assert_eq!(
            told("/appliesTo/users/0"),
            "names 3 users; name the directory with directoryId, or write the id"
        );
        assert_eq!(told("/appliesTo/users/1"), "names no user of this organization");
        assert_eq!(told("/appliesTo/users/2"), "");
        assert_eq!(told("/appliesTo/users/3"), "names no user of this organization");
        assert_eq!(told("/appliesTo/groups/0"), "names no group of this organization");
        assert_eq!(
            told("/appliesTo/serviceAccounts/0"),
            "names no service account of this organization"
        );
        assert!(
            told("/conditions/value").starts_with("names 3 users;"),
            "{errors:?}"
        );
        assert!(!refused.text().contains("nobody"), "a refusal quotes nothing");
        let mut acl = definition("skill-acls", "acl", "no-skill");
        let refused = app
            .write("POST", "/skill-acls", json!({ "definition": acl }))
            .await;
        assert_eq!(refused.json["errors"][0]["path"], "/definition/skillId");
        acl["skillId"] = "nul\u{0}".into();
        app.write("POST", "/skill-acls", json!({ "definition": acl }))
            .await
            .refused(422, "invalid_definition");
        let mut wanted = definition("resource-policies", "resources", "");
        wanted["appliesTo"] = json!({ "resources": ["no such resource", "nul\u{0}"] });
        let refused = app
            .write("POST", "/resource-policies", json!({ "definition": wanted }))
            .await;
        assert_eq!(
            refused.json["errors"].as_array().unwrap().len(),
            2,
            "{}",
            refused.text()
        );
        // As many names as a scope may hold.
        for number in 0..20 {
            user(&app, &format!("many{number}")).await;
        }
        let mut wanted = definition("content-policies", "many", "");
        let names: Vec<String> = (0..256).map(|n| format!("many{n}")).collect();
        wanted["appliesTo"] = json!({ "users": names });
        let refused = create(&app, &wanted).await;
        assert_eq!(refused.json["errors"].as_array().unwrap().len(), 20);
        assert_eq!(
            refused.json["errors"][0]["path"],
            "/definition/appliesTo/users/20"
        );
    });
}

/// Proves PO-8.
#[test]
fn an_id_belongs_to_one_policy_for_ever() {
    each("policy_tombstones", |app: Arc<App>| async move {
        let wanted = definition("content-policies", "one", "");
        create(&app, &wanted).await.ok();
        let again = create(&app, &wanted).await;
        again.refused(409, "already_exists");
        let access = json!({ "definition": definition("access-policies", "one", "") });
        app.write("POST", "/access-policies", access.clone())
            .await
            .refused(409, "already_exists");
        let stale = json!({ "definition": wanted, "expectedRevision": 3 });
        app.write("POST", "/content-policies", stale)
            .await
            .refused(409, "conflict");
        app.delete("/content-policies/one")
            .await
            .refused(400, "invalid_request");
        let stale = app.delete("/content-policies/one?expectedRevision=2").await;
        stale.refused(409, "conflict");
        assert_eq!(stale.json["currentRevision"], 1);
        assert_eq!(
            app.delete("/content-policies/one?expectedRevision=1")
                .await
                .status
                .as_u16(),
            204
        );
        for path in [
            "/content-policies/one",
            "/policy-authority/one",
            "/policies/revisions/one",
        ] {
            app.get(path).await.refused(404, "not_found");
        }
        app.write("PUT", "/content-policies/one", put(&wanted, 1))
            .await
            .refused(404, "not_found");
        let claim = json!({ "expectedRevision": 1, "managerId": "a", "managerInstance": "b" });
        app.write("POST", "/policy-authority/one/claim", claim)
            .await
            .refused(404, "not_found");
        assert_eq!(app.get("/policies").await.ok()["policies"], json!([]));
        // Not for another family, and not for Terraform: it was the service's.
        app.write("POST", "/access-policies", access)
            .await
            .refused(409, "already_exists");
        let plan = json!({ "family": "content", "definition": wanted, "expectedRevision": 0 });
        let call = app
            .request("POST", "/policy-plans/validate")
            .header("x-forge-terraform-manager", "a")
            .header("x-forge-terraform-instance", "b");
        call.json(plan).send().await.refused(409, "conflict");
        let revived = create(&app, &wanted).await;
        assert_eq!(revived.ok()["item"]["currentRevision"], 2);
        assert_eq!(
            app.get("/policies").await.ok()["policies"][0]["currentRevision"],
            2
        );
        let history = app.get("/policies/revisions/one").await;
        assert_eq!(history.ok()["revisions"].as_array().unwrap().len(), 2);
        // One revision with what was authored.
        let first = app.get("/policies/revisions/one?revision=1").await;
        assert_eq!(first.ok()["revisions"][0]["definition"], wanted);
        app.get("/policies/revisions/one?revision=3")
            .await
            .refused(404, "not_found");
    });
}

/// Proves PO-7.
#[test]
fn what_a_deleted_owner_left_can_be_taken_over() {
    each("policy_orphans", |app: Arc<App>| async move {
        let (account, token) = app.account("terraform", "admin", &["policies:write"]).await;
        let wanted = definition("content-policies", "one", "");
        create(&app, &wanted).await.ok();
        let claim = json!({ "expectedRevision": 1, "managerId": "a", "managerInstance": "b" });
        let claimed = app.request("POST", "/policy-authority/one/claim").token(&token);
        claimed
            .json(with_trio(claim.clone(), &fresh_key()))
            .send()
            .await
            .ok();
        app.write("PUT", "/content-policies/one", put(&wanted, 1))
            .await
            .refused(409, "conflict");
        app.delete(&format!("/service-accounts/{account}")).await;
        let written = app.write("PUT", "/content-policies/one", put(&wanted, 1)).await;
        assert_eq!(written.ok()["item"]["managementMode"], "forge");
        let claimed = app
            .write(
                "POST",
                "/policy-authority/one/claim",
                json!({ "expectedRevision": 2, "managerId": "a", "managerInstance": "b" }),
            )
            .await;
        assert_eq!(claimed.ok()["item"]["managementMode"], "terraform");
    });
}

#[test]
fn lists_have_filters_and_pages() {
    each("policy_lists", |app: Arc<App>| async move {
        let mut expected = Vec::new();
        for number in 0..7 {
            let collection = ["content-policies", "access-policies"][number % 2];
            let mut wanted = definition(collection, &format!("p{number}"), "");
            wanted["name"] = format!("Nr {number} of 100%_").into();
            wanted["enabled"] = (number % 3 != 0).into();
            app.write("POST", &format!("/{collection}"), json!({ "definition": wanted }))
                .await
                .ok();
            expected.push(format!("p{number}"));
        }
        let ids = async |query: &str| {
            let mut found = Vec::new();
            let mut cursor = String::new();
            loop {
                let page = app.get(&format!("/policies?limit=2{query}{cursor}")).await;
                let page = page.ok();
                found.extend(
                    page["policies"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|p| p["id"].as_str().unwrap().to_owned()),
                );
                match page["nextCursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => return found,
                }
            }
        };
        assert_eq!(ids("").await, expected);
        assert_eq!(ids("&family=access").await, ["p1", "p3", "p5"]);
        assert_eq!(ids("&family=skill_acl").await, [""; 0]);
        assert_eq!(ids("&enabled=false").await, ["p0", "p3", "p6"]);
        assert_eq!(ids("&enabled=true&family=access").await, ["p1", "p5"]);
        assert_eq!(ids("&query=nR%203").await, ["p3"]);
        assert_eq!(ids("&query=P4").await, ["p4"]);
        assert_eq!(ids("&query=0%25_").await, expected);
        assert_eq!(ids("&query=0%25%25").await, [""; 0]);
        app.get("/policies?family=mcp")
            .await
            .refused(400, "invalid_request");
        app.get("/policies?cursor=abc")
            .await
            .refused(400, "invalid_request");
        let one = &app.get("/policies?query=p1").await.ok()["policies"][0].clone();
        assert!(one.get("definition").is_none());
        assert_eq!(
            (&one["action"], &one["enabled"], &one["managementMode"]),
            (&json!("flag_for_review"), &json!(true), &json!("forge"))
        );
        for number in 2..9 {
            let wanted = definition("content-policies", "p0", "");
            app.write("PUT", "/content-policies/p0", put(&wanted, number - 1))
                .await
                .ok();
        }
        let first = app.get("/policies/revisions/p0?limit=5").await;
        let numbers = |reply: &Reply| {
            reply.ok()["revisions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|r| r["revision"].as_i64().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers(&first), [8, 7, 6, 5, 4]);
        let cursor = first.json["nextCursor"].as_str().unwrap();
        let second = app
            .get(&format!("/policies/revisions/p0?limit=5&cursor={cursor}"))
            .await;
        assert_eq!(numbers(&second), [3, 2, 1]);
        assert!(second.json.get("nextCursor").is_none());
        // A cursor belongs to one list.
        app.get(&format!("/policies/versions?cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
    });
}

#[test]
fn the_log_and_the_events_hold_no_definition() {
    each("policy_audit", |app: Arc<App>| async move {
        let mut wanted = definition("content-policies", "secret/plan", "");
        wanted["message"] = "WORDS OF THE POLICY".into();
        let made = create(&app, &wanted).await;
        let digest = made.ok()["item"]["definitionSha256"].clone();
        wanted["action"] = "nudge".into();
        wanted["acknowledgeBroadScope"] = true.into();
        app.write("PUT", "/content-policies/secret/plan", put(&wanted, 1))
            .await
            .ok();
        assert_eq!(
            app.delete("/content-policies/secret/plan?expectedRevision=2")
                .await
                .status
                .as_u16(),
            204
        );
        app.settle().await;
        let entries = app.entries(&app.organization, 0).await;
        let ours: Vec<&Value> = entries
            .iter()
            .filter(|e| e.to_string().contains("secret/plan"))
            .collect();
        assert_eq!(ours.len(), 3, "{ours:#?}");
        assert!(ours[0].to_string().contains(digest.as_str().unwrap()));
        assert!(ours[1].to_string().contains("/action") && ours[1].to_string().contains("nudge"));
        assert!(
            entries
                .iter()
                .all(|entry| !entry.to_string().contains("WORDS OF"))
        );
        let events = app.events(0).await;
        let kinds: Vec<&str> = events
            .iter()
            .map(|(kind, _)| kind.as_str())
            .filter(|k| k.starts_with("policy"))
            .collect();
        assert_eq!(
            kinds,
            [
                "policy_set.version_created",
                "policy.created",
                "policy_set.version_created",
                "policy.updated",
                "policy_set.version_created",
                "policy.deleted"
            ]
        );
        assert!(
            events
                .iter()
                .all(|(_, data)| !data.to_string().contains("WORDS OF"))
        );
    });
}
