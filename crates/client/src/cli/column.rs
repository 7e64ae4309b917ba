//! The columns of a list: which members of its items a person sees, in which order. The operation declares them.

use super::failure::Failure;
use super::flags::kebab;
use super::schema::Schemas;
use clap::{Arg, ArgMatches};
use provost_words::visible::visible;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many names are proposed for one that does not exist.
const PROPOSED: usize = 3;

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The names of the members that lead to the value, with dots between them.
    path: String,
    /// What a person sees where an item has nothing there: another path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instead: Option<String>,
    /// What stands above it, where this does not follow from the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heading: Option<String>,
    /// Whether the values are instants.
    #[serde(default, skip_serializing_if = "is_false")]
    is_time: bool,
    /// Whether it is shown only to who names it.
    #[serde(default, skip_serializing_if = "is_false")]
    is_extra: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Column {
    /// Reads a declaration: a path, `path or another`, or one of these and `as heading`. Members whose names end in `At` are instants.
    pub fn declared(text: &str) -> Self {
        let (path, heading) = match text.split_once(" as ") {
            Some((path, heading)) => (path, Some(heading.to_owned())),
            None => (text, None),
        };
        let (path, instead) = match path.split_once(" or ") {
            Some((path, instead)) => (path, Some(instead.to_owned())),
            None => (path, None),
        };
        Self {
            path: path.to_owned(),
            instead,
            heading,
            is_time: path.ends_with("At"),
            is_extra: false,
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn is_time(&self) -> bool {
        self.is_time
    }

    /// Returns the name of the member that holds the value.
    pub(super) fn member(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// Returns what stands above the column; `permissionRole` reads `PERMISSION ROLE`.
    pub(super) fn title(&self) -> String {
        let words = self
            .heading
            .clone()
            .unwrap_or_else(|| kebab(&self.path).replace('-', " "));
        visible(&words).to_uppercase()
    }

    /// Returns an item's value; nothing where it is absent or null.
    pub(super) fn value<'a>(&self, item: &'a Value) -> Option<&'a Value> {
        at(&self.path, item)
    }

    /// Returns what a person sees of an item: its value, or what stands in the place of one that is absent or an empty list.
    pub(super) fn seen<'a>(&self, item: &'a Value) -> Option<&'a Value> {
        let value = self.value(item);
        let is_empty = value.is_none_or(|value| value.as_array().is_some_and(Vec::is_empty));
        let instead = self.instead.as_deref().filter(|_| is_empty);
        instead.and_then(|path| at(path, item)).or(value)
    }
}

/// Returns what stands at a path; nothing where it is absent or null.
fn at<'a>(path: &str, item: &'a Value) -> Option<&'a Value> {
    let mut value = item;
    for name in path.split('.') {
        value = value.get(name)?;
    }
    (!value.is_null()).then_some(value)
}

/// Returns the declared columns of a list, in their order, and behind them what else its items have.
///
/// Errors: a sentence, when none are declared, or one that the items do not have.
pub(super) fn of_list(
    schemas: &Schemas<'_>,
    declared: Option<&Value>,
    item: &Value,
) -> Result<Vec<Column>, String> {
    let declared = declared
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut columns = Vec::new();
    for text in declared.iter().filter_map(Value::as_str) {
        let mut column = Column::declared(text);
        if let Some(instead) = &column.instead
            && schemas.member(item, instead).is_none()
        {
            return Err(format!(
                "its items have no {instead}, which a column shows instead of {}",
                column.path
            ));
        }
        let member = schemas.member(item, &column.path);
        let member = member
            .ok_or_else(|| format!("its items have no {}, which it declares as a column", column.path))?;
        column.is_time = member.is_time();
        columns.push(column);
    }
    if columns.is_empty() {
        return Err("it answers a list and declares no columns".into());
    }
    for field in schemas.members(item) {
        let path = field.name();
        if columns.iter().all(|column| column.path != path) {
            columns.push(Column {
                is_time: field.is_time(),
                path,
                instead: None,
                heading: None,
                is_extra: true,
            });
        }
    }
    Ok(columns)
}

/// Returns the columns that somebody without a wish sees.
pub(super) fn shown(columns: &[Column]) -> Vec<&Column> {
    columns.iter().filter(|column| !column.is_extra).collect()
}

/// Returns the flag that names columns.
pub(super) fn columns_arg() -> Arg {
    Arg::new("global.columns")
        .long("columns")
        .value_name("NAMES")
        .help("Shows these members of each item, in this order: name,user.id,createdAt; nothing else")
}

/// Says whether columns were named.
pub(super) fn are_named(matches: &ArgMatches) -> bool {
    matches.try_contains_id("global.columns").unwrap_or(false)
}

/// Returns the columns that were named, or those that are declared.
///
/// Errors: usage, when a name is none of the list's, with those that are near to it.
pub(super) fn chosen(columns: &[Column], matches: &ArgMatches) -> Result<Vec<Column>, Failure> {
    let Ok(Some(named)) = matches.try_get_one::<String>("global.columns") else {
        return Ok(shown(columns).into_iter().cloned().collect());
    };
    let find = |name: &str| {
        let found = columns.iter().find(|column| column.path == name);
        found.cloned().ok_or_else(|| unknown(columns, name))
    };
    named.split(',').map(|name| find(name.trim())).collect()
}

fn unknown(columns: &[Column], name: &str) -> Failure {
    let likeness = |path: &str| strsim::jaro_winkler(&path.to_lowercase(), &name.to_lowercase());
    let mut near: Vec<&str> = columns.iter().map(Column::path).collect();
    near.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)).then(one.cmp(other)));
    near.truncate(PROPOSED);
    let all: Vec<&str> = shown(columns).into_iter().map(Column::path).collect();
    Failure::usage(format!(
        "--columns: this list has no {name:?}; the nearest names are {}",
        near.join(", ")
    ))
    .and(format!("without --columns it shows {}", all.join(", ")))
}
