//! Damaged bytes are refused, never a panic; a crash leaves whole objects or none.

use crate::support::*;
use proptest::prelude::*;
use provost_history::*;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

fn some_rows(count: i64) -> Vec<Row> {
    let tools = ["search", "book", "cancel", "refund"];
    let tool = |index: i64| tools[usize::try_from(index % 4).unwrap()];
    (0..count)
        .map(|index| row(&format!("id{index:06}"), index * 40_000_000, tool(index)))
        .collect()
}

/// Opens and reads everything that there is to read.
fn read_segment(bytes: Vec<u8>, schema: &Arc<Schema>) -> Result<Vec<Row>> {
    let storage = Arc::new(Memory::default());
    storage.0.lock().unwrap().insert("s".into(), bytes);
    let opened = Segment::open(Arc::clone(&storage) as Arc<dyn Storage>, "s", schema)?;
    let question = Question {
        from: i64::MIN,
        to: i64::MAX,
        max_events: 1_000_000,
    };
    let plan = Plan::new(Arc::clone(schema), vec![Source::Segment(opened)], question)?;
    let columns: Vec<usize> = (0..schema.columns().len()).collect();
    group::group(
        &plan,
        &[0, 4],
        group::Limits::default(),
        1,
        &scan::Watch::default(),
    )?;
    let mut all = Vec::new();
    scan::ordered(&plan, &columns, &scan::Watch::default(), |batch, range| {
        all.extend(rows(batch, range));
        Ok(())
    })?;
    Ok(all)
}

fn sealed(schema: &Arc<Schema>, rows: &[Row]) -> Vec<u8> {
    let storage = Arc::new(Memory::default());
    segment(&storage, schema, "s", rows);
    storage.0.lock().unwrap().remove("s").unwrap()
}

/// Proves HI-4.
#[test]
fn every_flipped_byte_of_a_segment_is_refused_or_harmless() {
    let schema = plain();
    let rows = some_rows(40);
    let whole = sealed(&schema, &rows);
    let want = expected(&rows);
    let mut refused = 0;
    for place in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << (place % 8);
        match read_segment(bytes, &schema) {
            Ok(rows) => assert_eq!(rows, want, "byte {place}"),
            Err(_) => refused += 1,
        }
    }
    // Only the first four bytes, which nobody needs, may be anything.
    assert!(refused >= whole.len() - 4, "{refused} of {}", whole.len());
}

/// Proves HI-4.
#[test]
fn every_cut_of_a_segment_is_refused() {
    let schema = plain();
    let whole = sealed(&schema, &some_rows(40));
    for length in 0..whole.len() {
        assert!(
            read_segment(whole[..length].to_vec(), &schema).is_err(),
            "{length} bytes"
        );
    }
}

#[test]
fn verifying_finds_a_byte_that_reading_passes_over() {
    let schema = plain();
    let mut bytes = sealed(&schema, &some_rows(40));
    bytes[0] ^= 1;
    let storage = Arc::new(Memory::default());
    storage.0.lock().unwrap().insert("s".into(), bytes.clone());
    let open = || Segment::open(Arc::clone(&storage) as Arc<dyn Storage>, "s", &schema).unwrap();
    assert!(matches!(open().verify(), Err(Error::Corrupt(_))));
    bytes[0] ^= 1;
    storage.0.lock().unwrap().insert("s".into(), bytes);
    open().verify().unwrap();
}

#[test]
fn every_flipped_byte_of_a_chunk_is_refused() {
    let schema = plain();
    let whole = chunk::encode(&schema, &batch(&schema, &some_rows(50))).unwrap();
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << bit;
            assert!(chunk::decode(&schema, &bytes).is_err(), "byte {place}");
        }
        assert!(chunk::decode(&schema, &whole[..place]).is_err(), "{place} bytes");
    }
}

