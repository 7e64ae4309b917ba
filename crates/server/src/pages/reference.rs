//! The reference of the API: a page with all operations, and one for each of their subjects.

use super::document;
use super::examples::{BEFORE, Call};
use super::fields::{self, members};
use bytes::Bytes;
use provost_words::html::Html;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What the path of every operation of an organization begins with.
const ORGANIZATION: &str = "/api/headless/v1/organizations/{organizationId}";
/// The chapter of the kinds of events.
const EVENTS: &str = "event-kinds";

/// A page of the reference.
pub struct Chapter {
    pub plain: Bytes,
    pub packed: Bytes,
}

impl Chapter {
    fn of(page: String) -> Self {
        Self {
            packed: packed(page.as_bytes()),
            plain: page.into(),
        }
    }
}

fn packed(page: &[u8]) -> Bytes {
    use std::io::Write as _;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    // A vector takes everything.
    drop(packer.write_all(page));
    packer.finish().unwrap_or_default().into()
}

/// The pages by the name of their chapter; the first one has none.
pub struct Reference {
    chapters: BTreeMap<String, Chapter>,
}

impl Reference {
    /// Makes every page of a document, of whose operations these are tools of MCP.
    pub fn of(api: &Value, offered: &BTreeSet<&str>) -> Self {
        let mut chapters = BTreeMap::new();
        chapters.insert(String::new(), Chapter::of(contents(api)));
        for tag in members(api, "tags") {
            let name = tag["name"].as_str().unwrap_or_default();
            chapters.insert(
                name.to_owned(),
                Chapter::of(chapter(api, offered, name, about(tag))),
            );
        }
        chapters.insert(EVENTS.to_owned(), Chapter::of(events(api)));
        Self { chapters }
    }

    /// Returns a page.
    pub fn chapter(&self, name: &str) -> Option<&Chapter> {
        self.chapters.get(name)
    }
}

fn about(tag: &Value) -> &str {
    tag["description"].as_str().unwrap_or_default()
}

/// The operations of a subject, or all of them, as the document orders them.
fn calls<'a>(api: &'a Value, tag: Option<&str>) -> Vec<Call<'a>> {
    let paths = api["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| Call {
            method: method.to_uppercase(),
            path,
            operation,
        })
    });
    all.filter(|call| tag.is_none_or(|tag| members(call.operation, "tags").any(|one| one == tag)))
        .collect()
}

fn contents(api: &Value) -> String {
    document("API reference · Provost", "wide", |html| {
        html.words("h1", "", "API reference");
        html.element("p", &[], |html| {
            html.text("Made of the ");
            link(html, "/api/headless/v1/openapi.json", "OpenAPI document");
            html.text(" of this server. The command line and the tools of MCP are made of the same operations. Search it with the search of your browser. In the examples three variables are set:");
        });
        block(html, BEFORE);
        html.words(
            "p",
            "",
            "Every change says why (reason) and carries a key under which it acts once (idempotencyKey); what nothing can undo needs \
             confirm. A refusal is one envelope with a code, a message and, of an input, the places that are wrong.",
        );
        for tag in members(api, "tags") {
            let name = tag["name"].as_str().unwrap_or_default();
            html.element("h2", &[("id", name)], |html| {
                link(html, &format!("/docs/{name}"), &title(name));
            });
            html.words("p", "soft", about(tag));
            html.element("ul", &[("class", "calls")], |html| {
                for call in calls(api, Some(name)) {
                    let id = text(call.operation, "operationId");
                    html.element("li", &[], |html| {
                        html.words("span", "method", &call.method);
                        html.text(" ");
                        link(
                            html,
                            &format!("/docs/{name}#{id}"),
                            text(call.operation, "summary"),
                        );
                        html.text(" ");
                        html.words("small", "soft", id);
                        html.text(" ");
                        html.words("small", "soft", call.path.trim_start_matches(ORGANIZATION));
                    });
                }
            });
        }
        html.element("h2", &[("id", EVENTS)], |html| {
            link(html, "/docs/event-kinds", "Kinds of events");
        });
        html.words(
            "p",
            "soft",
            "What can be read from the list of events, with the data of each kind.",
        );
    })
}

/// `managed_config` as a title.
fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn chapter(api: &Value, offered: &BTreeSet<&str>, name: &str, says: &str) -> String {
    let calls = calls(api, Some(name));
    document(
        &format!("{} · API reference · Provost", title(name)),
        "wide",
        |html| {
            html.words("h1", "", &title(name));
            html.words("p", "", says);
            html.element("ul", &[("class", "calls")], |html| {
                for call in &calls {
                    html.element("li", &[], |html| {
                        let id = text(call.operation, "operationId");
                        link(html, &format!("#{id}"), text(call.operation, "summary"));
                    });
                }
            });
            for call in &calls {
                operation(html, api, offered, call);
            }
        },
    )
}

fn operation(html: &mut Html, api: &Value, offered: &BTreeSet<&str>, call: &Call<'_>) {
    let id = text(call.operation, "operationId");
    html.element("section", &[("aria-labelledby", id)], |html| {
        html.element("h2", &[("id", id)], |html| {
            link(html, &format!("#{id}"), text(call.operation, "summary"));
        });
        html.element("p", &[("class", "route")], |html| {
            html.words("span", "method", &call.method);
            html.text(" ");
            html.words("code", "", call.path);
        });
        for paragraph in text(call.operation, "description")
            .split("\n\n")
            .filter(|words| !words.is_empty())
        {
            html.words("p", "", paragraph);
        }
        html.element("p", &[("class", "soft")], |html| {
            html.text(&rights(&call.operation["x-provost"]));
            html.text(" Tool and audit action: ");
            html.words("code", "", id);
            html.text(".");
        });
        request(html, api, call);
        examples(html, call, offered.contains(id));
        answers(html, api, call.operation);
    });
}

