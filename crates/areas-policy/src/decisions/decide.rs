//! Decides about events, and records what was decided (D9.10, D9.11).
//!
//! Keeps DE-2.

use super::answer::{Decision, Decisions, Version};
use super::approved::{AnsweredPolicies, Asker};
use super::judge::Questions;
use super::{event_windows, gateway};
use crate::device_judging::denied_servers;
use crate::history::{self, Durability, Fault, IncomingEvent, NewEvent, Provenance};
use crate::modules;
use crate::policies;
use provost_backtest::record::{self, Mode};
use provost_bundle::{Verdict, deciding};
use provost_kernel::auth::OrganizationId;
use provost_kernel::auth::Role::{Admin, Operator};
use provost_kernel::error::{Code, Error};
use provost_kernel::json::ExactNumbers;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Kernel, OperationContext, Result};
use provost_policy::{Action, Field, FieldType, Occasion, Outcome, Reason, Symbols};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// LIMIT: events of one request (D9.11).
const EVENTS: usize = 1_000;

pub struct Decide;

/// What is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct DecideBody {
    /// 1 to 1 000 events, judged in this order.
    events: Events,
    /// `monitor`: the caller will not enforce what is decided.
    #[serde(default)]
    mode: RequestedMode,
    /// `durable`: answered once it is on the disk; `buffered`: at once, and written within 100 ms.
    #[serde(default)]
    record: RequestedDurability,
}

/// Events as they were sent. LIMIT: 1 to 1 000 (D9.11).
#[derive(Debug, Deserialize)]
#[serde(try_from = "ExactNumbers<Vec<Value>>")]
struct Events(Vec<Value>);

impl TryFrom<ExactNumbers<Vec<Value>>> for Events {
    type Error = &'static str;
    fn try_from(ExactNumbers(events): ExactNumbers<Vec<Value>>) -> std::result::Result<Self, Self::Error> {
        if (1..=EVENTS).contains(&events.len()) {
            return Ok(Self(events));
        }
        Err("must hold 1 to 1000 events")
    }
}

impl JsonSchema for Events {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Events".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "array", "items": event_schema(), "minItems": 1, "maxItems": EVENTS })
    }
}

/// Returns the schema of an event that is asked about.
pub(super) fn event_schema() -> Value {
    let occasions = Occasion::ALL.map(Occasion::word);
    serde_json::json!({
        "type": "object",
        "properties": {
            "occasion": { "enum": occasions, "description": "Where the request is judged." },
            "attributes": {
                "type": "object",
                "properties": attributes(),
                "additionalProperties": false,
                "description": "Attributes of the catalogue by their flat names, for example tool.id; null is absent.",
            },
            "missing": {
                "type": "array",
                "items": { "enum": Field::all().map(Field::name).collect::<Vec<_>>() },
                "uniqueItems": true,
                "description": "Attributes that exist and whose values nobody can say, whatever attributes says.",
            },
            "session": { "type": "string", "minLength": 1, "maxLength": 256 },
            "callId": { "type": "string", "minLength": 1, "maxLength": 256 },
            "folder": { "type": "string", "minLength": 1, "maxLength": 4096 },
            "host": { "type": "string", "minLength": 1, "maxLength": 256 },
        },
        "required": ["occasion"],
        "additionalProperties": false,
    })
}

