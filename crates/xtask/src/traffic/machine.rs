//! Machines of the drivers: a key each, and a proof of it beside every request (RFC 9449 §4.2).

use std::net::SocketAddr;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_words::digest::document_sha256;
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::http::Request;
use crate::product::Bootstrap;
use crate::traffic::maker::{Maker, Ready};
use crate::traffic::text_in;
use crate::{clock, random};

/// A key of a machine: each request that is sent with it brings a new proof, because a server takes each proof once.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key(…)")
    }
}

impl Key {
    fn new() -> Self {
        let mut seed = [0; 32];
        let words = (0..4).flat_map(|_| random::fresh_seed().to_be_bytes());
        for (place, byte) in seed.iter_mut().zip(words) {
            *place = byte;
        }
        Self(seed)
    }

    /// Returns a proof for a request that goes to this address.
    #[expect(clippy::expect_used, reason = "every 32 bytes are a key")]
    pub fn proof(&self, address: SocketAddr, request: &Request) -> String {
        let key = Ed25519KeyPair::from_seed_unchecked(&self.0).expect("32 bytes are a key");
        let token = request.token.as_deref().unwrap_or_default();
        let header = json!({
            "alg": "EdDSA", "typ": "dpop+jwt",
            "jwk": { "kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(key.public_key()) },
        });
        let claims = json!({
            "jti": format!("{:016x}{:016x}", random::fresh_seed(), random::fresh_seed()),
            "htm": request.method,
            "htu": format!("http://{address}{}", request.path),
            "iat": clock::since_epoch().as_secs(),
            "ath": URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())),
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// A machine that is a device.
pub struct Machine {
    key: Key,
    id: String,
    token: String,
}

impl Machine {
    /// Enrols a machine, which may have to wait for approval.
    pub fn enrol(maker: &mut Maker<'_>, waits: bool) -> Outcome<Self> {
        let token = enrolment_token(maker, waits)?;
        Self::enrol_by(maker, &token)
    }

    /// Enrols a machine of the caller's own.
    pub fn enrol_own(maker: &mut Maker<'_>) -> Outcome<Self> {
        let body = json!({ "name": format!("for {}", maker.unique) });
        let made = maker.write("POST", "devices/own/enrolment-tokens", body)?;
        let token = text_in(&made, "/token")?;
        Self::enrol_by(maker, &token)
    }

    fn enrol_by(maker: &mut Maker<'_>, token: &str) -> Outcome<Self> {
        let key = Key::new();
        let request = maker.mutation("POST", ENROL).with_body(laptop(maker.unique));
        let made = maker.send(&by_machine(request, &key, token))?;
        Ok(Self {
            key,
            id: text_in(&made, "/device/id")?,
            token: text_in(&made, "/token/token")?,
        })
    }

    /// The path of the device.
    pub fn path(&self) -> String {
        format!("devices/{}", self.id)
    }

    /// A request as this machine sends it: with its token, and a new proof each time.
    pub fn signed(&self, request: Request) -> Request {
        by_machine(request, &self.key, &self.token)
    }

    /// Says for the first time that the machine is there.
    pub fn call(&self, maker: &mut Maker<'_>) -> Outcome {
        let key = format!("{}-call", maker.unique);
        maker.send(&self.heartbeat(maker.bootstrap, &key, 1)).map(drop)
    }

    /// The heartbeat of this number.
    pub fn heartbeat(&self, bootstrap: &Bootstrap, key: &str, number: u32) -> Request {
        let path = format!("{}/heartbeat", self.path());
        let body = json!({ "agentVersion": "0.1.0", "osVersion": "Debian 13", "counter": number, "bootId": "5a1f77c2" });
        let request = bootstrap
            .act("POST", &path, key, "a machine calls")
            .with_body(body);
        by_machine(request, &self.key, &self.token)
    }

    /// What the machine says of a command that it is given.
    pub fn result(&self, maker: &mut Maker<'_>) -> Outcome<Ready> {
        let path = format!("{}/commands", self.path());
        let given = maker.write("POST", &path, json!({ "kind": "rescan" }))?;
        let id = text_in(&given, "/command/id")?;
        let ready = maker.call(
            "POST",
            &format!("{path}/{id}/result"),
            json!({ "outcome": "succeeded" }),
        );
        let ready = ready.showing(path);
        Ok(Ready {
            request: by_machine(ready.request, &self.key, &self.token),
            ..ready
        })
    }

    /// Reports one MCP server that nobody else has, and returns the path at which it is.
    pub fn report(&self, maker: &mut Maker<'_>) -> Outcome<String> {
        let key = format!("npm:@acme/{}", maker.unique.to_lowercase());
        let found = json!([{
            "kind": "mcp_server", "place": { "class": "~/.claude.json", "path": "0".repeat(32) }, "key": key,
            "configuredName": "files", "scope": "user", "transport": "stdio", "version": "1.2.3", "versionPin": "exact",
            "weak": false, "argShapes": [], "envNames": [], "headerNames": [], "secretsInline": 0, "enabled": true,
        }]);
        let digest = format!("sha256:{}", document_sha256(&json!([found, []])));
        let body = json!({
            "scanId": "scan-1", "counter": 1, "startedAt": "2026-01-01T00:00:00.000Z", "finishedAt": "2026-01-01T00:00:01.000Z",
            "sections": [{
                "client": "claude_code", "user": "ada", "digest": digest, "complete": true, "faults": [], "observations": found,
            }],
        });
        let request = maker
            .mutation("POST", &format!("{}/scans", self.path()))
            .with_body(body);
        maker.send(&by_machine(request, &self.key, &self.token))?;
        let servers = "inventory/mcp-servers";
        let listed = maker.mutation("GET", &format!("{servers}?query={}", maker.unique));
        let listed = maker.send(&listed)?;
        Ok(format!("{servers}/{}", text_in(&listed, "/servers/0/id")?))
    }
}

const ENROL: &str = "devices/enrol";

/// The enrolment of a new machine as the operation under test.
pub fn enrolment(maker: &mut Maker<'_>) -> Outcome<Ready> {
    let token = enrolment_token(maker, false)?;
    let ready = maker.call("POST", ENROL, laptop(maker.unique));
    Ok(Ready {
        request: by_machine(ready.request, &Key::new(), &token),
        ..ready
    })
}

fn enrolment_token(maker: &mut Maker<'_>, waits: bool) -> Outcome<String> {
    let body = json!({ "name": format!("for {}", maker.unique), "requireApproval": waits });
    let made = maker.write("POST", "devices/enrolment-tokens", body)?;
    text_in(&made, "/token")
}

fn laptop(name: &str) -> Value {
    json!({ "name": name, "platform": "linux", "arch": "x86_64", "keyProtection": "file" })
}

fn by_machine(request: Request, key: &Key, token: &str) -> Request {
    Request {
        token: Some(token.to_owned()),
        proof: Some(key.clone()),
        ..request
    }
}
