//! The audit log is the driver's own list, entry by entry (R36; D12.4, D12.5, D2.5, D2.10).

use crate::support::{App, Dice, Reply, each, fresh_key, with_trio, workload};
use provost_kernel::Timestamp;
use provost_kernel::auth::OrganizationId;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// What the log should say about one request: actor, action, decision, status, code.
type ExpectedEntry = (String, String, String, u64, String);

/// What the driver did.
#[derive(Default)]
struct Done {
    entries: BTreeMap<String, ExpectedEntry>,
    /// Plain reads by operation and principal.
    reads: BTreeMap<String, u64>,
    /// Refused tokens by token id.
    dead: BTreeMap<String, u64>,
    strangers: BTreeMap<&'static str, u64>,
    /// Texts that must stand nowhere.
    secrets: Vec<String>,
}

impl Done {
    fn note(&mut self, reply: &Reply, actor: &str, action: &str, decision: &str) {
        let said = (
            actor.to_owned(),
            action.to_owned(),
            decision.to_owned(),
            reply.status.as_u16().into(),
            reply.code().to_owned(),
        );
        let id = reply.header("x-request-id").to_owned();
        assert!(self.entries.insert(id, said).is_none(), "request ids are unique");
        if let Some(token) = reply.json.pointer("/token/token") {
            self.secrets.push(token.as_str().unwrap().to_owned());
        }
    }
}

struct Principal {
    id: String,
    token: String,
}

struct Driver {
    app: Arc<App>,
    dice: Dice,
    done: Done,
    admin: Principal,
    auditor: Principal,
    viewer: Principal,
    dead: Principal,
    dead_token_id: String,
    accounts: Vec<String>,
    /// Requests that can be repeated: method, path, body, action.
    repeatable: Vec<(&'static str, String, Value, &'static str)>,
    names: usize,
    foreign: String,
}

impl Driver {
    async fn write(
        &mut self,
        method: &'static str,
        path: String,
        body: Value,
        action: &'static str,
    ) -> Reply {
        let key = fresh_key();
        self.done.secrets.push(key.clone());
        let body = with_trio(body, &key);
        let reply = self.app.request(method, &path).json(body.clone()).send().await;
        let decision = if reply.status.is_success() {
            "allowed"
        } else {
            "refused"
        };
        let admin = self.admin.id.clone();
        self.done.note(&reply, &admin, action, decision);
        if reply.status.is_success() && reply.json.get("token").is_none() {
            self.repeatable.push((method, path, body, action));
        }
        reply
    }

