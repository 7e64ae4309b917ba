//! Requests in forms, as OAuth's endpoints take them: nothing twice, and nothing of them is printed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use provost_kernel::Secret;
use provost_kernel::dispatch::percent_decode;
use provost_oauth::TokenError;
use provost_oauth::error::Code;
use provost_words::url::encoded;
use std::time::Duration;

/// LIMIT: bytes of a request, and how long they may take: whoever sends them is nobody known yet (ADR 0071).
pub const MAX_BYTES: usize = 16 * 1024;
pub const PATIENCE: Duration = Duration::from_secs(3);
/// LIMIT: parameters of a request.
const MAX_PARAMETERS: usize = 64;
/// RFC 8707 §2: the one parameter that may stand there more than once.
const REPEATABLE: &str = "resource";

/// The parameters of a request. Those without a value are as if absent (RFC 6749 §3.2).
pub struct Form(Vec<(String, Secret<String>)>);

impl Form {
    /// Reads a form.
    ///
    /// Errors: `invalid_request`.
    pub fn parse(body: &[u8]) -> Result<Self, TokenError> {
        let text = std::str::from_utf8(body).map_err(|_| wrong("the form is not text"))?;
        let mut all: Vec<(String, Secret<String>)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| percent_decode(&text.replace('+', " "));
            let name = decode(name).ok_or_else(|| wrong("a name in the form is not understood"))?;
            let value = decode(value).ok_or_else(|| wrong("a value in the form is not understood"))?;
            if all.iter().any(|(known, _)| *known == name) && name != REPEATABLE {
                return Err(wrong("a parameter stands in the form twice"));
            }
            if all.len() == MAX_PARAMETERS {
                return Err(wrong("the form has too many parameters"));
            }
            all.push((name, Secret::new(value)));
        }
        all.retain(|(_, value)| !value.expose().is_empty());
        Ok(Self(all))
    }

    /// Returns a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns every value of a parameter.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.expose().as_str())
    }

    /// Returns a parameter that must be there.
    ///
    /// Errors: `invalid_request`.
    pub fn need(&self, name: &str) -> Result<&str, TokenError> {
        self.get(name).ok_or_else(|| wrong(format!("{name} is missing")))
    }
}

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Form(…)")
    }
}

fn wrong(sentence: impl AsRef<str>) -> TokenError {
    TokenError::new(Code::InvalidRequest, sentence)
}

/// Returns the header with which a client of another server proves itself there (RFC 6749 §2.3.1).
pub fn basic(id: &str, secret: &Secret<String>) -> Option<HeaderValue> {
    let pair = Secret::new(format!("{}:{}", encoded(id), encoded(secret.expose())));
    let header = Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())));
    HeaderValue::from_str(header.expose()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_once_and_never_printed() {
        let form = Form::parse(b"a=1%2B2+3&resource=x&resource=y&empty=&b").unwrap();
        assert_eq!(form.get("a"), Some("1+2 3"));
        assert_eq!(form.all("resource").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!((form.get("empty"), form.get("b")), (None, None));
        assert!(!format!("{form:?}").contains('1'));
        for wrong in ["a=1&a=1", "a=1&a=", "a=%zz", "a=%ff", &"x&".repeat(65)] {
            assert!(Form::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
