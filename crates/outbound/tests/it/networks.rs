//! Which addresses are public: the first and the last of every special range are not, their neighbours are.

use proptest::prelude::*;
use provost_outbound::{Network, is_public};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_edges_of_every_special_range_are_not_public() {
    for (first, last) in [
        ("0.0.0.0", "0.255.255.255"),
        ("10.0.0.0", "10.255.255.255"),
        ("100.64.0.0", "100.127.255.255"),
        ("127.0.0.0", "127.255.255.255"),
        ("169.254.0.0", "169.254.255.255"),
        ("172.16.0.0", "172.31.255.255"),
        ("192.0.0.0", "192.0.0.255"),
        ("192.0.2.0", "192.0.2.255"),
        ("192.88.99.0", "192.88.99.255"),
        ("192.168.0.0", "192.168.255.255"),
        ("198.18.0.0", "198.19.255.255"),
        ("198.51.100.0", "198.51.100.255"),
        ("203.0.113.0", "203.0.113.255"),
        ("224.0.0.0", "239.255.255.255"),
        ("240.0.0.0", "255.255.255.255"),
        ("::", "::1"),
        ("::7f00:1", "::ffff:ffff"),                            // IPv4-compatible
        ("::ffff:0.0.0.0", "::ffff:255.255.255.255"),           // mapped, public or not
        ("::ffff:0:0:0", "::ffff:0:255.255.255.255"),           // translated
        ("64:ff9b::", "64:ff9b::255.255.255.255"),              // NAT64
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),  // local NAT64
        ("100::", "100::ffff:ffff:ffff:ffff"),                  // discard
        ("2001::", "2001::ffff:ffff:ffff:ffff:ffff:ffff"),      // Teredo
        ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"),      // benchmarks
        ("2001:10::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"), // ORCHID, both
        ("2001:1ff::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), // 6to4
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("4000::", "5fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), // not unicast; segment routing
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), // unique local
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), // link-local
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), // site-local
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), // multicast
    ] {
        assert!(!is_public(ip(first)), "{first}");
        assert!(!is_public(ip(last)), "{last}");
    }
}

#[test]
fn the_neighbours_of_the_special_ranges_are_public() {
    for neighbour in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.1.255",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "8.8.8.8",
        "2000::",
        "2001:200::",
        "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db9::",
        "2001:4860:4860::8888",
        "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "2003::",
        "2606:4700::1111",
        "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "3fff:1000::",
    ] {
        assert!(is_public(ip(neighbour)), "{neighbour}");
    }
}

#[test]
fn a_network_is_an_address_and_a_prefix() {
    let network = |text: &str| Network::parse(text).unwrap();
    let inner = network("10.1.0.0/16");
    assert!(inner.contains(ip("10.1.0.0")) && inner.contains(ip("10.1.255.255")));
    assert!(
        !inner.contains(ip("10.0.255.255"))
            && !inner.contains(ip("10.2.0.0"))
            && !inner.contains(ip("::ffff:10.1.0.1"))
    );
    assert!(network("fd00::/8").contains(ip("fdff::1")) && !network("fd00::/8").contains(ip("fe00::")));
    assert!(
        network("127.0.0.1").contains(ip("127.0.0.1")) && !network("127.0.0.1").contains(ip("127.0.0.2"))
    );
    assert!(network("0.0.0.0/0").contains(ip("255.1.1.1")) && !network("0.0.0.0/0").contains(ip("::1")));
    assert!(network("::/0").contains(ip("ffff::")) && !network("::/0").contains(ip("1.1.1.1")));
    for text in [
        "",
        "/",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.1/8",
        "fd00::/129",
        "fd00::1/8",
        "10.0.0/8",
        "a/8",
        "10.0.0.0/+8",
        "10.0.0.0/8/8",
        "10.0.0.0/-1",
    ] {
        assert!(Network::parse(text).is_err(), "{text}");
    }
}

proptest! {
    /// Against the standard library's own questions, where it has them.
    #[test]
    fn no_address_of_a_known_private_kind_is_public(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let known = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
            || address.is_broadcast() || address.is_documentation() || address.is_unspecified();
        prop_assert!(!(known && is_public(address.into())));
        prop_assert!(!is_public(address.to_ipv6_mapped().into()));
        prop_assert!(!is_public(address.to_ipv6_compatible().into()));
    }

    #[test]
    fn only_global_unicast_of_ipv6_is_public(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        if is_public(address.into()) {
            prop_assert_eq!(bits >> 125, 1);
        }
    }

    #[test]
    fn a_network_contains_what_shares_its_prefix(bits: u32, other: u32, width in 0_u32..=32) {
        let mask = u32::MAX.checked_shl(32 - width).unwrap_or(0);
        let network = Network::parse(&format!("{}/{width}", Ipv4Addr::from_bits(bits & mask))).unwrap();
        prop_assert_eq!(network.contains(Ipv4Addr::from_bits(other).into()), other & mask == bits & mask);
    }
}
