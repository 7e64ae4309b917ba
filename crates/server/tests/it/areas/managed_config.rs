//! See the module above.

use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::{App, fresh_key, with_trio};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent,
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    body,
    content,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

const PROFILES: &str = "/managed-config/profiles";

pub fn absent(ulid: &str) -> Ids {
    vec![
        ("profileId", format!("prof_{ulid}")),
        ("releaseId", format!("mcr_{ulid}")),
        ("targetId", format!("machine-{ulid}")),
    ]
}

/// A profile with two releases that say different things: the first one can be restored.
async fn released(app: &App) -> (String, String) {
    let body = json!({ "name": fresh_key(), "target": "generic_json" });
    let made = app.write("POST", PROFILES, body).await;
    let profile = made.ok()["profile"]["id"].as_str().unwrap().to_owned();
    let mut first = String::new();
    for value in [2, 1] {
        let body = json!({ "content": { "enforced": { "value": value } } });
        let path = format!("{PROFILES}/{profile}/releases");
        let release = app.write("POST", &path, body).await;
        if first.is_empty() {
            release.ok()["release"]["id"]
                .as_str()
                .unwrap()
                .clone_into(&mut first);
        }
    }
    (profile, first)
}

pub async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    if !parameters.contains(&"profileId") {
        return vec![];
    }
    let (profile, release) = released(app).await;
    if operation == "reportHeadlessManagedConfigTarget" {
        // Made now rather than by a call that may be watched for what it leaves.
        app.machine().await;
    }
    let mut ids = vec![];
    if parameters.contains(&"targetId") {
        ids.push(("targetId", reported(app, &profile).await));
    }
    ids.extend([("profileId", profile), ("releaseId", release)]);
    ids
}

/// A machine of a profile.
async fn reported(app: &App, profile: &str) -> String {
    let body = report();
    let target = body["targetId"].as_str().unwrap().to_owned();
    let call = app.request("POST", &format!("{PROFILES}/{profile}/reports"));
    let call = call.json(with_trio(body, &fresh_key()));
    call.by_machine().send().await.ok();
    target
}

fn report() -> Value {
    json!({
        "targetId": fresh_key(), "releaseId": "mcr_01kadh5j9v0000000000000000",
        "contentDigest": format!("sha256:{}", "0".repeat(64)), "state": "applied",
    })
}

pub fn body(operation: &str, _target: &Target) -> Option<Value> {
    Some(match operation {
        "createHeadlessManagedConfigProfile" => json!({ "name": fresh_key(), "target": "generic_json" }),
        "updateHeadlessManagedConfigProfile" => json!({ "name": fresh_key() }),
        "publishHeadlessManagedConfigRelease" => {
            json!({ "content": { "enforced": { "value": fresh_key() } } })
        }
        "reportHeadlessManagedConfigTarget" => report(),
        _ => return None,
    })
}

pub fn content(_operation: &str) -> Option<(&'static str, Vec<u8>)> {
    None
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    if !operation.contains("ManagedConfig") {
        return None;
    }
    if operation == "createHeadlessManagedConfigProfile" {
        let body = json!({ "name": format!("made by {unique}"), "target": "codex", "autoPublish": "on" });
        return Some(Fixture::json("POST", PROFILES, body, None));
    }
    let (profile, release) = released(app).await;
    let path = format!("{PROFILES}/{profile}");
    Some(match operation {
        "updateHeadlessManagedConfigProfile" => {
            let body = json!({ "name": format!("named by {unique}"), "onUnavailable": "fail_closed" });
            Fixture::json("PATCH", path, body, None)
        }
        "archiveHeadlessManagedConfigProfile" => {
            Fixture::json("POST", format!("{path}/archive"), json!({}), None)
        }
        "restoreHeadlessManagedConfigProfile" => {
            app.write("POST", &format!("{path}/archive"), json!({}))
                .await
                .ok();
            Fixture::json("POST", format!("{path}/restore"), json!({}), None)
        }
        "publishHeadlessManagedConfigRelease" => {
            let body = json!({ "content": { "enforced": { "value": unique } }, "automatic": false });
            let event = Some("managed_config.release.published");
            Fixture::json("POST", format!("{path}/releases"), body, event)
        }
        "rollbackHeadlessManagedConfigProfile" => {
            let body = json!({ "sourceReleaseId": release, "confirm": true });
            let event = Some("managed_config.release.rolled_back");
            Fixture::json("POST", format!("{path}/rollback"), body, event)
        }
        "reportHeadlessManagedConfigTarget" => {
            Fixture::json("POST", format!("{path}/reports"), report(), None)
        }
        "forgetHeadlessManagedConfigTarget" => {
            let target = reported(app, &profile).await;
            Fixture::json("DELETE", format!("{path}/targets/{target}"), json!({}), None)
        }
        other => panic!("say here how {other} is called"),
    })
}

pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    if !operation.contains("ManagedConfig") {
        return None;
    }
    let mut body = body.clone();
    body[member] = match member {
        "target" => json!("claude_code"),
        "autoPublish" => json!("off"),
        "onUnavailable" => json!("last_known"),
        "content" => json!({ "enforced": { "value": "another" } }),
        "automatic" => json!(true),
        "contentDigest" => json!(format!("sha256:{}", "1".repeat(64))),
        "state" => json!("verified"),
        _ => return None,
    };
    Some(body)
}

pub async fn state(app: &App) -> Value {
    let mut state = Vec::new();
    let mut path = format!("{PROFILES}?limit=100");
    loop {
        let page = app.get(&path).await;
        let profiles = page.ok()["profiles"].as_array().unwrap().clone();
        for profile in &profiles {
            let id = profile["id"].as_str().unwrap();
            let targets = app.get(&format!("{PROFILES}/{id}/targets?limit=100")).await;
            state.push(json!([profile, targets.ok()]));
        }
        match page.json["nextCursor"].as_str() {
            Some(cursor) => path = format!("{PROFILES}?limit=100&cursor={cursor}"),
            None => return state.into(),
        }
    }
}
