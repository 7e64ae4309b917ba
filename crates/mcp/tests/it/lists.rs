//! What is listed, for whom, and how.

use crate::support::{App, by, each, each_listing, each_with};
use http::StatusCode;
use provost_kernel::kernel::Settings;
use serde_json::{Value, json};
use std::sync::Arc;

const ALL: [&str; 10] = [
    "listThings",
    "getThing",
    "createThing",
    "deleteThing",
    "clearThings",
    "touchThing",
    "importThings",
    "uploadThing",
    "exportThings",
    "fetchThing",
];

/// Proves ME-2.
#[test]
fn a_list_holds_what_its_caller_may_call() {
    each("mcp_list", |app: Arc<App>| async move {
        assert_eq!(app.names(&app.admin, "/mcp").await, ALL);
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "viewer",
                &["policies:read", "audit:write"],
                &["listThings", "getThing", "fetchThing"],
            ),
            ("auditor", &["audit:export"], &["exportThings"]),
            ("operator", &["managed_config:read"], &["clearThings"]),
            (
                "operator",
                &["policies:write"],
                &["listThings", "getThing", "fetchThing"],
            ),
            ("admin", &["audit:write"], &["deleteThing"]),
            ("viewer", &[], &[]),
        ];
        for (number, (role, scopes, names)) in cases.iter().enumerate() {
            let token = app.token("acme", &format!("case{number}"), role, scopes).await;
            assert_eq!(app.names(&token, "/mcp").await, *names, "{role} {scopes:?}");
        }
    });
}

#[test]
fn a_selection_takes_away_and_never_adds() {
    each("mcp_select", |app: Arc<App>| async move {
        let reads = ["listThings", "getThing", "exportThings", "fetchThing"];
        let cases: &[(&str, &[&str])] = &[
            ("/mcp?toolsets=audit", &["deleteThing", "exportThings"]),
            (
                "/mcp?toolsets=audit,registry",
                &["deleteThing", "touchThing", "exportThings"],
            ),
            ("/mcp?toolsets=all", &ALL),
            ("/mcp?toolsets=default", &ALL),
            ("/mcp?readonly=true", &reads),
            ("/mcp?toolsets=audit&readonly=true", &["exportThings"]),
            ("/mcp?tools=deleteThing,getThing&readonly=true", &["getThing"]),
            ("/mcp?toolsets=inventory", &[]),
            ("/mcp?tools=getThing,receiveThings,nothing", &["getThing"]),
            (
                "/mcp?tools=getThing&toolsets=audit",
                &["getThing", "deleteThing", "exportThings"],
            ),
        ];
        for (target, names) in cases {
            assert_eq!(app.names(&app.admin, target).await, *names, "{target}");
        }
        let viewer = app.token("acme", "viewer", "viewer", &["policies:read"]).await;
        assert!(app.names(&viewer, "/mcp?tools=deleteThing").await.is_empty());
        let mut request = app.modern("tools/list", json!({}));
        for (name, value) in [
            ("x-mcp-toolsets", "audit"),
            ("x-mcp-readonly", "true"),
            ("x-mcp-tools", "getThing"),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let tools = app.send(request).await.json()["result"]["tools"].clone();
        let names: Vec<&str> = tools
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["getThing", "exportThings"]);
        for target in ["/mcp?toolsets=audti", "/mcp?toolset=audit", "/mcp?readonly=maybe"] {
            let mut request = app.modern("tools/list", json!({}));
            *request.uri_mut() = target.parse().unwrap();
            let answer = app.send(request).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{target}");
            assert!(
                answer.json()["message"].as_str().unwrap().contains("toolset") || target.contains("readonly")
            );
        }
    });
}

/// Proves ME-2.
#[test]
fn what_is_not_listed_is_as_unknown_as_what_does_not_exist() {
    each("mcp_unknown", |app: Arc<App>| async move {
        let viewer = app.token("acme", "viewer", "viewer", &["policies:read"]).await;
        let ask = async |name: &str, target: &str, token: &str| {
            let mut request = app.modern(
                "tools/call",
                json!({ "name": name, "arguments": { "thingId": "a" } }),
            );
            *request.uri_mut() = target.parse().unwrap();
            let answer = app.send(by(token, request)).await;
            (answer.status, String::from_utf8(answer.bytes.to_vec()).unwrap())
        };
        let (status, unknown) = ask("noSuchThing", "/mcp", &viewer).await;
        assert!(
            unknown.contains("-32602") && unknown.contains("unknown tool: noSuchThing"),
            "{unknown}"
        );
        let hidden = [
            ("deleteThing", "/mcp", viewer.as_str()),
            ("createThing", "/mcp", &viewer),
            ("deleteThing", "/mcp?toolsets=policies", &viewer),
            ("deleteThing", "/mcp?tools=deleteThing&readonly=true", &viewer),
            ("receiveThings", "/mcp", &app.admin),
            ("receiveThings", "/mcp?toolsets=audit", &app.admin),
        ];
        for (name, target, token) in hidden {
            let answer = ask(name, target, token).await;
            assert_eq!(
                answer,
                (status, unknown.replace("noSuchThing", name)),
                "{name} {target}"
            );
        }
    });
}

