//! How many events of the last day a policy could not be sure about, because they named nobody whom anybody knows.

use super::model::PolicyId;
use super::ports::live;
use provost_areas_identity::words::{self, Kind, UnresolvedReason};
use provost_kernel::{OperationContext, Result};
use provost_policy::PolicySet;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Events of the last 24 hours whose word of a kind was not resolved, whatever policy they met.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UnresolvedEvents")]
pub struct UnresolvedEvents {
    /// `user`, `group`, `service_account`, `skill` or `resource`.
    kind: &'static str,
    /// Whose word no record has. Such an event matches no policy by the records that it names.
    unknown: i64,
    /// Whose word several records have. They are judged for each of them.
    ambiguous: i64,
}

/// What was not resolved lately, and which policies ask.
pub struct Lately {
    live: Option<Arc<PolicySet>>,
    counts: BTreeMap<(Kind, UnresolvedReason), i64>,
}

impl Lately {
    /// Reads it. A set that cannot be read asks nothing: its policies can be read one by one all the same.
    ///
    /// Cost: one indexed range of at most 240 rows, and the live set, which is kept.
    pub fn read(ctx: &mut OperationContext<'_>) -> Result<Self> {
        let (org, now, services, organization) = (ctx.org(), ctx.now(), ctx.services(), ctx.organization());
        let counts = words::of_last_day(&mut ctx.tx(), services, organization, now)?;
        let live = live(&mut ctx.tx(), org).ok().map(|live| live.set);
        Ok(Self { live, counts })
    }

    /// Returns the counts for each kind that a live policy names; none for one that names nobody, or decides nothing.
    pub fn of(&self, policy: &PolicyId) -> Option<Vec<UnresolvedEvents>> {
        let live = self.live.iter().flat_map(|set| set.policies());
        let fields = live
            .filter(|definition| definition.id() == policy.as_str())
            .flat_map(|definition| definition.fields());
        let fields: Vec<_> = fields.collect();
        let count = |kind, why| self.counts.get(&(kind, why)).copied().unwrap_or_default();
        let named = Kind::ALL
            .into_iter()
            .filter(|kind| fields.contains(&kind.field()));
        let counted = named.map(|kind| UnresolvedEvents {
            kind: kind.word(),
            unknown: count(kind, UnresolvedReason::Unknown),
            ambiguous: count(kind, UnresolvedReason::Ambiguous),
        });
        let counted: Vec<UnresolvedEvents> = counted.collect();
        (!counted.is_empty()).then_some(counted)
    }
}
