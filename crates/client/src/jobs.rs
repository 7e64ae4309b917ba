//! The list of commands by what one wants to do: the first thing that `provost --help` shows.

use clap::Command;
use std::fmt::Write as _;

/// The jobs, and the commands for each. A command that stands nowhere is shown last.
const JOBS: [(&str, &[&str]); 7] = [
    (
        "Begin",
        &[
            "demo", "scan", "login", "logout", "whoami", "status", "doctor", "token", "profile",
        ],
    ),
    (
        "Policies, and what they would do",
        &[
            "policies",
            "content-policies",
            "access-policies",
            "resource-policies",
            "skill-acls",
            "approvals",
            "approval-routes",
            "violations",
            "backtests",
            "history",
            "hook",
            "policy-authority",
            "policy-references",
            "subjects",
        ],
    ),
    (
        "People, programs and their access",
        &[
            "users",
            "groups",
            "directory",
            "identity-links",
            "service-accounts",
            "workload-trusts",
            "devices",
            "enrolment-tokens",
            "agent",
            "inventory",
            "mcp-clients",
            "mcp-sessions",
        ],
    ),
    (
        "What is handed out",
        &[
            "skills",
            "managed-config",
            "resources",
            "resource-gateways",
            "resource-credentials",
        ],
    ),
    ("What happened", &["audit", "events", "report", "otlp", "export"]),
    (
        "Run a server",
        &[
            "serve", "init", "recover", "config", "keys", "store", "restore", "settings",
        ],
    ),
    ("This program", &["capabilities", "mcp", "openapi", "completions"]),
];
/// The width of the names, and of a whole line.
const NAMES: usize = 22;
const LINE: usize = 100;

/// Arranges the commands in the help of the whole program.
pub fn arranged(root: Command) -> Command {
    let mut text = String::new();
    let mut rest: Vec<&Command> = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .collect();
    for (job, names) in JOBS {
        let of_job: Vec<&Command> = names
            .iter()
            .filter_map(|name| {
                let place = rest.iter().position(|command| command.get_name() == *name)?;
                Some(rest.remove(place))
            })
            .collect();
        section(&mut text, job, &of_job);
    }
    section(&mut text, "More", &rest);
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}{{after-help}}"
    );
    root.help_template(template)
}

fn section(text: &mut String, job: &str, commands: &[&Command]) {
    if commands.is_empty() {
        return;
    }
    let _ = writeln!(text, "{job}:");
    for command in commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let about = about.lines().next().unwrap_or_default().replace(['{', '}'], "");
        let about = about.trim_start_matches("Server: ");
        let mut line = format!("  {:NAMES$}", command.get_name());
        for word in about.split(' ') {
            if line.chars().count() + word.chars().count() > LINE {
                let _ = writeln!(text, "{}", line.trim_end());
                line = " ".repeat(NAMES + 2);
            }
            line.push_str(word);
            line.push(' ');
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_under_one_job() {
        let root = crate::add_to(
            Command::new("provost")
                .about("x")
                .subcommand(Command::new("serve").about("Run it")),
        );
        let help = arranged(root.clone()).render_help().to_string();
        for command in root.get_subcommands() {
            let name = command.get_name();
            let is_its = |line: &&str| {
                line.strip_prefix("  ")
                    .is_some_and(|line| line.split(' ').next() == Some(name))
            };
            assert_eq!(help.lines().filter(is_its).count(), 1, "{name}\n{help}");
        }
        assert!(help.find("Begin:") < help.find("Run a server:"), "{help}");
        assert!(
            !help.contains("\nMore:"),
            "a job is missing for a command\n{help}"
        );
        assert!(help.lines().all(|line| line.chars().count() <= LINE), "{help}");
    }
}
