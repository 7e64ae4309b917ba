//! A machine becomes a device.
//!
//! ```text
//! key on the disk ──► POST devices/enrol ──► token on the disk ──► device.json: enrolled
//!        └── lost answer, kill, full disk: the same key asks again and is the same device
//!
//! --anew     the same in the folder `anew`, with a key of its own ──► then in the place of the earlier device
//! ```

use crate::caller::Caller;
use crate::device::{CA_CERT, DeviceFile, Mode, installation};
use crate::door::Door;
use crate::folder::Folder;
use crate::key::DeviceKey;
use crate::machine;
use crate::succession;
use crate::token::Token;
use crate::trouble::{Cause, Trouble};
use provost_words::Secret;
use provost_words::entropy::Entropy;
use provost_words::time::Clock;
use serde_json::{Value, json};
use std::cell::Cell;
use std::sync::Arc;

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
    /// The certificates that vouch for the server, as PEM.
    pub ca_cert: Option<&'a [u8]>,
    /// Whether the device that this machine is may be given up.
    pub anew: bool,
    /// The machine's clock.
    pub clock: &'a dyn Clock,
    /// Where randomness comes from.
    pub entropy: &'a dyn Entropy,
}

/// Enrols the machine, and returns what it is now and what is odd about it.
///
/// Errors: enrolment, when it is enrolled already; busy, when another agent works in the folder; refused, unreachable, folder, disk.
pub async fn enrol(folder: &Folder, enrolment: &Enrolment<'_>) -> Result<(DeviceFile, Vec<String>), Trouble> {
    let _lock = folder.lock()?;
    // One that was killed when it had come to something.
    let mut unsent = Vec::new();
    if let Some((device, told)) = succession::finish(folder)? {
        unsent.extend(told);
        if device.server == enrolment.door.url() && device.organization == enrolment.organization {
            let line =
                "an enrolment was finished that had been begun before; the enrolment token was not used now";
            unsent.insert(0, line.to_owned());
            return Ok((device, unsent));
        }
    }
    may_enrol(folder, enrolment.anew)?;
    // Whoever enrols anew stays what it was until the answer is there.
    let is_successor = enrolment.anew && succession::is_somebody(folder);
    let place = if is_successor {
        succession::place(folder)?
    } else {
        folder.clone()
    };
    // INVARIANT AG-2: the key is on the disk before anybody hears of it.
    let key = Arc::new(DeviceKey::load_or_make(&place, enrolment.entropy)?);
    let caller = Caller {
        door: enrolment.door,
        organization: enrolment.organization,
        key: key.clone(),
        token: enrolment.token.clone(),
        clock: enrolment.clock,
        entropy: enrolment.entropy,
        skew_ms: Cell::new(0),
        heard: Cell::new(None),
    };
    let body = json!({
        "name": enrolment.name, "platform": machine::platform(), "arch": std::env::consts::ARCH, "keyProtection": "file",
    });
    let sent = caller.post("devices/enrol", body.to_string().as_bytes()).await;
    let (_, mut answer) = sent.map_err(|trouble| explained(trouble, enrolment.door.url()))?;
    let text = answer.pointer_mut("/token/token").map(Value::take);
    let token = match text {
        Some(Value::String(text)) => Token::of(Secret::new(text), text_at(&answer, "/token/expiresAt")),
        _ => None,
    };
    let thumbprint = key.thumbprint();
    let device_id = text_at(&answer, "/device/id").filter(|id| is_id(id));
    let (Some(token), Some(device_id)) = (token, device_id) else {
        let line = "the answer is no device; is this a Provost server?";
        return Err(Trouble::new(Cause::Refused(200), line));
    };
    if let Some(certificates) = enrolment.ca_cert {
        place.replace(CA_CERT, certificates)?;
    }
    let device = DeviceFile {
        server: enrolment.door.url().to_owned(),
        organization: enrolment.organization.to_owned(),
        device_id: device_id.to_owned(),
        name: text_at(&answer, "/device/name")
            .unwrap_or(enrolment.name)
            .to_owned(),
        mode: enrolment.mode,
        allow_plain_http: enrolment.allow_plain_http,
        has_own_ca: enrolment.ca_cert.is_some(),
        installation: machine::machine_id().map(|id| installation(&id, &thumbprint)),
        key_thumbprint: thumbprint,
    };
    device.keep(&place, &token)?;
    if is_successor {
        let finished = succession::finish(folder)?;
        unsent.extend(finished.and_then(|(_, told)| told));
    }
    let mut odd = oddities(enrolment, &answer, caller.skew_ms.get());
    odd.extend(unsent);
    Ok((device, odd))
}

/// Says whether the machine may enrol: as it is no device yet, or anew.
///
/// Errors: enrolment, when it is enrolled already; folder, disk.
pub fn may_enrol(folder: &Folder, anew: bool) -> Result<(), Trouble> {
    if anew {
        return Ok(());
    }
    let Some(device) = DeviceFile::load(folder)? else {
        return Ok(());
    };
    let line = format!(
        "this machine is enrolled already: {} at {}",
        device.device_id, device.server
    );
    Err(Trouble::new(Cause::Enrolment, line).fix(
        "look with provost agent status; --anew gives up that device, which an admin then retires, and enrols as another one",
    ))
}

fn text_at<'a>(answer: &'a Value, place: &str) -> Option<&'a str> {
    answer.pointer(place).and_then(Value::as_str)
}

/// Returns what whoever enrolled should know.
fn oddities(enrolment: &Enrolment<'_>, answer: &Value, skew_ms: i64) -> Vec<String> {
    let mut odd = Vec::new();
    if let Some(mode) = text_at(answer, "/device/mode").filter(|mode| *mode != enrolment.mode.word()) {
        odd.push(format!(
            "the token is for agents of the mode {mode}, and this one works in the mode {}",
            enrolment.mode.word()
        ));
    }
    if answer.pointer("/device/needsApproval") == Some(&Value::Bool(true)) {
        odd.push("an admin has yet to approve the device: provost devices approve".to_owned());
    }
    if let Some(why) = text_at(answer, "/takenForNobody") {
        odd.push(format!(
            "gateways take this machine for nobody, where an admin names no owner: {why}"
        ));
    }
    if skew_ms != 0 {
        odd.push(format!(
            "this machine's clock is {} s off; set it",
            skew_ms.abs() / 1000
        ));
    }
    if enrolment.mode == Mode::System {
        odd.push(crate::NO_SCANS.to_owned());
    }
    odd
}

/// Says whether a text can be an id of a device, so that it can stand in a path.
fn is_id(text: &str) -> bool {
    let rest = text.strip_prefix("dev_").unwrap_or_default();
    !rest.is_empty() && rest.len() <= 64 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn explained(trouble: Trouble, url: &str) -> Trouble {
    match trouble.cause {
        Cause::Gone | Cause::Expired => Trouble {
            cause: Cause::Refused(401),
            ..trouble.fix("an admin makes a new enrolment token: provost enrolment-tokens create")
        },
        Cause::Refused(409) => trouble.fix(
            "an admin makes another enrolment token; a key that was a device's is given up with provost agent enrol --anew",
        ),
        Cause::Refused(401) => trouble.fix(format!(
            "is it the whole enrolment token of this organization, and is {url} the address that the server has as http.public_url?"
        )),
        _ => trouble,
    }
}
