//! How long an answer may be used again (RFC 9111 §5.2.2), as far as a cache of one reader needs it.

use http::{HeaderMap, header};
use std::time::Duration;

/// Returns the age that `Cache-Control` allows: zero for `no-store`, `no-cache` and what is not understood, `None` where
/// it names no age.
pub(super) fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let mut allowed = None;
    for line in headers.get_all(header::CACHE_CONTROL) {
        let Ok(line) = line.to_str() else {
            return Some(Duration::ZERO);
        };
        for directive in line.split(',') {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            let name = name.trim().to_ascii_lowercase();
            let age = match name.as_str() {
                "no-store" | "no-cache" => Duration::ZERO,
                "max-age" => seconds(value.trim().trim_matches('"')),
                _ => continue,
            };
            // Of two that disagree the shorter one is right, whichever was meant.
            allowed = Some(allowed.map_or(age, |known: Duration| known.min(age)));
        }
    }
    allowed
}

fn seconds(text: &str) -> Duration {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Duration::ZERO;
    }
    // RFC 9111 §1.2.2: what is too large to be counted is very long.
    Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_the_shortest_that_the_answer_names() {
        for (lines, expected) in [
            (&[][..], None),
            (&["public"], None),
            (&["max-age=60"], Some(60)),
            (&["Public, MAX-AGE=\"7\""], Some(7)),
            (&["max-age=60, max-age=5"], Some(5)),
            (&["max-age=60", "no-cache"], Some(0)),
            (&["no-store, max-age=60"], Some(0)),
            (&["max-age"], Some(0)),
            (&["max-age=-1"], Some(0)),
            (&["max-age=6e3"], Some(0)),
            (&["max-age=99999999999999999999"], Some(u64::from(u32::MAX))),
            (&["s-maxage=60"], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::CACHE_CONTROL, line.parse().unwrap());
            }
            assert_eq!(max_age(&headers), expected.map(Duration::from_secs), "{lines:?}");
        }
    }
}
