//! A client that keeps its connections, for servers that the operator or the caller names.

use http::{HeaderValue, Uri};
use http_body::Body;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use std::time::Duration;

/// A client that sends bodies of this type. It follows no redirect and knows no proxy.
pub type Pool<B> = Client<HttpsConnector<HttpConnector>, B>;

/// A client that reaches every server through one proxy, by `CONNECT`: what it sends stays encrypted for the server.
pub type ProxiedPool<B> = Client<HttpsConnector<Tunnel<HttpConnector>>, B>;

/// How long connections are waited for and kept.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To connect to one address.
    pub connect: Duration,
    /// To keep a connection that nobody uses.
    pub idle: Duration,
}

/// Makes a client for HTTP/1.1 with or without TLS.
///
/// Absent on purpose: a guard against inner addresses. Whoever sets it up names the server, and many stand in the same house; what
/// strangers can cause goes through [`crate::Fetcher`].
pub fn pool<B>(config: ClientConfig, patience: Patience) -> Pool<B>
where
    B: Body + Send,
    B::Data: Send,
{
    built(config, connector(patience), patience)
}

/// Makes a client that speaks to servers through a proxy; `authorization` is what the proxy asks for, if it does.
pub fn proxied_pool<B>(
    config: ClientConfig,
    patience: Patience,
    proxy: Uri,
    authorization: Option<HeaderValue>,
) -> ProxiedPool<B>
where
    B: Body + Send,
    B::Data: Send,
{
    let mut tunnel = Tunnel::new(proxy, connector(patience));
    if let Some(authorization) = authorization {
        tunnel = tunnel.with_auth(authorization);
    }
    built(config, tunnel, patience)
}

fn connector(patience: Patience) -> HttpConnector {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(patience.connect));
    http
}

fn built<C, B>(config: ClientConfig, way: C, patience: Patience) -> Client<HttpsConnector<C>, B>
where
    HttpsConnector<C>: Connect + Clone,
    B: Body + Send,
    B::Data: Send,
{
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(way);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(patience.idle)
        .build(connector)
}
