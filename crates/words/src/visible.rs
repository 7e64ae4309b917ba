//! Text from elsewhere, made unable to steer a terminal.
//!
//! Keeps CL-3.

use std::borrow::Cow;
use std::fmt::Write;

/// Control characters, and the invisible ones that reorder what a reader sees.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}')
        || is_invisible(c)
}

/// Characters that nobody sees and that a machine reads, which carry one text inside another. Source: Unicode 16, property
/// `Default_Ignorable_Code_Point`. The selector that makes a sign an emoji is left alone: it stands in ordinary names.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{ffa0}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the text on one line, with every steering character spelled out.
pub fn visible(text: &str) -> Cow<'_, str> {
    replace(text, |_| false)
}

/// Returns the text with every steering character but newline spelled out.
pub fn lines_visible(text: &str) -> Cow<'_, str> {
    replace(text, |c| c == '\n')
}

fn replace(text: &str, keep: fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| steers(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c == '\t' {
            out.push(' ');
        } else if steers(c) && !keep(c) {
            // The spelling is that of JSON, so that escaped JSON stays JSON.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CL-3.
    #[test]
    fn nothing_that_is_shown_can_steer_a_terminal() {
        assert_eq!(
            visible("a\u{1b}[2Jb\u{9b}1m\u{202e}c\nd"),
            "a\\u001b[2Jb\\u009b1m\\u202ec\\u000ad"
        );
        assert_eq!(lines_visible("a\nb\rc"), "a\nb\\u000dc");
        assert_eq!(visible("no\u{ad}thing\u{3164}"), "no\\u00adthing\\u3164");
        // A letter of the plane of tags, as JSON spells it.
        assert_eq!(visible("a\u{e0061}"), "a\\udb40\\udc61");
        assert!(matches!(
            visible("plain words, ünïcode, \u{2764}\u{fe0f}"),
            Cow::Borrowed(_)
        ));
    }
}
