//! Decisions that ask for an approval: by which a call passes, and under which request it waits.
//!
//! Keeps AP-4, AP-7 and AP-10.
//!
//! INVARIANT DE-15: the record of a decision says that an approval was used exactly where one was, and names the policies that had asked for it.

use super::answer::Decisions;
use super::decide::{PendingDecision, unrecorded};
use crate::approvals::{self, Answer, BoundPolicy, Call, Party, Plan, Question, Unbound};
use crate::history::{self, IncomingEvent};
use crate::policies::Live;
use provost_bundle::wants_somebody;
use provost_kernel::auth::{Actor, Origin};
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result};
use provost_policy::{Action, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The ids of the policies that an approval answered, by the places of the events that pass by it.
pub(super) type AnsweredPolicies = BTreeMap<usize, Vec<String>>;

/// How often what others changed in the meantime is looked at again.
const ATTEMPTS: usize = 3;

/// Who asks, of whom approvals may be given and used.
pub(super) struct Asker {
    caller: Actor,
    origin: Option<Origin>,
    /// With the words resolved, as they were judged.
    events: Vec<IncomingEvent>,
}

impl Asker {
    /// Returns who asks, if a policy of the set can ask for an approval. A token of one item (D10.6) opens and uses none.
    pub fn of(ctx: &OperationContext<'_>, live: &Live, events: Vec<IncomingEvent>) -> Option<Self> {
        let actor = ctx.actor();
        let asks = |action: Action| action == Action::RequireApproval;
        let can_ask = live.set.policies().iter().any(|policy| asks(policy.action()));
        (actor.item.is_none() && can_ask).then(|| Self {
            caller: actor.clone(),
            origin: ctx.origin().cloned(),
            events,
        })
    }

    /// Returns the answer to a request, once its decisions are recorded with what they did to approvals.
    pub async fn answer(self, asking: PendingDecision, outcomes: Vec<Outcome>) -> Result<Decisions> {
        let (places, questions) = self.questions(&asking, &outcomes);
        let questions = Arc::new(questions);
        let party = Party::of(&self.caller);
        for _ in 0..ATTEMPTS {
            let plan = approvals::plan(&asking.kernel, &asking.organization, &party, &questions).await?;
            let settled = settled(&outcomes, &places, &plan);
            let answered = answered(&places, &questions, &plan);
            let mut answer = asking.decisions(&settled)?;
            for ((at, said), question) in places.iter().zip(&plan.answers).zip(questions.iter()) {
                answer.decisions[*at].approve(said, &question.policies, asking.kernel.latest());
            }
            if plan.writes_nothing() {
                asking.record(&settled, &answered).await?;
                return Ok(answer);
            }
            let (caller, origin) = (self.caller.clone(), self.origin.clone());
            let write = move |ctx: &mut OperationContext<'_>| {
                ctx.in_the_name_of(caller.clone(), origin.clone());
                approvals::apply(ctx, &plan)
            };
            let events = asking.decided(&settled, &answered);
            let recorder = history::recorder(&asking.kernel);
            let action = approvals::fences::SETTLEMENT;
            match recorder
                .append_with(&asking.organization, events, action, write)
                .await
            {
                Ok(()) => {
                    asking.count(&settled);
                    answer.recorded = true;
                    return Ok(answer);
                }
                // Somebody else used it, took it back or voted.
                Err(error) if error.code() == Code::Conflict || error.code() == Code::NotFound => {}
                Err(error) => return Err(unrecorded(error)),
            }
        }
        let message = "the approvals of this request change all the time; nothing was decided, ask again";
        Err(Error::unavailable(message).retry_after(1))
    }

    /// Returns what asks for an approval, call by call, and its places among the events. What the person's own yes satisfies asks
    /// nobody else, and nobody is asked about a call of which something is blocked.
    fn questions(&self, asking: &PendingDecision, outcomes: &[Outcome]) -> (Vec<usize>, Vec<Question>) {
        let calls = calls(&self.events);
        let blocked = outcomes.iter().zip(&calls);
        let blocked = blocked.filter(|(outcome, _)| outcome.action == Action::Block);
        let blocked: BTreeSet<usize> = blocked.map(|(_, call)| *call).collect();
        let mut asked: Vec<(usize, Question)> = Vec::new();
        for (at, outcome) in outcomes.iter().enumerate() {
            let policies = policies(outcome);
            if policies.is_empty() {
                continue;
            }
            let call = if blocked.contains(&calls[at]) {
                Err(Unbound::Blocked)
            } else {
                Call::of(&self.events[at])
            };
            let question = Question {
                event_id: asking.records[at].id.clone(),
                call,
                policies,
                call_number: calls[at],
            };
            asked.push((at, question));
        }
        asked.sort_by_key(|(at, question)| (question.call_number, *at));
        asked.into_iter().unzip()
    }
}

/// Returns the number of the call of each event: those of one session and call id are one call. An event that says neither stands alone.
fn calls(events: &[IncomingEvent]) -> Vec<usize> {
    let mut known = BTreeMap::new();
    let mut calls = Vec::with_capacity(events.len());
    for (at, event) in events.iter().enumerate() {
        calls.push(match (&event.session, &event.call_id) {
            (None, None) => at,
            named => *known.entry(named).or_insert(at),
        });
    }
    calls
}

/// Returns the policies whose answer an approval is, sorted.
fn policies(outcome: &Outcome) -> Vec<BoundPolicy> {
    let asking = outcome.findings.iter().filter(|finding| wants_somebody(finding));
    let mut policies: Vec<BoundPolicy> = asking
        .map(|finding| BoundPolicy {
            family: finding.policy.family().word().to_owned(),
            policy_id: finding.policy.id().to_owned(),
            definition_sha256: finding.policy.sha256().to_owned(),
        })
        .collect();
    policies.sort_unstable();
    policies.dedup();
    policies
}

/// Returns the outcomes in which the policies that were approved have no part any more.
fn settled(outcomes: &[Outcome], places: &[usize], plan: &Plan) -> Vec<Outcome> {
    let mut settled = outcomes.to_vec();
    for (at, answer) in places.iter().zip(&plan.answers) {
        if matches!(answer, Answer::Granted { .. }) {
            settled[*at] = outcomes[*at].without(wants_somebody);
        }
    }
    settled
}

/// Returns which policies were answered, of each event that passes by an approval.
///
/// Keeps DE-15.
fn answered(places: &[usize], questions: &[Question], plan: &Plan) -> AnsweredPolicies {
    let each = places.iter().zip(questions).zip(&plan.answers);
    let granted = each.filter(|(_, answer)| matches!(answer, Answer::Granted { .. }));
    let ids = granted.map(|((at, question), _)| {
        let asked = question.policies.iter().map(|policy| policy.policy_id.clone());
        (*at, asked.collect())
    });
    ids.collect()
}
