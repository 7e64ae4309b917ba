//! Which addresses may be reached on behalf of an organization (D12.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Says whether an address belongs to the public internet: not private, loopback, link-local (where clouds serve
/// their metadata), multicast, documentation or otherwise reserved.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_reserved = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Carrier-grade NAT, in which some clouds serve metadata (RFC 6598).
        || (a == 100 && (64..128).contains(&b))
        // Protocol assignments, benchmarks (RFC 6890, RFC 2544).
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b));
    !is_reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // An IPv4 address in an IPv6 one is judged as what it is.
    if let Some(v4) = address.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    let segments = address.segments();
    // 2000::/3 is what is assigned; within it: 6to4 and Teredo carry IPv4 addresses, 2001:db8::/32 documents.
    let is_global = segments[0] & 0xe000 == 0x2000;
    let is_carrier = segments[0] == 0x2002 || (segments[0] == 0x2001 && segments[1] == 0);
    let is_documentation = segments[0] == 0x2001 && segments[1] == 0xdb8;
    is_global && !is_carrier && !is_documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700:4700::1111",
            "::ffff:1.1.1.1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2001:db8::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
