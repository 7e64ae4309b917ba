//! Who is decided about: names become ids, and groups are the directory's.

use super::{content, decide, decide_one, policy};
use crate::areas::directory;
use crate::support::{App, each};
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

/// Blocks tool calls of a group's members.
async fn blocked_group(app: &App) -> (String, String) {
    let (group, user) = (
        directory::group(app, "contractors").await,
        directory::user(app, "ann@acme.test").await,
    );
    let path = format!("/directory/groups/{group}/members/{user}");
    app.write("PUT", &path, json!({})).await.ok();
    let change = json!({ "appliesTo": { "groups": ["contractors"] }, "acknowledgeBroadScope": null });
    policy(app, Family::Content, content("p", "block", &change)).await;
    (group, user)
}

#[test]
fn groups_are_those_of_the_directory_whatever_the_caller_says() {
    each("decide_groups", |app: Arc<App>| async move {
        let (group, ann) = blocked_group(&app).await;
        let bob = directory::user(&app, "bob@acme.test").await;
        let action = async |attributes: Value| {
            let mut all = json!({ "tool.id": "t" });
            all.as_object_mut()
                .unwrap()
                .extend(attributes.as_object().unwrap().clone());
            decide_one(&app, &all).await
        };
        for claimed in [
            json!({}),
            json!({ "identity.group_ids": [] }),
            json!({ "identity.group_ids": ["grp_other"] }),
        ] {
            for name in [ann.as_str(), "ann@acme.test", "ANN@Acme.Test"] {
                let mut event = claimed.clone();
                event["identity.user_id"] = name.into();
                let decision = action(event).await;
                assert_eq!(
                    (&decision["action"], &decision["unknown"]),
                    (&json!("block"), &json!(false))
                );
            }
        }
        let claimed = json!({ "identity.user_id": bob, "identity.group_ids": [group] });
        assert_eq!(action(claimed).await["action"], "allow");
        // Without a user there are no groups, whatever is claimed.
        let claimed = json!({ "identity.group_ids": [group] });
        assert_eq!(action(claimed).await["action"], "allow");
        // A stranger to the directory: what the caller says may be so, and nobody knows when it says nothing.
        let claimed = json!({ "identity.user_id": "okta|17", "identity.group_ids": [group] });
        assert_eq!(action(claimed).await["action"], "block");
        let claimed = json!({ "identity.user_id": "okta|17", "identity.group_ids": ["grp_other"] });
        assert_eq!(action(claimed).await["action"], "allow");
        let decision = action(json!({ "identity.user_id": "okta|17" })).await;
        assert_eq!(
            (&decision["action"], &decision["unknown"]),
            (&json!("block"), &json!(true))
        );
    });
}

#[test]
fn a_suspended_user_keeps_its_groups_and_its_name() {
    each("decide_suspended", |app: Arc<App>| async move {
        let (_, ann) = blocked_group(&app).await;
        app.write("POST", &format!("/directory/users/{ann}/suspend"), json!({}))
            .await
            .ok();
        let by_id = decide_one(&app, &json!({ "tool.id": "t", "identity.user_id": ann })).await;
        assert_eq!(
            (&by_id["action"], &by_id["unknown"]),
            (&json!("block"), &json!(false))
        );
        let by_name = decide_one(
            &app,
            &json!({ "tool.id": "t", "identity.user_id": "ann@acme.test" }),
        )
        .await;
        assert_eq!(
            (&by_name["action"], &by_name["unknown"]),
            (&json!("block"), &json!(false))
        );
    });
}

#[test]
fn a_skill_is_decided_about_by_whatever_name_it_goes() {
    each("decide_skills", |app: Arc<App>| async move {
        let item = app.skill("reading").await;
        let acl =
            json!({ "id": "acl", "skillId": "reading", "subjects": { "everyone": true }, "effect": "block" });
        policy(&app, Family::SkillAcl, acl).await;
        let event = |name: &str| json!({ "occasion": "skill", "attributes": { "skill.id": name } });
        let decisions = decide(&app, &[event(&item), event("reading"), event("writing")]).await;
        let actions: Vec<&Value> = decisions.iter().map(|one| &one["action"]).collect();
        assert_eq!(actions, ["block", "block", "allow"]);
    });
}

#[test]
fn an_allow_list_blocks_whom_it_does_not_cover() {
    each("decide_allow_list", |app: Arc<App>| async move {
        let item = app.skill("reading").await;
        let (ann, bob) = (
            directory::user(&app, "ann").await,
            directory::user(&app, "bob").await,
        );
        let acl =
            json!({ "id": "acl", "skillId": item, "subjects": { "users": ["ann"] }, "effect": "allow" });
        policy(&app, Family::SkillAcl, acl).await;
        let event = |user: &str| json!({ "occasion": "skill", "attributes": { "skill.id": item, "identity.user_id": user } });
        let decisions = decide(&app, &[event(&ann), event(&bob)]).await;
        assert_eq!(decisions[0]["action"], "allow");
        assert_eq!(decisions[1]["action"], "block");
        assert_eq!(decisions[1]["reasons"][0]["reason"], "not_allowed");
    });
}
