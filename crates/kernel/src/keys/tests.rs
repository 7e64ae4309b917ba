use super::*;
use crate::doubt::SureTime;
use crate::ends::{EndJournal, is_kept};
use crate::entropy::{SeededEntropy, SystemEntropy, UnitRng};
use crate::error::Class;
use crate::secret::Secret;
use crate::time::ManualClock;
use proptest::prelude::*;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread;
use std::time::Duration;

pub(crate) const NOW: Timestamp = Timestamp::from_ms(1_795_144_500_000);

const LATER: Timestamp = Timestamp::from_ms(1_795_144_600_000);

/// A folder that ends with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        let seed = SystemEntropy.seed();
        let name = seed[..8].iter().map(u8::to_string).collect::<Vec<_>>().join("-");
        let path = std::env::temp_dir().join(format!("provost-keys-{name}"));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The keys folder below it, which is not made yet.
    pub(crate) fn keys(&self) -> PathBuf {
        self.0.join("keys")
    }

    /// Makes keys from a seed.
    pub(crate) fn create(&self, seed: u64) -> Keys {
        Keys::create(&self.keys(), NOW, &SeededEntropy::new(seed)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refusal<T: std::fmt::Debug>(scratch: &Scratch, result: Result<T>) -> String {
    let error = result.unwrap_err();
    let path = scratch.0.to_string_lossy().into_owned();
    assert!(!error.message().contains(&path), "{error}");
    assert!(!error.message().ends_with('.'), "{error}");
    error.message().to_owned()
}

fn files(dir: &Path) -> Vec<String> {
    folder::names(dir).unwrap()
}

fn with_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn create_makes_one_private_key_of_every_purpose() {
    let scratch = Scratch::new();
    assert!(!Keys::exists(&scratch.keys()));
    let keys = scratch.create(1);
    assert!(Keys::exists(&scratch.keys()));
    let expected = [
        "audit-1.key",
        "checkpoint-1.key",
        "pepper-1.key",
        "request-1.key",
        "sealing-1.key",
        "signing-1.key",
    ];
    assert_eq!(files(&scratch.keys()), expected);
    assert_eq!(fs::metadata(scratch.keys()).unwrap().mode() & 0o777, 0o700);
    for name in expected {
        assert_eq!(
            fs::metadata(scratch.keys().join(name)).unwrap().mode() & 0o777,
            0o600
        );
    }
    assert_eq!(keys.ids().len(), 6);
    assert!(keys.ids().iter().all(|key| key.current && key.created == NOW));
}

#[test]
fn a_purpose_of_a_later_version_gets_its_first_key_once() {
    let scratch = Scratch::new();
    scratch.create(1);
    let path = scratch.keys().join("signing-1.key");
    fs::remove_file(&path).unwrap();
    let entropy = SeededEntropy::new(3);
    let mut known = vec!["pepper/pepper-1".to_owned()];
    Keys::add_later_purposes(&scratch.keys(), &known, NOW, &entropy).unwrap();
    let made = Keys::open(&scratch.keys()).unwrap().check_values();
    Keys::add_later_purposes(&scratch.keys(), &known, NOW, &entropy).unwrap();
    assert_eq!(Keys::open(&scratch.keys()).unwrap().check_values(), made);
    // The store has seen it since: it must come back from an export, never anew.
    known.push("signing/signing-1".to_owned());
    fs::remove_file(&path).unwrap();
    Keys::add_later_purposes(&scratch.keys(), &known, NOW, &entropy).unwrap();
    assert!(!path.exists());
}

#[test]
fn create_never_overwrites() {
    let scratch = Scratch::new();
    let first = scratch.create(1).check_values();
    let again = Keys::create(&scratch.keys(), NOW, &SeededEntropy::new(2));
    assert!(refusal(&scratch, again).contains("already holds keys"));
    assert_eq!(Keys::open(&scratch.keys()).unwrap().check_values(), first);
    let pepper = Key::new(Purpose::Pepper, 1, NOW, [9; 32]);
    assert!(refusal(&scratch, folder::add(&scratch.keys(), &pepper)).contains("pepper-1 is already"));
    assert_eq!(Keys::open(&scratch.keys()).unwrap().check_values(), first);
    assert_eq!(files(&scratch.keys()).len(), 6, "no temporary file stays");
}

#[test]
fn open_says_what_is_wrong() {
    let scratch = Scratch::new();
    let dir = scratch.keys();
    let message = || refusal(&scratch, Keys::open(&dir));
    assert_eq!(message(), "the keys folder is missing");
    fs::write(&dir, "").unwrap();
    assert_eq!(message(), "the keys folder is not a folder");
    fs::remove_file(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    for mode in [0o755, 0o710, 0o701] {
        with_mode(&dir, mode);
        assert!(message().contains("mode 0700"), "{mode:o}");
    }
    with_mode(&dir, 0o700);
    assert!(message().contains("no pepper key"));

    drop(scratch.create(1));
    let path = dir.join("pepper-1.key");
    for mode in [0o640, 0o604, 0o601, 0o620] {
        with_mode(&path, mode);
        assert!(
            message().contains("pepper-1 in the keys folder is open to others"),
            "{mode:o}"
        );
    }
    with_mode(&path, 0o600);
    let good = fs::read_to_string(&path).unwrap();
    let marker = "bWFya2Vy";
    for bad in [
        String::new(),
        marker.to_owned(),
        "\0".repeat(200),
        good[..good.len() / 2].to_owned(),
        good.replace("\"key\":\"", &format!("\"key\":\"{marker}")),
        good.replace("\"key\"", &format!("\"{marker}\"")),
        good.replace("pepper-1", "pepper-2"),
        "x".repeat(5000),
    ] {
        fs::write(&path, &bad).unwrap();
        let message = message();
        assert!(
            message.contains("pepper-1") && !message.contains(marker),
            "{message}"
        );
    }
    fs::remove_file(&path).unwrap();
    assert!(message().contains("no pepper key"));
    fs::write(&path, good).unwrap();
    with_mode(&path, 0o600);
    assert!(Keys::open(&dir).is_ok());
}

#[test]
fn foreign_files_and_leftovers_are_passed_over() {
    let scratch = Scratch::new();
    let checks = scratch.create(1).check_values();
    for name in [
        "README",
        "pepper-01.key",
        "pepper-0.key",
        "pepper.key",
        ".pepper-2.key.00.tmp",
        "day-7.key",
    ] {
        fs::write(scratch.keys().join(name), "something").unwrap();
    }
    assert_eq!(Keys::open(&scratch.keys()).unwrap().check_values(), checks);
}

/// Proves ST-1.
#[test]
fn verify_wants_every_known_key_unchanged() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let known = |keys: &Keys| -> Vec<(String, Vec<u8>)> {
        keys.check_values()
            .into_iter()
            .map(|(id, value)| (id, value.to_vec()))
            .collect()
    };
    let keys = scratch.create(1);
    assert_eq!(keys.check_values()[0].0, "pepper/pepper-1");
    let before = known(&keys);
    keys.verify(&before).unwrap();
    Keys::rotate(&scratch.keys(), "pepper", NOW, &SystemEntropy).unwrap();
    Keys::open(&scratch.keys()).unwrap().verify(&before).unwrap();

    let message = refusal(&scratch, other.create(2).verify(&before));
    assert!(
        message.contains("pepper/pepper-1") && message.contains("is not the one"),
        "{message}"
    );
    let after = known(&Keys::open(&scratch.keys()).unwrap());
    let message = refusal(&scratch, keys.verify(&after));
    assert!(
        message.contains("pepper/pepper-2") && message.contains("is missing"),
        "{message}"
    );
    assert!(
        keys.verify(&[("pepper/pepper-1".to_owned(), Vec::new())])
            .is_err()
    );
}

#[test]
fn rotate_adds_a_key_and_keeps_the_old_one() {
    let scratch = Scratch::new();
    drop(scratch.create(1));
    let later = NOW.plus_secs(60);
    for (purpose, id) in [
        ("pepper", "pepper-2"),
        ("pepper", "pepper-3"),
        ("checkpoint", "checkpoint-2"),
    ] {
        assert_eq!(
            Keys::rotate(&scratch.keys(), purpose, later, &SystemEntropy).unwrap(),
            id
        );
    }
    let keys = Keys::open(&scratch.keys()).unwrap();
    let shown: Vec<_> = keys
        .ids()
        .into_iter()
        .filter(|key| key.purpose == "pepper")
        .collect();
    let shown: Vec<_> = shown.iter().map(|key| (key.id.as_str(), key.current)).collect();
    assert_eq!(
        shown,
        [("pepper-1", false), ("pepper-2", false), ("pepper-3", true)]
    );
    assert_eq!(keys.token_mac_current("t").0, "pepper-3");
    assert_eq!(keys.checkpoint_public_keys().len(), 2);
    assert_eq!(keys.sign_checkpoint(b"x").0, "provost/checkpoint-2");
    for purpose in ["request", "day", ""] {
        let rotated = Keys::rotate(&scratch.keys(), purpose, later, &SystemEntropy);
        assert!(refusal(&scratch, rotated).contains("can be rotated"));
    }
}

#[test]
fn the_tenth_key_follows_the_ninth() {
    let scratch = Scratch::new();
    drop(scratch.create(1));
    for number in 2..=11 {
        let id = Keys::rotate(&scratch.keys(), "pepper", NOW, &SystemEntropy).unwrap();
        assert_eq!(id, format!("pepper-{number}"));
    }
}

#[test]
fn keyed_hashes_are_what_they_were() {
    // Computed with another implementation of HMAC and HKDF. A change here makes stored hashes worthless.
    let key = Key::new(Purpose::Pepper, 1, NOW, [7; 32]);
    let expected = "0ca8a4230262677a48810155b36c9d1417f9c44cd012f565d6b5d9db0534f529";
    assert_eq!(hex(&check_value(&key)), expected);
    let ring = ring::Ring::new(
        vec![Key::new(Purpose::Request, 1, NOW, [7; 32])],
        &BTreeSet::new(),
    );
    let framed = derive::framed(&[b"org", b"body"]);
    let mac = sign(&ring.mac(MacPurpose::Fingerprint), &[framed.as_slice()]);
    assert_eq!(
        hex(&mac),
        "ad8ef0ced9bc5314f7607e450479225052f5266e306a52dbba4da98a2d3e9ffe"
    );
    for (own, expected) in [
        (
            "provost/mac/preview-token/v1",
            "96a41576b88caaa666860edb75413c03699ad55d61d4de92dc594c255a2f3573",
        ),
        (
            "provost/mac/plan-token/v1",
            "aa2138b20df929156591c74167eea08ad990e2eac2810673ddc2da21cbbba829",
        ),
        (
            "provost/mac/content-digest/v1",
            "bbc4ebf2ee4fd59d90a6fc55cbeb8a683e0c59924d49f42124b0b0f521a0190c",
        ),
    ] {
        let mac = sign(&ring.mac(MacPurpose::Own(own)), &[framed.as_slice()]);
        assert_eq!(hex(&mac), expected, "{own}");
    }
    let token = hmac_sha256(key.bytes(), &[b"prov_sat_x"]);
    assert_eq!(
        hex(&token),
        "dd742a748eecbb19b36fc5708faa20e003ced73f3d88133a168d537ce74c31c7"
    );
    // RFC 4231, test case 2.
    let mac = hmac_sha256(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
    assert_eq!(
        hex(&mac),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
}

/// Proves CR-1.
#[test]
fn a_token_is_hashed_under_the_named_pepper() {
    let scratch = Scratch::new();
    drop(scratch.create(1));
    Keys::rotate(&scratch.keys(), "pepper", NOW, &SystemEntropy).unwrap();
    let keys = Keys::open(&scratch.keys()).unwrap();
    let (id, current) = keys.token_mac_current("token");
    let id = id.as_str();
    assert_eq!(keys.token_mac(id, "token").unwrap(), current);
    assert_ne!(keys.token_mac("pepper-1", "token").unwrap(), current);
    assert_ne!(keys.token_mac(id, "tokeN").unwrap(), current);
    for unknown in ["pepper-3", "audit-1", ""] {
        let error = keys.token_mac(unknown, "token").unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
    }
}

#[test]
fn a_purpose_cannot_stand_for_another() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let mut macs: Vec<_> = MacPurpose::ALL
        .iter()
        .chain(&[MacPurpose::Own("an area's"), MacPurpose::Own("another's")])
        .map(|purpose| keys.mac(*purpose, &[b"x"]))
        .collect();
    macs.sort_unstable();
    macs.dedup();
    assert_eq!(macs.len(), MacPurpose::ALL.len() + 2);
    let own = keys.mac(MacPurpose::Own("an area's"), &[b"x"]);
    assert!(keys.mac_matches(MacPurpose::Own("an area's"), &[b"x"], &own));
    assert!(!keys.mac_matches(MacPurpose::Own("another's"), &[b"x"], &own));
}

#[test]
fn a_hash_stays_good_when_its_key_is_rotated() {
    let scratch = Scratch::new();
    let head = scratch.create(1).mac(MacPurpose::ChainHead, &[b"org", b"7"]);
    Keys::rotate(&scratch.keys(), "audit", NOW, &SystemEntropy).unwrap();
    let keys = Keys::open(&scratch.keys()).unwrap();
    assert_ne!(keys.mac(MacPurpose::ChainHead, &[b"org", b"7"]), head);
    assert!(keys.mac_matches(MacPurpose::ChainHead, &[b"org", b"7"], &head));
    assert!(!keys.mac_matches(MacPurpose::ChainHead, &[b"org", b"8"], &head));
    assert!(!keys.mac_matches(MacPurpose::AuditValue, &[b"org", b"7"], &head));
    assert!(!keys.mac_matches(MacPurpose::ChainHead, &[b"org", b"7"], &head[..31]));
    assert!(!keys.mac_matches(MacPurpose::ChainHead, &[b"org", b"7"], &[]));
}

#[test]
fn keys_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Keys>();
}

/// Proves DU-1.
#[test]
fn folders_above_are_made_too() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("data/keys");
    drop(Keys::create(&dir, NOW, &SeededEntropy::new(1)).unwrap());
    assert!(Keys::exists(&dir));
}

#[test]
fn debug_shows_ids_only() {
    let scratch = Scratch::new();
    let shown = format!("{:?}", scratch.create(1));
    assert_eq!(
        shown,
        r#"["pepper-1", "sealing-1", "audit-1", "request-1", "checkpoint-1", "signing-1"]"#
    );
}

#[test]
fn a_sealed_secret_opens_only_in_its_place() {
    let scratch = Scratch::new();
    drop(scratch.create(1));
    let mut rng = UnitRng::new([4; 32]);
    let aad: &[&[u8]] = &[b"org", b"cred_1", b"2"];
    let (id, sealed) = Keys::open(&scratch.keys())
        .unwrap()
        .seal(aad, b"hunter2", &mut rng)
        .unwrap();
    assert_eq!(id, "sealing-1");
    Keys::rotate(&scratch.keys(), "sealing", NOW, &SystemEntropy).unwrap();
    let keys = Keys::open(&scratch.keys()).unwrap();
    let opened = |id: &str, aad: &[&[u8]], sealed: &[u8]| {
        keys.open_sealed(id, aad, sealed).map(|s| s.expose().clone())
    };
    assert_eq!(
        opened("sealing-1", aad, &sealed).as_deref(),
        Some(b"hunter2".as_slice())
    );
    assert_eq!(opened("sealing-2", aad, &sealed), None);
    assert_eq!(opened("sealing-9", aad, &sealed), None);
    assert_eq!(opened("sealing-1", &[b"org", b"cred_2", b"2"], &sealed), None);
    assert_eq!(opened("sealing-1", &[b"orgc", b"red_1", b"2"], &sealed), None);
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert_eq!(opened("sealing-1", aad, &changed), None, "byte {at}");
        assert_eq!(opened("sealing-1", aad, &sealed[..at]), None, "cut at {at}");
    }
}

