//! Tokens that end, and devices that do.

use super::{
    Jumping, Scratch, Told, agent, beat, ends_at, enrol_as, enrolled, home, round, round_at, taken, try_enrol,
};
use crate::{Agent, Cause, State};
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};
use std::fs;
use std::sync::Mutex;
use std::time::Duration;

const OLD: &str = "prov_dvt_canary";
const DAY: i64 = 86_400;

fn renewed(token: &str) -> Value {
    let until = SystemClock::new().now().plus_secs(600);
    json!({ "token": { "token": token, "expiresAt": "2099-01-01T00:00:00.000Z" }, "earlierUntil": until })
}

fn tokens(door: &Told) -> Vec<(String, String)> {
    let asked = door.asked.borrow();
    let end = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    asked
        .iter()
        .map(|asked| (end(&asked.0), asked.1.clone()))
        .collect()
}

fn pair(path: &str, token: &str) -> (String, String) {
    (path.to_owned(), token.to_owned())
}

#[test]
fn a_token_is_renewed_in_the_second_half_of_its_life_and_calls_are_counted() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let _ = agent(&folder);
    ends_at(&folder, OLD, SystemClock::new().now().plus_secs(14 * 86_400));
    let agent = Agent::open(&folder).unwrap();
    // A lost answer is asked for again, and the earlier token goes on meanwhile, also for what is reported.
    door.will(200, &beat());
    assert!(round(&agent, &home, &door).unwrap().problem.is_some());
    door.will(200, &beat());
    door.will(200, &renewed("prov_dvt_new"));
    door.will(200, &taken());
    assert_eq!(round(&agent, &home, &door).unwrap().uploads, 1);
    door.will(200, &beat());
    round(&agent, &home, &door).unwrap();
    let asked = door.asked.borrow();
    let last = |place: usize| asked[place].0.rsplit('/').next().unwrap().to_owned();
    let tokens: Vec<(String, &str)> = (0..asked.len())
        .map(|place| (last(place), asked[place].1.as_str()))
        .collect();
    let (old, new) = (OLD, "prov_dvt_new");
    let expected = [
        ("heartbeat", old),
        ("token", old),
        ("scans", old),
        ("heartbeat", old),
        ("token", old),
        ("scans", new),
        ("heartbeat", new),
    ];
    assert_eq!(tokens, expected.map(|(path, token)| (path.to_owned(), token)));
    assert_eq!(
        Agent::open(&folder).unwrap().token_expires_at(),
        Timestamp::parse("2099-01-01T00:00:00Z").unwrap()
    );
    let counts: Vec<Value> = [0, 3, 6]
        .map(|place| serde_json::from_slice::<Value>(&asked[place].3).unwrap()["counter"].clone())
        .to_vec();
    assert_eq!(counts, [json!(1), json!(2), json!(3)]);
}

#[test]
fn a_disk_that_takes_nothing_is_found_out_before_the_earlier_token_is_ended() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let _ = agent(&folder);
    let now = SystemClock::new().now();
    ends_at(&folder, OLD, now.plus_secs(14 * DAY));
    let draft = folder.file(".token.next.new");
    fs::create_dir_all(draft.join("in the way")).unwrap();
    door.will(200, &beat());
    door.will(200, &taken());
    let done = round(&Agent::open(&folder).unwrap(), &home, &door).unwrap();
    assert_eq!((done.problem.unwrap().cause, done.uploads), (Cause::Disk, 1));
    assert_eq!(tokens(&door), [pair("heartbeat", OLD), pair("scans", OLD)]);
    // In its last days it is renewed all the same.
    ends_at(&folder, OLD, now.plus_secs(DAY));
    door.will(200, &beat());
    door.will(200, &renewed("prov_dvt_late"));
    round(&Agent::open(&folder).unwrap(), &home, &door).unwrap();
    assert_eq!(tokens(&door)[3], pair("token", OLD));
}

