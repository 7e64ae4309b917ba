//! The front matter of `SKILL.md`: YAML between two lines `---`.
//!
//! A YAML parser gives events, and only these are understood: one map of plain values, a map in `metadata`, a list in
//! `allowed-tools`. Anchors, aliases and tags are refused. Members that the format does not know are left alone, because
//! clients have their own, but their names must be unique too.
//!
//! Clients read more than the format allows, and people have skills that only clients have read. What cannot be understood
//! otherwise than a client does is therefore a warning: a colon in a text without quotes, a description that is too long, and
//! members that only people look at. Refused stays what two readers could understand differently, a text that hides something
//! from who reads it, and a name that nobody could compare.

use granit_parser::{Event, Parser};
use std::collections::BTreeMap;

/// LIMIT: the front matter; clients read it into every conversation.
const MAX_BYTES: usize = 16 << 10;
/// LIMIT: a value within a value within a value; the format needs two.
const MAX_LEVELS: usize = 16;

/// LIMIT: characters of a name as it is written. Source: ours; what hooks send is compared with the whole.
const MAX_NAME: usize = 255;
/// LIMIT: characters of a description before a warning (agent-skills).
const MAX_DESCRIPTION: usize = 1_024;
/// LIMIT: 500 characters (agent-skills); for the licence too, where the format has none.
const MAX_NOTE: usize = 500;

/// What the front matter says.
#[derive(Debug)]
pub(super) struct FrontMatter {
    /// As it is written; it need not be one that the registry takes.
    pub(super) name: Option<String>,
    pub(super) description: String,
    pub(super) license: Option<String>,
    pub(super) compatibility: Option<String>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
    pub(super) allowed_tools: Option<Vec<String>>,
    /// What is not as the format says, and does no harm.
    pub(super) warnings: Vec<String>,
}

/// Reads the front matter of a whole `SKILL.md`.
///
/// Errors: every sentence about what is wrong.
pub(super) fn read(file: &[u8]) -> Result<FrontMatter, Vec<String>> {
    let text = std::str::from_utf8(file).map_err(|_| vec!["SKILL.md is not UTF-8".to_owned()])?;
    let yaml = between_the_lines(text).map_err(|message| vec![message.to_owned()])?;
    let (members, warnings) = parse(yaml)
        .map(|members| (members, Vec::new()))
        .or_else(|message| with_quotes(yaml, &message))
        .map_err(|message| vec![message])?;
    Judgement {
        members,
        warnings,
        faults: Vec::new(),
    }
    .finish()
}

/// Reads front matter that is no YAML because texts without quotes have colons in them, as if they had quotes.
///
/// Errors: what the parser said of the text as it is, if there are no such texts or it is no YAML with quotes either.
fn with_quotes(yaml: &str, message: &str) -> Result<(BTreeMap<String, Value>, Vec<String>), String> {
    let (mut quoted, mut warnings) = (String::with_capacity(yaml.len() + 64), Vec::new());
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let goes_on = lines.peek().is_some_and(|next| next.starts_with([' ', '\t']));
        match text_with_a_colon(line).filter(|_| !goes_on) {
            Some((member, text)) => {
                let text = text.replace('\'', "''");
                quoted.extend([member, ": '", &text, "'"]);
                warnings.push(format!(
                    "{member} has a colon in a text without quotes, which is no YAML; it is read as one text"
                ));
            }
            None => quoted.push_str(line),
        }
        quoted.push('\n');
    }
    match parse(&quoted) {
        Ok(members) if !warnings.is_empty() => Ok((members, warnings)),
        _ => Err(message.to_owned()),
    }
}

