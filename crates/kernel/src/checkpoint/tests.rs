use super::*;
use crate::entropy::SystemEntropy;
use crate::keys::tests::Scratch;
use crate::time::Timestamp;
use proptest::prelude::*;

fn checkpoint_of(size: u64) -> Checkpoint {
    Checkpoint {
        origin: "provost/acme".to_owned(),
        size,
        root: [7; 32],
    }
}

#[test]
fn a_signed_checkpoint_is_a_note_of_the_published_form() {
    let scratch = Scratch::new();
    let note = checkpoint_of(42).sign(&scratch.create(1));
    let root = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let head = format!("provost/acme\n42\n{root}\n\n— provost/checkpoint-1 ");
    assert!(note.starts_with(&head), "{note}");
    let signature = note[head.len()..].strip_suffix('\n').unwrap();
    assert_eq!(STANDARD.decode(signature).unwrap().len(), 4 + 64);
}

#[test]
fn a_checkpoint_stays_good_when_its_key_is_rotated() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let (old_keys, note) = (keys.checkpoint_public_keys(), checkpoint_of(u64::MAX).sign(&keys));
    Keys::rotate(&scratch.keys(), "checkpoint", Timestamp::EPOCH, &SystemEntropy).unwrap();
    let keys = Keys::open(&scratch.keys()).unwrap();
    assert_eq!(
        parse_and_verify(&note, &keys.checkpoint_public_keys()).unwrap(),
        checkpoint_of(u64::MAX)
    );
    let new_note = checkpoint_of(0).sign(&keys);
    assert_eq!(
        parse_and_verify(&new_note, &keys.checkpoint_public_keys()).unwrap(),
        checkpoint_of(0)
    );
    assert!(parse_and_verify(&new_note, &old_keys).is_err());
    assert!(parse_and_verify(&note, &[]).is_err());
}

#[test]
fn every_changed_byte_is_refused() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let (trusted, note) = (keys.checkpoint_public_keys(), checkpoint_of(1234).sign(&keys));
    for at in 0..note.len() {
        for other in ["0", "A", "\n", " ", "=", ""] {
            let mut bytes = note.as_bytes().to_vec();
            bytes.splice(at..=at, other.bytes());
            let Ok(changed) = String::from_utf8(bytes) else {
                continue;
            };
            if changed != note {
                assert!(parse_and_verify(&changed, &trusted).is_err(), "{other:?} at {at}");
            }
        }
    }
}

#[test]
fn another_installation_s_key_of_the_same_name_is_not_trusted() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let note = checkpoint_of(1).sign(&scratch.create(1));
    let error = parse_and_verify(&note, &other.create(2).checkpoint_public_keys()).unwrap_err();
    assert!(error.message().contains("no key that is trusted"));
}

#[test]
fn witnesses_are_passed_over_but_do_not_suffice() {
    let (scratch, witness) = (Scratch::new(), Scratch::new());
    let (keys, witness) = (scratch.create(1), witness.create(2));
    let (note, cosigned) = (checkpoint_of(1).sign(&keys), checkpoint_of(1).sign(&witness));
    let line = cosigned.lines().last().unwrap();
    let both = format!("{note}{line}\n");
    for trusted in [keys.checkpoint_public_keys(), witness.checkpoint_public_keys()] {
        assert_eq!(parse_and_verify(&both, &trusted).unwrap(), checkpoint_of(1));
    }
    assert!(parse_and_verify(&note, &witness.checkpoint_public_keys()).is_err());
    // A signature that claims to be ours and is wrong spoils the note, although a good one stands beside it.
    let elsewhere = checkpoint_of(2).sign(&keys);
    let spoiled = format!("{note}{}\n", elsewhere.lines().last().unwrap());
    assert!(parse_and_verify(&spoiled, &keys.checkpoint_public_keys()).is_err());
}

fn signed(keys: &Keys, text: &str) -> String {
    let (name, hash, signature) = keys.sign_checkpoint(text.as_bytes());
    let signature = STANDARD.encode([hash.to_be_bytes().as_slice(), &signature].concat());
    format!("{text}\n— {name} {signature}\n")
}

#[test]
fn a_signed_text_that_is_no_checkpoint_is_refused() {
    let scratch = Scratch::new();
    let keys = scratch.create(1);
    let root = STANDARD.encode([7; 32]);
    let trusted = keys.checkpoint_public_keys();
    let read = |text: String| parse_and_verify(&signed(&keys, &text), &trusted);
    assert!(read(format!("o\n1\n{root}\n")).is_ok());
    assert!(read(format!("o\n1\n{root}\nan extension\n")).is_ok());
    for text in [
        format!("\n1\n{root}\n"),
        format!("o\n01\n{root}\n"),
        format!("o\n+1\n{root}\n"),
        format!("o\n\n{root}\n"),
        format!("o\n18446744073709551616\n{root}\n"),
        "o\n1\nAAAA\n".to_owned(),
        "o\n1\n!\n".to_owned(),
        "o\n1\n".to_owned(),
        format!("o\n1\n{root}\n\nafter an empty line\n"),
        format!("o\r\n1\n{root}\n"),
    ] {
        assert!(read(text.clone()).is_err(), "{text:?}");
    }
}

#[test]
fn the_note_of_the_go_package_s_documentation_verifies() {
    let encoded = STANDARD
        .decode("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
        .unwrap();
    let key: [u8; 32] = encoded[1..].try_into().unwrap();
    assert_eq!(encoded[0], 0x01);
    assert_eq!(key_hash("PeterNeumann", &key), 0xc74f_20a3);
    let text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
    let line = "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=";
    let (name, hash, signature) = signature(line).unwrap();
    assert_eq!((name, hash), ("PeterNeumann", 0xc74f_20a3));
    UnparsedPublicKey::new(&ED25519, key)
        .verify(text.as_bytes(), &signature)
        .unwrap();
}

proptest! {
    #[test]
    fn reading_never_panics(note in "(\\PC|\n|— ){0,80}") {
        prop_assert!(parse_and_verify(&note, &[("provost/checkpoint-1".to_owned(), [1; 32])]).is_err());
    }
}
