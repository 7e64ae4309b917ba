//! Skills from publication to removal (specification §4.7; D10).

use crate::areas::skills::{archive, skill};
use crate::support::{App, Reply, each, fresh_key, with_trio};
use provost_kernel::dsse::{self, Envelope, SignedKind};
use provost_skill_package::{MAX_ARCHIVE_BYTES, Package};
use serde_json::{Value, json};
use std::sync::Arc;

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is a text"))
        .to_owned()
}

async fn content(app: &App, token: &str, item: &str) -> Reply {
    let path = format!("/skill-registry/{item}/content");
    app.request("GET", &path).token(token).send().await
}

async fn withdraw(app: &App, item: &str) -> Reply {
    let path = format!("/skill-registry/{item}/withdraw");
    app.write("POST", &path, json!({ "confirm": true })).await
}

/// Proves SK-1.
#[test]
fn a_skill_lives_from_publication_to_removal() {
    each("skill_life", |app: Arc<App>| async move {
        let (viewer_id, viewer) = app.account("a person's laptop", "viewer", &[]).await;
        let published = app
            .publish("?namespace=@acme", skill("reading", "how to read"))
            .await;
        assert_eq!(published.status, 201);
        let item = text(&published.json["item"]["id"]);
        assert!(published.header("location").ends_with(&item));
        assert_eq!(published.json["item"]["ref"], "@acme/reading");
        assert_eq!(published.json["version"]["version"], "1.0.0");
        assert_eq!(published.json["created"], true);
        let digest = text(&published.json["version"]["digest"]);

        // Installed by name, with the slash in one segment; the receipt carries all that a client needs.
        let receipt = app.install(&viewer, "@acme%2Freading", "laptop").await;
        assert_eq!(receipt.status, 201, "{}", receipt.text());
        let gateway = text(&receipt.json["gatewayToken"]["token"]);
        let install = text(&receipt.json["install"]["installId"]);
        assert!(gateway.starts_with("prov_gwt_"));
        assert_eq!(receipt.json["install"]["status"], "installed");
        assert_eq!(receipt.json["install"]["principalId"], viewer_id.as_str());
        let expires = provost_kernel::Timestamp::parse(&text(&receipt.json["gatewayToken"]["expiresAt"]));
        assert_eq!(expires.unwrap(), app.now().plus_secs(90 * 86_400));

        // What the token fetches is what was published and what is signed.
        let archive = content(&app, &gateway, "@acme%2Freading@1.0.0").await;
        assert_eq!(
            (archive.status.as_u16(), archive.header("content-type")),
            (200, "application/gzip")
        );
        assert_eq!(archive.header("etag"), format!("\"{digest}\""));
        let package = Package::from_archive("application/gzip", &archive.bytes).unwrap();
        assert_eq!(package.manifest().digest, digest);
        let envelope: Envelope = serde_json::from_value(receipt.json["envelope"].clone()).unwrap();
        let keys = app.kernel.keys.signing_public_keys();
        let payload = dsse::verify(&envelope, SignedKind::Skill, &keys).unwrap();
        let payload: Value = serde_json::from_slice(&payload).unwrap();
        let files = serde_json::to_value(&package.manifest().files).unwrap();
        let expected = json!({
            "digest": digest, "files": files, "itemId": item, "name": "reading", "namespace": "@acme",
            "organizationId": "acme", "publishedAt": published.json["version"]["publishedAt"], "version": "1.0.0",
        });
        assert_eq!(payload, expected);
        assert!(dsse::verify(&envelope, SignedKind::Release, &keys).is_err());
        let path = format!("/skill-registry/{item}/manifest");
        let manifest = app.request("GET", &path).token(&gateway).send().await;
        assert_eq!(manifest.ok()["envelope"], receipt.json["envelope"]);

        // A viewer reads nothing of the registry by itself.
        content(&app, &viewer, &item).await.refused(403, "role_forbidden");

        // Uninstalled: one answer, and the token is dead.
        let gone = app.uninstall(&viewer, "@acme%2freading").await;
        let expected = json!({
            "itemRef": "@acme/reading", "itemId": item, "status": "uninstalled",
            "uninstalledAt": app.now().to_rfc3339(),
            "installs": [{
                "installId": install, "client": "claude-code", "device": "laptop", "path": "/home/a/.claude/skills",
                "version": "1.0.0", "installedAt": receipt.json["install"]["installedAt"],
            }],
            "gatewayToken": {
                "revoked": true, "revokedCount": 1,
                "tokens": [{
                    "id": receipt.json["gatewayToken"]["id"],
                    "tokenPrefix": receipt.json["gatewayToken"]["tokenPrefix"],
                    "revokedAt": app.now().to_rfc3339(),
                }],
            },
            "remainingInstalls": 0,
        });
        assert_eq!(*gone.ok(), expected);
        content(&app, &gateway, &item).await.refused(401, "token_revoked");

        // The client has not called back yet, which an admin sees; then it does.
        let waiting = app.get("/skill-installs?status=pending_cleanup").await;
        assert_eq!(waiting.ok()["installs"][0]["installId"], install.as_str());
        let path = format!("/skill-installs/{install}/removed");
        app.write("POST", &path, json!({}))
            .await
            .refused(404, "not_found");
        for _ in 0..2 {
            let body = with_trio(json!({}), &fresh_key());
            let removed = app.request("POST", &path).token(&viewer).json(body).send().await;
            assert_eq!(removed.ok()["install"]["status"], "removed");
        }
        let waiting = app.get("/skill-installs?status=pending_cleanup").await;
        assert_eq!(waiting.ok()["installs"], json!([]));

        let kinds: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        for kind in [
            "registry.item.published",
            "registry.item.installed",
            "registry.item.uninstalled",
        ] {
            assert_eq!(kinds.iter().filter(|k| *k == kind).count(), 1, "{kinds:?}");
        }
    });
}

