//! SQLite, bundled. One file, one writer, readers on snapshots (WAL).

use super::Access;
use super::causes;
use super::fault::Fault;
use super::param::Param;
use super::row::{BufferedRows, Row, Rows};
use super::statement::{Call, Statement};
use crate::durable::{make_private_file, sync_folder};
use crate::error::Class;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Older ones lose commits when a write races a checkpoint.
const OLDEST: i32 = 3_051_003;

/// At least the size of the catalogue, so that nothing is prepared twice.
const STATEMENTS: usize = 512;

/// How long a second process may hold the write lock. Our own transactions end within 100 ms.
const BUSY: Duration = Duration::from_secs(5);

/// After so many pages (16 MB) of the log a commit copies them into the file.
const LONG_LOG: i64 = 4000;

/// `wal_autocheckpoint` is off because SQLite tells nobody when its own checkpoints fail: see `checkpoint_long_log`.
/// `secure_delete`: an erased secret must not stay in a free page. Cache sizes are KiB when negative; they
/// are small because the whole process is to idle at 40 MiB.
const WRITER: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -4096;";

const READER: &str = "
    PRAGMA query_only = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA mmap_size = 268435456;
    PRAGMA cache_size = -1024;";

/// It may write elsewhere: a backup is a file that it makes.
const INSPECTOR: &str = "PRAGMA temp_store = MEMORY;";

pub(super) struct Sqlite {
    connection: Connection,
    /// Between BEGIN and COMMIT as the caller sees it. SQLite itself may have rolled back after an error.
    open: bool,
    /// The open transaction only reads, also where the connection could write.
    reading: bool,
    savepoint: bool,
}

/// Has the file logged ahead. Two processes that do so at once on a new file do not wait for each other: SQLite fails
/// one of them at once, whatever its busy timeout, and that one tries again.
///
/// # Errors
/// Those of SQLite, and that the file stays without a log ahead, as where files have no shared memory.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    const PAUSE: Duration = Duration::from_millis(20);
    connection.busy_timeout(Duration::ZERO)?;
    let mut attempts = BUSY.as_millis() / PAUSE.as_millis();
    loop {
        match logged_ahead(connection) {
            Err(error) if attempts > 0 && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                attempts -= 1;
                std::thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// INVARIANT WK-2: the statement is run to its end. The file is changed when it ends, after the row that tells the new
/// mode, and a change that failed is told only then.
fn logged_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = statement.query([])?;
    let mut ahead = false;
    while let Some(row) = rows.next()? {
        ahead = row.get_ref(0)?.as_str()?.eq_ignore_ascii_case("wal");
    }
    if ahead {
        return Ok(());
    }
    let reason = "the file cannot be logged ahead where it stands".to_owned();
    Err(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
        Some(reason),
    ))
}

impl Sqlite {
    pub fn open(file: &Path, access: Access) -> Result<Self, Fault> {
        if rusqlite::version_number() < OLDEST {
            let found = rusqlite::version();
            return Err(Fault::new(
                Class::Refused,
                format!("SQLite {found} is older than 3.51.3"),
            ));
        }
        let (flags, settings) = match access {
            Access::Read => (OpenFlags::SQLITE_OPEN_READ_ONLY, READER),
            Access::Write => (
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
                WRITER,
            ),
        };
        if access == Access::Write {
            // INVARIANT DU-2: SQLite would make the file as the mask of the process says, and gives its log and its index the
            // modes of the file. Why it cannot be made, SQLite says below.
            drop(make_private_file(file));
        }
        let opened = Self::configured(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX, settings, access)
            .map_err(|error| Self::not_opened(file, access, &error))?;
        if access == Access::Write {
            opened.keep_names(file)?;
        }
        Ok(opened)
    }

    fn not_opened(file: &Path, access: Access, error: &rusqlite::Error) -> Fault {
        let code = error.sqlite_error_code();
        let sentence = code.and_then(|code| causes::of_file(file, access == Access::Write, code));
        Fault::of_sqlite(error, false)
            .during("open SQLite")
            .told_by(sentence)
    }

