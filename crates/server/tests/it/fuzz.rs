//! What a fuzzer asks of the texts that requests are made of: functions of any bytes that panic where a promise is
//! broken.
//!
//! The folder `fuzz` of the repository holds the fuzzer's side and the corpora; the tests here replay them.

#[path = "../../../areas-identity/src/directory/imports/csv.rs"]
mod csv;

use provost_kernel::checkpoint::parse_and_verify;
use provost_kernel::dispatch::percent_decode;
use provost_kernel::{Timestamp, id, json, token};
use serde_json::Value;

const DEPTH: usize = 32;

/// What the strict reader takes, a lenient one reads alike; what is written again reads alike.
pub fn json(data: &[u8]) {
    let lenient = serde_json::from_slice::<Value>(data);
    let Ok(written) = json::parse(data, DEPTH) else {
        return;
    };
    // Numbers that no double is are written as they were read, and are rounded as a lenient reader rounds them.
    let text = serde_json::to_vec(&json::ExactDocument(&written)).unwrap();
    assert_eq!(json::parse(&text, DEPTH).unwrap(), written);
    let mut strict = written;
    json::round(&mut strict);
    assert_eq!(lenient.unwrap(), strict);
    assert!(depth(&strict) <= DEPTH);
    let canonical = json::canonical(&strict);
    let again = json::parse(canonical.as_bytes(), DEPTH).unwrap();
    assert_eq!(json::canonical(&again), canonical);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The first byte of the input says what the rest is: a token, a percent-encoded text, an instant, an id, a signed
/// checkpoint.
pub fn texts(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(rest) else { return };
    match kind {
        b'0' => a_token(text),
        b'1' => a_percent_encoded_text(text),
        b'2' => an_instant(text),
        b'3' => an_id(text),
        b'4' => a_checkpoint(text),
        _ => {}
    }
}

fn a_token(text: &str) {
    let Some(read) = token::parse(text) else { return };
    assert!(text.is_ascii() && text.starts_with(read.prefix) && read.prefix.ends_with(read.lookup_id));
    // A checksum that holds for one letter more or another case would hold for anything.
    assert!(token::parse(&text[..text.len() - 1]).is_none() && token::parse(&format!("{text}0")).is_none());
}

/// What was escaped whole, byte for byte, reads as the text.
fn a_percent_encoded_text(text: &str) {
    use std::fmt::Write;
    let escaped = text.bytes().fold(String::new(), |mut escaped, byte| {
        let _ = write!(escaped, "%{byte:02X}");
        escaped
    });
    assert_eq!(percent_decode(&escaped).as_deref(), Some(text));
    assert_eq!(percent_decode(&escaped.to_lowercase()).as_deref(), Some(text));
    if let Some(decoded) = percent_decode(text) {
        let signs = text.bytes().filter(|byte| *byte == b'%').count();
        assert_eq!(decoded.len() + 2 * signs, text.len());
    }
}

fn an_instant(text: &str) {
    let Some(instant) = Timestamp::parse(text) else {
        return;
    };
    assert_eq!(Timestamp::parse(&instant.to_rfc3339()), Some(instant), "{text}");
}

fn an_id(text: &str) {
    let Some(number) = id::parse("pol", text) else {
        return;
    };
    assert!(text.starts_with("pol_") && text.len() == 30);
    // One id, one spelling.
    assert_eq!(format!("pol_{number}").to_lowercase(), text.to_lowercase());
}

/// Nobody has the key that signs; an input of the corpus names it rightly.
fn a_checkpoint(text: &str) {
    assert!(parse_and_verify(text, &[("provost.example".to_owned(), [9; 32])]).is_err());
}

/// Every byte stands in one record or in a blank line, and no record moves another one.
pub fn csv(data: &[u8]) {
    let (records, lines) = csv::records(data);
    assert_eq!(lines, csv::count_lines(data));
    let sizes: usize = records.iter().map(|record| record.size_bytes).sum();
    assert!(sizes <= data.len() && records.is_sorted_by_key(|record| record.line));
    let blank = data.len() - sizes;
    assert!(blank <= data.iter().filter(|byte| matches!(byte, b'\r' | b'\n')).count());
    let mut written = Vec::new();
    for record in &records {
        let Ok(cells) = &record.cells else { continue };
        assert!(!cells.is_empty());
        for (place, cell) in cells.iter().enumerate() {
            written.extend_from_slice(if place == 0 { b"\"" } else { b",\"" });
            for byte in cell {
                written.push(*byte);
                if *byte == b'"' {
                    written.push(b'"');
                }
            }
            written.push(b'"');
        }
        written.push(b'\n');
    }
    let cells = |records: Vec<csv::Record>| -> Vec<Vec<Vec<u8>>> {
        records
            .into_iter()
            .filter_map(|record| record.cells.ok())
            .collect()
    };
    assert_eq!(cells(csv::records(&written).0), cells(records));
}

#[cfg(test)]
fn replay(target: &str, at_least: usize, check: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= at_least, "{} inputs", names.len());
    for name in names {
        println!("{}", name.display());
        check(&std::fs::read(name).unwrap());
    }
}

#[test]
fn the_corpora_of_texts_keep_their_promises() {
    replay("json", 8, json);
    replay("texts", 8, texts);
    replay("csv", 6, csv);
}
