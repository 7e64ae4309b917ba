//! INVARIANTS.md is what the code says: each promise stands once in the head of the module that keeps it, and tests name what
//! they prove.

use super::{Source, page, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The id of an invariant: two letters and a number. Ids are sorted by letters, then by number.
type Id = (String, u32);

/// What the code says of one invariant.
#[derive(Default)]
struct Invariant {
    /// The files in whose heads the promise stands, each with its words. One, if all is well.
    sentences: Vec<(String, String)>,
    /// The files with a comment `INVARIANT XX-1` or `Keeps XX-1`.
    kept_in: BTreeSet<String>,
    /// The tests that say `Proves XX-1.`
    tests: BTreeSet<String>,
}

impl Invariant {
    /// The promise, and what is said of its proof beside the tests.
    fn promise(&self) -> (&str, Option<&str>) {
        let words = self.sentences[0].1.as_str();
        match words.split_once(" Proof: ") {
            Some((promise, proof)) => (promise, Some(proof)),
            None => (words, None),
        }
    }
}

/// Reads an id at the beginning of a text; returns it with the rest.
fn id(text: &str) -> Option<(Id, &str)> {
    let (letters, rest) = text.split_at_checked(2)?;
    let rest = rest.strip_prefix('-')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    let is_id = letters.bytes().all(|b| b.is_ascii_uppercase());
    is_id.then(|| ((letters.to_owned(), number), &rest[digits..]))
}

/// Reads ids with commas between them; returns them with the rest.
fn ids(mut text: &str) -> (Vec<Id>, &str) {
    let mut found = Vec::new();
    while let Some((one, rest)) = id(text) {
        found.push(one);
        text = rest;
        match rest.strip_prefix(", ") {
            Some(more) => text = more,
            None => break,
        }
    }
    (found, text)
}

/// The words of a mark from its line on: up to an empty line or the next mark.
fn paragraph(lines: &[&str]) -> String {
    let mut words = String::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(line) = line.strip_prefix("//! ") else {
            break;
        };
        let begins = line.starts_with("INVARIANT ") || line.starts_with("Keeps ");
        if index > 0 && begins {
            break;
        }
        let space = if index > 0 { " " } else { "" };
        write!(words, "{space}{}", line.trim()).unwrap();
    }
    words
}

/// Says whether a line makes a test of the function below it.
fn is_test_attribute(line: &str) -> bool {
    line.starts_with("#[test]") || line.starts_with("#[tokio::test")
}

/// Collects the marks of a file.
fn read(source: &Source, found: &mut BTreeMap<Id, Invariant>, faults: &mut Vec<String>) {
    let lines: Vec<&str> = source.text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let mut fault = |what: &str| faults.push(format!("{}:{}: {what}", source.path, at + 1));
        let trimmed = line.trim_start();
        if let Some(rest) = trimmed.strip_prefix("/// Proves ") {
            let (proved, rest) = ids(rest);
            let function = lines[at..]
                .iter()
                .take(16)
                .find_map(|line| line.trim_start().split_once("fn "));
            // A helper proves nothing: between the words and the function stands what makes it a test.
            let is_test = lines[at..]
                .iter()
                .take_while(|line| !line.contains("fn "))
                .any(|line| is_test_attribute(line.trim()));
            match function.and_then(|(_, rest)| rest.split_once('(')) {
                Some((name, _)) if !proved.is_empty() && rest == "." && is_test => {
                    for id in proved {
                        found.entry(id).or_default().tests.insert(name.to_owned());
                    }
                }
                _ => fault("write `/// Proves XX-1, YY-2.` above a test"),
            }
        } else if let Some(rest) = trimmed.strip_prefix("//! Keeps ") {
            let (kept, rest) = ids(rest);
            if kept.is_empty() || !rest.starts_with(['.', ':']) {
                continue;
            }
            for id in kept {
                found.entry(id).or_default().kept_in.insert(source.path.clone());
            }
        } else if trimmed.starts_with("//") {
            let is_head = trimmed.starts_with("//! INVARIANT ");
            for (begin, _) in trimmed.match_indices("INVARIANT ") {
                let (kept, rest) = ids(&trimmed[begin + "INVARIANT ".len()..]);
                for id in &kept {
                    let invariant = found.entry(id.clone()).or_default();
                    invariant.kept_in.insert(source.path.clone());
                }
                if is_head && begin == "//! ".len() && !kept.is_empty() {
                    let words = paragraph(&lines[at..]);
                    let Some((_, words)) = words
                        .split_once(": ")
                        .filter(|_| kept.len() == 1 && rest.starts_with(": "))
                    else {
                        fault("write `//! INVARIANT XX-1: sentence.`, one id each, in the head of a module");
                        continue;
                    };
                    let invariant = found.entry(kept[0].clone()).or_default();
                    invariant.sentences.push((source.path.clone(), words.to_owned()));
                }
            }
        }
    }
}

