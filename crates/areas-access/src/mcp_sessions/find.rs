//! Finds the sessions of a filter: one page, newest first, and how many there are in all.
//!
//! Exact filters lead to an index and read it in ranges: actor type, scope and toolset name *kinds*, of which an
//! organization has few, and each kind and state is a range. A substring names actors, clients and ids, each of which
//! stands in the store once, with an index of substrings over actors and over ids. How a page comes of that says
//! [`provost_kernel::listing`].
//!
//! Keeps MS-3: the statements leave nothing out that the filter means, and say nothing twice.
//! Keeps MS-9: what the store counts is what the list would show.

use super::model::{RevocationWatermark, Session, SessionId};
use super::store;
use super::store::{columns, sessions};
use super::view::StatusFilter;
use provost_kernel::id::TypedId;
use provost_kernel::listing::{self, Listing, Query, Ranges, as_text, fetched};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, Result, params, statements};
use std::collections::HashMap;

/// LIMIT: what the total of a list says exactly (D7.8).
pub const COUNTED: i64 = 1000;

/// The kinds that have the actor type `?7`, the scope `?8` and a scope of the toolset `?9`. The two come with a space
/// before them, as each of the scopes has it here. `REPLACE` compares exactly, which `LIKE` does not on SQLite.
macro_rules! named_kinds {
    () => {
        "WITH named AS MATERIALIZED (SELECT k.kind FROM mcp_session_kinds k WHERE k.organization_id = ?1 \
         AND (CAST(?7 AS TEXT) IS NULL OR k.actor_type = CAST(?7 AS TEXT)) \
         AND (CAST(?8 AS TEXT) IS NULL OR REPLACE(' ' || k.scopes || ' ', CAST(?8 AS TEXT), '') <> ' ' || k.scopes || ' ') \
         AND (CAST(?9 AS TEXT) IS NULL OR REPLACE(' ' || k.scopes || ' ', CAST(?9 AS TEXT), '') <> ' ' || k.scopes || ' ')) "
    };
}

/// The filters that an index passes over, each of them optional: client `?4`, account `?5`, kinds.
macro_rules! narrowed {
    () => {
        " AND (CAST(?4 AS TEXT) IS NULL OR s.mcp_client_id = CAST(?4 AS TEXT)) \
         AND (CAST(?5 AS TEXT) IS NULL OR s.service_account_id = CAST(?5 AS TEXT)) \
         AND ((CAST(?7 AS TEXT) IS NULL AND CAST(?8 AS TEXT) IS NULL AND CAST(?9 AS TEXT) IS NULL) OR s.kind IN (SELECT kind FROM named))"
    };
}

macro_rules! of_user {
    () => {
        " AND (CAST(?6 AS TEXT) IS NULL OR s.console_user_id = CAST(?6 AS TEXT))"
    };
}

/// What a session is at `?2`, whatever of it is written down yet, compared with the state `?3`.
macro_rules! of_state {
    () => {
        " AND (CAST(?3 AS BIGINT) IS NULL OR CASE WHEN s.state <> 0 THEN s.state \
         WHEN EXISTS (SELECT 1 FROM mcp_session_cuts c WHERE c.organization_id = s.organization_id \
         AND c.subject IN ('client:' || s.mcp_client_id, 'account:' || s.service_account_id, 'user:' || s.console_user_id) \
         AND c.cut_seq >= s.seq AND c.ended_at < s.expires_at) THEN 1 \
         WHEN s.expires_at <= ?2 THEN 2 ELSE 0 END = CAST(?3 AS BIGINT))"
    };
}

/// The newest `?10` behind the number `?11` of each range: of every state that is asked for, and of everything that `of`
/// names. With the expired ones comes what has run out and is not written down: it stands among the active ones, and is a
/// minute's worth. Its subquery has a limit so that PostgreSQL reads the index of expiries and no other.
macro_rules! ranges {
    ($from:literal, $of:expr) => {
        concat!(
            named_kinds!(),
            "SELECT ",
            as_text!(concat!(
                "SELECT s.seq FROM mcp_sessions s WHERE s.organization_id = ?1 AND s.state = states.state",
                $of,
                " AND (CAST(?3 AS BIGINT) IS NULL OR CAST(?3 AS BIGINT) <> 0 OR s.expires_at > ?2) AND s.seq > ?11 ORDER BY s.seq DESC LIMIT ?10"
            )),
            " FROM ",
            $from,
            "(SELECT CAST(0 AS BIGINT) AS state UNION ALL SELECT 1 UNION ALL SELECT 2) AS states \
             WHERE CAST(?3 AS BIGINT) IS NULL OR states.state = CAST(?3 AS BIGINT) UNION ALL SELECT ",
            as_text!(concat!(
                "SELECT s.seq FROM (SELECT o.seq, o.kind, o.mcp_client_id, o.service_account_id, o.console_user_id \
                 FROM mcp_sessions o WHERE o.organization_id = ?1 AND o.state = 0 AND o.expires_at <= ?2 \
                 ORDER BY o.expires_at LIMIT 9223372036854775807) AS s WHERE TRUE",
                narrowed!(),
                of_user!()
            )),
            " WHERE CAST(?3 AS BIGINT) = 2"
        )
    };
}

