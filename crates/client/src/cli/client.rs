//! A server, as commands written by hand talk to it. The rules are those of every other command (CL-1 to CL-3).

use super::advice;
use super::connection::{self, Connection};
use super::consent::Consent;
use super::draft::target;
use super::failure::Failure;
use super::pages::Trail;
use super::send::Sender;
use super::server::{self, Call, Reply, Server};
use super::terminal::Terminal;
use bytes::Bytes;
use clap::{Arg, ArgMatches};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use provost_words::Secret;
use provost_words::url::BASE;
use provost_words::url::encoded;
use serde_json::Value;

/// Returns the flags of the connection: server, organization, token, profile, time limits, `--quiet`,
/// `--output`.
pub fn connection_args() -> Vec<Arg> {
    connection::args()
}

/// One request, built word by word; it can be sent any number of times.
#[derive(Clone)]
pub struct Request {
    path: String,
    query: Vec<(String, String)>,
    call: Call,
    /// The flags that repeat a write; absent for a read.
    repeat: Option<String>,
    unmodified: bool,
}

impl Request {
    /// Returns a read of what lies at these segments below the organization.
    pub fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path)
    }

    /// Returns a request of any method; the segments are encoded here.
    pub fn new(method: Method, path: &[&str]) -> Self {
        let mut below = BASE.to_owned();
        for segment in path {
            below.push('/');
            below.extend(encoded(segment));
        }
        let call = Call {
            method,
            target: String::new(),
            headers: HeaderMap::new(),
            body: None,
            is_download: false,
        };
        Self {
            path: below,
            query: Vec::new(),
            call,
            repeat: None,
            unmodified: false,
        }
    }

    /// Returns a read of a document outside the API: `/.well-known/provost-keys.json`.
    pub fn public(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..Self::get(&[])
        }
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    /// Sets a header. One that cannot be sent is left out.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.call.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// Sets a body of JSON.
    #[must_use]
    pub fn json(mut self, body: &Value) -> Self {
        self.call.body = Some(body.to_string().into());
        self
    }

    /// Sets a body of another media type; the mutation metadata then travels in headers.
    #[must_use]
    pub fn content(mut self, media_type: &str, bytes: impl Into<Bytes>) -> Self {
        self.call.body = Some(bytes.into());
        self.header("content-type", media_type)
    }

    /// Carries this token instead of the connection's.
    ///
    /// Errors: usage, when it has characters that no token has.
    pub fn token(mut self, token: &Secret<String>) -> Result<Self, Failure> {
        let authorization = server::authorization(token)?;
        self.call.headers.insert(header::AUTHORIZATION, authorization);
        Ok(self)
    }

    /// Adds the mutation metadata: to a body of JSON, else to the headers. What has it is sent again under its key.
    ///
    /// Errors: usage, when the body is no object or the reason cannot stand in a header.
    pub fn consent(mut self, consent: &Consent) -> Result<Self, Failure> {
        let is_json = self.call.body.is_some() && !self.call.headers.contains_key(header::CONTENT_TYPE);
        if is_json {
            self.call.body = Some(consent.add_to_body(self.call.body.as_deref())?);
        } else {
            consent.add_to_headers(&mut self.call.headers)?;
        }
        self.repeat = Some(consent.repeat());
        Ok(self)
    }

    /// Takes an answer that is content, which may be large.
    #[must_use]
    pub fn download(mut self) -> Self {
        self.call.is_download = true;
        self
    }

    /// Takes 304 for an answer, as a request with `If-None-Match` does.
    #[must_use]
    pub fn or_unmodified(mut self) -> Self {
        self.unmodified = true;
        self
    }
}

/// The answer of success.
pub struct Answer(Reply);

impl Answer {
    /// Returns the status.
    pub fn status(&self) -> u16 {
        self.0.status.as_u16()
    }

    /// Returns a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers.get(name)?.to_str().ok()
    }

    /// Returns the JSON of the body; `null` without a body.
    ///
    /// Errors: a fault of the server, when it is not JSON.
    pub fn json(&self) -> Result<Value, Failure> {
        super::print::parsed(&self.0)
    }

    /// Returns the body.
    pub fn bytes(self) -> Bytes {
        self.0.body
    }
}

