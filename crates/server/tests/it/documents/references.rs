//! Numbers that comments and pages cite: decisions, sections, goals of assurance, records of decisions.

use super::{Source, page, root, sources};
use std::collections::BTreeSet;
use std::fs;

/// What `docs/decisions.md` and its neighbours define.
struct Definitions {
    /// The anchors of `docs/decisions.md`.
    anchors: BTreeSet<String>,
    /// The goals of `docs/assurance.md`: lines that begin with their number, headings or rows.
    goals: BTreeSet<String>,
    /// The numbers of the records in `docs/adr`.
    records: BTreeSet<String>,
}

impl Definitions {
    fn read() -> Self {
        let decisions = page("docs/decisions.md");
        let anchors: Vec<&str> = decisions
            .split("<a id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let unique: BTreeSet<String> = anchors.iter().map(|anchor| (*anchor).to_owned()).collect();
        assert_eq!(
            unique.len(),
            anchors.len(),
            "docs/decisions.md defines something twice"
        );
        let goals = page("docs/assurance.md");
        let goals = goals.lines().filter_map(|line| {
            let line = line.trim_start_matches(['#', '|', '*', ' ']);
            let length = line
                .strip_prefix('R')?
                .bytes()
                .take_while(u8::is_ascii_digit)
                .count();
            (length > 0).then(|| line[..=length].to_owned())
        });
        let records = fs::read_dir(root().join("docs/adr")).unwrap();
        let records = records.filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.split_once('-').map(|(number, _)| number.to_owned())
        });
        Self {
            anchors: unique,
            goals: goals.collect(),
            records: records.collect(),
        }
    }

    /// The anchor that a cited number has, or the words that say what is missing.
    fn knows(&self, reference: &Reference) -> bool {
        match reference {
            Reference::Decision(number) => self.anchors.contains(&format!("d{}", number.replace('.', "-"))),
            Reference::Letter(letter) => self
                .anchors
                .contains(&format!("decision-{}", letter.to_ascii_lowercase())),
            Reference::Specification(section) => self
                .anchors
                .contains(&format!("spec-{}", section.replace('.', "-"))),
            Reference::Contract(section) => self
                .anchors
                .contains(&format!("client-{}", section.replace('.', "-"))),
            Reference::Goal(number) => self.goals.contains(&format!("R{number}")),
            Reference::Record(number) => self.records.contains(number),
        }
    }
}

/// Something that is cited by its number.
#[derive(Debug, PartialEq, Eq)]
enum Reference {
    /// `D4.8`, or `D4` for a whole section.
    Decision(String),
    /// `decision A`.
    Letter(char),
    /// A section behind the word "specification".
    Specification(String),
    /// A section behind the words "client contract".
    Contract(String),
    /// `R16`.
    Goal(String),
    /// `ADR 0043`.
    Record(String),
}

/// The number at the beginning of a text: digits in groups that dots join, none behind the last.
fn number(text: &str) -> &str {
    let length = text
        .bytes()
        .take_while(|b| b.is_ascii_digit() || *b == b'.')
        .count();
    text[..length].trim_end_matches('.')
}

/// The numbers behind a letter that begins a word, such as `D4.8` and `R16`.
fn numbered(text: &str, letter: char) -> impl Iterator<Item = &str> {
    text.match_indices(letter).filter_map(move |(at, _)| {
        let is_inside =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '+' | '.' | '"' | '$' | '#');
        let number = number(&text[at + 1..]);
        let before = text[..at].chars().next_back();
        let behind = text[at + 1 + number.len()..].chars().next();
        let is_word = !number.is_empty()
            && number.len() <= 5
            && !before.is_some_and(is_inside)
            && !behind.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '='));
        is_word.then_some(number)
    })
}

/// The sections that a text names behind some words, up to the end of the sentence or of the part of it.
fn sections<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(words).flat_map(move |(at, _)| {
        let rest = &text[at + words.len()..];
        let end = [";", ")", ". ", "rfc", "specification", "client contract"]
            .iter()
            .filter_map(|stop| rest.find(stop))
            .min();
        let cited = &rest[..end.unwrap_or(rest.len())];
        let is_cited = cited.trim_start().starts_with('§');
        cited
            .split('§')
            .skip(1)
            .map(str::trim_start)
            .map(number)
            .filter(move |n| is_cited && !n.is_empty())
    })
}

