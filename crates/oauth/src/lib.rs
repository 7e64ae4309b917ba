#![forbid(unsafe_code)]
//! OAuth 2.1 for a server that is resource server and authorization server: words, tokens, proofs. What is fetched
//! from others goes through `provost_outbound`.
//!
//! ```text
//! Authorization header ─► access_token::peek ─► issuer ─► access_token::verify ─► Claims
//! DPoP header ──────────► dpop::verify ─► Proof ─► dpop::Replays
//! token endpoint ───────► assertion · id_jag · subject_token · workload_token · pkce      refusals ─► error::TokenError
//! authorize endpoint ───► client_document · redirect · pkce
//! another server's URL ─► outbound::Fetcher ─► jwks::KeySet · client_document · introspection
//! ```
//!
//! Sources: RFC 6749, 7515, 7517, 7519, 7523, 7636, 7638, 7662, 8252, 8414, 8693, 8707, 8725, 9068, 9207, 9449, 9728;
//! the drafts `oauth-identity-assertion-authz-grant` and `oauth-client-id-metadata-document`; D2.1, D2.6 to D2.8.
//!
//! Invariants:
//! - OA-1: no claim is believed before the signature over exactly its bytes was verified with a key that the caller
//!   gave; nothing in a token names, carries or locates a key (a proof of possession excepted, whose key is its
//!   subject).
//! - OA-2: the kind of a key decides the algorithm; a token chooses only among those that its issuer allows.
//! - OA-3: a token has one reading: canonical base64url, JSON without repeated names, bounded depth and size.
//! - OA-4: a token serves one purpose: its type is checked, so that an identity token is no access token.
//! - OA-5: what is not understood and would narrow a token (`crit`, a confirmation of an unknown kind) refuses it.
//! - OA-7: a proof of possession is accepted once; memory that is full refuses, it never forgets early.
//!
//! Absent on purpose: clocks (every function takes `now`, seconds since the Unix epoch, UTC), randomness, storage,
//! HTTP routes, symmetric algorithms, encrypted tokens, `plain` challenges, client secrets, fetches (`provost_outbound`). The
//! crate `jsonwebtoken` is not used: it reads a clock of its own, rounds fractions of seconds, and leaves `typ`, `crit`
//! and repeated names to its caller; what remains is one call of aws-lc.

pub mod access_token;
pub mod assertion;
mod base64url;
mod claims;
pub mod client_document;
#[cfg(feature = "testing")]
pub mod corpus;
pub mod dpop;
pub mod error;
pub mod id_jag;
pub mod introspection;
pub mod json;
pub mod jwks;
pub mod jwt;
pub mod metadata;
pub mod pkce;
pub mod redirect;
pub mod sign;
pub mod subject_token;
pub mod workload_token;

pub use claims::{Claims, Confirmation, scopes, verified_email};
pub use error::{Refusal, TokenError};
pub use jwks::{Algorithm, KeySet};
pub use provost_outbound::is_same_url;
