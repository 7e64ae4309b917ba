//! Addresses as keys.

use crate::hide::is_wordy;
use crate::secrets::{has_long_run, known, looks_secret};
use std::net::{Ipv4Addr, Ipv6Addr};

/// LIMIT: bytes of a key. What a report may have.
const MAX_KEY: usize = 512;
/// LIMIT: letters and digits of a part of a path. Ours; from as many on a text without a known form is a credential.
const MOST_OF_WORD: usize = 20;
/// Ends of names that each machine or each network gives to a machine of its own, or to itself.
const PRIVATE_ENDS: [&str; 22] = [
    "corp",
    "fritz.box",
    "home",
    "home.arpa",
    "internal",
    "intra",
    "intranet",
    "lacolhost.com",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "localtest.me",
    "lvh.me",
    "nip.io",
    "private",
    "sslip.io",
    "traefik.me",
    "ts.net",
    "vcap.me",
    "workgroup",
    "xip.io",
];

/// An address as a key.
pub(crate) struct Address {
    pub(crate) key: String,
    /// Whether the key says all of the address.
    pub(crate) is_whole: bool,
    /// Whether it is another server on another machine or in another network.
    pub(crate) is_private: bool,
}

/// Returns the key of an address: without query and fragment, with `*` for parts that may hold a secret. `None` for what is not
/// plainly an address: where its parts end could be read in two ways, and one of them could show a password. The case of a path stays:
/// it distinguishes servers.
pub(crate) fn url(text: &str) -> Option<Address> {
    if !text.bytes().all(|b| b.is_ascii_graphic()) || text.contains(['@', '\\']) {
        return None;
    }
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.to_lowercase();
    let default = match scheme.as_str() {
        "http" | "ws" => 80,
        "https" | "wss" => 443,
        _ => return None,
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (authority, path) = match rest[..end].split_once('/') {
        Some((authority, path)) => (authority, path),
        None => (&rest[..end], ""),
    };
    let authority = authority.to_lowercase();
    let bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[bracket..].split_once(':') {
        Some((_, port)) => (&authority[..authority.len() - port.len() - 1], Some(port)),
        None => (authority.as_str(), None),
    };
    let host = named(host.strip_suffix('.').unwrap_or(host))?;
    let port = match port {
        Some(port) => Some(number(port)?).filter(|port| *port != default),
        None => None,
    };
    let (parts, has_gaps) = resolved(path);
    let mut is_whole = !rest.contains('?') && !has_gaps;
    let mut hidden = |part: &str, is_shown: bool| {
        if is_shown && part.len() < 40 && !has_long_run(part, 20) && !looks_secret(part) {
            return part.to_owned();
        }
        is_whole = false;
        "*".to_owned()
    };
    let labels: Vec<String> = host.split('.').map(|label| hidden(label, true)).collect();
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    // Parts of a path are shown where they are words; in some addresses one of them is all that somebody has to know.
    let is_word = |part: &str| {
        let signs = part.bytes().filter(u8::is_ascii_alphanumeric).count();
        part.bytes().all(is_plain) && signs < MOST_OF_WORD && is_wordy(part)
    };
    let parts: Vec<String> = parts
        .into_iter()
        .map(|part| hidden(part, is_word(part)))
        .collect();
    let path = parts.join("/");
    let slash = if path.is_empty() { "" } else { "/" };
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let key = format!("url:{scheme}://{}{port}{slash}{path}", labels.join("."));
    (key.len() <= MAX_KEY && known(&key).is_none()).then_some(Address {
        key,
        is_whole,
        is_private: is_private(&host),
    })
}

/// Says whether the host of an address, written as a key has it, is another one on another machine or in another network.
pub(crate) fn is_private_address(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let end = authority[bracket..]
        .find(':')
        .map_or(authority.len(), |at| bracket + at);
    is_private(&authority[..end])
}

/// Says the same of a host in lower case, without its port.
pub(crate) fn is_private(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return !address.parse().is_ok_and(is_public_v6);
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    // Clients read a host that ends in a number as an address, however it is written.
    if last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") {
        return !host.parse().is_ok_and(is_public_v4);
    }
    let is_below = |end: &str| host.strip_suffix(end).is_some_and(|name| name.ends_with('.'));
    !host.contains('.') || PRIVATE_ENDS.iter().any(|end| host == *end || is_below(end))
}

/// Says whether everybody reaches the same machine by an address. Blocks: IANA's registry of special purposes.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(a, 0 | 10 | 127 | 224..)
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && b == 168)
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b));
    !is_special
}

/// The same: of the space that is given out, but what holds an address of the other kind.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    (0x2000..0x4000).contains(&first) && first != 0x2002 && (first != 0x2001 || second != 0)
}

