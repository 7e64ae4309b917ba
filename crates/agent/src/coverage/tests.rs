//! What is kept of conversations, executions and of what the server was told.

use super::*;
use crate::tests::Scratch;
use provost_hooks::{Client, Conversation, Coverage, Execution, Mode, Reason};
use provost_inventory::traces::SessionFile;
use provost_words::time::Timestamp;
use std::collections::BTreeSet;

const ID: &str = "0d7c5a4e-1111-2222-3333-444455556666";
const DAY: i64 = 86_400;

/// Returns the name of a conversation.
fn id(number: i64) -> String {
    format!("{number:08x}-1111-2222-3333-444455556666")
}

fn now() -> Timestamp {
    Timestamp::EPOCH.plus_secs(1_800_000_000)
}

fn file(stem: &str, at: Timestamp) -> SessionFile {
    SessionFile {
        stem: stem.to_owned(),
        account: 1000,
        modified_ms: at.as_ms(),
    }
}

/// Proves FH-6.
#[test]
fn a_conversation_that_asked_nothing_counts_at_the_second_look_and_one_that_asked_never() {
    let fired = SharedFired::default();
    let files = [file(ID, now())];
    let look = |at: Timestamp| fired.silence(Client::ClaudeCode, Mode::Enforce, &files, at);
    assert_eq!(look(now()).silent, 0, "its client may not have asked yet");
    assert_eq!(look(now().plus_secs(60)).silent, 0);
    assert_eq!(look(now().plus_secs(120)).silent, 1);
    fired.note(1000, Client::Codex, Mode::Enforce, ID, now());
    fired.note(1001, Client::ClaudeCode, Mode::Enforce, ID, now());
    assert_eq!(
        look(now().plus_secs(300)).silent,
        1,
        "another client, another account"
    );
    fired.note(1000, Client::ClaudeCode, Mode::Enforce, ID, now());
    assert_eq!(look(now().plus_secs(300)).silent, 0);
    assert_eq!(fired.last(Client::ClaudeCode, Mode::Enforce), Some(now()));
    assert_eq!(fired.last(Client::Gemini, Mode::Enforce), None);
    // What is written on for a day without asking has asked too long ago.
    let on = [file(ID, now().plus_secs(DAY + 1))];
    let look = |at: i64| {
        fired
            .silence(Client::ClaudeCode, Mode::Enforce, &on, now().plus_secs(at))
            .silent
    };
    assert_eq!((look(DAY + 1), look(DAY + 200)), (0, 1));
    // Names that nobody understands prove nothing, and parts of a conversation are none.
    let strange = [file("conversation-7", now()), file("agent-7", now())];
    let found = fired.silence(Client::ClaudeCode, Mode::Enforce, &strange, now());
    assert_eq!(
        found,
        Silence {
            silent: 0,
            strange: 1
        }
    );
}

/// Proves FH-6.
///
/// A person's own hook that looks on says nothing of the machine's that refuses.
#[test]
fn a_question_of_another_mode_proves_no_registration_that_refuses() {
    let fired = SharedFired::default();
    let files = [file(ID, now())];
    let silent = |mode: Mode| {
        let look = |at: Timestamp| fired.silence(Client::ClaudeCode, mode, &files, at).silent;
        (look(now()), look(now().plus_secs(300)))
    };
    fired.note(1000, Client::ClaudeCode, Mode::Monitor, ID, now());
    assert_eq!(silent(Mode::Enforce), (0, 1));
    assert_eq!(fired.last(Client::ClaudeCode, Mode::Enforce), None);
    // Where what is registered looks on, its own questions are those of a registration that fires.
    assert_eq!(silent(Mode::Monitor), (0, 0));
    assert_eq!(fired.last(Client::ClaudeCode, Mode::Monitor), Some(now()));
    fired.note(1000, Client::ClaudeCode, Mode::Enforce, ID, now());
    assert_eq!((silent(Mode::Enforce), silent(Mode::Monitor)), ((0, 0), (0, 0)));
}