/// Proves CX-2.
#[test]
fn a_unit_that_runs_again_never_repeats_key_and_nonce_for_another_text() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let seal = |text: &[u8]| keys.seal(&[b"a"], text, &mut UnitRng::new([4; 32])).unwrap().1;
    assert_eq!(seal(b"one"), seal(b"one"));
    let (one, two) = (seal(b"one"), seal(b"two"));
    assert_eq!(one[..16], two[..16], "the same salt");
    assert_ne!(one[16..28], two[16..28], "another nonce");
}

const AAD: &[&[u8]] = &[b"org", b"sa_1", b"rotate"];
const SALT: [u8; 16] = [5; 16];
const KEY: &str = "3f0c8a52-rotate-tonight";

fn open_cell(keys: &Keys, day: i64, sealed: &[u8]) -> Option<String> {
    keys.open_cell(day, &SALT, AAD, KEY, sealed)
        .unwrap()
        .map(|text| text.expose().clone())
}

/// Proves ID-3.
#[test]
fn a_cell_opens_only_with_all_that_it_was_sealed_with() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let sealed = keys
        .seal_cell(20_777, &SALT, AAD, KEY, "prov_sat_tøken".as_bytes())
        .unwrap();
    assert_eq!(
        open_cell(&keys, 20_777, &sealed).as_deref(),
        Some("prov_sat_tøken")
    );
    assert_eq!(
        open_cell(&Keys::open(&scratch.keys()).unwrap(), 20_777, &sealed).as_deref(),
        Some("prov_sat_tøken")
    );

    keys.seal_cell(20_778, &SALT, AAD, KEY, b"another").unwrap();
    let mut refused = 0;
    let mut closed = |day, salt: &[u8; 16], aad: &[&[u8]], key: &str, sealed: &[u8], how: &str| {
        let opened = keys.open_cell(day, salt, aad, key, sealed).unwrap();
        assert!(opened.is_none(), "{how}");
        refused += 1;
    };
    closed(20_778, &SALT, AAD, KEY, &sealed, "another day");
    closed(20_777, &[6; 16], AAD, KEY, &sealed, "another salt");
    let other_row: &[&[u8]] = &[b"org", b"sa_2", b"rotate"];
    closed(20_777, &SALT, other_row, KEY, &sealed, "another row");
    closed(20_777, &SALT, &AAD[..2], KEY, &sealed, "less of a place");
    closed(20_777, &SALT, AAD, "another-key", &sealed, "another key");
    let with_key: &[&[u8]] = &[b"org", b"sa_1", b"rotate", KEY.as_bytes()];
    closed(
        20_777,
        &SALT,
        with_key,
        "",
        &sealed,
        "the key as a part of the place",
    );
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 0x80;
        closed(20_777, &SALT, AAD, KEY, &changed, &format!("byte {at}"));
        closed(20_777, &SALT, AAD, KEY, &sealed[..at], &format!("cut at {at}"));
    }
    if let Some(path) = std::env::var_os("PROVOST_TEST_REPORT") {
        fs::write(path, serde_json::json!({ "refused": refused }).to_string()).unwrap();
    }
}

