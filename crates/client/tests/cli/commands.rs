//! The commands themselves: help, names, completions.

use crate::operations::api;
use clap::Command;
use provost_client::cli::{Api, EXIT_CODES, commands};
use serde_json::{Value, json};

fn root() -> Command {
    Command::new("provost").subcommands(commands(&api()))
}

fn help(path: [&str; 2]) -> String {
    let mut root = root().term_width(200);
    root.build();
    let group = root.find_subcommand_mut(path[0]).expect("the group");
    group
        .find_subcommand_mut(path[1])
        .expect("the verb")
        .render_long_help()
        .to_string()
}

#[test]
fn every_command_is_consistent() {
    root().debug_assert();
}

#[test]
fn help_says_limits_words_rights_and_exit_codes() {
    let create = help(["widgets", "create"]);
    for words in [
        "--name <TEXT>",
        "What it is called (1 to 128 characters)",
        "(0 to 604800)",
        "--tokens-secret-replay-seconds <N>",
        "Needs the scope widgets:write and one of the roles: admin, operator.",
        "shown once",
        "--token-out <FILE>",
        EXIT_CODES,
    ] {
        assert!(create.contains(words), "{words}\n{create}");
    }
    let list = help(["widgets", "list"]);
    for words in ["active", "Stands still", "(1 to 100, 50 when absent)", "--all"] {
        assert!(list.contains(words), "{words}\n{list}");
    }
    let update = help(["widgets", "update"]);
    assert!(
        update.contains("--clear-description") && !update.contains("--clear-name"),
        "{update}"
    );
    let delete = help(["widgets", "delete"]);
    assert!(
        delete.contains("<WIDGET_ID>") && delete.contains("Nothing can undo it."),
        "{delete}"
    );
}

#[test]
fn the_organization_is_no_positional() {
    let root = root();
    let list = root
        .find_subcommand("widgets")
        .and_then(|group| group.find_subcommand("list"))
        .expect("the verb");
    assert_eq!(list.get_positionals().count(), 0);
}

#[test]
fn a_document_without_commands_is_refused() {
    assert!(Api::parse(&json!({})).is_err());
    let error =
        Api::parse(&json!({ "paths": { "/a": { "get": { "responses": {} } } } })).expect_err("no command");
    assert!(error.contains("get /a"), "{error}");
    // What says that it has none is what machines call for themselves.
    let own = json!({ "command": [], "kind": "read" });
    let document = json!({ "paths": { "/a": { "get": { "x-provost": own, "responses": {} } } } });
    let api = Api::parse(&document).expect("no command is made of it");
    assert!(commands(&api).iter().all(|group| group.get_name() != "a"));
}

/// What a person sees of a list is declared, and is there.
#[test]
fn a_list_without_columns_and_a_column_that_no_item_has_are_refused() {
    let document = |columns: Option<Value>, answer: Value| {
        let mut extension = json!({ "command": ["widgets", "list"], "kind": "read" });
        if let Some(columns) = columns {
            extension["columns"] = columns;
        }
        let content = json!({ "application/json": { "schema": answer } });
        json!({ "paths": { "/widgets": { "get": {
            "x-provost": extension, "responses": { "200": { "content": content } },
        } } } })
    };
    let owner = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let item = json!({ "type": "object", "properties": { "id": { "type": "string" }, "owner": owner } });
    let list = json!({
        "type": "object",
        "properties": { "widgets": { "type": "array", "items": item } },
        "required": ["widgets"],
    });
    let refusal =
        |columns: Option<Value>, answer: &Value| Api::parse(&document(columns, answer.clone())).err();
    assert_eq!(refusal(Some(json!(["id", "owner.name as owner"])), &list), None);
    for columns in [None, Some(json!([]))] {
        let error = refusal(columns, &list).expect("no columns");
        assert_eq!(error, "get /widgets: it answers a list and declares no columns");
    }
    for path in ["name", "owner.id", "id.x", "widgets", ""] {
        let error = refusal(Some(json!(["id", path])), &list).expect("no such column");
        assert!(error.contains(&format!("no {path},")), "{error}");
    }
    let error = refusal(Some(json!(["id"])), &item).expect("no list");
    assert!(error.contains("answers no list"), "{error}");
}
