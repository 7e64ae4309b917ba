//! The published documents: committed, valid, and exact about what requests may say.

use crate::areas_beside::every_area;
use crate::samples::{self, assert_golden};
use crate::support::{App, each, fresh_key, once_of};
use provost_client::cli::{Api, catalogue};
use provost_client::events;
use provost_kernel::entropy::UnitRng;
use provost_kernel::event::EventKind;
use provost_kernel::expose::{mcp, openapi};
use provost_kernel::operation::{Access, Entry, Kind, Method, Raw};
use provost_kernel::second_person::PARAMETERS;
use provost_server::app;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn document() -> Value {
    openapi::document(&app::registry().unwrap())
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

/// Returns every operation of the document: path, method, object.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| {
        let of = |(method, operation): (&String, &Value)| (path.clone(), method.clone(), operation.clone());
        item.as_object().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

fn walk(value: &Value, visit: &mut dyn FnMut(&Value)) {
    visit(value);
    match value {
        Value::Array(items) => items.iter().for_each(|v| walk(v, visit)),
        Value::Object(members) => members.values().for_each(|v| walk(v, visit)),
        _ => {}
    }
}

/// Compiles a schema of the document.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    jsonschema::draft202012::new(&root).unwrap_or_else(|e| panic!("{e}: {schema}"))
}

#[test]
fn the_committed_documents_are_those_of_the_program() {
    assert_golden("openapi/headless-v1.json", &pretty(&document()));
    let commands = Api::parse(&document()).unwrap();
    assert_golden("openapi/commands-v1.jsonl", &catalogue::table(&commands));
    assert_golden("openapi/events-v1.jsonl", &events::table(&document()));
    let tools = Value::from(mcp::tools(&app::registry().unwrap()));
    assert_golden("openapi/mcp-tools.json", &pretty(&tools));
}

