//! What a fuzzer asks of chunks: a function of any bytes that panics where a promise is broken.
//!
//! The input is a byte that says how many rows there are, one that says how far apart in time they are, and the rest
//! of what stands packed in a chunk: ids and columns. The function packs it and puts the right header and checksum on
//! it: damage that these find is tested beside (`damage`).
//!
//! The folder `fuzz` of the repository holds the fuzzer's side and the corpus; the test here replays it.

use provost_history::{Entry, Schema, chunk, synthetic};
use std::sync::LazyLock;

const HEADER_BYTES: usize = 43;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| synthetic::schema().unwrap());
const FIRST: i64 = 7;
/// A chunk whose header the inputs get: rows at 15, instants at 19 and 27, raw length at 35, checksum at 39.
static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut recorder = provost_history::Recorder::new(std::sync::Arc::new(synthetic::schema().unwrap()));
    let values = vec![provost_history::Value::Missing; SCHEMA.columns().len()];
    let event = provost_history::Event {
        id: "e",
        at: FIRST,
        values: &values,
    };
    recorder.record(&event).unwrap();
    chunk::encode(&SCHEMA, &recorder.finish().unwrap()).unwrap()
});

/// Any content of a chunk is a batch that keeps its promises, or refused.
pub fn chunks(data: &[u8]) {
    let Some(([rows, step], content)) = data.split_first_chunk::<2>() else {
        return;
    };
    let last = FIRST + (i64::from(*rows) - 1) * i64::from(step & 0x7f);
    let mut raw = vec![FIRST.to_le_bytes()[0]];
    raw.resize(usize::from(*rows).max(1), step & 0x7f);
    raw.extend_from_slice(content);
    let mut bytes = WHOLE[..HEADER_BYTES].to_vec();
    bytes[15] = *rows;
    bytes[27..35].copy_from_slice(&last.to_le_bytes());
    bytes[35..39].copy_from_slice(&u32::try_from(raw.len()).unwrap().to_le_bytes());
    bytes.extend(zstd::bulk::compress(&raw, 1).unwrap());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..39]);
    hasher.update(&bytes[HEADER_BYTES..]);
    bytes[39..HEADER_BYTES].copy_from_slice(&hasher.finalize().to_le_bytes());
    let Ok(batch) = chunk::decode(&SCHEMA, &bytes) else {
        return;
    };
    assert!(batch.at.is_sorted() && batch.ids.len() == batch.rows());
    for (column, spec) in batch.columns.iter().zip(SCHEMA.columns()) {
        assert!(column.codes.len() == batch.rows() && column.dictionary.kind() == spec.kind);
        for code in &column.codes {
            // A set may be spelled wrongly, which its reader says.
            match column.dictionary.entry(*code) {
                Ok(Entry::Number(number)) => {
                    assert!(number.is_finite() && !(number == 0.0 && number.is_sign_negative()));
                }
                entry => assert!(entry.is_ok() || column.dictionary.sets().is_err()),
            }
        }
    }
    // What was read can be written and is the same again.
    let again = chunk::encode(&SCHEMA, &batch).unwrap();
    assert_eq!(chunk::decode(&SCHEMA, &again).unwrap(), batch);
}

#[test]
fn the_corpus_of_chunks_keeps_its_promises() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/chunks");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() >= 5, "{} inputs", names.len());
    for name in names {
        println!("{}", name.display());
        chunks(&std::fs::read(name).unwrap());
    }
}