/// Returns the schema of each attribute.
fn attributes() -> serde_json::Map<String, Value> {
    let schema = |field: Field| match field.kind() {
        FieldType::Text => serde_json::json!({ "type": ["string", "null"] }),
        FieldType::Set => serde_json::json!({ "type": ["array", "null"], "items": { "type": "string" } }),
        FieldType::Number => serde_json::json!({ "type": ["number", "null"] }),
        FieldType::Boolean => serde_json::json!({ "type": ["boolean", "null"] }),
        // A text, or a document of any form.
        FieldType::Content | FieldType::Object => serde_json::json!({}),
    };
    Field::all()
        .map(|field| (field.name().to_owned(), schema(field)))
        .collect()
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RequestedMode {
    #[default]
    Enforce,
    Monitor,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RequestedDurability {
    #[default]
    Durable,
    Buffered,
}

/// Everything that a decision needs once its snapshot is released.
pub(super) struct PendingDecision {
    pub(super) kernel: Arc<Kernel>,
    pub(super) organization: OrganizationId,
    questions: Questions,
    /// What is recorded, once the decisions are known.
    pub(super) records: Vec<NewEvent>,
    /// Who may be given an approval.
    asker: Option<Asker>,
    /// The key of the MCP server of each event, where it is denied.
    denied: Vec<Option<String>>,
    past: Option<event_windows::WindowRequest>,
    mode: Mode,
    kept: RequestedDurability,
}

impl Operation for Decide {
    const META: Meta = Meta::ingest("createHeadlessPolicyDecisions", "/policies/decisions", "policies")
        .access("policies:decide", &[Admin, Operator])
        .accepts_item_token()
        .command("policies", "decide")
        .example(
            r#"{"events": [{"occasion": "pre_tool", "session": "s-1", "callId": "c-1",
               "attributes": {"identity.user_id": "ada@acme.example", "tool.id": "Bash",
               "tool.input": {"command": "rm -rf /srv"}}}]}"#,
        )
        .reads_up_to(8 << 20, 64)
        .says(
            "Decide what the live policies say about events",
            "Judges up to 1 000 events, in their order, under the policies that are live now, and records each with its \
             decision. Whoever asks enforces. A policy that cannot be evaluated counts as matched with its own action \
             (evaluation_failed). durable: answered once the decisions are on the disk, and refused with 503 when they \
             cannot be; buffered: answered at once and written within 100 ms. An event that cannot be read refuses the \
             whole request. Gateway tokens ask about the skill that they are bound to, as their own principal.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = DecideBody;
    type Output = Decisions;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Decisions> {
        let body = &input.body;
        let mut events = read(&body.events.0)?;
        gateway::admit(ctx, &mut events)?;
        let register = history::resolve(ctx, &mut events)?;
        let records = records(ctx, &events)?;
        let denied = denied(ctx, &events)?;
        let org = ctx.org();
        let live = policies::live(&mut ctx.tx(), org)?;
        let past = event_windows::wanted(ctx, &live)?;
        let asker = match body.mode {
            RequestedMode::Enforce => Asker::of(ctx, &live, events),
            RequestedMode::Monitor => None,
        };
        let mut symbols = Symbols::knowing(Arc::new(register));
        let judged = records.iter().map(|event| event.record.event(&mut symbols));
        let asking = PendingDecision {
            kernel: Kernel::behind(ctx.services())?,
            organization: ctx.organization().clone(),
            questions: Questions {
                live,
                events: judged.collect(),
                symbols,
            },
            records,
            past,
            denied,
            asker,
            mode: match body.mode {
                RequestedMode::Enforce => Mode::Enforce,
                RequestedMode::Monitor => Mode::Monitor,
            },
            kept: body.record,
        };
        Ok(ctx.later(asking.answer()))
    }
}

/// Returns the events of a request.
///
/// INVARIANT DE-4. Errors: `InvalidRequest` with a pointer to each breach, of which 20 are kept.
fn read(sent: &[Value]) -> Result<Vec<IncomingEvent>> {
    let mut events = Vec::with_capacity(sent.len());
    let mut faults = Vec::new();
    for (at, event) in sent.iter().enumerate() {
        match IncomingEvent::parse(event) {
            Ok(event) => {
                let refused = of_imports(&event).into_iter();
                faults.extend(refused.map(|(pointer, message)| (place(at, &pointer), message)));
                events.push(event);
            }
            Err(found) => faults.extend(
                found
                    .into_iter()
                    .map(|(pointer, message)| (place(at, &pointer), message)),
            ),
        }
    }
    refuse(faults)?;
    Ok(events)
}

