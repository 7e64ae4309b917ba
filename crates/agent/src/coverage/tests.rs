//! What is kept of conversations, executions and of what the server was told.

use super::*;
use crate::tests::Scratch;
use provost_hooks::{Client, Coverage, Execution, Reason};
use provost_inventory::traces::SessionFile;
use provost_words::time::Timestamp;
use std::collections::BTreeSet;

const ID: &str = "0d7c5a4e-1111-2222-3333-444455556666";
const DAY: i64 = 86_400;

fn now() -> Timestamp {
    Timestamp::EPOCH.plus_secs(1_800_000_000)
}

fn file(stem: &str, at: Timestamp) -> SessionFile {
    SessionFile {
        stem: stem.to_owned(),
        modified_ms: at.as_ms(),
    }
}

/// Proves FH-6.
#[test]
fn a_conversation_that_asked_nothing_counts_at_the_second_look_and_one_that_asked_never() {
    let fired = SharedFired::default();
    let files = [file(ID, now())];
    let look = |at: Timestamp| fired.silence(1000, Client::ClaudeCode, &files, at);
    assert_eq!(look(now()).silent, 0, "its client may not have asked yet");
    assert_eq!(look(now().plus_secs(60)).silent, 0);
    assert_eq!(look(now().plus_secs(120)).silent, 1);
    fired.note(1000, Client::Codex, ID, now());
    fired.note(1001, Client::ClaudeCode, ID, now());
    assert_eq!(
        look(now().plus_secs(300)).silent,
        1,
        "another client, another account"
    );
    fired.note(1000, Client::ClaudeCode, ID, now());
    assert_eq!(look(now().plus_secs(300)).silent, 0);
    assert_eq!(fired.last(Client::ClaudeCode), Some(now()));
    assert_eq!(fired.last(Client::Gemini), None);
    // What is written on for a day without asking has asked too long ago.
    let on = [file(ID, now().plus_secs(DAY + 1))];
    let look = |at: i64| {
        fired
            .silence(1000, Client::ClaudeCode, &on, now().plus_secs(at))
            .silent
    };
    assert_eq!((look(DAY + 1), look(DAY + 200)), (0, 1));
    // Names that nobody understands prove nothing, and parts of a conversation are none.
    let strange = [file("conversation-7", now()), file("agent-7", now())];
    let found = fired.silence(1000, Client::ClaudeCode, &strange, now());
    assert_eq!(
        found,
        Silence {
            silent: 0,
            strange: 1
        }
    );
}

/// Proves FH-6.
#[test]
fn what_was_heard_outlives_the_agent_and_one_account_takes_from_itself_alone() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let fired = SharedFired::default();
    fired.note(1000, Client::ClaudeCode, ID, now());
    for number in 0..3_000 {
        let at = now().plus_secs(number);
        fired.note(1001, Client::ClaudeCode, &format!("{number}"), at);
    }
    fired.save(&folder, now().plus_secs(3_000)).unwrap();
    let text = std::fs::read_to_string(folder.file("fired.json")).unwrap();
    assert!(!text.contains(ID) && text.len() < 200_000, "{}", text.len());
    let again = SharedFired::default();
    again.load(&folder).unwrap();
    let silent = |fired: &SharedFired, at: Timestamp| {
        let files = [file(ID, now())];
        fired.silence(1000, Client::ClaudeCode, &files, at);
        fired
            .silence(1000, Client::ClaudeCode, &files, at.plus_secs(300))
            .silent
    };
    assert_eq!(silent(&again, now()), 0);
    // It is forgotten after two days.
    again.save(&folder, now().plus_secs(2 * DAY)).unwrap();
    assert_eq!(silent(&again, now().plus_secs(2 * DAY)), 1);
    // A file that is torn is as none.
    folder.replace("fired.json", b"{").unwrap();
    let none = SharedFired::default();
    none.load(&folder).unwrap();
    assert_eq!(silent(&none, now()), 1);
}

