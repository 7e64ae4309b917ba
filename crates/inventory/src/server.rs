//! A server as clients write it down: each has its own members for the same things.

use crate::fingerprint::InventoryKey;
use crate::hide;
use crate::identity::{self, Ground};
use crate::report::{Pin, ServerFacts};
use crate::secrets::{found, looks_secret};
use serde_json::{Map, Value};

/// LIMIT: names of variables of a server. Ours.
const MAX_VARIABLES: usize = 64;
/// LIMIT: names of headers of a server. Ours.
const MAX_HEADERS: usize = 32;

/// What stands there. It holds values, and so has no `Debug`.
struct Entry {
    command: Vec<String>,
    url: Option<String>,
    variables: Vec<String>,
    headers: Vec<String>,
    kind: String,
    enabled: bool,
}

/// Reads a server; `None` when a member has a type that its client does not read.
pub(crate) fn facts(
    name: &str,
    value: &Value,
    scope: &'static str,
    client: &str,
    key: &InventoryKey,
    ground: &Ground<'_>,
) -> Option<ServerFacts> {
    let written = written(value.as_object()?)?;
    let identity = match &written.url {
        // Who has both is a client's mistake; what runs here is the command.
        Some(url) if written.command.is_empty() => identity::of_url(url),
        _ if written.command.is_empty() && written.kind == "builtin" => {
            let mut identity = identity::of_url("");
            identity.key = format!("builtin:{client}/{}", hide::name(key, name).to_lowercase());
            identity.is_weak = false;
            identity
        }
        _ if written.command.is_empty() => return None,
        _ => identity::of_command(written.command.clone(), &written.variables, ground),
    };
    let transport = match (written.command.is_empty(), written.kind.as_str()) {
        (true, "builtin") => "builtin",
        (true, "sse") => "sse",
        (true, _) => "http",
        (false, _) => "stdio",
    };
    let names = |names: &[String], most| {
        names
            .iter()
            .take(most)
            .map(|name| hide::name(key, name))
            .collect()
    };
    Some(ServerFacts {
        key: identity.key,
        configured_name: hide::name(key, name),
        scope,
        transport,
        version: identity.version,
        version_pin: if written.command.is_empty() {
            Pin::None
        } else {
            identity.pin
        },
        shape: identity.is_pipeline.then_some("pipeline"),
        weak: identity.is_weak,
        arg_shapes: hide::shapes(key, written.command.get(1..).unwrap_or_default()),
        env_names: names(&written.variables, MAX_VARIABLES),
        header_names: names(&written.headers, MAX_HEADERS),
        secrets_inline: secrets("", value),
        enabled: written.enabled,
    })
}

/// Counts the credentials in a value.
fn secrets(member: &str, value: &Value) -> usize {
    match value {
        Value::String(text) if found(member, text).is_some() => 1,
        Value::String(text) => text
            .split(['/', '?', '&', '=', ' '])
            .filter(|part| looks_secret(part))
            .count()
            .min(1),
        Value::Array(items) => items.iter().map(|item| secrets(member, item)).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| secrets(name, value)).sum(),
        _ => 0,
    }
}

fn written(members: &Map<String, Value>) -> Option<Entry> {
    // Continue has the server in a member of its own, Zed the command.
    if let Some(inner) = members.get("transport").and_then(Value::as_object) {
        return written(inner);
    }
    let mut command = Vec::new();
    let mut variables = names(members, &["env", "envs", "environment"])?;
    match first(members, &["command", "cmd"]) {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => command.push(text.clone()),
        Some(Value::Array(items)) => command = texts(items)?,
        Some(Value::Object(inner)) => {
            command.push(inner.get("path")?.as_str()?.to_owned());
            command.extend(texts(
                inner
                    .get("args")
                    .map_or(Some(&[][..]), |args| args.as_array().map(Vec::as_slice))?,
            )?);
            variables.extend(names(inner, &["env"])?);
        }
        Some(_) => return None,
    }
    match members.get("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => command.extend(texts(items)?),
        Some(_) => return None,
    }
    variables.extend(listed(members, "env_keys")?);
    variables.extend(listed(members, "env_vars")?);
    let url = match first(members, &["url", "httpUrl", "serverUrl", "uri"]) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => return None,
    };
    let mut headers = names(members, &["headers", "http_headers", "env_http_headers"])?;
    if let Some(options) = members.get("requestOptions").and_then(Value::as_object) {
        headers.extend(names(options, &["headers"])?);
    }
    let is = |name: &str| members.get(name).and_then(Value::as_bool);
    Some(Entry {
        command,
        url,
        variables,
        headers,
        kind: members
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        enabled: is("enabled").unwrap_or(true) && !is("disabled").unwrap_or(false),
    })
}

fn first<'a>(members: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| members.get(*name))
}

fn texts(items: &[Value]) -> Option<Vec<String>> {
    items
        .iter()
        .map(|item| match item {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(item.to_string()),
            _ => None,
        })
        .collect()
}

fn names(members: &Map<String, Value>, of: &[&str]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for name in of {
        match members.get(*name) {
            None | Some(Value::Null) => {}
            Some(Value::Object(inner)) => names.extend(inner.keys().cloned()),
            Some(_) => return None,
        }
    }
    Some(names)
}

fn listed(members: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
    match members.get(name) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(items)) => texts(items),
        Some(_) => None,
    }
}
