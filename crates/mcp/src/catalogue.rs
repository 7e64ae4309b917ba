//! The tools, prepared: each as JSON once, and each list that was asked for as bytes.
//!
//! A list is known by which operations stand in it, and that is computed from the actor of every request: what is
//! kept can be stale in no way.

use crate::selection::Selection;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use provost_kernel::auth::Actor;
use provost_kernel::expose::mcp;
use provost_kernel::operation::{Meta, Registry, may_call};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// LIMIT: tools of a page; clients read on by the cursor.
pub(crate) const PAGE: usize = 100;
/// LIMIT: lists that are kept. There are few: a role, a handful of scopes, a selection.
const KEPT: usize = 64;
/// LIMIT: the longest name that clients take.
const MAX_NAME: usize = 64;

/// Every operation as a tool, by its place in the registry.
pub(crate) struct Catalogue {
    tools: Vec<Tool>,
    by_name: HashMap<&'static str, usize>,
    kept: Mutex<HashMap<ListFilter, Arc<[Page]>>>,
}

/// Says of each operation whether it stands in a list.
type ListFilter = Box<[bool]>;

/// One operation as a tool.
pub(crate) struct Tool {
    /// The declaration.
    pub meta: &'static Meta,
    /// The names of the arguments.
    pub arguments: Vec<String>,
    /// The names of those that must be there.
    pub required: Vec<String>,
    json: String,
    is_offered: bool,
}

/// A part of a list.
#[derive(Clone)]
pub(crate) struct Page {
    /// The tools, as the array's text.
    pub tools: Bytes,
    /// Where the list goes on.
    pub next: Option<String>,
    /// The place from which the page reads on.
    start: usize,
}

impl Catalogue {
    /// Prepares the tools of a registry.
    pub fn of(registry: &Registry) -> Self {
        let tools: Vec<Tool> = registry
            .entries()
            .iter()
            .map(|entry| {
                let tool = mcp::tool(entry);
                let arguments = tool["inputSchema"]["properties"].as_object();
                let arguments = arguments.map(|members| members.keys().cloned().collect());
                let required = tool["inputSchema"]["required"].as_array().into_iter().flatten();
                Tool {
                    meta: entry.meta,
                    required: required
                        .filter_map(|name| name.as_str().map(str::to_owned))
                        .collect(),
                    arguments: arguments.unwrap_or_default(),
                    json: tool.to_string(),
                    is_offered: mcp::is_offered(entry.meta) && is_name(entry.meta.id),
                }
            })
            .collect();
        let by_name = tools
            .iter()
            .enumerate()
            .map(|(place, tool)| (tool.meta.id, place));
        Self {
            by_name: by_name.collect(),
            tools,
            kept: Mutex::default(),
        }
    }

    /// Finds a tool that is listed for an actor and a selection, and its place.
    pub fn find(&self, name: &str, actor: &Actor, selection: &Selection) -> Option<(usize, &Tool)> {
        let place = *self.by_name.get(name)?;
        let tool = &self.tools[place];
        tool.is_listed(actor, selection).then_some((place, tool))
    }

    /// Returns the place of an operation that an actor may not call, whatever is selected.
    pub fn forbidden(&self, name: &str, actor: &Actor) -> Option<usize> {
        let place = *self.by_name.get(name)?;
        (!may_call(self.tools[place].meta, actor)).then_some(place)
    }

    /// Returns the page behind a cursor; the first one without.
    ///
    /// Errors: nothing for a cursor that was never given out.
    pub fn page(&self, actor: &Actor, selection: &Selection, cursor: Option<&str>) -> Option<Page> {
        let start = match cursor {
            Some(cursor) => place(cursor)?,
            None => 0,
        };
        let listed: ListFilter = self
            .tools
            .iter()
            .map(|tool| tool.is_listed(actor, selection))
            .collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = kept
            .get(&listed)
            .cloned()
            .unwrap_or_else(|| self.pages(&listed, 0).into());
        if !kept.contains_key(&listed) {
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(listed.clone(), pages.clone());
        }
        drop(kept);
        let page = pages.iter().find(|page| page.start == start).cloned();
        // The caller's rights changed while they read: the list goes on where they were.
        page.or_else(|| self.pages(&listed, start).into_iter().next())
    }

    fn pages(&self, listed: &[bool], start: usize) -> Vec<Page> {
        let places: Vec<usize> = (start..self.tools.len()).filter(|place| listed[*place]).collect();
        let mut pages: Vec<Page> = Vec::new();
        for (number, places) in places.chunks(PAGE).enumerate() {
            let tools: Vec<&str> = places
                .iter()
                .map(|place| self.tools[*place].json.as_str())
                .collect();
            if let Some(page) = pages.last_mut() {
                page.next = Some(BASE64.encode(format!("tools:{}", places[0])));
            }
            pages.push(Page {
                tools: format!("[{}]", tools.join(",")).into(),
                next: None,
                start: if number == 0 { start } else { places[0] },
            });
        }
        if pages.is_empty() {
            pages.push(Page {
                tools: Bytes::from_static(b"[]"),
                next: None,
                start,
            });
        }
        pages
    }
}

impl Tool {
    // INVARIANT ME-2: the one rule of lists and of calls.
    fn is_listed(&self, actor: &Actor, selection: &Selection) -> bool {
        self.is_offered && selection.has(self.meta) && may_call(self.meta, actor)
    }
}

fn place(cursor: &str) -> Option<usize> {
    let text = String::from_utf8(BASE64.decode(cursor).ok()?).ok()?;
    text.strip_prefix("tools:")?.parse().ok()
}

fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain)
}
