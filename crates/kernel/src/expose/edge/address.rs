//! Who is calling, by address.

use http::HeaderMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The other end of the connection; [`super::serve`] puts it into the request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// The caller's address: the peer, or what a trusted proxy says of it (D1.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientIp(pub IpAddr);

impl ClientIp {
    /// Returns the rightmost hop that is not a trusted proxy; without a peer the unspecified address.
    ///
    /// An unreadable hop ends the walk: what lies left of it was written by nobody we trust.
    pub(super) fn of(peer: Option<Peer>, headers: &HeaderMap, trusted: &[Network]) -> Self {
        let Some(peer) = peer else {
            return Self(Ipv4Addr::UNSPECIFIED.into());
        };
        Self(walk(peer, headers, trusted).0)
    }
}

/// Returns the rightmost hop that is not a trusted proxy, and whether that is the caller for certain: nothing stands left of it.
fn walk(Peer(peer): Peer, headers: &HeaderMap, trusted: &[Network]) -> (IpAddr, bool) {
    let is_trusted = |ip: IpAddr| trusted.iter().any(|network| network.contains(ip));
    let mut client = peer.ip().to_canonical();
    let fields: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .map(|value| value.to_str().unwrap_or("?"))
        .collect();
    for hop in fields.iter().rev().flat_map(|field| field.rsplit(',')) {
        if !is_trusted(client) {
            return (client, false);
        }
        let Some(ip) = parse_hop(hop.trim()) else {
            return (client, false);
        };
        client = ip;
    }
    (client, !is_trusted(client))
}

/// Stands beside an address that may be somebody else's than the caller's: it is that of a proxy, named or not, or hops stand left of it
/// that nobody named.
#[derive(Clone, Copy, Debug)]
pub struct UnknownProxy;

/// By what proxies say for whom they ask.
const HANDED_ON: [&str; 3] = ["x-forwarded-for", "forwarded", "x-real-ip"];

impl UnknownProxy {
    /// Returns it unless the address is the caller's for certain.
    pub(super) fn of(peer: Option<Peer>, headers: &HeaderMap, trusted: &[Network]) -> Option<Self> {
        let peer = peer?;
        let is_named = trusted.iter().any(|network| network.contains(peer.0.ip()));
        let is_handed_on = HANDED_ON.iter().any(|name| headers.contains_key(*name));
        let is_certain = walk(peer, headers, trusted).1 && (is_named || !is_handed_on);
        (!is_certain).then_some(Self)
    }
}

/// Proxies write `203.0.113.7`, `203.0.113.7:4711`, `2001:db8::7` or `[2001:db8::7]:4711`.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let ip = bare
        .parse()
        .or_else(|_| text.parse().map(|hop: SocketAddr| hop.ip()));
    ip.ok().map(|ip: IpAddr| ip.to_canonical())
}

/// A range of addresses, written `10.0.0.0/8` or as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    prefix_bits: u32,
}

