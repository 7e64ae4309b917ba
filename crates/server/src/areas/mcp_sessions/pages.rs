//! The SQL of lists. A *range* is what one index holds together and in order: one state, and one kind if kinds are
//! asked for, of an organization, a client, an account or both. A page is the newest of several ranges, a total the sum
//! of their sizes: those of an account are counted, all others are kept by the store with every change.
//!
//! A substring names actors, clients and ids; each of the three is looked for where it stands once (ADR 0026).

use super::store::{columns, sessions};
use provost_kernel::statements;

/// How many ranges one statement reads.
pub const SLOTS: usize = 12;
/// How many sessions one statement fetches.
pub const FETCHED: usize = 100;

// What a list narrows to besides kinds and states. Every text has the parameters ?5 and ?6.
macro_rules! of_all {
    () => {
        " AND CAST(?5 AS TEXT) IS NULL AND CAST(?6 AS TEXT) IS NULL"
    };
}
macro_rules! of_client {
    () => {
        " AND mcp_client_id = ?5 AND CAST(?6 AS TEXT) IS NULL"
    };
}
macro_rules! of_account {
    () => {
        " AND service_account_id = ?6 AND CAST(?5 AS TEXT) IS NULL"
    };
}
macro_rules! of_both {
    () => {
        " AND service_account_id = ?6 AND mcp_client_id = ?5"
    };
}

/// The newest of one range with its place among the ranges: behind the seq `?2`, ending behind `?3`, `?4` at most.
macro_rules! newest {
    ($place:literal, $of:expr, $kind:expr, $state:literal) => {
        concat!(
            "SELECT CAST(",
            $place,
            " AS BIGINT) AS place, seq FROM (SELECT seq FROM mcp_sessions WHERE organization_id = ?1",
            $of,
            $kind,
            " AND state = ",
            $state,
            " AND seq > ?2 AND expires_at > ?3 ORDER BY seq DESC LIMIT ?4) AS one"
        )
    };
}

/// The newest of the ranges of every state: `?7`, `?8`, `?9`. The ranges follow each other: an engine that merged them
/// would read all that each may give.
macro_rules! newest_of_states {
    ($of:expr) => {
        concat!(
            newest!("0", $of, "", "?7"),
            " UNION ALL ",
            newest!("1", $of, "", "?8"),
            " UNION ALL ",
            newest!("2", $of, "", "?9")
        )
    };
}

/// The newest of twelve ranges of a kind and a state each.
macro_rules! newest_of_kinds {
    ($of:expr) => {
        concat!(
            newest!("0", $of, " AND kind = ?7", "?8"),
            " UNION ALL ",
            newest!("1", $of, " AND kind = ?9", "?10"),
            " UNION ALL ",
            newest!("2", $of, " AND kind = ?11", "?12"),
            " UNION ALL ",
            newest!("3", $of, " AND kind = ?13", "?14"),
            " UNION ALL ",
            newest!("4", $of, " AND kind = ?15", "?16"),
            " UNION ALL ",
            newest!("5", $of, " AND kind = ?17", "?18"),
            " UNION ALL ",
            newest!("6", $of, " AND kind = ?19", "?20"),
            " UNION ALL ",
            newest!("7", $of, " AND kind = ?21", "?22"),
            " UNION ALL ",
            newest!("8", $of, " AND kind = ?23", "?24"),
            " UNION ALL ",
            newest!("9", $of, " AND kind = ?25", "?26"),
            " UNION ALL ",
            newest!("10", $of, " AND kind = ?27", "?28"),
            " UNION ALL ",
            newest!("11", $of, " AND kind = ?29", "?30")
        )
    };
}

/// What is counted of one range: states `?2` to `?3`, ending behind `?4`.
macro_rules! counted {
    ($of:expr, $kind:expr) => {
        concat!(
            "SELECT seq FROM mcp_sessions WHERE organization_id = ?1",
            $of,
            $kind,
            " AND state >= ?2 AND state <= ?3 AND expires_at > ?4"
        )
    };
}

