//! A filter that names no action: an empty list would look as if nothing had happened.

use super::store::{self, Filter};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// How many names are proposed.
const PROPOSED: usize = 3;

/// Why an answer is perhaps not what was meant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct Warning {
    /// `unknown_action`. Open.
    code: &'static str,
    /// A sentence for people.
    message: String,
    /// The actions with the most similar names, the most similar first.
    nearest: Vec<String>,
}

/// Returns a warning when this version knows no action of that name and no entry from `lowest` on, before `before`, has it:
/// an earlier version may have had it.
pub(super) fn of_action(
    ctx: &mut OperationContext<'_>,
    action: &str,
    before: i64,
    lowest: i64,
) -> Result<Option<Warning>> {
    let fences = &ctx.services().fences;
    if fences.acts().any(|(known, _)| known == action) {
        return Ok(None);
    }
    let of_that_name = Filter {
        action: Some(action),
        ..Filter::default()
    };
    if !store::list(ctx, &of_that_name, before, lowest, 1)?.is_empty() {
        return Ok(None);
    }
    let nearest = nearest(action, fences.acts().map(|(known, _)| known));
    let looked_at = if lowest > 1 {
        "none of the newest entries has the action"
    } else {
        "no entry has the action"
    };
    Ok(Some(Warning {
        code: "unknown_action",
        message: format!(
            "{looked_at} {action}, and this version knows none of that name; the most similar are {}",
            nearest.join(", ")
        ),
        nearest,
    }))
}

fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let word = word.to_lowercase();
    let mut names: Vec<(usize, &str)> = names
        .map(|name| (distance(&word, &name.to_lowercase()), name))
        .collect();
    names.sort_unstable();
    let nearest = names.into_iter().take(PROPOSED);
    nearest.map(|(_, name)| name.to_owned()).collect()
}

/// Returns how far a word is from a name: 1 for each character that it lacks, 3 for each that is too many or another. Whoever
/// asks shortens a name more often than that they write another.
fn distance(word: &str, name: &str) -> usize {
    const WRONG: usize = 3;
    let name: Vec<char> = name.chars().collect();
    // How far the part of the word that was read is from each beginning of the name.
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (place, letter) in word.chars().enumerate() {
        let mut replaced = std::mem::replace(&mut row[0], (place + 1) * WRONG);
        for (column, of_name) in name.iter().enumerate() {
            let kept = replaced + if letter == *of_name { 0 } else { WRONG };
            replaced = row[column + 1];
            row[column + 1] = kept.min(replaced + WRONG).min(row[column] + 1);
        }
    }
    row[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_word_shortens_are_nearer_than_those_that_it_contradicts() {
        for (word, name, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 9),
            ("kitten", "sitting", 7),
            ("disable", "disabled", 1),
            ("disabled", "disable", 3),
        ] {
            assert_eq!(distance(word, name), expected, "{word} {name}");
        }
        let names = ["enableThing", "disableAnyThing", "deleteThing", "listThings"];
        assert_eq!(
            nearest("disablething", names.into_iter()),
            ["disableAnyThing", "enableThing", "deleteThing"]
        );
    }
}
