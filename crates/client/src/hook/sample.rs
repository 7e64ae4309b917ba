//! One event, given to a registered command line as the client would give it.

use provost_hooks::{Client, Moment, UNDECIDED};
use provost_words::time::Clock;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// Returns an event about a harmless call.
pub fn event(client: Client) -> String {
    let tool = match client {
        Client::ClaudeCode | Client::Codex => "Bash",
        Client::Gemini => "run_shell_command",
    };
    json!({
        "session_id": "provost-hook-doctor", "transcript_path": "/dev/null", "cwd": "/",
        "hook_event_name": Moment::PreTool.event_name(client), "tool_name": tool,
        "tool_input": { "command": "echo provost hook doctor" },
    })
    .to_string()
}

/// What a command line said, how it ended, and how long it took.
struct Said {
    status: ExitStatus,
    output: String,
    complaint: String,
    millis: u128,
}

/// Runs a command line through the shell, as the client would.
fn run(client: Client, line: &str, limit: Duration, clock: &dyn Clock) -> Result<Said, String> {
    let begun = clock.monotonic();
    let child = Command::new("/bin/sh")
        .args(["-c", line])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| format!("the registered command cannot be started: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read is judged by what it says.
        let _ = input.write_all(event(client).as_bytes());
    }
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if clock.monotonic().saturating_sub(begun) < limit => {
                thread::sleep(Duration::from_millis(2));
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "the registered command did not answer within {} s",
                    limit.as_secs()
                ));
            }
            Err(error) => return Err(format!("the registered command cannot be waited for: {error}")),
        }
    };
    let millis = clock.monotonic().saturating_sub(begun).as_millis();
    let (output, complaint) = outputs(&mut child);
    Ok(Said {
        status,
        output,
        complaint,
        millis,
    })
}

/// Runs a command line through the shell and returns what it said, for people.
///
/// Errors: it failed, or took longer than the client waits.
pub fn answered(client: Client, line: &str, limit: Duration, clock: &dyn Clock) -> Result<String, String> {
    let said = run(client, line, limit, clock)?;
    if said.status.code() != Some(0) {
        return Err(format!(
            "the registered command ended with {}: {}",
            said.status,
            said.complaint.trim()
        ));
    }
    decided(&said)
}

/// Runs a command line as [`answered`] does. A refusal in the hook's own words is an answer as well: whoever runs it here may have no token,
/// and that nothing passes then is what has to be shown.
///
/// Errors: it failed, was late, or nothing but the end of the line answered.
pub fn executed(client: Client, line: &str, limit: Duration, clock: &dyn Clock) -> Result<String, String> {
    let said = run(client, line, limit, clock)?;
    match said.status.code() {
        Some(0) => decided(&said),
        Some(2) if own_words(&said.complaint).is_some() => Ok(format!(
            "the registered command refuses for want of a decision in {} ms: {}",
            said.millis,
            own_words(&said.complaint).unwrap_or_default()
        )),
        _ => Err(format!(
            "the registered command ended with {}: {}",
            said.status,
            said.complaint.trim()
        )),
    }
}

/// Returns what the hook itself says when it refuses. Behind it the end of the line speaks as well, which speaks alone where the program could
/// not be started.
fn own_words(complaint: &str) -> Option<&str> {
    let said = complaint
        .lines()
        .filter_map(|line| line.strip_prefix("provost: "));
    said.map(str::trim)
        .find(|words| !words.is_empty() && *words != UNDECIDED)
}

fn decided(said: &Said) -> Result<String, String> {
    let answer: Value = serde_json::from_str(&said.output)
        .map_err(|_| "the registered command does not answer with JSON".to_owned())?;
    let note = answer["systemMessage"].as_str().unwrap_or_default();
    if note.starts_with("provost (monitor)") {
        return Err(format!("the registered command had no decision: {note}"));
    }
    let is_empty = answer == json!({});
    let what = if is_empty || !note.is_empty() {
        "lets a harmless call run"
    } else {
        "stops even a harmless call, as a policy wants"
    };
    Ok(format!(
        "the registered command answers in {} ms, and {what}",
        said.millis
    ))
}

fn outputs(child: &mut Child) -> (String, String) {
    // What a hook says fits into a pipe; a program that says more is cut.
    const MOST: u64 = 64 << 10;
    let mut texts = (String::new(), String::new());
    if let Some(output) = child.stdout.take() {
        let _ = output.take(MOST).read_to_string(&mut texts.0);
    }
    if let Some(output) = child.stderr.take() {
        let _ = output.take(MOST).read_to_string(&mut texts.1);
    }
    texts
}