/// Everything that is counted of twelve kinds.
macro_rules! counted_of_kinds {
    ($of:expr) => {
        concat!(
            counted!($of, " AND kind = ?8"),
            " UNION ALL ",
            counted!($of, " AND kind = ?9"),
            " UNION ALL ",
            counted!($of, " AND kind = ?10"),
            " UNION ALL ",
            counted!($of, " AND kind = ?11"),
            " UNION ALL ",
            counted!($of, " AND kind = ?12"),
            " UNION ALL ",
            counted!($of, " AND kind = ?13"),
            " UNION ALL ",
            counted!($of, " AND kind = ?14"),
            " UNION ALL ",
            counted!($of, " AND kind = ?15"),
            " UNION ALL ",
            counted!($of, " AND kind = ?16"),
            " UNION ALL ",
            counted!($of, " AND kind = ?17"),
            " UNION ALL ",
            counted!($of, " AND kind = ?18"),
            " UNION ALL ",
            counted!($of, " AND kind = ?19")
        )
    };
}

/// How many there are, `?7` at most.
macro_rules! count {
    ($counted:expr) => {
        concat!("SELECT COUNT(*) FROM (", $counted, " LIMIT ?7) AS counted")
    };
}

/// Whether there are more than `?7`: passing over them costs half of counting them.
macro_rules! more {
    ($counted:expr) => {
        concat!($counted, " LIMIT 1 OFFSET ?7")
    };
}

/// What a session is at `?2`, whatever of it is written down yet.
macro_rules! state_now {
    () => {
        "CASE WHEN s.state <> 0 THEN s.state WHEN EXISTS (SELECT 1 FROM mcp_session_cuts c WHERE c.organization_id = s.organization_id AND c.subject IN ('client:' || s.mcp_client_id, 'account:' || s.service_account_id, 'user:' || s.console_user_id) AND c.cut_seq >= s.seq AND c.ended_at < s.expires_at) THEN 1 WHEN s.expires_at <= ?2 THEN 2 ELSE 0 END"
    };
}

/// Every filter but the text, each of them optional: state `?3`, client `?4`, account `?5`, actor type `?6`, scope `?7`
/// and toolset `?8` as patterns, user `?10`.
macro_rules! narrowed {
    () => {
        concat!(
            " AND (CAST(?3 AS BIGINT) IS NULL OR ",
            state_now!(),
            " = CAST(?3 AS BIGINT)) AND (CAST(?4 AS TEXT) IS NULL OR s.mcp_client_id = CAST(?4 AS TEXT)) AND (CAST(?5 AS TEXT) IS NULL OR s.service_account_id = CAST(?5 AS TEXT)) AND (CAST(?10 AS TEXT) IS NULL OR s.console_user_id = CAST(?10 AS TEXT)) AND ((CAST(?6 AS TEXT) IS NULL AND CAST(?7 AS TEXT) IS NULL AND CAST(?8 AS TEXT) IS NULL) OR EXISTS (SELECT 1 FROM mcp_session_kinds k WHERE k.organization_id = s.organization_id AND k.kind = s.kind AND (CAST(?6 AS TEXT) IS NULL OR k.actor_type = CAST(?6 AS TEXT)) AND (CAST(?7 AS TEXT) IS NULL OR ' ' || k.scopes || ' ' LIKE CAST(?7 AS TEXT) ESCAPE '\\') AND (CAST(?8 AS TEXT) IS NULL OR ' ' || k.scopes || ' ' LIKE CAST(?8 AS TEXT) ESCAPE '\\')))"
        )
    };
}

