//! A device changes its key: who is killed on the way, and who is refused.

use super::{Scratch, Told, agent, beat, home, now, round, taken};
use crate::door::Reply;
use crate::key::DeviceKey;
use crate::{Agent, Folder, Loop, Trouble, rotate_now};
use provost_words::entropy::SystemEntropy;
use provost_words::time::SystemClock;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

const NEXT: &str = "device.key.next";

/// Has the device be about to have another key, and returns the thumbprint of that.
fn begun(folder: &Folder) -> String {
    let next = DeviceKey::load_or_make_as(folder, NEXT, &SystemEntropy).unwrap();
    next.thumbprint()
}

fn changed(thumbprint: &str) -> Value {
    json!({
        "keyThumbprint": thumbprint,
        "token": { "id": "dvt_2", "token": "prov_dvt_next", "expiresAt": "2099-02-01T00:00:00.000Z" },
    })
}

fn own(folder: &Folder) -> String {
    Agent::open(folder).unwrap().key().thumbprint()
}

fn is_left(folder: &Folder, name: &str) -> bool {
    folder.file(name).symlink_metadata().is_ok()
}

fn rotate(agent: &Agent, home: &Path, door: &Told) -> Result<bool, Trouble> {
    let clock = SystemClock::new();
    now(rotate_now(&Loop {
        agent,
        door,
        home,
        clock: &clock,
        entropy: &SystemEntropy,
        say: &|_| {},
        stations: &[],
        stop: Arc::default(),
    }))
}