#[test]
fn the_day_key_lies_in_a_private_file_and_not_in_the_cell() {
    let scratch = Scratch::new();
    let sealed = scratch.create(1).seal_cell(7, &SALT, AAD, KEY, b"token").unwrap();
    let path = scratch.keys().join("day-7.key");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&path).unwrap().len(), 32);
    assert_eq!(sealed.len(), 12 + b"token".len() + 16);
    assert_eq!(files(&scratch.keys()).len(), 7, "no temporary file stays");
}

/// Proves ID-3.
#[test]
fn a_destroyed_day_key_closes_its_cells_in_every_process() {
    let scratch = Scratch::new();
    let (keys, other) = (scratch.create(1), Keys::open(&scratch.keys()).unwrap());
    let cells: Vec<_> = (-1..=3)
        .map(|day| keys.seal_cell(day, &SALT, AAD, KEY, b"t").unwrap())
        .collect();
    assert_eq!(open_cell(&other, 1, &cells[2]).as_deref(), Some("t"));
    // A second name shows what became of the bytes.
    let witness = scratch.0.join("witness");
    fs::hard_link(scratch.keys().join("day-1.key"), &witness).unwrap();
    let leftover = scratch.keys().join(".day-0.key.0123456789abcdef.tmp");
    fs::write(&leftover, [1; 32]).unwrap();

    assert_eq!(
        keys.destroy_day_keys(SureTime::for_test(Timestamp::from_ms(4 * 86_400_000)))
            .unwrap(),
        3
    );
    for (day, cell) in (-1..=3).zip(&cells) {
        assert_eq!(open_cell(&other, day, cell).is_some(), day >= 2, "day {day}");
    }
    assert_eq!(fs::read(&witness).unwrap(), [0; 32]);
    assert!(!leftover.exists());
    assert_eq!(
        keys.destroy_day_keys(SureTime::for_test(Timestamp::from_ms(4 * 86_400_000)))
            .unwrap(),
        0
    );
    assert_eq!(keys.ids().len(), Keys::open(&scratch.keys()).unwrap().ids().len());
}

