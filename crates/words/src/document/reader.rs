//! One walk over a text, from its first byte to its last: the grammar of RFC 8259 with a list of what is open in place of
//! calls.

use super::number::number;
use super::text::unescaped;
use super::{Document, Kind, LEVELS, Node};
use std::borrow::Cow;

/// Why a text is not one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not follow the grammar.
    Grammar,
    /// An object names a member twice.
    Repeats,
}

/// One walk over a text.
pub(super) struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// The places of the objects and lists that are open.
    open: Vec<u32>,
    is_whole: bool,
}

/// What may come next.
#[derive(Clone, Copy)]
enum Next {
    Value,
    FirstValue,
    Name,
    FirstName,
    Behind,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            nodes: Vec::new(),
            open: Vec::new(),
            is_whole: true,
        }
    }

    pub fn document(mut self) -> Result<Document, Fault> {
        let mut next = Next::Value;
        loop {
            self.blanks();
            let byte = self.bytes.get(self.at).copied();
            next = match (next, byte) {
                (Next::FirstName, Some(b'}')) | (Next::FirstValue, Some(b']')) => self.close()?,
                (Next::FirstName | Next::Name, Some(b'"')) => {
                    self.string()?;
                    self.blanks();
                    self.word(":")?;
                    Next::Value
                }
                (Next::FirstValue | Next::Value, Some(byte)) => self.value(byte)?,
                (Next::Behind, Some(byte)) => self.behind(byte)?,
                _ => return Err(Fault::Grammar),
            };
            if self.open.is_empty() {
                self.blanks();
                if self.at != self.bytes.len() {
                    return Err(Fault::Grammar);
                }
                return Ok(Document {
                    nodes: self.nodes,
                    is_whole: self.is_whole,
                });
            }
        }
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn value(&mut self, byte: u8) -> Result<Next, Fault> {
        match byte {
            b'{' | b'[' => {
                let kind = if byte == b'{' { Kind::Object } else { Kind::List };
                // A place is at most that of a byte of the text.
                self.open
                    .push(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
                self.is_whole &= self.open.len() <= LEVELS;
                self.at += 1;
                self.put(kind, self.at - 1, self.at);
                return Ok(if byte == b'{' {
                    Next::FirstName
                } else {
                    Next::FirstValue
                });
            }
            b'"' => self.string()?,
            b'n' => self.constant("null", Kind::Null)?,
            b't' => self.constant("true", Kind::True)?,
            b'f' => self.constant("false", Kind::False)?,
            _ => self.number()?,
        }
        Ok(Next::Behind)
    }

    /// Reads what stands behind a value of an object or list.
    fn behind(&mut self, byte: u8) -> Result<Next, Fault> {
        let open = self.open.last().map(|at| self.nodes[*at as usize].kind);
        match (open, byte) {
            (Some(Kind::Object), b'}') | (Some(Kind::List), b']') => self.close(),
            (Some(Kind::Object), b',') => {
                self.at += 1;
                Ok(Next::Name)
            }
            (Some(Kind::List), b',') => {
                self.at += 1;
                Ok(Next::Value)
            }
            _ => Err(Fault::Grammar),
        }
    }

    fn close(&mut self) -> Result<Next, Fault> {
        self.at += 1;
        let Some(at) = self.open.pop() else {
            return Err(Fault::Grammar);
        };
        let (after, end) = (place(self.nodes.len()), place(self.at));
        let node = &mut self.nodes[at as usize];
        (node.after, node.end) = (after, end);
        if node.kind == Kind::Object && self.repeats(at, after) {
            return Err(Fault::Repeats);
        }
        Ok(Next::Behind)
    }

    /// Returns whether an object names a member twice.
    fn repeats(&self, at: u32, after: u32) -> bool {
        let mut names = Vec::new();
        let mut next = at + 1;
        while next < after {
            let name = self.nodes[next as usize];
            let written = &self.text[name.start as usize..name.end as usize];
            names.push(match name.kind {
                Kind::Text => Cow::Borrowed(written.as_bytes()),
                _ => Cow::Owned(unescaped(written)),
            });
            next = self.nodes[name.after as usize].after;
        }
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }

    fn put(&mut self, kind: Kind, start: usize, end: usize) {
        self.nodes.push(Node {
            kind,
            start: place(start),
            end: place(end),
            after: place(self.nodes.len() + 1),
        });
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(Fault::Grammar);
        }
        self.at += word.len();
        Ok(())
    }

    fn constant(&mut self, word: &str, kind: Kind) -> Result<(), Fault> {
        let start = self.at;
        self.word(word)?;
        self.put(kind, start, self.at);
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - start
    }

    fn take(&mut self, wanted: &[u8]) -> bool {
        let is_there = self.bytes.get(self.at).is_some_and(|byte| wanted.contains(byte));
        self.at += usize::from(is_there);
        is_there
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.take(b"-");
        let is_zero = self.bytes.get(self.at) == Some(&b'0');
        let digits = self.digits();
        let mut is_number = digits == 1 || (digits > 1 && !is_zero);
        if self.take(b".") {
            is_number &= self.digits() > 0;
        }
        if self.take(b"eE") {
            self.take(b"+-");
            is_number &= self.digits() > 0;
        }
        if !is_number {
            return Err(Fault::Grammar);
        }
        self.is_whole &= number(&self.text[start..self.at]).is_some();
        self.put(Kind::Number, start, self.at);
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        let start = self.at;
        let mut kind = Kind::Text;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    kind = Kind::Escaped;
                    self.at += 1;
                    let letter = self.bytes.get(self.at).copied();
                    self.at += 1;
                    match letter {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                        Some(b'u') => {
                            let digits = self.bytes.get(self.at..self.at + 4);
                            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                                return Err(Fault::Grammar);
                            }
                            self.at += 4;
                        }
                        _ => return Err(Fault::Grammar),
                    }
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(Fault::Grammar),
            }
        }
        let written = &self.text[start..self.at];
        if kind == Kind::Escaped && written.contains("\\u") {
            self.is_whole &= String::from_utf8(unescaped(written)).is_ok();
        }
        self.put(kind, start, self.at);
        self.at += 1;
        Ok(())
    }
}

/// Returns a place in a text, which has fewer than 2^32 bytes.
pub(super) fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
