//! Decisions that ask for an approval: by which a call passes, and under which request it waits.
//!
//! Keeps AP-4 and AP-7.

use super::answer::{Decisions, wants_somebody};
use super::decide::{PendingDecision, unrecorded};
use crate::approvals::{self, Answer, Call, Party, Plan, Question};
use crate::history::{self, IncomingEvent};
use crate::policies::Live;
use provost_kernel::auth::{Actor, Origin};
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result};
use provost_policy::{Action, Outcome};
use std::sync::Arc;

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
        let party = Party {
            kind: self.caller.kind.to_owned(),
            id: self.caller.id.clone(),
        };
        for _ in 0..ATTEMPTS {
            let plan = approvals::plan(&asking.kernel, &asking.organization, &party, &questions).await?;
            let settled = settled(&outcomes, &places, &plan);
            let mut answer = asking.decisions(&settled)?;
            for ((at, said), question) in places.iter().zip(&plan.answers).zip(questions.iter()) {
                answer.decisions[*at].approve(said, &question.policies, asking.kernel.latest());
            }
            if plan.writes_nothing() {
                asking.record(&settled).await?;
                return Ok(answer);
            }
            let (caller, origin) = (self.caller.clone(), self.origin.clone());
            let write = move |ctx: &mut OperationContext<'_>| {
                ctx.in_the_name_of(caller.clone(), origin.clone());
                approvals::apply(ctx, &plan)
            };
            let events = asking.decided(&settled);
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

    /// Returns what asks for an approval, and its places among the events. What the person's own yes satisfies asks nobody else.
    fn questions(&self, asking: &PendingDecision, outcomes: &[Outcome]) -> (Vec<usize>, Vec<Question>) {
        let asked = outcomes
            .iter()
            .enumerate()
            .filter(|(_, outcome)| wants_somebody(outcome));
        asked
            .map(|(at, outcome)| {
                let question = Question {
                    event_id: asking.records[at].id.clone(),
                    call: Call::of(&self.events[at]),
                    policies: approvals::policies(outcome),
                };
                (at, question)
            })
            .unzip()
    }
}

/// Returns the outcomes in which the policies that were approved have no part any more.
fn settled(outcomes: &[Outcome], places: &[usize], plan: &Plan) -> Vec<Outcome> {
    let mut settled = outcomes.to_vec();
    for (at, answer) in places.iter().zip(&plan.answers) {
        if matches!(answer, Answer::Granted { .. }) {
            settled[*at] = outcomes[*at].without_deciding();
        }
    }
    settled
}
