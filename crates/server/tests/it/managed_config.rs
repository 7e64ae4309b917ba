//! Managed configuration from end to end (specification §4.4; decisions.md section 8).

mod delivery;
mod machines;
mod random;
mod rollback;
mod stale;

use crate::support::{App, Reply, fresh_key, with_trio};
use serde_json::{Value, json};

pub const PROFILES: &str = "/managed-config/profiles";

/// Makes a profile; returns its path.
pub async fn profile(app: &App, target: &str) -> String {
    let made = app
        .write("POST", PROFILES, json!({ "name": fresh_key(), "target": target }))
        .await;
    assert_eq!(made.status.as_u16(), 201, "{}", made.text());
    format!("{PROFILES}/{}", made.json["profile"]["id"].as_str().unwrap())
}

/// Publishes a content of enforced members; returns the release.
pub async fn publish(app: &App, profile: &str, enforced: Value) -> Value {
    publish_all(app, profile, json!({ "enforced": enforced })).await
}

/// Publishes a content; returns the release.
pub async fn publish_all(app: &App, profile: &str, content: Value) -> Value {
    app.clock.advance(std::time::Duration::from_millis(1));
    let reply = app
        .write(
            "POST",
            &format!("{profile}/releases"),
            json!({ "content": content }),
        )
        .await;
    reply.ok()["release"].clone()
}

/// Previews with this body, as the first admin.
pub async fn preview(app: &App, profile: &str, body: Value) -> Reply {
    app.request("POST", &format!("{profile}/rollback"))
        .json(body)
        .send()
        .await
}

/// Performs with this body, as the first admin.
pub async fn perform(app: &App, profile: &str, mut body: Value) -> Reply {
    body["confirm"] = true.into();
    app.clock.advance(std::time::Duration::from_millis(1));
    let call = app.request("POST", &format!("{profile}/rollback"));
    call.json(with_trio(body, &fresh_key())).send().await
}

/// Returns what no preview and no refusal may change.
pub async fn traces(app: &App, profile: &str) -> Value {
    app.settle().await;
    let entries = app.entries(&app.organization, 0).await;
    let written = entries
        .iter()
        .filter(|entry| entry["outcome"]["decision"] == "allowed")
        .count();
    json!({
        "profile": app.get(profile).await.ok(),
        "releases": app.get(&format!("{profile}/releases?limit=100")).await.ok(),
        "current": app.get(&format!("{profile}/current")).await.json,
        "written": written,
        "events": app.events(0).await.len(),
    })
}
