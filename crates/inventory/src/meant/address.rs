//! Addresses as those who fetch read them (the URL standard of WHATWG), folded by hand.
//!
//! Blanks and controls around, tabs and ends of lines within, `\` for `/`, one or no `/` behind the scheme, codes in the host, a point behind it,
//! capitals, numbers in the place of an address of four parts, a port that is empty, and dots in the path lead to the same place. What is not ASCII
//! in a host is turned into other signs by tables that are as large as they are many: it is not folded, and may be any address.

use super::{Doubt, Odd};
use crate::address::url;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// LIMIT: addresses of one text, and bytes of all that are read of one entry. Ours: an address in a line is read to the end of the line as well,
/// and whoever writes many would keep everybody waiting. What has more may be any address.
const MOST_ADDRESSES: usize = 64;
pub(super) const MOST_READ: usize = 128 * 1024;
/// What stands in the place of a variable while an address is read: no client has it in one.
const OPEN: char = '\u{E000}';
/// Where an address ends in a text of more.
const ENDS: [char; 14] = [
    ' ', '"', '\'', ',', ';', '|', '&', '(', ')', '<', '>', '`', '=', '}',
];

/// What an address may ask for.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) keys: Vec<String>,
    pub(super) doubts: Vec<Doubt>,
}

/// Returns what the addresses of a text may ask for; `is_whole` says that a client takes the text for one, and `left` how many bytes are read yet.
pub(super) fn asked_in(text: &str, is_whole: bool, left: &mut usize) -> Vec<Targets> {
    let plain: String = text.chars().filter(|c| !"\t\r\n".contains(*c)).collect();
    let (filled, marked) = (with_variables(&plain, true), with_variables(&plain, false));
    // Each text once; of those that a client does not take as they are, the keys alone count.
    let mut texts: BTreeMap<String, bool> = BTreeMap::new();
    let mut found = Vec::new();
    if is_whole {
        texts.insert(filled.clone(), false);
        if !begins_with_scheme(&filled) {
            texts.insert(format!("https://{filled}"), false);
        }
        let is_open = marked.find(OPEN).is_some_and(|at| !marked[..at].contains(':'));
        if is_open {
            found.push(Targets::odd(Odd::Address));
        } else {
            texts.insert(marked.clone(), true);
        }
    }
    // Marked, a variable is one; filled, what a client reads where there is none; and as it stands there.
    for (text, may_doubt) in [(marked.as_str(), true), (filled.as_str(), false), (text, false)] {
        let begins = begins(text);
        let lengths = begins.iter().map(|at| text.len() - at);
        if begins.len() > MOST_ADDRESSES || lengths.sum::<usize>() > *left {
            // No longer one than the other is read, so that none is passed over by what stands before it.
            found.push(Targets::odd(Odd::Size));
            continue;
        }
        for at in begins {
            let whole = &text[at..];
            let cut = whole.find(ENDS).map_or(whole, |end| &whole[..end]);
            *texts.entry(cut.to_owned()).or_default() |= may_doubt;
            // Where a blank is a part of it, dots behind the blank may lead back.
            texts.entry(whole.to_owned()).or_default();
        }
    }
    *left = left.saturating_sub(texts.keys().map(String::len).sum());
    found.extend(texts.iter().map(|(text, may_doubt)| {
        let asked = asked(text);
        if *may_doubt { asked } else { asked.keys_alone() }
    }));
    found
}

fn begins_with_scheme(text: &str) -> bool {
    begins(text).first() == Some(&0)
}

/// Returns where addresses begin in a text.
fn begins(text: &str) -> Vec<usize> {
    let small = text.to_ascii_lowercase();
    let schemes = ["http:", "https:", "ws:", "wss:"].into_iter();
    let mut found: Vec<usize> = schemes
        .flat_map(|scheme| small.match_indices(scheme).map(|(at, _)| at))
        .collect();
    found.sort_unstable();
    found
}

impl Targets {
    fn keys_alone(self) -> Self {
        Self {
            doubts: Vec::new(),
            ..self
        }
    }

    fn odd(odd: Odd) -> Self {
        Self {
            doubts: vec![Doubt::any_address(odd)],
            ..Self::default()
        }
    }
}

/// Returns what somebody asks for by an address.
fn asked(text: &str) -> Targets {
    let text = text.trim_matches(|c: char| c <= ' ');
    let Some((scheme, rest)) = text.split_once(':') else {
        return Targets::default();
    };
    let schemes: &[&str] = match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => &["http", "https"],
        "ws" | "wss" => &["ws", "wss"],
        _ => return Targets::default(),
    };
    let rest = rest.trim_start_matches(['/', '\\']);
    // Some end a host at `\`, and to others it is a part of what stands before the `@`.
    let end_at = |signs: &[char]| rest.find(signs).unwrap_or(rest.len());
    let (first, second) = (end_at(&['/', '\\', '?', '#']), end_at(&['/', '?', '#']));
    let mut all = asked_at(schemes, rest.split_at(first));
    if rest[first..second].contains('@') {
        let more = asked_at(schemes, rest.split_at(second));
        all.keys.extend(more.keys);
        all.doubts.extend(more.doubts);
    }
    all
}

