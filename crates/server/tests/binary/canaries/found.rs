//! All that somebody could read afterwards, by where, and what of the planted stands in it.

use crate::harness::Home;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use provost_kernel::db::{Access, Conn, FromColumn, Statement, Value};
use provost_policy::sha256_hex;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::Read;
use std::path::Path;

/// Digits of a digest that is written down, and how short a text is that can hold an encoded canary.
const DIGEST: usize = 64;
const SHORT: usize = 24;
/// How a frame of zstd begins.
const PACKED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes, by the place in which they stand.
#[derive(Default)]
pub struct Found(pub BTreeMap<String, Vec<u8>>);

impl Found {
    pub fn add(&mut self, place: impl Into<String>, bytes: impl AsRef<[u8]>) {
        let all = self.0.entry(place.into()).or_default();
        all.extend_from_slice(bytes.as_ref());
        all.push(b'\n');
    }

    /// Adds every file of a folder; `name` says how its place is called.
    pub fn files(&mut self, folder: &Path, name: &dyn Fn(&str) -> String) {
        let mut waiting = vec![folder.to_owned()];
        while let Some(path) = waiting.pop() {
            // A server that works takes files away meanwhile.
            for entry in fs::read_dir(path).into_iter().flatten() {
                let path = entry.unwrap().path();
                let Ok(kind) = fs::symlink_metadata(&path) else {
                    continue;
                };
                if kind.is_dir() {
                    waiting.push(path);
                } else if kind.is_file() {
                    let below = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                    // A name is read as well.
                    self.add(
                        name(&below),
                        [below.as_bytes(), b"\n", &fs::read(&path).unwrap_or_default()[..]].concat(),
                    );
                }
            }
        }
    }

    /// Adds every row of every table of a store, a place for each table.
    pub fn tables(&mut self, home: &Home) {
        let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
        let columns: Vec<(String, String)> = conn
            .read(|tx| tx.query(&COLUMNS, &[], |row| Ok((row.get(0)?, row.get(1)?))))
            .unwrap();
        let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (table, column) in columns {
            tables.entry(table).or_default().push(column);
        }
        assert!(tables.len() > 100, "{}", tables.len());
        for (table, columns) in tables {
            let names: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
            let sql = format!("SELECT {} FROM \"{table}\"", names.join(", "));
            let rows = conn.read(|tx| {
                tx.query(leak(sql.clone()), &[], |row| {
                    (0..columns.len())
                        .map(|at| row.get::<Cell>(at))
                        .collect::<provost_kernel::Result<Vec<Cell>>>()
                })
            });
            for cell in rows.unwrap().into_iter().flatten() {
                self.add(format!("store/{table}"), cell.0);
            }
        }
    }

    /// Returns everything as it can be read: as it is, what of it stands in the base64 of a text or is packed, and all of that in small letters.
    pub fn read(&self) -> Readable<'_> {
        let read = |bytes: &Vec<u8>| {
            let mut all = vec![bytes.clone()];
            all.extend(packed(bytes));
            let inside: Vec<Vec<u8>> = all.iter().flat_map(|bytes| encoded(bytes)).collect();
            all.extend(inside);
            String::from_utf8_lossy(&all.join(&b'\n')).to_lowercase()
        };
        let texts = self.0.iter().map(|(place, bytes)| (place.as_str(), read(bytes)));
        Readable(texts.collect())
    }

    /// Returns where a digest without a key stands of what was planted: it is as good as the secret to whoever can guess it.
    pub fn digests_of(&self, planted: &[String]) -> Vec<(String, &str)> {
        let digests: HashSet<String> = planted.iter().map(|one| sha256_hex(one.as_bytes())).collect();
        let mut found = Vec::new();
        for (place, bytes) in &self.0 {
            for run in bytes
                .split(|byte| !byte.is_ascii_hexdigit())
                .filter(|run| run.len() == DIGEST)
            {
                let run = String::from_utf8_lossy(run).to_lowercase();
                if digests.contains(&run) {
                    found.push((run, place.as_str()));
                }
            }
        }
        found
    }
}

/// What somebody reads, by the place in which it stands.
pub struct Readable<'a>(BTreeMap<&'a str, String>);

