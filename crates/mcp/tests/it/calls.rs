//! Calls: arguments, answers, refusals.

use crate::support::{App, each};
use serde_json::{Value, json};
use std::sync::Arc;

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn made(id: &str) -> Value {
    json!({ "id": id, "reason": "a test", "idempotencyKey": format!("key-{id}") })
}

#[test]
fn a_call_is_answered_as_structure_and_as_text() {
    each("mcp_call", |app: Arc<App>| async move {
        let result = app.call(&app.admin, "createThing", made("a\"content\":[]")).await;
        assert_eq!(
            result["structuredContent"],
            json!({ "things": ["a\"content\":[]"] })
        );
        assert_eq!(
            serde_json::from_str::<Value>(text(&result)).unwrap(),
            result["structuredContent"]
        );
        assert_eq!(
            (&result["resultType"], &result["isError"]),
            (&json!("complete"), &json!(false))
        );
        app.call(&app.admin, "createThing", made("b")).await;
        let result = app
            .call(&app.admin, "listThings", json!({ "prefix": "b", "limit": 5 }))
            .await;
        assert_eq!(result["structuredContent"], json!({ "things": ["b"] }));
        let result = app
            .call(&app.admin, "listThings", json!({ "prefix": null }))
            .await;
        assert_eq!(result["structuredContent"]["things"].as_array().unwrap().len(), 2);
        // What a URL would have to escape arrives as it is.
        let result = app
            .call(&app.admin, "touchThing", json!({ "thingId": "x/ü %2F?&#" }))
            .await;
        assert_eq!(result["structuredContent"]["things"][0], "x/ü %2F?&#");
    });
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction_of_zero() {
    each("mcp_whole", |app: Arc<App>| async move {
        let numbered = |id: &str, numbers: Value| {
            let mut thing = made(id);
            thing["numbers"] = numbers;
            thing
        };
        // Read by the short way, and by the library.
        for (id, unusual) in [("a", false), ("b", true)] {
            for numbers in ["[1.0, 2e1, 3]", "[1, 20, 3]"] {
                let numbers = serde_json::from_str(numbers).unwrap();
                let mut params = json!({ "name": "createThing", "arguments": numbered(id, numbers) });
                if unusual {
                    params["unusual"] = json!(1);
                }
                let answer = app.send(app.modern("tools/call", params)).await.json();
                let things = &answer["result"]["structuredContent"]["things"];
                // The second one is the same request with the same key.
                assert_eq!(things, &json!([id, "1", "20", "3"]), "{answer}");
            }
        }
        let listed = async |offset: Value| {
            app.call(&app.admin, "listThings", json!({ "offset": offset }))
                .await
        };
        assert_eq!(
            listed(json!(1.0)).await["structuredContent"],
            json!({ "things": ["b"] })
        );
        assert_eq!(listed(json!(-0.0)).await, listed(json!(0)).await);
        for offset in [
            json!(0.5),
            json!(101.0),
            json!(-1.0),
            json!(1e300),
            json!(true),
            json!("1.0"),
        ] {
            let refused = listed(offset.clone()).await;
            let error = &refused["_meta"]["dev.provost/error"]["errors"][0];
            assert_eq!(error["path"], "/offset", "{offset}: {refused}");
        }
        for number in [
            "1.5",
            "-1.0",
            "4294967296.0",
            "1.0000000000000000001",
            "9007199254740993.0",
            "\"1.0\"",
        ] {
            let params = json!({ "name": "createThing", "arguments": numbered("c", json!(["NUMBER"])) });
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            // As it is written: a double would be another number.
            let body = body.to_string().replace("\"NUMBER\"", number);
            let answer = app.send(app.request(body)).await.json();
            let error = &answer["result"]["_meta"]["dev.provost/error"]["errors"][0];
            assert_eq!(error["path"], "/numbers/0", "{number}: {answer}");
        }
    });
}

#[test]
fn an_older_peer_gets_the_older_form() {
    each("mcp_old_call", |app: Arc<App>| async move {
        let call = json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": { "name": "listThings" } });
        let mut request = app.request(call.to_string());
        request
            .headers_mut()
            .insert("mcp-protocol-version", "2025-11-25".parse().unwrap());
        let answer = app.send(request).await.json();
        assert_eq!(answer["id"], "x");
        assert_eq!(answer["result"]["structuredContent"], json!({ "things": [] }));
        assert!(answer["result"].get("resultType").is_none());
    });
}

/// Calls that are refused: with which code, and about which argument.
fn refused() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    vec![
        ("getThing", json!({ "thingId": "none" }), "not_found", ""),
        ("getThing", json!({}), "invalid_request", "/thingId"),
        ("getThing", json!({ "thingId": 7 }), "invalid_request", "/thingId"),
        (
            "getThing",
            json!({ "thingId": "" }),
            "invalid_request",
            "/thingId",
        ),
        (
            "getThing",
            json!({ "thingId": "a", "organizationId": "b" }),
            "invalid_request",
            "/organizationId",
        ),
        (
            "listThings",
            json!({ "limit": "many" }),
            "invalid_request",
            "/limit",
        ),
        ("listThings", json!({ "limit": [] }), "invalid_request", "/limit"),
        (
            "listThings",
            json!({ "prefix": "" }),
            "invalid_request",
            "/prefix",
        ),
        ("createThing", json!({ "id": "b" }), "invalid_request", "/reason"),
        (
            "createThing",
            json!({ "id": "b", "reason": "r" }),
            "invalid_request",
            "/idempotencyKey",
        ),
        (
            "createThing",
            json!({ "id": 1, "reason": "r", "idempotencyKey": "k1" }),
            "invalid_request",
            "/id",
        ),
        (
            "createThing",
            json!({ "id": "b", "numbers": [1, "x"], "reason": "r", "idempotencyKey": "k2" }),
            "invalid_request",
            "/numbers/1",
        ),
        (
            "createThing",
            json!({ "id": "a", "reason": "r", "idempotencyKey": "k3" }),
            "already_exists",
            "",
        ),
        (
            "createThing",
            json!({ "id": "c", "reason": "a test", "idempotencyKey": "key-a" }),
            "idempotency_mismatch",
            "",
        ),
        (
            "touchThing",
            json!({ "thingId": "a", "reason": "two\nlines" }),
            "invalid_request",
            "/reason",
        ),
        (
            "importThings",
            json!({ "content": "a", "mediaType": "text/html", "reason": "r", "idempotencyKey": "k4" }),
            "invalid_request",
            "/mediaType",
        ),
        (
            "uploadThing",
            json!({ "content": "%", "mediaType": "application/zip", "reason": "r", "idempotencyKey": "k5" }),
            "invalid_request",
            "/content",
        ),
        (
            "importThings",
            json!({ "content": "x".repeat(5000), "mediaType": "text/csv", "reason": "r", "idempotencyKey": "k6" }),
            "payload_too_large",
            "",
        ),
    ]
}

