//! Rounds that would remove much wait: a clock, or a setting, that is wrong must not take most of what is kept at one stroke.
//!
//! A round is large when it would remove more than a tenth and more than a thousand rows of a kind that is kept for longer
//! than a day. It waits for 24 hours of running time, or until an operator releases it with `provost store accept --removals`.
//!
//! INVARIANT CK-4: no round removes more than a tenth and more than a thousand rows of history, events or idempotency
//! records that did not wait for a day of running time and were not released; what a confirmed shorter retention
//! takes is released.
//!
//! Absent on purpose: the audit log, from which nothing is removed; codes and checks, which live for less than a day.

use crate::store::{SET_FACT, drop_fact, fact, set_fact};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Statement, Tx};
use provost_kernel::{Kernel, OperationContext, Result, SureTime, params};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

provost_kernel::statements! {
    /// The rounds that wait or are released.
    WAITING = "SELECT name, value FROM installation WHERE name LIKE 'removal.%' ORDER BY name";
}

/// A round removes so much without waiting. Units: rows.
const MANY: i64 = 1_000;
/// A round removes such a part without waiting: one in ten.
const PART: i64 = 10;
/// How long a large round waits. Units: milliseconds of running time.
const PATIENCE_MS: i64 = 24 * 3_600_000;
/// Rounds further apart than this are not one running time: nobody ran between them. Units: milliseconds.
const ROUND_MS: i64 = 2 * 300_000;

const RELEASED: &str = "released";

/// How much a round would remove, and how much it would leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Rows that would go.
    pub due: i64,
    /// Rows that would stay, or so many that the round is small.
    pub left: i64,
}

impl Removal {
    /// Counts with a statement for what goes and one for what stays; neither looks at more than it must.
    pub fn count(
        tx: &mut Tx<'_>,
        due: &'static Statement,
        left: &'static Statement,
        before: SureTime,
    ) -> Result<Self> {
        let before = before.instant();
        let due = tx
            .query_opt(due, params![before], |row| row.get::<i64>(0))?
            .unwrap_or(0);
        if due <= MANY {
            return Ok(Self { due, left: due });
        }
        let enough = due.saturating_mul(PART - 1);
        let left = tx.query_opt(left, params![before, enough], |row| row.get::<i64>(0))?;
        Ok(Self {
            due,
            left: left.unwrap_or(0),
        })
    }

    fn is_large(self) -> bool {
        self.due > MANY && self.left < self.due.saturating_mul(PART - 1)
    }
}

/// What is said of a large round that does not act yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    waited_ms: i64,
    seen_at: i64,
}

impl Wait {
    fn parse(text: &str) -> Option<Self> {
        let (waited, seen) = text.split_once(' ')?;
        Some(Self {
            waited_ms: waited.parse().ok()?,
            seen_at: seen.parse().ok()?,
        })
    }

    /// Returns the wait after one more round. Servers that go round at once count the same time once.
    fn after(self, now_ms: i64) -> Self {
        let passed = now_ms.saturating_sub(self.seen_at);
        let ran = if (0..=ROUND_MS).contains(&passed) {
            passed
        } else {
            0
        };
        Self {
            waited_ms: self.waited_ms.saturating_add(ran),
            seen_at: self.seen_at.max(now_ms),
        }
    }
}

/// Says whether a round may remove what it would: a small one always, a large one when it has waited or was released. `name`
/// is that of what it removes from.
///
/// Errors: those of a unit of work.
pub async fn may_go(kernel: &Arc<Kernel>, name: String, removal: Removal, now: SureTime) -> Result<bool> {
    let name = format!("removal.{name}");
    let known = {
        let name = name.clone();
        kernel.read_system(move |tx| fact(tx, &name)).await?
    };
    if !removal.is_large() && known.is_none() {
        return Ok(true);
    }
    let goes = Arc::new(AtomicBool::new(false));
    let (sink, of) = (goes.clone(), name.clone());
    let decide = move |ctx: &mut OperationContext<'_>| {
        let known = fact(&mut ctx.tx(), &of)?;
        let now_ms = now.instant().as_ms();
        if !removal.is_large() {
            sink.store(true, Ordering::SeqCst);
            return drop_fact(ctx, &of);
        }
        if known.as_deref() == Some(RELEASED) {
            sink.store(true, Ordering::SeqCst);
            return Ok(());
        }
        let begun = Wait {
            waited_ms: 0,
            seen_at: now_ms,
        };
        let wait = known
            .as_deref()
            .and_then(Wait::parse)
            .unwrap_or(begun)
            .after(now_ms);
        sink.store(wait.waited_ms >= PATIENCE_MS, Ordering::SeqCst);
        set_fact(ctx, &of, &format!("{} {}", wait.waited_ms, wait.seen_at))
    };
    kernel
        .system(OrganizationId::installation(), None, decide)
        .await?;
    let goes = goes.load(Ordering::SeqCst);
    metrics::gauge!("provost_removal_waits", "of" => name.clone()).set(f64::from(u8::from(!goes)));
    if !goes && known.is_none() {
        tracing::error!(
            "{} rows are due to be removed from {name}, more than a tenth: they wait for 24 hours of running time. See that clock \
             and retention are right; `provost store accept --removals` lets them go at once",
            removal.due
        );
    }
    Ok(goes)
}

/// Releases every round that waits, and returns their names.
pub fn release(ctx: &mut OperationContext<'_>) -> Result<Vec<String>> {
    let waiting: Vec<(String, String)> =
        ctx.query(&WAITING, params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut released = Vec::new();
    for (name, said) in waiting {
        if said != RELEASED {
            ctx.queue(&SET_FACT, params![name.as_str(), RELEASED])?;
            released.push(name);
        }
    }
    Ok(released)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CK-4.
    #[test]
    fn a_round_is_large_above_a_thousand_rows_and_a_tenth() {
        for (due, left, is_large) in [
            (1_000, 0, false),
            (1_001, 0, true),
            (1_001, 9_008, true),
            (1_001, 9_009, false),
            (0, 0, false),
            (i64::MAX, 5, true),
        ] {
            assert_eq!(Removal { due, left }.is_large(), is_large, "{due} {left}");
        }
    }

    #[test]
    fn only_running_time_is_waited() {
        let begun = Wait {
            waited_ms: 0,
            seen_at: 1_000_000,
        };
        let next = begun.after(1_300_000);
        assert_eq!(next.waited_ms, 300_000);
        // A second server in the same moment, a clock that went back, and a stop add nothing.
        for now in [1_300_000, 1_000_000, 1_300_000 + ROUND_MS + 1] {
            assert_eq!(next.after(now).waited_ms, 300_000, "{now}");
        }
        assert_eq!(next.after(1_300_000 + ROUND_MS).waited_ms, 300_000 + ROUND_MS);
        assert_eq!(Wait::parse("300000 1300000"), Some(next));
        assert_eq!(Wait::parse(RELEASED), None);
    }
}
