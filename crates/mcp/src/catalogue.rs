//! The tools, prepared: each as JSON once, and each list that was asked for as bytes.
//!
//! A list is known by which operations stand in it, and that is computed from the actor of every request: what is
//! kept can be stale in no way.

use crate::selection::Selection;
use crate::whole::WholeNumbers;
use bytes::Bytes;
use provost_kernel::auth::Actor;
use provost_kernel::expose::mcp;
use provost_kernel::operation::{Meta, Registry, may_call};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// LIMIT: lists that are kept. There are few: a role, a handful of scopes, a selection.
const KEPT: usize = 64;
/// LIMIT: the longest name that clients take.
const MAX_NAME: usize = 64;

/// Every operation as a tool, by its place in the registry.
pub(crate) struct Catalogue {
    tools: Vec<Tool>,
    by_name: HashMap<&'static str, usize>,
    kept: Mutex<HashMap<ListFilter, Bytes>>,
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
    /// Where they hold whole numbers.
    pub whole_numbers: WholeNumbers,
    json: String,
    is_offered: bool,
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
                    whole_numbers: WholeNumbers::of(&tool["inputSchema"]),
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

    /// Returns the operation of a tool that an actor may call, whatever is selected.
    pub fn offered(&self, name: &str, actor: &Actor) -> Option<&'static Meta> {
        let tool = &self.tools[*self.by_name.get(name)?];
        (tool.is_offered && may_call(tool.meta, actor)).then_some(tool.meta)
    }

    /// Returns the place of an operation that an actor may not call, whatever is selected.
    pub fn forbidden(&self, name: &str, actor: &Actor) -> Option<usize> {
        let place = *self.by_name.get(name)?;
        (!may_call(self.tools[place].meta, actor)).then_some(place)
    }

    /// Returns the tools that are listed for an actor and a selection, as an array's text. They are one page: many clients read
    /// no second one.
    pub fn list(&self, actor: &Actor, selection: &Selection) -> Bytes {
        let listed: ListFilter = self
            .tools
            .iter()
            .map(|tool| tool.is_listed(actor, selection))
            .collect();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = kept.get(&listed) {
            return list.clone();
        }
        let tools = self.tools.iter().zip(&*listed).filter(|(_, listed)| **listed);
        let tools: Vec<&str> = tools.map(|(tool, _)| tool.json.as_str()).collect();
        let list = Bytes::from(format!("[{}]", tools.join(",")));
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(listed, list.clone());
        list
    }
}

impl Tool {
    // INVARIANT ME-2: the one rule of lists and of calls.
    fn is_listed(&self, actor: &Actor, selection: &Selection) -> bool {
        self.is_offered && selection.has(self.meta) && may_call(self.meta, actor)
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain)
}
