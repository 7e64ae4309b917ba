//! The past that history conditions look at (`hasPriorEvent`, `eventCount`, …), kept in the process for live sets.
//!
//! ```text
//!   (nothing) ──make: the last 30 days of history, on a thread of its own──► whole ──catch up: chunks that follow──┐
//!       ▲                                                                     │ ▲ └───────────────────────────────┘
//!       └── a gap in the chunks: more was recorded than is still there ───────┘ └── made anew beside it, when an
//!                                                                                   import put events before others
//! ```
//!
//! Chunks are numbered in the order of their commits, whatever server wrote them. A decision notes, in its snapshot, the
//! last number; before it is judged, the past has seen every chunk up to it:
//!
//! ```text
//!   server A   commit of chunk 7 ─────────────────┐
//!   server B   past has seen 6     decision's snapshot: 7 ── catch up to 7 ── recall ── judge
//! ```
//!
//! What this server answered as `buffered` and has not written yet is written first: the decision ends the gathering, waits
//! for the commit, and looks at the last number again.
//!
//! Keeps DE-6: a past that has not seen the decision's number answers nothing; every question about it is unknown.
//! What devices told of what they judged is part of a second past, which is kept where there is such a thing: each event is judged by both,
//! and what is stronger holds, policy by policy (`Pasts`).
//!
//! INVARIANT DE-9: the process keeps the pasts of the two newest sets of each organization, without and with what devices told, no more.
//! Keeps DJ-5.
//! INVARIANT DE-14: nobody's past becomes unknown by what devices are quarantined, released or retired: the one that is there is used until
//! another one is made, and that is made once a minute at most.
//!
//! Absent on purpose: a past in the store (it follows from the history); pasts of sets without history conditions.

use super::observer::{EventSelection, Meaning, Observer};
use crate::device_judging::device_tells;
use crate::history;
use crate::policies::{self, Live};
use provost_areas_identity::words::{self, WordQuery};
use provost_areas_platform::settings;
use provost_areas_platform::store;
use provost_backtest::record;
use provost_history::scan::{Watch, ordered};
use provost_history::{Batch, MAX_EVENTS, Plan, Question, chunk};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::Tx;
use provost_kernel::error::Error;
use provost_kernel::{Kernel, OperationContext, Result, Services};
use provost_policy::{Event, EventWindow, PolicySet, SubjectStates, Symbols};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

/// LIMIT: how far conditions look back. Source: client contract §3.9. Units: milliseconds.
const WINDOW_MS: i64 = 30 * 24 * 3_600 * 1_000;
/// A clock of another server may be ahead. Units: milliseconds.
const AHEAD_MS: i64 = 10 * 60 * 1_000;
/// How long a decision waits for a past that is being made.
const PATIENCE: Duration = Duration::from_millis(500);
/// How soon a past is made again after it could not be, or was.
const PAUSE: Duration = Duration::from_secs(10);
/// The same of one that devices tell: they tell late, all the time.
const DEVICE_PAUSE: Duration = Duration::from_mins(1);
/// It is at least so many times as long as the making took: no device keeps the server at it.
const DEVICE_SHARE: u32 = 20;

/// What the process keeps.
#[derive(Default)]
pub struct EventWindows {
    pasts: Mutex<WindowsByOrganization>,
}

/// The pasts of each organization's newest sets.
#[derive(Default)]
struct WindowsByOrganization(HashMap<OrganizationId, Vec<NumberedWindow>>);

/// A past with the newest number of a version that it belongs to.
struct NumberedWindow {
    sequence: i64,
    memory: Arc<Memory>,
}

/// The past of one set of one organization. Whoever makes it holds the lock.
struct Memory {
    organization: OrganizationId,
    set: Arc<PolicySet>,
    /// Whether imported events are part of it.
    imports: bool,
    /// Whether what devices told is.
    is_told: bool,
    state: Arc<tokio::sync::Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Nothing until it is whole.
    past: Option<EventWindow>,
    /// The number of the last chunk that the past has seen.
    seen: i64,
    /// The devices that it was made without; of the others it holds what they told, where it holds that at all.
    left_out: LeftOut,
    /// Some subject's past is in doubt.
    is_late: bool,
    is_remade: bool,
    /// When it was made last, or could not be.
    made_at: Option<Duration>,
    /// How long that took.
    took: Duration,
}

/// The devices of whose word nothing is part of a past.
type LeftOut = Arc<BTreeSet<String>>;

