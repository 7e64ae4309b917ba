//! `POST …/policies/test`: what a policy, or the policies that are live, would say of cases; nothing is recorded.
//!
//! | asked of | names in the definition and in the events | the past |
//! | --- | --- | --- |
//! | a definition | stand for themselves, compared in any spelling; the directory is not asked | the case's own |
//! | the live policies | as in a decision, for callers who may read the records that a case names | the case's own |
//!
//! INVARIANT DE-12: a test says nothing that its caller could not read elsewhere: no recorded event, and no membership or name of a
//! record whose scope the caller lacks.
//! INVARIANT DE-13: a test leaves no event, no count and no entry.

use super::answer::Version;
use super::decide::refuse;
use super::judge::TIME_LIMIT;
use super::trial_case::{Case, Cases, Expectation};
use crate::history::{self, IncomingEvent, Provenance};
use crate::modules::{self, Runs};
use crate::policies::{self, AuthoredDefinition, FamilyWord, Warning};
use provost_areas_identity::words::Kind;
use provost_backtest::record;
use provost_bundle::Verdict;
use provost_kernel::auth::OrganizationId;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Operation, RateClass};
use provost_kernel::{Kernel, OperationContext, Result};
use provost_policy::{Definition, Event, Explanation, Outcome, PolicySet, SubjectStates, Symbols, Truth};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// LIMIT: cases that are explained at once. Ours: a person reads them.
const EXPLAINED: usize = 10;
/// LIMIT: policies that are explained of one case, those with a part in the decision first. Ours.
const POLICIES: usize = 20;

pub struct TestPolicies;

/// What is tried.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct TrialBody {
    /// The family of the definition.
    family: Option<FamilyWord>,
    /// A definition, judged alone and as if it were enabled; without one the live policies are asked.
    definition: Option<AuthoredDefinition>,
    /// At most 100 cases, of at most 1 000 events together.
    cases: Cases,
    /// Says of each policy which of its parts hold; of at most 10 cases.
    #[serde(default)]
    explain: bool,
}

/// What came of a test.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PolicyTest")]
pub struct TrialAnswer {
    /// The version of the policy set that was asked; absent for a definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_set_version: Option<Version>,
    /// How many cases came out as expected.
    passed: usize,
    /// How many did not.
    failed: usize,
    /// One for each case, in their order.
    results: Vec<CaseResult>,
    /// What the author of the definition should change although it would be taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<Warning>,
}

/// What was said of a case.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct CaseResult {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Whether it came out as expected; absent where nothing was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<bool>,
    #[serde(flatten)]
    verdict: Verdict,
    /// Which parts of which policies hold; with `explain`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    explanations: Vec<PolicyExplanation>,
}

/// A policy, taken apart.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct PolicyExplanation {
    policy_id: String,
    /// `content`, `access`, `resource` or `skill_acl`.
    family: &'static str,
    /// Its parts, in the order of the definition.
    parts: Vec<PartTruth>,
}

/// A part of a policy.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct PartTruth {
    /// A JSON Pointer into the definition.
    path: String,
    /// `true`, `false` or `unknown`: whether it holds of the event.
    holds: &'static str,
}

impl Operation for TestPolicies {
    const META: Meta = Meta::query("testHeadlessPolicies", "/policies/test", "policies")
        .access("policies:read", &[Admin, Operator, Auditor, Viewer])
        .command("policies", "test")
        .example(
            r#"{"family": "content", "definition": {"id": "no-shell",
               "name": "Shells are blocked", "action": "block", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
               "conditions": {"field": "tool.id", "op": "eq", "value": "Bash"}},
               "cases": [{"name": "a shell", "event": {"occasion": "pre_tool", "attributes": {"tool.id": "bash"}},
               "expect": {"action": "block"}}]}"#,
        )
        .reads_up_to(4 << 20, 64)
        .rate(RateClass::Resolve)
        .says(
            "Judge cases by a definition, or by the live policies, and record nothing",
            "A definition is judged alone, as if it were enabled; its names and those of the events stand for themselves. The live \
             policies are asked as in a decision, and only about users and groups (directory:read), service accounts (service_accounts:read), skills \
             (registry:read) and resources (resources:read) that the caller may read. Conditions on the past see what the case says \
             happened before, and no recorded event.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = TrialBody;
    type Output = TrialAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<TrialAnswer> {
        let body = &input.body;
        let cases = body.cases.read()?;
        if body.explain && cases.len() > EXPLAINED {
            let message = "holds more cases than are explained at once: 10";
            return Err(Error::invalid("/cases", message));
        }
        // What the schema says comes first, so that a body that breaks it is 400 whatever else is wrong with it.
        let (cases, symbols) = judged(ctx, cases, body.definition.is_none())?;
        let asked = match (&body.definition, body.family) {
            (Some(definition), Some(family)) => of_definition(definition.definition(family.into())?)?,
            (None, None) => {
                let org = ctx.org();
                let live = policies::live(&mut ctx.tx(), org)?;
                Judge {
                    version: Some(Version {
                        id: live.version_id,
                        digest: live.set.digest().to_owned(),
                    }),
                    set: live.set,
                    warnings: Vec::new(),
                }
            }
            (Some(_), None) => return Err(Error::unfit("/family", "is required with a definition")),
            (None, Some(_)) => return Err(Error::unfit("/definition", "is required with a family")),
        };
        let trial = PendingTrial {
            kernel: Kernel::behind(ctx.services())?,
            organization: ctx.organization().clone(),
            asked,
            cases,
            symbols,
            explains: body.explain,
        };
        Ok(ctx.later(trial.answer()))
    }
}