#[test]
fn a_day_key_that_is_being_destroyed_counts_as_destroyed() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let sealed = keys.seal_cell(7, &SALT, AAD, KEY, b"t").unwrap();
    let path = scratch.keys().join("day-7.key");
    for zeroed in [vec![0; 32], Vec::new()] {
        fs::write(&path, zeroed).unwrap();
        assert_eq!(open_cell(&keys, 7, &sealed), None);
        assert!(keys.seal_cell(7, &SALT, AAD, KEY, b"t").is_err());
    }
    fs::write(&path, [1; 31]).unwrap();
    let error = keys.open_cell(7, &SALT, AAD, KEY, &sealed).unwrap_err();
    assert!(
        error
            .private()
            .unwrap()
            .contains("day 7 in the keys folder is malformed")
    );
    assert!(
        !error.message().contains("day 7"),
        "a caller learns nothing of the folder"
    );
}

#[test]
fn servers_that_share_the_folder_agree_on_a_new_day_key() {
    let scratch = Scratch::new();
    drop(scratch.create(1));
    let servers: Vec<_> = (0..8).map(|_| Keys::open(&scratch.keys()).unwrap()).collect();
    for day in 0..20 {
        let cells: Vec<_> = thread::scope(|scope| {
            let seal = |keys: &Keys| keys.seal_cell(day, &SALT, AAD, KEY, b"token").unwrap();
            let running: Vec<_> = servers
                .iter()
                .map(|keys| scope.spawn(move || seal(keys)))
                .collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for (keys, cell) in servers.iter().zip(cells.iter().rev()) {
            assert_eq!(open_cell(keys, day, cell).as_deref(), Some("token"));
        }
    }
    assert_eq!(files(&scratch.keys()).len(), 26);
}

#[test]
fn checkpoint_lines_are_kept_in_order() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    assert_eq!(keys.checkpoint_lines().unwrap(), Vec::<String>::new());
    for line in ["{\"a\":1}", "zwei — drei", "4"] {
        keys.append_checkpoint_line(line).unwrap();
    }
    let lines = Keys::open(&scratch.keys()).unwrap().checkpoint_lines().unwrap();
    assert_eq!(lines, ["{\"a\":1}", "zwei — drei", "4"]);
    let path = scratch.keys().join("checkpoints.jsonl");
    assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    for line in ["", "a\nb", "a\r"] {
        assert!(keys.append_checkpoint_line(line).is_err());
    }
}

#[test]
fn a_torn_last_line_is_left_out_and_does_not_spoil_the_next() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let path = scratch.keys().join("checkpoints.jsonl");
    let whole = "first\nsecond — ü\n";
    for torn in 0..whole.len() {
        fs::write(&path, &whole.as_bytes()[..torn]).unwrap();
        let kept: Vec<_> = ["first"].into_iter().filter(|_| torn > "first".len()).collect();
        assert_eq!(keys.checkpoint_lines().unwrap(), kept, "torn at {torn}");
        keys.append_checkpoint_line("next").unwrap();
        assert_eq!(
            keys.checkpoint_lines().unwrap(),
            [kept, vec!["next"]].concat(),
            "torn at {torn}"
        );
    }
}