/// Puts the right checksum on a chunk, so that what comes after the checksum is tried as well.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..39]);
    hasher.update(&bytes[43..]);
    bytes[39..43].copy_from_slice(&hasher.finalize().to_le_bytes());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Proves HI-1.
    #[test]
    fn any_bytes_are_a_chunk_or_refused(bytes: Vec<u8>) {
        prop_assert!(chunk::decode(&plain(), &bytes).is_err());
    }

    /// Proves HI-1, HI-3.
    #[test]
    fn a_chunk_with_a_right_checksum_and_wrong_content_does_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        packs_anew: bool,
    ) {
        let schema = plain();
        let mut bytes = chunk::encode(&schema, &batch(&schema, &some_rows(30))).unwrap();
        let mut raw = zstd::bulk::decompress(&bytes[43..], 1 << 20).unwrap();
        for (place, byte) in &changes {
            let changed = if packs_anew { &mut raw } else { &mut bytes };
            let place = place.index(changed.len());
            changed[place] = *byte;
        }
        if packs_anew {
            bytes.truncate(43);
            bytes.extend(zstd::bulk::compress(&raw, 1).unwrap());
        }
        if let Ok(batch) = chunk::decode(&schema, &signed(bytes)) {
            // Whatever is accepted keeps the promises of a batch.
            prop_assert!(batch.at.is_sorted() && batch.ids.len() == batch.rows());
            for column in &batch.columns {
                prop_assert!(column.codes.len() == batch.rows());
                for code in &column.codes {
                    prop_assert!(column.dictionary.entry(*code).is_ok() || column.dictionary.kind() == Kind::TextSet);
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_a_segment_or_refused(bytes: Vec<u8>) {
        prop_assert!(read_segment(bytes, &plain()).is_err());
    }
}

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(fs::remove_dir_all(&path));
    path
}

/// Proves HI-5.
#[test]
fn a_write_that_fails_leaves_no_object_and_no_remains() {
    let path = folder("failing");
    let storage = Folder::open(&path).unwrap();
    let failed = storage.put("s", &mut |out| {
        out.write_all(b"half")?;
        Err(Error::Canceled)
    });
    assert!(matches!(failed, Err(Error::Canceled)));
    assert!(storage.size("s").is_err());
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
}

/// Proves HI-5.
#[test]
fn a_crash_before_the_rename_is_swept_and_sealing_anew_repairs() {
    let path = folder("crashed");
    let schema = plain();
    let rows = some_rows(40);
    // What a process leaves that ends between writing and renaming.
    let bytes = sealed(&schema, &rows);
    Folder::open(&path).unwrap();
    fs::write(path.join("s.partial"), &bytes).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Folder::open(&path).unwrap());
    assert!(storage.size("s").is_err() && !path.join("s.partial").exists());
    let mut sealer = Sealer::new(Arc::clone(&schema));
    sealer.add(&batch(&schema, &rows)).unwrap();
    sealer.seal(storage.as_ref(), "s").unwrap();
    let opened = Segment::open(Arc::clone(&storage), "s", &schema).unwrap();
    opened.verify().unwrap();
    assert_eq!(
        read(&whole(&schema, vec![Source::Segment(opened)])),
        expected(&rows)
    );
    storage.remove("s").unwrap();
    storage.remove("s").unwrap();
    assert!(storage.size("s").is_err());
}

#[test]
fn a_name_stays_inside_of_the_folder() {
    let storage = Folder::open(&folder("names")).unwrap();
    for name in ["", ".", "..", "../x", "a/b", "/x", "x.partial", ".hidden", "a\0"] {
        assert!(storage.put(name, &mut |_| Ok(())).is_err(), "{name:?}");
        assert!(storage.read(name, 0, 1).is_err(), "{name:?}");
    }
}

#[test]
fn reading_past_the_end_is_refused() {
    let storage = Folder::open(&folder("short")).unwrap();
    storage.put("s", &mut |out| Ok(out.write_all(b"abc")?)).unwrap();
    assert_eq!(storage.read("s", 1, 2).unwrap().as_ref(), b"bc");
    assert!(storage.read("s", 1, 3).is_err());
    assert!(storage.read("s", 0, usize::MAX).is_err());
    assert!(storage.read("s", u64::MAX, 1).is_err());
}
