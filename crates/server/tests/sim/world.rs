//! Installations: one that is made once, and a copy of it for every seed.

use crate::simulated_faults::SimulatedFaults;
use crate::support::{App, Contract, segments};
use provost_kernel::Timestamp;
use provost_kernel::db::Location;
use provost_kernel::entropy::SeededEntropy;
use provost_kernel::expose::edge::{Edge, EdgeSettings};
use provost_kernel::expose::http::{self as routes, BodyLimits};
use provost_kernel::kernel::{Extras, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::operation::Kind;
use provost_kernel::threads::Threads;
use provost_kernel::time::{Clock, ManualClock};
use provost_server::app;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// 2026-11-25T03:15:00.000Z: late enough for a clock that is set back by days to know the fixtures' own days.
pub const START: Timestamp = Timestamp::from_ms(1_795_576_500_000);

const READING: BodyLimits = BodyLimits {
    max_body_bytes: 256 * 1024,
    timeout: Duration::from_secs(10),
};

/// A folder that goes when it is dropped: in memory where the system offers that, because nothing here is about disks.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("provost-sim-{}-{name}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover harms nobody: the next folder of this name clears it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A migrated store with its keys and its first organization.
pub struct Template {
    store: Vec<u8>,
    keys: Vec<(PathBuf, Vec<u8>)>,
    pub organization: String,
    pub admin_id: String,
    pub admin: String,
    pub contract: Arc<Contract>,
    calls: Arc<Calls>,
}

/// What clients can call beside the model's own.
pub struct Calls {
    /// Mutations, by id.
    pub writes: Vec<&'static str>,
    /// Reads that need no record, by place in the registry.
    pub reads: Vec<usize>,
}

impl Calls {
    fn all() -> Self {
        // Their fixtures stand in `idempotency.rs`; here the model has them.
        let is_known =
            |id: &str| id.contains("HeadlessServiceAccount") || id.contains("HeadlessAutomationSettings");
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for (place, entry) in app::registry().unwrap().entries().iter().enumerate() {
            let meta = entry.meta;
            match meta.kind {
                Kind::Write if !is_known(meta.id) => writes.push(meta.id),
                Kind::Read if meta.path_parameters().is_empty() => reads.push(place),
                Kind::Read | Kind::Write => {}
            }
        }
        Self { writes, reads }
    }
}

impl Template {
    pub fn make() -> Self {
        let folder = Folder::new("template");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let entropy = Arc::new(SeededEntropy::new(0));
        let keys_dir = folder.0.join("keys");
        let store = folder.0.join("provost.db");
        let keys = Keys::create(&keys_dir, START, &*entropy).unwrap();
        let (made, contract) = runtime.block_on(async {
            let kernel = app::start(app::Installation {
                areas: &provost_server::areas::ALL,
                extras: Extras::default().with(segments(&keys_dir)),
                location: Location::Sqlite(store.clone()),
                keys,
                clock: Arc::new(ManualClock::new(START)),
                entropy,
                settings: Settings::default(),
            });
            let kernel = kernel.unwrap();
            let made = app::bootstrap(&kernel, "Acme", None).await.unwrap();
            let contract = Contract::of(&kernel.registry);
            kernel.stop().await;
            (made, contract)
        });
        let files = std::fs::read_dir(&keys_dir).unwrap().filter_map(|file| {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).ok()?;
            Some((PathBuf::from(path.file_name()?), bytes))
        });
        Self {
            store: std::fs::read(&store).unwrap(),
            keys: files.collect(),
            organization: made.organization_id.as_str().to_owned(),
            admin_id: made.service_account_id,
            admin: made.token.expose().clone(),
            contract: Arc::new(contract),
            calls: Arc::new(Calls::all()),
        }
    }
}

/// The wall clock of a life: what the seed set by hand, and the paused time of the runtime.
struct LifeClock {
    hand: Arc<ManualClock>,
    /// What had passed before this life.
    before: Duration,
    since: tokio::time::Instant,
}

impl LifeClock {
    fn passed(&self) -> Duration {
        self.before + self.since.elapsed()
    }
}

impl Clock for LifeClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.passed().as_millis()).unwrap();
        Timestamp::from_ms(self.hand.now().as_ms() + passed)
    }

    fn monotonic(&self) -> Duration {
        self.hand.monotonic() + self.passed()
    }
}

/// The installation of one seed, through all its lives.
pub struct World {
    pub seed: u64,
    folder: Folder,
    pub hand: Arc<ManualClock>,
    pub lives: usize,
    /// What passed in the lives that ended.
    pub passed: Duration,
    template: Arc<Template>,
}

impl World {
    pub fn new(seed: u64, template: &Arc<Template>) -> Self {
        let folder = Folder::new(&seed.to_string());
        let first = folder.0.join("0");
        std::fs::create_dir_all(&first).unwrap();
        std::fs::write(first.join("provost.db"), &template.store).unwrap();
        let keys = folder.0.join("keys");
        std::fs::create_dir_all(&keys).unwrap();
        private(&keys, 0o700);
        for (name, bytes) in &template.keys {
            std::fs::write(keys.join(name), bytes).unwrap();
            private(&keys.join(name), 0o600);
        }
        Self {
            seed,
            folder,
            hand: Arc::new(ManualClock::new(START)),
            lives: 0,
            passed: Duration::ZERO,
            template: template.clone(),
        }
    }

    pub fn calls(&self) -> Arc<Calls> {
        self.template.calls.clone()
    }

    /// Returns where the store of this life lies, and where that of the next one will.
    pub fn folders(&self) -> [PathBuf; 2] {
        [self.lives, self.lives + 1].map(|life| self.folder.0.join(life.to_string()))
    }

    pub fn store(&self) -> PathBuf {
        self.folders()[0].join("provost.db")
    }

    /// Starts the application as the program does, on the runtime that this is called in.
    pub fn start(&self, weather: &Arc<SimulatedFaults>) -> provost_kernel::Result<App> {
        let keys_dir = self.folder.0.join("keys");
        let clock: Arc<dyn Clock> = Arc::new(LifeClock {
            hand: self.hand.clone(),
            before: self.passed,
            since: tokio::time::Instant::now(),
        });
        let life = u64::try_from(self.lives).unwrap();
        let entropy = Arc::new(SeededEntropy::new(self.seed ^ ((life + 1) << 48)));
        let location = Location::Sqlite(self.store());
        let kernel = app::start(app::Installation {
            areas: &provost_server::areas::ALL,
            extras: Extras::default().with(segments(&keys_dir)),
            location: location.clone(),
            keys: Keys::open(&keys_dir)?,
            clock: clock.clone(),
            entropy: entropy.clone(),
            settings: Settings {
                rate_limits: false,
                threads: Threads::Inline(weather.clone()),
                ..Settings::default()
            },
        })?;
        let edge = Edge::new(EdgeSettings::default(), clock, entropy);
        // Without the documents: they take longer to make than a seed to run, and say nothing about its state.
        let router = edge.wrap(routes::router(&kernel, READING));
        Ok(App {
            machine: tokio::sync::OnceCell::new(),
            person: tokio::sync::Mutex::default(),
            machines: Arc::default(),
            kernel,
            clock: self.hand.clone(),
            router,
            organization: self.template.organization.clone(),
            admin_id: self.template.admin_id.clone(),
            admin: self.template.admin.clone(),
            keys_dir,
            contract: self.template.contract.clone(),
            location,
        })
    }
}

/// Key files are refused when others may read them.
fn private(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
