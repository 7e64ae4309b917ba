//! What a step ends with: an answer to the client by redirect, or a page that says why not.

use super::browser::Browser;
use super::page::{self, Notice};
use axum::body::Body;
use axum::response::Response;
use http::header::{LOCATION, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use provost_kernel::{Code, Error, Kernel};
use provost_words::url::encoded;
use std::borrow::Cow;

/// Why a step is not taken.
pub enum Stop {
    /// The person is told: nobody else can be trusted with it.
    Notice(Box<Notice>),
    /// The client is told.
    Back(Box<Back>),
    /// The server cannot, or may not now.
    Fault(Error),
}

impl From<Notice> for Stop {
    fn from(notice: Notice) -> Self {
        Self::Notice(Box::new(notice))
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Fault(error)
    }
}

/// An error for the client, at a redirect target that was checked.
pub struct Back {
    /// Where to.
    pub target: Target,
    /// A registered code (RFC 6749 §4.1.2.1 and its extensions).
    pub code: &'static str,
    /// A sentence for developers, without anything that the request said.
    pub description: Cow<'static, str>,
}

/// Where an answer goes, and what the client wants to see again.
#[derive(Clone)]
pub struct Target {
    /// A redirect target of the client, checked (SI-1).
    pub redirect_uri: String,
    /// `state`, as it came.
    pub state: Option<String>,
}

impl Target {
    /// Returns an error for the client.
    pub fn error(&self, code: &'static str, description: impl Into<Cow<'static, str>>) -> Stop {
        Stop::Back(Box::new(Back {
            target: self.clone(),
            code,
            description: description.into(),
        }))
    }

    /// Redirects with parameters, and with `state` and `iss` (RFC 9207).
    pub fn redirect(&self, kernel: &Kernel, parameters: &[(&str, &str)]) -> Response {
        let mut all = parameters.to_vec();
        if let Some(state) = &self.state {
            all.push(("state", state));
        }
        all.push(("iss", &kernel.settings.public_url));
        see_other(&with_query(&self.redirect_uri, &all))
    }
}

/// Makes a stop the response that says it.
pub fn stopped(kernel: &Kernel, stop: Stop) -> Response {
    match stop {
        Stop::Notice(notice) => page::notice(&notice),
        Stop::Back(back) => {
            let said = [("error", back.code), ("error_description", &*back.description)];
            back.target.redirect(kernel, &said)
        }
        Stop::Fault(error) => fault(&error),
    }
}

fn fault(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status.is_server_error() {
        tracing::error!(
            code = error.code().as_str(),
            message = error.message(),
            cause = error.private(),
            "a step of signing in failed"
        );
    }
    let title = match error.code() {
        Code::RateLimited => "Too many attempts",
        _ if status.is_server_error() => "This did not work",
        _ => "This request is not understood",
    };
    let words = match error.code() {
        Code::Internal => {
            "The fault is on this server. Try again; if it stays, tell whoever runs it.".to_owned()
        }
        _ => sentence(error.message()),
    };
    let mut response = page::notice(&Notice::new(status, title, words));
    if let Some(secs) = error.retry_after_secs() {
        response.headers_mut().insert(RETRY_AFTER, secs.into());
    }
    response
}

/// Returns a message of the kernel as people write: with a capital and a full stop.
fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).chain(['.']).collect()
}

/// Redirects with GET, whatever the method was.
pub fn see_other(url: &str) -> Response {
    let mut response = Response::new(Body::empty());
    // A target was checked character by character, and parameters are escaped.
    let Ok(location) = HeaderValue::from_str(url) else {
        return fault(&Error::internal("a redirect target is no header value"));
    };
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, location);
    response
        .headers_mut()
        .insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Adds the cookie of a browser to a response.
pub fn remember(mut response: Response, browser: &Browser) -> Response {
    if let Some(cookie) = browser.cookie() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Returns a URL with parameters behind those that it has.
pub fn with_query(url: &str, parameters: &[(&str, &str)]) -> String {
    let mut text = url.to_owned();
    let mut sign = if url.contains('?') { '&' } else { '?' };
    if url.ends_with(['?', '&']) {
        sign = '\0';
    }
    for (name, value) in parameters {
        if sign != '\0' {
            text.push(sign);
        }
        sign = '&';
        text.extend(encoded(name));
        text.push('=');
        text.extend(encoded(value));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_go_behind_those_that_are_there() {
        let pairs = [("code", "a b&c"), ("state", "ü\r\n")];
        for (url, expected) in [
            (
                "https://a.example/cb",
                "https://a.example/cb?code=a%20b%26c&state=%C3%BC%0D%0A",
            ),
            (
                "https://a.example/cb?x=1",
                "https://a.example/cb?x=1&code=a%20b%26c&state=%C3%BC%0D%0A",
            ),
            (
                "https://a.example/cb?",
                "https://a.example/cb?code=a%20b%26c&state=%C3%BC%0D%0A",
            ),
            (
                "com.example.app:/cb",
                "com.example.app:/cb?code=a%20b%26c&state=%C3%BC%0D%0A",
            ),
        ] {
            assert_eq!(with_query(url, &pairs), expected);
        }
    }

    #[test]
    fn a_message_becomes_a_sentence() {
        assert_eq!(sentence("try again"), "Try again.");
        assert_eq!(sentence(""), ".");
    }
}
