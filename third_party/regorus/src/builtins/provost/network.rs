// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! `net.cidr_contains`, as Go's package `net` reads addresses: an IPv4 address that is written as an IPv6 one is that IPv4
//! address, and an address of the one kind is never in a net of the other.

use super::{refuse, text};
use crate::ast::{Expr, Ref};
use crate::lexer::Span;
use crate::value::Value;
use anyhow::Result;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub fn cidr_contains(_: &Span, params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    let name = "net.cidr_contains";
    let (outer, inner) = (text(name, params, args, 0)?, text(name, params, args, 1)?);
    let Some(outer) = Net::read(&outer) else {
        return refuse(params, 0, "it is no CIDR");
    };
    let contains = if let Ok(address) = inner.parse::<IpAddr>() {
        outer.contains(address)
    } else if let Some(inner) = Net::read(&inner) {
        outer.contains(inner.first) && outer.contains(inner.last())
    } else {
        return refuse(params, 1, "it is neither a CIDR nor an address");
    };
    Ok(Value::from(contains))
}

/// A net as it is written: its first address, and how many bits of that all its addresses share.
struct Net {
    first: IpAddr,
    bits: u32,
}

impl Net {
    fn read(written: &str) -> Option<Self> {
        let (address, bits) = written.split_once('/')?;
        // Go reads digits alone, and more than fit are too many.
        let is_number = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
        let bits = bits.parse().ok().filter(|_| is_number)?;
        let first = match address.parse().ok()? {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        Some(Self { first, bits })
    }

    fn last(&self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                let rest = u32::MAX.checked_shr(self.bits).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() | rest))
            }
            IpAddr::V6(first) => {
                let rest = u128::MAX.checked_shr(self.bits).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() | rest))
            }
        }
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.first.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                // A net of IPv4 addresses that is written with IPv6 ones has 96 bits more.
                let bits = if self.first.is_ipv6() { self.bits.saturating_sub(96) } else { self.bits };
                let different = first.to_bits() ^ address.to_bits();
                different.checked_shr(32_u32.saturating_sub(bits)).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let different = first.to_bits() ^ address.to_bits();
                different.checked_shr(128_u32.saturating_sub(self.bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}
