//! One mutant, as cargo-mutants lists it.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;

use crate::failure::{Context, Outcome};

/// One small change.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// As cargo-mutants calls it: `crates/kernel/src/auth.rs:97:9: replace …`.
    pub name: String,
    pub file: String,
    /// The name without line and column.
    pub change: String,
    /// The line of the original that it begins in, without the spaces around it.
    pub line: String,
    /// What stays the same while code around it moves: the change, and the text that it replaces something in.
    pub identity: String,
    /// The last word of its function's path; empty outside of functions.
    pub function: String,
    pub genre: Genre,
    /// The bytes of the file that it replaces.
    pub range: Range<usize>,
    pub replacement: String,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
    /// A part of what guards, which cargo-mutants does not list.
    #[serde(skip)]
    Arm,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    file: String,
    span: Span,
    function: Option<Function>,
    genre: Genre,
    replacement: String,
}

#[derive(Deserialize)]
struct Span {
    start: Place,
    end: Place,
}

/// Both count from one, columns in characters.
#[derive(Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    /// Where it is in a text, in bytes.
    fn offset(&self, text: &str) -> Option<usize> {
        let mut lines = text.split_inclusive('\n');
        let before: usize = lines.by_ref().take(self.line - 1).map(str::len).sum();
        let mut columns = lines.next().unwrap_or_default().char_indices().map(|(at, _)| at);
        Some(before + columns.nth(self.column - 1)?)
    }
}

#[derive(Deserialize)]
struct Function {
    function_name: String,
}

/// Reads a list of cargo-mutants, made of the sources below `tree`.
pub fn read(json: &str, tree: &Path) -> Outcome<Vec<Mutant>> {
    let listed: Vec<Listed> = serde_json::from_str(json).context("cargo-mutants lists odd JSON")?;
    let mut sources: HashMap<String, String> = HashMap::new();
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut mutants = Vec::new();
    for Listed {
        name,
        file,
        span,
        function,
        genre,
        replacement,
    } in listed
    {
        let place = format!("{file}:{}:{}: ", span.start.line, span.start.column);
        let change = name.strip_prefix(&place);
        let change = change.context(format_args!("cargo-mutants calls a mutant of {place}{name}"))?;
        if !sources.contains_key(&file) {
            let text = std::fs::read_to_string(tree.join(&file)).context(&file)?;
            sources.insert(file.clone(), text);
        }
        let text = &sources[&file];
        let range = span.start.offset(text).zip(span.end.offset(text));
        let (start, end) = range.context(format_args!("{name} is outside of its file"))?;
        let lines: Vec<&str> = text
            .lines()
            .skip(span.start.line.saturating_sub(1))
            .take(span.end.line.saturating_sub(span.start.line) + 1)
            .map(str::trim)
            .collect();
        let change = format!("{file}: {change}");
        let mut identity = format!("{change} | {}", lines.join(" "));
        let count = times.entry(identity.clone()).or_default();
        *count += 1;
        if *count > 1 {
            identity = format!("{identity} #{count}");
        }
        let function = function.map_or_else(String::new, |f| f.function_name);
        mutants.push(Mutant {
            name,
            file,
            change,
            line: lines.first().copied().unwrap_or_default().to_owned(),
            identity,
            function: function.rsplit("::").next().unwrap_or_default().to_owned(),
            genre,
            range: start..end,
            replacement,
        });
    }
    Ok(mutants)
}

#[cfg(test)]
impl Mutant {
    /// A mutant of this identity, of nothing that exists.
    pub fn sample(identity: &str) -> Self {
        Self {
            name: identity.into(),
            file: String::new(),
            change: identity.into(),
            line: String::new(),
            identity: identity.into(),
            function: String::new(),
            genre: Genre::FnValue,
            range: 0..0,
            replacement: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_changes_of_equal_lines_are_told_apart_and_places_are_not_part_of_them() {
        let folder = std::env::temp_dir().join(format!("xtask-mutants-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.rs"), "fn f() {\n    x == y;\n}\n\n    x == y;\n").unwrap();
        let json = |line: u32| {
            format!(
                r#"{{"name":"a.rs:{line}:7: replace == with != in A::f","package":"p","file":"a.rs",
                "function":{{"function_name":"A::f","return_type":"","span":{{}}}},"replacement":"!=","genre":"BinaryOperator",
                "span":{{"start":{{"line":{line},"column":7}},"end":{{"line":{line},"column":9}}}}}}"#
            )
        };
        let mutants = read(&format!("[{},{}]", json(2), json(5)), &folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let identities: Vec<&str> = mutants.iter().map(|mutant| mutant.identity.as_str()).collect();
        let first = "a.rs: replace == with != in A::f | x == y;";
        assert_eq!(identities, [first.to_owned(), format!("{first} #2")]);
        assert_eq!(mutants[0].function, "f");
        let ranges: Vec<Range<usize>> = mutants.into_iter().map(|mutant| mutant.range).collect();
        assert_eq!(ranges, [15..17, 30..32]);
    }
}
