//! Scenarios over the whole application, in process, on both engines.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod access;
mod answers;
mod areas;
mod areas_beside;
mod areas_graph;
mod catalog;
mod contract;
mod documents;
mod earlier;
mod fences;
mod fleet;
mod fuzz;
mod identity;
mod mechanisms;
mod notes;
mod openapi;
mod packaging;
mod permissions;
mod platform;
mod policy;
mod rights_graph;
mod samples;
mod schema_parity;
mod support;
mod torment;

use areas_beside::samples as beside;
use policy::approvals_people::signed_in as person;
