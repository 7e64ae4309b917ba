//! The SQL of lists that PostgreSQL merges itself (ADR 0028), as `pages.rs` is that of ranges.

use super::store::{columns, sessions};
use provost_kernel::statements;

/// Another engine runs none of these. It prepares this, and fails if it is asked for it.
macro_rules! postgres_alone {
    () => {
        "SELECT json('PostgreSQL alone runs this')"
    };
}

/// The kinds of an organization that have the actor type `?6`, and scopes that fit the patterns `?7` and `?8`.
macro_rules! named {
    () => {
        "WITH named AS MATERIALIZED (SELECT k.kind FROM mcp_session_kinds k WHERE k.organization_id = ?1 AND (CAST(?6 AS TEXT) IS NULL OR k.actor_type = CAST(?6 AS TEXT)) AND (CAST(?7 AS TEXT) IS NULL OR ' ' || k.scopes || ' ' LIKE CAST(?7 AS TEXT) ESCAPE '\\') AND (CAST(?8 AS TEXT) IS NULL OR ' ' || k.scopes || ' ' LIKE CAST(?8 AS TEXT) ESCAPE '\\')) "
    };
}

/// A condition that is looked up in a hash table; as a plain one it would become a join, and the order of the index lost.
/// Where nothing narrows the kinds, neither the table nor `named` is made.
macro_rules! is_named {
    () => {
        "(CAST(?6 AS TEXT) IS NULL AND CAST(?7 AS TEXT) IS NULL AND CAST(?8 AS TEXT) IS NULL OR (kind IN (SELECT kind FROM named)) IS TRUE)"
    };
}

macro_rules! of_all {
    () => {
        " AND CAST(?4 AS TEXT) IS NULL AND CAST(?5 AS TEXT) IS NULL"
    };
}
macro_rules! of_client {
    () => {
        " AND mcp_client_id = ?4 AND CAST(?5 AS TEXT) IS NULL"
    };
}
macro_rules! of_account {
    () => {
        " AND service_account_id = ?5 AND CAST(?4 AS TEXT) IS NULL"
    };
}
macro_rules! of_both {
    () => {
        " AND service_account_id = ?5 AND mcp_client_id = ?4"
    };
}

/// The newest of one state, as many as the page ends behind.
macro_rules! newest {
    ($of:expr, $state:literal) => {
        concat!(
            "(SELECT seq FROM mcp_sessions WHERE organization_id = ?1",
            $of,
            " AND state = ",
            $state,
            " AND (CAST(?3 AS BIGINT) IS NULL OR CAST(?3 AS BIGINT) = ",
            $state,
            ") AND expires_at > ?2 AND ",
            is_named!(),
            " ORDER BY seq DESC LIMIT ?11)"
        )
    };
}

/// What has run out and is not written down, by its numbers `?12`.
macro_rules! overdue {
    () => {
        "SELECT CAST(word AS BIGINT) AS seq FROM unnest(string_to_array(?12, ' ')) AS word"
    };
}

/// The sessions of one page, `?9` behind the first `?10`. They are fetched by their numbers at once, and the kinds come
/// last: tables joined in another order would be read from end to end.
macro_rules! page {
    ($seqs:expr) => {
        concat!(
            named!(),
            "SELECT ",
            columns!(),
            " FROM (SELECT m.* FROM mcp_sessions m WHERE m.organization_id = ?1 AND m.seq = ANY (ARRAY(SELECT seq FROM (",
            $seqs,
            ") AS found ORDER BY seq DESC LIMIT ?9 OFFSET ?10)) OFFSET 0) AS s JOIN mcp_session_kinds k ON k.organization_id = ?1 AND k.kind = s.kind ORDER BY s.seq DESC"
        )
    };
}

/// A page of the states' indexes.
macro_rules! page_of_states {
    ($of:expr) => {
        page!(concat!(
            newest!($of, "0"),
            " UNION ALL ",
            newest!($of, "1"),
            " UNION ALL ",
            newest!($of, "2"),
            " UNION ALL (",
            overdue!(),
            " ORDER BY 1 DESC)"
        ))
    };
}

/// A page of the newest of every kind and state.
macro_rules! page_of_kinds {
    ($of:expr) => {
        page!(concat!(
            "SELECT r.seq FROM named CROSS JOIN (VALUES (CAST(0 AS BIGINT)), (1), (2)) AS states (state) CROSS JOIN LATERAL (SELECT seq FROM mcp_sessions WHERE organization_id = ?1",
            $of,
            " AND kind = named.kind AND state = states.state AND expires_at > ?2 ORDER BY seq DESC LIMIT ?11) AS r WHERE CAST(?3 AS BIGINT) IS NULL OR states.state = CAST(?3 AS BIGINT) UNION ALL ",
            overdue!()
        ))
    };
}

/// Those of one state of an account.
macro_rules! of_state {
    ($of:expr, $state:literal, $and:expr) => {
        concat!(
            "SELECT seq FROM mcp_sessions WHERE organization_id = ?1",
            $of,
            " AND state = ",
            $state,
            " AND (CAST(?3 AS BIGINT) IS NULL OR CAST(?3 AS BIGINT) = ",
            $state,
            ")",
            $and,
            " AND ",
            is_named!()
        )
    };
}

