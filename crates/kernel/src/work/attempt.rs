//! One transaction over a batch of units.
//!
//! Keeps AD-1, ID-1, KY-1, WK-4, WT-1.

use super::{Call, Run, Unit};
use crate::audit::{self, AuditRecord, Decision, Head};
use crate::auth::{Actor, OrganizationId};
use crate::context::OperationContext;
use crate::credential::{self, Admission, Credential, EntryPoint, Reach, Scheme};
use crate::db::{self, Conn, Param, Rows};
use crate::effects::Effects;
use crate::ends::{self, ChainEnd, CommitRevocations};
use crate::entropy::UnitRng;
use crate::error::{Class, Code, Error, Result};
use crate::fence;
use crate::idempotency::StoredAnswer;
use crate::kernel::Kernel;
use crate::keys::{self, MacPurpose};
use crate::operation::{Answer, authorize, authorize_performance};
use crate::proofs;
use crate::second_person;
use crate::threads::TransactionPhase;
use crate::time::Timestamp;
use crate::witness::ChainPosition;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of one unit.
pub(super) struct Done {
    pub result: Result<Answer>,
    /// It enqueued a job that can run now.
    pub has_due_job: bool,
    /// The workers that have something to do now.
    pub wakes: Vec<&'static str>,
}

/// The unit's place in the epilogue.
struct Outcome {
    result: Result<Answer>,
    actor: Option<Actor>,
    effects: Effects,
    replay_of: Option<String>,
}

type KeyPlace = (String, String, [u8; 32]);

struct Batch<'a> {
    kernel: &'a Kernel,
    units: &'a [Unit],
    heads: BTreeMap<OrganizationId, Head>,
    credentials: HashMap<(Scheme, String), Option<Credential>>,
    stored: HashMap<KeyPlace, StoredAnswer>,
    calls: Vec<db::Call<'static>>,
    /// What the units of each chain did, for the lines of what takes away.
    acts: BTreeMap<OrganizationId, BTreeSet<&'static str>>,
    /// The chains that have a new entry.
    longer: BTreeSet<OrganizationId>,
    taken: Option<CommitRevocations>,
}

/// Runs the units and writes the notes in one transaction, durable when this returns.
///
/// Errors: those that make the whole transaction unusable; nothing has happened then, unless the class is
/// `Lost` (the COMMIT may have taken place; the units' keys make a second run harmless).
pub(super) fn run(
    kernel: &Kernel,
    conn: &mut Conn,
    units: &[Unit],
    notes: &[AuditRecord],
) -> Result<Vec<Done>> {
    kernel.settings.threads.inject(TransactionPhase::Begin)?;
    let mut batch = prologue(kernel, conn, units, notes)?;
    let mut done = Vec::with_capacity(units.len());
    for place in 0..units.len() {
        let mut outcome = batch.run_unit(conn, place)?;
        if outcome.result.is_ok() {
            batch.refresh(conn, place, &outcome.effects)?;
        }
        let is_due = |job: &crate::job::NewJob| job.run_at <= kernel.clock.now();
        let has_due_job = outcome.result.is_ok() && outcome.effects.jobs.iter().any(is_due);
        let wakes = std::mem::take(&mut outcome.effects.wakes);
        let result = batch.record(place, outcome)?;
        done.push(Done {
            result,
            has_due_job,
            wakes,
        });
    }
    for note in notes {
        batch.append(note)?;
    }
    batch.commit(conn)?;
    Ok(done)
}

