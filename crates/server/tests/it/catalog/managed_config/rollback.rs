//! What a rollback shows, does and refuses (D8.3 to D8.11).

use super::{PROFILES, perform, preview, profile, publish, publish_all, traces};
use crate::support::{App, each, fresh_key, with_trio};
use provost_kernel::{OperationContext, params};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

provost_kernel::statements! {
    /// Makes every content of the first organization another one, as a change of the rules would.
    SPOIL = "UPDATE managed_config_contents SET content = ?2 WHERE organization_id = ?1";
    /// Says that every release was checked by older rules.
    AGE = "UPDATE managed_config_releases SET schema_version = 0 WHERE organization_id = ?1";
}

/// Proves MC-3.
#[test]
#[expect(clippy::too_many_lines, reason = "one story from its beginning to its end")]
fn a_preview_writes_nothing_and_says_what_the_performance_does() {
    each("mc_preview", |app: Arc<App>| async move {
        let path = profile(&app, "claude_code").await;
        let strict =
            json!({ "permissions": { "deny": ["Read(./.env)"] }, "env": { "HTTPS_PROXY": "http://old" } });
        let first = publish(&app, &path, strict).await;
        let loose = json!({ "permissions": { "deny": [], "allow": ["WebFetch"] }, "env": { "HTTPS_PROXY": "http://new" } });
        let second = publish(&app, &path, loose.clone()).await;
        publish(&app, &path, loose).await; // the same once more makes no release
        let before = traces(&app, &path).await;
        assert_eq!(before["releases"]["releases"].as_array().unwrap().len(), 2);
        let shown = preview(&app, &path, json!({})).await;
        assert_eq!(shown.header("etag"), shown.ok()["etag"].as_str().unwrap());
        let body = &shown.json;
        assert_eq!(body["mode"], "preview");
        assert_eq!(
            [&body["currentRelease"]["id"], &body["sourceRelease"]["id"]],
            [&second["id"], &first["id"]]
        );
        let expected = json!([
            { "op": "replace", "path": "/enforced/env/HTTPS_PROXY", "class": "enforced", "before": "[redacted]", "after": "[redacted]" },
            { "op": "remove", "path": "/enforced/permissions/allow", "class": "enforced", "before": ["WebFetch"] },
            { "op": "replace", "path": "/enforced/permissions/deny", "class": "enforced", "before": [], "after": ["Read(./.env)"] },
        ]);
        assert_eq!(body["changes"], expected);
        assert_eq!(
            (&body["changesTotal"], &body["truncated"]),
            (&json!(3), &json!(false))
        );
        assert_eq!(
            body["affected"],
            json!({ "targets": 0, "groups": 0, "online": 0 })
        );
        assert_eq!(body["warnings"], json!([]));
        assert_eq!(body["wouldCreate"], json!({ "version": 3, "kind": "rollback" }));
        let lines: Vec<&str> = body["renderedDiff"]["lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l.as_str().unwrap())
            .collect();
        assert_eq!(
            &lines[..2],
            ["--- managed-settings.json", "+++ managed-settings.json"]
        );
        assert!(
            lines.contains(&"-    \"HTTPS_PROXY\": \"[redacted]\"")
                && lines.contains(&"+    \"HTTPS_PROXY\": \"[redacted, changed]\""),
            "{lines:?}"
        );
        // The other way weakens, and says where.
        let back = preview(&app, &path, json!({ "sourceReleaseId": second["id"] })).await;
        assert_eq!(
            back.ok().get("wouldCreate"),
            None,
            "the source is what is current"
        );
        assert_eq!(traces(&app, &path).await, before);

        let call = json!({ "sourceReleaseId": first["id"], "previewToken": body["previewToken"] });
        let done = perform(&app, &path, call).await;
        let body = done.ok();
        assert_eq!(
            (&body["mode"], &body["created"]),
            (&json!("completed"), &json!(true))
        );
        assert_eq!(body["previousRelease"]["id"], second["id"]);
        let release = &body["release"];
        assert_eq!(
            (&release["version"], &release["kind"]),
            (&json!(3), &json!("rollback"))
        );
        let restored = format!("{path}/releases/{}", first["id"].as_str().unwrap());
        let restored = app.get(&restored).await;
        assert_eq!(
            (&release["sourceReleaseId"], &release["contentDigest"]),
            (&first["id"], &restored.ok()["release"]["contentDigest"])
        );
        assert_eq!(
            (&release["status"], &release["reason"]),
            (&json!("active"), &json!("a test"))
        );
        assert_eq!(body["changesTotal"], 3);
        let (kind, data) = app.events(0).await.pop().unwrap();
        assert_eq!(
            (kind.as_str(), &data["sourceReleaseId"]),
            ("managed_config.release.rolled_back", &first["id"])
        );
        let entry = app.entries(&app.organization, 0).await.pop().unwrap();
        assert_eq!(entry["action"], "rollbackHeadlessManagedConfigProfile");
        let paths = json!([
            "/enforced/env/HTTPS_PROXY",
            "/enforced/permissions/allow",
            "/enforced/permissions/deny"
        ]);
        assert!(
            entry["changes"]
                .as_array()
                .unwrap()
                .contains(&json!({ "path": "/content", "after": paths })),
            "{entry}"
        );
        assert!(!entry.to_string().contains("http://"), "{entry}");
        let weak = preview(&app, &path, json!({ "sourceReleaseId": second["id"] })).await;
        assert_eq!(weak.ok()["warnings"][0]["code"], "weakens_enforcement");
        assert_eq!(
            weak.json["warnings"][0]["paths"],
            json!(["/enforced/permissions/allow", "/enforced/permissions/deny"])
        );
    });
}

/// Proves MC-3.
#[test]
#[expect(clippy::too_many_lines, reason = "one story from its beginning to its end")]
fn what_the_state_forbids_is_refused_alike_by_preview_and_performance() {
    each("mc_refusals", |app: Arc<App>| async move {
        let (path, other) = (profile(&app, "codex").await, profile(&app, "codex").await);
        preview(&app, &path, json!({}))
            .await
            .refused(409, "no_earlier_release");
        let enforced = json!({ "allowed_sandbox_modes": ["read-only"] });
        let first = publish(&app, &path, enforced.clone()).await;
        preview(&app, &path, json!({}))
            .await
            .refused(409, "no_earlier_release");
        let elsewhere = publish(&app, &other, enforced).await;
        publish(&app, &path, json!({})).await;
        let before = traces(&app, &path).await;

        // A foreign and an absent release are the same.
        let mut bodies = Vec::new();
        for id in [
            elsewhere["id"].as_str().unwrap(),
            "mcr_01kadh5j9v0000000000000000",
            "nonsense",
        ] {
            for reply in [
                preview(&app, &path, json!({ "sourceReleaseId": id })).await,
                perform(&app, &path, json!({ "sourceReleaseId": id })).await,
            ] {
                reply.refused(404, "not_found");
                bodies.push(reply.json["message"].clone());
            }
        }
        assert!(bodies.iter().all(|body| body == &bodies[0]), "{bodies:?}");
        let reply = perform(&app, &path, json!({})).await;
        reply.refused(400, "invalid_request");
        assert_eq!(reply.json["errors"][0]["path"], "/sourceReleaseId");
        for missing in ["reason", "idempotencyKey"] {
            let mut body = with_trio(
                json!({ "confirm": true, "sourceReleaseId": first["id"] }),
                &fresh_key(),
            );
            body.as_object_mut().unwrap().remove(missing);
            preview(&app, &path, body).await.refused(400, "invalid_request");
        }

        // Rules that changed since: what fits is taken over, what does not is refused.
        let org = app.organization.clone();
        app.kernel
            .system(app.org(), None, |ctx: &mut OperationContext<'_>| {
                let org = ctx.org();
                ctx.queue(&AGE, params![org])
            })
            .await
            .unwrap();
        let aged = preview(&app, &path, json!({})).await;
        assert_eq!(
            aged.ok()["warnings"]
                .as_array()
                .unwrap()
                .iter()
                .map(|w| w["code"].as_str().unwrap())
                .collect::<Vec<_>>(),
            ["schema_migrated"]
        );
        assert_eq!(org, app.organization);
        app.kernel
            .system(app.org(), None, |ctx: &mut OperationContext<'_>| {
                let org = ctx.org();
                ctx.queue(
                    &SPOIL,
                    params![
                        org,
                        r#"{"defaults":{},"enforced":{"allowed_sandbox_modes":["off"]}}"#
                    ],
                )
            })
            .await
            .unwrap();
        for reply in [
            preview(&app, &path, json!({ "sourceReleaseId": first["id"] })).await,
            perform(&app, &path, json!({ "sourceReleaseId": first["id"] })).await,
        ] {
            reply.refused(409, "schema_incompatible");
            assert_eq!(
                reply.json["errors"][0]["path"],
                "/enforced/allowed_sandbox_modes/0"
            );
        }

        app.write("POST", &format!("{path}/archive"), json!({}))
            .await
            .ok();
        for reply in [
            preview(&app, &path, json!({})).await,
            perform(&app, &path, json!({ "sourceReleaseId": first["id"] })).await,
            app.write(
                "POST",
                &format!("{path}/releases"),
                json!({ "content": { "enforced": {} } }),
            )
            .await,
            app.write("PATCH", &path, json!({ "name": "x" })).await,
        ] {
            reply.refused(409, "conflict");
        }
        app.write("POST", &format!("{path}/restore"), json!({}))
            .await
            .ok();
        let after = traces(&app, &path).await;
        assert_eq!(after["events"], before["events"]);
        assert_eq!(
            after["releases"]["releases"][0]["id"],
            before["releases"]["releases"][0]["id"]
        );
    });
}