#[test]
fn what_the_address_does_not_list_says_which_one_does() {
    each("mcp_elsewhere", |app: Arc<App>| async move {
        let cases = [
            (
                "/mcp?toolsets=policies",
                "deleteThing",
                "/mcp?toolsets=default,audit",
            ),
            (
                "/mcp?tools=deleteThing",
                "getThing",
                "/mcp?toolsets=default,policies",
            ),
            ("/mcp?tools=deleteThing", "getThing", "/mcp?toolsets=all"),
            ("/mcp?readonly=true", "deleteThing", "leave out readonly"),
            (
                "/mcp?tools=deleteThing&readonly=true",
                "deleteThing",
                "leave out readonly",
            ),
        ];
        for (target, name, words) in cases {
            // By the usual form and by another one.
            for params in [json!({ "name": name }), json!({ "name": name, "unusual": 1 })] {
                let mut call = app.modern("tools/call", params);
                *call.uri_mut() = target.parse().unwrap();
                let error = app.send(call).await.json()["error"].take();
                assert_eq!(error["code"], -32602, "{target} {name}: {error}");
                let said = error["message"].as_str().unwrap();
                assert!(said.contains(name) && said.contains(words), "{target}: {said}");
            }
        }
        assert!(app.denied().await.is_empty());
    });
}

#[test]
fn without_a_selection_the_address_lists_its_default_set() {
    const DEFAULT: [&str; 3] = ["getThing", "deleteThing", "receiveThings"];
    let settings = Settings {
        rate_limits: false,
        ..Settings::default()
    };
    each_listing("mcp_default", &DEFAULT, &settings, |app: Arc<App>| async move {
        let set = ["getThing", "deleteThing"];
        for target in ["/mcp", "/mcp?", "/mcp?toolsets=default"] {
            assert_eq!(app.names(&app.admin, target).await, set, "{target}");
        }
        assert_eq!(app.names(&app.admin, "/mcp?toolsets=all").await, ALL);
        assert_eq!(
            app.names(&app.admin, "/mcp?toolsets=default,registry").await,
            ["getThing", "deleteThing", "touchThing"]
        );
        assert_eq!(
            app.names(&app.admin, "/mcp?tools=listThings").await,
            ["listThings"]
        );
        assert_eq!(app.names(&app.admin, "/mcp?readonly=true").await, ["getThing"]);
        // The set gives no right.
        let viewer = app.token("acme", "viewer", "viewer", &["policies:read"]).await;
        assert_eq!(app.names(&viewer, "/mcp").await, ["getThing"]);
        let error = |name: &'static str| {
            let request = by(&viewer, app.modern("tools/call", json!({ "name": name })));
            let app = app.clone();
            async move { app.send(request).await.json()["error"]["message"].take() }
        };
        assert_eq!(error("deleteThing").await, "unknown tool: deleteThing");
        assert!(
            error("listThings")
                .await
                .as_str()
                .unwrap()
                .contains("?toolsets=all")
        );
    });
}

#[test]
fn who_tried_what_they_may_not_stands_in_the_audit_log() {
    each("mcp_denied", |app: Arc<App>| async move {
        let viewer = app.token("acme", "viewer", "viewer", &["policies:read"]).await;
        for name in ["deleteThing", "noSuchThing"] {
            app.send(by(&viewer, app.modern("tools/call", json!({ "name": name }))))
                .await;
        }
        let denied = async {
            loop {
                let denied = app.denied().await;
                if !denied.is_empty() {
                    break denied;
                }
                tokio::task::yield_now().await;
            }
        };
        let denied = tokio::time::timeout(std::time::Duration::from_secs(20), denied)
            .await
            .unwrap();
        assert_eq!(denied, [("deleteThing".to_owned(), "viewer".to_owned())]);
    });
}