/// Says who may.
fn rights(extension: &Value) -> String {
    let access = &extension["access"];
    let roles: Vec<&str> = members(access, "roles").filter_map(Value::as_str).collect();
    let mut said = match access["scope"].as_str() {
        None => "Needs a token.".to_owned(),
        Some(scope) => format!("Needs the scope {scope}"),
    };
    for (member, word) in [
        ("orScope", " or "),
        ("andScope", " and "),
        ("selfScope", ", of oneself "),
    ] {
        if let Some(scope) = access[member].as_str() {
            said.push_str(word);
            said.push_str(scope);
        }
    }
    if access["scope"].is_string() {
        said.push('.');
    }
    let _ = write!(said, " Roles: {}.", roles.join(", "));
    for (member, words) in [
        ("confirm", " Needs confirm: nothing can undo it."),
        ("revealsSecret", " The answer holds a secret, once."),
        ("audited", " Leaves an audit entry."),
    ] {
        if extension[member] == true {
            said.push_str(words);
        }
    }
    said
}

fn request(html: &mut Html, api: &Value, call: &Call<'_>) {
    for (place, name) in [
        ("path", "In the path"),
        ("query", "In the query"),
        ("header", "In headers"),
    ] {
        if members(call.operation, "parameters").any(|parameter| parameter["in"] == place) {
            html.words("h3", "", name);
            html.element("dl", &[("class", "facts")], |html| {
                fields::parameters(html, call.operation, place);
            });
        }
    }
    let Some(content) = call
        .operation
        .pointer("/requestBody/content")
        .and_then(Value::as_object)
    else {
        return;
    };
    html.words(
        "h3",
        "",
        &format!(
            "Body ({})",
            content.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
        ),
    );
    if let Some(schema) = content.get("application/json").map(|json| &json["schema"]) {
        html.element("dl", &[("class", "facts")], |html| {
            fields::body(html, api, schema);
        });
    }
}

fn examples(html: &mut Html, call: &Call<'_>, is_tool: bool) {
    html.words("h3", "", "Examples");
    let written = [
        ("curl", Some(call.curl())),
        ("Command line", call.command()),
        ("Python", Some(call.python())),
        ("MCP", is_tool.then(|| call.mcp())),
    ];
    for (name, example) in written {
        let Some(example) = example else {
            html.words("p", "soft", &format!("{name}: it has no such form."));
            continue;
        };
        let open: &[(&'static str, &str)] = if name == "curl" { &[("open", "")] } else { &[] };
        html.element("details", open, |html| {
            html.words("summary", "", name);
            block(html, &example);
        });
    }
}

fn answers(html: &mut Html, api: &Value, operation: &Value) {
    html.words("h3", "", "Answers");
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let content = answer["content"].as_object().into_iter().flatten().next();
        let is_error =
            content.is_some_and(|(_, content)| content["schema"]["$ref"] == "#/components/schemas/Error");
        if is_error {
            continue;
        }
        html.element("details", &[], |html| {
            let kind = content.map_or(String::new(), |(kind, _)| format!(" {kind}"));
            html.words(
                "summary",
                "",
                &format!("{status}{kind}: {}", text(answer, "description")),
            );
            if let Some((_, content)) = content {
                if let Some(example) = content.get("example") {
                    block(html, &serde_json::to_string_pretty(example).unwrap_or_default());
                }
                html.element("dl", &[("class", "facts")], |html| {
                    fields::body(html, api, &content["schema"]);
                });
            }
        });
    }
    let refusals: Vec<&str> = operation["responses"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, answer)| {
            answer
                .pointer("/content/application~1json/schema/$ref")
                .is_some_and(|name| name == "#/components/schemas/Error")
        })
        .map(|(status, _)| if status == "default" { "others" } else { status })
        .collect();
    html.words(
        "p",
        "soft",
        &format!("Refusals, as the envelope of an error: {}.", refusals.join(", ")),
    );
}

fn events(api: &Value) -> String {
    document("Kinds of events · API reference · Provost", "wide", |html| {
        html.words("h1", "", "Kinds of events");
        html.element("p", &[], |html| {
            html.text("Elements of the answer of ");
            link(html, "/docs/events#listHeadlessEvents", "listHeadlessEvents");
            html.text(". Nothing is sent to other systems yet.");
        });
        for (kind, item) in api["webhooks"].as_object().into_iter().flatten() {
            html.element("section", &[("aria-labelledby", kind)], |html| {
                html.element("h2", &[("id", kind)], |html| html.words("code", "", kind));
                html.words("p", "", text(&item["post"], "summary"));
                let json = "/post/requestBody/content/application~1json";
                if let Some(data) = item.pointer(&format!("{json}/schema/properties/data")) {
                    html.element("dl", &[("class", "facts")], |html| fields::body(html, api, data));
                }
                if let Some(example) = item.pointer(&format!("{json}/example")) {
                    block(html, &serde_json::to_string_pretty(example).unwrap_or_default());
                }
            });
        }
    })
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

fn link(html: &mut Html, place: &str, words: &str) {
    html.element("a", &[("href", place)], |html| html.text(words));
}

/// Text whose lines stay as they are; it scrolls by itself where it is too wide, also by keys.
pub fn block(html: &mut Html, words: &str) {
    html.element("pre", &[("tabindex", "0")], |html| {
        for line in words.split('\n') {
            html.text(line);
            html.raw("\n");
        }
    });
}
