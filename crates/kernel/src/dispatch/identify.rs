//! Finds out who sent a request, before anything looks at what it asks for: step 3 of D1.4, for HTTP and MCP alike.

use super::record::{failed, known_but_dead, misdated, note_use, refuse_unauthenticated};
use super::{Case, ClientArrival, First, Outcome, Request, Step};
use crate::auth::{Actor, OrganizationId, Origin};
use crate::credential::{
    self, Admission, BearerToken, Credential, EntryPoint, Reach, TokenCheck, Use, Verifier,
};
use crate::db::{Conn, Tx};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::threads::SchedulePoint;
use crate::time::Timestamp;
use http::{HeaderMap, Method};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request as its head shows it, before its caller is authenticated.
#[derive(Clone, Debug)]
pub struct UnauthenticatedRequest {
    /// The headers.
    pub headers: HeaderMap,
    /// Where it came from.
    pub origin: Origin,
    /// By which door it comes.
    pub entry_point: EntryPoint,
    /// The method of the HTTP request, and its raw path without query.
    pub line: (Method, String),
}

/// A caller whose token was recognized.
#[derive(Debug)]
pub struct AuthenticatedCaller {
    /// The caller, as of this instant; every operation judges them anew.
    pub actor: Actor,
    /// The recognized token, for the operations of this HTTP request and of no other.
    pub presented: Arc<BearerToken>,
    /// The use of the token, where it is the first one and nobody noted it yet.
    pub(super) unnoted: Option<First>,
}

/// The result of looking a token up in one snapshot.
pub(super) enum TokenLookup {
    Known(Box<(Actor, Credential)>),
    First(OrganizationId, First),
    Refused(Outcome),
}

/// The call that was begun in the snapshot in which its caller was found, if what it asks for was known already.
type EarlyStep = Option<(Request, Step)>;

/// The result of authenticating a request on a reader thread.
enum LookupOutcome {
    Known(Box<(Actor, Option<First>, EarlyStep)>),
    First(OrganizationId, First),
    Refused(Outcome),
}

/// Returns who sent a request, and opens a session for them if they need one. If `want` already knows which operation is
/// called, that call is answered in the same snapshot, so that the request is authenticated once and waits for a reader
/// once. `want` may be called more than once.
///
/// Errors: the outcome that answers the request, a 401 as a rule. The outcome of what was wanted stands beside the
/// identity. A token that [`recognize`] returned for this request is given as `presented`: a proof of possession serves once.
pub async fn identify_and_call<F>(
    kernel: &Arc<Kernel>,
    unauthenticated: UnauthenticatedRequest,
    presented: Option<Arc<BearerToken>>,
    want: F,
) -> std::result::Result<(AuthenticatedCaller, Option<Outcome>), Outcome>
where
    F: Fn(&Actor, &Arc<BearerToken>) -> Option<Request> + Send + Sync + 'static,
{
    let presented = match presented {
        Some(presented) => presented,
        None => present(kernel, &unauthenticated).await?,
    };
    let (identity, begun) = look_up(kernel, unauthenticated, presented, None, Arc::new(want)).await?;
    let Some((request, step)) = begun else {
        return Ok((identity, None));
    };
    let outcome = match super::conclude(kernel, &request, step).await {
        Ok(outcome) => outcome,
        Err(unsettled) => match super::resume(kernel, &request.origin, unsettled, &mut None).await {
            Ok(()) => super::dispatch(kernel, request).await,
            Err(outcome) => outcome,
        },
    };
    Ok((identity, Some(outcome)))
}

/// Returns who calls an operation of the registry. Some operations also accept tokens that are bound to one item.
pub(super) async fn identify_for(
    kernel: &Arc<Kernel>,
    unauthenticated: UnauthenticatedRequest,
    operation_index: Option<usize>,
) -> std::result::Result<AuthenticatedCaller, Outcome> {
    let nothing = |_: &Actor, _: &Arc<BearerToken>| None;
    let presented = present(kernel, &unauthenticated).await?;
    let (identity, _) = look_up(
        kernel,
        unauthenticated,
        presented,
        operation_index,
        Arc::new(nothing),
    )
    .await?;
    Ok(identity)
}