/// Returns the members that only imported events have.
pub(super) fn of_imports(event: &IncomingEvent) -> Vec<Fault> {
    let members = [
        ("/id", event.external_id.is_some()),
        ("/at", event.at_ms.is_some()),
        ("/decision", event.decision.is_some()),
    ];
    let message = "is of imported events alone: what is decided happens now, and the server names it";
    let refused = members.into_iter().filter(|(_, is_there)| *is_there);
    refused
        .map(|(member, _)| (member.to_owned(), message.to_owned()))
        .collect()
}

/// Returns the events in the form in which they are kept, with ids. These go up with the events' places: whoever reads
/// the history by instant and id reads the events of one request in the order in which they were judged.
///
/// Errors: as [`read`].
fn records(ctx: &mut OperationContext<'_>, events: &[IncomingEvent]) -> Result<Vec<NewEvent>> {
    let at_ms = ctx.now().as_ms();
    let mut sequence = history::accept_now(ctx, events.len())?;
    let from = Provenance::own(record::DECISIONS, ctx.actor());
    let mut records = Vec::with_capacity(events.len());
    let mut faults = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event.event(&sequence.id(at_ms)?, at_ms, &from) {
            Ok(record) => records.push(record),
            Err(found) => faults.extend(
                found
                    .into_iter()
                    .map(|(pointer, message)| (place(at, &pointer), message)),
            ),
        }
    }
    refuse(faults)?;
    Ok(records)
}

/// Returns for each event the key of the MCP server that it names, where that is denied.
fn denied(ctx: &mut OperationContext<'_>, events: &[IncomingEvent]) -> Result<Vec<Option<String>>> {
    let named: Vec<Option<&str>> = events.iter().map(IncomingEvent::mcp_package).collect();
    let keys: BTreeSet<&str> = named.iter().copied().flatten().collect();
    let denied = denied_servers(ctx, &keys)?;
    let of_each = named.into_iter().map(|key| denied.get(key?).cloned());
    Ok(of_each.collect())
}

fn place(at: usize, pointer: &str) -> String {
    format!("/events/{at}{pointer}")
}

pub(super) fn refuse(faults: Vec<Fault>) -> Result<()> {
    let mut faults = faults.into_iter();
    let Some((pointer, message)) = faults.next() else {
        return Ok(());
    };
    let first = Error::invalid(pointer, message);
    Err(faults.fold(first, |error, (pointer, message)| {
        error.and_field(pointer, message)
    }))
}

impl PendingDecision {
    async fn answer(mut self) -> Result<Decisions> {
        let pasts = match self.past.take() {
            Some(wanted) => {
                let Questions { events, symbols, .. } = &mut self.questions;
                wanted.recall(&self.kernel, events, symbols).await
            }
            None => event_windows::Pasts::none(),
        };
        let (mut asking, outcomes) = self.judge(pasts).await?;
        if let Some(asker) = asking.asker.take() {
            return asker.answer(asking, outcomes).await;
        }
        let decisions = asking.decisions(&outcomes)?;
        asking.record(&outcomes, &AnsweredPolicies::new()).await?;
        Ok(decisions)
    }

    /// INVARIANT DE-8: what takes long waits for a core of its own; nobody waits for it but its caller.
    async fn judge(self, mut pasts: event_windows::Pasts) -> Result<(Self, Vec<Outcome>)> {
        if !self.questions.are_heavy() {
            let outcomes = self.judged(&mut pasts)?;
            return Ok((self, outcomes));
        }
        let core = modules::core(&self.kernel, &self.organization).await?;
        let kernel = self.kernel.clone();
        let work = move || {
            let _core = core;
            let outcomes = self.judged(&mut pasts)?;
            Ok((self, outcomes))
        };
        kernel.blocking(work).await?
    }

