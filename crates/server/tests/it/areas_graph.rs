//! Which areas know which others, as their sources say it.
//!
//! An area knows areas of lower floors and of its own; what stands on it hears its announcements. An arrow that runs up is
//! refused, apart from those that are listed here until they go.

use crate::samples::assert_golden;
use provost_server::areas::ALL;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Arrows that run up and have yet to go. None may be added.
const UP: [(&str, &str); 11] = [
    ("directory", "oauth"),
    ("directory", "policies"),
    ("directory", "resource_credentials"),
    ("mcp_sessions", "oauth"),
    ("resources", "policies"),
    ("service_accounts", "mcp_sessions"),
    ("service_accounts", "policies"),
    ("skill_registry", "policies"),
    ("subjects", "policies"),
    ("subjects", "resource_credentials"),
    ("subjects", "skill_registry"),
];

/// Returns the areas that a source names in its paths, comments left out.
fn named(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = BTreeSet::new();
    for (at, start) in code.match_indices("crate::areas::") {
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

fn read(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            read(&path, into);
        } else if path.extension().is_some_and(|kind| kind == "rs")
            && !["tests.rs", "testing.rs"].contains(&name)
        {
            into.extend(named(&std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn the_graph_of_areas_is_the_committed_one_and_no_arrow_runs_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/areas");
    let floors: BTreeMap<&str, u8> = ALL.iter().map(|area| (area.name, area.floor)).collect();
    let mut text = String::from("floor area -> the areas that it knows (^: of a higher floor)\n");
    let mut up = BTreeSet::new();
    let mut order: Vec<(&str, u8)> = floors.iter().map(|(name, floor)| (*name, *floor)).collect();
    order.sort_by_key(|(name, floor)| (*floor, *name));
    for (area, floor) in order {
        let mut names = BTreeSet::new();
        read(&root.join(area), &mut names);
        write!(text, "{floor} {area} ->").unwrap();
        for (name, other) in &floors {
            if *name == area || !names.contains(*name) {
                continue;
            }
            let mark = if *other > floor { "^" } else { "" };
            write!(text, " {mark}{name}").unwrap();
            if *other > floor {
                up.insert((area, *name));
            }
        }
        text.push('\n');
    }
    assert_eq!(
        up,
        BTreeSet::from(UP),
        "an area knows one of a higher floor: let it announce instead"
    );
    assert_golden("crates/server/tests/it/golden/areas.txt", &text);
}

#[test]
fn names_of_areas_are_found_in_every_form() {
    let text = "use crate::areas::words;\nuse crate::areas::{audit, events::{self, x}, oauth};\n// crate::areas::history\nlet a = crate::areas::settings::of();";
    let expected = ["audit", "events", "oauth", "settings", "words"];
    assert_eq!(named(text), expected.map(str::to_owned).into());
}