/// A person looks for a name and a time first, and copies the id.
#[test]
fn a_list_shows_who_what_and_when_before_the_id() {
    let table = catalogue::table(&Api::parse(&document()).unwrap());
    let mut seen = 0;
    for line in table.lines().skip(1) {
        let operation: Value = serde_json::from_str(line).unwrap();
        let Some(columns) = operation.get("columns").and_then(Value::as_array) else {
            continue;
        };
        let command = format!("{} {}", operation["group"], operation["verb"]);
        let path = |column: &Value| column["path"].as_str().unwrap().to_owned();
        let all: Vec<String> = columns.iter().map(path).collect();
        let shown: Vec<String> = columns
            .iter()
            .filter(|c| c["is_extra"] != true)
            .map(path)
            .collect();
        assert_ne!(shown[0], "id", "{command}: {shown:?}");
        assert!(
            !all.contains(&"id".to_owned()) || shown.contains(&"id".to_owned()),
            "{command} hides the id: {shown:?}"
        );
        let is_time = |c: &&Value| c["is_time"] == true;
        assert!(
            !columns.iter().any(|c| is_time(&c))
                || columns.iter().any(|c| is_time(&c) && c["is_extra"] != true),
            "{command} says nothing of when: {shown:?}"
        );
        let distinct: BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{command}: {all:?}");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

/// Proves EV-3.
#[test]
fn every_kind_of_event_is_told_once_with_an_example_of_its_shape() {
    let document = document();
    let registry = app::registry().unwrap();
    let kinds: Vec<&str> = registry.fences().events().map(EventKind::word).collect();
    let told = document["webhooks"].as_object().unwrap();
    assert_eq!(told.len(), kinds.len());
    for kind in kinds {
        let post = &told[kind]["post"];
        let content = &post["requestBody"]["content"]["application/json"];
        let (schema, example) = (&content["schema"], &content["example"]);
        let faults: Vec<String> = validator(&document, schema)
            .iter_errors(example)
            .map(|fault| format!("{fault} at {}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{kind}: {faults:?}");
        let members = schema["properties"]["data"]["properties"].as_object().unwrap();
        let of_example = example["data"].as_object().unwrap();
        assert!(
            of_example.keys().all(|name| members.contains_key(name)),
            "{kind}: {example}"
        );
        assert!(
            members.values().all(|member| member.get("$ref").is_none()),
            "{kind}: {schema}"
        );
        let says = post["summary"].as_str().unwrap();
        assert!(says.len() > 10 && says.ends_with('.'), "{kind}: {says}");
    }
}

#[test]
fn the_document_is_the_one_that_is_served() {
    each("openapi", |app: Arc<App>| async move {
        let call = app
            .request("GET", "")
            .anonymous()
            .at("/api/headless/v1/openapi.json");
        assert_eq!(call.send().await.ok(), &document());
    });
}

#[test]
fn every_reference_resolves() {
    let document = document();
    let mut seen = 0;
    walk(&document, &mut |value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
            seen += 1;
        }
    });
    assert!(seen > 0);
}

#[test]
fn every_operation_is_named_described_and_declared_whole() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "0.1.0");
    let operations = operations(&document);
    assert_eq!(operations.len(), app::registry().unwrap().entries().len());
    let mut ids = BTreeSet::new();
    let tags: Vec<&Value> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["name"])
        .collect();
    for (path, method, operation) in &operations {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} is there twice");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{id}");
        let writes = operation["x-provost"]["kind"] == "write";
        assert!(
            !writes || operation["description"].as_str().is_some_and(|d| !d.is_empty()),
            "{id} has no description"
        );
        for tag in operation["tags"].as_array().unwrap() {
            assert!(tags.contains(&tag), "{id}: {tag}");
        }
        let mut declared: Vec<(&str, &str)> = Vec::new();
        for parameter in operation["parameters"].as_array().unwrap() {
            let of = |name: &str| parameter[name].as_str().unwrap();
            assert!(
                !declared.contains(&(of("in"), of("name"))),
                "{id}: {parameter} is there twice"
            );
            declared.push((of("in"), of("name")));
            validator(&document, &parameter["schema"]);
            assert!(parameter["schema"].is_object(), "{id}: {parameter}");
            assert!(
                of("in") != "path" || parameter["required"] == true,
                "{id}: {parameter}"
            );
        }
        let in_path: Vec<&str> = path
            .split('/')
            .filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let mut known: Vec<&str> = declared
            .iter()
            .filter(|(place, _)| *place == "path")
            .map(|(_, n)| *n)
            .collect();
        let mut wanted = in_path.clone();
        known.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(known, wanted, "{id}");
        let has_body = operation.get("requestBody").is_some();
        assert_eq!(
            has_body,
            matches!(method.as_str(), "post" | "put" | "patch"),
            "{id}"
        );
        if has_body {
            validator(
                &document,
                &operation["requestBody"]["content"]["application/json"]["schema"],
            );
        }
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("default"), "{id}");
        let registry = app::registry().unwrap();
        let meta = registry.find(id).unwrap().meta;
        let also = usize::from(meta.also.is_some_and(|status| status < 300));
        let successes = 1 + also + usize::from(meta.second_person.is_some());
        assert_eq!(
            responses.keys().filter(|s| s.starts_with('2')).count(),
            successes,
            "{id}"
        );
        for (status, response) in responses {
            assert!(response["description"].is_string(), "{id} {status}");
            let content = response.get("content").and_then(Value::as_object);
            let is_bare = matches!(status.as_str(), "204" | "304");
            assert_eq!(content.is_none(), is_bare, "{id} {status}");
            for media in content.into_iter().flat_map(Map::values) {
                validator(&document, &media["schema"]);
            }
            if !status.starts_with('2') && !is_bare {
                let schema = &response["content"]["application/json"]["schema"];
                assert_eq!(schema["$ref"], "#/components/schemas/Error", "{id} {status}");
            }
        }
    }
}

#[test]
fn a_repeated_answer_has_every_header_of_the_first() {
    let registry = app::registry().unwrap();
    let writes = registry
        .entries()
        .iter()
        .filter(|entry| entry.meta.kind == provost_kernel::operation::Kind::Write);
    for entry in writes {
        for name in entry.meta.answers {
            let name = name.to_lowercase();
            // Every repeated answer has this one.
            if name == "idempotent-replayed" {
                continue;
            }
            assert!(
                provost_kernel::idempotency::REPEATED.contains(&name.as_str()),
                "{}: {name}",
                entry.meta.id
            );
        }
    }
}

/// A word that may come later is taken of an answer, and refused of a request: what both use is no one schema.
#[test]
fn no_body_may_say_a_word_that_there_is_not() {
    fn open(document: &Value, schema: &Value, seen: &mut BTreeSet<String>) -> bool {
        let mut found = false;
        let mut targets = Vec::new();
        walk(schema, &mut |value| {
            found |= value.get("x-extensible-enum").is_some();
            let target = value.get("$ref").and_then(Value::as_str);
            targets.extend(
                target
                    .and_then(|target| target.strip_prefix('#'))
                    .map(str::to_owned),
            );
        });
        found
            || targets.iter().any(|target| {
                seen.insert(target.clone()) && open(document, document.pointer(target).unwrap(), seen)
            })
    }
    let document = document();
    let mut answers = 0;
    for (path, method, operation) in operations(&document) {
        let body = operation.get("requestBody").unwrap_or(&Value::Null);
        assert!(!open(&document, body, &mut BTreeSet::new()), "{method} {path}");
        answers += usize::from(open(&document, &operation["responses"], &mut BTreeSet::new()));
    }
    assert!(answers > 10, "answers have words that may grow: {answers}");
}

