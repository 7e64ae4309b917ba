//! The inventory: what reports change and what they cannot, how servers stand, and what is never kept.

use crate::areas::fleet::Machine;
use crate::areas::inventory::{PATH, SERVERS, report, section, server, skill};
use crate::support::{App, Reply, each};
use provost_inventory::wire::{Report, Sighting};
use provost_inventory::{InventoryKey, Platform, scan};
use provost_kernel::params;
use provost_server::background;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub async fn servers(app: &App, query: &str) -> Vec<Value> {
    let listed = app.get(&format!("{SERVERS}{query}")).await.ok().clone();
    listed["servers"].as_array().unwrap().clone()
}

pub async fn of_key(app: &App, key: &str) -> Value {
    let found = servers(app, "").await.into_iter().find(|one| one["key"] == key);
    found.unwrap_or(Value::Null)
}

pub async fn decide(app: &App, server: &Value, body: Value) -> Reply {
    let path = format!("{SERVERS}/{}/standing", server["id"].as_str().unwrap());
    app.write("POST", &path, body).await
}

pub fn in_days(app: &App, days: i64) -> String {
    app.now().plus_secs(days * 86_400).to_rfc3339()
}

pub async fn held(app: &App, machine: &Machine) -> Value {
    app.get(&format!("/devices/{}/inventory", machine.id))
        .await
        .ok()
        .clone()
}

/// Proves IN-2.
#[test]
fn a_complete_section_replaces_and_one_with_faults_removes_nothing() {
    each("inventory_sections", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let (files, web) = (
            server("files", "npm:files", false),
            server("web", "npm:web", false),
        );
        let both = json!([files, web, skill("pdf", "a")]);
        let answer = laptop.has(&app, "ada", &both).await.ok().clone();
        assert_eq!(
            answer,
            json!({ "accepted": 1, "unknownDigests": [], "truncated": false, "notKept": 0 })
        );
        assert_eq!(
            held(&app, &laptop).await["observations"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
        let less = section("ada", &json!([files]), false);
        laptop.report(&app, report(&app, 0, &json!([less]))).await.ok();
        let now = held(&app, &laptop).await;
        assert_eq!(now["observations"].as_array().unwrap().len(), 3);
        assert_eq!(now["sections"][0]["complete"], false);
        assert_eq!(now["sections"][0]["faults"][0]["fault"], "malformed");
        // Another account's section is another one.
        laptop.has(&app, "bob", &json!([])).await.ok();
        assert_eq!(of_key(&app, "npm:web").await["instances"], 1);
        laptop.has(&app, "ada", &json!([files])).await.ok();
        assert_eq!(of_key(&app, "npm:web").await["instances"], 0);
        let gone = of_key(&app, "npm:web").await;
        let path = format!("{SERVERS}/{}/instances", gone["id"].as_str().unwrap());
        let instances = app.get(&path).await.ok().clone();
        assert!(instances["instances"][0]["removedAt"].is_string());
        laptop.has(&app, "ada", &both).await.ok();
        assert_eq!(of_key(&app, "npm:web").await["instances"], 1);
        let assets = app.get("/inventory/assets?kind=skill").await.ok().clone();
        assert_eq!(assets["assets"][0]["key"], format!("sha256:{}", "a".repeat(64)));
        assert_eq!(assets["assets"].as_array().unwrap().len(), 1);
        app.kernel.stop().await;
    });
}

#[test]
fn what_is_unchanged_is_named_and_what_is_not_known_is_asked_for() {
    each("inventory_unchanged", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let one = section("ada", &json!([server("files", "npm:files", false)]), true);
        laptop.report(&app, report(&app, 0, &json!([one]))).await.ok();
        app.advance(60);
        let unchanged = |digest: &Value| {
            let mut body = report(&app, 0, &json!([]));
            body["unchanged"] = json!([{ "client": "claude_code", "user": "ada", "digest": digest }]);
            body
        };
        let known = laptop.report(&app, unchanged(&one["digest"])).await.ok().clone();
        assert_eq!(
            (&known["accepted"], &known["unknownDigests"]),
            (&json!(0), &json!([]))
        );
        let seen = of_key(&app, "npm:files").await;
        assert_ne!(seen["lastSeenAt"], seen["firstSeenAt"]);
        let other = json!(format!("sha256:{}", "0".repeat(64)));
        let unknown = laptop.report(&app, unchanged(&other)).await.ok().clone();
        assert_eq!(unknown["unknownDigests"], json!([other]));
        app.kernel.stop().await;
    });
}

