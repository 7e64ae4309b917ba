//! What approvals make of decisions that ask for one: which pass, which wait, and what has to be written for it.
//!
//! ```text
//!   decisions   judge ── plan (a snapshot) ── one unit of work: apply · the decisions' chunk ── answer
//!                          ▲                        │ a row is another than the plan's
//!                          └────────────────────────┘ three times, then 503 and nothing is given out
//! ```
//!
//! INVARIANT AP-4: an approval answers the policies that it names, in the definitions that were live when it was asked for,
//! and no other: whatever else a decision rests on decides as if there were no approval. Proof: in part, by the decisions.
//! INVARIANT AP-7: a use and the decision that it allows are one commit; neither is there without the other.
//! INVARIANT AP-8: for one subject at most 20 requests wait, in an organization at most 1 000; an equal request joins the one
//! that waits.

use super::binding::{Call, Unbound};
use super::model::{
    Approval, ApprovalId, BoundPolicy, Effect, GrantId, Kind, MOST, MOST_OF_SUBJECT, PENDING_SECS, Party,
    State,
};
use super::{fences, rights, store};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::id::TypedId;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// People who have to say yes to what a decision opened. Ours: one, until routes say otherwise.
const QUORUM: i64 = 1;

/// A decision that asks for an approval.
#[derive(Clone, Debug)]
pub struct Question {
    /// The decision, as the history will name it.
    pub event_id: String,
    /// The call, unless it is none that can be bound.
    pub call: std::result::Result<Call, Unbound>,
    /// The policies that ask for the approval.
    pub policies: Vec<BoundPolicy>,
}

/// What is said of a question.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The call passes, as far as its policies go.
    Granted {
        /// The approval.
        id: ApprovalId,
        /// What it gave.
        grant_id: GrantId,
    },
    /// A request waits.
    Waiting {
        /// The approval.
        id: ApprovalId,
        /// Until when.
        until: Timestamp,
    },
    /// There is none, for a reason.
    Unbound(Unbound),
}

/// What has to be written.
#[derive(Clone, Debug)]
enum Step {
    Use {
        id: ApprovalId,
        revision: i64,
        event_id: String,
    },
    Void {
        id: ApprovalId,
        revision: i64,
        reason: &'static str,
    },
    Open(Box<Approval>),
}

/// What is said of the questions, in their order, and what has to be written before it is said.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One for each question.
    pub answers: Vec<Answer>,
    steps: Vec<Step>,
}

impl Plan {
    /// Says whether nothing has to be written.
    pub fn writes_nothing(&self) -> bool {
        self.steps.is_empty()
    }
}

/// Returns what can be said of questions that one principal asks, by what is there now.
///
/// Cost: one snapshot, and some statements for each question.
pub async fn plan(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    asker: &Party,
    questions: &Arc<Vec<Question>>,
) -> Result<Plan> {
    let (of, organization) = (kernel.clone(), organization.clone());
    let (asker, questions) = (asker.clone(), questions.clone());
    let read = move |tx: &mut Tx<'_>| {
        let mut draft = Draft {
            kernel: &of,
            org: organization.as_str(),
            asker: &asker,
            now: of.latest(),
            rows: BTreeMap::new(),
            opened: 0,
            plan: Plan {
                answers: Vec::with_capacity(questions.len()),
                steps: Vec::new(),
            },
        };
        for question in questions.iter() {
            let answer = draft.answer(tx, question)?;
            draft.plan.answers.push(answer);
        }
        Ok(draft.plan)
    };
    kernel.read_system(read).await
}

struct Draft<'a> {
    kernel: &'a Kernel,
    org: &'a str,
    asker: &'a Party,
    now: Timestamp,
    /// The open approvals of calls that were asked about, as they will be after the steps.
    rows: BTreeMap<String, Vec<Approval>>,
    opened: i64,
    plan: Plan,
}

