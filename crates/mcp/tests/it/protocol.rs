//! What the revisions say of messages, headers and methods.

use crate::support::{App, REVISION, each};
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn what_is_no_message_is_refused() {
    each("mcp_malformed", |app: Arc<App>| async move {
        let cases: &[(&str, u16, i32)] = &[
            ("{", 400, -32700),
            ("", 400, -32700),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, 400, -32600),
            (r#"{"id":1,"method":"ping"}"#, 400, -32600),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
                400,
                -32700,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
                200,
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"listThings","arguments":[]}}"#,
                200,
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":7}}"#,
                200,
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
                200,
                -32602,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, 200, -32601),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#,
                200,
                -32601,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x"}}"#,
                200,
                -32601,
            ),
        ];
        for (body, status, code) in cases {
            let answer = app.send(app.request(*body)).await;
            assert_eq!(answer.status.as_u16(), *status, "{body}: {answer:?}");
            let message = answer.json();
            assert_eq!(message["jsonrpc"], "2.0", "{body}");
            assert_eq!(message["error"]["code"], *code, "{body}: {message}");
        }
    });
}

#[test]
fn media_types_are_judged_by_their_rules() {
    each("mcp_media_types", |app: Arc<App>| async move {
        let asked = async |body: &str, headers: &[(&'static str, &str)]| {
            let mut request = app.request(body.to_owned());
            for (name, value) in headers {
                if value.is_empty() {
                    request.headers_mut().remove(*name);
                } else {
                    request.headers_mut().insert(*name, value.parse().unwrap());
                }
            }
            app.send(request).await
        };
        let messages = [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"listThings"}}"#,
        ];
        for message in messages {
            let usual = asked(message, &[]).await;
            assert_eq!(usual.status, StatusCode::OK, "{usual:?}");
            for headers in [
                [("accept", "*/*")],
                [("accept", "application/json")],
                [("accept", "APPLICATION/JSON")],
                [("accept", "text/event-stream, application/*;q=0.1")],
                [("accept", "")],
                [("content-type", "Application/JSON; charset=utf-8")],
            ] {
                let answer = asked(message, &headers).await;
                assert_eq!(
                    (answer.status, &answer.bytes),
                    (usual.status, &usual.bytes),
                    "{headers:?}"
                );
                assert_eq!(answer.headers["content-type"], "application/json");
            }
            for (name, value, status, word) in [
                ("accept", "text/event-stream", 406, "Accept"),
                ("accept", "application/json;q=0, */*", 406, "Accept"),
                ("accept", "json", 406, "Accept"),
                ("content-type", "text/plain", 415, "Content-Type"),
                ("content-type", "application/jsonx", 415, "Content-Type"),
                ("content-type", "", 415, "Content-Type"),
            ] {
                let answer = asked(message, &[(name, value)]).await;
                assert_eq!(answer.status.as_u16(), status, "{name}: {value}");
                let said = answer.json()["message"].clone();
                assert!(said.as_str().unwrap().contains(word), "{name}: {value}: {said}");
            }
        }
        // What is refused for its media type does nothing.
        let create = json!({ "id": "a", "reason": "r", "idempotencyKey": "k" });
        let create = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "createThing", "arguments": create } });
        let refused = asked(&create.to_string(), &[("accept", "text/html")]).await;
        assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
        let left = app.call(&app.admin, "listThings", json!({})).await;
        assert_eq!(left["structuredContent"], json!({ "things": [] }));
        // Nobody learns of it without a token.
        let mut stranger = app.request(messages[0]);
        stranger
            .headers_mut()
            .insert("accept", "text/html".parse().unwrap());
        stranger.headers_mut().remove("authorization");
        assert_eq!(app.send(stranger).await.status, StatusCode::UNAUTHORIZED);
    });
}