#[test]
fn a_torn_line_longer_than_a_block_is_found() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let path = scratch.keys().join("checkpoints.jsonl");
    for length in [4095, 4096, 4097, 9000] {
        fs::write(&path, "first\n").unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all("x".repeat(length).as_bytes()).unwrap();
        keys.append_checkpoint_line("next").unwrap();
        assert_eq!(keys.checkpoint_lines().unwrap(), ["first", "next"], "{length}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nnext\n", "{length}");
    }
}

#[test]
fn lines_of_what_ended_are_durable_private_and_say_from_when_on_they_are_whole() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    assert_eq!(keys.end_lines().unwrap(), Vec::<String>::new());
    assert!(keys.begin_ends(NOW).unwrap() && !keys.begin_ends(LATER).unwrap());
    keys.append_ends(LATER, &["one".to_owned(), "two".to_owned()])
        .unwrap();
    let path = scratch.keys().join("ends.jsonl");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"torn").unwrap();
    let lines = keys.end_lines().unwrap();
    assert_eq!((lines.len(), &lines[1][..], &lines[2][..]), (3, "one", "two"));
    assert_eq!(EndJournal::of(&lines).since, Some(NOW));
    keys.append_ends(LATER, &["three".to_owned()]).unwrap();
    assert_eq!(
        keys.end_lines().unwrap()[3],
        "three",
        "what a crash tore spoils nothing"
    );
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert!(keys.append_ends(NOW, &["a\nb".to_owned()]).is_err());
}

#[test]
fn lines_of_what_ended_go_when_they_are_old_and_the_rest_stays_whole() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let line = |ms| {
        format!(
            r#"{{"storeId":"a","storeEpoch":0,"organizationId":"acme","sequence":1,"time":{},"acts":[],"what":"user","how":"suspended","ids":[["usr_1"]]}}"#,
            serde_json::json!(Timestamp::from_ms(ms))
        )
    };
    keys.append_ends(Timestamp::from_ms(0), &[line(5), "{".to_owned(), line(9)])
        .unwrap();
    let trim = |before: i64| {
        let before = Timestamp::from_ms(before);
        keys.trim_ends(before, |text| is_kept(text, before)).unwrap()
    };
    assert_eq!(trim(0), 0);
    assert_eq!(
        trim(6),
        2,
        "the line, and what said from when on the file was whole"
    );
    assert_eq!(trim(6), 0, "once is enough");
    let journal = EndJournal::of(&keys.end_lines().unwrap());
    assert_eq!(journal.since, Some(Timestamp::from_ms(6)));
    assert_eq!((journal.lines.len(), journal.damaged), (1, vec![2]));
    assert_eq!(
        fs::metadata(scratch.keys().join("ends.jsonl")).unwrap().mode() & 0o777,
        0o600
    );
}

