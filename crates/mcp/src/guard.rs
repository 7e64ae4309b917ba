//! Which hosts and origins may be named: a page in somebody's browser must not reach this server under a name of its
//! own (DNS rebinding, CVE-2026-42559 of the protocol's library, which is not asked about it).
//!
//! Absent on purpose: a wildcard, and an empty list that would mean everything.
//!
//! Keeps ME-5.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Uri};
use provost_kernel::{Code, Error, Result};

/// Who may be named as host, and who as origin.
pub struct Guard {
    hosts: Vec<Host>,
    /// Every address may be named: what such a page needs is a name.
    takes_addresses: bool,
    origins: Vec<Origin>,
}

struct Host {
    name: String,
    port: Option<u16>,
}

#[derive(PartialEq, Eq)]
struct Origin {
    scheme: String,
    name: String,
    port: Option<u16>,
}

impl Guard {
    /// Reads the lists; an entry that is none of the allowed forms allows nothing, and is logged.
    pub fn new(hosts: &[String], origins: &[String]) -> Self {
        let warned = |kind: &str, entry: &str| {
            tracing::warn!(
                entry,
                "this entry of the allowed {kind} is not readable and allows nothing"
            );
        };
        let hosts = hosts.iter().filter_map(|entry| {
            let host = Host::parse(entry);
            if host.is_none() {
                warned("hosts", entry);
            }
            host
        });
        let origins = origins.iter().filter_map(|entry| {
            let origin = Origin::parse(entry);
            if origin.is_none() {
                warned("origins", entry);
            }
            origin
        });
        Self {
            hosts: hosts.collect(),
            takes_addresses: false,
            origins: origins.collect(),
        }
    }

    /// Lets everybody in who names the server by an address, whatever it is: for what is reached over a network without a name. A page
    /// in a browser gets here under a name that its maker controls.
    #[must_use]
    pub fn or_any_address(mut self) -> Self {
        self.takes_addresses = true;
        self
    }

    /// Says whether a request may come in.
    ///
    /// Errors: a 403.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        let refused = |message| Err(Error::new(Code::RoleForbidden, message));
        let host = match Header::read(headers, &HOST) {
            Header::Text(host) => Host::parse(host),
            Header::Unreadable => None,
            // HTTP/2 names it in the target.
            Header::Absent => uri
                .authority()
                .and_then(|authority| Host::parse(authority.as_str())),
        };
        let is_allowed = |host: &Host| {
            self.hosts.iter().any(|allowed| allowed.allows(host))
                || (self.takes_addresses && host.name.parse::<std::net::IpAddr>().is_ok())
        };
        if !host.as_ref().is_some_and(is_allowed) {
            return refused("this server is not reached by the name in the header Host");
        }
        let origin = match Header::read(headers, &ORIGIN) {
            Header::Absent => return Ok(()),
            Header::Unreadable => None,
            Header::Text(origin) => Origin::parse(origin),
        };
        match origin {
            Some(origin) if self.origins.contains(&origin) => Ok(()),
            _ => refused("pages of this origin may not call this server"),
        }
    }
}

/// A header that must stand alone and be text.
enum Header<'a> {
    Absent,
    Unreadable,
    Text(&'a str),
}

impl<'a> Header<'a> {
    fn read(headers: &'a HeaderMap, name: &http::HeaderName) -> Self {
        let mut values = headers.get_all(name).iter();
        let Some(first) = values.next() else {
            return Self::Absent;
        };
        let text = first.to_str().ok().filter(|_| values.next().is_none());
        text.map_or(Self::Unreadable, Self::Text)
    }
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        // An IPv6 address may be listed as it is.
        if text.parse::<std::net::Ipv6Addr>().is_ok() {
            return Some(Self {
                name: text.to_ascii_lowercase(),
                port: None,
            });
        }
        let authority: Authority = text.parse().ok()?;
        if text.contains('@') || authority.host().is_empty() {
            return None;
        }
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        // What stands behind the name is a port or it is nothing readable.
        let port = authority.port_u16();
        let has_rest = authority.as_str().len() > authority.host().len();
        (has_rest == port.is_some()).then(|| Self {
            name: name.trim_end_matches('.').to_ascii_lowercase(),
            port,
        })
    }

    fn allows(&self, other: &Self) -> bool {
        self.name == other.name && (self.port.is_none() || self.port == other.port)
    }
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let host = Host::parse(rest)?;
        let port = host.port.or(match scheme.as_str() {
            "https" => Some(443),
            "http" => Some(80),
            _ => None,
        });
        Some(Self {
            scheme,
            name: host.name,
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn check(headers: &[(&'static str, &str)]) -> bool {
        let hosts = ["provost.example", "127.0.0.1:8080", "::1"].map(String::from);
        let origins = ["https://console.example", "http://localhost:3000"].map(String::from);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Guard::new(&hosts, &origins)
            .check(&Uri::from_static("/mcp"), &map)
            .is_ok()
    }

    #[test]
    fn hosts_are_those_that_were_allowed() {
        for host in [
            "provost.example",
            "PROVOST.example.",
            "provost.example:443",
            "127.0.0.1:8080",
            "[::1]:9",
            "[::1]",
        ] {
            assert!(check(&[("host", host)]), "{host}");
        }
        for host in [
            "evil.example",
            "provost.example.evil.example",
            "127.0.0.1",
            "127.0.0.1:81",
            "a@provost.example",
            "",
            "provost.example:",
            "provost.example:99999",
            "provost.example/",
            "provöst.example",
            "[::2]",
        ] {
            assert!(!check(&[("host", host)]), "{host}");
        }
        assert!(!check(&[]));
        assert!(!check(&[("host", "provost.example"), ("host", "evil.example")]));
    }

    /// Proves ME-5.
    #[test]
    fn any_address_is_taken_where_it_was_said_and_no_name() {
        let guard = Guard::new(&["provost.example".to_owned()], &[]).or_any_address();
        let is_let_in = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_str(host).unwrap());
            guard.check(&Uri::from_static("/metrics"), &headers).is_ok()
        };
        for host in [
            "10.1.2.3:9464",
            "10.1.2.3",
            "[2001:db8::1]:9464",
            "provost.example",
        ] {
            assert!(is_let_in(host), "{host}");
        }
        for host in [
            "evil.example",
            "10.1.2.3.evil.example",
            "10.1.2",
            "1",
            "0x7f.1",
            "[::1",
            "",
        ] {
            assert!(!is_let_in(host), "{host}");
        }
    }

    #[test]
    fn origins_are_those_that_were_allowed() {
        let from = |origin| check(&[("host", "provost.example"), ("origin", origin)]);
        for origin in [
            "https://console.example",
            "https://CONSOLE.example:443",
            "http://localhost:3000",
        ] {
            assert!(from(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://evil.example",
            "http://console.example",
            "https://console.example:8443",
            "http://localhost",
            "console.example",
            "https://console.example.evil.example",
        ] {
            assert!(!from(origin), "{origin}");
        }
    }

    #[test]
    fn nothing_allowed_is_nothing_let_in() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        assert!(
            Guard::new(&[], &[])
                .check(&Uri::from_static("/mcp"), &headers)
                .is_err()
        );
    }

    #[test]
    fn the_target_names_the_host_where_no_header_does() {
        let guard = Guard::new(&["provost.example".to_owned()], &[]);
        assert!(
            guard
                .check(
                    &Uri::from_static("https://provost.example/mcp"),
                    &HeaderMap::new()
                )
                .is_ok()
        );
        assert!(
            guard
                .check(&Uri::from_static("https://evil.example/mcp"), &HeaderMap::new())
                .is_err()
        );
    }
}
