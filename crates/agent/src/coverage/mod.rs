//! What the agent keeps of whether clients are guarded: which conversations asked, what came of executions, and what was found last.
//!
//! ```text
//! desk ──► fired.json        a conversation asked its hook        ┐
//!          executed.json     the registered line was executed     ├──► coverage (crate hooks, pure) ──► coverage.json ──► the server
//! homes ──► names, times     a conversation was written           ┘
//! ```
//!
//! Nothing of a conversation is kept but a digest of its id, and nothing of it leaves the machine.

mod executed;
mod fired;
mod kept;
#[cfg(test)]
mod tests;

pub use executed::{Executions, Run};
pub use fired::{SharedFired, Silence};
pub use kept::{Basis, ClientCoverage, Gap, KeptCoverage, kept_coverage};
