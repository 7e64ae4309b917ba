//! Makes what an operation needs, through the API, and the request of the operation itself.

use serde_json::{Value, json};

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::product::Bootstrap;
use crate::traffic::{id_in, resource};

/// What a fixture may use.
pub struct Maker<'a> {
    pub connection: &'a mut Connection,
    pub bootstrap: &'a Bootstrap,
    /// A word that no other point has.
    pub unique: &'a str,
    /// A tar archive of one skill, with so many bytes beside its text.
    pub archive: &'a dyn Fn(&str, usize) -> Outcome<Vec<u8>>,
    /// How many bytes SQLite's log has.
    pub log_bytes: &'a dyn Fn() -> u64,
    /// How many requests this fixture sent, so that each has its own key.
    pub sent: u32,
}

/// An operation that is about to be called.
pub struct Ready {
    pub request: Request,
    /// What shows its effect, beside the lists that are always compared.
    pub shows: Vec<String>,
}

impl Maker<'_> {
    /// A mutation of the fixture; it must succeed.
    pub fn write(&mut self, method: &'static str, path: &str, body: Value) -> Outcome<Value> {
        let request = self.mutation(method, path).with_body(body);
        self.send(&request)
    }

    /// Sends what must succeed; no content is `null`.
    pub fn send(&mut self, request: &Request) -> Outcome<Value> {
        let answer = self.answer(request)?;
        if answer.body.is_empty() {
            Ok(Value::Null)
        } else {
            answer.json()
        }
    }

    /// Sends what must succeed.
    pub fn answer(&mut self, request: &Request) -> Outcome<Answer> {
        let name = format!("the fixture's {} {}", request.method, request.path);
        let answer = self
            .connection
            .send(request)
            .map_err(|lost| lost.why)
            .context(&name)?;
        if answer.is_success() {
            return Ok(answer);
        }
        Err(Failure::new(format!("{name}: {}", answer.summary())))
    }

    /// A mutation of the fixture without a body.
    pub fn mutation(&mut self, method: &'static str, path: &str) -> Request {
        self.sent += 1;
        let key = format!("{}-fixture-{:04}", self.unique, self.sent);
        self.bootstrap.act(method, path, &key, "a fixture")
    }

    /// The id in the answer to a creation: at the top, or in one member.
    pub fn make(&mut self, path: &str, body: Value) -> Outcome<String> {
        let made = self.write("POST", path, body)?;
        let id = id_in(&made).context(format_args!("no id in what POST {path} made"))?;
        Ok(id.to_owned())
    }

    /// The operation under test, with a JSON body.
    pub fn call(&self, method: &'static str, path: &str, body: Value) -> Ready {
        let ready = self.bare(method, path);
        Ready {
            request: ready.request.with_body(body),
            ..ready
        }
    }

    /// The operation under test, without a body.
    pub fn bare(&self, method: &'static str, path: &str) -> Ready {
        let key = format!("{}-the-operation", self.unique);
        Ready {
            request: self.bootstrap.act(method, path, &key, self.unique),
            shows: Vec::new(),
        }
    }

    /// The operation under test, with content that is not JSON.
    pub fn content(&self, path: &str, media_type: &'static str, bytes: Vec<u8>) -> Ready {
        let mut ready = self.bare("POST", path);
        ready.request.content = Some((media_type, bytes));
        ready
    }

    pub fn account(&mut self) -> Outcome<String> {
        let body = json!({ "name": format!("for {}", self.unique), "permissionRole": "auditor", "scopes": ["audit:read"] });
        self.make("service-accounts", body)
    }

    pub fn user(&mut self) -> Outcome<String> {
        self.make(
            "directory/users",
            json!({ "loginName": format!("for-{}@example.com", self.unique) }),
        )
    }

    pub fn group(&mut self) -> Outcome<String> {
        self.make(
            "directory/groups",
            json!({ "name": format!("for {}", self.unique) }),
        )
    }

    pub fn resource(&mut self) -> Outcome<String> {
        self.make(
            "resources",
            resource(&format!("for {}", self.unique), "api.example.com"),
        )
    }

    pub fn skill(&mut self) -> Outcome<String> {
        let name = format!("for-{}", self.unique);
        self.skill_named(&name, 0)
    }

    pub fn skill_named(&mut self, name: &str, bytes: usize) -> Outcome<String> {
        let mut request = self.mutation("POST", "skill-registry");
        request.content = Some(("application/gzip", (self.archive)(name, bytes)?));
        let made = self.send(&request)?;
        made["item"]["id"]
            .as_str()
            .map(str::to_owned)
            .context("a published skill without an id")
    }
}

impl Ready {
    /// Adds a path that shows the effect.
    pub fn showing(mut self, path: impl Into<String>) -> Self {
        self.shows.push(path.into());
        self
    }
}