/// Authenticates a request from its head, before any of its body is read, and returns the token for the request itself.
/// Nothing is written: a missing session is opened later, when the whole request is known.
///
/// Errors: the outcome that answers the request, a 401 as a rule.
pub async fn recognize(
    kernel: &Arc<Kernel>,
    unauthenticated: &UnauthenticatedRequest,
) -> std::result::Result<Arc<BearerToken>, Outcome> {
    let presented = present(kernel, unauthenticated).await?;
    if !presented.scheme().reach().includes(None) {
        return Err(invalid(kernel, &unauthenticated.origin));
    }
    let (reply, answer) = oneshot::channel();
    let (shared, origin, token) = (kernel.clone(), unauthenticated.origin.clone(), presented.clone());
    kernel.settings.threads.pause(SchedulePoint::Read).await;
    let submitted = kernel.submit_read(move |conn| {
        let look = || conn.read(|tx| glance(&shared, tx, &origin, &token));
        let looked = catch_unwind(AssertUnwindSafe(look));
        let looked = looked.unwrap_or_else(|_| Err(Error::internal("a reader panicked")));
        let _ = reply.send(looked.unwrap_or_else(|error| Err(Outcome::refused(error, None))));
    });
    submitted.map_err(|error| Outcome::refused(error, None))?;
    let stopping = |_| {
        Err(Outcome::refused(
            Error::unavailable("the server is shutting down"),
            None,
        ))
    };
    answer.await.unwrap_or_else(stopping).map(|()| presented)
}

/// Authenticates a token, as far as that does not depend on what the request asks for.
fn glance(
    kernel: &Arc<Kernel>,
    tx: &mut Tx<'_>,
    origin: &Origin,
    presented: &BearerToken,
) -> Result<std::result::Result<(), Outcome>> {
    let credential = match find(kernel, tx, origin, presented)? {
        Ok(credential) => credential,
        Err(TokenLookup::Refused(outcome)) => return Ok(Err(outcome)),
        // Its issuer vouches for the token; its audience is checked when the session is opened.
        Err(_) => return Ok(Ok(())),
    };
    let judged = credential.authenticate(kernel.latest());
    let judged = judged.and_then(|actor| {
        if actor.replay_only {
            return Err(credential::only_replays());
        }
        Ok(())
    });
    Ok(match judged {
        Ok(()) => {
            origin.arrival.recognized();
            Ok(())
        }
        Err(error) => Err(known_but_dead(
            kernel,
            origin,
            presented.scheme(),
            &credential,
            error,
        )),
    })
}

fn invalid(kernel: &Kernel, origin: &Origin) -> Outcome {
    refuse_unauthenticated(kernel, origin, "invalid", credential::invalid_token())
}

async fn look_up<F>(
    kernel: &Arc<Kernel>,
    unauthenticated: UnauthenticatedRequest,
    presented: Arc<BearerToken>,
    operation_index: Option<usize>,
    want: Arc<F>,
) -> std::result::Result<(AuthenticatedCaller, EarlyStep), Outcome>
where
    F: Fn(&Actor, &Arc<BearerToken>) -> Option<Request> + Send + Sync + 'static,
{
    let asked_for = operation_index.map(|operation_index| kernel.registry.entries()[operation_index].meta);
    if !presented.scheme().reach().includes(asked_for) {
        return Err(invalid(kernel, &unauthenticated.origin));
    }
    // A token that rotated itself may still fetch the answer that it lost; `dispatch` decides whether this call does so (D5.5).
    let takes_replays = asked_for.is_some_and(|meta| meta.reveals_secret && !meta.reads_late());
    let unauthenticated = Arc::new(unauthenticated);
    for _ in 0..3 {
        let (reply, answer) = oneshot::channel();
        let (shared, asked, token) = (kernel.clone(), unauthenticated.clone(), presented.clone());
        let want = want.clone();
        kernel.settings.threads.pause(SchedulePoint::Read).await;
        let submitted = kernel.submit_read(move |conn| {
            let found = catch_unwind(AssertUnwindSafe(|| {
                look(&shared, conn, &asked, &token, takes_replays, &*want)
            }));
            let panicked =
                |_| LookupOutcome::Refused(Outcome::refused(Error::internal("a reader panicked"), None));
            let _ = reply.send(found.unwrap_or_else(panicked));
        });
        submitted.map_err(|error| Outcome::refused(error, None))?;
        match answer.await {
            Ok(LookupOutcome::Known(known)) => {
                let (actor, unnoted, begun) = *known;
                let caller = AuthenticatedCaller {
                    actor,
                    presented,
                    unnoted,
                };
                return Ok((caller, begun));
            }
            Ok(LookupOutcome::First(organization, first)) => {
                super::settle(kernel, &unauthenticated.origin, organization, first).await?;
            }
            Ok(LookupOutcome::Refused(outcome)) => return Err(outcome),
            Err(_) => break,
        }
    }
    Err(Outcome::refused(
        Error::unavailable("the server is busy; try again"),
        None,
    ))
}

