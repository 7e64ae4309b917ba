//! Lists that come in pages (specification §8, D13).
//!
//! Keeps CL-5.

use super::api::{Operation, Shape};
use super::column::Column;
use super::draft::Draft;
use super::failure::{Exit, Failure};
use super::print::{Form, Printer, parsed};
use super::send::Sender;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// How the next page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paging {
    /// `offset`, until `total`.
    Offset,
    /// `cursor`, until the answer has no `nextCursor`.
    Cursor,
    /// `after`, until nothing follows.
    After,
}

impl Paging {
    /// Returns how an operation pages, if it does; by cursor where it takes several, because an offset passes over what moves up
    /// when something is deleted.
    pub(super) fn of(operation: &Operation) -> Option<Self> {
        if !matches!(operation.answer, Shape::List(_) | Shape::Lines) {
            return None;
        }
        let known = [
            ("cursor", Self::Cursor),
            ("offset", Self::Offset),
            ("after", Self::After),
        ];
        known
            .into_iter()
            .find(|(name, _)| operation.query_field(name).is_some())
            .map(|(_, paging)| paging)
    }

    /// Returns how the pages of a call are asked for: whoever begins at an offset goes on by offsets.
    fn of_call(operation: &Operation, draft: &Draft) -> Option<Self> {
        match draft.query("offset") {
            Some(_) => Some(Self::Offset),
            None => Self::of(operation),
        }
    }

    /// Returns the place at which the walk begins, where the caller named one.
    fn start(self, draft: &Draft) -> Option<String> {
        let name = match self {
            Self::Offset => "offset",
            Self::Cursor => "cursor",
            Self::After => "after",
        };
        draft.query(name).map(str::to_owned)
    }

    /// Returns the parameter and its value for the page behind this one.
    fn next(self, draft: &Draft, page: &Value, items: usize) -> Option<(&'static str, String)> {
        let text = |member: &str| match page.get(member)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        match self {
            Self::Cursor => Some(("cursor", text("nextCursor")?)),
            Self::After if items > 0 => Some(("after", text("nextAfter")?)),
            Self::Offset if items > 0 => {
                let offset: u64 = draft.query("offset").and_then(|o| o.parse().ok()).unwrap_or(0);
                let next = offset.saturating_add(items as u64);
                let is_last = page
                    .get("total")
                    .and_then(Value::as_u64)
                    .is_some_and(|total| next >= total);
                (!is_last).then(|| ("offset", next.to_string()))
            }
            Self::After | Self::Offset => None,
        }
    }
}

/// LIMIT: pages without an item, one behind the other; a list that is filtered has some, a server that leads nowhere has
/// no end of them.
const EMPTY_PAGES: u32 = 1000;

/// LIMIT: pages without an item that a person is shown nothing of, where one page was asked for: a page is of a bounded part of what there
/// is, and of what is filtered the first parts often hold nothing. "None" would be taken for the answer. Ours: seconds of a server's reading.
const LOOKED_AT: u32 = 100;

/// What a page has in place of items where these are counted, and what a person sees of it.
const GROUPS: &str = "groups";
const OF_GROUPS: [&str; 8] = [
    "events",
    "outcomes.blocked as blocked",
    "outcomes.asked as asked",
    "outcomes.redacted as redacted",
    "outcomes.flagged as flagged",
    "outcomes.monitored as monitored",
    "feedback",
    "subject.id as subject",
];

/// Returns the columns of groups by something: its name first, or what those are called that have none.
fn of_groups(by: Option<&str>) -> Vec<Column> {
    let first: &[&str] = match by {
        Some("policy") => &["policyId or rest as policy"],
        Some("subject") => &["subject.name or rest as who"],
        Some("tool") => &["tool or rest"],
        _ => &["day", "policyId as policy", "subject.name as who", "tool"],
    };
    first
        .iter()
        .copied()
        .chain(OF_GROUPS)
        .map(Column::declared)
        .collect()
}

/// The places of a list at which somebody was, so that a walk through it ends whatever the server says.
#[derive(Default)]
pub struct Trail {
    seen: HashSet<String>,
    empty: u32,
}

impl Trail {
    /// Goes on to the next place, behind a page of so many items.
    ///
    /// Errors: a fault of the server, when the walk was there before, or finds nothing for too long.
    pub fn go_on(&mut self, name: &str, next: &str, items: usize) -> Result<(), Failure> {
        let fault = |line: String| Err(Failure::new(Exit::ServerFault, line));
        if !self.seen.insert(next.to_owned()) {
            return fault(format!("the server names the same {name} again"));
        }
        self.empty = if items > 0 { 0 } else { self.empty + 1 };
        if self.empty >= EMPTY_PAGES {
            return fault(format!(
                "the server sent {EMPTY_PAGES} pages without anything in them"
            ));
        }
        Ok(())
    }
}

