//! Lists in pages, and exports.

use crate::http::{Answer, Server, json};
use crate::provost::{Provost, folder, mode};
use serde_json::{Value, json};

fn page(ids: &[&str], total: u64) -> Answer {
    let widgets: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
    json(
        200,
        &json!({ "widgets": widgets, "total": total, "limit": 100, "offset": 0 }),
    )
}

fn lines(text: &str) -> Answer {
    let headers = vec![("content-type", "application/jsonl".to_owned())];
    Answer::Says {
        status: 200,
        headers,
        body: text.as_bytes().to_vec(),
    }
}

fn targets(server: &Server) -> Vec<String> {
    let base = "/api/headless/v1/organizations/acme";
    server
        .asked()
        .iter()
        .map(|asked| asked.target.replace(base, ""))
        .collect()
}

#[tokio::test]
async fn all_pages_by_offset_are_one_answer() {
    let server = Server::playing([page(&["a", "b"], 3), page(&["c"], 3)]).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "list", "--all", "--status", "active"])
        .await;
    assert_eq!(
        targets(&server),
        [
            "/widgets?status=active&limit=100",
            "/widgets?status=active&limit=100&offset=2"
        ]
    );
    let whole: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(
        whole,
        json!({ "widgets": [{ "id": "a" }, { "id": "b" }, { "id": "c" }], "total": 3 })
    );
}

#[tokio::test]
async fn a_list_that_takes_both_goes_on_by_cursor_unless_an_offset_is_said() {
    let first = json!({ "entries": [{ "id": "a" }], "nextCursor": "c1", "total": 2 });
    let second = json!({ "entries": [{ "id": "b" }], "total": 2 });
    let words = ["log", "list", "--all", "--limit", "1"];
    let server = Server::playing([json(200, &first), json(200, &second)]).await;
    let outcome = Provost::script().asks(&server, &words).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(targets(&server), ["/log?limit=1", "/log?limit=1&cursor=c1"]);

    let far = json!({ "entries": [{ "id": "b" }], "nextCursor": "c1", "total": 7 });
    let last = json!({ "entries": [{ "id": "c" }], "total": 7 });
    let server = Server::playing([json(200, &far), json(200, &last)]).await;
    let outcome = Provost::script()
        .asks(&server, &[&words[..], &["--offset", "5"]].concat())
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        targets(&server),
        ["/log?limit=1&offset=5", "/log?limit=1&offset=6"]
    );
}

#[tokio::test]
async fn all_pages_by_cursor_are_streamed_as_lines() {
    let first = json(200, &json!({ "entries": [{ "id": "a" }], "nextCursor": "c&1" }));
    let second = json(200, &json!({ "entries": [{ "id": "b" }] }));
    let server = Server::playing([first, second]).await;
    let outcome = Provost::script()
        .asks(&server, &["log", "list", "--all", "--limit", "1", "-o", "jsonl"])
        .await;
    assert_eq!(targets(&server), ["/log?limit=1", "/log?limit=1&cursor=c%261"]);
    assert_eq!(outcome.out, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
}

#[tokio::test]
async fn the_epoch_of_a_page_goes_with_the_next_one() {
    let page = |id: &str, next: u64| {
        json(
            200,
            &json!({ "events": [{ "id": id }], "nextAfter": next, "epoch": "epo_1" }),
        )
    };
    let end = || json(200, &json!({ "events": [], "epoch": "epo_1" }));
    let server = Server::playing([page("a", 3), page("b", 5), end()]).await;
    let words = ["feed", "list", "--all", "--limit", "1", "-o", "json"];
    let outcome = Provost::script().asks(&server, &words).await;
    assert_eq!(
        targets(&server),
        [
            "/feed?limit=1",
            "/feed?limit=1&after=3&epoch=epo_1",
            "/feed?limit=1&after=5&epoch=epo_1"
        ]
    );
    let whole: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(
        whole,
        json!({ "events": [{ "id": "a" }, { "id": "b" }], "epoch": "epo_1" })
    );
    let server = Server::playing([page("a", 3)]).await;
    let outcome = Provost::person(&[]).asks(&server, &["feed", "list"]).await;
    let more = "there is more: --after 3 --epoch epo_1, or --all";
    assert!(outcome.err.contains(more), "{}", outcome.err);
    // A store that went back is no end of the list.
    let gone = json(
        410,
        &json!({ "code": "sequence_gone", "message": "go on with after=2", "nextAfter": 2, "epoch": "epo_2" }),
    );
    let server = Server::playing([page("a", 3), gone]).await;
    let outcome = Provost::script().asks(&server, &["feed", "list", "--all"]).await;
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.err.contains("go on with after=2"), "{}", outcome.err);
}