impl Draft<'_> {
    fn answer(&mut self, tx: &mut Tx<'_>, question: &Question) -> Result<Answer> {
        let call = match &question.call {
            Ok(call) => call,
            Err(unbound) => return Ok(Answer::Unbound(*unbound)),
        };
        let Some(rights) = rights::of_party(tx, self.org, &call.subject)? else {
            return Ok(Answer::Unbound(Unbound::NoSubject));
        };
        let mac = call.mac(&self.kernel.keys, self.org, self.asker);
        if !self.rows.contains_key(&mac) {
            let found = store::of_call(tx, self.org, &mac)?;
            self.rows.insert(mac.clone(), found);
        }
        let rows = self.rows.entry(mac.clone()).or_default();
        for row in rows.iter_mut() {
            let state = row.state_at(self.now);
            if state.is_ended() {
                continue;
            }
            let is_the_call = row.asker == *self.asker && row.subject == call.subject;
            // Keeps AP-4: all that is asked for now is among what was asked for then.
            let covers = question
                .policies
                .iter()
                .all(|policy| row.policies.contains(policy));
            let moved = match (is_the_call && row.subject_rights == rights, covers) {
                (true, true) => None,
                (false, _) => Some("subject_changed"),
                (true, false) => Some("policies_changed"),
            };
            let (id, revision) = (row.id.clone(), row.revision);
            if let Some(reason) = moved {
                // What this very request opened is of the same instant: nothing of it can have moved.
                row.make_void(self.now, reason);
                self.plan.steps.push(Step::Void { id, revision, reason });
                continue;
            }
            if state == State::Pending {
                return Ok(Answer::Waiting {
                    id,
                    until: row.deadline_at,
                });
            }
            if row.consume(&question.event_id, self.now) == Ok(Effect::Changed) {
                let event_id = question.event_id.clone();
                let grant_id = row.grant_id.clone();
                self.plan.steps.push(Step::Use {
                    id: id.clone(),
                    revision,
                    event_id,
                });
                // The next use of the same row is computed from what this one leaves.
                row.revision += 1;
                return Ok(Answer::Granted { id, grant_id });
            }
        }
        let (own, all) = store::waiting(tx, self.org, &call.subject, self.now)?;
        if own + self.opened >= MOST_OF_SUBJECT || all + self.opened >= MOST {
            return Ok(Answer::Unbound(Unbound::TooMany));
        }
        let approval = self.open(call, mac.clone(), rights, &question.policies)?;
        let answer = Answer::Waiting {
            id: approval.id.clone(),
            until: approval.deadline_at,
        };
        self.opened += 1;
        self.plan.steps.push(Step::Open(Box::new(approval.clone())));
        self.rows.entry(mac).or_default().push(approval);
        Ok(answer)
    }

    fn open(
        &self,
        call: &Call,
        call_mac: String,
        subject_rights: String,
        policies: &[BoundPolicy],
    ) -> Result<Approval> {
        let mut rng = self.kernel.rng();
        let id = ApprovalId::mint(self.now, &mut rng);
        let view = serde_json::to_vec(&call.view(self.asker, policies)).map_err(Error::internal)?;
        let place = super::view::place(self.org, &id);
        let sealed = self.kernel.keys.seal(&place, &view, &mut rng)?;
        Ok(Approval {
            grant_id: GrantId::mint(self.now, &mut rng),
            kind: Kind::ToolCall,
            state: State::Pending,
            asker: self.asker.clone(),
            subject: call.subject.clone(),
            subject_rights,
            call_mac,
            tool: call.tool.clone(),
            policies: policies.to_vec(),
            quorum: QUORUM,
            votes: Vec::new(),
            max_uses: 1,
            uses: Vec::new(),
            deadline_at: self.now.plus_secs(PENDING_SECS),
            grant_until: None,
            sealed: Some(sealed),
            created_at: self.now,
            decided_at: None,
            ended_at: None,
            end_reason: None,
            revision: 0,
            id,
        })
    }
}

/// Writes what a plan needs, in the unit that records its decisions.
///
/// Keeps AP-7. Errors: `Conflict` when a row is another than the plan's; then a new plan is due.
pub fn apply(ctx: &mut OperationContext<'_>, plan: &Plan) -> Result<()> {
    let mut done: [Vec<String>; 3] = Default::default();
    for step in &plan.steps {
        match step {
            Step::Use {
                id,
                revision,
                event_id,
            } => {
                let mut approval = store::get(ctx, id)?;
                let is_done = approval.uses.iter().any(|earlier| earlier.event_id == *event_id);
                // The unit ran before, and its commit went unanswered (WK-3).
                if !is_done {
                    use_once(ctx, &mut approval, *revision, event_id)?;
                }
                done[0].push(id.as_str().to_owned());
            }
            Step::Void { id, revision, reason } => {
                let mut approval = store::get(ctx, id)?;
                if approval.state != State::Void {
                    if approval.revision != *revision {
                        return Err(store::moved());
                    }
                    super::make_void(ctx, &mut approval, reason)?;
                }
                done[1].push(id.as_str().to_owned());
            }
            Step::Open(approval) => {
                store::insert(ctx, approval)?;
                ctx.emit(&fences::REQUESTED, &fences::OfApproval::of(approval));
                done[2].push(approval.id.as_str().to_owned());
            }
        }
    }
    for (path, ids) in ["/used", "/void", "/requested"].into_iter().zip(done) {
        if let Some(first) = ids.first() {
            ctx.target(&fences::APPROVAL, first.clone());
            ctx.change(path, serde_json::Value::Null, json!(ids));
        }
    }
    Ok(())
}

fn use_once(
    ctx: &mut OperationContext<'_>,
    approval: &mut Approval,
    revision: i64,
    event_id: &str,
) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.latest());
    let rights = rights::of_party(&mut ctx.tx(), org, &approval.subject)?;
    if approval.revision != revision || rights.as_ref() != Some(&approval.subject_rights) {
        return Err(store::moved());
    }
    approval.consume(event_id, now).map_err(|_| store::moved())?;
    store::save(ctx, approval)?;
    let data = fences::UsedApproval {
        approval_id: approval.id.clone(),
        event_id: event_id.to_owned(),
        uses_left: approval.uses_left(),
    };
    ctx.emit(&fences::USED, &data);
    Ok(())
}
