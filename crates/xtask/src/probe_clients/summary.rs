//! What was probed of which version, for the page of what works with what.

use std::path::Path;

use serde_json::Value;

use crate::compatibility::Table;
use crate::failure::{Context, Outcome};

/// Keeps the table of all files of verdicts in a folder.
pub fn record(folder: &Path) -> Outcome {
    let mut table = Table::new(
        "Managed settings",
        &[
            "client",
            "asked on",
            "file",
            "members",
            "unproven",
            "wrong types",
            "words and forms",
            "unknown names",
        ],
        &[
            "How: `cargo xtask probe-clients --record`. Each client reads a settings file of its own with each known member, once with a right value \
             and once with every other type of JSON, and with each known word and one that nobody knows; what it prints says whether it \
             does not start, starts and complains, or takes it. A release is judged by these files. An unproven member was not asked for yet, or its \
             right value could not be shown to be one: nothing is concluded of its types, and the schema holds.",
        ],
    );
    let mut newest = None;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).context(folder.display())? {
        let path = entry.context(folder.display())?.path();
        if path.extension().is_some_and(|end| end == "json") {
            files.push(path);
        }
    }
    files.sort_unstable();
    for path in files {
        let text = std::fs::read_to_string(&path).context(path.display())?;
        let file: Value = serde_json::from_str(&text).context(path.display())?;
        // The day of a table is that of its newest answers, and not that of the page.
        table.date = file["date"]
            .as_str()
            .map(str::to_owned)
            .max(newest)
            .unwrap_or_default();
        newest = Some(table.date.clone());
        for class in ["enforced", "defaults"] {
            if file.get(class).is_some() {
                table.rows.push(row(&file, class));
            }
        }
    }
    table.write("settings")
}

fn row(file: &Value, class: &str) -> Vec<String> {
    let word = |name: &str| file[name].as_str().unwrap_or_default().to_owned();
    let (client, name) = match (word("client").as_str(), class) {
        ("claude_code", _) => ("Claude Code", "`managed-settings.json`"),
        ("codex", "enforced") => ("Codex", "`requirements.toml`"),
        _ => ("Codex", "`config.toml`"),
    };
    let of = &file[class];
    let count = |kind: &str| of[kind].as_object().map_or(0, serde_json::Map::len);
    vec![
        format!("{client} {}", word("version")),
        word("date"),
        name.to_owned(),
        count("members").to_string(),
        of["unproven"].as_array().map_or(0, Vec::len).to_string(),
        verdicts(of, &["members"]),
        verdicts(of, &["words", "forms"]),
        verdicts(of, &["names"]),
    ]
}

/// How often the client did what, in words.
fn verdicts(of: &Value, kinds: &[&str]) -> String {
    let times = |verdict: &str| -> usize {
        let subjects = kinds.iter().filter_map(|kind| of[*kind].as_object()).flatten();
        subjects
            .filter_map(|(_, tried)| tried[verdict].as_array())
            .map(Vec::len)
            .sum()
    };
    let (refused, complained) = (times("refuses"), times("complains"));
    let taken = times("starts") + times("ignores");
    format!("{refused} do not start, {complained} are left out with a complaint, {taken} are taken")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_counts_what_the_client_did() {
        let file = json!({ "client": "codex", "version": "1.2.3", "date": "2026-01-02", "enforced": {
            "members": { "/a": { "refuses": ["null", "array"], "starts": ["string"] }, "/b": { "ignores": ["null"] } },
            "words": { "/a": { "complains": ["x"] } }, "forms": {}, "names": {}, "unproven": ["/b"] } });
        let row = row(&file, "enforced");
        assert_eq!(
            row[..5],
            ["Codex 1.2.3", "2026-01-02", "`requirements.toml`", "2", "1"]
        );
        assert_eq!(
            row[5],
            "2 do not start, 0 are left out with a complaint, 2 are taken"
        );
        assert_eq!(
            row[6],
            "0 do not start, 1 are left out with a complaint, 0 are taken"
        );
    }
}
