//! The HTTP client of a store: the pool of connections of the program.
//!
//! An answer is read whole within a deadline: a store that stalls in the middle of an answer is an error, which is
//! tried again, and not a thread that waits for ever.

use super::Options;
use crate::error::{Error, Result};
use async_trait::async_trait;
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use provost_outbound::{Patience, Pool, client_config, pool, roots_of_file, system_roots};
use std::io;
use std::time::Duration;

const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(10),
    idle: Duration::from_secs(90),
};
/// How long one exchange may take: a segment of 64 MiB needs 1 MiB/s.
const EXCHANGE_TIMEOUT: Duration = Duration::from_mins(1);
/// LIMIT: an answer is held in memory; no segment comes near.
const MAX_ANSWER_BYTES: usize = 1 << 30;

/// Makes clients that share one pool of connections.
#[derive(Debug)]
pub struct Connector(Service);

#[derive(Clone, Debug)]
struct Service(Pool<HttpRequestBody>);

impl Connector {
    pub fn new(options: &Options) -> Result<Self> {
        let roots = match &options.ca_file {
            Some(path) => roots_of_file(path).map_err(|_| {
                let fault = format!("{} holds no certificates", path.display());
                io::Error::new(io::ErrorKind::InvalidData, fault)
            })?,
            None => system_roots(),
        };
        let config = client_config(roots).map_err(|_| Error::Invalid("TLS cannot be set up".to_owned()))?;
        let client = pool(config, PATIENCE);
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
