//! The desk: where hooks of this machine ask the agent instead of the server.
//!
//! ```text
//! provost hook run ──► agent.sock ──► who asks, by the kernel ──► Judge of the bundle ──► plain: counted, and it passes
//!        ▲                                                          ├── a finding: recorded in the chain, and told
//!        └─── Told ◄────────────────────────────────────────────────┴── anything else: "ask the server", with what holds until then
//! ```
//!
//! A hook believes the agent of whoever wrote its registration and no other one: where root's `/etc/provost/hook.toml` registers it,
//! that is root's agent, at a fixed path.
//!
//! INVARIANT LJ-4: who asks is what the kernel says of the process, and the word of the user what the registration says; nothing that a
//! client or its environment says names anybody.
//! INVARIANT LJ-5: a bundle that is expired, young by a clock that was set back, of another device, older, unreadable or of a device that
//! is retired lets nothing pass; an expired one still refuses what it blocks.
//! INVARIANT LJ-6: an account has a share of the desk, which takes from itself before it takes from others; nothing is read that is
//! longer than it may be, and nobody is waited for.
//! INVARIANT LJ-7: what is judged here without asking is counted or recorded before it is answered, and what cannot be recorded is asked
//! about; the log is a chain that a kill cuts at its end alone. Proof: in part.
//! INVARIANT LJ-13: on a machine that the server held apart with `block` no call passes a hook that enforces, whether its agent is there or
//! not; what lies there in the place of the mark and cannot be read counts as that; an answer to a heartbeat takes it back, and nothing else.
//! INVARIANT LJ-10: what is damaged in the log is kept aside and never removed, and the server is told how much it is.
//! INVARIANT LJ-11: which server of MCP a call is for is said by the configuration of its client as it is at the call, and by nothing
//! that was looked at before and may be another one since; where it cannot be said for certain, it is missing.
//!
//! Absent on purpose: a port on the network; programs that say who an account is; what a client says of its user.

mod account;
mod bench;
mod chain;
mod ended;
mod frame;
mod latest;
mod line;
mod log;
mod place;
mod serve;
mod servers;
mod store;
#[cfg(test)]
mod tests;
mod upload;

pub use account::{account_of, home_of};
pub use bench::{Bench, Here, Registered, Said, Standing, Told, ToldBypass, Word};
pub(crate) use ended::end_log;
pub use frame::{Asked, Intent, MOST_PAYLOAD, MOST_REPLY, NoQuestion, reply, reply_of};
pub(crate) use latest::LATEST;
pub use latest::{Latest, is_behind, keep_latest, latest};
#[cfg(test)]
pub(crate) use log::Log;
pub(crate) use log::waiting;
pub use log::{Backlog, backlog};
pub use place::{KeptMode, Place, guarded};
pub use serve::{Desk, Registrar};
pub use servers::ServerOfCall;
pub(crate) use store::{BUNDLE, FLOOR, JUDGING};
pub use store::{LastLook, floor, keep_bundle, keep_look, kept_bundle, last_look, take_bundle_away};
pub use upload::SharedLog;

use crate::coverage::SharedFired;
use crate::device::Agent;
use crate::report::key_of_commands;
use crate::trouble::Trouble;
use provost_words::time::Clock;
use servers::Servers;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What the agent stands by, which its desk and its loop share.
#[derive(Clone, Debug, Default)]
pub struct SharedStanding(Arc<Mutex<Standing>>);

impl SharedStanding {
    /// Changes it.
    pub fn change(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut serve::lock(&self.0));
    }

    /// Returns it as it is now.
    pub fn now(&self) -> Standing {
        serve::lock(&self.0).clone()
    }
}

impl Desk {
    /// Opens the desk of an agent at a place.
    ///
    /// Errors: folder, disk.
    pub fn of(
        agent: &Agent,
        place: Place,
        standing: &SharedStanding,
        (log, fired): (&SharedLog, &SharedFired),
        registrar: Box<dyn Registrar>,
        clock: Box<dyn Clock>,
    ) -> Result<Self, Trouble> {
        Self::open(serve::Work {
            place,
            server: agent.device.server.clone(),
            organization: agent.device.organization.clone(),
            standing: standing.0.clone(),
            log: log.0.clone(),
            fired: fired.clone(),
            servers: Servers::new(Path::new("/"), key_of_commands(&agent.folder)?),
            registrar,
            clock,
        })
    }
}