impl Network {
    /// Returns whether the address lies in the range; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.base, ip.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(ip)) => {
                let differing = u32::from(base) ^ u32::from(ip);
                differing.leading_zeros() >= self.prefix_bits
            }
            (IpAddr::V6(base), IpAddr::V6(ip)) => {
                let differing = u128::from(base) ^ u128::from(ip);
                differing.leading_zeros() >= self.prefix_bits
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected an address or a range such as 10.0.0.0/8, not {text:?}");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let base: IpAddr = address.parse().map_err(|_| wrong())?;
        let widest = if base.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            None => widest,
            Some(bits) => bits.parse().map_err(|_| wrong())?,
        };
        if prefix_bits > widest {
            return Err(wrong());
        }
        Ok(Self { base, prefix_bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let trusted: Vec<Network> = ["10.0.0.0/8", "2001:db8::/32"].map(|n| n.parse().unwrap()).into();
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let peer = Peer(SocketAddr::new(peer.parse().unwrap(), 4711));
        ClientIp::of(Some(peer), &headers, &trusted).0.to_string()
    }

    #[test]
    fn only_a_trusted_peer_may_name_the_client() {
        assert_eq!(client("198.51.100.1", &["203.0.113.7"]), "198.51.100.1");
        assert_eq!(client("10.1.2.3", &["203.0.113.7"]), "203.0.113.7");
        assert_eq!(client("::ffff:10.1.2.3", &["203.0.113.7"]), "203.0.113.7");
        assert_eq!(client("10.1.2.3", &[]), "10.1.2.3");
    }

    #[test]
    fn whoever_says_for_whom_it_asks_is_a_proxy_that_somebody_has_to_name() {
        let trusted: Vec<Network> = vec!["10.0.0.0/8".parse().unwrap()];
        let is_unknown = |peer: Option<&str>, header: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(header, "203.0.113.7".parse().unwrap());
            }
            let peer = peer.map(|peer| Peer(SocketAddr::new(peer.parse().unwrap(), 4711)));
            UnknownProxy::of(peer, &headers, &trusted).is_some()
        };
        for header in HANDED_ON {
            assert!(is_unknown(Some("192.168.0.1"), Some(header)), "{header}");
            // A named proxy says it in a header that is read.
            let is_read = header == "x-forwarded-for";
            assert_eq!(!is_unknown(Some("10.0.0.1"), Some(header)), is_read, "{header}");
            assert_eq!(
                !is_unknown(Some("::ffff:10.0.0.1"), Some(header)),
                is_read,
                "{header}"
            );
        }
        assert!(is_unknown(Some("10.0.0.1"), None));
        assert!(!is_unknown(Some("192.168.0.1"), None));
        assert!(!is_unknown(Some("192.168.0.1"), Some("via")));
        assert!(!is_unknown(None, Some("forwarded")));
    }

    /// Proves FL-12.
    #[test]
    fn an_address_is_certain_where_the_walk_reached_the_leftmost_hop() {
        let trusted: Vec<Network> = vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let is_unknown = |hops: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", hops.parse().unwrap());
            let peer = Peer(SocketAddr::new("10.0.0.1".parse().unwrap(), 4711));
            UnknownProxy::of(Some(peer), &headers, &trusted).is_some()
        };
        for certain in ["203.0.113.7", "203.0.113.7, 10.0.0.2", "10.0.0.9"] {
            assert!(!is_unknown(certain), "{certain}");
        }
        for doubted in [
            "203.0.113.7, 10.0.0.9",
            "203.0.113.7, 10.0.0.9, 10.0.0.2",
            "unknown",
            "_hidden, 10.0.0.2",
            "unknown, 203.0.113.7",
            "10.0.0.2",
            "",
        ] {
            assert!(is_unknown(doubted), "{doubted}");
        }
    }

    #[test]
    fn the_rightmost_untrusted_hop_is_the_client() {
        assert_eq!(
            client("10.1.2.3", &["6.6.6.6, 203.0.113.7, 10.9.9.9"]),
            "203.0.113.7"
        );
        assert_eq!(
            client("10.1.2.3", &["6.6.6.6", "203.0.113.7:80 ,10.9.9.9"]),
            "203.0.113.7"
        );
        assert_eq!(client("10.1.2.3", &["[2001:db9::7]:80"]), "2001:db9::7");
        assert_eq!(client("10.1.2.3", &["6.6.6.6, unknown, 10.9.9.9"]), "10.9.9.9");
        assert_eq!(client("10.1.2.3", &["10.5.5.5, 10.6.6.6"]), "10.5.5.5");
    }

    #[test]
    fn networks_parse_and_contain() {
        let network: Network = "192.168.4.0/22".parse().unwrap();
        assert!(network.contains("192.168.7.255".parse().unwrap()));
        assert!(!network.contains("192.168.8.0".parse().unwrap()));
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("8.8.8.8".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
        for wrong in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/-1",
        ] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