#[test]
fn answers_have_no_null() {
    let document = document();
    for (_, _, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            walk(response, &mut |value| {
                assert_ne!(value, &json!("null"), "{} {status}", operation["operationId"]);
            });
        }
    }
    walk(&document["components"], &mut |value| {
        assert_ne!(value, &json!("null"));
    });
}

#[test]
fn every_command_is_unique() {
    let mut commands = BTreeSet::new();
    for entry in app::registry().unwrap().entries() {
        let [group, verb] = entry.meta.command;
        // Machines call for themselves, by programs of their own.
        if matches!(entry.meta.access, Access::OfKind { .. }) {
            assert_eq!([group, verb], ["", ""], "{}", entry.meta.id);
            continue;
        }
        assert!(!group.is_empty() && !verb.is_empty(), "{}", entry.meta.id);
        assert!(commands.insert((group, verb)), "{group} {verb} is there twice");
    }
}

#[test]
fn every_tool_can_be_offered_to_a_model() {
    let registry = app::registry().unwrap();
    let tools = mcp::tools(&registry);
    assert_eq!(tools.len(), registry.entries().len());
    for (tool, entry) in tools.iter().zip(registry.entries()) {
        let name = tool["name"].as_str().unwrap();
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        assert!(name.len() <= 64 && name.bytes().all(is_plain), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        jsonschema::draft202012::new(&tool["inputSchema"]).unwrap();
        if let Some(output) = tool.get("outputSchema") {
            assert_eq!(output["type"], "object", "{name}");
            jsonschema::draft202012::new(output).unwrap();
        }
        let names = &tool["inputSchema"]["properties"];
        for parameter in entry.meta.path_parameters() {
            assert!(names.get(parameter).is_some(), "{name}: {parameter}");
        }
        let is_write = entry.meta.kind == Kind::Write;
        let is_read = !is_write && !entry.meta.ingests;
        assert_eq!(tool["annotations"]["readOnlyHint"], is_read, "{name}");
        assert_eq!(names.get("idempotencyKey").is_some(), is_write, "{name}");
    }
    let offered = tools.iter().zip(registry.entries());
    let offered = offered.filter(|(_, entry)| mcp::is_offered(entry.meta));
    let sizes: Vec<usize> = offered.map(|(tool, _)| tool.to_string().len() + 1).collect();
    // A model reads all of the list: it grows by tools and not by what each of them says.
    let (bytes, most) = (sizes.iter().sum::<usize>(), sizes.len() * 2_500);
    assert!(
        bytes < most,
        "the list of all {} tools has {bytes} bytes, and not less than {most}",
        sizes.len()
    );
}

#[test]
fn schemas_say_what_other_programs_understand() {
    let tools = Value::from(mcp::tools(&app::registry().unwrap()));
    for whole in [&document(), &tools] {
        walk(whole, &mut |value| {
            let format = value.get("format").and_then(Value::as_str);
            assert!(format.is_none_or(|format| !format.starts_with("uint")), "{value}");
            for (name, schema) in value
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                assert_ne!(schema, &json!(true), "{name} of {value}");
            }
        });
    }
    // What generators of clients stumble over.
    walk(&document(), &mut |value| {
        let members = value.get("properties").and_then(Value::as_object);
        for (name, schema) in members.into_iter().flatten() {
            assert!(!schema.is_boolean(), "{name} of {value}");
        }
        assert!(members.is_none() || value.get("oneOf").is_none(), "{value}");
        assert!(!value.get("const").is_some_and(Value::is_boolean), "{value}");
        let is_array = value
            .get("type")
            .is_some_and(|kind| kind == "array" || *kind == json!(["array", "null"]));
        assert!(!is_array || value.get("items").is_some(), "{value}");
    });
    // What is taken where nothing is said is a value that could be said; `null` for a text is refused by generators of the older form.
    let document = document();
    let mut defaults = 0;
    walk(&document, &mut |value| {
        let is_schema = value.get("type").is_some_and(|kind| !kind.is_object());
        if let Some(default) = value.get("default").filter(|_| is_schema) {
            assert!(validator(&document, value).is_valid(default), "{value}");
            defaults += 1;
        }
    });
    assert!(defaults > 100, "{defaults}");
    for tool in tools.as_array().unwrap() {
        for words in ["description", "pattern", "oneOf", "default"] {
            walk(&tool["outputSchema"], &mut |value| {
                // A member may have that name; a keyword of it has words for a value.
                assert!(value.get(words).is_none_or(Value::is_object), "{words}: {value}");
            });
        }
    }
}