/// Returns a host in the one spelling that keys have; `None` where it is none.
fn named(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return Some(format!("[{}]", address.parse::<Ipv6Addr>().ok()?));
    }
    let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-".contains(&b);
    (!host.is_empty() && host.bytes().all(is_name)).then(|| host.to_owned())
}

/// Returns the number of a port, which may be written with more digits than it has.
fn number(port: &str) -> Option<u16> {
    let is_number = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    port.parse().ok().filter(|_| is_number)
}

/// Returns the parts of a path as clients ask for it, with dots resolved, and whether it has empty ones: a server may take these for
/// none, and they are left out, so that no spelling passes by a denial.
fn resolved(path: &str) -> (Vec<&str>, bool) {
    let (mut parts, mut has_gaps) = (Vec::new(), false);
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            "" => has_gaps |= !path.is_empty() && path.bytes().any(|b| b != b'/'),
            part => parts.push(part),
        }
    }
    (parts, has_gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_machine_or_network_calls_its_own_is_private() {
        for address in [
            "http://localhost:3000/mcp",
            "http://127.0.0.1:3845/mcp",
            "http://127.1/mcp",
            "http://2130706433/mcp",
            "http://0x7f.1/mcp",
            "http://0.0.0.0/mcp",
            "http://[::1]:80/mcp",
            "http://[::]/mcp",
            "http://[::ffff:127.0.0.1]/mcp",
            "http://[fe80::1]/mcp",
            "http://[fd00::1]/mcp",
            "http://[64:ff9b::7f00:1]/mcp",
            "http://[2002:7f00:1::]/mcp",
            "http://nas/mcp",
            "http://nas.local/mcp",
            "http://fritz.box/mcp",
            "https://nas.tail1234.ts.net/mcp",
            "http://mcp.vcap.me/mcp",
            "http://mcp.home.arpa/mcp",
            "http://host.docker.internal:8080/mcp",
            "http://127.0.0.1.nip.io/mcp",
            "http://10.0.0.7/mcp",
            "http://172.16.0.1/mcp",
            "http://192.168.1.1/mcp",
            "http://169.254.169.254/mcp",
            "http://100.64.0.1/mcp",
        ] {
            let found = url(address).unwrap();
            assert!(found.is_private, "{address}");
            let (_, shown) = found.key.split_once(':').unwrap();
            assert!(is_private_address(shown), "{shown}");
        }
        for address in [
            "https://mcp.acme.example/mcp",
            "https://8.8.8.8/mcp",
            "https://172.32.0.1/mcp",
            "https://[2606:4700::1111]:8443/mcp",
            "https://local.acme.example/mcp",
            "https://thelocal.example/mcp",
        ] {
            let found = url(address).unwrap();
            assert!(!found.is_private, "{address}");
            let (_, shown) = found.key.split_once(':').unwrap();
            assert!(!is_private_address(shown), "{shown}");
        }
    }

    #[test]
    fn one_server_has_one_key_however_its_address_is_written() {
        for (address, key, is_whole) in [
            ("https://evil.example/mcp", "url:https://evil.example/mcp", true),
            ("https://evil.example/./mcp", "url:https://evil.example/mcp", true),
            (
                "https://evil.example/a/../mcp/",
                "url:https://evil.example/mcp",
                true,
            ),
            (
                "https://evil.example/../../mcp",
                "url:https://evil.example/mcp",
                true,
            ),
            ("https://evil.example/mcp/.", "url:https://evil.example/mcp", true),
            (
                "https://evil.example:443/mcp",
                "url:https://evil.example/mcp",
                true,
            ),
            (
                "https://evil.example:0443/mcp",
                "url:https://evil.example/mcp",
                true,
            ),
            (
                "https://EVIL.example.:00443/mcp",
                "url:https://evil.example/mcp",
                true,
            ),
            (
                "https://evil.example:08443/mcp",
                "url:https://evil.example:8443/mcp",
                true,
            ),
            ("https://evil.example//mcp", "url:https://evil.example/mcp", false),
            (
                "https://evil.example/a//mcp",
                "url:https://evil.example/a/mcp",
                false,
            ),
            (
                "https://evil.example/a%2F../mcp",
                "url:https://evil.example/*/mcp",
                false,
            ),
            ("https://evil.example", "url:https://evil.example", true),
            ("https://evil.example//", "url:https://evil.example", true),
            (
                "https://[2606:4700:0::1111]/mcp",
                "url:https://[2606:4700::1111]/mcp",
                true,
            ),
        ] {
            let found = url(address).unwrap();
            assert_eq!((found.key.as_str(), found.is_whole), (key, is_whole), "{address}");
        }
        for address in [
            "https://evil.example:65536/mcp",
            "https://evil.example:+443/mcp",
            "https://evil.example:/mcp",
        ] {
            assert!(url(address).is_none(), "{address}");
        }
    }
}