#[test]
fn a_rollback_to_what_is_there_makes_nothing_and_one_of_an_automatic_profile_pauses_it() {
    each("mc_noop", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        app.write("PATCH", &path, json!({ "autoPublish": "on" }))
            .await
            .ok();
        let automatic = json!({ "content": { "enforced": { "x": 1 } }, "automatic": true });
        let first = app
            .write("POST", &format!("{path}/releases"), automatic.clone())
            .await;
        assert_eq!(first.ok()["created"], true);
        let again = app
            .write("POST", &format!("{path}/releases"), automatic.clone())
            .await;
        assert_eq!(
            (again.status.as_u16(), &again.ok()["created"]),
            (200, &json!(false))
        );
        assert_eq!(again.json["release"]["id"], first.json["release"]["id"]);
        let second = publish(&app, &path, json!({ "x": 2 })).await;

        let noop = perform(&app, &path, json!({ "sourceReleaseId": second["id"] })).await;
        let body = noop.ok();
        assert_eq!(
            (&body["created"], &body["changesTotal"]),
            (&json!(false), &json!(0))
        );
        assert_eq!(
            (&body["release"]["id"], &body["autoPublishPaused"]),
            (&second["id"], &json!(false))
        );

        let source = &first.json["release"]["id"];
        let shown = preview(&app, &path, json!({ "sourceReleaseId": source })).await;
        assert_eq!(shown.ok()["warnings"][0]["code"], "auto_publish_will_pause");
        let done = perform(&app, &path, json!({ "sourceReleaseId": source })).await;
        assert_eq!(done.ok()["autoPublishPaused"], true);
        assert_eq!(app.get(&path).await.ok()["profile"]["autoPublish"], "paused");
        let next = json!({ "content": { "enforced": { "x": 2 } }, "automatic": true });
        let refused = app.write("POST", &format!("{path}/releases"), next.clone()).await;
        refused.refused(409, "conflict");
        app.write("PATCH", &path, json!({ "autoPublish": "on" }))
            .await
            .ok();
        let taken = app.write("POST", &format!("{path}/releases"), next).await;
        assert_eq!(taken.ok()["release"]["version"], 4);
    });
}