/// Fetches one page, or all of them, and prints the items. For a person one page is the first that holds something.
pub(super) async fn list(
    sender: &Sender<'_>,
    printer: &Printer<'_>,
    operation: &Operation,
    (member, columns): (&str, &[Column]),
    mut draft: Draft,
    all: bool,
) -> Result<(), Failure> {
    let paging = Paging::of_call(operation, &draft);
    if let (true, None, Some(largest)) = (all, draft.query("limit"), operation.largest_page()) {
        draft.set_query("limit", largest.to_string());
    }
    let mut whole: Option<Value> = None;
    let mut trail = Trail::default();
    trail.seen.extend(paging.and_then(|paging| paging.start(&draft)));
    let (mut is_empty, mut warnings) = (true, Vec::new());
    let mut beside: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    loop {
        let reply = sender.send(&draft.call()).await?;
        draft.must_be_about(&reply)?;
        let mut page = parsed(&reply)?;
        let count = page.get(member).and_then(Value::as_array).map_or(0, Vec::len);
        let next = paging.and_then(|paging| paging.next(&draft, &page, count));
        is_empty &= count == 0;
        if member != "warnings" {
            warnings.extend(warnings_of(&page));
        }
        collect_beside(&page, member, &mut beside);
        let epoch = epoch_of(operation, &page);
        if printer.form == Form::JsonLines {
            printer.lines(&items_of(&mut page, member))?;
        } else if let Some(whole) = &mut whole {
            let items = items_of(&mut page, member);
            if let Some(known) = whole.get_mut(member).and_then(Value::as_array_mut) {
                known.extend(items);
            }
        } else {
            whole = Some(page);
        }
        let Some((name, value)) = next else { break };
        let looks_on = is_empty && trail.empty < LOOKED_AT && !printer.form.is_json();
        if !(all || looks_on) {
            if !printer.form.is_json() && !sender.quiet {
                let along = epoch.map_or_else(String::new, |epoch| format!(" --epoch {epoch}"));
                sender
                    .terminal
                    .note(&format!("there is more: --{name} {value}{along}, or --all"));
            }
            break;
        }
        trail.go_on(name, &value, count)?;
        draft.set_query(name, value);
        if let Some(epoch) = epoch {
            draft.set_query("epoch", epoch);
        }
    }
    // "none" would be no answer to who asked how many there are.
    let groups = beside.get(GROUPS).filter(|groups| is_empty && !groups.is_empty());
    let groups = groups.cloned();
    if groups.is_some() {
        beside.remove(GROUPS);
    }
    if let Some(mut whole) = whole {
        if let (true, Some(page)) = (all, whole.as_object_mut()) {
            // What described one page does not describe all of them.
            page.retain(|name, _| {
                !matches!(
                    name.as_str(),
                    "nextCursor" | "nextAfter" | "limit" | "offset" | "scannedTo"
                ) && (is_empty || name == member || name != "warnings")
            });
            for (name, values) in &beside {
                page.insert(name.clone(), Value::Array(values.clone()));
            }
        }
        match &groups {
            Some(_) => printer.list(&whole, GROUPS, &of_groups(draft.query("groupBy")))?,
            None => printer.list(&whole, member, columns)?,
        }
    } else if let Some(groups) = &groups {
        printer.lines(groups)?;
    }
    if !matches!(printer.form, Form::Json | Form::Yaml) {
        for (name, values) in beside.iter().filter(|(_, values)| !values.is_empty()) {
            sender
                .terminal
                .note(&format!("{name}: {}; --output json shows what", values.len()));
        }
    }
    // An empty list that is perhaps not what was meant must not pass for the answer that nothing is there.
    if is_empty && let Some((first, rest)) = warnings.split_first() {
        let failure = Failure::usage(first.as_str());
        return Err(rest
            .iter()
            .fold(failure, |failure, line| failure.and(line.as_str())));
    }
    Ok(())
}

/// Adds what a page has beside its items and its warnings, each once: parts of a history that cannot be read.
fn collect_beside(page: &Value, member: &str, beside: &mut BTreeMap<String, Vec<Value>>) {
    for (name, value) in page.as_object().into_iter().flatten() {
        let Value::Array(values) = value else { continue };
        if name == member || name == "warnings" || !values.iter().all(Value::is_object) {
            continue;
        }
        let known = beside.entry(name.clone()).or_default();
        for value in values {
            if !known.contains(value) {
                known.push(value.clone());
            }
        }
    }
}

/// Returns what the server says of a page that is perhaps not what was meant.
fn warnings_of(page: &Value) -> Vec<String> {
    let warnings = page.get("warnings").and_then(Value::as_array);
    let messages = warnings
        .into_iter()
        .flatten()
        .filter_map(|warning| warning.get("message"));
    messages.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns what must be said with the next place of a list whose numbers may begin anew, so that this is noticed.
fn epoch_of(operation: &Operation, page: &Value) -> Option<String> {
    operation.query_field("epoch")?;
    page.get("epoch")?.as_str().map(str::to_owned)
}

fn items_of(page: &mut Value, member: &str) -> Vec<Value> {
    match page.get_mut(member).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
