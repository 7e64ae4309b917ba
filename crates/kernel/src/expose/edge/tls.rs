//! TLS of our own (D1.8).

use crate::{Code, Error, Result};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

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
}

impl Tls {
    /// Checks that the files can be used, before anything else is made.
    ///
    /// Errors: `Internal` with a public sentence.
    pub fn check(&self) -> Result<()> {
        self.acceptor().map(drop)
    }

    pub(super) fn acceptor(&self) -> Result<Option<TlsAcceptor>> {
        let Self::Files { cert, key } = self else {
            return Ok(None);
        };
        let chain = read_chain(cert)?;
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
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }
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