/// Recognizes the token of a request.
///
/// Errors: the outcome that answers the request.
pub(super) async fn present(
    kernel: &Arc<Kernel>,
    unauthenticated: &UnauthenticatedRequest,
) -> std::result::Result<Arc<BearerToken>, Outcome> {
    let verifier = kernel.extra::<Arc<dyn Verifier>>().map(AsRef::as_ref);
    let ask = TokenCheck {
        entry_point: &unauthenticated.entry_point,
        method: &unauthenticated.line.0,
        path: &unauthenticated.line.1,
        headers: &unauthenticated.headers,
        origin: &unauthenticated.origin,
    };
    let presented = BearerToken::recognize(&kernel.schemes, verifier, ask).await;
    presented.map(Arc::new).map_err(|error| {
        if error.code().status() != 401 {
            return Outcome::refused(error, None);
        }
        if let Some(outcome) = misdated(kernel, &unauthenticated.origin, &error) {
            return outcome;
        }
        let is_there = unauthenticated.headers.contains_key(http::header::AUTHORIZATION);
        refuse_unauthenticated(
            kernel,
            &unauthenticated.origin,
            if is_there { "invalid" } else { "absent" },
            error,
        )
    })
}

fn look(
    kernel: &Arc<Kernel>,
    conn: &mut Conn,
    unauthenticated: &UnauthenticatedRequest,
    presented: &Arc<BearerToken>,
    takes_replays: bool,
    want: &impl Fn(&Actor, &Arc<BearerToken>) -> Option<Request>,
) -> LookupOutcome {
    let now = kernel.clock.now();
    let found = conn.read(|tx| {
        let found = in_snapshot(
            kernel,
            tx,
            &unauthenticated.origin,
            &unauthenticated.entry_point,
            presented,
            now,
        )?;
        let (actor, credential) = match found {
            TokenLookup::Known(known) => *known,
            TokenLookup::First(organization, first) => return Ok(LookupOutcome::First(organization, first)),
            TokenLookup::Refused(outcome) => return Ok(LookupOutcome::Refused(outcome)),
        };
        let scheme = presented.scheme();
        let note_use = || {
            let used = Use::of(&credential, &unauthenticated.origin, now);
            note_use(kernel, scheme, credential.last_used_at, used);
        };
        if actor.replay_only && !takes_replays {
            note_use();
            let error = credential::only_replays();
            let dead = known_but_dead(kernel, &unauthenticated.origin, scheme, &credential, error);
            return Ok(LookupOutcome::Refused(dead));
        }
        let Some(request) = want(&actor, presented) else {
            let mut unnoted = None;
            if !actor.replay_only {
                note_use();
                unnoted = First::use_of(presented, &credential);
            }
            return Ok(LookupOutcome::Known(Box::new((actor, unnoted, None))));
        };
        let case = Case::of(kernel, &request, actor.clone(), now);
        let step = case.proceed(tx, presented, &credential)?;
        Ok(LookupOutcome::Known(Box::new((
            actor,
            None,
            Some((request, step)),
        ))))
    });
    found.unwrap_or_else(|error| LookupOutcome::Refused(Outcome::refused(error, None)))
}

