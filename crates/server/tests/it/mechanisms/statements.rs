//! Every SQL statement of the program: prepared on both engines, scoped to an organization, and one text for
//! both engines.

use crate::areas_beside::every_area;
use crate::support::START;
use provost_kernel::area::Areas;
use provost_kernel::db::testing::migrated;
use provost_kernel::db::{Access, Conn, Location, Statement, to_postgres};
use provost_server::app;
use provost_server::areas::ALL;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Lists that run before there is a schema, or on the way to one.
const WITHOUT_A_SCHEMA: [&str; 1] = ["provost_kernel::db::migrate"];

/// What the operator's commands ask an engine about itself; no SQL says that for both.
const ABOUT_THE_ENGINE: [&str; 8] = [
    "provost_server::proofs::triggers::TRIGGERS",
    "provost_kernel::db::touched::COLUMNS",
    "provost_areas_platform::store::HAS_KEY_CHECKS",
    "provost_server::commands::store::backup::COPY_INTO",
    "provost_server::commands::store::check::INTEGRITY",
    "provost_server::commands::store::check::ORPHANS",
    "provost_server::commands::store::schema::COLUMNS",
    "provost_server::commands::store::schema::PARENTS",
];

pub fn all() -> Vec<&'static Statement> {
    of(every_area())
}

fn of(areas: &Areas) -> Vec<&'static Statement> {
    app::catalogues(areas)
        .into_iter()
        .flat_map(|list| list.iter().copied())
        .collect()
}

#[test]
fn every_statement_prepares_on_every_engine() {
    for store in migrated("statements", every_area().migrations(), START) {
        let mut conn = store.open();
        for statement in all() {
            prepare(&mut conn, &store.location(), statement);
        }
    }
}

fn prepare(conn: &mut Conn, location: &Location, statement: &Statement) {
    match location {
        Location::Sqlite(path) => {
            let conn = rusqlite::Connection::open(path).unwrap();
            let prepared = conn.prepare(statement.sqlite);
            let prepared = prepared.unwrap_or_else(|e| panic!("{}: {e}", statement.name));
            assert_eq!(
                prepared.parameter_count(),
                parameters(statement.sqlite),
                "{}: parameters are ?1 to ?n",
                statement.name
            );
        }
        // PREPARE does not take utility commands; this one runs, and it has no parameters.
        Location::Postgres(_) if statement.postgres.starts_with("ANALYZE ") => {
            let done = conn.batch(statement.postgres);
            done.unwrap_or_else(|e| panic!("{}: {:?}", statement.name, e.private()));
        }
        Location::Postgres(_) => {
            let sql = format!("PREPARE one AS {}", to_postgres(statement.postgres));
            let prepared = conn.batch(&sql);
            prepared.unwrap_or_else(|e| panic!("{}: {:?}", statement.name, e.private()));
            conn.batch("DEALLOCATE one").unwrap();
        }
    }
}

