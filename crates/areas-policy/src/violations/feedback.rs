//! Takes what the subject of a decision says of it: "this stop is wrong".
//!
//! Keeps VI-4.

use super::fences;
use super::get::{ViolationPath, in_our_words, not_found};
use super::model::{Outcome, POLICIES};
use super::store::{self, Said};
use super::view::Feedback;
use crate::history;
use provost_backtest::record::OwnedRecord;
use provost_kernel::auth::Role::{Admin, Auditor, Member, Operator, Viewer};
use provost_kernel::auth::{Actor, OrganizationId, Origin};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Operation, RateClass};
use provost_kernel::text::Reason;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

pub struct Give;

/// LIMIT: decisions of which one subject said something, as long as their events are kept. Ours: all of it goes in the unit in which the
/// subject is deleted, and an import ends a hundred in one.
const MOST_SAID: i64 = 50;

/// What somebody says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct GiveBody {
    /// Why the decision was wrong: one line of at most 500 characters.
    text: Reason,
}

/// What is kept.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Given {
    event_id: String,
    feedback: Feedback,
}

impl Default for Given {
    /// Stands for an answer that comes later.
    fn default() -> Self {
        Self {
            event_id: String::new(),
            feedback: Feedback {
                text: String::new(),
                given_at: Timestamp::EPOCH,
            },
        }
    }
}

impl Operation for Give {
    const META: Meta = Meta::ingest(
        "createHeadlessPolicyViolationFeedback",
        "/policies/violations/{eventId}/feedback",
        "policies",
    )
    .access("policies:feedback", &[Admin, Operator, Auditor, Viewer, Member])
    // It reads the history for anybody: rarer than what writes a row.
    .rate(RateClass::Resolve)
    .errors(&[400, 401, 403, 404])
    .command("violations", "feedback")
    .example(r#"{"text": "this is our own build folder"}"#)
    .says(
        "Say that a decision about oneself was wrong",
        "Of one's own events alone, once each, and of decisions of this server: it changes nothing by itself. Whoever reads \
         violations sees how many there are of a policy, and admins and auditors read the text. The same text again is answered as \
         the first time. Nobody says something of more than 50 decisions that are kept.",
    );
    type Path = ViolationPath;
    type Query = Empty;
    type Body = GiveBody;
    type Output = Given;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Given> {
        let id = input.path.event_id.as_str().to_owned();
        let subject = subject_of(ctx.actor()).ok_or_else(not_found)?;
        let found = history::event(ctx, &id).map_err(in_our_words)?;
        let before = store::feedback(ctx, &id)?;
        let giving = Giving {
            organization: ctx.organization().clone(),
            actor: ctx.actor().clone(),
            origin: ctx.origin().cloned(),
            id,
            subject,
            text: input.body.text.as_str().to_owned(),
        };
        let kernel = Kernel::behind(ctx.services())?;
        Ok(ctx.later(async move {
            let event = found.await.map_err(in_our_words)?;
            giving.keep(kernel, event, before).await
        }))
    }
}

/// Returns the kind and id under which the events of a caller stand: people and accounts have events, and nobody else says anything.
pub(super) fn subject_of(actor: &Actor) -> Option<(&'static str, String)> {
    let kind = match actor.kind {
        "console_user" => "user",
        "service_account" => "service_account",
        _ => return None,
    };
    Some((kind, actor.id.clone()))
}

/// What is said, on its way into the store.
struct Giving {
    organization: OrganizationId,
    actor: Actor,
    origin: Option<Origin>,
    id: String,
    subject: (&'static str, String),
    text: String,
}

impl Giving {
    /// Keeps it, if it is the caller's to say.
    ///
    /// Errors: `NotFound` for an event that is not there, another's, or no violation, alike; `Conflict` for a decision that was made
    /// elsewhere, and where something else was said already.
    async fn keep(
        self,
        kernel: Arc<Kernel>,
        event: OwnedRecord,
        before: Option<(String, Timestamp)>,
    ) -> Result<Given> {
        let (kind, id) = &self.subject;
        if history::subject(&event) != Some((*kind, id.as_str())) {
            return Err(not_found());
        }
        let policies: Vec<String> = match Outcome::of_event(&event) {
            // As many as a violation counts under: what a person says ends with the person, in one unit.
            Some((_, decision)) => decision.policy_ids.iter().take(POLICIES).cloned().collect(),
            None => return Err(not_found()),
        };
        if event.is_imported() {
            let message = "this decision was imported; say it where it was made";
            return Err(Error::new(Code::Conflict, message));
        }
        if let Some((text, given_at)) = before {
            return self.again(text, given_at);
        }
        let giving = Arc::new(self);
        let kept: Arc<Mutex<Option<Feedback>>> = Arc::default();
        let (writing, sink) = (giving.clone(), kept.clone());
        let event_at = Timestamp::from_ms(event.at_ms);
        let run = move |ctx: &mut OperationContext<'_>| {
            ctx.in_the_name_of(writing.actor.clone(), writing.origin.clone());
            ctx.target(&fences::VIOLATION, writing.id.as_str());
            // It may have been said since a reader looked.
            let feedback = match store::feedback(ctx, &writing.id)? {
                Some((text, given_at)) => writing.again(text, given_at)?.feedback,
                None => writing.write(ctx, event_at, &policies)?,
            };
            *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(feedback);
            Ok(())
        };
        kernel
            .system(giving.organization.clone(), Some(fences::FEEDBACK), run)
            .await?;
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let feedback = kept.ok_or_else(|| Error::internal("feedback was kept and is not there"))?;
        Ok(Given {
            event_id: giving.id.clone(),
            feedback,
        })
    }

    fn write(
        &self,
        ctx: &mut OperationContext<'_>,
        event_at: Timestamp,
        policies: &[String],
    ) -> Result<Feedback> {
        let (kind, id) = &self.subject;
        if store::said_by(ctx, kind, id, MOST_SAID)? >= MOST_SAID {
            let message =
                "you said something of 50 decisions that are kept still; tell an admin of the others";
            return Err(Error::new(Code::Conflict, message));
        }
        store::say(
            ctx,
            &Said {
                event: &self.id,
                event_at,
                subject: (*kind, id.as_str()),
                policies,
                text: &self.text,
            },
        )?;
        // The words stand in no entry: they are for those who may read the decision.
        ctx.change("/feedback", Value::Null, true);
        Ok(Feedback {
            text: self.text.clone(),
            given_at: ctx.now(),
        })
    }

    /// Answers what was said before as the first time.
    fn again(&self, text: String, given_at: Timestamp) -> Result<Given> {
        if text != self.text {
            let message = "something was said of this decision already; it is said once";
            return Err(Error::new(Code::Conflict, message));
        }
        Ok(Given {
            event_id: self.id.clone(),
            feedback: Feedback { text, given_at },
        })
    }
}
