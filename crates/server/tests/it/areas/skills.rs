//! See the module above.

use super::{Fixture, Ids, Samples};
use crate::samples::Target;
use crate::support::{App, fresh_key, with_trio};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent,
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    make_own: |app, meta, token| {
        Box::pin(async move { make_own(app, meta.id, &meta.path_parameters(), token).await })
    },
    deleted: |app| Box::pin(deleted(app)),
    body,
    content,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| Box::pin(state(app)),
    ..Samples::NONE
};

/// An archive of one folder with these files.
pub fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&tar.into_inner().unwrap()).unwrap();
    gzip.finish().unwrap()
}

/// A skill of this name, whose content differs with `body`.
pub fn skill(name: &str, body: &str) -> Vec<u8> {
    let text = format!("---\nname: {name}\ndescription: Does {name}. Use it in tests.\n---\n{body}\n");
    archive(&[("SKILL.md", &text), ("notes/more.md", body)])
}

impl App {
    /// Publishes content as the admin; returns the answer.
    pub async fn publish(&self, query: &str, content: Vec<u8>) -> crate::support::Reply {
        self.request("POST", &format!("/skill-registry{query}"))
            .header("idempotency-key", &fresh_key())
            .header("x-reason", "a test")
            .content("application/gzip", content)
            .send()
            .await
    }

    /// Publishes a new skill; returns its id.
    pub async fn skill(&self, name: &str) -> String {
        let published = self.publish("", skill(name, "first")).await;
        published.ok()["item"]["id"].as_str().unwrap().to_owned()
    }

    /// Installs an item for whoever holds the token; returns the answer.
    pub async fn install(&self, token: &str, item: &str, device: &str) -> crate::support::Reply {
        let body = json!({ "client": "claude-code", "device": device, "path": "/home/a/.claude/skills" });
        self.request("POST", &format!("/skill-registry/{item}/cli-install"))
            .token(token)
            .json(with_trio(body, &fresh_key()))
            .send()
            .await
    }

    /// Uninstalls an item for whoever holds the token; returns the answer.
    pub async fn uninstall(&self, token: &str, item: &str) -> crate::support::Reply {
        self.request("POST", &format!("/skill-registry/{item}/cli-uninstall"))
            .token(token)
            .send()
            .await
    }
}

/// Installs a new skill and uninstalls it; returns the install, which waits for its client.
async fn waiting(app: &App, token: &str) -> String {
    let item = app.skill(&fresh_key()).await;
    app.install(token, &item, "laptop").await.ok();
    let gone = app.uninstall(token, &item).await;
    gone.ok()["installs"][0]["installId"].as_str().unwrap().to_owned()
}

pub fn absent(ulid: &str) -> Ids {
    vec![
        ("itemRef", format!("ski_{ulid}")),
        ("installId", format!("inst_{ulid}")),
    ]
}

pub async fn make(app: &App, _operation: &str, parameters: &[&str]) -> Ids {
    if parameters.contains(&"itemRef") {
        return vec![("itemRef", app.skill(&fresh_key()).await)];
    }
    if parameters.contains(&"installId") {
        return vec![("installId", waiting(app, &app.admin).await)];
    }
    vec![]
}

/// Makes what belongs to its caller alone.
pub async fn make_own(app: &App, _operation: &str, parameters: &[&str], token: &str) -> Ids {
    if parameters.contains(&"installId") {
        return vec![("installId", waiting(app, token).await)];
    }
    vec![]
}

/// Nothing of this area is ever deleted.
#[expect(clippy::unused_async, reason = "the other areas delete")]
pub async fn deleted(_app: &App) -> Ids {
    vec![]
}

pub fn body(operation: &str, _target: &Target) -> Option<Value> {
    (operation == "installHeadlessSkillRegistryItem").then(|| json!({ "client": "claude-code" }))
}

pub fn content(operation: &str) -> Option<(&'static str, Vec<u8>)> {
    (operation == "publishHeadlessSkillRegistryItem")
        .then(|| ("application/gzip", skill(&fresh_key(), "content")))
}

pub async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    let item = async || app.skill(&fresh_key()).await;
    let fixture = match operation {
        "publishHeadlessSkillRegistryItem" => Fixture {
            content: Some(("application/gzip", skill(unique, "content"))),
            ..Fixture::json(
                "POST",
                "/skill-registry",
                Value::Null,
                Some("registry.item.published"),
            )
        },
        "withdrawHeadlessSkillRegistryItem" => Fixture::json(
            "POST",
            format!("/skill-registry/{}/withdraw", item().await),
            json!({ "confirm": true }),
            Some("registry.item.withdrawn"),
        ),
        "installHeadlessSkillRegistryItem" => Fixture::json(
            "POST",
            format!("/skill-registry/{}/cli-install", item().await),
            json!({ "client": "claude-code", "clientVersion": "2.1", "device": "laptop", "path": "/a" }),
            Some("registry.item.installed"),
        ),
        "uninstallHeadlessSkillRegistryItem" => {
            let item = item().await;
            app.install(&app.admin, &item, "laptop").await.ok();
            Fixture::json(
                "POST",
                format!("/skill-registry/{item}/cli-uninstall"),
                Value::Null,
                Some("registry.item.uninstalled"),
            )
        }
        "reportHeadlessSkillInstallRemoved" => {
            let install = waiting(app, &app.admin).await;
            Fixture::json(
                "POST",
                format!("/skill-installs/{install}/removed"),
                json!({}),
                None,
            )
        }
        _ => return None,
    };
    Some(fixture)
}

pub fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    let mut varied = body.clone();
    if operation != "installHeadlessSkillRegistryItem" || !["client", "path"].contains(&member) {
        return None;
    }
    varied[member] = json!("codex");
    Some(varied)
}

pub async fn state(app: &App) -> Value {
    json!({
        "items": pages(app, "/skill-registry", "items").await,
        "installs": pages(app, "/skill-installs", "installs").await,
    })
}

async fn pages(app: &App, path: &str, member: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("{path}?limit=100{cursor}")).await;
        all.extend(page.ok()[member].as_array().unwrap().iter().cloned());
        match page.json["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}