/// Proves SK-5.
#[test]
fn nothing_installed_is_no_error_and_revokes_nothing() {
    each("skill_not_installed", |app: Arc<App>| async move {
        let (_, one) = app.account("one", "viewer", &[]).await;
        let (_, other) = app.account("other", "viewer", &[]).await;
        let item = app.skill("reading").await;
        let kept = app.install(&other, "reading", "laptop").await;
        let kept = text(&kept.ok()["gatewayToken"]["token"]);
        for _ in 0..2 {
            let gone = app.uninstall(&one, "reading").await;
            let expected = json!({
                "itemRef": "reading", "itemId": item, "status": "not_installed", "installs": [],
                "gatewayToken": { "revoked": false, "revokedCount": 0, "tokens": [] }, "remainingInstalls": 0,
            });
            assert_eq!(*gone.ok(), expected);
        }
        // Another principal's install and token are untouched by any number of uninstalls.
        app.install(&one, "reading", "laptop").await.ok();
        app.uninstall(&one, "reading").await.ok();
        assert_eq!(content(&app, &kept, "reading").await.status, 200);
        let own = app
            .request("GET", "/skill-installs/own?status=installed")
            .token(&other)
            .send()
            .await;
        assert_eq!(own.ok()["installs"].as_array().unwrap().len(), 1);
        let own = app
            .request("GET", "/skill-installs/own?status=installed")
            .token(&one)
            .send()
            .await;
        assert_eq!(own.ok()["installs"].as_array().unwrap().len(), 0);
        let gone: Vec<_> = app
            .events(0)
            .await
            .into_iter()
            .filter(|(kind, _)| kind == "registry.item.uninstalled")
            .collect();
        assert_eq!(gone.len(), 1, "an uninstall of nothing is no event");
    });
}

