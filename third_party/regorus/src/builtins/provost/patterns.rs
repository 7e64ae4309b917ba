// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! Patterns as Go reads them: `\w`, `\d`, `\s` and `\b` are about ASCII alone, and in a class `[`, `&&` and `~~` are signs like any other.
//! The crate `regex` reads them as Unicode and as operations on classes.

use alloc::string::String;

/// Returns a pattern in the form in which the crate `regex` reads what Go reads; nothing where there is none.
pub fn as_go_reads(pattern: &str) -> Option<String> {
    let mut made = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut is_class = false;
    // In a class: the sign before is a `-` that may join two others.
    let mut joins = false;
    while let Some(c) = rest.next() {
        let is_joined = core::mem::take(&mut joins);
        match c {
            '\\' => {
                let Some(escaped) = rest.next() else {
                    made.push(c);
                    break;
                };
                let ascii = match escaped {
                    'w' => "[0-9A-Za-z_]",
                    'W' => "[^0-9A-Za-z_]",
                    'd' => "[0-9]",
                    'D' => "[^0-9]",
                    's' => "[\\t\\n\\f\\r ]",
                    'S' => "[^\\t\\n\\f\\r ]",
                    'b' if !is_class => "(?-u:\\b)",
                    // There is none that keeps to whole characters.
                    'B' if !is_class => return None,
                    '<' | '>' => {
                        made.push(escaped);
                        continue;
                    }
                    escaped => {
                        made.push(c);
                        made.push(escaped);
                        continue;
                    }
                };
                // No class ends a range.
                if is_class && is_joined {
                    return None;
                }
                made.push_str(ascii);
            }
            '[' if !is_class => {
                is_class = true;
                made.push(c);
                made.extend(rest.next_if_eq(&'^'));
                // The first sign is one, also where it would end the class.
                if rest.next_if_eq(&']').is_some() {
                    made.push_str("\\]");
                } else if rest.next_if_eq(&'-').is_some() {
                    made.push_str("\\-");
                }
            }
            '[' if rest.peek() == Some(&':') => {
                made.push(c);
                let mut before = ' ';
                for named in rest.by_ref() {
                    made.push(named);
                    if before == ':' && named == ']' {
                        break;
                    }
                    before = named;
                }
            }
            ']' => {
                is_class = false;
                made.push(c);
            }
            '-' if is_class => {
                if rest.peek() == Some(&'-') {
                    return None;
                }
                joins = true;
                made.push(c);
            }
            '[' | '&' | '~' if is_class => {
                made.push('\\');
                made.push(c);
            }
            c => made.push(c),
        }
    }
    Some(made)
}
