//! The line to one PostgreSQL server: a socket and the runtime that this thread drives it with.

use super::fault::Fault;
use super::tls::{self, Settings};
use crate::error::Class;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Client, Connection, NoTls, Socket};

const OLDEST: u32 = 15;

/// A healthy server answers within its own statement timeout; after this the connection counts as lost.
const ANSWER: Duration = Duration::from_secs(15);

/// Migrations may take long; the server's own limits are off while they run.
const ANSWER_UNHURRIED: Duration = Duration::from_hours(24);

const CONNECT: Duration = Duration::from_secs(8);

const GOODBYE: Duration = Duration::from_millis(100);

type Link = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// One connection's socket side. It moves only inside [`Line::drive`] and [`Line::send`].
pub(super) struct Line {
    runtime: Runtime,
    /// Absent when the connection is gone.
    link: Option<Link>,
    patience: Duration,
}

impl Line {
    pub fn open(url: &str) -> Result<(Client, Self), Fault> {
        let settings = tls::settings(url)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::new(Class::Unavailable, error.to_string()))?;
        let (client, link) = runtime
            .block_on(async { timeout(CONNECT, connect(settings)).await })
            .unwrap_or_else(|_| Err(Fault::new(Class::Unavailable, "no answer in time")))
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
    pub fn hurry(&mut self, hurry: bool) {
        self.patience = if hurry { ANSWER } else { ANSWER_UNHURRIED };
    }

    /// Runs `work` and the connection on this thread until the work is done.
    ///
    /// The work waits for nothing but the connection, so it is polled around each poll of the connection and
    /// needs no waker of its own.
    pub fn drive<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Fault> {
        let link = &mut self.link;
        let mut work = pin!(work);
        let outcome = self.runtime.block_on(async {
            let both = poll_fn(|cx| {
                let mut quiet = Context::from_waker(Waker::noop());
                if let Poll::Ready(value) = work.as_mut().poll(&mut quiet) {
                    return Poll::Ready(value);
                }
                // Dropping the link makes the work fail with "connection closed".
                if link.as_mut().is_none_or(|link| link.as_mut().poll(cx).is_ready()) {
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
        self.runtime.block_on(poll_fn(|cx| {
            if link
                .as_mut()
                .is_some_and(|link| link.as_mut().poll(cx).is_ready())
            {
                *link = None;
            }
            Poll::Ready(())
        }));
    }
}

/// With its client gone, the link tells the server that it ends, which otherwise would log a broken pipe.
impl Drop for Line {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            // Nothing depends on the goodbye.
            let _ = self.runtime.block_on(async { timeout(GOODBYE, link).await });
        }
    }
}

async fn connect(settings: Settings) -> Result<(Client, Link), Fault> {
    let Settings { mut config, tls } = settings;
    if let Some(tls) = tls {
        match config.connect(tls).await {
            Ok((client, connection)) => return accept(client, connection),
            // `prefer` promises nothing: a server whose certificate nobody signed is used without TLS.
            Err(error) if config.get_ssl_mode() == SslMode::Prefer && error.as_db_error().is_none() => {
                config.ssl_mode(SslMode::Disable);
            }
            Err(error) => return Err(Fault::of_postgres(&error)),
        }
    }
    let (client, connection) = config
        .connect(NoTls)
        .await
        .map_err(|error| Fault::of_postgres(&error))?;
    accept(client, connection)
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
        return Err(Fault::new(
            Class::Refused,
            format!("PostgreSQL {version} is older than {OLDEST}"),
        ));
    }
    Ok((client, Box::pin(connection)))
}