#[test]
fn a_token_that_is_not_on_the_disk_is_used_when_the_earlier_one_is_about_to_end() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let _ = agent(&folder);
    let start = SystemClock::new().now();
    ends_at(&folder, OLD, start.plus_secs(14 * DAY));
    let next = folder.file("token.next");
    let in_the_way = next.clone();
    // The disk takes the room for it, and then not the token.
    *door.meanwhile.borrow_mut() = Some((
        "/token",
        Box::new(move || {
            let _ = fs::remove_file(&in_the_way);
            let _ = fs::create_dir_all(in_the_way.join("in the way"));
        }),
    ));
    let clock = Jumping(Mutex::new((start, Duration::ZERO)));
    let agent = Agent::open(&folder).unwrap();
    door.will(200, &beat());
    door.will(200, &renewed("prov_dvt_new"));
    door.will(200, &taken());
    let done = round_at(&agent, &home, &door, &clock).unwrap();
    assert_eq!(done.problem.unwrap().cause, Cause::Disk);
    // Whoever starts again now asks with the earlier one, and the server puts another in the place of the unused.
    assert_eq!(
        fs::read_to_string(folder.file("token")).unwrap().lines().next(),
        Some(OLD)
    );
    for secs in [120, 300] {
        clock.0.lock().unwrap().0 = start.plus_secs(secs);
        door.will(200, &beat());
        let _ = round_at(&agent, &home, &door, &clock).unwrap();
    }
    let beats: Vec<_> = tokens(&door)
        .into_iter()
        .filter(|(path, _)| path == "heartbeat")
        .collect();
    let expected = [OLD, OLD, "prov_dvt_new"].map(|token| pair("heartbeat", token));
    assert_eq!(beats, expected);
    // There is room again: it is written.
    fs::remove_dir_all(&next).unwrap();
    door.will(200, &beat());
    round_at(&agent, &home, &door, &clock).unwrap();
    assert_eq!(
        fs::read_to_string(folder.file("token")).unwrap().lines().next(),
        Some("prov_dvt_new")
    );
    assert!(!next.exists());
}

#[test]
fn a_token_that_was_written_when_the_process_was_killed_is_the_token() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let _ = agent(&folder);
    let line = format!("{:512}", "prov_dvt_new\n2099-01-01T00:00:00.000Z\n");
    // Every place at which the disk could have stopped: the earlier one stays until the later one is there wholly.
    for end in [0, 1, 9, 12, 13, 20, 36] {
        let torn = format!("{:512}", &line[..end]);
        folder.replace("token.next", torn.as_bytes()).unwrap();
        assert_eq!(
            Agent::open(&folder).unwrap().token.borrow().text.expose(),
            OLD,
            "{end}"
        );
    }
    folder.replace("token.next", line.as_bytes()).unwrap();
    let agent = Agent::open(&folder).unwrap();
    door.will(200, &beat());
    door.will(200, &taken());
    round(&agent, &home, &door).unwrap();
    assert_eq!(tokens(&door)[0], pair("heartbeat", "prov_dvt_new"));
    assert!(!folder.file("token.next").exists());
    assert_eq!(
        Agent::open(&folder).unwrap().token.borrow().text.expose(),
        "prov_dvt_new"
    );
}

/// The machine's clock is ahead or behind by months: the token is renewed by the server's.
#[test]
fn a_clock_that_is_wrong_misses_no_renewal() {
    for (off_days, is_due) in [(-200, true), (200, false)] {
        let scratch = Scratch::new();
        let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
        let _ = agent(&folder);
        let server = SystemClock::new().now();
        let left = if is_due { 10 } else { 20 };
        ends_at(&folder, OLD, server.plus_secs(left * DAY));
        door.date.set(Some(server));
        let clock = Jumping(Mutex::new((server.plus_secs(off_days * DAY), Duration::ZERO)));
        let agent = Agent::open(&folder).unwrap();
        door.will(200, &beat());
        if is_due {
            door.will(200, &renewed("prov_dvt_new"));
        }
        door.will(200, &taken());
        round_at(&agent, &home, &door, &clock).unwrap();
        let asked = tokens(&door).iter().any(|(path, _)| path == "token");
        assert_eq!(asked, is_due, "{off_days}");
        // Scans are dated by the server's clock as well: it orders them by that.
        let asked = door.asked.borrow();
        let report: Value = serde_json::from_slice(&asked.last().unwrap().3).unwrap();
        let began = Timestamp::parse(report["startedAt"].as_str().unwrap()).unwrap();
        assert!((began.as_ms() - server.as_ms()).abs() < 60_000, "{report}");
    }
}

