//! One connection, one request, one answer.

use crate::address::Address;
use crate::fetch::{FetchRefusal, FetchedDocument};
use crate::freshness::max_age;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long one of several addresses is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// LIMIT: bytes of an answer's head.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;

/// What is sent.
pub(super) enum OutgoingRequest {
    Document,
    Form {
        form: Bytes,
        authorization: Option<HeaderValue>,
    },
}

/// Connects to the first address that answers.
pub(super) async fn connect(targets: &[SocketAddr]) -> Result<TcpStream, FetchRefusal> {
    for target in targets {
        let attempt = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(target)).await;
        if let Ok(Ok(stream)) = attempt {
            stream.set_nodelay(true).map_err(|_| FetchRefusal::Unreachable)?;
            return Ok(stream);
        }
    }
    Err(FetchRefusal::Unreachable)
}

/// Encrypts the connection; the certificate must be one for the URL's host, wherever the connection leads.
pub(super) async fn encrypt(
    tls: &TlsConnector,
    stream: TcpStream,
    address: &Address<'_>,
) -> Result<TlsStream<TcpStream>, FetchRefusal> {
    let name = match address.ip() {
        Some(ip) => ServerName::from(ip),
        None => ServerName::try_from(address.host.to_owned()).map_err(|_| FetchRefusal::Tls)?,
    };
    tls.connect(name, stream).await.map_err(|_| FetchRefusal::Tls)
}

/// Sends the request and reads the whole answer.
pub(super) async fn run<S>(
    stream: S,
    address: &Address<'_>,
    asked: OutgoingRequest,
    max_bytes: usize,
) -> Result<FetchedDocument, FetchRefusal>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = request(address, asked).map_err(|_| FetchRefusal::Broken)?;
    let mut client = http1::Builder::new();
    client.max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
    let handshake = client.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|_| FetchRefusal::Broken)?;
    let mut exchange = pin!(async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|_| FetchRefusal::Broken)?;
        let (head, body) = answer.into_parts();
        judge(head.status.as_u16(), &head.headers)?;
        let body = Limited::new(body, max_bytes).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                FetchRefusal::TooLarge
            } else {
                FetchRefusal::Broken
            }
        })?;
        Ok(FetchedDocument {
            body: body.to_bytes(),
            max_age: max_age(&head.headers),
        })
    });
    let mut connection = pin!(connection);
    // The connection is polled here: no task outlives the fetch.
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        _ = &mut connection => exchange.await,
    }
}

fn judge(status: u16, headers: &HeaderMap) -> Result<(), FetchRefusal> {
    match status {
        200 => {}
        300..=399 => return Err(FetchRefusal::Redirect),
        status => return Err(FetchRefusal::Status(status)),
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(media_type), None) = (types.next(), types.next()) else {
        return Err(FetchRefusal::ContentType);
    };
    let is_json = media_type.to_str().is_ok_and(is_json);
    let plain = !headers.contains_key(header::CONTENT_ENCODING);
    (is_json && plain).then_some(()).ok_or(FetchRefusal::ContentType)
}

/// `application/json`, or an `application/` type of JSON's structure (RFC 6839 §3.1).
fn is_json(media_type: &str) -> bool {
    let essence = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || (subtype.len() > 5 && subtype.ends_with("+json")))
}

fn request(address: &Address<'_>, asked: OutgoingRequest) -> http::Result<Request<Full<Bytes>>> {
    let mut target = if address.path.is_empty() {
        "/".to_owned()
    } else {
        address.path.to_owned()
    };
    if let Some(query) = address.query {
        target.push('?');
        target.push_str(query);
    }
    let host = match address.written_port {
        Some(port) => format!("{}:{port}", address.host),
        None => address.host.to_owned(),
    };
    let request = Request::builder()
        .uri(target)
        .header(header::HOST, host)
        .header(header::ACCEPT, "application/json")
        .header(header::CONNECTION, "close")
        .header(header::USER_AGENT, concat!("provost/", env!("CARGO_PKG_VERSION")));
    match asked {
        OutgoingRequest::Document => request.body(Full::default()),
        OutgoingRequest::Form { form, authorization } => {
            let mut request = request
                .method(Method::POST)
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
            if let Some(value) = authorization {
                request = request.header(header::AUTHORIZATION, value);
            }
            request.body(Full::new(form))
        }
    }
}