/// Proves ME-6.
#[test]
fn the_short_way_answers_as_the_library_does() {
    each("mcp_express", |app: Arc<App>| async move {
        app.call(&app.admin, "createThing", made("a")).await;
        let cases = [
            ("listThings", json!({})),
            ("listThings", json!({ "limit": "many" })),
            ("getThing", json!({ "thingId": "a" })),
            ("getThing", json!({ "thingId": "none" })),
            ("exportThings", json!({})),
            ("fetchThing", json!({ "thingId": "zip" })),
            ("deleteThing", json!({ "thingId": "a" })),
            (
                "deleteThing",
                json!({ "thingId": "a", "reason": "r", "idempotencyKey": "k", "confirm": true }),
            ),
        ];
        for (tool, arguments) in cases {
            for modern in [true, false] {
                let mut bodies = Vec::new();
                // What the short way does not know goes the long way.
                for unusual in [false, true] {
                    let mut params = json!({ "name": tool, "arguments": arguments });
                    if unusual {
                        params["unusual"] = json!(1);
                    }
                    let request = if modern {
                        app.modern("tools/call", params)
                    } else {
                        let call =
                            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                        app.request(call.to_string())
                    };
                    let answer = app.send(request).await;
                    let body = String::from_utf8(answer.bytes.to_vec()).unwrap();
                    let id = answer.headers["x-request-id"].to_str().unwrap();
                    let media_type = answer.headers["content-type"].clone();
                    bodies.push((answer.status, media_type, body.replace(id, "req")));
                }
                assert_eq!(bodies[0], bodies[1], "{tool} {arguments} {modern}");
            }
        }
    });
}

/// Proves MT-1.
#[test]
fn refusals_are_results_that_name_the_argument() {
    each("mcp_refusals", |app: Arc<App>| async move {
        app.call(&app.admin, "createThing", made("a")).await;
        for (tool, arguments, code, pointer) in refused() {
            let result = app.call(&app.admin, tool, arguments.clone()).await;
            assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
            let envelope = &result["_meta"]["dev.provost/error"];
            assert_eq!(envelope["code"], code, "{tool} {arguments}: {result}");
            assert!(envelope["requestId"].as_str().unwrap().starts_with("req_"));
            assert_eq!(text(&result), envelope["message"].as_str().unwrap());
            if !pointer.is_empty() {
                assert_eq!(
                    envelope["errors"][0]["path"], pointer,
                    "{tool} {arguments}: {result}"
                );
                assert!(text(&result).starts_with(&format!("{pointer}: ")), "{result}");
            }
            assert!(!text(&result).contains("header"), "{result}");
        }
    });
}

