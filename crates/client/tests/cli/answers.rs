//! Tables and JSON.

use crate::http::{Server, empty, json};
use crate::provost::Provost;
use serde_json::{Value, json};

fn page() -> Value {
    let widget = |id: &str, name: &str| {
        json!({
            "id": id, "name": name, "status": "active", "scopes": ["a:read", "b:read"],
            "createdAt": "2026-11-20T03:15:00.000Z", "description": "a long text ".repeat(20),
        })
    };
    json!({ "widgets": [widget("w_1", "Wheel"), widget("w_2", "Axle")], "total": 2 })
}

#[tokio::test]
async fn a_program_gets_json_and_a_person_a_table() {
    let server = Server::playing([json(200, &page()), json(200, &page())]).await;
    let program = Provost::script().asks(&server, &["widgets", "list"]).await;
    assert_eq!(serde_json::from_str::<Value>(&program.out).expect("JSON"), page());
    let person = Provost::person(&[])
        .width(200)
        .asks(&server, &["widgets", "list"])
        .await;
    let lines: Vec<&str> = person.out.lines().collect();
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(
        words,
        ["NAME", "STATUS", "CREATED", "AT", "ID", "SCOPES", "DESCRIPTION"]
    );
    assert!(
        lines[1].contains("w_1") && lines[1].contains("a:read, b:read"),
        "{}",
        person.out
    );
    assert!(!person.out.contains('\u{1b}'), "{:?}", person.out);
}

#[tokio::test]
async fn a_table_is_never_wider_than_the_terminal_and_names_what_it_leaves_out() {
    for width in [40, 60, 80, 120] {
        let server = Server::playing([json(200, &page())]).await;
        let outcome = Provost::person(&[])
            .width(width)
            .asks(&server, &["widgets", "list"])
            .await;
        let widest = outcome
            .out
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        assert!(widest <= usize::from(width), "{width}: {}", outcome.out);
        assert!(outcome.out.contains("Wheel"), "{}", outcome.out);
        let is_complete = outcome.out.contains("DESCRIPTION");
        assert_eq!(
            outcome.err.contains("description"),
            !is_complete,
            "{width}: {} {}",
            outcome.out,
            outcome.err
        );
    }
}

#[tokio::test]
async fn lines_are_one_item_each() {
    let server = Server::playing([json(200, &page())]).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "list", "--output", "jsonl"])
        .await;
    let ids: Vec<Value> = outcome
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
        .collect();
    assert_eq!(ids, ["w_1", "w_2"]);
}

#[tokio::test]
async fn one_object_is_a_table_of_its_members() {
    let answer =
        json!({ "widget": { "name": "Wheel", "id": "w_1", "parts": [{ "id": "p_1" }], "size": { "x": 2 } } });
    let server = Server::playing([json(200, &answer)]).await;
    let outcome = Provost::person(&[])
        .asks(
            &server,
            &["widgets", "update", "w_1", "--name", "Wheel", "--reason", "r"],
        )
        .await;
    let rows: Vec<Vec<&str>> = outcome
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows,
        [
            ["id", "w_1"],
            ["name", "Wheel"],
            ["parts.0.id", "p_1"],
            ["size.x", "2"]
        ]
    );
}

#[tokio::test]
async fn an_empty_list_says_so_beside_the_output() {
    let server = Server::playing([json(200, &json!({ "widgets": [], "total": 0 }))]).await;
    let outcome = Provost::person(&[]).asks(&server, &["widgets", "list"]).await;
    assert_eq!((outcome.out.as_str(), outcome.err.as_str()), ("", "none\n"));
}

#[tokio::test]
async fn a_program_of_jq_sees_the_answer_and_nothing_else() {
    let lists = |program: &'static str| async move {
        let server = Server::playing([json(200, &page())]).await;
        Provost::script()
            .asks(&server, &["widgets", "list", "--jq", program])
            .await
    };
    let outcome = lists(".widgets[].id").await;
    assert_eq!(
        (outcome.code, outcome.out.as_str()),
        (0, "w_1\nw_2\n"),
        "{}",
        outcome.err
    );
    let outcome = lists(r#"[.widgets[] | select(.id | test("2$")) | {id}], .total"#).await;
    assert!(outcome.out.starts_with("[{\"id\":\"w_2\"}]\n"), "{}", outcome.out);

    // Whatever comes out cannot steer a terminal.
    let server = Server::playing([json(200, &page())]).await;
    let command = ["widgets", "list", "--jq", r#""\u001b[2J""#];
    let outcome = Provost::person(&[]).asks(&server, &command).await;
    assert!(!outcome.out.contains('\u{1b}'), "{:?}", outcome.out);

    // Refused before anything is asked for, with the place.
    for (program, place) in [
        (".widgets[", "character 10: expected closing bracket"),
        (".a | }", "at character "),
        ("1 + ", "expected term"),
        (".a | env", "character 6: there is no filter env"),
        ("$ENV", "character 1: there is no variable $ENV"),
        ("input", "there is no filter input"),
        ("halt", "there is no filter halt"),
        ("stderr", "there is no filter stderr"),
        (r#"include "x"; ."#, "files cannot be included"),
    ] {
        let server = Server::playing([]).await;
        let outcome = Provost::script()
            .asks(&server, &["widgets", "list", "--jq", program])
            .await;
        assert_eq!(outcome.code, 2, "{program}: {}", outcome.err);
        assert!(outcome.err.contains(place), "{program}: {}", outcome.err);
    }
    let server = Server::playing([]).await;
    let command = ["widgets", "list", "--jq", ".", "--output", "csv"];
    let outcome = Provost::script().asks(&server, &command).await;
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.err.contains("--jq reads JSON: leave out --output csv"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn an_answer_that_a_program_of_jq_cannot_read_is_printed_whole() {
    let answer = json!({ "widget": { "id": "w_1", "secret": "told once" } });
    let server = Server::playing([json(200, &answer)]).await;
    let command = [
        "widgets",
        "update",
        "w_1",
        "--name",
        "Wheel",
        "--reason",
        "r",
        "--jq",
        ".widget.id | keys",
    ];
    let outcome = Provost::script().asks(&server, &command).await;
    // The server did it: that is not what a wrong flag ends with.
    assert_eq!(outcome.code, 9, "{}", outcome.err);
    assert!(outcome.out.contains("told once"), "{}", outcome.out);
    assert!(
        outcome.err.contains("the answer is printed whole"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_program_of_jq_that_had_nothing_to_read_is_warned_of() {
    let server = Server::playing([empty(204)]).await;
    let command = [
        "widgets",
        "delete",
        "w_1",
        "--confirm",
        "--reason",
        "r",
        "--jq",
        ".",
    ];
    let outcome = Provost::script().asks(&server, &command).await;
    assert_eq!((outcome.code, outcome.out.as_str()), (0, ""), "{}", outcome.err);
    assert!(
        outcome.err.contains("warning: --jq had nothing to read"),
        "{}",
        outcome.err
    );
    let server = Server::playing([json(200, &page())]).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "list", "--jq", "empty"])
        .await;
    assert_eq!((outcome.out.as_str(), outcome.err.as_str()), ("", ""));
}