/// Copies took all the places of its successors: it is not shut out at the end of its token, and they are found out by the former key.
#[test]
fn a_machine_whose_token_has_no_room_changes_its_key_in_the_last_week() {
    for (refusal, days_left, changes) in [(409, 9, false), (404, 6, false), (409, 6, true)] {
        let scratch = Scratch::new();
        let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
        let _ = agent(&folder);
        let start = SystemClock::new().now();
        ends_at(&folder, OLD, start.plus_secs(days_left * DAY + 7_200));
        let agent = Agent::open(&folder).unwrap();
        let clock = Jumping(Mutex::new((start, Duration::ZERO)));
        let refused = json!({ "code": "conflict", "message": "there are too many" });
        for (hours, is_asked) in [(0, false), (2, changes), (4, false), (28, changes)] {
            clock.0.lock().unwrap().0 = start.plus_secs(hours * 3_600);
            door.asked.borrow_mut().clear();
            for (status, body) in [
                (200, beat()),
                (refusal, refused.clone()),
                (200, taken()),
                (409, refused.clone()),
            ] {
                door.will(status, &body);
            }
            let _ = round_at(&agent, &home, &door, &clock);
            door.answers.borrow_mut().clear();
            let mut ends = tokens(&door).into_iter().map(|(end, _)| end);
            assert_eq!(
                ends.any(|end| end == "key"),
                is_asked,
                "{refusal} {days_left} {hours}"
            );
        }
    }
}

#[test]
fn a_token_that_has_ended_is_said_and_asked_with_again() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let agent = agent(&folder);
    door.will(
        401,
        &json!({ "message": "the token has expired", "code": "token_expired" }),
    );
    let trouble = round(&agent, &home, &door).unwrap_err();
    assert!(trouble.cause == Cause::Expired && trouble.may_pass());
    assert!(trouble.fix.unwrap().contains("provost agent enrol --anew"));
    assert!(!State::load(&folder).unwrap().is_gone);
    // The server's clock was wrong.
    door.will(200, &beat());
    door.will(200, &taken());
    round(&agent, &home, &door).unwrap();
}

/// Proves AG-2.
#[test]
fn whoever_enrols_anew_is_the_earlier_device_until_the_later_one_is_there() {
    let scratch = Scratch::new();
    let (folder, home, door) = (scratch.folder(), home(&scratch), Told::default());
    let earlier = agent(&folder);
    door.will(200, &beat());
    assert!(
        round(&earlier, &home, &door).unwrap().has_scanned,
        "and its report waits"
    );
    let clock = SystemClock::new();
    let refused = json!({ "message": "the token was revoked", "code": "token_revoked" });
    door.will(401, &refused);
    enrol_as(&folder, &door, &clock, true).unwrap_err();
    // Refused and lost answers change nothing, and the later key is kept for the next try.
    enrol_as(&folder, &door, &clock, true).unwrap_err();
    let still = Agent::open(&folder).unwrap();
    assert_eq!(still.device, earlier.device);
    let later_key = fs::read(folder.file("anew/device.key")).unwrap();
    let mut answer = enrolled();
    answer["device"]["id"] = json!("dev_later");
    answer["token"]["token"] = json!("prov_dvt_later");
    door.will(201, &answer);
    enrol_as(&folder, &door, &clock, true).unwrap();
    let later = Agent::open(&folder).unwrap();
    assert_eq!(later.device.device_id, "dev_later");
    assert_ne!(later.device.key_thumbprint, earlier.device.key_thumbprint);
    assert_eq!(fs::read(folder.file("device.key")).unwrap(), later_key);
    for gone in [
        "anew",
        "counter",
        "state.json",
        "inventory.key",
        "acknowledged.json",
    ] {
        assert!(!folder.file(gone).exists(), "{gone}");
    }
    assert_eq!(fs::read_dir(folder.file("queue")).unwrap().count(), 0);
    // What was sent stays to be explained.
    assert!(folder.file("sent/heartbeat.json").exists());
    door.will(200, &beat());
    door.will(200, &taken());
    assert_eq!(round(&later, &home, &door).unwrap().uploads, 1);
}

