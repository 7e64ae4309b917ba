//! How soon things end and how old others are, as figures: tokens, checkpoints of the audit logs, backups.
//!
//! The store is asked once a minute, not by whoever reads the figures.

use super::store::series;
use provost_areas_identity::service_accounts;
use provost_areas_platform::audit;
use provost_kernel::supervisor::Supervisor;
use provost_kernel::{Kernel, Result, Timestamp};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often the store is asked.
const EVERY: Duration = Duration::from_mins(1);

/// When it is asked first: behind a first start, which makes its organization meanwhile.
const FIRST: Duration = Duration::from_secs(2);

/// Starts to ask the store.
pub fn start(kernel: &Arc<Kernel>, supervisor: &Supervisor) {
    let (kernel, stop) = (kernel.clone(), supervisor.token());
    supervisor.spawn("metrics-ages", async move {
        let mut wait = FIRST;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            if let Err(error) = ask(&kernel).await {
                tracing::debug!(cause = error.private(), "the store tells no figures: {error}");
            }
            wait = EVERY;
        }
    });
}

async fn ask(kernel: &Kernel) -> Result<()> {
    let now = kernel.clock.now();
    let (tokens, unsigned) = kernel
        .read_system(move |tx| {
            let tokens = service_accounts::ending_tokens(tx, now)?;
            Ok((tokens, audit::oldest_unsigned(tx)?))
        })
        .await?;
    for (within, count) in [
        ("1d", tokens.within_a_day),
        ("7d", tokens.within_a_week),
        ("14d", tokens.within_two_weeks),
    ] {
        metrics::gauge!("provost_tokens_ending", "within" => within).set(count_of(count));
    }
    if let Some(end) = tokens.next_end {
        metrics::gauge!("provost_tokens_next_end_in_seconds").set(seconds_between(now, end));
    }
    let lag = unsigned.map_or(0.0, |oldest| seconds_between(oldest, now).max(0.0));
    metrics::gauge!("provost_checkpoint_lag_seconds").set(lag);
    Ok(())
}

/// Measures what lies beside the data, when somebody looks.
pub fn measure(data_dir: &Path, now: Timestamp) {
    if let Some(last) = series::last(data_dir) {
        metrics::gauge!("provost_backup_age_seconds").set(seconds_between(last, now));
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows are far below 2^52")]
fn count_of(rows: i64) -> f64 {
    rows as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds since 1970 fit into 52 bits for 140 000 years"
)]
fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    (to.as_ms() - from.as_ms()) as f64 / 1000.0
}
