//! What the counts say, by group of files.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::failure::{Context, Outcome};

/// A group of files, by what their paths contain. The first that fits has the file.
struct Group {
    name: &'static str,
    paths: &'static [&'static str],
}

/// Every branch of these is to be taken (R43).
const GROUPS: &[Group] = &[
    Group {
        name: "authorization",
        paths: &[
            "kernel/src/auth.rs",
            "kernel/src/auth/scopes.rs",
            "kernel/src/dispatch/",
            "areas-identity/src/service_accounts/credentials.rs",
            "areas-access/src/mcp_sessions/credential.rs",
            "areas-access/src/oauth/credentials.rs",
        ],
    },
    Group {
        name: "idempotency",
        paths: &["kernel/src/idempotency.rs", "kernel/src/work/"],
    },
    Group {
        name: "tokens",
        paths: &[
            "kernel/src/token.rs",
            "kernel/src/credential.rs",
            "kernel/src/credential/scheme.rs",
            "words/src/secret.rs",
            "areas-identity/src/service_accounts/rotate.rs",
            "areas-identity/src/service_accounts/revoke_token.rs",
            "areas-access/src/oauth/token/",
        ],
    },
    Group {
        name: "state machines",
        paths: &[
            "areas-identity/src/service_accounts/status.rs",
            "areas-access/src/mcp_sessions/end.rs",
            "areas-access/src/mcp_sessions/revoke",
            "areas-policy/src/backtests/cancel.rs",
            "areas-policy/src/backtests/store.rs",
            "areas-catalog/src/managed_config/plan.rs",
            "areas-catalog/src/managed_config/rollback.rs",
            "areas-catalog/src/managed_config/publish.rs",
        ],
    },
];

/// How much of something there is, and how much of it was run.
#[derive(Clone, Copy, Default)]
struct Share {
    count: usize,
    covered: usize,
}

impl Share {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.covered += other.covered;
    }

    /// Units: percent; all of nothing is 100.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn percent(self) -> f64 {
        if self.count == 0 {
            return 100.0;
        }
        self.covered as f64 / self.count as f64 * 100.0
    }
}

/// One file of source.
struct File {
    name: String,
    group: Option<&'static str>,
    lines: Share,
    /// Each side of each branch counts as one.
    branches: Share,
    /// `12:9 is never false`.
    untaken: Vec<String>,
}

/// The figures of a run.
pub struct Figures {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct Export {
    data: Vec<Data>,
}

#[derive(Deserialize)]
struct Data {
    files: Vec<CountedLine>,
}

#[derive(Deserialize)]
struct CountedLine {
    filename: String,
    /// Line, column, line, column, how often true, how often false, and what does not matter here.
    branches: Vec<Vec<u64>>,
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    lines: Lines,
}

#[derive(Deserialize)]
struct Lines {
    count: usize,
    covered: usize,
}

impl Figures {
    /// Reads what llvm-cov exports.
    ///
    /// Errors: it is not the JSON that this version of it writes, or speaks of no file of ours.
    pub fn read(export: &str) -> Outcome<Self> {
        let export: Export = serde_json::from_str(export).context("the counts cannot be read")?;
        let files = export.data.into_iter().flat_map(|data| data.files);
        let mut files: Vec<File> = files.map(File::of).collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        if files.is_empty() {
            return Err(crate::failure::Failure::new(
                "the counts are about no file of the product",
            ));
        }
        Ok(Self { files })
    }

    fn sum(&self, wanted: impl Fn(&File) -> bool) -> (Share, Share) {
        let mut sum = (Share::default(), Share::default());
        for file in self.files.iter().filter(|file| wanted(file)) {
            sum.0.add(file.lines);
            sum.1.add(file.branches);
        }
        sum
    }

    /// The groups and the whole, one line each.
    fn rows(&self) -> Vec<(&'static str, Share, Share)> {
        let mut rows: Vec<_> = GROUPS
            .iter()
            .map(|group| {
                let (lines, branches) = self.sum(|file| file.group == Some(group.name));
                (group.name, lines, branches)
            })
            .collect();
        let (lines, branches) = self.sum(|_| true);
        rows.push(("everything", lines, branches));
        rows
    }

