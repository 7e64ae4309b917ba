//! What an administrator does through the HTTP API.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::product::{Bootstrap, Server};

/// Counts the changes, whichever administrator makes them: they share an account, and so its keys.
static KEYS: AtomicU32 = AtomicU32::new(1);

pub struct Administrator {
    address: SocketAddr,
    base: String,
    token: String,
}

/// A service account and its token.
#[derive(Clone)]
pub struct Account {
    pub id: String,
    pub name: String,
    pub token: String,
    pub scopes: Vec<String>,
}

impl Administrator {
    pub fn new(server: &Server, bootstrap: &Bootstrap) -> Self {
        Self {
            address: server.address,
            base: bootstrap.path(""),
            token: bootstrap.token.clone(),
        }
    }

    fn send(&self, request: &Request) -> Outcome<Answer> {
        // A connection of its own each time: minutes may lie between two requests.
        Connection::new(self.address)
            .send(request)
            .map_err(|lost| Failure::new(format!("{} {}: {}", request.method, request.path, lost.why)))
    }

    pub fn get(&self, rest: &str) -> Outcome<Value> {
        let path = format!("{}{rest}", self.base);
        Connection::new(self.address).fetch(&Request::get(path, &self.token))
    }

    /// Whoever has this token, at the same organization.
    pub fn with_token(&self, token: String) -> Self {
        Self {
            address: self.address,
            base: self.base.clone(),
            token,
        }
    }

    /// Makes a change and returns the answer.
    pub fn post(&mut self, rest: &str, body: Value) -> Outcome<Value> {
        self.change("POST", rest, body)
    }

    /// Makes a change by this method and returns the answer.
    pub fn change(&mut self, method: &'static str, rest: &str, body: Value) -> Outcome<Value> {
        let mut body = body;
        let number = KEYS.fetch_add(1, Ordering::Relaxed);
        let words = body.as_object_mut().context("a body is an object")?;
        words
            .entry("reason")
            .or_insert_with(|| json!("clients of others"));
        words.insert("idempotencyKey".into(), json!(format!("clients-{number}")));
        let path = format!("{}{rest}", self.base);
        Connection::new(self.address).fetch(&Request::new(method, path, &self.token).with_body(body))
    }

    /// Asks a question that changes nothing by itself, and returns the answer.
    pub fn ask(&self, rest: &str, body: Value) -> Outcome<Value> {
        let path = format!("{}{rest}", self.base);
        Connection::new(self.address).fetch(&Request::new("POST", path, &self.token).with_body(body))
    }

    pub fn account(&mut self, name: &str, role: &str, scopes: &[&str]) -> Outcome<Account> {
        let body = json!({ "name": name, "permissionRole": role, "scopes": scopes });
        let made = self.post("service-accounts", body)?;
        Ok(Account {
            id: text(&made, "/serviceAccount/id")?,
            name: name.to_owned(),
            token: text(&made, "/token/token")?,
            scopes: sorted(&made["serviceAccount"]["scopes"]),
        })
    }

    /// All sessions that a query finds, page by page.
    pub fn sessions(&self, query: &[(&str, &str)]) -> Outcome<Vec<Value>> {
        let filters = query.iter().fold(String::new(), |all, (name, value)| {
            format!("{all}&{name}={}", escaped(value))
        });
        let mut found = Vec::new();
        loop {
            let page = self.get(&format!("mcp/sessions?limit=100&offset={}{filters}", found.len()))?;
            let sessions = page["sessions"]
                .as_array()
                .context("an answer without sessions")?;
            found.extend(sessions.iter().cloned());
            if sessions.len() < 100 {
                let total = page["total"].as_u64();
                if total.is_some_and(|total| total != found.len() as u64) {
                    return Err(Failure::new(format!(
                        "{} sessions are listed of {page}",
                        found.len()
                    )));
                }
                return Ok(found);
            }
        }
    }

    pub fn revoke(&mut self, session: &str, reason: &str) -> Outcome<Value> {
        self.post(
            &format!("mcp/sessions/{session}/revoke"),
            json!({ "reason": reason }),
        )
    }

    /// The status that a token gets at an HTTP operation.
    pub fn status_of(&self, token: &str) -> Outcome<u16> {
        let path = format!("{}service-accounts?limit=1", self.base);
        Ok(self.send(&Request::get(path, token))?.status)
    }
}

/// The text behind a JSON Pointer.
pub fn text(value: &Value, pointer: &str) -> Outcome<String> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(format!("there is no {pointer} in {value}")))
}

/// The words of a list, in order.
pub fn sorted(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut words: Vec<_> = words.map(str::to_owned).collect();
    words.sort_unstable();
    words
}

/// Percent-encodes everything that is not unreserved (RFC 3986).
pub fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().fold(String::new(), |mut all, byte| {
        if is_plain(byte) {
            all.push(char::from(byte));
        } else {
            all.extend(format!("%{byte:02X}").chars());
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_reserved_is_escaped() {
        assert_eq!(escaped("a b/ü~1&c=%"), "a%20b%2F%C3%BC~1%26c%3D%25");
    }
}
