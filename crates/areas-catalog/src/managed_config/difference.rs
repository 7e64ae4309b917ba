//! The difference of two contents as it is shown: redacted, bounded, and in the target's own format (D8.6).
//!
//! Keeps MC-12.

use super::changes::{Change, between};
use super::content::{Class, Content};
use super::digest::ContentDigest;
use super::lines::unified;
use super::redact::{pair, shown_change, shown_content, uncompared};
use super::targets::Target;
use provost_kernel::{OperationContext, json};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// LIMIT: changes in one answer (D8.6).
const MAX_CHANGES: usize = 500;
/// LIMIT: lines of the rendered difference in one answer.
const MAX_LINES: usize = 1_000;
/// LIMIT: bytes of changes and lines in one answer.
const MAX_BYTES: usize = 1 << 20;
/// LIMIT: paths in one audit entry.
const MAX_AUDITED: usize = 100;

/// What happens to a member.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Op {
    Add,
    Remove,
    Replace,
}

/// One change. Values that may be secret are replaced by a mark.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ManagedConfigChange")]
pub struct ChangeView {
    op: Op,
    /// JSON Pointer into the content.
    path: String,
    class: Class,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
}

/// The difference in the form of the files that machines get.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct RenderedDiff {
    /// A unified difference of every file that changes; hidden values are marks.
    lines: Vec<String>,
    /// There are more lines than are shown.
    truncated: bool,
}

/// What differs between two contents.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Difference {
    /// The changes, sorted by path; 500 at most.
    changes: Vec<ChangeView>,
    /// How many changes there are.
    changes_total: usize,
    /// Whether there are more changes than are shown.
    truncated: bool,
    rendered_diff: RenderedDiff,
}

impl Difference {
    /// Returns what differs.
    pub fn of(target: Target, before: &Content, after: &Content) -> Self {
        Self::shown(
            target,
            (before, after),
            &between(before, after),
            &pair(before, after),
        )
    }

    /// Returns what differs, every hidden value as one that may have changed: for a caller who brings one of the contents
    /// and may not read the other one.
    pub fn uncompared(target: Target, before: &Content, after: &Content) -> Self {
        let sides = uncompared(before, after);
        Self::shown(target, (before, after), &between(&sides.0, &sides.1), &sides)
    }

    fn shown(
        target: Target,
        (before, after): (&Content, &Content),
        all: &[Change],
        sides: &(Content, Content),
    ) -> Self {
        let mut room = MAX_BYTES;
        let shown = (shown_content(before).document(), shown_content(after).document());
        let changes: Vec<ChangeView> = all
            .iter()
            .take(MAX_CHANGES)
            .map(|change| view(change, &shown))
            .take_while(|change| {
                fits(
                    &mut room,
                    json::canonical(&serde_json::json!([change.before, change.after])).len(),
                )
            })
            .collect();
        Self {
            changes_total: all.len(),
            truncated: changes.len() < all.len(),
            changes,
            rendered_diff: rendered(target, sides),
        }
    }

    /// Returns how many changes there are.
    pub fn total(&self) -> usize {
        self.changes_total
    }
}

fn fits(room: &mut usize, size: usize) -> bool {
    let left = room.checked_sub(size);
    *room = left.unwrap_or(0);
    left.is_some()
}

fn view(change: &Change, shown: &(Value, Value)) -> ChangeView {
    let (before, after) = shown_change(change, &shown.0, &shown.1);
    let op = match (&before, &after) {
        (None, _) => Op::Add,
        (_, None) => Op::Remove,
        _ => Op::Replace,
    };
    ChangeView {
        op,
        path: change.path.clone(),
        class: change.class,
        before,
        after,
    }
}

fn rendered(target: Target, (before, after): &(Content, Content)) -> RenderedDiff {
    let (old, new) = (target.files(before), target.files(after));
    let text = |files: &[super::targets::File], name: &str| {
        let file = files.iter().find(|file| file.name == name);
        file.map_or_else(String::new, |file| file.text.clone())
    };
    let mut names: Vec<&str> = old.iter().chain(&new).map(|file| file.name).collect();
    names.dedup();
    let mut all: Vec<String> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if !names[..place].contains(name) {
            all.extend(unified(name, &text(&old, name), &text(&new, name)));
        }
    }
    let (count, mut room) = (all.len(), MAX_BYTES);
    let lines: Vec<String> = all
        .into_iter()
        .take(MAX_LINES)
        .take_while(|line| fits(&mut room, line.len()))
        .collect();
    RenderedDiff {
        truncated: lines.len() < count,
        lines,
    }
}

/// Notes in the audit entry which members of the content changed: their paths and no value.
/// The keyed digest says that two contents are one, and lets nobody try out what they hold (MC-12).
pub fn note(
    ctx: &mut OperationContext<'_>,
    before: Option<(&ContentDigest, &Content)>,
    after: (&ContentDigest, &Content),
) {
    let empty = Content::default();
    let changes = between(before.map_or(&empty, |(_, content)| content), after.1);
    let (was, is) = (before.map(|(digest, _)| digest.keyed(ctx)), after.0.keyed(ctx));
    ctx.change("/keyedDigest", was, is);
    let mut paths: Vec<&str> = changes
        .iter()
        .take(MAX_AUDITED)
        .map(|c| c.path.as_str())
        .collect();
    if changes.len() > MAX_AUDITED {
        paths.push("…");
    }
    ctx.change("/content", Value::Null, paths);
}
