//! The pages that need no token: what they hold, what they must not hold, and what goes with them.

use crate::areas_beside::every_area;
use crate::support::{App, each, once_of};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use provost_kernel::expose::openapi;
use serde_json::Value;
use std::io::Read;
use std::sync::Arc;

/// Markup as the text that a reader sees.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for (entity, letter) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, letter);
    }
    text
}

async fn page(app: &App, path: &str) -> String {
    let reply = app.request("GET", "").at(path).anonymous().send().await;
    assert_eq!(reply.status.as_u16(), 200, "{path}");
    reply.text()
}

/// Every page, by its address.
async fn pages(app: &App) -> Vec<(String, String)> {
    let document = openapi::document(&app.kernel.registry);
    let chapters = document["tags"].as_array().unwrap().iter();
    let chapters = chapters.map(|tag| format!("/docs/{}", tag["name"].as_str().unwrap()));
    let mut pages = Vec::new();
    for path in ["/", "/docs", "/docs/event-kinds"]
        .map(str::to_owned)
        .into_iter()
        .chain(chapters)
    {
        pages.push((path.clone(), page(app, &path).await));
    }
    pages
}

#[test]
fn a_page_holds_no_script_and_asks_nobody_for_anything() {
    each("plain", |app: Arc<App>| async move {
        for (path, text) in pages(&app).await {
            let text = text.to_lowercase();
            for never in [
                "<script",
                "<iframe",
                "<img",
                "<form",
                "<link",
                " src=",
                " style=",
                "javascript:",
                "@import",
                "url(",
            ] {
                assert!(!text.contains(never), "{path} holds {never}");
            }
            // Every link stays here.
            for link in text.split(" href=\"").skip(1) {
                assert!(
                    link.starts_with('/') || link.starts_with('#'),
                    "{path}: {}",
                    &link[..60]
                );
            }
        }
    });
}

#[test]
fn the_policy_of_a_page_allows_its_own_style_alone() {
    each("policy", |app: Arc<App>| async move {
        for path in ["/", "/docs", "/docs/audit"] {
            let reply = app.request("GET", "").at(path).anonymous().send().await;
            let text = reply.text();
            let style = text
                .split("<style>")
                .nth(1)
                .unwrap()
                .split("</style>")
                .next()
                .unwrap();
            let hash = STANDARD.encode(digest(&SHA256, style.as_bytes()));
            assert_eq!(
                reply.header("content-security-policy"),
                format!(
                    "default-src 'none'; style-src 'sha256-{hash}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
                )
            );
            assert_eq!(reply.header("x-frame-options"), "DENY");
            assert_eq!(reply.header("referrer-policy"), "no-referrer");
            assert_eq!(reply.header("x-content-type-options"), "nosniff");
            assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
        }
    });
}

#[test]
fn the_first_page_says_whether_it_is_ready_and_names_nobody() {
    each("first", |app: Arc<App>| async move {
        let text = page(&app, "/").await;
        assert!(text.contains("It is ready"), "{text}");
        for secret in [
            app.organization.as_str(),
            app.admin_id.as_str(),
            env!("CARGO_PKG_VERSION"),
        ] {
            assert!(!text.contains(secret), "{secret}");
        }
    });
}

#[test]
fn everything_that_the_document_has_stands_in_the_reference() {
    once_of(every_area(), "reference", |app: Arc<App>| async move {
        let document = openapi::document(&app.kernel.registry);
        let contents = unescaped(&page(&app, "/docs").await);
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let id = operation["operationId"].as_str().unwrap();
                let chapter = operation["tags"][0].as_str().unwrap();
                assert!(contents.contains(&format!("/docs/{chapter}#{id}")), "{id}");
                let whole = unescaped(&page(&app, &format!("/docs/{chapter}")).await);
                let begin = whole
                    .find(&format!("<section aria-labelledby=\"{id}\""))
                    .expect(id);
                let section = whole[begin..].split("</section>").next().unwrap();
                let mut parts = vec![path.clone(), method.to_uppercase()];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                parts.push(text(&operation["summary"]));
                parts.extend(text(&operation["description"]).split("\n\n").map(str::to_owned));
                parts.push(text(&operation["x-provost"]["access"]["scope"]));
                for parameter in operation["parameters"].as_array().unwrap() {
                    parts.push(format!("<code>{}</code>", text(&parameter["name"])));
                }
                let body = operation.pointer("/requestBody/content/application~1json");
                for name in body
                    .into_iter()
                    .filter_map(|body| body["schema"]["properties"].as_object())
                    .flatten()
                {
                    parts.push(format!("<code>{}</code>", name.0));
                }
                parts.extend(
                    operation["responses"]
                        .as_object()
                        .unwrap()
                        .keys()
                        .filter(|status| *status != "default")
                        .cloned(),
                );
                parts.extend(["curl -sS -X", "urllib.request.Request("].map(str::to_owned));
                // Machines call for themselves, by programs of their own.
                let words = operation["x-provost"]["command"].as_array().unwrap();
                parts.extend((!words.is_empty()).then(|| "provost ".to_owned()));
                for part in parts {
                    assert!(section.contains(&part), "{id} lacks {part:?}");
                }
                // What the example is stands in it whole, for each language that sends a body.
                if let Some(example) = body.and_then(|body| body.get("example")) {
                    let curl = section.split(" -d '").nth(1).unwrap();
                    let curl = curl
                        .split("</pre>")
                        .next()
                        .unwrap()
                        .trim()
                        .strip_suffix('\'')
                        .unwrap();
                    let sent: Value = serde_json::from_str(&curl.replace("'\\''", "'")).unwrap();
                    assert_eq!(&sent, example, "{id}");
                }
            }
        }
        let kinds = page(&app, "/docs/event-kinds").await;
        for kind in document["webhooks"].as_object().unwrap().keys() {
            assert!(kinds.contains(&format!("<h2 id=\"{kind}\">")), "{kind}");
        }
    });
}