/// Proves SK-3.
#[test]
fn a_version_in_the_reference_means_the_installs_of_that_version() {
    each("skill_versions", |app: Arc<App>| async move {
        let (_, person) = app.account("a person", "viewer", &[]).await;
        app.publish("", skill("reading", "first")).await.ok();
        let old = app.install(&person, "reading", "old laptop").await;
        let second = app.publish("", skill("reading", "second")).await;
        assert_eq!(second.ok()["version"]["version"], "1.0.1");
        let digest = text(&second.json["version"]["digest"]);
        let new = app.install(&person, "reading", "new laptop").await;
        assert_eq!(new.ok()["install"]["version"], "1.0.1");
        let tokens = [&old, &new].map(|r| text(&r.ok()["gatewayToken"]["token"]));
        for wanted in ["reading@1.0.2", &format!("reading@sha256:{}", "0".repeat(64))] {
            // A version that nobody published is nothing that could be installed.
            let gone = app.uninstall(&person, wanted).await;
            assert_eq!(gone.ok()["status"], "not_installed", "{wanted}");
            assert_eq!(gone.json["remainingInstalls"], 2);
        }
        let gone = app.uninstall(&person, &format!("reading@{digest}")).await;
        assert_eq!(gone.ok()["status"], "uninstalled");
        assert_eq!(gone.json["installs"][0]["version"], "1.0.1");
        assert_eq!(gone.json["installs"].as_array().unwrap().len(), 1);
        assert_eq!(
            (
                &gone.json["remainingInstalls"],
                &gone.json["gatewayToken"]["revokedCount"]
            ),
            (&json!(1), &json!(2))
        );
        // All tokens of the pair ended; the install that remains gets a new one by being installed again.
        for token in &tokens {
            content(&app, token, "reading")
                .await
                .refused(401, "token_revoked");
        }
        let again = app.install(&person, "reading@1.0.0", "old laptop").await;
        assert_eq!(
            again.ok()["install"]["installId"],
            old.json["install"]["installId"]
        );
        let token = text(&again.json["gatewayToken"]["token"]);
        assert_eq!(content(&app, &token, "reading@1.0.0").await.status, 200);
        let gone = app.uninstall(&person, "reading@1.0.0").await;
        assert_eq!(
            (&gone.ok()["status"], &gone.json["remainingInstalls"]),
            (&json!("uninstalled"), &json!(0))
        );
    });
}

/// Proves SK-4, SK-5.
#[test]
fn installing_again_at_the_same_place_replaces_the_token() {
    each("skill_again", |app: Arc<App>| async move {
        let (_, person) = app.account("a person", "viewer", &[]).await;
        app.publish("", skill("reading", "first")).await.ok();
        let first = app.install(&person, "reading", "laptop").await;
        app.publish("", skill("reading", "second")).await.ok();
        app.advance(10);
        let second = app.install(&person, "reading", "laptop").await;
        let elsewhere = app.install(&person, "reading", "desktop").await;
        let id = |reply: &Reply| text(&reply.ok()["install"]["installId"]);
        assert_eq!(id(&first), id(&second));
        assert_ne!(id(&first), id(&elsewhere));
        assert_eq!(second.json["install"]["version"], "1.0.1");
        let token = |reply: &Reply| text(&reply.json["gatewayToken"]["token"]);
        content(&app, &token(&first), "reading")
            .await
            .refused(401, "token_revoked");
        assert_eq!(content(&app, &token(&second), "reading").await.status, 200);
        assert_eq!(content(&app, &token(&elsewhere), "reading").await.status, 200);

        // A new install at a place whose client never called back ends the waiting.
        app.uninstall(&person, "reading").await.ok();
        let third = app.install(&person, "reading", "laptop").await;
        assert_ne!(id(&third), id(&first));
        let statuses = app.get("/skill-installs").await;
        let status = |wanted: String| {
            let all = statuses.json["installs"].as_array().unwrap().clone();
            text(&all.iter().find(|i| i["installId"] == wanted.as_str()).unwrap()["status"])
        };
        assert_eq!(status(id(&first)), "removed");
        assert_eq!(status(id(&elsewhere)), "pending_cleanup");
        assert_eq!(status(id(&third)), "installed");
        // What is in use cannot be reported as gone.
        let path = format!("/skill-installs/{}/removed", id(&third));
        let report = app
            .request("POST", &path)
            .token(&person)
            .json(with_trio(json!({}), &fresh_key()));
        report.send().await.refused(409, "conflict");
    });
}

