//! Reading a recording of tool calls.

use crate::error::{Error, Result, invalid};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// The calls of a recording, by run.
#[derive(Debug)]
pub struct Recording {
    pub(super) users: Vec<String>,
    pub(super) tools: usize,
    pub(super) runs: Vec<Vec<Call>>,
    /// For each user the runs of that user.
    pub(super) runs_of: Vec<Vec<usize>>,
}

/// One call of a run.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) model: String,
    pub(super) result: String,
    pub(super) arguments: String,
    pub(super) resource: Option<String>,
    pub(super) amount: Option<f64>,
}

#[derive(Deserialize)]
struct Line {
    task: u64,
    trial: u64,
    user: String,
    model: String,
    tool: String,
    arguments: Json,
    result: Option<String>,
}

impl Recording {
    /// Reads a recording.
    ///
    /// Errors: `Invalid` with the number of the line that cannot be read, or when there is none.
    pub fn read(lines: &str) -> Result<Self> {
        let mut runs: BTreeMap<(u64, u64, String), Vec<Call>> = BTreeMap::new();
        for (number, line) in (1..).zip(lines.lines()) {
            let line: Line = serde_json::from_str(line)
                .map_err(|_| Error::Invalid(format!("line {number} is no tool call")))?;
            runs.entry((line.task, line.trial, line.user))
                .or_default()
                .push(Call {
                    resource: resource(&line.arguments),
                    amount: amount(&line.arguments),
                    arguments: line.arguments.to_string(),
                    tool: line.tool,
                    model: line.model,
                    result: line.result.unwrap_or_else(|| "none".into()),
                });
        }
        if runs.is_empty() {
            return invalid("the recording is empty");
        }
        let mut by_user: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, (_, _, user)) in runs.keys().enumerate() {
            by_user.entry(user.clone()).or_default().push(index);
        }
        let (users, runs_of) = by_user.into_iter().unzip();
        let runs: Vec<Vec<Call>> = runs.into_values().collect();
        let tools: BTreeSet<&str> = runs.iter().flatten().map(|call| call.tool.as_str()).collect();
        Ok(Self {
            users,
            tools: tools.len(),
            runs_of,
            runs,
        })
    }
}

/// Returns what a call is about: the first of these members that it has.
fn resource(arguments: &Json) -> Option<String> {
    let text = |name: &str| arguments.get(name).and_then(Json::as_str);
    let route = || Some(format!("{}-{}", text("origin")?, text("destination")?));
    text("reservation_id")
        .map(str::to_owned)
        .or_else(route)
        .or_else(|| text("user_id").map(str::to_owned))
}

/// Returns the sum of the members named `amount`, at any depth; none where there is no such member.
fn amount(arguments: &Json) -> Option<f64> {
    let add = |sum: Option<f64>, part: f64| Some(sum.unwrap_or(0.0) + part);
    match arguments {
        Json::Array(items) => items.iter().filter_map(amount).fold(None, add),
        Json::Object(members) => {
            let own = members.get("amount").and_then(Json::as_f64);
            members.values().filter_map(amount).fold(own, add)
        }
        _ => None,
    }
}