    async fn step(&mut self) {
        let app = self.app.clone();
        self.app
            .clock
            .advance(Duration::from_millis(self.dice.below(300) as u64));
        let account = self.dice.pick(&self.accounts).clone();
        let path = format!("/service-accounts/{account}");
        match self.dice.below(20) {
            0 | 1 => {
                self.names += 1;
                let body = json!({ "name": format!("n{}", self.names), "permissionRole": "viewer", "allOfRole": true });
                let path = "/service-accounts".to_owned();
                let made = self
                    .write("POST", path, body, "createHeadlessServiceAccount")
                    .await;
                self.accounts
                    .push(made.ok()["serviceAccount"]["id"].as_str().unwrap().to_owned());
            }
            2 => {
                let body = json!({ "name": "FIRST-ADMIN", "permissionRole": "viewer", "allOfRole": true });
                let taken = self
                    .write(
                        "POST",
                        "/service-accounts".into(),
                        body,
                        "createHeadlessServiceAccount",
                    )
                    .await;
                taken.refused(409, "already_exists");
            }
            3 | 4 => {
                let body = json!({ "description": format!("d{}", self.dice.below(1000)) });
                self.write("PATCH", path, body, "updateHeadlessServiceAccount")
                    .await
                    .ok();
            }
            5 => drop(
                self.write(
                    "POST",
                    format!("{path}/disable"),
                    json!({}),
                    "disableHeadlessServiceAccount",
                )
                .await,
            ),
            6 | 7 => drop(
                self.write(
                    "POST",
                    format!("{path}/enable"),
                    json!({}),
                    "enableHeadlessServiceAccount",
                )
                .await,
            ),
            8 | 9 => {
                let path = format!("{path}/tokens");
                drop(
                    self.write("POST", path, json!({}), "rotateHeadlessServiceAccountToken")
                        .await,
                );
            }
            10 if self.accounts.len() > 1 => {
                let reply = app.delete(&path).await;
                assert_eq!(reply.status.as_u16(), 204);
                let admin = self.admin.id.clone();
                self.done
                    .note(&reply, &admin, "deleteHeadlessServiceAccount", "allowed");
                self.accounts.retain(|a| *a != account);
                self.repeatable.retain(|(_, path, ..)| !path.contains(&account));
                let gone = self
                    .write(
                        "PATCH",
                        path,
                        json!({ "name": "x" }),
                        "updateHeadlessServiceAccount",
                    )
                    .await;
                gone.refused(404, "not_found");
            }
            11 if !self.repeatable.is_empty() => {
                let (method, path, body, action) = self.dice.pick(&self.repeatable).clone();
                let reply = app.request(method, &path).json(body.clone()).send().await;
                assert_eq!(reply.header("idempotent-replayed"), "true", "{}", reply.text());
                let admin = self.admin.id.clone();
                self.done.note(&reply, &admin, action, "idempotent_replay");
                let mut other = body;
                other["reason"] = "another".into();
                let reply = app.request(method, &path).json(other).send().await;
                reply.refused(422, "idempotency_mismatch");
                self.done.note(&reply, &admin, action, "refused");
            }
            // What is wrong in shape is no act, also where only the moment of the call can tell.
            12 => backtest_of_the_future(&app).await,
            _ => self.read(&path).await,
        }
    }

    async fn read(&mut self, path: &str) {
        let app = self.app.clone();
        let (list, get) = ("listHeadlessServiceAccounts", "getHeadlessServiceAccount");
        match self.dice.below(9) {
            0 => {
                let reply = app.request("GET", path).token(&self.auditor.token).send().await;
                let decision = if reply.status.is_success() {
                    "allowed"
                } else {
                    "refused"
                };
                let auditor = self.auditor.id.clone();
                self.done.note(&reply, &auditor, get, decision);
            }
            1 => {
                let reply = app.request("GET", "/service-accounts/sa_unknown").send().await;
                reply.refused(404, "not_found");
                let admin = self.admin.id.clone();
                self.done.note(&reply, &admin, get, "refused");
            }
            2 => {
                let reply = app
                    .request("GET", "/service-accounts")
                    .token(&self.viewer.token)
                    .send()
                    .await;
                reply.refused(403, "role_forbidden");
                let viewer = self.viewer.id.clone();
                self.done.note(&reply, &viewer, list, "denied");
            }
            3 => {
                let foreign = format!("/api/headless/v1/organizations/{}/service-accounts", self.foreign);
                let reply = app.request("GET", "").at(&foreign).send().await;
                reply.refused(403, "organization_forbidden");
                let admin = self.admin.id.clone();
                self.done.note(&reply, &admin, list, "denied");
            }
            4 => {
                let reply = app
                    .request("GET", "/capabilities")
                    .token(&self.viewer.token)
                    .send()
                    .await;
                reply.ok();
                let counted = format!("getHeadlessCapabilities {}", self.viewer.id);
                *self.done.reads.entry(counted).or_default() += 1;
            }
            5 => {
                app.get("/events?limit=1").await.ok();
                let counted = format!("listHeadlessEvents {}", self.admin.id);
                *self.done.reads.entry(counted).or_default() += 1;
            }
            6 => {
                let reply = app
                    .request("GET", "/service-accounts")
                    .token(&self.dead.token)
                    .send()
                    .await;
                reply.refused(401, "token_revoked");
                *self.done.dead.entry(self.dead_token_id.clone()).or_default() += 1;
            }
            7 => {
                let (call, code) = if self.dice.chance(2) {
                    (
                        app.request("GET", "/service-accounts").token("prov_sat_nonsense"),
                        "invalid",
                    )
                } else {
                    (app.request("GET", "/service-accounts").anonymous(), "absent")
                };
                call.send().await.refused(401, "unauthenticated");
                *self.done.strangers.entry(code).or_default() += 1;
            }
            // What is wrong in shape is no act.
            _ => app
                .get("/service-accounts?limit=0")
                .await
                .refused(400, "invalid_request"),
        }
    }
}

