//! The pages that a server shows at its own address, to anybody: `/`, and the reference at `/docs`.

use std::path::Path;

use super::browser::{Browser, BrowserView, View};
use super::{PICTURED, WIDTHS};
use crate::failure::{Context, Failure, Outcome};

/// What the pages consist of.
const ELEMENTS: &str = "a body code dd details div dl dt h1 h2 h3 head header html li main meta p pre section small span \
    style summary title ul";

/// Looks at the pages of the server at an address; returns how many views there were.
pub fn look(browser: &mut Browser, url: &str, pictures: &Path) -> Outcome<usize> {
    let mut views = 0;
    for (name, place, title) in [
        ("own-start", "/", "Provost"),
        ("own-docs", "/docs", "API reference · Provost"),
        (
            "own-docs-policies",
            "/docs/policies",
            "Policies · API reference · Provost",
        ),
        (
            "own-docs-accounts",
            "/docs/service_accounts",
            "Service accounts · API reference · Provost",
        ),
        (
            "own-docs-events",
            "/docs/event-kinds",
            "Kinds of events · API reference · Provost",
        ),
    ] {
        let address = format!("{url}{place}");
        for width in WIDTHS {
            for is_dark in [false, true] {
                let view = View { width, is_dark };
                let seen = browser.look_at(&address, view)?;
                judge(&seen, view, &address, title).context(format_args!("the page {name}, {view}"))?;
                if PICTURED.contains(&width) {
                    let picture = pictures.join(format!("{name}-{width}-{}.png", view.scheme()));
                    browser.photograph(&picture, width, seen.height)?;
                }
                views += 1;
            }
        }
    }
    Ok(views)
}

fn judge(seen: &BrowserView, view: View, address: &str, title: &str) -> Outcome {
    let allowed: Vec<&str> = ELEMENTS.split_whitespace().collect();
    let foreign: Vec<&String> = seen
        .elements
        .iter()
        .filter(|name| !allowed.contains(&name.as_str()))
        .collect();
    let rules = [
        (
            seen.asked == [address],
            format!("it asks for nothing but itself, not {:?}", seen.asked),
        ),
        (
            seen.complaints.is_empty(),
            format!(
                "the browser has nothing to complain about, not {:?}",
                seen.complaints
            ),
        ),
        (
            foreign.is_empty(),
            format!("there are no elements such as {foreign:?}"),
        ),
        (
            seen.width <= u64::from(view.width),
            format!("it fits: {} pixels of {}", seen.width, view.width),
        ),
        (
            seen.faint.is_empty(),
            format!("every word has a contrast of 4.5 or more, not {:?}", seen.faint),
        ),
        (seen.words >= 10, format!("there are words, not {}", seen.words)),
        (
            seen.title == title,
            format!("the title is {title:?}, not {:?}", seen.title),
        ),
    ];
    match rules.into_iter().find(|(is_so, _)| !is_so) {
        None => Ok(()),
        Some((_, sentence)) => Err(Failure::new(format!("expected that {sentence}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_fault_of_a_page_is_seen() {
        let address = "http://127.0.0.1:1/";
        let seen = || -> BrowserView {
            serde_json::from_value(json!({
                "width": 390, "height": 900, "title": "Provost", "words": 30, "elements": ["html", "p"], "acts": 9,
                "faint": [], "drawings": 0, "tables": 0, "captions": 0, "asked": [address], "complaints": [],
            }))
            .unwrap()
        };
        let view = View {
            width: 390,
            is_dark: false,
        };
        judge(&seen(), view, address, "Provost").unwrap();
        let faults: [fn(&mut BrowserView); 7] = [
            |seen| seen.asked.push("http://evil.example".into()),
            |seen| seen.complaints.push("refused to load".into()),
            |seen| seen.elements.push("script".into()),
            |seen| seen.width = 391,
            |seen| seen.faint.push("grey".into()),
            |seen| seen.words = 0,
            |seen| seen.title.clear(),
        ];
        for fault in faults {
            let mut seen = seen();
            fault(&mut seen);
            judge(&seen, view, address, "Provost").unwrap_err();
        }
    }
}
