//! Which proxy stands between here and a server: the one of `HTTPS_PROXY`, unless `NO_PROXY` names the server.
//!
//! A proxy is asked for a tunnel (`CONNECT`) and sees the name of the server, never the token. This machine itself is reached
//! without it, and so is a server without TLS: its token would be the proxy's to read.

use super::environment::Surroundings;
use super::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use provost_outbound::Network;
use provost_words::Secret;
use std::net::IpAddr;

/// A proxy.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    pub(super) uri: Uri,
    pub(super) authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Returns its address for people, without a password.
    pub(super) fn shown(&self) -> String {
        self.uri.to_string().trim_end_matches('/').to_owned()
    }
}

/// Returns the proxy for a server; `None` where it is reached directly.
///
/// Errors: usage, when `HTTPS_PROXY` is no address of a proxy that is spoken to here. The value is not shown: it may hold a
/// password.
pub(super) fn of(url: &str, surroundings: &Surroundings) -> Result<Option<Proxy>, Failure> {
    let Some(said) = &surroundings.https_proxy else {
        return Ok(None);
    };
    let uri: Uri = url.parse().unwrap_or_default();
    if uri.scheme_str() != Some("https") || is_this_machine(&uri) {
        return Ok(None);
    }
    if excepted(&uri, surroundings.no_proxy.as_deref().unwrap_or_default()) {
        return Ok(None);
    }
    read(said).map(Some)
}

fn read(said: &Secret<String>) -> Result<Proxy, Failure> {
    let wrong = || {
        Failure::usage("HTTPS_PROXY is not the address of a proxy, such as http://proxy.example:3128")
            .and("only http:// proxies are spoken to; what passes through them is encrypted for the server")
    };
    let text = said.expose();
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(wrong());
    }
    let rest = rest.split('/').next().unwrap_or_default();
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, rest),
    };
    let uri: Uri = format!("http://{host}/").parse().map_err(|_| wrong())?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(wrong());
    }
    let authorization = user.map(|user| {
        let user = Secret::new(unescaped(user));
        let basic = Secret::new(format!("Basic {}", STANDARD.encode(user.expose())));
        let value = HeaderValue::from_str(basic.expose());
        value.map(|mut value| {
            value.set_sensitive(true);
            value
        })
    });
    Ok(Proxy {
        uri,
        authorization: authorization.transpose().map_err(|_| wrong())?,
    })
}

/// Returns the bytes that `%XX` stand for in a name and a password.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| behind.split_at_checked(2))
            .flatten()
            .and_then(|(digits, after)| {
                let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                Some((byte, after))
            });
        let (byte, after) = escaped.unwrap_or((*first, behind));
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// Says whether a URL names this machine.
pub(super) fn is_this_machine(uri: &Uri) -> bool {
    let host = host_of(uri);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn host_of(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .to_ascii_lowercase()
}

/// Says whether a server is named: as a host, as a domain above it, as `host:port`, as a network, or by `*`.
fn excepted(uri: &Uri, no_proxy: &str) -> bool {
    let host = host_of(uri);
    let port = uri.port_u16().unwrap_or(443).to_string();
    no_proxy.split([',', ' ']).map(str::trim).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        if entry.is_empty() {
            return false;
        }
        if entry == "*" {
            return true;
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            let plain = entry.trim_start_matches('[').trim_end_matches(']');
            return Network::parse(plain).is_ok_and(|network| network.contains(address));
        }
        let name = match entry.rsplit_once(':') {
            Some((_, named)) if named != port => return false,
            Some((name, _)) => name,
            None => &entry,
        };
        let name = name.trim_start_matches('*').trim_start_matches('.');
        !name.is_empty()
            && (host == name || host.strip_suffix(name).is_some_and(|above| above.ends_with('.')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(url: &str, proxy: &str, no_proxy: &str) -> Result<Option<Proxy>, Failure> {
        let surroundings = Surroundings {
            https_proxy: Some(Secret::new(proxy.into())),
            no_proxy: Some(no_proxy.into()),
            ..Surroundings::default()
        };
        of(url, &surroundings)
    }

    #[test]
    fn what_is_excepted_is_reached_directly() {
        let proxied = |url: &str, no_proxy: &str| through(url, "http://p:1", no_proxy).unwrap().is_some();
        for (url, no_proxy) in [
            ("https://a.example", ""),
            ("https://a.example", "b.example,xa.example"),
            ("https://xb.example", "b.example"),
            ("https://a.example", "a.example:8443"),
            ("https://10.1.2.3", "10.2.0.0/16"),
            ("https://10.1.2.3", "3"),
        ] {
            assert!(proxied(url, no_proxy), "{url} {no_proxy}");
        }
        for (url, no_proxy) in [
            ("https://a.example", "*"),
            ("https://A.example", "a.example"),
            ("https://a.b.example", ".b.example"),
            ("https://a.b.example", "*.b.example"),
            ("https://a.b.example", "x, b.example"),
            ("https://a.example", "a.example:443"),
            ("https://a.example:8443", "a.example:8443"),
            ("https://10.1.2.3", "10.1.0.0/16"),
            ("https://[fd00::1]:8443", "fd00::/8"),
            ("https://localhost:8443", ""),
            ("https://127.0.0.1", ""),
            ("https://[::1]", ""),
            ("http://a.example", ""),
        ] {
            assert!(!proxied(url, no_proxy), "{url} {no_proxy}");
        }
    }

    #[test]
    fn a_proxy_may_have_a_password_that_is_never_shown() {
        let proxy = through("https://a.example", "http://ada:p%40ss@proxy.example:3128/", "")
            .unwrap()
            .unwrap();
        assert_eq!(proxy.shown(), "http://proxy.example:3128");
        let sent = proxy.authorization.clone().unwrap();
        assert_eq!(sent.to_str().unwrap(), "Basic YWRhOnBAc3M=");
        assert!(!format!("{proxy:?}").contains("YWRh"), "{proxy:?}");
        assert_eq!(
            through("https://a.example", "proxy:1", "")
                .unwrap()
                .unwrap()
                .shown(),
            "http://proxy:1"
        );
        for wrong in [
            "socks5://p:1",
            "https://p:1",
            "http://",
            "http://ada:secret@",
            "http://a b",
        ] {
            let failure = through("https://a.example", wrong, "").unwrap_err();
            assert!(!failure.lines.concat().contains("secret"), "{failure:?}");
        }
    }
}
