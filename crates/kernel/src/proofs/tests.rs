use super::*;
use crate::keys::tests::Scratch;

const RIGHTS: &[RightsTable] = &[
    RightsTable {
        table: "doors",
        without: &[],
        loose: &["seen"],
    },
    RightsTable {
        table: "walls",
        without: &[],
        loose: &[],
    },
];

fn side(table: &str, key: &str, is_new: bool, content: &str, proof: Option<&Proof>) -> TouchedRow {
    TouchedRow {
        organization: "acme".into(),
        table: table.into(),
        key: format!("[\"{key}\"]"),
        is_new,
        content: content.into(),
        proof: proof.map(|proof| (proof.key_id.clone(), proof.mac.clone())),
    }
}

fn proven(keys: &Keys, touched: Vec<TouchedRow>) -> (Change, usize) {
    let proven = prove(keys, RIGHTS, touched).unwrap();
    let change = proven.changes.into_values().next().unwrap_or_default();
    (change, proven.calls.len())
}

#[test]
fn a_sum_gives_back_what_it_was_given() {
    let (a, b) = ([0xff; 32], [7; 32]);
    let sum = Sum::default().plus(&a).plus(&b);
    assert_ne!(sum, Sum::default());
    assert_eq!(sum.less(&a).less(&b), Sum::default());
    assert_eq!(sum.less(&b), Sum::default().plus(&a));
    assert_eq!(Sum::default().less(&b).plus(&b), Sum::default());
    assert_eq!(sum.without(sum), Sum::default());
    // Twice the same is not nothing, as it would be where bits are only flipped.
    assert_ne!(Sum::default().plus(&b).plus(&b), Sum::default());
}

/// Proves PF-1.
#[test]
fn a_row_that_came_changed_and_went_leaves_the_sum_as_it_was() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let (was, is) = (r#"{"id":"a","role":"viewer"}"#, r#"{"id":"a","role":"admin"}"#);
    let first = Proof::of(&keys, &RIGHTS[0], was).unwrap();
    let second = Proof::of(&keys, &RIGHTS[0], is).unwrap();
    let (come, _) = proven(&keys, vec![side("doors", "a", true, was, None)]);
    assert_eq!(come.rows, 1);
    let changing = vec![
        side("doors", "a", false, was, Some(&first)),
        side("doors", "a", true, is, Some(&first)),
    ];
    let (change, _) = proven(&keys, changing);
    assert_eq!(change.rows, 0);
    let (go, _) = proven(&keys, vec![side("doors", "a", false, is, Some(&second))]);
    assert_eq!(go.rows, -1);
    assert_eq!(come.sum.and(change.sum).and(go.sum), Sum::default());
}

#[test]
fn what_a_transaction_undid_is_no_change_in_any_order() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let contents = [r#"{"id":"a","n":1}"#, r#"{"id":"a","n":2}"#];
    let proof = Proof::of(&keys, &RIGHTS[0], contents[0]).unwrap();
    let mut touched = vec![
        side("doors", "a", false, contents[0], Some(&proof)),
        side("doors", "a", true, contents[1], Some(&proof)),
        side("doors", "a", false, contents[1], Some(&proof)),
        side("doors", "a", true, contents[0], Some(&proof)),
    ];
    for _ in 0..4 {
        touched.rotate_left(1);
        assert_eq!(proven(&keys, touched.clone()), (Change::default(), 0));
    }
    let undone = vec![
        side("doors", "b", true, contents[0], None),
        side("doors", "b", false, contents[0], None),
    ];
    assert_eq!(proven(&keys, undone), (Change::default(), 0));
}