/// Proves FH-1.
#[test]
fn an_execution_says_something_for_a_day_of_that_line_and_that_program_alone() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let mut all = Executions::default();
    let client = Client::Codex;
    let standing = |all: &Executions, line: &str, program: &str, secs: i64| {
        all.standing(client, line, program, now().plus_secs(secs))
    };
    assert_eq!(standing(&all, "l", "p", 0), Execution::Missing);
    assert!(all.is_due(client, "l", "p", now()));
    all.note(client, "l", "p", now(), Ok("it answers".to_owned()));
    all.save(&folder).unwrap();
    let mut all = Executions::load(&folder).unwrap();
    assert_eq!(standing(&all, "l", "p", DAY - 1), Execution::Answered);
    assert!(!all.is_due(client, "l", "p", now().plus_secs(DAY - 1)));
    for (line, program, secs) in [("l", "p", DAY), ("l", "p", -1), ("x", "p", 0), ("l", "x", 0)] {
        assert_eq!(standing(&all, line, program, secs), Execution::Missing);
    }
    assert_eq!(
        all.standing(Client::ClaudeCode, "l", "p", now()),
        Execution::Missing
    );
    // Whatever changes, no more than four times a day.
    let mut times = 1;
    for number in 0..200 {
        let at = now().plus_secs(number * 300);
        let line = format!("line {number}");
        if all.is_due(client, &line, "p", at) {
            times += 1;
            all.note(client, &line, "p", at, Err("it fell".to_owned()));
            assert_eq!(all.standing(client, &line, "p", at), Execution::Failed);
        }
    }
    assert_eq!(times, 4, "within a day");
    // What failed is tried again after hours.
    let mut failed = Executions::default();
    failed.note(client, "l", "p", now(), Err("it fell".to_owned()));
    assert!(!failed.is_due(client, "l", "p", now().plus_secs(6 * 3_600 - 1)));
    assert!(failed.is_due(client, "l", "p", now().plus_secs(6 * 3_600)));
}

#[test]
fn what_changed_is_told_at_once_and_what_did_not_every_six_hours() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    assert_eq!(kept_coverage(&folder).unwrap(), KeptCoverage::default());
    let with = |reasons: &[Reason]| KeptCoverage {
        clients: vec![ClientCoverage::of(
            "claude_code",
            Some("2.1.331".to_owned()),
            Basis::Measured,
            &Coverage::of(reasons.iter().copied().collect()),
        )],
        ..KeptCoverage::default()
    };
    let mut kept = with(&[]);
    let digest = kept.digest(None);
    assert!(kept.is_due(&digest, now()));
    (kept.told, kept.told_at) = (Some(digest.clone()), Some(now()));
    kept.save(&folder).unwrap();
    let kept = kept_coverage(&folder).unwrap();
    assert!(!kept.is_due(&digest, now().plus_secs(6 * 3_600 - 1)));
    assert!(kept.is_due(&digest, now().plus_secs(6 * 3_600)));
    assert!(kept.is_due(&digest, now().plus_secs(-1)), "a clock was set back");
    assert!(kept.is_due(&with(&[Reason::MonitorMode]).digest(None), now()));
    assert!(kept.is_due(&kept.digest(Some(&serde_json::json!({ "sequence": 8 }))), now()));
    // When it fired last changes nothing that has to be told, and is told to the hour.
    let mut fired = with(&[]);
    fired.clients[0] = fired.clients[0].clone().fired(Some(now().plus_secs(1_234)));
    assert_eq!(fired.digest(None), digest);
    assert_eq!(
        fired.clients[0].fired_at,
        Some(now().plus_secs(1_234).plus_secs(-1_234))
    );
    let steps = with(&[Reason::NotRegistered]).clients[0].steps();
    assert_eq!(
        steps,
        ["not_registered: register it: provost hook install claude-code --system"]
    );
    let words: BTreeSet<_> = with(&[Reason::SessionWithoutEvents]).clients[0]
        .reasons
        .iter()
        .cloned()
        .collect();
    assert!(
        words.contains("session_without_events") && with(&[Reason::ExecutionFailed]).clients[0].has_fault()
    );
    assert!(!with(&[Reason::MonitorMode]).clients[0].has_fault());
}
