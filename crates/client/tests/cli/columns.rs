//! Lists as declared columns: for people, for spreadsheets, and as somebody names them.

use crate::http::{Server, json};
use crate::provost::{Outcome, Provost};
use serde_json::{Value, json};

fn page() -> Value {
    json!({ "total": 2, "widgets": [
        {
            "id": "w_01kaf9q2m4x7t8v3c5d6e0g1h2", "name": "Wheel", "status": "active", "scopes": ["a:read"],
            "parts": [{ "expiresAt": "2026-12-09T00:00:00.000Z" }, { "expiresAt": "2027-12-09T00:00:00.000Z" }],
            "owner": { "displayName": "Ada" }, "createdAt": "2026-11-26T11:57:00.000Z", "weight": -3,
        },
        {
            "id": "w_01kaf9q2m4x7t8v3c5d6e0g1h3", "name": "Axle, \"long\"", "status": "disabled", "scopes": [],
            "parts": [], "createdAt": "2026-11-14T12:00:00.000Z",
        },
    ]})
}

async fn list(provost: Provost, flags: &[&str]) -> Outcome {
    let server = Server::playing([json(200, &page())]).await;
    provost
        .asks(&server, &[&["widgets", "list"], flags].concat())
        .await
}

#[tokio::test]
async fn a_person_sees_the_declared_columns_in_their_order_and_what_fits_eighty_columns() {
    let outcome = list(Provost::person(&[]).width(80), &[]).await;
    assert_eq!(
        outcome.out,
        " NAME          STATUS    PARTS                          OWNER  CREATED AT\n\
         \u{20}Wheel         active    2 parts, next expires in 12 d  Ada    3 min ago\n\
         \u{20}Axle, \"long\"  disabled                                        12 d ago\n"
    );
    assert_eq!(outcome.err, "not shown: id, scopes (--output wide)\n");
}

#[tokio::test]
async fn wide_shows_every_declared_column_whatever_the_width() {
    let outcome = list(Provost::person(&[]).width(40), &["-o", "wide"]).await;
    let head: Vec<&str> = outcome.out.lines().next().expect("a head").split("  ").collect();
    let head: Vec<&str> = head
        .into_iter()
        .map(str::trim)
        .filter(|title| !title.is_empty())
        .collect();
    assert_eq!(
        head,
        [
            "NAME",
            "STATUS",
            "PARTS",
            "OWNER",
            "CREATED AT",
            "ID",
            "SCOPES",
            "DESCRIPTION"
        ]
    );
    assert!(
        outcome.out.contains("2 parts, next expires in 12 d"),
        "{}",
        outcome.out
    );
    assert_eq!((outcome.out.lines().count(), outcome.err.as_str()), (3, ""));
}

#[tokio::test]
async fn times_are_exact_where_nobody_looks() {
    let outcome = list(Provost::script(), &["-o", "table"]).await;
    for exact in [
        "2026-11-26T11:57:00.000Z",
        "2 parts, next expires 2026-12-09T00:00:00.000Z",
    ] {
        assert!(outcome.out.contains(exact), "{}", outcome.out);
    }
    assert!(!outcome.out.contains(" ago"), "{}", outcome.out);
}

#[tokio::test]
async fn a_spreadsheet_gets_every_declared_column_quoted_and_exact() {
    for provost in [Provost::script(), Provost::person(&[]).colours()] {
        let outcome = list(provost, &["-o", "csv"]).await;
        assert_eq!(
            outcome.out,
            "name,status,parts,owner.displayName,createdAt,id,scopes,description\n\
             Wheel,active,\"2 parts, next expires 2026-12-09T00:00:00.000Z\",Ada,2026-11-26T11:57:00.000Z,\
             w_01kaf9q2m4x7t8v3c5d6e0g1h2,a:read,\n\
             \"Axle, \"\"long\"\"\",disabled,,,2026-11-14T12:00:00.000Z,w_01kaf9q2m4x7t8v3c5d6e0g1h3,,\n"
        );
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    }
}

