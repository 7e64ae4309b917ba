//! Signing in with a browser: the authorization code flow of a program on a person's own computer (RFC 8252, ADR 0112).
//!
//! ```text
//! metadata ─► listen on 127.0.0.1 ─► browser: sign in, allow ─► code ─► tokens ─► whose are they? ─► profile
//! later:      the access token is about to end ─► lock of the profile file ─► read it anew ─► renewed by another? else renew
//! ```
//!
//! INVARIANT CL-8: what a sign-in gives goes to the server alone that was named: it calls itself as it was called, its pages lie
//! below that URL, and the answer in the browser comes from it, to this command, once.
//! INVARIANT CL-9: a sign-in is renewed by one process at a time, and whoever waited for it takes what it got.
//!
//! Absent on purpose: an answer that is pasted into the terminal, which people are led to paste elsewhere.

mod browser;
mod listener;
mod metadata;
mod renewal;
mod tokens;

pub(super) use browser::{Wish, sign_in};
pub(super) use metadata::Offer;
pub(super) use renewal::Renewal;
pub(super) use tokens::revoke;
