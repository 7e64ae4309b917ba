//! Before and after: from what the changed decisions were to what they would be, as bands as wide as they are many.

use super::super::view::{Change, Direction, rank};
use super::super::words::{action, number, percent};
use super::section;
use provost_words::html::{Html, scaled};

/// Pixels: how tall all decisions together are for each direction and at most, how far groups lie apart, and what two
/// lines of text need.
const BANDS_EACH: u64 = 72;
const BANDS: u64 = 220;
const GAP: u64 = 14;
const LINES: u64 = 40;
/// Characters of a label: what has room on a telephone, and every action's word.
const MAX_LABEL: usize = 16;
/// Hundredths of a pixel, in which bands are drawn.
const FINE: u64 = 100;

/// One action on one side.
#[derive(Debug)]
struct Node {
    word: String,
    count: u64,
    /// Hundredths of a pixel from the top.
    y: u64,
    height: u64,
    /// How much of it the bands so far have taken.
    taken: u64,
}

/// Adds the section; nothing where nothing changed.
pub fn add(html: &mut Html, changes: &[Change], decisions: u64) {
    if changes.is_empty() {
        return;
    }
    let hint = "Only the changed decisions: left what they were, right what they would have been.";
    section(html, "Before and after", hint, |html| {
        html.element("figure", &[], |html| {
            chart(html, changes);
            key(html, changes);
        });
        table(html, changes, decisions);
    });
}

fn chart(html: &mut Html, changes: &[Change]) {
    let (mut before, mut after) = (side(changes, |c| &c.from), side(changes, |c| &c.to));
    let bottom = |side: &[Node]| {
        side.last()
            .map_or(0, |node| node.y + node.height.max(LINES * FINE))
    };
    let height = (bottom(&before).max(bottom(&after)) / FINE + 2).to_string();
    // The table below says the same.
    let svg = [
        ("width", "100%"),
        ("height", height.as_str()),
        ("aria-hidden", "true"),
        ("focusable", "false"),
    ];
    html.element("svg", &svg, |html| {
        let view = format!("0 0 1000 {height}");
        let inner = [
            ("x", "35%"),
            ("width", "30%"),
            ("height", height.as_str()),
            ("viewBox", view.as_str()),
            ("preserveAspectRatio", "none"),
        ];
        html.element("svg", &inner, |html| {
            bands(html, changes, &mut before, &mut after);
        });
        for (nodes, bar, text, anchor) in [
            (&before, "34%", "32.5%", "end"),
            (&after, "65%", "67.5%", "start"),
        ] {
            for node in nodes {
                label(html, node, bar, text, anchor);
            }
        }
    });
}

fn bands(html: &mut Html, changes: &[Change], before: &mut [Node], after: &mut [Node]) {
    // Strictest last on both sides, so that bands cross as little as they can.
    let mut ordered: Vec<&Change> = changes.iter().collect();
    ordered.sort_by_key(|change| (rank(&change.from), rank(&change.to)));
    for change in ordered {
        let from = before.iter_mut().find(|node| node.word == change.from);
        let to = after.iter_mut().find(|node| node.word == change.to);
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        let thick = thickness(change, changes);
        let (left, right) = (from.y + from.taken, to.y + to.taken);
        from.taken += thick;
        to.taken += thick;
        let path = format!(
            "M0 {} C500 {} 500 {} 1000 {} V{} C500 {} 500 {} 0 {} Z",
            pixels(left),
            pixels(left),
            pixels(right),
            pixels(right),
            pixels(right + thick),
            pixels(right + thick),
            pixels(left + thick),
            pixels(left + thick),
        );
        let class = match change.direction() {
            Direction::Stricter => "flow-stricter",
            Direction::Looser => "flow-looser",
            Direction::Other => "flow-other",
        };
        html.element("path", &[("d", &path), ("class", class)], |html| {
            let words = format!(
                "{} to {}: {}",
                action(&change.from),
                action(&change.to),
                number(change.count)
            );
            html.words("title", "", &words);
        });
    }
}

fn label(html: &mut Html, node: &Node, bar: &str, text: &str, anchor: &str) {
    let (y, tall) = (pixels(node.y), pixels(node.height));
    let at = [
        ("x", bar),
        ("y", y.as_str()),
        ("width", "1%"),
        ("height", &tall),
        ("class", "node"),
    ];
    html.element("rect", &at, |_| {});
    let line = |html: &mut Html, class: &str, down: u64, words: &str| {
        let y = pixels(node.y + down * FINE);
        let at = [
            ("x", text),
            ("y", y.as_str()),
            ("text-anchor", anchor),
            ("class", class),
        ];
        html.element("text", &at, |html| html.text(words));
    };
    line(
        html,
        "label",
        13,
        &action(&node.word).chars().take(MAX_LABEL).collect::<String>(),
    );
    line(html, "", 30, &number(node.count));
}