#[tokio::test]
async fn a_spreadsheet_runs_nothing_that_a_server_says() {
    let names = ["=HYPERLINK(1)", "+1", "-1", "@A1", "\t=1", "a;=1"];
    let widgets: Vec<Value> = names
        .iter()
        .map(|name| json!({ "name": name, "weight": -3 }))
        .collect();
    let server = Server::playing([json(200, &json!({ "widgets": widgets, "total": 6 }))]).await;
    let outcome = Provost::script()
        .asks(
            &server,
            &["widgets", "list", "-o", "csv", "--columns", "name,weight"],
        )
        .await;
    // A number is none that could be a formula.
    assert_eq!(
        outcome.out,
        "name,weight\n'=HYPERLINK(1),-3\n'+1,-3\n'-1,-3\n'@A1,-3\n'\t'=1,-3\na;'=1,-3\n"
    );
}

#[tokio::test]
async fn named_columns_are_shown_in_the_order_in_which_they_are_named() {
    let outcome = list(
        Provost::person(&[]),
        &["--columns", "weight,owner.displayName, name"],
    )
    .await;
    assert_eq!(
        outcome.out,
        " WEIGHT  OWNER  NAME\n -3      Ada    Wheel\n                Axle, \"long\"\n"
    );
    // Without a form it is a table also where nobody looks: JSON has no columns.
    let outcome = list(Provost::script(), &["--columns", "createdAt"]).await;
    assert_eq!(
        outcome.out,
        " CREATED AT\n 2026-11-26T11:57:00.000Z\n 2026-11-14T12:00:00.000Z\n"
    );
}

#[tokio::test]
async fn a_column_that_is_not_there_is_a_fault_of_the_command_line_and_nobody_is_asked() {
    for name in ["stauts", "", "owner", "parts.expiresAt"] {
        let server = Server::playing([]).await;
        let outcome = Provost::script()
            .asks(
                &server,
                &["widgets", "list", "--columns", &format!("name,{name}")],
            )
            .await;
        assert_eq!(
            (outcome.code, outcome.out.as_str()),
            (2, ""),
            "{name}: {}",
            outcome.err
        );
        assert!(
            outcome
                .err
                .contains(&format!("no {name:?}; the nearest names are ")),
            "{}",
            outcome.err
        );
        assert!(
            outcome.err.contains("it shows name, status, parts, "),
            "{}",
            outcome.err
        );
        assert!(server.asked().is_empty(), "{name}");
    }
    let near = list(Provost::script(), &["--columns", "stauts"]).await;
    assert!(
        near.err.contains("the nearest names are status, "),
        "{}",
        near.err
    );
    // Two letters exchanged are the commonest slip.
    let near = list(Provost::script(), &["--columns", "nmae"]).await;
    assert!(near.err.contains("the nearest names are name, "), "{}", near.err);
    for form in ["json", "jsonl"] {
        let outcome = list(Provost::script(), &["--columns", "name", "-o", form]).await;
        assert_eq!((outcome.code, outcome.out.as_str()), (2, ""), "{}", outcome.err);
    }
}

/// What answers no list has no columns.
#[tokio::test]
async fn other_answers_have_neither_columns_nor_csv() {
    let update = ["widgets", "update", "w_1", "--name", "Wheel", "--reason", "r"];
    for flags in [&["-o", "csv"][..], &["-o", "wide"], &["--columns", "name"]] {
        let server = Server::playing([]).await;
        let outcome = Provost::script().asks(&server, &[&update, flags].concat()).await;
        assert_eq!(outcome.code, 2, "{flags:?}: {}", outcome.err);
        assert!(server.asked().is_empty(), "{flags:?}");
    }
}

