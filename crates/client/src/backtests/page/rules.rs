//! What was tried: each policy in words and as JSON, and what the person reads whom it meets.

use super::super::rule_words::{badge, sentences};
use super::super::view::{PolicyChanges, TriedPolicy};
use super::section;
use provost_words::html::Html;
use serde_json::Value;

/// Policies that everybody sees; the others unfold.
const SHOWN: usize = 5;
/// LIMIT: policies of a page. A whole set may have thousands.
const MAX_POLICIES: usize = 200;
/// Lines of JSON of one policy; a module may have thousands.
const MAX_LINES: usize = 400;

/// The places of the page that say what a policy does.
pub struct Anchors<'a>(Vec<&'a str>);

impl<'a> Anchors<'a> {
    pub fn of(tried: Option<&'a PolicyChanges>) -> Self {
        let all = tried.into_iter().flat_map(|tried| &tried.changes);
        Self(
            all.take(MAX_POLICIES)
                .map(|policy| policy.policy_id.as_str())
                .collect(),
        )
    }

    /// Adds the name of a policy, which leads to what it does where the page says that.
    pub fn name(&self, html: &mut Html, id: &str) {
        match self.0.iter().position(|known| *known == id) {
            None => html.name(id),
            Some(place) => {
                let to = format!("#rule-{place}");
                html.element("a", &[("href", &to)], |html| html.name(id));
            }
        }
    }
}

/// Adds the section; nothing of a run that says nothing about it.
pub fn add(html: &mut Html, tried: Option<&PolicyChanges>) {
    let Some(tried) = tried else { return };
    if tried.changes.is_empty() && !tried.withheld {
        return;
    }
    section(html, "What was tried", "", |html| {
        if tried.withheld {
            html.words(
                "p",
                "hint",
                "The policies are not shown here: the server shows them to admins and auditors with the scope audit:read.",
            );
        }
        let known = tried.changes.len().min(MAX_POLICIES);
        let (first, rest) = tried.changes[..known].split_at(known.min(SHOWN));
        for (place, policy) in first.iter().enumerate() {
            one(html, place, policy);
        }
        if !rest.is_empty() {
            html.element("details", &[], |html| {
                html.words("summary", "", &format!("{} more policies", rest.len()));
                for (place, policy) in rest.iter().enumerate() {
                    one(html, SHOWN + place, policy);
                }
            });
        }
        if tried.changes.len() > known {
            let left = tried.changes.len() - known;
            html.words("p", "hint", &format!("{left} policies more are not shown."));
        }
    });
}

fn one(html: &mut Html, place: usize, policy: &TriedPolicy) {
    let id = format!("rule-{place}");
    html.element("div", &[("class", "rule"), ("id", &id)], |html| {
        let definition = policy.definition.as_ref();
        let name = definition.and_then(|definition| definition["name"].as_str());
        html.element("h3", &[], |html| {
            html.name(name.unwrap_or(&policy.policy_id));
            html.raw(" ");
            let word = definition.map_or_else(|| Some("taken out".to_owned()), badge);
            html.words("span", "status", &word.unwrap_or_default());
        });
        html.element("p", &[("class", "kind")], |html| {
            html.name(&policy.policy_id);
            html.text(&format!(" · {}", policy.family.replace('_', " ")));
        });
        let Some(definition) = definition else {
            html.words("p", "", "The policy decides nothing any more.");
            return;
        };
        let sentences = sentences(definition);
        if sentences.is_empty() {
            html.words("p", "", "What it does is said by its JSON.");
        }
        for sentence in &sentences {
            html.words("p", "", sentence);
        }
        if let Some(message) = definition["message"].as_str() {
            html.element("p", &[("class", "message")], |html| {
                html.words("span", "kind", "People read: ");
                html.name(message);
            });
        }
        json(html, definition);
    });
}

fn json(html: &mut Html, definition: &Value) {
    let text = format!("{definition:#}");
    let lines = text.lines().count();
    html.element("details", &[], |html| {
        html.words("summary", "", "The same as JSON");
        html.element("pre", &[], |html| {
            for line in text.lines().take(MAX_LINES) {
                html.text(line);
                html.raw("\n");
            }
        });
        if lines > MAX_LINES {
            html.words(
                "p",
                "hint",
                &format!("{} lines more are not shown.", lines - MAX_LINES),
            );
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tried(changes: &Value) -> PolicyChanges {
        serde_json::from_value(json!({ "changes": changes })).unwrap()
    }

    fn shown(tried: Option<&PolicyChanges>) -> String {
        let mut html = Html::default();
        add(&mut html, tried);
        html.into_string()
    }

    #[test]
    fn a_policy_is_shown_in_words_as_json_and_by_its_message() {
        let tried = tried(&json!([
            { "family": "content", "policyId": "p", "definition": { "id": "p", "name": "No <b>", "action": "block",
                "evaluateOn": ["prompt"], "message": "Ask \"us\"." } },
            { "family": "access", "policyId": "q" },
        ]));
        let html = shown(Some(&tried));
        for words in [
            "No &lt;b&gt;",
            "A prompt is blocked.",
            "People read: </span><bdi>Ask &quot;us&quot;.",
            "&quot;evaluateOn&quot;: [\n",
            "taken out",
        ] {
            assert!(html.contains(words), "{words} in {html}");
        }
        let mut linked = Html::default();
        let anchors = Anchors::of(Some(&tried));
        anchors.name(&mut linked, "q");
        anchors.name(&mut linked, "elsewhere");
        assert_eq!(
            linked.into_string(),
            "<a href=\"#rule-1\"><bdi>q</bdi></a><bdi>elsewhere</bdi>"
        );
    }

    #[test]
    fn what_is_not_shown_is_said() {
        assert_eq!(shown(None), "");
        let withheld = PolicyChanges {
            withheld: true,
            ..PolicyChanges::default()
        };
        assert!(shown(Some(&withheld)).contains("audit:read"));
        let policy = json!({ "family": "content", "policyId": "p" });
        let many = tried(&vec![policy; 250].into());
        let html = shown(Some(&many));
        assert!(html.contains("195 more policies") && html.contains("50 policies more"));
    }
}
