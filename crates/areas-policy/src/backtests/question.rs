//! What a run asks, pinned at its creation: both sets as base and changes, window, filters, limits.
//!
//! Keeps BT-6: what a run judges is what was pinned; later writes of policies change neither set nor digest.
//! Keeps BT-8: whether a run reads content is decided when it is made, and of a run that does not say so it is
//! assumed.
//!
//! The candidate is stored as bound changes of a base: a numbered version, or nothing for a whole set.

use super::body::{
    BaselineBody, BaselineKind, CandidateBody, CandidateKind, ChangeBody, ChangeOp, CreateBody, Filters,
    Items, PolicyBody, Window, Word,
};
use super::model::BacktestId;
use super::sight;
use crate::device_judging::counted_on_devices;
use crate::history;
use crate::policies::{self, BoundChange, Change};
use provost_areas_platform::settings;
use provost_kernel::db::Tx;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::{OperationContext, Timestamp};
use provost_policy::{Definition, Family, PolicySet, sha256_hex};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;

/// What a run asks. Stored as JSON; members are only ever added, with a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The policies that the candidate is compared with.
    pub baseline: Baseline,
    /// The policies that are tried.
    pub candidate: Candidate,
    /// The span of time.
    pub window: Window,
    /// Which events of it.
    pub filters: Filters,
    /// How many events at most.
    pub max_events: i64,
    /// How long workers may be at it. Units: seconds.
    pub max_duration_secs: i64,
    /// Whether what differs between the sets can depend on content ([`reads_content`]); runs from before this was decided
    /// do not say.
    #[serde(default = "assumed")]
    pub reads_content: bool,
    /// What the audit entry's digest of the candidate is sealed with, of a run that reads content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// How often something passed on devices of which there is no event, on the days of the window; runs from before this was counted do
    /// not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_on_devices: Option<i64>,
}

const fn assumed() -> bool {
    true
}

/// A pinned baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// How it was named.
    pub kind: BaselineKind,
    /// The policy-set version that it is.
    pub version_id: String,
    /// That version's number.
    pub sequence: i64,
    /// Its policies, by family and id.
    pub policy_ids: Vec<String>,
    /// Its digest.
    pub digest: String,
}

/// A pinned candidate; its changes lie beside the question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// How it was named.
    pub kind: CandidateKind,
    /// The number of the version that the changes change; absent when they are the whole set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<i64>,
    /// Its policies, by family and id.
    pub policy_ids: Vec<String>,
    /// Its digest.
    pub digest: String,
}

impl Question {
    /// Pins what a caller asks; returns it with the candidate's changes.
    ///
    /// Errors: `InvalidRequest` about window and limits, `InvalidDefinition` about candidate and baseline, each with
    /// JSON Pointers; `InsufficientScope` where policies that read content are asked about without the scope for it.
    pub fn pin(ctx: &mut OperationContext<'_>, body: &CreateBody) -> Result<(Self, Vec<BoundChange>)> {
        check_window(ctx, body.window)?;
        let limits = body.limits.unwrap_or_default();
        let org = ctx.org();
        let live = policies::live(&mut ctx.tx(), org)?;
        let (baseline, before) = baseline(ctx, body.baseline.as_ref(), &live)?;
        let (changes, base) = changes(ctx, &body.candidate)?;
        let candidate = match base {
            Base::Live => policies::with_changes(&live.set, &changes)?,
            Base::Nothing => policies::with_changes(nothing()?.as_ref(), &changes)?,
        };
        let reads_content = reads_content(&live.set, &before, &candidate);
        // Whoever may write policies could make their own question live first.
        let may_author = ctx.actor().permission.scopes.has("policies:write");
        if reads_content || may_author && readers(&before, &candidate).next().is_some() {
            sight::require(ctx, "a backtest of policies that read content")?;
        }
        let counted = counted_on_devices(&mut ctx.tx(), org, body.window.from, body.window.to)?;
        let question = Self {
            counted_on_devices: Some(counted),
            reads_content,
            seal: reads_content.then(|| ctx.new_id::<BacktestId>().as_str().to_owned()),
            baseline,
            candidate: Candidate {
                kind: body.candidate.kind,
                base: matches!(base, Base::Live).then_some(live.sequence),
                policy_ids: ids(&candidate),
                digest: candidate.digest().to_owned(),
            },
            window: body.window,
            filters: body.filters.clone().unwrap_or_default(),
            max_events: limits.events(),
            max_duration_secs: limits.duration_secs(),
        };
        Ok((question, changes))
    }

