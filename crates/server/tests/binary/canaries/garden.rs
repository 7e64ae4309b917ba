//! A home in which eleven clients work, with something that nobody may read in each place that can hold it.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Projects of the home; every other one has a name that settings may show.
const PROJECTS: usize = 40;
/// Servers that Claude Code has for every project.
const SERVERS: usize = 25;
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Makes canaries: each another one, and as a key looks.
#[derive(Default)]
pub struct Garden(pub Vec<String>);

impl Garden {
    /// Returns a new one of a kind, which is a letter.
    pub fn one(&mut self, kind: char) -> String {
        let mut canary = format!("Cnry{kind}");
        // No two neighbours look alike; what it is made of is its number alone.
        let mut drawn = (self.0.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for _ in 0..24 {
            canary.push(char::from(
                LETTERS[usize::try_from(drawn >> 58).unwrap() % LETTERS.len()],
            ));
            drawn = drawn.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        }
        self.0.push(canary.clone());
        canary
    }

    fn value(&mut self) -> String {
        self.one('V')
    }

    /// Lines that somebody typed.
    fn talk(&mut self, count: usize) -> String {
        let mut text = String::new();
        for _ in 0..count {
            writeln!(
                text,
                r#"{{"type":"user","text":"please look at {}"}}"#,
                self.one('T')
            )
            .unwrap();
        }
        text
    }

    /// A server with a secret in each place that can hold one.
    fn server(&mut self, number: usize) -> Value {
        match number % 3 {
            0 => json!({
                "type": "http",
                "url": format!("https://mcp-{number}.acme.example/{}/mcp?key={}#{}", self.value(), self.value(), self.value()),
                "headers": { "Authorization": format!("Bearer {}", self.value()), "X-Api-Key": self.value() },
            }),
            1 => json!({
                "command": "npx",
                "args": ["-y", format!("@acme/server-{number}@1.0.0"), "--token", self.value(), format!("--key={}", self.value()), self.value()],
                "env": { "ACME_KEY": self.value(), "ACME_USER": self.one('N') },
            }),
            _ => json!({
                "command": "sh",
                "args": ["-c", format!("curl -H 'X-Key: {}' https://ada:{}@acme.example | server", self.value(), self.value())],
            }),
        }
    }

    /// Members `{name: server}` of all three kinds.
    fn servers(&mut self, of: &str, count: usize) -> Map<String, Value> {
        (0..count)
            .map(|number| (format!("of-{of}-{number}"), self.server(number)))
            .collect()
    }

    /// Plants a home.
    pub fn home(&mut self, home: &Path) {
        self.claude(home);
        self.codex(home);
        self.others(home);
        let person = format!(
            "[user]\n\tname = Ada {}\n\temail = {}@acme.test\n",
            self.one('N'),
            self.one('N')
        );
        write(&home.join(".gitconfig"), &person);
        write(&home.join(".bash_history"), &self.talk(20));
    }

    /// Projects, and what Claude Code and Claude Desktop have.
    fn claude(&mut self, home: &Path) {
        let mut projects = Map::new();
        for number in 0..PROJECTS {
            let place = match number % 2 {
                0 => format!("work/{}-{number}", self.one('F')),
                // A word, as somebody would call a project.
                _ => format!("work/{}/{}-{number}", self.one('F'), super::PROJECT),
            };
            let project = home.join(&place);
            write(
                &project.join(".mcp.json"),
                &json!({ "mcpServers": self.servers(&format!("project-{number}"), 1) }).to_string(),
            );
            write(&project.join("CLAUDE.md"), &self.talk(20));
            write(
                &home.join(format!(".claude/projects/{number}/session.jsonl")),
                &self.talk(220),
            );
            projects.insert(
                project.display().to_string(),
                json!({ "history": [self.one('T'), self.one('T')] }),
            );
        }
        let account = json!({ "emailAddress": format!("{}@acme.test", self.one('N')), "displayName": self.one('N'), "organizationName": self.one('N') });
        let mut servers = self.servers("user", SERVERS);
        // A name that is a path.
        servers.insert(format!("/home/ada/{}", self.one('F')), self.server(1));
        write(
            &home.join(".claude.json"),
            &json!({ "mcpServers": servers, "projects": projects, "oauthAccount": account }).to_string(),
        );
        let settings = json!({
            "env": { "ANTHROPIC_API_KEY": format!("sk-ant-api03-{}", self.value()), "HTTPS_PROXY": format!("http://ada:{}@proxy.acme.example", self.value()) },
            "apiKeyHelper": format!("echo {}", self.value()),
            "permissions": { "allow": [format!("Bash(curl {}:*)", self.value())], "additionalDirectories": [format!("/srv/{}", self.one('F'))] },
        });
        write(&home.join(".claude/settings.json"), &settings.to_string());
        write(&home.join(".claude/history.jsonl"), &self.talk(200));
        write(&home.join(".claude/CLAUDE.md"), &self.talk(20));
        for number in 0..60 {
            let text = format!(
                "---\nname: skill-{number}\ndescription: A skill.\n---\n\n{}",
                self.talk(5)
            );
            write(
                &home.join(format!(".claude/skills/skill-{number}/SKILL.md")),
                &text,
            );
        }
        let desktop = json!({ "mcpServers": self.servers("desktop", 3) });
        write(
            &home.join(".config/Claude/claude_desktop_config.json"),
            &desktop.to_string(),
        );
    }

    fn codex(&mut self, home: &Path) {
        let settings = format!(
            "approval_policy = \"on-request\"\n\n[mcp_servers.search]\ncommand = \"uvx\"\nargs = [\"acme-search\", \"{}\"]\n\n\
             [mcp_servers.search.env]\nSEARCH_KEY = \"{}\"\n\n[mcp_servers.wiki]\nurl = \"https://wiki.acme.example/mcp\"\n\
             http_headers = {{ Authorization = \"Bearer {}\" }}\n",
            self.value(),
            self.value(),
            self.value()
        );
        write(&home.join(".codex/config.toml"), &settings);
        let signed_in = json!({ "OPENAI_API_KEY": self.value(), "tokens": { "id_token": self.value(), "account_id": self.one('N') } });
        write(&home.join(".codex/auth.json"), &signed_in.to_string());
        write(&home.join(".codex/history.jsonl"), &self.talk(200));
        write(
            &home.join(".codex/sessions/2026/11/28/rollout-1.jsonl"),
            &self.talk(50),
        );
    }

    fn others(&mut self, home: &Path) {
        for (place, of) in [
            (".cursor/mcp.json", "cursor"),
            (".codeium/windsurf/mcp_config.json", "windsurf"),
            (".gemini/settings.json", "gemini"),
            (".copilot/mcp-config.json", "copilot"),
        ] {
            let settings = json!({ "mcpServers": self.servers(of, 3), "selectedAuthType": self.value() });
            write(&home.join(place), &settings.to_string());
        }
        write(&home.join(".gemini/tmp/1/chats/session-1.json"), &self.talk(50));
        let code = json!({ "servers": self.servers("vscode", 3), "inputs": [{ "id": "key", "password": self.value() }] });
        write(&home.join(".config/Code/User/mcp.json"), &code.to_string());
        write(
            &home.join(".config/Code/User/settings.json"),
            &json!({ "git.user": self.one('N'), "token": self.value() }).to_string(),
        );
        let zed = json!({ "context_servers": { "zedded": { "command": { "path": "npx", "args": ["acme-zed", self.value()], "env": { "KEY": self.value() } } } } });
        write(&home.join(".config/zed/settings.json"), &zed.to_string());
        let goose = format!(
            "GOOSE_MODE: auto\nextensions:\n  honk:\n    type: stdio\n    cmd: npx\n    args: ['acme-honk', '{}']\n    envs: {{KEY: '{}'}}\n    enabled: true\n",
            self.value(),
            self.value()
        );
        write(&home.join(".config/goose/config.yaml"), &goose);
        let open = json!({ "mcp": { "open": { "type": "local", "command": ["npx", "acme-open", self.value()], "environment": { "KEY": self.value() }, "enabled": true } } });
        write(&home.join(".config/opencode/opencode.json"), &open.to_string());
        let continued = format!(
            "name: Assistant\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: continued\n    command: npx\n    args: ['acme-continued', '{}']\n    env: {{KEY: '{}'}}\n",
            self.value(),
            self.value()
        );
        write(&home.join(".continue/config.yaml"), &continued);
        // A file that ends in the middle says nothing of what it holds.
        let broken = format!("{{\"mcpServers\": {{\"{}\": \"{}", self.value(), self.value());
        write(&home.join(".config/Code/User/profiles/1/mcp.json"), &broken);
    }

    /// Variables of the agent's own surroundings.
    pub fn surroundings(&mut self) -> BTreeMap<&'static str, String> {
        [
            "ANTHROPIC_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "NO_PROXY",
            "SSH_AUTH_SOCK",
            "USER",
        ]
        .map(|name| (name, self.one('E')))
        .into()
    }
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}