/// What is remembered of subjects, without and with what devices told.
pub struct Pasts {
    /// Without it.
    pub seen: SubjectStates,
    /// With it; nothing where no device tells anything.
    pub told: Option<SubjectStates>,
}

impl Pasts {
    /// Returns those of a set that asks nothing about the past.
    pub fn none() -> Self {
        Self {
            seen: SubjectStates::new(),
            told: None,
        }
    }

    fn unknown() -> Self {
        Self {
            seen: SubjectStates::unknown(),
            told: None,
        }
    }
}

/// The past that a decision needs.
pub struct WindowRequest {
    memory: Arc<Memory>,
    /// The one with what devices told, where they tell something, but for these.
    told: Option<(Arc<Memory>, LeftOut)>,
    /// The number of the last chunk in the decision's snapshot.
    upto: i64,
}

fn kept(services: &Services) -> &EventWindows {
    services.own(EventWindows::default)
}

/// Returns what a decision under this set needs of the past; nothing for a set without history conditions.
pub fn wanted(ctx: &mut OperationContext<'_>, live: &Live) -> Result<Option<WindowRequest>> {
    if !live.set.has_history() {
        return Ok(None);
    }
    let org = ctx.org();
    let imports = counts_imports(&mut ctx.tx(), org)?;
    let tells = device_tells(&mut ctx.tx(), org)?;
    let upto = history::last_chunk(&mut ctx.tx(), org)?;
    let request = WindowRequest::of(ctx.services(), ctx.organization(), live, (imports, tells), upto);
    Ok(Some(request))
}

/// Says whether the organization lets imported events count (DE-10).
fn counts_imports(tx: &mut Tx<'_>, org: &str) -> Result<bool> {
    Ok(settings::of(tx, org)?.history.count_imports)
}

fn pasts(services: &Services) -> MutexGuard<'_, WindowsByOrganization> {
    kept(services)
        .pasts
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

impl WindowsByOrganization {
    /// Returns the past of a version, with imported events or without, and with what devices told or without.
    ///
    /// INVARIANT DE-9: that of an older set is dropped once whoever uses it is done.
    fn of(
        &mut self,
        organization: &OrganizationId,
        live: &Live,
        imports: bool,
        is_told: bool,
    ) -> Arc<Memory> {
        let own = self.0.entry(organization.clone()).or_default();
        let known = own.iter_mut().find(|one| {
            let memory = &one.memory;
            memory.imports == imports && memory.is_told == is_told && memory.set.digest() == live.set.digest()
        });
        if let Some(known) = known {
            known.sequence = known.sequence.max(live.sequence);
            return known.memory.clone();
        }
        let memory = Arc::new(Memory {
            organization: organization.clone(),
            set: live.set.clone(),
            imports,
            is_told,
            state: Arc::default(),
        });
        own.push(NumberedWindow {
            sequence: live.sequence,
            memory: memory.clone(),
        });
        own.sort_by_key(|one| std::cmp::Reverse(one.sequence));
        // Of one set, what the setting says now, and nothing of what it said before.
        own.retain(|one| one.memory.set.digest() != live.set.digest() || one.memory.imports == imports);
        let mut newest: Vec<String> = Vec::with_capacity(2);
        own.retain(|one| {
            let digest = one.memory.set.digest();
            let is_known = newest.iter().any(|known| known == digest);
            if !is_known && newest.len() < 2 {
                newest.push(digest.to_owned());
                return true;
            }
            is_known
        });
        memory
    }
}

/// Makes the pasts of live sets before somebody asks, and forgets those of organizations that have none.
pub async fn remember(kernel: &Arc<Kernel>) -> Result<()> {
    let organizations = kernel.read_system(store::organizations).await?;
    for organization in organizations {
        let org = organization.clone();
        let read = kernel.read_system(move |tx| {
            let live = policies::live(tx, org.as_str())?;
            let counted = (counts_imports(tx, org.as_str())?, device_tells(tx, org.as_str())?);
            Ok((live, counted, history::last_chunk(tx, org.as_str())?))
        });
        match read.await {
            Ok((live, counted, upto)) if live.set.has_history() => {
                let wanted = WindowRequest::of(kernel, &organization, &live, counted, upto);
                wanted.recall(kernel, &[], &mut Symbols::new()).await;
            }
            Ok(_) => {
                pasts(kernel).0.remove(&organization);
            }
            Err(error) => {
                tracing::warn!(%organization, cause = ?error.private(), "the past of the live policies was not looked at: {error}");
            }
        }
    }
    Ok(())
}

