//! A run whose every text wants to be markup, to turn around, or to be too long.

use serde_json::{Map, Value};

/// The greatest number that every reader of JSON keeps.
const GREATEST: u64 = 9_007_199_254_740_991;
/// The words that must stay for the page to have its parts.
const KEPT: [&str; 4] = ["day", "decision", "status", "truncatedBy"];

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "<script>document.title='x'</script>",
        "\"><img src=http://evil.example/x.png onerror=alert(1)>",
        "</title></style><script>document.title='x'</script>",
        "&lt;already&gt; &amp;",
        "\u{202e}gnp.exe\u{202c}\u{200b}",
        "<svg onload=document.title='x'>",
        "'); drop table policies--",
        "\u{0}\u{1b}[2J\u{feff}",
        "<!-- ]]>",
        "سياسة الإلغاء",
    ]
    .map(str::to_owned)
    .into();
    texts.push("x".repeat(4096));
    texts.push("ü".repeat(4096));
    texts.push("a b ".repeat(1024));
    texts
}

/// Returns the run with its words and figures replaced.
pub fn made_of(run: &Value) -> Value {
    let texts = texts();
    let mut next = 0;
    let mut hostile = replaced("", run, &mut || {
        next += 1;
        texts[next % texts.len()].clone()
    });
    hostile["status"] = "failed".into();
    hostile["partial"] = true.into();
    hostile["truncated"] = true.into();
    let change = |(place, text): (usize, &String)| (format!("allow_to_{text}"), Value::from(place + 1));
    let changes: Map<String, Value> = texts.iter().enumerate().map(change).collect();
    if let Some(Value::Object(by_change)) = hostile.pointer_mut("/results/byChange") {
        by_change.extend(changes);
    }
    hostile
}

fn replaced(name: &str, value: &Value, text: &mut impl FnMut() -> String) -> Value {
    match value {
        Value::String(_) if KEPT.contains(&name) => value.clone(),
        Value::String(_) => text().into(),
        Value::Number(_) if name == "changed" => value.clone(),
        Value::Number(_) => GREATEST.into(),
        Value::Array(items) => items.iter().map(|item| replaced(name, item, text)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), replaced(name, member, text)))
            .collect(),
        other => other.clone(),
    }
}
