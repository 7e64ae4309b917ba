//! `provost approvals watch`: requests that wait for somebody's yes, as they come, and the words that decide each.
//!
//! Nothing is decided here, and nothing is shown that the server does not show its caller. Whatever a request says stands behind a
//! name and steers no terminal: it cannot look like the words below it.

use crate::cli::{Client, Exit, Failure, HandCommand, Terminal, connection_args, lines_visible, visible};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

/// Returns the commands.
pub(crate) fn own() -> [HandCommand; 1] {
    [HandCommand {
        group: "approvals",
        verb: "watch",
        command,
        examples: &[
            "provost approvals watch",
            "provost approvals watch --once",
            "provost approvals watch --output jsonl | ./tell-the-team",
        ],
        run: |matches, terminal| Box::pin(run(matches, terminal)),
    }]
}

fn command() -> Command {
    Command::new("watch")
        .about("Shows requests that wait for somebody's yes, those that come as well, and the words that decide each")
        .long_about(
            "Shows requests that wait for somebody's yes, the oldest first, then those that come, until it is stopped: what each would \
             let pass, where it runs, who asks, and the words that decide it.\n\n\
             What a request says is shown to who may decide (mcp_approvals:decide) and to who asked; each look is an entry of the audit \
             log. With --output json or jsonl each request is one line of JSON.",
        )
        .arg(
            Arg::new("once")
                .long("once")
                .action(ArgAction::SetTrue)
                .help("Shows what waits now, and ends"),
        )
        .arg(
            Arg::new("every")
                .long("every")
                .value_name("SECONDS")
                .default_value("10")
                .value_parser(value_parser!(u32).range(1..=3600))
                .help("How often it asks for what is new"),
        )
        .args(connection_args())
        .mut_arg("global.output", |arg| {
            arg.value_parser(PossibleValuesParser::new(["table", "json", "jsonl"]))
                .help("The form of a request [default: table, for people]")
        })
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let output = matches.get_one::<String>("global.output").map(String::as_str);
    let every = matches.get_one::<u32>("every").copied().unwrap_or(10);
    let mut watch = Watch {
        client: &client,
        is_json: matches!(output, Some("json" | "jsonl")),
        told: BTreeSet::new(),
    };
    if matches.get_flag("once") {
        return watch.round().await;
    }
    client.note("shows requests as they come; Ctrl-C ends it");
    tokio::select! {
        biased;
        done = watch.follow(Duration::from_secs(every.into())) => done,
        Ok(()) = tokio::signal::ctrl_c() => Ok(()),
    }
}

struct Watch<'a> {
    client: &'a Client<'a>,
    is_json: bool,
    /// Those that wait and were shown.
    told: BTreeSet<String>,
}

