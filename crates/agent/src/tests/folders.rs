//! The folder, the key, and the enrolment that fills it.

use super::{Scratch, Told, agent, chmod, enrolled, now, try_enrol};
use crate::device::DeviceFile;
use crate::key::{DeviceKey, Purpose};
use crate::{Agent, Cause, Enrolment, Folder, Mode, enrol};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_words::Secret;
use provost_words::entropy::SystemEntropy;
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn part(jws: &str, place: usize) -> Value {
    let part = jws.split('.').nth(place).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Proves AG-4.
#[test]
fn what_is_open_to_others_a_link_or_no_file_is_refused_by_its_name() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    agent(&folder);
    for name in ["device.json", "device.key", "token"] {
        let path = folder.file(name);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{name}"
        );
        for mode in [0o640, 0o604, 0o620, 0o601] {
            chmod(&path, mode);
            let trouble = Agent::open(&folder).unwrap_err();
            assert_eq!(trouble.cause, Cause::Folder);
            assert!(
                trouble.line.contains(name) && trouble.fix.unwrap().contains("chmod 600"),
                "{}",
                trouble.line
            );
        }
        chmod(&path, 0o600);
        let aside = scratch.0.join("aside");
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        let trouble = Agent::open(&folder).unwrap_err();
        assert!(
            trouble.line.contains(name) && trouble.line.contains("link"),
            "{}",
            trouble.line
        );
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        chmod(&path, 0o700);
        let trouble = Agent::open(&folder).unwrap_err();
        assert!(
            trouble.line.contains(name) && trouble.line.contains("no regular file"),
            "{}",
            trouble.line
        );
        fs::remove_dir(&path).unwrap();
        assert!(Agent::open(&folder).unwrap_err().line.contains(name));
        fs::rename(&aside, &path).unwrap();
        Agent::open(&folder).unwrap();
    }
    chmod(folder.path(), 0o750);
    assert!(Folder::open(folder.path()).unwrap_err().line.contains("mode 750"));
    chmod(folder.path(), 0o700);
    let link = scratch.0.join("link");
    symlink(folder.path(), &link).unwrap();
    assert!(Folder::open(&link).unwrap_err().line.contains("a link"));
    let file = scratch.0.join("file");
    fs::write(&file, "").unwrap();
    assert!(Folder::make(&file).unwrap_err().line.contains("no folder"));
    assert_eq!(
        Folder::open(&scratch.0.join("none")).unwrap_err().cause,
        Cause::Enrolment
    );
}

/// Proves AG-4.
#[test]
fn what_belongs_to_another_account_is_refused() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    agent(&folder);
    // Only root can give files away; as another account there is nothing to try.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::os::unix::fs::fchown(
        std::fs::File::open(folder.file("token")).unwrap(),
        Some(12_345),
        None,
    )
    .unwrap();
    let trouble = Agent::open(&folder).unwrap_err();
    assert!(
        trouble.line.contains("belongs to the account 12345"),
        "{}",
        trouble.line
    );
    std::os::unix::fs::fchown(std::fs::File::open(folder.path()).unwrap(), Some(12_345), None).unwrap();
    assert!(
        Folder::open(folder.path())
            .unwrap_err()
            .line
            .contains("belongs to the account 12345")
    );
}

/// Proves AG-2.
#[test]
fn the_key_is_there_before_the_request_and_a_lost_answer_is_repeated_with_it() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let (door, clock) = (Told::default(), SystemClock::new());
    let lost = try_enrol(&folder, &door, &clock).unwrap_err();
    assert_eq!(lost.cause, Cause::Unreachable);
    let key = fs::read(folder.file("device.key")).unwrap();
    assert!(Agent::open(&folder).unwrap_err().line.contains("not enrolled"));
    door.will(200, &enrolled());
    try_enrol(&folder, &door, &clock).unwrap();
    assert_eq!(fs::read(folder.file("device.key")).unwrap(), key);
    let asked = door.asked.borrow();
    let keys: Vec<Value> = asked
        .iter()
        .map(|(_, _, proof, _)| part(proof, 0)["jwk"].clone())
        .collect();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(part(&asked[0].2, 1)["jti"], part(&asked[1].2, 1)["jti"]);
    assert_eq!(asked[0].0, "/api/headless/v1/organizations/acme/devices/enrol");
    let body: Value = serde_json::from_slice(&asked[0].3).unwrap();
    assert_eq!(
        body,
        json!({ "name": "laptop", "platform": "linux", "arch": std::env::consts::ARCH, "keyProtection": "file" })
    );
    drop(asked);
    let again = try_enrol(&folder, &door, &clock).unwrap_err();
    assert!(again.line.contains("enrolled already"), "{}", again.line);
    assert_eq!(door.asked.borrow().len(), 2, "nobody was asked");
}

