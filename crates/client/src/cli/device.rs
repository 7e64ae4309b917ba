//! The server as the agent asks it: with the agent's own token and proof, and nothing of a profile or of the environment but the proxy.
//!
//! Keeps CL-1, CL-5.

use super::connection::{Place, normal, refuse_plain, token_of_file};
use super::failure::Failure;
use super::instant::of_http_date;
use super::proxy;
use super::server::{self, Call, Server, Silence};
use super::terminal::Terminal;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use provost_agent::{Call as AgentCall, Door, Reply};
use provost_words::Secret;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

/// LIMIT: bytes of an answer to a device. Ours: the longest names some hundred digests.
const MOST_ANSWER: usize = 256 << 10;
/// LIMIT: bytes of what a device reads. Ours: a release is a document of 2 MiB, whose files are texts within JSON, and archives of
/// skills are mostly smaller.
const MOST_READ: usize = 16 << 20;
/// How long one request may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A server that a device asks.
pub struct DeviceServer {
    server: Server,
    ca_cert: Option<PathBuf>,
}

impl DeviceServer {
    /// Returns the server at a URL, whose certificate these vouch for, else the system's.
    ///
    /// Errors: usage, when it is no URL of a server, its token would travel in clear without `allow_plain`, or nobody vouches for it.
    pub fn new(
        url: &str,
        ca_cert: Option<PathBuf>,
        allow_plain: bool,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let url = normal(url)?;
        if !allow_plain {
            refuse_plain(&url)?;
        }
        let place = place(url, ca_cert, terminal)?;
        Ok(Self {
            server: Server::anonymous(&place)?,
            ca_cert: place.ca_cert,
        })
    }

    /// Returns the server as a person is asked for it who signs in there.
    ///
    /// Errors: usage, for a proxy that is none.
    pub(super) fn place(&self, terminal: &Terminal) -> Result<Place, Failure> {
        place(self.server.url().to_owned(), self.ca_cert.clone(), terminal)
    }

    async fn exchange(&self, call: &AgentCall<'_>) -> Result<Reply, String> {
        let unsendable = |_| "the token or its proof has characters that no header has".to_owned();
        let mut headers = HeaderMap::new();
        let authorization = server::authorization(call.token).map_err(|failure| failure.lines.concat())?;
        headers.insert(header::AUTHORIZATION, authorization);
        let mut proof = HeaderValue::from_str(call.proof.expose()).map_err(unsendable)?;
        proof.set_sensitive(true);
        headers.insert(HeaderName::from_static("dpop"), proof);
        if let Some(known) = call.known {
            let known =
                HeaderValue::from_str(known).map_err(|_| "the tag of an answer is none".to_owned())?;
            headers.insert(header::IF_NONE_MATCH, known);
        }
        let is_read = call.method == "GET";
        let asked = Call {
            method: if is_read { Method::GET } else { Method::POST },
            target: call.path.to_owned(),
            headers,
            body: (!is_read).then(|| Bytes::copy_from_slice(call.body)),
            is_download: false,
        };
        let url = self.server.url();
        let asked = tokio::time::timeout(LIMIT, self.server.ask(&asked)).await;
        let asked =
            asked.map_err(|_| format!("cannot reach {url}: no answer within {} s", LIMIT.as_secs()))?;
        let reply = asked.map_err(|silence| match silence {
            Silence::NotSent(trouble) | Silence::NobodyThere(trouble) => {
                let says = format!("cannot reach {url}: {trouble}");
                [vec![says], trouble.steps].concat().join("; ")
            }
            Silence::Lost(trouble) => format!("cannot reach {url}: the answer was lost: {trouble}"),
            Silence::TooLong(trouble) => format!("{url}: {trouble}"),
            Silence::Refused(failure) => failure.lines.join("; "),
        })?;
        let most = if is_read { MOST_READ } else { MOST_ANSWER };
        if reply.body.len() > most {
            return Err(format!(
                "{url}: the answer has more than {most} bytes, which no answer to a device has"
            ));
        }
        let text = |name| {
            reply
                .headers
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
        };
        let seconds = text(header::RETRY_AFTER).and_then(|seconds| seconds.trim().parse().ok());
        Ok(Reply {
            status: reply.status.as_u16(),
            date: text(header::DATE).and_then(of_http_date),
            retry_after: seconds.map(Duration::from_secs),
            etag: text(header::ETAG)
                .filter(|tag| tag.len() <= 256)
                .map(str::to_owned),
            body: reply.body.to_vec(),
        })
    }
}

impl Door for DeviceServer {
    fn url(&self) -> &str {
        self.server.url()
    }

    fn send<'a>(
        &'a self,
        call: &'a AgentCall<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, String>> + 'a>> {
        Box::pin(self.exchange(call))
    }
}

fn place(url: String, ca_cert: Option<PathBuf>, terminal: &Terminal) -> Result<Place, Failure> {
    Ok(Place {
        proxy: proxy::of(&url, &terminal.surroundings)?,
        url,
        url_source: String::new(),
        organization: String::new(),
        organization_source: String::new(),
        profile: String::new(),
        timeout: LIMIT,
        retries: 0,
        ca_cert,
        clock: terminal.clock.clone(),
    })
}

/// Returns the token that stands in a file, or that is read from standard input where it is `-`.
///
/// Errors: usage, when there is none.
pub fn enrolment_token(path: &Path, terminal: &Terminal) -> Result<Secret<String>, Failure> {
    let text = if path == Path::new("-") {
        let bytes = Secret::new(terminal.read_input(8 << 10)?);
        Secret::new(String::from_utf8_lossy(bytes.expose()).into_owned())
    } else {
        token_of_file(path, terminal, false)?
    };
    let token = super::checked_token(text.expose());
    token.ok_or_else(|| Failure::usage(format!("{} does not hold one token on one line", path.display())))
}
