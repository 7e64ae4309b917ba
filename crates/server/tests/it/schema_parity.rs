//! The two schemas are one: same tables, columns, types, keys and indexes on both engines.

use crate::areas_beside::every_area;
use provost_kernel::db::testing::{TestStore, locations};
use provost_kernel::db::{Conn, Engine, Param, Statement, migrate};
use provost_server::areas::ALL;
use std::collections::{BTreeMap, BTreeSet};

// SQLite's indexes of substrings are virtual tables, PostgreSQL's are indexes that a server without pg_trgm lacks, with
// views that have the names of the virtual tables: the one thing of the schema that the engines do not share.
mod ask {
    provost_kernel::statements! {
        SQLITE_TABLES = unscoped("a test") "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
        SQLITE_COLUMNS = unscoped("a test") "SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1) ORDER BY cid";
        SQLITE_INDEXES = unscoped("a test") "SELECT name, \"unique\", partial FROM pragma_index_list(?1) WHERE origin = 'c' ORDER BY name";
        SQLITE_INDEX_COLUMNS = unscoped("a test") "SELECT name FROM pragma_index_info(?1) ORDER BY seqno";
        SQLITE_FOREIGN_KEYS = unscoped("a test") "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1) ORDER BY id, seq";
        POSTGRES_TABLES = unscoped("a test") "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1";
        POSTGRES_COLUMNS = unscoped("a test") "SELECT CAST(column_name AS TEXT), CAST(data_type AS TEXT), is_nullable = 'NO', COALESCE(CAST(collation_name AS TEXT), '') FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?1 ORDER BY ordinal_position";
        POSTGRES_PRIMARY_KEY = unscoped("a test") "SELECT CAST(a.attname AS TEXT) FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k (number, place) JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number WHERE n.nspname = current_schema() AND t.relname = ?1 AND c.contype = 'p' ORDER BY k.place";
        POSTGRES_INDEXES = unscoped("a test") "SELECT CAST(i.relname AS TEXT), x.indisunique, x.indpred IS NOT NULL, CAST(a.attname AS TEXT) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid AND i.relname NOT IN ('mcp_session_actors_by_text', 'mcp_sessions_by_part') JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace CROSS JOIN LATERAL unnest(CAST(x.indkey AS SMALLINT[])) WITH ORDINALITY AS k (number, place) JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number WHERE n.nspname = current_schema() AND t.relname = ?1 AND NOT x.indisprimary ORDER BY i.relname, k.place";
        POSTGRES_FOREIGN_KEYS = unscoped("a test") "SELECT CAST(c.conname AS TEXT), CAST(f.relname AS TEXT), CAST(a.attname AS TEXT), CAST(b.attname AS TEXT) FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class f ON f.oid = c.confrelid JOIN pg_namespace n ON n.oid = t.relnamespace CROSS JOIN LATERAL unnest(c.conkey, c.confkey) WITH ORDINALITY AS k (own, other, place) JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.own JOIN pg_attribute b ON b.attrelid = f.oid AND b.attnum = k.other WHERE n.nspname = current_schema() AND t.relname = ?1 AND c.contype = 'f' ORDER BY c.conname, k.place";
        APPLIED = unscoped("a test") "SELECT number, name FROM schema_migrations ORDER BY number";
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    /// SQLite keeps a truth value as an integer.
    kind: &'static str,
    is_required: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Index {
    name: String,
    is_unique: bool,
    is_partial: bool,
    columns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ForeignKey {
    table: String,
    /// Own column and the other table's.
    columns: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    columns: Vec<Column>,
    primary_key: Vec<String>,
    indexes: BTreeSet<Index>,
    foreign_keys: BTreeSet<ForeignKey>,
}

/// Asks for rows of up to four texts; numbers and truth values become text.
fn rows(
    conn: &mut Conn,
    statement: &'static Statement,
    of: Option<&str>,
    columns: usize,
) -> Vec<Vec<String>> {
    let params: Vec<Param<'_>> = of.into_iter().map(Param::from).collect();
    let asked = conn.read(|tx| {
        tx.query(statement, &params, |row| {
            let text = |index| {
                row.get::<String>(index)
                    .or_else(|_| row.get::<i64>(index).map(|number| number.to_string()))
                    .or_else(|_| row.get::<bool>(index).map(|truth| i64::from(truth).to_string()))
            };
            (0..columns).map(text).collect::<provost_kernel::Result<Vec<_>>>()
        })
    });
    asked.unwrap_or_else(|e| panic!("{}: {:?}", statement.name, e.private()))
}

fn kind(engine: Engine, word: &str) -> &'static str {
    match (engine, word) {
        (_, "TEXT" | "text") => "text",
        (Engine::Sqlite, "INTEGER") | (Engine::Postgres, "bigint" | "boolean") => "integer",
        (Engine::Sqlite, "BLOB") | (Engine::Postgres, "bytea") => "bytes",
        _ => panic!("{engine:?} has a column of type {word}"),
    }
}

fn schema(store: &TestStore) -> BTreeMap<String, Table> {
    let mut conn = store.open();
    migrate(&mut conn, every_area().migrations(), crate::support::START).unwrap();
    match conn.engine() {
        Engine::Sqlite => of_sqlite(&mut conn),
        Engine::Postgres => of_postgres(&mut conn),
    }
}

fn of_sqlite(conn: &mut Conn) -> BTreeMap<String, Table> {
    let mut schema = BTreeMap::new();
    for table in rows(conn, &ask::SQLITE_TABLES, None, 2) {
        let [name, strict] = table.as_slice() else {
            unreachable!()
        };
        assert_eq!(strict, "1", "{name} is STRICT");
        let columns = rows(conn, &ask::SQLITE_COLUMNS, Some(name), 4);
        let mut key: Vec<(i64, String)> = columns
            .iter()
            .map(|c| (c[3].parse().unwrap(), c[0].clone()))
            .filter(|(place, _)| *place > 0)
            .collect();
        key.sort();
        let mut indexes = BTreeSet::new();
        for index in rows(conn, &ask::SQLITE_INDEXES, Some(name), 3) {
            let of_index = rows(conn, &ask::SQLITE_INDEX_COLUMNS, Some(&index[0]), 1);
            indexes.insert(Index {
                name: index[0].clone(),
                is_unique: index[1] == "1",
                is_partial: index[2] == "1",
                columns: of_index.concat(),
            });
        }
        let keys = rows(conn, &ask::SQLITE_FOREIGN_KEYS, Some(name), 4);
        let table = Table {
            columns: columns
                .iter()
                .map(|c| Column {
                    name: c[0].clone(),
                    kind: kind(Engine::Sqlite, &c[1]),
                    is_required: c[2] == "1",
                })
                .collect(),
            primary_key: key.into_iter().map(|(_, name)| name).collect(),
            indexes,
            foreign_keys: foreign_keys(keys),
        };
        schema.insert(name.clone(), table);
    }
    schema
}

fn of_postgres(conn: &mut Conn) -> BTreeMap<String, Table> {
    let mut schema = BTreeMap::new();
    for name in rows(conn, &ask::POSTGRES_TABLES, None, 1).concat() {
        let columns = rows(conn, &ask::POSTGRES_COLUMNS, Some(&name), 4);
        // SQLite compares bytes; a collation of a language would order and find otherwise.
        for column in columns
            .iter()
            .filter(|c| c[1] == "text" && !name.starts_with("schema_"))
        {
            assert_eq!(column[3], "C", "{name}.{}", column[0]);
        }
        let mut indexes: BTreeMap<String, Index> = BTreeMap::new();
        for row in rows(conn, &ask::POSTGRES_INDEXES, Some(&name), 4) {
            let index = indexes.entry(row[0].clone()).or_insert_with(|| Index {
                name: row[0].clone(),
                is_unique: row[1] == "1",
                is_partial: row[2] == "1",
                columns: Vec::new(),
            });
            index.columns.push(row[3].clone());
        }
        let table = Table {
            columns: columns
                .iter()
                .map(|c| Column {
                    name: c[0].clone(),
                    kind: kind(Engine::Postgres, &c[1]),
                    is_required: c[2] == "1",
                })
                .collect(),
            primary_key: rows(conn, &ask::POSTGRES_PRIMARY_KEY, Some(&name), 1).concat(),
            indexes: indexes.into_values().collect(),
            foreign_keys: foreign_keys(rows(conn, &ask::POSTGRES_FOREIGN_KEYS, Some(&name), 4)),
        };
        schema.insert(name, table);
    }
    schema
}

/// Rows are: the key's own name, the other table, the own column, the other column.
fn foreign_keys(rows: Vec<Vec<String>>) -> BTreeSet<ForeignKey> {
    let mut keys: BTreeMap<String, ForeignKey> = BTreeMap::new();
    for row in rows {
        let key = keys.entry(row[0].clone()).or_insert_with(|| ForeignKey {
            table: row[1].clone(),
            columns: Vec::new(),
        });
        key.columns.push((row[2].clone(), row[3].clone()));
    }
    keys.into_values().collect()
}

#[test]
fn both_engines_have_one_schema() {
    let stores = locations("parity");
    let schemas: Vec<_> = stores.iter().map(schema).collect();
    for other in &schemas[1..] {
        let names = |schema: &BTreeMap<String, Table>| schema.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&schemas[0]), names(other));
        for (name, table) in &schemas[0] {
            assert_eq!(table, &other[name], "{name}");
        }
    }
}