/// Every session that the filters leave, in any order. The text `?9` is a pattern.
macro_rules! scanned {
    () => {
        concat!(
            " FROM mcp_sessions s WHERE s.organization_id = ?1",
            narrowed!(),
            " AND (CAST(?9 AS TEXT) IS NULL OR s.id LIKE CAST(?9 AS TEXT) ESCAPE '\\' OR EXISTS (SELECT 1 FROM mcp_session_actors a WHERE a.organization_id = s.organization_id AND a.actor = s.actor AND a.search LIKE CAST(?9 AS TEXT) ESCAPE '\\') OR EXISTS (SELECT 1 FROM mcp_session_clients c WHERE c.organization_id = s.organization_id AND c.mcp_client_id = s.mcp_client_id AND c.search LIKE CAST(?9 AS TEXT) ESCAPE '\\'))"
        )
    };
}

/// What narrows those whom a substring names: states `?3` to `?4` and of them `?5`, at `?2`, kinds `?6` as a list of
/// words, client `?7`. All of it stands in the indexes that lead from an actor or a client to its sessions.
macro_rules! of_named {
    () => {
        " AND s.state >= ?3 AND s.state <= ?4 AND (CAST(?5 AS BIGINT) IS NULL OR CASE WHEN s.state <> 0 THEN s.state WHEN s.expires_at <= ?2 THEN 2 ELSE 0 END = CAST(?5 AS BIGINT)) AND (CAST(?6 AS TEXT) IS NULL OR CAST(?6 AS TEXT) LIKE '% ' || s.kind || ' %') AND (CAST(?7 AS TEXT) IS NULL OR s.mcp_client_id = CAST(?7 AS TEXT))"
    };
}

/// What a substring names comes as one text of numbers with a space between them: ten thousand rows take longer to send
/// and to read than to find.
macro_rules! as_one_text {
    ($found:expr) => {
        concat!(
            "SELECT string_agg(CAST(seq AS TEXT), ' ') FROM (",
            $found,
            " LIMIT ?10) AS found"
        )
    };
}

/// Up to `?10` sessions of the actors that have the text `?9`, found in one way.
macro_rules! named_by_actor {
    ($from:literal, $by:literal) => {
        as_one_text!(concat!(
            "SELECT s.seq FROM ",
            $from,
            " CROSS JOIN mcp_sessions s ON s.organization_id = a.organization_id AND s.actor = a.actor WHERE ",
            $by,
            " AND a.organization_id = ?1 AND a.search LIKE ?9 ESCAPE '\\' AND (?8 IS NULL OR NULLIF(a.service_account_id, '') = ?8)",
            of_named!()
        ))
    };
}

/// The same for PostgreSQL, whose index takes a pattern: `?11`, a part of the text that few have. It finds the actors
/// first, because it would take them for more than they are.
macro_rules! named_by_actors {
    () => {
        as_one_text!(concat!(
            "WITH a AS MATERIALIZED (SELECT actor FROM mcp_session_actors WHERE organization_id = ?1 AND search LIKE ?11 ESCAPE '\\' AND search || '' LIKE ?9 ESCAPE '\\' AND (CAST(?8 AS TEXT) IS NULL OR NULLIF(service_account_id, '') = CAST(?8 AS TEXT))) SELECT s.seq FROM a JOIN mcp_sessions s ON s.organization_id = ?1 AND s.actor = a.actor WHERE TRUE",
            of_named!()
        ))
    };
}

/// Up to `?10` sessions whose ids have the text `?9`, found in one way.
macro_rules! named_by_id {
    ($from:literal, $by:literal) => {
        as_one_text!(concat!(
            "SELECT s.seq FROM ",
            $from,
            " WHERE ",
            $by,
            " AND s.organization_id = ?1 AND s.id || '' LIKE ?9 ESCAPE '\\' AND (CAST(?8 AS TEXT) IS NULL OR s.service_account_id = CAST(?8 AS TEXT))",
            of_named!()
        ))
    };
}

/// Up to `?10` sessions of the clients whose ids have the text `?9`.
macro_rules! named_by_client {
    ($account:literal) => {
        as_one_text!(concat!(
            "SELECT s.seq FROM mcp_session_clients c CROSS JOIN mcp_sessions s WHERE c.organization_id = ?1 AND c.search LIKE ?9 ESCAPE '\\' AND s.organization_id = c.organization_id AND s.mcp_client_id = c.mcp_client_id",
            of_named!(),
            $account
        ))
    };
}

