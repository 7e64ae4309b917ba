//! The log through kills, full disks and servers that stand elsewhere.

use crate::Folder;
use crate::desk::chain::{Link, NOTHING};
use crate::desk::log::{Log, Sort, backlog};
use crate::desk::{floor, keep_bundle, kept_bundle, take_bundle_away};
use crate::tests::{Scratch, Told, agent, enrol_as, enrolled};
use provost_bundle::Floor;
use provost_words::time::SystemClock;
use std::cell::RefCell;
use std::fs;
use std::time::Duration;

fn quiet(line: &str) {
    panic!("{line}");
}

fn entry(number: usize) -> String {
    format!(r#"{{"kind":"event","n":{number}}}"#)
}

fn all(log: &mut Log) -> Vec<String> {
    log.batch(&quiet)
        .unwrap()
        .map(|batch| batch.entries)
        .unwrap_or_default()
}

/// Proves LJ-7.
#[test]
fn a_kill_at_any_byte_costs_at_most_the_entry_that_was_being_written() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let mut log = Log::open(&folder, &quiet).unwrap();
    for number in 0..3 {
        log.append(&[entry(number)], number == 1).unwrap();
    }
    let behind = log.link().clone();
    drop(log);
    let path = folder.file("decisions").join(format!("{:020}", 1));
    let whole = fs::read(&path).unwrap();
    let third = whole.len() - entry(2).len() - 66;
    for length in third..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let said = RefCell::new(Vec::new());
        let mut log = Log::open(&folder, &|line| said.borrow_mut().push(line.to_owned())).unwrap();
        let is_whole = length == whole.len();
        let is_cut = length > third && !is_whole;
        assert_eq!(said.borrow().len(), usize::from(is_cut), "{length}: {said:?}");
        assert_eq!(all(&mut log).len(), if is_whole { 3 } else { 2 }, "{length}");
        // What follows is bound to what is left.
        log.append(&[entry(2)], true).unwrap();
        if !is_whole {
            assert_eq!(*log.link(), behind, "{length}");
        }
        drop(log);
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn what_is_broken_in_the_middle_is_set_aside_and_not_lost() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let mut log = Log::open(&folder, &quiet).unwrap();
    for number in 0..5 {
        log.append(&[entry(number)], true).unwrap();
    }
    drop(log);
    let path = folder.file("decisions").join(format!("{:020}", 1));
    let text = fs::read_to_string(&path).unwrap().replace("\"n\":2", "\"n\":9");
    fs::write(&path, text).unwrap();
    let mut log = Log::open(&folder, &|_| {}).unwrap();
    let told = all(&mut log);
    assert_eq!(told[..2], [entry(0), entry(1)]);
    assert_eq!(told[2], dropped(3));
    let aside = fs::read_to_string(path.with_extension("torn")).unwrap();
    assert!(aside.contains("\"n\":9") && aside.contains("\"n\":4"), "{aside}");
}

