//! Ten thousand secrets, prompts and names in a home: none of them is in what the agent's scan sends, in an answer, or in the store.

use super::inventory::servers;
use crate::areas::fleet::Machine;
use crate::areas::inventory::SERVERS;
use crate::policy::decisions;
use crate::support::{App, each};
use provost_areas_fleet::inventory::join_uses;
use provost_areas_policy::history::count_values;
use provost_inventory::wire::Report;
use provost_inventory::{InventoryKey, Platform, scan};
use provost_kernel::db::Location;
use provost_kernel::{params, statements};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// How each canary begins; nothing else has it.
const CANARY: &str = "cnry-q7w2";
/// How many are planted at least.
const PLANTED: usize = 10_000;
const PROJECTS: usize = 40;

/// Makes canaries, each another one and shaped like a key.
#[derive(Default)]
struct Planter(Vec<String>);

impl Planter {
    fn one(&mut self) -> String {
        // No two neighbours look alike.
        let number = (self.0.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let canary = format!("{CANARY}-{number:016x}");
        self.0.push(canary.clone());
        canary
    }

    /// Lines that somebody typed.
    fn lines(&mut self, count: usize) -> String {
        let mut text = String::new();
        for _ in 0..count {
            writeln!(
                text,
                r#"{{"type":"user","text":"please look at {}"}}"#,
                self.one()
            )
            .unwrap();
        }
        text
    }

    /// A server with a secret in each place that can hold one.
    fn server(&mut self, number: usize) -> Value {
        match number % 3 {
            0 => json!({
                "type": "http", "url": format!("https://mcp-{number}.acme.example/mcp?key={}", self.one()),
                "headers": { "Authorization": format!("Bearer {}", self.one()), "X-Api-Key": self.one() },
            }),
            1 => json!({
                "command": "npx",
                "args": ["-y", format!("@acme/server-{number}@1.0.0"), "--token", self.one(), format!("--key={}", self.one())],
                "env": { "ACME_KEY": self.one(), "ACME_USER": self.one() },
            }),
            _ => json!({
                "command": "sh",
                "args": ["-c", format!("curl -H 'X-Key: {}' https://ada:{}@acme.example | server", self.one(), self.one())],
            }),
        }
    }

    /// A home as a developer has after some years.
    fn home(&mut self, home: &Path) {
        let mut projects = serde_json::Map::new();
        for number in 0..PROJECTS {
            let place = match number % 2 {
                0 => format!("work/{}-{number}", self.one()),
                _ => format!("work/{}/shown-{number}", self.one()),
            };
            let project = home.join(&place);
            let servers = json!({ "mcpServers": { format!("of-project-{number}"): self.server(number) } });
            write(&project.join(".mcp.json"), &servers.to_string());
            write(&project.join("CLAUDE.md"), &self.lines(20));
            let session = format!(".claude/projects/{number}/session.jsonl");
            write(&home.join(session), &self.lines(220));
            let history = json!({ "history": [self.one(), self.one()] });
            // As its machine calls it, whatever the folder is in which the machine lies here.
            projects.insert(format!("/home/ada/{place}"), history);
        }
        let named = self.one();
        let mut servers: serde_json::Map<String, Value> = (0..25)
            .map(|number| (format!("of-user-{number}"), self.server(number)))
            .collect();
        // A name that looks like a path, and a file that ends in the middle.
        servers.insert(format!("/home/ada/{named}"), self.server(1));
        let claude = json!({ "mcpServers": servers, "projects": projects, "oauthAccount": { "emailAddress": self.one() } });
        write(&home.join(".claude.json"), &claude.to_string());
        let broken = format!("{{\"mcpServers\": {{\"broken\": \"{}", self.one());
        write(&home.join(".cursor/mcp.json"), &broken);
        let settings = json!({
            "env": { "ANTHROPIC_API_KEY": format!("sk-ant-api03-{}", self.one()), "HTTPS_PROXY": format!("http://ada:{}@proxy.acme.example", self.one()) },
            "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": format!("guard --key {}", self.one()) }] }] },
            "permissions": { "allow": [format!("Bash(curl {}:*)", self.one())] },
        });
        write(&home.join(".claude/settings.json"), &settings.to_string());
        let codex = format!(
            "[mcp_servers.search]\ncommand = \"uvx\"\nargs = [\"acme-search\", \"{}\"]\n\n[mcp_servers.search.env]\nSEARCH_KEY = \"{}\"\n",
            self.one(),
            self.one()
        );
        write(&home.join(".codex/config.toml"), &codex);
        write(&home.join(".codex/history.jsonl"), &self.lines(200));
        for number in 0..60 {
            let text = format!(
                "---\nname: skill-{number}\ndescription: A skill.\n---\n\n{}",
                self.lines(5)
            );
            write(
                &home.join(format!(".claude/skills/skill-{number}/SKILL.md")),
                &text,
            );
        }
    }
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