/// Proves ME-3.
#[test]
fn what_nothing_undoes_is_confirmed_in_the_call_itself() {
    each("mcp_confirm", |app: Arc<App>| async move {
        app.call(&app.admin, "createThing", made("a")).await;
        let arguments = |confirm: Value| json!({ "thingId": "a", "reason": "r", "idempotencyKey": "gone", "confirm": confirm });
        for confirm in [json!(null), json!(false), json!("true"), json!(1)] {
            let call = app.modern(
                "tools/call",
                json!({ "name": "deleteThing", "arguments": arguments(confirm) }),
            );
            let mut call = call;
            call.headers_mut().insert("x-confirm", "true".parse().unwrap());
            let result = app.send(call).await.json()["result"].clone();
            assert_eq!(
                result["_meta"]["dev.provost/error"]["code"], "confirmation_required",
                "{result}"
            );
            assert!(text(&result).contains("Delete a thing") && text(&result).contains("confirm: true"));
        }
        let left = app.call(&app.admin, "listThings", json!({})).await;
        assert_eq!(left["structuredContent"], json!({ "things": ["a"] }));
        let result = app.call(&app.admin, "deleteThing", arguments(json!(true))).await;
        assert_eq!((text(&result), result.get("structuredContent")), ("done", None));
        // The same key again is the same act.
        let again = app.call(&app.admin, "deleteThing", arguments(json!(true))).await;
        assert_eq!(again["isError"], false, "{again}");
    });
}

#[test]
fn a_preview_shows_and_a_confirmation_needs_all_scopes() {
    each("mcp_preview", |app: Arc<App>| async move {
        app.call(&app.admin, "createThing", made("a")).await;
        let reader = app
            .token(
                "acme",
                "reader",
                "operator",
                &["managed_config:read", "policies:read"],
            )
            .await;
        let shown = app.call(&reader, "clearThings", json!({})).await;
        assert_eq!(shown["structuredContent"], json!({ "things": ["a"] }));
        let confirmed = json!({ "confirm": true, "reason": "r", "idempotencyKey": "k" });
        let refused = app.call(&reader, "clearThings", confirmed.clone()).await;
        assert_eq!(
            refused["_meta"]["dev.provost/error"]["code"],
            "insufficient_scope"
        );
        let scopes = json!(["managed_config:read", "managed_config:rollback"]);
        assert_eq!(refused["_meta"]["dev.provost/error"]["requiredScopes"], scopes);
        assert!(text(&refused).contains("managed_config:read managed_config:rollback"));
        let left = app.call(&reader, "listThings", json!({})).await;
        assert_eq!(left["structuredContent"], json!({ "things": ["a"] }));
        app.call(&app.admin, "clearThings", confirmed).await;
        let left = app.call(&reader, "listThings", json!({})).await;
        assert_eq!(left["structuredContent"], json!({ "things": [] }));
    });
}

#[test]
fn content_travels_in_the_form_that_it_has() {
    each("mcp_content", |app: Arc<App>| async move {
        let import = json!({ "content": "a\nb", "mediaType": "text/csv", "reason": "grün", "idempotencyKey": "\"q\"" });
        let result = app.call(&app.admin, "importThings", import).await;
        assert_eq!(
            result["structuredContent"],
            json!({ "things": ["a", "b"] }),
            "{result}"
        );
        let upload = json!({ "content": "UEsDBA==", "mediaType": "application/zip", "reason": "r", "idempotencyKey": "k" });
        let result = app.call(&app.admin, "uploadThing", upload).await;
        assert_eq!(
            result["structuredContent"]["things"],
            json!(["application/zip", "b\"PK\\x03\\x04\""])
        );
        let result = app.call(&app.admin, "exportThings", json!({})).await;
        assert_eq!((text(&result), result.get("structuredContent")), ("a\nb", None));
        let result = app
            .call(&app.admin, "fetchThing", json!({ "thingId": "zip" }))
            .await;
        let resource = &result["content"][0]["resource"];
        assert_eq!(
            (&resource["blob"], &resource["mimeType"]),
            (&json!("emlw"), &json!("application/gzip"))
        );
        let large = app
            .call(&app.admin, "fetchThing", json!({ "thingId": "2000000" }))
            .await;
        assert_eq!(large["_meta"]["dev.provost/error"]["code"], "payload_too_large");
        assert!(text(&large).contains("GET /things/{thingId}/content"));
    });
}

#[test]
fn a_key_and_a_reason_reach_the_operation_by_headers_too() {
    each("mcp_trio", |app: Arc<App>| async move {
        let result = app
            .call(
                &app.admin,
                "touchThing",
                json!({ "thingId": "a", "reason": "grün" }),
            )
            .await;
        assert_eq!(result["structuredContent"], json!({ "things": ["a", "grün"] }));
        let keyed = |thing: &str| json!({ "thingId": thing, "idempotencyKey": "k" });
        app.call(&app.admin, "touchThing", keyed("a")).await;
        let other = app.call(&app.admin, "touchThing", keyed("b")).await;
        assert_eq!(
            other["_meta"]["dev.provost/error"]["code"],
            "idempotency_mismatch"
        );
    });
}

#[test]
fn organizations_do_not_see_each_other() {
    each("mcp_organizations", |app: Arc<App>| async move {
        app.call(&app.admin, "createThing", made("ours")).await;
        let theirs = app
            .token("elsewhere", "root", "admin", &["policies:read", "policies:write"])
            .await;
        let list = app.call(&theirs, "listThings", json!({})).await;
        assert_eq!(list["structuredContent"], json!({ "things": [] }));
        let read = app.call(&theirs, "getThing", json!({ "thingId": "ours" })).await;
        assert_eq!(read["_meta"]["dev.provost/error"]["code"], "not_found");
    });
}
