#![forbid(unsafe_code)]
//! What a scan of a machine finds: which AI clients are configured there, with which MCP servers, skills, hooks and settings, and in
//! which of their files credentials lie.
//!
//! ```text
//! readers (data) ──► Disk (bounded, behind a fence) ──► syntax ──┬─► servers, settings, skills, credentials ──► Scan ──► report
//!                                                               └─► servers of one client now ──► Live ──► which one a call is for
//! ```
//!
//! INVARIANT IV-1: a scan reads; it starts no program, opens no connection, opens nothing but regular files and folders, and touches none
//! that the kernel's list says to lie on another machine. Proof: in part.
//! INVARIANT IV-2: no value leaves: of environments, headers, arguments, addresses and credentials a report holds names, kinds and
//! fingerprints under the caller's key; what looks like a credential is not shown as a name either, and a digest without a key is of a file
//! of the home, of a project or of the system's programs.
//! INVARIANT IV-3: a link is followed only to what lies behind the same fence: the home, a project that a client names, a folder above
//! these, or the root.
//! INVARIANT IV-4: what could not be read, and what is deeper or more than is read, is a fault of its section, and the section says that it
//! is not complete.
//! INVARIANT IV-6: what a call's server is said to be is what every configuration of its client that may be meant says alike, and none of
//! them weak or left out; where anything of that is not so, nothing is said. What was looked at before is taken again only where all
//! of it is as it was.
//! INVARIANT IV-7: for a denial an entry may be every address, package and image that it names, however that is written, and, where nobody can
//! read what it names, every one that it could be; what it is said to be is not changed by that.
//!
//! Absent on purpose: HTTP, clocks, the environment, a server. Who calls says when to stop.

mod address;
mod client;
mod credentials;
mod disk;
mod fingerprint;
pub mod foreign;
mod hide;
mod identity;
mod launch;
mod meant;
mod mounts;
mod packages;
mod readers;
mod report;
mod scan;
mod secrets;
mod seen;
mod server;
mod skills;
mod syntax;
#[cfg(test)]
mod tests;
pub mod traces;
pub mod wire;

pub use client::{Client, Platform};
pub use disk::Fault;
pub use fingerprint::InventoryKey;
pub use meant::{Doubt, Odd};
pub use report::{
    Observation, Pin, Place, Scan, Scope, Section, SectionFault, ServerFacts, Shape, Sighting, Transport,
};
pub use scan::{Called, Live, LiveServer, Machine, Reach, live, said, scan, scan_watched};
pub use secrets::holds_credential;
