//! Stores for tests, on SQLite always and on PostgreSQL where there is one: empty ones, and copies of a template.

use super::{Access, Conn, Location, Migration, PostgresUrl, migrate};
use crate::params;
use crate::secret::Secret;
use crate::statements;
use crate::time::Timestamp;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A store that is removed when it is dropped.
pub struct TestStore {
    location: Location,
    leftover: Leftover,
}

enum Leftover {
    Folder(PathBuf),
    Schema { url: String, schema: String },
    Database { url: String, database: String },
}

/// The schema of a copy on PostgreSQL, which has a database of its own.
const SCHEMA: &str = "store";

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
            Leftover::Database { url, database } => {
                let _ = on(url, &format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"));
            }
        }
    }
}

/// Returns an empty store on each engine. `PROVOST_TEST_POSTGRES_URL` names a database in which schemas can be
/// created; with `PROVOST_TEST_REQUIRE_POSTGRES=1` its absence is a failure.
///
/// # Panics
/// When a store cannot be made.
#[expect(clippy::expect_used, reason = "only tests call it")]
pub fn locations(name: &str) -> Vec<TestStore> {
    let unique = unique(name);
    let mut stores = vec![in_folder(&unique)];
    if let Some(url) = postgres() {
        let fresh = format!("DROP SCHEMA IF EXISTS {unique} CASCADE; CREATE SCHEMA {unique}");
        on(&url, &fresh).expect("the PostgreSQL for tests answers");
        stores.push(TestStore {
            location: in_schema(&url, &unique),
            leftover: Leftover::Schema { url, schema: unique },
        });
    }
    stores
}

/// Returns a store with these migrations and nothing else on each engine; as [`locations`], but the user of PostgreSQL has to be
/// able to create databases. The migrations are applied once, for all processes of all runs, and what they make is copied.
/// It holds no key, secret or identity, so that two copies are two stores.
///
/// # Panics
/// When a store cannot be made.
#[expect(clippy::expect_used, reason = "only tests call it")]
pub fn migrated(name: &str, migrations: &[Migration], now: Timestamp) -> Vec<TestStore> {
    let mut stores = vec![migrated_file(name, migrations, now)];
    if let Some(url) = postgres() {
        let (template, unique) = (Template::of(migrations, now), unique(name));
        let mut conn = connected(&url).expect("the PostgreSQL for tests answers");
        template.database(&url, &mut conn).expect("the template is made");
        // Each is a transaction of its own, as PostgreSQL asks of what makes and drops databases.
        for sql in [
            format!("DROP DATABASE IF EXISTS {unique} WITH (FORCE)"),
            format!("CREATE DATABASE {unique} TEMPLATE {}", template.name),
        ] {
            conn.batch(&sql).expect("the template is copied");
        }
        stores.push(TestStore {
            location: in_schema(&in_database(&url, &unique), SCHEMA),
            leftover: Leftover::Database {
                url,
                database: unique,
            },
        });
    }
    stores
}

/// Returns a store on SQLite as [`migrated`] does, and none on PostgreSQL.
///
/// # Panics
/// When the store cannot be made.
#[expect(clippy::expect_used, reason = "only tests call it")]
pub fn migrated_file(name: &str, migrations: &[Migration], now: Timestamp) -> TestStore {
    let store = in_folder(&unique(name));
    if let Location::Sqlite(file) = &store.location {
        std::fs::copy(Template::of(migrations, now).file(), file).expect("the template is copied");
    }
    store
}

statements! {
    /// Counts the databases of a name.
    DATABASES = unscoped("a test asks for a database") "SELECT COUNT(*) FROM pg_database WHERE datname = ?1";
}

/// A store with migrations and nothing else, which every test copies.
///
/// Tests run in processes of their own, and several of them miss the template at once. One makes it, under a lock that ends with
/// its process, and under another name, which it changes when the whole is there: who finds the name finds a whole template, and
/// what a killed maker left is made anew. Nobody ever connects to a template, as PostgreSQL copies none that is in use.
struct Template<'a> {
    /// Says which migrations: another text has another name.
    name: String,
    migrations: &'a [Migration],
    now: Timestamp,
}

impl<'a> Template<'a> {
    fn of(migrations: &'a [Migration], now: Timestamp) -> Self {
        let mut hasher = DefaultHasher::new();
        now.hash(&mut hasher);
        include_str!("migrate.rs").hash(&mut hasher);
        for migration in migrations {
            let Migration {
                number,
                name,
                sqlite,
                postgres,
            } = migration;
            (number, name, sqlite, postgres).hash(&mut hasher);
        }
        let name = format!("provost_template_{:016x}", hasher.finish());
        Self {
            name,
            migrations,
            now,
        }
    }