#[test]
fn an_unknown_revision_is_told_which_there_are() {
    each("mcp_revision", |app: Arc<App>| async move {
        for revision in ["1999-01-01", "latest", "\u{e4}"] {
            let mut request = app.request(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
            let value = http::HeaderValue::from_bytes(revision.as_bytes()).unwrap();
            request.headers_mut().insert("mcp-protocol-version", value);
            let answer = app.send(request).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{revision}");
            let error = answer.json();
            assert_eq!(
                (&error["id"], &error["error"]["code"]),
                (&json!(7), &json!(-32600))
            );
            let said = error["error"]["message"].as_str().unwrap();
            assert!(
                said.contains("MCP-Protocol-Version") && said.contains(REVISION),
                "{said}"
            );
        }
    });
}

#[test]
fn the_address_answers_with_a_slash_at_its_end_too() {
    each("mcp_slash", |app: Arc<App>| async move {
        for method in ["tools/list", "server/discover"] {
            let plain = app.send(app.modern(method, json!({}))).await;
            let mut request = app.modern(method, json!({}));
            *request.uri_mut() = "/mcp/".parse().unwrap();
            assert_eq!(app.send(request).await.bytes, plain.bytes, "{method}");
        }
        assert_eq!(app.names(&app.admin, "/mcp/?tools=getThing").await, ["getThing"]);
        for path in ["/mcp//", "/mcp/x", "//mcp", "/MCP"] {
            let mut request = app.modern("tools/list", json!({}));
            *request.uri_mut() = path.parse().unwrap();
            assert_eq!(app.send(request).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        let mut stranger = app.modern("tools/list", json!({}));
        *stranger.uri_mut() = "/mcp/".parse().unwrap();
        stranger.headers_mut().remove("authorization");
        assert_eq!(app.send(stranger).await.status, StatusCode::UNAUTHORIZED);
        let mut foreign = app.modern("tools/list", json!({}));
        *foreign.uri_mut() = "/mcp/".parse().unwrap();
        foreign.headers_mut().insert("host", "evil.test".parse().unwrap());
        assert_eq!(app.send(foreign).await.status, StatusCode::FORBIDDEN);
    });
}

#[test]
fn notifications_are_accepted_and_answers_are_not() {
    each("mcp_notes", |app: Arc<App>| async move {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = app.send(app.request(note)).await;
        assert_eq!((answer.status, answer.bytes.len()), (StatusCode::ACCEPTED, 0));
        let reply = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(app.send(app.request(reply)).await.status, StatusCode::BAD_REQUEST);
    });
}

#[test]
fn headers_and_messages_of_the_newest_revision_say_the_same() {
    each("mcp_headers", |app: Arc<App>| async move {
        let call = || app.modern("tools/call", json!({ "name": "listThings" }));
        assert_eq!(app.send(call()).await.status, StatusCode::OK);
        for (name, value) in [
            ("mcp-name", "deleteThing"),
            ("mcp-method", "tools/list"),
            ("mcp-protocol-version", "2025-11-25"),
        ] {
            let mut request = call();
            request.headers_mut().insert(name, value.parse().unwrap());
            let answer = app.send(request).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{name}: {answer:?}");
            assert_eq!(answer.json()["error"]["code"], -32020, "{name}");
        }
        let mut request = call();
        request
            .headers_mut()
            .insert("mcp-protocol-version", "1999-01-01".parse().unwrap());
        assert_eq!(app.send(request).await.status, StatusCode::BAD_REQUEST);
        let mut old = app.request(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        old.headers_mut()
            .insert("mcp-protocol-version", "1999-01-01".parse().unwrap());
        assert_eq!(app.send(old).await.status, StatusCode::BAD_REQUEST);
        // Neither a session nor what belongs to it in that revision, whatever its parameters.
        for method in [
            "ping",
            "initialize",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
        ] {
            let answer = app.send(app.modern(method, json!({}))).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method}");
            assert_eq!(answer.json()["error"]["code"], -32601, "{method}");
        }
        let listed = app.send(app.modern("tools/list", json!({}))).await;
        assert!(!listed.headers.contains_key("mcp-session-id"));
    });
}

#[test]
fn the_server_says_what_it_is_in_both_lifecycles() {
    each("mcp_info", |app: Arc<App>| async move {
        let discovered = app.send(app.modern("server/discover", json!({}))).await.json();
        let result = &discovered["result"];
        assert!(
            result["supportedVersions"]
                .as_array()
                .unwrap()
                .contains(&json!(REVISION)),
            "{result}"
        );
        assert_eq!(result["instructions"], "Ask before you change.");
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
            "provost"
        );
        let initialize = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } },
        });
        let opened = app.send(app.request(initialize.to_string())).await.json();
        assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(
            opened["result"]["serverInfo"],
            json!({ "name": "provost", "title": "Provost", "version": "0.1.0" })
        );
        for capability in ["tools", "resources", "prompts", "completions"] {
            assert!(
                opened["result"]["capabilities"].get(capability).is_some(),
                "{opened}"
            );
        }
        assert!(opened["result"]["capabilities"].get("logging").is_none());
    });
}

#[test]
fn documents_and_prompts_are_listed_read_and_completed() {
    each("mcp_documents", |app: Arc<App>| async move {
        let ask = async |method: &str, params: Value| app.send(app.modern(method, params)).await.json();
        let listed = ask("resources/list", json!({})).await;
        assert_eq!(listed["result"]["resources"][0]["uri"], "provost://guide");
        let read = ask("resources/read", json!({ "uri": "provost://guide" })).await;
        assert_eq!(read["result"]["contents"][0]["text"], "# Guide");
        assert_eq!(read["result"]["contents"][0]["mimeType"], "text/markdown");
        let error = ask("resources/read", json!({ "uri": "provost://none" })).await["error"].take();
        assert_eq!(
            (&error["code"], &error["data"]),
            (&json!(-32602), &json!({ "uri": "provost://none" }))
        );
        let old = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"provost://none"}}"#;
        assert_eq!(app.send(app.request(old)).await.json()["error"]["code"], -32002);
        let templates = ask("resources/templates/list", json!({})).await;
        assert_eq!(templates["result"]["resourceTemplates"], json!([]));

        let prompts = ask("prompts/list", json!({})).await;
        assert_eq!(prompts["result"]["prompts"][0]["arguments"][0]["required"], true);
        let get = |arguments: Value| {
            ask(
                "prompts/get",
                json!({ "name": "explain", "arguments": arguments }),
            )
        };
        let got = get(json!({ "toolset": "audit" })).await;
        assert_eq!(
            got["result"]["messages"][0]["content"]["text"],
            "What is audit for?"
        );
        for wrong in [
            json!({}),
            json!({ "toolset": 7 }),
            json!({ "toolset": "a", "other": "b" }),
        ] {
            assert_eq!(get(wrong.clone()).await["error"]["code"], -32602, "{wrong}");
        }
        assert_eq!(
            ask("prompts/get", json!({ "name": "none" })).await["error"]["code"],
            -32602
        );
        let completed = ask(
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "explain" },
                "argument": { "name": "toolset", "value": "po" },
            }),
        );
        assert_eq!(
            completed.await["result"]["completion"]["values"],
            json!(["policies"])
        );
        let unknown = ask(
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "none" }, "argument": { "name": "a", "value": "" } }),
        );
        assert_eq!(unknown.await["result"]["completion"]["values"], json!([]));
        for list in ["resources/list", "prompts/list"] {
            assert_eq!(ask(list, json!({ "cursor": "x" })).await["error"]["code"], -32602);
            assert_eq!(
                ask(list, json!({ "cursor": "" })).await,
                ask(list, json!({})).await
            );
        }
    });
}
