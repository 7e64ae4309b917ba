//! The installation's mechanisms in one place: what every request and every worker needs.

use crate::area::Areas;
use crate::auth::OrganizationId;
use crate::credential::Credentials;
use crate::cx::Cx;
use crate::db::{Conn, Location, Readers, Tx, Watch};
use crate::doubt::{Clockwatch, Guard};
use crate::ends::StoreOf;
use crate::entropy::{Entropy, UnitRng};
use crate::error::{Class, Code, Error, Result};
use crate::keys::Keys;
use crate::ledger::Ledger;
use crate::operation::{RateClass, Registry};
use crate::rate::{Bucket, Limiter, Taken};
use crate::threads::{Threads, Turn};
use crate::time::Clock;
use crate::witness::{self, Witness};
use crate::work::{Unit, Writers};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// How the kernel behaves; every field has a default that is right for one small machine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where clients reach this installation, without a trailing slash. Never taken from a request.
    pub public_url: String,
    /// Whether the rate buckets of D1.11 act.
    pub rate_limits: bool,
    /// How many units one commit may carry. LIMIT: 64 (PostgreSQL caches 64 subtransactions).
    pub max_batch: usize,
    /// How long one unit may take before it is refused.
    pub unit_deadline: Duration,
    /// How long a unit may wait for its turn.
    pub queue_deadline: Duration,
    /// How many writes of one principal may wait or run at a time (D1.11).
    pub max_in_flight: usize,
    /// Reader threads.
    pub readers: usize,
    /// Writer threads; SQLite always has one.
    pub writers: usize,
    /// Where storage and blocking work run.
    pub threads: Threads,
    /// The store is a copy that is worked on before it is served: nothing beside the keys is about it yet.
    pub staged: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            public_url: "http://127.0.0.1:8080".into(),
            rate_limits: true,
            max_batch: 64,
            unit_deadline: Duration::from_millis(250),
            queue_deadline: Duration::from_secs(5),
            max_in_flight: 64,
            readers: 2,
            writers: 2,
            threads: Threads::default(),
            staged: false,
        }
    }
}

/// What a kernel is made of.
pub struct Parts {
    /// The operations.
    pub registry: Registry,
    /// Where tokens lie.
    pub credentials: Box<dyn Credentials>,
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
    /// The areas: which tables decide what somebody may do, and what of their changes is written beside the keys.
    pub areas: &'static Areas,
    /// Returns the store that lines beside the keys are about.
    pub store_of: StoreOf,
}

/// What the operator declared, by its type: the kernel hands it on and does not know the words.
#[derive(Default)]
pub struct Extras(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Extras {
    /// Adds a declaration, in place of an earlier one of its type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, declared: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Box::new(declared));
        self
    }

    /// Returns the declaration of a type, if there is one.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

/// Values of different types, each made when it is first asked for, in a chain that only grows.
#[derive(Default)]
struct Own(OnceLock<Box<(Box<dyn Any + Send + Sync>, Own)>>);

/// See the module's text.
pub struct Kernel {
    /// The operations.
    pub registry: Registry,
    /// Where tokens lie.
    pub credentials: Box<dyn Credentials>,
    /// The key material.
    pub keys: Keys,
    /// The present.
    pub clock: Arc<dyn Clock>,
    /// Seeds.
    pub entropy: Arc<dyn Entropy>,
    /// Behaviour.
    pub settings: Settings,
    /// The areas.
    pub areas: &'static Areas,
    /// Returns the store that lines beside the keys are about.
    pub store_of: StoreOf,
    extras: Extras,
    own: Own,
    this: Weak<Self>,
    pub(crate) jobs_due: tokio::sync::Notify,
    workers: Mutex<HashMap<&'static str, Arc<tokio::sync::Notify>>>,
    pub(crate) limiter: Limiter,
    pub(crate) ledger: Ledger,
    pub(crate) in_flight: Mutex<HashMap<String, usize>>,
    readers: Readers,
    writers: OnceLock<Writers>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) clockwatch: Arc<Clockwatch>,
    pub(crate) watch: Arc<dyn Watch>,
    broken: AtomicBool,
}

/// Rate buckets of D1.11.
pub mod buckets {
    use crate::rate::Bucket;

