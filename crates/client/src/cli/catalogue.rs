//! The operations that the program was built with.
//!
//! Reading the OpenAPI document takes longer than most commands take. What commands need of it is therefore written down when
//! the document is, as `openapi/commands-v1.jsonl`: one line that lists the groups with their verbs, then a line for each
//! operation, those of a group beside each other. A start reads the list and the lines of one group; a test compares the table
//! with the document.

use super::api::Api;

const TABLE: &str = include_str!("../../../../openapi/commands-v1.jsonl");

/// A group of commands: its name and its verbs.
pub type Group = (&'static str, Vec<&'static str>);

/// Returns the groups in the document's order.
pub fn groups() -> Vec<Group> {
    read(TABLE.lines().next().unwrap_or_default())
}

/// Returns the operations of one group; none when it is not one of the API.
pub fn of_group(name: &str) -> Api {
    let mut first = 1;
    for (group, verbs) in groups() {
        if group == name {
            let lines = TABLE.lines().skip(first).take(verbs.len());
            return Api {
                operations: lines.map(read).collect(),
            };
        }
        first += verbs.len();
    }
    Api {
        operations: Vec::new(),
    }
}

/// Returns the table of these operations.
pub fn table(api: &Api) -> String {
    let groups = api.groups();
    let list: Vec<(&str, Vec<&String>)> = groups
        .iter()
        .map(|(group, operations)| {
            (
                *group,
                operations.iter().map(|operation| &operation.verb).collect(),
            )
        })
        .collect();
    let mut table = serde_json::json!(list).to_string() + "\n";
    for operation in groups.iter().flat_map(|(_, operations)| operations) {
        table += &serde_json::json!(operation).to_string();
        table.push('\n');
    }
    table
}

#[expect(
    clippy::expect_used,
    reason = "the table is compiled in, and a test compares it with the document"
)]
fn read<T: serde::Deserialize<'static>>(line: &'static str) -> T {
    serde_json::from_str(line).expect("the compiled-in table of commands is readable")
}

#[cfg(test)]
mod tests {
    use super::{groups, of_group};
    use crate::cli::api::Shape;

    /// An answer in pages that is not known as a list has no `--all`, and says nowhere that there is more.
    #[test]
    fn what_takes_a_cursor_answers_with_a_list() {
        let mut seen = 0;
        for (group, _) in groups() {
            for operation in of_group(group).operations {
                if ["cursor", "offset"]
                    .iter()
                    .any(|name| operation.query_field(name).is_some())
                {
                    assert!(
                        matches!(operation.answer, Shape::List(_)),
                        "{group} {}",
                        operation.verb
                    );
                    seen += 1;
                }
            }
        }
        assert!(seen > 20, "{seen}");
    }

    /// What is kept as history is no write to the server, and is kept again by a repetition.
    #[test]
    fn only_what_asks_can_be_repeated_and_help_names_every_scope() {
        let (mut watched, mut both) = (0, 0);
        for (group, _) in groups() {
            let api = of_group(group);
            for operation in &api.operations {
                let mut command = crate::cli::command_of(&api, group, &operation.verb, &[]).unwrap();
                let help = command.render_long_help().to_string();
                let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
                let repeats = help.contains("--watch");
                assert!(
                    !repeats || operation.method == http::Method::GET,
                    "{group} {}",
                    operation.verb
                );
                watched += usize::from(repeats);
                let needed = operation.needed_scopes().unwrap_or_default();
                both += usize::from(needed.starts_with("the scopes "));
                assert!(help.contains(&needed), "{group} {}: {needed}", operation.verb);
            }
        }
        assert!(watched > 50 && both >= 5, "{watched} {both}");
    }
}
