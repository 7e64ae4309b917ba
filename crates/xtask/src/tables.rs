//! The ten tables that people read most, as a terminal of 80 columns shows them.
//!
//! They go into one text for people to look at. What a program can say of them is said here: nothing is wider than the terminal,
//! nothing is empty, and who or what comes first is a name where there is one.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};
use crate::guides::{How, Shell};
use crate::page::Demo;
use crate::process;
use crate::product::{self, Workplace};

/// What a terminal has that nobody made larger.
const COLUMNS: usize = 80;

/// The commands, and the member of their answer that holds the items.
const TABLES: [(&str, &str); 10] = [
    ("policies list", "policies"),
    ("history list --limit 12", "events"),
    ("audit list --limit 12", "events"),
    ("users list", "users"),
    ("groups list", "groups"),
    ("service-accounts list", "serviceAccounts"),
    ("mcp-sessions list", "sessions"),
    ("backtests list", "backtests"),
    ("managed-config list", "profiles"),
    ("resources list", "resources"),
];

/// What people call something by.
const NAMES: [&str; 6] = [
    "name",
    "displayName",
    "loginName",
    "actorDisplay",
    "hostname",
    "title",
];

/// Print the ten most used tables of the demo's organization at 80 columns into one text
#[derive(clap::Args)]
pub struct Arguments {
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let binary = std::path::absolute(binary).context("cannot find the binary")?;
    let workplace = Workplace::create("tables")?;
    let demo = Demo::start(&binary, &workplace.folder)?;
    let mut shell = Shell::open(&binary, &workplace.folder.join("terminal"))?;
    let surroundings = format!(
        "stty rows 40 cols {COLUMNS} -onlcr </dev/tty\nexport PROVOST_URL={} PROVOST_ORGANIZATION={} PROVOST_TOKEN_FILE={}",
        demo.value("url")?,
        demo.value("organization")?,
        demo.value("token")?
    );
    types(&mut shell, &surroundings)?;
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for (command, member) in TABLES {
        let shown = types(&mut shell, &format!("provost {command}"))?;
        let answer = types(&mut shell, &format!("provost {command} -o json"))?;
        let answer: Value = serde_json::from_str(&answer).context(format_args!("{command} -o json"))?;
        let items = answer[member].as_array().map(Vec::as_slice).unwrap_or_default();
        wrong.extend(
            faults(&shown, items)
                .into_iter()
                .map(|fault| format!("provost {command}: {fault}")),
        );
        text.extend(["$ provost ", command, "\n", &shown, "\n\n"]);
    }
    shell.close()?;
    demo.stop()?;
    let file = process::target().join("tables.txt");
    std::fs::write(&file, &text).context("cannot write the tables")?;
    workplace.remove()?;
    if !wrong.is_empty() {
        return Err(Failure::new(format!(
            "{}\nthe tables are in {}",
            wrong.join("\n"),
            file.display()
        )));
    }
    println!(
        "{} tables fit {COLUMNS} columns; they are in {}",
        TABLES.len(),
        file.display()
    );
    Ok(())
}

fn types(shell: &mut Shell, text: &str) -> Outcome<String> {
    let said = shell.types(text, How::Block)?;
    if said.status == 0 {
        return Ok(said.text.trim_end().to_owned());
    }
    Err(Failure::new(format!(
        "{text}\nended with {}: {}",
        said.status, said.text
    )))
}

/// Says what is wrong with a table of these items.
fn faults(shown: &str, items: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    if items.is_empty() {
        faults.push("there is nothing to show".to_owned());
    }
    for line in shown.lines() {
        let width = line.chars().count();
        if width > COLUMNS {
            faults.push(format!("a line has {width} columns: {line}"));
        }
    }
    // Behind the head stands the first item.
    let first = shown.lines().nth(1).unwrap_or_default();
    let first = first.split_whitespace().next().unwrap_or_default();
    let has_name = items
        .iter()
        .any(|item| NAMES.iter().any(|name| item[name].is_string()));
    if is_id(first) && has_name {
        faults.push(format!("an id comes first, {first}, where there is a name"));
    }
    faults
}

/// Says whether a word is an id: a prefix, and 26 letters and digits.
fn is_id(word: &str) -> bool {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    word.rsplit_once('_')
        .is_some_and(|(prefix, end)| !prefix.is_empty() && end.len() == 26 && is_plain(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_is_judged_by_its_width_its_items_and_what_comes_first() {
        let item = [json!({ "name": "deploy", "id": "sa_01m7vtxjtx8qjtcka6tev678wv" })];
        let by_id = " ID                             NAME\n sa_01m7vtxjtx8qjtcka6tev678wv  deploy";
        assert_eq!(
            faults(" NAME    ID\n deploy  sa_01m7vtxjtx8qjtcka6tev678wv", &item),
            [""; 0]
        );
        assert_eq!(faults(by_id, &item).len(), 1);
        assert_eq!(faults(by_id, &[json!({ "id": "x" })]), [""; 0]);
        assert_eq!(faults("none", &[]).len(), 1);
        assert_eq!(faults(&format!(" {}\n a", "A".repeat(80)), &item).len(), 1);
    }
}