/// Returns the member and the text of a line that holds both, where the text has a colon that YAML would not read as text.
fn text_with_a_colon(line: &str) -> Option<(&str, &str)> {
    let (member, text) = line.split_once(": ")?;
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let text = text.trim();
    let has_colon = text.contains(": ") || text.contains(":\t") || text.ends_with(':');
    // What begins otherwise says that it is no plain text.
    let begins = text.chars().next().is_some_and(char::is_alphanumeric);
    // A comment would become a part of the text.
    let is_whole = !text.contains(" #") && !text.contains("\t#");
    (!member.is_empty() && member.bytes().all(is_plain) && has_colon && begins && is_whole)
        .then_some((member, text))
}

fn between_the_lines(text: &str) -> Result<&str, &'static str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err("SKILL.md must begin with a line --- and its front matter");
    }
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            let yaml = &text[first.len()..end];
            return if yaml.len() > MAX_BYTES {
                Err("the front matter has more than 16384 bytes")
            } else {
                Ok(yaml)
            };
        }
        end += line.len();
    }
    Err("the front matter has no second line ---")
}

/// A value of the front matter.
enum Value {
    Text(String),
    Map(BTreeMap<String, Value>),
    List(Vec<Value>),
}

fn parse(yaml: &str) -> Result<BTreeMap<String, Value>, String> {
    let mut events = Events {
        parser: Parser::new_from_str(yaml),
    };
    loop {
        match events.next()? {
            Event::StreamStart | Event::DocumentStart(..) => {}
            Event::MappingStart(_, anchor, tag) => {
                plain(anchor, tag.is_some())?;
                let members = events.map(0)?;
                return match (events.next()?, events.next()?) {
                    (Event::DocumentEnd, Event::StreamEnd) => Ok(members),
                    _ => Err("the front matter is more than one document".into()),
                };
            }
            _ => return Err("the front matter is no map".into()),
        }
    }
}

struct Events<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<Event<'a>, String> {
        match self.parser.next_event() {
            Some(Ok((event, _))) => Ok(event),
            // The first line of the file is the line ---.
            Some(Err(error)) => Err(format!(
                "the front matter is no YAML: {} (line {})",
                error.info(),
                error.marker().line() + 1
            )),
            None => Err("the front matter ends too early".into()),
        }
    }

    fn map(&mut self, level: usize) -> Result<BTreeMap<String, Value>, String> {
        let mut members = BTreeMap::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(members),
                Event::Scalar(key, _, anchor, tag) => {
                    plain(anchor, tag.is_some())?;
                    key.into_owned()
                }
                _ => return Err("the front matter has a member whose name is no text".into()),
            };
            let event = self.next()?;
            let value = self.value(event, level)?;
            if members.insert(key.clone(), value).is_some() {
                return Err(format!("the front matter has {key:?} twice"));
            }
        }
    }

    fn value(&mut self, event: Event<'a>, level: usize) -> Result<Value, String> {
        if level > MAX_LEVELS {
            return Err("the front matter is nested too deeply".into());
        }
        match event {
            Event::Scalar(text, _, anchor, tag) => {
                plain(anchor, tag.is_some())?;
                Ok(Value::Text(text.into_owned()))
            }
            Event::MappingStart(_, anchor, tag) => {
                plain(anchor, tag.is_some())?;
                Ok(Value::Map(self.map(level + 1)?))
            }
            Event::SequenceStart(_, anchor, tag) => {
                plain(anchor, tag.is_some())?;
                let mut values = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Ok(Value::List(values)),
                        event => values.push(self.value(event, level + 1)?),
                    }
                }
            }
            _ => Err("the front matter has an alias; write the value itself".into()),
        }
    }
}

fn plain(anchor: usize, is_tagged: bool) -> Result<(), String> {
    if anchor != 0 || is_tagged {
        return Err("the front matter has an anchor or a tag; write the value itself".into());
    }
    Ok(())
}

/// Members on their way to front matter.
struct Judgement {
    members: BTreeMap<String, Value>,
    faults: Vec<String>,
    warnings: Vec<String>,
}

