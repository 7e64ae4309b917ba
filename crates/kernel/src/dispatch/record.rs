//! What a request leaves behind without a unit of its own: notes, counts, uses.
//!
//! Keeps CK-2.

use super::{Case, Outcome};
use crate::audit::{AuditRecord, Decision};
use crate::auth::Origin;
use crate::context::OperationContext;
use crate::credential::{Credential, Scheme, Use};
use crate::effects::Effects;
use crate::error::{Code, Error, Result};
use crate::fence;
use crate::kernel::Kernel;
use crate::operation::Answer;
use crate::rate::buckets;
use crate::time::Timestamp;
use crate::write_behind::{USE_PRECISION_MS, network};
use std::sync::Arc;
use std::time::Duration;

/// How long a reader pauses for the writer of the audit log when that falls behind.
pub(super) const BACKPRESSURE_DELAY: Duration = Duration::from_micros(200);

/// Counts a failed authentication whose token belongs to nobody.
pub(super) fn refuse_unauthenticated(
    kernel: &Kernel,
    origin: &Origin,
    code: &'static str,
    error: Error,
) -> Outcome {
    kernel.write_behind.count_unauthenticated(code, origin.source_ip);
    failed(kernel, origin, error)
}

/// Answers a failed authentication; beyond the limit of its network with 429 (D1.11).
pub(super) fn failed(kernel: &Kernel, origin: &Origin, error: Error) -> Outcome {
    origin.arrival.refused();
    let bucket = &buckets::AUTHENTICATION;
    let network = network(origin.source_ip);
    match kernel.limit(bucket, &[&network]) {
        Ok(_) => Outcome::refused(error, None),
        Err(limited) => Outcome::refused(limited, Some((bucket, kernel.limiter.peek(bucket, &[&network])))),
    }
}

/// Returns the 503 that takes the place of "the token has expired" while this clock and the database's disagree: whoever is
/// told that a token has expired throws it away. It counts as a failed authentication, as the 401 would.
pub(super) fn misdated(kernel: &Kernel, origin: &Origin, error: &Error) -> Option<Outcome> {
    if error.code() != Code::TokenExpired {
        return None;
    }
    let disagreement = kernel.disagreement()?;
    Some(failed(kernel, origin, disagreement))
}

pub(super) fn known_but_dead(
    kernel: &Arc<Kernel>,
    origin: &Origin,
    scheme: Scheme,
    credential: &Credential,
    error: Error,
) -> Outcome {
    if let Some(outcome) = misdated(kernel, origin, &error) {
        return outcome;
    }
    let organization = &credential.organization;
    kernel
        .write_behind
        .count_known(organization, &credential.token_id, error.code().as_str());
    let now = kernel.clock.now();
    let revoked = error.code() == Code::TokenRevoked;
    if revoked
        && let Some(action) = scheme.reuse()
        && kernel.write_behind.is_new_reuse(&credential.token_id, now)
    {
        let token_id = credential.token_id.clone();
        let run = move |ctx: &mut OperationContext<'_>| {
            ctx.target(&fence::TOKEN, token_id.clone());
            scheme.reused(ctx, &token_id)
        };
        let unit = kernel.unit(organization.clone(), Some(action), Box::new(run), None);
        if let Err(error) = kernel.submit(unit) {
            tracing::warn!("the reuse of a revoked token could not be recorded: {error}");
        }
    }
    failed(kernel, origin, error)
}

/// Notes the use of a token or of a session, if the stored one is old.
pub(super) fn note_use(kernel: &Kernel, scheme: Scheme, last: Option<Timestamp>, used: Use) {
    if last.is_none_or(|at| used.at.as_ms() - at.as_ms() > USE_PRECISION_MS) {
        kernel.write_behind.used(scheme, used);
    }
}

impl Case<'_> {
    /// Notes that a caller was refused for want of rights.
    pub(super) fn note_denial(&self, error: &Error) {
        if error.code().status() != 403 {
            return;
        }
        let mut note = self.note(self.kernel.clock.now());
        (note.decision, note.status, note.code) = (Decision::Denied, 403, Some(error.code().as_str()));
        // While this clock disagrees with the database's, nothing is written with a date of it (CK-2).
        let noted = self
            .kernel
            .disagreement()
            .map_or_else(|| self.kernel.write_behind.notes.add(note), Err);
        match noted {
            Ok(true) => self.kernel.notify(&self.actor.organization),
            Ok(false) => {}
            Err(full) => tracing::error!("a denial could not be recorded: {full}"),
        }
    }

    /// Counts a read, or records it in the audit buffer. Returns whether the reader should pause: slower reads now are
    /// better than refused reads once the buffer is full (D12.7).
    pub(super) fn record_read(&self, effects: Effects, result: &Result<Answer>) -> Result<bool> {
        let (meta, write_behind, organization) = (
            self.entry.meta,
            &self.kernel.write_behind,
            &self.actor.organization,
        );
        let missed = result.as_ref().err().is_some_and(|e| e.code() == Code::NotFound);
        if !meta.sensitive && !missed {
            write_behind.count_read(organization, &self.actor.id, meta.id);
            return Ok(false);
        }
        // A read is refused when its audit entry would get a false date (CK-2).
        if let Some(error) = self.kernel.disagreement() {
            return Err(error);
        }
        let mut note = self.note(self.now);
        note.target = effects.target;
        // The details of the question that the operation wants in its audit entry (D6.10).
        note.changes = effects.changes;
        match result {
            Ok(answer) => note.status = answer.status,
            Err(error) => {
                note.status = error.code().status();
                note.code = Some(error.code().as_str());
                note.decision = Decision::of_status(note.status);
            }
        }
        if write_behind.notes.add(note)? {
            self.kernel.notify(organization);
        }
        Ok(write_behind.notes.is_pressed(organization))
    }

    fn note(&self, time: Timestamp) -> AuditRecord {
        let mut note = AuditRecord::new(self.actor.organization.clone(), time, self.entry.meta.id);
        note.actor = Some(self.actor.clone());
        note.origin = Some(self.request.origin.clone());
        note
    }
}
