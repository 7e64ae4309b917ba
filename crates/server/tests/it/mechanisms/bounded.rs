//! What ends and what is forgotten costs by what it is, and not by how much others have: by the plans of SQLite and by the statements
//! themselves. A unit of work has a quarter of a second, and one that takes longer is refused at every try.

use super::statements::{all, module, parameters, sources};
use crate::areas_beside::every_area;
use crate::support::START;
use provost_kernel::db::testing::{TestStore, migrated_file};
use provost_kernel::db::{Location, Statement};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is told when somebody or something ends. An import ends a hundred users in one unit, and each end of a user tells three times.
const TOLD: [&str; 4] = [
    ": &PrincipalEnded)",
    ": &SessionsEnded)",
    ": &DeviceRetired)",
    ": &TokenRevoked)",
];

/// The modules that listen, and every statement that they run then. One that is new here says what it runs.
const RUN: [(&str, &[&str]); 13] = [
    (
        "provost_areas_access::mcp_sessions::end",
        &[
            "provost_areas_access::mcp_sessions::store::CUTS",
            "provost_areas_access::mcp_sessions::store::ADD_CUT",
            "provost_areas_access::mcp_sessions::store::END",
            "provost_areas_access::mcp_sessions::store::END_CHILDREN",
            "provost_areas_access::mcp_sessions::store::END_OF_ACCOUNT",
            "provost_areas_access::mcp_sessions::store::END_OF_CLIENT",
            "provost_areas_access::mcp_sessions::store::END_OF_USER",
            "provost_areas_access::mcp_sessions::store::OF_TOKEN",
        ],
    ),
    (
        "provost_areas_access::oauth::links::store",
        &[
            "provost_areas_access::oauth::links::store::FORGET_ALLOWED",
            "provost_areas_access::oauth::links::store::OF_USER",
            "provost_areas_access::oauth::links::store::REMEMBER",
            "provost_areas_access::oauth::links::store::UNLINK",
            "provost_areas_access::oauth::links::store::VOID_CODES",
        ],
    ),
    (
        "provost_areas_access::resource_credentials",
        &[
            "provost_areas_access::resource_credentials::store::FORGET",
            "provost_areas_access::resource_credentials::store::MARK_OF_SUBJECT",
        ],
    ),
    (
        "provost_areas_access::workload_trusts",
        &[
            "provost_areas_access::workload_trusts::store::DELETE",
            "provost_areas_access::workload_trusts::store::OF_ACCOUNT",
        ],
    ),
    (
        "provost_areas_catalog::assignments",
        &[
            "provost_areas_catalog::assignments::skills::store::REMOVE_ALL",
            "provost_areas_catalog::assignments::store::OF_DEVICE",
            "provost_areas_catalog::assignments::store::REMOVE",
        ],
    ),
    (
        "provost_areas_catalog::skill_registry::ends",
        &[
            "provost_areas_catalog::skill_registry::install_store::REPLAYABLE",
            "provost_areas_catalog::skill_registry::install_store::REVOKE_OF_ENDED",
            "provost_areas_catalog::skill_registry::install_store::REVOKE_OF_ORIGIN",
            "provost_areas_catalog::skill_registry::install_store::REVOKE_OF_PRINCIPAL",
            "provost_kernel::idempotency::ERASE_CELL",
        ],
    ),
    (
        "provost_areas_fleet::fleet::bypass",
        &[
            "provost_areas_fleet::fleet::bypass_store::END",
            "provost_areas_fleet::fleet::bypass_store::OF_MAKER",
            "provost_areas_fleet::fleet::bypass_store::OF_OWNER",
        ],
    ),
    (
        "provost_areas_fleet::fleet::maintenance",
        &[
            "provost_areas_fleet::fleet::enrolment::MADE_BY",
            "provost_areas_fleet::fleet::enrolment::OF_ENDED",
            "provost_areas_fleet::fleet::enrolment::OF_ORIGIN",
            "provost_areas_fleet::fleet::enrolment::REVOKE_ENROLMENT_TOKEN",
            "provost_areas_fleet::fleet::enrolment::REVOKE_MADE_BY",
        ],
    ),
    (
        "provost_areas_fleet::fleet::owners",
        &[
            "provost_areas_fleet::fleet::owners::DISOWN",
            "provost_areas_fleet::fleet::owners::OWNED",
        ],
    ),
    (
        "provost_areas_fleet::inventory::maintenance",
        &[
            "provost_areas_fleet::inventory::maintenance::LEAVE",
            "provost_areas_fleet::inventory::maintenance::RETIRE",
            "provost_areas_fleet::inventory::maintenance::RETIRE_SCAN",
            "provost_areas_fleet::inventory::maintenance::RETIRE_SECTIONS",
            "provost_areas_fleet::inventory::uses::FORGET_USER",
            "provost_areas_fleet::inventory::uses::FORGET_WAITING",
        ],
    ),
    (
        "provost_areas_policy::approvals",
        &[
            "provost_areas_policy::approvals::delegations::store::END",
            "provost_areas_policy::approvals::delegations::store::OF_PERSON",
            "provost_areas_policy::approvals::store::OF_PARTY",
            "provost_areas_policy::approvals::store::SAVE",
        ],
    ),
    (
        "provost_areas_policy::device_judging::ends",
        &[
            "provost_areas_policy::device_judging::store::END_CHAIN",
            "provost_areas_policy::device_judging::store::FORGET_COUNTS",
            "provost_areas_policy::device_judging::store::FORGET_USER",
        ],
    ),
    (
        "provost_areas_policy::violations::store",
        &[
            "provost_areas_policy::violations::store::FORGET_OF",
            "provost_areas_policy::violations::store::FORGET_POLICIES_OF",
        ],
    ),
];

