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

/// From this likeness on two words are the same one with a slip of the fingers: `poilcy` and `policy`.
const SLIP: f64 = 0.92;

/// Returns how alike two names are: a slip of the fingers first, else the pairs of letters that they share, in whatever order.
///
/// Pairs alone would lose a word with two letters exchanged, and letters in order would lose `service_account.create`, which is
/// near to `createHeadlessServiceAccount`.
fn likeness(one: &str, other: &str) -> f64 {
    let slip = strsim::jaro_winkler(one, other);
    if slip >= SLIP {
        1.0 + slip
    } else {
        strsim::sorensen_dice(one, other)
    }
}

/// Returns the names that are most alike to a word.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let word = word.to_lowercase();
    let mut names: Vec<(f64, &str)> = names
        .map(|name| (likeness(&word, &name.to_lowercase()), name))
        .collect();
    names.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.cmp(b)));
    let nearest = names.into_iter().take(PROPOSED);
    nearest.map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_same_words_are_nearer_than_names_of_other_words() {
        let names = ["enableThing", "disableAnyThing", "deleteThing", "listThings"];
        assert_eq!(
            nearest("disablething", names.into_iter()),
            ["disableAnyThing", "enableThing", "deleteThing"]
        );
        let names = ["lamp.lit", "lamp.listed", "lamp.lift"];
        assert_eq!(nearest("lamp.lsited", names.into_iter())[0], "lamp.listed");
        let names = [
            "thing.gone",
            "createHeadlessThing",
            "createHeadlessPolicy",
            "listThings",
        ];
        assert_eq!(
            nearest("thing.created", names.into_iter())[0],
            "createHeadlessThing"
        );
    }
}
