//! Routes, methods, sizes of the head, and the form of every answer.

use super::{ACCOUNTS, account_with, effects};
use crate::areas_beside::every_area;
use crate::samples::{self, Target};
use crate::support::{App, Call, Reply, each, each_of, fresh_key};
use provost_kernel::operation::Method;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every template of the registry as a path, with the methods it has.
fn routes(app: &App) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut routes: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for entry in app.kernel.registry.entries() {
        let path = samples::path(entry.meta, &Target::absent());
        let path = app.path(path.split('?').next().unwrap());
        let methods = routes.entry(path).or_default();
        methods.insert(entry.meta.method.as_str());
        if entry.meta.method == Method::Get {
            methods.insert("HEAD");
        }
        methods.insert("OPTIONS");
    }
    // A path with words behind a greedy parameter is a path of the parameter alone as well, for other methods.
    for entry in app.kernel.registry.entries() {
        let Some((plain, _)) = entry
            .meta
            .path
            .split_once("}/")
            .filter(|(plain, _)| plain.contains("{*"))
        else {
            continue;
        };
        let path = app.path(&samples::path(entry.meta, &Target::absent()));
        for other in app.kernel.registry.entries() {
            if other.meta.path.strip_suffix('}') == Some(plain) {
                let methods = routes.get_mut(&path).unwrap();
                methods.insert(other.meta.method.as_str());
                methods.extend((other.meta.method == Method::Get).then_some("HEAD"));
            }
        }
    }
    for public in [
        "/healthz",
        "/readyz",
        "/.well-known/provost-keys.json",
        "/api/headless/v1/openapi.json",
        "/",
        "/docs",
        "/docs/audit",
    ] {
        routes.insert(public.to_owned(), ["GET", "HEAD", "OPTIONS"].into());
    }
    routes
}

#[test]
fn a_route_has_its_methods_and_no_other() {
    each_of(every_area(), "methods", |app: Arc<App>| async move {
        let before = effects(&app).await;
        for (path, methods) in routes(&app) {
            for method in [
                "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "X",
            ] {
                if methods.contains(method) && method != "OPTIONS" {
                    continue;
                }
                let reply = app.request(method, "").at(&path).anonymous().send().await;
                let allow: BTreeSet<&str> = reply.header("allow").split(", ").collect();
                assert_eq!(allow, methods, "{method} {path}");
                if method == "OPTIONS" {
                    assert_eq!((reply.status.as_u16(), reply.bytes.len()), (204, 0), "{path}");
                } else {
                    assert_eq!(reply.status.as_u16(), 405, "{method} {path}");
                    assert!(
                        method == "HEAD" || reply.code() == "method_not_allowed",
                        "{method} {path}"
                    );
                }
            }
        }
        assert_eq!(effects(&app).await, before);
    });
}

#[test]
fn head_is_get_without_a_body() {
    each_of(every_area(), "head", |app: Arc<App>| async move {
        let paths = [
            app.path(ACCOUNTS),
            app.path("/capabilities"),
            app.path("/service-accounts/none"),
            "/healthz".to_owned(),
        ];
        for path in paths {
            let [get, head] = [
                app.request("GET", "").at(&path),
                app.request("HEAD", "").at(&path),
            ];
            let (get, head) = (get.send().await, head.send().await);
            assert_eq!(get.status, head.status, "{path}");
            assert!(head.bytes.is_empty() && !get.bytes.is_empty(), "{path}");
            assert_eq!(get.header("content-type"), head.header("content-type"), "{path}");
        }
        app.request("HEAD", ACCOUNTS)
            .anonymous()
            .send()
            .await
            .status
            .as_u16()
            .eq(&401)
            .then_some(())
            .unwrap();
    });
}

#[test]
fn what_is_not_a_route_is_not_found() {
    each_of(every_area(), "unknown", |app: Arc<App>| async move {
        let base = app.path("");
        let mut paths: Vec<String> = [
            "/docs/",
            "/docs/nothing/here",
            "/api",
            "/api/headless",
            "/api/headless/v1",
            "/api/headless/v2/organizations/acme/service-accounts",
            "/api/headless/v1/organizations",
            "/api/headless/v1/organizations/",
            "/API/headless/v1/openapi.json",
            "/metrics",
            "/debug/pprof",
            "/admin",
            "/.env",
            "/.git/config",
            "/swagger",
            "/graphql",
            "/healthz/",
            "/readyz/x",
            "/robots.txt",
            "/..%2f..%2fetc/passwd",
            "/api/headless/v1/../v1/openapi.json",
        ]
        .map(str::to_owned)
        .to_vec();
        for rest in [
            "",
            "/",
            "/service-account",
            "/service-accounts/",
            "/Service-Accounts",
            "/service-accounts/a/b",
            "/service-accounts/a/tokens/",
            "/service-accounts/a/tokens/b",
            "/service-accounts/a%2Ftokens/b/c",
            "/tokens",
            "/audit",
        ] {
            paths.push(format!("{base}{rest}"));
        }
        for path in paths {
            for method in ["GET", "POST", "DELETE", "OPTIONS"] {
                let reply = app.request(method, "").at(&path).send().await;
                assert_eq!(
                    (reply.status.as_u16(), reply.code()),
                    (404, "not_found"),
                    "{method} {path}: {}",
                    reply.text()
                );
            }
        }
    });
}

