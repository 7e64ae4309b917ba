//! A URL with one reading: what browsers, clients and servers could take apart differently is refused.
//!
//! Refused are user names, fragments, back slashes, characters beyond visible ASCII, half escapes, and hosts that are
//! neither a name nor an address in their ordinary form: `0x7f.1`, `2130706433` and `127.1` are names to some and
//! addresses to others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// LIMIT: characters of a URL (D2.7).
pub const MAX_URL: usize = 512;

/// Why a text is no URL that is asked; the sentence holds nothing of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongUrl(pub &'static str);

impl fmt::Display for WrongUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the URL is not accepted: {}", self.0)
    }
}

impl std::error::Error for WrongUrl {}

/// The parts of an `https:` or `http:` URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// Whether it begins with `https:`.
    pub is_https: bool,
    /// As written; an address of IPv6 has its brackets.
    pub host: &'a str,
    /// The port, where the URL has one.
    pub written_port: Option<u16>,
    /// What stands before the query; it may be empty.
    pub path: &'a str,
    /// What stands behind the question mark, if there is one.
    pub query: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Takes a URL apart.
    ///
    /// Errors: what is wrong with it.
    pub fn parse(url: &'a str) -> Result<Self, WrongUrl> {
        characters(url)?;
        let (is_https, rest) = match url.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err(WrongUrl("it must begin with https://")),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (host, written_port) = host_and_port(authority)?;
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        Ok(Self {
            is_https,
            host,
            written_port,
            path,
            query,
        })
    }

    /// Returns the port, the ordinary one where the URL has none.
    pub fn port(&self) -> u16 {
        self.written_port.unwrap_or(if self.is_https { 443 } else { 80 })
    }

    /// Returns the address, when the host is one and no name.
    pub fn ip(&self) -> Option<IpAddr> {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        bare.parse().ok()
    }

    /// Does the host mean this machine, however names are resolved?
    pub fn is_loopback(&self) -> bool {
        self.ip().is_some_and(|ip| ip.is_loopback()) || self.host == "localhost"
    }

    /// Does a segment of the path mean its folder or the one above?
    pub fn has_dot_segments(&self) -> bool {
        let is_dot = |segment: &str| {
            matches!(
                segment.to_ascii_lowercase().replace("%2e", ".").as_str(),
                "." | ".."
            )
        };
        self.path.split('/').any(is_dot)
    }
}

/// Says whether two URLs are one: the case of the host and a port that goes without saying make no other (RFC 3986 §6.2). Path and
/// query are compared as they are written, and so is what is no URL that everybody reads alike.
pub fn is_same_url(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (Ok(one), Ok(other)) = (Address::parse(one), Address::parse(other)) else {
        return false;
    };
    one.is_https == other.is_https
        && one.host.eq_ignore_ascii_case(other.host)
        && one.port() == other.port()
        && (one.path, one.query) == (other.path, other.query)
}

/// Checks the length and the characters of any URI.
///
/// Errors: what is wrong with it.
pub fn characters(uri: &str) -> Result<(), WrongUrl> {
    if uri.len() > MAX_URL {
        return Err(WrongUrl("it is longer than 512 characters"));
    }
    let mut bytes = uri.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'#' => return Err(WrongUrl("it must have no fragment")),
            b'%' => {
                let hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
                if !hex(bytes.next()) || !hex(bytes.next()) {
                    return Err(WrongUrl("it has a half escape"));
                }
            }
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                return Err(WrongUrl("it has characters that no URL has"));
            }
            byte if !byte.is_ascii_graphic() => {
                return Err(WrongUrl("it has characters that no URL has"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), WrongUrl> {
    const WRONG: WrongUrl = WrongUrl("its host is neither a name nor an address");
    if authority.contains('@') {
        return Err(WrongUrl("it must have no user name"));
    }
    // The colons of IPv6 stand inside of brackets.
    let after = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority[after..].split_once(':') {
        Some((between, port)) => (&authority[..after + between.len()], Some(number(port)?)),
        None => (authority, None),
    };
    let is_host = match host.strip_prefix('[') {
        Some(inner) => inner
            .strip_suffix(']')
            .is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()),
        None => host.parse::<Ipv4Addr>().is_ok() || is_name(host),
    };
    is_host.then_some((host, port)).ok_or(WRONG)
}

fn number(port: &str) -> Result<u16, WrongUrl> {
    let canonical = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    let parsed = port.parse().ok().filter(|_| canonical);
    parsed.ok_or(WrongUrl("its port is not a number from 1 to 65535"))
}

/// RFC 1123 §2.1; what ends in a number is no name, for resolvers read it as an address.
fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    host.len() <= 253 && host.split('.').all(is_label) && !last.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_the_same_in_another_case_of_the_host_and_with_its_ports_number() {
        let url = "https://provost.example/mcp";
        for same in [
            url,
            "https://Provost.EXAMPLE/mcp",
            "https://provost.example:443/mcp",
            "https://PROVOST.example:443/mcp",
        ] {
            assert!(is_same_url(url, same) && is_same_url(same, url), "{same}");
        }
        assert!(is_same_url("http://[::1]:80/mcp", "http://[::1]/mcp"));
        for other in [
            "http://provost.example/mcp",
            "http://provost.example:443/mcp",
            "https://provost.example:80/mcp",
            "https://provost.example:8443/mcp",
            "https://provost.example./mcp",
            "https://provost.example/MCP",
            "https://provost.example/mcp/",
            "https://provost.example//mcp",
            "https://provost.example/%6dcp",
            "https://provost.example/mcp?",
            "https://provost.example/mcp#",
            "https://user@provost.example/mcp",
            "https://provost.example:0443/mcp",
            "HTTPS://provost.example/mcp",
            "https://provost.example/mcp ",
            "https://provost.examp1e/mcp",
            "provost.example/mcp",
            "",
        ] {
            assert!(!is_same_url(url, other) && !is_same_url(other, url), "{other}");
        }
        // What cannot be taken apart is compared as it is written.
        assert!(is_same_url("client-1", "client-1") && !is_same_url("client-1", "CLIENT-1"));
        assert!(!is_same_url("https://under_score/", "https://UNDER_SCORE/"));
    }
}