/// The older form holds no keyword which OpenAPI 3.0 does not have, and every operation.
#[test]
fn the_form_for_older_generators_is_of_its_version() {
    let older = openapi::as_3_0(&document());
    assert_eq!(older["openapi"], "3.0.3");
    let ids = |document: &Value| -> Vec<String> {
        let all = operations(document).into_iter();
        all.map(|(_, _, operation)| operation["operationId"].to_string())
            .collect()
    };
    assert_eq!(ids(&older), ids(&document()));
    for (_, _, operation) in operations(&older) {
        let answers = operation["responses"].as_object().unwrap();
        assert!(
            !answers.contains_key("default") && answers.contains_key("4XX"),
            "{operation}"
        );
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let names: Vec<&str> = parameters.filter_map(|one| one["name"].as_str()).collect();
        let once: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), once.len(), "{operation}");
        let bodies = answers.values().chain(operation.get("requestBody"));
        for forms in bodies.filter_map(|body| body["content"].as_object()) {
            assert!(
                forms.len() == 1 || !forms.contains_key("application/json"),
                "{operation}"
            );
        }
    }
    let mut schemas = Vec::new();
    walk(&older, &mut |value| {
        schemas.extend(value.get("schema").cloned());
        let named = value.get("schemas").and_then(Value::as_object);
        schemas.extend(named.into_iter().flat_map(Map::values).cloned());
    });
    for schema in schemas {
        walk(&schema, &mut |value| {
            // An object that is the map of members may have a member of any name.
            if value.get("type").is_none_or(Value::is_object) {
                return;
            }
            assert!(value["type"].is_string(), "{value}");
            for word in ["const", "if", "then", "else", "not", "examples", "propertyNames"] {
                assert!(value.get(word).is_none(), "{word}: {value}");
            }
            assert!(
                !value.get("exclusiveMinimum").is_some_and(Value::is_number),
                "{value}"
            );
            assert_ne!(value.get("required"), Some(&json!([])), "{value}");
        });
    }
}

/// Texts at the borders of what the types of text take.
fn texts() -> Vec<String> {
    let words = [
        "a",
        "",
        " ",
        " a",
        "a ",
        "a b",
        "\"",
        "\\",
        "\0",
        "a\0b",
        "a\nb",
        "a\tb",
        "a\rb",
        "a\u{7f}",
        "a\u{85}b",
        "\u{a0}",
        "a\u{a0}",
        "\u{3000}a",
        "\u{2028}",
        "a\u{2029}b",
        "\u{feff}a",
        "\u{200b}",
        "İ",
        "ß",
        "ﬁ",
        "A\u{30a}",
        "\u{958}",
        "😀",
        "\u{10ffff}",
        "true",
        "null",
        "admin",
        "sa_1",
        "a'; DROP TABLE service_accounts; --",
    ];
    let mut texts: Vec<String> = words.map(str::to_owned).to_vec();
    for unit in ["x", "\u{958}", "😀", "A\u{30a}"] {
        for length in [64, 127, 128, 129, 255, 256, 500, 501, 1024, 1025] {
            let count = length / unit.chars().count();
            texts.push(unit.repeat(count));
        }
    }
    texts
}