/// Returns the actions of one side, the weakest first, from the top down.
fn side(changes: &[Change], word: fn(&Change) -> &String) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for change in changes {
        let thick = thickness(change, changes);
        if let Some(node) = nodes.iter_mut().find(|node| node.word == *word(change)) {
            node.count += change.count;
            node.height += thick;
        } else {
            nodes.push(Node {
                word: word(change).clone(),
                count: change.count,
                y: 0,
                height: thick,
                taken: 0,
            });
        }
    }
    nodes.sort_by_key(|node| (rank(&node.word).unwrap_or(usize::MAX), node.word.clone()));
    let mut y = 0;
    for node in &mut nodes {
        node.y = y;
        y += node.height.max(LINES * FINE) + GAP * FINE;
    }
    nodes
}

/// Hundredths of a pixel; few bands are not blown up to fill a page.
fn thickness(change: &Change, changes: &[Change]) -> u64 {
    let all = (BANDS_EACH * changes.len() as u64).min(BANDS);
    scaled(change.count, total(changes), all * FINE, FINE)
}

fn total(changes: &[Change]) -> u64 {
    changes.iter().map(|change| change.count).sum()
}

fn pixels(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / FINE, hundredths % FINE)
}

fn key(html: &mut Html, changes: &[Change]) {
    html.element("figcaption", &[("class", "key")], |html| {
        for (direction, class, words) in [
            (Direction::Stricter, "stricter", "stricter: more is stopped"),
            (Direction::Looser, "looser", "more lenient: more passes"),
            (Direction::Other, "other", "other"),
        ] {
            if changes.iter().any(|change| change.direction() == direction) {
                html.element("span", &[], |html| {
                    html.element("i", &[("class", class)], |_| {});
                    html.text(words);
                });
            }
        }
    });
}

fn table(html: &mut Html, changes: &[Change], decisions: u64) {
    html.element("table", &[("class", "directions")], |html| {
        html.words("caption", "", "Changed decisions by direction");
        html.raw("<thead><tr><th scope=\"col\">Before</th><th scope=\"col\">After</th><th scope=\"col\" class=\"which\">Which is</th><th scope=\"col\" class=\"count\">Decisions</th><th scope=\"col\" class=\"count\">Share</th></tr></thead>\n");
        html.element("tbody", &[], |html| {
            for change in changes {
                let (class, words) = match change.direction() {
                    Direction::Stricter => ("which strict", "stricter"),
                    Direction::Looser => ("which loose", "more lenient"),
                    Direction::Other => ("which", "other"),
                };
                html.element("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], |html| html.text(&action(&change.from)));
                    html.words("td", "", &action(&change.to));
                    html.words("td", class, words);
                    html.words("td", "count", &number(change.count));
                    html.words("td", "count", &percent(change.count, decisions));
                });
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from: &str, to: &str, count: u64) -> Change {
        Change {
            from: from.into(),
            to: to.into(),
            count,
        }
    }

    fn page(changes: &[Change]) -> String {
        let mut html = Html::default();
        add(&mut html, changes, total(changes));
        html.into_string()
    }

    #[test]
    fn groups_never_overlap_and_bands_fill_them() {
        let changes = [
            change("allow", "block", 9_000),
            change("allow", "nudge", 1),
            change("block", "allow", 3),
        ];
        for nodes in [side(&changes, |c| &c.from), side(&changes, |c| &c.to)] {
            for pair in nodes.windows(2) {
                assert!(
                    pair[0].y + pair[0].height.max(LINES * FINE) < pair[1].y,
                    "{nodes:?}"
                );
            }
        }
        assert_eq!(page(&changes).matches("<path").count(), 3);
        assert_eq!(thickness(&changes[0], &changes[..1]), BANDS_EACH * FINE);
    }

    #[test]
    fn colours_and_words_say_the_direction() {
        let html = page(&[change("allow", "block", 2), change("block", "redact", 1)]);
        for words in [
            "flow-stricter",
            "flow-looser",
            "more lenient: more passes",
            "allow to block: 2",
            "66.7",
        ] {
            assert!(html.contains(words), "{words} in {html}");
        }
        assert!(!html.contains("flow-other"));
    }

    #[test]
    fn words_of_a_newer_server_are_shown_as_they_are() {
        let html = page(&[change("allow", "<b>hold</b>", 1)]);
        assert!(html.contains("&lt;b&gt;hold&lt;/b&gt;") && html.contains("flow-other"));
    }

    #[test]
    fn nothing_changed_is_no_section() {
        assert_eq!(page(&[]), "");
    }
}