/// Who is asked.
struct Judge {
    version: Option<Version>,
    set: Arc<PolicySet>,
    warnings: Vec<Warning>,
}

fn of_definition(definition: &Arc<Definition>) -> Result<Judge> {
    let mut enabled = definition.clone();
    if !definition.is_enabled() {
        let mut document = definition.authored().clone();
        document["enabled"] = true.into();
        let read = Definition::read(definition.family(), &document);
        enabled = Arc::new(read.map_err(|violations| policies::violated(&violations, "/definition"))?);
    }
    Ok(Judge {
        version: None,
        set: Arc::new(PolicySet::new([enabled]).map_err(Error::internal)?),
        warnings: policies::warnings(definition),
    })
}

/// A case as the evaluator takes it: what happened before, and what is judged.
struct JudgedCase {
    name: Option<String>,
    expect: Option<Expectation>,
    earlier: Vec<Event>,
    event: Event,
}

/// Returns the cases as the evaluator takes them; with the directory's words where the live policies are asked.
///
/// INVARIANT DE-12. Errors: `InsufficientScope`; `InvalidRequest` for attributes that are none.
fn judged(
    ctx: &mut OperationContext<'_>,
    cases: Vec<Case>,
    is_live: bool,
) -> Result<(Vec<JudgedCase>, Symbols)> {
    let mut events: Vec<IncomingEvent> = Vec::new();
    let mut places: Vec<(usize, i64)> = Vec::new();
    let mut heads = Vec::new();
    for (at, case) in cases.into_iter().enumerate() {
        heads.push((case.name, case.expect));
        for (ago_ms, event) in case.events {
            places.push((at, ago_ms));
            events.push(event);
        }
    }
    let mut symbols = Symbols::new();
    if is_live {
        may_ask(ctx, &events)?;
        symbols = Symbols::knowing(Arc::new(history::meaning(ctx, &mut events)?));
    }
    let (now, from) = (ctx.now().as_ms(), Provenance::own(record::DECISIONS, ctx.actor()));
    let mut faults = Vec::new();
    let mut all: Vec<Vec<Event>> = heads.iter().map(|_| Vec::new()).collect();
    for ((at, ago_ms), event) in places.into_iter().zip(&events) {
        match event.record(now - ago_ms, &from) {
            Ok(record) => all[at].push(record.event(&mut symbols)),
            Err(found) => {
                let place = if ago_ms == 0 { "event" } else { "earlier" };
                let found = found.into_iter();
                faults.extend(found.map(|(path, message)| (format!("/cases/{at}/{place}{path}"), message)));
            }
        }
    }
    refuse(faults)?;
    let cases = heads
        .into_iter()
        .zip(all)
        .filter_map(|((name, expect), mut earlier)| {
            // The judged one is the last; reading gave every case one.
            earlier.pop().map(|event| JudgedCase {
                name,
                expect,
                earlier,
                event,
            })
        });
    Ok((cases.collect(), symbols))
}

/// Refuses a caller who would learn what a record's name means, or whom it is in a group with, from what the live policies say.
fn may_ask(ctx: &OperationContext<'_>, events: &[IncomingEvent]) -> Result<()> {
    for (kind, scope) in [
        (Kind::User, "directory:read"),
        (Kind::Group, "directory:read"),
        (Kind::ServiceAccount, "service_accounts:read"),
        (Kind::Skill, "registry:read"),
        (Kind::Resource, "resources:read"),
    ] {
        let is_named = events.iter().any(|event| event.words(kind).next().is_some());
        if is_named && !ctx.actor().permission.scopes.has(scope) {
            let name = kind.field().name();
            let message = format!(
                "a test of the live policies with {name} needs the scope {scope}; a test of a definition does not"
            );
            return Err(Error::new(Code::InsufficientScope, message).with("scope", scope));
        }
    }
    Ok(())
}