#[tokio::test]
async fn a_cursor_that_leads_in_a_circle_is_left() {
    let same = || json(200, &json!({ "entries": [{ "id": "a" }], "nextCursor": "c" }));
    let server = Server::playing([same(), same(), same()]).await;
    let outcome = Provost::script().asks(&server, &["log", "list", "--all"]).await;
    assert_eq!((outcome.code, server.asked().len()), (8, 2));
}

/// Proves CL-5.
#[tokio::test]
async fn a_walk_that_comes_to_where_it_was_ends() {
    let at = |cursor: &str| json(200, &json!({ "entries": [{ "id": "a" }], "nextCursor": cursor }));
    let server = Server::playing([at("b"), at("c"), at("b"), at("c")]).await;
    let outcome = Provost::script().asks(&server, &["log", "list", "--all"]).await;
    assert_eq!((outcome.code, server.asked().len()), (8, 3));
    // Where it began counts as well.
    let server = Server::playing([at("b"), at("a"), at("b")]).await;
    let words = ["log", "list", "--all", "--cursor", "a"];
    let outcome = Provost::script().asks(&server, &words).await;
    assert_eq!((outcome.code, server.asked().len()), (8, 2));
}

/// Proves CL-5.
#[tokio::test]
async fn a_walk_that_finds_nothing_ends() {
    let empty = |n: usize| json(200, &json!({ "entries": [], "nextCursor": format!("c{n}") }));
    let server = Server::playing((0..2000).map(empty)).await;
    let outcome = Provost::script().asks(&server, &["log", "list", "--all"]).await;
    assert_eq!((outcome.code, server.asked().len()), (8, 1000), "{}", outcome.err);
    assert!(
        outcome.err.contains("1000 pages without anything"),
        "{}",
        outcome.err
    );
}

/// A page is of a bounded part of what there is: "none" would be taken for the answer.
#[tokio::test]
async fn a_person_is_shown_the_first_page_that_holds_something_and_a_program_each() {
    let empty = |next: &str| json(200, &json!({ "entries": [], "nextCursor": next }));
    let full = || {
        json(
            200,
            &json!({ "entries": [{ "id": "a", "name": "Ann" }], "nextCursor": "c" }),
        )
    };
    let server = Server::playing([empty("a"), empty("b"), full()]).await;
    let outcome = Provost::person(&[]).asks(&server, &["log", "list"]).await;
    assert_eq!((outcome.code, server.asked().len()), (0, 3), "{outcome:?}");
    assert!(
        outcome.out.contains("Ann") && !outcome.err.contains("none"),
        "{outcome:?}"
    );
    assert!(
        outcome.err.contains("there is more: --cursor c, or --all"),
        "{outcome:?}"
    );
    let server = Server::playing([empty("a"), full()]).await;
    let outcome = Provost::script().asks(&server, &["log", "list"]).await;
    assert_eq!((outcome.code, server.asked().len()), (0, 1), "{outcome:?}");
    // It ends, and says that it is not the end.
    let server = Server::playing((0..300).map(|n| empty(&format!("c{n}")))).await;
    let outcome = Provost::person(&[]).asks(&server, &["log", "list"]).await;
    assert_eq!((outcome.code, server.asked().len()), (0, 101), "{outcome:?}");
    assert!(outcome.err.contains("there is more"), "{outcome:?}");
}

#[tokio::test]
async fn an_empty_list_with_a_warning_is_no_success() {
    let warned = json(
        200,
        &json!({ "entries": [], "warnings": [{ "code": "unknown_action", "message": "no entry has it; the most similar are b" }] }),
    );
    let server = Server::playing([warned]).await;
    let outcome = Provost::script().asks(&server, &["log", "list"]).await;
    assert_eq!(outcome.code, 2);
    assert_eq!(outcome.err, "error: no entry has it; the most similar are b\n");
    let whole: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(whole["warnings"][0]["code"], "unknown_action");
}

#[tokio::test]
async fn a_warning_of_the_first_page_ends_with_what_a_later_one_holds() {
    let warned = json!({ "entries": [], "nextCursor": "c", "warnings": [{ "code": "unknown_action", "message": "none" }] });
    let server = Server::playing([
        json(200, &warned),
        json(200, &json!({ "entries": [{ "id": "a" }] })),
    ])
    .await;
    let outcome = Provost::script().asks(&server, &["log", "list", "--all"]).await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let whole: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(whole, json!({ "entries": [{ "id": "a" }] }));
}