/// Proves SK-2.
#[test]
fn what_was_withdrawn_is_neither_installed_nor_handed_out() {
    each("skill_withdrawn", |app: Arc<App>| async move {
        let (_, person) = app.account("a person", "viewer", &[]).await;
        let first = app.publish("", skill("reading", "first")).await;
        let digest = text(&first.ok()["version"]["digest"]);
        app.publish("", skill("reading", "second")).await.ok();
        let receipt = app.install(&person, "reading", "laptop").await;
        let token = text(&receipt.ok()["gatewayToken"]["token"]);

        // One version: the latest falls back to the one before it, and its content stays out.
        let path = "/skill-registry/reading@1.0.1/withdraw";
        app.write("POST", path, json!({}))
            .await
            .refused(400, "confirmation_required");
        for _ in 0..2 {
            let withdrawn = withdraw(&app, "reading@1.0.1").await;
            assert_eq!(withdrawn.ok()["item"]["latestVersion"], "1.0.0");
            assert_eq!(withdrawn.json["version"]["status"], "withdrawn");
        }
        let refused = content(&app, &token, "reading@1.0.1").await;
        refused.refused(409, "conflict");
        assert_eq!(refused.json["status"], "withdrawn");
        assert_eq!(
            content(&app, &token, "reading").await.header("etag"),
            format!("\"{digest}\"")
        );
        app.publish("", skill("reading", "second"))
            .await
            .refused(409, "conflict");
        app.publish("?version=2.0.0", skill("reading", "second"))
            .await
            .refused(409, "conflict");
        let third = app.publish("", skill("reading", "third")).await;
        assert_eq!(third.ok()["version"]["version"], "1.0.2");

        // The whole item: nothing goes out, nothing comes in, and it can be uninstalled.
        for _ in 0..2 {
            assert_eq!(
                withdraw(&app, "reading").await.ok()["item"]["status"],
                "withdrawn"
            );
        }
        content(&app, &token, "reading@1.0.0")
            .await
            .refused(409, "conflict");
        content(&app, &app.admin, "reading")
            .await
            .refused(409, "conflict");
        let manifest = app.get("/skill-registry/reading/manifest").await;
        manifest.refused(409, "conflict");
        app.install(&person, "reading", "desktop")
            .await
            .refused(409, "conflict");
        app.publish("", skill("reading", "fourth"))
            .await
            .refused(409, "conflict");
        assert_eq!(
            app.get("/skill-registry/reading").await.ok()["item"]["status"],
            "withdrawn"
        );
        let gone = app.uninstall(&person, "reading").await;
        assert_eq!(gone.ok()["gatewayToken"]["revokedCount"], 1);
        content(&app, &token, "reading")
            .await
            .refused(401, "token_revoked");
        let kinds = app
            .events(0)
            .await
            .into_iter()
            .filter(|(kind, _)| kind == "registry.item.withdrawn");
        assert_eq!(kinds.count(), 2, "withdrawing again is no event");
    });
}