/// Proves AG-2.
#[test]
fn a_key_is_changed_before_anything_else_is_called_and_everything_after_it_is_called_by_the_new_one() {
    let scratch = Scratch::new();
    let (folder, home) = (scratch.folder(), home(&scratch));
    let agent = agent(&folder);
    let former = own(&folder);
    let next = begun(&folder);
    let door = Told::default();
    door.will(200, &changed(&next));
    door.will(200, &beat());
    door.will(200, &taken());
    round(&agent, &home, &door).unwrap();
    let asked = door.asked.borrow();
    let paths: Vec<bool> = asked.iter().map(|(path, ..)| path.ends_with("/key")).collect();
    assert_eq!(paths, [true, false, false]);
    let tokens: Vec<&str> = asked.iter().map(|(_, token, ..)| token.as_str()).collect();
    assert_eq!(tokens, ["prov_dvt_canary", "prov_dvt_next", "prov_dvt_next"]);
    assert_ne!(former, next);
    assert_eq!((own(&folder), agent.key().thumbprint()), (next.clone(), next));
    assert!(!is_left(&folder, NEXT) && !is_left(&folder, "rotated"));
    for name in ["device.key", "token"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    // The new key itself was not sent.
    let secret = std::fs::read_to_string(folder.file("device.key")).unwrap();
    assert!(
        asked
            .iter()
            .all(|(.., body)| !String::from_utf8_lossy(body).contains(secret.trim()))
    );
}

/// Proves AG-2.
#[test]
fn a_lost_answer_is_asked_for_again_with_the_same_key_and_nothing_else_is_called() {
    let scratch = Scratch::new();
    let (folder, home) = (scratch.folder(), home(&scratch));
    let agent = agent(&folder);
    let former = own(&folder);
    let next = begun(&folder);
    let door = Told::default();
    for _ in 0..2 {
        round(&agent, &home, &door).unwrap_err();
    }
    door.will(503, &json!({ "code": "unavailable", "message": "later" }));
    round(&agent, &home, &door).unwrap_err();
    assert!(
        door.asked
            .borrow()
            .iter()
            .all(|(path, ..)| path.ends_with("/key"))
    );
    assert_eq!((own(&folder), begun(&folder)), (former, next.clone()));
    door.will(200, &changed(&next));
    door.will(200, &beat());
    door.will(200, &taken());
    round(&agent, &home, &door).unwrap();
    assert_eq!(own(&folder), next);
}

/// Proves AG-2.
#[test]
fn a_device_that_is_refused_stays_what_it_is() {
    for (status, answer) in [
        (409, json!({ "code": "conflict", "message": "no" })),
        (
            409,
            json!({ "code": "conflict", "message": "no", "keyThumbprint": "the one that it has" }),
        ),
        (
            404,
            json!({ "code": "not_found", "message": "no such operation" }),
        ),
        // Somebody else made another key.
        (200, json!({ "keyThumbprint": "another" })),
        (
            200,
            json!({ "keyThumbprint": "another", "token": { "token": "prov_dvt_x", "expiresAt": "2099-02-01T00:00:00.000Z" } }),
        ),
    ] {
        let scratch = Scratch::new();
        let (folder, home) = (scratch.folder(), home(&scratch));
        let agent = agent(&folder);
        let former = own(&folder);
        begun(&folder);
        let door = Told::default();
        door.will(status, &answer);
        door.will(200, &beat());
        door.will(200, &taken());
        round(&agent, &home, &door).unwrap();
        assert_eq!(own(&folder), former, "{answer}");
        assert!(!is_left(&folder, NEXT));
        let asked = door.asked.borrow();
        assert_eq!(asked[1].1, "prov_dvt_canary");
    }
}

/// Proves AG-2.
#[test]
fn a_new_key_that_the_server_may_know_waits_whatever_somebody_on_the_way_says() {
    let scratch = Scratch::new();
    let (folder, home) = (scratch.folder(), home(&scratch));
    let agent = agent(&folder);
    let former = own(&folder);
    let next = begun(&folder);
    let door = Told::default();
    for status in [403, 404, 405, 409, 422] {
        let reply = || Reply {
            status,
            date: None,
            retry_after: None,
            etag: None,
            body: b"<html>sign in to the network</html>".to_vec(),
        };
        // What can be read and does not fit is asked for once more.
        door.answers.borrow_mut().extend([reply(), reply()]);
        round(&agent, &home, &door).unwrap_err();
        door.answers.borrow_mut().clear();
        assert_eq!(
            (own(&folder), begun(&folder)),
            (former.clone(), next.clone()),
            "{status}"
        );
    }
    // The server says that the device has the new key, and answers no more.
    let said =
        json!({ "code": "conflict", "message": "answered as often as it may be", "keyThumbprint": next });
    door.will(409, &said);
    let trouble = round(&agent, &home, &door).unwrap_err();
    assert!(trouble.to_string().contains("--anew"), "{trouble}");
    assert!(is_left(&folder, NEXT));
    assert!(
        door.asked
            .borrow()
            .iter()
            .all(|(path, ..)| path.ends_with("/key"))
    );
    door.will(200, &changed(&next));
    door.will(200, &beat());
    door.will(200, &taken());
    round(&agent, &home, &door).unwrap();
    assert_eq!(own(&folder), next);
}

/// Proves AG-2.
#[test]
fn a_key_that_was_never_asked_for_before_goes_where_somebody_on_the_way_refuses_it() {
    let scratch = Scratch::new();
    let (folder, home) = (scratch.folder(), home(&scratch));
    let agent = agent(&folder);
    let former = own(&folder);
    let door = Told::default();
    door.answers.borrow_mut().push_back(Reply {
        status: 403,
        date: None,
        retry_after: None,
        etag: None,
        body: b"<html>blocked</html>".to_vec(),
    });
    assert!(!rotate(&agent, &home, &door).unwrap());
    assert_eq!(own(&folder), former);
    assert!(!is_left(&folder, NEXT));
}

/// Proves AG-2.
#[test]
fn wherever_a_process_is_killed_the_device_is_the_one_key_or_the_other() {
    // How many of the files are in the folder beside, and how many of those have their place already.
    for (made, moved) in [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)] {
        let scratch = Scratch::new();
        let (folder, home) = (scratch.folder(), home(&scratch));
        drop(agent(&folder));
        let former = own(&folder);
        let next = begun(&folder);
        let whole = Scratch::new();
        let done = whole.folder();
        for name in ["device.key", "token", "device.json", NEXT] {
            done.replace(name, &folder.read(name).unwrap().unwrap()).unwrap();
        }
        let door = Told::default();
        door.will(200, &changed(&next));
        assert!(rotate(&Agent::open(&done).unwrap(), &home, &door).unwrap());
        let place = folder.below("rotated").unwrap();
        let names = ["device.key", "token", "device.json"];
        for name in &names[..made] {
            place.replace(name, &done.read(name).unwrap().unwrap()).unwrap();
        }
        for name in &names[..moved] {
            folder.take(&place, name).unwrap();
        }
        let expected = if made == 3 { &next } else { &former };
        assert_eq!(own(&folder), *expected, "{made} {moved}");
        // The next process goes on from there.
        let agent = Agent::open(&folder).unwrap();
        let door = Told::default();
        if made < 3 {
            door.will(200, &changed(&next));
        }
        door.will(200, &beat());
        door.will(200, &taken());
        round(&agent, &home, &door).unwrap();
        assert_eq!(own(&folder), next, "{made} {moved}");
        assert!(!is_left(&folder, NEXT));
        assert_eq!(door.asked.borrow().last().unwrap().1, "prov_dvt_next");
    }
}

/// Proves AG-2.
#[test]
fn a_command_whose_rotation_was_interrupted_changes_the_key_once() {
    let scratch = Scratch::new();
    let (folder, home) = (scratch.folder(), home(&scratch));
    let agent = agent(&folder);
    let mut told = beat();
    told["commands"] =
        json!([{ "id": "cmd_1", "kind": "rotate_key", "expiresAt": "2099-01-01T00:00:00.000Z" }]);
    let door = Told::default();
    door.will(200, &told);
    door.will(200, &taken());
    // Nobody answers the change of the key, and nothing is called after it.
    let problem = round(&agent, &home, &door).unwrap().problem;
    assert!(problem.is_some() && is_left(&folder, NEXT));
    assert!(door.asked.borrow().last().unwrap().0.ends_with("/key"));
    let next = begun(&folder);
    door.will(200, &changed(&next));
    door.will(200, &told);
    door.will(200, &json!({}));
    round(&agent, &home, &door).unwrap();
    let asked = door.asked.borrow();
    let count = |end: &str| asked.iter().filter(|(path, ..)| path.ends_with(end)).count();
    assert_eq!((count("/key"), count("/result")), (2, 1));
    let (path, token, _, body) = asked.last().unwrap();
    assert!(path.ends_with("/commands/cmd_1/result") && token == "prov_dvt_next");
    assert_eq!(String::from_utf8_lossy(body), r#"{"outcome":"succeeded"}"#);
    assert_eq!(own(&folder), next);
}
