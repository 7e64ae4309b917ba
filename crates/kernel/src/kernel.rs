//! The installation's mechanisms in one place: what every request and every worker needs.

use crate::auth::{Actor, OrganizationId};
use crate::context::OperationContext;
use crate::credential::Schemes;
use crate::db::RightsTable;
use crate::db::{Location, Readers, Watch};
use crate::doubt::{Clockwatch, Guard};
use crate::ends::Endings;
use crate::entropy::Entropy;
use crate::error::{Class, Error, Result};
use crate::keys::Keys;
use crate::operation::Registry;
use crate::rate::Limiter;
use crate::services::{AreaStates, Services};
use crate::threads::Threads;
use crate::time::Clock;
use crate::witness::{self, Witness};
use crate::work::{Flights, InFlight, Reply, Run, SystemRun, Unit, Writers};
use crate::write_behind::WriteBehind;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio::sync::oneshot;

pub use crate::rate::buckets;
pub use crate::services::{Extras, Settings};

/// What a kernel is made of.
pub struct Parts {
    /// The operations.
    pub registry: Registry,
    /// The kinds of tokens.
    pub schemes: Schemes,
    /// The key material.
    pub keys: Keys,
    /// The store, migrated.
    pub location: Location,
    /// The present.
    pub clock: Arc<dyn Clock>,
    /// Seeds.
    pub entropy: Arc<dyn Entropy>,
    /// Behaviour.
    pub settings: Settings,
    /// What the operator declared for areas of the product.
    pub extras: Extras,
    /// The tables whose rows decide what somebody may do, and carry a proof.
    pub rights: &'static [RightsTable],
    /// What of their changes takes away, and is written beside the keys.
    pub endings: Endings,
}

/// See the module's text. What operations see of it as well are its [`Services`].
pub struct Kernel {
    /// The operations.
    pub registry: Registry,
    /// The kinds of tokens.
    pub schemes: Schemes,
    /// The tables whose rows decide what somebody may do.
    pub rights: &'static [RightsTable],
    /// What of their changes takes away.
    pub endings: Endings,
    services: Services,
    pub(crate) jobs_due: tokio::sync::Notify,
    workers: Mutex<HashMap<&'static str, Arc<tokio::sync::Notify>>>,
    pub(crate) write_behind: WriteBehind,
    flights: Flights,
    /// Writes that wait for their rate bucket.
    pub(crate) waits: Flights,
    writers: OnceLock<Writers>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) watch: Arc<dyn Watch>,
    broken: AtomicBool,
}

/// The kernel of some services, which operations see alone.
struct KernelOfServices(Weak<Kernel>);

impl Deref for Kernel {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.services
    }
}

impl Kernel {
    /// Opens the store's readers and writers and returns the running kernel.
    ///
    /// Errors: `Unavailable` when the store cannot be opened.
    pub fn start(parts: Parts) -> Result<Arc<Self>> {
        let Parts {
            registry,
            schemes,
            keys,
            location,
            clock,
            entropy,
            settings,
            extras,
            rights,
            endings,
        } = parts;
        let witness = Arc::new(Witness::default());
        let clockwatch = Arc::new(Clockwatch::new(clock.clone(), location.engine()));
        let watch: Arc<dyn Watch> = Arc::new(Guard {
            witness: witness.clone(),
            clockwatch: clockwatch.clone(),
        });
        let readers = match settings.threads {
            Threads::Os => Readers::start(location.clone(), settings.readers, 1024, &watch)?,
            Threads::Inline(_) => Readers::inline(&location, &watch)?,
        };
        let services = Services {
            fences: registry.fences().clone(),
            limiter: Limiter::new(clock.clone()),
            own: AreaStates::default(),
            keys,
            clock,
            entropy,
            settings,
            clockwatch,
            readers,
            extras,
        };
        let kernel = Arc::new_cyclic(|this| {
            services.own(|| KernelOfServices(this.clone()));
            Self {
                services,
                write_behind: WriteBehind::default(),
                flights: Flights::default(),
                waits: Flights::default(),
                writers: OnceLock::new(),
                witness,
                watch,
                broken: AtomicBool::new(false),
                registry,
                schemes,
                rights,
                endings,
                jobs_due: tokio::sync::Notify::new(),
                workers: Mutex::default(),
            }
        });
        let writers = Writers::start(&kernel, &location)?;
        let _ = kernel.writers.set(writers);
        // The clock is looked at for the first time before anything is served.
        let watch = kernel.clockwatch.clone();
        kernel.read_blocking(move |tx| watch.look(tx, true).map(drop))?;
        Ok(kernel)
    }

