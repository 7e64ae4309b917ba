#![forbid(unsafe_code)]
//! The operations of Provost as tools of the Model Context Protocol, at `/mcp`.
//!
//! `rmcp` knows the protocol: its revisions, which header says what, which method belongs to which revision. This
//! crate knows who calls, what they may see, and how a tool becomes a call of the kernel's `dispatch`, which judges
//! rights, keys and audit as for every other request. Both lifecycles are served, the one with `initialize`
//! (2025-11-25 and older) and the one where every request stands for itself (2026-07-28).
//!
//! ```text
//! request ─► Host, Origin ─► who calls (401) ─► method, size, JSON ─► session, selection ─► rmcp ─► handler ─► dispatch
//!             guard           kernel: identify    endpoint, message     session, selection   express   handler    call, answer
//! ```
//!
//! INVARIANT ME-1: every HTTP request is authenticated by itself, `initialize` too, before anything is said about its
//! content; a token that was revoked is refused with 401 from the next request on, also between a request's
//! authentication and its call.
//! INVARIANT ME-2: a tool that the caller may not call is not listed, and a call of it is answered with the same
//! bytes as a call of a tool that does not exist.
//! INVARIANT ME-3: what nothing can undo is called with `confirm: true` in the call's own arguments, or not at all.
//! INVARIANT ME-4: a transport session holds the client's name for itself and nothing else, is bound to the actor
//! that opened it, and grants nothing: without one every request is answered alike.
//! INVARIANT ME-5: a request from a host or an origin that was not allowed is refused before all else.
//!
//! Absent on purpose: state between requests (a revocation could miss it), streams from the server (nothing is
//! announced, so GET is 405), elicitation and sampling (a server that asks back for a confirmation would take it from
//! the model), the organization as an argument.

mod answer;
mod call;
mod catalogue;
mod client;
mod content;
mod endpoint;
mod explain;
mod fast_path;
mod guard;
mod handler;
mod media;
mod message;
mod selection;
mod session;
mod splice;
mod whole;

pub use content::{Argument, Document, Prompt, Text};
pub use endpoint::service;
pub use guard::Guard;

/// What the server says of itself, and what it offers beside the operations.
pub struct Options {
    /// Hosts that a request may name, as `host` or `host:port`; a host without a port stands for all of its ports.
    /// Without any, every request is refused.
    pub allowed_hosts: Vec<String>,
    /// Origins of browsers that may call, as `scheme://host[:port]`. A request without `Origin` is no browser's.
    pub allowed_origins: Vec<String>,
    /// Texts that can be read.
    pub documents: Vec<Document>,
    /// Questions that people start from.
    pub prompts: Vec<Prompt>,
    /// The server's name.
    pub server_name: String,
    /// The server's name for people.
    pub server_title: String,
    /// The version of the program.
    pub server_version: String,
    /// What a model should know before it begins.
    pub instructions: String,
    /// The tools that the word `default`, and no selection, stand for; all there are if it is none.
    pub default_tools: &'static [&'static str],
}
