//! The transport session of the older lifecycle: what `initialize` said of the client, kept by the client.
//!
//! The revisions before 2026-07-28 name the client once. The session's id holds that name, and whose session it is,
//! under a keyed hash: so no server keeps anything, every server of an installation reads it, and a restart ends none.
//! It expires with nothing because it grants nothing (ME-4).
//!
//! Keeps ME-4.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use provost_kernel::Kernel;
use provost_kernel::auth::Actor;
use provost_kernel::dispatch::McpClient;
use provost_kernel::keys::MacPurpose;
use serde::{Deserialize, Serialize};

/// Separates these hashes from the cursors', with which they share a sub-key.
const LABEL: &[u8] = b"provost/mcp-session/v1";
const OWNER_LABEL: &[u8] = b"provost/mcp-session/owner/v1";
/// LIMIT: bytes of an id; the longest that is made, for a client's name of 2 048 bytes that JSON escapes, has about 6 500.
const MAX_BYTES: usize = 8192;

/// A session that this installation opened.
pub(crate) struct Session {
    /// The client of `initialize`.
    pub client: McpClient,
    owner: String,
}

#[derive(Serialize, Deserialize)]
struct Payload {
    client: String,
    display: Option<String>,
    owner: String,
    nonce: String,
}

/// Opens a session for an actor and a client; returns its id.
pub(crate) fn open(kernel: &Kernel, actor: &Actor, client: &McpClient) -> Option<String> {
    let mut nonce = [0; 12];
    kernel.rng().fill(&mut nonce);
    let payload = Payload {
        client: client.id.clone(),
        display: client.display.clone(),
        owner: owner(kernel, actor),
        nonce: BASE64.encode(nonce),
    };
    let payload = BASE64.encode(serde_json::to_vec(&payload).ok()?);
    let mac = kernel.keys.mac(MacPurpose::Cursor, &[LABEL, payload.as_bytes()]);
    Some(format!("{payload}.{}", BASE64.encode(mac)))
}

/// Reads an id; `None` for one that this installation did not make.
pub(crate) fn read(kernel: &Kernel, id: &str) -> Option<Session> {
    if id.len() > MAX_BYTES {
        return None;
    }
    let (payload, mac) = id.split_once('.')?;
    let mac = BASE64.decode(mac).ok()?;
    if !kernel
        .keys
        .mac_matches(MacPurpose::Cursor, &[LABEL, payload.as_bytes()], &mac)
    {
        return None;
    }
    let payload: Payload = serde_json::from_slice(&BASE64.decode(payload).ok()?).ok()?;
    Some(Session {
        client: McpClient {
            id: payload.client,
            display: payload.display,
        },
        owner: payload.owner,
    })
}

impl Session {
    /// Says whether the session is this actor's.
    pub fn is_of(&self, kernel: &Kernel, actor: &Actor) -> bool {
        let Ok(owner) = BASE64.decode(&self.owner) else {
            return false;
        };
        kernel.keys.mac_matches(MacPurpose::Cursor, &parts(actor), &owner)
    }
}

fn owner(kernel: &Kernel, actor: &Actor) -> String {
    BASE64.encode(kernel.keys.mac(MacPurpose::Cursor, &parts(actor)))
}

fn parts(actor: &Actor) -> [&[u8]; 4] {
    [
        OWNER_LABEL,
        actor.organization.as_str().as_bytes(),
        actor.kind.as_bytes(),
        actor.id.as_bytes(),
    ]
}
