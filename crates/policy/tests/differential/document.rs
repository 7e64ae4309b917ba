//! What a tool's input says, once more and for clarity alone: a recursive reader into a tree.

use serde_json::{Value, json};

/// A value as it is written. Texts are units of UTF-16, of which a lone surrogate is one.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Null,
    Boolean(bool),
    Number(String),
    Text(Vec<u16>),
    List(Vec<Tree>),
    Object(Vec<(Vec<u16>, Tree)>),
}

/// What an input says of its members.
#[derive(Debug)]
pub enum Input {
    /// There are none.
    Nothing,
    Object(Tree),
    /// Nobody can say; and whether that is because one is there twice.
    Unsaid(bool),
}

pub fn input(sent: &Value) -> Input {
    let text = match sent {
        Value::String(text) if text.trim().is_empty() => return Input::Nothing,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let letters: Vec<char> = text.chars().collect();
    match tree(&letters) {
        Ok(tree @ Tree::Object(_)) => Input::Object(tree),
        Err(is_twice) => Input::Unsaid(is_twice),
        Ok(_) => Input::Unsaid(false),
    }
}

/// What a text is that is one value and nothing else.
pub fn document(text: &str) -> Result<Tree, bool> {
    tree(&text.chars().collect::<Vec<char>>())
}

fn tree(letters: &[char]) -> Result<Tree, bool> {
    let (tree, rest) = value(blanks(letters))?;
    if blanks(rest).is_empty() {
        Ok(tree)
    } else {
        Err(false)
    }
}

fn blanks(letters: &[char]) -> &[char] {
    let first = letters
        .iter()
        .position(|c| !matches!(c, ' ' | '\t' | '\n' | '\r'));
    &letters[first.unwrap_or(letters.len())..]
}

fn value(letters: &[char]) -> Result<(Tree, &[char]), bool> {
    match letters.first() {
        Some('"') => text(letters).map(|(text, rest)| (Tree::Text(text), rest)),
        Some('[') => list(letters),
        Some('{') => object(letters),
        _ => {
            let end = letters
                .iter()
                .position(|c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '+' | '-'));
            let (word, rest) = letters.split_at(end.unwrap_or(letters.len()));
            let word: String = word.iter().collect();
            let number = regex::Regex::new(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$").unwrap();
            let tree = match word.as_str() {
                "null" => Tree::Null,
                "true" => Tree::Boolean(true),
                "false" => Tree::Boolean(false),
                word if number.is_match(word) => Tree::Number(word.to_owned()),
                _ => return Err(false),
            };
            Ok((tree, rest))
        }
    }
}

fn list(letters: &[char]) -> Result<(Tree, &[char]), bool> {
    let mut rest = blanks(&letters[1..]);
    let mut items = Vec::new();
    if let Some((']', rest)) = rest.split_first() {
        return Ok((Tree::List(items), rest));
    }
    loop {
        let (item, after) = value(rest)?;
        items.push(item);
        match blanks(after).split_first() {
            Some((',', after)) => rest = blanks(after),
            Some((']', after)) => return Ok((Tree::List(items), after)),
            _ => return Err(false),
        }
    }
}

fn object(letters: &[char]) -> Result<(Tree, &[char]), bool> {
    let mut rest = blanks(&letters[1..]);
    let mut members: Vec<(Vec<u16>, Tree)> = Vec::new();
    if let Some(('}', rest)) = rest.split_first() {
        return Ok((Tree::Object(members), rest));
    }
    let mut is_twice = false;
    loop {
        let (name, after) = text(rest)?;
        let Some((':', after)) = blanks(after).split_first() else {
            return Err(false);
        };
        let (member, after) = value(blanks(after))?;
        is_twice |= members.iter().any(|(other, _)| *other == name);
        members.push((name, member));
        match blanks(after).split_first() {
            Some((',', after)) => rest = blanks(after),
            Some(('}', _)) if is_twice => return Err(true),
            Some(('}', after)) => return Ok((Tree::Object(members), after)),
            _ => return Err(false),
        }
    }
}

fn text(letters: &[char]) -> Result<(Vec<u16>, &[char]), bool> {
    let mut units = Vec::new();
    let Some(('"', mut rest)) = letters.split_first() else {
        return Err(false);
    };
    loop {
        let (letter, after) = rest.split_first().ok_or(false)?;
        rest = after;
        match letter {
            '"' => return Ok((units, rest)),
            '\\' => {
                let (escaped, after) = rest.split_first().ok_or(false)?;
                rest = after;
                let plain = match escaped {
                    '"' | '\\' | '/' => *escaped,
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'u' => {
                        let digits: String = rest.get(..4).ok_or(false)?.iter().collect();
                        if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
                            return Err(false);
                        }
                        units.push(u16::from_str_radix(&digits, 16).unwrap());
                        rest = &rest[4..];
                        continue;
                    }
                    _ => return Err(false),
                };
                units.extend(plain.encode_utf16(&mut [0; 2]).iter());
            }
            letter if *letter < ' ' => return Err(false),
            letter => units.extend(letter.encode_utf16(&mut [0; 2]).iter()),
        }
    }
}

