//! The agent itself before the server itself: days go by in a moment, and answers get lost.

mod configuration;
mod judging;
mod skills;

use super::{act, seen};
use crate::areas::fleet::enrolment_token;
use crate::support::{App, each, fresh_key};
use provost_agent::{
    Agent, Call, Cause, Door, Enrolment, Folder, Loop, Mode, Once, Reply, Trouble, enrol, once, uploads,
};
use provost_kernel::Secret;
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::time::ManualClock;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

const DAY: u64 = 86_400;

/// The way to the server, on which answers get lost.
struct Road {
    app: Arc<App>,
    url: String,
    /// The end of a path whose next answer is lost.
    loses: Cell<Option<&'static str>>,
    /// What was sent, by the end of its path.
    sent: RefCell<Vec<(String, Vec<u8>)>>,
    /// What was answered last, by the end of the path.
    heard: RefCell<BTreeMap<String, Vec<u8>>>,
    /// What somebody on the way says instead of the server, by the end of the path.
    says: RefCell<BTreeMap<String, (u16, Vec<u8>)>>,
}

impl Door for Road {
    fn url(&self) -> &str {
        &self.url
    }

    fn send<'a>(&'a self, call: &'a Call<'a>) -> Pin<Box<dyn Future<Output = Result<Reply, String>> + 'a>> {
        Box::pin(async move {
            let request = self.app.request(call.method, "").at(call.path);
            let request = request
                .token(call.token.expose())
                .header("dpop", call.proof.expose());
            let request = match call.known {
                Some(known) => request.header("if-none-match", known),
                None => request,
            };
            let reply = match call.method {
                "GET" => request.send().await,
                _ => request.bytes(call.body.to_vec()).send().await,
            };
            let end = call.path.rsplit('/').next().unwrap();
            self.sent.borrow_mut().push((end.to_owned(), call.body.to_vec()));
            if self.loses.get() == Some(end) {
                self.loses.set(None);
                return Err("cannot reach the server: the answer was lost".into());
            }
            self.heard
                .borrow_mut()
                .insert(end.to_owned(), reply.bytes.clone());
            let etag = Some(reply.header("etag").to_owned()).filter(|etag| !etag.is_empty());
            let said = self.says.borrow().get(end).cloned();
            let (status, body) = said.unwrap_or((reply.status.as_u16(), reply.bytes));
            Ok(Reply {
                status,
                date: Some(self.app.now()),
                retry_after: None,
                etag,
                body,
            })
        })
    }
}

/// A laptop with a home, in which the agent's folder is.
struct Laptop {
    home: PathBuf,
    road: Road,
    clock: Arc<ManualClock>,
}

impl Drop for Laptop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

impl Laptop {
    fn new(app: &Arc<App>) -> Self {
        let home =
            std::env::temp_dir().join(format!("provost-laptop-{}-{}", std::process::id(), fresh_key()));
        std::fs::create_dir_all(&home).unwrap();
        let laptop = Self {
            home,
            road: Road {
                app: app.clone(),
                url: app.kernel.settings.public_url.clone(),
                loses: Cell::new(None),
                sent: RefCell::default(),
                heard: RefCell::default(),
                says: RefCell::default(),
            },
            clock: app.clock.clone(),
        };
        laptop.has("docs", "@acme/docs@1.2.3");
        laptop
    }

    /// Has one server configured.
    fn has(&self, name: &str, package: &str) {
        let settings = json!({ "mcpServers": { name: { "command": "npx", "args": ["-y", package],
            "env": { "TOKEN": "hunter2-canary" } } } });
        std::fs::write(self.home.join(".claude.json"), settings.to_string()).unwrap();
    }

    fn folder(&self) -> Folder {
        Folder::make(&self.home.join("state")).unwrap()
    }

    async fn enrols(&self, token: &str, anew: bool) -> Result<String, Trouble> {
        let enrolment = Enrolment {
            door: &self.road,
            organization: &self.road.app.organization,
            token: &Secret::new(token.to_owned()),
            name: "laptop",
            mode: Mode::User,
            allow_plain_http: false,
            ca_cert: None,
            anew,
            clock: &*self.clock,
            entropy: &SystemEntropy,
        };
        let (device, odd) = enrol(&self.folder(), &enrolment).await?;
        assert!(odd.iter().all(|line| line.contains("approve")), "{odd:?}");
        Ok(device.device_id)
    }

    /// Starts the agent for one round, as after a restart.
    async fn round(&self) -> Result<Once, Trouble> {
        let agent = Agent::open(&self.folder())?;
        once(&Loop {
            agent: &agent,
            door: &self.road,
            home: &self.home,
            clock: &*self.clock,
            entropy: &SystemEntropy,
            say: &|_| {},
            stations: &[],
            stop: Arc::default(),
        })
        .await
    }

    /// A round in which nothing is in the way.
    async fn goes_on(&self) -> Once {
        let done = self.round().await.unwrap();
        assert_eq!(done.problem, None);
        done
    }

