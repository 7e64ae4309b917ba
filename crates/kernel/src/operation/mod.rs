//! The only way to expose behaviour: an operation, declared once.
//!
//! From one `impl Operation` derive the HTTP route, the OpenAPI document, the MCP tool, the CLI command,
//! authorization, idempotency, audit and the rate class. An operation is a synchronous function over a
//! transaction; it may run more than once and must draw time, ids and randomness from [`crate::OperationContext`] alone.
//!
//! INVARIANT OP-1: an operation without an access rule does not compile ([`Draft::access`]). Proof: the compiler,
//! since only `Draft::access` and `Draft::rule` make a `Meta`.

mod authorize;
mod entry;
mod meta;
mod second_person;
#[cfg(test)]
mod tests;

pub use crate::answer::Answer;
pub use crate::manager::Manager;
pub use authorize::{authorize, authorize_performance, may_call};
pub(crate) use entry::unconfirmed;
pub use entry::{BoundCall, Content, Empty, Entry, Input, NoContent, Operation, Raw, Registry};
pub use meta::{
    Access, BodyLimit, Consent, Consumes, Draft, IN_QUERY, Kind, Meta, Method, Performance, Precondition,
    RateClass,
};
pub use second_person::{PARAMETERS, SaidOfSecondPerson, SecondPerson};
