//! Which addresses belong to the public Internet.

use crate::address::WrongUrl;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that share their first bits: `10.0.0.0/8`, `fd00::/8`, `127.0.0.1/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads an address, a slash and a number of bits; a lone address is a network of one.
    ///
    /// Errors: when it is neither, or has bits behind its prefix.
    pub fn parse(text: &str) -> Result<Self, WrongUrl> {
        const WRONG: WrongUrl = WrongUrl("a network is an address, a slash and a number of bits");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                (address, Some(bits.parse::<u8>().map_err(|_| WRONG)?))
            }
            Some(_) => return Err(WRONG),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| WRONG)?;
        let width = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(width);
        let network = Self { first, bits };
        let exact = bits <= width && network.prefix(first) == number(first);
        exact.then_some(network).ok_or(WRONG)
    }

    /// Is the address one of these? An IPv4 address inside of IPv6 is none of IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && self.prefix(address) == self.prefix(self.first)
    }

    fn prefix(&self, address: IpAddr) -> u128 {
        let mask = u128::MAX.checked_shl(128 - u32::from(self.bits.min(128)));
        number(address) & mask.unwrap_or(0)
    }
}

/// Returns the address as the upper bits of a number, whatever its width.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Is this an address of the public Internet? Those that embed another one (mapped, NAT64, 6to4, Teredo) are not:
/// where they lead is for the network to say.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4
            .iter()
            .any(|(first, bits)| begins(address, *first, *bits)),
        IpAddr::V6(address) => {
            let begins = |first: [u16; 3], bits| begins_v6(address, first, bits);
            begins([0x2000, 0, 0], 3) && !SPECIAL_V6.iter().any(|(first, bits)| begins(*first, *bits))
        }
    }
}

/// Source: IANA's IPv4 special-purpose registry, and RFC 5771 (multicast).
const SPECIAL_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),       // this network
    ([10, 0, 0, 0], 8),      // private
    ([100, 64, 0, 0], 10),   // carrier-grade NAT
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local; clouds' metadata services
    ([172, 16, 0, 0], 12),   // private
    ([192, 0, 0, 0], 24),    // protocol assignments
    ([192, 0, 2, 0], 24),    // documentation
    ([192, 88, 99, 0], 24),  // 6to4 relays, deprecated
    ([192, 168, 0, 0], 16),  // private
    ([198, 18, 0, 0], 15),   // benchmarks
    ([198, 51, 100, 0], 24), // documentation
    ([203, 0, 113, 0], 24),  // documentation
    ([224, 0, 0, 0], 4),     // multicast
    ([240, 0, 0, 0], 4),     // reserved, broadcast
];

/// Within `2000::/3`, outside of which nothing is global unicast: loopback, mapped, NAT64, unique local, link-local
/// and multicast addresses are all there. Source: IANA's IPv6 special-purpose registry.
const SPECIAL_V6: [([u16; 3], u32); 4] = [
    ([0x2001, 0, 0], 23),      // protocol assignments: Teredo, benchmarks, ORCHID
    ([0x2001, 0x0db8, 0], 32), // documentation
    ([0x2002, 0, 0], 16),      // 6to4
    ([0x3fff, 0, 0], 20),      // documentation
];

fn begins(address: Ipv4Addr, first: [u8; 4], bits: u32) -> bool {
    let differs = address.to_bits() ^ Ipv4Addr::from(first).to_bits();
    differs.leading_zeros() >= bits
}

fn begins_v6(address: Ipv6Addr, [a, b, c]: [u16; 3], bits: u32) -> bool {
    let differs = address.to_bits() ^ Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).to_bits();
    differs.leading_zeros() >= bits
}
