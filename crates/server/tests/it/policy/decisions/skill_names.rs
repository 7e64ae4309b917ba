//! What skills are called, and what a publisher gains by choosing a name: nothing that was guarded is guarded less (SK-9).

use super::{decide, policy};
use crate::areas::skills::{archive, skill};
use crate::support::{App, each, fresh_key, with_trio};
use provost_policy::Family;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An archive of one folder with a `SKILL.md` that says this name.
fn named_skill(folder: &str, name: &str) -> Vec<u8> {
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\n");
    archive(&[(&format!("{folder}/SKILL.md"), &text)])
}

/// Proves SK-9, WD-1.
#[test]
fn a_skill_is_blocked_by_the_names_of_its_front_matter_and_its_folder() {
    each("words_skill_names", |app: Arc<App>| async move {
        let published = app
            .publish("?folder=Old%20Folder", named_skill("deployer", "Deploy It: Now"))
            .await;
        let published = published.ok().clone();
        assert_eq!(published["item"]["name"], "deployer");
        assert!(
            published["warnings"].to_string().contains("Deploy It: Now"),
            "{published}"
        );
        let id = published["item"]["id"].as_str().unwrap().to_owned();
        let scoped = app
            .publish("?namespace=@acme", named_skill("scoped", "Scoped Name"))
            .await;
        let scoped = scoped.ok()["item"]["id"].as_str().unwrap().to_owned();
        for (acl, skill) in [("acl", "deploy it: NOW"), ("scoped", "@acme/scoped name")] {
            let acl =
                json!({ "id": acl, "skillId": skill, "subjects": { "everyone": true }, "effect": "block" });
            policy(&app, Family::SkillAcl, acl).await;
        }
        let event = |word: &str| json!({ "occasion": "skill", "attributes": { "skill.id": word } });
        let check = async |word: &str, action: &str| {
            let decision = decide(&app, &[event(word)]).await.remove(0);
            assert_eq!(decision["action"], action, "{word:?}");
        };
        let words = [
            "deployer",
            "Deploy It: Now",
            "deploy it: now@2",
            " DEPLOY IT:\u{200b} NOW",
            "old folder",
            id.as_str(),
            "scoped",
            "Scoped Name",
            "@acme/Scoped Name",
            scoped.as_str(),
        ];
        for word in words {
            check(word, "block").await;
        }
        for word in ["deploy it", "now", "@acme/old folder", "@other/scoped name"] {
            check(word, "allow").await;
        }
        // Another version has another name; machines still have the one before. So it is when nobody gets it any more.
        app.publish("", named_skill("deployer", "Ship It")).await.ok();
        // The same content from another folder adds that name, and nothing else.
        let same = app
            .publish("?folder=shipper", named_skill("deployer", "Ship It"))
            .await;
        assert_eq!(
            (same.status.as_u16(), &same.json["created"]),
            (200, &json!(false))
        );
        let path = format!("/skill-registry/{id}/withdraw");
        app.write("POST", &path, json!({ "confirm": true })).await.ok();
        for word in words.into_iter().chain(["ship it", "Shipper"]) {
            check(word, "block").await;
        }
    });
}

