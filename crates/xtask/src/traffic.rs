//! The requests that drivers send: one good request of every operation that changes anything (`catalogue.rs`) with what it
//! needs (`maker.rs`), and what the drivers with a memory of their own ask in the same way.

pub mod catalogue;
pub mod machine;
pub mod maker;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::failure::{Context, Outcome};
use crate::http::Request;
use crate::process;
use crate::product::Bootstrap;
use crate::random::Random;

/// Reason, key and confirmation as headers, for a request whatever its body is.
pub fn mutation_headers(key: &str, reason: &str) -> Vec<(&'static str, String)> {
    vec![
        ("Idempotency-Key", key.to_owned()),
        ("X-Reason", reason.to_owned()),
        ("X-Confirm", "true".to_owned()),
    ]
}

/// What the administrator of an organization asks.
impl Bootstrap {
    pub fn get(&self, rest: &str) -> Request {
        Request::get(self.path(rest), &self.token)
    }

    /// A change with reason and key in its body.
    pub fn change(
        &self,
        method: &'static str,
        rest: &str,
        mut body: Value,
        key: &str,
        reason: &str,
    ) -> Request {
        body["reason"] = reason.into();
        body["idempotencyKey"] = key.into();
        Request::new(method, self.path(rest), &self.token).with_body(body)
    }

    /// A change with reason, key and confirmation in its headers, without a body.
    pub fn act(&self, method: &'static str, rest: &str, key: &str, reason: &str) -> Request {
        let mut request = Request::new(method, self.path(rest), &self.token);
        request.headers = mutation_headers(key, reason);
        request
    }

    pub fn publish(&self, archive: Vec<u8>, key: &str, reason: &str) -> Request {
        let mut request = self.act("POST", "skill-registry", key, reason);
        request.content = Some(("application/gzip", archive));
        request
    }

    pub fn decide(&self, events: &[Value]) -> Request {
        Request::new("POST", self.path("policies/decisions"), &self.token)
            .with_body(json!({ "events": events }))
    }

    /// An import of recorded events, told apart by its source and its bytes.
    pub fn import(&self, source: &str, events: &[Value]) -> Request {
        let path = self.path(&format!("policies/history/import?source={source}"));
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        let mut request = Request::new("POST", path, &self.token);
        request.content = Some(("application/x-ndjson", lines.join("\n").into_bytes()));
        request
    }

    /// A call of a tool over MCP.
    pub fn call(&self, path: &str, tool: &str, arguments: &Value) -> Request {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } });
        let mut request = Request::new("POST", path, &self.token).with_body(message);
        request.headers = vec![
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("MCP-Protocol-Version", "2025-11-25".to_owned()),
        ];
        request
    }
}

/// An account with all that its role may do.
pub fn account(name: &str, role: &str) -> Value {
    json!({ "name": name, "permissionRole": role, "allOfRole": true })
}

pub fn resource(name: &str, host: &str) -> Value {
    json!({
        "name": name, "protocol": "http", "upstreamHost": host, "upstreamPort": 443, "upstreamTls": true,
        "enabled": true, "transparentRouting": false,
    })
}

pub fn credential(name: &str, secret: &str) -> Value {
    json!({ "name": name, "kind": "bearer_token", "secret": secret })
}

/// A call of a tool as an event.
pub fn event(occasion: &str, call: &str, tool: &str) -> Value {
    json!({ "occasion": occasion, "callId": call, "attributes": { "tool.id": tool } })
}

/// A call of a tool as it was recorded elsewhere.
pub fn recorded(id: &str, at: &str, tool: &str) -> Value {
    json!({ "id": id, "at": at, "occasion": "post_tool", "attributes": { "tool.id": tool } })
}

/// The id of the record that an answer shows: at the top, or in one member.
pub fn id_in(answer: &Value) -> Option<&str> {
    let members = answer
        .as_object()
        .into_iter()
        .flat_map(|members| members.values());
    std::iter::once(answer)
        .chain(members)
        .find_map(|one| one["id"].as_str())
}

pub fn text_in(answer: &Value, place: &str) -> Outcome<String> {
    let found = answer.pointer(place).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .context(format_args!("an answer without {place}: {answer}"))
}

/// A skill as a tar archive, with so many bytes that cannot be compressed well.
pub fn archive(name: &str, folder: &Path, bytes: usize) -> Outcome<Vec<u8>> {
    let skills = folder.join("skills");
    let skill = skills.join(name);
    std::fs::create_dir_all(&skill).context("cannot write a skill")?;
    let text = format!("---\nname: {name}\ndescription: A skill of the drivers.\n---\n\nDo nothing.\n");
    std::fs::write(skill.join("SKILL.md"), text).context("cannot write a skill")?;
    if bytes > 0 {
        let mut random = Random::new(bytes as u64);
        let words: Vec<String> = (0..bytes / 16)
            .map(|_| format!("{:015x}", random.next() >> 4))
            .collect();
        std::fs::write(skill.join("notes.md"), words.join(" ")).context("cannot write a skill")?;
    }
    let file = skills.join(format!("{name}.tar.gz"));
    process::run(
        Command::new("tar")
            .arg("-czf")
            .arg(&file)
            .arg("-C")
            .arg(&skills)
            .arg(name),
    )?;
    std::fs::read(&file).context("cannot read the archive")
}
