//! See the module above.

use super::dpop::proof_of;
use super::{Fixture, Ids, Samples, inventory};
use crate::samples::Target;
use crate::support::{App, Reply, fresh_key, with_trio};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::Ed25519KeyPair;
use provost_kernel::{params, statements};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

statements! {
    /// Has the tokens of a device be older than they are.
    AGE = "UPDATE device_tokens SET created_at = ?3 WHERE organization_id = ?1 AND device_id = ?2";
}

/// What the nets must know of the area.
pub const SAMPLES: Samples = Samples {
    absent: |ulid| {
        vec![
            ("deviceId", format!("dev_{ulid}")),
            ("enrolmentTokenId", format!("ent_{ulid}")),
            ("commandId", format!("cmd_{ulid}")),
        ]
    },
    make: |app, meta| Box::pin(async move { make(app, meta.id, &meta.path_parameters()).await }),
    make_own: |app, meta, token| {
        Box::pin(async move {
            if meta.id != RETIRE_OWN {
                return Vec::new();
            }
            let own = own_of(app, token).await;
            own.map_or_else(Vec::new, |machine| vec![("deviceId", machine.id)])
        })
    },
    body,
    fixture: |app, operation, unique| Box::pin(fixture(app, operation, unique)),
    varied,
    state: |app| {
        Box::pin(async move {
            let devices = app.get("/devices?limit=100").await.ok().clone();
            let tokens = app.get("/devices/enrolment-tokens?limit=100").await.ok().clone();
            json!([devices, tokens])
        })
    },
    ..Samples::NONE
};

/// The account that is assigned to a device, beside the ids of a path.
const ROBOT: &str = "robot";

/// A proof of a key that a device may have from now on, beside the ids of a path.
const NEW_KEY_PROOF: &str = "newKeyProof";

/// The operation by which people enrol machines of their own.
const OWN_TOKEN: &str = "createHeadlessOwnEnrolmentToken";

/// The operation by which people retire machines of their own.
const RETIRE_OWN: &str = "retireHeadlessOwnDevice";

/// Where enrolment tokens are.
pub const TOKENS: &str = "/devices/enrolment-tokens";

/// A machine: its key, its device and its token.
#[derive(Clone)]
pub struct Machine {
    pub key: Arc<Ed25519KeyPair>,
    pub id: String,
    pub token: String,
}

/// The machines of a test. A call by a token that has a key here goes with a proof of it.
#[derive(Default)]
pub struct Machines {
    keys: Mutex<BTreeMap<String, Arc<Ed25519KeyPair>>>,
    /// By organization and device; the spare one of an organization under no id.
    known: Mutex<BTreeMap<(String, String), Machine>>,
}

impl Machines {
    /// Returns the key that belongs beside a token.
    pub fn key(&self, token: &str) -> Option<Arc<Ed25519KeyPair>> {
        self.keys.lock().unwrap().get(token).cloned()
    }

    /// Has calls by a token go with proofs of a key.
    pub fn bind(&self, token: &str, key: &Arc<Ed25519KeyPair>) {
        self.keys.lock().unwrap().insert(token.to_owned(), key.clone());
    }

    fn keep(&self, organization: &str, id: &str, machine: &Machine) {
        self.bind(&machine.token, &machine.key);
        let place = (organization.to_owned(), id.to_owned());
        self.known.lock().unwrap().insert(place, machine.clone());
    }

    fn of(&self, organization: &str, id: &str) -> Option<Machine> {
        let place = (organization.to_owned(), id.to_owned());
        self.known.lock().unwrap().get(&place).cloned()
    }
}

/// A key that nobody has.
pub fn new_key() -> Arc<Ed25519KeyPair> {
    let seed = digest(&SHA256, fresh_key().as_bytes());
    Arc::new(Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).unwrap())
}

/// Returns the token of a caller without a role: of the device of this id, or of another where the organization has none of it;
/// or an enrolment token that nobody used.
pub async fn caller(app: &App, kind: &str, id: Option<&str>) -> String {
    if kind == "enrolment_token" {
        let (_, secret) = enrolment_token(app, json!({})).await;
        app.machines.bind(&secret, &new_key());
        return secret;
    }
    assert_eq!(kind, "device");
    let known = app.machines.of(&app.organization, id.unwrap_or_default());
    let known = known.or_else(|| app.machines.of(&app.organization, ""));
    if let Some(machine) = known {
        return machine.token;
    }
    let machine = Machine::new(app).await;
    app.machines.keep(&app.organization, "", &machine);
    machine.token
}