async fn backtest_of_the_future(app: &App) {
    let now = app.now();
    let body = crate::policy::backtests::window(now.plus_secs(-60), now.plus_secs(60));
    let request = app.request("POST", "/policies/backtests");
    let reply = request.json(with_trio(body, &fresh_key())).send().await;
    reply.refused(400, "invalid_request");
}

async fn export(app: &App) -> Vec<String> {
    let mut lines = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let page = app.get(&format!("/audit/export?limit=100&after={after}")).await;
        assert!(page.status.is_success(), "{}", page.text());
        lines.extend(page.text().lines().map(str::to_owned));
        page.header("x-provost-next-after").clone_into(&mut after);
        if after.is_empty() {
            return lines;
        }
    }
}

/// Recomputes the chain over an export, with nothing but SHA-256.
pub fn assert_chain(lines: &[String]) {
    let mut previous = vec![0; 32];
    for (place, line) in lines.iter().enumerate() {
        let (entry, hashes) = line.split_at(line.rfind(r#","previousHash":"#).unwrap());
        let hashes: Value = serde_json::from_str(&format!("{{{}", &hashes[1..])).unwrap();
        let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
        context.update(&previous);
        context.update(format!("{entry}}}").as_bytes());
        let hash = context.finish().as_ref().to_vec();
        assert_eq!(hashes["previousHash"], provost_kernel::audit::hex(&previous));
        assert_eq!(hashes["hash"], provost_kernel::audit::hex(&hash));
        let entry: Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["seq"], place + 1, "no gap");
        previous = hash;
    }
}

async fn driver(app: &Arc<App>) -> Driver {
    let person = |(id, token): (String, String)| Principal { id, token };
    let auditor = person(
        app.account("auditor", "auditor", &["service_accounts:read"])
            .await,
    );
    let viewer = person(app.account("viewer", "viewer", &["policies:read"]).await);
    let dead = person(app.account("dead", "auditor", &["service_accounts:read"]).await);
    let dead_token_id = app.seen(&dead.id).await["tokens"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/service-accounts/{}/tokens", dead.id);
    app.write("POST", &path, json!({})).await.ok();
    // First uses are settled, so that nothing but the driver's requests is in the log behind here.
    for token in [&auditor.token, &viewer.token] {
        assert_eq!(app.used(token).await.0, 200);
    }
    let (foreign, _) = app.other_organization("Globex").await;
    let secrets = [&app.admin, &auditor.token, &viewer.token, &dead.token]
        .map(Clone::clone)
        .to_vec();
    Driver {
        app: app.clone(),
        dice: Dice::new("audit"),
        done: Done {
            secrets,
            ..Done::default()
        },
        admin: Principal {
            id: app.admin_id.clone(),
            token: app.admin.clone(),
        },
        accounts: vec![app.account("spare", "viewer", &["policies:read"]).await.0],
        auditor,
        viewer,
        dead,
        dead_token_id,
        repeatable: Vec::new(),
        names: 0,
        foreign,
    }
}

/// Proves AD-1.
#[test]
fn the_log_is_the_drivers_own_list() {
    each("audit_complete", |app: Arc<App>| async move {
        let mut driver = driver(&app).await;
        assert_eq!(driver.admin.token, app.admin);
        app.kernel.flush_counts();
        settle_notes(&app).await;
        let begin = app.entries(&app.organization, 0).await.len();
        let (begin_all, begin_installation) = (i64::try_from(begin).unwrap(), installation(&app).await.len());
        for _ in 0..workload("PROVOST_TEST_AUDIT_REQUESTS", 150, 500) {
            driver.step().await;
        }
        settle_notes(&app).await;
        let minutes_of_reuse = app
            .events(0)
            .await
            .iter()
            .filter(|(kind, data)| {
                kind == "service_account.token.reuse_detected"
                    && data["tokenId"] == driver.dead_token_id.as_str()
            })
            .count();
        let done = &driver.done;
        let mut found: BTreeMap<String, ExpectedEntry> = BTreeMap::new();
        let mut reuse = 0;
        let entries = app.entries(&app.organization, begin_all).await;
        for entry in &entries {
            let text = |pointer: &str| {
                entry
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or("")
                    .to_owned()
            };
            let Some(request) = entry.get("requestId") else {
                assert_eq!(entry["action"], "service_account.token.reuse_detected", "{entry}");
                assert_eq!(entry["target"]["id"], driver.dead_token_id.as_str());
                reuse += 1;
                continue;
            };
            let status = entry["outcome"]["status"].as_u64().unwrap();
            let said = (
                text("/actor/id"),
                text("/action"),
                text("/outcome/decision"),
                status,
                text("/outcome/code"),
            );
            let twice = found.insert(request.as_str().unwrap().to_owned(), said);
            assert!(twice.is_none(), "{entry}");
        }
        for (request, said) in &done.entries {
            assert_eq!(found.get(request), Some(said), "{request}");
        }
        assert_eq!(found.len(), done.entries.len());
        assert_eq!(reuse, minutes_of_reuse);
        let minutes: std::collections::BTreeSet<String> = entries
            .iter()
            .filter(|e| e.get("requestId").is_none())
            .map(|e| e["time"].as_str().unwrap()[..16].to_owned())
            .collect();
        assert_eq!(minutes.len(), reuse, "at most one in a minute");
        assert!(done.dead.is_empty() || reuse > 0);

        summaries(
            &app,
            done,
            i64::try_from(begin + entries.len()).unwrap(),
            begin_installation,
        )
        .await;
        let lines = export(&app).await;
        assert_chain(&lines);
        let whole = lines.join("\n");
        // By their last bytes: the log is read once, however many there are.
        let mut secrets: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
        for secret in done.secrets.iter().map(String::as_bytes) {
            secrets
                .entry(&secret[secret.len() - 8..])
                .or_default()
                .push(secret);
        }
        for end in 8..=whole.len() {
            let alike = secrets.get(&whole.as_bytes()[end - 8..end]);
            for secret in alike.into_iter().flatten() {
                assert!(
                    !whole.as_bytes()[..end].ends_with(secret),
                    "a secret is in the log"
                );
            }
        }
        assert!(
            !whole.contains("permissionRole\":\"viewer\",\"allOfRole"),
            "a body is in the log"
        );
        listed(&app, &lines).await;
    });
}

/// Waits until buffered notes are written: a writer takes them at most 50 ms after they came.
async fn settle_notes(app: &App) {
    app.settle().await;
    tokio::time::sleep(Duration::from_millis(120)).await;
    app.settle().await;
}

async fn installation(app: &App) -> Vec<Value> {
    app.entries(OrganizationId::INSTALLATION, 0).await
}

async fn summaries(app: &App, done: &Done, after: i64, installed: usize) {
    app.kernel.flush_counts();
    settle_notes(app).await;
    let (mut reads, mut dead) = (BTreeMap::new(), BTreeMap::new());
    for entry in app.entries(&app.organization, after).await {
        let target = entry["target"]["id"].as_str().unwrap().to_owned();
        let count = entry["count"].as_u64().unwrap();
        match entry["action"].as_str().unwrap() {
            "access.summary" => drop(reads.insert(target, count)),
            "authentication.failed" => {
                assert_eq!(entry["outcome"]["code"], "token_revoked");
                dead.insert(target, count);
            }
            other => panic!("{other} is not a summary"),
        }
    }
    assert_eq!(reads, done.reads);
    assert_eq!(dead, done.dead);
    let strangers: BTreeMap<_, _> = installation(app).await[installed..]
        .iter()
        .filter(|e| e["action"] == "authentication.failed")
        .map(|e| {
            (
                e["outcome"]["code"].as_str().unwrap().to_owned(),
                e["count"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected: BTreeMap<_, _> = done
        .strangers
        .iter()
        .map(|(k, v)| ((*k).to_owned(), *v))
        .collect();
    assert_eq!(strangers, expected, "strangers are in the installation's chain");
}

/// The list and the export are two views of one log.
async fn listed(app: &App, lines: &[String]) {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("/audit/events?limit=100{cursor}")).await;
        seen.extend(page.ok()["events"].as_array().unwrap().clone());
        match page.json["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    seen.reverse();
    let exported: Vec<Value> = lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(
        seen.len() >= exported.len(),
        "the export's own entries came since"
    );
    assert_eq!(seen[..exported.len()], exported[..]);
}

#[test]
fn the_last_use_is_kept_to_45_seconds_and_never_goes_back() {
    each("last_use", |app: Arc<App>| async move {
        let (id, token) = app.account("deploy", "auditor", &["audit:read"]).await;
        let flushed = async || {
            app.kernel.flush_uses().await.unwrap();
            let seen = app.seen(&id).await;
            assert_eq!(seen.get("lastUsedAt"), seen["tokens"][0].get("lastUsedAt"));
            seen.get("lastUsedAt").cloned()
        };
        assert_eq!(flushed().await, None);
        app.used(&token).await;
        let first = app.now().to_rfc3339();
        assert_eq!(flushed().await, Some(json!(first)));
        app.advance(45);
        app.used(&token).await;
        assert_eq!(
            flushed().await,
            Some(json!(first)),
            "so close together they are one use"
        );
        app.clock.advance(Duration::from_millis(1));
        app.used(&token).await;
        let second = app.now().to_rfc3339();
        // A request that is refused was authenticated all the same.
        assert_eq!(flushed().await, Some(json!(second)));
        app.advance(61);
        app.request("GET", "/service-accounts")
            .token(&token)
            .send()
            .await
            .refused(403, "insufficient_scope");
        let third = app.now().to_rfc3339();
        assert_eq!(flushed().await, Some(json!(third)));
        app.clock.step_ms(-3_600_000);
        app.used(&token).await;
        assert_eq!(flushed().await, Some(json!(third)));
        let updated = app.seen(&id).await["updatedAt"].clone();
        assert_ne!(updated, json!(third), "a use is no change");
    });
}

/// Proves CR-4.
#[test]
fn the_last_use_that_is_shown_is_never_a_minute_behind() {
    each("last_use_near", |app: Arc<App>| async move {
        let (id, token) = app.account("deploy", "auditor", &["audit:read"]).await;
        let mut last = 0;
        for second in 0..240_u64 {
            // Used all the time, then now and then; written as often as the program does.
            if second < 120 || second % 29 == 0 {
                app.used(&token).await;
                last = app.now().as_ms();
            }
            if second % 3 == 2 {
                app.kernel.flush_uses().await.unwrap();
            }
            let seen = app.seen(&id).await;
            let shown = seen["lastUsedAt"]
                .as_str()
                .map(|at| Timestamp::parse(at).unwrap().as_ms());
            let behind = last - shown.unwrap_or(if second < 5 { last } else { 0 });
            assert!(
                (0..60_000).contains(&behind),
                "second {second}: {behind} ms behind"
            );
            app.advance(1);
        }
    });
}
