//! Two ways to decide, which always agree.
//!
//! `Row` asks the rules that can match one event, stops a condition as soon as its answer is certain, and is what a
//! live decision uses. `Scan` walks batches of up to 4096 events column by column, works on sets of rows as bits,
//! and is what a replay uses. What a predicate means, and what is remembered of the past, is written once for both.
//!
//! INVARIANT DE-1: row by row and column by column give the same decision for every event, and the same counts.

mod ahead;
mod batch;
mod check;
mod failures;
mod mask;
mod name;
mod pair;
mod past;
mod row;
mod scan;
mod spread;
mod subject_states;
mod tally;
mod tracker;

pub use ahead::Ahead;
pub(crate) use ahead::ahead;
pub use batch::{BATCH_ROWS, Batch, BatchFault};
pub use failures::FailureCause;
pub(crate) use name::NameChoice;
pub use pair::Pair;
pub use past::EventWindow;
pub(crate) use row::{ModuleCalls, Row};
pub use scan::Scan;
pub use subject_states::SubjectStates;
pub use tally::{Comparison, Tally};
