//! Lists that come in pages (specification §8, decisions §13).

use super::api::{Operation, Shape};
use super::draft::Draft;
use super::failure::{Exit, Failure};
use super::print::{Form, Printer, parsed};
use super::send::Sender;
use serde_json::Value;

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
    /// Returns how an operation pages, if it does.
    pub(super) fn of(operation: &Operation) -> Option<Self> {
        if !matches!(operation.answer, Shape::List(_) | Shape::Lines) {
            return None;
        }
        let known = [
            ("offset", Self::Offset),
            ("cursor", Self::Cursor),
            ("after", Self::After),
        ];
        known
            .into_iter()
            .find(|(name, _)| operation.query_field(name).is_some())
            .map(|(_, paging)| paging)
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

/// Fetches one page, or all of them, and prints the items.
pub(super) async fn list(
    sender: &Sender<'_>,
    printer: &Printer<'_>,
    operation: &Operation,
    member: &str,
    mut draft: Draft,
    all: bool,
) -> Result<(), Failure> {
    let paging = Paging::of(operation);
    if let (true, None, Some(largest)) = (all, draft.query("limit"), operation.largest_page()) {
        draft.set_query("limit", largest.to_string());
    }
    let mut whole: Option<Value> = None;
    loop {
        let reply = sender.send(&draft.call()).await?;
        draft.must_be_about(&reply)?;
        let mut page = parsed(&reply)?;
        let count = page.get(member).and_then(Value::as_array).map_or(0, Vec::len);
        let next = paging.and_then(|paging| paging.next(&draft, &page, count));
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
        if !all {
            if printer.form == Form::Table && !sender.quiet {
                sender
                    .terminal
                    .note(&format!("there is more: --{name} {value}, or --all"));
            }
            break;
        }
        if draft.query(name) == Some(value.as_str()) {
            return Err(Failure::new(
                Exit::ServerFault,
                format!("the server names the same {name} again"),
            ));
        }
        draft.set_query(name, value);
    }
    match whole {
        Some(mut whole) => {
            if let (true, Some(page)) = (all, whole.as_object_mut()) {
                // What described one page does not describe all of them.
                page.retain(|name, _| {
                    !matches!(name.as_str(), "nextCursor" | "nextAfter" | "limit" | "offset")
                });
            }
            Ok(printer.list(&whole, member)?)
        }
        None => Ok(()),
    }
}

fn items_of(page: &mut Value, member: &str) -> Vec<Value> {
    match page.get_mut(member).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
