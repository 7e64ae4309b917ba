//! Why there is no answer, in words with a next step: the one catalogue of what goes wrong between here and a server.
//!
//! No debug text of a library is shown: whoever reads a failure did not write the library.

use hyper_util::client::legacy;
use provost_words::time::Timestamp;
use rustls::CertificateError;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// How a certificate for one name is made that is no authority and names what it is for.
const OPENSSL: &str = "openssl req -x509 -newkey ed25519 -nodes -keyout key.pem -out cert.pem -days 365 -subj /CN=NAME \
                       -addext subjectAltName=DNS:NAME -addext basicConstraints=critical,CA:FALSE";

/// What went wrong, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) says: String,
    pub(super) steps: Vec<String>,
}

impl Trouble {
    pub(super) fn new(says: impl Into<String>) -> Self {
        Self {
            says: says.into(),
            steps: Vec::new(),
        }
    }

    fn step(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.says)
    }
}

/// Whom a request was for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressee<'a> {
    pub(super) url: &'a str,
    /// The address of the proxy, where there is one.
    pub(super) proxy: Option<&'a str>,
    /// Whether certificates were named that are trusted instead of the system's.
    pub(super) has_own_roots: bool,
}

impl Addressee<'_> {
    fn is_encrypted(self) -> bool {
        self.url.starts_with("https:")
    }

    fn host(self) -> String {
        let uri: http::Uri = self.url.parse().unwrap_or_default();
        uri.host().unwrap_or_default().to_owned()
    }

    fn port(self) -> u16 {
        let uri: http::Uri = self.url.parse().unwrap_or_default();
        uri.port_u16().unwrap_or(443)
    }

    fn in_other_scheme(self) -> String {
        match self.url.split_once("://") {
            Some(("https", rest)) => format!("http://{rest}"),
            Some((_, rest)) => format!("https://{rest}"),
            None => self.url.to_owned(),
        }
    }
}

/// Describes the failure of a request.
pub(super) fn of_request(error: &legacy::Error, to: Addressee<'_>) -> Trouble {
    let chain = chain(error);
    if let Some(tls) = chain.iter().find_map(|cause| tls_of(*cause)) {
        return of_tls(tls, to);
    }
    let said = |words: &str| chain.iter().any(|cause| cause.to_string().contains(words));
    if said("tunnel error") {
        return of_tunnel(&chain, to);
    }
    if said("dns error") || said("lookup address") {
        let host = to.proxy.map_or_else(|| to.host(), str::to_owned);
        return Trouble::new(format!("no address is known for {host}"))
            .step("look at the name for a slip, and at the network of this machine");
    }
    let is_garbled = chain.iter().any(|cause| {
        cause
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_parse)
    });
    if is_garbled {
        let trouble = Trouble::new("what answers does not speak HTTP");
        return if to.is_encrypted() {
            trouble
        } else {
            trouble.step(format!("if it speaks TLS, say {}", to.in_other_scheme()))
        };
    }
    if let Some(error) = chain.iter().find_map(|cause| cause.downcast_ref::<io::Error>()) {
        return of_io(error, to);
    }
    Trouble::new(chain.last().map(ToString::to_string).unwrap_or_default())
}

/// Describes an answer that broke off.
pub(super) fn of_body(error: &(dyn Error + 'static)) -> Trouble {
    let chain = chain(error);
    let tls = chain.iter().find_map(|cause| tls_of(*cause));
    match tls {
        Some(_) => Trouble::new("the encrypted connection broke off"),
        None => Trouble::new(chain.last().map(ToString::to_string).unwrap_or_default()),
    }
}

fn of_io(error: &io::Error, to: Addressee<'_>) -> Trouble {
    let at = to.proxy.unwrap_or(to.url);
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            Trouble::new("nobody listens there").step(if to.proxy.is_some() {
                format!("is the proxy {at} of HTTPS_PROXY running?")
            } else {
                "is the server running, and is this its port? `provost doctor` looks".to_owned()
            })
        }
        io::ErrorKind::TimedOut => Trouble::new("nobody answers there")
            .step("look for a firewall between here and there, and at HTTPS_PROXY"),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Trouble::new("no way of the network leads there").step("is this machine connected?")
        }
        _ => Trouble::new(error.to_string()),
    }
}