/// What `TOTALS` says, of an account: up to `?9` of the state `?3` at `?2` are counted, since the store's counts name no
/// account. What has run out is no active one here, so that it matters to the expired ones alone.
macro_rules! totals_of {
    ($of:expr) => {
        concat!(
            named!(),
            "SELECT CAST(0 AS BIGINT), (SELECT COUNT(*) FROM (",
            of_state!($of, "0", " AND (CAST(?3 AS BIGINT) IS NULL OR expires_at > ?2)"),
            " UNION ALL ",
            of_state!($of, "1", ""),
            " UNION ALL ",
            of_state!($of, "2", ""),
            " LIMIT ?9) AS counted), CAST(0 AS BIGINT), CASE WHEN CAST(?3 AS BIGINT) = 2 THEN (SELECT string_agg(CAST(seq AS TEXT), ' ') FROM mcp_sessions WHERE organization_id = ?1",
            $of,
            " AND state = 0 AND expires_at <= ?2 AND ",
            is_named!(),
            ") END, EXISTS (SELECT 1 FROM mcp_session_cuts WHERE organization_id = ?1)"
        )
    };
}

statements! {
    /// Has PostgreSQL plan what follows in this transaction once and not for its values: planning a page for them takes
    /// longer than reading it, and the plan is the same.
    PLAN_ONCE = unscoped("no table is read") {
        sqlite: postgres_alone!(),
        postgres: "SELECT set_config('plan_cache_mode', 'force_generic_plan', true)",
    };
    /// By the store's counts: how many there are whatever their kinds, how many of the kinds that are asked for, how many
    /// of those a page that ends behind `?9` reads of every kind; the numbers of what has run out at `?2` and is not
    /// written down, if the state `?3` makes it matter; and whether anything ended that is not written down.
    TOTALS = {
        sqlite: postgres_alone!(),
        postgres: concat!(
            named!(),
            "SELECT CAST(COALESCE(SUM(sessions), 0) AS BIGINT), CAST(COALESCE(SUM(sessions) FILTER (WHERE is_named), 0) AS BIGINT), CAST(COALESCE(SUM(LEAST(sessions, ?9) + 10) FILTER (WHERE is_named), 0) AS BIGINT), CASE WHEN CAST(?3 AS BIGINT) IN (0, 2) THEN (SELECT string_agg(CAST(seq AS TEXT), ' ') FROM (SELECT seq, kind, mcp_client_id, service_account_id FROM mcp_sessions WHERE organization_id = ?1 AND state = 0 AND expires_at <= ?2 ORDER BY expires_at OFFSET 0) AS overdue WHERE ",
            is_named!(),
            " AND (CAST(?4 AS TEXT) IS NULL OR mcp_client_id = CAST(?4 AS TEXT)) AND (CAST(?5 AS TEXT) IS NULL OR service_account_id = CAST(?5 AS TEXT))) END, EXISTS (SELECT 1 FROM mcp_session_cuts WHERE organization_id = ?1) FROM (SELECT sessions, ",
            is_named!(),
            " AS is_named FROM mcp_session_counts WHERE organization_id = ?1 AND mcp_client_id = COALESCE(CAST(?4 AS TEXT), '') AND (CAST(?3 AS BIGINT) IS NULL OR state = CAST(?3 AS BIGINT))) AS counted"
        ),
    };
    /// A page of an organization.
    PAGE = { sqlite: postgres_alone!(), postgres: page_of_states!(of_all!()) };
    /// A page of a client.
    PAGE_OF_CLIENT = { sqlite: postgres_alone!(), postgres: page_of_states!(of_client!()) };
    /// A page of an account.
    PAGE_OF_ACCOUNT = { sqlite: postgres_alone!(), postgres: page_of_states!(of_account!()) };
    /// A page of an account and client.
    PAGE_OF_BOTH = { sqlite: postgres_alone!(), postgres: page_of_states!(of_both!()) };
    /// A page of kinds that few sessions have.
    PAGE_OF_KINDS = { sqlite: postgres_alone!(), postgres: page_of_kinds!(of_all!()) };
    /// A page of kinds that few sessions of a client have.
    PAGE_OF_CLIENT_KINDS = { sqlite: postgres_alone!(), postgres: page_of_kinds!(of_client!()) };
    /// The totals of an account.
    TOTALS_OF_ACCOUNT = { sqlite: postgres_alone!(), postgres: totals_of!(of_account!()) };
    /// The totals of an account and client.
    TOTALS_OF_BOTH = { sqlite: postgres_alone!(), postgres: totals_of!(of_both!()) };
    /// The sessions of some numbers, `?1`, with a space between them.
    FETCH_ALL = unscoped("a seq is unique everywhere, and these came from statements that keep to one organization") {
        sqlite: postgres_alone!(),
        postgres: concat!("SELECT ", columns!(), sessions!(), "WHERE s.seq = ANY (CAST(string_to_array(?1, ' ') AS BIGINT[]))"),
    };
}