// RW-1: a table that the note of a closed store, the check and the restore do not know is a right that changes unnoticed.
/// Proves RW-1.
#[test]
fn every_table_decides_rights_or_says_why_it_does_not() {
    for store in locations("rights") {
        let there: BTreeSet<String> = schema(&store)
            .into_keys()
            .filter(|name| !name.starts_with("schema_"))
            .collect();
        let deciding = every_area().rights().iter().map(|deciding| deciding.table);
        let others = every_area().records().map(|(table, _)| table);
        let mut listed: Vec<&str> = deciding.chain(others).collect();
        listed.sort_unstable();
        assert!(
            listed.windows(2).all(|pair| pair[0] != pair[1]),
            "a table stands in a list twice"
        );
        for table in &there {
            assert!(
                listed.contains(&table.as_str()),
                "{table}: say in its area's `rights` or `records` whether its rows decide what somebody may do"
            );
        }
        // SQLite alone has its indexes of texts as tables.
        for table in listed.iter().filter(|table| !table.ends_with("_parts")) {
            assert!(there.contains(*table), "{table} is listed and is not there");
        }
        for (table, why) in every_area().records() {
            assert!(why.len() > 10, "{table}");
        }
        for deciding in every_area().rights() {
            let columns = &schema(&store)[deciding.table].columns;
            for without in deciding.without.iter().chain(deciding.loose) {
                assert!(
                    columns.iter().any(|column| column.name == *without),
                    "{}",
                    deciding.table
                );
            }
        }
    }
}

