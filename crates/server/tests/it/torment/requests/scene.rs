//! Who asks, and what can be asked about: made anew for every store.

use super::values::Document;
use crate::access::oauth;
use crate::areas;
use crate::samples::{self, Target};
use crate::support::{App, Dice, Reply, every_scope};
use provost_kernel::auth::Role;
use provost_kernel::expose::openapi;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A word that only another organization's records hold.
pub const CANARY: &str = "canary-of-umbrella";
/// What `areas::resources::credential_body` stores; no answer ever holds it.
pub const SECRET: &str = "a secret of a test";

/// Somebody who asks.
pub struct Caller {
    pub name: &'static str,
    pub token: Option<String>,
    /// The role of a caller whose token works in the organization.
    pub role: Option<Role>,
}

pub struct Scene {
    pub app: Arc<App>,
    pub document: Document,
    pub callers: Vec<Caller>,
    /// For every operation, in the registry's order, records of the organization's own.
    pub own: Vec<Target>,
    pub foreign: Target,
    /// Ids that answers named, by path parameter.
    learned: Mutex<BTreeMap<&'static str, Vec<String>>>,
    cursors: Mutex<Vec<String>>,
    /// Ids that no request may do away with: those of the callers.
    spared: Vec<String>,
}

impl Scene {
    pub async fn set(app: Arc<App>) -> Self {
        let foreign = foreign(&app).await;
        let mut own = Vec::new();
        for entry in app.kernel.registry.entries() {
            own.push(samples::fresh_target_of(&app, entry).await);
        }
        samples::checkpoint(&app).await;
        let (callers, mut spared) = callers(&app).await;
        spared.push(app.admin_id.clone());
        Self {
            document: Document::of(&openapi::document(&app.kernel.registry)),
            callers,
            own,
            foreign,
            learned: Mutex::default(),
            cursors: Mutex::default(),
            spared,
            app,
        }
    }

    pub fn caller(&self, name: &str) -> &Caller {
        self.callers.iter().find(|caller| caller.name == name).unwrap()
    }

    /// Keeps ids and cursors of an answer for later requests.
    pub fn learn(&self, reply: &Reply) {
        if !reply.status.is_success() || reply.bytes.len() > 64 * 1024 {
            return;
        }
        let mut texts = Vec::new();
        collect(&reply.json, &mut texts);
        let absent = areas::absent("");
        let mut learned = self.learned.lock().unwrap();
        let mut keep = |name: &'static str, text: &str| {
            let known = learned.entry(name).or_default();
            if known.len() == 64 {
                known.remove(0);
            }
            known.push(text.to_owned());
        };
        for text in texts {
            if self.spared.iter().any(|id| id == text) {
                continue;
            }
            for (name, lead) in &absent {
                if lead.ends_with('_') && text.len() == lead.len() + 26 && text.starts_with(lead.as_str()) {
                    keep(name, text);
                }
            }
            if text.len() == 29 && text.starts_with("sa_") {
                keep("serviceAccountId", text);
            }
        }
        if let Some(cursor) = reply.json["nextCursor"].as_str() {
            let mut cursors = self.cursors.lock().unwrap();
            cursors.truncate(15);
            cursors.insert(0, cursor.to_owned());
        }
    }

    /// A target with ids that earlier answers named, as far as there are any.
    pub fn learned_target(&self, place: usize, dice: &mut Dice) -> Target {
        let mut target = self.own[place].clone();
        let learned = self.learned.lock().unwrap();
        for (name, ids) in learned.iter() {
            let id = dice.pick(ids).clone();
            match *name {
                "serviceAccountId" => target.account = id,
                other => drop(target.others.insert(other, id)),
            }
        }
        target
    }

    pub fn cursor(&self, dice: &mut Dice) -> Option<String> {
        let cursors = self.cursors.lock().unwrap();
        (!cursors.is_empty()).then(|| dice.pick(&cursors).clone())
    }
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if text.len() < 64 => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
        _ => {}
    }
}

/// Records of another organization, each of which says so.
async fn foreign(app: &App) -> Target {
    let (organization, token) = app.other_organization("Umbrella").await;
    let there = app.view_of(organization, token);
    let body =
        json!({ "name": CANARY, "description": CANARY, "permissionRole": "viewer", "allOfRole": true });
    let made = there.write("POST", "/service-accounts", body).await;
    let account = made.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned();
    let token = made.json["token"]["id"].as_str().unwrap().to_owned();
    for path in ["/directory/groups", "/managed-config/profiles"] {
        let body = json!({ "name": CANARY, "target": "generic_json" });
        let body = if path.starts_with("/directory") {
            json!({ "name": format!("{CANARY} group") })
        } else {
            body
        };
        there.write("POST", path, body).await.ok();
    }
    let user = json!({ "loginName": format!("{CANARY}@umbrella.test"), "displayName": CANARY });
    there.write("POST", "/directory/users", user).await.ok();
    let resource = areas::resources::resource_body(CANARY);
    there.write("POST", "/resources", resource).await.ok();
    let mut others = Target::absent().others;
    for entry in there.kernel.registry.entries() {
        areas::make(&there, entry.meta, &mut others).await;
    }
    let events = there.get("/audit/events").await;
    Target {
        account,
        token,
        entry: events.ok()["events"][0]["id"].as_str().unwrap().to_owned(),
        others,
    }
}

async fn callers(app: &App) -> (Vec<Caller>, Vec<String>) {
    let (mut callers, mut ids) = (Vec::new(), Vec::new());
    for role in Role::ALL {
        let (id, token) = app.account(role.as_str(), role.as_str(), &[]).await;
        callers.push(Caller {
            name: role.as_str(),
            token: Some(token),
            role: Some(role),
        });
        ids.push(id);
    }
    for (name, role, scopes) in [
        ("delegated admin", Role::Admin, &every_scope()[..]),
        ("delegated viewer", Role::Viewer, &["policies:read"]),
    ] {
        let (_, user, signed) = oauth::signed_in_as(app, role.as_str(), scopes).await;
        let token = signed["access_token"].as_str().unwrap().to_owned();
        callers.push(Caller {
            name,
            token: Some(token),
            role: Some(role),
        });
        ids.push(user);
    }
    let (id, disabled) = app.account("is disabled", "admin", &[]).await;
    let path = format!("/service-accounts/{id}/disable");
    app.write("POST", &path, json!({})).await.ok();
    ids.push(id);
    let (_, stranger) = app.other_organization("Wayne").await;
    let mut broken = app.admin.clone();
    let last = if broken.ends_with('0') { "1" } else { "0" };
    broken.replace_range(broken.len() - 1.., last);
    for (name, token) in [
        ("none", None),
        ("garbage", Some("prov_sat_garbage".to_owned())),
        ("broken", Some(broken)),
        ("disabled", Some(disabled)),
        ("stranger", Some(stranger)),
    ] {
        callers.push(Caller {
            name,
            token,
            role: None,
        });
    }
    (callers, ids)
}
