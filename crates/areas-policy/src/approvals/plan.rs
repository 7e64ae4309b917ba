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
//! INVARIANT AP-8: within an hour one principal, and whatever one person owns together, asks for at most 20 approvals for one subject and
//! 200 in all, whatever becomes of them and whatever limits of rates say, those counted in that wait for longer; in an organization at
//! most 1 000 wait; by hand they have at most 100 waiting, and nobody asks where half of the queue waits; what waits for longer than an hour leaves
//! half of the queue to the rest; an equal request joins the one that waits, and no two for one call and the same
//! policies are open.
//! INVARIANT AP-10: an approval is used where all events of its call pass, of those that one request asks about; where another one is
//! blocked or waits, it stays.

use super::binding::{self, Call, Unbound};
use super::model::{
    Approval, ApprovalId, BoundPolicy, COUNTED_SECS, Effect, GrantId, Kind, MOST, MOST_OF_ASKER,
    MOST_OF_SUBJECT, Opening, PENDING_SECS, Party, State,
};
use super::routes::{self, Route, Wanted};
use super::store::Counts;
use super::{rights, store};
use provost_areas_fleet::fleet;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::id::TypedId;
use provost_kernel::{Kernel, Result, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// People who have to say yes to what a decision opened, where no route says otherwise.
pub(super) const QUORUM: i64 = 1;

/// A decision that asks for an approval.
#[derive(Clone, Debug)]
pub struct Question {
    /// The decision, as the history will name it.
    pub event_id: String,
    /// The call, unless it is none that can be bound.
    pub call: std::result::Result<Call, Unbound>,
    /// The policies that ask for the approval of somebody else.
    pub policies: Vec<BoundPolicy>,
    /// Events of one number are one call.
    pub call_number: usize,
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
    /// A request waits, or was approved and is kept until everything of the call passes.
    Waiting {
        /// The approval.
        id: ApprovalId,
        /// Whether it was approved.
        is_approved: bool,
        /// Until when.
        until: Timestamp,
    },
    /// There is none, for a reason.
    Unbound(Unbound),
}

/// What has to be written.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Use {
        id: ApprovalId,
        revision: i64,
        event_id: String,
        device: Option<String>,
    },
    Void {
        id: ApprovalId,
        revision: i64,
        reason: &'static str,
    },
    Expire {
        id: ApprovalId,
    },
    Open(Box<Approval>),
}

/// What is said of the questions, in their order, and what has to be written before it is said.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One for each question.
    pub answers: Vec<Answer>,
    pub(super) steps: Vec<Step>,
}

impl Plan {
    /// Says whether nothing has to be written.
    pub fn writes_nothing(&self) -> bool {
        self.steps.is_empty()
    }
}

/// Says whether one more request is too much, that waits for so many seconds.
///
/// Keeps AP-8.
pub(super) fn is_full(counts: Counts, waits_secs: i64) -> bool {
    // What waits for days leaves half of the queue to what waits for an hour.
    let is_full = counts.waiting >= MOST || waits_secs > COUNTED_SECS && counts.waiting_long >= MOST / 2;
    counts.for_subject >= MOST_OF_SUBJECT || counts.of_asker >= MOST_OF_ASKER || is_full
}

/// Returns what can be said of questions that one principal asks, by what is there now. Questions of one call stand together.
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
            owner: rights::owner_of(tx, organization.as_str(), &asker)?,
            now: of.latest(),
            is_set_back: of.is_set_back(),
            rows: BTreeMap::new(),
            opened: BTreeMap::new(),
            steps: Vec::new(),
        };
        let mut answers = Vec::with_capacity(questions.len());
        for call in questions.chunk_by(|one, other| one.call_number == other.call_number) {
            answers.extend(draft.of_call(tx, call)?);
        }
        Ok(Plan {
            answers,
            steps: draft.steps,
        })
    };
    kernel.read_system(read).await
}

