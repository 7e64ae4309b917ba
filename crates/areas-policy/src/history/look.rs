//! One look at the history for whoever lists events: what fits, and where the next look goes on.

use super::model::{DAY_MS, instant_of_place, place_of_instant};
use super::page::{self, Filters, ListedEvent, PageRequest};
use super::view::UnreadableView;
use super::{retention_days, store};
use provost_kernel::error::Error;
use provost_kernel::page::{Cursor, Limit};
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};

/// The end of the year 9999, which no instant of an event lies behind.
const LAST_MS: i64 = 253_402_300_799_999;

/// What is asked for.
pub(crate) struct Look<'a> {
    /// The operation, whose cursors are its own.
    pub operation: &'static str,
    pub filters: Filters,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub limit: Limit,
    pub cursor: Option<&'a Cursor>,
}

/// What was found.
pub(crate) struct Seen {
    /// Newest first.
    pub events: Vec<ListedEvent>,
    pub next_cursor: Option<Cursor>,
    /// Everything after this instant was looked at.
    pub scanned_to: String,
    pub unreadable: Option<Vec<UnreadableView>>,
}

/// Looks at the history of the caller's organization: the sources are those of the snapshot, and they are read afterwards.
///
/// Errors: `InvalidDefinition` for a time that ends before it begins, which no schema can say; `InvalidRequest` for a cursor of something else.
pub(crate) fn look(
    ctx: &mut OperationContext<'_>,
    asked: Look<'_>,
) -> Result<impl Future<Output = Result<Seen>> + Send + use<>> {
    let (org, operation) = (ctx.org(), asked.operation);
    let now = ctx.now();
    let oldest = now.as_ms() - retention_days(&mut ctx.tx(), org, now)? * DAY_MS;
    let from = asked.from.map_or(oldest, |from| from.as_ms().max(oldest)).max(0);
    // Also what was dated ahead, by a clock that was wrong.
    let to = asked.to.map_or(LAST_MS, Timestamp::as_ms).max(0);
    if asked.from.zip(asked.to).is_some_and(|(from, to)| from >= to) {
        return Err(Error::unfit("/query/from", "must be before to"));
    }
    let mut before = place_of_instant(to);
    if let Some(cursor) = asked.cursor {
        before = before.min(cursor.open_wide(&ctx.services().keys, org, operation)?);
    }
    let wanted = PageRequest {
        filters: asked.filters,
        from,
        before,
        limit: usize::try_from(asked.limit.get()).unwrap_or(1),
    };
    let last = instant_of_place(before).saturating_add(1);
    let rows = if from < last {
        store::sources(&mut ctx.tx(), org, from, last)?
    } else {
        Vec::new()
    };
    let (kernel, organization) = (Kernel::behind(ctx.services())?, ctx.organization().clone());
    Ok(async move {
        let shared = kernel.clone();
        let org = organization.clone();
        let read = kernel.blocking(move || page::read(&shared, org.as_str(), rows, &wanted));
        let page = read.await??;
        let keys = &kernel.keys;
        let scanned = page.next.map_or(from, |place| instant_of_place(place).max(from));
        Ok(Seen {
            events: page.events,
            next_cursor: page
                .next
                .map(|place| Cursor::issue_wide(keys, organization.as_str(), operation, place)),
            scanned_to: Timestamp::from_ms(scanned).to_rfc3339(),
            unreadable: Some(page.unreadable.into_iter().map(Into::into).collect())
                .filter(|parts: &Vec<UnreadableView>| !parts.is_empty()),
        })
    })
}
