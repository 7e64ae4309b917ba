//! What a request says of media types, judged by the rules of HTTP (RFC 9110 §8.3.1, §12.5.1): what it sends is JSON, and so is
//! what it is answered with.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};

const JSON: &str = "application/json";

/// Why a request is not read: its status, and a sentence for who sent it.
pub(crate) type Refusal = (StatusCode, &'static str);

/// Says whether a message comes as JSON, and may be answered with it.
///
/// Errors: 415 and 406.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), Refusal> {
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = sent.and_then(|sent| sent.split(';').next()).unwrap_or_default();
    if !essence.trim().eq_ignore_ascii_case(JSON) {
        let message = "a message is sent with the header Content-Type: application/json";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    if !takes_json(headers) {
        let message = "the answer is application/json, which the header Accept does not take; \
            send Accept: application/json, text/event-stream";
        return Err((StatusCode::NOT_ACCEPTABLE, message));
    }
    Ok(())
}

/// Says the media types in the words that the protocol's library looks for.
pub(crate) fn put_usual(headers: &mut HeaderMap) {
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(ACCEPT, both);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
}

/// The range that names JSON most closely decides. Who names none at all takes everything.
fn takes_json(headers: &HeaderMap) -> bool {
    let mut is_empty = true;
    let mut closest: Option<(u8, f32)> = None;
    for value in headers.get_all(ACCEPT) {
        let Ok(text) = value.to_str() else {
            is_empty = false;
            continue;
        };
        for range in text.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            is_empty = false;
            let Some((closeness, weight)) = of_json(range) else {
                continue;
            };
            if closest.is_none_or(|(closer, most)| (closeness, weight) > (closer, most)) {
                closest = Some((closeness, weight));
            }
        }
    }
    is_empty || closest.is_some_and(|(_, weight)| weight > 0.0)
}

/// Returns how closely a range names JSON, and its weight; nothing for a range that leaves JSON out or cannot be read.
fn of_json(range: &str) -> Option<(u8, f32)> {
    let mut parts = range.split(';').map(str::trim);
    let closeness = match parts.next()?.to_ascii_lowercase().as_str() {
        JSON => 3,
        "application/*" => 2,
        "*/*" => 1,
        _ => return None,
    };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        if name.trim().eq_ignore_ascii_case("q") {
            let weight: f32 = value.trim().parse().ok()?;
            return (0.0..=1.0).contains(&weight).then_some((closeness, weight));
        }
    }
    Some((closeness, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(content_type: Option<&str>, accept: &[&str]) -> u16 {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        }
        for accept in accept {
            headers.append(ACCEPT, accept.parse().unwrap());
        }
        check(&headers).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn whoever_takes_json_is_answered() {
        let taken: &[&[&str]] = &[
            &[],
            &[""],
            &["application/json"],
            &["application/json, text/event-stream"],
            &["text/event-stream, application/json;q=0.1"],
            &["text/event-stream", "application/json"],
            &["APPLICATION/JSON"],
            &["Application/Json ; Q=0.5"],
            &["application/json; charset=utf-8"],
            &["application/*"],
            &["*/*"],
            &["text/html, */*;q=0.01"],
            &["*/*;q=0, application/json"],
            &["nonsense, application/json"],
        ];
        for accept in taken {
            assert_eq!(status(Some(JSON), accept), 200, "{accept:?}");
        }
    }

    #[test]
    fn whoever_leaves_json_out_is_refused() {
        let refused: &[&[&str]] = &[
            &["text/event-stream"],
            &["text/*"],
            &["application/jsonl"],
            &["application/problem+json"],
            &["xapplication/json"],
            &["application/json;q=0"],
            &["application/json;q=0.000, */*"],
            &["application/*;q=0, */*"],
            &["application/json;q=2"],
            &["application/json;q=-1"],
            &["application/json;q=NaN"],
            &["application/json;q="],
            &["json"],
            &["*"],
            &["*/json"],
        ];
        for accept in refused {
            assert_eq!(status(Some(JSON), accept), 406, "{accept:?}");
        }
    }

    #[test]
    fn a_message_is_sent_as_json() {
        for sent in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/json ;a=b",
        ] {
            assert_eq!(status(Some(sent), &["*/*"]), 200, "{sent}");
        }
        for sent in [
            "text/plain",
            "application/jsonx",
            "application/json-patch+json",
            "application/*",
            "",
        ] {
            assert_eq!(status(Some(sent), &["*/*"]), 415, "{sent}");
        }
        assert_eq!(status(None, &["*/*"]), 415);
    }
}
