//! What the subjects share: the engines of a run, its size, its progress and its figures.

use crate::support::{App, START, at_night, number};
use provost_kernel::area::Areas;
use provost_kernel::db::Location;
use provost_kernel::db::testing::{TestStore, migrated, migrated_file};
use provost_kernel::kernel::Settings;
use provost_server::areas::ALL;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::Runtime;

/// How much this run does, in the unit of its subject.
pub fn count(small: u64) -> u64 {
    number("PROVOST_TEST_COUNT", small)
}

#[expect(
    clippy::disallowed_methods,
    reason = "how a test runs is no configuration of the product"
)]
fn word(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The name of the engine behind a place.
pub fn engine(location: &Location) -> &'static str {
    match location {
        Location::Sqlite(_) => "SQLite",
        Location::Postgres(_) => "PostgreSQL",
    }
}

/// Stores without records on the engines that this run is about.
pub fn stores(name: &str) -> Vec<TestStore> {
    on_engines(name, "both")
}

/// Returns a store without records on the engines that are asked for, else on these.
fn on_engines(name: &str, unless_asked: &str) -> Vec<TestStore> {
    let wanted = word("PROVOST_TEST_ENGINE").unwrap_or_else(|| unless_asked.to_owned());
    let mut stores = if wanted == "sqlite" {
        vec![migrated_file(name, ALL.migrations(), START)]
    } else {
        migrated(name, ALL.migrations(), START)
    };
    stores.retain(|store| wanted == "both" || engine(&store.location()).to_lowercase().starts_with(&wanted));
    assert!(!stores.is_empty(), "no store of the engine {wanted}");
    stores
}

/// Threads for a kernel and its clients.
pub fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Settings without a limit that a crowd of clients would meet.
pub fn roomy() -> Settings {
    Settings {
        // Requests whose clients left still count until they are answered.
        rate_limits: false,
        max_in_flight: 512,
        ..Settings::default()
    }
}

/// Runs a scenario on every engine of this run and reports its figures by engine.
pub fn each<F: Future<Output = Value>>(subject: &str, settings: &Settings, scenario: impl Fn(Arc<App>) -> F) {
    each_of(&ALL, subject, settings, scenario);
}

/// As [`each`], of a program of these areas.
pub fn each_of<F: Future<Output = Value>>(
    areas: &'static Areas,
    subject: &str,
    settings: &Settings,
    scenario: impl Fn(Arc<App>) -> F,
) {
    on(areas, stores(subject), subject, settings, scenario);
}

/// As [`each`], on SQLite alone unless it is night: for walks that no engine makes a difference to.
pub fn once<F: Future<Output = Value>>(subject: &str, settings: &Settings, scenario: impl Fn(Arc<App>) -> F) {
    once_of(&ALL, subject, settings, scenario);
}

/// As [`once`], of a program of these areas.
pub fn once_of<F: Future<Output = Value>>(
    areas: &'static Areas,
    subject: &str,
    settings: &Settings,
    scenario: impl Fn(Arc<App>) -> F,
) {
    let engine = if at_night() { "both" } else { "sqlite" };
    on(areas, on_engines(subject, engine), subject, settings, scenario);
}

fn on<F: Future<Output = Value>>(
    areas: &'static Areas,
    stores: Vec<TestStore>,
    subject: &str,
    settings: &Settings,
    scenario: impl Fn(Arc<App>) -> F,
) {
    let mut figures = Map::new();
    for store in stores {
        let location = store.location();
        let found = runtime().block_on(async {
            let app = Arc::new(App::start_of(areas, location.clone(), settings.clone()).await);
            let found = scenario(app.clone()).await;
            app.kernel.stop().await;
            let _ = std::fs::remove_dir_all(&app.keys_dir);
            found
        });
        figures.insert(engine(&location).to_owned(), found);
    }
    report(subject, &figures.into());
}

/// Says what a run reached, and writes it where it is asked for.
pub fn report(subject: &str, figures: &Value) {
    eprintln!("{subject}: {figures}");
    if let Some(path) = word("PROVOST_TEST_REPORT") {
        std::fs::write(path, figures.to_string()).unwrap();
    }
}

/// Says now and then how far a long run is.
pub struct Progress {
    subject: &'static str,
    whole: u64,
    done: AtomicU64,
}

impl Progress {
    pub fn of(subject: &'static str, whole: u64) -> Self {
        Self {
            subject,
            whole,
            done: AtomicU64::new(0),
        }
    }

    pub fn add(&self, more: u64) {
        let before = self.done.fetch_add(more, Ordering::Relaxed);
        let step = (self.whole / 50).max(1);
        if before / step != (before + more) / step {
            eprintln!("{}: {} of {}", self.subject, before + more, self.whole);
        }
    }
}