    /// Finishes what was accepted, writes what is buffered, and ends the storage threads.
    pub async fn stop(&self) {
        // The last connection to a SQLite file folds the log into it when it ends, and only a writer can.
        self.readers.stop();
        if let Some(writers) = self.writers.get() {
            writers.stop().await;
        }
    }

    /// Returns another owner of the kernel behind these services, for what goes on after an operation has returned
    /// ([`OperationContext::later`]).
    ///
    /// Errors: `Unavailable` when its last owner is gone.
    pub fn behind(services: &Services) -> Result<Arc<Self>> {
        let KernelOfServices(kernel) = services.own(|| KernelOfServices(Weak::new()));
        let kernel = kernel.upgrade();
        kernel.ok_or_else(|| Error::unavailable("the server is shutting down"))
    }

    /// Waits until a unit of work has enqueued a job that is due.
    pub async fn job_due(&self) {
        self.jobs_due.notified().await;
    }

    /// Waits until a unit of work of this server has woken the worker of this name, or has since it last waited.
    pub async fn work_notified(&self, worker: &'static str) {
        self.notifier(worker).notified().await;
    }

    /// Wakes the worker of this name, now or when it next waits.
    pub fn notify_worker(&self, worker: &'static str) {
        self.notifier(worker).notify_one();
    }

    fn notifier(&self, worker: &'static str) -> Arc<tokio::sync::Notify> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.entry(worker).or_default().clone()
    }

    /// Says whether a write or an fsync failed, or the store has gone back; nothing is acknowledged then until a restart.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst) || self.witness.has_gone_back()
    }

    /// Returns what callers are told while [`Kernel::is_broken`] holds.
    pub fn brokenness(&self) -> Error {
        if self.witness.has_gone_back() {
            return witness::gone_back();
        }
        Error::unavailable("the store failed and takes no changes until the server is restarted")
    }

    /// Returns how many units of work wait for a writer.
    pub fn waiting_units(&self) -> usize {
        self.writers.get().map_or(0, Writers::waiting)
    }

    /// Notes a failed write or fsync beside the store's own writers (WK-2); other errors change nothing.
    pub fn note_failure(&self, error: &Error) {
        if error.work_class() == Class::Broken {
            self.set_broken(error);
        }
    }

    /// Acknowledges nothing more, and says why once. A store that has gone back has been said already, and no write failed.
    pub(crate) fn set_broken(&self, error: &Error) {
        if !self.broken.swap(true, Ordering::SeqCst) && !self.witness.has_gone_back() {
            tracing::error!(
                cause = ?error.private(),
                "a write to the store failed; no mutation is acknowledged until a restart"
            );
        }
    }

    pub(crate) fn submit(&self, unit: Unit) -> Result<()> {
        let writers = self
            .writers
            .get()
            .ok_or_else(|| Error::unavailable("the server is starting"))?;
        writers.submit(unit)
    }

    /// Wakes the writer of a chain so that waiting notes are written soon.
    pub(crate) fn notify(&self, organization: &OrganizationId) {
        if let Some(writers) = self.writers.get() {
            writers.notify(organization);
        }
    }

    /// Runs the program's own unit of work in an organization. With an action the unit leaves an audit
    /// entry; without one it is housekeeping that the log does not name.
    ///
    /// Errors: those of `run`, and `Unavailable`.
    pub async fn system(
        &self,
        organization: OrganizationId,
        action: Option<&'static str>,
        run: impl Fn(&mut OperationContext<'_>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.submit(self.unit(organization, action, Box::new(run), Some(reply)))?;
        answer
            .await
            .map_err(|_| Error::unavailable("the server is shutting down"))?
            .map(|_| ())
    }

    /// Returns a unit of the program's own work.
    pub(crate) fn unit(
        &self,
        organization: OrganizationId,
        action: Option<&'static str>,
        run: SystemRun,
        reply: Option<Reply>,
    ) -> Unit {
        Unit {
            organization,
            run: Run::System { action, run },
            now: self.clock.now(),
            seed: self.entropy.seed(),
            expires: self.clock.monotonic() + self.settings.queue_deadline * 4,
            reply,
        }
    }

    /// Counts one more write of a principal that waits or runs (D1.11).
    ///
    /// Errors: `Unavailable` when there are too many of them.
    pub(crate) fn take_flight(&self, actor: &Actor) -> Result<InFlight> {
        self.flights.take(actor, self.settings.max_in_flight)
    }
}
