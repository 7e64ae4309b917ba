#![forbid(unsafe_code)]
//! How other servers are asked: one setting of TLS, one client that keeps connections, and one fetch that strangers may cause and
//! that is kept out of the inner network (SSRF).
//!
//! ```text
//! URL ── one reading ──► name ── resolved once ──► all addresses public or allowed ──► connected to one of these
//!                                                  else nothing is connected            TLS for the name
//! ```
//!
//! The fetch is one exchange: no redirects, no proxy, no cookies, no connection that is used again, and no second resolution that
//! could answer differently. What comes back is JSON, small, and in time, or nothing.

mod address;
mod exchange;
mod fetch;
mod freshness;
mod network;
mod pool;
mod resolve;
mod tls;

pub use address::{Address, MAX_URL, WrongUrl, characters, is_same_url};
pub use fetch::{FetchRefusal, FetchedDocument, Fetcher, Limits, Options};
pub use network::{Network, is_public};
pub use pool::{Patience, Pool, ProxiedPool, pool, proxied_pool};
pub use resolve::{Resolve, System};
pub use tls::{NoRoots, client_config, roots_of_file, system_roots};