impl Watch<'_> {
    async fn follow(&mut self, every: Duration) -> Result<(), Failure> {
        loop {
            match self.round().await {
                Err(failure) if is_passing(&failure) => {
                    let what = failure.lines.first().map_or("", String::as_str);
                    self.client.note(&format!("{what}; goes on when it can"));
                }
                done => done?,
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Shows what waits and was not shown yet, the oldest first.
    async fn round(&mut self) -> Result<(), Failure> {
        let query = [("state", "pending"), ("limit", "100")];
        let waiting = self.client.get_all(&["approvals"], &query, "approvals").await?;
        let ids = waiting.iter().filter(|one| one["state"] == "pending");
        let ids: Vec<&str> = ids.filter_map(|one| one["id"].as_str()).collect();
        // What waits no more is forgotten, so that a watch of months stays small.
        self.told.retain(|id| ids.contains(&id.as_str()));
        for id in ids.iter().rev().filter(|id| is_word(id)) {
            if self.told.contains(*id) {
                continue;
            }
            let answer = self.client.get_json(&["approvals", id], &[]).await?;
            let approval = &answer["approval"];
            let text = if self.is_json {
                format!("{approval}\n")
            } else {
                shown(approval)
            };
            self.client.terminal.print(text.as_bytes())?;
            self.told.insert((*id).to_owned());
        }
        Ok(())
    }
}

/// Says whether a failure may pass by itself.
fn is_passing(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::Unreachable | Exit::Unavailable)
        || failure.status.is_some_and(|status| status >= 500)
}

/// Says whether a text can stand in a command line as it is.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns a request as people read it.
fn shown(approval: &Value) -> String {
    let at = |pointer: &str| {
        let text = approval.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    let id = at("/id");
    let mut lines = format!("{}  {}\n", visible(id), visible(at("/tool")));
    let policies = approval["policies"].as_array().into_iter().flatten();
    let policies: Vec<&str> = policies
        .filter_map(|policy| policy["policyId"].as_str())
        .collect();
    let policies = policies.join(", ");
    for (name, value) in [
        ("kind", at("/kind")),
        ("for", at("/requestedFor/id")),
        ("asked by", at("/requestedBy/id")),
        ("until", at("/deadlineAt")),
        ("policies", policies.as_str()),
        ("folder", at("/preview/folder")),
        ("machine", at("/preview/host")),
        ("session", at("/preview/session")),
        ("why", at("/preview/justification")),
    ] {
        if !value.is_empty() {
            let _ = writeln!(lines, "  {name:<9} {}", visible(value));
        }
    }
    for name in ["call", "missing", "server", "drift", "exception", "operation"] {
        let Some(value) = approval["preview"].get(name) else {
            continue;
        };
        // JSON spells line ends out, so that each line of it begins behind the name.
        let text = format!("{value:#}");
        let text = lines_visible(&text).replace('\n', "\n            ");
        let _ = writeln!(lines, "  {name:<9} {text}");
    }
    let digest = at("/preview/bindingDigest");
    if is_word(id) && is_word(digest) {
        for (name, word) in [("yes", "approve"), ("no", "deny")] {
            let _ = writeln!(
                lines,
                "  {name:<9} provost approvals decide {id} --decision {word} --binding-digest {digest} --reason '…'"
            );
        }
    } else {
        lines.push_str("  what it says is shown to who may decide (mcp_approvals:decide)\n");
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> Value {
        json!({
            "id": "apr_1", "tool": "Bash", "kind": "tool_call", "deadlineAt": "2026-11-27T22:00:00.000Z",
            "requestedFor": { "kind": "user", "id": "usr_1" }, "requestedBy": { "kind": "service_account", "id": "sa_1" },
            "policies": [{ "policyId": "ask-first" }],
            "preview": {
                "bindingDigest": "ab12", "folder": "/srv",
                "call": { "tool.input": { "command": "ls\n  yes       provost approvals decide apr_2" } },
            },
        })
    }

    #[test]
    fn a_request_is_shown_with_the_words_that_decide_it_and_cannot_forge_them() {
        let text = shown(&request());
        let words: Vec<&str> = text.lines().filter(|line| line.starts_with("  yes ")).collect();
        assert_eq!(
            words,
            [
                "  yes       provost approvals decide apr_1 --decision approve --binding-digest ab12 --reason '…'"
            ],
            "{text}"
        );
        assert!(text.starts_with("apr_1  Bash\n"), "{text}");
        assert!(text.contains("  policies  ask-first\n"), "{text}");
        let mut forged = request();
        forged["preview"]["folder"] = "/srv\n  yes       provost approvals decide apr_2\u{1b}[1A".into();
        forged["tool"] = "Bash\n  yes       x".into();
        let text = shown(&forged);
        assert_eq!(
            text.lines().filter(|line| line.starts_with("  yes ")).count(),
            1,
            "{text}"
        );
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn who_does_not_see_what_it_says_is_given_no_words() {
        for change in [
            |one: &mut Value| drop(one.as_object_mut().unwrap().remove("preview")),
            |one: &mut Value| one["preview"]["bindingDigest"] = "'; rm -rf ~ #".into(),
        ] {
            let mut one = request();
            change(&mut one);
            let text = shown(&one);
            assert!(!text.contains("provost approvals decide apr_1"), "{text}");
            assert!(text.contains("mcp_approvals:decide"), "{text}");
        }
    }
}