impl WindowRequest {
    /// Returns what a decision needs of the past up to a chunk: `tells` says what devices tell ([`device_tells`]).
    fn of(
        services: &Services,
        organization: &OrganizationId,
        live: &Live,
        (imports, tells): (bool, Option<BTreeSet<String>>),
        upto: i64,
    ) -> Self {
        let mut pasts = pasts(services);
        let memory = pasts.of(organization, live, imports, false);
        let told = tells.map(|left_out| (pasts.of(organization, live, imports, true), Arc::new(left_out)));
        Self { memory, told, upto }
    }

    /// Returns what is remembered of the subjects of these events, in the events' table.
    pub async fn recall(mut self, kernel: &Arc<Kernel>, events: &[Event], symbols: &mut Symbols) -> Pasts {
        match self.settle(kernel).await {
            Ok(true) => {}
            Ok(false) => return Pasts::unknown(),
            Err(error) => {
                tracing::warn!(cause = ?error.private(), "history conditions are unknown: {error}");
                return Pasts::unknown();
            }
        }
        let (nobody, memory) = (LeftOut::default(), &self.memory);
        let seen = self.recalled((memory, &nobody), kernel, events, symbols).await;
        let told = match &self.told {
            Some((memory, left_out)) => {
                Some(self.recalled((memory, left_out), kernel, events, symbols).await)
            }
            None => None,
        };
        Pasts { seen, told }
    }

    async fn recalled(
        &self,
        of: (&Memory, &LeftOut),
        kernel: &Arc<Kernel>,
        events: &[Event],
        symbols: &mut Symbols,
    ) -> SubjectStates {
        match self.ready(of, kernel).await {
            Ok(Some(state)) => match &state.past {
                Some(past) => past.recall(events, symbols),
                None => SubjectStates::unknown(),
            },
            Ok(None) => SubjectStates::unknown(),
            Err(error) => {
                tracing::warn!(cause = ?error.private(), "history conditions are unknown: {error}");
                SubjectStates::unknown()
            }
        }
    }

    /// Sees to it that everything is written that this server answered before; returns false where that takes too long.
    async fn settle(&mut self, kernel: &Arc<Kernel>) -> Result<bool> {
        let organization = &self.memory.organization;
        let settled = timeout(PATIENCE, history::recorder(kernel).settle(organization)).await;
        if let Ok(true) = settled {
            let org = organization.clone();
            let last = kernel.read_system(move |tx| history::last_chunk(tx, org.as_str()));
            self.upto = self.upto.max(last.await?);
        }
        Ok(settled.is_ok())
    }

    /// Returns the past, once it has seen what the decision may ask about; nothing while it cannot be had.
    ///
    /// Keeps DE-14: one that was made without other devices is used until another one is made.
    async fn ready(
        &self,
        (memory, left_out): (&Memory, &LeftOut),
        kernel: &Arc<Kernel>,
    ) -> Result<Option<OwnedMutexGuard<State>>> {
        let Some(mut state) = memory.lock().await else {
            return Ok(None);
        };
        // A gap shows while catching up; then it is made once more.
        for _ in 0..2 {
            if state.past.is_none() {
                if state.is_resting(kernel, PAUSE) {
                    return Ok(None);
                }
                memory.make(kernel, state, left_out.clone());
                match memory.lock().await {
                    Some(made) if made.past.is_some() => state = made,
                    _ => return Ok(None),
                }
            }
            state = memory.catch_up(kernel, state, self.upto).await?;
            if state.past.is_some() {
                break;
            }
        }
        let is_another = state.is_late || state.left_out != *left_out;
        if is_another && !state.is_remade && !state.is_resting(kernel, memory.pause(state.took)) {
            state.is_remade = true;
            memory.make_anew(kernel, left_out.clone());
        }
        Ok(state.past.is_some().then_some(state))
    }
}

impl State {
    fn is_resting(&self, kernel: &Kernel, pause: Duration) -> bool {
        let now = kernel.clock.monotonic();
        self.made_at.is_some_and(|at| now.saturating_sub(at) < pause)
    }

    fn put(&mut self, made: Result<(EventWindow, i64)>, left_out: LeftOut, began: Duration, kernel: &Kernel) {
        let now = kernel.clock.monotonic();
        self.took = now.saturating_sub(began);
        self.made_at = Some(now);
        match made {
            Ok((past, seen)) => {
                self.past = Some(past);
                self.seen = seen;
                self.left_out = left_out;
                self.is_late = false;
            }
            Err(error) => {
                tracing::error!(cause = ?error.private(), "the past of the live policies cannot be made; conditions on it are unknown: {error}");
            }
        }
    }