/// Makes an enrolment token of these members and returns its id and secret.
pub async fn enrolment_token(app: &App, members: Value) -> (String, String) {
    // It lasts longer than any clock jumps.
    let mut body = json!({ "name": fresh_key(), "expiresInSeconds": 7_776_000 });
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    let mut reply = app.write("POST", TOKENS, body.clone()).await;
    if reply.status.as_u16() == 409 {
        // The one admin of a net that draws hundreds of bodies has as many as anybody may have.
        let known = app.get(TOKENS).await.ok()["enrolmentTokens"].clone();
        for id in known.as_array().unwrap().iter().map(|known| &known["id"]) {
            let path = format!("{TOKENS}/{}/revoke", id.as_str().unwrap());
            app.write("POST", &path, json!({})).await.ok();
        }
        body["name"] = json!(fresh_key());
        reply = app.write("POST", TOKENS, body).await;
    }
    let made = reply.ok().clone();
    let id = made["enrolmentToken"]["id"].as_str().unwrap().to_owned();
    (id, made["token"].as_str().unwrap().to_owned())
}

/// What a machine says of itself.
pub fn laptop(name: &str) -> Value {
    json!({ "name": name, "platform": "linux", "arch": "x86_64", "keyProtection": "file" })
}

/// What a machine says at a heartbeat: it counts higher than everybody before it.
pub fn beat() -> Value {
    static CALLS: AtomicI64 = AtomicI64::new(1);
    beat_of(CALLS.fetch_add(1, Ordering::Relaxed), "a run")
}

/// What a machine says at a heartbeat that counts so far, and in which run of its system.
pub fn beat_of(counter: i64, boot_id: &str) -> Value {
    json!({ "agentVersion": "0.1.0", "osVersion": "Debian 13", "counter": counter, "bootId": boot_id })
}

/// A proof of a key that a device is to have.
pub fn proof_of_a_key(app: &App, id: &str, key: &Ed25519KeyPair) -> String {
    let path = app.path(&format!("/devices/{id}/key"));
    let url = format!("{}{path}", app.kernel.settings.public_url);
    proof_of("POST", key, "", app.now().as_ms() / 1000, &fresh_key(), &url)
}

/// What a machine says to have another key: it counts higher than everybody before it.
pub fn rotation(proof: &str) -> Value {
    json!({ "newKeyProof": proof, "counter": beat()["counter"] })
}

/// Gives a device a command; its id.
pub async fn command_for(app: &App, id: &str) -> String {
    let path = format!("/devices/{id}/commands");
    let given = app.write("POST", &path, json!({ "kind": "rescan" })).await;
    given.ok()["command"]["id"].as_str().unwrap().to_owned()
}

/// Sends a machine's request with a token and a proof of a key, made for this request.
pub async fn send(app: &App, key: &Ed25519KeyPair, token: &str, rest: &str, body: Value) -> Reply {
    let url = format!("{}{}", app.kernel.settings.public_url, app.path(rest));
    loop {
        let now = app.now().as_ms() / 1000;
        let proof = proof_of("POST", key, token, now, &fresh_key(), &url);
        let call = app.request("POST", rest).token(token).header("dpop", &proof);
        let reply = call.json(body.clone()).send().await;
        // The clock may be set while a request is on its way: then it takes another proof.
        let is_late = (app.now().as_ms() / 1000 - now).abs() > 60;
        if !(is_late && reply.code() == "unauthenticated") {
            return reply;
        }
    }
}

/// Enrols a new machine by a token.
pub async fn enrol(app: &App, secret: &str) -> Machine {
    let key = new_key();
    let reply = send(app, &key, secret, "/devices/enrol", laptop(&fresh_key())).await;
    Machine::of(app, key, &reply)
}

impl Machine {
    /// The machine of a key and of the answer to its enrolment.
    pub fn of(app: &App, key: Arc<Ed25519KeyPair>, reply: &Reply) -> Self {
        let answer = reply.ok();
        let machine = Self {
            key,
            id: answer["device"]["id"].as_str().unwrap().to_owned(),
            token: answer["token"]["token"].as_str().unwrap().to_owned(),
        };
        app.machines.keep(&app.organization, &machine.id, &machine);
        machine
    }

    /// A machine that is active.
    pub async fn new(app: &App) -> Self {
        let (_, secret) = enrolment_token(app, json!({})).await;
        let machine = enrol(app, &secret).await;
        machine.beat(app).await.ok();
        machine
    }

