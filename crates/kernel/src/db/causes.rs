//! Why a store cannot be opened or written, in sentences for who runs the server: each names its own cause and the next step.
//!
//! Nothing of a url stands in them. Whoever mistypes one has a piece of the password in the place of a host or a database, and the
//! engine's words would repeat it.

use rusqlite::ErrorCode;
use std::error::Error as _;
use std::io::{Error, ErrorKind};
use std::path::Path;

pub(super) const SILENT: &str = "the PostgreSQL server does not answer in time; correct host and port in the url, and see that a \
                                 firewall lets this machine pass";

const NO_DESCRIPTORS: &str = "this process may open no further file; raise the limit of open files (ulimit -n, LimitNOFILE in a \
                              unit of systemd), and start again";

const NOT_POSTGRES: &str = "what answers at host and port of the PostgreSQL url does not speak as PostgreSQL does; correct host and \
                            port";

pub(super) const FULL: &str = "the disk on which the store lies is full; make room on it, and start again";

pub(super) const READ_ONLY: &str = "the store cannot be written: its file, folder or mount is read-only for this process; mount it \
                                    so that it can be written, or give folder and files to the user of this process";

pub(super) const FAILING: &str =
    "the disk on which the store lies fails; look at the log of the system, and at the disk";

/// Says why no connection to PostgreSQL was made, where the cause is known.
pub(super) fn of_connecting(error: &tokio_postgres::Error) -> Option<&'static str> {
    if let Some(db) = error.as_db_error() {
        return of_refusal(db.code().code());
    }
    let io = error.source().and_then(|source| source.downcast_ref::<Error>());
    if let Some(io) = io {
        return of_socket(io);
    }
    // The driver keeps the kind of its errors to itself.
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    match error.to_string().as_str() {
        "invalid configuration" if source.contains("password missing") => Some(
            "the PostgreSQL server asks for a password, and the url holds none; write postgres://USER:PASSWORD@HOST/DATABASE \
             into a file and name it with --database-url-file",
        ),
        "invalid configuration" if source.contains("number of ports") => {
            Some("the PostgreSQL url names more ports than hosts; write one port, or one for each host")
        }
        "authentication error" => Some(
            "the PostgreSQL server asks for a way to sign in that this program does not have; use scram-sha-256 in pg_hba.conf",
        ),
        "timeout waiting for server" => Some(SILENT),
        "connection closed" => Some(
            "the PostgreSQL server ended the connection before it let anybody in; look into its log, and see that host and port of \
             the url lead to PostgreSQL",
        ),
        "error parsing response from server" | "unexpected message from server" => Some(NOT_POSTGRES),
        _ => None,
    }
}

/// Says why PostgreSQL lets nobody in, by its SQLSTATE.
fn of_refusal(state: &str) -> Option<&'static str> {
    Some(match state {
        "28P01" => {
            "the PostgreSQL server refuses the user of the url or its password; correct them (what is special in a password is \
             percent-encoded), or set the password there with ALTER ROLE … PASSWORD"
        }
        "28000" => {
            "the PostgreSQL server does not let the user of the url in from this machine: there is no such role, it may not log in, or \
             pg_hba.conf has no line for it (for connections with TLS, hostssl); make the role or the line there"
        }
        "3D000" => {
            "the PostgreSQL server has no database of the name in the url; make it with CREATE DATABASE … TEMPLATE template0 ENCODING \
             'UTF8', or correct the name"
        }
        "42501" => {
            "the role of the PostgreSQL url may not connect to its database; grant it with GRANT CONNECT ON DATABASE … TO …"
        }
        "53300" => {
            "the PostgreSQL server has no connection left for this role; raise max_connections or the limit of the role there, or use \
             fewer here (reader.threads, writer.threads)"
        }
        "57P03" => {
            "the PostgreSQL server is starting, stopping or recovering and lets nobody in yet; try again in a moment, and look into \
             its log if it stays so"
        }
        "55000" => {
            "the PostgreSQL database of the url accepts no connections; name another one, or allow them there"
        }
        _ => return of_statement(state),
    })
}

/// Says why PostgreSQL does not do what any store needs, by its SQLSTATE.
pub(super) fn of_statement(state: &str) -> Option<&'static str> {
    Some(match state {
        "42501" => {
            "the role of the PostgreSQL url may not do what the store needs; make it the owner of the schema, or grant it USAGE and \
             CREATE on the schema and all rights on its tables"
        }
        "53100" => "the disk of the PostgreSQL server is full; make room there, and start again",
        "25006" => {
            "the PostgreSQL server only reads: it is a standby, or default_transaction_read_only is on; name the primary in the url"
        }
        _ => return None,
    })
}