    /// Returns the digest of the candidate as the audit log names it: whoever reads entries must not learn from it
    /// whether a guess at a definition about content is right, and whoever reads the definitions can check it.
    pub fn audit_digest(&self) -> String {
        match &self.seal {
            Some(seal) => sha256_hex(format!("{seal} {}", self.candidate.digest).as_bytes()),
            None => self.candidate.digest.clone(),
        }
    }

    /// Returns the stored form of a question.
    pub fn to_store(&self) -> Result<String> {
        serde_json::to_string(self).map_err(Error::internal)
    }

    /// Returns the question that a stored text spells.
    pub fn from_store(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(Error::internal)
    }

    /// Returns baseline and candidate, compiled.
    ///
    /// Errors: `Internal` when they are not the ones that were pinned (BT-6).
    pub fn sets(&self, tx: &mut Tx<'_>, org: &str, changes: &str) -> Result<[Arc<PolicySet>; 2]> {
        let baseline = policies::at_sequence(tx, org, self.baseline.sequence)?.set;
        let changes: Vec<BoundChange> = serde_json::from_str(changes).map_err(Error::internal)?;
        let base = match self.candidate.base {
            Some(sequence) => policies::at_sequence(tx, org, sequence)?.set,
            None => nothing()?,
        };
        let candidate = policies::with_changes(&base, &changes)?;
        let found = [baseline.digest(), candidate.digest()];
        if found != [self.baseline.digest.as_str(), self.candidate.digest.as_str()] {
            return Err(Error::internal("a pinned policy set has another digest"));
        }
        Ok([baseline, candidate])
    }
}

/// What a candidate's changes change.
#[derive(Clone, Copy)]
enum Base {
    Live,
    Nothing,
}

fn nothing() -> Result<Arc<PolicySet>> {
    PolicySet::new([]).map(Arc::new).map_err(Error::internal)
}

fn ids(set: &PolicySet) -> Vec<String> {
    set.policies()
        .iter()
        .map(|policy| policy.id().to_owned())
        .collect()
}

/// Returns the stored form of bound changes.
pub fn changes_to_store(changes: &[BoundChange]) -> Result<String> {
    serde_json::to_string(changes).map_err(Error::internal)
}

/// Errors: `InvalidRequest` when the window is too long, not over, or begins before the history does.
fn check_window(ctx: &mut OperationContext<'_>, window: Window) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    if window.to > now {
        return Err(Error::invalid("/window/to", "must not lie in the future"));
    }
    let retention_days = history::retention_days(&mut ctx.tx(), org, now)?;
    let oldest = Timestamp::from_ms(now.as_ms() - retention_days * DAY_MS);
    if window.from < oldest {
        let message = format!("must not lie further back than the history goes: {retention_days} days");
        return Err(Error::invalid("/window/from", message));
    }
    let max_days = settings::load(ctx)?
        .policies
        .max_backtest_days
        .min(retention_days);
    if window.to.as_ms() - window.from.as_ms() > max_days * DAY_MS {
        let message = format!("must lie at most {max_days} days before `to`");
        return Err(Error::invalid("/window/from", message));
    }
    Ok(())
}

/// Says whether what differs between baseline and candidate can depend on content.
///
/// A policy that reads content and stands in both decides the same in both, so that its question is not the caller's. It
/// must be live as well: what an administrator took back, or only tried, is no longer asked of every event.
fn reads_content(live: &PolicySet, baseline: &PolicySet, candidate: &PolicySet) -> bool {
    readers(baseline, candidate)
        .any(|policy| ![live, baseline, candidate].iter().all(|set| set.holds(policy)))
}

/// Returns the policies of both that read content.
fn readers<'a>(
    baseline: &'a PolicySet,
    candidate: &'a PolicySet,
) -> impl Iterator<Item = &'a Arc<Definition>> {
    let all = baseline.policies().iter().chain(candidate.policies());
    all.filter(|policy| policy.reads_content())
}

fn baseline(
    ctx: &mut OperationContext<'_>,
    body: Option<&BaselineBody>,
    live: &policies::Live,
) -> Result<(Baseline, Arc<PolicySet>)> {
    let pinned = |kind, version: &policies::Live| Baseline {
        kind,
        version_id: version.version_id.clone(),
        sequence: version.sequence,
        policy_ids: ids(&version.set),
        digest: version.set.digest().to_owned(),
    };
    let Some(named) = body.and_then(|body| body.version_id.as_ref()) else {
        return Ok((pinned(BaselineKind::Live, live), live.set.clone()));
    };
    let org = ctx.org();
    let found = policies::version(&mut ctx.tx(), org, named.as_str())?;
    let version = found.ok_or_else(|| {
        let message = "there is no such policy-set version in this organization";
        invalid("/baseline/versionId", message)
    })?;
    Ok((pinned(BaselineKind::Version, &version), version.set))
}