    /// Makes the events of the next chunks part of the past.
    fn see(
        &mut self,
        chunks: Vec<history::LiveChunk>,
        counted: EventSelection,
        meaning: impl Meaning,
    ) -> Result<()> {
        let Some(past) = &mut self.past else { return Ok(()) };
        let (schema, mut observer) = (record::schema(), Observer::new(past, counted, meaning));
        for next in chunks {
            if next.sequence != self.seen + 1 {
                // Chunks between were sealed and deleted: what they held is in segments.
                self.past = None;
                self.made_at = None;
                return Ok(());
            }
            let batch = chunk::decode(&schema, &next.content).map_err(Error::internal)?;
            let (rows, batch) = (0..batch.rows(), observer.narrow(batch));
            let in_time = observer.observe(past, &batch, rows).map_err(Error::internal)?;
            self.is_late |= !in_time;
            self.seen = next.sequence;
        }
        Ok(())
    }
}

impl Memory {
    /// Returns how soon the past is made anew that took so long.
    fn pause(&self, took: Duration) -> Duration {
        if self.is_told {
            DEVICE_PAUSE.max(took.saturating_mul(DEVICE_SHARE))
        } else {
            PAUSE
        }
    }

    /// Returns what is part of the past but for what some devices told.
    fn counted(&self, left_out: &LeftOut) -> EventSelection {
        EventSelection {
            imports: self.imports,
            devices: self.is_told.then(|| left_out.clone()),
        }
    }

    async fn lock(&self) -> Option<OwnedMutexGuard<State>> {
        timeout(PATIENCE, self.state.clone().lock_owned()).await.ok()
    }

    /// Makes the past, on a thread of its own that keeps the lock until it is done.
    fn make(&self, kernel: &Arc<Kernel>, mut state: OwnedMutexGuard<State>, left_out: LeftOut) {
        let (kernel, organization, set) = (kernel.clone(), self.organization.clone(), self.set.clone());
        let counted = self.counted(&left_out);
        tokio::task::spawn_blocking(move || {
            let began = kernel.clock.monotonic();
            let made = whole(&kernel, &organization, &set, counted);
            state.put(made, left_out, began, &kernel);
        });
    }

    /// Makes the past once more; the one that is there is used until then.
    fn make_anew(&self, kernel: &Arc<Kernel>, left_out: LeftOut) {
        let (kernel, organization, set) = (kernel.clone(), self.organization.clone(), self.set.clone());
        let (state, counted) = (self.state.clone(), self.counted(&left_out));
        tokio::task::spawn_blocking(move || {
            let began = kernel.clock.monotonic();
            let made = whole(&kernel, &organization, &set, counted);
            let mut state = state.blocking_lock();
            state.is_remade = false;
            state.put(made, left_out, began, &kernel);
        });
    }

    /// Lets the past see every chunk up to a number.
    async fn catch_up(
        &self,
        kernel: &Arc<Kernel>,
        mut state: OwnedMutexGuard<State>,
        upto: i64,
    ) -> Result<OwnedMutexGuard<State>> {
        while state.past.is_some() && state.seen < upto {
            let (org, seen) = (self.organization.clone(), state.seen);
            let chunks = kernel
                .read_system(move |tx| history::chunks_after(tx, org.as_str(), seen))
                .await?;
            if chunks.is_empty() {
                state.past = None;
                state.made_at = None;
                break;
            }
            let counted = self.counted(&state.left_out);
            let meaning = meaning(kernel, &self.organization);
            let seen = kernel.blocking(move || {
                let seen = state.see(chunks, counted, meaning);
                (state, seen)
            });
            let (back, seen) = seen.await?;
            state = back;
            if let Err(error) = seen {
                state.past = None;
                return Err(error);
            }
        }
        Ok(state)
    }
}

/// Returns who says what words mean now.
fn meaning(kernel: &Arc<Kernel>, organization: &OrganizationId) -> impl Meaning + Send + 'static {
    let (kernel, organization) = (kernel.clone(), organization.clone());
    move |asked: WordQuery| {
        let (org, now) = (organization.clone(), kernel.clock.now());
        kernel.read_blocking(move |tx| words::register(tx, org.as_str(), &asked, now))
    }
}