#[test]
fn lines_of_what_ended_survive_a_file_that_is_replaced_meanwhile() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let before = Timestamp::from_ms(10);
    // Replaced as often as here, the file may be another one at each look: that is refused, nothing is written, and it is tried again.
    let persist = |keys: &Keys, line: String| {
        while let Err(error) = keys.append_ends(NOW, std::slice::from_ref(&line)) {
            assert_eq!(error.code(), Code::Unavailable, "{error:?}");
        }
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            let keys = &keys;
            scope.spawn(move || (0..25).for_each(|n| persist(keys, format!("kept {writer} {n}"))));
        }
        for n in 0..25 {
            persist(&keys, format!("gone {n}"));
            keys.trim_ends(before, |text| !text.starts_with("gone")).unwrap();
        }
    });
    let lines = keys.end_lines().unwrap();
    assert_eq!(lines.iter().filter(|line| line.starts_with("kept")).count(), 100);
    assert_eq!(lines.iter().filter(|line| line.starts_with("gone")).count(), 0);
}

#[test]
fn a_folder_that_takes_no_lines_refuses_the_change_and_no_more() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    fs::create_dir(scratch.keys().join("ends.jsonl")).unwrap();
    let error = keys.append_ends(NOW, &["one".to_owned()]).unwrap_err();
    assert_eq!(
        (error.code(), error.work_class()),
        (Code::Unavailable, crate::error::Class::Refused)
    );
    assert!(keys.end_lines().is_err());
}