fn invalid(pointer: impl Into<String>, message: &str) -> Error {
    let pointer = pointer.into();
    Error::new(Code::InvalidDefinition, format!("{pointer}: {message}")).and_field(pointer, message)
}

/// Returns the candidate's changes, with names resolved, and what they change.
fn changes(ctx: &mut OperationContext<'_>, body: &CandidateBody) -> Result<(Vec<BoundChange>, Base)> {
    match body.kind {
        CandidateKind::Draft => Ok((vec![draft(ctx, body)?], Base::Live)),
        CandidateKind::Inline => {
            let family = body.family;
            let family = family.ok_or_else(|| Error::internal("an inline candidate has no family"))?;
            let definition = enabled(family, body.definition.clone().unwrap_or_default());
            let change = Change::Set { family, definition };
            let bound = policies::bind_at(ctx, &[change], |_| "/candidate".to_owned())?;
            Ok((bound, Base::Live))
        }
        CandidateKind::Changes => {
            let asked = body.changes.as_ref().map_or(&[][..], Items::get);
            let changes: Result<Vec<Change>> = asked.iter().map(change).collect();
            let bound = policies::bind_at(ctx, &changes?, |at| format!("/candidate/changes/{at}"))?;
            Ok((bound, Base::Live))
        }
        CandidateKind::Set => {
            let asked = body.policies.as_ref().map_or(&[][..], Items::get);
            refuse_twins(asked)?;
            let changes: Vec<Change> = asked.iter().map(set).collect();
            let bound = policies::bind_at(ctx, &changes, |at| format!("/candidate/policies/{at}"))?;
            Ok((bound, Base::Nothing))
        }
    }
}

fn change(body: &ChangeBody) -> Result<Change> {
    match (body.op, body.family, &body.definition, &body.policy_id) {
        (ChangeOp::Set, Some(family), Some(definition), _) => Ok(Change::Set {
            family,
            definition: definition.clone().into(),
        }),
        (ChangeOp::Remove, family, _, Some(policy_id)) => Ok(Change::Remove {
            family,
            policy_id: policy_id.as_str().to_owned(),
        }),
        _ => Err(Error::internal("a change that lacks a member was accepted")),
    }
}

fn set(body: &PolicyBody) -> Change {
    Change::Set {
        family: body.family,
        definition: body.definition.clone().into(),
    }
}

/// A definition under trial is judged as if it were enabled: a draft would else decide nothing. What an author must
/// acknowledge before enabling it is what the run is to find out.
fn enabled(family: Family, mut definition: Map<String, Value>) -> Value {
    if definition.get("enabled") == Some(&json!(false)) {
        definition.insert("enabled".to_owned(), json!(true));
        if family != Family::SkillAcl {
            definition.insert("acknowledgeBroadScope".to_owned(), json!(true));
        }
    }
    definition.into()
}

/// Returns the change that a stored policy would be.
fn draft(ctx: &mut OperationContext<'_>, body: &CandidateBody) -> Result<BoundChange> {
    let policy_id = body.policy_id.as_ref().map_or("", Word::as_str);
    let absent = || {
        let message = "names no policy of this family in this organization";
        invalid("/candidate/policyId", message)
    };
    let family = policies::family_of(ctx, policy_id)?.ok_or_else(absent)?;
    let definition = policies::stored(ctx, body.family.or(Some(family)), policy_id)?;
    let definition = definition.ok_or_else(absent)?;
    let definition = match definition {
        Value::Object(members) => enabled(family, members),
        other => other,
    };
    Ok(BoundChange {
        family,
        policy_id: policy_id.to_owned(),
        definition: Some(definition),
    })
}

fn refuse_twins(asked: &[PolicyBody]) -> Result<()> {
    let mut seen = HashSet::new();
    for (place, policy) in asked.iter().enumerate() {
        let id = policy.definition.get("id").and_then(Value::as_str);
        if let Some(id) = id
            && !seen.insert((policy.family, id))
        {
            let pointer = format!("/candidate/policies/{place}/definition/id");
            return Err(invalid(pointer, "stands in this set already"));
        }
    }
    Ok(())
}