/// Proves FH-6.
#[test]
fn conversations_of_several_homes_and_accounts_keep_their_patience_apart() {
    let fired = SharedFired::default();
    let other = |number: u32| SessionFile {
        account: number,
        ..file(&ID.replace('0', "a"), now())
    };
    // Two homes of one account, and one of another, looked at together in each round.
    let files = [file(ID, now()), other(1000), other(1001)];
    let look = |at: i64| {
        let at = now().plus_secs(at);
        fired
            .silence(Client::ClaudeCode, Mode::Enforce, &files, at)
            .silent
    };
    assert_eq!((look(0), look(300), look(600)), (0, 3, 3));
    fired.note(1001, Client::ClaudeCode, Mode::Enforce, &other(0).stem, now());
    assert_eq!(look(900), 2);
    // Another client's are its own.
    let none = fired.silence(Client::Codex, Mode::Enforce, &[], now());
    assert_eq!((none, look(1_200)), (Silence::default(), 2));
}

#[test]
fn spans_without_an_agent_are_known_for_a_day_and_are_not_many() {
    let mut kept = KeptCoverage::default();
    let at = |secs: i64| now().plus_secs(secs).as_ms();
    let is_silent = |kept: &KeptCoverage, secs: i64| kept.was_silent(&[file(ID, now().plus_secs(secs))]);
    // One that was started anew at once, and a clock that was set back.
    kept.note_gap(Some(Gap(at(0), at(600))), now().plus_secs(600));
    kept.note_gap(Some(Gap(at(900), at(0))), now());
    assert!(kept.gaps.is_empty());
    kept.note_gap(Some(Gap(at(0), at(3_600))), now().plus_secs(3_600));
    assert_eq!(
        [600, 601, 3_599, 3_600].map(|secs| is_silent(&kept, secs)),
        [false, true, true, false]
    );
    kept.note_gap(None, now().plus_secs(3_600 + DAY));
    assert!(kept.gaps.is_empty() && !is_silent(&kept, 601));
    for number in 0..200 {
        let begin = number * 700;
        kept.note_gap(
            Some(Gap(at(begin), at(begin + 601))),
            now().plus_secs(begin + 601),
        );
    }
    assert_eq!(kept.gaps.len(), 64);
    assert!(
        !kept.lacks_service(false, false)
            && kept.lacks_service(true, false)
            && !kept.lacks_service(true, true)
    );
    kept.has_service = true;
    assert!(kept.lacks_service(false, false));
}

#[test]
fn accounts_that_asked_anything_are_remembered_for_two_days() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let fired = SharedFired::default();
    fired.heard_of(1000, now());
    fired.heard_of(1_234_600_001, now().plus_secs(DAY));
    fired.save(&folder, now().plus_secs(DAY)).unwrap();
    let again = SharedFired::default();
    again.load(&folder).unwrap();
    assert_eq!(again.accounts(), BTreeSet::from([1000, 1_234_600_001]));
    again.save(&folder, now().plus_secs(2 * DAY)).unwrap();
    assert_eq!(again.accounts(), BTreeSet::from([1_234_600_001]));
    // Of many the oldest is forgotten, and who asks comes again.
    for number in 0..3_000 {
        again.heard_of(
            2_000_000_000 + number,
            now().plus_secs(2 * DAY + i64::from(number)),
        );
    }
    let many = again.accounts();
    assert!(many.len() <= 1_024 && many.contains(&2_000_002_999) && !many.contains(&1_234_600_001));
}

