//! MCP sessions: delegated grants of MCP clients (specification §2.1, §3, §4.1; D7).
//!
//! ```text
//! active → revoked     by somebody or something, before its time
//! active → expired     by its time; shown as revoked, with the reason `expired`
//! ```
//!
//! A session is one grant of one client for one actor. Tokens name it by the key of their grant; what they may do is read
//! from it and from its user or account at every request ([`LOOKUP`]). A service account that comes to the MCP endpoint
//! with its own token has a session for each token and client (D7.11).
//!
//! INVARIANT MS-1: a session's id holds the instant of its issue, so the order of numbers is that of `issuedAt`,
//! `id`.
//! INVARIANT MS-2: a session is active, revoked or expired at every instant, and never active again.
//! INVARIANT MS-3: a list gives the sessions of the filter at the instant of the request, in the order of `issuedAt`,
//! `id`, and each exactly once.
//! Keeps MS-4.
//! INVARIANT MS-5: a token of which one session was revoked, for whatever but the disabling of its account, comes to
//! the MCP endpoint under no client's name.
//! INVARIANT MS-6: a session acts iff it has not ended and everybody that it acts for is there and active, all read
//! in one snapshot.
//! INVARIANT MS-7: of one user or account no more than 2 000 sessions begin within a day.
//! INVARIANT MS-8: a session that ended is not opened again under its issuer's name, also when it is forgotten.
//! INVARIANT MS-9: a total is counted from the sessions themselves, exactly up to what the answer promises, and an
//! answer whose total is not exact says so.
//!
//! Absent on purpose: transport sessions (D7.1); undoing a revocation; tokens, of which no row here holds anything.

mod credential;
mod end;
mod ends;
pub mod fences;
mod find;
mod get;
mod list;
mod maintenance;
mod model;
mod open;
mod revoke;
mod revoke_many;
mod store;
mod view;

pub use credential::{LOOKUP, credential};
pub use end::{end, end_all_of_client, end_all_of_service_account, end_all_of_user, end_every};
pub use maintenance::{retain, sweep};
pub use model::{
    ABSOLUTE_SECS, IDLE_SECS, LASTING_GRANT, NewSession, Session, SessionActor, SessionId, TRUST_CHANGED,
    searched, seq,
};
pub use open::{
    admit_at_mcp, descend, extend, has_ended_under, open, open_at_mcp, standing, take_over, widen,
};
pub use store::touch;

use provost_kernel::announcement::Subscriber;
use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 10,
        name: "mcp",
        says: "Sessions of remote MCP clients, and the clients themselves.",
        title: "MCP sessions and clients",
        holds: "sessions and clients of MCP",
    }],
    scopes: &[
        scope("mcp:read"),
        scope("mcp:write").lasting(),
        scope("mcp:revoke").says("End sessions of other people and programs"),
    ],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0011_mcp_sessions", "0027_session_lists"],
    statements: &[store::STATEMENTS, find::STATEMENTS, credential::STATEMENTS],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    records: &[
        ("mcp_session_actor_parts", "an index of texts"),
        ("mcp_session_actors", "names for lists"),
        ("mcp_session_clients", "names for lists"),
        ("mcp_session_parts", "an index of texts"),
    ],
    jobs: || vec![end::HANDLER],
    timers: &[
        every(30, "sessions", |kernel, _| {
            Box::pin(async move { sweep(&kernel).await.map(drop) })
        }),
        every(300, "session-retention", |kernel, _| {
            Box::pin(async move { retain(&kernel).await.map(drop) })
        }),
    ],
    check: Check::Nothing("its lists are read from its rows and counted nowhere else"),
    on: &[
        &Subscriber(end::principal_ended),
        &Subscriber(end::principal_renamed),
        &Subscriber(end::token_revoked),
        &Subscriber(end::token_superseded),
        &Subscriber(open::account_rotates_itself),
    ],
    restore: Some(end_every),
    guides: &[provost_kernel::guide!("mcp-sessions", "Sessions of MCP clients")],
    floor: 3,
    ..Area::named("mcp_sessions", "Sessions of MCP clients: delegated grants")
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListMcpSessions>(),
        Entry::of::<get::GetMcpSession>(),
        Entry::of::<revoke::RevokeMcpSession>(),
        Entry::of::<revoke_many::RevokeMcpSessions>(),
    ]
}