fn of_socket(error: &Error) -> Option<&'static str> {
    if is_out_of_descriptors(error) {
        return Some(NO_DESCRIPTORS);
    }
    Some(match error.kind() {
        ErrorKind::ConnectionRefused => {
            "nothing listens at host and port of the PostgreSQL url; start PostgreSQL, or correct them"
        }
        ErrorKind::NotFound => {
            "there is no socket of a PostgreSQL server in the folder that the url names; start PostgreSQL, or correct folder and port"
        }
        ErrorKind::PermissionDenied => {
            "this process may not use the socket of the PostgreSQL server; give its user access to the folder, or name a host"
        }
        ErrorKind::TimedOut => SILENT,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            "no way leads from this machine to the host of the PostgreSQL url; correct the host, or look at the network"
        }
        ErrorKind::ConnectionReset
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof
        | ErrorKind::InvalidData => NOT_POSTGRES,
        // What was sent is no whole message.
        _ if error.to_string() == "bytes remaining on stream" => NOT_POSTGRES,
        _ if error.to_string().starts_with("failed to lookup address") => {
            "the host name of the PostgreSQL url is not known to this machine; correct it, or look at its name service"
        }
        _ => return None,
    })
}

/// Says why a runtime, a socket or a file could not be had, where the limit of open files is the cause.
pub(super) fn of_descriptors(error: &Error) -> Option<&'static str> {
    is_out_of_descriptors(error).then_some(NO_DESCRIPTORS)
}

/// `ENFILE` and `EMFILE`.
fn is_out_of_descriptors(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}

/// Says why SQLite does not open a file. It keeps the error of the operating system to itself, so the file is opened once more to
/// hear it.
pub(super) fn of_file(file: &Path, is_written: bool, code: ErrorCode) -> Option<String> {
    let is_about_the_file = matches!(
        code,
        ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::SystemIoFailure
    );
    if !is_about_the_file {
        return None;
    }
    let store = file.display();
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .write(is_written)
        .open(file);
    let Err(error) = opened else {
        return (code == ErrorCode::CannotOpen).then(|| {
            format!(
                "the store {store} can be read, but no file can be made beside it, which SQLite needs; let this process write to the \
                 folder, and make room on its disk"
            )
        });
    };
    if let Some(sentence) = of_descriptors(&error) {
        return Some(sentence.into());
    }
    Some(match error.kind() {
        ErrorKind::NotFound => {
            format!(
                "the folder of the store {store} is not there and cannot be made; make it, or name another with --data-dir"
            )
        }
        ErrorKind::PermissionDenied => format!(
            "this process may not open the store {store}; run it as the user that owns the folder, or give folder and files to its user"
        ),
        ErrorKind::ReadOnlyFilesystem => format!(
            "the store {store} lies on a mount that is read-only; mount it so that it can be written, or name another folder with \
             --data-dir"
        ),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FULL.into(),
        ErrorKind::IsADirectory => {
            format!("the store {store} is a folder; name the folder that holds provost.db with --data-dir")
        }
        _ => format!(
            "the store {store} cannot be opened: {error}; look at the disk and at the log of the system"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_its_own_sentence() {
        let states = [
            "28P01", "28000", "3D000", "42501", "53300", "57P03", "55000", "53100", "25006",
        ];
        let mut said: Vec<&str> = states.iter().map(|state| of_refusal(state).unwrap()).collect();
        let kinds = [
            ErrorKind::ConnectionRefused,
            ErrorKind::NotFound,
            ErrorKind::PermissionDenied,
            ErrorKind::TimedOut,
            ErrorKind::HostUnreachable,
            ErrorKind::ConnectionReset,
        ];
        said.extend(kinds.map(|kind| of_socket(&Error::from(kind)).unwrap()));
        said.push(of_socket(&Error::from_raw_os_error(24)).unwrap());
        said.push(
            of_socket(&Error::other(
                "failed to lookup address information: no such host",
            ))
            .unwrap(),
        );
        let count = said.len();
        for sentence in &said {
            assert!(sentence.contains("; "), "it has a next step: {sentence}");
            assert!(
                !sentence.ends_with('.') && sentence.starts_with(char::is_lowercase),
                "{sentence}"
            );
        }
        said.sort_unstable();
        said.dedup();
        assert_eq!(said.len(), count);
        assert_eq!(of_refusal("42P01"), None);
        assert_eq!(of_socket(&Error::other("something else")), None);
    }

    #[test]
    fn a_file_that_sqlite_does_not_open_says_why() {
        let folder = std::env::temp_dir().join(format!("provost-causes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let absent = folder.join("no/such/store.db");
        let said = of_file(&absent, true, ErrorCode::CannotOpen).unwrap();
        assert!(said.contains("--data-dir"), "{said}");
        let said = of_file(&folder, true, ErrorCode::CannotOpen).unwrap();
        assert!(said.contains("is a folder"), "{said}");
        let file = folder.join("store.db");
        std::fs::write(&file, "").unwrap();
        let said = of_file(&file, true, ErrorCode::CannotOpen).unwrap();
        assert!(said.contains("beside it"), "{said}");
        assert_eq!(of_file(&file, true, ErrorCode::NotADatabase), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
