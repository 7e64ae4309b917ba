//! `provost events kinds`: which kinds of events there are, and what an event of each says.
//!
//! No server is asked: the table was made of `webhooks` of the API document when that was written, and a test compares both.

use crate::cli::{Column, Failure, Form, HandCommand, Printer, Terminal, jq_arg, list_output_arg};
use clap::{ArgMatches, Command};
use serde_json::{Map, Value, json};

const TABLE: &str = include_str!("../../../openapi/events-v1.jsonl");

/// Returns the commands.
pub(crate) fn own() -> [HandCommand; 1] {
    [HandCommand {
        group: "events",
        verb: "kinds",
        command: || {
            Command::new("kinds")
                .about(
                    "Lists the kinds of events, with who reads their data; as JSON also schemas and examples",
                )
                .args([list_output_arg(), jq_arg()])
        },
        examples: &["provost events kinds", "provost events kinds --output jsonl"],
        run: |matches, terminal| Box::pin(async { kinds(matches, terminal) }),
    }]
}

fn kinds(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let read = TABLE.lines().map(serde_json::from_str);
    let kinds: Vec<Value> = read
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::usage(format!("the table of this program is not readable: {error}")))?;
    let printer = Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: true,
    };
    let columns = ["type", "readers as data for", "says as what happened"].map(Column::declared);
    Ok(printer.list(&json!({ "kinds": kinds }), "kinds", &columns)?)
}

/// Returns the table of the kinds that an API document names, one JSON object a line.
pub fn table(document: &Value) -> String {
    let kinds = document["webhooks"].as_object().into_iter().flat_map(Map::iter);
    let line = |(kind, item): (&String, &Value)| {
        let (post, content) = (
            &item["post"],
            &item["post"]["requestBody"]["content"]["application/json"],
        );
        let line = json!({
            "type": kind,
            "says": post["summary"],
            "readers": post["x-provost"]["readers"],
            "data": content["schema"]["properties"]["data"],
            "example": content["example"],
        });
        format!("{line}\n")
    };
    kinds.map(line).collect()
}