/// Returns what somebody asks for at a host, by a path.
fn asked_at(schemes: &[&str], (authority, tail): (&str, &str)) -> Targets {
    if authority.contains(OPEN) {
        return Targets::odd(Odd::Address);
    }
    let places = match places(authority.rsplit('@').next().unwrap_or_default()) {
        Ok(places) => places,
        Err(odd) => return Targets::odd(odd),
    };
    let mut asked = Targets::default();
    let paths = paths(tail);
    for (scheme, place) in schemes
        .iter()
        .flat_map(|scheme| places.iter().map(move |place| (scheme, place)))
    {
        let found = paths
            .iter()
            .filter_map(|path| url(&format!("{scheme}://{place}/{path}")));
        asked.keys.extend(found.map(|address| address.key));
        // A variable in a path leads anywhere on that host.
        let path = tail.split(['?', '#']).next().unwrap_or_default();
        if path.contains(OPEN)
            && let Some(host) = url(&format!("{scheme}://{place}"))
        {
            asked.doubts.push(Doubt {
                begins: host.key,
                odd: Odd::Address,
            });
        }
    }
    asked
}

/// Returns the host and the port in one spelling, and an address of more than four parts in every spelling that keys have; nothing where nobody
/// has such a host.
///
/// Errors: the host may be any.
fn places(written: &str) -> Result<Vec<String>, Odd> {
    let bracket = written.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match written[bracket..].find(':') {
        Some(at) => (&written[..bracket + at], &written[bracket + at + 1..]),
        None => (written, ""),
    };
    let decoded = percent_decode_str(host).decode_utf8_lossy();
    let host = decoded.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    if host.is_empty() {
        return Ok(Vec::new());
    }
    let ports = match port.trim_start_matches('0') {
        _ if port.is_empty() => vec![String::new()],
        // Either is the one that a scheme has by itself, and a client may be led from one scheme to the other.
        digits @ ("80" | "443") => vec![String::new(), format!(":{digits}")],
        digits if digits.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit()) => vec![format!(":{digits}")],
        _ => return Err(Odd::Host),
    };
    let at_ports = |hosts: Vec<String>| {
        let all = hosts
            .iter()
            .flat_map(|host| ports.iter().map(move |port| format!("{host}{port}")));
        Ok(all.collect())
    };
    if bracket > 0 {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let six: Ipv6Addr = inner.and_then(|inner| inner.parse().ok()).ok_or(Odd::Host)?;
        let segments = six.segments().map(|segment| format!("{segment:x}")).join(":");
        let mut hosts = vec![host.to_owned(), format!("[{six}]"), format!("[{segments}]")];
        // Whoever connects to such a one reaches that of four parts.
        if let Some(four) = six.to_ipv4_mapped() {
            let [a, b, c, d] = four.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            hosts.extend([four.to_string(), format!("[::ffff:{high:x}:{low:x}]")]);
        }
        return at_ports(hosts);
    }
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    // A name that says no more than ASCII in the form of names beyond it is another name to some.
    let is_empty_form = |label: &str| label.starts_with("xn--") && label.ends_with('-');
    if !host.bytes().all(is_plain) || host.split('.').any(is_empty_form) {
        return Err(Odd::Host);
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()));
    let host = if is_number {
        numbers(host).ok_or(Odd::Host)?.to_string()
    } else {
        host.to_owned()
    };
    at_ports(vec![host])
}

/// Returns the address of four parts that somebody writes in fewer, or in numbers of another base.
fn numbers(host: &str) -> Option<Ipv4Addr> {
    let number = |part: &str| match part.strip_prefix("0x") {
        Some("") => Some(0),
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if part.len() > 1 && part.starts_with('0') => u64::from_str_radix(part, 8).ok(),
        None => part.parse().ok(),
    };
    let parts: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|part| *part > 255) {
        return None;
    }
    let mut address = *last;
    if address >= 1_u64 << (8 * (4 - first.len())) {
        return None;
    }
    for (at, part) in first.iter().enumerate() {
        address |= part << (8 * (3 - at));
    }
    u32::try_from(address).ok().map(Ipv4Addr::from)
}