/// Proves MC-2.
#[test]
fn versions_have_no_gap_however_many_publish_and_roll_back_at_once() {
    let settings = provost_kernel::kernel::Settings {
        rate_limits: false,
        ..Default::default()
    };
    crate::support::each_with("mc_storm", &settings, |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let sources: Vec<Value> = [
            publish(&app, &path, json!({ "x": "a" })).await,
            publish(&app, &path, json!({ "x": "b" })).await,
        ]
        .to_vec();
        let versions = Arc::new(Mutex::new(vec![1, 2]));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..60 {
            let (app, path, versions) = (app.clone(), path.clone(), versions.clone());
            let source = sources[number % 2]["id"].clone();
            tasks.spawn(async move {
                let reply = if number % 3 == 0 {
                    let content = json!({ "enforced": { "x": number } });
                    app.write("POST", &format!("{path}/releases"), json!({ "content": content }))
                        .await
                } else {
                    let body = json!({ "sourceReleaseId": source, "confirm": true });
                    app.write("POST", &format!("{path}/rollback"), body).await
                };
                if reply.ok()["created"] == true {
                    versions
                        .lock()
                        .unwrap()
                        .push(reply.json["release"]["version"].as_i64().unwrap());
                }
            });
        }
        tasks.join_all().await;
        let mut versions = versions.lock().unwrap().clone();
        versions.sort_unstable();
        let expected: Vec<i64> = (1..=i64::try_from(versions.len()).unwrap()).collect();
        assert_eq!(versions, expected);
        assert!(versions.len() > 22, "{versions:?}");
        let listed = app.get(&format!("{path}/releases?limit=100")).await;
        let listed: Vec<i64> = listed.ok()["releases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["version"].as_i64().unwrap())
            .collect();
        assert_eq!(listed, expected.iter().rev().copied().collect::<Vec<_>>());
        let active = app.get(&format!("{path}/releases?limit=1")).await;
        assert_eq!(active.ok()["releases"][0]["status"], "active");
    });
}

