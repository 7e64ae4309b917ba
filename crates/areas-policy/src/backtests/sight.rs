//! How much of a run that reads content a caller sees (BT-8).
//!
//! A candidate is a question, and a question can ask whether a recorded command begins with these letters. Its figures
//! are the answer: sixteen of them spelled a secret. So questions about content are asked, and their answers read, with
//! the scope `policies:inspect`; to everybody else a run shows how much would change, and nothing of what or whose.

use super::results::{ByChange, Results};
use provost_kernel::OperationContext;
use provost_kernel::error::{Code, Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;

/// The scope of questions about content.
pub const INSPECT: &str = "policies:inspect";
/// LIMIT: the smallest count that is shown to others, apart from none.
pub const SMALLEST_COUNT: u64 = 5;

/// What somebody sees of runs that read content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunVisibility {
    /// Everything.
    Whole,
    /// Totals, where none is small.
    Restricted,
}

impl RunVisibility {
    /// Returns what the caller sees.
    pub fn of_caller(ctx: &OperationContext<'_>) -> Self {
        if ctx.actor().permission.scopes.has(INSPECT) {
            Self::Whole
        } else {
            Self::Restricted
        }
    }
}

/// Refuses a caller who would ask about content, or read what came of it.
///
/// INVARIANT BT-8. Errors: `InsufficientScope`, naming the scope.
pub fn require(ctx: &OperationContext<'_>, what: &str) -> Result<()> {
    if RunVisibility::of_caller(ctx) == RunVisibility::Whole {
        return Ok(());
    }
    let message = format!("{what} needs the scope {INSPECT}; an administrator gives it by naming it");
    Err(Error::new(Code::InsufficientScope, message).with("scope", INSPECT))
}

/// What came of a run, as far as it is shown.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ResultsView {
    /// All of it.
    Whole(Box<Results>),
    /// What others see of a run that reads content.
    Restricted(RestrictedTotals),
}

/// Totals, if none of them is small.
#[derive(Debug, Serialize)]
pub struct RestrictedTotals {
    restricted: bool,
    #[serde(flatten)]
    figures: Option<Figures>,
}

/// The totals of a run and what became of what.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    events_evaluated: u64,
    unchanged: u64,
    changed: u64,
    errors: u64,
    unknown: u64,
    by_change: ByChange,
}

impl ResultsView {
    /// Returns results as they are shown with this sight of the run.
    pub fn of(results: Results, sight: RunVisibility) -> Self {
        match sight {
            RunVisibility::Whole => Self::Whole(Box::new(results)),
            RunVisibility::Restricted => Self::Restricted(RestrictedTotals {
                restricted: true,
                figures: Figures::of(results),
            }),
        }
    }
}

impl Figures {
    /// Returns the figures; none of them when one is small. Leaving out the small one alone would leave its difference.
    fn of(results: Results) -> Option<Self> {
        let figures = Self {
            events_evaluated: results.events_evaluated,
            unchanged: results.unchanged,
            changed: results.changed,
            errors: results.errors,
            unknown: results.unknown,
            by_change: results.by_change,
        };
        let totals = [
            figures.events_evaluated,
            figures.unchanged,
            figures.changed,
            figures.errors,
            figures.unknown,
        ];
        let is_small = |count: u64| (1..SMALLEST_COUNT).contains(&count);
        let is_shown = !totals.into_iter().chain(figures.by_change.counts()).any(is_small);
        is_shown.then_some(figures)
    }
}

impl JsonSchema for ResultsView {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ResultsView".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Results::json_schema(generator);
        // Which members are there depends on who asks.
        schema.remove("required");
        let restricted = json_schema!({
            "type": "boolean",
            "description": "Present and true where the run reads content and the caller lacks the scope policies:inspect: \
                then there are the totals and byChange alone, and only where each of them is 0 or at least 5.",
        });
        if let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
            properties.insert("restricted".to_owned(), restricted.into());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shown(totals: [u64; 4], by_change: &Value) -> Value {
        let [unchanged, changed, errors, unknown] = totals;
        let results = json!({
            "eventsEvaluated": totals.iter().sum::<u64>(), "unchanged": unchanged, "changed": changed,
            "errors": errors, "unknown": unknown, "byChange": by_change,
            "byPolicy": [{ "policyId": "p", "family": "content", "matched": 9, "changed": 9 }],
            "byFailure": [{ "policyId": "p", "family": "content", "cause": "missing_attribute",
                "attribute": "tool.input.command", "baseline": 9, "candidate": 9 }],
            "bySubject": [{ "subjectId": "s", "kind": "user", "changed": 9, "evaluated": 9 }],
            "byTool": [{ "tool": "t", "changed": 9, "evaluated": 9 }],
            "byDay": [{ "day": "2026-11-20", "changed": 9, "evaluated": 9 }],
        });
        let results = Results::from_store(&results.to_string(), Some("[]")).unwrap();
        serde_json::to_value(ResultsView::of(results, RunVisibility::Restricted)).unwrap()
    }

    /// Proves BT-8.
    #[test]
    fn each_small_figure_alone_takes_all_figures_away() {
        let by_change = json!({ "allow_to_block": 5, "block_to_allow": 6 });
        assert_eq!(
            shown([7, 11, 0, 5], &by_change),
            json!({ "restricted": true, "eventsEvaluated": 23, "unchanged": 7, "changed": 11, "errors": 0, "unknown": 5,
                "byChange": { "allow_to_block": 5, "block_to_allow": 6 } })
        );
        assert_eq!(shown([0; 4], &json!({}))["eventsEvaluated"], 0);
        let left_out = json!({ "restricted": true });
        for small in 1..SMALLEST_COUNT {
            for place in 0..4 {
                let mut totals = [9; 4];
                totals[place] = small;
                assert_eq!(
                    shown(totals, &json!({ "allow_to_block": 9 })),
                    left_out,
                    "{totals:?}"
                );
            }
            let by_change = json!({ "allow_to_block": small, "block_to_allow": 9 });
            assert_eq!(shown([9; 4], &by_change), left_out, "{small}");
            assert_eq!(shown([small, 0, 0, 0], &json!({})), left_out);
        }
    }
}