/// Proves IN-1, IN-8.
#[test]
fn a_device_reports_for_itself_and_nothing_of_others_changes() {
    each("inventory_own", |app: Arc<App>| async move {
        let (one, other) = (Machine::new(&app).await, Machine::new(&app).await);
        let found = json!([server("files", "npm:files", false)]);
        one.has(&app, "ada", &found).await.ok();
        let before = held(&app, &one).await;
        other.has(&app, "ada", &json!([])).await.ok();
        assert_eq!(held(&app, &one).await["observations"], before["observations"]);
        let body = report(&app, 0, &json!([section("ada", &json!([]), true)]));
        let path = format!("/devices/{}/scans", one.id);
        let foreign = crate::areas::fleet::send(&app, &other.key, &other.token, &path, body.clone()).await;
        foreign.refused(403, "role_forbidden");
        app.request("POST", &path)
            .json(body)
            .send()
            .await
            .refused(403, "role_forbidden");
        let (organization, admin) = app.other_organization("Stark").await;
        let there = app.view_of(organization, admin);
        let foreign = Machine::new(&there).await;
        foreign.has(&there, "ada", &found).await.ok();
        assert_eq!(of_key(&app, "npm:files").await["devices"], 1);
        assert_ne!(
            of_key(&app, "npm:files").await["id"],
            of_key(&there, "npm:files").await["id"]
        );
        let path = format!(
            "{SERVERS}/{}",
            of_key(&app, "npm:files").await["id"].as_str().unwrap()
        );
        there.get(&path).await.refused(404, "not_found");
        // What is on a retired device is not counted, and it reports no more.
        let retire = json!({ "confirm": true });
        app.write("POST", &format!("/devices/{}/retire", one.id), retire)
            .await
            .ok();
        let gone = of_key(&app, "npm:files").await;
        assert_eq!(gone["devices"], 0);
        let path = format!("{SERVERS}/{}/instances", gone["id"].as_str().unwrap());
        let instances = app.get(&path).await.ok().clone();
        assert!(instances["instances"][0]["removedAt"].is_string());
        let nothing = held(&app, &one).await;
        assert_eq!(
            (
                &nothing["sections"],
                &nothing["observations"],
                &nothing["lastScan"]
            ),
            (&Value::Null, &json!([]), &Value::Null)
        );
        one.has(&app, "ada", &json!([]))
            .await
            .refused(401, "token_revoked");
        app.kernel.stop().await;
    });
}

/// Proves IN-3.
#[test]
fn an_older_scan_is_ignored_by_name_and_no_clock_locks_a_device_out() {
    each("inventory_order", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let with = |ago: i64, key: &str, counter: Option<i64>| {
            let found = json!([section("ada", &json!([server("s", key, false)]), true)]);
            let mut body = report(&app, ago, &found);
            if let Some(counter) = counter {
                (body["counter"], body["scanId"]) = (json!(counter), json!(format!("scan-{counter}")));
            }
            body
        };
        // Its clock is a day ahead, and then a year behind.
        laptop.report(&app, with(-86_400, "npm:first", None)).await.ok();
        laptop
            .report(&app, with(365 * 86_400, "npm:second", None))
            .await
            .ok();
        assert_eq!(of_key(&app, "npm:second").await["instances"], 1);
        let last = held(&app, &laptop).await["lastScan"].clone();
        assert_eq!(
            last["startedAt"],
            json!(app.now().plus_secs(-365 * 86_400).to_rfc3339())
        );
        assert_eq!(last["receivedAt"], json!(app.now().to_rfc3339()));
        laptop.report(&app, with(0, "npm:third", Some(7))).await.ok();
        for (counter, id) in [(6, "scan-6"), (7, "scan-another")] {
            let mut late = with(0, "npm:late", Some(counter));
            late["scanId"] = json!(id);
            let answer = laptop.report(&app, late).await.ok().clone();
            let ignored = json!({
                "accepted": 0, "unknownDigests": [], "ignored": "older_scan", "lastCounter": 7, "truncated": false, "notKept": 0,
            });
            assert_eq!(answer, ignored);
        }
        assert_eq!(of_key(&app, "npm:late").await, Value::Null);
        assert_eq!(of_key(&app, "npm:third").await["instances"], 1);
        // What is sent again after a failure is no older scan, and whoever was put back goes on above.
        let again = laptop
            .report(&app, with(0, "npm:third", Some(7)))
            .await
            .ok()
            .clone();
        assert_eq!(again["accepted"], 1);
        laptop.report(&app, with(0, "npm:fourth", Some(8))).await.ok();
        assert_eq!(of_key(&app, "npm:fourth").await["instances"], 1);
        app.kernel.stop().await;
    });
}

