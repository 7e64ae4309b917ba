//! What a text says as a JSON document, read without recursion and without a guess.
//!
//! ```text
//!   None         it is empty or blank
//!   Object       it is exactly one object, and no object in it names a member twice
//!   List         it is exactly one list, and no object in it names a member twice
//!   Text         it does not begin like a document: free text
//!   Unreadable   it begins like a document and is none, or names a member twice: readers of JSON differ about it
//! ```
//!
//! A document is a list of its values in their order, each with the place behind its last part. So neither reading nor
//! dropping it goes deeper than one call, whatever the depth of the text. Values are looked at where they stand: a
//! number outside the range of its type, or a lone surrogate in a text, makes that value unreadable and no other.
//!
//! INVARIANT BY-1: a value that is read from a text is the one that was written; what cannot be represented exactly
//! is not read.
//!
//! INVARIANT BY-4: a document is judged by what it says: members in another order, escapes and blanks make no
//! operator on content fail; what holds of a part of it alone, or may stand in a part that nobody can read, is
//! unknown.
//!
//! Absent on purpose: leniency. A trailing comma, a comment, a byte order mark or anything behind the end is no JSON.

mod number;
mod reader;
mod text;

pub use number::exact_number;

use crate::digest::exact_text;
use number::number;
use reader::{Fault, Reader, place};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use text::unescaped;

/// LIMIT: levels of a value that is taken out whole (for a module, as the text of its JSON). Ours: what takes such a
/// value apart is recursive; deeper parts are not read, and so never another value.
const LEVELS: usize = 127;

/// What a text says.
#[derive(Debug)]
pub enum DocumentReading {
    /// Nothing.
    None,
    /// One object.
    Object(Document),
    /// One list.
    List(Document),
    /// No document.
    Text,
    /// A document that cannot be read for certain.
    Unreadable {
        /// Whether that is so because an object names a member twice.
        repeats: bool,
    },
}

/// The values of a document in their order; a member's name stands before its value.
#[derive(Debug)]
pub struct Document {
    nodes: Vec<Node>,
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    /// Where it is written, without the quotes of a text. Units: bytes.
    start: u32,
    end: u32,
    /// The place behind its last part.
    after: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    False,
    True,
    Number,
    Text,
    /// A text with escapes.
    Escaped,
    Object,
    List,
}

/// A value of a document.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    text: &'a str,
    document: &'a Document,
    at: u32,
}

/// Returns what a text says.
pub fn read(text: &str) -> DocumentReading {
    if text.trim().is_empty() {
        return DocumentReading::None;
    }
    // A byte order mark is no blank of JSON, and whoever writes one means a document.
    let begin = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if !begin.starts_with(['{', '[']) {
        return DocumentReading::Text;
    }
    if u32::try_from(text.len()).is_err() {
        return DocumentReading::Unreadable { repeats: false };
    }
    match Reader::new(text).document() {
        Err(fault) => DocumentReading::Unreadable {
            repeats: fault == Fault::Repeats,
        },
        Ok(document) => match document.nodes.first().map(|node| node.kind) {
            Some(Kind::Object) => DocumentReading::Object(document),
            _ => DocumentReading::List(document),
        },
    }
}

/// A document as what it says, whatever it is spelt like.
#[derive(Debug)]
pub struct Meaning {
    /// Its canonical text; nothing of a document of which a part cannot be represented.
    pub canonical: Option<Box<str>>,
    /// Its texts that are written with escapes, each in quotes as it reads without them: in the canonical text a quote, a
    /// backslash and a control character still stand as escapes.
    pub escaped: Box<[Box<str>]>,
}

impl DocumentReading {
    /// Returns what a document says; nothing of what is none, or cannot be read for certain. The text is the one that was
    /// read.
    pub fn meaning(&self, text: &str) -> Option<Meaning> {
        let (Self::Object(document) | Self::List(document)) = self else {
            return None;
        };
        Some(Meaning {
            canonical: document.root(text).json().map(|json| exact_text(&json).into()),
            escaped: document.escaped(text).collect(),
        })
    }
}

/// Returns the value of a text that is exactly one object or list; nothing where a part of it cannot be represented, or
/// readers of JSON differ about it.
pub fn exact_document(text: &str) -> Option<Json> {
    match read(text) {
        DocumentReading::Object(document) | DocumentReading::List(document) => document.root(text).json(),
        DocumentReading::None | DocumentReading::Text | DocumentReading::Unreadable { .. } => None,
    }
}

impl Document {
    /// Returns the outermost value; the text is the one that was read.
    pub fn root<'a>(&'a self, text: &'a str) -> Item<'a> {
        Item {
            text,
            document: self,
            at: 0,
        }
    }