/// What a text cites. Lines are joined before, so that a citation may go over the end of one.
fn references(text: &str) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    found.extend(numbered(text, 'D').map(|n| Reference::Decision(n.to_owned())));
    found.extend(numbered(text, 'R').map(|n| Reference::Goal(n.to_owned())));
    let lower = text.to_ascii_lowercase();
    found.extend(sections(&lower, "client contract").map(|n| Reference::Contract(n.to_owned())));
    // The specification of something else is named by its name: `OTLP specification`.
    let of_the_family = lower.replace("otlp specification", "");
    found.extend(sections(&of_the_family, "specification").map(|n| Reference::Specification(n.to_owned())));
    for (at, _) in text.match_indices("ADR ") {
        let record = number(&text[at + 4..]);
        if record.len() == 4 {
            found.push(Reference::Record(record.to_owned()));
        }
    }
    for (at, _) in lower.match_indices("decision ") {
        let mut behind = text[at + 9..].chars();
        if let (Some(letter @ 'A'..='J'), next) = (behind.next(), behind.next())
            && next.is_none_or(|c| !c.is_alphanumeric() && c != ' ')
        {
            found.push(Reference::Letter(letter));
        }
    }
    found
}

/// Joins the prose of a file to paragraphs, each with the number of its first line.
fn paragraphs(source: &Source) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut last = 0;
    for (at, line) in source.prose() {
        match found.last_mut() {
            Some((_, text)) if at == last + 1 && !line.is_empty() => {
                text.push(' ');
                text.push_str(line);
            }
            _ => found.push((at, line.to_owned())),
        }
        last = at;
    }
    found
}

#[test]
fn whatever_is_cited_by_number_can_be_looked_up() {
    let known = Definitions::read();
    let mut files = sources("crates", &[".rs", ".sql", ".toml", ".md"]);
    files.extend(sources("docs", &[".md"]));
    files.extend(sources("fuzz", &[".rs", ".md"]));
    for name in [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "INVARIANTS.md",
        "README.md",
        "SECURITY.md",
        "clippy.toml",
    ] {
        let (path, text) = (name.to_owned(), page(name));
        files.push(Source { path, text });
    }
    let mut missing = Vec::new();
    let mut cited = 0;
    for file in &files {
        for (line, text) in paragraphs(file) {
            for reference in references(&text) {
                cited += 1;
                if !known.knows(&reference) {
                    missing.push(format!("{}:{line}: {reference:?}", file.path));
                }
            }
        }
    }
    assert!(
        missing.is_empty(),
        "nobody can look these up:\n{}",
        missing.join("\n")
    );
    assert!(
        cited > 500,
        "only {cited} citations were found: the search is broken"
    );
}

#[test]
fn citations_are_read_as_they_are_written() {
    let decision = |number: &str| Reference::Decision(number.to_owned());
    assert_eq!(
        references("as D4.8 says (D5, D13)."),
        [decision("4.8"), decision("5"), decision("13")]
    );
    assert_eq!(references("MD5 and D9-1, `RD-1`, 0xD4"), []);
    let section = |number: &str| Reference::Specification(number.to_owned());
    assert_eq!(
        references("Lists sessions (specification §4.1, §3). RFC 7515 §4.1.9 is another."),
        [section("4.1"), section("3")]
    );
    assert_eq!(
        references("client contract §3.4 `logic`, §3.9 to §3.11; §9"),
        ["3.4", "3.9", "3.11"].map(|number| Reference::Contract(number.to_owned()))
    );
    assert_eq!(references("the OTLP specification §2"), []);
    assert_eq!(references("goal R16 holds"), [Reference::Goal("16".to_owned())]);
    assert_eq!(
        references("see decision I, ADR 0043"),
        [Reference::Record("0043".to_owned()), Reference::Letter('I')]
    );
}