/// Proves IN-4, IN-5, IN-6.
#[test]
fn a_standing_is_an_admins_and_no_report_raises_it() {
    each("inventory_standing", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let found = json!([
            server("github", "npm:github", false),
            server("shell", "cmd:hmac:00112233445566778899aabbccddeeff", true),
        ]);
        laptop.has(&app, "ada", &found).await.ok();
        let github = of_key(&app, "npm:github").await;
        assert_eq!(github["standing"], "shadow");
        let shell = of_key(&app, "cmd:hmac:00112233445566778899aabbccddeeff").await;
        let approve = |days: i64| json!({ "standing": "approved", "expiresAt": in_days(&app, days) });
        decide(&app, &shell, approve(1)).await.refused(409, "conflict");
        decide(&app, &github, json!({ "standing": "approved" }))
            .await
            .refused(422, "invalid_definition");
        decide(&app, &github, approve(367))
            .await
            .refused(422, "invalid_definition");
        let done = decide(&app, &github, approve(10)).await.ok().clone();
        assert_eq!(done["server"]["standing"], "approved");
        // A second server of that name, on the same and on another machine, is another server.
        let other = Machine::new(&app).await;
        let mixed = json!([
            server("github", "npm:evil-github", false),
            server("github-2", "npm:github", true)
        ]);
        other.has(&app, "eve", &mixed).await.ok();
        assert_eq!(of_key(&app, "npm:evil-github").await["standing"], "shadow");
        let github = of_key(&app, "npm:github").await;
        assert_eq!(
            (&github["standing"], &github["name"]),
            (&json!("approved"), &json!("github"))
        );
        assert_eq!(
            (&github["devices"], &github["weakInstances"]),
            (&json!(2), &json!(1))
        );
        let path = format!("{SERVERS}/{}/instances", github["id"].as_str().unwrap());
        let instances = app.get(&path).await.ok().clone();
        let stand = |device: &str| {
            let all = instances["instances"].as_array().unwrap();
            all.iter().find(|one| one["deviceId"] == device).unwrap()["standing"].clone()
        };
        assert_eq!(
            (stand(&laptop.id), stand(&other.id)),
            (json!("approved"), json!("shadow"))
        );
        decide(
            &app,
            &of_key(&app, "npm:evil-github").await,
            json!({ "standing": "denied" }),
        )
        .await
        .ok();
        other
            .has(&app, "eve", &json!([server("fine", "npm:evil-github", false)]))
            .await
            .ok();
        assert_eq!(of_key(&app, "npm:evil-github").await["standing"], "denied");
        assert_eq!(servers(&app, "?standing=denied").await.len(), 1);
        app.advance(10 * 86_400);
        assert_eq!(of_key(&app, "npm:github").await["standing"], "shadow");
        assert_eq!(servers(&app, "?standing=approved").await.len(), 0);
        let kinds: Vec<String> = app.events(0).await.into_iter().map(|(kind, _)| kind).collect();
        let told = |kind: &str| kinds.iter().filter(|one| *one == kind).count();
        assert_eq!(told("inventory.mcp_server.discovered"), 3);
        assert_eq!(told("inventory.mcp_server.standing_changed"), 2);
        app.kernel.stop().await;
    });
}