statements! {
    /// What is kept of devices, of what they have and of what was used, with the texts of all entries and events.
    KEPT = unscoped("a test") "SELECT facts || ' ' || ident || ' ' || account || ' ' || COALESCE(configured_name, '') || ' ' || COALESCE(project_name, '') FROM inventory_observations UNION ALL SELECT key || ' ' || name || ' ' || search FROM inventory_servers UNION ALL SELECT key || ' ' || name FROM inventory_assets UNION ALL SELECT faults || ' ' || account FROM inventory_sections UNION ALL SELECT name FROM inventory_uses ORDER BY 1";
}

/// Proves IN-7, IN-11.
#[test]
fn of_ten_thousand_planted_secrets_none_leaves_the_home() {
    each("inventory_planted", |app: Arc<App>| async move {
        let folder = std::env::temp_dir().join(format!(
            "provost-planted-{}-{}",
            std::process::id(),
            crate::support::fresh_key()
        ));
        let home = folder.join("home/ada");
        let mut gardener = Planter::default();
        gardener.home(&home);
        let planted = gardener.0;
        assert!(planted.len() > PLANTED, "{}", planted.len());
        let machine = provost_inventory::Machine {
            root: &folder,
            home: &home,
            platform: Platform::Linux,
            stop: &|| false,
        };
        // Names of projects are shown, and half of the projects have one: the others are called as a secret is.
        app.write(
            "PATCH",
            "/automation/settings",
            json!({ "fleet": { "privacy": { "projectNames": "show" } }, "confirm": true }),
        )
        .await
        .ok();
        let found = scan(&machine, &InventoryKey::new(&[7; 32]))
            .unwrap()
            .name_projects();
        std::fs::remove_dir_all(&folder).unwrap();
        let sent = Report::of(
            "scan-1".into(),
            (app.now(), app.now()),
            &[found],
            &BTreeMap::new(),
        );
        let mut said = serde_json::to_string(&sent).unwrap();
        for number in 0..PROJECTS {
            let name = format!("\"of-project-{number}\"");
            assert!(said.contains(&name), "the project of {name} was not read");
            let folder = format!("\"projectName\":\"shown-{number}\"");
            assert_eq!(said.contains(&folder), number % 2 == 1, "{folder}");
        }
        let laptop = Machine::new(&app).await;
        let taken = laptop.report(&app, serde_json::to_value(&sent).unwrap()).await;
        said += &taken.ok().to_string();
        // One is named in an event, where a client has a key for the name of a server.
        let attributes =
            json!({ "tool.id": "read", "mcp.server_id": format!("ghp_{}", "CaNaRy0123".repeat(3)) });
        decisions::decide(&app, &[decisions::call(&attributes)]).await;
        count_values(&app.kernel).await.unwrap();
        join_uses(&app.kernel).await.unwrap();
        let inventory = format!("/devices/{}/inventory?limit=100", laptop.id);
        let (mut seen, mut rest) = (0, String::new());
        loop {
            let page = app.get(&format!("{inventory}{rest}")).await.ok().clone();
            seen += page["observations"].as_array().unwrap().len();
            said += &page.to_string();
            let Some(cursor) = page["nextCursor"].as_str() else {
                break;
            };
            rest = format!("&cursor={cursor}");
        }
        assert!(seen > 150, "{seen}");
        for path in [
            "/inventory/assets?limit=100",
            "/inventory/summary",
            "/inventory/uses",
            "/events?limit=100",
            "/audit/events?limit=100",
        ] {
            said += &app.get(path).await.text();
        }
        assert!(said.contains("inventory.credential.found"));
        for one in servers(&app, "?limit=100").await {
            said += &one.to_string();
            let path = format!("{SERVERS}/{}/instances", one["id"].as_str().unwrap());
            said += &app.get(&path).await.ok().to_string();
        }
        let kept = app
            .kernel
            .read_system(|tx| tx.query(&KEPT, params![], |row| row.get::<String>(0)));
        said += &kept.await.unwrap().join("\n");
        assert!(!said.contains("CaNaRy"), "the name in an event is kept");
        if let Location::Sqlite(path) = app.location() {
            for end in ["", "-wal"] {
                let file = format!("{}{end}", path.display());
                said += &String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default());
            }
        }
        assert!(!said.contains(CANARY), "a planted secret left the home");
        // A digest without a key is as good as the secret to whoever can guess it.
        let digests: BTreeSet<&str> = said
            .split(|c: char| !c.is_ascii_hexdigit())
            .filter(|run| run.len() == 64)
            .collect();
        assert!(digests.len() > 60, "{}", digests.len());
        let hashed =
            |canary: &&String| digests.contains(provost_policy::sha256_hex(canary.as_bytes()).as_str());
        let out: Vec<&String> = planted.iter().filter(hashed).collect();
        assert!(out.is_empty(), "{out:?}");
        app.kernel.stop().await;
    });
}
