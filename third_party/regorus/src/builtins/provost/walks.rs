// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! `walk`: every value below another one, each with the path that leads to it. The compiler makes a loop of it.

use super::too_large;
use crate::ast::{Expr, Ref};
use crate::builtins::admitted::WALK_NODES;
use crate::lexer::Span;
use crate::value::Value;
use alloc::vec::Vec;
use anyhow::Result;

/// Returns how large all paths and values below a value are as trees, the value itself included; more than the limit where
/// it is more.
pub fn nodes(value: &Value) -> u64 {
    let mut sum: u64 = 1;
    let mut open = alloc::vec![(value, 0_u64)];
    while let Some((value, path)) = open.pop() {
        sum = sum.saturating_add(path).saturating_add(2).saturating_add(value.extent().nodes);
        if sum > WALK_NODES {
            break;
        }
        let below = |key: &Value| path.saturating_add(key.extent().nodes);
        match *value {
            Value::Array(ref items) => open.extend(items.iter().map(|item| (item, path.saturating_add(1)))),
            Value::Set(ref items) => open.extend(items.iter().map(|item| (item, below(item)))),
            Value::Object(ref members) => {
                open.extend(members.iter().map(|(key, member)| (member, below(key))));
            }
            _ => {}
        }
    }
    sum
}

/// Returns the pairs of path and value, a value before what lies below it.
pub fn walk(_: &Span, _params: &[Ref<Expr>], args: &[Value], _strict: bool) -> Result<Value> {
    if nodes(&args[0]) > WALK_NODES {
        return Err(too_large());
    }
    let mut pairs = Vec::new();
    let mut open: Vec<(Vec<Value>, &Value)> = alloc::vec![(Vec::new(), &args[0])];
    while let Some((path, value)) = open.pop() {
        let below = |key: Value| {
            let mut path = path.clone();
            path.push(key);
            path
        };
        let start = open.len();
        match *value {
            Value::Array(ref items) => {
                open.extend(items.iter().enumerate().map(|(at, item)| (below(Value::from(at)), item)));
            }
            Value::Set(ref items) => open.extend(items.iter_sorted().map(|item| (below(item.clone()), item))),
            Value::Object(ref members) => {
                let members = members.iter_sorted();
                open.extend(members.map(|(key, member)| (below(key.clone()), member)));
            }
            _ => {}
        }
        open[start..].reverse();
        pairs.push(Value::from(alloc::vec![Value::from(path), value.clone()]));
    }
    Ok(Value::from(pairs))
}
