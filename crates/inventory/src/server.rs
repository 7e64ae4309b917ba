//! A server as clients write it down: each has its own members for the same things.

use crate::client::Client;
use crate::credentials::{Stand, credentials, of_words};
use crate::hide::{self, Argument};
use crate::identity::{self, Ground};
use crate::report::{Pin, Scope, ServerFacts, Shape, Transport};
use crate::scan::MAX_LEVELS;
use crate::wire;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// LIMIT: names of variables of a server. Ours.
const MAX_VARIABLES: usize = 64;
/// LIMIT: names of headers of a server. Ours.
const MAX_HEADERS: usize = 32;

/// What stands there. It holds values, and so has no `Debug`.
struct Entry {
    command: Vec<String>,
    /// The same, and which of them hold a credential.
    arguments: Vec<Argument>,
    url: Option<String>,
    variables: Vec<String>,
    headers: Vec<String>,
    kind: String,
    enabled: bool,
    /// Whether it says two things, or leaves to a folder or a file what runs.
    is_doubtful: bool,
}

/// Members of which each names a server: clients differ in which of them they read first.
const COMMANDS: [&str; 2] = ["command", "cmd"];
pub(crate) const ADDRESSES: [&str; 6] = ["url", "httpUrl", "http_url", "serverUrl", "uri", "endpoint"];
/// The other members that are read.
const READ: [&str; 11] = [
    "args",
    "code",
    "env",
    "env_http_headers",
    "env_keys",
    "env_vars",
    "environment",
    "envs",
    "headers",
    "http_headers",
    "requestOptions",
];
/// Members that say something else than what runs: how it is shown, who may call which of its tools, how it signs in, where a list has it
/// from. Whatever is neither here nor read may be what decides: `headersHelper` is a command, `envFile` brings variables, `cwd` another
/// folder, and a client of tomorrow has one that nobody knows today. A truth or a number names no program.
pub(crate) const HARMLESS: [&str; 42] = [
    "$schema",
    "_comment",
    "alwaysAllow",
    "apiKey",
    "auth",
    "authProviderType",
    "autoApprove",
    "available_tools",
    "bearer_token",
    "bearer_token_env_var",
    "comment",
    "default_tools_approval_mode",
    "description",
    "disabledTools",
    "disabled_tools",
    "display_name",
    "enabledTools",
    "enabled_tools",
    "excludeTools",
    "exclude_tools",
    "faviconUrl",
    "gallery",
    "icon",
    "icons",
    "id",
    "includeTools",
    "include_tools",
    "instructions",
    "name",
    "note",
    "oauth",
    "oauth_resource",
    "scopes",
    "settings",
    "source",
    "targetAudience",
    "targetServiceAccount",
    "timeout",
    "title",
    "tools",
    "type",
    "version",
];
/// Members that some clients have beside the type, or in its place.
const KINDS: [&str; 2] = ["transport", "transportType"];
/// Types of servers that are started, and of those at an address.
const STARTED: [&str; 3] = ["", "stdio", "local"];
const REMOTE: [&str; 7] = [
    "",
    "http",
    "sse",
    "remote",
    "streamable-http",
    "streamable_http",
    "streamableHttp",
];

/// Types of what Goose has within itself.
const INTERNAL: [&str; 3] = ["builtin", "platform", "frontend"];

/// Reads a server; `None` when a member has a type that its client does not read.
pub(crate) fn facts(
    name: &str,
    value: &Value,
    scope: Scope,
    client: Client,
    ground: &Ground<'_>,
) -> Option<ServerFacts> {
    let key = ground.key;
    let written = written(value.as_object()?, client)?;
    let is_within = client == Client::Goose && INTERNAL.contains(&written.kind.as_str());
    let is_builtin = is_within && written.kind != "frontend";
    let mut identity = match &written.url {
        // Who has both is a client's mistake; what runs here is the command.
        Some(url) if written.command.is_empty() => identity::of_url(url, key),
        _ if written.command.is_empty() && is_builtin => {
            let shown = hide::name(key, name).to_lowercase();
            identity::builtin(format!("builtin:{}/{shown}", client.word()))
        }
        // Its client knows what that is: an extension's own server, code that stands there, one that is switched off by its name.
        _ if written.command.is_empty() => {
            let code = value["code"].as_str().unwrap_or_default();
            identity::of_unknown(&[client.word(), &written.kind, name, code], key)
        }
        _ => identity::of_command(written.command.clone(), &written.variables, ground),
    };
    identity.is_weak |= written.is_doubtful
        || value["name"]
            .as_str()
            .is_some_and(|own| is_builtin && own != name);
    // What nobody knows to be in a client is no more than a name in its configuration.
    identity.is_weak |= written.command.is_empty() && is_builtin && !wire::is_builtin(client, &identity.key);
    // It gives a server the variables of a file in the project.
    identity.is_weak |=
        client == Client::GeminiCli && !written.command.is_empty() && ground.brings_variables();
    // What Goose takes for a platform's own is nobody's list.
    identity.is_weak |= written.kind == "platform";
    let transport = match (&written.url, written.kind.as_str()) {
        _ if !written.command.is_empty() => Transport::Stdio,
        _ if is_within => Transport::Builtin,
        (_, "sse") => Transport::Sse,
        (Some(_), _) => Transport::Http,
        (None, kind) if REMOTE[1..].contains(&kind) => Transport::Http,
        (None, _) => Transport::Stdio,
    };
    let names = |names: &[String], most| {
        let names = names.iter().take(most);
        names.map(|name| hide::identifier(key, name)).collect()
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
        shape: identity.is_pipeline.then_some(Shape::Pipeline),
        weak: identity.is_weak,
        arg_shapes: hide::shapes(key, written.arguments.get(1..).unwrap_or_default()),
        env_names: names(&written.variables, MAX_VARIABLES),
        header_names: names(&written.headers, MAX_HEADERS),
        secrets_inline: credentials(value, MAX_LEVELS).0.len(),
        enabled: written.enabled,
    })
}