/// The actors that have the text `?11`. The index is asked for a part of it, `?12`; the limit keeps either engine from
/// taking another way to them.
macro_rules! named_actors {
    () => {
        "SELECT a.actor FROM (SELECT p.rowid AS actor FROM mcp_session_actor_parts p WHERE p.search LIKE ?12 LIMIT 9223372036854775807) AS known \
         CROSS JOIN mcp_session_actors a WHERE a.actor = known.actor AND a.organization_id = ?1 AND a.search LIKE ?11 ESCAPE '\\'"
    };
}

/// The clients that have it.
macro_rules! named_clients {
    () => {
        "SELECT n.mcp_client_id FROM mcp_session_clients n WHERE n.organization_id = ?1 AND n.search LIKE ?11 ESCAPE '\\'"
    };
}

/// Up to `?10` sessions that the filters leave of what was found first.
macro_rules! of_named {
    ($first:expr) => {
        as_text!(concat!(
            "SELECT s.seq FROM (",
            $first,
            of_state!(),
            narrowed!(),
            of_user!(),
            " LIMIT ?10"
        ))
    };
}

statements! {
    /// The newest of an organization, by state.
    NEWEST = ranges!("", "");
    /// The newest of some kinds.
    NEWEST_OF_KINDS = ranges!("named CROSS JOIN ", " AND s.kind = named.kind");
    /// The newest of a client.
    NEWEST_OF_CLIENT = ranges!("", " AND s.mcp_client_id = ?4");
    /// The newest of some kinds of a client.
    NEWEST_OF_CLIENT_KINDS = ranges!("named CROSS JOIN ", " AND s.kind = named.kind AND s.mcp_client_id = ?4");
    /// The newest of an account.
    NEWEST_OF_ACCOUNT = ranges!("", concat!(" AND s.service_account_id = ?5", narrowed!()));
    /// The newest of a user.
    NEWEST_OF_USER = ranges!("", concat!(" AND s.console_user_id = ?6", narrowed!()));
    /// What has the text `?11`: of the actors, of the clients, by its own id.
    NAMED = concat!(
        named_kinds!(),
        "SELECT ",
        of_named!(concat!(named_actors!(), ") AS a CROSS JOIN mcp_sessions s WHERE s.organization_id = ?1 AND s.actor = a.actor")),
        " UNION ALL SELECT ",
        of_named!(concat!(named_clients!(), ") AS n CROSS JOIN mcp_sessions s WHERE s.organization_id = ?1 AND s.mcp_client_id = n.mcp_client_id")),
        " UNION ALL SELECT ",
        of_named!("SELECT p.rowid AS seq FROM mcp_session_parts p WHERE p.id LIKE ?12 LIMIT 9223372036854775807) AS known CROSS JOIN mcp_sessions s WHERE s.seq = known.seq AND s.organization_id = ?1 AND s.id LIKE ?11 ESCAPE '\\'"),
    );
    /// One page of any filters, by reading what there is.
    SCAN = concat!(
        named_kinds!(),
        "SELECT s.seq FROM mcp_sessions s WHERE s.organization_id = ?1",
        of_state!(),
        narrowed!(),
        of_user!(),
        " AND (CAST(?11 AS TEXT) IS NULL OR s.mcp_client_id IN (",
        named_clients!(),
        ") OR s.actor IN (",
        named_actors!(),
        ") OR s.id LIKE ?11 ESCAPE '\\') ORDER BY s.seq DESC LIMIT ?10 OFFSET ?13",
    );
    /// The sessions with these sequence numbers. A condition on the organization would make SQLite read all of its sessions.
    FETCH = unscoped("a seq is unique everywhere, these came from statements that keep to one organization, and the caller compares it") concat!("SELECT ", columns!(), sessions!(), "WHERE s.seq IN ", fetched!());
}