/// The part of the repository whose promises stand together: an area, or a crate.
fn part(path: &str) -> String {
    let mut words = path.split('/').skip(1);
    let name = words.next().unwrap_or_default();
    let is_areas = name.starts_with("areas-");
    let mut inside = words.skip_while(|word| !is_areas && *word != "areas").skip(1);
    match (inside.next(), inside.next()) {
        (Some(area), Some(_)) => format!("{name}: {area}"),
        _ => name.to_owned(),
    }
}

/// Writes the page: its own beginning, and a table of each part.
fn render(beginning: &str, invariants: &BTreeMap<Id, Invariant>) -> String {
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    for ((letters, number), invariant) in invariants {
        let home = &invariant.sentences[0].0;
        let (promise, proof) = invariant.promise();
        let mut promise = promise
            .trim_end_matches('.')
            .replace("[`", "`")
            .replace("`]", "`")
            .replace('|', "\\|");
        if let Some(first) = promise.get(..1) {
            let first = first.to_uppercase();
            promise.replace_range(..1, &first);
        }
        let others = invariant.kept_in.iter().filter(|file| *file != home);
        let files: Vec<String> = [home]
            .into_iter()
            .chain(others)
            .map(|file| format!("`{file}`"))
            .collect();
        let tests = invariant.tests.iter().map(|test| format!("`{test}`"));
        let proof = proof.map(|proof| proof.trim_end_matches('.').to_owned());
        let proofs: Vec<String> = tests.chain(proof).collect();
        let table = parts.entry(part(home)).or_default();
        writeln!(
            table,
            "| {letters}-{number} | {promise} | {} | {} |",
            files.join(", "),
            proofs.join(", ")
        )
        .unwrap();
    }
    let mut text = beginning.trim_end().to_owned();
    for (name, table) in parts {
        write!(
            text,
            "\n\n## {name}\n\n| ID | promise | where | proof |\n| --- | --- | --- | --- |\n{table}"
        )
        .unwrap();
        text.truncate(text.trim_end().len());
    }
    text.push('\n');
    text
}

#[test]
fn every_invariant_has_one_sentence_and_a_proof_and_stands_on_the_page() {
    let mut invariants = BTreeMap::new();
    let mut faults = Vec::new();
    let mut files = sources("crates", &[".rs"]);
    files.extend(sources("third_party/regorus/src", &[".rs"]));
    for file in files
        .iter()
        .filter(|file| !file.path.ends_with("documents/invariants.rs"))
    {
        read(file, &mut invariants, &mut faults);
    }
    for ((letters, number), invariant) in &invariants {
        let mut fault = |what: &str| faults.push(format!("{letters}-{number} {what}"));
        match invariant.sentences.as_slice() {
            [] => fault(
                "is named and nowhere said: write `//! INVARIANT` in the head of the module that keeps it",
            ),
            [_] if invariant.tests.is_empty() && invariant.promise().1.is_none() => {
                fault("has no test: write `/// Proves` above one, or `Proof: why not.` behind the sentence");
            }
            [_] => {}
            several => {
                let files: Vec<&str> = several.iter().map(|(file, _)| file.as_str()).collect();
                fault(&format!(
                    "is said in {}: write `Keeps` in all but one",
                    files.join(" and ")
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        invariants.len() > 200,
        "only {} were found: the search is broken",
        invariants.len()
    );
    let page = page("INVARIANTS.md");
    let beginning = page.split("\n## ").next().unwrap();
    crate::samples::assert_golden("INVARIANTS.md", &render(beginning, &invariants));
}
