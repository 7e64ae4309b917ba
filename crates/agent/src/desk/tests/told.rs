//! What of the events that were judged is written down: everything is judged, and what the bundle does not have told is on no disk.

use super::{Open, action, bench, block, open, past, registered};
use crate::desk::bench::{Bench, Word};
use crate::desk::frame::Intent;
use provost_bundle::{CHAIN_START, HookMode, Recording, ToldArguments, ToldContent, ToldPrompts, entry_hash};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A word that stands in every content, and in the name of a member.
const CANARY: &str = "canary-7f3a";

/// The content of an event: what is forbidden is what a policy looks for.
fn secret(is_forbidden: bool, canary: &str) -> String {
    let word = if is_forbidden { "forbidden" } else { "harmless" };
    format!("{word} {canary}")
}

fn prompt(is_forbidden: bool, canary: &str) -> Vec<u8> {
    json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": format!("/srv/{canary}"),
        "prompt": secret(is_forbidden, canary) })
    .to_string()
    .into_bytes()
}

fn tool(event: &str, is_forbidden: bool, canary: &str) -> Vec<u8> {
    let text = secret(is_forbidden, canary);
    let mut call = json!({ "hook_event_name": event, "session_id": "s1", "tool_use_id": "c1", "tool_name": "mcp__docs__search", "cwd": "/srv",
        "tool_input": { "command": text, canary: [{ "deep": text }] } });
    if event == "PostToolUse" {
        call["tool_response"] = json!([{ "type": "text", "text": text }]);
    }
    call.to_string().into_bytes()
}

/// Policies that read each content.
fn policies(action: &str) -> Vec<Value> {
    [
        ("prompt", "request.prompt"),
        ("pre_tool", "tool.input.command"),
        ("post_tool", "tool.result"),
    ]
    .into_iter()
    .map(|(occasion, field)| {
        let mut change = json!({ "action": action, "evaluateOn": [occasion],
            "conditions": { "field": field, "op": "contains", "value": "forbidden" } });
        if action == "require_approval" {
            change["approval"] = json!({ "autoApproveOnRequest": false });
        }
        block(occasion, &change)
    })
    .collect()
}

fn judging(policies: &[Value], told: ToldContent, record: Recording) -> Bench {
    bench(policies, |bundle| (bundle.told, bundle.record) = (told, record))
}

/// Says whether a file below a folder holds a word.
fn is_on_disk(folder: &Path, word: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|found| {
        let path = found.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        let holds = || String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(word);
        kind.is_dir() && is_on_disk(&path, word) || kind.is_file() && holds()
    })
}

/// Returns what would be sent, after its hashes were looked at.
fn sent(open: &Open) -> Value {
    let mut log = open.log.lock().unwrap();
    log.settle().unwrap();
    let body = log.batch(&|line| panic!("{line}")).unwrap().unwrap().body();
    assert_eq!(body["previous"], CHAIN_START);
    let entries = body["entries"].as_array().unwrap().iter();
    let head = entries.fold(CHAIN_START.to_owned(), |before, entry| {
        entry_hash(&before, entry.as_str().unwrap())
    });
    assert_eq!(body["head"], json!(head), "what is sent is one chain");
    body
}

fn contents(open: &Open) -> Vec<Value> {
    let mut entries = open.entries();
    entries.retain(|entry| entry["kind"] == "event" && entry["occasion"] != "inline_hook");
    entries
}