/// Returns the past of a set made of the last 30 days of history, and the number of the last chunk that is part of it.
fn whole(
    kernel: &Arc<Kernel>,
    organization: &OrganizationId,
    set: &Arc<PolicySet>,
    counted: EventSelection,
) -> Result<(EventWindow, i64)> {
    let now = kernel.clock.now().as_ms();
    let (from, to) = (now - WINDOW_MS, now + AHEAD_MS);
    let org = organization.clone();
    let read = kernel.read_system(move |tx| {
        let sources = history::sources(tx, org.as_str(), from, to)?;
        Ok((sources, history::last_chunk(tx, org.as_str())?))
    });
    let (rows, seen) = tokio::runtime::Handle::current().block_on(read)?;
    let opened = history::open(kernel, organization.as_str(), rows);
    if let Some(unreadable) = opened.unreadable.first() {
        return Err(Error::internal(format!("{} cannot be read", unreadable.name)));
    }
    let question = Question {
        from,
        to,
        max_events: MAX_EVENTS,
    };
    let plan = Plan::new(record::schema(), opened.sources, question).map_err(Error::internal)?;
    let mut past = EventWindow::new(set.clone());
    let mut observer = Observer::new(&past, counted, meaning(kernel, organization));
    let columns = observer.columns().to_vec();
    let observe = |batch: &Batch, rows: Range<usize>| observer.observe(&mut past, batch, rows).map(drop);
    ordered(&plan, &columns, &Watch::default(), observe).map_err(Error::internal)?;
    Ok((past, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(sequence: i64, policies: usize) -> Live {
        let definition = |n: usize| {
            let definition = serde_json::json!({ "id": format!("p{n}"), "name": "p", "action": "block",
                "evaluateOn": ["prompt"], "acknowledgeBroadScope": true,
                "conditions": { "hasPriorEvent": { "field": "tool.id", "op": "exists" } } });
            let read = provost_policy::Definition::read(provost_policy::Family::Content, &definition);
            Arc::new(read.unwrap())
        };
        let set = PolicySet::new((0..policies).map(definition)).unwrap();
        Live {
            version_id: format!("psv_{sequence}"),
            sequence,
            set: Arc::new(set),
        }
    }

    #[test]
    fn what_devices_tell_late_has_no_past_made_anew_for_more_than_a_twentieth_of_the_time() {
        let acme = OrganizationId::parse("acme").unwrap();
        let mut pasts = WindowsByOrganization::default();
        let told = pasts.of(&acme, &live(1, 1), false, true);
        let seen = pasts.of(&acme, &live(1, 1), false, false);
        for (took, expected) in [(0, 60), (3, 60), (4, 80), (600, 12_000)] {
            let took = Duration::from_secs(took);
            assert_eq!(told.pause(took), Duration::from_secs(expected), "{took:?}");
            assert_eq!(seen.pause(took), PAUSE);
        }
    }

    /// Proves DE-9.
    #[test]
    fn pasts_of_older_sets_are_dropped() {
        let (acme, mut pasts) = (
            OrganizationId::parse("acme").unwrap(),
            WindowsByOrganization::default(),
        );
        let first = Arc::downgrade(&pasts.of(&acme, &live(1, 1), false, false));
        let second = Arc::downgrade(&pasts.of(&acme, &live(2, 2), false, false));
        // The first set comes back as a newer version: the same past.
        assert!(Arc::ptr_eq(
            &pasts.of(&acme, &live(3, 1), false, false),
            &first.upgrade().unwrap()
        ));
        pasts.of(&acme, &live(4, 3), false, false);
        assert!(second.upgrade().is_none());
        assert!(first.upgrade().is_some());
        // A snapshot that is older than both keeps nothing alive.
        let late = Arc::downgrade(&pasts.of(&acme, &live(2, 2), false, false));
        assert!(late.upgrade().is_none());
        assert_eq!(pasts.0[&acme].len(), 2);
        pasts.of(
            &OrganizationId::parse("globex").unwrap(),
            &live(1, 1),
            false,
            false,
        );
        assert_eq!(pasts.0.len(), 2);
        // With what devices told there is another one of each set.
        let told = pasts.of(&acme, &live(4, 3), false, true);
        assert_eq!((told.is_told, pasts.0[&acme].len()), (true, 3));
        pasts.of(&acme, &live(5, 4), false, false);
        assert_eq!(pasts.0[&acme].len(), 3, "the older of the two sets is gone");
        pasts.of(&acme, &live(6, 3), false, false);
        // The same set over more events is another past.
        let more = pasts.of(&acme, &live(4, 3), true, false);
        assert!(!pasts.of(&acme, &live(4, 3), false, false).imports);
        assert_eq!((more.imports, pasts.0[&acme].len()), (true, 2));
    }
}
