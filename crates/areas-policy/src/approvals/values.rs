//! Where the values of credentials stand in a text, and whether something else in it looks like one.
//!
//! INVARIANT AP-9: what is hidden of a call is the value behind a name of a credential: one word of letters, digits and a few signs,
//! which ends where a reader sees it end. What would hide something that could be a command, a path or an expansion, and what looks
//! like a credential anywhere else, is not hidden: such a call has no approval.
//!
//! What a program reads back of such a value is not followed: `echo --password reboot | cut -d' ' -f2 | sh` shows `[hidden]` where the
//! command is. The guide says so to who approves.
//!
//! An agent chooses every byte of the text. A preview that hides what looks secret would show `rm -rf [hidden]`.

use super::names::is_secret_name;
use super::secrets::{is_reference, looks_secret};
use std::ops::Range;

/// A text holds something that looks like a credential and cannot be hidden without hiding more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unshowable;

/// What stands in place of a value.
pub const HIDDEN: &str = "[hidden]";

/// LIMIT: characters of one value. Ours.
const MAX_VALUE: usize = 512;
/// LIMIT: values of one text. Ours: a text is searched once for each.
const MAX_VALUES: usize = 64;
/// Says whether a byte can stand in a value that is hidden wherever it stands.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'=' | b'.' | b'~' | b'@')
}

/// Says whether a byte can stand in a value that nothing but a member, a header or an address has around it.
const fn is_wide(byte: u8) -> bool {
    is_plain(byte) || matches!(byte, b'/' | b':' | b',' | b'%' | b'^' | b'#')
}

/// Returns the value of a member of a credential's name as people are shown it.
///
/// Keeps AP-9.
pub fn of_member(text: &str) -> Result<String, Unshowable> {
    let (scheme, value) = scheme(text);
    if value.is_empty() || is_reference(value) {
        return Ok(text.to_owned());
    }
    if value.len() > MAX_VALUE || !value.bytes().all(is_wide) {
        return Err(Unshowable);
    }
    Ok(format!("{scheme}{HIDDEN}"))
}

/// Returns a text as people are shown it: without the values of credentials.
///
/// Keeps AP-9.
pub fn of_text(text: &str) -> Result<String, Unshowable> {
    if text.contains(HIDDEN) {
        // Nobody could tell it from what is hidden.
        return Err(Unshowable);
    }
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for value in values(text)? {
        shown.push_str(text.get(from..value.start).unwrap_or_default());
        shown.push_str(HIDDEN);
        from = value.end;
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    if looks_secret(&shown) {
        Err(Unshowable)
    } else {
        Ok(shown)
    }
}

/// Parts a scheme of authorization, with its blank, from what stands behind it.
fn scheme(text: &str) -> (&str, &str) {
    for scheme in ["bearer ", "basic ", "token ", "digest "] {
        if let Some((head, value)) = text.split_at_checked(scheme.len())
            && head.eq_ignore_ascii_case(scheme)
        {
            return (head, value);
        }
    }
    ("", text)
}

/// Returns where the values of credentials stand in a text, in their order.
fn values(text: &str) -> Result<Vec<Range<usize>>, Unshowable> {
    let bytes = text.as_bytes();
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut ended_flags = false;
    let mut at = 0;
    while at < bytes.len() {
        if text.get(at..).is_some_and(|rest| rest.starts_with("://")) {
            let (value, after) = of_address(text, at + 3)?;
            found.extend(value);
            at = after;
            continue;
        }
        if !is_of_name(bytes[at]) {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|byte| is_of_name(**byte)).count();
        let name = text.get(at..end).ok_or(Unshowable)?;
        ended_flags |= name == "--";
        let value = if is_secret_name(name) {
            Name {
                text,
                start: at,
                end,
                ended_flags,
            }
            .value()?
        } else {
            None
        };
        at = value.as_ref().map_or(end, |value| value.end);
        found.extend(value);
        if found.len() > MAX_VALUES {
            return Err(Unshowable);
        }
    }
    Ok(found)
}

/// Returns the password in an address, `https://user:password@host`, and the place behind its host's beginning.
fn of_address(text: &str, start: usize) -> Result<(Option<Range<usize>>, usize), Unshowable> {
    let rest = text.get(start..).unwrap_or_default();
    let authority = rest
        .split(|c: char| c.is_whitespace() || "/?#\"'`".contains(c))
        .next()
        .unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else {
        return Ok((None, start));
    };
    let after = start + user.len();
    let Some((name, password)) = user.split_once(':') else {
        return Ok((None, after));
    };
    if password.is_empty() || is_reference(password) {
        return Ok((None, after));
    }
    if password.len() > MAX_VALUE || !password.bytes().all(is_plain) {
        return Err(Unshowable);
    }
    let from = start + name.len() + 1;
    Ok((Some(from..from + password.len()), after))
}

/// A name of a credential in a text.
struct Name<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    /// Whether `--` stood before it: what looks like a flag is none then.
    ended_flags: bool,
}