    /// Reads of one principal.
    pub const READ: Bucket = Bucket {
        name: "read",
        burst: 300,
        per_second_num: 100,
        per_second_den: 1,
    };
    /// Writes of one principal.
    pub const WRITE: Bucket = Bucket {
        name: "write",
        burst: 100,
        per_second_num: 20,
        per_second_den: 1,
    };
    /// Questions of one principal about many records at once.
    pub const RESOLVE: Bucket = Bucket {
        name: "resolve",
        burst: 50,
        per_second_num: 10,
        per_second_den: 1,
    };
    /// Such questions of one organization.
    pub const ORGANIZATION_RESOLVE: Bucket = Bucket {
        name: "organization-resolve",
        burst: 200,
        per_second_num: 40,
        per_second_den: 1,
    };
    /// Decisions and exported events of one principal.
    pub const DECIDE: Bucket = Bucket {
        name: "decide",
        burst: 4000,
        per_second_num: 2000,
        per_second_den: 1,
    };
    /// Decisions and exported events of one organization.
    pub const ORGANIZATION_DECIDE: Bucket = Bucket {
        name: "organization-decide",
        burst: 16_000,
        per_second_num: 8000,
        per_second_den: 1,
    };
    /// Reads of one organization.
    pub const ORGANIZATION_READ: Bucket = Bucket {
        name: "organization-read",
        burst: 1200,
        per_second_num: 400,
        per_second_den: 1,
    };
    /// Writes of one organization.
    pub const ORGANIZATION_WRITE: Bucket = Bucket {
        name: "organization-write",
        burst: 400,
        per_second_num: 80,
        per_second_den: 1,
    };
    /// Failed authentications of one network address.
    pub const AUTHENTICATION: Bucket = Bucket {
        name: "authentication",
        burst: 30,
        per_second_num: 30,
        per_second_den: 60,
    };
    /// Rotations of one account.
    pub const ROTATION_OF_ACCOUNT: Bucket = Bucket {
        name: "rotation",
        burst: 30,
        per_second_num: 30,
        per_second_den: 3600,
    };
    /// Rotations by one caller.
    pub const ROTATION_BY_CALLER: Bucket = Bucket {
        name: "rotation-caller",
        burst: 600,
        per_second_num: 600,
        per_second_den: 3600,
    };
    /// Fetches of a lost answer by the token that rotated itself.
    pub const SELF_REPLAY: Bucket = Bucket {
        name: "self-replay",
        burst: 10,
        per_second_num: 10,
        per_second_den: 60,
    };
}

impl Kernel {
    /// Opens the store's readers and writers and returns the running kernel.
    ///
    /// Errors: `Unavailable` when the store cannot be opened.
    pub fn start(parts: Parts) -> Result<Arc<Self>> {
        let Parts {
            registry,
            credentials,
            keys,
            location,
            clock,
            entropy,
            settings,
            extras,
            areas,
            store_of,
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
        let kernel = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            readers,
            limiter: Limiter::new(clock.clone()),
            ledger: Ledger::default(),
            in_flight: Mutex::default(),
            writers: OnceLock::new(),
            witness,
            clockwatch,
            watch,
            broken: AtomicBool::new(false),
            registry,
            credentials,
            keys,
            clock,
            entropy,
            settings,
            areas,
            store_of,
            extras,
            own: Own::default(),
            jobs_due: tokio::sync::Notify::new(),
            workers: Mutex::default(),
        });
        let writers = Writers::start(&kernel, &location)?;
        let _ = kernel.writers.set(writers);
        kernel.begin_to_watch()?;
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

    /// Returns another owner of this kernel, for what goes on after an operation has returned ([`Cx::later`]).
    ///
    /// Errors: `Unavailable` when its last owner is gone.
    pub fn shared(&self) -> Result<Arc<Self>> {
        let shared = self.this.upgrade();
        shared.ok_or_else(|| Error::unavailable("the server is shutting down"))
    }

    /// Returns what the operator declared of this type ([`Extras`]).
    pub fn extra<T: Any>(&self) -> Option<&T> {
        self.extras.get()
    }

    /// Returns the value of this type that an area keeps in the process, made when it is first asked for; `make` must
    /// not ask for another.
    pub fn own<T: Any + Send + Sync>(&self, make: impl Fn() -> T) -> &T {
        let mut place = &self.own;
        loop {
            let link = place
                .0
                .get_or_init(|| Box::new((Box::new(make()), Own::default())));
            match link.0.downcast_ref() {
                Some(value) => return value,
                None => place = &link.1,
            }
        }
    }

