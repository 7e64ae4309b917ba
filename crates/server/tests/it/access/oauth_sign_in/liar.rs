//! An OpenID provider that says whatever a test wants, on a loopback port.

use super::{App, parameter};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub struct LyingProvider {
    pub issuer: String,
    pub said: Arc<Mutex<Conversation>>,
    key: EcdsaKeyPair,
    _serving: JoinSet<()>,
}

/// What it answers, and what it heard.
#[derive(Default)]
pub struct Conversation {
    pub metadata: Value,
    pub keys: Value,
    /// The status and the body of the token endpoint.
    pub token: (u16, Value),
    /// The last form at the token endpoint.
    pub heard: String,
    /// How often its metadata and its keys were asked for.
    pub asked: (usize, usize),
}

impl LyingProvider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let key = key();
        let said = Arc::new(Mutex::new(Conversation {
            metadata: json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "jwks_uri": format!("{issuer}/keys"),
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
                "authorization_response_iss_parameter_supported": true,
            }),
            keys: json!({ "keys": [public(&key, "one")] }),
            ..Conversation::default()
        }));
        let mut serving = JoinSet::new();
        let heard = said.clone();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, heard.clone()));
            }
        });
        Self {
            issuer,
            said,
            key,
            _serving: serving,
        }
    }

    /// Says that somebody is who the claims say; signed with its own key under this header.
    pub fn says(&self, header: &Value, claims: &Value) {
        self.says_token(&signed(&self.key, header, claims));
    }

    pub fn says_token(&self, token: &str) {
        let answer = json!({ "access_token": "an-access-token", "token_type": "Bearer", "id_token": token });
        self.said.lock().unwrap().token = (200, answer);
    }

    /// Returns right claims of an answer to the request that went to `asked`.
    pub fn claims(&self, app: &App, asked: &str, subject: &str) -> Value {
        let now = app.now().as_ms() / 1000;
        json!({
            "iss": self.issuer, "sub": subject, "aud": "provost", "exp": now + 300, "iat": now,
            "nonce": parameter(asked, "nonce").unwrap(),
            "email": format!("{subject}@acme.example"), "email_verified": true,
        })
    }

    /// Answers a request rightly; returns the target at which the answer arrives.
    pub fn answers(&self, app: &App, asked: &str, subject: &str) -> String {
        self.says(
            &json!({ "alg": "ES256", "kid": "one" }),
            &self.claims(app, asked, subject),
        );
        self.target(asked)
    }

    /// Returns the target at which an answer to a request arrives.
    pub fn target(&self, asked: &str) -> String {
        let state = parameter(asked, "state").unwrap();
        format!(
            "/oauth/callback?{}",
            super::query(&[("code", "a-code"), ("state", &state), ("iss", &self.issuer)])
        )
    }
}

pub fn key() -> EcdsaKeyPair {
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref()).unwrap()
}

pub fn public(key: &EcdsaKeyPair, kid: &str) -> Value {
    let point = key.public_key().as_ref();
    let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
    json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": kid,
            "x": encode(&point[1..33]), "y": encode(&point[33..]) })
}

pub fn signed(key: &EcdsaKeyPair, header: &Value, claims: &Value) -> String {
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let text = format!("{}.{}", encode(header), encode(claims));
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// The S256 challenge of a verifier.
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

async fn serve(mut stream: TcpStream, said: Arc<Mutex<Conversation>>) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut more = [0; 4096];
        let count = stream.read(&mut more).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        bytes.extend_from_slice(&more[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.to_lowercase();
        let length = length
            .split("content-length: ")
            .nth(1)
            .and_then(|l| l.lines().next());
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        if body.len() >= length {
            break (head.to_owned(), body.to_owned());
        }
    };
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let (status, answer) = {
        let mut said = said.lock().unwrap();
        match path.as_str() {
            "/.well-known/openid-configuration" => {
                said.asked.0 += 1;
                (200, said.metadata.clone())
            }
            "/keys" => {
                said.asked.1 += 1;
                (200, said.keys.clone())
            }
            "/token" => {
                said.heard = body;
                said.token.clone()
            }
            _ => (404, Value::Null),
        }
    };
    let answer = answer.to_string();
    let answer = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}
