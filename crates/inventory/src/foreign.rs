//! Reports of other scanners, read for what runs: of a server its key and its name are taken, and of everything else nothing.
//!
//! Such a report has what stands in configurations, values of variables and contents of files among it. So it is read where it was made, and
//! only what this module returns is sent anywhere. It speaks of another machine, maybe: no path of it is looked up on this one, and a server
//! that only its program's content would name is left out.

use crate::client::Client;
use crate::disk::Disk;
use crate::fingerprint::InventoryKey;
use crate::identity::{Ground, Manifests};
use crate::mounts::Mounts;
use crate::report::{Scope, ServerFacts};
use crate::server;
use crate::wire::{is_server_key, is_shown_name};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// A place below which there is nothing.
const NOWHERE: &str = "/dev/null/nowhere";

/// What another scanner found, without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignServers {
    /// Keys with the names that clients have for them, each once.
    pub servers: BTreeSet<(String, String)>,
    /// The keys among them that do not say wholly what runs somewhere: nothing is approved by them.
    pub weak: BTreeSet<String>,
    /// How many servers are left out: their key would not say what runs, or they have no name that can be shown.
    pub left_out: usize,
}

/// Reads what `snyk-agent-scan inspect --json` wrote: an object with a member for each folder of a client. `None` where it is something
/// else.
pub fn snyk(report: &Value, key: &InventoryKey) -> Option<ForeignServers> {
    let (stop, watch) = (|| true, |_: &Path| false);
    let disk = Disk::new(&stop, &watch, Mounts::listed(b""));
    let manifests = Manifests::default();
    let nowhere = Path::new(NOWHERE);
    let ground = Ground {
        disk: &disk,
        root: nowhere,
        home: nowhere,
        key,
        base: (nowhere, nowhere),
        manifests: &manifests,
    };
    let mut found = ForeignServers {
        servers: BTreeSet::new(),
        weak: BTreeSet::new(),
        left_out: 0,
    };
    for folder in report.as_object()?.values() {
        for one in folder["servers"].as_array()? {
            match keyed(one, &ground) {
                Some((facts, name)) => {
                    if facts.weak {
                        found.weak.insert(facts.key.clone());
                    }
                    found.servers.insert((facts.key, name));
                }
                None => found.left_out += 1,
            }
        }
    }
    Some(found)
}

fn keyed(one: &Value, ground: &Ground<'_>) -> Option<(ServerFacts, String)> {
    let name = one["name"].as_str().filter(|name| is_shown_name(name))?;
    // Its members are those of Claude Code, whose form most clients have.
    let facts = server::facts(name, &one["server"], Scope::User, Client::ClaudeCode, ground)?;
    is_server_key(&facts.key).then(|| (facts, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As Snyk Agent Scan 0.6.9 writes it.
    fn written(name: &str, server: &Value) -> Value {
        json!({ "name": name, "config_path": "/home/ada/.claude.json", "server": server, "signature": null,
            "error": { "message": "Skipped by user consent (MCP server was not contacted)", "category": "user_declined" } })
    }

    #[test]
    fn a_report_of_snyk_agent_scan_is_read_for_keys_and_names_alone() {
        let secret = "sk-ant-api03-CaNaRyCaNaRy0123456789";
        let started = |args: &[&str]| json!({ "command": "npx", "args": args, "type": "stdio", "env": { "KEY": secret }, "binary_identifier": null });
        let servers = [
            written("files", &started(&["-y", "@acme/files@1.2.3", "--key", secret])),
            written(
                "tickets",
                &json!({ "url": format!("https://Tickets.acme.example:443/mcp?key={secret}"), "type": "http",
                    "headers": { "Authorization": secret } }),
            ),
            // A pipeline, a program by its path, a name that is none, and no server.
            written(
                "shell",
                &json!({ "command": "sh", "args": ["-c", format!("echo {secret} | server")], "type": "stdio" }),
            ),
            written(
                "bash",
                &json!({ "command": "/bin/sh", "args": [], "type": "stdio" }),
            ),
            written(secret, &started(&["-y", "@acme/files"])),
            written("odd", &json!(7)),
        ];
        let skills = json!([{ "name": "tidy", "files": [{ "path": "SKILL.md", "content": secret }] }]);
        let report = json!({ "/home/ada/.claude": { "client": "claude code", "path": "/home/ada/.claude", "servers": servers,
            "skills": skills, "error": null }, "/home/ada/.codex": { "client": "codex", "servers": [servers[0]], "skills": [] } });
        let found = snyk(&report, &InventoryKey::new(&[7; 32])).unwrap();
        let pairs: Vec<(&str, &str)> = found
            .servers
            .iter()
            .map(|(key, name)| (key.as_str(), name.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("npm:@acme/files", "files"),
                ("url:https://tickets.acme.example/mcp", "tickets")
            ]
        );
        assert_eq!(found.left_out, 4);
        // A part of its address is hidden.
        assert_eq!(
            found.weak,
            BTreeSet::from(["url:https://tickets.acme.example/mcp".to_owned()])
        );
        let turned = [
            json!({ "command": "npx", "args": ["-y", "a"], "env": { "NODE_OPTIONS": "x" } }),
            json!({ "command": "npx", "args": ["--registry=http://evil.example", "b"] }),
            json!({ "command": "docker", "args": ["run", "-v", "/:/h", "acme/c"] }),
            json!({ "url": "http://localhost:3000" }),
            json!({ "command": "npx", "args": ["-y", "@acme/files"] }),
        ];
        let turned: Vec<Value> = turned.iter().map(|server| written("one", server)).collect();
        let found = snyk(
            &json!({ "/home/ada": { "servers": turned } }),
            &InventoryKey::new(&[7; 32]),
        );
        let found = found.unwrap();
        assert_eq!((found.servers.len(), found.weak.len(), found.left_out), (5, 4, 0));
        for other in [json!([]), json!({ "a": 1 }), json!("text")] {
            assert_eq!(snyk(&other, &InventoryKey::new(&[7; 32])), None, "{other}");
        }
    }
}
