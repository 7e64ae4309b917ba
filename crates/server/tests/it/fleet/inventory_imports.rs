//! What other scanners found: evidence of its own, beside what devices say and never in its place.

use super::inventory::{decide, in_days, of_key, prune, servers};
use crate::areas::fleet::Machine;
use crate::areas::inventory::server;
use crate::support::{App, Reply, each, fresh_key, with_trio};
use serde_json::{Value, json};
use std::sync::Arc;

const IMPORTS: &str = "/inventory/imports";

async fn import(app: &App, source: &str, found: &[(&str, &str)]) -> Reply {
    let servers: Vec<Value> = found
        .iter()
        .map(|(key, name)| json!({ "key": key, "name": name }))
        .collect();
    app.write("POST", IMPORTS, json!({ "source": source, "servers": servers }))
        .await
}

fn evidence(server: &Value) -> Vec<(&str, Option<&str>)> {
    let all = server["evidence"].as_array().unwrap();
    all.iter()
        .map(|one| (one["evidence"].as_str().unwrap(), one["source"].as_str()))
        .collect()
}

/// Proves IN-12.
#[test]
fn an_import_is_beside_what_devices_say_and_changes_nothing_of_it() {
    each("inventory_imports", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let has = json!([
            server("files", "npm:files", false),
            server("old", "npm:old", false)
        ]);
        laptop.has(&app, "ada", &has).await.ok();
        let approve = json!({ "standing": "approved", "expiresAt": in_days(&app, 30) });
        decide(&app, &of_key(&app, "npm:files").await, approve).await.ok();
        let strip = |mut server: Value| {
            server.as_object_mut().unwrap().remove("evidence");
            server
        };
        let before = strip(of_key(&app, "npm:files").await);
        app.advance(60);
        let found = [
            ("npm:files", "another"),
            ("url:https://mcp.acme.example/mcp", "web"),
            ("npm:files", "third"),
        ];
        let answer = import(&app, "snyk_agent_scan", &found).await.ok().clone();
        assert_eq!(answer, json!({ "servers": 2, "discovered": 1, "notKept": 0 }));
        let files = of_key(&app, "npm:files").await;
        assert_eq!(strip(files.clone()), before);
        assert_eq!(
            evidence(&files),
            [("configuration", None), ("import", Some("snyk_agent_scan"))]
        );
        assert_eq!(files["evidence"][1]["firstSeenAt"], json!(app.now().to_rfc3339()));
        // Nobody has it configured as far as devices say, and so nobody approves it.
        let web = of_key(&app, "url:https://mcp.acme.example/mcp").await;
        assert_eq!(
            (&web["standing"], &web["instances"], &web["name"]),
            (&json!("shadow"), &json!(0), &json!("web"))
        );
        assert_eq!(evidence(&web), [("import", Some("snyk_agent_scan"))]);
        let approve = json!({ "standing": "approved", "expiresAt": in_days(&app, 30) });
        decide(&app, &web, approve).await.refused(409, "conflict");
        let kinds: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        let discovered = kinds
            .iter()
            .filter(|kind| *kind == "inventory.mcp_server.discovered");
        assert_eq!(discovered.count(), 3);
        // Once more, by another scanner, and then a device has it too.
        let again = import(&app, "snyk_agent_scan", &found[..2]).await.ok().clone();
        assert_eq!(again["discovered"], 0);
        import(&app, "other", &found[1..2]).await.ok();
        let has = json!([server("web", "url:https://mcp.acme.example/mcp", false)]);
        laptop.has(&app, "bob", &has).await.ok();
        assert_eq!(
            evidence(&of_key(&app, "url:https://mcp.acme.example/mcp").await),
            [
                ("configuration", None),
                ("import", Some("other")),
                ("import", Some("snyk_agent_scan")),
            ]
        );
        let (organization, admin) = app.other_organization("Stark").await;
        assert_eq!(servers(&app.view_of(organization, admin), "").await.len(), 0);
        app.kernel.stop().await;
    });
}

/// Proves IN-7, IN-12.
#[test]
fn an_import_with_a_value_or_a_key_that_names_nothing_is_refused_as_a_whole() {
    each("inventory_imports_bad", |app: Arc<App>| async move {
        for (key, name) in [
            ("cmd:hmac:00112233445566778899aabbccddeeff", "shell"),
            ("builtin:goose/developer", "developer"),
            ("npm:Files", "files"),
            ("files", "files"),
            (
                "url:https://acme.example/ghp_CaNaRyCaNaRyCaNaRy0123456789abcdef",
                "web",
            ),
            ("npm:files", "ghp_CaNaRyCaNaRyCaNaRy0123456789abcdef"),
            ("npm:files", "/home/ada/secret"),
        ] {
            let refused = import(&app, "other", &[("npm:good", "good"), (key, name)]).await;
            refused.refused(422, "invalid_definition");
            assert!(!refused.text().contains("CaNaRy"), "{}", refused.text());
        }
        let many: Vec<String> = (0..251).map(|n| format!("npm:many-{n}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "many")).collect();
        import(&app, "other", &many).await.refused(400, "invalid_request");
        import(&app, "other", &[]).await.refused(400, "invalid_request");
        import(&app, "elsewhere", &[("npm:good", "good")])
            .await
            .refused(400, "invalid_request");
        assert_eq!(servers(&app, "").await.len(), 0);
        import(&app, "other", &many[..250]).await.ok();
        assert_eq!(servers(&app, "?limit=100").await.len(), 100);
        let (_, operator) = app.account("operator", "operator", &[]).await;
        let body = json!({ "source": "other", "servers": [{ "key": "npm:good", "name": "good" }] });
        app.request("POST", IMPORTS)
            .token(&operator)
            .json(with_trio(body, &fresh_key()))
            .send()
            .await
            .refused(403, "role_forbidden");
        prune(&app).await;
        assert_eq!(servers(&app, "?limit=100").await.len(), 100);
        app.kernel.stop().await;
    });
}
