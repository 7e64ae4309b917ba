//! All SQL of the area; the table is the kernel's.

use super::model::{Data, Event};
use provost_kernel::{Cx, Result, params};

provost_kernel::statements! {
    /// Lists events after a sequence, in order.
    AFTER = "SELECT sequence, id, type, time, data FROM outbox WHERE organization_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3";
}

/// Returns at most `limit` events after a sequence, each with its own.
pub(super) fn after(cx: &mut Cx<'_>, sequence: i64, limit: i64) -> Result<Vec<(i64, Event)>> {
    let org = cx.org();
    cx.query(&AFTER, params![org, sequence, limit], |row| {
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