    /// Opens a file that is read and not changed: as one for writing, or, on a mount that is read-only, without the files beside it that
    /// SQLite makes otherwise.
    ///
    /// Errors: a sentence for a log that such a mount holds and that nobody can copy into the file.
    pub fn open_to_inspect(file: &Path) -> Result<Self, Fault> {
        let opened = std::fs::OpenOptions::new().write(true).open(file);
        match opened {
            Err(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => {
                Self::open_unchanging(file)
            }
            _ => Self::open(file, Access::Write),
        }
    }

    /// Opens a file that nobody writes to. With an index beside it SQLite reads the log as well: a server works on it from another
    /// mount, or did until it was killed.
    fn open_unchanging(file: &Path) -> Result<Self, Fault> {
        let beside = |end: &str| {
            let mut name = file.as_os_str().to_owned();
            name.push(end);
            std::fs::metadata(name)
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = if beside("-shm").is_ok() {
            Self::configured(file, flags, INSPECTOR, Access::Read)
        } else if ["-wal", "-journal"]
            .iter()
            .any(|end| beside(end).is_ok_and(|log| log.len() > 0))
        {
            // Without it the newest changes would be missing, or half a change be there, without a word.
            return Err(Fault::told(format!(
                "the store {} lies on a mount that is read-only and was not closed: its newest changes are in the log beside it, which \
                 cannot be read there; copy the file and the one that ends with -wal or -journal to where they can be written, and name \
                 the copy",
                file.display()
            )));
        } else {
            let path = percent_encode(file.as_os_str().as_bytes(), NON_ALPHANUMERIC);
            let uri = format!("file:{path}?immutable=1");
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Self::configured(Path::new(&uri), flags, INSPECTOR, Access::Read)
        };
        opened.map_err(|error| Self::not_opened(file, Access::Read, &error))
    }

    /// INVARIANT WK-2: the names of the file and of its log are durable before anything is committed. SQLite syncs their
    /// folder as well, but passes over a failure of that.
    fn keep_names(&self, file: &Path) -> Result<(), Fault> {
        // The first read makes the log.
        self.connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
            .map_err(|error| Fault::of_sqlite(&error, false).during("open SQLite's log"))?;
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        sync_folder(folder)
            .map_err(|error| Fault::new(Class::Broken, format!("sync the folder of the store: {error}")))
    }

    fn configured(file: &Path, flags: OpenFlags, settings: &str, access: Access) -> rusqlite::Result<Self> {
        let connection = Connection::open_with_flags(file, flags)?;
        if access == Access::Write {
            write_ahead(&connection)?;
        }
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // "text" in double quotes is a mistake on PostgreSQL; let it be one here as well.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
        // A plan does not depend on the values of parameters: nothing is prepared again because one changed.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.execute_batch(settings)?;
        Ok(Self {
            connection,
            open: false,
            reading: false,
            savepoint: false,
        })
    }

    pub fn begin(&mut self, access: Access) -> Result<(), Fault> {
        self.command(match access {
            Access::Read => "BEGIN DEFERRED",
            Access::Write => "BEGIN IMMEDIATE",
        })?;
        (self.open, self.reading) = (true, access == Access::Read);
        Ok(())
    }

    pub fn commit(&mut self) -> Result<(), Fault> {
        self.command("COMMIT")?;
        (self.open, self.savepoint) = (false, false);
        match self.checkpoint_long_log() {
            // INVARIANT WK-2: the transaction is durable in the log, but a disk that fails gets no further one.
            Err(fault) if fault.class == Class::Broken => Err(fault),
            // Somebody else is at it, or will be.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn checkpoint_long_log(&self) -> Result<(), Fault> {
        let pages = self.log_pages("PRAGMA wal_checkpoint(NOOP)")?;
        if pages >= LONG_LOG {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Copies the log into the file as far as readers allow, durably: the log is used again from its beginning only
    /// after that.
    pub fn checkpoint(&self) -> Result<(), Fault> {
        self.log_pages("PRAGMA wal_checkpoint(PASSIVE)").map(drop)
    }

    fn log_pages(&self, sql: &'static str) -> Result<i64, Fault> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut prepared| prepared.query_row([], |row| row.get(1)))
            .map_err(|error| Fault::of_sqlite(&error, false).during(sql))
    }

    /// Ends the transaction, if there is one.
    pub fn rollback(&mut self) -> Result<(), Fault> {
        (self.open, self.reading, self.savepoint) = (false, false, false);
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.command("ROLLBACK")
    }

    pub fn savepoint(&mut self) -> Result<(), Fault> {
        self.release()?;
        self.command("SAVEPOINT unit")?;
        self.savepoint = true;
        Ok(())
    }

    pub fn release(&mut self) -> Result<(), Fault> {
        if self.savepoint {
            self.command("RELEASE unit")?;
            self.savepoint = false;
        }
        Ok(())
    }

    pub fn rollback_to(&mut self) -> Result<(), Fault> {
        if !self.savepoint {
            return Err(Fault::new(Class::Refused, "rollback_to without a savepoint"));
        }
        self.command("ROLLBACK TO unit")
    }

    /// Runs one statement; `each` says whether it wants another row. Returns how many rows were affected.
    pub fn run(
        &mut self,
        statement: &'static Statement,
        params: &[Param<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> bool,
    ) -> Result<u64, Fault> {
        self.attempt(statement, params, each).map_err(|error| {
            Fault::of_sqlite(&error, self.open && self.connection.is_autocommit()).during(statement.name)
        })
    }

    fn attempt(
        &self,
        statement: &'static Statement,
        params: &[Param<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> bool,
    ) -> rusqlite::Result<u64> {
        let mut prepared = self.connection.prepare_cached(statement.sqlite)?;
        // An unbound parameter would silently be NULL.
        if prepared.parameter_count() != params.len() {
            let wanted = prepared.parameter_count();
            return Err(rusqlite::Error::InvalidParameterCount(params.len(), wanted));
        }
        for (index, param) in params.iter().enumerate() {
            prepared.raw_bind_parameter(index + 1, param)?;
        }
        let reads = prepared.readonly();
        if self.reading && !reads {
            return Err(rusqlite::Error::InvalidQuery);
        }
        let mut rows = prepared.raw_query();
        let mut returned = 0;
        while let Some(row) = rows.next()? {
            returned += 1;
            if !each(&Row::sqlite(statement, row)) {
                break;
            }
        }
        Ok(if reads {
            returned
        } else {
            self.connection.changes()
        })
    }

    pub fn calls(&mut self, calls: &[Call<'_>]) -> Result<Vec<Rows>, Fault> {
        calls.iter().map(|call| self.call(call)).collect()
    }

    fn call(&mut self, call: &Call<'_>) -> Result<Rows, Fault> {
        let statement = call.statement;
        let mut kept = Vec::new();
        let affected = self.run(statement, &call.params, &mut |row| {
            kept.push(row.keep());
            true
        })?;
        Ok(Rows {
            statement,
            kept: BufferedRows::Sqlite(kept),
            affected,
        })
    }

    /// Runs a script.
    pub fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        self.connection.execute_batch(sql).map_err(|error| {
            Fault::of_sqlite(&error, self.open && self.connection.is_autocommit()).during("script")
        })
    }

    fn command(&mut self, sql: &'static str) -> Result<(), Fault> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut prepared| prepared.raw_execute())
            .map(|_| ())
            .map_err(|error| {
                Fault::of_sqlite(&error, self.open && self.connection.is_autocommit()).during(sql)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves WK-2.
    #[test]
    fn a_file_that_cannot_be_logged_ahead_is_refused() {
        let in_memory = Connection::open_in_memory().unwrap();
        let error = write_ahead(&in_memory).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen));
    }

    #[test]
    fn a_file_that_cannot_change_is_read_and_copied_and_not_written() {
        let folder = std::env::temp_dir().join(format!("provost unchanging?#%-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("store.db");
        let mut written = Sqlite::open(&file, Access::Write).unwrap();
        written
            .batch("CREATE TABLE t (a); INSERT INTO t VALUES (7)")
            .unwrap();
        let count = |opened: &Sqlite| {
            let count = opened
                .connection
                .query_row("SELECT a FROM t", [], |row| row.get::<_, i64>(0));
            count.unwrap()
        };
        // Beside a writer the index is there, and its log is read.
        assert_eq!(count(&Sqlite::open_unchanging(&file).unwrap()), 7);
        drop(written);
        let names = || std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(names(), 1, "the log is gone with the writer");
        let mut opened = Sqlite::open_unchanging(&file).unwrap();
        assert_eq!(count(&opened), 7);
        let refused = opened.batch("INSERT INTO t VALUES (8)").unwrap_err();
        assert!(String::from(crate::Error::from(refused).told().unwrap()).contains("read-only"));
        let copy = folder.join("copy.db");
        opened
            .connection
            .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
            .unwrap();
        assert_eq!(count(&Sqlite::open_unchanging(&copy).unwrap()), 7);
        assert_eq!(names(), 2, "nothing was made beside them");
        // A log without its index is not passed over.
        for log in ["store.db-wal", "store.db-journal"].map(|name| folder.join(name)) {
            std::fs::write(&log, "x").unwrap();
            let refused = crate::Error::from(Sqlite::open_unchanging(&file).err().unwrap());
            assert!(refused.told().unwrap().contains("-wal"), "{refused:?}");
            std::fs::remove_file(&log).unwrap();
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Proves WK-2.
    #[test]
    fn the_log_is_there_before_the_first_commit() {
        // The first location is SQLite's on every machine.
        let store = crate::db::testing::locations("log_ahead").swap_remove(0);
        let crate::db::Location::Sqlite(file) = store.location() else {
            panic!("no file: {:?}", store.location());
        };
        let _opened = Sqlite::open(&file, Access::Write).unwrap();
        let log = file.with_file_name("store.sqlite-wal");
        assert!(log.exists(), "its name is synced with that of the file");
    }
}