#[tokio::test]
async fn what_pages_have_beside_their_items_is_kept_or_said() {
    let pages = || {
        [
            json(
                200,
                &json!({ "entries": [{ "id": "a" }], "unreadable": [{ "id": "x" }], "scannedTo": "2", "nextCursor": "c" }),
            ),
            json(
                200,
                &json!({ "entries": [], "unreadable": [{ "id": "x" }, { "id": "y" }], "scannedTo": "1" }),
            ),
        ]
    };
    let server = Server::playing(pages()).await;
    let outcome = Provost::script().asks(&server, &["log", "list", "--all"]).await;
    let whole: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(
        whole,
        json!({ "entries": [{ "id": "a" }], "unreadable": [{ "id": "x" }, { "id": "y" }] })
    );
    let server = Server::playing(pages()).await;
    let outcome = Provost::script()
        .asks(&server, &["log", "list", "--all", "-o", "jsonl"])
        .await;
    assert!(
        outcome.err.contains("unreadable: 2; --output json shows what"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn items_that_are_called_warnings_are_items() {
    let server = Server::playing([
        json(
            200,
            &json!({ "warnings": [{ "id": "a", "message": "m" }], "nextCursor": "c" }),
        ),
        json(200, &json!({ "warnings": [{ "id": "b" }] })),
        json(200, &json!({ "warnings": [] })),
    ])
    .await;
    let outcome = Provost::script()
        .asks(&server, &["notices", "list", "--all"])
        .await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let whole: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(
        whole,
        json!({ "warnings": [{ "id": "a", "message": "m" }, { "id": "b" }] })
    );
    let outcome = Provost::script()
        .asks(&server, &["notices", "list", "--all"])
        .await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
}

#[tokio::test]
async fn one_page_says_that_there_is_more() {
    let server = Server::playing([page(&["a", "b"], 3)]).await;
    let outcome = Provost::person(&[]).asks(&server, &["widgets", "list"]).await;
    assert_eq!(server.asked().len(), 1);
    assert!(
        outcome.err.contains("there is more: --offset 2, or --all"),
        "{}",
        outcome.err
    );
}

#[tokio::test]
async fn a_page_that_is_lost_is_fetched_again() {
    let server = Server::playing([page(&["a", "b"], 3), Answer::Lost, page(&["c"], 3)]).await;
    let outcome = Provost::script()
        .asks(&server, &["widgets", "list", "--all", "-o", "jsonl", "--quiet"])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(outcome.out, "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n");
}

#[tokio::test]
async fn an_export_goes_on_until_the_server_has_no_more() {
    let pages = [
        lines("{\"n\":1}\n").with("x-provost-next-after", "1"),
        Answer::Lost,
        lines("{\"n\":2}\n"),
    ];
    let server = Server::playing(pages).await;
    let outcome = Provost::script()
        .asks(&server, &["log", "export", "--quiet"])
        .await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        targets(&server),
        [
            "/log/export?limit=100",
            "/log/export?limit=100&after=1",
            "/log/export?limit=100&after=1"
        ]
    );
    assert_eq!(outcome.out, "{\"n\":1}\n{\"n\":2}\n");
}

#[tokio::test]
async fn an_export_with_a_limit_says_where_to_go_on() {
    let server = Server::playing([lines("{\"n\":1}\n").with("x-provost-next-after", "1")]).await;
    let outcome = Provost::script()
        .asks(&server, &["log", "export", "--limit", "1"])
        .await;
    assert_eq!((outcome.code, server.asked().len()), (0, 1));
    assert!(outcome.err.contains("--after 1"), "{}", outcome.err);
}

#[tokio::test]
async fn an_export_into_a_file_is_private_and_byte_for_byte() {
    let path = folder().join("log.jsonl");
    let text = "{\"n\":\"\u{9b}\"}\n";
    let server = Server::playing([lines(text)]).await;
    let command = ["log", "export", "--to", path.to_str().expect("UTF-8")];
    let outcome = Provost::person(&[]).asks(&server, &command).await;
    assert_eq!((outcome.code, outcome.out.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), text);
    assert_eq!(mode(&path), 0o600);
    assert!(outcome.err.contains("1 lines"), "{:?}", outcome.err);
}

#[tokio::test]
async fn an_export_that_breaks_off_says_how_far_it_came() {
    let server = Server::playing([
        lines("{\"n\":1}\n").with("x-provost-next-after", "1"),
        Answer::Lost,
    ])
    .await;
    let outcome = Provost::script()
        .asks(&server, &["log", "export", "--retries", "0"])
        .await;
    assert_eq!(outcome.code, 7);
    assert!(
        outcome.err.contains("1 lines were written; go on with --after 1"),
        "{}",
        outcome.err
    );
}
