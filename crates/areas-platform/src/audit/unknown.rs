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

/// Returns the names that share most pairs of letters with a word, in whatever order: `service_account.create` is near to
/// `createHeadlessServiceAccount`.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let word = word.to_lowercase();
    let mut names: Vec<(f64, &str)> = names
        .map(|name| (strsim::sorensen_dice(&word, &name.to_lowercase()), name))
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
