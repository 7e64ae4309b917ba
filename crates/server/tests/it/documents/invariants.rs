//! INVARIANTS.md is true: every invariant of the code has a row, every file and test of a row exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(fs::read_to_string(path).unwrap());
        }
    }
}

fn in_backticks(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The rows of the page: id, files, tests.
fn rows(page: &str) -> Vec<(String, Vec<&str>, Vec<&str>)> {
    let cells = |line: &'_ str| line.split(" | ").map(str::len).count();
    page.lines()
        .filter(|line| line.starts_with("| ") && cells(line) >= 4)
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let is_id = cells[0].contains('-') && cells[0].len() <= 6 && !cells[0].starts_with('-');
            is_id.then(|| {
                (
                    cells[0].to_owned(),
                    in_backticks(cells[2]),
                    in_backticks(cells[3]),
                )
            })
        })
        .collect()
}

#[test]
fn every_invariant_has_a_row_a_file_and_a_test() {
    let page = fs::read_to_string(root().join("INVARIANTS.md")).unwrap();
    let mut code = Vec::new();
    sources(&root().join("crates"), &mut code);
    let code = code.join("\n");
    let rows = rows(&page);
    let listed: BTreeSet<&str> = rows.iter().map(|(id, _, _)| id.as_str()).collect();
    assert_eq!(listed.len(), rows.len(), "an id has two rows");
    let declared: BTreeSet<&str> = code
        .split("INVARIANT ")
        .skip(1)
        .filter_map(|rest| rest.split(':').next())
        .filter(|id| {
            id.len() <= 6 && id.contains('-') && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
        .collect();
    let missing: Vec<_> = declared.difference(&listed).collect();
    assert!(missing.is_empty(), "INVARIANTS.md lacks {missing:?}");
    for (id, files, tests) in &rows {
        assert!(!files.is_empty(), "{id} names no file");
        for file in files {
            assert!(
                root().join(file).exists(),
                "{id} names {file}, which is not there"
            );
        }
        for test in tests.iter().filter(|t| {
            t.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        }) {
            assert!(
                code.contains(&format!("fn {test}(")),
                "{id} names the test {test}, which is not there"
            );
        }
    }
}
