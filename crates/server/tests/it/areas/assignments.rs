//! See the module above.

use super::fleet::Machine;
use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::{App, fresh_key};
use serde_json::{Value, json};

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent: |ulid| vec![("skillItemId", format!("ski_{ulid}"))],
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    body,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    ..Samples::NONE
};

const PROFILES: &str = "/managed-config/profiles";

/// A profile for Codex with a release that hides nothing; its id.
async fn released(app: &App) -> String {
    let body = json!({ "name": fresh_key(), "target": "codex" });
    let made = app.write("POST", PROFILES, body).await;
    let profile = made.ok()["profile"]["id"].as_str().unwrap().to_owned();
    let body = json!({ "content": { "enforced": { "allowed_sandbox_modes": ["read-only"] } } });
    let path = format!("{PROFILES}/{profile}/releases");
    app.write("POST", &path, body).await.ok();
    profile
}

/// A profile and a device, by which the device gets it unless it is to be given.
async fn pair(app: &App, operation: &str) -> (String, String) {
    let (profile, device) = (released(app).await, Machine::new(app).await.id);
    if operation != "assignHeadlessDeviceProfile" {
        let path = format!("{PROFILES}/{profile}/devices/{device}");
        app.write("PUT", &path, json!({})).await.ok();
    }
    (profile, device)
}

/// A skill and a device, by which the device gets it unless it is to be given.
async fn skill_pair(app: &App, operation: &str) -> (String, String) {
    let (item, device) = (app.skill(&fresh_key()).await, Machine::new(app).await.id);
    if operation != "assignHeadlessDeviceSkill" {
        let path = format!("/skill-registry/{item}/devices/{device}");
        app.write("PUT", &path, json!({})).await.ok();
    }
    (item, device)
}

async fn make(app: &App, operation: &str, parameters: &[&'static str]) -> Ids {
    if parameters.contains(&"deviceId")
        && let Some(named) = parameters
            .iter()
            .find(|name| ["itemRef", "skillItemId"].contains(*name))
    {
        let (item, device) = skill_pair(app, operation).await;
        return vec![(*named, item), ("deviceId", device)];
    }
    if !["deviceId", "profileId"]
        .iter()
        .all(|name| parameters.contains(name))
    {
        return vec![];
    }
    let (profile, device) = pair(app, operation).await;
    vec![("profileId", profile), ("deviceId", device)]
}

fn body(operation: &str, _: &Target) -> Option<Value> {
    (operation == "reportHeadlessDeviceProfile").then(|| {
        json!({
            "releaseId": "mcr_01kadh5j9v0000000000000000", "contentDigest": format!("sha256:{}", "0".repeat(64)),
            "state": "applied",
        })
    })
}

async fn fixture(app: &App, operation: &str, _: &str) -> Option<Fixture> {
    let method = match operation {
        "assignHeadlessDeviceProfile" | "assignHeadlessDeviceSkill" => "PUT",
        "unassignHeadlessDeviceProfile" | "unassignHeadlessDeviceSkill" => "DELETE",
        _ => return None,
    };
    if operation.ends_with("Skill") {
        let (item, device) = skill_pair(app, operation).await;
        let path = format!("/skill-registry/{item}/devices/{device}");
        return Some(Fixture::json(method, path, json!({}), None));
    }
    let (profile, device) = pair(app, operation).await;
    let path = format!("{PROFILES}/{profile}/devices/{device}");
    Some(Fixture::json(method, path, json!({}), None))
}