/// Proves PF-2.
#[test]
fn a_row_that_another_hand_changed_is_not_vouched_for() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let (wrote, found, made) = (
        r#"{"id":"a","role":"viewer"}"#,
        r#"{"id":"a","role":"admin"}"#,
        r#"{"id":"a","role":"admin","name":"n"}"#,
    );
    let proof = Proof::of(&keys, &RIGHTS[0], wrote).unwrap();
    let doubted = vec![
        side("doors", "a", false, found, Some(&proof)),
        side("doors", "a", true, made, Some(&proof)),
        // What comes into the same table may be its copy; another table's rows are their own.
        side("doors", "b", true, r#"{"id":"b","role":"admin"}"#, None),
        side("walls", "c", true, r#"{"id":"c"}"#, None),
    ];
    let (change, calls) = proven(&keys, doubted);
    assert_eq!((change.rows, calls), (1, 1), "only the row of the other table");
    // A row that was never written, and one whose proof has no row.
    let inserted = vec![
        side("doors", "x", false, found, None),
        side("doors", "x", true, made, None),
    ];
    assert_eq!(proven(&keys, inserted), (Change::default(), 0));
    let replaced = vec![side("doors", "y", true, made, Some(&proof))];
    assert_eq!(proven(&keys, replaced), (Change::default(), 0));
    // That it goes takes away what its proof added.
    let gone = vec![side("doors", "a", false, found, Some(&proof))];
    assert_eq!(proven(&keys, gone).0.rows, -1);
}

/// Proves PF-1.
#[test]
fn both_engines_and_later_columns_give_one_proof() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let sqlite = r#"{"id":"a","enabled":1,"mac":"\\xab"}"#;
    let postgres = r#"{"mac": "\\xab", "id": "a", "enabled": true, "later": null, "seen": 5}"#;
    let proof = Proof::of(&keys, &RIGHTS[0], sqlite).unwrap();
    assert!(proof.fits(&keys, &RIGHTS[0], postgres).unwrap());
    for other in [
        r#"{"id":"a","enabled":0,"mac":"\\xab"}"#,
        r#"{"id":"a","enabled":1,"mac":"\\xab","later":0}"#,
        r#"{"id":"a","enabled":"1","mac":"\\xab"}"#,
    ] {
        assert!(!proof.fits(&keys, &RIGHTS[0], other).unwrap(), "{other}");
    }
    assert!(!proof.fits(&keys, &RIGHTS[1], sqlite).unwrap(), "another table");
}

/// Proves PF-1.
#[test]
fn an_older_key_keeps_what_it_proved() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let row = r#"{"id":"a"}"#;
    let acme = OrganizationId::from_store("acme".into());
    let (change, _) = proven(&keys, vec![side("doors", "a", true, row, None)]);
    let account = Account::after(None, &keys, &acme, &change).unwrap();
    let proof = Proof::of(&keys, &RIGHTS[0], row).unwrap();
    let lacking = Keys::open(&scratch.keys()).unwrap();
    Keys::rotate(
        &scratch.keys(),
        "audit",
        crate::keys::tests::NOW,
        &crate::entropy::SeededEntropy::new(2),
    )
    .unwrap();
    let rotated = Keys::open(&scratch.keys()).unwrap();
    assert!(proof.fits(&rotated, &RIGHTS[0], row).unwrap());
    assert_eq!(proof.share(&rotated), proof.share(&keys));
    let (back, _) = proven(&rotated, vec![side("doors", "a", false, row, Some(&proof))]);
    let after = Account::after(Some(&account), &rotated, &acme, &back).unwrap();
    assert_eq!(after.open(&rotated, &acme).unwrap(), (0, Sum::default()));
    assert_ne!(after.key_id(), account.key_id());
    // Who read the folder before finds the key, if it is there.
    let newer = Proof::of(&rotated, &RIGHTS[0], row).unwrap();
    assert_eq!(after.open(&keys, &acme).unwrap(), (0, Sum::default()));
    assert!(newer.fits(&keys, &RIGHTS[0], row).unwrap());
    std::fs::remove_file(scratch.keys().join("audit-2.key")).unwrap();
    let error = after.open(&lacking, &acme).unwrap_err();
    assert_eq!(error.code(), crate::Code::Unavailable, "its key is missing there");
    assert!(newer.share(&lacking).is_none());
    // Nothing is said of the row then, and it is not left without a proof.
    let gone = vec![side("doors", "a", false, row, Some(&newer))];
    let changed = vec![
        side("doors", "a", false, row, Some(&newer)),
        side("doors", "a", true, r#"{"id":"a","name":"b"}"#, Some(&newer)),
    ];
    for touched in [gone, changed] {
        let error = prove(&lacking, RIGHTS, touched).unwrap_err();
        assert_eq!(error.code(), crate::Code::Unavailable);
    }
}