/// Proves LJ-14.
#[test]
fn no_content_that_is_not_told_is_written_or_sent_whatever_was_decided() {
    for (mode, record, is_old) in [
        (HookMode::Enforce, Recording::All, false),
        (HookMode::Enforce, Recording::Counted, false),
        (HookMode::Monitor, Recording::All, false),
        (HookMode::Enforce, Recording::All, true),
    ] {
        let judging = bench(&policies("block"), |bundle| {
            (bundle.told, bundle.record, bundle.mode) = (ToldContent::LEAST, record, mode);
            if is_old {
                bundle.not_after = past();
            }
        });
        let open = open(Some(judging), registered(Word::OfAccount));
        open.standing.lock().unwrap().mode = Some(mode);
        let calls = |is_forbidden| {
            [
                prompt(is_forbidden, CANARY),
                tool("PreToolUse", is_forbidden, CANARY),
                tool("PostToolUse", is_forbidden, CANARY),
            ]
        };
        for call in calls(true) {
            // The whole text was judged, also where it comes twice.
            for intent in [Intent::Judge, Intent::Judge, Intent::Hold] {
                assert_eq!(action(&open.ask(intent, &call)), Some("block"), "{mode:?}");
            }
        }
        for call in calls(false) {
            let told = open.ask(Intent::Judge, &call);
            assert_eq!(action(&told), Some("allow").filter(|_| !is_old), "{told:?}");
        }
        let body = sent(&open).to_string();
        assert!(!body.contains(CANARY) && !body.contains("forbidden"), "{body}");
        assert!(!is_on_disk(&open.scratch.0, CANARY));
        let events = contents(&open);
        let blocked: Vec<&Value> = events
            .iter()
            .filter(|event| event["decision"]["action"] == "block")
            .collect();
        assert_eq!(blocked.len(), 9, "{events:?}");
        for event in &events {
            let of_tool = event["occasion"] != "prompt";
            assert_eq!(
                event["attributes"]["tool.id"].as_str(),
                Some("mcp__docs__search").filter(|_| of_tool)
            );
            assert_eq!(
                event["attributes"]["mcp.server_id"].as_str(),
                Some("docs").filter(|_| of_tool)
            );
            let missing = event["missing"].as_array().unwrap();
            let lacks = |name: &str| missing.contains(&json!(name));
            assert_eq!(
                (lacks("request.prompt"), lacks("tool.input"), lacks("tool.result")),
                (!of_tool, of_tool, event["occasion"] == "post_tool"),
                "{event}"
            );
            assert_eq!(event["whole"], false, "a policy reads it: {event}");
            assert_eq!(event["decision"]["mode"], mode.as_str());
        }
        // What has no content is told as before.
        let mut uses = open.entries();
        uses.retain(|entry| entry["occasion"] == "inline_hook");
        assert!(
            !uses.is_empty() && uses.iter().all(|event| event["whole"] == true),
            "{uses:?}"
        );
    }
}

/// Proves LJ-14.
#[test]
fn what_holds_where_the_server_does_not_answer_is_written_without_content_too() {
    let judging = judging(&policies("require_approval"), ToldContent::LEAST, Recording::All);
    let open = open(Some(judging), registered(Word::OfAccount));
    let call = tool("PreToolUse", true, CANARY);
    assert_eq!(
        open.ask(Intent::Judge, &call).decided,
        None,
        "the server is asked"
    );
    assert_eq!(action(&open.ask(Intent::Hold, &call)), Some("require_approval"));
    let events = contents(&open);
    assert_eq!(
        (events.len(), &events[0]["basis"]),
        (1, &json!("unanswered")),
        "{events:?}"
    );
    assert!(!sent(&open).to_string().contains(CANARY) && !is_on_disk(&open.scratch.0, CANARY));
}

/// Proves LJ-14.
#[test]
fn each_word_is_about_its_own_content_and_one_that_tells_more_brings_nothing_back() {
    let told = |prompts, tool_arguments| ToldContent {
        prompts,
        tool_arguments,
    };
    let first = judging(&policies("block"), ToldContent::LEAST, Recording::All);
    let open = open(Some(first), registered(Word::OfAccount));
    let both = |canary: &str| {
        for call in [prompt(true, canary), tool("PostToolUse", true, canary)] {
            assert_eq!(action(&open.ask(Intent::Judge, &call)), Some("block"));
        }
    };
    let words = [
        ("canary-0", told(ToldPrompts::Off, ToldArguments::Nothing)),
        ("canary-1", told(ToldPrompts::Full, ToldArguments::Nothing)),
        ("canary-2", told(ToldPrompts::Off, ToldArguments::Full)),
        ("canary-3", told(ToldPrompts::Full, ToldArguments::Full)),
        ("canary-4", told(ToldPrompts::Off, ToldArguments::Nothing)),
    ];
    for (canary, told) in words {
        let bench = judging(&policies("block"), told, Recording::All);
        open.standing.lock().unwrap().bench = Some(Arc::new(bench));
        both(canary);
    }
    // One chain, whatever was told when.
    let body = sent(&open).to_string();
    for (canary, told) in words {
        let is_told = told != ToldContent::LEAST;
        assert_eq!(body.contains(canary), is_told, "{canary}: {told:?}");
        assert_eq!(is_on_disk(&open.scratch.0, canary), is_told, "{canary}");
    }
    let events = contents(&open);
    let has = |at: usize, name: &str| events[at]["attributes"].get(name).is_some();
    for (at, (_, told)) in words.iter().enumerate() {
        let is_whole = |at: usize| events[at]["whole"] == true;
        let (prompt, result) = (2 * at, 2 * at + 1);
        let (tells_prompt, tells_result) = (
            told.prompts == ToldPrompts::Full,
            told.tool_arguments == ToldArguments::Full,
        );
        assert_eq!(
            (has(prompt, "request.prompt"), is_whole(prompt)),
            (tells_prompt, tells_prompt)
        );
        let of_tool = [
            has(result, "tool.input"),
            has(result, "tool.result"),
            is_whole(result),
        ];
        assert_eq!(of_tool, [tells_result; 3], "{told:?}");
    }
}
