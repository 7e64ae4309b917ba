//! What is kept of an answer and what is repeated of it, without a store.

use super::*;
use crate::auth::OrganizationId;
use std::path::PathBuf;

const OPERATION: &str = "rotateInTest";
const KEY: &str = "a-key-that-nobody-guesses";
/// The answer as it is kept: the secret stands behind the 10th byte.
const BODY: &str = r#"{"token":""}"#;
const NOW: Timestamp = Timestamp::from_ms(1_795_144_500_000);

/// Keys in a folder of their own, which ends with them.
struct Fixture {
    keys: Keys,
    folder: PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("provost-idempotency-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let entropy = crate::entropy::SeededEntropy::new(4);
        let keys = Keys::create(&folder, NOW, &entropy).unwrap();
        Self { keys, folder }
    }

    fn key(&self, raw: &str, request: &Value) -> KeyUse {
        KeyUse::new(&self.keys, raw, "acme", None, OPERATION, request)
    }

    /// The record of an answer whose secret may be repeated for so long.
    fn stored(&self, replay_secs: i64) -> StoredAnswer {
        let effects = Effects {
            target: Some((&crate::fence::TOKEN, "sac_1".into())),
            reveal: Some(Reveal {
                token_id: "sat_1".into(),
                secret: Secret::new("geheim".into()),
                mark: String::new(),
                replay_secs,
            }),
            secret_at: Some(10),
            ..Effects::default()
        };
        self.stored_with(&effects)
    }

    fn stored_with(&self, effects: &Effects) -> StoredAnswer {
        let answer = Answer {
            status: 201,
            headers: vec![
                ("etag", "\"1\"".into()),
                ("location", "/there".into()),
                ("x-other", "o".into()),
            ],
            body: Bytes::from_static(BODY.as_bytes()),
            media_type: "text/plain",
            replayed: false,
        };
        let (key, audit_id) = (self.key(KEY, &json!({ "a": 1 })), "aud_1".to_owned());
        let (actor, salt) = (actor("sac_1"), [7; 16]);
        StoredAnswer::new(
            &self.keys, &actor, OPERATION, &key, &answer, effects, audit_id, NOW, salt,
        )
        .unwrap()
    }

