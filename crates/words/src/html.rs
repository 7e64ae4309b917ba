//! Markup as text, in which only what is written in this program can be markup.
//!
//! INVARIANT PG-1: what comes from elsewhere, a run or a client, reaches the page as text or as the value of an
//! attribute, escaped and without characters that reorder or hide what a reader sees. The types keep it: markup is
//! `&'static str`. Proof: `cargo xtask page`.

use crate::visible::visible;

/// A name longer than this is shown by its beginning and its end; the whole stands in its title.
const SHOWN_CHARS: usize = 96;
const SHOWN_END: usize = 24;

const INLINE: [&str; 7] = ["a", "bdi", "code", "i", "small", "span", "strong"];

/// A page, or part of one.
#[derive(Default)]
pub struct Html(String);

/// The attributes of an element.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// Adds markup of the program's own.
    pub fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Adds text from anywhere.
    pub fn text(&mut self, text: &str) {
        for c in visible(text).chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
    }

    /// Adds an element with what `inner` puts into it.
    pub fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, inner: impl FnOnce(&mut Self)) {
        self.open(tag, attributes);
        inner(self);
        self.0.push_str("</");
        self.0.push_str(tag);
        // White space beside words would be seen.
        self.0.push_str(if INLINE.contains(&tag) { ">" } else { ">\n" });
    }

    /// Adds an element that never holds anything, such as `input`.
    pub fn void(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.open(tag, attributes);
        self.0.push('\n');
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
        self.0.push('>');
    }

    /// Adds an element that holds only text.
    pub fn words(&mut self, tag: &'static str, class: &str, text: &str) {
        let attributes = [("class", class)];
        let attributes = if class.is_empty() {
            &[][..]
        } else {
            &attributes[..]
        };
        self.element(tag, attributes, |html| html.text(text));
    }

    /// Adds a name that somebody chose: isolated from the direction of the text around it, shortened if it is
    /// too long to read.
    pub fn name(&mut self, name: &str) {
        let length = name.chars().count();
        if length <= SHOWN_CHARS + SHOWN_END {
            self.element("bdi", &[], |html| html.text(name));
            return;
        }
        self.element("bdi", &[("title", name)], |html| {
            html.text(&name.chars().take(SHOWN_CHARS).collect::<String>());
            html.text("…");
            html.text(&name.chars().skip(length - SHOWN_END).collect::<String>());
        });
    }

    /// Returns the markup.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Returns a share of a whole as a length in SVG, `12.345%`; nothing of nothing is nothing.
pub fn share(part: u64, whole: u64) -> String {
    let milli = u128::from(part) * 100_000 / u128::from(whole.max(1));
    format!("{}.{:03}%", milli / 1000, milli % 1000)
}

/// Returns `length` scaled by a share of a whole, at least `least` where there is anything.
pub fn scaled(part: u64, whole: u64, length: u64, least: u64) -> u64 {
    if part == 0 || whole == 0 {
        return 0;
    }
    let exact = u128::from(part) * u128::from(length) / u128::from(whole);
    u64::try_from(exact)
        .unwrap_or(length)
        .clamp(least, length.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(add: impl FnOnce(&mut Html)) -> String {
        let mut html = Html::default();
        add(&mut html);
        html.into_string()
    }

    /// Proves PG-1, SI-6.
    #[test]
    fn no_text_can_become_markup_or_turn_the_text_around_it() {
        assert_eq!(
            shown(|html| html.text("</p><script>\"'&\u{202e}\u{0}x")),
            "&lt;/p&gt;&lt;script&gt;&quot;&#39;&amp;\\u202e\\u0000x"
        );
        assert_eq!(
            shown(|html| html.element("a", &[("title", "\"><b>")], |_| {})),
            "<a title=\"&quot;&gt;&lt;b&gt;\"></a>"
        );
    }

    #[test]
    fn a_long_name_is_shown_by_its_ends_and_kept_whole() {
        let name = format!("{}end", "ü".repeat(4093));
        let html = shown(|html| html.name(&name));
        assert!(html.contains(&format!("title=\"{name}\"")));
        assert!(html.ends_with("üend</bdi>") && html.len() < name.len() + 400);
        assert_eq!(shown(|html| html.name("short")), "<bdi>short</bdi>");
    }

    #[test]
    fn lengths_are_shares_whatever_the_counts() {
        assert_eq!(share(1, 3), "33.333%");
        assert_eq!(share(0, 0), "0.000%");
        assert_eq!(share(u64::MAX, u64::MAX), "100.000%");
        assert_eq!(scaled(1, u64::MAX, 100, 2), 2);
        assert_eq!(scaled(u64::MAX, u64::MAX, 100, 2), 100);
        assert_eq!((scaled(0, 9, 100, 2), scaled(4, 0, 100, 2)), (0, 0));
    }
}