    /// Has its token be so old that it is renewed.
    pub async fn age(&self, app: &App) {
        let id = self.id.clone();
        let run = move |ctx: &mut provost_kernel::OperationContext<'_>| {
            let (org, then) = (ctx.org(), ctx.now().plus_secs(-15 * 86_400));
            ctx.queue(&AGE, params![org, id.as_str(), then])
        };
        app.kernel
            .system(app.org(), Some("test.aged"), run)
            .await
            .unwrap();
    }

    /// Renews its token; the answer.
    pub async fn renew(&self, app: &App) -> Reply {
        let path = format!("/devices/{}/token", self.id);
        let call = app.request("POST", &path).token(&self.token);
        call.send().await
    }

    /// Says that it is there.
    pub async fn beat(&self, app: &App) -> Reply {
        let path = format!("/devices/{}/heartbeat", self.id);
        send(app, &self.key, &self.token, &path, beat()).await
    }
}

/// Makes a device that waits for approval.
pub async fn waiting(app: &App) -> String {
    let (_, secret) = enrolment_token(app, json!({ "requireApproval": true })).await;
    enrol(app, &secret).await.id
}

async fn one_for(app: &App, operation: &str) -> String {
    match operation {
        "approveHeadlessDevice" => waiting(app).await,
        "releaseHeadlessDevice" => {
            let id = Machine::new(app).await.id;
            let path = format!("/devices/{id}/quarantine");
            app.write("POST", &path, json!({})).await.ok();
            id
        }
        "renewHeadlessDeviceToken" => {
            let machine = Machine::new(app).await;
            machine.age(app).await;
            machine.id
        }
        // Nobody enrols machines of their own without end; whoever must own it makes it.
        RETIRE_OWN => match own_of(app, &app.admin).await {
            Some(machine) => machine.id,
            None => Machine::new(app).await.id,
        },
        "eraseHeadlessDeviceInventory" => inventory::retired(app).await,
        BEGIN_BYPASS => {
            end_bypasses(app).await;
            Machine::new(app).await.id
        }
        END_BYPASS => {
            end_bypasses(app).await;
            let id = Machine::new(app).await.id;
            let path = format!("/devices/{id}/bypass");
            let begun = app.write("POST", &path, json!({ "minutes": 60 })).await;
            assert_eq!(begun.status.as_u16(), 201, "{}", begun.text());
            id
        }
        "getHeadlessDeviceGatewayIdentity" | "deleteHeadlessDeviceGatewayIdentity" => {
            let id = Machine::new(app).await.id;
            let body = json!({ "serviceAccountId": robot(app).await });
            app.write("PUT", &format!("/devices/{id}/gateway-identity"), body)
                .await
                .ok();
            id
        }
        _ => Machine::new(app).await.id,
    }
}

const BEGIN_BYPASS: &str = "beginHeadlessDeviceBypass";
const END_BYPASS: &str = "endHeadlessDeviceBypass";

/// Ends what is live where the one admin of a net has begun many: nobody has more than a hundred.
async fn end_bypasses(app: &App) {
    let page = app.get("/devices/bypasses?limit=100").await.ok()["bypasses"].clone();
    let live = page
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["state"] == "live");
    let live: Vec<&str> = live.map(|one| one["deviceId"].as_str().unwrap()).collect();
    if live.len() < 50 {
        return;
    }
    for id in live {
        let call = app.request("DELETE", &format!("/devices/{id}/bypass"));
        let call = call.header("idempotency-key", &fresh_key());
        call.header("x-reason", "room for others").send().await;
    }
}

/// Makes an account that everybody may hand out who may hand out anything.
async fn robot(app: &App) -> String {
    app.account(&fresh_key(), "viewer", &["service_accounts:rotate_self"])
        .await
        .0
}

/// Lets people enrol machines of their own.
pub async fn let_people_enrol(app: &App) {
    let body = json!({ "fleet": { "enrolment": { "selfEnrol": "signed_in" } } });
    app.write("PATCH", "/automation/settings", body).await.ok();
}

/// What a device does where devices judge.
const JUDGING: [&str; 2] = ["getHeadlessDevicePolicyBundle", "reportHeadlessDeviceDecisions"];

/// Has somebody enrol a machine of their own; nothing where they may not.
pub async fn own_of(app: &App, token: &str) -> Option<Machine> {
    let_people_enrol(app).await;
    let body = with_trio(json!({ "name": fresh_key() }), &fresh_key());
    let call = app.request("POST", "/devices/own/enrolment-tokens").token(token);
    let made = call.json(body).send().await;
    let secret = made.json["token"].as_str()?.to_owned();
    Some(enrol(app, &secret).await)
}