    /// Waits until a unit of work has enqueued a job that is due.
    pub async fn job_due(&self) {
        self.jobs_due.notified().await;
    }

    /// Waits until a unit of work of this server has woken the worker of this name, or has since it last waited.
    pub async fn woken(&self, worker: &'static str) {
        self.bell(worker).notified().await;
    }

    /// Wakes the worker of this name, now or when it next waits.
    pub fn wake(&self, worker: &'static str) {
        self.bell(worker).notify_one();
    }

    fn bell(&self, worker: &'static str) -> Arc<tokio::sync::Notify> {
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

    /// Takes from a bucket unless rate limits are switched off.
    ///
    /// Errors: `RateLimited` with `Retry-After`.
    pub fn limit(&self, bucket: &Bucket, key: &[&str]) -> Result<Option<Taken>> {
        if !self.settings.rate_limits {
            return Ok(None);
        }
        let taken = self.limiter.take(bucket, key);
        if taken.allowed {
            return Ok(Some(taken));
        }
        let wait_secs = taken.retry_after_secs.max(1);
        Err(Error::new(
            Code::RateLimited,
            format!("too many requests; try again in {wait_secs} s"),
        )
        .retry_after(wait_secs))
    }

    /// Returns the bucket of a class for one principal and for its organization.
    pub fn class_buckets(class: RateClass) -> (&'static Bucket, &'static Bucket) {
        match class {
            RateClass::Read => (&buckets::READ, &buckets::ORGANIZATION_READ),
            RateClass::Write => (&buckets::WRITE, &buckets::ORGANIZATION_WRITE),
            RateClass::Resolve => (&buckets::RESOLVE, &buckets::ORGANIZATION_RESOLVE),
            RateClass::Decide => (&buckets::DECIDE, &buckets::ORGANIZATION_DECIDE),
        }
    }

    /// Returns a new generator from the injected entropy.
    pub fn rng(&self) -> UnitRng {
        UnitRng::new(self.entropy.seed())
    }

    /// Runs work that blocks, beside the runtime's own threads.
    ///
    /// Errors: `Internal` when the work panicked.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        self.settings.threads.blocking(work).await
    }

    /// Runs a job on a reader thread.
    pub(crate) fn submit_read(&self, job: impl FnOnce(&mut Conn) + Send + 'static) -> Result<()> {
        self.readers.submit(Box::new(job))
    }

    pub(crate) fn submit(&self, unit: Unit) -> Result<()> {
        let writers = self
            .writers
            .get()
            .ok_or_else(|| Error::unavailable("the server is starting"))?;
        writers.submit(unit)
    }

    /// Wakes the writer of a chain so that waiting notes are written soon.
    pub(crate) fn nudge(&self, organization: &OrganizationId) {
        if let Some(writers) = self.writers.get() {
            writers.nudge(organization);
        }
    }

    /// Reads outside any request, in one snapshot.
    pub async fn read_system<T: Send + 'static>(
        &self,
        f: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.settings.threads.pause(Turn::Read).await;
        self.submit_read(move |conn| {
            let _ = reply.send(conn.read(|tx| f(tx)));
        })?;
        answer
            .await
            .map_err(|_| Error::unavailable("the server is shutting down"))?
    }

    /// Reads outside any request, in one snapshot, and blocks until it is done: for threads that work, never in async
    /// code and never on a storage thread.
    pub fn read_blocking<T: Send + 'static>(
        &self,
        f: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = flume::bounded(1);
        self.submit_read(move |conn| {
            let _ = reply.send(conn.read(|tx| f(tx)));
        })?;
        answer
            .recv()
            .map_err(|_| Error::unavailable("the server is shutting down"))?
    }

    /// Runs the program's own unit of work in an organization. With an action the unit leaves an audit
    /// entry; without one it is housekeeping that the log does not name.
    ///
    /// Errors: those of `run`, and `Unavailable`.
    pub async fn system(
        &self,
        organization: OrganizationId,
        action: Option<&'static str>,
        run: impl Fn(&mut Cx<'_>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.submit(Unit::system(
            self,
            organization,
            action,
            Box::new(run),
            Some(reply),
        ))?;
        answer
            .await
            .map_err(|_| Error::unavailable("the server is shutting down"))?
            .map(|_| ())
    }
}