impl Judgement {
    fn finish(mut self) -> Result<FrontMatter, Vec<String>> {
        let name = self.needed_text("name", MAX_NAME);
        // The front matter as a whole has a limit.
        let description = self.needed_text("description", MAX_BYTES);
        if description
            .as_ref()
            .is_some_and(|text| text.chars().count() > MAX_DESCRIPTION)
        {
            self.warnings.push(format!(
                "description has more than {MAX_DESCRIPTION} characters; some clients cut it off"
            ));
        }
        let license = self.note("license");
        let compatibility = self.note("compatibility");
        let metadata = self.metadata();
        let allowed_tools = self.tools();
        if description.is_none() && !self.faults.iter().any(|fault| fault.starts_with("description ")) {
            self.faults
                .push("description is missing in the front matter".into());
        }
        match description {
            Some(description) if self.faults.is_empty() => Ok(FrontMatter {
                name,
                description,
                license,
                compatibility,
                metadata,
                allowed_tools,
                warnings: self.warnings,
            }),
            _ => Err(self.faults),
        }
    }

    /// Takes a text that must be right if it is there.
    fn needed_text(&mut self, member: &str, max_chars: usize) -> Option<String> {
        let Value::Text(text) = self.members.remove(member)? else {
            self.faults.push(format!("{member} must be a text"));
            return None;
        };
        let text = text.trim().to_owned();
        if text.is_empty() || text.chars().count() > max_chars {
            self.faults
                .push(format!("{member} must have 1 to {max_chars} characters"));
        } else if has_control(&text) {
            self.faults.push(format!("{member} has a control character"));
        }
        Some(text)
    }

    /// Takes a text that people look at and nothing else; one that is not right is left out.
    fn note(&mut self, member: &str) -> Option<String> {
        let text = match self.members.remove(member)? {
            Value::Text(text) => text.trim().to_owned(),
            _ => String::new(),
        };
        let fits = !text.is_empty() && text.chars().count() <= MAX_NOTE && !has_control(&text);
        if !fits {
            self.warnings.push(format!(
                "{member} is no text of 1 to {MAX_NOTE} characters; the registry does not show it"
            ));
        }
        fits.then_some(text)
    }

    fn metadata(&mut self) -> Option<BTreeMap<String, String>> {
        let Value::Map(members) = self.members.remove("metadata")? else {
            self.warnings
                .push("metadata is no map; the registry does not show it".into());
            return None;
        };
        let mut texts = BTreeMap::new();
        for (key, value) in members {
            let text = match value {
                Value::Text(text) => text,
                other => {
                    self.warnings.push(format!(
                        "metadata has more than a text in {key:?}; it is shown as JSON"
                    ));
                    other.json().to_string()
                }
            };
            texts.insert(key, text);
        }
        Some(texts)
    }

    fn tools(&mut self) -> Option<Vec<String>> {
        let tools = match self.members.remove("allowed-tools")? {
            Value::Text(text) => return Some(split_tools(&text)),
            Value::List(values) => values
                .into_iter()
                .map(|value| match value {
                    Value::Text(text) => Some(text),
                    _ => None,
                })
                .collect(),
            Value::Map(_) => None,
        };
        if tools.is_none() {
            self.warnings
                .push("allowed-tools is no text and no list of texts; the registry does not show it".into());
        }
        tools
    }
}

fn has_control(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && c != '\n' && c != '\t')
}

impl Value {
    fn json(self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.into(),
            Self::List(values) => values.into_iter().map(Self::json).collect(),
            Self::Map(members) => members
                .into_iter()
                .map(|(key, value)| (key, value.json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// Splits at spaces and commas, but not in the brackets of `Bash(git add:*)`.
fn split_tools(text: &str) -> Vec<String> {
    let mut open = 0_usize;
    text.split(|c: char| {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        open == 0 && (c.is_whitespace() || c == ',')
    })
    .filter(|tool| !tool.is_empty())
    .map(str::to_owned)
    .collect()
}