/// What reads an organization all the same, and why it has few rows.
const FEW: [(&str, &str); 1] = [(
    "provost_areas_access::mcp_sessions::store::CUTS",
    "an end that is not written down yet: a job writes it and drops it",
)];

/// Returns a store, which goes when this does, and a connection to it; nothing on PostgreSQL.
fn store(name: &str) -> Option<(TestStore, Connection)> {
    let store = migrated_file(name, every_area().migrations(), START);
    let Location::Sqlite(path) = store.location() else {
        return None;
    };
    let conn = Connection::open(path).unwrap();
    Some((store, conn))
}

fn plan(conn: &Connection, statement: &Statement) -> Vec<String> {
    let mut plan = conn
        .prepare(&format!("EXPLAIN QUERY PLAN {}", statement.sqlite))
        .unwrap();
    let nothing = rusqlite::params_from_iter(vec![""; parameters(statement.sqlite)]);
    let lines = plan.query_map(nothing, |row| row.get(3)).unwrap();
    lines.map(Result::unwrap).collect()
}

/// Says whether a line of a plan reads rows by an id, and neither all of an organization nor those on one side of a bound.
fn is_by_id(line: &str) -> bool {
    let Some(read) = line.strip_prefix("SEARCH ") else {
        return !line.starts_with("SCAN ");
    };
    let terms = read.rsplit_once('(').map_or("", |(_, terms)| terms);
    let mut terms = terms.trim_end_matches(')').split(" AND ");
    let first = terms.next().unwrap_or_default();
    if first == "organization_id=?" {
        return terms.next().is_some_and(|second| second.ends_with("=?"));
    }
    first.ends_with("=?")
}

/// Nobody who leaves would ever be gone otherwise: the unit reads what others have, once for each of a hundred.
#[test]
fn whatever_runs_at_an_end_looks_for_its_rows_in_an_index_of_their_ids() {
    let Some((_store, conn)) = store("ends_plans") else {
        return;
    };
    let by_name: BTreeMap<&str, &Statement> = all()
        .into_iter()
        .map(|statement| (statement.name, statement))
        .collect();
    let mut walking = Vec::new();
    for name in RUN.iter().flat_map(|(_, statements)| *statements) {
        let statement = by_name
            .get(name)
            .unwrap_or_else(|| panic!("{name} is no statement"));
        let lines = plan(&conn, statement);
        if FEW.iter().any(|(few, why)| few == name && !why.is_empty()) {
            assert!(!lines.iter().all(|line| is_by_id(line)), "{name} is no exception");
            continue;
        }
        walking.extend(
            lines
                .into_iter()
                .filter(|line| !is_by_id(line))
                .map(|line| format!("{name}: {line}")),
        );
    }
    assert!(walking.is_empty(), "{walking:#?}");
}

#[test]
fn whoever_listens_to_an_end_says_what_it_runs() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut listening = BTreeSet::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().file_name().into_string().unwrap();
        if !folder.starts_with("areas-") {
            continue;
        }
        let root = crates.join(&folder).join("src");
        let mut files = Vec::new();
        sources(&root, &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            if TOLD.iter().any(|told| text.contains(told)) {
                listening.insert(module(
                    &format!("provost_{}", folder.replace('-', "_")),
                    &root,
                    &file,
                ));
            }
        }
    }
    let said: BTreeSet<String> = RUN.iter().map(|(module, _)| (*module).to_owned()).collect();
    assert_eq!(listening, said);
}