fn prologue<'a>(
    kernel: &'a Kernel,
    conn: &mut Conn,
    units: &'a [Unit],
    notes: &[AuditRecord],
) -> Result<Batch<'a>> {
    let mut organizations: Vec<&OrganizationId> = units
        .iter()
        .map(|u| &u.organization)
        .chain(notes.iter().map(|n| &n.organization))
        .collect();
    organizations.sort_unstable();
    organizations.dedup();
    let mut lookups: Vec<(Scheme, &str)> = units
        .iter()
        .filter_map(|u| u.call().map(|c| (c.caller.scheme, c.caller.lookup.as_str())))
        .collect();
    lookups.sort_unstable();
    lookups.dedup();
    let mut calls: Vec<db::Call<'_>> = organizations
        .iter()
        .map(|o| db::Call {
            statement: &audit::HEAD,
            params: vec![Param::from(o.as_str())],
        })
        .collect();
    // A kind of token whose row one statement cannot find is accepted by reads only, so a writer never looks one up.
    lookups.retain(|(scheme, _)| scheme.lookup().is_some());
    calls.extend(lookups.iter().filter_map(|(scheme, lookup)| {
        let (statement, params) = (scheme.lookup()?, vec![Param::from(*lookup)]);
        Some(db::Call { statement, params })
    }));
    let keyed: Vec<(&Unit, &Call)> = units.iter().filter_map(|u| Some((u, u.call()?))).collect();
    calls.extend(
        keyed
            .iter()
            .map(|(u, c)| c.key.find(u.organization.as_str(), &c.principal_id, c.meta.id)),
    );

    let known: Vec<Option<ChainPosition>> = organizations.iter().map(|o| kernel.witness.known(o)).collect();
    let mut rows = conn.begin(&calls)?.into_iter();
    let mut heads = BTreeMap::new();
    for (organization, known) in organizations.into_iter().zip(known) {
        let head = head(kernel, conn, organization, rows.next())?;
        kernel.witness.compare(organization, known, head.place())?;
        kernel.witness.saw(organization, head.place());
        heads.insert(organization.clone(), head);
    }
    let mut credentials = HashMap::new();
    for (scheme, lookup) in lookups {
        let read = |r: Rows| r.first().map(|row| scheme.read(&row));
        let found = rows.next().and_then(read).transpose()?;
        credentials.insert((scheme, lookup.to_owned()), found);
    }
    let mut stored = HashMap::new();
    for (_, call) in keyed {
        if let Some(record) = rows
            .next()
            .and_then(|r| r.first().map(|row| StoredAnswer::read(&row)))
            .transpose()?
        {
            stored.insert(call.key_place(), record);
        }
    }
    Ok(Batch {
        kernel,
        units,
        heads,
        credentials,
        stored,
        calls: Vec::new(),
        acts: BTreeMap::new(),
        longer: BTreeSet::new(),
        taken: None,
    })
}

fn head(kernel: &Kernel, conn: &mut Conn, organization: &OrganizationId, rows: Option<Rows>) -> Result<Head> {
    let read = rows
        .and_then(|r| r.first().map(|row| Head::read(organization, &row)))
        .transpose()?;
    let head = read.unwrap_or_else(|| Head::empty(organization.clone()));
    if head.is_authentic(&kernel.keys) {
        return Ok(head);
    }
    // Perhaps the head was written under a newer audit key, which this process has not read: then nothing is wrong with it.
    let labels = conn.tx().query(&audit::KEYS, &[], |row| row.get::<String>(0))?;
    if let Some(label) = labels.iter().find(|label| !kernel.keys.has(label)) {
        return Err(keys::missing(label));
    }
    // Asking for the key may have made the process read it just now.
    if head.is_authentic(&kernel.keys) {
        return Ok(head);
    }
    Err(Error::new(
        Code::AuditUnavailable,
        "the audit log was changed from outside and takes no entries",
    )
    .class(Class::Broken)
    .caused_by(format!(
        "the head of the chain {organization} does not carry this installation's MAC"
    )))
}

impl Unit {
    fn name(&self) -> &str {
        match &self.run {
            Run::Operation(call) => call.meta.id,
            Run::System { action, .. } => action.unwrap_or("housekeeping"),
        }
    }

    fn call(&self) -> Option<&Call> {
        match &self.run {
            Run::Operation(call) => Some(call),
            Run::System { .. } => None,
        }
    }
}

impl Call {
    fn key_place(&self) -> KeyPlace {
        (self.principal_id.clone(), self.meta.id.to_owned(), self.key.mac)
    }
}

