//! Whom connections to other servers trust.

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{self, PemObject};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Why a file names nobody to trust. The sentence does not name the file.
#[derive(Debug)]
pub enum NoRoots {
    /// It cannot be read as certificates in PEM form.
    Unreadable(pem::Error),
    /// It holds what is no certificate.
    Malformed(rustls::Error),
    /// It holds nothing.
    Empty,
}

impl fmt::Display for NoRoots {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(out),
            Self::Malformed(error) => error.fmt(out),
            Self::Empty => out.write_str("holds no certificate in PEM form"),
        }
    }
}

impl std::error::Error for NoRoots {}

/// Returns the certificates that the system trusts; none where it has none.
pub fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Returns the certificates of a file in PEM form, at least one.
///
/// Errors: why there is none.
pub fn roots_of_file(path: &Path) -> Result<RootCertStore, NoRoots> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(NoRoots::Unreadable)? {
        let certificate = certificate.map_err(NoRoots::Unreadable)?;
        roots.add(certificate).map_err(NoRoots::Malformed)?;
    }
    if roots.is_empty() {
        return Err(NoRoots::Empty);
    }
    Ok(roots)
}

/// Returns how connections are encrypted: with the one cryptographic provider of the program, to whom these roots vouch for,
/// without a certificate of our own.
///
/// Errors: TLS cannot be set up.
pub fn client_config(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