struct Draft<'a> {
    kernel: &'a Kernel,
    org: &'a str,
    asker: &'a Party,
    owner: String,
    now: Timestamp,
    /// No lifetime can be measured.
    is_set_back: bool,
    /// The open approvals of calls that were asked about, as they will be after the steps.
    rows: BTreeMap<String, Vec<Approval>>,
    /// How many this plan opens for each subject.
    opened: BTreeMap<(String, String), i64>,
    steps: Vec<Step>,
}

impl Draft<'_> {
    /// Returns what is said of the questions of one call.
    ///
    /// Keeps AP-10.
    fn of_call(&mut self, tx: &mut Tx<'_>, questions: &[Question]) -> Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(questions.len());
        let mut granted: Vec<ApprovalId> = Vec::new();
        for question in questions {
            let answer = self.answer(tx, question, &granted)?;
            if let Answer::Granted { id, .. } = &answer {
                granted.push(id.clone());
            }
            answers.push(answer);
        }
        let all_pass = granted.len() == questions.len();
        for (answer, question) in answers.iter_mut().zip(questions) {
            let Answer::Granted { id, .. } = &*answer else {
                continue;
            };
            let id = id.clone();
            let Some(row) = self.rows.values_mut().flatten().find(|row| row.id == id) else {
                return Err(Error::internal(
                    "an approval that was granted is not among those that were read",
                ));
            };
            if !all_pass {
                *answer = kept(row);
                continue;
            }
            let revision = row.revision;
            if row.consume(&question.event_id, self.now) != Ok(Effect::Changed) {
                return Err(Error::internal("an approval that was granted cannot be used"));
            }
            // The next use of the same row is computed from what this one leaves.
            row.revision += 1;
            self.steps.push(Step::Use {
                id,
                revision,
                event_id: question.event_id.clone(),
                device: question.call.as_ref().ok().and_then(|call| call.device.clone()),
            });
        }
        Ok(answers)
    }

    /// Returns what is said of one question if the rest of its call passes. `granted` is what the rest of it uses already.
    fn answer(&mut self, tx: &mut Tx<'_>, question: &Question, granted: &[ApprovalId]) -> Result<Answer> {
        let call = match &question.call {
            Ok(call) => call,
            Err(unbound) => return Ok(Answer::Unbound(*unbound)),
        };
        // Keeps AP-12.
        if self.is_set_back {
            return Ok(Answer::Unbound(Unbound::SetBack));
        }
        let Some(rights) = rights::of_party(tx, self.org, &call.subject)? else {
            return Ok(Answer::Unbound(Unbound::NoSubject));
        };
        let mac = call.mac(&self.kernel.keys, self.org, self.asker);
        if !self.rows.contains_key(&mac) {
            let found = store::of_call(tx, self.org, &mac)?;
            let found = self.living(tx, found, call, &rights)?;
            self.rows.insert(mac.clone(), found);
        }
        // Keeps AP-4: all that is asked for now is among what was asked for then. One that answers less stays as it is: what asks
        // beside it may ask no more at the next call.
        let is_covered = |row: &&Approval| {
            let answered = |policy: &BoundPolicy| row.policies.contains(policy);
            question.policies.iter().all(answered)
        };
        let rows = self.rows.get(&mac).into_iter().flatten();
        let covering: Vec<&Approval> = rows.filter(is_covered).collect();
        // What was approved goes before what waits, whichever is older.
        let approved = covering.iter().find(|row| row.state == State::Approved);
        if let Some(row) = approved {
            let taken = granted.iter().filter(|id| **id == row.id).count();
            if row.uses_left() > i64::try_from(taken).unwrap_or(i64::MAX) {
                return Ok(Answer::Granted {
                    id: row.id.clone(),
                    grant_id: row.grant_id.clone(),
                });
            }
            return Ok(kept(row));
        }
        if let Some(row) = covering.iter().find(|row| row.state == State::Pending) {
            return Ok(Answer::Waiting {
                id: row.id.clone(),
                is_approved: false,
                until: row.deadline_at,
            });
        }
        self.open(tx, call, mac, rights, &question.policies)
    }

    /// Returns those of a call's open approvals that are alive, and has the others end.
    fn living(
        &mut self,
        tx: &mut Tx<'_>,
        found: Vec<Approval>,
        call: &Call,
        rights: &str,
    ) -> Result<Vec<Approval>> {
        let mut living = Vec::with_capacity(found.len());
        for row in found {
            let is_the_call = row.asker == *self.asker && row.subject == call.subject;
            if row.state_at(self.now).is_ended() {
                self.steps.push(Step::Expire { id: row.id });
                continue;
            }
            // Keeps AP-3: who said yes may have come to stand behind the call since, or may not decide any more.
            let lapse = match row.state {
                State::Approved => rights::lapse(tx, self.org, &row, call.device.as_deref(), self.now)?,
                _ => None,
            };
            let reason = match (is_the_call && row.subject_rights == rights, lapse) {
                (true, None) => {
                    living.push(row);
                    continue;
                }
                (false, _) => "subject_changed",
                (true, Some(reason)) => reason,
            };
            self.steps.push(Step::Void {
                id: row.id,
                revision: row.revision,
                reason,
            });
        }
        Ok(living)
    }

    fn open(
        &mut self,
        tx: &mut Tx<'_>,
        call: &Call,
        call_mac: String,
        subject_rights: String,
        policies: &[BoundPolicy],
    ) -> Result<Answer> {
        let subject = (call.subject.kind.clone(), call.subject.id.clone());
        let mut counts = store::counts(tx, self.org, (self.asker, &self.owner), &call.subject, self.now)?;
        let opened: i64 = self.opened.values().sum();
        counts.for_subject += self.opened.get(&subject).copied().unwrap_or_default();
        counts.of_asker += opened;
        counts.waiting += opened;
        counts.waiting_long += opened;
        let wanted = Wanted {
            kind: Kind::ToolCall,
            tool: &call.tool,
            asker: self.asker,
            subject: &call.subject,
        };
        let device = call.device.as_deref();
        let route = routes::fitting(tx, self.org, &wanted)?;
        let waits_secs = route.as_ref().map_or(PENDING_SECS, Route::deadline_secs);
        if is_full(counts, waits_secs) {
            return Ok(Answer::Unbound(Unbound::TooMany));
        }
        let frozen = match &route {
            Some(route) => {
                let behind = rights::behind_parties(tx, self.org, (self.asker, &call.subject), device)?;
                Some(routes::freeze(tx, self.org, route, &wanted, &behind)?)
            }
            None => None,
        };
        let mut rng = self.kernel.rng();
        let id = ApprovalId::mint(self.now, &mut rng);
        let shown = serde_json::to_vec(&call.shown).map_err(Error::internal)?;
        let place = super::view::place(self.org, &id);
        let sealed = self.kernel.keys.seal(&place, &shown, &mut rng)?;
        let approval = Approval::open(Opening {
            grant_id: GrantId::mint(self.now, &mut rng),
            kind: Kind::ToolCall,
            asker: self.asker.clone(),
            owner_id: self.owner.clone(),
            subject: call.subject.clone(),
            subject_rights,
            binding_mac: binding::digest(&self.kernel.keys, self.org, &id, &call_mac, policies)?,
            call_mac: call_mac.clone(),
            tool: call.tool.clone(),
            // Whose machine it was when it was asked for stands behind it also when the machine is somebody else's by then.
            gains: device.map_or_else(|| Ok(Vec::new()), |device| fleet::holders(tx, self.org, device))?,
            policies: policies.to_vec(),
            quorum: route.as_ref().map_or(QUORUM, Route::quorum),
            waits_secs,
            route: frozen,
            sealed,
            at: self.now,
            id,
        });
        let answer = Answer::Waiting {
            id: approval.id.clone(),
            is_approved: false,
            until: approval.deadline_at,
        };
        *self.opened.entry(subject).or_default() += 1;
        self.steps.push(Step::Open(Box::new(approval.clone())));
        self.rows.entry(call_mac).or_default().push(approval);
        Ok(answer)
    }
}

/// Returns what is said of an approval that stays: it was approved, and the call does not pass all the same.
fn kept(row: &Approval) -> Answer {
    Answer::Waiting {
        id: row.id.clone(),
        is_approved: true,
        until: row.grant_until.unwrap_or(row.created_at),
    }
}