#[test]
fn lists_are_narrowed_and_say_how_old_they_are() {
    each("inventory_lists", |app: Arc<App>| async move {
        let empty = app.get(SERVERS).await.ok().clone();
        assert_eq!(
            empty["dataAge"],
            json!({ "devicesReporting": 0, "devicesKnown": 0, "notKept": 0, "full": [] })
        );
        let (one, _silent) = (Machine::new(&app).await, Machine::new(&app).await);
        let mut remote = server("Web_1", "url:https://acme.example/mcp", false);
        (remote["transport"], remote["versionPin"]) = (json!("http"), json!("none"));
        let found = json!([server("files", "npm:files", false), remote]);
        one.has(&app, "ada", &found).await.ok();
        for (query, many) in [
            ("?client=claude_code", 2),
            ("?client=cursor", 0),
            ("?transport=http", 1),
            ("?versionPin=exact", 1),
            ("?query=FILES", 1),
            ("?query=web_1", 1),
            ("?query=web%251", 0),
            ("?query=%25", 0),
        ] {
            assert_eq!(servers(&app, query).await.len(), many, "{query}");
        }
        let first = app.get(&format!("{SERVERS}?limit=1")).await.ok().clone();
        let cursor = first["nextCursor"].as_str().unwrap();
        let second = app
            .get(&format!("{SERVERS}?limit=1&cursor={cursor}"))
            .await
            .ok()
            .clone();
        assert_eq!(second["servers"][0]["key"], "npm:files");
        app.advance(8 * 86_400);
        let summary = app.get("/inventory/summary").await.ok().clone();
        assert_eq!(
            summary["dataAge"],
            json!({ "oldestSeconds": 8 * 86_400, "devicesReporting": 0, "devicesKnown": 2, "notKept": 0, "full": [] })
        );
        assert_eq!(
            summary["servers"],
            json!([{ "standing": "shadow", "servers": 2 }])
        );
        assert_eq!(
            summary["clients"],
            json!([{ "client": "claude_code", "devices": 1, "incompleteSections": 0 }])
        );
        app.kernel.stop().await;
    });
}

#[test]
fn what_is_no_report_is_refused_and_a_device_that_waits_reports_nothing() {
    each("inventory_refused", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let good = report(
            &app,
            0,
            &json!([section("ada", &json!([server("s", "npm:s", false)]), true)]),
        );
        for (pointer, value) in [
            ("/sections/0/digest", json!(format!("sha256:{}", "0".repeat(64)))),
            ("/sections/0/complete", json!(false)),
            ("/sections/0/client", json!("another")),
            ("/sections/0/observations/0/place/path", json!("/home/ada/plan")),
            ("/sections/0/observations/0/kind", json!("prompt")),
            ("/scanId", json!("")),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            laptop.report(&app, bad).await.refused(400, "invalid_request");
        }
        let mut large = good.clone();
        large["scanId"] = json!("x".repeat(4 << 20));
        laptop.report(&app, large).await.refused(413, "payload_too_large");
        assert_eq!(servers(&app, "").await.len(), 0);
        let (_, secret) = crate::areas::fleet::enrolment_token(&app, json!({})).await;
        let fresh = crate::areas::fleet::enrol(&app, &secret).await;
        fresh.report(&app, good).await.refused(409, "conflict");
        app.kernel.stop().await;
    });
}

provost_kernel::statements! {
    /// What is left.
    LEFT = unscoped("a test") "SELECT key FROM inventory_servers UNION ALL SELECT key FROM inventory_assets ORDER BY key";
}

pub async fn prune(app: &App) {
    app.kernel.keep_time().await.unwrap();
    background::retain(&app.kernel).await.unwrap();
}

