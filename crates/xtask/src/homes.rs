//! Homes with AI clients in them, for tasks that look at what a scan finds: nobody's, and made anew each time.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failure::{Context, Outcome};
use crate::process;

/// What stands in the fixture for the path of the home.
const HOME: &str = "HOME/";

/// How much is in a crowded home: fleet.md's figure is about so much.
pub const PROJECTS: usize = 40;
pub const SERVERS: usize = 25;
pub const SKILLS: usize = 60;

/// Writes the home in which each of eleven clients has what only it has, and returns where it is.
pub fn of_many_clients(folder: &Path) -> Outcome<PathBuf> {
    let home = folder.join("home");
    copy(
        &process::root().join("crates/xtask/clients/scanners/home"),
        &home,
        &home,
    )?;
    Ok(home)
}

fn copy(from: &Path, to: &Path, home: &Path) -> Outcome {
    std::fs::create_dir_all(to).context(format_args!("cannot make {}", to.display()))?;
    for entry in std::fs::read_dir(from).context(from.display())? {
        let entry = entry.context(from.display())?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target, home)?;
        } else {
            let text = std::fs::read_to_string(&source).context(source.display())?;
            write(&target, &text.replace(HOME, &format!("{}/", home.display())))?;
        }
    }
    Ok(())
}

/// Writes a home with so much in it as a developer has after some years. Each value that nobody but its owner should see comes from
/// `secret`: keys, prompts, and the names of projects.
pub fn crowded(folder: &Path, secret: &mut dyn FnMut() -> String) -> Outcome<PathBuf> {
    let home = folder.join("crowded");
    let mut projects = serde_json::Map::new();
    for number in 0..PROJECTS {
        let project = home.join("work").join(format!("{}-{number}", secret()));
        let servers = json!({ "mcpServers": { format!("of-project-{number}"): server(number, secret) } });
        write(&project.join(".mcp.json"), &servers.to_string())?;
        write(&project.join("CLAUDE.md"), &lines(20, secret))?;
        let session = format!(".claude/projects/{number}/session.jsonl");
        write(&home.join(session), &lines(220, secret))?;
        projects.insert(
            project.display().to_string(),
            json!({ "history": [secret(), secret()] }),
        );
    }
    let servers: serde_json::Map<String, Value> = (0..SERVERS)
        .map(|number| (format!("of-user-{number}"), server(number, secret)))
        .collect();
    let claude =
        json!({ "mcpServers": servers, "projects": projects, "oauthAccount": { "emailAddress": secret() } });
    write(&home.join(".claude.json"), &claude.to_string())?;
    let settings = json!({
        "env": { "ANTHROPIC_API_KEY": secret(), "HTTPS_PROXY": format!("http://ada:{}@proxy.acme.example", secret()) },
        "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": format!("guard --key {}", secret()) }] }] },
        "permissions": { "allow": [format!("Bash(curl {}:*)", secret())] },
    });
    write(&home.join(".claude/settings.json"), &settings.to_string())?;
    write(&home.join(".codex/config.toml"), &codex(secret))?;
    write(
        &home.join(".codex/auth.json"),
        &json!({ "OPENAI_API_KEY": secret() }).to_string(),
    )?;
    write(&home.join(".codex/history.jsonl"), &lines(200, secret))?;
    for number in 0..SKILLS {
        let skill = home.join(format!(".claude/skills/skill-{number}"));
        let text = format!(
            "---\nname: skill-{number}\ndescription: A skill.\n---\n\n{}",
            lines(5, secret)
        );
        write(&skill.join("SKILL.md"), &text)?;
    }
    Ok(home)
}

/// A server with a secret in each place that can hold one.
fn server(number: usize, secret: &mut dyn FnMut() -> String) -> Value {
    match number % 3 {
        0 => json!({
            "type": "http", "url": format!("https://mcp-{number}.acme.example/mcp?key={}", secret()),
            "headers": { "Authorization": format!("Bearer {}", secret()), "X-Api-Key": secret() },
        }),
        1 => json!({
            "command": "npx", "args": ["-y", format!("@acme/server-{number}@1.0.0"), "--token", secret(), format!("--key={}", secret())],
            "env": { "ACME_KEY": secret(), "ACME_USER": secret() },
        }),
        _ => json!({
            "command": "sh", "args": ["-c", format!("curl -H 'X-Key: {}' https://ada:{}@acme.example | server", secret(), secret())],
        }),
    }
}

fn codex(secret: &mut dyn FnMut() -> String) -> String {
    format!(
        "approval_policy = \"on-request\"\n\n[mcp_servers.search]\ncommand = \"uvx\"\nargs = [\"acme-search\", \"{}\"]\n\n\
         [mcp_servers.search.env]\nSEARCH_KEY = \"{}\"\n\n[mcp_servers.wiki]\nurl = \"https://wiki.acme.example/mcp\"\n\
         http_headers = {{ Authorization = \"Bearer {}\" }}\n",
        secret(),
        secret(),
        secret()
    )
}

/// So many lines that somebody typed.
fn lines(count: usize, secret: &mut dyn FnMut() -> String) -> String {
    let mut text = String::new();
    for _ in 0..count {
        // Writing to a String cannot fail.
        let _ = writeln!(text, r#"{{"type":"user","text":"please look at {}"}}"#, secret());
    }
    text
}

fn write(file: &Path, text: &str) -> Outcome {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder).context(format_args!("cannot make {}", folder.display()))?;
    std::fs::write(file, text).context(format_args!("cannot write {}", file.display()))
}
