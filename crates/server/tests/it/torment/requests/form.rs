//! One request as it goes to the router, and as a line of the corpus.

use super::scene::Scene;
use crate::support::{Reply, fresh_key};
use axum::body::Body;
use http::{HeaderName, HeaderValue, Request};
use serde_json::{Value, json};
use std::fmt::Write;

/// One request, and what its maker knows of it.
#[derive(Clone, Debug, Default)]
pub struct Form {
    pub caller: String,
    pub method: String,
    /// The whole target: path and query.
    pub target: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// The operation, by its place in the registry; none for a wild path or method.
    pub operation: Option<usize>,
    /// Why success would be a fault.
    pub wrong: Option<&'static str>,
}

impl Form {
    pub fn header(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.headers.push((name.to_owned(), value.into()));
    }

    /// Says whether a text is part of the request.
    pub fn sends(&self, text: &str) -> bool {
        let held = |part: &[u8]| part.windows(text.len()).any(|part| part == text.as_bytes());
        held(self.target.as_bytes()) || held(&self.body) || self.headers.iter().any(|(_, value)| held(value))
    }

    /// Says whether the path names a record of another organization.
    pub fn names_a_foreign_record(&self, scene: &Scene) -> bool {
        let path = self.target.split('?').next().unwrap();
        let ids = scene.foreign.others.values();
        let mut ids = ids.chain([&scene.foreign.account, &scene.foreign.token]);
        ids.any(|id| id.contains('_') && path.split('/').any(|part| part == id))
    }

    /// `None` for what no HTTP library would hand to a router.
    pub async fn send(&self, scene: &Scene) -> Option<Reply> {
        let mut request = Request::builder()
            .method(self.method.as_str())
            .uri(self.target.as_str())
            .body(Body::from(self.body.clone()))
            .ok()?;
        let headers = request.headers_mut();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.append(name, HeaderValue::from_bytes(value).ok()?);
        }
        if let Some(token) = &scene.caller(&self.caller).token {
            headers.append("authorization", format!("Bearer {token}").parse().ok()?);
        }
        Some(scene.app.answer(request).await)
    }

    /// The request as a line of the corpus; ids of the scene become names.
    pub fn line(&self, scene: &Scene) -> String {
        let headers: serde_json::Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into()))
            .collect();
        let mut line = json!({
            "why": "", "as": self.caller, "method": self.method, "target": self.target, "headers": headers,
        });
        match std::str::from_utf8(&self.body) {
            Ok(text) => line["body"] = text.into(),
            Err(_) => line["bodyHex"] = hex(&self.body).into(),
        }
        let mut line = line
            .to_string()
            .replace(&scene.app.organization, "{organizationId}");
        if let Some(place) = self.operation {
            // What is short stands within other words, and nothing within all of them.
            for (name, id) in names(scene, place).into_iter().filter(|(_, id)| id.len() >= 8) {
                line = line.replace(&id, &format!("{{{name}}}"));
            }
        }
        line
    }
}

/// The ids that a line may name, of an operation's own records.
pub fn names(scene: &Scene, place: usize) -> Vec<(String, String)> {
    let target = &scene.own[place];
    let mut names = vec![
        ("serviceAccountId".to_owned(), target.account.clone()),
        ("tokenId".to_owned(), target.token.clone()),
        ("entryId".to_owned(), target.entry.clone()),
    ];
    for (name, id) in &target.others {
        names.push(((*name).to_owned(), id.clone()));
    }
    for (name, id) in &scene.foreign.others {
        names.push((format!("foreign.{name}"), id.clone()));
    }
    names
}

/// Reads a line of the corpus: the request and the status that it has today.
pub fn read(scene: &Scene, line: &Value) -> (Form, u64) {
    let method = line["method"].as_str().unwrap().to_owned();
    let operation = line["operation"].as_str().map(|id| {
        let entries = scene.app.kernel.registry.entries();
        let found = entries.iter().position(|entry| entry.meta.id == id);
        found.unwrap_or_else(|| panic!("the corpus names {id}, which is no operation"))
    });
    let key = fresh_key();
    let fill = |text: &str| {
        let mut text = text
            .replace("{organizationId}", &scene.app.organization)
            .replace("{key}", &key);
        for (name, id) in names(scene, operation.unwrap_or(0)) {
            text = text.replace(&format!("{{{name}}}"), &id);
        }
        text
    };
    let body = match (line["body"].as_str(), line["bodyHex"].as_str()) {
        (Some(text), _) => fill(text).into_bytes(),
        (None, Some(digits)) => unhex(digits),
        (None, None) => Vec::new(),
    };
    let headers = line["headers"].as_object().into_iter().flatten();
    let form = Form {
        caller: line["as"].as_str().unwrap().to_owned(),
        target: fill(line["target"].as_str().unwrap()),
        headers: headers
            .map(|(name, value)| (name.clone(), fill(value.as_str().unwrap()).into_bytes()))
            .collect(),
        method,
        body,
        operation,
        wrong: None,
    };
    (form, line["status"].as_u64().unwrap())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// Prints the request when judging its answer panics.
pub struct PanicReport<'a>(&'a Scene, &'a Form);

impl<'a> PanicReport<'a> {
    pub fn when_panicking(scene: &'a Scene, form: &'a Form) -> Self {
        Self(scene, form)
    }
}

impl Drop for PanicReport<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the request, as a line of the corpus:\n{}", self.1.line(self.0));
        }
    }
}
