//! The decision engine: policy definitions, their condition language, its compiler and evaluators, Rego.
//!
//! ```text
//!   JSON ─► Definition ─┐                                   ┌─► row:     one event against what can match it
//!                       ├─► PolicySet (compiled, digested) ─┤
//!   events ─► Symbols ──┘                                   └─► columns: batches of 4096 against everything
//! ```
//!
//! Everything here is a function of its arguments: the same definitions and events give the same decisions on
//! every machine, today and in a replay.
//!
//! Absent on purpose: input and output, clocks, threads, a database, HTTP, and looking names up: who means whom says a
//! `Register` that comes with the events.

mod action;
mod catalogue;
mod condition;
pub mod contract;
mod definition;
mod eval;
mod event;
mod family;
mod follow;
pub mod language;
mod matching;
mod naming;
mod occasions;
mod projection;
mod read;
mod register;
#[cfg(feature = "rego")]
pub mod rego;
#[cfg(not(feature = "rego"))]
#[path = "without_rego.rs"]
pub mod rego;
mod set;
mod symbols;
mod truth;
mod violation;

pub use action::Action;
pub use catalogue::{Field, FieldType};
pub use condition::{
    CHILD_LIMIT, COUNT_LIMIT, DEPTH_LIMIT, NODE_LIMIT, PATTERN_LIMIT_BYTES, WITHIN_LIMIT_MS, pattern,
};
pub use definition::{Acl, Advice, Definition, Reference, SCOPE_LISTS, Scope, Transform};
pub use eval::{
    Ahead, BATCH_ROWS, Batch, BatchFault, Comparison, EventWindow, FailureCause, Pair, Scan, SubjectStates,
    Tally,
};
pub use event::{Event, LostPath, Value};
pub use family::{Family, Occasion};
pub use follow::{Follow, follow};
pub use matching::{MATCH_KEY_VERSION, match_beginning, match_key};
pub use naming::{SentAttributes, check_sent, sent_words, without_missing};
pub use occasions::Sender;
pub use projection::Projection;
pub use provost_words::digest::{INEXACT, canonical, document_sha256, exact_text, sha256_hex};
pub use provost_words::document::exact_document;
pub use provost_words::free_text::free_text;
pub(crate) use provost_words::{digest, document};
pub use register::{NamedRecord, Record, Register, claim, claimed, name_key};
pub use set::{DuplicatePolicy, Explanation, Finding, Outcome, Part, PolicySet, Reason, set_digest};
pub use symbols::{SetSymbol, Symbol, Symbols};
pub use truth::Truth;
pub use violation::{VIOLATIONS_KEPT, Violation, Violations};