#[test]
fn what_no_device_has_is_forgotten_and_what_somebody_decided_about_is_not() {
    each("inventory_forgotten", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let found = json!([
            server("a", "npm:a", false),
            server("b", "npm:b", false),
            skill("pdf", "a"),
        ]);
        laptop.has(&app, "ada", &found).await.ok();
        decide(
            &app,
            &of_key(&app, "npm:b").await,
            json!({ "standing": "denied" }),
        )
        .await
        .ok();
        laptop.has(&app, "ada", &json!([])).await.ok();
        prune(&app).await;
        assert_eq!(servers(&app, "").await.len(), 2);
        app.advance(91 * 86_400);
        prune(&app).await;
        // By then no token of the test works any more.
        let left = app
            .kernel
            .read_system(|tx| tx.query(&LEFT, params![], |row| row.get::<String>(0)));
        assert_eq!(left.await.unwrap(), ["npm:b"]);
        app.kernel.stop().await;
    });
}

/// A home full of what must never leave it.
const CANARIES: [&str; 5] = [
    "sk-ant-api03-CaNaRyCaNaRy0123456789",
    "ghp_CaNaRyCaNaRyCaNaRy0123456789abcdef",
    "canary-prompt-buy-the-company",
    "canary-project-merger",
    "canary.customer@example.com",
];

/// Proves IN-7.
#[test]
fn no_value_of_a_home_is_in_a_report_an_answer_or_a_row() {
    each("inventory_canaries", |app: Arc<App>| async move {
        let folder = std::env::temp_dir().join(format!(
            "provost-canaries-{}-{}",
            std::process::id(),
            crate::support::fresh_key()
        ));
        let home = folder.join("home/ada");
        let project = home.join("work/canary-project-merger");
        std::fs::create_dir_all(home.join(".claude/projects/x")).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        let [key, token, prompt, _, mail] = CANARIES;
        let settings = json!({
            "mcpServers": { "files": { "command": "npx", "args": ["-y", "@acme/files@1.0.0", "--for", mail, prompt], "env": { "API_KEY": key } },
                "web": { "url": format!("https://mcp.acme.example/mcp?token={token}"), "headers": { "Authorization": format!("Bearer {token}") } } },
            "projects": { project.to_str().unwrap(): { "mcpServers": { "p": { "command": "sh", "args": ["-c", format!("echo {prompt} | curl {mail}")] } } } },
            "oauthAccount": { "emailAddress": mail },
        });
        std::fs::write(home.join(".claude.json"), settings.to_string()).unwrap();
        std::fs::write(home.join(".claude/projects/x/s.jsonl"), prompt).unwrap();
        std::fs::write(
            project.join(".mcp.json"),
            format!("{{\"mcpServers\": {{\"broken\": \"{token}"),
        )
        .unwrap();
        let machine = provost_inventory::Machine {
            root: &folder,
            home: &home,
            platform: Platform::Linux,
            stop: &|| false,
        };
        let found = scan(&machine, &InventoryKey::new(&[7; 32])).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let times = (app.now(), app.now());
        let sent = Report::of("scan-1".into(), times, &[found], &BTreeMap::new());
        let mut said = serde_json::to_string(&sent).unwrap();
        let laptop = Machine::new(&app).await;
        laptop
            .report(&app, serde_json::to_value(&sent).unwrap())
            .await
            .ok();
        // And an agent that is not ours writes values where names belong.
        let mut bad = server(token, &format!("url:https://acme.example/{token}"), false);
        bad["place"] = json!({ "class": "/home/ada/canary-project-merger/.mcp.json", "path": PATH });
        bad["argShapes"] = json!([prompt, format!("--key={key}")]);
        bad["envNames"] = json!([key]);
        bad["version"] = json!(token);
        serde_json::from_value::<Sighting>(bad.clone()).unwrap();
        laptop.has(&app, "eve", &json!([bad])).await.ok();
        for path in [
            SERVERS,
            "/inventory/assets",
            "/inventory/summary",
            "/events?limit=100",
            "/audit/events?limit=100",
        ] {
            said += &app.get(path).await.text();
        }
        let listed = servers(&app, "").await;
        assert!(listed.len() >= 3);
        for one in listed {
            let path = format!("{SERVERS}/{}/instances", one["id"].as_str().unwrap());
            said += &app.get(&path).await.ok().to_string();
        }
        said += &held(&app, &laptop).await.to_string();
        for canary in CANARIES {
            assert!(!said.contains(canary), "{canary} left the home: {said}");
        }
        app.kernel.stop().await;
    });
}