/// Proves SK-1.
#[test]
fn a_version_keeps_its_content() {
    each("skill_immutable", |app: Arc<App>| async move {
        let first = app.publish("?version=1.2.3", skill("reading", "first")).await;
        assert_eq!(first.status, 201);
        for query in ["?version=1.2.3", ""] {
            let again = app.publish(query, skill("reading", "first")).await;
            assert_eq!(
                (again.status.as_u16(), &again.json["created"]),
                (200, &json!(false)),
                "{query}"
            );
            assert_eq!(again.json["version"], first.json["version"]);
        }
        let other = app.publish("?version=1.2.3", skill("reading", "second")).await;
        other.refused(409, "already_exists");
        // The same content under another number is one content in the store.
        app.publish("?version=2.0.0-rc.1", skill("reading", "first"))
            .await
            .ok();
        let next = app.publish("", skill("reading", "third")).await;
        assert_eq!(next.ok()["version"]["version"], "2.0.1");
        let versions = app.get("/skill-registry/reading/versions?limit=2").await;
        let numbers = |reply: &Reply| -> Vec<String> {
            reply.ok()["versions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|v| text(&v["version"]))
                .collect()
        };
        assert_eq!(numbers(&versions), ["2.0.1", "2.0.0-rc.1"]);
        let cursor = text(&versions.json["nextCursor"]);
        let rest = app
            .get(&format!(
                "/skill-registry/reading/versions?limit=2&cursor={cursor}"
            ))
            .await;
        assert_eq!(numbers(&rest), ["1.2.3"]);
        assert!(rest.json.get("nextCursor").is_none());
        let zipped = app.get("/skill-registry/reading@1.2.3/content").await;
        let again = app.get("/skill-registry/reading@2.0.0-rc.1/content").await;
        assert_eq!(zipped.bytes, again.bytes);
    });
}

#[test]
fn names_belong_to_a_namespace_and_lists_are_searched() {
    each("skill_lists", |app: Arc<App>| async move {
        for namespace in ["", "?namespace=@acme", "?namespace=io.github.user"] {
            app.publish(namespace, skill("reading", namespace)).await.ok();
        }
        app.publish("", skill("writing-off", "x")).await.ok();
        let refs = async |query: &str| -> Vec<String> {
            let reply = app.get(&format!("/skill-registry{query}")).await;
            reply.ok()["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|i| text(&i["ref"]))
                .collect()
        };
        assert_eq!(
            refs("").await,
            [
                "writing-off",
                "io.github.user/reading",
                "@acme/reading",
                "reading"
            ]
        );
        assert_eq!(refs("?namespace=@acme").await, ["@acme/reading"]);
        assert_eq!(refs("?query=GITHUB").await, ["io.github.user/reading"]);
        assert_eq!(refs("?query=does%20Writing").await, ["writing-off"]);
        for nothing in ["?query=%25", "?query=_", "?query=!", "?query=reading_"] {
            assert_eq!(refs(nothing).await, [""; 0], "{nothing}");
        }
        withdraw(&app, "reading").await.ok();
        assert_eq!(refs("?status=withdrawn").await, ["reading"]);
        let page = app.get("/skill-registry?limit=3").await;
        let cursor = text(&page.ok()["nextCursor"]);
        assert_eq!(refs(&format!("?limit=3&cursor={cursor}")).await, ["reading"]);
        app.get(&format!("/skill-installs?cursor={cursor}"))
            .await
            .refused(400, "invalid_request");
        for bad in [
            "?namespace=acme",
            "?namespace=@Acme",
            "?namespace=@a..b",
            "?query=",
            "?version=1.0.0",
        ] {
            assert_eq!(
                app.get(&format!("/skill-registry{bad}")).await.status,
                400,
                "{bad}"
            );
        }
        for bad in [
            "?version=1",
            "?version=v1.0.0",
            "?version=1.0.0%2Bb",
            "?namespace=..",
            "?namespace=%00",
        ] {
            assert_eq!(app.publish(bad, skill("reading", "x")).await.status, 400, "{bad}");
        }
    });
}

#[test]
fn whatever_names_nothing_is_the_same_404() {
    each("skill_refs", |app: Arc<App>| async move {
        app.publish("?namespace=@acme", skill("reading", "first"))
            .await
            .ok();
        let long = "a".repeat(300);
        let nothing = [
            "ski_01kadh5j9v0000000000000000",
            "ski_",
            "nothing",
            "%40acme%2Fnothing",
            "%40acme%252Freading",
            "%40acme%2Freading%2Fx",
            "..",
            "%2E%2E",
            "..%2Freading",
            "%40acme%2F..%2Freading",
            "%00",
            "a%00b",
            "%5C",
            "%40acme%5Creading",
            "reading%0A",
            "%ff",
            "%40acme%2Freading@",
            "%40acme%2Freading@latest",
            "%40ACME%2Freading",
            "%20",
            long.as_str(),
        ];
        for (method, rest) in [
            ("GET", ""),
            ("GET", "/versions"),
            ("GET", "/content"),
            ("GET", "/manifest"),
            ("POST", "/cli-uninstall"),
        ] {
            let mut answers = std::collections::BTreeSet::new();
            for item in nothing {
                if item == ".." || item == "%2E%2E" {
                    continue;
                }
                let reply = app
                    .request(method, &format!("/skill-registry/{item}{rest}"))
                    .send()
                    .await;
                reply.refused(404, "not_found");
                answers.insert(text(&reply.json["message"]));
            }
            assert_eq!(answers.len(), 1, "{method} {rest}: {answers:?}");
            // One segment is one segment: a raw slash is another route, and the whole is not decoded twice.
            let raw = app
                .request(method, &format!("/skill-registry/@acme/reading{rest}"))
                .send()
                .await;
            raw.refused(404, "not_found");
            let good = app
                .request(method, &format!("/skill-registry/%40acme%2freading{rest}"))
                .send()
                .await;
            good.ok();
        }
        // An absent version: reading needs it to be there, an uninstall only asks what is installed.
        app.get("/skill-registry/%40acme%2Freading@9.9.9")
            .await
            .refused(404, "not_found");
        app.get("/skill-registry/%40acme%2Freading@9.9.9/content")
            .await
            .refused(404, "not_found");
        app.install(&app.admin, "%40acme%2Freading@9.9.9", "x")
            .await
            .refused(404, "not_found");
        // Dots are a name that nobody has, or a path that no route has; never another resource.
        for dots in ["..", "%2E%2E", "%2e%2e%2fservice-accounts"] {
            let reply = app.get(&format!("/skill-registry/{dots}")).await;
            assert_eq!(reply.status, 404, "{dots}");
        }
    });
}

#[test]
fn a_refused_archive_leaves_nothing() {
    each("skill_refused", |app: Arc<App>| async move {
        let front = "---\nname: reading\ndescription: Reads.\n---\n";
        let many: Vec<(String, &str)> = (0..30).map(|n| (format!("dir/bad\u{1}{n}"), "x")).collect();
        let mut many: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        many.push(("SKILL.md", front));
        let cases: [(&str, Vec<u8>); 6] = [
            ("no archive", b"no archive".to_vec()),
            ("no SKILL.md", archive(&[("README.md", "x")])),
            ("no front matter", archive(&[("SKILL.md", "# Reading")])),
            (
                "a bad name",
                archive(&[("SKILL.md", "---\nname: Bad--Name\ndescription: x\n---\n")]),
            ),
            ("nothing", Vec::new()),
            ("many faults", archive(&many)),
        ];
        let before = crate::samples::state(&app).await;
        for (case, bytes) in cases {
            let refused = app.publish("", bytes).await;
            refused.refused(422, "invalid_definition");
            let errors = refused.json["errors"].as_array().unwrap();
            assert!((1..=20).contains(&errors.len()), "{case}: {}", refused.text());
            assert!(
                errors
                    .iter()
                    .all(|e| e["message"].is_string() && e["path"].is_string()),
                "{case}"
            );
            assert!(text(&refused.json["message"]).chars().count() <= 500);
            let pointer = |e: &Value| e["path"] == "" || text(&e["path"]).starts_with('/');
            assert!(errors.iter().all(pointer), "{case}: {}", refused.text());
        }
        let publish = |media_type: &'static str, bytes: Vec<u8>| {
            app.request("POST", "/skill-registry")
                .header("idempotency-key", &fresh_key())
                .header("x-reason", "a test")
                .content(media_type, bytes)
        };
        publish("application/json", b"{}".to_vec())
            .send()
            .await
            .refused(415, "unsupported_media_type");
        publish("application/gzip", vec![0; MAX_ARCHIVE_BYTES + 1])
            .send()
            .await
            .refused(413, "payload_too_large");
        assert_eq!(crate::samples::state(&app).await, before);
        // Without a right nothing is read, whatever is sent.
        let (_, auditor) = app.account("auditor", "auditor", &[]).await;
        let call = publish("application/gzip", vec![0; MAX_ARCHIVE_BYTES + 1]).token(&auditor);
        let refused = call.send().await;
        assert!(
            [403, 413].contains(&refused.status.as_u16()),
            "{}",
            refused.text()
        );
        publish("application/gzip", b"no archive".to_vec())
            .token(&auditor)
            .send()
            .await
            .refused(403, "role_forbidden");
    });
}

#[test]
fn a_zip_is_the_same_skill() {
    each("skill_zip", |app: Arc<App>| async move {
        let files = [
            (
                "reading/SKILL.md",
                "---\nname: reading\ndescription: Reads.\n---\nx\n",
            ),
            ("reading/a.txt", "a"),
        ];
        let first = app.publish("", archive(&files)).await;
        let digest = text(&first.ok()["version"]["digest"]);
        let zip = stored_zip(&files);
        let again = app
            .request("POST", "/skill-registry")
            .header("idempotency-key", &fresh_key())
            .header("x-reason", "a test")
            .content("application/zip", zip)
            .send()
            .await;
        assert_eq!(
            (again.status.as_u16(), &again.json["version"]["digest"]),
            (200, &json!(digest)),
            "{}",
            again.text()
        );
    });
}

/// A zip of stored files, written by hand.
fn stored_zip(files: &[(&str, &str)]) -> Vec<u8> {
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for (path, text) in files {
        let offset = u32::try_from(zip.len()).unwrap();
        let (size, length) = (
            u32::try_from(text.len()).unwrap(),
            u16::try_from(path.len()).unwrap(),
        );
        let mut common = Vec::new();
        common.extend([20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]);
        common.extend(crc32(text.as_bytes()).to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend(length.to_le_bytes());
        common.extend([0, 0]);
        zip.extend(b"PK\x03\x04");
        zip.extend(&common);
        zip.extend(path.as_bytes());
        zip.extend(text.as_bytes());
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(path.as_bytes());
    }
    let (start, size) = (
        u32::try_from(zip.len()).unwrap(),
        u32::try_from(directory.len()).unwrap(),
    );
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    zip.extend(directory);
    zip.extend(b"PK\x05\x06\0\0\0\0");
    zip.extend(count);
    zip.extend(count);
    zip.extend(size.to_le_bytes());
    zip.extend(start.to_le_bytes());
    zip.extend([0, 0]);
    zip
}

/// The checksum of zip and gzip, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| {
        if crc & 1 == 1 {
            (crc >> 1) ^ 0xedb8_8320
        } else {
            crc >> 1
        }
    };
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc))
    })
}

