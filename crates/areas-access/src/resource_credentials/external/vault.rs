//! Secrets in the key-value store, version 2, of `HashiCorp` Vault or `OpenBao`, over HTTP.
//!
//! One GET on a connection of its own: a redirect is not followed, an answer has 64 KiB at most, the address is
//! judged after the name was resolved and before anything is sent (D12.1).

use super::MAX_BYTES;
use super::address::is_public;
use crate::resource_credentials::checks::model::Reason;
use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use provost_kernel::Secret;
use rustls_pki_types::ServerName;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

/// A declared vault.
pub struct Vault {
    /// `https://host[:port]`; `http://` to this machine alone.
    pub address: Uri,
    /// Where the key-value store is mounted.
    pub mount: String,
    /// The namespace, where the vault has them.
    pub namespace: Option<String>,
    /// The file with the token; it is read at every fetch, because an agent may renew it.
    pub token_file: PathBuf,
    /// Whose certificates are trusted.
    pub tls: Arc<rustls::ClientConfig>,
    /// Whether the address may be one that is not of the public internet.
    pub allow_private_address: bool,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Vault {
    /// Fetches one member of a secret.
    pub(super) async fn fetch(
        &self,
        prefix: &str,
        path: &str,
        field: &str,
    ) -> Result<Secret<Vec<u8>>, Reason> {
        let token_file = self.token_file.clone();
        let token =
            tokio::task::spawn_blocking(move || std::fs::read_to_string(token_file).map(Zeroizing::new));
        let token = token
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(Reason::NotConfigured)?;
        let host = self.address.host().ok_or(Reason::NotConfigured)?;
        let is_tls = self.address.scheme_str() == Some("https");
        let stream = self.connect(host, is_tls).await?;
        let request = self.request(&format!("{prefix}/{path}"), token.trim())?;
        let (status, body) = if is_tls {
            let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
            let name = name.map_err(|_| Reason::NotConfigured)?;
            let connector = TlsConnector::from(self.tls.clone());
            let stream = connector
                .connect(name, stream)
                .await
                .map_err(|_| Reason::Unreachable)?;
            exchange(stream, request).await?
        } else {
            exchange(stream, request).await?
        };
        judge(status, &body, field)
    }

    /// Connects to the first address of the host that may be reached.
    async fn connect(&self, host: &str, is_tls: bool) -> Result<TcpStream, Reason> {
        let port = self.address.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let found = tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await;
        let found: Vec<SocketAddr> = found.map_err(|_| Reason::Unreachable)?.collect();
        let mut reason = Reason::Unreachable;
        for address in found {
            if !self.allow_private_address && !is_public(address.ip()) {
                tracing::warn!(%address, "a secret manager's address is not public; allow_private_address allows that");
                reason = Reason::NotConfigured;
                continue;
            }
            if let Ok(stream) = TcpStream::connect(address).await {
                return Ok(stream);
            }
        }
        Err(reason)
    }

    fn request(&self, place: &str, token: &str) -> Result<Request<Empty<Bytes>>, Reason> {
        let authority = self.address.authority().ok_or(Reason::NotConfigured)?;
        let mut token = http::HeaderValue::from_str(token).map_err(|_| Reason::NotConfigured)?;
        token.set_sensitive(true);
        let mut request = Request::get(format!("/v1/{}/data/{place}", self.mount))
            .header("host", authority.as_str())
            .header("accept", "application/json")
            .header("x-vault-request", "true")
            .header("x-vault-token", token);
        if let Some(namespace) = &self.namespace {
            request = request.header("x-vault-namespace", namespace);
        }
        request.body(Empty::new()).map_err(|_| Reason::NotConfigured)
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Empty<Bytes>>,
) -> Result<(StatusCode, Zeroizing<Vec<u8>>), Reason> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|_| Reason::Unreachable)?;
    let answered = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|_| Reason::Unreachable)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await;
        let body = body.map_err(|_| Reason::InvalidAnswer)?.to_bytes();
        Ok((status, Zeroizing::new(body.to_vec())))
    };
    // The connection is driven here, so no task is left behind. It may end before the answer was read: what came
    // over it still waits for us then.
    let (mut answered, connection) = (std::pin::pin!(answered), std::pin::pin!(connection));
    tokio::select! {
        answered = &mut answered => return answered,
        _ = connection => {}
    }
    answered.await
}

/// Reads an answer of the key-value store: `{"data": {"data": {<field>: <text>}, "metadata": {…}}}`.
fn judge(status: StatusCode, body: &[u8], field: &str) -> Result<Secret<Vec<u8>>, Reason> {
    match status.as_u16() {
        200 => {}
        // A deleted version is 404 with its metadata.
        404 => return Err(Reason::NotFound),
        // 400 is what some versions answer without a token that they know.
        400 | 401 | 403 => return Err(Reason::Denied),
        // Not initialized, sealed, standby: 429, 472, 473, 501, 503.
        429 | 472 | 473 | 500..=599 => return Err(Reason::Unreachable),
        _ => return Err(Reason::InvalidAnswer),
    }
    let answer: Value = serde_json::from_slice(body).map_err(|_| Reason::InvalidAnswer)?;
    let data = answer.pointer("/data/data").and_then(Value::as_object);
    let data = data.ok_or(Reason::InvalidAnswer)?;
    match data.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(Secret::new(text.clone().into_bytes())),
        Some(_) => Err(Reason::InvalidAnswer),
        None => Err(Reason::NotFound),
    }
}
