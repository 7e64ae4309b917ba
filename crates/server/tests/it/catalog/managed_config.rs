//! Managed configuration from end to end (specification §4.4; D8).

mod delivery;
mod machines;
mod publish;
mod pull;
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

/// Fetches the current release as a machine does.
pub async fn current(app: &App, profile: &str) -> Reply {
    app.request("GET", &format!("{profile}/current"))
        .by_machine()
        .send()
        .await
}

/// Publishes a content of enforced members; returns the release.
pub async fn publish(app: &App, profile: &str, enforced: Value) -> Value {
    publish_all(app, profile, json!({ "enforced": enforced })).await
}

/// The digest of a content, which the admin who publishes it does not see (MC-12).
pub fn digest(content: &Value) -> String {
    let content = json!({
        "enforced": content.get("enforced").cloned().unwrap_or_else(|| json!({})),
        "defaults": content.get("defaults").cloned().unwrap_or_else(|| json!({})),
    });
    let canonical = provost_kernel::json::canonical(&content);
    format!("sha256:{}", provost_policy::sha256_hex(canonical.as_bytes()))
}

/// Publishes a content; returns the release as machines know it.
pub async fn publish_all(app: &App, profile: &str, content: Value) -> Value {
    app.clock.advance(std::time::Duration::from_millis(1));
    let digest = digest(&content);
    let reply = app
        .write(
            "POST",
            &format!("{profile}/releases"),
            json!({ "content": content }),
        )
        .await;
    let mut release = reply.ok()["release"].clone();
    release["contentDigest"] = digest.into();
    release
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