    /// Calls `take` with each text of it (a member's name, a value, a number as its value is written) until one is taken;
    /// what cannot be represented is left out. Says whether one was taken.
    pub fn any_part(&self, text: &str, mut take: impl FnMut(&str) -> bool) -> bool {
        let parts = (0..place(self.nodes.len())).map(|at| Item {
            text,
            document: self,
            at,
        });
        let mut parts = parts.filter_map(|item| match item.node().kind {
            Kind::Number => Some(Cow::Owned(exact_text(&item.json()?))),
            _ => item.text(),
        });
        parts.any(|part| take(&part))
    }

    /// Returns the texts that are written with escapes, each in quotes as it reads without them.
    fn escaped(&self, text: &str) -> impl Iterator<Item = Box<str>> {
        let escaped = self.nodes.iter().filter(|node| node.kind == Kind::Escaped);
        // One with a lone surrogate is no text, and the document is not whole for it.
        let texts = escaped.filter_map(move |node| {
            String::from_utf8(unescaped(&text[node.start as usize..node.end as usize])).ok()
        });
        texts.map(|text| format!("\"{text}\"").into())
    }

    /// Returns whether every value of it can be represented and is no deeper than is taken out.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }
}

impl<'a> Item<'a> {
    fn node(self) -> Node {
        self.document.nodes[self.at as usize]
    }

    fn to(self, at: u32) -> Self {
        Self { at, ..self }
    }

