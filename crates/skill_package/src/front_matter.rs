//! The front matter of `SKILL.md`: YAML between two lines `---`.
//!
//! A YAML parser gives events, and only these are understood: one map of plain values, a map in `metadata`, a list in
//! `allowed-tools`. Anchors, aliases and tags are refused. Members that the format does not know are left alone, because
//! clients have their own, but their names must be unique too.

use super::manifest::is_valid_name;
use granit_parser::{Event, Parser};
use std::collections::{BTreeMap, BTreeSet};

/// LIMIT: the front matter; clients read it into every conversation.
const MAX_BYTES: usize = 16 << 10;
/// LIMIT: a value within a value within a value; the format needs two.
const MAX_LEVELS: usize = 16;

/// What the front matter says.
#[derive(Debug)]
pub(super) struct FrontMatter {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) license: Option<String>,
    pub(super) compatibility: Option<String>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
    pub(super) allowed_tools: Option<Vec<String>>,
}

/// Reads the front matter of a whole `SKILL.md`.
///
/// Errors: every sentence about what is wrong.
pub(super) fn read(file: &[u8]) -> Result<FrontMatter, Vec<String>> {
    let text = std::str::from_utf8(file).map_err(|_| vec!["SKILL.md is not UTF-8".to_owned()])?;
    let yaml = between_the_lines(text).map_err(|message| vec![message.to_owned()])?;
    let members = parse(yaml).map_err(|message| vec![message])?;
    judge(members)
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

fn judge(mut members: BTreeMap<String, Value>) -> Result<FrontMatter, Vec<String>> {
    let mut faults = Vec::new();
    let mut text = |member: &str, max_chars: usize| match members.remove(member) {
        None => None,
        Some(Value::Text(text)) => {
            let text = text.trim().to_owned();
            if text.is_empty() || text.chars().count() > max_chars {
                faults.push(format!("{member} must have 1 to {max_chars} characters"));
            } else if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
                faults.push(format!("{member} has a control character"));
            }
            Some(text)
        }
        Some(_) => {
            faults.push(format!("{member} must be a text"));
            None
        }
    };
    // LIMIT: 64, 1 024, 500: the agent-skills format. 500 for the licence too, where the format has none.
    let name = text("name", 64);
    let description = text("description", 1_024);
    let license = text("license", 500);
    let compatibility = text("compatibility", 500);
    if name.as_ref().is_some_and(|name| !is_valid_name(name)) {
        faults.push(
            "name must be 1 to 64 of a-z, 0-9 and -, with no hyphen first, last or twice in a row".into(),
        );
    }
    let metadata = metadata(members.remove("metadata"), &mut faults);
    let allowed_tools = tools(members.remove("allowed-tools"), &mut faults);
    let told: BTreeSet<&str> = faults.iter().filter_map(|f| f.split(' ').next()).collect();
    let missing: Vec<String> = [("name", name.is_none()), ("description", description.is_none())]
        .into_iter()
        .filter(|(member, is_missing)| *is_missing && !told.contains(member))
        .map(|(member, _)| format!("{member} is missing in the front matter"))
        .collect();
    faults.extend(missing);
    match (name, description) {
        (Some(name), Some(description)) if faults.is_empty() => Ok(FrontMatter {
            name,
            description,
            license,
            compatibility,
            metadata,
            allowed_tools,
        }),
        _ => Err(faults),
    }
}

fn metadata(value: Option<Value>, faults: &mut Vec<String>) -> Option<BTreeMap<String, String>> {
    let Some(Value::Map(members)) = value else {
        if value.is_some() {
            faults.push("metadata must be a map of texts".into());
        }
        return None;
    };
    let mut texts = BTreeMap::new();
    for (key, value) in members {
        if let Value::Text(text) = value {
            texts.insert(key, text);
        } else {
            faults.push(format!("metadata must be a map of texts; {key:?} is none"));
        }
    }
    Some(texts)
}

fn tools(value: Option<Value>, faults: &mut Vec<String>) -> Option<Vec<String>> {
    match value? {
        Value::Text(text) => Some(split_tools(&text)),
        Value::List(values) => {
            let tools: Option<Vec<String>> = values
                .into_iter()
                .map(|value| match value {
                    Value::Text(text) => Some(text),
                    _ => None,
                })
                .collect();
            if tools.is_none() {
                faults.push("allowed-tools must be a text or a list of texts".into());
            }
            tools
        }
        Value::Map(_) => {
            faults.push("allowed-tools must be a text or a list of texts".into());
            None
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