/// Draws values for a schema, most of them near what it takes.
struct Draw {
    rng: UnitRng,
    texts: Vec<String>,
}

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        let mut bytes = [0; 8];
        self.rng.fill(&mut bytes);
        usize::try_from(u64::from_le_bytes(bytes) % count as u64).unwrap()
    }

    fn one(&mut self, choices: &[Value]) -> Value {
        choices[self.below(choices.len())].clone()
    }

    fn value(&mut self, schema: &Value) -> Value {
        if self.below(40) == 0 {
            let odd = [
                json!(null),
                json!(true),
                json!(-1),
                json!(0),
                json!("x"),
                json!([]),
                json!({}),
                json!([["x"]]),
            ];
            return self.one(&odd);
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return self.one(words);
        }
        if let Some(word) = schema.get("const") {
            return word.clone();
        }
        for union in ["oneOf", "anyOf"] {
            if let Some(branches) = schema.get(union).and_then(Value::as_array)
                && schema.get("properties").is_none()
            {
                let branch = self.one(branches);
                return self.value(&branch);
            }
        }
        // No random text has the form of a digest: such a schema gives an example.
        if let Some(examples) = schema.get("examples").and_then(Value::as_array)
            && self.below(4) > 0
        {
            return self.one(examples);
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.clone(),
            one => vec![one.clone()],
        };
        let kind = self.one(&types);
        match kind.as_str() {
            Some("string") if self.below(3) > 0 => fresh_key().into(),
            Some("string") => {
                let place = self.below(self.texts.len());
                self.texts[place].clone().into()
            }
            Some("integer") => {
                let edge = |name: &str| schema[name].as_i64().unwrap_or(0);
                let (low, high) = (edge("minimum"), edge("maximum"));
                let numbers = [low, low - 1, low + 1, high, high.saturating_add(1), 0, -1, 7200];
                numbers[self.below(numbers.len())].into()
            }
            Some("boolean") => (self.below(2) == 0).into(),
            Some("array") => {
                let count = [0, 1, 1, 2, 64, 65][self.below(6)];
                (0..count)
                    .map(|_| self.value(&schema["items"]))
                    .collect::<Vec<_>>()
                    .into()
            }
            Some("object") => self.object(schema),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut members = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|r| r == name);
            if (is_required && self.below(30) > 0) || self.below(3) == 0 {
                let value = self.value(member);
                members.insert(name.clone(), value);
            }
        }
        if self.below(25) == 0 {
            members.insert("unknownMember".into(), json!(1));
        }
        members.into()
    }
}

/// An example that its own operation refuses would be worse than none.
#[test]
fn every_json_body_has_an_example_that_the_operation_takes() {
    let registry = app::registry().unwrap();
    let document = openapi::document(&registry);
    for (path, _, operation) in operations(&document) {
        let Some(content) = operation["requestBody"]["content"].get("application/json") else {
            continue;
        };
        let entry = registry.find(operation["operationId"].as_str().unwrap()).unwrap();
        if entry.meta.consumes.is_some() {
            continue;
        }
        let example = &content["example"];
        let problems: Vec<String> = validator(&document, &content["schema"])
            .iter_errors(example)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(problems, [""; 0], "{path} {example}");
        let raw = Raw {
            path: entry
                .meta
                .path_parameters()
                .into_iter()
                .map(|name| (name.to_owned(), json!("one")))
                .collect::<Map<_, _>>()
                .into(),
            query: json!({}),
            body: serde_json::from_str(entry.meta.example).unwrap(),
            content: None,
            reason: None,
            confirm: entry.meta.confirm,
            if_match: None,
            if_none_match: None,
            manager: None,
        };
        if let Err(refusal) = (entry.bind)(raw) {
            panic!("{}: {refusal}", entry.meta.id);
        }
    }
}

/// Exactly the bodies that the published schema takes are not answered 400, both ways.
#[test]
fn a_body_is_refused_exactly_when_the_schema_says_so() {
    once_of(every_area(), "bodies", |app: Arc<App>| async move {
        let document = openapi::document(&app.kernel.registry);
        let mut draw = Draw {
            rng: UnitRng::new([42; 32]),
            texts: texts(),
        };
        // Settings come last: they change what others take.
        let (settings, others): (Vec<_>, Vec<_>) = app
            .kernel
            .registry
            .entries()
            .iter()
            .partition(|entry| entry.meta.toolset == "automation_settings");
        for entry in others.into_iter().chain(settings) {
            // A window that ends before it begins, an instant that is none, a digest of something else, a chain whose head does not follow, a level that contradicts its reasons and an approval without an end are refused, and no schema
            // can say so; the areas test these bodies themselves.
            let says_more = [
                "createHeadlessApprovalDelegation",
                "createHeadlessPolicyBacktest",
                "reportHeadlessDeviceCoverage",
                "reportHeadlessDeviceDecisions",
                "reportHeadlessDeviceScan",
                "setHeadlessInventoryMcpServerStanding",
            ]
            .contains(&entry.meta.id);
            if !entry.has_body || entry.meta.consumes.is_some() || says_more {
                continue;
            }
            let (taken, refused) = try_bodies(&app, &document, entry, &mut draw).await;
            assert!(
                taken >= 20 && refused >= 20,
                "{}: {taken} {refused}",
                entry.meta.id
            );
        }
    });
}

