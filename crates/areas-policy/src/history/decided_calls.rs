//! Calls that somebody asked a decision about: what telemetry tells of such a call again is no second event.
//!
//! ```text
//!   hook       asks ── decision, and a row of this table, in one commit ── the tool runs
//!   telemetry                                                                 └─ tells of the call ── same call? nothing is recorded
//! ```
//!
//! INVARIANT HS-16: a call that was decided about and that telemetry tells of afterwards is one event, the decision's. Telemetry
//! changes no decision and hides none, and what it says is left out only where the decision's event says all of it: the same
//! occasion, session and call id of the same organization, the same user, no attribute that the decision's event lacks or has
//! otherwise, and an instant that is not before the question.
//!
//! Whoever asked and tells in one person (one principal) may leave out what its telemetry does not show, and may name a shell's
//! command otherwise than its hook does (Codex: `exec_command` with `cmd`, and `Bash` with `command`). From another principal
//! everything has to be there, and a user: else who may ask could make what others tell of disappear.
//!
//! Absent on purpose: taking back what telemetry told before the decision was asked for. Events of the history are never changed, and
//! what is decided is recorded always; so that order leaves two events, of which the one with the verdict is the hook's. A tool starts
//! after its hook was answered, so the beginning of a call never comes in that order.

use super::model::NewEvent;
use provost_backtest::record::{DECISIONS, OwnedRecord};
use provost_kernel::auth::OrganizationId;
use provost_kernel::context::PRUNED_ROWS;
use provost_kernel::db::Tx;
use provost_kernel::{Kernel, OperationContext, Result, SureTime, Timestamp, params};
use provost_policy::{Field, exact_text, sha256_hex};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

provost_kernel::statements! {
    /// Notes a call that was decided about; one that a lost commit left is there already.
    NOTE = "INSERT INTO history_calls (organization_id, session_key, call_key, event_id, principal_id, said, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (organization_id, session_key, call_key, event_id) DO NOTHING";
    /// Says whether anything of a session was decided about.
    HAS_SESSION = "SELECT 1 FROM history_calls WHERE organization_id = ?1 AND session_key = ?2 LIMIT 1";
    /// What was decided about a call.
    OF_CALL = "SELECT principal_id, said, created_at FROM history_calls WHERE organization_id = ?1 AND session_key = ?2 AND call_key = ?3 ORDER BY event_id LIMIT 8";
    /// Forgets old calls.
    FORGET = "DELETE FROM history_calls WHERE organization_id = ?1 AND (session_key, call_key, event_id) IN (SELECT c.session_key, c.call_key, c.event_id FROM history_calls c WHERE c.organization_id = ?1 AND c.created_at < ?2 ORDER BY c.created_at, c.session_key, c.call_key, c.event_id LIMIT ?3)";
}

/// How far the clock of who tells may be behind: what began earlier ran before anybody asked, and is an event. Units: milliseconds.
const SKEW_MS: i64 = 10_000;
/// What a shell of Codex is called by its telemetry, and by its hook.
const CODEX_SHELL: [&str; 2] = ["exec_command", "Bash"];
/// What the input of that shell may hold: the command, and how much of its output is waited for.
const CODEX_MEMBERS: [&str; 3] = ["cmd", "yield_time_ms", "max_output_tokens"];
/// How long a call is remembered: exporters send again for minutes. Units: seconds.
const KEPT_SECS: i64 = 86_400;

/// By what a call is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct CallKey {
    session: String,
    call: String,
}

impl CallKey {
    /// Returns that of an event; none where it does not say of which call of which session it is.
    fn of(event: &OwnedRecord) -> Option<Self> {
        let (session, call) = (event.session.as_ref()?, event.call_id.as_ref()?);
        Some(Self {
            session: digest(&json!(session)),
            call: digest(&json!([event.occasion.word(), call])),
        })
    }
}

/// A call that was decided about.
#[derive(Debug)]
pub(super) struct DecidedCall {
    key: CallKey,
    event_id: String,
    principal: String,
    said: String,
}

/// Returns the calls among events that were decided here.
pub(super) fn among(events: &[NewEvent]) -> Vec<DecidedCall> {
    let call = |event: &NewEvent| {
        let record = &event.record;
        let is_decided = record.source.as_deref() == Some(DECISIONS) && record.decision.is_some();
        let key = CallKey::of(record).filter(|_| is_decided)?;
        Some(DecidedCall {
            key,
            event_id: event.id.clone(),
            principal: record.principal.clone()?,
            said: json!(said(record)).to_string(),
        })
    };
    events.iter().filter_map(call).collect()
}

/// Notes these calls, in the unit that records their events.
pub(super) fn note(ctx: &mut OperationContext<'_>, calls: &[DecidedCall]) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    calls.iter().try_for_each(|one| {
        let DecidedCall {
            key,
            event_id,
            principal,
            said,
        } = one;
        let key = (key.session.as_str(), key.call.as_str());
        let note = params![
            org,
            key.0,
            key.1,
            event_id.as_str(),
            principal.as_str(),
            said.as_str(),
            now
        ];
        ctx.queue(&NOTE, note)
    })
}

/// Forgets calls of yesterday.
pub(super) fn forget(ctx: &mut OperationContext<'_>, now: SureTime) -> Result<()> {
    let (org, before) = (ctx.org(), now.earlier_by(KEPT_SECS).instant());
    ctx.prune(&FORGET, params![org, before, PRUNED_ROWS])
}

