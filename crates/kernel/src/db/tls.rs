//! What the url of a PostgreSQL store says, and TLS to it.

use super::fault::Fault;
use crate::error::Class;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A parsed url. `tls` is absent when the connection is not to be encrypted.
pub(super) struct Settings {
    pub config: Config,
    pub tls: Option<MakeRustlsConnect>,
}

/// Reads the url. The parser's own words are dropped, because they may quote a piece of a password.
pub(super) fn settings(url: &str) -> Result<Settings, Fault> {
    let (url, root) = split_options(url);
    let mut config: Config = url
        .parse()
        .map_err(|_| Fault::new(Class::Refused, "the PostgreSQL url cannot be read"))?;
    if config.get_application_name().is_none() {
        config.application_name("provost");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(15));
    }
    let local = !config.get_hosts().is_empty()
        && config
            .get_hosts()
            .iter()
            .all(|host| matches!(host, Host::Unix(_)));
    if local {
        config.ssl_mode(SslMode::Disable);
    }
    let tls = match (config.get_ssl_mode(), root) {
        (SslMode::Disable, _) => None,
        (_, Some(file)) => Some(MakeRustlsConnect::new(client_of_file(&file)?)),
        (_, None) => Some(native()?),
    };
    Ok(Settings { config, tls })
}

/// Takes out `sslrootcert`, which the driver does not know, and turns the stricter words for `sslmode` into
/// `require`: with rustls the certificate and the name are always verified.
fn split_options(url: &str) -> (String, Option<String>) {
    let (head, tail, separator) = match url.split_once("://") {
        Some((_, rest)) => {
            let Some(at) = rest.find('?') else {
                return (url.to_owned(), None);
            };
            let at = url.len() - rest.len() + at + 1;
            (&url[..at], &url[at..], '&')
        }
        None => ("", url, ' '),
    };
    let mut root = None;
    let mut kept = Vec::new();
    for pair in tail.split(separator) {
        match pair.split_once('=') {
            Some(("sslrootcert", file)) => root = Some(file.replace("%2F", "/").replace("%2f", "/")),
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
            _ => kept.push(pair),
        }
    }
    (format!("{head}{}", kept.join(&separator.to_string())), root)
}

/// The roots of the operating system are read once for the process: they are large and parsing takes time.
fn native() -> Result<MakeRustlsConnect, Fault> {
    static NATIVE: OnceLock<MakeRustlsConnect> = OnceLock::new();
    if let Some(known) = NATIVE.get() {
        return Ok(known.clone());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let made = MakeRustlsConnect::new(client(roots)?);
    Ok(NATIVE.get_or_init(|| made).clone())
}

fn client_of_file(file: &str) -> Result<ClientConfig, Fault> {
    let unreadable = || {
        Fault::new(
            Class::Refused,
            "the file of sslrootcert holds no readable certificate",
        )
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|_| unreadable())? {
        roots
            .add(certificate.map_err(|_| unreadable())?)
            .map_err(|_| unreadable())?;
    }
    if roots.is_empty() {
        return Err(unreadable());
    }
    client(roots)
}

fn client(roots: RootCertStore) -> Result<ClientConfig, Fault> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::new(Class::Refused, error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_url_are_read() {
        for url in [
            "host=/tmp/pg user=postgres dbname=x options=-csearch_path=one",
            "postgres:///x?host=/tmp/pg&user=postgres&options=-csearch_path%3Done",
            "postgres://postgres@%2Ftmp%2Fpg/x?options=-csearch_path%3Done",
        ] {
            let read = settings(url).expect(url);
            assert_eq!(read.config.get_hosts(), [Host::Unix("/tmp/pg".into())], "{url}");
            assert_eq!(read.config.get_options(), Some("-csearch_path=one"), "{url}");
            assert!(read.tls.is_none(), "{url}");
        }
        let read = settings("postgres://a:b@db.example:5433/x?sslmode=verify-full").expect("url");
        assert_eq!(read.config.get_ssl_mode(), SslMode::Require);
        assert!(read.tls.is_some());
        let read = settings("postgres://a:b@db.example/x?sslmode=disable").expect("url");
        assert!(read.tls.is_none());
    }

    #[test]
    fn a_root_certificate_is_taken_out_of_the_url() {
        let (url, root) = split_options("postgres://a@b/c?sslmode=require&sslrootcert=%2Fetc%2Fca.pem");
        assert_eq!(url, "postgres://a@b/c?sslmode=require");
        assert_eq!(root.as_deref(), Some("/etc/ca.pem"));
        let (url, root) = split_options("host=b sslrootcert=/etc/ca.pem user=a");
        assert_eq!(url, "host=b user=a");
        assert_eq!(root.as_deref(), Some("/etc/ca.pem"));
    }

    #[test]
    fn an_unreadable_url_is_not_shown() {
        let Err(fault) = settings("postgres://u:hunter2@h/x?hunter2=y") else {
            panic!("the option is unknown");
        };
        let error = crate::Error::from(fault);
        assert!(!format!("{error} {:?}", error.private()).contains("hunter2"));
    }
}
