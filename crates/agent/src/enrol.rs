//! A machine becomes a device.
//!
//! ```text
//! key on the disk ──► POST devices/enrol ──► token on the disk ──► device.json: enrolled
//!        └── lost answer, kill, full disk: the same key asks again and is the same device
//! ```

use crate::caller::Caller;
use crate::device::{DeviceFile, Mode, installation, is_device_token};
use crate::door::Door;
use crate::folder::Folder;
use crate::key::DeviceKey;
use crate::machine;
use crate::trouble::{Cause, Trouble};
use provost_words::Secret;
use provost_words::entropy::Entropy;
use provost_words::time::{Clock, Timestamp};
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::PathBuf;

/// What is needed to enrol.
pub struct Enrolment<'a> {
    /// The way to the server.
    pub door: &'a dyn Door,
    /// The key of the organization.
    pub organization: &'a str,
    /// The enrolment token.
    pub token: &'a Secret<String>,
    /// What people call the machine.
    pub name: &'a str,
    /// For whom the agent will work.
    pub mode: Mode,
    /// Whether the token may travel unencrypted.
    pub allow_plain_http: bool,
    /// The certificates that vouch for the server.
    pub ca_cert: Option<PathBuf>,
    /// The machine's clock.
    pub clock: &'a dyn Clock,
    /// Where randomness comes from.
    pub entropy: &'a dyn Entropy,
}

/// Enrols the machine, and returns what it is now and what is odd about it.
///
/// Errors: enrolment, when it is enrolled already or another agent works in the folder; refused, unreachable, folder, disk.
pub async fn enrol(folder: &Folder, enrolment: &Enrolment<'_>) -> Result<(DeviceFile, Vec<String>), Trouble> {
    let _lock = folder.lock()?;
    if let Some(device) = DeviceFile::load(folder)? {
        let line = format!(
            "this machine is enrolled already: {} at {}",
            device.device_id, device.server
        );
        let shown = folder.path().display();
        return Err(Trouble::new(Cause::Enrolment, line).fix(format!(
            "look with provost agent status; to enrol anew have the device retired, then mv {shown} {shown}.old"
        )));
    }
    // INVARIANT AG-2: the key is on the disk before anybody hears of it.
    let key = DeviceKey::load_or_make(folder, enrolment.entropy)?;
    let caller = Caller {
        door: enrolment.door,
        organization: enrolment.organization,
        key: &key,
        token: enrolment.token.clone(),
        clock: enrolment.clock,
        entropy: enrolment.entropy,
        skew_ms: Cell::new(0),
    };
    let body = json!({
        "name": enrolment.name, "platform": machine::platform(), "arch": std::env::consts::ARCH, "keyProtection": "file",
    });
    let sent = caller.post("devices/enrol", body.to_string().as_bytes()).await;
    let (_, mut answer) = sent.map_err(|trouble| explained(trouble, enrolment.door.url()))?;
    let wrong = || {
        Trouble::new(
            Cause::Refused(200),
            "the answer is no device; is this a Provost server?",
        )
    };
    let token = match answer.pointer_mut("/token/token").map(Value::take) {
        Some(Value::String(token)) => Secret::new(token),
        _ => return Err(wrong()),
    };
    if !is_device_token(token.expose()) {
        return Err(wrong());
    }
    let text = |place: &str| answer.pointer(place).and_then(Value::as_str);
    let device_id = text("/device/id").filter(|id| is_id(id)).ok_or_else(wrong)?;
    let expires = text("/token/expiresAt")
        .and_then(Timestamp::parse)
        .ok_or_else(wrong)?;
    let thumbprint = key.thumbprint();
    let device = DeviceFile {
        server: enrolment.door.url().to_owned(),
        organization: enrolment.organization.to_owned(),
        device_id: device_id.to_owned(),
        name: text("/device/name").unwrap_or(enrolment.name).to_owned(),
        mode: enrolment.mode,
        token_expires_at: expires,
        allow_plain_http: enrolment.allow_plain_http,
        ca_cert: enrolment.ca_cert.clone(),
        installation: machine::machine_id().map(|id| installation(&id, &thumbprint)),
        key_thumbprint: thumbprint,
    };
    device.keep(folder, &token)?;
    let mut odd = Vec::new();
    if let Some(mode) = text("/device/mode").filter(|mode| *mode != enrolment.mode.word()) {
        odd.push(format!(
            "the token is for agents of the mode {mode}, and this one works in the mode {}",
            enrolment.mode.word()
        ));
    }
    if answer.pointer("/device/needsApproval") == Some(&Value::Bool(true)) {
        odd.push("an admin has yet to approve the device: provost devices approve".to_owned());
    }
    if caller.skew_ms.get() != 0 {
        odd.push(format!(
            "this machine's clock is {} s off; set it",
            caller.skew_ms.get().abs() / 1000
        ));
    }
    Ok((device, odd))
}

/// Says whether a text can be an id of a device, so that it can stand in a path.
fn is_id(text: &str) -> bool {
    let rest = text.strip_prefix("dev_").unwrap_or_default();
    !rest.is_empty() && rest.len() <= 64 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn explained(trouble: Trouble, url: &str) -> Trouble {
    match trouble.cause {
        Cause::Gone => Trouble {
            cause: Cause::Refused(401),
            ..trouble.fix("make a new enrolment token: provost enrolment-tokens create")
        },
        Cause::Refused(401) => trouble.fix(format!(
            "is it the whole enrolment token of this organization, and is {url} the address that the server has as http.public_url?"
        )),
        _ => trouble,
    }
}
