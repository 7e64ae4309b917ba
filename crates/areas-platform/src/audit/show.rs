//! An entry as one caller sees it.

use super::model::{AuditEvent, Record};
use provost_kernel::fence::{Reader, Readers};
use provost_kernel::{OperationContext, Result};

/// An entry, and whether it says who did what to whom.
pub(super) struct VisibleEntry {
    pub event: AuditEvent,
    /// Its actor and target are for the caller: a filter may find the entry by them (FE-2).
    pub names: bool,
}

/// Returns an entry without what is not for the reader.
///
/// Both the act and the record that it was about decide: ending the sessions of a user is an entry about a user, and
/// its details are those of sessions.
pub(super) fn show(
    ctx: &mut OperationContext<'_>,
    reader: &mut Reader<'_>,
    record: &Record,
) -> Result<VisibleEntry> {
    let event = AuditEvent::of(record)?;
    if reader.oversees() {
        return Ok(VisibleEntry { event, names: true });
    }
    let fences = &ctx.services().fences;
    let target = event.target();
    let (kind, id) = (target.map(|(kind, _)| kind), target.map(|(_, id)| id));
    let act = event
        .action()
        .map_or(Readers::Overseers, |action| fences.act(action));
    let about = kind.map_or(Readers::Everybody, |kind| fences.target(kind));
    let mut tx = ctx.tx();
    let names = reader.admits(&mut tx, act, id)? && reader.admits(&mut tx, about, id)?;
    let event = if names {
        event.without_changes(|path| !matches!(fences.member(path), Readers::Everybody))
    } else {
        event.withheld()
    };
    Ok(VisibleEntry { event, names })
}