async fn try_bodies(app: &App, document: &Value, entry: &Entry, draw: &mut Draw) -> (u32, u32) {
    let meta = entry.meta;
    let pointer = format!(
        "/paths/{}/{}/requestBody/content/application~1json/schema",
        format!(
            "/api/headless/v1/organizations/{{organizationId}}{}",
            meta.shown_path()
        )
        .replace('/', "~1"),
        meta.method.as_str().to_lowercase()
    );
    let schema = document.pointer(&pointer).unwrap();
    let validator = validator(document, schema);
    let target = samples::fresh_target_of(app, entry).await;
    let (mut taken, mut refused) = (0, 0);
    for round in 0..2_000 {
        // Of some schemas few bodies are valid by chance: those are drawn for longer.
        if round >= 400 && taken >= 20 && refused >= 20 {
            break;
        }
        let mut body = draw.object(schema);
        // Most keys are new, or the second body of a key would be answered for its key alone.
        if draw.below(8) > 0 && meta.kind == Kind::Write {
            body["idempotencyKey"] = fresh_key().into();
        }
        let is_valid = validator.is_valid(&body);
        let call = samples::request(app, meta, &samples::path(meta, &target));
        let reply = call.json(body.clone()).send().await;
        let status = reply.status.as_u16();
        assert_ne!(status, 500, "{} {body}", meta.id);
        // What is larger than an operation reads is refused before anybody looks into it.
        if status == 413 && body.to_string().len() > meta.limit.bytes {
            continue;
        }
        if is_valid {
            // A body that can be read may ask for what must be confirmed.
            let waits = status == 400 && reply.code() == "confirmation_required";
            assert!(status != 400 || waits, "{} {body}\n{}", meta.id, reply.text());
            taken += 1;
        } else {
            assert_eq!(status, 400, "{} {body}\n{}", meta.id, reply.text());
            refused += 1;
        }
    }
    (taken, refused)
}

/// The same for the headers that carry the mutation metadata where there is no body.
#[test]
fn headers_are_refused_exactly_when_the_schema_says_so() {
    each("headers", |app: Arc<App>| async move {
        let document = document();
        let (_, _, operation) = operations(&document)
            .into_iter()
            .find(|(_, method, _)| method == "delete")
            .unwrap();
        let schema_of = |name: &str| {
            let mut parameters = operation["parameters"].as_array().unwrap().iter();
            validator(
                &document,
                &parameters.find(|p| p["name"] == name).unwrap()["schema"],
            )
        };
        let (keys, reasons) = (schema_of("Idempotency-Key"), schema_of("X-Reason"));
        let longest = "k".repeat(255);
        let too_long = "k".repeat(256);
        let path = format!("/service-accounts/{}", samples::Target::absent().account);
        for text in [
            "a", "\"", "\"\"", "\"\"\"", "\"a\"", "\\", "\"\\\"", "a b", "~", &longest, &too_long,
        ] {
            let call = app.request(Method::Delete.as_str(), &path);
            let call = call.header("x-reason", "a test").header("x-confirm", "true");
            let reply = call.header("idempotency-key", text).send().await;
            let expected = if keys.is_valid(&json!(text)) { 404 } else { 400 };
            assert_eq!(reply.status.as_u16(), expected, "key {text}: {}", reply.text());
            let call = app.request(Method::Delete.as_str(), &path);
            let call = call
                .header("idempotency-key", &fresh_key())
                .header("x-confirm", "true");
            let reply = call.header("x-reason", text).send().await;
            let expected = if reasons.is_valid(&json!(text)) { 404 } else { 400 };
            assert_eq!(reply.status.as_u16(), expected, "reason {text}: {}", reply.text());
        }
    });
}

