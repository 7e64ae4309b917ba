//! OAuth: delegated access tokens, of this server's own making and of configured issuers, and what clients need to get
//! them (specification §5; decisions.md D2.6–D2.9).
//!
//! ```text
//! code      made → used | expired           used again: its session ends
//! refresh   live → superseded → gone        superseded and shown again: its session ends, apart from a retry's 30 s
//! client    active ⇄ blocked → deleted      blocked: its sessions end
//! ```
//!
//! Tokens stand for sessions (`mcp_sessions`): an access token is checked by its signature or by its issuer's word and
//! then judged by its session's row, which is read at every request.
//!
//! INVARIANT OC-1: a delegated token is accepted only from the issuer that its organization is pinned to, for the resource
//!   that was called, with the proof that it asks for.
//! INVARIANT OC-2: what an access token may do is never more than was asked for, than its client may, than its user's or
//!   account's role, and than the assertion behind it says.
//! INVARIANT OC-3: a code serves once; shown again, it ends the session that it began.
//! INVARIANT OC-4: a refresh token that was superseded ends its session, unless it is the one before the present one and
//!   was superseded less than 30 seconds ago.
//! INVARIANT OC-5: an assertion serves once at all servers of a store.
//! INVARIANT OC-6: no token, code, assertion, verifier or proof stands in a row, a log, an audit entry or an error.
//! INVARIANT OC-7: a subject is linked to a user by login name only on the word of an issuer that is authoritative for the
//!   user's directory and says that the address is verified.
//!
//! Absent on purpose: dynamic registration of clients (RFC 7591), client secrets, implicit and password grants, opaque
//! access tokens of our own, certificate-bound tokens (no client certificates here: such a token is refused).

pub mod grants;
mod store;

pub use store::STATEMENTS;