/// Proves SK-9.
#[test]
fn a_name_of_two_skills_frees_neither_and_opens_nothing() {
    each("words_skill_several", |app: Arc<App>| async move {
        let one = app.publish("", named_skill("one", "Shared Name")).await;
        assert!(!one.ok()["warnings"].to_string().contains("also means"));
        let acl =
            json!({ "id": "acl", "skillId": "one", "subjects": { "everyone": true }, "effect": "block" });
        policy(&app, Family::SkillAcl, acl).await;
        let other = app.publish("", named_skill("other", "shared name")).await;
        let one = one.json["item"]["id"].as_str().unwrap();
        assert!(
            other.ok()["warnings"].to_string().contains(one),
            "{}",
            other.text()
        );
        // The registry's name of one is the folder of another.
        let third = app.publish("?folder=one", named_skill("third", "third")).await;
        assert!(
            third.ok()["warnings"].to_string().contains(one),
            "{}",
            third.text()
        );
        let event = |word: &str| json!({ "occasion": "skill", "attributes": { "skill.id": word } });
        for (word, action) in [
            ("Shared Name", "block"),
            ("one", "block"),
            ("other", "allow"),
            ("third", "allow"),
        ] {
            let decision = decide(&app, &[event(word)]).await.remove(0);
            assert_eq!(decision["action"], action, "{word:?}");
        }
        // A definition cannot choose among them, and a token of one is not admitted by what another is called.
        let acl = json!({ "id": "b", "skillId": "shared name", "subjects": { "everyone": true }, "effect": "allow" });
        let body = with_trio(json!({ "definition": acl }), &fresh_key());
        let refused = app.request("POST", "/skill-acls").json(body).send().await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        let (_, person) = app.account("a person", "viewer", &[]).await;
        let receipt = app.install(&person, "other", "laptop").await;
        let gateway = receipt.ok()["gatewayToken"]["token"].as_str().unwrap().to_owned();
        for (word, is_admitted) in [("other", true), ("Shared Name", false)] {
            let asked = app.request("POST", "/policies/decisions").token(&gateway);
            let reply = asked.json(json!({ "events": [event(word)] })).send().await;
            assert_eq!(reply.status.is_success(), is_admitted, "{word}: {}", reply.text());
        }
    });
}

/// Proves SK-9.
#[test]
fn names_that_would_be_somebody_elses_or_too_many_are_refused() {
    each("words_skill_refused", |app: Arc<App>| async move {
        let item = app.skill("deploy").await;
        for name in [item.as_str(), "SKI_x"] {
            let refused = app.publish("", named_skill("other", name)).await;
            refused.refused(422, "invalid_definition");
        }
        for count in 0..33 {
            let reply = app
                .publish(&format!("?folder=folder%20{count}"), skill("deploy", "first"))
                .await;
            match count {
                0..32 => assert_eq!(reply.status, 200, "{count}: {}", reply.text()),
                _ => reply.refused(409, "conflict"),
            }
        }
    });
}

/// What policies say of some skill: whether it is blocked, and every policy that matched and does more than allow.
async fn said(app: &App, user: &str, word: &str) -> BTreeSet<String> {
    let attributes = json!({ "skill.id": word, "identity.user_id": user });
    let event = json!({ "occasion": "skill", "attributes": attributes });
    let decision = decide(app, &[event]).await.remove(0);
    let reasons = decision["reasons"].as_array().unwrap().iter();
    let guards = reasons.filter(|reason| reason["action"] != "allow");
    let mut said: BTreeSet<String> = guards
        .map(|reason| reason["policyId"].as_str().unwrap().to_owned())
        .collect();
    said.extend((decision["action"] == "block").then(|| "blocked".to_owned()));
    said
}

const GUARDED: [&str; 4] = ["guarded", "listed", "bobs", "free"];

/// Lists of every form: nobody may, one may, one may not. Skills can be named nowhere else in a policy.
async fn guards(app: &App) {
    for login in ["ada", "bob"] {
        let user = json!({ "loginName": login });
        app.write("POST", "/directory/users", user).await.ok();
    }
    for (id, skill, subjects, effect) in [
        ("nobody", "guarded", json!({ "everyone": true }), "block"),
        ("ada-alone", "listed", json!({ "users": ["ada"] }), "allow"),
        ("not-bob", "bobs", json!({ "users": ["bob"] }), "block"),
    ] {
        let acl = json!({ "id": id, "skillId": skill, "subjects": subjects, "effect": effect });
        policy(app, Family::SkillAcl, acl).await;
    }
}