/// Returns query values around what a schema takes, each with whether it does.
fn values_of(schema: &Value) -> Vec<(String, bool)> {
    if schema["type"] == "integer" {
        let edge = |name: &str| schema[name].as_i64().unwrap();
        let (low, high) = (edge("minimum"), edge("maximum"));
        let numbers = [low - 1, low, low + 1, high - 1, high, high + 1, 0, -1];
        let mut values: Vec<_> = numbers
            .map(|n| (n.to_string(), (low..=high).contains(&n)))
            .to_vec();
        values.extend(["", "x", "1.5", "%2B1", "1e1", "%D9%A5"].map(|text| (text.to_owned(), false)));
        return values;
    }
    if schema["type"] == "boolean" {
        let words = [
            ("true", true),
            ("false", true),
            ("", false),
            ("True", false),
            ("1", false),
        ];
        return words.map(|(text, is_valid)| (text.to_owned(), is_valid)).to_vec();
    }
    if schema["format"] == "date-time" {
        let valid = [
            "2026-11-20T03:15:00Z",
            "2026-11-20t03:15:00z",
            "2026-11-20T03:15:00.123456789%2B05:30",
            "0001-01-01T00:00:00-23:59",
            "2024-02-29T23:59:59-00:00",
            "9999-12-31T23:59:59Z",
        ];
        let invalid = [
            "",
            "x",
            "2026-11-20",
            "2025-02-29T00:00:00Z",
            "2026-11-20T03:15:00",
            "2026-11-20T25:00:00Z",
        ];
        let valid = valid.map(|text| (text.to_owned(), true));
        return [valid, invalid.map(|text| (text.to_owned(), false))].concat();
    }
    let validator = jsonschema::draft202012::new(schema).unwrap();
    let encode = |text: &str| {
        text.bytes()
            .fold(String::new(), |escaped, byte| escaped + &format!("%{byte:02X}"))
    };
    // The target has 8 KiB, and three characters stand for a byte.
    let texts = texts().into_iter().filter(|text| text.len() < 2000);
    let mut values: Vec<_> = texts
        .map(|text| (encode(&text), validator.is_valid(&json!(text))))
        .collect();
    let words = ["active", "disabled", "allowed", "denied", "Allowed"];
    values.extend(words.map(|word| (word.to_owned(), validator.is_valid(&json!(word)))));
    values
}

/// The same for queries; all but cursors, which only the server can make.
#[test]
fn a_query_is_refused_exactly_when_the_schema_says_so() {
    once_of(every_area(), "queries", |app: Arc<App>| async move {
        let document = openapi::document(&app.kernel.registry);
        let target = samples::fresh_target(&app).await;
        let (mut seen, mut of_second_person) = (0, 0);
        for (path, method, operation) in operations(&document) {
            let parameters = operation["parameters"].as_array().unwrap();
            let entry = app
                .kernel
                .registry
                .find(operation["operationId"].as_str().unwrap())
                .unwrap();
            for parameter in parameters
                .iter()
                // What stands in the query for an id of the path is taken behind a dash alone: the tests of policies say so.
                .filter(|p| p["in"] == "query" && p["name"] != "cursor" && p["name"] != "policyId")
            {
                let name = parameter["name"].as_str().unwrap();
                // One place reads what all writes say of a second person: some of them are tried.
                of_second_person += i32::from(PARAMETERS.contains(&name));
                if PARAMETERS.contains(&name) && of_second_person > 8 {
                    continue;
                }
                for (value, is_valid) in values_of(&parameter["schema"]) {
                    let mut target = target.clone();
                    crate::areas::make(&app, entry.meta, &mut target.others).await;
                    let path = samples::path(entry.meta, &target);
                    let (path, query) = path.split_once('?').unwrap_or((&path, ""));
                    let lead = format!("{name}=");
                    let others = query
                        .split('&')
                        .filter(|pair| !pair.is_empty() && !pair.starts_with(&lead));
                    let pairs: Vec<String> = others
                        .map(str::to_owned)
                        .chain([format!("{lead}{value}")])
                        .collect();
                    let rest = format!("{path}?{}", pairs.join("&"));
                    let call = samples::call(&app, entry, &target).at(&app.path(&rest));
                    let reply = call.send().await;
                    let is_refused = reply.status.as_u16() == 400;
                    // Text that is no id names nothing: 404 or an empty list, never 400 (D1.1).
                    let is_id = name.ends_with("Id") || name == "against";
                    let names_nothing = is_id && !is_valid && !is_refused;
                    assert!(
                        is_refused != is_valid || names_nothing,
                        "{method} {rest}: {}",
                        reply.text()
                    );
                    assert!(reply.status.as_u16() < 500, "{method} {rest}: {}", reply.text());
                    seen += 1;
                }
            }
            assert!(path.starts_with("/api/"));
        }
        assert!(seen > 200, "{seen}");
    });
}

