#![forbid(unsafe_code)]
//! What agents' clients say to their hooks and hear from them: bytes of a client become events that policies judge, and what was
//! decided becomes the bytes, the exit code and the words that this client obeys.
//!
//! ```text
//! client ── JSON on stdin ──► hear ──► events ──► (somebody decides) ──► Decision ──► answer ──► stdout, stderr, exit code
//! ```
//!
//! Clients let a call run when their hook fails, each in a way of its own (`measured` holds what which version did with which answer and
//! failure, and a task asks them again): so an answer is one JSON object or nothing, a refusal without JSON is exit code 2 **with** words on standard error, and
//! what a client cannot express becomes stronger.
//!
//! INVARIANT HK-1: no answer gives a permission: the client's own prompts stay.
//! INVARIANT HK-2: who enforces and has no decision refuses: exit code 2 with words, or a result that is withheld.
//! INVARIANT HK-3: no answer is weaker than what was decided; one that had to be stronger says so.
//! INVARIANT HK-4: standard output is one JSON object or nothing.
//! INVARIANT HK-5: what a client does not say, says in another type, or says too long is missing, never absent.
//! INVARIANT HK-8: what somebody knows of the server of a call fills what is missing in its events, and replaces nothing that the client
//! said.
//! INVARIANT HK-9: each answer has a form that every version of its client of which something is kept in `measured` was seen to obey, and each of
//! them refuses where the end of a registered line does.
//!
//! Absent on purpose: input and output, HTTP, a clock, the environment. An agent on the machine uses the same functions.

mod answer;
mod client;
mod coverage;
mod decision;
mod effect;
mod payload;
mod question;
mod registration;
#[cfg(test)]
mod tests;

pub use answer::{Answer, answer, let_pass, undecided};
pub use client::{Client, Mode};
pub use coverage::{
    Coverage, Evidence, Execution, GAPS, Gap, Level, ProgramStanding, Reason, SessionsSeen, Signs, System,
    coverage, first_version, home_of_session, is_part_of_session, session_key, session_of_file,
};
pub use decision::{Action, Basis, Decision};
pub use effect::{Effect, EverySettings, SettingsFound, Whose, changed, effect, program_of, switches_off};
pub use payload::{Conversation, session_of};
pub use question::{CalledServer, KnownServer, Message, Moment, Question, SaidServer, UnreadableEvent, hear};
pub use registration::{
    CLIENT_SECONDS, Conflict, Registration, UNDECIDED, command_line, found, hooks, merged, merged_text,
    removed, removed_text,
};