fn dropped(events: usize) -> String {
    format!(r#"{{"events":{events},"kind":"dropped","why":"log_damaged"}}"#)
}

/// Returns the kept parts of a log.
fn aside(folder: &Folder) -> Vec<String> {
    let names = Folder::open(&folder.file("decisions")).unwrap().names().unwrap();
    let torn = names.into_iter().filter(|name| name.contains(".torn"));
    torn.map(|name| fs::read_to_string(folder.file("decisions").join(name)).unwrap())
        .collect()
}

/// Proves LJ-10.
#[test]
fn what_is_damaged_anywhere_is_kept_aside_and_told_of_and_all_else_is_sent() {
    let wide = |n: usize| format!(r#"{{"kind":"event","n":{n},"text":"{}"}}"#, "x".repeat(200_000));
    // The first entry of a segment that is closed, one in its middle, its head, the open one.
    for (place, damage, lost) in [
        (1, "\"n\":0,", 5),
        (1, "\"n\":3,", 2),
        (1, "provost-decisions", 6),
        (6, "\"n\":7,", 1),
    ] {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        let mut log = Log::open(&folder, &quiet).unwrap();
        for n in 0..8 {
            log.append(&[wide(n)], true).unwrap();
        }
        let path = folder.file("decisions").join(format!("{place:020}"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(damage), "{place}: {damage}");
        fs::write(
            &path,
            text.replacen(damage, &damage.to_uppercase().replace("\":", "\":1"), 1),
        )
        .unwrap();
        let said = RefCell::new(Vec::new());
        let mut sent: Vec<String> = Vec::new();
        while let Some(batch) = log
            .batch(&|line| said.borrow_mut().push(line.to_owned()))
            .unwrap()
        {
            sent.extend(batch.entries);
            // A server that lacks what is damaged stands elsewhere.
            log.taken(&batch.behind).unwrap();
        }
        assert_eq!(said.borrow().len(), 1, "{damage}: {said:?}");
        let told: Vec<&String> = sent.iter().filter(|entry| entry.contains("dropped")).collect();
        assert_eq!(told.len(), 1, "{damage}");
        let kept = aside(&folder);
        assert_eq!(kept.len(), 1, "{damage}");
        let lines = kept[0].matches('\n').count();
        assert_eq!((lines, told[0]), (lost, &dropped(lost)), "{damage}");
        let heads = usize::from(damage == "provost-decisions");
        assert_eq!(
            sent.len() - 1 + lines - heads,
            8,
            "{damage}: none is lost and none is sent twice"
        );
        assert_eq!(backlog(&folder).unwrap().unwrap().damaged, 1);
        // Bound anew, it is still there.
        let elsewhere = Link {
            next: 50,
            previous: "ab".repeat(32),
        };
        log.rebind(&elsewhere, &|_| {}).unwrap();
        assert_eq!(aside(&folder), kept);
    }
}

/// Proves LJ-10.
#[test]
fn what_has_lost_its_head_is_kept_aside_too_where_the_chain_is_bound_anew_before_anybody_noticed() {
    let wide = |n: usize| format!(r#"{{"kind":"event","n":{n},"text":"{}"}}"#, "x".repeat(200_000));
    // A segment that is closed, and the open one; by another chain of the server, and by one that has what stood before.
    for (place, rest) in [(1, 3), (6, 5)] {
        for is_bound in [true, false] {
            let scratch = Scratch::new();
            let folder = scratch.folder();
            let mut log = Log::open(&folder, &quiet).unwrap();
            for n in 0..8 {
                log.append(&[wide(n)], true).unwrap();
            }
            let path = folder.file("decisions").join(format!("{place:020}"));
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replacen("provost-decisions", "PROVOST", 1)).unwrap();
            let said = RefCell::new(Vec::new());
            let say = |line: &str| said.borrow_mut().push(line.to_owned());
            let elsewhere = Link {
                next: 50,
                previous: "ab".repeat(32),
            };
            if is_bound {
                log.rebind(&elsewhere, &say).unwrap();
            } else {
                let end = log.link().clone();
                log.taken(&end).unwrap();
            }
            assert_eq!(aside(&folder).len(), 1, "{place} {is_bound}: {said:?}");
            log.append(&[entry(9)], true).unwrap();
            let mut sent = Vec::new();
            while let Some(batch) = log.batch(&say).unwrap() {
                sent.extend(batch.entries);
                log.taken(&batch.behind).unwrap();
            }
            let told = sent.iter().filter(|entry| entry.contains("log_damaged")).count();
            assert_eq!((told, sent.contains(&entry(9))), (1, true), "{place} {is_bound}");
            let wides = sent.iter().filter(|entry| entry.len() > 200_000).count();
            // What the server has already goes; what is bound anew is sent.
            assert_eq!(wides, if is_bound { rest } else { 0 }, "{place}");
        }
    }
}

#[test]
fn what_was_refused_goes_first_where_the_server_has_no_room_for_the_rest() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let mut log = Log::open(&folder, &quiet).unwrap();
    let decided =
        |action: &str, n: usize| format!(r#"{{"kind":"event","n":{n},"decision":{{"action":"{action}"}}}}"#);
    let entries = [
        decided("allow", 0),
        decided("block", 1),
        entry(2),
        decided("require_approval", 3),
    ];
    log.append(&entries, true).unwrap();
    let first = log.at(1).unwrap().unwrap();
    log.rest(true);
    assert_eq!(all(&mut log).len(), 1, "one is tried");
    let minute = |n: u64| Duration::from_mins(n);
    assert!(log.put_weighty_first(&first, minute(5), &|_| {}).unwrap());
    log.rest(false);
    let order = [1, 3, 0, 2].map(|n: usize| entries[n].clone());
    assert_eq!(all(&mut log), order);
    assert!(
        !log.put_weighty_first(&first, minute(65), &quiet).unwrap(),
        "it is so already"
    );
    // All is written anew for it: not for each that comes.
    let late = decided("block", 4);
    log.append(std::slice::from_ref(&late), true).unwrap();
    assert!(!log.put_weighty_first(&first, minute(64), &quiet).unwrap());
    assert!(log.put_weighty_first(&first, minute(65), &|_| {}).unwrap());
    let order = [&order[..2], &[late], &order[2..]].concat();
    assert_eq!(all(&mut log), order);
    drop(log);
    assert_eq!(all(&mut Log::open(&folder, &quiet).unwrap()), order);
}

/// Proves LJ-7.
#[test]
fn what_the_server_has_goes_and_the_chain_goes_on() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let mut log = Log::open(&folder, &quiet).unwrap();
    for number in 0..10 {
        log.append(&[entry(number)], false).unwrap();
    }
    assert_eq!(log.at(1).unwrap().unwrap().previous, NOTHING);
    let fourth = log.at(4).unwrap().unwrap();
    log.taken(&fourth).unwrap();
    let batch = log.batch(&quiet).unwrap().unwrap();
    assert_eq!((batch.from.clone(), batch.entries.len()), (fourth.clone(), 7));
    assert_eq!(log.at(3).unwrap(), None);
    let end = log.link().clone();
    log.taken(&end).unwrap();
    assert!(all(&mut log).is_empty());
    // Where the chain stood outlives that nothing waits.
    drop(log);
    let mut log = Log::open(&folder, &quiet).unwrap();
    assert_eq!(*log.link(), end);
    log.append(&[entry(10)], true).unwrap();
    assert_eq!(log.batch(&quiet).unwrap().unwrap().from, end);
    assert_eq!(backlog(&folder).unwrap().unwrap().segments, 1);
}

#[test]
fn a_server_that_stands_elsewhere_gets_all_that_waits_behind_its_own_last() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let mut log = Log::open(&folder, &quiet).unwrap();
    for number in 0..10 {
        log.append(&[entry(number)], false).unwrap();
    }
    let elsewhere = Link {
        next: 50,
        previous: "ab".repeat(32),
    };
    log.rebind(&elsewhere, &|_| {}).unwrap();
    let batch = log.batch(&quiet).unwrap().unwrap();
    assert_eq!(
        (batch.from, batch.entries),
        (elsewhere.clone(), (0..10).map(entry).collect())
    );
    log.append(&[entry(10)], true).unwrap();
    drop(log);
    let mut log = Log::open(&folder, &quiet).unwrap();
    assert_eq!((all(&mut log).len(), log.link().next), (11, 61));
    // A kill between the two renames.
    fs::rename(folder.file("decisions"), folder.file("decisions.anew")).unwrap();
    fs::create_dir(folder.file("decisions.former")).unwrap();
    crate::tests::chmod(&folder.file("decisions.former"), 0o700);
    let mut log = Log::open(&folder, &quiet).unwrap();
    assert_eq!(all(&mut log).len(), 11);
    assert!(!folder.file("decisions.former").exists());
}

#[test]
fn segments_follow_one_another_and_the_log_has_an_end() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let mut log = Log::open(&folder, &quiet).unwrap();
    let wide = format!(r#"{{"kind":"event","text":"{}"}}"#, "x".repeat(200_000));
    for _ in 0..12 {
        log.append(std::slice::from_ref(&wide), false).unwrap();
    }
    let segments = backlog(&folder).unwrap().unwrap();
    assert!(
        segments.segments >= 3 && segments.bytes > 2_400_000,
        "{segments:?}"
    );
    let mut sent = 0;
    while let Some(batch) = log.batch(&quiet).unwrap() {
        sent += batch.entries.len();
        let link = batch.behind.clone();
        log.taken(&link).unwrap();
    }
    assert_eq!(sent, 12);
    let full = (0..1_000).find_map(|_| log.append(std::slice::from_ref(&wide), false).err());
    assert!(full.unwrap().line.contains("64 MiB"));
    assert!(backlog(&folder).unwrap().unwrap().bytes <= 64 << 20);
    let too_long = format!(r#"{{"text":"{}"}}"#, "x".repeat(600_000));
    assert!(log.append(&[too_long], false).is_err());
}

#[test]
fn counts_of_one_minute_are_one_entry() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let mut log = Log::open(&folder, &quiet).unwrap();
    let sort = |tool: &str| Sort {
        user: "ada".into(),
        client: "codex",
        tool: tool.into(),
        minute: "2026-11-28T01:50:00.000Z".into(),
    };
    for _ in 0..100 {
        log.count(sort("Bash")).unwrap();
        log.count(sort("")).unwrap();
    }
    assert!(log.has_counts());
    log.settle().unwrap();
    let entries = all(&mut log);
    assert_eq!(entries.len(), 2);
    assert!(
        entries[0].contains(r#""count":100"#) && !entries[0].contains("tool"),
        "{entries:?}"
    );
    assert!(!log.has_counts());
}

/// Proves LJ-5.
#[test]
fn a_bundle_that_is_taken_away_makes_no_earlier_one_good_and_another_device_has_nothing_of_it() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    agent(&folder);
    let newest = Floor {
        store_epoch: 1,
        sequence: 7,
        issued_at_ms: 5,
    };
    keep_bundle(&folder, b"{}", newest).unwrap();
    take_bundle_away(&folder).unwrap();
    assert_eq!(
        (kept_bundle(&folder).unwrap(), floor(&folder).unwrap()),
        (None, Some(newest))
    );
    // What cannot be read is not as good as nothing.
    folder.replace("policy-bundle.floor.json", b"torn").unwrap();
    assert!(floor(&folder).is_err());
    keep_bundle(&folder, b"{}", newest).unwrap();
    Log::open(&folder, &quiet)
        .unwrap()
        .append(&[entry(1)], true)
        .unwrap();
    let door = Told::default();
    door.will(201, &enrolled());
    enrol_as(&folder, &door, &SystemClock::new(), true).unwrap();
    assert_eq!(
        (kept_bundle(&folder).unwrap(), floor(&folder).unwrap()),
        (None, None)
    );
    assert_eq!(backlog(&folder).unwrap(), None);
}