/// Returns what telemetry tells, without what the events of decisions say already (HS-16).
///
/// Cost: one look-up for each session, and one for each call of those in which something was decided.
pub async fn undecided(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    events: Vec<NewEvent>,
) -> Result<Vec<NewEvent>> {
    let keys: Vec<Option<CallKey>> = events.iter().map(|event| CallKey::of(&event.record)).collect();
    let wanted: BTreeSet<CallKey> = keys.iter().flatten().cloned().collect();
    if wanted.is_empty() {
        return Ok(events);
    }
    // What this process answered before it was written.
    super::recorder(kernel).settle(organization).await;
    let org = organization.clone();
    let known = kernel
        .read_system(move |tx| known(tx, org.as_str(), &wanted))
        .await?;
    let is_told = |key: Option<&CallKey>, event: &OwnedRecord| {
        let calls = key.and_then(|key| known.get(key));
        calls.is_some_and(|calls| calls.iter().any(|call| call.says(event)))
    };
    let pairs = events.into_iter().zip(&keys);
    let new = pairs.filter(|(event, key)| !is_told(key.as_ref(), &event.record));
    Ok(new.map(|(event, _)| event).collect())
}

/// What the event of a decision says: digests of its attributes by their names.
struct CallDigests {
    principal: String,
    /// When that was written, which is after it was asked.
    at: Timestamp,
    attributes: BTreeMap<String, String>,
}

fn known(
    tx: &mut Tx<'_>,
    org: &str,
    wanted: &BTreeSet<CallKey>,
) -> Result<HashMap<CallKey, Vec<CallDigests>>> {
    let mut known = HashMap::new();
    let mut session: Option<(&str, bool)> = None;
    for key in wanted {
        let has_calls = match session {
            Some((name, has_calls)) if name == key.session => has_calls,
            _ => tx
                .query_opt(&HAS_SESSION, params![org, key.session.as_str()], |row| {
                    row.get::<i64>(0)
                })?
                .is_some(),
        };
        session = Some((&key.session, has_calls));
        if !has_calls {
            continue;
        }
        let of_call = params![org, key.session.as_str(), key.call.as_str()];
        let calls = tx.query(&OF_CALL, of_call, |row| {
            let said = serde_json::from_str(row.str(1)?).map_err(provost_kernel::Error::internal)?;
            Ok(CallDigests {
                principal: row.get(0)?,
                at: row.get(2)?,
                attributes: said,
            })
        })?;
        known.insert(key.clone(), calls);
    }
    Ok(known)
}

impl CallDigests {
    /// Says whether everything that an event tells stands in this one.
    fn says(&self, told: &OwnedRecord) -> bool {
        if told.at_ms.saturating_add(SKEW_MS) < self.at.as_ms() {
            return false;
        }
        let attributes = told.flat();
        let is_own = told.principal.as_deref() == Some(self.principal.as_str());
        // Of whom nobody can say who it is, nobody can say that it is the same.
        let tells_user = attributes.contains_key(Field::USER.name());
        if told.missing().contains(&Field::USER) || !(tells_user || is_own) {
            return false;
        }
        if !is_own && !self.attributes.keys().all(|name| attributes.contains_key(name)) {
            return false;
        }
        let is_renamed = is_own && self.is_same_shell(&attributes);
        attributes.iter().all(|(name, value)| {
            let own = self.attributes.get(name);
            match name.as_str() {
                // The directory's, at the instant at which each came.
                name if name == Field::GROUPS.name() => true,
                name if is_renamed && (name == Field::TOOL.name() || name.starts_with(INPUT)) => true,
                // Each writes a result in a form of its own: that of the hook was judged.
                RESULT if is_own && own.is_some() => true,
                _ => own.is_some_and(|own| *own == digest(value)),
            }
        })
    }

    /// Says whether Codex tells in its telemetry's words of a shell about which its hook asked in its own, and nothing more.
    fn is_same_shell(&self, told: &Map<String, Value>) -> bool {
        let [telemetry, hook] = CODEX_SHELL.map(Value::from);
        let is_shell = told.get(Field::TOOL.name()) == Some(&telemetry)
            && self.attributes.get(Field::TOOL.name()) == Some(&digest(&hook));
        let input = told.get(INPUT).and_then(Value::as_object);
        let is_plain =
            input.is_some_and(|input| input.keys().all(|name| CODEX_MEMBERS.contains(&name.as_str())));
        let command = told.get(Field::TOOL_COMMAND.name());
        let own = self.attributes.get(Field::TOOL_COMMAND.name());
        is_shell && is_plain && command.is_some_and(|command| own == Some(&digest(command)))
    }
}

const INPUT: &str = "tool.input";
const RESULT: &str = "tool.result";

/// Returns digests of what an event says, but for groups.
fn said(event: &OwnedRecord) -> BTreeMap<String, String> {
    let mut attributes = event.flat();
    attributes.remove(Field::GROUPS.name());
    let input = attributes.get(INPUT).and_then(Value::as_object);
    let command = input.and_then(|input| input.get("command")).cloned();
    if let Some(command @ Value::String(_)) = command {
        attributes.entry(Field::TOOL_COMMAND.name()).or_insert(command);
    }
    attributes
        .into_iter()
        .map(|(name, value)| (name, digest(&value)))
        .collect()
}

/// Returns a digest of a value. A text that is exactly a document is compared as that document, however it is written.
fn digest(value: &Value) -> String {
    let document = value.as_str().and_then(provost_policy::exact_document);
    let text = exact_text(document.as_ref().unwrap_or(value));
    let mut digest = sha256_hex(text.as_bytes());
    digest.truncate(32);
    digest
}
