//! A fetch that strangers may cause, kept out of the inner network (SSRF).
//!
//! ```text
//! URL ── one reading ──► name ── resolved once ──► all addresses public or allowed ──► connected to one of these
//!                                                  else nothing is connected            TLS for the name
//! ```
//!
//! One exchange: no redirects, no proxy, no cookies, no connection that is used again, and no second resolution that
//! could answer differently. What comes back is JSON, small, and in time, or nothing.

mod exchange;
mod fetch;
mod freshness;
mod network;
mod resolve;

pub use fetch::{FetchRefusal, FetchedDocument, Fetcher, Limits, Options};
pub use network::{Network, is_public};
pub use resolve::{Resolve, System};
