//! `GET …/audit/events/{entryId}`

use super::model::{AuditEntryId, AuditEvent, READERS};
use super::store;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{Cx, Error, Result, audit};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) struct Get;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct EntryPath {
    /// The entry.
    entry_id: AuditEntryId,
}

impl Operation for Get {
    const META: Meta = Meta::read("getHeadlessAuditEvent", "/audit/events/{entryId}", "audit")
        .access("audit:read", READERS)
        .says("Show one audit entry", "")
        .command("audit", "get");
    type Path = EntryPath;
    type Query = Empty;
    type Body = Empty;
    type Output = AuditEvent;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<AuditEvent> {
        find(cx, &input.path.entry_id).map(|(_, event)| event)
    }
}

/// Returns the entry that an id names, with its hash's place in the chain.
///
/// Errors: `NotFound`.
pub(super) fn find(cx: &mut Cx<'_>, id: &AuditEntryId) -> Result<(super::model::Record, AuditEvent)> {
    // The id holds the place; its other half must still be the entry's own.
    let record = match audit::entry_seq(id.as_str()) {
        Some(seq) => store::get(cx, seq)?,
        None => None,
    };
    let record = record.ok_or_else(|| Error::not_found("audit entry"))?;
    let event = AuditEvent::of(&record)?;
    if event.id() != Some(id.as_str()) {
        return Err(Error::not_found("audit entry"));
    }
    Ok((record, event))
}
