//! One value of the API as a flag or a positional, and back.

use super::failure::Failure;
use super::schema::{Field, Kind};
use clap::builder::{PossibleValue, PossibleValuesParser, Resettable, StyledStr, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};
use serde_json::Value;
use std::path::PathBuf;

/// Where a value stands in the request. Its name prefixes the id that clap knows the value by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagTarget {
    Path,
    Query,
    Body,
}

impl FlagTarget {
    fn word(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Body => "body",
        }
    }

    pub(super) fn id(self, field: &Field) -> String {
        format!("{}.{}", self.word(), field.name())
    }
}

/// Returns the id of the flag that sets a member to `null`.
pub(super) fn clear_id(field: &Field) -> String {
    format!("clear.{}", field.name())
}

/// Hands out flag names, each once.
pub(super) struct Names(Vec<String>);

impl Names {
    pub(super) fn new(taken: &[Arg]) -> Self {
        let mut names: Vec<String> = vec!["help".to_owned()];
        for arg in taken {
            names.extend(arg.get_long().map(str::to_owned));
        }
        Self(names)
    }

    /// Returns the flag of a member: its name in kebab case, with the place before it if that is taken.
    pub(super) fn take(&mut self, place: FlagTarget, field: &Field) -> String {
        let plain = kebab(&field.path.join("-"));
        let name = if self.0.contains(&plain) {
            format!("{}-{plain}", place.word())
        } else {
            plain
        };
        self.0.push(name.clone());
        name
    }
}

/// `tokens.secretReplaySeconds` reads `tokens-secret-replay-seconds`.
pub(super) fn kebab(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut last_is_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && last_is_lower {
            out.push('-');
        }
        last_is_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        });
    }
    out
}

/// Returns the positional of a path parameter.
pub(super) fn positional(field: &Field) -> Arg {
    Arg::new(FlagTarget::Path.id(field))
        .required(true)
        .value_name(placeholder(field))
        .value_parser(segment)
        .help(help(FlagTarget::Path, field))
}

/// Returns the word that stands for a path parameter in help.
pub(super) fn placeholder(field: &Field) -> String {
    kebab(&field.name()).replace('-', "_").to_uppercase()
}

/// Returns the flag's name when nothing else has it.
pub(super) fn long(field: &Field) -> String {
    kebab(&field.name())
}

/// A dot or two would be taken for a folder by what stands between here and the server.
fn segment(text: &str) -> Result<String, &'static str> {
    match text {
        "" | "." | ".." => Err("this names nothing"),
        _ => Ok(text.to_owned()),
    }
}

/// Returns the flag of a query parameter or of a member of the body.
pub(super) fn flag(place: FlagTarget, field: &Field, long: String) -> Arg {
    let arg = typed(
        Arg::new(place.id(field)).long(long).help(help(place, field)),
        &field.kind,
    );
    if place == FlagTarget::Query && field.is_time() {
        return arg.value_name("TIME");
    }
    arg
}

/// Returns a flag that names a file.
pub(super) fn file_arg(id: &'static str, long: &'static str) -> Arg {
    Arg::new(id)
        .long(long)
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
}

/// Returns the flag that sets a member to `null`.
pub(super) fn clear_flag(field: &Field, long: &str) -> Arg {
    Arg::new(clear_id(field))
        .long(format!("clear-{long}"))
        .action(ArgAction::SetTrue)
        .conflicts_with(FlagTarget::Body.id(field))
        .help(format!("Removes what --{long} sets"))
}

fn typed(arg: Arg, kind: &Kind) -> Arg {
    let arg = arg.value_parser(parser(kind));
    match kind {
        Kind::Text { choices } if choices.is_empty() => arg.value_name("TEXT"),
        Kind::Text { .. } => arg.value_name("WORD"),
        Kind::Integer { .. } => arg.value_name("N").allow_negative_numbers(true),
        Kind::Number => arg.value_name("NUMBER").allow_negative_numbers(true),
        // `--flag` and `--flag=false`; without the equals sign it would swallow a positional.
        Kind::Boolean => arg
            .value_name("BOOL")
            .num_args(0..=1)
            .default_missing_value("true")
            .require_equals(true),
        Kind::List(item) => typed(arg, item).value_delimiter(',').action(ArgAction::Append),
        Kind::Json => arg.value_name("JSON"),
    }
}

fn parser(kind: &Kind) -> ValueParser {
    match kind {
        Kind::Text { choices } if choices.is_empty() => value_parser!(String),
        Kind::Text { choices } => {
            let word = |choice: &super::schema::Choice| {
                let value = PossibleValue::new(choice.word.clone());
                choice
                    .about
                    .clone()
                    .map_or(value.clone(), |about| value.help(about))
            };
            PossibleValuesParser::new(choices.iter().map(word).collect::<Vec<_>>()).into()
        }
        Kind::Integer { min, max } => value_parser!(i64)
            .range(min.unwrap_or(i64::MIN)..=max.unwrap_or(i64::MAX))
            .into(),
        Kind::Number => value_parser!(f64).into(),
        Kind::Boolean => value_parser!(bool),
        Kind::List(item) => parser(item),
        Kind::Json => value_parser!(String),
    }
}

fn help(place: FlagTarget, field: &Field) -> Resettable<StyledStr> {
    let mut words = field.about.trim().trim_end_matches('.').to_owned();
    if let Kind::List(_) = field.kind {
        words.push_str(if words.is_empty() {
            "Comma-separated or repeated"
        } else {
            "; comma-separated or repeated"
        });
    }
    if !field.limits.is_empty() {
        let space = if words.is_empty() { "" } else { " " };
        let mut limits = field.limits.join(", ");
        if place == FlagTarget::Query && field.is_time() {
            limits.push_str(", a day, or how long ago: 1h, 7d");
        }
        words = format!("{words}{space}({limits})");
    }
    (!words.is_empty()).then(|| words.into()).into()
}

/// Returns what was said for a field, if anything was.
///
/// Errors: usage, when a JSON flag does not hold JSON.
pub(super) fn value(
    place: FlagTarget,
    field: &Field,
    matches: &ArgMatches,
) -> Result<Option<Value>, Failure> {
    let id = place.id(field);
    let value = match &field.kind {
        Kind::List(item) => list(item, &id, matches),
        Kind::Json => match matches.get_one::<String>(&id) {
            Some(text) => {
                let parsed = serde_json::from_str(text);
                Some(
                    parsed
                        .map_err(|error| Failure::usage(format!("{} is not JSON: {error}", field.name())))?,
                )
            }
            None => None,
        },
        kind => many(kind, &id, matches).and_then(|values| values.into_iter().next()),
    };
    Ok(value)
}

/// An empty text alone says the empty list.
fn list(item: &Kind, id: &str, matches: &ArgMatches) -> Option<Value> {
    let values = many(item, id, matches)?;
    let is_empty = values == [Value::from("")];
    Some(if is_empty {
        Value::Array(Vec::new())
    } else {
        values.into()
    })
}

fn many(kind: &Kind, id: &str, matches: &ArgMatches) -> Option<Vec<Value>> {
    fn all<T: Clone + Into<Value> + Send + Sync + 'static>(
        id: &str,
        matches: &ArgMatches,
    ) -> Option<Vec<Value>> {
        Some(matches.get_many::<T>(id)?.cloned().map(Into::into).collect())
    }
    match kind {
        Kind::Integer { .. } => all::<i64>(id, matches),
        Kind::Number => all::<f64>(id, matches),
        Kind::Boolean => all::<bool>(id, matches),
        Kind::Text { .. } | Kind::List(_) | Kind::Json => all::<String>(id, matches),
    }
}