#[test]
fn a_chapter_is_sent_packed_to_whom_it_suits() {
    each("packed", |app: Arc<App>| async move {
        let asked = |coding: &'static str| {
            app.request("GET", "")
                .at("/docs/policies")
                .anonymous()
                .header("accept-encoding", coding)
                .send()
        };
        let plain = asked("identity").await;
        let packed = asked("br, gzip").await;
        assert_eq!(
            (
                plain.header("content-encoding"),
                packed.header("content-encoding")
            ),
            ("", "gzip")
        );
        assert_eq!(packed.header("vary"), "accept-encoding");
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.bytes.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, plain.text());
        assert!(
            packed.bytes.len() * 4 < plain.bytes.len(),
            "{} of {}",
            packed.bytes.len(),
            plain.bytes.len()
        );
        assert_eq!(asked("gzip;q=0").await.header("content-encoding"), "");
    });
}

#[test]
fn a_chapter_that_is_none_is_a_refusal() {
    each("no_chapter", |app: Arc<App>| async move {
        for path in ["/docs/nothing", "/docs/%3Cscript%3E", "/docs/Audit"] {
            let reply = app.request("GET", "").at(path).anonymous().send().await;
            assert_eq!(
                (reply.status.as_u16(), reply.code()),
                (404, "not_found"),
                "{path}"
            );
        }
    });
}

/// The text between two marks.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = text
        .split_once(begin)
        .unwrap_or_else(|| panic!("{begin} in {text}"))
        .1;
    rest.split_once(end)
        .unwrap_or_else(|| panic!("{end} in {rest}"))
        .0
}

/// What a page says of an operation.
async fn section(app: &App, chapter: &str, id: &str) -> String {
    let whole = unescaped(&page(app, &format!("/docs/{chapter}")).await);
    between(
        &whole,
        &format!("<section aria-labelledby=\"{id}\""),
        "</section>",
    )
    .to_owned()
}

#[test]
fn what_an_example_says_is_answered_as_the_page_says() {
    each("examples", |app: Arc<App>| async move {
        for (chapter, id, status) in [
            ("service_accounts", "createHeadlessServiceAccount", 201),
            ("service_accounts", "listHeadlessServiceAccounts", 200),
            ("directory", "createHeadlessDirectoryGroup", 201),
            ("policies", "listHeadlessPolicies", 200),
            ("events", "listHeadlessEvents", 200),
            ("audit", "listHeadlessAuditEvents", 200),
        ] {
            let section = section(&app, chapter, id).await;
            assert!(
                section.contains(&format!("<summary>{status} ")),
                "{id}: {section}"
            );
            let curl = between(&section, "curl -sS -X ", "</pre>");
            let method = curl.split(' ').next().unwrap();
            let path =
                between(curl, "$PROVOST_URL", "\"").replace("$PROVOST_ORGANIZATION", &app.organization);
            let mut call = app.request(method, "").at(&path);
            if let Some((_, body)) = curl.split_once(" -d '") {
                let body = body.trim().strip_suffix('\'').unwrap().replace("'\\''", "'");
                call = call.header("content-type", "application/json").bytes(body);
            }
            let reply = call.send().await;
            assert_eq!(reply.status.as_u16(), status, "{id}: {}", reply.text());
            if section.contains("The answer holds a secret") {
                // Said again it would be told no more.
                continue;
            }
            // The tool hears the same words; said again, they are the same act.
            let request = between(&section, "text/event-stream' -d '", "</pre>").trim();
            let request = request.strip_suffix('\'').unwrap().replace("'\\''", "'");
            let called = app
                .request("POST", "")
                .at("/mcp?toolsets=all")
                .header("accept", "application/json, text/event-stream")
                .header("host", "127.0.0.1")
                .bytes(request)
                .send()
                .await;
            assert_eq!(called.status.as_u16(), 200, "{id}: {}", called.text());
            assert!(
                !called.text().contains("\"isError\":true"),
                "{id}: {}",
                called.text()
            );
            assert!(!called.text().contains("\"error\":"), "{id}: {}", called.text());
        }
    });
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    once_of(every_area(), "links", |app: Arc<App>| async move {
        let pages: std::collections::BTreeMap<_, _> = pages(&app).await.into_iter().collect();
        for (path, text) in &pages {
            for link in text.split(" href=\"").skip(1) {
                let link = link.split('"').next().unwrap();
                let (place, anchor) = link.split_once('#').unwrap_or((link, ""));
                let place = if place.is_empty() { path } else { place };
                let Some(target) = pages.get(place) else {
                    let reply = app.request("GET", "").at(place).anonymous().send().await;
                    assert_eq!(reply.status.as_u16(), 200, "{path} leads to {link}");
                    continue;
                };
                assert!(
                    anchor.is_empty() || target.contains(&format!(" id=\"{anchor}\"")),
                    "{path} leads to {link}"
                );
            }
        }
    });
}

#[test]
fn a_page_is_asked_for_without_its_body_and_kept_by_nobody() {
    each("kept", |app: Arc<App>| async move {
        for path in ["/", "/docs", "/docs/policies"] {
            let head = app.request("HEAD", "").at(path).anonymous().send().await;
            assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0), "{path}");
            assert_eq!(head.header("cache-control"), "no-store", "{path}");
        }
    });
}
