//! Which areas know which others, as their sources say it.
//!
//! An area knows areas of lower floors and of its own; what stands on it hears its announcements. An arrow that runs up is
//! refused.
//!
//! What a statement names is not looked at: `mcp_sessions` reads the table of clients that `oauth` owns, when it looks up a token.

use crate::samples::assert_golden;
use provost_server::areas::ALL;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Modules beside the areas on which areas stand. They know one another, and no area.
const BELOW: [&str; 6] = [
    "areas-platform/src/announcements.rs",
    "areas-platform/src/ends.rs",
    "areas-platform/src/identity.rs",
    "areas-platform/src/removal.rs",
    "areas-platform/src/store.rs",
    "areas-policy/src/modules",
];

/// Returns the crates in which areas lie, and how each names areas of its own.
fn crates_of_areas() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = vec![(crates.join("server/src/areas"), "crate::areas::".to_owned())];
    for entry in std::fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("areas-") {
            found.push((path.join("src"), "crate::".to_owned()));
        }
    }
    found
}

/// Returns the folder of each area.
pub fn folders_of_areas() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for (crate_of_areas, _) in crates_of_areas() {
        for entry in std::fs::read_dir(crate_of_areas).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if ALL.iter().any(|area| area.name == name) {
                assert!(found.insert(name, path).is_none(), "an area has two folders");
            }
        }
    }
    assert_eq!(found.len(), ALL.iter().count());
    found
}

/// Returns what a source names behind `start`, comments left out.
fn named(text: &str, start: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(start) {
        let rest = &code[at + start.len()..];
        let mut add = |word: &str| {
            let word: String = word
                .trim_start()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            found.insert(word);
        };
        match rest.strip_prefix('{').and_then(|list| list.split_once(';')) {
            Some((list, _)) => {
                let mut depth = 0;
                let mut word = String::new();
                for c in list.chars() {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 0 => add(&std::mem::take(&mut word)),
                        _ if depth == 0 => word.push(c),
                        _ => {}
                    }
                }
                add(&word);
            }
            None => add(rest),
        }
    }
    found
}

/// Adds what the sources at a path name behind `start`, tests left out.
fn read(path: &Path, start: &str, into: &mut BTreeSet<String>) {
    let name = path.file_name().unwrap().to_str().unwrap();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), start, into);
        }
    } else if path.extension().is_some_and(|kind| kind == "rs") && !["tests.rs", "testing.rs"].contains(&name)
    {
        into.extend(named(&std::fs::read_to_string(path).unwrap(), start));
    }
}

#[test]
fn the_graph_of_areas_is_the_committed_one_and_no_arrow_runs_up() {
    let folders = folders_of_areas();
    let mut starts = BTreeSet::from(["crate::areas::".to_owned(), "provost_server::areas::".to_owned()]);
    for (folder, start) in crates_of_areas() {
        let name = folder.parent().unwrap().file_name().unwrap().to_str().unwrap();
        starts.extend([start, format!("provost_{}::", name.replace('-', "_"))]);
    }
    let floors: BTreeMap<&str, u8> = ALL.iter().map(|area| (area.name, area.floor)).collect();
    let mut text = String::from("floor area -> the areas that it knows\n");
    let mut up = BTreeSet::new();
    let mut order: Vec<(&str, u8)> = floors.iter().map(|(name, floor)| (*name, *floor)).collect();
    order.sort_by_key(|(name, floor)| (*floor, *name));
    for (area, floor) in order {
        let mut names = BTreeSet::new();
        for start in &starts {
            read(&folders[area], start, &mut names);
        }
        write!(text, "{floor} {area} ->").unwrap();
        for (name, other) in &floors {
            if *name == area || !names.contains(*name) {
                continue;
            }
            write!(text, " {name}").unwrap();
            if *other > floor {
                up.insert((area, *name));
            }
        }
        text.push('\n');
    }
    assert!(
        up.is_empty(),
        "areas know others of higher floors, and should announce instead or ask: {up:?}"
    );
    assert_golden("crates/server/tests/it/golden/areas.txt", &text);
}

#[test]
fn what_areas_stand_on_knows_no_area() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in BELOW {
        let mut names = BTreeSet::new();
        for (_, start) in crates_of_areas() {
            read(&crates.join(name), &start, &mut names);
        }
        read(&crates.join(name), "provost_areas_platform::", &mut names);
        names.retain(|name| ALL.iter().any(|area| area.name == name));
        assert!(names.is_empty(), "{name} knows {names:?}");
    }
}

#[test]
fn names_of_areas_are_found_in_every_form() {
    let text = "use crate::areas::words;\nuse crate::areas::{audit, events::{self, x}, oauth};\n// crate::areas::history\nlet a = crate::areas::settings::of();";
    let expected = ["audit", "events", "oauth", "settings", "words"];
    assert_eq!(named(text, "crate::areas::"), expected.map(str::to_owned).into());
}