#[test]
fn the_document_declares_the_headers_that_act() {
    let document = document();
    for (path, method, operation) in operations(&document) {
        let meta = app::registry().unwrap();
        let meta = meta
            .find(operation["operationId"].as_str().unwrap())
            .unwrap()
            .meta;
        let parameters = operation["parameters"].as_array().unwrap();
        let has = |name: &str| {
            parameters
                .iter()
                .any(|p| p["in"] == "header" && p["name"] == name)
        };
        for name in ["Idempotency-Key", "X-Reason", "X-Confirm"] {
            assert_eq!(has(name), meta.kind == Kind::Write, "{method} {path}: {name}");
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            let headers = &response["headers"];
            assert!(headers.get("X-Request-Id").is_some(), "{method} {path} {status}");
            let is_success = status.starts_with('2');
            let replayed = headers.get("Idempotent-Replayed").is_some();
            assert_eq!(
                replayed,
                is_success && meta.kind == Kind::Write,
                "{method} {path} {status}"
            );
            // That a second person was asked is an answer of its own.
            let asks = status == "202" && meta.second_person.is_some();
            for name in meta.answers.iter().filter(|_| is_success && !asks) {
                assert!(headers.get(*name).is_some(), "{method} {path} {status}: {name}");
            }
        }
    }
    let all = operations(&document);
    let with = |name: &str| {
        let has = |operation: &Value| {
            let parameters = operation["parameters"].as_array().unwrap();
            parameters.iter().any(|parameter| parameter["name"] == name)
        };
        let found = all.iter().filter(|(_, _, operation)| has(operation));
        found
            .map(|(_, _, operation)| operation["operationId"].as_str().unwrap())
            .collect::<BTreeSet<_>>()
    };
    let acting = [
        "cancelHeadlessPolicyBacktest",
        "publishHeadlessManagedConfigRelease",
        "rollbackHeadlessManagedConfigProfile",
    ];
    assert_eq!(with("If-Match"), BTreeSet::from(acting));
    assert_eq!(
        with("If-None-Match"),
        BTreeSet::from(["getHeadlessDevicePolicyBundle", "getHeadlessPolicyBacktest"])
    );
    for member in ["status", "tokenId", "scope", "nextAfter", "epoch"] {
        assert!(
            document["components"]["schemas"]["Error"]["properties"]
                .get(member)
                .is_some(),
            "{member}"
        );
    }
    for tag in document["tags"].as_array().unwrap() {
        assert!(
            tag["description"].as_str().is_some_and(|about| !about.is_empty()),
            "{tag}"
        );
    }
}

#[test]
fn no_text_of_a_document_speaks_of_the_projects_papers() {
    let tools = Value::from(mcp::tools(&app::registry().unwrap()));
    for whole in [&document(), &tools] {
        walk(whole, &mut |value| {
            for name in ["description", "summary", "title"] {
                let Some(text) = value.get(name).and_then(Value::as_str) else {
                    continue;
                };
                let words =
                    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '§')));
                for word in words {
                    let word = word.trim_end_matches('.');
                    let digits = |text: &str| {
                        !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
                    };
                    let is_decision = word.strip_prefix('D').is_some_and(digits);
                    let is_invariant = word.split_once('-').is_some_and(|(area, number)| {
                        area.len() == 2 && area.bytes().all(|b| b.is_ascii_uppercase()) && digits(number)
                    });
                    assert!(
                        !is_decision && !is_invariant && !word.contains('§') && word != "ADR",
                        "{word}: {text}"
                    );
                }
            }
        });
    }
}

#[test]
fn sets_that_may_grow_are_texts_in_answers_and_words_in_requests() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let role = &schemas["ServiceAccount"]["properties"]["permissionRole"];
    assert_eq!(
        (&role["type"], role.get("enum"), role.get("oneOf")),
        (&json!("string"), None, None)
    );
    assert_eq!(
        role["x-extensible-enum"],
        json!(["admin", "operator", "auditor", "viewer", "member"])
    );
    let kind = &schemas["ResourceCredential"]["properties"]["kind"];
    assert_eq!(
        (&kind["type"], kind["x-extensible-enum"].as_array().unwrap().len()),
        (&json!("string"), 6)
    );
    let subject = &schemas["ResolvedSubject"]["properties"]["kind"];
    assert_eq!(
        subject["x-extensible-enum"],
        json!(["user", "group", "service_account"])
    );
    // What nobody may extend stays an enum (D1.12), and a request says the words that this version knows.
    let status = schemas["ServiceAccount"]["properties"]["status"].to_string();
    assert!(
        status.contains("disabled") && !status.contains("x-extensible-enum"),
        "{status}"
    );
    let create =
        &document["paths"]["/api/headless/v1/organizations/{organizationId}/service-accounts"]["post"];
    let role = create["requestBody"]["content"]["application/json"]["schema"]["properties"]["permissionRole"]
        .to_string();
    assert!(
        role.contains("auditor") && !role.contains("x-extensible-enum"),
        "{role}"
    );
    walk(&document, &mut |value| {
        assert!(value.get("x-open").is_none(), "{value}");
    });
}