#[test]
fn lines_of_two_processes_do_not_mix() {
    let scratch = Scratch::new();
    drop(scratch.create(1));
    let line = |writer: usize, n: usize| format!("{writer}-{n}-{}", "x".repeat(writer * 50));
    thread::scope(|scope| {
        for writer in 0..4 {
            let keys = Keys::open(&scratch.keys()).unwrap();
            scope.spawn(move || (0..25).for_each(|n| keys.append_checkpoint_line(&line(writer, n)).unwrap()));
        }
    });
    let mut lines = Keys::open(&scratch.keys()).unwrap().checkpoint_lines().unwrap();
    let mut expected: Vec<_> = (0..100).map(|n| line(n / 25, n % 25)).collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn an_export_carries_long_lived_keys_and_checkpoints_elsewhere() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    drop(scratch.create(1));
    Keys::rotate(&scratch.keys(), "pepper", NOW, &SystemEntropy).unwrap();
    let keys = Keys::open(&scratch.keys()).unwrap();
    let cell = keys.seal_cell(7, &SALT, AAD, KEY, b"t").unwrap();
    keys.append_checkpoint_line("{\"size\":1}").unwrap();
    keys.append_ends(NOW, &["{\"ids\":[]}".to_owned()]).unwrap();
    let export = keys.export_plain().unwrap();

    let imported = Keys::import_plain(&other.keys(), &export, LATER).unwrap();
    assert_eq!(imported.ids(), keys.ids());
    assert_eq!(imported.check_values(), keys.check_values());
    assert_eq!(imported.checkpoint_lines().unwrap(), ["{\"size\":1}"]);
    // What was taken away after the export is in no line, and the file says so.
    let ends = imported.end_lines().unwrap();
    assert_eq!(ends[1..], keys.end_lines().unwrap()[..]);
    let journal = EndJournal::of(&ends);
    assert_eq!(journal.since, Some(LATER));
    assert_eq!(open_cell(&imported, 7, &cell), None, "day keys do not travel");
    assert_eq!(fs::metadata(other.keys()).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn an_import_refuses_what_it_must_not_mix() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let export = scratch.create(1).export_plain().unwrap();
    let message = refusal(&scratch, Keys::import_plain(&scratch.keys(), &export, NOW));
    assert!(message.contains("not empty"), "{message}");
    let text = export.expose();
    for (bad, expected) in [
        ("hunter2".to_owned(), "not a document"),
        (text.replace("\"format\"", "\"hunter2\""), "not a document"),
        (text.replace("provost-keys/1", "provost-keys/2"), "a format"),
        (text.replace("pepper-1", "hunter2"), "an id"),
        (text.replace("pepper-1", "audit-2"), "no pepper key"),
        (text.replace("\"key\":\"", "\"key\":\"hunter2"), "32 bytes"),
    ] {
        let message = refusal(&other, Keys::import_plain(&other.keys(), &Secret::new(bad), NOW));
        assert!(
            message.contains(expected) && !message.contains("hunter2"),
            "{message}"
        );
        assert!(!Keys::exists(&other.keys()));
    }
}

proptest! {
    #[test]
    fn bytes_cannot_be_shifted_between_parts(
        one in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 0..4),
        two in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 0..4),
    ) {
        let parts = |parts: &[Vec<u8>]| {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            derive::framed(&parts)
        };
        prop_assert_eq!(parts(&one) == parts(&two), one == two);
    }

    #[test]
    fn what_is_sealed_opens_again(
        text in prop::collection::vec(any::<u8>(), 0..300),
        aad in prop::collection::vec(any::<u8>(), 0..40),
        master: [u8; 32],
    ) {
        let key = sealing::record_key(&master, b"salt", b"test", &[&aad]);
        let sealed = sealing::seal(&key, &[&aad], &text).unwrap();
        let opened = sealing::open(&key, &[&aad], &sealed);
        prop_assert_eq!(opened.map(|text| text.expose().clone()), Some(text));
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[test]
fn completing_makes_what_is_missing_and_replaces_nothing() {
    let scratch = Scratch::new();
    let (made, fresh) = Keys::complete(&scratch.keys(), NOW, &SeededEntropy::new(1)).unwrap();
    assert!(fresh);
    fs::remove_file(scratch.keys().join("request-1.key")).unwrap();
    let (completed, more) = Keys::complete(&scratch.keys(), NOW, &SeededEntropy::new(2)).unwrap();
    assert!(more);
    let (before, after) = (made.check_values(), completed.check_values());
    let changed: Vec<_> = before
        .iter()
        .zip(&after)
        .filter(|(a, b)| a != b)
        .map(|(a, _)| &a.0)
        .collect();
    assert_eq!(changed, ["request/request-1"]);
    let (again, none) = Keys::complete(&scratch.keys(), NOW, &SeededEntropy::new(3)).unwrap();
    assert!(!none);
    assert_eq!(again.check_values(), after);
}

#[test]
fn completing_at_the_same_time_makes_one_set() {
    let scratch = Scratch::new();
    let dir = scratch.keys();
    let makers: Vec<_> = (0..8)
        .map(|seed| {
            let dir = dir.clone();
            thread::spawn(move || Keys::complete(&dir, NOW, &SeededEntropy::new(seed)).unwrap())
        })
        .collect();
    let made: Vec<_> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
    assert_eq!(made.iter().filter(|(_, fresh)| *fresh).count(), 1);
    assert!(
        made.iter()
            .all(|(keys, _)| keys.check_values() == made[0].0.check_values())
    );
}

/// Proves KY-1.
#[test]
fn a_key_that_another_process_made_checks_and_makes_nothing() {
    let scratch = Scratch::new();
    let clock = Arc::new(ManualClock::new(NOW));
    let keys = scratch.create(1).timed_by(clock.clone());
    let before = keys.token_mac("pepper-2", "t").unwrap_err();
    assert_eq!(before.code(), Code::Unavailable, "{before}");
    for purpose in ["pepper", "audit", "sealing", "checkpoint", "signing"] {
        Keys::rotate(&scratch.keys(), purpose, NOW, &SystemEntropy).unwrap();
    }
    let other = Keys::open(&scratch.keys()).unwrap();
    let (pepper, mac) = other.token_mac_current("t");
    let pepper = pepper.as_str();
    assert_eq!(pepper, "pepper-2");
    // The folder was just read: it is read again five seconds later.
    clock.advance(Duration::from_millis(4_999));
    assert!(keys.token_mac(pepper, "t").is_err());
    clock.advance(Duration::from_millis(1));
    assert_eq!(keys.token_mac(pepper, "t").unwrap(), mac);
    assert_eq!(keys.token_mac_current("t").0, "pepper-1");
    assert!(keys.has("audit/audit-2") && !keys.has("audit/audit-3") && !keys.has("audit"));
    let head = other.mac(MacPurpose::ChainHead, &[b"head"]);
    assert!(keys.mac_matches(MacPurpose::ChainHead, &[b"head"], &head));
    assert!(!keys.mac_matches(MacPurpose::ChainHead, &[b"other"], &head));
    assert_ne!(keys.mac(MacPurpose::ChainHead, &[b"head"]), head);
    let mut rng = UnitRng::new([1; 32]);
    let (id, sealed) = other.seal(AAD, b"secret", &mut rng).unwrap();
    assert_eq!(keys.open_sealed(&id, AAD, &sealed).unwrap().expose(), b"secret");
    assert_eq!(keys.seal(AAD, b"secret", &mut rng).unwrap().0, "sealing-1");
    // A server does not move back what a newer key holds.
    assert_eq!(keys.is_sealing_key_superseded("sealing-2"), Some(false));
    assert_eq!(keys.is_sealing_key_superseded("sealing-3"), None);
    assert_eq!(keys.checkpoint_public_keys(), other.checkpoint_public_keys());
    assert_eq!(keys.signing_public_keys(), other.signing_public_keys());
    let seeds = keys.access_token_seeds();
    assert_eq!((seeds.all.len(), seeds.current.as_str()), (2, "oauth-1"));
}

/// Proves KY-2.
#[test]
fn a_key_that_waits_is_adopted_once_its_mark_is_gone() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let prepare = || Keys::prepare_next(&scratch.keys(), "pepper", NOW, &SystemEntropy);
    assert_eq!(prepare().unwrap(), "pepper-2");
    let message = refusal(&scratch, prepare());
    assert!(message.contains("pepper-2 waits already"), "{message}");
    let states = |keys: &Keys| -> Vec<(bool, bool)> {
        let ids = keys.ids().into_iter().filter(|key| key.purpose == "pepper");
        ids.map(|key| (key.current, key.pending)).collect()
    };
    let before = keys.version();
    let news = keys.news().unwrap();
    assert_eq!(
        (news.pending.as_slice(), news.activated.len()),
        (["pepper-2".to_owned()].as_slice(), 0)
    );
    assert!(keys.version() > before);
    // A start, and another one's export, leave it waiting.
    let opened = Keys::open(&scratch.keys()).unwrap();
    let other = Scratch::new();
    let imported = Keys::import_plain(&other.keys(), &opened.export_plain().unwrap(), NOW).unwrap();
    for keys in [&keys, &opened, &imported, &Keys::open(&other.keys()).unwrap()] {
        assert_eq!(states(keys), [(true, false), (false, true)]);
        assert_eq!(keys.pending_of("pepper").unwrap(), "pepper-2");
        assert_eq!(keys.check_values_in_use().len(), 6);
        assert_eq!(keys.check_values().len(), 7);
    }
    let mac = Keys::open(&scratch.keys()).unwrap();
    mac.activate("pepper-2").unwrap();
    let news = keys.news().unwrap();
    assert_eq!((news.pending.len(), news.activated.len()), (0, 1));
    assert_eq!(news.activated[0].0, "pepper/pepper-2");
    // Nothing is made with it before the store knows it.
    assert_eq!(keys.token_mac_current("t").0, "pepper-1");
    let before = keys.version();
    let value = news.activated[0].1;
    keys.adopt("pepper/pepper-1", &value);
    keys.adopt("pepper/pepper-9", &value);
    keys.adopt("pepper/pepper-2", &[7; 32]);
    assert_eq!(keys.version(), before);
    keys.adopt("pepper/pepper-2", &value);
    assert_eq!(states(&keys), [(false, false), (true, false)]);
    assert_eq!(keys.news().unwrap(), News::default());
    assert!(refusal(&scratch, keys.pending_of("pepper")).contains("no pepper key waits"));
    // One that is given up, the key before its mark, is nothing new.
    prepare().unwrap();
    keys.news().unwrap();
    fs::remove_file(scratch.keys().join("pepper-3.key")).unwrap();
    assert_eq!(keys.news().unwrap(), News::default());
    keys.activate("pepper-3").unwrap();
    assert_eq!(keys.news().unwrap(), News::default());
    // Another of its name takes its place, and nobody takes the one for the other.
    let given_up = keys.fingerprint("pepper-3").unwrap();
    prepare().unwrap();
    keys.news().unwrap();
    let fingerprint = keys.fingerprint("pepper-3").unwrap();
    assert!(fingerprint.starts_with("pepper-3 ") && fingerprint != given_up);
    assert!(keys.fingerprints().contains(&fingerprint) && !keys.fingerprints().contains(&given_up));
    let other = Keys::open(&scratch.keys()).unwrap();
    assert_eq!(
        keys.token_mac("pepper-3", "t").unwrap(),
        other.token_mac("pepper-3", "t").unwrap()
    );
    fs::remove_file(scratch.keys().join("pepper-3.key")).unwrap();
    // One that is to be used at once does not wait, even where an interrupted call left a mark.
    folder::mark_pending(&scratch.keys(), "pepper-3").unwrap();
    Keys::rotate(&scratch.keys(), "pepper", NOW, &SystemEntropy).unwrap();
    assert_eq!(
        Keys::open(&scratch.keys()).unwrap().token_mac_current("t").0,
        "pepper-3"
    );
}

