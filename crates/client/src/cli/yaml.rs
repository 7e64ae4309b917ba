//! JSON as YAML, for people who read long answers and tools that take nothing else.
//!
//! Every text that is not a plain word stands between quotes as JSON has it, which YAML reads alike: no word becomes a number, a
//! date or `false` on its way, and no line of an answer can end what is around it.

use serde_json::{Map, Value};

/// Returns a value as a YAML document.
pub(super) fn text(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => object(members, 0, false, &mut out),
        Value::Array(items) if !items.is_empty() => array(items, 0, &mut out),
        other => {
            out.push_str(&scalar(other));
            out.push('\n');
        }
    }
    out
}

fn object(members: &Map<String, Value>, depth: usize, is_in_line: bool, out: &mut String) {
    for (place, (name, value)) in members.iter().enumerate() {
        if place > 0 || !is_in_line {
            indent(depth, out);
        }
        out.push_str(&word(name));
        out.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                object(inner, depth + 1, false, out);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                array(items, depth, out);
            }
            other => {
                out.push(' ');
                out.push_str(&scalar(other));
                out.push('\n');
            }
        }
    }
}

fn array(items: &[Value], depth: usize, out: &mut String) {
    for item in items {
        indent(depth, out);
        out.push_str("- ");
        match item {
            Value::Object(members) if !members.is_empty() => object(members, depth + 1, true, out),
            // A list in a list stands in one line, as JSON has it.
            Value::Array(_) => {
                out.push_str(&item.to_string());
                out.push('\n');
            }
            other => {
                out.push_str(&scalar(other));
                out.push('\n');
            }
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        other => other.to_string(),
    }
}

/// Returns a text bare where no reader of YAML can take it for something else.
fn word(text: &str) -> String {
    const TAKEN: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "y"];
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    let lower = text.to_ascii_lowercase();
    let is_bare = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(is_plain)
        && !TAKEN.contains(&lower.as_str())
        && lower != "n";
    if is_bare {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_text_stays_the_text_that_it_is() {
        let value = json!({
            "name": "deploy", "no": "no", "when": "2026-11-26T12:00:00.000Z", "count": 3, "none": null,
            "empty": {}, "list": [], "scopes": ["a:read", "b"], "on": true, "text": "two\nlines: # x",
            "tokens": [{ "id": "t_1", "of": { "a": 1 } }, { "id": "0x1" }], "pairs": [[1, "a"], []],
        });
        let expected = "\
count: 3
empty: {}
list: []
name: deploy
\"no\": \"no\"
none: null
\"on\": true
pairs:
- [1,\"a\"]
- []
scopes:
- \"a:read\"
- b
text: \"two\\nlines: # x\"
tokens:
- id: t_1
  of:
    a: 1
- id: \"0x1\"
when: \"2026-11-26T12:00:00.000Z\"
";
        let said = text(&value);
        let mut lines: Vec<&str> = said.lines().collect();
        let mut wanted: Vec<&str> = expected.lines().collect();
        lines.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(lines, wanted, "{said}");
        assert!(
            said.contains("tokens:\n- id: t_1\n  of:\n    a: 1\n- id: \"0x1\"\n"),
            "{said}"
        );
        assert_eq!(text(&json!("x")), "x\n");
        assert_eq!(text(&json!([1])), "- 1\n");
    }
}