const CLIENT: &str = "client";
const ACCOUNT: &str = "account";
const USER: &str = "user";
/// Each of them names kinds.
const KINDS: &[&str] = &["actor type", "scope", "toolset"];

static SESSIONS: Listing = Listing {
    filters: &["state", CLIENT, ACCOUNT, USER, KINDS[0], KINDS[1], KINDS[2]],
    ranges: &[
        Ranges {
            leads: &[&[USER]],
            statement: &NEWEST_OF_USER,
            spread: 1,
        },
        Ranges {
            leads: &[&[ACCOUNT]],
            statement: &NEWEST_OF_ACCOUNT,
            spread: 1,
        },
        Ranges {
            leads: &[&[CLIENT], KINDS],
            statement: &NEWEST_OF_CLIENT_KINDS,
            spread: 32,
        },
        Ranges {
            leads: &[&[CLIENT]],
            statement: &NEWEST_OF_CLIENT,
            spread: 1,
        },
        Ranges {
            leads: &[KINDS],
            statement: &NEWEST_OF_KINDS,
            spread: 32,
        },
        Ranges {
            leads: &[],
            statement: &NEWEST,
            spread: 1,
        },
    ],
    named: &NAMED,
    scan: &SCAN,
};

/// What a list narrows to; all of it at once (D7.7).
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// See there.
    pub status: Option<StatusFilter>,
    /// The client.
    pub client: Option<&'a str>,
    /// The account.
    pub account: Option<&'a str>,
    /// The user; not a filter of the API.
    pub user: Option<&'a str>,
    /// The actor type.
    pub actor_type: Option<&'a str>,
    /// A scope that it has.
    pub scope: Option<&'a str>,
    /// A toolset of which it has a scope.
    pub toolset: Option<&'a str>,
    /// A substring of its members, not folded.
    pub text: Option<&'a str>,
}

/// One page.
#[derive(Debug, Default)]
pub struct SessionPage {
    /// Newest first, as they are now.
    pub sessions: Vec<Session>,
    /// How many there are in all, at most as many as were to be counted.
    pub total: i64,
    /// Whether there are no more than that.
    pub is_exact: bool,
}

/// Returns one page, and how many sessions there are up to `counted`.
pub fn page(
    ctx: &mut OperationContext<'_>,
    filter: &Filter<'_>,
    (limit, offset): (i64, i64),
    counted: i64,
) -> Result<SessionPage> {
    // No scope and no toolset has a space; two of a kind's scopes with one between them are not one (D7.7).
    if [filter.scope, filter.toolset]
        .into_iter()
        .flatten()
        .any(|word| word.contains(' '))
    {
        return Ok(SessionPage {
            is_exact: true,
            ..SessionPage::default()
        });
    }
    // A substring that every id has narrows nothing.
    let lead = format!("{}_", SessionId::PREFIX);
    let text = filter
        .text
        .map(name_key)
        .filter(|text| !lead.contains(text.as_str()));
    let org = ctx.org();
    let cuts = store::cuts(&mut ctx.tx(), org)?;
    let query = Query {
        filters: params![
            filter.status.map(|status| status.state().code()),
            filter.client,
            filter.account,
            filter.user,
            filter.actor_type,
            filter.scope.map(|scope| format!(" {scope} ")),
            filter.toolset.map(|toolset| format!(" {toolset}:")),
        ]
        .to_vec(),
        text,
        // An end that is not written down yet stands in no index.
        is_unsettled: !cuts.is_empty(),
        limit,
        offset,
        counted,
    };
    let found = SESSIONS.find(ctx, &query)?;
    Ok(SessionPage {
        sessions: fetch(ctx, &found.numbers, &cuts)?,
        total: found.total,
        is_exact: found.is_exact,
    })
}

/// Returns the sessions of these numbers as they are now, in the same order.
fn fetch(
    ctx: &mut OperationContext<'_>,
    numbers: &[i64],
    cuts: &[RevocationWatermark],
) -> Result<Vec<Session>> {
    let (org, now) = (ctx.org(), ctx.now());
    let mut found: HashMap<i64, Session> = HashMap::with_capacity(numbers.len());
    for chunk in numbers.chunks(listing::FETCHED) {
        let read = ctx.query(&FETCH, &listing::places(chunk), store::read)?;
        let own = read.into_iter().filter(|session| session.organization_id == org);
        found.extend(own.map(|session| (session.seq, session.at(now, cuts))));
    }
    Ok(numbers.iter().filter_map(|number| found.remove(number)).collect())
}