    /// Keeps IN-13.
    fn judged(&self, pasts: &mut event_windows::Pasts) -> Result<Vec<Outcome>> {
        let mut outcomes = self.questions.judge(pasts, &self.kernel)?;
        for (outcome, denied) in outcomes.iter_mut().zip(&self.denied) {
            if denied.is_some() {
                outcome.refuse();
            }
        }
        Ok(outcomes)
    }

    pub(super) fn decisions(&self, outcomes: &[Outcome]) -> Result<Decisions> {
        let Questions {
            live,
            events,
            symbols,
        } = &self.questions;
        let decisions = self.records.iter().zip(outcomes).zip(events).zip(&self.denied);
        let decisions: Result<Vec<Decision>> = decisions
            .map(|(((record, outcome), event), denied)| {
                let mut verdict = Verdict::of_event(outcome, event, symbols)?;
                if let Some(key) = denied {
                    verdict.deny(key);
                }
                Ok(Decision::of(record.id.clone(), verdict))
            })
            .collect();
        Ok(Decisions {
            policy_set_version: Version {
                id: live.version_id.clone(),
                digest: live.set.digest().to_owned(),
            },
            mode: self.mode.word(),
            recorded: self.kept == RequestedDurability::Durable,
            decisions: decisions?,
        })
    }

    /// INVARIANT DE-3: nothing is answered before this is done.
    pub(super) async fn record(self, outcomes: &[Outcome], answered: &AnsweredPolicies) -> Result<()> {
        let events = self.decided(outcomes, answered);
        let durability = match self.kept {
            RequestedDurability::Durable => Durability::Durable,
            RequestedDurability::Buffered => Durability::Buffered,
        };
        let recorder = history::recorder(&self.kernel);
        let written = recorder.append(&self.organization, events, durability).await;
        written.map_err(unrecorded)?;
        self.count(outcomes);
        Ok(())
    }

    /// Returns the events with what was decided, as they are recorded.
    ///
    /// Keeps DE-15.
    pub(super) fn decided(&self, outcomes: &[Outcome], answered: &AnsweredPolicies) -> Vec<NewEvent> {
        let mut events = self.records.clone();
        let each = events.iter_mut().zip(outcomes).zip(&self.denied).enumerate();
        for (at, ((event, outcome), denied)) in each {
            let mut policy_ids = deciding(outcome);
            let approved = answered.get(&at);
            if let Some(asked) = approved {
                policy_ids.extend_from_slice(asked);
                policy_ids.sort_unstable();
                policy_ids.dedup();
            }
            // Nothing passes by an approval that a standing refuses.
            let standing = denied.is_some().then_some(record::Basis::Standing);
            event.record.decision = Some(record::Decision {
                action: outcome.action,
                policy_ids,
                policy_set_version: Some(self.questions.live.version_id.clone()),
                mode: self.mode,
                basis: standing.or(approved.map(|_| record::Basis::Approved)),
            });
        }
        events
    }

    pub(super) fn count(&self, outcomes: &[Outcome]) {
        count(outcomes, self.mode);
    }
}

/// Returns what is told of a decision that could not be recorded.
pub(super) fn unrecorded(error: Error) -> Error {
    match error.code() {
        Code::Unavailable => error,
        _ => Error::unavailable("the decision could not be recorded and is not given out").caused_by(error),
    }
}

fn count(outcomes: &[Outcome], mode: Mode) {
    for action in Action::ALL {
        let decided = outcomes.iter().filter(|outcome| outcome.action == action).count();
        if decided > 0 {
            metrics::counter!("provost_decisions_total", "action" => action.word(), "mode" => mode.word())
                .increment(decided as u64);
        }
    }
    // Apart from matches, as which they count: a module that fails, or an attribute that is missing, looks like a strict policy.
    let findings = outcomes.iter().flat_map(|outcome| &outcome.findings);
    for finding in findings.filter(|finding| finding.reason == Reason::EvaluationFailed) {
        metrics::counter!("provost_policy_evaluations_failed_total", "family" => finding.policy.family().word())
            .increment(1);
    }
}
