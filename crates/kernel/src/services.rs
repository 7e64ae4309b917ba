//! What operations see of the installation: keys, clock, settings, rates, readers, and what areas keep in the process.
//!
//! It writes nothing: whoever wants to change the store has a unit of work.

use crate::db::{Conn, Readers, Tx};
use crate::doubt::{Clockwatch, Doubt, SureTime};
use crate::entropy::{Entropy, UnitRng};
use crate::error::{Code, Error, Result};
use crate::fence::DeclaredKinds;
use crate::keys::Keys;
use crate::rate::{Bucket, Limiter, RateDecision};
use crate::threads::{SchedulePoint, Threads};
use crate::time::{Clock, Timestamp};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
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
pub(crate) struct AreaStates(OnceLock<Box<(Box<dyn Any + Send + Sync>, AreaStates)>>);

/// See the module's text.
pub struct Services {
    /// The key material.
    pub keys: Keys,
    /// The present.
    pub clock: Arc<dyn Clock>,
    /// Seeds.
    pub entropy: Arc<dyn Entropy>,
    /// Behaviour.
    pub settings: Settings,
    /// Who reads the details of entries and events.
    pub fences: DeclaredKinds,
    pub(crate) limiter: Limiter,
    pub(crate) clockwatch: Arc<Clockwatch>,
    pub(crate) readers: Readers,
    pub(crate) extras: Extras,
    pub(crate) own: AreaStates,
}

impl Services {
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
                .get_or_init(|| Box::new((Box::new(make()), AreaStates::default())));
            match link.0.downcast_ref() {
                Some(value) => return value,
                None => place = &link.1,
            }
        }
    }

    /// Takes from a bucket unless rate limits are switched off.
    ///
    /// Errors: `RateLimited` with `Retry-After`.
    pub fn limit(&self, bucket: &Bucket, key: &[&str]) -> Result<Option<RateDecision>> {
        if !self.settings.rate_limits {
            return Ok(None);
        }
        let taken = self.limiter.take(bucket, key);
        if taken.allowed {
            return Ok(Some(taken));
        }
        Err(limited(taken))
    }

    /// Refuses as [`Self::limit`] would, and takes nothing.
    ///
    /// Errors: `RateLimited` with `Retry-After`.
    pub(crate) fn would_limit(&self, bucket: &Bucket, key: &[&str]) -> Result<()> {
        let found = self.limiter.peek(bucket, key);
        if !self.settings.rate_limits || found.allowed {
            return Ok(());
        }
        Err(limited(found))
    }

    /// Says whether there is one more in a bucket that holds also where limits of requests are switched off: for what stays for ever
    /// once it is there, such as entries of the audit log of what machines say by themselves.
    pub fn may_tell(&self, bucket: &Bucket, key: &[&str]) -> bool {
        self.limiter.take(bucket, key).allowed
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

    /// Reads outside any request, in one snapshot.
    pub async fn read_system<T: Send + 'static>(
        &self,
        f: impl Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.settings.threads.pause(SchedulePoint::Read).await;
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

    /// Returns the present if the clock is not doubted. Asked before each round that removes something.
    ///
    /// Errors: those of a read.
    pub async fn undoubted(&self) -> Result<Option<SureTime>> {
        let watch = self.clockwatch.clone();
        let now = self.read_system(move |tx| watch.look(tx, false)).await?;
        Ok(self.clockwatch.sure(now))
    }

    /// Returns why the clock is doubted, by what was last heard of the store and the database.
    pub fn doubt(&self) -> Option<Doubt> {
        self.clockwatch.doubt()
    }

    /// Returns why no change can be made now, because the clock and that of the database disagree.
    pub fn disagreement(&self) -> Option<Error> {
        self.clockwatch.refusal()
    }

    /// Returns the later of the clock and the last kept instant: by it, what ends by time has ended (CK-3).
    pub fn latest(&self) -> Timestamp {
        self.clockwatch.latest(self.clock.now())
    }

    /// Says whether the clock was set back behind the last kept instant: lifetimes cannot be measured until it has come there again.
    pub fn is_set_back(&self) -> bool {
        self.clockwatch.is_set_back(self.clock.now())
    }
}

/// Returns the refusal of a caller whose bucket is empty.
fn limited(found: RateDecision) -> Error {
    let wait_secs = found.retry_after_secs.max(1);
    Error::new(
        Code::RateLimited,
        format!("too many requests; try again in {wait_secs} s"),
    )
    .retry_after(wait_secs)
}