fn of_tunnel(chain: &[&(dyn Error + 'static)], to: Addressee<'_>) -> Trouble {
    let proxy = to.proxy.unwrap_or("the proxy");
    let said = |words: &str| chain.iter().any(|cause| cause.to_string().contains(words));
    if said("authorization required") {
        return Trouble::new(format!("the proxy {proxy} wants a user name and a password"))
            .step("say them in HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT");
    }
    if said("failed to create underlying connection") {
        if said("dns error") || said("lookup address") {
            return Trouble::new(format!(
                "no address is known for the proxy {proxy} of HTTPS_PROXY"
            ));
        }
        return Trouble::new(format!("the proxy {proxy} of HTTPS_PROXY cannot be reached"))
            .step("is it running? A server that needs no proxy stands in NO_PROXY");
    }
    Trouble::new(format!(
        "the proxy {proxy} does not let this machine through to {}",
        to.host()
    ))
    .step(format!(
        "ask who runs the proxy, or reach the server without it: NO_PROXY={}",
        to.host()
    ))
}

fn of_tls(error: &rustls::Error, to: Addressee<'_>) -> Trouble {
    let host = to.host();
    match error {
        rustls::Error::InvalidMessage(_) => Trouble::new("what answers does not speak TLS").step(format!(
            "if that is the server, it speaks without TLS: {}",
            to.in_other_scheme()
        )),
        rustls::Error::InvalidCertificate(why) => of_certificate(why, &host, to),
        rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => {
            Trouble::new("the server and this program have no way of encryption in common")
                .step("the server must speak TLS 1.2 or 1.3")
        }
        _ => Trouble::new("the encrypted connection broke off"),
    }
}

fn of_certificate(why: &CertificateError, host: &str, to: Addressee<'_>) -> Trouble {
    let at = |time: Duration| {
        let ms = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_ms(ms).to_rfc3339()
    };
    let port = to.port();
    let renewed = "renew it on the server; or is the clock of this machine wrong?";
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature if to.has_own_roots => Trouble::new(
            "nobody in the file of --ca-cert or PROVOST_CA_CERT vouches for the server's certificate",
        )
        .step("name the file with the certificate of who signed it, or with the certificate itself"),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            Trouble::new("nobody whom this machine trusts vouches for the server's certificate")
                .step("if it is your own, name its file: --ca-cert cert.pem, or PROVOST_CA_CERT=cert.pem")
        }
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            let names = names.join(", ");
            Trouble::new(format!("the server's certificate is for {names}, not for {host}"))
                .step("say the URL with a name of the certificate, or make one for this name")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Trouble::new(format!("the server's certificate does not name {host}"))
                .step(format!("make one that does: {}", OPENSSL.replace("NAME", host)))
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            let end = at(Duration::from_secs(not_after.as_secs()));
            Trouble::new(format!("the server's certificate ended at {end}")).step(renewed)
        }
        CertificateError::Expired => Trouble::new("the server's certificate has ended").step(renewed),
        CertificateError::NotValidYetContext { not_before, .. } => {
            let begin = at(Duration::from_secs(not_before.as_secs()));
            Trouble::new(format!("the server's certificate begins at {begin}"))
                .step("is the clock of this machine wrong?")
        }
        CertificateError::NotValidYet => Trouble::new("the server's certificate has not begun yet")
            .step("is the clock of this machine wrong?"),
        CertificateError::Revoked => Trouble::new("the server's certificate was revoked by who made it"),
        other if other.to_string().contains("CaUsedAsEndEntity") => Trouble::new(
            "the server shows the certificate of an authority, as `openssl req -x509` makes it by default",
        )
        .step(format!(
            "make one for the server alone: {}",
            OPENSSL.replace("NAME", host)
        )),
        _ => Trouble::new("the server's certificate is not a valid one for a server").step(format!(
            "look at it: openssl s_client -showcerts -connect {host}:{port}"
        )),
    }
}

/// `DnsName("a.example")` is how the library writes a name.
fn plain_name(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}

/// Returns the failure and its causes, from the outside inwards.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let (mut chain, mut next) = (Vec::new(), Some(error));
    while let Some(cause) = next {
        chain.push(cause);
        next = cause.source();
    }
    chain
}

/// Returns what TLS has against it; it stands inside of a failure of the connection.
fn tls_of<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
        return Some(tls);
    }
    let inner = cause.downcast_ref::<io::Error>()?.get_ref()?;
    if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
        return Some(tls);
    }
    inner
        .downcast_ref::<io::Error>()?
        .get_ref()?
        .downcast_ref::<rustls::Error>()
}
