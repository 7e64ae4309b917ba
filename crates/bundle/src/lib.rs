#![forbid(unsafe_code)]
//! What a device judges by while it asks nobody: a signed bundle of an organization's policies, made small for one device, and the
//! verdicts that come of it (F4.6 to F4.8).
//!
//! ```text
//!   server   PolicySet, people ─► PolicyBundle::of ─► canonical bytes ─► signed envelope
//!   device   envelope ─► open ─► PolicyBundle ─► Judge ─► an event ─► Verdict, or Ask
//! ```
//!
//! What the device knows and what it does not is judged in three values: what it does not know is unknown, so that an answer that is
//! certain here is the server's whatever it knows more. Only where something unknown decides, the server is asked; where it
//! does not answer, what is unknown counts as matched with its policy's own action (DE-5).
//!
//! INVARIANT LJ-1: a verdict of a device is what the server says of the same event under the same policies and names; where it may not
//! be, the device says that the server has to be asked, and holds until then to no weaker action than the server's. Of a refusal by the standing
//! of a server (LJ-12) the refusal and the server are certain, and not which policies would have had a part in it.
//! INVARIANT LJ-2: a bundle is believed only where it is signed for this device of this organization and is no older than the newest
//! that the device has had.
//! INVARIANT LJ-3: a bundle names no user, and no group, but those of the device's own people; of policies that concern none of them
//! it says no more than where they judge and how strong they are.
//! INVARIANT LJ-12: no call passes of an MCP server that is denied, as far as who judges knows the server: where a key that is denied may be
//! meant, the call is refused, whatever the policies say; another spelling of it is asked about, and refused until there is an answer; a server
//! that nobody denied is refused by no standing.
//! INVARIANT LJ-14: of prompts, and of what tools are given and bring, a device writes and tells no byte that the signed bundle by which it
//! judges does not have it tell; what is left out is missing, and only events that have what the policies read are judged again.
//!
//! INVARIANT LJ-15: a bypass lets calls of its clients pass for no longer than it says, than a day after its bundle was made, and than that
//! bundle is in date, whatever a clock shows; on a machine that is not held apart, and each call once what policies say of it is recorded.
//!
//! What is judged without asking is in no server's history until the device sends it; a bundle says whether everything has to be sent
//! (`record_all`), and what is sent is a chain ([`entry_hash`]).
//!
//! Absent on purpose: input and output, clocks, modules of Rego (their policies are asked about), the past, grants of approvals (what
//! requires one is asked about: the server opens requests, and knows which call passes once).

mod chain;
mod document;
mod envelope;
mod event;
mod judge;
mod known;
mod people;
mod reduce;
mod told;
mod verdict;

pub use chain::{CHAIN_START, entry_hash};
pub use document::{
    BundleBypass, BundleGroup, BundleInputs, BundlePolicy, BundleServer, BundleTooLarge, BundleUser, FORMAT,
    HookMode, Hooks, OnUnknown, PAYLOAD_LIMIT, PolicyBundle, PolicySetVersion, Recording, SERVERS_LIMIT,
    ServerStanding, WhenWithheld, Withheld,
};
pub use envelope::{Addressee, Floor, Refusal, open, read};
pub use event::{AskedEvent, UnreadableEvent};
pub use judge::{Judge, Judgement};
pub use people::People;
pub use told::{ToldArguments, ToldContent, ToldPrompts};
pub use verdict::{Verdict, deciding, wants_somebody};