statements! {
    /// The newest of an organization, by state.
    NEWEST = newest_of_states!(of_all!());
    /// The newest of a client.
    NEWEST_OF_CLIENT = newest_of_states!(of_client!());
    /// The newest of an account.
    NEWEST_OF_ACCOUNT = newest_of_states!(of_account!());
    /// The newest of an account and client.
    NEWEST_OF_BOTH = newest_of_states!(of_both!());
    /// The newest of some kinds.
    NEWEST_OF_KINDS = newest_of_kinds!(of_all!());
    /// The newest of some kinds of a client.
    NEWEST_OF_CLIENT_KINDS = newest_of_kinds!(of_client!());
    /// The newest of some kinds of an account.
    NEWEST_OF_ACCOUNT_KINDS = newest_of_kinds!(of_account!());
    /// The newest of some kinds of an account and client.
    NEWEST_OF_BOTH_KINDS = newest_of_kinds!(of_both!());
    /// How many an account has.
    COUNT_OF_ACCOUNT = count!(counted!(of_account!(), ""));
    /// How many an account and client have.
    COUNT_OF_BOTH = count!(counted!(of_both!(), ""));
    /// How many of some kinds an account has.
    COUNT_OF_ACCOUNT_KINDS = count!(counted_of_kinds!(of_account!()));
    /// How many of some kinds an account and client have.
    COUNT_OF_BOTH_KINDS = count!(counted_of_kinds!(of_both!()));
    /// Whether an account has more than so many.
    MORE_OF_ACCOUNT = more!(counted!(of_account!(), ""));
    /// Whether an account and client have more than so many.
    MORE_OF_BOTH = more!(counted!(of_both!(), ""));
    /// Whether an account has more than so many of some kinds.
    MORE_OF_ACCOUNT_KINDS = more!(counted_of_kinds!(of_account!()));
    /// Whether an account and client have more than so many of some kinds.
    MORE_OF_BOTH_KINDS = more!(counted_of_kinds!(of_both!()));
    /// How many sessions a client has, by state; all clients together stand under no name.
    COUNTS = "SELECT state, CAST(SUM(sessions) AS BIGINT) FROM mcp_session_counts WHERE organization_id = ?1 AND mcp_client_id = ?2 GROUP BY state";
    /// The same by kind and state.
    COUNTS_OF_KINDS = "SELECT kind, state, sessions FROM mcp_session_counts WHERE organization_id = ?1 AND mcp_client_id = ?2";
    /// How many active sessions a user has, `?3` at most. The sum keeps SQLite from reading every active session.
    COUNT_OF_USER = "SELECT COUNT(*) FROM (SELECT seq FROM mcp_sessions WHERE organization_id = ?1 AND console_user_id = ?2 AND state = 0 AND expires_at + 0 > ?4 LIMIT ?3) AS counted";
    /// The newest active sessions of a user.
    NEWEST_OF_USER = "SELECT seq FROM mcp_sessions WHERE organization_id = ?1 AND console_user_id = ?2 AND state = 0 AND expires_at + 0 > ?4 ORDER BY seq DESC LIMIT ?3";
    /// What has run out and is not written down; a minute's worth. Further conditions would lead PostgreSQL to indexes in
    /// which it reads everything: it takes most active sessions for ones that have run out, as most others have.
    UNSWEPT = "SELECT s.seq, s.kind, s.mcp_client_id, s.service_account_id FROM mcp_sessions s WHERE s.organization_id = ?1 AND s.state = 0 AND s.expires_at <= ?2 ORDER BY s.expires_at";
    /// The kinds of an organization.
    KINDS = "SELECT kind, actor_type, scopes FROM mcp_session_kinds WHERE organization_id = ?1 ORDER BY kind LIMIT ?2";
    /// One page of any filters, by reading what there is.
    SCAN = concat!("SELECT s.seq", scanned!(), " ORDER BY s.seq DESC LIMIT ?11 OFFSET ?12");
    /// How many there are of any filters.
    COUNT_SCAN = concat!("SELECT COUNT(*) FROM (SELECT s.seq", scanned!(), " LIMIT ?11) AS counted");
    /// Has PostgreSQL plan what follows in this transaction for its own values: a substring that few sessions have is
    /// looked up, one that many have is met on the way. A plan for all substrings, which it would make after some calls
    /// and keep, reads every session for the first kind.
    PLAN_ANEW = unscoped("no table is read") {
        sqlite: "SELECT 1",
        postgres: "SELECT set_config('plan_cache_mode', 'force_custom_plan', true)",
    };
    /// The texts of the newest actors.
    SAMPLE = "SELECT search FROM mcp_session_actors WHERE organization_id = ?1 ORDER BY actor DESC LIMIT ?2";
    /// Up to `?10` sessions of the actors that have the text `?9`, and the account `?8` if there is one. The index is asked
    /// for `?11`.
    NAMED_BY_ACTOR = {
        sqlite: named_by_actor!("mcp_session_actor_parts CROSS JOIN mcp_session_actors a ON a.actor = mcp_session_actor_parts.rowid", "mcp_session_actor_parts MATCH ?11"),
        postgres: named_by_actors!(),
    };
    /// The same of a text that no index has.
    NAMED_BY_SHORT_ACTOR = {
        sqlite: named_by_actor!("mcp_session_actors a", "?11 IS NOT NULL"),
        postgres: named_by_actors!(),
    };
    /// The clients that have the text `?2`, `?4` at most; of one only, if `?3` says which.
    NAMED_CLIENTS = "SELECT mcp_client_id FROM mcp_session_clients WHERE organization_id = ?1 AND search LIKE ?2 ESCAPE '\\' AND (CAST(?3 AS TEXT) IS NULL OR mcp_client_id = CAST(?3 AS TEXT)) ORDER BY mcp_client_id LIMIT ?4";
    /// Up to `?10` sessions of the clients that have the text `?9`.
    NAMED_BY_CLIENT = named_by_client!(" AND CAST(?8 AS TEXT) IS NULL");
    /// The same of the account `?8`.
    NAMED_BY_CLIENT_OF_ACCOUNT = named_by_client!(" AND s.service_account_id = ?8");
    /// Up to `?10` sessions whose ids have the text `?9`, of the account `?8` if there is one. The index is asked for `?11`.
    NAMED_BY_ID = {
        sqlite: named_by_id!("mcp_session_parts CROSS JOIN mcp_sessions s ON s.seq = mcp_session_parts.rowid", "mcp_session_parts MATCH ?11"),
        postgres: named_by_id!("mcp_sessions s", "s.id LIKE ?11 ESCAPE '\\'"),
    };
    /// The same of a text that no index has.
    NAMED_BY_SHORT_ID = named_by_id!("mcp_sessions s", "CAST(?11 AS TEXT) IS NOT NULL");
    /// The sessions of some numbers. With the organization among the conditions SQLite would read all of it.
    FETCH = unscoped("a seq is unique everywhere, and these came from statements that keep to one organization") concat!("SELECT ", columns!(), sessions!(), "WHERE s.seq IN (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51, ?52, ?53, ?54, ?55, ?56, ?57, ?58, ?59, ?60, ?61, ?62, ?63, ?64, ?65, ?66, ?67, ?68, ?69, ?70, ?71, ?72, ?73, ?74, ?75, ?76, ?77, ?78, ?79, ?80, ?81, ?82, ?83, ?84, ?85, ?86, ?87, ?88, ?89, ?90, ?91, ?92, ?93, ?94, ?95, ?96, ?97, ?98, ?99, ?100)");
}