/// Proves AG-2.
#[test]
fn a_key_that_is_torn_or_another_is_refused_and_never_replaced() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    agent(&folder);
    let path = folder.file("device.key");
    let other = Scratch::new();
    DeviceKey::load_or_make(&other.folder(), &SystemEntropy).unwrap();
    for bytes in [
        b"".to_vec(),
        b"abc".to_vec(),
        fs::read(other.folder().file("device.key")).unwrap(),
    ] {
        fs::write(&path, &bytes).unwrap();
        assert_eq!(Agent::open(&folder).unwrap_err().cause, Cause::Folder);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    fs::write(&path, "").unwrap();
    assert!(DeviceKey::load_or_make(&folder, &SystemEntropy).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn a_proof_is_of_its_request_and_its_token() {
    let scratch = Scratch::new();
    let key = DeviceKey::load_or_make(&scratch.folder(), &SystemEntropy).unwrap();
    let purpose = Purpose {
        method: "POST",
        url: "https://provost.test/x",
        token: &Secret::new("token".to_owned()),
        now: Timestamp::from_ms(12_345_678),
    };
    let proof = key.proof(&purpose, &SystemEntropy);
    assert_eq!(part(&proof, 0)["typ"], "dpop+jwt");
    assert_eq!(part(&proof, 0)["alg"], "EdDSA");
    let claims = part(&proof, 1);
    assert_eq!(claims["htm"], "POST");
    assert_eq!(claims["htu"], "https://provost.test/x");
    assert_eq!(claims["iat"], 12_345);
    assert_eq!(claims["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
    let (signed, signature) = proof.rsplit_once('.').unwrap();
    let public = URL_SAFE_NO_PAD
        .decode(part(&proof, 0)["jwk"]["x"].as_str().unwrap())
        .unwrap();
    let public = aws_lc_rs::signature::UnparsedPublicKey::new(&aws_lc_rs::signature::ED25519, public);
    public
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
}

#[test]
fn no_secret_is_in_a_debug_print() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let agent = agent(&folder);
    let shown = format!("{agent:?}");
    let seed = fs::read_to_string(folder.file("device.key")).unwrap();
    assert!(
        !shown.contains("canary") && !shown.contains(seed.trim()),
        "{shown}"
    );
    assert!(
        !fs::read_to_string(folder.file("device.json"))
            .unwrap()
            .contains("canary")
    );
}

#[test]
fn a_machine_with_a_wrong_clock_enrols_by_the_servers() {
    let scratch = Scratch::new();
    let (folder, door, clock) = (scratch.folder(), Told::default(), SystemClock::new());
    door.date.set(Some(clock.now().plus_secs(7200)));
    door.will(
        401,
        &json!({ "message": "the token is not valid", "code": "unauthenticated" }),
    );
    door.will(201, &enrolled());
    let odd = try_enrol(&folder, &door, &clock).unwrap();
    assert!(odd.iter().any(|line| line.contains("clock is 7")), "{odd:?}");
    let asked = door.asked.borrow();
    let at = |place: usize| part(&asked[place].2, 1)["iat"].as_i64().unwrap();
    assert!((7195..7205).contains(&(at(1) - at(0))));
    assert_eq!(asked.len(), 2);
}

#[test]
fn what_refuses_says_what_to_do_and_a_bad_answer_enrols_nothing() {
    let scratch = Scratch::new();
    let (folder, door, clock) = (scratch.folder(), Told::default(), SystemClock::new());
    door.will(
        401,
        &json!({ "message": "the token is not valid", "code": "unauthenticated" }),
    );
    let refused = try_enrol(&folder, &door, &clock).unwrap_err();
    assert!(refused.fix.unwrap().contains("http.public_url"));
    door.will(
        401,
        &json!({ "message": "the token was revoked", "code": "token_revoked" }),
    );
    let refused = try_enrol(&folder, &door, &clock).unwrap_err();
    assert_eq!(refused.cause, Cause::Refused(401));
    for id in ["", "dev_", "dev_../../x", "usr_01", "dev_a/b"] {
        let mut answer = enrolled();
        answer["device"]["id"] = json!(id);
        door.will(201, &answer);
        assert!(
            try_enrol(&folder, &door, &clock)
                .unwrap_err()
                .line
                .contains("no device"),
            "{id}"
        );
    }
    assert!(!folder.file("device.json").exists() && !folder.file("token").exists());
}

#[test]
fn certificates_are_kept_in_the_folder_and_missed_when_they_are_gone() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let door = Told::default();
    door.will(201, &enrolled());
    let enrolment = Enrolment {
        door: &door,
        organization: "acme",
        token: &Secret::new("prov_ent_canary".to_owned()),
        name: "laptop",
        mode: Mode::User,
        allow_plain_http: false,
        ca_cert: Some(b"PEM"),
        anew: false,
        clock: &SystemClock::new(),
        entropy: &SystemEntropy,
    };
    now(enrol(&folder, &enrolment)).unwrap();
    let path = Agent::open(&folder).unwrap().ca_cert().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"PEM");
    chmod(&path, 0o622);
    assert!(Agent::open(&folder).unwrap_err().line.contains("ca.pem"));
    fs::remove_file(&path).unwrap();
    assert!(Agent::open(&folder).unwrap_err().line.contains("ca.pem"));
}

#[test]
fn one_agent_works_in_a_folder() {
    let scratch = Scratch::new();
    let folder = scratch.folder();
    let _lock = folder.lock().unwrap();
    let (door, clock) = (Told::default(), SystemClock::new());
    let trouble = try_enrol(&folder, &door, &clock).unwrap_err();
    assert!(trouble.line.contains("another agent"), "{}", trouble.line);
    let fix = trouble.fix.unwrap();
    assert!(!fix.contains("systemctl"), "{fix}");
}

/// The service of a person is not the machine's, and what somebody started by hand is no service.
#[test]
fn who_finds_another_agent_at_work_hears_how_that_one_is_stopped() {
    for (mode, stops) in [("user", "systemctl --user stop"), ("system", ": systemctl stop")] {
        let scratch = Scratch::new();
        let folder = scratch.folder();
        let device = json!({
            "server": "https://provost.acme.example", "organization": "default", "deviceId": "dev_1", "name": "laptop",
            "mode": mode, "keyThumbprint": "t",
        });
        folder
            .replace("device.json", device.to_string().as_bytes())
            .unwrap();
        assert!(DeviceFile::load(&folder).unwrap().is_some());
        let _lock = folder.lock().unwrap();
        let fix = folder.lock().unwrap_err().fix.unwrap();
        assert!(fix.contains(stops) && fix.contains("Ctrl-C"), "{fix}");
    }
}
