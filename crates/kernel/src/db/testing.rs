//! Empty stores for tests, on SQLite always and on PostgreSQL where there is one.

use super::{Access, Conn, Location, PostgresUrl};
use crate::secret::Secret;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty store that is removed when it is dropped.
pub struct TestStore {
    location: Location,
    leftover: Leftover,
}

enum Leftover {
    Folder(PathBuf),
    Schema { url: String, schema: String },
}

impl TestStore {
    /// Returns where the store is.
    pub fn location(&self) -> Location {
        self.location.clone()
    }

    /// Opens a connection that writes.
    ///
    /// # Panics
    /// When the store cannot be opened.
    #[expect(clippy::expect_used, reason = "only tests call it")]
    pub fn open(&self) -> Conn {
        Conn::open(&self.location, Access::Write).expect("the test store opens")
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        // A leftover harms nobody: names are unique, and the next run with the same name clears it.
        match &self.leftover {
            Leftover::Folder(folder) => drop(std::fs::remove_dir_all(folder)),
            Leftover::Schema { url, schema } => {
                let _ = on(url, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
            }
        }
    }
}

/// Returns an empty store on each engine. `PROVOST_TEST_POSTGRES_URL` names a database in which schemas can be
/// created; with `PROVOST_TEST_REQUIRE_POSTGRES=1` its absence is a failure.
///
/// # Panics
/// When a store cannot be made.
#[expect(clippy::expect_used, clippy::panic, reason = "only tests call it")]
pub fn locations(name: &str) -> Vec<TestStore> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = format!(
        "provost_{name}_{}_{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let folder = std::env::temp_dir().join(&unique);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
    let mut stores = vec![TestStore {
        location: Location::Sqlite(folder.join("store.sqlite")),
        leftover: Leftover::Folder(folder),
    }];
    match variable("PROVOST_TEST_POSTGRES_URL") {
        Some(url) => {
            let fresh = format!("DROP SCHEMA IF EXISTS {unique} CASCADE; CREATE SCHEMA {unique}");
            on(&url, &fresh).expect("the PostgreSQL for tests answers");
            stores.push(TestStore {
                location: Location::Postgres(PostgresUrl::new(Secret::new(in_schema(&url, &unique)))),
                leftover: Leftover::Schema { url, schema: unique },
            });
        }
        None if variable("PROVOST_TEST_REQUIRE_POSTGRES").as_deref() == Some("1") => {
            panic!("PROVOST_TEST_POSTGRES_URL is not set, and PROVOST_TEST_REQUIRE_POSTGRES is");
        }
        None => {}
    }
    stores
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where PostgreSQL is; this is no configuration"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn on(url: &str, sql: &str) -> crate::Result<()> {
    Conn::open(
        &Location::Postgres(PostgresUrl::new(Secret::new(url.to_owned()))),
        Access::Write,
    )?
    .batch(sql)
}

fn in_schema(url: &str, schema: &str) -> String {
    match (url.contains("://"), url.contains('?')) {
        (true, true) => format!("{url}&options=-csearch_path%3D{schema}"),
        (true, false) => format!("{url}?options=-csearch_path%3D{schema}"),
        (false, _) => format!("{url} options=-csearch_path={schema}"),
    }
}