    /// Returns the SQLite file, and makes it first where it is missing.
    #[expect(clippy::expect_used, reason = "only tests call it")]
    fn file(&self) -> PathBuf {
        let file = std::env::temp_dir().join(format!("{}.sqlite", self.name));
        if file.exists() {
            return file;
        }
        let _alone = self.alone();
        if !file.exists() {
            let part = in_folder(&unique("template"));
            let mut conn = part.open();
            migrate(&mut conn, self.migrations, self.now).expect("the template is made");
            conn.checkpoint().expect("all of it is in one file");
            drop(conn);
            if let Location::Sqlite(part) = &part.location {
                std::fs::rename(part, &file).expect("the template gets its name");
            }
        }
        file
    }

    /// Makes the PostgreSQL database where it is missing; the connection is to another database of the same server.
    fn database(&self, url: &str, conn: &mut Conn) -> crate::Result<()> {
        if self.is_there(conn)? {
            return Ok(());
        }
        let _alone = self.alone();
        if self.is_there(conn)? {
            return Ok(());
        }
        let part = format!("{}_part", self.name);
        conn.batch(&format!("DROP DATABASE IF EXISTS {part} WITH (FORCE)"))?;
        conn.batch(&format!("CREATE DATABASE {part}"))?;
        let inside = in_database(url, &part);
        connected(&inside)?.batch(&format!("CREATE SCHEMA {SCHEMA}"))?;
        let mut maker = Conn::open(&in_schema(&inside, SCHEMA), Access::Write)?;
        migrate(&mut maker, self.migrations, self.now)?;
        drop(maker);
        conn.batch(&format!("ALTER DATABASE {part} RENAME TO {}", self.name))
    }

    fn is_there(&self, conn: &mut Conn) -> crate::Result<bool> {
        let found = conn.read(|tx| tx.query_opt(&DATABASES, params![&self.name], |row| row.get::<i64>(0)))?;
        Ok(found == Some(1))
    }

    /// Waits until no other process makes this template. The others wait for as long as the file is held.
    #[expect(clippy::expect_used, reason = "only tests call it")]
    fn alone(&self) -> std::fs::File {
        let lock = std::fs::File::create(std::env::temp_dir().join(format!("{}.lock", self.name)));
        let lock = lock.expect("the temporary folder is writable");
        lock.lock().expect("a file can be locked");
        lock
    }
}

/// Returns a name that no other store of this or another process has.
fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "provost_{name}_{}_{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Returns the place of an SQLite store in an empty folder.
#[expect(clippy::expect_used, reason = "only tests call it")]
fn in_folder(unique: &str) -> TestStore {
    let folder = std::env::temp_dir().join(unique);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
    TestStore {
        location: Location::Sqlite(folder.join("store.sqlite")),
        leftover: Leftover::Folder(folder),
    }
}

/// Returns the URL of the PostgreSQL for tests, if there is one.
fn postgres() -> Option<String> {
    let url = variable("PROVOST_TEST_POSTGRES_URL");
    let is_required = variable("PROVOST_TEST_REQUIRE_POSTGRES").as_deref() == Some("1");
    assert!(
        url.is_some() || !is_required,
        "PROVOST_TEST_POSTGRES_URL is not set, and PROVOST_TEST_REQUIRE_POSTGRES is"
    );
    url
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where PostgreSQL is; this is no configuration"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn on(url: &str, sql: &str) -> crate::Result<()> {
    connected(url)?.batch(sql)
}

/// Returns a connection that may wait: making and dropping databases takes as long as the machine is busy.
fn connected(url: &str) -> crate::Result<Conn> {
    let location = Location::Postgres(PostgresUrl::new(Secret::new(url.to_owned())));
    let mut conn = Conn::open(&location, Access::Write)?;
    conn.set_statement_timeouts(false)?;
    Ok(conn)
}

fn in_schema(url: &str, schema: &str) -> Location {
    let url = match (url.contains("://"), url.contains('?')) {
        (true, true) => format!("{url}&options=-csearch_path%3D{schema}"),
        (true, false) => format!("{url}?options=-csearch_path%3D{schema}"),
        (false, _) => format!("{url} options=-csearch_path={schema}"),
    };
    Location::Postgres(PostgresUrl::new(Secret::new(url)))
}

/// Returns the URL of another database of the same server.
fn in_database(url: &str, database: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        let others = url.split(' ').filter(|part| !part.starts_with("dbname="));
        return others
            .chain([format!("dbname={database}").as_str()])
            .collect::<Vec<_>>()
            .join(" ");
    };
    let (place, options) = rest
        .split_once('?')
        .map_or((rest, String::new()), |(place, options)| {
            (place, format!("?{options}"))
        });
    let host = place.split('/').next().unwrap_or_default();
    format!("{scheme}://{host}/{database}{options}")
}
