//! The HTTP client of a store: hyper over rustls with the one cryptographic provider of the program.
//!
//! An answer is read whole within a deadline: a store that stalls in the middle of an answer is an error, which is
//! tried again, and not a thread that waits for ever.

use super::Options;
use crate::error::{Error, Result};
use async_trait::async_trait;
use http_body_util::{BodyExt, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::io;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one exchange may take: a segment of 64 MiB needs 1 MiB/s.
const EXCHANGE_TIMEOUT: Duration = Duration::from_mins(1);
/// LIMIT: an answer is held in memory; no segment comes near.
const MAX_ANSWER_BYTES: usize = 1 << 30;

/// Makes clients that share one pool of connections.
#[derive(Debug)]
pub struct Connector(Service);

#[derive(Clone, Debug)]
struct Service(Client<HttpsConnector<HttpConnector>, HttpRequestBody>);

impl Connector {
    pub fn new(options: &Options) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &options.ca_file {
            let fault = || {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{} holds no certificates", path.display()),
                )
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|_| fault())? {
                let certificate = certificate.map_err(|_| fault())?;
                roots.add(certificate).map_err(|_| fault())?;
            }
            if roots.is_empty() {
                return Err(fault().into());
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| Error::Invalid("TLS cannot be set up".to_owned()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self(Service(client)))
    }
}

impl object_store::client::HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        let exchange = async {
            let response = self.0.request(request).await.map_err(|failure| {
                let kind = if failure.is_connect() {
                    HttpErrorKind::Connect
                } else {
                    HttpErrorKind::Interrupted
                };
                HttpError::new(kind, failure)
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|failure| HttpError::new_boxed(HttpErrorKind::Interrupted, failure))?;
            Ok(HttpResponse::from_parts(
                parts,
                HttpResponseBody::from(body.to_bytes()),
            ))
        };
        match tokio::time::timeout(EXCHANGE_TIMEOUT, exchange).await {
            Ok(outcome) => outcome,
            Err(elapsed) => Err(HttpError::new(HttpErrorKind::Timeout, elapsed)),
        }
    }
}