impl Readable<'_> {
    /// Returns where something stands that begins so.
    pub fn places_of(&self, begins: &str) -> BTreeSet<&str> {
        let begins = begins.to_lowercase();
        let of = self.0.iter().filter(|(_, text)| text.contains(&begins));
        of.map(|(place, _)| *place).collect()
    }
}

/// Returns what stands in base64 in some bytes.
fn encoded(bytes: &[u8]) -> Vec<Vec<u8>> {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let runs = bytes
        .split(|byte| !is_sign(byte))
        .filter(|run| run.len() >= SHORT);
    runs.filter_map(|run| {
        // What is behind the last whole group is no canary.
        let whole = &run[..run.len() / 4 * 4];
        STANDARD_NO_PAD
            .decode(whole)
            .or_else(|_| URL_SAFE_NO_PAD.decode(whole))
            .ok()
    })
    .collect()
}

/// Returns what is packed in some bytes, as the history is: whatever begins as zstd does.
fn packed(bytes: &[u8]) -> Vec<Vec<u8>> {
    let begins = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&PACKED));
    let whole = begins.filter_map(|at| {
        let mut text = Vec::new();
        let mut unpacked = zstd::stream::read::Decoder::new(&bytes[at..])
            .ok()?
            .single_frame();
        // What is broken at its end is read up to there.
        let _ = unpacked.read_to_end(&mut text);
        Some(text)
    });
    whole.collect()
}

/// A value of a row, as bytes.
struct Cell(Vec<u8>);

impl FromColumn for Cell {
    fn from_value(value: Value<'_>) -> Option<Self> {
        Some(Self(match value {
            Value::Null => Vec::new(),
            Value::Int(number) => number.to_string().into_bytes(),
            Value::Bool(is_true) => is_true.to_string().into_bytes(),
            Value::Text(text) => text.as_bytes().to_vec(),
            Value::Bytes(bytes) => bytes.to_vec(),
            Value::Foreign => return None,
        }))
    }
}

provost_kernel::statements! {
    /// Every column of every table.
    COLUMNS = unscoped("a test") {
        sqlite: "SELECT t.name, c.name FROM pragma_table_list t JOIN pragma_table_info(t.name) c WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1, 2",
        postgres: "SELECT c.table_name::text, c.column_name::text FROM information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name AND t.table_type = 'BASE TABLE' WHERE c.table_schema = current_schema() ORDER BY 1, 2",
    };
}

/// The seam takes statements that live as long as the program.
fn leak(sql: String) -> &'static Statement {
    let sql: &'static str = Box::leak(sql.into_boxed_str());
    Box::leak(Box::new(Statement {
        name: "rows",
        sqlite: sql,
        postgres: sql,
        unscoped: Some("a test"),
    }))
}

#[test]
fn whatever_form_a_canary_has_it_is_found() {
    let canary = "CnryV7x9Q2w4E6r8T0yU1aBcDe".to_owned();
    let planted = [canary.clone()];
    for text in [
        format!("a line with {canary}"),
        canary.to_uppercase(),
        format!(
            "{{\"payload\":\"{}\"}}",
            base64::engine::general_purpose::STANDARD.encode(format!("{{\"a\":\"{canary}\"}}"))
        ),
        format!("x.{}.y", URL_SAFE_NO_PAD.encode(format!("???>>{canary}"))),
    ] {
        let mut found = Found::default();
        found.add("here", &text);
        found.add("there", "nothing");
        assert_eq!(
            found.read().places_of("cnryv").into_iter().collect::<Vec<_>>(),
            ["here"],
            "{text}"
        );
    }
    let mut found = Found::default();
    let frame = zstd::encode_all(canary.as_bytes(), 3).unwrap();
    found.add("here", [&b"before"[..], &frame, b"behind"].concat());
    assert!(found.read().places_of("cnryv").contains("here"));
    let mut found = Found::default();
    found.add("here", format!("\"{}\"", sha256_hex(canary.as_bytes())));
    assert!(found.read().places_of("cnryv").is_empty());
    assert_eq!(found.digests_of(&planted)[0].1, "here");
}
