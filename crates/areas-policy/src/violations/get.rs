//! Shows one violation with all its attributes.

use super::fences;
use super::store;
use super::view::{Feedback, Names, Sight, Violation, WholeViolation};
use crate::history::{self, EventId, INSPECTORS};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::{Kernel, OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

pub struct Get;

/// Which decision.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct ViolationPath {
    /// The event's id.
    pub(super) event_id: EventId,
}

/// The answer to whoever asks about an event that is there and is no violation, and about one that is not there.
pub fn not_found() -> Error {
    Error::not_found("violation")
}

/// Says of an event that it is not found in the words of this area.
pub fn in_our_words(error: Error) -> Error {
    match error.code() {
        Code::NotFound => not_found(),
        _ => error,
    }
}

impl Operation for Get {
    const META: Meta = Meta::read(
        "getHeadlessPolicyViolation",
        "/policies/violations/{eventId}",
        "policies",
    )
    .rule(Access::ScopedBoth {
        scope: "policies:read",
        other: "policies:history",
        roles: INSPECTORS,
    })
    .sensitive()
    .command("violations", "get")
    .says(
        "Show a violation with its attributes",
        "Attributes may hold prompts and the arguments of tools: every look is an entry of the audit log. What its subject said of it \
         stands beside.",
    );
    type Path = ViolationPath;
    type Query = Empty;
    type Body = Empty;
    type Output = WholeViolation;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<WholeViolation> {
        let id = input.path.event_id.as_str().to_owned();
        ctx.target(&fences::VIOLATION, id.as_str());
        let (feedback, sight) = (store::feedback(ctx, &id)?, Sight::of(ctx));
        let found = history::event(ctx, &id).map_err(in_our_words)?;
        let (kernel, organization) = (Kernel::behind(ctx.services())?, ctx.organization().clone());
        Ok(ctx.later(async move {
            let event = found.await.map_err(in_our_words)?;
            let mut violation = Violation::of(&id, &event).ok_or_else(not_found)?;
            let ids: BTreeSet<String> = violation.subject_id().map(str::to_owned).into_iter().collect();
            let names = kernel.read_system(move |tx| Names::of(tx, organization.as_str(), &ids, sight));
            violation.tell(&names.await?);
            let feedback = feedback.map(|(text, given_at)| Feedback { text, given_at });
            Ok(WholeViolation::of(violation, &event, feedback))
        }))
    }
}
