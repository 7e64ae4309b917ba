//! One event, given to a registered command line as the client would give it.

use provost_hooks::{Client, Moment};
use provost_words::time::Clock;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
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

/// Runs a command line through the shell and returns what it said, for people.
///
/// Errors: it failed, or took longer than the client waits.
pub fn answered(client: Client, line: &str, limit: Duration, clock: &dyn Clock) -> Result<String, String> {
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
                return Err(format!(
                    "the registered command did not answer within {} s",
                    limit.as_secs()
                ));
            }
            Err(error) => return Err(format!("the registered command cannot be waited for: {error}")),
        }
    };
    let millis = clock.monotonic().saturating_sub(begun).as_millis();
    let (said, complained) = outputs(&mut child);
    if status.code() != Some(0) {
        return Err(format!(
            "the registered command ended with {status}: {}",
            complained.trim()
        ));
    }
    let said: Value = serde_json::from_str(&said)
        .map_err(|_| "the registered command does not answer with JSON".to_owned())?;
    let note = said["systemMessage"].as_str().unwrap_or_default();
    if note.starts_with("provost (monitor)") {
        return Err(format!("the registered command had no decision: {note}"));
    }
    let is_empty = said == json!({});
    let what = if is_empty || !note.is_empty() {
        "lets a harmless call run"
    } else {
        "stops even a harmless call, as a policy wants"
    };
    Ok(format!(
        "the registered command answers in {millis} ms, and {what}"
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
