//! TLS to PostgreSQL: whose certificates are believed, and whether a handshake was begun.

use super::fault::Fault;
use crate::error::Class;
use provost_outbound::{client_config, roots_of_file, system_roots};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres_rustls::MakeRustlsConnect;

type Rustls = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;

/// TLS that remembers whether a handshake was begun, with any of the hosts.
#[derive(Clone)]
pub(super) struct Connector {
    inner: MakeRustlsConnect,
    is_begun: Arc<AtomicBool>,
}

/// One handshake.
pub(super) struct Handshake {
    inner: Rustls,
    is_begun: Arc<AtomicBool>,
}

impl Connector {
    /// Believes the certificates of this file, or those of the operating system.
    pub fn new(root: Option<&str>) -> Result<Self, Fault> {
        Ok(Self {
            inner: match root {
                Some(file) => MakeRustlsConnect::new(client_of_file(file)?),
                None => native()?,
            },
            is_begun: Arc::default(),
        })
    }

    /// Says whether a server offered TLS to this connector or a copy of it.
    pub fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed)
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = Handshake;
    type Error = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, name: &str) -> Result<Handshake, Self::Error> {
        let inner = MakeTlsConnect::<Socket>::make_tls_connect(&mut self.inner, name)?;
        let is_begun = Arc::clone(&self.is_begun);
        Ok(Handshake { inner, is_begun })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = <Rustls as TlsConnect<Socket>>::Stream;
    type Error = <Rustls as TlsConnect<Socket>>::Error;
    type Future = <Rustls as TlsConnect<Socket>>::Future;

    fn connect(self, stream: Socket) -> Self::Future {
        self.is_begun.store(true, Ordering::Relaxed);
        self.inner.connect(stream)
    }
}

/// Says of a connection with TLS that failed whether the server said that it has none; the driver has no other word for it.
pub(super) fn is_not_offered(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.to_string() == "server does not support TLS")
}

/// The roots of the operating system are read once for the process: they are large and parsing takes time.
fn native() -> Result<MakeRustlsConnect, Fault> {
    static NATIVE: OnceLock<MakeRustlsConnect> = OnceLock::new();
    if let Some(known) = NATIVE.get() {
        return Ok(known.clone());
    }
    let made = MakeRustlsConnect::new(client(system_roots())?);
    Ok(NATIVE.get_or_init(|| made).clone())
}

fn client_of_file(file: &str) -> Result<ClientConfig, Fault> {
    let roots = roots_of_file(Path::new(file)).map_err(|_| {
        Fault::told(
            "the file that sslrootcert of the PostgreSQL url names holds no readable certificate; name a PEM file",
        )
    })?;
    client(roots)
}

fn client(roots: RootCertStore) -> Result<ClientConfig, Fault> {
    client_config(roots).map_err(|error| Fault::new(Class::Refused, error.to_string()))
}