/// What changes or removes rows by a bound, or of every organization, and why there are few of them in a unit.
const BOUNDED: [(&str, &str); 19] = [
    (
        "provost_areas_access::oauth::store::FORGET_SUCCESSORS",
        "the refresh tokens of one session",
    ),
    (
        "provost_areas_access::oauth::store::SUPERSEDE",
        "the refresh tokens of one session",
    ),
    (
        "provost_areas_access::resource_credentials::secrets::store::RETIRE",
        "the versions of one organization's key",
    ),
    (
        "provost_areas_access::workload_trusts::store::REFUSE_ISSUED",
        "an operator accepts a loss",
    ),
    (
        "provost_areas_fleet::inventory::store::SEE_ASSETS",
        "the assets of one section of a device",
    ),
    (
        "provost_areas_fleet::inventory::store::SEE_SERVERS",
        "the servers of one section of a device",
    ),
    (
        "provost_areas_identity::directory::store::clashes::FORGET",
        "its caller names a part of the ids",
    ),
    (
        "provost_areas_identity::directory::store::clashes::JUDGE",
        "its caller names a part of the ids",
    ),
    (
        "provost_areas_identity::directory::store::clashes::LOSE_TOO",
        "the versions of one address",
    ),
    (
        "provost_areas_identity::directory::store::maintenance::MARK_GROUPS",
        "its caller names a part of the places",
    ),
    (
        "provost_areas_identity::directory::store::maintenance::MARK_USERS",
        "its caller names a part of the places",
    ),
    (
        "provost_areas_identity::directory::store::maintenance::MARK_USERS_MEMBERSHIPS",
        "its caller names a part of the places",
    ),
    (
        "provost_areas_identity::words::store::PRUNE_MAPPINGS",
        "those whose user went; it reads every mapping, in a unit of its area alone",
    ),
    (
        "provost_areas_policy::history::store::ABANDON_OVERDUE",
        "one segment is written at a time",
    ),
    (
        "provost_areas_policy::history::store::COVER",
        "its caller names a part of the numbers",
    ),
    (
        "provost_areas_policy::history::store::TELL",
        "the imports of one caller in an hour",
    ),
    ("provost_kernel::proofs::DROP", "its caller names the rows"),
    (
        "provost_server::proofs::FORGET",
        "an operator takes every row as it is, while nobody serves",
    ),
    ("provost_server::rotation::DROP_SILENT", "a row for each server"),
];

/// Returns of each table the columns of each key that finds at most one row.
fn keys(conn: &Connection) -> BTreeMap<String, Vec<BTreeSet<String>>> {
    let mut list = conn
        .prepare(
            "SELECT m.name, l.name, c.name FROM sqlite_schema m, pragma_index_list(m.name) l, pragma_index_info(l.name) c \
             WHERE m.type = 'table' AND l.\"unique\" AND NOT l.partial \
             UNION ALL SELECT m.name, '', t.name FROM sqlite_schema m, pragma_table_info(m.name) t WHERE m.type = 'table' AND t.pk > 0",
        )
        .unwrap();
    let rows = list.query_map([], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, String>(2)?,
        ))
    });
    let mut keys: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (table, key, column) in rows.unwrap().map(Result::unwrap) {
        keys.entry(table)
            .or_default()
            .entry(key)
            .or_default()
            .insert(column);
    }
    keys.into_iter()
        .map(|(table, keys)| (table, keys.into_values().collect()))
        .collect()
}

/// Says whether a statement changes rows of before a bound, or of every organization, and neither names one row nor says how many.
fn is_unbounded(statement: &Statement, keys: &BTreeMap<String, Vec<BTreeSet<String>>>) -> bool {
    let sql = statement.sqlite;
    let changes = sql
        .strip_prefix("DELETE FROM ")
        .or_else(|| sql.strip_prefix("UPDATE "));
    let Some(changes) = changes.filter(|_| !sql.contains(" LIMIT ")) else {
        return false;
    };
    let table = changes.split(' ').next().unwrap();
    let which = format!(
        " {}",
        changes.split_once(" WHERE ").map_or("", |(_, which)| which)
    );
    let is_by_a_bound = which.contains(" < ?") || which.contains(" <= ?");
    let names = |column: &String| {
        [" ", "."]
            .iter()
            .any(|before| which.contains(&format!("{before}{column} = ?")))
    };
    let is_one = keys
        .get(table)
        .is_some_and(|keys| keys.iter().any(|key| key.iter().all(names)));
    (is_by_a_bound || statement.unscoped.is_some()) && !is_one
}

/// Retired devices stay for ever: a round that looks at each of them would be refused one day, and remove nothing ever again.
#[test]
fn no_round_goes_by_devices_that_are_retired() {
    let rounds = all().into_iter().filter(|statement| {
        let changes = ["DELETE ", "UPDATE "]
            .iter()
            .any(|verb| statement.sqlite.starts_with(verb));
        changes && statement.unscoped.is_some()
    });
    let mut looked_at = 0;
    for statement in rounds {
        looked_at += 1;
        assert!(!statement.sqlite.contains("'retired'"), "{}", statement.name);
    }
    assert!(looked_at > 20, "{looked_at}");
}

/// A retention that is shortened, or a server that was off, makes all of it due at once: the unit would be refused at every try, and
/// nothing be forgotten ever again.
#[test]
fn what_is_changed_by_a_bound_is_one_row_or_says_how_many() {
    let Some((_store, conn)) = store("bounded_changes") else {
        return;
    };
    let keys = keys(&conn);
    let mut found: Vec<&str> = all()
        .into_iter()
        .filter(|statement| is_unbounded(statement, &keys))
        .map(|statement| statement.name)
        .collect();
    found.sort_unstable();
    let known: Vec<&str> = BOUNDED
        .iter()
        .inspect(|(name, why)| assert!(why.len() > 10, "{name}"))
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(found, known);
    let unbounded = Statement {
        name: "a net that finds nothing is none",
        sqlite: "DELETE FROM violation_days WHERE organization_id = ?1 AND day < ?2",
        postgres: "",
        unscoped: None,
    };
    assert!(is_unbounded(&unbounded, &keys));
}