/// Specification §4.7: what is sent, what is answered, and three declared refusals.
#[test]
fn the_uninstall_is_declared_as_the_specification_shows_it() {
    let document = provost_kernel::expose::openapi::document(&provost_server::app::registry().unwrap());
    let path = "/api/headless/v1/organizations/{organizationId}/skill-registry/{itemRef}/cli-uninstall";
    let operation = &document["paths"][path]["post"];
    assert_eq!(operation["tags"], json!(["registry"]));
    let parameters = operation["parameters"].as_array().unwrap();
    let required: Vec<&Value> = parameters
        .iter()
        .filter(|p| p["required"] == true)
        .map(|p| &p["name"])
        .collect();
    assert_eq!(required, ["organizationId", "itemRef"]);
    let body = &operation["requestBody"];
    assert_ne!(body["required"], true, "no body is as good as an empty object");
    let schema = &body["content"]["application/json"]["schema"];
    assert_eq!(
        (&schema["type"], &schema["additionalProperties"]),
        (&json!("object"), &json!(false))
    );
    assert!(
        schema
            .get("properties")
            .is_none_or(|p| p.as_object().unwrap().is_empty())
    );
    let responses = operation["responses"].as_object().unwrap();
    let statuses: Vec<&str> = responses.keys().map(String::as_str).collect();
    assert_eq!(statuses, ["200", "401", "403", "404", "default"]);
    let success = &responses["200"]["content"]["application/json"]["schema"];
    assert_eq!(success["type"], "object");
}
