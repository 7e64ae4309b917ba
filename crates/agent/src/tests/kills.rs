//! Scans that end with their process.

use super::rounds::scan_again;
use super::{Scratch, Told, agent, beat, home, round, taken};
use crate::mark::{self, Mark};
use crate::report::Plan;
use crate::{Finding, Folder, State, examine};
use provost_inventory::wire::{Report, Section};
use provost_inventory::{Client, Fault};
use provost_words::entropy::SystemEntropy;
use provost_words::time::{Clock, SystemClock};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Has a second client, and returns its file as a scan names it.
fn second(home: &Path) -> PathBuf {
    let path = home.join(".cursor/mcp.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(
        &path,
        r#"{"mcpServers": {"b": {"command": "npx", "args": ["b"]}}}"#,
    )
    .unwrap();
    path.canonicalize().unwrap()
}

/// Leaves what a process leaves that is killed while it reads a file.
fn killed(folder: &Folder, file: &Path) {
    let mark = Mark::begin(folder, &State::default(), SystemClock::new().now()).unwrap();
    assert!(mark.reads(file));
    std::mem::forget(mark);
}

fn finding(folder: &Folder) -> Option<Finding> {
    let (findings, _) = examine(folder.path(), &SystemClock::new());
    findings.into_iter().find(|finding| finding.check == "scans")
}

fn cursor(door: &Told) -> Section {
    let asked = door.asked.borrow();
    let report: Report = serde_json::from_slice(&asked.last().unwrap().3).unwrap();
    let mut sections = report.sections.into_iter();
    sections.find(|section| section.client == Client::Cursor).unwrap()
}

#[test]
fn a_scan_that_was_killed_is_said_and_a_file_that_two_ended_in_is_left_out_for_a_day() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    assert_eq!(finding(&folder), None);
    killed(&folder, &second(&home));
    let said = finding(&folder).unwrap();
    assert!(!said.good && said.says.contains(".cursor/mcp.json"), "{said:?}");
    door.will(200, &beat());
    door.will(200, &taken());
    assert!(round(&agent, &home, &door).unwrap().has_scanned);
    let section = cursor(&door);
    assert_eq!((section.complete, section.observations.len()), (true, 1));
    // The second one in the same file is none by chance.
    killed(&folder, &second(&home));
    scan_again(&agent);
    door.will(200, &beat());
    door.will(200, &taken());
    assert!(round(&agent, &home, &door).unwrap().has_scanned);
    let section = cursor(&door);
    assert_eq!((section.complete, section.observations.len()), (false, 0));
    assert_eq!(section.faults[0].fault, Fault::Truncated);
    assert!(!folder.file("scan.mark").exists());
    let mut state = State::load(&folder).unwrap();
    assert_eq!(state.killed_scans.len(), 2);
    assert!(!finding(&folder).unwrap().good);
    // The next day it is tried again.
    for scan in &mut state.killed_scans {
        scan.at = scan.at.plus_secs(-86_400);
    }
    state.save(&folder).unwrap();
    assert_eq!(finding(&folder), None);
    scan_again(&agent);
    door.will(200, &beat());
    door.will(200, &taken());
    assert!(round(&agent, &home, &door).unwrap().has_scanned);
    let section = cursor(&door);
    assert_eq!((section.complete, section.observations.len()), (true, 1));
    assert!(State::load(&folder).unwrap().killed_scans.is_empty());
}

#[test]
fn a_machine_that_went_down_in_a_scan_leaves_no_file_out() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    killed(&folder, &second(&home));
    let text = std::fs::read_to_string(folder.file("scan.mark")).unwrap();
    let other = text.replacen(&crate::machine::boot_id(), "anotherrun", 1);
    assert_ne!(text, other);
    std::fs::write(folder.file("scan.mark"), other).unwrap();
    door.will(200, &beat());
    door.will(200, &taken());
    round(&agent, &home, &door).unwrap();
    assert!(cursor(&door).complete);
    assert!(State::load(&folder).unwrap().killed_scans.is_empty());
}

#[test]
fn a_scan_is_marked_while_it_reads_and_no_longer() {
    let scratch = Scratch::new();
    let (folder, home) = (scratch.folder(), home(&scratch));
    let agent = agent(&folder);
    second(&home);
    let (clock, state) = (SystemClock::new(), State::default());
    let plan = Plan::new(&agent, &home, &state, &clock, &SystemEntropy).unwrap();
    let plan = plan.counted(&folder, &state, &clock).unwrap();
    let was_named = Cell::new(false);
    let look = || {
        let scan = mark::found(&folder).unwrap().unwrap();
        was_named.set(was_named.get() || scan.file.is_some_and(|file| file.ends_with(".claude.json")));
        false
    };
    plan.carry_out(&clock, &look).unwrap();
    assert!(was_named.get());
    assert_eq!(mark::found(&folder).unwrap(), None);
}