/// A test, once its snapshot is released.
struct PendingTrial {
    kernel: Arc<Kernel>,
    organization: OrganizationId,
    asked: Judge,
    cases: Vec<JudgedCase>,
    symbols: Symbols,
    explains: bool,
}

impl PendingTrial {
    /// INVARIANT DE-8: it waits for a core of its own, as whatever takes long does.
    async fn answer(self) -> Result<TrialAnswer> {
        let core = modules::core(&self.kernel, &self.organization).await?;
        let kernel = self.kernel.clone();
        let work = move || {
            let _core = core;
            self.judge()
        };
        kernel.blocking(work).await?
    }

    fn judge(self) -> Result<TrialAnswer> {
        let clock = &*self.kernel.clock;
        let start = clock.monotonic();
        let has_time = || clock.monotonic().saturating_sub(start) < TIME_LIMIT;
        let runs = Runs::live(&self.kernel);
        let mut answer = TrialAnswer {
            policy_set_version: None,
            passed: 0,
            failed: 0,
            results: Vec::with_capacity(self.cases.len()),
            warnings: Vec::new(),
        };
        for case in &self.cases {
            if !has_time() {
                let message = "the policies and cases take longer than two seconds; send fewer cases at once";
                return Err(Error::unavailable(message));
            }
            let result = self.one(case, &runs, &has_time)?;
            match result.passed {
                Some(true) => answer.passed += 1,
                Some(false) => answer.failed += 1,
                None => {}
            }
            answer.results.push(result);
        }
        if runs.is_unavailable() {
            return Err(Error::unavailable(
                "no process for modules can be started, so that nothing can be asked; the server's log says why",
            ));
        }
        answer.policy_set_version = self.asked.version;
        answer.warnings = self.asked.warnings;
        Ok(answer)
    }

    fn one(&self, case: &JudgedCase, runs: &Runs<'_>, has_time: &dyn Fn() -> bool) -> Result<CaseResult> {
        let (set, symbols) = (&self.asked.set, &self.symbols);
        let mut chronicle = SubjectStates::new();
        for earlier in &case.earlier {
            chronicle.observe(set, earlier, symbols);
        }
        let outcome = set.judge_within(&case.event, symbols, &chronicle, runs, has_time, None);
        let explained = |policy: &Arc<Definition>| {
            let parts = Explanation::of(policy);
            let parts = parts.parts(&case.event, &case.earlier, symbols, runs, has_time);
            let part = |part: provost_policy::Part| PartTruth {
                path: part.path,
                holds: match part.truth {
                    Truth::True => "true",
                    Truth::False => "false",
                    Truth::Unknown => "unknown",
                },
            };
            PolicyExplanation {
                policy_id: policy.id().to_owned(),
                family: policy.family().word(),
                parts: parts.into_iter().map(part).collect(),
            }
        };
        let explanations = if self.explains {
            self.involved(&outcome, &case.event)
                .iter()
                .map(explained)
                .collect()
        } else {
            Vec::new()
        };
        Ok(CaseResult {
            name: case.name.clone(),
            passed: case.expect.map(|expect| is_as(expect, &outcome)),
            verdict: Verdict::of_event(&outcome, &case.event, symbols)?,
            explanations,
        })
    }

    /// Returns the policies that have a part in the outcome, and behind them others of the family.
    fn involved(&self, outcome: &Outcome, event: &Event) -> Vec<Arc<Definition>> {
        let mut all: Vec<Arc<Definition>> = Vec::new();
        let own = outcome.findings.iter().map(|finding| &finding.policy);
        let family = event.occasion().family();
        let others = self.asked.set.policies().iter();
        for policy in own.chain(others.filter(|policy| policy.family() == family)) {
            if !all.iter().any(|seen| Arc::ptr_eq(seen, policy)) {
                all.push(Arc::clone(policy));
            }
        }
        all.truncate(POLICIES);
        all
    }
}

fn is_as(expect: Expectation, outcome: &Outcome) -> bool {
    expect.action.is_none_or(|action| action == outcome.action)
        && expect
            .matched
            .is_none_or(|matched| matched != outcome.findings.is_empty())
        && expect.unknown.is_none_or(|unknown| unknown == outcome.unknown)
}
