//! TLS of our own (D1.8).
//!
//! INVARIANT TC-1: a certificate and a key that are read anew take the place of the old ones together, or not at all:
//! the old ones stay in use where the new ones cannot be read, do not belong together, or have expired.

use crate::{Code, Error, Result, Timestamp};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;
use x509_cert::der::Decode;

/// Whether connections are encrypted, and with what.
#[derive(Clone, Debug)]
pub enum Tls {
    /// Plain text: on loopback, or behind a proxy that terminates TLS.
    Off,
    /// PEM files: the certificate followed by its chain, and its private key.
    Files {
        /// The certificate and its chain.
        cert: PathBuf,
        /// The private key; nobody but owner and group may read it.
        key: PathBuf,
    },
    /// Files that were read, and can be read anew while they are served.
    Read(Certificates),
}

/// A certificate with its chain and its key, as connections get them. Clones are the same ones.
#[derive(Clone)]
pub struct Certificates(Arc<Files>);

struct Files {
    cert: PathBuf,
    key: PathBuf,
    used: RwLock<ActiveCertificate>,
}

#[derive(Clone)]
struct ActiveCertificate {
    acceptor: TlsAcceptor,
    /// When the certificate ends; absent where it does not say so readably.
    expires_at: Option<Timestamp>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("cert", &self.0.cert)
            .finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads the files.
    ///
    /// Errors: `Internal` with a public sentence.
    fn read(cert: &Path, key: &Path) -> Result<Self> {
        Ok(Self(Arc::new(Files {
            used: RwLock::new(ActiveCertificate::read(cert, key)?),
            cert: cert.to_owned(),
            key: key.to_owned(),
        })))
    }

    /// Reads the files anew, for the connections from now on.
    ///
    /// Errors: `Internal` with a public sentence; the certificate and the key stay those that were in use.
    pub fn read_anew(&self, now: Timestamp) -> Result<()> {
        let read = ActiveCertificate::read(&self.0.cert, &self.0.key)?;
        let mut used = self.0.used.write().unwrap_or_else(PoisonError::into_inner);
        // INVARIANT TC-1: of two that have expired the newer one is taken.
        if read.has_expired(now) && !used.has_expired(now) {
            let cause = self.0.cert.display().to_string();
            return Err(unusable("the new TLS certificate has expired", cause));
        }
        *used = read;
        Ok(())
    }

    /// Returns when the certificate in use ends.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.used().expires_at
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.used().acceptor
    }

    fn used(&self) -> ActiveCertificate {
        self.0.used.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ActiveCertificate {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

impl Tls {
    /// Checks that the files can be used, before anything else is made.
    ///
    /// Errors: `Internal` with a public sentence.
    pub fn check(&self) -> Result<()> {
        self.certificates().map(drop)
    }

    /// Reads the files; none where connections are not encrypted.
    ///
    /// Errors: `Internal` with a public sentence.
    pub fn certificates(&self) -> Result<Option<Certificates>> {
        match self {
            Self::Off => Ok(None),
            Self::Files { cert, key } => Certificates::read(cert, key).map(Some),
            Self::Read(certificates) => Ok(Some(certificates.clone())),
        }
    }
}

impl ActiveCertificate {
    fn read(cert: &Path, key: &Path) -> Result<Self> {
        let chain = read_chain(cert)?;
        let expires_at = chain.first().and_then(end_of);
        let key = read_key(key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(Error::internal)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    unusable("the TLS key does not belong to the TLS certificate", error)
                }
                error => unusable("the TLS certificate and key cannot be used", error),
            })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            expires_at,
        })
    }
}

/// Returns when a certificate ends.
fn end_of(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let read = x509_cert::Certificate::from_der(certificate).ok()?;
    let end = read.tbs_certificate.validity.not_after.to_unix_duration();
    i64::try_from(end.as_millis()).ok().map(Timestamp::from_ms)
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = read("the TLS certificate file cannot be read", path)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable("the TLS certificate file is not valid PEM", error))?;
    if chain.is_empty() {
        let cause = path.display().to_string();
        return Err(unusable(
            "the TLS certificate file contains no certificate",
            cause,
        ));
    }
    Ok(chain)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    refuse_open_permissions(path)?;
    let pem = zeroize::Zeroizing::new(read("the TLS key file cannot be read", path)?);
    PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|error| unusable("the TLS key file contains no PEM private key", error))
}

fn read(message: &'static str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| unusable(message, format!("{}: {error}", path.display())))
}

#[cfg(unix)]
fn refuse_open_permissions(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(());
    };
    if metadata.permissions().mode() & 0o007 != 0 {
        let cause = path.display().to_string();
        return Err(unusable(
            "the TLS key file is open to everybody; take the permissions of others away (chmod o=)",
            cause,
        ));
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_open_permissions(_: &Path) -> Result<()> {
    Ok(())
}

fn unusable(message: &'static str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(Code::Internal, message).caused_by(cause)
}