async fn make(app: &App, operation: &str, parameters: &[&str]) -> Ids {
    if operation == OWN_TOKEN {
        let_people_enrol(app).await;
    }
    if JUDGING.contains(&operation) {
        super::device_judging::set(app, "on").await;
    }
    if operation == "putHeadlessDeviceGatewayIdentity" {
        let id = one_for(app, operation).await;
        return vec![("deviceId", id), (ROBOT, robot(app).await)];
    }
    if parameters.contains(&"deviceId") {
        let id = one_for(app, operation).await;
        if parameters.contains(&"commandId") {
            let command = command_for(app, &id).await;
            return vec![("deviceId", id), ("commandId", command)];
        }
        if operation == "rotateHeadlessDeviceKey" {
            let proof = proof_of_a_key(app, &id, &new_key());
            return vec![("deviceId", id), (NEW_KEY_PROOF, proof)];
        }
        return vec![("deviceId", id)];
    }
    if parameters.contains(&"enrolmentTokenId") {
        return vec![("enrolmentTokenId", enrolment_token(app, json!({})).await.0)];
    }
    vec![]
}

/// Returns devices of which an operation does something else than of its example.
pub async fn beside(app: &App, operation: &str) -> Vec<String> {
    if operation != "heartbeatHeadlessDevice" {
        return vec![];
    }
    let (_, secret) = enrolment_token(app, json!({})).await;
    vec![enrol(app, &secret).await.id, waiting(app).await]
}

fn body(operation: &str, target: &Target) -> Option<Value> {
    match operation {
        "createHeadlessEnrolmentToken" | OWN_TOKEN => Some(json!({ "name": fresh_key() })),
        "enrolHeadlessDevice" => Some(laptop(&fresh_key())),
        "updateHeadlessDevice" => Some(json!({ "name": fresh_key(), "labels": ["site:berlin"] })),
        "heartbeatHeadlessDevice" => Some(beat()),
        "reportHeadlessDeviceCoverage" => Some(json!({ "clients": [
            { "client": "codex", "level": "observed", "basis": "measured", "reasons": ["monitor_mode"] },
        ] })),
        "createHeadlessDeviceCommand" => Some(json!({ "kind": "rescan" })),
        BEGIN_BYPASS => Some(json!({ "minutes": 60 })),
        "reportHeadlessDeviceCommandResult" => Some(json!({ "outcome": "succeeded" })),
        "rotateHeadlessDeviceKey" => {
            let proof = target.others.get(NEW_KEY_PROOF).map_or("x", String::as_str);
            Some(rotation(proof))
        }
        "putHeadlessDeviceGatewayIdentity" => {
            let account = target.others.get(ROBOT).cloned().unwrap_or_else(fresh_key);
            Some(json!({ "serviceAccountId": account, "source": "terraform" }))
        }
        _ => None,
    }
}