#[test]
fn tools_are_described_as_clients_need_it() {
    each("mcp_described", |app: Arc<App>| async move {
        let answer = app.send(app.modern("tools/list", json!({}))).await.json();
        for tool in answer["result"]["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            assert!(
                !tool["title"].as_str().unwrap().is_empty()
                    && !tool["description"].as_str().unwrap().is_empty()
            );
            assert!(
                tool["inputSchema"]["properties"].get("organizationId").is_none(),
                "{name}"
            );
            jsonschema::draft202012::new(&tool["inputSchema"]).unwrap();
            if let Some(output) = tool.get("outputSchema") {
                assert_eq!(output["type"], "object");
                jsonschema::draft202012::new(output).unwrap();
            }
        }
        let tool = |name: &str| -> Value {
            let mut tools = answer["result"]["tools"].as_array().unwrap().iter();
            tools.find(|tool| tool["name"] == name).unwrap().clone()
        };
        let hints = |name: &str| {
            let hints = &tool(name)["annotations"];
            [
                "readOnlyHint",
                "destructiveHint",
                "idempotentHint",
                "openWorldHint",
            ]
            .map(|hint| hints[hint].as_bool().unwrap())
        };
        assert_eq!(hints("listThings"), [true, false, true, false]);
        assert_eq!(hints("createThing"), [false, false, true, false]);
        assert_eq!(hints("deleteThing"), [false, true, true, false]);
        assert_eq!(
            tool("deleteThing")["inputSchema"]["properties"]["confirm"],
            json!({ "const": true })
        );
        assert!(
            tool("clearThings")["description"]
                .as_str()
                .unwrap()
                .contains("Without confirm: true")
        );
        assert_eq!(
            tool("importThings")["inputSchema"]["properties"]["content"],
            json!({ "type": "string" })
        );
        assert_eq!(
            tool("uploadThing")["inputSchema"]["properties"]["content"]["contentEncoding"],
            "base64"
        );
        assert!(tool("exportThings").get("outputSchema").is_none());
        assert!(tool("deleteThing").get("outputSchema").is_none());
    });
}

#[test]
fn one_page_holds_all_tools_of_the_address() {
    let settings = Settings {
        rate_limits: false,
        ..Settings::default()
    };
    each_with("mcp_one_page", 250, &settings, |app: Arc<App>| async move {
        let token = app.token("acme", "reader", "admin", &["policies:read"]).await;
        let list = async |params: Value| {
            let answer = app.send(by(&token, app.modern("tools/list", params))).await;
            answer.json()
        };
        let whole = list(json!({})).await;
        assert_eq!(whole["result"]["tools"].as_array().unwrap().len(), 253);
        assert!(whole["result"].get("nextCursor").is_none());
        for cursor in [json!(""), json!(null)] {
            assert_eq!(list(json!({ "cursor": cursor })).await, whole, "{cursor}");
        }
        // The last one is what an earlier version gave out.
        for cursor in [json!("x"), json!(" "), json!(7), json!("dG9vbHM6MTAw")] {
            let answer = list(json!({ "cursor": cursor })).await;
            assert_eq!(answer["error"]["code"], -32602, "{cursor}: {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("cursor"));
        }
    });
}

/// Proves ME-6.
#[test]
fn a_list_by_the_short_way_is_what_the_library_lists() {
    each("mcp_express_list", |app: Arc<App>| async move {
        let viewer = app.token("acme", "viewer", "viewer", &["policies:read"]).await;
        let nobody = app.token("acme", "nobody", "viewer", &[]).await;
        let cases = [json!({}), json!({ "cursor": "" }), json!({ "cursor": "no" })];
        for (token, params) in [&app.admin, &viewer, &nobody]
            .into_iter()
            .flat_map(|token| cases.iter().map(move |params| (token, params)))
        {
            for modern in [true, false] {
                let mut bodies = Vec::new();
                // What the short way does not know goes the long way.
                for unusual in [false, true] {
                    let mut params = params.clone();
                    if unusual {
                        params["unusual"] = json!(1);
                    }
                    let request = if modern {
                        app.modern("tools/list", params)
                    } else {
                        let list = json!({ "jsonrpc": "2.0", "id": "one", "method": "tools/list", "params": params });
                        app.request(list.to_string())
                    };
                    let answer = app.send(by(token, request)).await;
                    let [media_type, length] =
                        ["content-type", "content-length"].map(|name| answer.headers.get(name).cloned());
                    bodies.push((answer.status, media_type, length, answer.bytes));
                }
                assert_eq!(bodies[0], bodies[1], "{params} {modern}");
            }
        }
        let bare = app.request(r#"{"jsonrpc":"2.0","id":"one","method":"tools/list"}"#);
        let whole = app.request(r#"{"jsonrpc":"2.0","id":"one","method":"tools/list","params":{}}"#);
        let tools = app.send(whole).await.bytes;
        assert!(tools.len() > 2000);
        assert_eq!(app.send(bare).await.bytes, tools);
    });
}
