//! The line to one PostgreSQL server: a socket and the runtime that this thread drives it with.
//!
//! Keeps TL-1.

use super::causes;
use super::fault::Fault;
use super::plain::{ASKED_IN_CLEAR, PlaintextConnector, is_asked_in_clear};
use super::tls::{Connector, is_not_offered};
use super::url::{Mode, PostgresUrl, Read};
use crate::error::Class;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Client, Config, Connection, NoTls, Socket};

const OLDEST: u32 = 15;

/// A healthy server answers within its own statement timeout; after this the connection counts as lost.
const ANSWER: Duration = Duration::from_secs(15);

/// Migrations may take long; the server's own limits are off while they run.
const LONG_ANSWER: Duration = Duration::from_hours(24);

const CONNECT: Duration = Duration::from_secs(8);

const GOODBYE: Duration = Duration::from_millis(100);

type Link = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// One connection's socket side. It moves only inside [`PostgresConnection::drive`] and [`PostgresConnection::send`].
pub(super) struct PostgresConnection {
    runtime: Runtime,
    /// Absent when the connection is gone.
    link: Option<Link>,
    patience: Duration,
}

impl PostgresConnection {
    pub fn open(url: &PostgresUrl) -> Result<(Client, Self), Fault> {
        let read = url.read().map_err(Fault::told)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| match causes::of_descriptors(&error) {
                Some(sentence) => Fault::told(sentence),
                None => Fault::new(Class::Unavailable, error.to_string()),
            })?;
        let (client, link) = runtime
            .block_on(async { timeout(CONNECT, connect(read)).await })
            .unwrap_or_else(|_| Err(Fault::told(causes::SILENT)))
            .map_err(|fault| fault.of_connecting().during("connect to PostgreSQL"))?;
        Ok((
            client,
            Self {
                runtime,
                link: Some(link),
                patience: ANSWER,
            },
        ))
    }

    pub fn is_lost(&self) -> bool {
        self.link.is_none()
    }

    /// Gives the connection up, whatever its state is.
    pub fn hang_up(&mut self) {
        self.link = None;
    }

    /// Says whether an answer has to come within seconds.
    pub fn set_statement_timeouts(&mut self, set_statement_timeouts: bool) {
        self.patience = if set_statement_timeouts {
            ANSWER
        } else {
            LONG_ANSWER
        };
    }

    /// Runs `work` and the connection on this thread until the work is done.
    ///
    /// The work waits for nothing but the connection, so it is polled around each poll of the connection and
    /// needs no waker of its own.
    pub fn drive<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Fault> {
        let link = &mut self.link;
        let mut work = pin!(work);
        let outcome = self.runtime.block_on(async {
            let both = poll_fn(|ctx| {
                let mut quiet = Context::from_waker(Waker::noop());
                if let Poll::Ready(value) = work.as_mut().poll(&mut quiet) {
                    return Poll::Ready(value);
                }
                // Dropping the link makes the work fail with "connection closed".
                if link
                    .as_mut()
                    .is_none_or(|link| link.as_mut().poll(ctx).is_ready())
                {
                    *link = None;
                }
                work.as_mut().poll(&mut quiet)
            });
            timeout(self.patience, both).await
        });
        outcome.map_err(|_| {
            self.hang_up();
            Fault::new(Class::Lost, "no answer from PostgreSQL in time")
        })
    }

    /// Writes what the client has queued to the socket and waits for nothing.
    pub fn send(&mut self) {
        let link = &mut self.link;
        self.runtime.block_on(poll_fn(|ctx| {
            if link
                .as_mut()
                .is_some_and(|link| link.as_mut().poll(ctx).is_ready())
            {
                *link = None;
            }
            Poll::Ready(())
        }));
    }
}

/// With its client gone, the link tells the server that it ends, which otherwise would log a broken pipe.
impl Drop for PostgresConnection {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            // Nothing depends on the goodbye.
            let _ = self.runtime.block_on(async { timeout(GOODBYE, link).await });
        }
    }
}

async fn connect(read: Read) -> Result<(Client, Link), Fault> {
    let Read {
        mut config,
        mode,
        is_remote,
        root,
    } = read;
    if mode == Mode::Plain {
        return connect_plain(config, is_remote).await;
    }
    let tls = Connector::new(root.as_deref())?;
    config.ssl_mode(SslMode::Require);
    match config.connect(tls.clone()).await {
        Ok((client, connection)) => accept(client, connection),
        // Said by one of several hosts it says nothing of another, whose handshake failed.
        Err(error) if is_not_offered(&error) && mode == Mode::Offered && !tls.is_begun() => {
            connect_plain(config, is_remote).await
        }
        Err(error) if is_not_offered(&error) => Err(Fault::told(
            "the PostgreSQL server offers no TLS; switch it on there (ssl = on), or, where nobody can listen on the way, write \
             sslmode=disable into the url and allow it with --database-plaintext",
        )),
        Err(error) if tls.is_begun() && is_handshake(&error) => Err(Fault::told(format!(
            "no TLS with the PostgreSQL server: {}; the host in the url must be a name in its certificate, and sslrootcert=FILE \
             names who signed it, where the system does not know",
            error
                .into_source()
                .map(|source| source.to_string())
                .unwrap_or_default()
        ))),
        Err(error) => Err(Fault::of_connecting_to_postgres(&error)),
    }
}

/// The driver keeps the kind of its errors to itself.
fn is_handshake(error: &tokio_postgres::Error) -> bool {
    error.to_string() == "error performing TLS handshake"
}

async fn connect_plain(mut config: Config, is_remote: bool) -> Result<(Client, Link), Fault> {
    if !is_remote {
        config.ssl_mode(SslMode::Disable);
        return match config.connect(NoTls).await {
            Ok((client, connection)) => accept(client, connection),
            Err(error) => Err(Fault::of_connecting_to_postgres(&error)),
        };
    }
    // "Direct" TLS is asked of nobody: the driver goes from the open socket straight to who watches it.
    config.ssl_mode(SslMode::Require);
    config.ssl_negotiation(SslNegotiation::Direct);
    match config.connect(PlaintextConnector).await {
        Ok((client, connection)) => accept(client, connection),
        Err(error) if is_asked_in_clear(&error) => Err(Fault::told(ASKED_IN_CLEAR)),
        Err(error) => Err(Fault::of_connecting_to_postgres(&error)),
    }
}

fn accept<T>(client: Client, connection: Connection<Socket, T>) -> Result<(Client, Link), Fault>
where
    T: TlsStream + Unpin + Send + 'static,
{
    let version = connection.parameter("server_version").unwrap_or_default();
    let major = version
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or_default();
    // CockroachDB reports the PostgreSQL version that it was first compatible with.
    let cockroach = connection.parameter("crdb_version").is_some();
    if !cockroach && major.parse::<u32>().is_ok_and(|major| major < OLDEST) {
        return Err(Fault::told(format!(
            "PostgreSQL {version} is too old; the store needs {OLDEST} or newer"
        )));
    }
    Ok((client, Box::pin(connection)))
}