/// Proves CL-3.
#[tokio::test]
async fn a_state_has_a_colour_on_a_terminal_that_shows_colours_and_nothing_else_does() {
    let outcome = list(Provost::person(&[]).colours().width(120), &[]).await;
    assert!(
        outcome.out.contains("\u{1b}[32mactive\u{1b}[0m"),
        "{:?}",
        outcome.out
    );
    assert!(
        outcome.out.contains("\u{1b}[31mdisabled\u{1b}[0m"),
        "{:?}",
        outcome.out
    );
    assert_eq!(outcome.out.matches('\u{1b}').count(), 4, "{:?}", outcome.out);
    for (provost, flags) in [
        (Provost::person(&[]), &[][..]),
        (Provost::script(), &["-o", "table"]),
        (Provost::script(), &["-o", "wide"]),
    ] {
        let outcome = list(provost, flags).await;
        assert!(!outcome.out.contains('\u{1b}'), "{:?}", outcome.out);
    }
    // What a server says brings no colour of its own.
    let evil = json!({ "widgets": [{ "name": "\u{1b}[31mx", "status": "active\u{1b}[2J", "id": "\u{202e}" }], "total": 1 });
    let server = Server::playing([json(200, &evil)]).await;
    let outcome = Provost::person(&[])
        .colours()
        .asks(&server, &["widgets", "list"])
        .await;
    assert!(!outcome.out.contains(['\u{1b}', '\u{202e}']), "{:?}", outcome.out);
    assert!(outcome.out.contains("active\\u001b[2J"), "{:?}", outcome.out);
}

#[tokio::test]
async fn whoever_gets_one_page_for_a_spreadsheet_is_told_that_there_is_more() {
    let first = json!({ "widgets": [{ "name": "Wheel" }], "total": 2 });
    let server = Server::playing([json(200, &first)]).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "list", "-o", "csv", "--columns", "name"])
        .await;
    assert_eq!(outcome.out, "name\nWheel\n");
    assert_eq!(outcome.err, "there is more: --offset 1, or --all\n");
    let second = json!({ "widgets": [{ "name": "Axle" }], "total": 2 });
    let server = Server::playing([json(200, &first), json(200, &second)]).await;
    let outcome = Provost::script()
        .asks(
            &server,
            &["widgets", "list", "-o", "csv", "--columns", "name", "--all"],
        )
        .await;
    assert_eq!(
        (outcome.out.as_str(), outcome.err.as_str()),
        ("name\nWheel\nAxle\n", "")
    );
}

#[tokio::test]
async fn yaml_holds_the_answer_as_json_does() {
    let outcome = list(Provost::script(), &["-o", "yaml"]).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for line in [
        "total: 2\n",
        "- createdAt: \"2026-11-26T11:57:00.000Z\"\n",
        "  name: Wheel\n",
        "  parts: []\n",
    ] {
        assert!(outcome.out.contains(line), "{line}{}", outcome.out);
    }
    let outcome = list(Provost::script(), &["-o", "yaml", "--columns", "name"]).await;
    assert_eq!(outcome.code, 2, "{}", outcome.err);
}

#[tokio::test]
async fn who_watches_sees_every_answer_until_an_error() {
    let server = Server::playing([json(200, &page()), json(200, &page())]).await;
    let words = ["widgets", "list", "--watch=1", "--retries", "0"];
    let outcome = Provost::person(&[]).asks(&server, &words).await;
    assert_eq!((outcome.code, server.asked().len()), (8, 3), "{}", outcome.err);
    assert_eq!(
        outcome.out.matches("\u{1b}[2J\u{1b}[H").count(),
        3,
        "{:?}",
        outcome.out
    );
    assert_eq!(outcome.out.matches("Wheel").count(), 2, "{:?}", outcome.out);
}

#[tokio::test]
async fn what_is_counted_in_place_of_items_is_a_table_too() {
    let group = json!({ "tool": "Bash", "events": 3, "outcomes": { "blocked": 2, "asked": 1 } });
    let page = json!({ "total": 0, "widgets": [], "groups": [group] });
    let counted = async |provost: Provost, flags: &[&str]| {
        let server = Server::playing([json(200, &page)]).await;
        let words = [&["widgets", "list"], flags].concat();
        provost.asks(&server, &words).await
    };
    let outcome = counted(Provost::person(&[]).width(80), &[]).await;
    assert_eq!(
        (outcome.out.as_str(), outcome.err.as_str()),
        (
            " TOOL  EVENTS  BLOCKED  ASKED\n\u{20}Bash  3       2        1\n",
            ""
        )
    );
    let outcome = counted(Provost::script(), &["-o", "jsonl"]).await;
    assert_eq!(outcome.out, format!("{}\n", page["groups"][0]));
}