fn written(members: &Map<String, Value>, client: Client) -> Option<Entry> {
    // Continue has the server in a member of its own. What other clients do not read is not the server.
    if client == Client::Continue
        && let Some(inner) = members.get("transport").and_then(Value::as_object)
    {
        let mut entry = described(inner)?;
        entry.is_doubtful |= has_others(members, &[&HARMLESS, &["transport"]]);
        return Some(entry);
    }
    described(members)
}

fn described(members: &Map<String, Value>) -> Option<Entry> {
    let mut arguments = Vec::new();
    let mut variables = names(members, &["env", "envs", "environment"])?;
    let mut is_doubtful = count(members, &COMMANDS) + count(members, &ADDRESSES) > 1
        || has_others(members, &[&COMMANDS, &ADDRESSES, &READ, &HARMLESS, &KINDS]);
    match first(members, &COMMANDS) {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => arguments = told(vec![text.clone()]),
        Some(Value::Array(items)) => arguments = told(texts(items)?),
        // That of Zed.
        Some(Value::Object(inner)) => {
            arguments.push((inner.get("path")?.as_str()?.to_owned(), false));
            let none: &[Value] = &[];
            let items = inner
                .get("args")
                .map_or(Some(none), |args| args.as_array().map(Vec::as_slice));
            arguments.extend(told(texts(items?)?));
            variables.extend(names(inner, &["env"])?);
            is_doubtful |= has_others(inner, &[&["path", "args", "env"]]) || count(members, &["args"]) > 0;
        }
        Some(_) => return None,
    }
    match members.get("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => arguments.extend(told(texts(items)?)),
        Some(_) => return None,
    }
    let command: Vec<String> = arguments.iter().map(|(text, _)| text.clone()).collect();
    variables.extend(listed(members, "env_keys")?);
    variables.extend(listed(members, "env_vars")?);
    let url = match first(members, &ADDRESSES) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => return None,
    };
    let mut headers = names(members, &["headers", "http_headers", "env_http_headers"])?;
    if let Some(options) = members.get("requestOptions").and_then(Value::as_object) {
        headers.extend(names(options, &["headers"])?);
        // A proxy, certificates, that none are checked: another server may answer.
        is_doubtful |= options.iter().any(|(name, value)| {
            !["headers", "timeout"].contains(&name.as_str())
                && !value.is_null()
                && value != &Value::Bool(true)
        });
    }
    let is = |name: &str| members.get(name).and_then(Value::as_bool);
    let kind = match members.get("type") {
        None | Some(Value::Null) => String::new(),
        Some(kind) => kind.as_str()?.to_owned(),
    };
    // Where the type says another thing than the members, nobody knows which of them a client follows.
    let is_odd = |kind: &str| {
        (!command.is_empty() && !STARTED.contains(&kind)) || (url.is_some() && !REMOTE.contains(&kind))
    };
    let mut kinds = KINDS.iter().filter_map(|name| members.get(*name));
    is_doubtful |= is_odd(&kind) || kinds.any(|kind| says(kind) && kind.as_str().is_none_or(&is_odd));
    Some(Entry {
        command,
        arguments,
        url,
        variables,
        headers,
        kind,
        enabled: is("enabled").unwrap_or(true) && !is("disabled").unwrap_or(false),
        is_doubtful,
    })
}

/// Says whether a member of another name says something.
fn has_others(members: &Map<String, Value>, understood: &[&[&str]]) -> bool {
    members
        .iter()
        .any(|(name, value)| says(value) && !understood.iter().any(|names| names.contains(&name.as_str())))
}

/// Says whether a value may name a program, an address or a file.
fn says(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// Counts the members of these names that say something.
fn count(members: &Map<String, Value>, names: &[&str]) -> usize {
    let said = names.iter().filter_map(|name| members.get(*name));
    said.filter(|value| !value.is_null()).count()
}

fn first<'a>(members: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    let said = names.iter().filter_map(|name| members.get(*name));
    said.into_iter().find(|value| !value.is_null())
}

/// Says of each word of a list whether it holds a credential. Keeps IV-8.
fn told(words: Vec<String>) -> Vec<Argument> {
    let judged: Vec<Cow<'_, str>> = words.iter().map(Into::into).collect();
    let are_secret: Vec<bool> = of_words("args", &judged, Stand::Line)
        .iter()
        .map(Option::is_some)
        .collect();
    words.into_iter().zip(are_secret).collect()
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