    /// Returns the text as which it is written; of a text what stands between the quotes.
    pub fn written(self) -> &'a str {
        let node = self.node();
        &self.text[node.start as usize..node.end as usize]
    }

    /// Returns whether it is `null`.
    pub fn is_null(self) -> bool {
        self.node().kind == Kind::Null
    }

    /// Returns whether it is an object.
    pub fn is_object(self) -> bool {
        self.node().kind == Kind::Object
    }

    /// Returns whether it is a list.
    pub fn is_list(self) -> bool {
        self.node().kind == Kind::List
    }

    /// Returns whether it is an empty or blank text.
    pub fn is_blank(self) -> bool {
        self.is_text() && self.text().is_some_and(|text| text.trim().is_empty())
    }

    /// Returns whether it is a text, also one that cannot be represented.
    pub fn is_text(self) -> bool {
        matches!(self.node().kind, Kind::Text | Kind::Escaped)
    }

    /// Returns the truth value, if it is one.
    pub fn boolean(self) -> Option<bool> {
        match self.node().kind {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    /// Returns its text; nothing where it is none, or has a lone surrogate, which no text has.
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self.node().kind {
            Kind::Text => Some(Cow::Borrowed(self.written())),
            Kind::Escaped => String::from_utf8(unescaped(self.written())).ok().map(Cow::Owned),
            _ => None,
        }
    }

    /// Returns its number; nothing where it is none, or where the nearest one is another number.
    pub fn number(self) -> Option<f64> {
        match self.node().kind {
            Kind::Number => exact_number(self.written()),
            _ => None,
        }
    }

    /// Returns the value of an object's member.
    pub fn member(self, name: &str) -> Option<Self> {
        let mut members = self.members();
        members.find(|(own, _)| own.names(name)).map(|(_, value)| value)
    }

    /// Returns a value of a list by its place.
    pub fn at(self, place: usize) -> Option<Self> {
        self.items().nth(place)
    }

    /// Returns the values of a list.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let end = if self.is_list() {
            self.node().after
        } else {
            self.at
        };
        let mut next = self.at + 1;
        std::iter::from_fn(move || {
            let item = (next < end).then(|| self.to(next))?;
            next = item.node().after;
            Some(item)
        })
    }

    /// Returns the names and values of an object.
    fn members(self) -> impl Iterator<Item = (Self, Self)> {
        let end = if self.is_object() {
            self.node().after
        } else {
            self.at
        };
        let mut next = self.at + 1;
        std::iter::from_fn(move || {
            let name = (next < end).then(|| self.to(next))?;
            let value = self.to(name.node().after);
            next = value.node().after;
            Some((name, value))
        })
    }

    fn names(self, name: &str) -> bool {
        match self.node().kind {
            Kind::Text => self.written() == name,
            _ => unescaped(self.written()) == name.as_bytes(),
        }
    }

    /// Returns it as a value of its own; nothing where some part cannot be represented or is too deep.
    pub fn json(self) -> Option<Json> {
        let mut lost = false;
        let json = self.parts(LEVELS, &mut Vec::new(), &mut |_| lost = true);
        json.filter(|_| !lost)
    }

    /// Returns it as a value of its own without what cannot be represented or is too deep, and says where that stands:
    /// by the names of members from here on; of a list with such a part, where the list stands.
    pub fn known_parts(self, lose: &mut dyn FnMut(&[String])) -> Option<Json> {
        self.parts(LEVELS, &mut Vec::new(), lose)
    }

    /// Recursive, and so with a limit to its depth.
    fn parts(self, levels: usize, path: &mut Vec<String>, lose: &mut dyn FnMut(&[String])) -> Option<Json> {
        let json = match self.node().kind {
            Kind::Null => Some(Json::Null),
            Kind::False => Some(false.into()),
            Kind::True => Some(true.into()),
            Kind::Number => number(self.written()).map(Json::Number),
            Kind::Text | Kind::Escaped => self.text().map(|text| text.into_owned().into()),
            Kind::Object | Kind::List if levels == 0 => None,
            Kind::List => {
                let (mut items, mut is_lost) = (Vec::new(), false);
                for item in self.items() {
                    let item = item.parts(levels - 1, &mut Vec::new(), &mut |_| is_lost = true);
                    // The places of the others stay.
                    items.push(item.unwrap_or(Json::Null));
                }
                if is_lost {
                    lose(path);
                }
                return Some(items.into());
            }
            Kind::Object => {
                let mut members = Map::new();
                for (name, value) in self.members() {
                    let Some(name) = name.text() else {
                        // Nobody can say which member that is.
                        lose(path);
                        continue;
                    };
                    path.push(name.into_owned());
                    let value = value.parts(levels - 1, path, lose);
                    let name = path.pop().unwrap_or_default();
                    if let Some(value) = value {
                        members.insert(name, value);
                    }
                }
                return Some(members.into());
            }
        };
        if json.is_none() {
            lose(path);
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(text: &str) -> &'static str {
        match read(text) {
            DocumentReading::None => "none",
            DocumentReading::Object(_) => "object",
            DocumentReading::List(_) => "list",
            DocumentReading::Text => "text",
            DocumentReading::Unreadable { repeats: false } => "unreadable",
            DocumentReading::Unreadable { repeats: true } => "repeats",
        }
    }

    fn object(text: &str, see: impl FnOnce(Item<'_>)) {
        match read(text) {
            DocumentReading::Object(document) => see(document.root(text)),
            other => panic!("{text} is {other:?}"),
        }
    }

    #[test]
    fn a_text_is_one_of_five_things() {
        for (text, is) in [
            ("", "none"),
            (" \t\r\n\u{a0}", "none"),
            ("{}", "object"),
            (" \n{\"a\" : [ 1 , {} , [] ] }\t", "object"),
            ("[]", "list"),
            ("[{\"command\":\"rm -rf /\"}]", "list"),
            ("*** Begin Patch", "text"),
            ("rm -rf /", "text"),
            ("null", "text"),
            ("7", "text"),
            ("\"{}\"", "text"),
            ("{\"a\":1,}", "unreadable"),
            ("[1,]", "unreadable"),
            ("{,}", "unreadable"),
            ("{\"a\":1}}", "unreadable"),
            ("{\"a\":1} x", "unreadable"),
            ("{\"a\":1}{\"a\":2}", "unreadable"),
            ("\u{feff}{\"a\":1}", "unreadable"),
            ("\u{a0}{\"a\":1}", "unreadable"),
            ("{\"a\":1", "unreadable"),
            ("{\"a\"", "unreadable"),
            ("{\"a\":}", "unreadable"),
            ("{a:1}", "unreadable"),
            ("{'a':1}", "unreadable"),
            ("{\"a\":1 /* */}", "unreadable"),
            ("{\"a\":01}", "unreadable"),
            ("{\"a\":1.}", "unreadable"),
            ("{\"a\":.5}", "unreadable"),
            ("{\"a\":-}", "unreadable"),
            ("{\"a\":+1}", "unreadable"),
            ("{\"a\":1e}", "unreadable"),
            ("{\"a\":NaN}", "unreadable"),
            ("{\"a\":nul}", "unreadable"),
            ("{\"a\":\"\n\"}", "unreadable"),
            ("{\"a\":\"\\x\"}", "unreadable"),
            ("{\"a\":\"\\u12g4\"}", "unreadable"),
            ("{\"a\":\"\\u12", "unreadable"),
            ("{\"a\":\"\\", "unreadable"),
            ("{\"a\":1]", "unreadable"),
            ("[1}", "unreadable"),
            ("{\"a\":1,\"a\":2}", "repeats"),
            ("{\"a\":1,\"\\u0061\":2}", "repeats"),
            ("{\"b\":[[{\"a\":1,\"c\":2,\"a\":1}]]}", "repeats"),
            ("{\"\\ud800\":1,\"\\ud800\":2}", "repeats"),
            ("{\"\\ud800\":1,\"\\ud801\":2,\"\":3}", "object"),
            ("{\"a\":{\"a\":1}}", "object"),
        ] {
            assert_eq!(kind(text), is, "{text}");
        }
    }

    /// Proves BY-1.
    #[test]
    fn depth_fails_nothing() {
        for levels in [126, 127, 200, 100_000] {
            let text = format!(
                "{{\"deep\":{}{},\"command\":\"rm -rf /\"}}",
                "[".repeat(levels),
                "]".repeat(levels)
            );
            object(&text, |item| {
                assert_eq!(item.member("command").unwrap().text().unwrap(), "rm -rf /");
                assert_eq!(item.document.is_whole(), levels < LEVELS);
                assert_eq!(item.json().is_some(), levels < LEVELS);
                let mut lost = Vec::new();
                let parts = item.known_parts(&mut |path| lost.push(path.len())).unwrap();
                assert_eq!(parts["command"], "rm -rf /");
                assert_eq!(lost.len(), usize::from(levels >= LEVELS));
            });
            assert_eq!(kind(&text[..text.len() - 1]), "unreadable");
        }
        assert_eq!(kind(&"{\"a\":".repeat(100_000)), "unreadable");
    }

    /// Proves BY-1.
    #[test]
    fn a_value_is_exact_or_none() {
        for (written, is) in [
            ("0", Some(0.0)),
            ("-0", Some(0.0)),
            ("-0.0e999999999999999999999", Some(0.0)),
            ("1e2", Some(100.0)),
            ("100.0", Some(100.0)),
            ("0.1", Some(0.1)),
            ("-12.50", Some(-12.5)),
            ("1e300", Some(1e300)),
            ("9007199254740992", Some(9_007_199_254_740_992.0)),
            ("9007199254740993", None),
            ("9007199254740993.0", None),
            ("100.00000000000000001", None),
            ("1e999", None),
            ("-1e999", None),
            ("1e99999999999999999999", None),
            ("1e-999", None),
            ("0.1000000000000000055511151231257827", None),
        ] {
            object(&format!("{{\"n\":{written}}}"), |item| {
                assert_eq!(item.member("n").unwrap().number(), is, "{written}");
            });
        }
        // Whole numbers of 64 bits are exact where they are taken out as such.
        object(
            "{\"a\":9007199254740993,\"b\":18446744073709551615,\"c\":18446744073709551616.0}",
            |item| {
                let mut lost = Vec::new();
                let parts = item.known_parts(&mut |path| lost.push(path.to_vec()));
                assert_eq!(
                    parts,
                    Some(json!({"a": 9_007_199_254_740_993_i64, "b": u64::MAX}))
                );
                assert_eq!(lost, [["c"]]);
                assert!(!item.document.is_whole());
            },
        );
    }

    /// Proves BY-1.
    #[test]
    fn a_lone_surrogate_takes_its_own_text_and_no_other() {
        object(
            "{\"a\":\"x\\ud800\",\"b\":\"\\ud83d\\ude00\",\"c\":[\"\\udc00\",1],\"\\ud800\":2}",
            |item| {
                assert!(item.member("a").unwrap().is_text());
                assert_eq!(item.member("a").unwrap().text(), None);
                assert_eq!(item.member("b").unwrap().text().unwrap(), "😀");
                let mut lost = Vec::new();
                let parts = item.known_parts(&mut |path| lost.push(path.join("/")));
                assert_eq!(parts, Some(json!({"b": "😀", "c": [null, 1]})));
                assert_eq!(lost, ["a", "c", ""]);
                assert_eq!(item.json(), None);
            },
        );
    }

    #[test]
    fn escapes_are_read() {
        let text = r#"{"\u0061\"\\\/\b\f\n\r\t":"\u00e9\uD83D\uDE00é"}"#;
        object(text, |item| {
            let value = item.member("a\"\\/\u{8}\u{c}\n\r\t").unwrap();
            assert_eq!(value.text().unwrap(), "é😀é");
            let read: Json = serde_json::from_str(text).unwrap();
            assert_eq!(item.json(), Some(read));
        });
    }

    #[test]
    fn an_exact_document_is_a_whole_one_alone() {
        let read = exact_document(" {\"b\":1.5,\"a\":[9007199254740993]}");
        assert_eq!(read, Some(json!({"a": [9_007_199_254_740_993_i64], "b": 1.5})));
        assert_eq!(exact_document("[]"), Some(json!([])));
        for text in [
            "x",
            "",
            "{\"a\":1,\"a\":2}",
            "{\"a\":1e999}",
            "{\"a\":1,}",
            "{\"a\":\"\\ud800\"}",
        ] {
            assert_eq!(exact_document(text), None, "{text}");
        }
    }
}