    fn token(&self) -> String {
        let text = std::fs::read_to_string(self.folder().file("token")).unwrap();
        text.lines().next().unwrap().to_owned()
    }
}

async fn inventory(app: &App, id: &str) -> Vec<Value> {
    let held = app.get(&format!("/devices/{id}/inventory")).await.ok().clone();
    held["observations"].as_array().unwrap().clone()
}

fn names(observations: &[Value], name: &str) -> bool {
    observations.iter().any(|one| one.to_string().contains(name))
}

#[test]
fn a_laptop_lives_for_months_and_loses_neither_its_token_nor_a_report() {
    each("agent_months", |app: Arc<App>| async move {
        let laptop = Laptop::new(&app);
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        laptop.road.loses.set(Some("enrol"));
        assert_eq!(
            laptop.enrols(&secret, false).await.unwrap_err().cause,
            Cause::Unreachable
        );
        let id = laptop.enrols(&secret, false).await.unwrap();
        assert_eq!(
            app.get("/devices").await.ok()["devices"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        // The answer to the report is lost: the same report is sent again, and is one scan.
        laptop.road.loses.set(Some("scans"));
        assert!(laptop.round().await.unwrap().problem.is_some());
        assert_eq!(seen(&app, &id).await["status"], "active");
        app.advance(300);
        assert_eq!(laptop.goes_on().await.uploads, 1);
        let scans: Vec<Vec<u8>> = {
            let sent = laptop.road.sent.borrow();
            let scans = sent.iter().filter(|(end, _)| end == "scans");
            scans.map(|(_, body)| body.clone()).collect()
        };
        assert_eq!((scans.len(), &scans[0]), (2, &scans[1]));
        // What is explained are the very bytes.
        let kept = uploads(&laptop.folder()).unwrap();
        assert_eq!((kept[0].kind, &kept[0].body), ("report", &scans[0]));
        let held = inventory(&app, &id).await;
        assert!(names(&held, "npm:@acme/docs"), "{held:?}");
        assert!(!names(&held, "hunter2") && !String::from_utf8_lossy(&scans[0]).contains("hunter2"));
        // Another server takes its place, and the old one is gone from the inventory.
        laptop.has("files", "@acme/files@2.0.0");
        app.advance(3_600);
        assert!(laptop.goes_on().await.has_scanned);
        let held = inventory(&app, &id).await;
        assert!(
            names(&held, "npm:@acme/files") && !names(&held, "npm:@acme/docs"),
            "{held:?}"
        );
        let mut token = laptop.token();
        for month in 0..3 {
            app.advance(15 * DAY);
            // The answer with the new token is lost; the earlier one asks again within its ten minutes.
            laptop.road.loses.set(Some("token"));
            assert!(laptop.round().await.unwrap().problem.is_some());
            assert_eq!(laptop.token(), token);
            app.advance(300);
            laptop.goes_on().await;
            assert_ne!(laptop.token(), token, "{month}");
            token = laptop.token();
            app.advance(600);
            laptop.goes_on().await;
        }
        let device = seen(&app, &id).await;
        assert_eq!(device["tamper"]["state"], "none", "{device}");
        app.kernel.stop().await;
    });
}

#[test]
fn a_copy_of_a_laptop_is_noticed_by_its_count_and_both_go_on() {
    each("agent_copies", |app: Arc<App>| async move {
        let (laptop, copy) = (Laptop::new(&app), Laptop::new(&app));
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        let id = laptop.enrols(&secret, false).await.unwrap();
        for _ in 0..3 {
            laptop.goes_on().await;
            app.advance(300);
        }
        let _ = copy.folder();
        for name in ["device.json", "device.key", "token", "counter"] {
            std::fs::copy(laptop.folder().file(name), copy.folder().file(name)).unwrap();
        }
        copy.goes_on().await;
        app.advance(300);
        assert_eq!(seen(&app, &id).await["tamper"]["state"], "none");
        laptop.goes_on().await;
        let tamper = seen(&app, &id).await["tamper"].clone();
        assert_eq!(
            (&tamper["state"], &tamper["reason"]),
            (&json!("suspected"), &json!("counter_back"))
        );
        app.advance(300);
        copy.goes_on().await;
        app.advance(300);
        laptop.goes_on().await;
        app.kernel.stop().await;
    });
}

#[test]
fn a_device_that_is_retired_or_whose_token_ended_is_told_so_and_enrols_anew() {
    each("agent_ends", |app: Arc<App>| async move {
        let laptop = Laptop::new(&app);
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        let first = laptop.enrols(&secret, false).await.unwrap();
        laptop.goes_on().await;
        act(&app, &first, "retire").await.ok();
        let trouble = laptop.round().await.unwrap_err();
        assert_eq!(trouble.cause, Cause::Gone);
        assert!(trouble.to_string().contains("retired") && trouble.to_string().contains("--anew"));
        // A used token makes no other device, and costs the machine nothing.
        let used = laptop.enrols(&secret, true).await.unwrap_err();
        assert_eq!(used.cause, Cause::Refused(409));
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        laptop.road.loses.set(Some("enrol"));
        laptop.enrols(&secret, true).await.unwrap_err();
        let second = laptop.enrols(&secret, true).await.unwrap();
        assert_ne!(first, second);
        assert!(laptop.goes_on().await.has_scanned);
        assert!(names(&inventory(&app, &second).await, "npm:@acme/docs"));
        // Away until its token has ended: it is told so, goes on asking, and enrols anew.
        app.advance(31 * DAY);
        let trouble = laptop.round().await.unwrap_err();
        assert!(trouble.cause == Cause::Expired && trouble.may_pass(), "{trouble}");
        let (id, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        app.write(
            "POST",
            &format!("/devices/enrolment-tokens/{id}/revoke"),
            json!({}),
        )
        .await
        .ok();
        let revoked = laptop.enrols(&secret, true).await.unwrap_err();
        assert!(
            revoked.to_string().contains("revoked") && revoked.to_string().contains("new enrolment token")
        );
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        laptop.enrols(&secret, true).await.unwrap();
        laptop.goes_on().await;
        app.kernel.stop().await;
    });
}

#[test]
fn a_laptop_that_waits_for_its_approval_reports_when_it_has_it() {
    each("agent_waits", |app: Arc<App>| async move {
        let laptop = Laptop::new(&app);
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user", "requireApproval": true })).await;
        let id = laptop.enrols(&secret, false).await.unwrap();
        for _ in 0..20 {
            let done = laptop.round().await.unwrap();
            assert_eq!(done.problem.unwrap().cause, Cause::Refused(409));
            app.advance(300);
        }
        act(&app, &id, "approve").await.ok();
        laptop.goes_on().await;
        assert!(names(&inventory(&app, &id).await, "npm:@acme/docs"));
        app.kernel.stop().await;
    });
}

/// Proves AG-2.
#[test]
fn an_agent_changes_its_key_by_itself_once_a_year() {
    each("agent_year", |app: Arc<App>| async move {
        let laptop = Laptop::new(&app);
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        let id = laptop.enrols(&secret, false).await.unwrap();
        laptop.goes_on().await;
        let key = async |eyes: &App| seen(eyes, &id).await["keyThumbprint"].clone();
        let first = key(&app).await;
        // A token of an admin ends long before a key changes.
        let mut eyes = app.view_of(app.organization.clone(), app.admin.clone());
        for round in 0..24 {
            let next =
                json!({ "name": format!("eyes {round}"), "permissionRole": "admin", "allOfRole": true });
            let made = eyes.write("POST", "/service-accounts", next).await;
            let token = made.ok()["token"]["token"].as_str().unwrap().to_owned();
            eyes = app.view_of(app.organization.clone(), token);
            app.advance(15 * DAY);
            laptop.goes_on().await;
        }
        assert_eq!(key(&eyes).await, first, "it is 360 days old");
        // The answer is lost: the next round goes on with the same new key.
        app.advance(10 * DAY);
        laptop.road.loses.set(Some("key"));
        assert!(laptop.round().await.unwrap().problem.is_some());
        let second = key(&eyes).await;
        assert_ne!(second, first);
        for _ in 0..3 {
            app.advance(DAY);
            laptop.goes_on().await;
        }
        assert_eq!(key(&eyes).await, second);
        let device = seen(&eyes, &id).await;
        assert_eq!(
            (&device["status"], &device["tamper"]),
            (&json!("active"), &json!({ "state": "none" }))
        );
        app.kernel.stop().await;
    });
}

/// The answer to a change of the key is lost, and the machine comes back with another clock: the new key is proven anew, and nobody is
/// held apart.
/// Proves AG-2, FL-6.
#[test]
fn a_laptop_whose_clock_moved_while_an_answer_was_lost_keeps_its_new_key() {
    each("agent_clock_moved", |app: Arc<App>| async move {
        let mut laptop = Laptop::new(&app);
        laptop.clock = Arc::new(ManualClock::new(app.now()));
        let goes_by = |seconds: u64| {
            app.advance(seconds);
            laptop.clock.advance(Duration::from_secs(seconds));
        };
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        let id = laptop.enrols(&secret, false).await.unwrap();
        laptop.goes_on().await;
        let commands = format!("/devices/{id}/commands");
        app.write("POST", &commands, json!({ "kind": "rotate_key" }))
            .await
            .ok();
        let former = seen(&app, &id).await["keyThumbprint"].clone();
        goes_by(300);
        laptop.road.loses.set(Some("key"));
        assert!(laptop.round().await.unwrap().problem.is_some());
        let changed = seen(&app, &id).await["keyThumbprint"].clone();
        assert_ne!(changed, former);
        laptop.clock.step_ms(-300_000);
        goes_by(60);
        laptop.goes_on().await;
        let device = seen(&app, &id).await;
        assert_eq!(
            (&device["status"], &device["tamper"], &device["keyThumbprint"]),
            (&json!("active"), &json!({ "state": "none" }), &changed)
        );
        let told = app.get(&commands).await.ok()["commands"][0].clone();
        assert_eq!(told["state"], "succeeded");
        app.kernel.stop().await;
    });
}