/// A server that can be asked in the name of one organization.
pub struct Client<'a> {
    server: Server,
    connection: Connection,
    /// Where notes and answers go.
    pub terminal: &'a Terminal,
    /// No notes and no progress are wanted.
    pub quiet: bool,
}

impl<'a> Client<'a> {
    /// Reads the flags of [`connection_args`], the environment and the profile.
    ///
    /// Errors: usage, when they name no server, organization or token, or the token would travel in clear.
    pub fn connect(matches: &ArgMatches, terminal: &'a Terminal) -> Result<Self, Failure> {
        let connection = Connection::resolve(matches, terminal)?;
        Ok(Self {
            server: Server::new(&connection)?,
            connection,
            terminal,
            quiet: matches.get_flag("global.quiet"),
        })
    }

    /// Returns the URL of the server without a slash at its end.
    pub fn url(&self) -> &str {
        self.server.url()
    }

    /// Returns the organization's key.
    pub fn organization(&self) -> &str {
        &self.connection.place.organization
    }

    /// Writes a line to standard error unless `--quiet` is said.
    pub fn note(&self, line: &str) {
        if !self.quiet {
            self.terminal.note(line);
        }
    }

    /// Sends a request until it is answered, and returns the answer of success.
    ///
    /// Errors: what the server refused, or why there is no answer; see [`super::Exit`].
    pub async fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let path = request.path.replacen(
            "{organizationId}",
            &encoded(&self.connection.place.organization).to_string(),
            1,
        );
        let call = Call {
            target: target(&path, &request.query),
            ..request.call.clone()
        };
        let sender = Sender {
            server: &self.server,
            terminal: self.terminal,
            retries: self.connection.place.retries,
            quiet: self.quiet,
            repeat: request.repeat.clone(),
            unmodified: request.unmodified,
            weighs: false,
        };
        let sent = sender.send(&call).await;
        sent.map(Answer).map_err(|failure| match failure.status {
            Some(401 | 403) => advice::about_access(failure, &self.connection),
            _ => failure,
        })
    }

    /// Returns the JSON of a read.
    pub async fn get_json(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.send(&asked(Request::get(path), query)).await?.json()
    }

    /// Returns the bytes of a read, asked for with another token if one is given.
    pub async fn get_bytes(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        token: Option<&Secret<String>>,
    ) -> Result<Bytes, Failure> {
        let request = asked(Request::get(path), query).download();
        let request = match token {
            Some(token) => request.token(token)?,
            None => request,
        };
        Ok(self.send(&request).await?.bytes())
    }

    /// Sends a write of JSON; an empty body is `{}`.
    pub async fn send_json(
        &self,
        method: Method,
        path: &[&str],
        body: &Value,
        consent: &Consent,
    ) -> Result<Value, Failure> {
        let request = Request::new(method, path).json(body).consent(consent)?;
        self.send(&request).await?.json()
    }

    /// Sends content that is not JSON; the mutation metadata travels in headers.
    pub async fn send_content(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        (media_type, bytes): (&str, Bytes),
        consent: &Consent,
    ) -> Result<Value, Failure> {
        let request = asked(Request::new(method, path), query).content(media_type, bytes);
        self.send(&request.consent(consent)?).await?.json()
    }

    /// Returns the items of every page of a list that pages by `cursor`.
    ///
    /// Errors: a fault of the server, when it names the same page again.
    pub async fn get_all(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        member: &str,
    ) -> Result<Vec<Value>, Failure> {
        let (mut items, mut trail) = (Vec::new(), Trail::default());
        let mut cursor: Option<String> = None;
        loop {
            let mut request = asked(Request::get(path), query);
            if let Some(cursor) = &cursor {
                request = request.query("cursor", cursor.as_str());
            }
            let mut page = self.send(&request).await?.json()?;
            let before = items.len();
            if let Some(Value::Array(found)) = page.get_mut(member).map(Value::take) {
                items.extend(found);
            }
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            let Some(next) = next else {
                return Ok(items);
            };
            trail.go_on("page", &next, items.len() - before)?;
            cursor = Some(next);
        }
    }
}

fn asked(request: Request, query: &[(&str, &str)]) -> Request {
    query
        .iter()
        .fold(request, |request, (name, value)| request.query(name, *value))
}
