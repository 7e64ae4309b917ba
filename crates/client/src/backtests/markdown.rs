//! A run as a comment on a change: what would be different, for who reviews it.
//!
//! Names come from people and programs, and a comment is rendered where it is read: each stands as code, which makes no link, no
//! picture and calls nobody.
//!
//! Absent on purpose: subjects and samples, which are about people; who may see them reads the report.

use super::table::lists;
use super::view::RunView;
use super::words::{caveats, headline};
use crate::cli::visible;

/// The lists that are shown, by the first of their heads.
const SHOWN: [&str; 4] = ["FROM", "POLICY", "NOT JUDGED BY", "TOOL"];

/// Returns the text.
pub fn markdown(run: &RunView) -> String {
    let mut lines = vec![
        "### Backtest of the policies in this change".to_owned(),
        String::new(),
    ];
    lines.push(match headline(run) {
        Some(sentence) => format!("**{}**", plain(&sentence)),
        None => format!("The backtest {} is {}.", cell(&run.id), plain(&run.status)),
    });
    let caveats = caveats(run);
    if !caveats.is_empty() {
        lines.push(String::new());
        lines.extend(caveats.iter().map(|caveat| format!("- {}", plain(caveat))));
    }
    if let Some(results) = &run.results {
        let all = lists(results).into_iter();
        for (heads, rows) in all.filter(|(heads, rows)| SHOWN.contains(&heads[0]) && !rows.is_empty()) {
            lines.push(String::new());
            let titles: Vec<String> = heads.iter().map(|head| head.to_lowercase()).collect();
            lines.push(format!("| {} |", titles.join(" | ")));
            lines.push(format!("|{}", " --- |".repeat(heads.len())));
            for row in rows {
                let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
                lines.push(format!("| {} |", cells.join(" | ")));
            }
        }
    }
    lines.push(String::new());
    lines.push(format!(
        "Live enforcement was not touched. Who and what exactly: `provost backtests report {} --html report.html`",
        run.id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>()
    ));
    lines.push(String::new());
    lines.join("\n")
}

/// Returns a text in which nothing is markup.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for letter in visible(text).chars() {
        match letter {
            '@' => out.push_str("(at)"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out.replace("://", ": //")
}

/// Returns the cell of a table: figures and words as they are, everything else as code.
fn cell(text: &str) -> String {
    let shown = visible(text);
    let is_plain = |letter: char| letter.is_alphanumeric() || " ,.%→–-".contains(letter);
    if shown.chars().all(is_plain) && !shown.contains("www.") {
        return shown.into_owned();
    }
    format!("`{}`", shown.replace('`', "'").replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_comment_has_the_sentence_first_and_no_name_is_markup() {
        let run = RunView::read(&json!({
            "id": "btr_1", "status": "succeeded",
            "window": { "from": "2026-08-22T00:00:00.000Z", "to": "2026-11-20T00:00:00.000Z" },
            "results": {
                "eventsEvaluated": 10, "changed": 1, "unchanged": 9, "byChange": { "allow_to_block": 1 },
                "bySubject": [{ "subjectId": "usr_ada", "kind": "user", "changed": 1, "evaluated": 5 }],
                "byFailure": [{ "policyId": "a|b", "family": "content", "cause": "missing_attribute",
                    "attribute": "tool.input", "baseline": 1, "candidate": 2 }],
                "byTool": [{ "tool": "![x](http://evil) | @team `a`", "changed": 1, "evaluated": 5 }],
            },
        }))
        .unwrap();
        let text = markdown(&run);
        assert!(
            text.contains("**Of 10 events between 22 Aug 2026 and 20 Nov 2026, 1 "),
            "{text}"
        );
        assert!(
            text.contains("| `![x](http://evil) \\| @team 'a'` | 1 | 5 |"),
            "{text}"
        );
        assert!(
            text.contains("| not judged by | family | because | baseline | candidate |"),
            "{text}"
        );
        assert!(
            text.contains("| `a\\|b` | content | tool.input is missing | 1 | 2 |"),
            "{text}"
        );
        assert!(!text.contains("usr_ada"), "{text}");
        assert_eq!(
            plain("@a <b> [c](https://d)"),
            "(at)a \\<b\\> \\[c\\](https: //d)"
        );
    }

    #[test]
    fn a_run_without_results_says_its_state() {
        let run = RunView::read(&json!({ "id": "btr_1", "status": "failed" })).unwrap();
        assert!(markdown(&run).contains("failed"), "{}", markdown(&run));
    }
}