impl Batch<'_> {
    fn run_unit(&mut self, conn: &mut Conn, place: usize) -> Result<Outcome> {
        let unit = &self.units[place];
        match &unit.run {
            Run::System { run, .. } => {
                let actor = Actor::system(unit.organization.clone());
                let blank = |_: &mut OperationContext<'_>| {
                    Ok(Answer {
                        status: 200,
                        headers: Vec::new(),
                        body: bytes::Bytes::new(),
                        media_type: "application/json",
                        replayed: false,
                    })
                };
                let (result, effects) =
                    self.in_savepoint(conn, unit, &actor, |ctx| run(ctx).and_then(|()| blank(ctx)))?;
                Ok(Outcome {
                    result,
                    actor: Some(actor),
                    effects,
                    replay_of: None,
                })
            }
            Run::Operation(call) => self.run_call(conn, unit, call),
        }
    }

    fn run_call(&mut self, conn: &mut Conn, unit: &Unit, call: &Call) -> Result<Outcome> {
        let refused = |error, actor| Outcome {
            result: Err(error),
            actor,
            effects: Effects::default(),
            replay_of: None,
        };
        let actor = match self.actor(unit, call) {
            Ok((actor, Ok(()))) => actor,
            Ok((actor, Err(error))) => return Ok(refused(error, Some(actor))),
            Err(error) => return Ok(refused(error, None)),
        };
        if !actor.replay_only && self.is_cut(conn, call)? {
            return Ok(refused(credential::cut_at_mcp(), Some(actor)));
        }
        if let Some(stored) = self.stored.get(&call.key_place()).cloned() {
            let (result, effects) = self.in_savepoint(conn, unit, &actor, |ctx| {
                ctx.effects.target = stored.target_id.clone().map(|id| (&fence::RECORD, id));
                // Who performed it by a yes gets the answer again by the same measure.
                if call
                    .second_person
                    .as_ref()
                    .is_some_and(second_person::Asked::names_approval)
                {
                    ctx.act_by_two();
                }
                call.bound.recheck(ctx)?;
                let media_types = [call.meta.produces];
                stored.replay(
                    &ctx.services().keys,
                    ctx.actor(),
                    call.meta.id,
                    &call.key,
                    self.kernel.latest().max(unit.now),
                    &media_types,
                )
            })?;
            let mut effects = effects;
            effects.target = stored.target_id.clone().map(|id| (&fence::RECORD, id));
            // A token that only fetches its lost answer is a revoked one whenever it does not get it (D5.5).
            let result = match result {
                Err(error) if actor.replay_only && error.is_refusal() => Err(credential::only_replays()),
                result => result,
            };
            let replay_of = result.is_ok().then(|| stored.audit_id.clone());
            return Ok(Outcome {
                result,
                actor: Some(actor),
                effects,
                replay_of,
            });
        }
        if actor.replay_only {
            return Ok(refused(credential::only_replays(), Some(actor)));
        }
        let (bound, second_person) = ((&*call.bound, &call.path), call.second_person.as_ref());
        if second_person.is_some_and(second_person::Asked::is_asking) {
            // Refused in any case, so that nothing of it stays.
            let would_pass = Cell::new(false);
            let (result, effects) = self.in_savepoint(conn, unit, &actor, |ctx| {
                second_person::rehearse(ctx, call.meta, bound, second_person)?;
                would_pass.set(true);
                Err(Error::new(Code::ApprovalRequired, "rehearsed"))
            })?;
            if !would_pass.get() {
                return Ok(Outcome {
                    result,
                    actor: Some(actor),
                    effects,
                    replay_of: None,
                });
            }
        }
        let (result, effects) = self.in_savepoint(conn, unit, &actor, |ctx| {
            second_person::perform(ctx, call.meta, bound, second_person)
        })?;
        Ok(Outcome {
            result,
            actor: Some(actor),
            effects,
            replay_of: None,
        })
    }

    /// Judges the caller again, inside this transaction (WK-4).
    ///
    /// Errors: those of authentication; whether the caller may do this stands beside the actor.
    fn actor(&self, unit: &Unit, call: &Call) -> Result<(Actor, Result<()>)> {
        let place = (call.caller.scheme, call.caller.lookup.clone());
        let credential = self.credentials.get(&place).and_then(Option::as_ref);
        let credential = credential.ok_or_else(credential::invalid_token)?;
        let credential = call.caller.bound(credential.clone())?;
        let actor = credential.authenticate(self.kernel.latest().max(unit.now))?;
        if !actor.is(&unit.organization, &call.principal_id) {
            return Err(credential::invalid_token());
        }
        let allowed =
            authorize(call.meta, &actor, &call.path).and_then(|()| authorize_performance(call.meta, &actor));
        if actor.replay_only && (allowed.is_err() || !call.key.is_unguessable()) {
            return Err(credential::only_replays());
        }
        Ok((actor, allowed))
    }

    /// Whether a session of the caller's token was revoked since its call was let in at the MCP endpoint (WK-4, MS-5).
    fn is_cut(&self, conn: &mut Conn, call: &Call) -> Result<bool> {
        let EntryPoint::Mcp(client) = &call.entry_point else {
            return Ok(false);
        };
        if call.caller.scheme.reach() != Reach::Principal {
            return Ok(false);
        }
        let place = (call.caller.scheme, call.caller.lookup.clone());
        let Some(Some(credential)) = self.credentials.get(&place) else {
            return Ok(false);
        };
        let (sessions, _) = self.kernel.schemes.sessions()?;
        let admission = sessions.admit(&mut conn.tx(), credential, client)?;
        Ok(admission == Admission::Refused)
    }

    /// Renews what the prologue read and this unit changed, for the units behind it: the rights of the
    /// account that it was about, and the replay cells that it erased.
    fn refresh(&mut self, conn: &mut Conn, place: usize, effects: &Effects) -> Result<()> {
        if !effects.erased.is_empty() {
            for stored in self.stored.values_mut() {
                stored.forget_cell_of(&effects.erased);
            }
        }
        let target = effects.target.as_ref().map(|(_, id)| id.as_str());
        // The program's own named acts may change any account, for example all tokens of a family.
        let any = effects.credentials_invalidated
            || matches!(&self.units[place].run, Run::System { action: Some(_), .. });
        let is_stale = |c: &Option<Credential>| {
            let is_meant = |c: &Credential| {
                target.is_some_and(|id| [&c.principal_id, &c.token_id].map(String::as_str).contains(&id))
            };
            any || c.as_ref().is_some_and(is_meant)
        };
        let stale = self.credentials.iter().filter(|(_, c)| is_stale(c));
        let stale: Vec<(Scheme, String)> = stale.map(|(place, _)| place.clone()).collect();
        for place in stale {
            let found = place.0.find(&mut conn.tx(), &place.1)?;
            self.credentials.insert(place, found);
        }
        // In debug builds each unit is checked for a change of rights that it did not announce, so that all tests look for one.
        if cfg!(debug_assertions) {
            self.check_callers(conn, place)?;
        }
        Ok(())
    }

    fn check_callers(&self, conn: &mut Conn, place: usize) -> Result<()> {
        let now = self.kernel.latest();
        for ((scheme, lookup), known) in &self.credentials {
            let found = scheme.find(&mut conn.tx(), lookup)?;
            let [known, found] = [known, &found].map(|one| one.as_ref().map(|one| one.auth_state(now)));
            assert!(
                known == found,
                "INVARIANT WK-4: {} changed what a caller may do and did not say so: {known:?} is {found:?}",
                self.units[place].name(),
            );
        }
        Ok(())
    }

    fn in_savepoint(
        &self,
        conn: &mut Conn,
        unit: &Unit,
        actor: &Actor,
        run: impl Fn(&mut OperationContext<'_>) -> Result<Answer>,
    ) -> Result<(Result<Answer>, Effects)> {
        let by_two =
            matches!(&unit.run, Run::Operation(call) if call.second_person.is_some()).then(|| Actor {
                permission: actor.permission.by_two(),
                ..actor.clone()
            });
        conn.savepoint()?;
        let deadline = self.kernel.clock.monotonic() + self.kernel.settings.unit_deadline;
        let mut ctx =
            OperationContext::new(conn.tx(), self.kernel, actor, unit.now, unit.seed, Some(deadline))
                .by_two(by_two.as_ref());
        if let Run::Operation(call) = &unit.run {
            ctx.origin = Some(&call.origin);
        }
        let result = catch_unwind(AssertUnwindSafe(|| run(&mut ctx)));
        let failed = ctx.tx_failed();
        let effects = std::mem::take(&mut ctx.effects);
        drop(ctx);
        let result = result.unwrap_or_else(|_| Err(Error::internal("the unit panicked")));
        let result = match result {
            Ok(_) if effects.later.is_some() => Err(Error::internal("a unit of work answers at once")),
            result => result,
        };
        match result {
            Ok(answer) if !failed => {
                conn.release()?;
                Ok((Ok(answer), effects))
            }
            Ok(_) => {
                conn.rollback_to()?;
                Ok((
                    Err(Error::internal("the unit went on after a storage error")),
                    Effects::default(),
                ))
            }
            Err(error) if matches!(error.work_class(), Class::Retry | Class::Lost | Class::Broken) => {
                Err(error)
            }
            Err(error) => {
                conn.rollback_to()?;
                // A refused unit keeps its target and the events that are emitted on refusal: its audit entry needs them.
                let kept = Effects {
                    target: effects.target,
                    alarms: effects.alarms,
                    ..Effects::default()
                };
                Ok((Err(error), kept))
            }
        }
    }

    /// Adds what a unit leaves behind to the epilogue; returns its answer with the secret in its place.
    fn record(&mut self, place: usize, outcome: Outcome) -> Result<Result<Answer>> {
        let unit = &self.units[place];
        let (call, action) = match &unit.run {
            Run::Operation(call) => (Some(call), Some(call.meta.id)),
            Run::System { action, .. } => (None, *action),
        };
        let Outcome {
            mut result,
            actor,
            effects,
            replay_of,
        } = outcome;
        // The salt is stored in the open: it must say nothing of what the operation drew, secrets included.
        let mut rng = UnitRng::labelled(unit.seed, "what the unit leaves behind");
        let mut salt = [0_u8; 16];
        rng.fill(&mut salt);
        let mut audit_id = None;
        let action = effects.action.or(action);
        if result.is_ok() {
            let acts = self.acts.entry(unit.organization.clone()).or_default();
            acts.insert(action.unwrap_or("housekeeping"));
        }
        if let Some(action) = action.filter(|_| is_audited(&result)) {
            let note = note_of(
                unit,
                call.map(|c| &**c),
                action,
                &result,
                actor.clone(),
                &effects,
                replay_of,
            );
            audit_id = Some(self.append(&note)?);
        } else if result.is_ok() && !effects.events.is_empty() {
            return Err(Error::internal("housekeeping must not emit events"));
        }
        if result.is_ok() {
            for job in &effects.jobs {
                let id = crate::job::mint(unit.now, &mut rng);
                self.calls.push(job.insert(&unit.organization, &id, unit.now));
            }
        }
        let (Some(call), Some(actor), Some(audit_id)) = (call, &actor, audit_id) else {
            return Ok(result);
        };
        if let Ok(answer) = &mut result
            && !answer.replayed
            && !effects.is_unkept
        {
            let keys = &self.kernel.keys;
            let operation = call.meta.id;
            let stored = StoredAnswer::new(
                keys, actor, operation, &call.key, answer, &effects, audit_id, unit.now, salt,
            )?;
            self.calls
                .push(stored.insert(actor, operation, &call.key, unit.now));
            self.stored.insert(call.key_place(), stored);
            if let (Some(reveal), Some(at)) = (&effects.reveal, effects.secret_at) {
                let mut body = answer.body.to_vec();
                body.splice(at..at, reveal.secret.expose().bytes());
                answer.body = body.into();
            }
        }
        Ok(result)
    }

    /// Gives every row that decides rights and that the units touched its proof, and books the change in the heads.
    ///
    /// INVARIANT PF-1: proofs are made for the rows that the engine noted as changed, so no statement can forget to name one.
    fn prove(&mut self, conn: &mut Conn) -> Result<()> {
        let touched = conn.touched()?;
        if touched.is_empty() {
            return Ok(());
        }
        let now = self.kernel.latest();
        if !self.kernel.settings.staged {
            self.taken = ends::find(&self.kernel.endings, &self.kernel.keys, conn, &touched, now)?;
        }
        let proven = proofs::prove(&self.kernel.keys, self.kernel.rights, touched)?;
        for (organization, change) in &proven.changes {
            // A unit of the installation may end what other organizations hold: it is booked where the lock is.
            let own = self.heads.contains_key(organization);
            let head = if own {
                self.heads.get_mut(organization)
            } else {
                self.heads.values_mut().next()
            };
            let head = head.ok_or_else(|| Error::internal("a chain head was not locked"))?;
            head.book(&self.kernel.keys, change)?;
        }
        self.calls.extend(proven.calls);
        Ok(())
    }

    fn append(&mut self, note: &AuditRecord) -> Result<String> {
        let head = self.heads.get_mut(&note.organization);
        let head = head.ok_or_else(|| Error::internal("a chain head was not locked"))?;
        self.longer.insert(note.organization.clone());
        let mac = |parts: &[&[u8]]| self.kernel.keys.mac(MacPurpose::AuditSalt, parts);
        head.append(note, mac, &mut self.calls)
    }

    /// Writes what the transaction takes away beside the keys.
    ///
    /// Errors: `Unavailable` of the class `Refused`: the units run one by one, and those that take nothing away succeed.
    fn note_taken(&mut self, taken: &CommitRevocations, now: Timestamp) -> Result<()> {
        let end = |(chain, head): (&OrganizationId, &Head)| {
            let end = ChainEnd {
                place: head.place(),
                has_moved: self.longer.contains(chain),
                acts: self.acts.get(chain).cloned().unwrap_or_default(),
            };
            (chain.clone(), end)
        };
        let chains = self.heads.iter().map(end).collect();
        let keys = &self.kernel.keys;
        keys.append_ends(now, &taken.lines(&chains, now)?)
            .inspect_err(|error| {
                metrics::counter!("provost_ends_unwritten_total").increment(1);
                tracing::error!(
                    cause = ?error.private(),
                    "ends.jsonl in the keys folder cannot be written: what takes something away is refused until it can; make \
                     room in the folder, and let the server write to it"
                );
            })
    }

    fn commit(mut self, conn: &mut Conn) -> Result<()> {
        let now = self.kernel.clock.now();
        // Audit notes change no row that decides rights, so a transaction of notes alone saves this round trip.
        if !self.units.is_empty() {
            self.prove(conn)?;
        }
        for head in self.heads.values_mut() {
            self.calls.extend(head.store(&self.kernel.keys, now));
        }
        // INVARIANT EN-1: durable beside the keys before anything of it can be answered.
        if let Some(taken) = self.taken.take() {
            self.note_taken(&taken, now)?;
        }
        let threads = &self.kernel.settings.threads;
        threads.inject(TransactionPhase::BeforeCommit)?;
        conn.commit(&self.calls)?;
        for (organization, head) in &self.heads {
            self.kernel.witness.saw(organization, head.place());
        }
        threads.inject(TransactionPhase::AfterCommit)
    }
}

