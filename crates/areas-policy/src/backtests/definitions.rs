//! Reads what a run asked: the definitions that it tried (BT-9).

use super::get::RunPath;
use super::model::{BacktestId, Principal};
use super::question::Question;
use super::store;
use super::view::{AskedView, PolicySetView};
use crate::backtests::fences;
use crate::policies::BoundChange;
use provost_kernel::auth::Role::{self, Admin, Auditor};
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Who answers for what was asked of recorded events.
const READERS: &[Role] = &[Admin, Auditor];

pub struct GetDefinitions;

/// What a run asked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DefinitionsView {
    run_id: BacktestId,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Why it was asked for.
    reason: String,
    created_at: Timestamp,
    created_by: Principal,
    /// Whether what differs between the sets reads content.
    reads_content: bool,
    policy_set: PolicySetView,
    /// The number of the policy-set version that `changes` change; absent when they are the whole set.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_sequence: Option<i64>,
    /// What the candidate changes, in this order, with names resolved to ids.
    changes: Vec<ChangeView>,
    #[serde(flatten)]
    asked: AskedView,
    /// With a blank and the candidate's digest behind it, this has the SHA-256 that the run's audit entry names as
    /// `sealedDigest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
}

/// One change of a candidate.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct ChangeView {
    /// `content`, `access`, `resource` or `skill_acl`.
    family: String,
    policy_id: String,
    /// The definition as it was judged; absent where the policy was taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<Value>,
}

impl Operation for GetDefinitions {
    const META: Meta = Meta::read(
        "getHeadlessPolicyBacktestDefinitions",
        "/policies/backtests/{runId}/definitions",
        "policies",
    )
    .access("audit:read", READERS)
    .sensitive()
    .command("backtests", "definitions")
    .says(
        "Read what a backtest asked",
        "The definitions that it tried, its window, filters and limits, as they were when the run was made. They are kept \
         as long as the run's audit entry, longer than its results. Every look is an entry of the audit log.",
    );
    type Path = RunPath;
    type Query = Empty;
    type Body = Empty;
    type Output = DefinitionsView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DefinitionsView> {
        let id = &input.path.run_id;
        ctx.target(&fences::RUN, id.as_str());
        let kept = store::kept(ctx, id)?;
        let question = Question::from_store(&kept.question)?;
        let changes: Vec<BoundChange> = serde_json::from_str(&kept.changes).map_err(Error::internal)?;
        let changes = changes.into_iter().map(|change| ChangeView {
            family: change.family.word().to_owned(),
            policy_id: change.policy_id,
            definition: change.definition,
        });
        Ok(DefinitionsView {
            run_id: id.clone(),
            name: kept.name,
            reason: kept.reason,
            created_at: kept.created_at,
            created_by: kept.created_by,
            reads_content: question.reads_content,
            base_sequence: question.candidate.base,
            changes: changes.collect(),
            seal: question.seal,
            policy_set: PolicySetView::whole(question.baseline, question.candidate),
            asked: AskedView {
                window: question.window,
                filters: Some(question.filters),
                limits: super::view::LimitsView::of(question.max_events, question.max_duration_secs),
            },
        })
    }
}