/// What deletes by time. The function that runs each takes a `SureTime` instant (CK-1): one that is new here must as well.
const BY_TIME: [&str; 39] = [
    "provost_areas_access::mcp_sessions::store::PRUNE",
    "provost_areas_access::oauth::links::store::PRUNE_ALLOWED",
    "provost_areas_access::oauth::links::store::PRUNE_FORMER",
    "provost_areas_access::oauth::links::store::PRUNE_RENAMED",
    "provost_areas_access::oauth::store::PRUNE_ASSERTIONS",
    "provost_areas_access::oauth::store::PRUNE_CODES",
    "provost_areas_access::oauth::store::PRUNE_EXCHANGES",
    "provost_areas_access::oauth::store::PRUNE_REFRESH",
    "provost_areas_access::resource_credentials::store::PRUNE_CHECKS",
    "provost_areas_catalog::managed_config::machines::FORGET",
    "provost_areas_catalog::managed_config::pulls::FORGET_HOURS",
    "provost_areas_fleet::fleet::bypass_store::FORGET",
    "provost_areas_fleet::fleet::maintenance::PRUNE_COMMANDS",
    "provost_areas_fleet::fleet::maintenance::PRUNE_ENROLMENT_TOKENS",
    "provost_areas_fleet::fleet::maintenance::PRUNE_TOKENS",
    "provost_areas_fleet::inventory::maintenance::FORGET",
    "provost_areas_fleet::inventory::maintenance::FORGET_ASSETS",
    "provost_areas_fleet::inventory::maintenance::FORGET_IMPORTED",
    "provost_areas_fleet::inventory::maintenance::FORGET_SERVERS",
    "provost_areas_fleet::inventory::maintenance::FORGET_USES",
    "provost_areas_identity::directory::hands::FORGET",
    "provost_areas_identity::directory::store::ended::FORGET",
    "provost_areas_identity::words::store::PRUNE_ENDED",
    "provost_areas_identity::words::unresolved::PRUNE",
    "provost_areas_policy::approvals::delegations::store::FORGET",
    "provost_areas_policy::approvals::store::FORGET",
    "provost_areas_policy::backtests::store::PRUNE_RESULTS",
    "provost_areas_policy::device_judging::store::FORGET",
    "provost_areas_policy::device_judging::store::FORGET_DAYS",
    "provost_areas_policy::device_judging::store::FORGET_ENDED",
    "provost_areas_policy::history::decided_calls::FORGET",
    "provost_areas_policy::history::store::DELETE_IMPORTS",
    "provost_areas_policy::history::store::FORGET_VALUES",
    "provost_areas_policy::violations::store::FORGET_DAYS",
    "provost_areas_policy::violations::store::FORGET_FEEDBACK",
    "provost_areas_policy::violations::store::FORGET_FEEDBACK_POLICIES",
    "provost_kernel::idempotency::PRUNE",
    "provost_kernel::outbox::PRUNE",
    "provost_server::rotation::DROP_SILENT",
];

/// Proves CK-1.
#[test]
fn what_is_removed_by_time_is_known() {
    let is_bound = |sql: &str| {
        ["_at", "_until", "time", "hour", ".day"].iter().any(|column| {
            [" < ?", " <= ?"]
                .iter()
                .any(|than| sql.contains(&format!("{column}{than}")))
        })
    };
    let mut found: Vec<&str> = all()
        .into_iter()
        .filter(|statement| statement.sqlite.starts_with("DELETE ") && is_bound(statement.sqlite))
        .map(|statement| statement.name)
        .collect();
    found.sort_unstable();
    assert_eq!(found, BY_TIME);
}

/// Returns how many different `?n` a text has.
pub fn parameters(sql: &str) -> usize {
    let digits = |part: &str| {
        part.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse::<usize>()
            .unwrap()
    };
    sql.split('?').skip(1).map(digits).collect::<BTreeSet<_>>().len()
}

/// Returns the tables of the schema that belong to organizations.
fn owned_tables() -> BTreeSet<String> {
    let mut owned = BTreeSet::new();
    for migration in every_area().migrations() {
        for table in migration.sqlite.split("CREATE TABLE ").skip(1) {
            let (name, rest) = table.split_once('(').unwrap();
            let columns = rest.split("STRICT").next().unwrap();
            if columns.contains("organization_id TEXT") {
                owned.insert(name.trim().to_owned());
            }
        }
    }
    assert!(owned.contains("service_accounts") && !owned.contains("key_checks"));
    owned
}

/// Returns the tables that a text names, once for each place.
fn tables(sql: &str) -> Vec<&str> {
    let words: Vec<&str> = sql
        .split(|c: char| c.is_whitespace() || c == '(' || c == ')')
        .filter(|w| !w.is_empty())
        .collect();
    let names = words
        .windows(2)
        .filter(|pair| ["FROM", "JOIN", "UPDATE", "INTO"].contains(&pair[0]));
    names
        .map(|pair| pair[1].trim_end_matches(','))
        .filter(|name| !["SET", "SELECT", "SKIP"].contains(name))
        .collect()
}