/// Failures of shape and of load are counted, not written (D12.4).
fn is_audited(result: &Result<Answer>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => matches!(error.code().status(), 403 | 404 | 409 | 412 | 422),
    }
}

fn note_of(
    unit: &Unit,
    call: Option<&Call>,
    action: &'static str,
    result: &Result<Answer>,
    actor: Option<Actor>,
    effects: &Effects,
    replay_of: Option<String>,
) -> AuditRecord {
    let mut note = AuditRecord::new(unit.organization.clone(), unit.now, action);
    note.actor = actor;
    note.target.clone_from(&effects.target);
    match result {
        Ok(answer) => {
            note.status = answer.status;
            note.decision = if answer.replayed {
                Decision::Replayed
            } else {
                Decision::Allowed
            };
            note.changes.clone_from(&effects.changes);
            if !answer.replayed {
                note.events.clone_from(&effects.events);
            }
        }
        Err(error) => {
            note.status = error.code().status();
            note.code = Some(error.code().as_str());
            note.decision = Decision::of_status(note.status);
            note.events.clone_from(&effects.alarms);
        }
    }
    note.replay_of = replay_of;
    if let Some(call) = call {
        note.reason = call.bound.reason().map(str::to_owned);
        note.origin = Some(call.origin.clone());
        note.key_hash = Some(call.key.mac);
    } else if let Some((caller, origin)) = &effects.served {
        note.actor = Some(caller.clone());
        note.origin.clone_from(origin);
    }
    note
}
