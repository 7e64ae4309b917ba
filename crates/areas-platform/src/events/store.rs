//! All SQL of the area; the table is the kernel's.

use super::model::{Data, Epoch, EpochId, Event, Feed};
use provost_kernel::{Error, OperationContext, Result, params};

provost_kernel::statements! {
    /// Lists events after a sequence, in order.
    AFTER = "SELECT sequence, id, type, time, data FROM outbox WHERE organization_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3";
    /// How many events of an organization there ever were.
    COUNTER = "SELECT event_sequence FROM chain_heads WHERE organization_id = ?1";
    /// Where the numbering began anew, in order.
    EPOCHS = "SELECT ordinal, epoch, begins_after FROM event_epochs WHERE organization_id = ?1 ORDER BY ordinal";
    /// Begins an epoch.
    BEGIN = "INSERT INTO event_epochs (organization_id, ordinal, epoch, begins_after, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
}

/// Returns how far the organization's events go, and where their numbering began anew.
pub(super) fn feed(ctx: &mut OperationContext<'_>) -> Result<Feed> {
    let org = ctx.org();
    let counter = ctx.query_opt(&COUNTER, params![org], |row| row.get(0))?;
    let epochs = ctx.query(&EPOCHS, params![org], |row| {
        Ok(Epoch {
            id: EpochId::from_store(row.get(1)?),
            begins_after: row.get(2)?,
        })
    })?;
    Ok(Feed {
        counter: counter.unwrap_or(0),
        epochs,
    })
}

/// Begins an epoch behind the events that there are.
pub(super) fn begin(ctx: &mut OperationContext<'_>) -> Result<()> {
    let feed = feed(ctx)?;
    let ordinal = feed.epochs.len().saturating_add(1);
    let ordinal = i64::try_from(ordinal).map_err(Error::internal)?;
    let (org, now, epoch) = (ctx.org(), ctx.now(), ctx.new_id::<EpochId>());
    ctx.queue(&BEGIN, params![org, ordinal, epoch.as_str(), feed.counter, now])
}

/// Returns at most `limit` events after a sequence, each with its own.
pub(super) fn after(ctx: &mut OperationContext<'_>, sequence: i64, limit: i64) -> Result<Vec<(i64, Event)>> {
    let org = ctx.org();
    ctx.query(&AFTER, params![org, sequence, limit], |row| {
        let sequence = row.get(0)?;
        let data = Data::of(row.str(4)?, sequence)?;
        Ok((
            sequence,
            Event {
                id: row.get(1)?,
                kind: row.get(2)?,
                timestamp: row.get(3)?,
                data,
                withheld: false,
            },
        ))
    })
}