#[test]
fn the_organization_comes_first_in_every_key() {
    for store in locations("first") {
        let schema = schema(&store);
        let owned = |name: &str| schema[name].columns.iter().any(|c| c.name == "organization_id");
        let mut count = 0;
        for (name, table) in &schema {
            assert!(!table.primary_key.is_empty(), "{name}");
            for key in &table.primary_key {
                let column = table.columns.iter().find(|c| c.name == *key).unwrap();
                assert!(column.is_required, "{name}.{key}");
            }
            if !owned(name) {
                assert!(table.foreign_keys.is_empty(), "{name}");
                continue;
            }
            count += 1;
            assert_eq!(table.primary_key[0], "organization_id", "{name}");
            assert_eq!(table.columns[0].name, "organization_id", "{name}");
            for key in &table.foreign_keys {
                let organization = ("organization_id".to_owned(), "organization_id".to_owned());
                assert_eq!(key.columns[0], organization, "{name} to {}", key.table);
                let target: Vec<String> = key.columns.iter().map(|(_, to)| to.clone()).collect();
                assert_eq!(target, schema[&key.table].primary_key, "{name} to {}", key.table);
            }
        }
        assert!(count >= 10, "{count}");
    }
}

#[test]
fn both_engines_have_one_history() {
    let listed: Vec<(u32, &str)> = ALL.migrations().iter().map(|m| (m.number, m.name)).collect();
    for ((number, name), place) in listed.iter().zip(1..) {
        assert_eq!(*number, place);
        assert!(name.starts_with(&format!("{number:04}_")), "{name}");
    }
    for store in locations("history") {
        let mut conn = store.open();
        migrate(&mut conn, ALL.migrations(), crate::support::START).unwrap();
        let applied = rows(&mut conn, &ask::APPLIED, None, 2);
        let expected: Vec<Vec<String>> = listed
            .iter()
            .map(|(n, name)| vec![n.to_string(), (*name).to_owned()])
            .collect();
        assert_eq!(applied, expected);
    }
    let files = |engine: &str| {
        let files = crate::areas_graph::folders_of_areas()
            .into_values()
            .map(|area| area.join("migrations").join(engine))
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten();
        files
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect::<BTreeSet<_>>()
    };
    let scripts: BTreeSet<String> = listed.iter().map(|(_, name)| format!("{name}.sql")).collect();
    assert_eq!(files("sqlite"), scripts);
    assert_eq!(files("postgres"), scripts);
}