async fn fixture(app: &App, operation: &str, unique: &str) -> Option<Fixture> {
    let device = |verb: &'static str, event| async move {
        let path = format!("/devices/{}/{verb}", one_for(app, operation).await);
        let body = if verb == "retire" {
            json!({ "confirm": true })
        } else {
            json!({})
        };
        Some(Fixture::json("POST", path, body, event))
    };
    match operation {
        "createHeadlessEnrolmentToken" => Some(Fixture::json(
            "POST",
            TOKENS,
            json!({
                "name": format!("token {unique}"), "expiresInSeconds": 600, "labels": ["site:berlin"],
                "platforms": ["linux"], "networks": ["10.0.0.0/8"], "namePrefix": "berlin-",
            }),
            Some("fleet.enrolment_token.created"),
        )),
        OWN_TOKEN => {
            let_people_enrol(app).await;
            let body = json!({ "name": format!("token {unique}") });
            let event = Some("fleet.enrolment_token.created");
            Some(Fixture::json(
                "POST",
                "/devices/own/enrolment-tokens",
                body,
                event,
            ))
        }
        "enrolHeadlessDevice" => Some(Fixture::json(
            "POST",
            "/devices/enrol",
            laptop(unique),
            Some("fleet.device.enrolled"),
        )),
        "revokeHeadlessEnrolmentToken" => {
            let path = format!("{TOKENS}/{}/revoke", enrolment_token(app, json!({})).await.0);
            let event = Some("fleet.enrolment_token.revoked");
            Some(Fixture::json("POST", path, json!({}), event))
        }
        "updateHeadlessDevice" => {
            let path = format!("/devices/{}", one_for(app, operation).await);
            let body = json!({ "name": unique, "labels": ["site:berlin"] });
            Some(Fixture::json("PATCH", path, body, Some("fleet.device.updated")))
        }
        "approveHeadlessDevice" => device("approve", None).await,
        "renewHeadlessDeviceToken" => {
            let path = format!("/devices/{}/token", one_for(app, operation).await);
            Some(Fixture::json("POST", path, Value::Null, None))
        }
        BEGIN_BYPASS => {
            let path = format!("/devices/{}/bypass", one_for(app, operation).await);
            let body = json!({ "minutes": 60, "clients": ["codex"] });
            let event = Some("fleet.device.bypass_begun");
            Some(Fixture::json("POST", path, body, event))
        }
        END_BYPASS => {
            let path = format!("/devices/{}/bypass", one_for(app, operation).await);
            let event = Some("fleet.device.bypass_ended");
            Some(Fixture::json("DELETE", path, Value::Null, event))
        }
        "createHeadlessDeviceCommand" => {
            let path = format!("/devices/{}/commands", one_for(app, operation).await);
            let body = json!({ "kind": "rescan", "expiresInSeconds": 7200 });
            Some(Fixture::json("POST", path, body, None))
        }
        "reportHeadlessDeviceCommandResult" => {
            let id = one_for(app, operation).await;
            let path = format!("/devices/{id}/commands/{}/result", command_for(app, &id).await);
            let body = json!({ "outcome": "failed", "code": "no_disk" });
            Some(Fixture::json("POST", path, body, Some("fleet.command.finished")))
        }
        "rotateHeadlessDeviceKey" => {
            let id = one_for(app, operation).await;
            let body = rotation(&proof_of_a_key(app, &id, &new_key()));
            let event = Some("fleet.device.key_rotated");
            Some(Fixture::json("POST", format!("/devices/{id}/key"), body, event))
        }
        "quarantineHeadlessDevice" => device("quarantine", Some("fleet.device.quarantined")).await,
        "releaseHeadlessDevice" => device("release", Some("fleet.device.released")).await,
        "retireHeadlessDevice" => device("retire", Some("fleet.device.retired")).await,
        RETIRE_OWN => {
            let path = format!("/devices/own/{}/retire", one_for(app, operation).await);
            let event = Some("fleet.device.retired");
            Some(Fixture::json("POST", path, json!({ "confirm": true }), event))
        }
        "putHeadlessDeviceGatewayIdentity" | "deleteHeadlessDeviceGatewayIdentity" => {
            let path = format!("/devices/{}/gateway-identity", one_for(app, operation).await);
            let event = Some("fleet.device.gateway_identity_changed");
            if operation.starts_with("delete") {
                return Some(Fixture::json("DELETE", path, Value::Null, event));
            }
            let body = json!({ "serviceAccountId": robot(app).await, "source": "terraform" });
            Some(Fixture::json("PUT", path, body, event))
        }
        _ => None,
    }
}

fn varied(operation: &str, member: &str, body: &Value) -> Option<Value> {
    let mut body = body.clone();
    match (operation, member) {
        ("createHeadlessEnrolmentToken", "expiresInSeconds") => body[member] = json!(601),
        ("createHeadlessEnrolmentToken", "platforms") => body[member] = json!(["macos"]),
        ("createHeadlessEnrolmentToken", "networks") => body[member] = json!(["10.0.0.7"]),
        ("enrolHeadlessDevice", "platform") => body[member] = json!("macos"),
        ("createHeadlessEnrolmentToken" | "updateHeadlessDevice", "labels") => {
            body[member] = json!(["site:paris"]);
        }
        ("enrolHeadlessDevice", "keyProtection") => body[member] = json!("tpm"),
        (BEGIN_BYPASS, "minutes") => body[member] = json!(61),
        (BEGIN_BYPASS, "clients") => body[member] = json!(["claude_code"]),
        ("createHeadlessDeviceCommand", "kind") => body[member] = json!("rotate_key"),
        ("createHeadlessDeviceCommand", "expiresInSeconds") => body[member] = json!(7201),
        ("reportHeadlessDeviceCommandResult", "outcome") => body[member] = json!("succeeded"),
        ("reportHeadlessDeviceCommandResult", "code") => body[member] = json!("no_room"),
        ("rotateHeadlessDeviceKey", "counter") => body[member] = json!(9_007_199_254_740_991_i64),
        _ => return None,
    }
    Some(body)
}
