//! `docs/guide/events.md`: its table of kinds is made of the API document.

use super::page;
use provost_kernel::expose::openapi;
use provost_server::app;
use serde_json::Value;
use std::fmt::Write;

/// Returns the members of the data, those that may be absent or null with a question mark.
fn members(schema: &Value) -> String {
    let required = schema["required"].as_array().unwrap();
    let name = |(name, of): (&String, &Value)| {
        let may_be_null = of["type"]
            .as_array()
            .is_some_and(|types| types.contains(&"null".into()));
        let mark = if may_be_null || !required.contains(&name.as_str().into()) {
            "?"
        } else {
            ""
        };
        format!("`{name}`{mark}")
    };
    let members = schema["properties"].as_object().unwrap().iter();
    let members: Vec<String> = members
        .filter(|(name, _)| *name != "sequence")
        .map(name)
        .collect();
    members.join(", ")
}

#[test]
fn the_guide_lists_every_kind_of_event() {
    let document = openapi::document(&app::registry().unwrap());
    let text = page("docs/guide/events.md");
    let mut text = text.split("\n## Kinds").next().unwrap().to_owned();
    text += "\n## Kinds\n\n| type | what happened | data | for |\n| --- | --- | --- | --- |\n";
    for (kind, item) in document["webhooks"].as_object().unwrap() {
        let post = &item["post"];
        let schema = &post["requestBody"]["content"]["application/json"]["schema"];
        let says = post["summary"].as_str().unwrap().trim_end_matches('.');
        let readers = post["x-provost"]["readers"].as_str().unwrap();
        let data = members(&schema["properties"]["data"]);
        writeln!(text, "| `{kind}` | {says} | {data} | {readers} |").unwrap();
    }
    crate::samples::assert_golden("docs/guide/events.md", &text);
}
