#![forbid(unsafe_code)]
//! The agent: a machine that enrols as a device, says that it is there, and reports what it finds.
//!
//! ```text
//! enrolment token ──► enrol ──► device.json, device.key, token        in a folder of its owner alone
//!                                   │
//!                     run ──────────┴──► heartbeat ──► scan if due ──► queue ──► server ──► sent/
//! ```
//!
//! Who calls brings the way to the server ([`Door`]), so that there is one reading of addresses, proxies and certificates in the
//! program. Everything waits in one place and in one order: there is no second task that could ask as well.
//!
//! INVARIANT AG-1: the agent asks one server, the one that it enrolled at, and starts no program but itself: by the line of the hook that a
//! client's settings register, where that is to the letter what an installation writes, four times a day at most. Proof: in part.
//! INVARIANT AG-2: the key of a device is on the disk before it is used, is never sent, and gives way to no other key before the server
//! knows that one; an enrolment that failed or whose answer was lost is repeated with it.
//! INVARIANT AG-3: what waits to be sent is removed when the server has it and not before, whenever the process ends; what is torn is
//! set aside and not sent. Proof: in part.
//! INVARIANT AG-4: files of the agent are read and written only in a folder that belongs to the account of the process and that nobody
//! else can read, and only where they are files of that account as well, never through a link.
//!
//! Not there yet: scans in the mode `system`.
//!
//! Absent on purpose: a shell, scripts, retrieval of files, screens, places, lists of processes, for ever; HTTP, profiles, the
//! environment, which belong to who calls.

mod caller;
mod commands;
mod counter;
pub mod coverage;
pub mod desk;
mod device;
mod doctor;
mod door;
mod enrol;
mod folder;
mod heartbeat;
mod key;
mod machine;
mod mark;
mod mdm;
mod pace;
mod privacy;
mod quarantine;
mod queue;
mod renewal;
mod report;
mod rotation;
mod run;
mod sent;
mod state;
mod station;
mod succession;
#[cfg(test)]
mod tests;
mod token;
mod trouble;
mod units;
mod upload;

/// What an agent of the machine does not do.
pub const NO_SCANS: &str = "the agent of the machine says that it is there and scans no homes: root would read what a person's files and \
                            links name; people enrol agents of their own for that: provost agent enrol";

pub use device::{Agent, DeviceFile, Mode};
pub use doctor::{Finding, examine, examine_server};
pub use door::{Call, Door, Reply};
pub use enrol::{Enrolment, enrol, may_enrol};
pub use folder::Folder;
pub use machine::host_name;
pub use mdm::{Mdm, artefact};
pub use privacy::{Privacy, PrivacyChange};
pub use quarantine::{KeptQuarantine, Quarantine, QuarantineWord, keep_quarantine, kept_quarantine};
pub use report::report;
pub use rotation::rotate_now;
pub use run::{Loop, Once, once, run};
pub use sent::{Telling, Upload, forget_decisions, has_waiting_decisions, keep_coverage, rules, uploads};
pub use state::{KilledScan, State};
pub use station::{Station, Visit, Visited};
pub use trouble::{ANEW, Cause, Trouble};
pub use units::{Duties, Unit, unit};
pub use upload::queue_scan;