impl Name<'_> {
    /// Returns where its value stands; none where it has none, or the value is not said here.
    fn value(&self) -> Result<Option<Range<usize>>, Unshowable> {
        let mut at = self.end;
        // `"password": …`, also in a text within a text.
        while matches!(self.byte(at), Some(b'"' | b'\'' | b'\\' | b']')) {
            at += 1;
        }
        let blanks = self.blanks(at);
        match self.byte(at + blanks) {
            Some(b'=') if self.byte(at + blanks + 1) == Some(b'=') => Ok(None),
            Some(b'=') => self.behind(b'=', at + blanks, blanks == 0),
            Some(b':') if self.byte(at + blanks + 1) == Some(b':') => Ok(None),
            Some(b':') => self.behind(b':', at + blanks, blanks == 0),
            _ if blanks > 0 && at == self.end && self.is_flag() => self.of_flag(at + blanks),
            // `aws configure set aws_secret_access_key …`
            Some(_) if blanks > 0 && self.is_set() && !self.refers(at + blanks) => Err(Unshowable),
            _ => Ok(None),
        }
    }

    fn is_flag(&self) -> bool {
        self.text.as_bytes()[self.start] == b'-'
    }

    /// Says whether the word before is one that gives something of this name a value.
    fn is_set(&self) -> bool {
        let before = self.text.get(..self.start).unwrap_or_default().trim_end();
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        matches!(word, "set" | "setx" | "setenv" | "put" | "login")
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Counts the blanks at a place, of one line.
    fn blanks(&self, at: usize) -> usize {
        let bytes = self.text.as_bytes().iter().skip(at);
        bytes.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
    }

    /// Counts the bytes at a place that a value can have.
    fn run(&self, at: usize, is_of_value: fn(u8) -> bool) -> usize {
        self.text
            .as_bytes()
            .iter()
            .skip(at)
            .take_while(|byte| is_of_value(**byte))
            .count()
    }

    /// Returns the value behind a sign.
    fn behind(&self, sign: u8, place: usize, is_tight: bool) -> Result<Option<Range<usize>>, Unshowable> {
        let blanks = self.blanks(place + 1);
        let is_tight = is_tight && blanks == 0;
        let at = place + 1 + blanks;
        if let Some(value) = self.quoted(at)? {
            return Ok(value);
        }
        if self.refers(at) {
            return Ok(None);
        }
        if sign == b'=' && is_tight {
            return self.assigned(at);
        }
        // `"Authorization: Bearer …"`: the name begins what is quoted, and the value ends it.
        let opening = self.start.checked_sub(1).and_then(|before| self.byte(before));
        if sign == b':'
            && let Some(quote @ (b'"' | b'\'')) = opening
        {
            let rest = self.text.get(at..).unwrap_or_default();
            let from = at + scheme(rest).0.len();
            if self.refers(from) {
                return Ok(None);
            }
            let run = self.run(from, if is_tight { is_plain } else { is_wide });
            if run == 0 && self.byte(from) == Some(quote) {
                return Ok(None);
            }
            return if run > 0 && run <= MAX_VALUE && self.byte(from + run) == Some(quote) {
                Ok(Some(from..from + run))
            } else {
                Err(Unshowable)
            };
        }
        // A line that ends with the value is a setting; `token: String,` and `let token = next();` are the code of a program.
        let run = self.run(at, is_plain);
        let is_code = self
            .byte(at + run)
            .is_some_and(|byte| b"(),;{}[]<>&*|!?:".contains(&byte));
        if run == 0
            && self
                .byte(at)
                .is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`".contains(&byte))
        {
            return Ok(None);
        }
        if !is_tight
            && is_code
            && !self
                .text
                .get(at..at + run)
                .is_some_and(|said| said.bytes().any(|b| b.is_ascii_digit()))
        {
            return Ok(None);
        }
        Err(Unshowable)
    }

    /// Returns the value of `NAME=value`, which ends at a blank, a quote or the sign of a shell that stands alone.
    fn assigned(&self, at: usize) -> Result<Option<Range<usize>>, Unshowable> {
        let run = self.run(at, is_plain);
        let ends = self.ends(at + run);
        if run == 0 {
            return if ends { Ok(None) } else { Err(Unshowable) };
        }
        if run > MAX_VALUE || !ends || self.is_used() {
            return Err(Unshowable);
        }
        Ok(Some(at..at + run))
    }

    /// Returns the value of `--flag value`.
    fn of_flag(&self, at: usize) -> Result<Option<Range<usize>>, Unshowable> {
        if let Some(value) = self.quoted(at)? {
            return if self.ended_flags && value.is_some() {
                Err(Unshowable)
            } else {
                Ok(value)
            };
        }
        if self.refers(at)
            || matches!(
                self.byte(at),
                None | Some(b'-' | b'|' | b';' | b'&' | b'<' | b'>' | b'\\')
            )
        {
            return Ok(None);
        }
        let run = self.run(at, is_plain);
        let is_value = run > 0 && run <= MAX_VALUE && !self.ended_flags && self.ends(at + run);
        if is_value {
            Ok(Some(at..at + run))
        } else {
            Err(Unshowable)
        }
    }

    /// Returns the value in quotes at a place, if quotes stand there: the outer option says so.
    #[expect(
        clippy::option_option,
        reason = "no quotes, quotes with nothing to hide, and a value are three things"
    )]
    fn quoted(&self, at: usize) -> Result<Option<Option<Range<usize>>>, Unshowable> {
        let escapes = self.run(at, |byte| byte == b'\\');
        let Some(quote @ (b'"' | b'\'')) = self.byte(at + escapes) else {
            return Ok(None);
        };
        let from = at + escapes + 1;
        let from = from + scheme(self.text.get(from..).unwrap_or_default()).0.len();
        let run = self.run(from, is_plain);
        let after = from + run + self.run(from + run, |byte| byte == b'\\');
        if self.byte(after) != Some(quote) {
            // Nothing is put in place of a name in single quotes.
            let is_name = quote == b'"' && self.refers(from);
            return if is_name { Ok(Some(None)) } else { Err(Unshowable) };
        }
        if run > MAX_VALUE || (run > 0 && self.is_used()) {
            return Err(Unshowable);
        }
        Ok(Some((run > 0).then_some(from..from + run)))
    }

    /// Says whether a reference to a variable stands at a place, alone, or a command whose output is taken, which is shown.
    fn refers(&self, at: usize) -> bool {
        let rest = self.text.get(at..).unwrap_or_default();
        if rest.starts_with("$(") || rest.starts_with('`') {
            return true;
        }
        let word = rest
            .split(|c: char| c.is_whitespace() || "\"'`;|&)".contains(c))
            .next()
            .unwrap_or_default();
        is_reference(word)
    }

    /// Says whether a value that ends at a place ends there for every reader.
    fn ends(&self, at: usize) -> bool {
        let blank = |at: usize| self.byte(at).is_none_or(|byte| byte.is_ascii_whitespace());
        let is_of_query = self.start > 0 && matches!(self.byte(self.start - 1), Some(b'?' | b'&'));
        match self.byte(at) {
            None | Some(b'"' | b'\'') => true,
            Some(b'&') if is_of_query => true,
            Some(b';' | b')' | b',') => blank(at + 1),
            Some(b'&' | b'|') => blank(at + 1) || (self.byte(at + 1) == self.byte(at) && blank(at + 2)),
            Some(byte) => byte.is_ascii_whitespace(),
        }
    }

    /// Says whether the name stands in the text once more: what is hidden could be run by it.
    fn is_used(&self) -> bool {
        let name = self.text.get(self.start..self.end).unwrap_or_default();
        self.text.matches(name.trim_start_matches('-')).count() > 1
    }
}

#[cfg(test)]
mod tests;