/// Returns the paths for which somebody may ask by what stands behind a host: clients end it at its query and go by its dots before codes are
/// signs, servers may do it afterwards.
fn paths(tail: &str) -> Vec<String> {
    let path = tail.split(['?', '#']).next().unwrap_or_default();
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let of_client: Vec<String> = steps(path).iter().map(|part| decoded(part)).collect();
    let of_server = decoded(path);
    let of_all = decoded(tail);
    let cut = of_all.split(['?', '#']).next().unwrap_or_default();
    let mut paths = vec![shown(of_client.iter().map(String::as_str))];
    for text in [of_server.as_str(), cut] {
        let text = text.replace('\\', "/");
        paths.push(shown(steps(&text).into_iter()));
        // The spelling of keys leaves empty parts out before it goes by the dots.
        paths.push(shown(text.split('/')));
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Returns the parts of a path once its dots are followed, also such as are written in codes; empty parts count.
fn steps(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let path = path.strip_prefix(['/', '\\']).unwrap_or(path);
    for part in path.split(['/', '\\']) {
        let plain = part.to_ascii_lowercase().replace("%2e", ".");
        match plain.as_str() {
            "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts
}

/// Returns parts as an address in which what cannot stand there is hidden, as keys hide it.
fn shown<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let sign = |c: char| {
        if c.is_ascii_graphic() && !"@\\?#".contains(c) {
            c
        } else {
            '%'
        }
    };
    let parts = parts.filter(|part| !part.is_empty());
    let parts: Vec<String> = parts.map(|part| part.chars().map(sign).collect()).collect();
    parts.join("/")
}

/// Returns where the first variable stands in a text that somebody else fills in: `${NAME}`, `$NAME`.
pub(super) fn variable(text: &str) -> Option<usize> {
    let is_name = |rest: &str| rest.starts_with(|c: char| c == '{' || c == '_' || c.is_ascii_alphabetic());
    let mut signs = text.match_indices('$').map(|(at, _)| at);
    signs.find(|at| is_name(&text[at + 1..]))
}

/// Returns a text with its variables as a client reads them where there are none, or with a sign in the place of each.
fn with_variables(text: &str, is_filled: bool) -> String {
    let (mut read, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = variable(rest) {
        read.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (name, after) = if let Some(inner) = behind.strip_prefix('{') {
            let Some(parts) = inner.split_once('}') else {
                break;
            };
            parts
        } else {
            let end = behind.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
            behind.split_at(end.unwrap_or(behind.len()))
        };
        match name.split_once(":-").filter(|_| is_filled) {
            Some((_, default)) => read.push_str(default),
            None => read.push(OPEN),
        }
        rest = after;
    }
    // One without an end is none; what stands before it is read.
    read.push_str(&rest[variable(rest).unwrap_or(0)..]);
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        asked_in(text, true, &mut MOST_READ.clone())
            .into_iter()
            .flat_map(|asked| asked.keys)
            .collect()
    }

    /// Proves IV-7.
    #[test]
    fn what_an_address_may_ask_for_is_found_however_it_is_hidden() {
        for text in [
            "https://user:word@evil.example/mcp",
            "https://${HOST:-evil.example}/mcp",
            "${BASE:-https://evil.example}/mcp",
            "https://evil.example/%6dcp",
            "https://evil.example/%6Dc%70?x=1",
            "http://evil.example/mcp",
            "https://a@b@EVIL.example:443/mcp/",
            "https://evil.example\\\\mcp",
            "https://evil.example:/mcp",
            "https://evil.example/a@b/../mcp",
            "https://evil.example/a%23/%2E./mcp",
            "https://evil.example/a b/../mcp",
            "https://evil.example/mcp/x//../..",
            "https://ok.example\\@evil.example/mcp",
            "https://evil.example\\@ok.example/../mcp",
            "evil.example/mcp",
        ] {
            let keys = keys(text);
            assert!(
                keys.contains(&"url:https://evil.example/mcp".to_owned()),
                "{text}: {keys:?}"
            );
        }
        for text in [
            "https://evil.example.test/mcp",
            "https://good.example/mcp#@evil.example/mcp",
            "https://good.example/@evil.example/mcp",
            "https://${HOST}/mcp",
            "https://${HOST:-evil.example/mcp",
            "ftp://evil.example/mcp",
        ] {
            let keys = keys(text);
            assert!(
                !keys.contains(&"url:https://evil.example/mcp".to_owned()),
                "{text}: {keys:?}"
            );
        }
        assert!(
            keys("https:\\\\evil.example:80\\mcp").contains(&"url:https://evil.example:80/mcp".to_owned())
        );
        for text in [
            "https://134744072/mcp",
            "https://8.8.2056/mcp",
            "https://0x8.010.8.8./mcp",
            "https://[::ffff:8.8.8.8]/mcp",
            "https:8.8.8.8:80/mcp",
            "https://[::FFFF:808:808]:443/mcp",
            "https://[0:0:0:0:0:ffff:0808:0808]/mcp",
        ] {
            assert!(
                keys(text).contains(&"url:https://8.8.8.8/mcp".to_owned()),
                "{text}"
            );
        }
    }
}