/// Proves AG-2.
#[test]
fn whoever_was_killed_between_two_devices_goes_on_when_the_command_is_typed_again() {
    // The steps in their order; after each of them the process may end.
    let steps: [fn(&std::path::Path) -> std::io::Result<()>; 6] = [
        |_| Ok(()),
        |at| fs::remove_file(at.join("device.json")),
        |at| fs::remove_file(at.join("counter")),
        |at| fs::rename(at.join("anew/device.key"), at.join("device.key")),
        |at| fs::rename(at.join("anew/token"), at.join("token")),
        |at| fs::rename(at.join("anew/device.json"), at.join("device.json")),
    ];
    for count in 1..=steps.len() {
        let (scratch, other) = (Scratch::new(), Scratch::new());
        let (folder, door, clock) = (scratch.folder(), Told::default(), SystemClock::new());
        let _ = agent(&folder);
        fs::write(folder.file("counter"), "00000000000000000001\n").unwrap();
        let later = agent(&other.folder());
        fs::rename(other.folder().path(), folder.file("anew")).unwrap();
        for step in &steps[..count] {
            step(folder.path()).unwrap();
        }
        let again = try_enrol(&folder, &door, &clock);
        let is_done = count == steps.len();
        assert_eq!(again.is_err(), is_done, "{count}: {again:?}");
        assert!(door.asked.borrow().is_empty(), "{count}");
        let found = Agent::open(&folder).unwrap();
        assert_eq!(
            found.device.key_thumbprint, later.device.key_thumbprint,
            "{count}"
        );
    }
}

/// Proves LJ-7.
///
/// What the earlier device judged and never told is neither the later one's nor lost without a word.
#[test]
fn what_an_earlier_device_never_sent_is_set_aside_and_said() {
    let scratch = Scratch::new();
    let (folder, door, clock) = (scratch.folder(), Told::default(), SystemClock::new());
    let _ = agent(&folder);
    let again = |id: &str| {
        let mut answer = enrolled();
        answer["device"]["id"] = json!(id);
        door.will(201, &answer);
        enrol_as(&folder, &door, &clock, true).unwrap()
    };
    let write = |entries: &[String]| {
        let mut log = crate::desk::Log::open(&folder, &|line| panic!("{line}")).unwrap();
        log.append(entries, true).unwrap();
    };
    // Nothing waits: nothing is said, and nothing stays.
    write(&[]);
    let odd = again("dev_2");
    assert!(odd.iter().all(|line| !line.contains("never sent")), "{odd:?}");
    assert!(!folder.file("decisions").exists() && !folder.file("decisions.unsent").exists());
    write(&[
        "{\"kind\":\"event\"}".to_owned(),
        "{\"kind\":\"count\"}".to_owned(),
    ]);
    let odd = again("dev_3");
    let said = odd.iter().find(|line| line.contains("never sent"));
    let said = said.unwrap_or_else(|| panic!("{odd:?}"));
    assert!(said.contains("decisions.unsent (entries: 2)"), "{said}");
    // Another kill of a chain that was bound anew: what was bound is the log, and not the later device's.
    write(&["{\"kind\":\"event\"}".to_owned()]);
    fs::rename(folder.file("decisions"), folder.file("decisions.anew")).unwrap();
    fs::create_dir(folder.file("decisions.former")).unwrap();
    super::chmod(&folder.file("decisions.former"), 0o700);
    let odd = again("dev_4");
    assert!(
        odd.iter()
            .any(|line| line.contains("decisions.unsent.2 (entries: 1)")),
        "{odd:?}"
    );
    for gone in ["decisions", "decisions.anew", "decisions.former"] {
        assert!(!folder.file(gone).exists(), "{gone}");
    }
    assert!(folder.file("decisions.unsent").exists() && folder.file("decisions.unsent.2").exists());
}