    fn replay(&self, stored: &StoredAnswer, key: &KeyUse, now: Timestamp) -> Result<Answer> {
        stored.replay(&self.keys, &actor("sac_1"), OPERATION, key, now, &["text/plain"])
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn actor(id: &str) -> Actor {
    Actor {
        id: id.into(),
        ..Actor::system(OrganizationId::parse("acme").unwrap())
    }
}

#[test]
fn an_answer_is_repeated_with_its_status_its_headers_and_its_secret_in_its_place() {
    let ground = Fixture::new("repeat");
    let stored = ground.stored(60);
    assert_eq!(
        (stored.audit_id.as_str(), stored.target_id.as_deref()),
        ("aud_1", Some("sac_1"))
    );
    let key = ground.key(KEY, &json!({ "a": 1 }));
    let again = ground.replay(&stored, &key, NOW).unwrap();
    assert_eq!((again.status, again.replayed), (201, true));
    assert_eq!(again.body, r#"{"token":"geheim"}"#);
    assert_eq!(again.media_type, "text/plain");
    assert_eq!(
        again.headers,
        [("etag", "\"1\"".to_owned()), ("location", "/there".to_owned())]
    );
    let other = stored.replay(&ground.keys, &actor("sac_1"), OPERATION, &key, NOW, &["text/csv"]);
    assert_eq!(other.unwrap().media_type, "application/json");
}

#[test]
fn an_answer_without_a_secret_is_repeated_for_ever() {
    let ground = Fixture::new("plain");
    let stored = ground.stored_with(&Effects::default());
    let key = ground.key(KEY, &json!({ "a": 1 }));
    let again = ground
        .replay(&stored, &key, NOW.plus_secs(RETENTION_SECS))
        .unwrap();
    assert_eq!(again.body, BODY);
    assert_eq!(stored.target_id, None);
}

#[test]
fn a_key_for_another_request_is_refused() {
    let ground = Fixture::new("mismatch");
    let stored = ground.stored(60);
    let other = ground.key(KEY, &json!({ "a": 2 }));
    let refused = ground.replay(&stored, &other, NOW).unwrap_err();
    assert_eq!(refused.code(), Code::IdempotencyMismatch);
}

#[test]
fn the_secret_ends_with_its_time_to_the_millisecond_and_with_its_token() {
    let ground = Fixture::new("end");
    let key = ground.key(KEY, &json!({ "a": 1 }));
    let mut stored = ground.stored(60);
    let end = NOW.plus_secs(60);
    assert!(
        ground
            .replay(&stored, &key, Timestamp::from_ms(end.as_ms() - 1))
            .is_ok()
    );
    let refused = ground.replay(&stored, &key, end).unwrap_err();
    assert_eq!(refused.code(), Code::SecretNoLongerRetrievable);
    assert_eq!(refused.member("tokenId"), Some(&json!("sat_1")));
    stored.forget_cell_of(&["sat_2".into()]);
    assert!(ground.replay(&stored, &key, NOW).is_ok());
    stored.forget_cell_of(&["sat_2".into(), "sat_1".into()]);
    assert!(ground.replay(&stored, &key, NOW).is_err());
}

#[test]
fn without_a_time_no_cell_is_kept_and_the_secret_is_not_lacking_silently() {
    let ground = Fixture::new("none");
    let stored = ground.stored(0);
    assert!(stored.cell.is_none());
    let key = ground.key(KEY, &json!({ "a": 1 }));
    let refused = ground.replay(&stored, &key, NOW).unwrap_err();
    assert_eq!(refused.code(), Code::SecretNoLongerRetrievable);
    assert!(ground.stored(1).cell.is_some());
}

#[test]
fn a_cell_opens_for_its_caller_its_operation_and_its_day() {
    let ground = Fixture::new("bound");
    let key = ground.key(KEY, &json!({ "a": 1 }));
    let stored = ground.stored(60);
    let opened = |stored: &StoredAnswer, actor: &Actor, operation: &str| {
        let secret = stored.open(&ground.keys, actor, operation, &key, NOW).unwrap();
        secret.map(|secret| secret.expose().clone())
    };
    assert_eq!(
        opened(&stored, &actor("sac_1"), OPERATION).as_deref(),
        Some("geheim")
    );
    assert_eq!(opened(&stored, &actor("sac_2"), OPERATION), None);
    assert_eq!(opened(&stored, &actor("sac_1"), "another"), None);
    let mut other = stored.clone();
    other.token_id = Some("sat_2".into());
    assert_eq!(opened(&other, &actor("sac_1"), OPERATION), None);
    let mut other = stored.clone();
    other.target_id = None;
    assert_eq!(opened(&other, &actor("sac_1"), OPERATION), None);
    // The key of its day, which is destroyed when the day is long over (ID-3).
    assert_eq!(stored.cell.as_ref().unwrap().day, 20_777);
}

#[test]
fn a_place_that_is_none_is_a_fault_and_no_answer_without_its_secret() {
    let ground = Fixture::new("place");
    let key = ground.key(KEY, &json!({ "a": 1 }));
    let mut stored = ground.stored(60);
    stored.secret_at = Some(1_000);
    assert_eq!(
        ground.replay(&stored, &key, NOW).unwrap_err().code(),
        Code::Internal
    );
}

#[test]
fn a_key_is_unguessable_from_22_characters_on() {
    let ground = Fixture::new("guess");
    let is_unguessable = |length: usize| ground.key(&"k".repeat(length), &json!({})).is_unguessable();
    assert!(!is_unguessable(21) && is_unguessable(22) && is_unguessable(23));
}

#[test]
fn a_key_is_one_of_its_organization_and_a_fingerprint_one_of_its_request() {
    let ground = Fixture::new("mac");
    let make = |raw, org, operation, request: Value| {
        let key = KeyUse::new(&ground.keys, raw, org, None, operation, &request);
        (key.mac, key.fingerprint)
    };
    let (mac, fingerprint) = make(KEY, "acme", OPERATION, json!({ "a": 1, "b": 2 }));
    assert_eq!(
        make(KEY, "acme", OPERATION, json!({ "b": 2, "a": 1 })),
        (mac, fingerprint)
    );
    assert_ne!(make("other", "acme", OPERATION, json!({})).0, mac);
    assert_ne!(make(KEY, "umbrella", OPERATION, json!({})).0, mac);
    for (org, operation, request) in [
        ("umbrella", OPERATION, json!({ "a": 1, "b": 2 })),
        ("acme", "another", json!({ "a": 1, "b": 2 })),
        ("acme", OPERATION, json!({ "a": 1, "b": 3 })),
    ] {
        assert_ne!(make(KEY, org, operation, request).1, fingerprint);
    }
}

#[test]
fn what_is_stored_are_macs_and_a_sealed_cell() {
    let ground = Fixture::new("row");
    let key = ground.key(KEY, &json!({ "a": 1 }));
    let found = key.find("acme", "sac_1", OPERATION);
    assert!(
        found.params
            == [
                Param::from("acme"),
                Param::from("sac_1"),
                Param::from(OPERATION),
                Param::from(key.mac.to_vec()),
            ]
    );
    let row = ground.stored(60).insert(&actor("sac_1"), OPERATION, &key, NOW);
    assert!(row.params[..4] == found.params);
    assert_eq!(row.params.len(), 18);
    assert!(row.params[13] == Param::from(20_777_i64));
    assert!(row.params[16] == Param::from(NOW.plus_secs(60)));
    let plain = ground.stored_with(&Effects::default());
    let row = plain.insert(&actor("sac_1"), OPERATION, &key, NOW);
    assert!(row.params[11..17].iter().all(|param| *param == Param::Null));
}