/// Finds the row of a token, and checks whether the token may be used.
pub(super) fn in_snapshot(
    kernel: &Arc<Kernel>,
    tx: &mut Tx<'_>,
    origin: &Origin,
    entry_point: &EntryPoint,
    presented: &BearerToken,
    now: Timestamp,
) -> Result<TokenLookup> {
    let credential = match find(kernel, tx, origin, presented)? {
        Ok(credential) => credential,
        Err(found) => return Ok(found),
    };
    let dead = |error| {
        TokenLookup::Refused(known_but_dead(
            kernel,
            origin,
            presented.scheme(),
            &credential,
            error,
        ))
    };
    let actor = match credential.authenticate(kernel.clockwatch.latest(now)) {
        Ok(actor) => actor,
        Err(error) => return Ok(dead(error)),
    };
    if !actor.replay_only {
        origin.arrival.recognized();
    }
    let EntryPoint::Mcp(client) = entry_point else {
        return Ok(TokenLookup::Known(Box::new((actor, credential))));
    };
    if presented.scheme().reach() == Reach::Principal && !actor.replay_only {
        let (sessions, scheme) = kernel.schemes.sessions()?;
        match sessions.admit(tx, &credential, client)? {
            Admission::Refused => {
                let error = credential::cut_at_mcp();
                kernel.write_behind.count_known(
                    &credential.organization,
                    &credential.token_id,
                    error.code().as_str(),
                );
                return Ok(TokenLookup::Refused(failed(kernel, origin, error)));
            }
            Admission::New => {
                let joining = ClientArrival {
                    caller: presented.caller.clone(),
                    token_id: credential.token_id,
                    client: client.clone(),
                };
                return Ok(TokenLookup::First(
                    actor.organization,
                    First::Join(Box::new(joining)),
                ));
            }
            Admission::Known {
                session_id,
                last_used_at,
            } => {
                let used = Use {
                    token_id: session_id,
                    ..Use::of(&credential, origin, now)
                };
                note_use(kernel, scheme, Some(last_used_at), used);
            }
        }
    }
    Ok(TokenLookup::Known(Box::new((actor, credential))))
}

/// Finds the row of a token, or what must be written before it is there.
fn find(
    kernel: &Arc<Kernel>,
    tx: &mut Tx<'_>,
    origin: &Origin,
    presented: &BearerToken,
) -> Result<std::result::Result<Credential, TokenLookup>> {
    let caller = &presented.caller;
    let found = caller.scheme.find(tx, &caller.lookup)?;
    if let (None, Some(verified)) = (&found, presented.verified())
        && verified.opening.is_some()
    {
        let first = First::Open(verified.clone());
        return Ok(Err(TokenLookup::First(verified.organization.clone(), first)));
    }
    let found = match found {
        Some(credential) if presented.matches(&credential, &kernel.keys)? => Some(credential),
        _ => None,
    };
    if let (Some(credential), Some(verified)) = (&found, presented.verified())
        && presented.outgrows(credential)
        && caller
            .bound(credential.clone())
            .is_ok_and(|bound| bound.authenticate(kernel.latest()).is_ok())
    {
        let first = First::Open(verified.clone());
        return Ok(Err(TokenLookup::First(verified.organization.clone(), first)));
    }
    let found = found.and_then(|credential| caller.bound(credential).ok());
    // INVARIANT CR-5: only a living token of that key makes anybody remember its proof.
    if let Some(credential) = &found
        && credential.authenticate(kernel.latest()).is_ok()
        && let Err(error) = presented.spend_proof(&credential.organization)
    {
        let refused = match error.code().status() {
            401 => refuse_unauthenticated(kernel, origin, "invalid", error),
            _ => Outcome::refused(error, None),
        };
        return Ok(Err(TokenLookup::Refused(refused)));
    }
    Ok(found.ok_or_else(|| {
        TokenLookup::Refused(refuse_unauthenticated(
            kernel,
            origin,
            "invalid",
            credential::invalid_token(),
        ))
    }))
}
