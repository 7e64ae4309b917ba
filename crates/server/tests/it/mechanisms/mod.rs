//! What the kernel does for every area: units of work, time, repeats, input, limits and proofs.

mod bounded;
pub mod broken;
pub mod clock;
pub mod clock_doubt;
pub mod idempotency;
pub mod input;
pub mod jobs_shares;
pub mod later;
mod own_threads;
mod plans;
pub mod proofs;
pub mod readiness;
pub mod replay_cell;
pub mod said_again;
pub mod same_commit;
pub mod statements;
pub mod strangers;
pub mod throttled;
pub mod went_back;
pub mod writer;