#[test]
fn a_key_for_use_at_once_passes_one_that_waits() {
    let scratch = Scratch::new();
    drop(scratch.create(1));
    Keys::prepare_next(&scratch.keys(), "audit", NOW, &SystemEntropy).unwrap();
    let made = Keys::rotate(&scratch.keys(), "audit", NOW, &SystemEntropy).unwrap();
    assert_eq!(made, "audit-3");
    let keys = Keys::open(&scratch.keys()).unwrap();
    assert_eq!(keys.mac_key_id(MacPurpose::ChainHead), "audit-3");
    let (id, mac) = keys.named_mac(MacPurpose::ChainHead, &[b"x"]);
    assert_eq!(
        (id.as_str(), Some(mac)),
        (
            "audit-3",
            keys.mac_under(MacPurpose::ChainHead, "audit-3", &[b"x"])
        )
    );
    assert_ne!(
        keys.mac_under(MacPurpose::ChainHead, "audit-2", &[b"x"]),
        Some(mac)
    );
    assert_eq!(keys.mac_under(MacPurpose::ChainHead, "pepper-1", &[b"x"]), None);
    assert!(keys.pending_of("audit").is_err());
}

#[test]
fn a_key_that_cannot_be_read_hides_no_other() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    Keys::rotate(&scratch.keys(), "pepper", NOW, &SystemEntropy).unwrap();
    fs::write(scratch.keys().join("audit-2.key"), "{}").unwrap();
    assert!(keys.token_mac("pepper-2", "t").is_ok());
    assert!(!keys.has("audit/audit-2"));
}

#[test]
fn a_start_finds_a_day_key_that_cannot_be_used() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    keys.seal_cell(7, &SALT, AAD, KEY, b"t").unwrap();
    // One that is being destroyed is none.
    fs::write(scratch.keys().join("day-6.key"), [0; 32]).unwrap();
    fs::set_permissions(scratch.keys().join("day-6.key"), Permissions::from_mode(0o600)).unwrap();
    keys.check_days().unwrap();
    fs::write(scratch.keys().join("day-7.key"), [1; 31]).unwrap();
    let error = keys.check_days().unwrap_err();
    assert!(error.message().contains("day-7.key"), "{error}");
    assert!(
        folder::names(&scratch.keys())
            .unwrap()
            .iter()
            .all(|name| !name.contains("writable")),
        "what was tried is gone"
    );
}

#[test]
fn a_folder_without_room_refuses_and_breaks_nothing() {
    for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded] {
        let error = folder::unwritable(kind.into());
        assert!(folder::is_full(&error));
        assert_eq!(
            (error.code(), error.work_class()),
            (Code::Unavailable, Class::Refused)
        );
    }
    let error = folder::unwritable(std::io::ErrorKind::Other.into());
    assert!(!folder::is_full(&error));
}
