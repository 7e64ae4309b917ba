//! Driver errors become errors of the kernel here, and nowhere else.
//!
//! The private detail names the statement and the engine's words. It never holds a bound value: PostgreSQL's
//! DETAIL, CONTEXT and HINT are dropped, and so is the message of a data exception (SQLSTATE class 22), which
//! quotes the value.

use super::causes;
use crate::error::{Class, Code, Error, OperatorNotice};
use rusqlite::ffi::ErrorCode;
use std::error::Error as _;

/// A failure of the store, before anybody decided what it means for the transaction.
#[derive(Debug)]
pub(super) struct Fault {
    pub class: Class,
    detail: String,
    /// Whether the detail is a sentence for the operator.
    is_told: bool,
}

impl Fault {
    pub fn new(class: Class, detail: impl Into<String>) -> Self {
        Self {
            class,
            detail: detail.into(),
            is_told: false,
        }
    }

    /// Returns that no connection can be had, with a sentence that says to the operator what to do.
    pub fn told(sentence: impl Into<String>) -> Self {
        Self {
            is_told: true,
            ..Self::new(Class::Unavailable, sentence)
        }
    }

    /// Puts a sentence for the operator in the place of the engine's words, where there is one.
    pub fn told_by(mut self, sentence: Option<impl Into<String>>) -> Self {
        if let Some(sentence) = sentence {
            self.detail = sentence.into();
            self.is_told = true;
        }
        self
    }

    /// Adds what was being done. A sentence stays as it is.
    pub fn during(mut self, what: &str) -> Self {
        if !self.is_told {
            self.detail = format!("{what}: {}", self.detail);
        }
        self
    }

    /// The statement was not answered where it was asked, so its savepoint cannot contain the failure.
    pub fn of_queued(mut self) -> Self {
        if matches!(self.class, Class::Refused | Class::Unavailable) {
            self.class = Class::Retry;
        }
        self
    }

    /// The failure happened before any work: the store cannot take work now.
    pub fn of_connecting(mut self) -> Self {
        if self.class != Class::Broken {
            self.class = Class::Unavailable;
        }
        self
    }

    pub fn of_sqlite(error: &rusqlite::Error, autocommit_in_transaction: bool) -> Self {
        let class = match error.sqlite_error_code() {
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::DiskFull
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase,
            ) => Class::Broken,
            // SQLite has rolled the whole transaction back by itself.
            _ if autocommit_in_transaction => Class::Retry,
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::CannotOpen,
            ) => Class::Unavailable,
            Some(ErrorCode::SchemaChanged) => Class::Retry,
            _ => Class::Refused,
        };
        let sentence = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Some(causes::FULL.to_owned()),
            Some(ErrorCode::ReadOnly) => Some(causes::READ_ONLY.to_owned()),
            Some(ErrorCode::SystemIoFailure) => Some(format!("{} ({error})", causes::FAILING)),
            _ => None,
        };
        Self::new(class, error.to_string()).told_by(sentence)
    }

    /// Returns why no connection to PostgreSQL was made.
    pub fn of_connecting_to_postgres(error: &tokio_postgres::Error) -> Self {
        causes::of_connecting(error).map_or_else(|| Self::of_postgres(error), Self::told)
    }

    pub fn of_postgres(error: &tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            let io = error
                .source()
                .is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
            let class = if error.is_closed() || io {
                Class::Lost
            } else {
                Class::Refused
            };
            let mut detail = error.to_string();
            if let Some(source) = error.source() {
                detail = format!("{detail}: {source}");
            }
            return Self::new(class, detail);
        };
        let state = db.code().code();
        let detail = if state.starts_with("22") {
            format!("SQLSTATE {state}")
        } else {
            format!("SQLSTATE {state}: {}", db.message())
        };
        // What it names is a schema or a table.
        let sentence = causes::of_statement(state).map(|sentence| format!("{sentence} ({})", db.message()));
        Self::new(class_of(state), detail).told_by(sentence)
    }
}

fn class_of(sqlstate: &str) -> Class {
    match sqlstate {
        // disk full, I/O error, corrupt data, corrupt index
        "53100" | "58030" | "XX001" | "XX002" => Class::Broken,
        // serialization failure, deadlock, cached plan, unknown prepared statement, aborted transaction
        "40001" | "40P01" | "0A000" | "26000" | "25P02" => Class::Retry,
        // shut down, crashed, starting, idle too long; 25006: the primary has become a standby
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25006" => Class::Lost,
        // lock timeout, statement timeout
        "55P03" | "57014" => Class::Unavailable,
        other if other.starts_with("08") => Class::Lost,
        // too many connections, out of memory
        other if other.starts_with("53") => Class::Unavailable,
        _ => Class::Refused,
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let public = match fault.class {
            Class::Refused if fault.is_told => return Error::internal(OperatorNotice(fault.detail)),
            Class::Refused => return Error::internal(fault.detail),
            Class::Retry => "the store is busy; try again",
            Class::Lost => "the connection to the store was lost; try again",
            Class::Unavailable => "the store cannot take the request now; try again",
            Class::Broken => "the store cannot be written",
        };
        let error = Error::new(Code::Unavailable, public)
            .class(fault.class)
            .retry_after(1);
        if fault.is_told {
            return error.caused_by(OperatorNotice(fault.detail));
        }
        error.caused_by(fault.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_sqlstate_has_its_class() {
        for (class, states) in [
            (Class::Unavailable, &["55P03", "57014", "53300", "53200"][..]),
            (Class::Retry, &["40001", "40P01", "0A000", "26000"]),
            (Class::Lost, &["57P01", "57P02", "57P03", "25P03", "08006"]),
            (Class::Broken, &["53100", "58030", "XX001"]),
            (Class::Refused, &["23505", "42P01", "22P02", "23514"]),
        ] {
            for state in states {
                assert_eq!(class_of(state), class, "{state}");
            }
        }
    }

    /// Proves WK-2.
    #[test]
    fn sqlite_faults_have_their_class() {
        use rusqlite::ffi;
        for (code, class) in [
            (ffi::SQLITE_BUSY, Class::Unavailable),
            (ffi::SQLITE_LOCKED, Class::Unavailable),
            (ffi::SQLITE_CANTOPEN, Class::Unavailable),
            (ffi::SQLITE_IOERR_FSYNC, Class::Broken),
            (ffi::SQLITE_FULL, Class::Broken),
            (ffi::SQLITE_CORRUPT_INDEX, Class::Broken),
            (ffi::SQLITE_NOTADB, Class::Broken),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, Class::Refused),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(Fault::of_sqlite(&error, false).class, class, "{code}");
        }
        let busy = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None);
        assert_eq!(Fault::of_sqlite(&busy, true).class, Class::Retry);
    }
}