/// Proves SK-9, NW-1.
#[test]
fn no_name_that_a_publisher_chooses_frees_what_was_guarded() {
    each("skill_names_hostile", |app: Arc<App>| async move {
        let mut words = vec!["Unknown Tool".to_owned()];
        for name in GUARDED {
            words.push(app.skill(name).await);
            words.extend([name.to_owned(), name.to_uppercase(), format!("{name}@2")]);
        }
        guards(&app).await;
        let all = async || {
            let mut all = Vec::new();
            for user in ["ada", "bob"] {
                for word in &words {
                    all.push((user, word.clone(), said(&app, user, word).await));
                }
            }
            all
        };
        let mut before = all().await;
        let blocked = before.iter().filter(|(_, _, said)| said.contains("blocked"));
        // Four words of what nobody may, and of what one may not, for each whom it keeps out.
        assert_eq!(blocked.count(), 4 * 2 + 4 + 4);
        for (query, folder, name) in [
            ("?namespace=@evil", "guarded", "guarded"),
            ("", "evil", "GUARDED\u{200b}"),
            ("?folder=Unknown%20Tool", "evil", "evil"),
            ("?folder=free", "evil", "evil"),
            ("?folder=%40evil%2Fguarded", "evil", "Guarded@1"),
            ("?namespace=@evil&folder=listed", "lists", "lists"),
            ("?namespace=@evil&folder=bobs", "more", "Unknown Tool@3"),
            ("?folder=free%401", "listed", "guarded and more"),
        ] {
            app.publish(query, named_skill(folder, name)).await.ok();
            let after = all().await;
            for ((user, word, was), (_, _, is)) in before.iter().zip(&after) {
                let lost: Vec<&String> = was.difference(is).collect();
                assert!(
                    lost.is_empty(),
                    "{query} {folder} {name}: {user} {word} lost {lost:?}"
                );
            }
            before = after;
        }
    });
}

/// Proves SK-9, NW-1.
#[test]
fn a_name_of_several_skills_is_guarded_like_each_of_them() {
    each("skill_names_each", |app: Arc<App>| async move {
        let mut ids = BTreeMap::new();
        for name in GUARDED {
            ids.insert(name, app.skill(name).await);
        }
        guards(&app).await;
        for (at, one) in GUARDED.into_iter().enumerate() {
            for other in &GUARDED[at + 1..] {
                let shared = format!("{one} and {other}");
                let query = format!("?folder={}", shared.replace(' ', "%20"));
                for name in [one, other] {
                    let published = app.publish(&query, skill(name, "first")).await;
                    let warnings = published.ok()["warnings"].to_string();
                    assert!(warnings.contains("was not called so before"), "{warnings}");
                }
                for user in ["ada", "bob"] {
                    let each = &said(&app, user, &ids[one]).await | &said(&app, user, &ids[other]).await;
                    let several = said(&app, user, &shared.to_uppercase()).await;
                    let lost: Vec<&String> = each.difference(&several).collect();
                    assert!(lost.is_empty(), "{user}: {shared} lost {lost:?}");
                }
            }
        }
    });
}

/// Proves SK-9.
#[test]
fn a_skill_of_a_namespace_is_found_behind_it_by_names_with_slashes() {
    each("skill_names_slashes", |app: Arc<App>| async move {
        let published = app
            .publish("?namespace=@acme", named_skill("ship", "team/Ship It"))
            .await;
        published.ok();
        let acl = json!({ "id": "acl", "skillId": "@acme/ship", "subjects": { "everyone": true }, "effect": "block" });
        policy(&app, Family::SkillAcl, acl).await;
        for (word, is_blocked) in [
            ("team/ship it", true),
            ("@acme/team/ship it", true),
            ("@acme/ship", true),
            ("ship it", false),
            ("@other/team/ship it", false),
        ] {
            assert_eq!(
                said(&app, "ada", word).await.contains("blocked"),
                is_blocked,
                "{word}"
            );
        }
    });
}