#[test]
fn every_statement_keeps_to_one_organization_or_says_why_not() {
    let owned = owned_tables();
    let mut scoped = 0;
    for statement in all() {
        for sql in [statement.sqlite, statement.postgres] {
            let named: Vec<&str> = tables(sql).into_iter().filter(|t| owned.contains(*t)).collect();
            if let Some(why) = statement.unscoped {
                assert!(!why.is_empty(), "{}", statement.name);
                continue;
            }
            if named.is_empty() {
                continue;
            }
            scoped += 1;
            // Each place either compares with the organization or with a row that does, or inserts it.
            let compared = sql.matches("organization_id = ").count();
            let inserted = usize::from(sql.starts_with("INSERT INTO"));
            if inserted == 1 {
                let columns = sql.split_once('(').unwrap().1;
                assert!(
                    columns.starts_with("organization_id"),
                    "{}: {sql}",
                    statement.name
                );
            } else {
                assert!(sql.contains("organization_id = ?"), "{}: {sql}", statement.name);
            }
            assert!(
                compared + inserted >= named.len(),
                "{} names {named:?} and compares {compared} times",
                statement.name
            );
        }
    }
    assert!(scoped > 40, "{scoped}");
}

#[test]
fn one_text_serves_both_engines() {
    let all = all();
    let differing: Vec<&str> = all
        .iter()
        .filter(|s| s.sqlite != s.postgres)
        .map(|s| s.name)
        .filter(|name| !ABOUT_THE_ENGINE.contains(name))
        .collect();
    assert!(
        differing.len() * 20 <= all.len(),
        "{differing:?} of {}",
        all.len()
    );
}

#[test]
fn names_are_unique() {
    let all = all();
    let names: BTreeSet<&str> = all.iter().map(|s| s.name).collect();
    assert_eq!(names.len(), all.len());
}

pub fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for item in std::fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Returns the module that a source file is.
pub fn module(krate: &str, root: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(root).unwrap().with_extension("");
    let mut parts = vec![krate.to_owned()];
    parts.extend(
        relative
            .components()
            .map(|part| part.as_os_str().to_str().unwrap().to_owned()),
    );
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts.join("::")
}

#[test]
fn every_list_in_the_source_is_in_the_catalogue() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut written = BTreeSet::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().file_name().into_string().unwrap();
        if !folder.starts_with("areas-") && !["kernel", "server"].contains(&&*folder) {
            continue;
        }
        let krate = format!("provost_{}", folder.replace('-', "_"));
        let root = crates.join(&folder).join("src");
        let mut files = Vec::new();
        sources(&root, &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let begins = |line: &&str| line.ends_with("statements! {") && !line.starts_with("//");
            let is_test = file
                .file_stem()
                .is_some_and(|name| name == "tests" || name == "testing");
            if !is_test && text.lines().map(str::trim_end).any(|line| begins(&line)) {
                written.insert(module(&krate, &root, &file));
            }
        }
    }
    let catalogued = of(&ALL).into_iter().map(|s| s.name.rsplit_once("::").unwrap().0);
    let mut listed: BTreeSet<String> = catalogued.map(str::to_owned).collect();
    listed.extend(WITHOUT_A_SCHEMA.map(str::to_owned));
    assert_eq!(written, listed);
    assert!(written.len() >= 9);
}

/// Opening a store for reading must be enough for every read that names it as such.
#[test]
fn a_reading_connection_refuses_to_write() {
    for store in migrated("reading", ALL.migrations(), START) {
        let mut reader = Conn::open(&store.location(), Access::Read).unwrap();
        let write = reader.batch("INSERT INTO installation (name, value) VALUES ('a', 'b')");
        assert!(write.is_err());
    }
}
