//! Which modules of the kernel use each other in a circle. A module is a file or a folder directly below `src`.
//!
//! A module that can be read without all the others is one that can be understood, tested and moved. The one pair that is
//! left is the kernel, which starts the writers, and the unit of work, which runs in it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the names that a text takes from the crate, one for each `crate::name` and for each member of `crate::{…}`.
fn taken(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, rest) in text
        .match_indices("crate::")
        .map(|(at, found)| (at, &text[at + found.len()..]))
    {
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        let (mut depth, mut begins) = (0, true);
        for (at, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                letter if begins && depth == 0 && !letter.is_whitespace() => {
                    names.insert(word(&list[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    names
}

fn word(text: &str) -> String {
    text.chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect()
}

/// Returns what the product is built of: neither comments nor the tests of a file.
fn product(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    text.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

/// Adds what the files of a module take.
fn read(path: &Path, names: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), names);
        }
        return;
    }
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let of_tests = path.components().any(|part| part.as_os_str() == "tests");
    if !of_tests && stem != "tests" && !stem.ends_with("_tests") {
        names.extend(taken(&product(&fs::read_to_string(path).unwrap())));
    }
}

/// Returns for each module the modules that it uses. What `lib.rs` hands on belongs to the module that it comes from.
fn graph() -> Graph {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).unwrap();
    let handed: BTreeMap<String, String> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub use ")?.strip_suffix(';')?.split_once("::"))
        .flat_map(|(module, names)| {
            let names = names.trim_matches(['{', '}']).split(',');
            names.map(move |name| (name.trim().to_owned(), module.to_owned()))
        })
        .collect();
    let mut graph = Graph::new();
    for entry in fs::read_dir(&src).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        // Absent on purpose: `schedules` is compiled for tests alone.
        if module != "lib" && module != "schedules" {
            read(&path, graph.entry(module).or_default());
        }
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, names) in &mut graph {
        let meant = names.iter().map(|name| handed.get(name).unwrap_or(name));
        let meant = meant.filter(|name| modules.contains(*name) && *name != module);
        *names = meant.cloned().collect();
    }
    graph
}

fn reaches(graph: &Graph, from: &str, to: &str) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(module) = next.pop() {
        for used in &graph[&module] {
            if used == to {
                return true;
            }
            if seen.insert(used.clone()) {
                next.push(used.clone());
            }
        }
    }
    false
}

#[test]
fn the_modules_of_the_kernel_have_one_circle_the_kernel_and_its_unit_of_work() {
    let graph = graph();
    assert!(graph.len() > 30, "the modules were not read");
    assert!(graph["context"].contains("services") && graph["dispatch"].contains("kernel"));
    let circular: Vec<&String> = graph
        .keys()
        .filter(|module| reaches(&graph, module, module))
        .collect();
    assert_eq!(
        circular,
        ["kernel", "work"],
        "modules of the kernel that use each other in a circle"
    );
}

#[test]
fn names_are_taken_from_paths_and_from_lists() {
    let text = "use crate::a::{B, c::D};\nuse crate::{Kernel, e::{F, G}, h as i};\nlet x = crate::j();";
    let names: Vec<String> = taken(&product(text)).into_iter().collect();
    assert_eq!(names, ["Kernel", "a", "e", "h", "j"]);
    assert!(taken(&product("// use crate::a;\n/// [`crate::b`]")).is_empty());
}