impl Tree {
    pub fn member(&self, wanted: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        let wanted: Vec<u16> = wanted.encode_utf16().collect();
        members
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value)
    }

    /// How deep it is.
    pub fn levels(&self) -> usize {
        match self {
            Self::List(items) => 1 + items.iter().map(Self::levels).max().unwrap_or(0),
            Self::Object(members) => 1 + members.iter().map(|(_, v)| v.levels()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Its texts, the names among them, and its numbers, as far as they can be said; and whether it is a text.
    pub fn each_part(&self, take: &mut dyn FnMut(String, bool)) {
        match self {
            Self::Text(units) => String::from_utf16(units)
                .into_iter()
                .for_each(|text| take(text, true)),
            Self::Number(_) => self
                .exact()
                .into_iter()
                .for_each(|number| take(number.to_string(), false)),
            Self::List(items) => items.iter().for_each(|item| item.each_part(take)),
            Self::Object(members) => {
                for (name, value) in members {
                    Self::Text(name.clone()).each_part(take);
                    value.each_part(take);
                }
            }
            Self::Null | Self::Boolean(_) => {}
        }
    }

    /// The value, if it can be said exactly.
    pub fn exact(&self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Boolean(is) => json!(is),
            Self::Text(units) => String::from_utf16(units).ok()?.into(),
            Self::List(items) => items
                .iter()
                .map(Self::exact)
                .collect::<Option<Vec<Value>>>()?
                .into(),
            Self::Object(members) => {
                let mut all = serde_json::Map::new();
                for (name, value) in members {
                    all.insert(String::from_utf16(name).ok()?, value.exact()?);
                }
                all.into()
            }
            Self::Number(written) => match (written.parse::<i64>(), written.parse::<u64>()) {
                (Ok(whole), _) => json!(whole),
                (_, Ok(whole)) => json!(whole),
                _ => json!(self.number()?),
            },
        })
    }

    /// The number, if it can be said exactly: if written out it is the one that was written.
    pub fn number(&self) -> Option<f64> {
        let Self::Number(written) = self else { return None };
        let number: f64 = written.parse().unwrap();
        let is_zero = !written
            .split(['e', 'E'])
            .next()
            .unwrap()
            .contains(['1', '2', '3', '4', '5', '6', '7', '8', '9']);
        if is_zero {
            return Some(0.0);
        }
        (number.is_finite() && number != 0.0 && written_out(written) == written_out(&number.to_string()))
            .then_some(number)
    }
}

/// All digits before and behind the point, without zeros at the ends.
fn written_out(number: &str) -> (String, String) {
    let (mantissa, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (mut whole, mut fraction) = (whole.replace('-', ""), fraction.to_owned());
    let power: i32 = power.parse().unwrap();
    for _ in 0..power {
        let next = if fraction.is_empty() {
            '0'
        } else {
            fraction.remove(0)
        };
        whole.push(next);
    }
    for _ in power..0 {
        fraction.insert(0, whole.pop().unwrap_or('0'));
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    (whole.to_owned(), fraction.to_owned())
}