/// Proves FH-6.
#[test]
fn what_was_heard_outlives_the_agent_and_one_account_takes_from_itself_alone() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let fired = SharedFired::default();
    fired.note(1000, Client::ClaudeCode, Mode::Enforce, ID, now());
    for number in 0..3_000 {
        let at = now().plus_secs(number);
        fired.note(1001, Client::ClaudeCode, Mode::Enforce, &id(number), at);
    }
    fired.save(&folder, now().plus_secs(3_000)).unwrap();
    let text = std::fs::read_to_string(folder.file("fired.json")).unwrap();
    assert!(!text.contains(ID) && text.len() < 200_000, "{}", text.len());
    let again = SharedFired::default();
    again.load(&folder).unwrap();
    let silent = |fired: &SharedFired, at: Timestamp| {
        let files = [file(ID, now())];
        fired.silence(Client::ClaudeCode, Mode::Enforce, &files, at);
        fired
            .silence(Client::ClaudeCode, Mode::Enforce, &files, at.plus_secs(300))
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
    kept.was_told(digest.clone(), now());
    kept.save(&folder).unwrap();
    let mut kept = kept_coverage(&folder).unwrap();
    // A drop that came within the hour of another is told by the server when it hears of it again, and that is not six hours later.
    assert!(!kept.is_due(&digest, now().plus_secs(3_659)));
    assert!(kept.is_due(&digest, now().plus_secs(3_660)));
    kept.was_told(digest.clone(), now());
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

/// Proves FH-6.
#[test]
fn what_was_tried_is_no_conversation_that_fired() {
    let fired = SharedFired::default();
    for session in ["provost-hook-doctor", "s1", ""] {
        fired.note(1000, Client::ClaudeCode, Mode::Enforce, session, now());
        assert_eq!(fired.last(Client::ClaudeCode, Mode::Enforce), None, "{session}");
    }
}

/// Proves FH-6.
#[test]
fn a_conversation_that_is_kept_in_no_home_is_remembered_for_two_days() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let home = scratch.0.join("home/ada");
    std::fs::create_dir_all(&home).unwrap();
    let link = scratch.0.join("link");
    std::os::unix::fs::symlink(&home, &link).unwrap();
    let fired = SharedFired::default();
    let kept = |session: &str, path: Option<String>| Conversation {
        session: session.to_owned(),
        path,
    };
    let below =
        |home: &std::path::Path| Some(format!("{}/.claude/projects/-work/{ID}.jsonl", home.display()));
    let homes = [link.clone()];
    let is_elsewhere = |fired: &SharedFired, after: i64| {
        fired.is_elsewhere(Client::ClaudeCode, &homes, now().plus_secs(after))
    };
    // What says nothing, what is tried, and what is kept in a home, by whichever way that is named.
    for one in [
        kept(ID, None),
        kept("provost-hook-doctor", Some("/dev/null".to_owned())),
        kept(ID, below(&home)),
        kept(ID, below(&link)),
    ] {
        fired.keeps(1000, Client::ClaudeCode, &one, now());
        assert!(!is_elsewhere(&fired, 0), "{one:?}");
    }
    for path in [
        "/data/claude/projects/-work/x.jsonl".to_owned(),
        "/home/eve/.claude/projects/-work/x.jsonl".to_owned(),
    ] {
        let fired = SharedFired::default();
        fired.keeps(1000, Client::ClaudeCode, &kept(ID, Some(path)), now());
        assert!(is_elsewhere(&fired, 0));
        assert!(
            !fired.is_elsewhere(Client::Codex, &homes, now()),
            "another client's"
        );
        fired.save(&folder, now()).unwrap();
        let text = std::fs::read_to_string(folder.file("fired.json")).unwrap();
        assert!(!text.contains("eve") && !text.contains("data"), "{text}");
        let again = SharedFired::default();
        again.load(&folder).unwrap();
        assert!(is_elsewhere(&again, 2 * DAY - 1) && !is_elsewhere(&again, 2 * DAY));
    }
    // Nobody hides one behind many.
    for number in 0..100 {
        let one = kept(
            &id(number),
            Some(format!("/data/{number}/.claude/projects/-work/x.jsonl")),
        );
        fired.keeps(1000, Client::ClaudeCode, &one, now());
    }
    assert!(is_elsewhere(&fired, 0));
    fired.save(&folder, now()).unwrap();
    let text = std::fs::read_to_string(folder.file("fired.json")).unwrap();
    assert!(text.len() < 4_000, "{}", text.len());
}
