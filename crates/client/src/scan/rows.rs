//! A report as rows for people and spreadsheets.

use serde_json::{Value, json};

/// The columns, in the order in which a narrow terminal keeps them.
pub(super) const COLUMNS: [&str; 7] = [
    "client",
    "kind",
    "what as key or name",
    "place as configured in",
    "detail",
    "weak",
    "standing",
];

/// Returns a row for each observation and each fault.
pub(super) fn of(report: &Value) -> Vec<Value> {
    let mut rows = Vec::new();
    for section in list(report, "sections") {
        let client = &section["client"];
        rows.extend(
            list(section, "observations")
                .iter()
                .map(|found| row(client, found)),
        );
        rows.extend(list(section, "faults").iter().map(|fault| {
            json!({
                "client": client,
                "kind": "fault",
                "what": fault["fault"],
                "place": fault["place"]["class"],
            })
        }));
    }
    rows
}

/// Counts the places that could not be read.
pub(super) fn faults(report: &Value) -> usize {
    let sections = list(report, "sections").iter();
    sections.map(|section| list(section, "faults").len()).sum()
}

fn row(client: &Value, found: &Value) -> Value {
    let kind = text(found, "kind");
    let (what, detail) = match kind {
        "mcp_server" => (text(found, "key").to_owned(), of_server(found)),
        "skill" => (text(found, "name").to_owned(), text(found, "digest").to_owned()),
        "extension" => (
            text(found, "name").to_owned(),
            if found["enabled"] == true { "on" } else { "off" }.to_owned(),
        ),
        "hook" => (
            text(found, "event").to_owned(),
            counted(&found["commands"], "command"),
        ),
        "setting" => (text(found, "name").to_owned(), text(found, "value").to_owned()),
        "environment" => (names(found, "names"), String::new()),
        "credential" => (text(found, "pattern").to_owned(), of_credential(found)),
        "sessions" => (kind.to_owned(), counted(&found["files"], "file")),
        _ => (String::new(), String::new()),
    };
    let mut row = json!({
        "client": client,
        "kind": kind,
        "what": what,
        "place": found["place"]["class"],
    });
    if !detail.is_empty() {
        row["detail"] = detail.into();
    }
    if kind == "mcp_server" {
        row["weak"] = if found["weak"] == true { "yes" } else { "no" }.into();
    }
    // Whether it is approved is what an organization says, and no file of this machine.
    if matches!(kind, "mcp_server" | "skill" | "extension") {
        row["standing"] = "unknown".into();
    }
    row
}

fn of_server(found: &Value) -> String {
    let mut facts = vec![text(found, "configuredName").to_owned()];
    match (found["version"].as_str(), text(found, "versionPin")) {
        (Some(version), _) => facts.push(format!("version {version}")),
        (None, "floating") => facts.push("any version".to_owned()),
        (None, _) => {}
    }
    if found["enabled"] == false {
        facts.push("off".to_owned());
    }
    if found["secretsInline"] != 0 {
        facts.push(format!(
            "{} in it",
            counted(&found["secretsInline"], "credential")
        ));
    }
    facts.join(", ")
}

fn of_credential(found: &Value) -> String {
    let readers = if found["worldReadable"] == true {
        "everybody"
    } else {
        "not everybody"
    };
    format!(
        "in {}, {readers} may read the file ({})",
        text(found, "memberName"),
        text(found, "fileMode")
    )
}

fn counted(count: &Value, thing: &str) -> String {
    match count.as_u64().unwrap_or_default() {
        1 => format!("1 {thing}"),
        several => format!("{several} {thing}s"),
    }
}

fn names(found: &Value, member: &str) -> String {
    let names = list(found, member).iter().filter_map(Value::as_str);
    names.collect::<Vec<_>>().join(", ")
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map(Vec::as_slice).unwrap_or_default()
}
