//! What a client calls itself. It is shown and filed under, and decides nothing.

use http::HeaderMap;
use http::header::USER_AGENT;
use provost_kernel::dispatch::McpClient;
use serde_json::Value;

/// LIMIT: bytes of a name, which is kept whole: what a filter for it takes. Two long ones that begin alike are two.
const MAX_BYTES: usize = 2048;
/// LIMIT: characters that are shown of how people call a client.
const MAX_SHOWN: usize = 128;
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// A client's name is longer than any that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// What a name stands for, if anything of it can be shown.
type DisplayName = Result<Option<McpClient>, TooLong>;

/// Returns the client that a message names: in `_meta` (2026-07-28), or in the parameters of `initialize`.
pub(crate) fn of_message(message: &Value) -> DisplayName {
    said(message).map_or(Ok(None), |(name, display)| named(&name, &display))
}

fn said(message: &Value) -> Option<(String, String)> {
    let params = message.get("params")?;
    let info = params.get("_meta").and_then(|meta| meta.get(CLIENT_INFO));
    let is_initialize = message.get("method").is_some_and(|method| method == "initialize");
    let info = info.or_else(|| params.get("clientInfo").filter(|_| is_initialize))?;
    let text = |name: &str| info.get(name).and_then(Value::as_str);
    let name = text("name")?;
    let display = match (text("title").unwrap_or(name), text("version")) {
        (title, Some(version)) => format!("{title} {version}"),
        (title, None) => title.to_owned(),
    };
    Some((name.to_owned(), display))
}

/// Returns the product of the header `User-Agent`, or a client without a name.
pub(crate) fn of_headers(headers: &HeaderMap) -> Result<McpClient, TooLong> {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    let product = agent.and_then(|agent| agent.split([' ', '/', '(', ';']).next());
    let known = product.map_or(Ok(None), |product| named(product, agent.unwrap_or_default()))?;
    Ok(known.unwrap_or_else(|| McpClient {
        id: "unknown".into(),
        display: None,
    }))
}

/// Returns a client of these names, if anything of the first can be shown.
pub(crate) fn named(name: &str, display: &str) -> DisplayName {
    let id: String = name.trim().chars().filter_map(visible).collect();
    if id.len() > MAX_BYTES {
        return Err(TooLong);
    }
    let display: String = display
        .chars()
        .filter(|c| *c == ' ' || is_visible(*c))
        .take(MAX_SHOWN)
        .collect();
    let display = display.trim();
    Ok((!id.is_empty()).then(|| McpClient {
        display: (!display.is_empty() && display != id).then(|| display.to_owned()),
        id,
    }))
}

fn visible(c: char) -> Option<char> {
    if c == ' ' {
        return Some('-');
    }
    is_visible(c).then_some(c)
}

/// Letters, digits and the signs of ASCII: what neither moves the line nor hides in it.
fn is_visible(c: char) -> bool {
    c.is_ascii_graphic() || (!c.is_ascii() && c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_cleaned_and_kept_whole() {
        let client = named(" Claude\u{202e} Code\n\u{200b} ", "Claude\tCode 2")
            .unwrap()
            .unwrap();
        assert_eq!(
            (client.id.as_str(), client.display.as_deref()),
            ("Claude-Code", Some("ClaudeCode 2"))
        );
        assert_eq!(named(&"é".repeat(300), "").unwrap().unwrap().id, "é".repeat(300));
        let longest = named(&"x".repeat(MAX_BYTES), &"x".repeat(300)).unwrap().unwrap();
        assert_eq!(
            (longest.id.len(), longest.display.unwrap().len()),
            (MAX_BYTES, MAX_SHOWN)
        );
        assert_eq!(named(&"x".repeat(MAX_BYTES + 1), ""), Err(TooLong));
        assert_eq!(named("\u{0}\u{200b} ", "x"), Ok(None));
    }

    #[test]
    fn a_message_names_its_client_by_either_lifecycle() {
        let old =
            json!({ "method": "initialize", "params": { "clientInfo": { "name": "a", "version": "1" } } });
        let new = json!({ "method": "tools/call", "params": { "_meta": { CLIENT_INFO: { "name": "b" } } } });
        assert_eq!(of_message(&old).unwrap().unwrap().id, "a");
        assert_eq!(of_message(&old).unwrap().unwrap().display.as_deref(), Some("a 1"));
        assert_eq!(of_message(&new).unwrap().unwrap().id, "b");
        let elsewhere = json!({ "method": "tools/call", "params": { "clientInfo": { "name": "c" } } });
        assert_eq!(of_message(&elsewhere), Ok(None));
        for nameless in [
            json!([]),
            json!({ "params": 1 }),
            json!({ "method": "initialize", "params": { "clientInfo": { "name": 1 } } }),
        ] {
            assert_eq!(of_message(&nameless), Ok(None));
        }
    }

    #[test]
    fn without_a_name_the_product_stands_for_it() {
        let mut headers = HeaderMap::new();
        assert_eq!(of_headers(&headers).unwrap().id, "unknown");
        headers.insert(USER_AGENT, "codex/1.2 (linux)".parse().unwrap());
        assert_eq!(of_headers(&headers).unwrap().id, "codex");
    }
}