    /// Returns the figures as a table for people.
    pub fn table(&self) -> String {
        let mut text = format!("{:<16} {:>17} {:>24}\n", "", "lines", "sides of branches");
        for (name, lines, branches) in self.rows() {
            let _ = writeln!(
                text,
                "{name:<16} {:>8} {:>6.1} % {:>15} {:>6.1} %",
                lines.count,
                lines.percent(),
                branches.count,
                branches.percent()
            );
        }
        text
    }

    /// Returns the figures as one sentence for the record.
    pub fn sentence(&self) -> String {
        let rows = self.rows();
        let said = rows.iter().map(|(name, lines, branches)| {
            format!(
                "{name} {:.1} % of {} lines and {:.1} % of {} sides of branches",
                lines.percent(),
                lines.count,
                branches.percent(),
                branches.count
            )
        });
        let said: Vec<String> = said.collect();
        format!(
            "The tests of the suite run, on both engines: {}.",
            said.join("; ")
        )
    }

    /// Returns what no test ran, by file, those of the groups first.
    pub fn missed(&self) -> String {
        let mut text = String::new();
        let of_groups = self.files.iter().filter(|file| file.group.is_some());
        let others = self.files.iter().filter(|file| file.group.is_none());
        for file in of_groups.chain(others) {
            let _ = writeln!(
                text,
                "{} ({}): {} of {} lines, {} of {} sides of branches",
                file.name,
                file.group.unwrap_or("other"),
                file.lines.covered,
                file.lines.count,
                file.branches.covered,
                file.branches.count
            );
            for side in &file.untaken {
                let _ = writeln!(text, "    {side}");
            }
        }
        text
    }
}

impl File {
    fn of(counted: CountedLine) -> Self {
        let fits = |group: &&Group| group.paths.iter().any(|path| counted.filename.contains(path));
        let group = GROUPS.iter().find(fits).map(|group| group.name);
        // A generic function has its branches once for every type it is built for; here they are one.
        let mut taken: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
        for branch in &counted.branches {
            let [line, column, _, _, yes, no, ..] = branch[..] else {
                continue;
            };
            let sides = taken.entry((line, column)).or_default();
            sides.0 += yes;
            sides.1 += no;
        }
        let mut untaken = Vec::new();
        for ((line, column), (yes, no)) in &taken {
            if *yes == 0 {
                untaken.push(format!("{line}:{column} is never true"));
            }
            if *no == 0 {
                untaken.push(format!("{line}:{column} is never false"));
            }
        }
        let count = taken.len() * 2;
        Self {
            name: counted.filename,
            group,
            lines: Share {
                count: counted.summary.lines.count,
                covered: counted.summary.lines.covered,
            },
            branches: Share {
                count,
                covered: count - untaken.len(),
            },
            untaken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_a_group_names_files_that_are_there() {
        let files = crate::process::sources("crates");
        for path in GROUPS.iter().flat_map(|group| group.paths) {
            let is_there = files.iter().any(|(file, _)| file.contains(path));
            assert!(is_there, "no file is at {path}");
        }
    }

    #[test]
    fn branches_of_all_types_of_a_generic_function_are_one() {
        let export = r#"{"data":[{"files":[{"filename":"/x/crates/kernel/src/auth.rs",
            "branches":[[3,5,3,9,0,2,0,0,4],[3,5,3,9,1,0,0,0,4],[7,1,7,2,4,0,0,0,4]],
            "summary":{"lines":{"count":10,"covered":9}}}]}]}"#;
        let figures = Figures::read(export).unwrap();
        let (lines, branches) = figures.sum(|file| file.group == Some("authorization"));
        assert_eq!((lines.count, lines.covered), (10, 9));
        assert_eq!((branches.count, branches.covered), (4, 3));
        assert!(
            figures.missed().contains("7:1 is never false"),
            "{}",
            figures.missed()
        );
    }

    #[test]
    fn counts_about_nothing_are_no_figure() {
        assert!(Figures::read(r#"{"data":[]}"#).is_err());
    }
}