/// Every hidden place of a content, with a value of its own.
fn canaries(number: usize) -> (Value, Vec<String>) {
    let words: Vec<String> = (0..7)
        .map(|place| format!("canary-{number}-{place}-7f3a"))
        .collect();
    let content = json!({
        "enforced": {
            "env": { "DB": words[0], "LIST": [words[1]] },
            "apiKeyHelper": words[2],
            "hooks": { "PreToolUse": [{ "hooks": [{ "type": "http", "url": "https://x.example", "headers": { "X": words[3] } }] }] },
            "pluginConfigs": { "a": { "clientSecret": words[4], "note": "shown" } },
        },
        "defaults": { "env": { "TOKEN": words[5] }, "statusText": format!("https://bob:{}@proxy.example", words[6]) },
    });
    (content, words)
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Proves MC-5.
#[test]
fn a_hidden_value_is_shown_to_machines_alone() {
    let log = Log::default();
    let sink = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    subscriber.with_writer(move || sink.clone()).try_init().unwrap();
    tracing::trace!("the log is kept");
    each("mc_canaries", |app: Arc<App>| async move {
        let path = profile(&app, "generic_json").await;
        let ((one, mut words), (two, more)) = (canaries(1), canaries(2));
        let first = publish_all(&app, &path, one.clone()).await;
        let second = publish_all(&app, &path, two).await;
        words.extend(more);
        let release = first["id"].as_str().unwrap();
        let shown = preview(&app, &path, json!({})).await;
        assert_eq!(shown.ok()["changesTotal"], 7, "{}", shown.text());
        // A content that is refused is quoted nowhere.
        let strict = profile(&app, "claude_code").await;
        let mut bad = one;
        bad["enforced"]["env"] = json!({ "DB": [words[0]] });
        bad["enforced"]["apiKeyHelper"] = json!({ words[2].as_str(): 1 });
        let refused = app
            .write("POST", &format!("{strict}/releases"), json!({ "content": bad }))
            .await;
        refused.refused(422, "invalid_definition");
        assert_eq!(
            refused.json["errors"][0]["path"],
            "/content/enforced/apiKeyHelper",
            "{}",
            refused.text()
        );
        let done = perform(&app, &path, json!({ "sourceReleaseId": release })).await;
        done.ok();
        let mut seen = vec![shown.text(), refused.text(), done.text()];
        for rest in [
            format!(
                "{path}/releases/{release}/diff?against={}",
                second["id"].as_str().unwrap()
            ),
            format!("{path}/releases/{release}/content"),
            format!("{path}/releases"),
            "/audit/export?limit=1000".to_owned(),
            "/events".to_owned(),
        ] {
            let reply = app.get(&rest).await;
            assert_eq!(reply.status.as_u16(), 200, "{rest}: {}", reply.text());
            seen.push(reply.text());
        }
        seen.push(Value::from(app.entries(&app.organization, 0).await).to_string());
        for text in seen {
            for word in &words {
                assert!(!text.contains(word.as_str()), "{word} stands in {text}");
            }
        }
        let shown = app.get(&format!("{path}/current")).await.text();
        assert!(words.iter().all(|word| !shown.contains(word.as_str())), "{shown}");
        let delivered = super::current(&app, &path).await.text();
        assert!(
            words[..7].iter().all(|word| delivered.contains(word.as_str())),
            "{delivered}"
        );
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the log is kept"));
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains("canary-")).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}

/// Proves MC-6.
#[test]
#[expect(clippy::too_many_lines, reason = "one story from its beginning to its end")]
fn a_profile_lives_its_whole_life() {
    each("mc_life", |app: Arc<App>| async move {
        let path = profile(&app, "codex").await;
        let one = app.get(&path).await;
        let body = &one.ok()["profile"];
        assert_eq!(
            (&body["autoPublish"], &body["onUnavailable"]),
            (&json!("off"), &json!("last_known"))
        );
        assert_eq!(
            (&body["pollIntervalSeconds"], &body["status"]),
            (&json!(3600), &json!("active"))
        );
        assert_eq!(body.get("currentReleaseId"), None);
        let name = body["name"].as_str().unwrap().to_uppercase();
        let again = app
            .write("POST", PROFILES, json!({ "name": name, "target": "codex" }))
            .await;
        again.refused(409, "already_exists");
        let other = profile(&app, "claude_code").await;
        app.write("PATCH", &other, json!({ "name": name }))
            .await
            .refused(409, "already_exists");
        app.get(&format!("{path}/current"))
            .await
            .refused(404, "not_found");
        assert_eq!(
            app.get(&format!("{path}/releases")).await.ok(),
            &json!({ "releases": [] })
        );

        let bad = json!({ "content": { "enforced": { "allowed_sandbox_modes": ["off"], "x": null }, "defaults": { "model": 7 } } });
        let refused = app.write("POST", &format!("{path}/releases"), bad).await;
        refused.refused(422, "invalid_definition");
        let mut paths: Vec<&str> = refused.json["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["path"].as_str().unwrap())
            .collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(
            paths,
            [
                "/content/defaults/model",
                "/content/enforced/allowed_sandbox_modes",
                "/content/enforced/allowed_sandbox_modes/0",
                "/content/enforced/x"
            ]
        );
        let marked = json!({ "content": { "enforced": { "guardian_policy_config": "[redacted]" } } });
        app.write("POST", &format!("{path}/releases"), marked)
            .await
            .refused(422, "invalid_definition");
        let large = |size: usize| json!({ "content": { "enforced": { "additional_developer_instructions": "x".repeat(size) } } });
        let taken = app
            .write("POST", &format!("{path}/releases"), large(1_900_000))
            .await;
        assert_eq!(taken.ok()["created"], true);
        app.write("POST", &format!("{path}/releases"), large(2_200_000))
            .await
            .refused(413, "payload_too_large");

        for version in 2..=5 {
            publish(&app, &path, json!({ "v": version })).await;
        }
        let (mut seen, mut rest) = (Vec::new(), format!("{path}/releases?limit=2"));
        loop {
            let page = app.get(&rest).await;
            seen.extend(
                page.ok()["releases"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|r| r["version"].as_i64().unwrap()),
            );
            match page.json["nextCursor"].as_str() {
                Some(cursor) => rest = format!("{path}/releases?limit=2&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(seen, [5, 4, 3, 2, 1]);
        for (query, count) in [
            ("", 2),
            ("?target=codex", 1),
            ("?status=archived", 0),
            ("?limit=1", 1),
        ] {
            let page = app.get(&format!("{PROFILES}{query}")).await;
            assert_eq!(page.ok()["profiles"].as_array().unwrap().len(), count, "{query}");
        }
        let (_, auditor) = app.account("looks", "auditor", &["managed_config:read"]).await;
        let source = taken.json["release"]["id"].clone();
        let call = |body: Value| {
            app.request("POST", &format!("{path}/rollback"))
                .token(&auditor)
                .json(body)
                .send()
        };
        call(json!({ "sourceReleaseId": source })).await.ok();
        let performing = with_trio(
            json!({ "sourceReleaseId": source, "confirm": true }),
            &fresh_key(),
        );
        call(performing.clone()).await.refused(403, "role_forbidden");
        let (_, operator) = app.account("acts", "operator", &[]).await;
        let done = app
            .request("POST", &format!("{path}/rollback"))
            .token(&operator)
            .json(performing)
            .send()
            .await;
        assert_eq!(done.ok()["release"]["version"], 6);
    });
}