#[test]
fn large_heads_are_refused() {
    each("heads", |app: Arc<App>| async move {
        let long = "a".repeat(8192);
        for path in [
            format!("{}?limit={long}", app.path(ACCOUNTS)),
            app.path(&format!("{ACCOUNTS}/{long}")),
            format!("/{long}"),
        ] {
            let reply = app.request("GET", "").at(&path).send().await;
            reply.refused(414, "uri_too_long");
            assert_eq!(reply.header("connection"), "close");
        }
        app.get(&format!("{ACCOUNTS}/{}", "a".repeat(8000)))
            .await
            .refused(404, "not_found");
        let reply = app
            .request("GET", ACCOUNTS)
            .header("x-large", &"a".repeat(16_384))
            .send()
            .await;
        reply.refused(431, "headers_too_large");
        assert_eq!(reply.header("connection"), "close");
        let mut call = app.request("GET", ACCOUNTS);
        for _ in 0..101 {
            call = call.header("x-many", "a");
        }
        call.send().await.refused(431, "headers_too_large");
    });
}

#[test]
fn an_error_is_a_problem_for_who_asks_for_one() {
    each("problem", |app: Arc<App>| async move {
        let large = "x".repeat(262_145);
        let calls = || -> Vec<Call<'_>> {
            vec![
                app.request("GET", "/service-accounts?limit=0"),
                app.request("GET", ACCOUNTS).anonymous(),
                app.request("GET", ACCOUNTS)
                    .at("/api/headless/v1/organizations/nowhere/service-accounts"),
                app.request("GET", "/service-accounts/none"),
                app.request("PUT", ACCOUNTS),
                app.request("POST", ACCOUNTS).bytes(large.clone()),
                app.request("POST", ACCOUNTS)
                    .header("content-type", "text/plain")
                    .bytes("x"),
                app.request("GET", &format!("/{}", "a".repeat(9000))),
                app.request("GET", ACCOUNTS)
                    .header("x-large", &"a".repeat(17_000)),
                app.request("GET", "").at("/nothing"),
            ]
        };
        let mut statuses = BTreeSet::new();
        for (plain, problem) in calls().into_iter().zip(calls()) {
            let plain = plain.send().await;
            assert_eq!(plain.header("content-type"), "application/json; charset=utf-8");
            let reply = problem
                .header("accept", "text/html, application/problem+json;q=0.9")
                .send()
                .await;
            let status = reply.status;
            assert_eq!(plain.status, status);
            assert_eq!(
                reply.header("content-type"),
                "application/problem+json; charset=utf-8",
                "{status}"
            );
            let body = &reply.json;
            assert_eq!(body["status"], status.as_u16());
            assert_eq!(body["detail"], body["message"], "{status}");
            assert_eq!(body["instance"], reply.header("x-request-id"), "{status}");
            assert!(
                body["type"].is_string() && body["title"].is_string(),
                "{status}: {body}"
            );
            assert_eq!(
                (&body["code"], &body["message"]),
                (&plain.json["code"], &plain.json["message"])
            );
            statuses.insert(status.as_u16());
        }
        assert_eq!(
            statuses.into_iter().collect::<Vec<_>>(),
            [400, 401, 403, 404, 405, 413, 414, 415, 431]
        );
    });
}

#[test]
fn every_answer_has_the_headers_of_safety() {
    each("safety", |app: Arc<App>| async move {
        let calls: Vec<Call<'_>> = vec![
            app.request("GET", ACCOUNTS),
            app.request("GET", ACCOUNTS).anonymous(),
            app.request("HEAD", ACCOUNTS),
            app.request("GET", "/nothing"),
            app.request("GET", "").at("/healthz").anonymous(),
            app.request("OPTIONS", ACCOUNTS),
            app.request("POST", ACCOUNTS)
                .json(account_with("name", Some(json!("x")), &fresh_key())),
            app.request("POST", ACCOUNTS).bytes("x"),
        ];
        let mut ids = BTreeSet::new();
        for call in calls {
            let reply: Reply = call
                .header("x-request-id", "req_mine")
                .header("origin", "https://evil.example")
                .send()
                .await;
            // The harness looks at X-Request-Id, Cache-Control and X-Content-Type-Options of every answer.
            assert!(ids.insert(reply.header("x-request-id").to_owned()));
            for absent in [
                "server",
                "x-powered-by",
                "access-control-allow-origin",
                "set-cookie",
                "etag",
                "ratelimit",
                "strict-transport-security",
            ] {
                assert_eq!(reply.header(absent), "", "{absent} {}", reply.text());
            }
        }
        assert!(!ids.contains("req_mine"));
        for (method, vary) in [
            ("GET", "Authorization"),
            ("HEAD", "Authorization"),
            ("OPTIONS", ""),
        ] {
            assert_eq!(
                app.request(method, ACCOUNTS).send().await.header("vary"),
                vary,
                "{method}"
            );
        }
    });
}
