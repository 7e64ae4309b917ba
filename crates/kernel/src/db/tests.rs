//! The seam's promises, each on every engine that is there.

use super::*;
use crate::error::{Class, Code, Error, Result};
use crate::time::Timestamp;

/// A watch that has seen nothing, and therefore misses nothing.
fn nobody() -> std::sync::Arc<dyn Watch> {
    std::sync::Arc::new(crate::witness::Witness::default())
}

crate::statements! {
    /// Writes every type.
    PUT_ALL = "INSERT INTO kinds (id, word, number, flag, bytes, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    /// Reads every type.
    GET_ALL = "SELECT id, word, number, flag, bytes, at FROM kinds WHERE id = ?1";
    /// Writes one thing.
    ADD = "INSERT INTO things (id, name) VALUES (?1, ?2)";
    /// Writes one thing and returns it.
    ADD_RETURNING = "INSERT INTO things (id, name) VALUES (?1, ?2) RETURNING name, id";
    /// Writes a thing that may be there.
    ADD_ONCE = "INSERT INTO things (id, name) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";
    /// Renames things.
    RENAME = "UPDATE things SET name = ?2 WHERE id >= ?1";
    /// Lists things.
    LIST = "SELECT id, name FROM things ORDER BY id";
    /// Counts things.
    COUNT = "SELECT COUNT(*) FROM things";
    /// Names the first thing.
    WHICH = "SELECT name FROM things WHERE id = 1";
    /// Where a connection looks for a table.
    PATH = { sqlite: "SELECT ''", postgres: "SELECT current_setting('search_path')" };
    /// Parameters out of order, repeated, and a quoted one.
    JUMBLED = "SELECT CAST(?2 AS TEXT), CAST(?1 AS TEXT), CAST(?2 AS TEXT), '?1', 'it''s ?2'";
    /// Cannot be prepared.
    NONSENSE = "SELECT nothing FROM nowhere WHERE id = ?1";
    /// Ends the connection that runs it.
    KILL = {
        sqlite: "SELECT 1",
        postgres: "SELECT CASE WHEN pg_terminate_backend(pg_backend_pid()) THEN 1 ELSE 0 END",
    };
    /// Locks one thing.
    LOCK = unscoped("to test the second form") {
        sqlite: "SELECT id FROM things WHERE id = ?1",
        postgres: "SELECT id FROM things WHERE id = ?1 FOR UPDATE",
    };
    /// Counts the transactions that a connection of this name left open.
    OPEN_ELSEWHERE = {
        sqlite: "SELECT 0",
        postgres: "SELECT COUNT(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' \
            AND query LIKE '%kinds%' AND query NOT LIKE '%pg_stat_activity%' AND application_name = ?1",
    };
    /// Ends the connections of this name.
    KILL_OTHERS = {
        sqlite: "SELECT 1",
        postgres: "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = ?1",
    };
    /// Depends on the shape of its table.
    STAR = "SELECT * FROM things ORDER BY id";
    /// Refuses its value inside the engine.
    MISFIT = {
        sqlite: "INSERT INTO things (id, name) VALUES (?1, ?2)",
        postgres: "INSERT INTO things (id, name) VALUES (CAST(CAST(?1 AS TEXT) AS BIGINT), ?2)",
    };
    /// Takes one value.
    TOO_MANY = "SELECT CAST(?1 AS TEXT)";
    /// Shows how a connection is set up.
    SETTINGS = "SELECT (SELECT journal_mode FROM pragma_journal_mode), \
        (SELECT synchronous FROM pragma_synchronous), (SELECT foreign_keys FROM pragma_foreign_keys), \
        (SELECT secure_delete FROM pragma_secure_delete), \
        (SELECT query_only FROM pragma_query_only), (SELECT timeout FROM pragma_busy_timeout)";
}

const SCHEMA_SQLITE: &str = "
    CREATE TABLE things (id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL) STRICT;
    CREATE TABLE kinds (id TEXT NOT NULL PRIMARY KEY, word TEXT, number INTEGER, flag INTEGER, bytes BLOB,
        at INTEGER) STRICT;";
const SCHEMA_POSTGRES: &str = "
    CREATE TABLE things (id BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE kinds (id TEXT NOT NULL PRIMARY KEY, word TEXT, number BIGINT, flag BOOLEAN, bytes BYTEA,
        at BIGINT);";

/// Runs a test on every engine with its own store and an open writer.
fn on_each(name: &str, test: impl Fn(&testing::TestStore, &mut Conn)) {
    for store in testing::locations(name) {
        let mut conn = store.open();
        conn.batch(match conn.engine() {
            Engine::Sqlite => SCHEMA_SQLITE,
            Engine::Postgres => SCHEMA_POSTGRES,
        })
        .expect("the schema is valid");
        test(&store, &mut conn);
    }
}

fn call<'a>(statement: &'static Statement, params: &[Param<'a>]) -> Call<'a> {
    Call {
        statement,
        params: params.to_vec(),
    }
}

fn count(conn: &mut Conn) -> i64 {
    conn.read(|tx| tx.query_opt(&COUNT, params![], |row| row.get(0)))
        .expect("counting works")
        .expect("a count is a row")
}

fn class<T>(outcome: Result<T>) -> Option<Class> {
    outcome.err().map(|error| error.work_class())
}

fn private(error: &Error) -> String {
    error.private().unwrap_or_default()
}

type All = (
    String,
    Option<String>,
    Option<i64>,
    Option<bool>,
    Option<Vec<u8>>,
    Option<Timestamp>,
);

fn read_all(row: &Row<'_>) -> Result<All> {
    Ok((
        row.get(0)?,
        row.get(1)?,
        row.get(2)?,
        row.get(3)?,
        row.get(4)?,
        row.get(5)?,
    ))
}

#[test]
fn every_type_comes_back_as_it_went() {
    on_each("types", |_, conn| {
        let at = Timestamp::from_ms(1_795_144_500_123);
        let full = params!["full", "wörd \u{1F980}", i64::MIN, true, [0_u8, 255, 7], at];
        let empty = params![
            String::from("empty"),
            None::<&str>,
            None::<i64>,
            None::<bool>,
            None::<Vec<u8>>,
            None::<Timestamp>
        ];
        let rows = conn
            .begin(&[
                call(&PUT_ALL, full),
                call(&PUT_ALL, empty),
                call(&GET_ALL, params!["full"]),
            ])
            .expect("writes");
        assert_eq!((rows[0].affected(), rows[1].affected(), rows[2].len()), (1, 1, 1));
        let expected: All = (
            "full".into(),
            Some("wörd \u{1F980}".into()),
            Some(i64::MIN),
            Some(true),
            Some(vec![0, 255, 7]),
            Some(at),
        );
        let row = rows[2].first().expect("one row");
        assert_eq!(read_all(&row).expect("readable"), expected);
        assert_eq!(row.str(1).expect("text"), "wörd \u{1F980}");
        conn.commit(&[]).expect("commits");
        let read = conn
            .read(|tx| tx.query_opt(&GET_ALL, params!["full"], read_all))
            .expect("reads");
        assert_eq!(read, Some(expected));
        let read = conn
            .read(|tx| tx.query_opt(&GET_ALL, params!["empty"], read_all))
            .expect("reads");
        assert_eq!(read, Some(("empty".into(), None, None, None, None, None)));
        let none = conn
            .read(|tx| tx.query_opt(&GET_ALL, params!["absent"], read_all))
            .expect("reads");
        assert_eq!(none, None);
    });
}

#[test]
fn parameters_are_numbered_and_quoted_text_is_left_alone() {
    assert_eq!(
        to_postgres("SELECT ?2, '?1 it''s ?3', \"?1\", ?1 -- ?2\n, ?12 ? 'open ?1"),
        "SELECT $2, '?1 it''s ?3', \"?1\", $1 -- ?2\n, $12 ? 'open ?1"
    );
    on_each("jumbled", |_, conn| {
        let read = conn
            .read(|tx| {
                tx.query_opt(&JUMBLED, params!["ten", "twenty"], |row| {
                    (0..5)
                        .map(|index| row.get(index))
                        .collect::<Result<Vec<String>>>()
                })
            })
            .expect("reads");
        let expected = ["twenty", "ten", "twenty", "?1", "it's ?2"].map(String::from);
        assert_eq!(read, Some(expected.to_vec()));
    });
}

#[test]
fn a_statement_list_knows_its_statements() {
    assert_eq!(STATEMENTS.len(), 20);
    assert_eq!(ADD.name, "provost_kernel::db::tests::ADD");
    assert_eq!(ADD.unscoped, None);
    assert_eq!(LOCK.unscoped, Some("to test the second form"));
    assert_ne!(KILL.sqlite, KILL.postgres);
}

#[test]
fn a_batch_reports_rows_and_counts() {
    on_each("counts", |_, conn| {
        let rows = conn
            .begin(&[call(&ADD, params![1, "a"]), call(&ADD_RETURNING, params![2, "b"])])
            .expect("begins");
        assert_eq!(
            (rows[0].affected(), rows[0].len(), rows[0].is_empty()),
            (1, 0, true)
        );
        assert_eq!((rows[1].affected(), rows[1].len()), (1, 1));
        assert_eq!(rows[1].first().expect("row").str(0).expect("text"), "b");
        let rows = conn
            .many(&[
                call(&ADD_ONCE, params![1, "again"]),
                call(&RENAME, params![1, "c"]),
                call(&LIST, params![]),
                call(&RENAME, params![99, "d"]),
            ])
            .expect("runs");
        let affected: Vec<_> = rows.iter().map(Rows::affected).collect();
        assert_eq!(affected, [0, 2, 2, 0]);
        let names: Vec<String> = rows[2].iter().map(|row| row.get(1).expect("text")).collect();
        assert_eq!(names, ["c", "c"]);
        let rows = conn
            .commit(&[call(&ADD, params![3, "e"]), call(&COUNT, params![])])
            .expect("commits");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].first().expect("row").get::<i64>(0).expect("count"), 3);
        assert_eq!(count(conn), 3);
    });
}

#[test]
fn a_failed_unit_leaves_the_others() {
    on_each("savepoint", |_, conn| {
        conn.begin(&[call(&ADD, params![1, "prologue"])]).expect("begins");
        for id in [2, 1, 3] {
            conn.savepoint().expect("opens");
            let first = conn.tx().execute(&ADD, params![id + 10, "first"]);
            let second = first.and_then(|_| conn.tx().execute(&ADD, params![id, "second"]));
            match second {
                Ok(_) => conn.release().expect("releases"),
                Err(error) => {
                    assert_eq!((id, error.work_class()), (1, Class::Refused));
                    conn.rollback_to().expect("heals");
                }
            }
        }
        // A refusal without a storage error undoes as well, before and after anything was sent.
        conn.savepoint().expect("opens");
        conn.rollback_to().expect("nothing to undo");
        conn.tx().queue(&ADD, params![50, "never"]).expect("queues");
        conn.rollback_to().expect("undoes what was queued");
        conn.tx().execute(&ADD, params![51, "never"]).expect("writes");
        conn.tx().queue(&ADD, params![52, "never"]).expect("queues");
        conn.rollback_to().expect("undoes what was sent");
        conn.tx().execute(&ADD, params![53, "kept"]).expect("still open");
        conn.release().expect("releases");
        conn.release().expect("nothing is open");
        conn.commit(&[]).expect("commits");
        let ids = conn
            .read(|tx| tx.query(&LIST, params![], |row| row.get::<i64>(0)))
            .expect("lists");
        assert_eq!(ids, [1, 2, 3, 12, 13, 53]);
    });
}

#[test]
fn the_first_error_poisons_until_it_is_undone() {
    on_each("poison", |_, conn| {
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        conn.savepoint().expect("opens");
        let mut tx = conn.tx();
        assert_eq!(class(tx.execute(&NONSENSE, params![1])), Some(Class::Refused));
        assert_eq!(class(tx.execute(&ADD, params![2, "b"])), Some(Class::Refused));
        assert_eq!(
            class(tx.query(&LIST, params![], |_| Ok(()))),
            Some(Class::Refused)
        );
        assert_eq!(
            class(tx.query_opt(&COUNT, params![], |_| Ok(()))),
            Some(Class::Refused)
        );
        assert_eq!(class(tx.queue(&ADD, params![2, "b"])), Some(Class::Refused));
        assert_eq!(class(conn.many(&[])), Some(Class::Refused));
        assert_eq!(class(conn.savepoint()), Some(Class::Refused));
        assert_eq!(class(conn.release()), Some(Class::Refused));
        conn.rollback_to().expect("heals");
        conn.tx().execute(&ADD, params![3, "c"]).expect("writes again");
        conn.commit(&[]).expect("commits");
        assert_eq!(count(conn), 2);
        // A read does not turn a swallowed storage error into half an answer.
        let swallowed = conn.read(|tx| {
            let _ = tx.execute(&NONSENSE, params![1]);
            Ok(())
        });
        assert_eq!(class(swallowed), Some(Class::Refused));
        assert_eq!(count(conn), 2);
    });
}

#[test]
fn an_aborted_transaction_does_not_commit() {
    on_each("aborted", |_, conn| {
        conn.begin(&[]).expect("begins");
        conn.tx().execute(&ADD, params![1, "a"]).expect("writes");
        assert!(conn.batch("SELECT nothing FROM nowhere").is_err());
        assert_eq!(
            class(conn.commit(&[call(&ADD, params![2, "b"])])),
            Some(Class::Retry)
        );
        assert_eq!(
            class(conn.commit(&[])),
            Some(Class::Refused),
            "no transaction is open"
        );
        conn.rollback();
        assert_eq!(count(conn), 0);
        // The failure inside the commit's own pipeline.
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        let outcome = conn.commit(&[call(&ADD, params![1, "twice"]), call(&ADD, params![2, "b"])]);
        assert_eq!(class(outcome), Some(Class::Refused));
        assert_eq!(count(conn), 0);
        // The failure inside the prologue.
        let outcome = conn.begin(&[call(&ADD, params![1, "a"]), call(&ADD, params![1, "twice"])]);
        assert_eq!(class(outcome), Some(Class::Refused));
        assert_eq!(count(conn), 0);
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        conn.commit(&[]).expect("commits");
        assert_eq!(count(conn), 1);
    });
}

#[test]
fn an_error_of_a_queued_statement_spoils_the_transaction() {
    on_each("queued", |_, conn| {
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        conn.savepoint().expect("opens");
        let queued = conn.tx().queue(&ADD, params![1, "twice"]);
        let later = queued.and_then(|()| conn.tx().execute(&ADD, params![2, "b"]).map(drop));
        assert_eq!(class(later), Some(Class::Retry));
        assert_eq!(
            class(conn.rollback_to()),
            Some(Class::Retry),
            "one savepoint cannot heal it"
        );
        assert_eq!(class(conn.commit(&[])), Some(Class::Retry));
        conn.begin(&[]).expect("begins");
        conn.tx().queue(&ADD, params![3, "c"]).expect("queues");
        conn.tx().queue(&ADD, params![4, "d"]).expect("queues");
        let rows = conn.commit(&[call(&COUNT, params![])]).expect("commits");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].first().expect("row").get::<i64>(0).expect("count"), 2);
        conn.begin(&[]).expect("begins");
        let queued = conn.tx().queue(&ADD, params![3, "twice"]);
        let outcome = queued.and_then(|()| conn.commit(&[]).map(drop));
        assert_eq!(class(outcome), Some(Class::Retry));
        conn.rollback();
        assert_eq!(count(conn), 2);
    });
}

#[test]
fn a_read_sees_one_instant() {
    on_each("snapshot", |store, conn| {
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        conn.commit(&[]).expect("commits");
        let mut reader = Conn::open(&store.location(), Access::Read).expect("opens");
        let counts = reader
            .read(|tx| {
                let before = tx.query_opt(&COUNT, params![], |row| row.get::<i64>(0))?;
                conn.begin(&[call(&ADD, params![2, "b"])])?;
                conn.commit(&[])?;
                let after = tx.query_opt(&COUNT, params![], |row| row.get::<i64>(0))?;
                Ok((before, after))
            })
            .expect("reads");
        assert_eq!(counts, (Some(1), Some(1)));
        assert_eq!(count(&mut reader), 2);
        for conn in [&mut reader, conn] {
            let refused = conn.read(|tx| tx.execute(&ADD, params![3, "c"]));
            assert!(refused.is_err(), "a read cannot write");
            let refused = conn.read(|tx| tx.queue(&ADD, params![3, "c"]));
            assert!(refused.is_err(), "a read cannot write later either");
            assert_eq!(count(conn), 2);
        }
    });
}

/// The end of a read is sent although nobody waits for its answer.
#[test]
fn a_read_does_not_stay_open() {
    on_each("idle", |store, conn| {
        let Location::Postgres(url) = store.location() else {
            return;
        };
        let name = format!("idle-{}", std::process::id());
        let separator = if url.expose().contains("://") { '&' } else { ' ' };
        let named = format!("{}{separator}application_name={name}", url.expose());
        let mut reader = Conn::open(
            &Location::Postgres(PostgresUrl::new(crate::Secret::new(named))),
            Access::Read,
        )
        .expect("opens");
        for _ in 0..20 {
            reader
                .read(|tx| tx.query_opt(&GET_ALL, params!["x"], read_all))
                .expect("reads");
            // The server may need a moment to act on what it was sent, so one look of many has to be clean.
            let clean = (0..1000).any(|_| {
                let open = conn.read(|tx| {
                    tx.query_opt(&OPEN_ELSEWHERE, params![name.as_str()], |row| row.get::<i64>(0))
                });
                open.expect("looks") == Some(0)
            });
            assert!(clean, "the reader is idle in a transaction");
        }
    });
}

#[test]
fn a_lost_connection_costs_a_read_nothing() {
    on_each("lost", |_, conn| {
        if conn.engine() == Engine::Sqlite {
            return;
        }
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        conn.commit(&[]).expect("commits");
        let mut runs = 0;
        let read = conn.read(|tx| {
            runs += 1;
            if runs == 1 {
                assert_eq!(class(tx.execute(&KILL, params![])), Some(Class::Lost));
            }
            tx.query_opt(&COUNT, params![], |row| row.get::<i64>(0))
        });
        assert_eq!((read.expect("reads"), runs), (Some(1), 2));
        // Lost while it was idle: neither a read nor a transaction notices.
        for _ in 0..2 {
            let _ = conn.tx().execute(&KILL, params![]);
            assert_eq!(count(conn), 1);
        }
        let _ = conn.tx().execute(&KILL, params![]);
        conn.begin(&[]).expect("begins");
        // Lost in the middle: the unit hears of it, and the next transaction works.
        assert_eq!(class(conn.tx().execute(&KILL, params![])), Some(Class::Lost));
        assert_eq!(class(conn.rollback_to()), Some(Class::Lost));
        assert_eq!(class(conn.commit(&[])), Some(Class::Lost));
        conn.rollback();
        conn.begin(&[call(&ADD, params![2, "b"])]).expect("begins");
        conn.commit(&[]).expect("commits");
        assert_eq!(count(conn), 2);
    });
}

#[test]
fn a_server_that_kills_an_idle_connection_is_survived() {
    on_each("killed", |store, conn| {
        let Location::Postgres(url) = store.location() else {
            return;
        };
        let name = format!("killed-{}", std::process::id());
        let separator = if url.expose().contains("://") { '&' } else { ' ' };
        let named = format!("{}{separator}application_name={name}", url.expose());
        let location = Location::Postgres(PostgresUrl::new(crate::Secret::new(named)));
        let mut other = Conn::open(&location, Access::Write).expect("opens");
        assert_eq!(count(&mut other), 0);
        conn.tx()
            .execute(&KILL_OTHERS, params![name.as_str()])
            .expect("kills");
        assert_eq!(count(&mut other), 0);
        conn.tx()
            .execute(&KILL_OTHERS, params![name.as_str()])
            .expect("kills");
        other.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        other.commit(&[]).expect("commits");
        assert_eq!(count(conn), 1);
    });
}

#[test]
fn statements_survive_a_change_of_the_schema() {
    on_each("replan", |store, conn| {
        let mut reader = Conn::open(&store.location(), Access::Read).expect("opens");
        let width = |reader: &mut Conn| {
            reader.read(|tx| tx.query(&STAR, params![], |row| Ok(row.get::<i64>(2).is_ok())))
        };
        assert_eq!(width(&mut reader).expect("reads"), Vec::<bool>::new());
        conn.batch(match conn.engine() {
            Engine::Sqlite => "ALTER TABLE things ADD COLUMN size INTEGER NOT NULL DEFAULT 7",
            Engine::Postgres => "ALTER TABLE things ADD COLUMN size BIGINT NOT NULL DEFAULT 7",
        })
        .expect("changes");
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        conn.commit(&[]).expect("commits");
        assert_eq!(width(&mut reader).expect("reads"), [true]);
    });
}

#[test]
fn a_corrupt_column_is_an_error_that_names_its_place() {
    on_each("corrupt", |_, conn| {
        conn.begin(&[call(&ADD, params![1, "secret-name"])])
            .expect("begins");
        conn.commit(&[]).expect("commits");
        for column in [0, 7] {
            let error = conn
                .read(|tx| tx.query_opt(&LIST, params![], |row| row.get::<String>(column)))
                .expect_err("an integer is no text");
            assert_eq!(error.code(), Code::Internal);
            let place = format!("tests::LIST: column {column}");
            assert!(private(&error).contains(&place), "{}", private(&error));
        }
        let error = conn
            .read(|tx| tx.query_opt(&LIST, params![], |row| row.get::<Option<i64>>(1)))
            .expect_err("text is no integer");
        assert!(!private(&error).contains("secret-name"));
        let rows = conn.begin(&[call(&LIST, params![])]).expect("begins");
        assert!(rows[0].first().expect("row").get::<bool>(1).is_err());
        assert!(rows[0].first().expect("row").str(0).is_err());
        conn.rollback();
    });
}

#[test]
fn errors_hold_no_bound_value() {
    on_each("values", |_, conn| {
        let secret = "hunter2";
        let unique = [call(&ADD, params![1, secret]), call(&ADD, params![1, secret])];
        let unique = conn.begin(&unique).map(drop);
        let misfit = conn.begin(&[call(&MISFIT, params![secret, secret])]).map(drop);
        let kind = conn.begin(&[call(&ADD, params![secret, secret])]).map(drop);
        let count = conn.begin(&[call(&TOO_MANY, params![secret, secret])]).map(drop);
        for outcome in [unique, misfit, kind, count] {
            let error = outcome.expect_err("refused");
            assert_eq!(error.work_class(), Class::Refused);
            let all = format!("{error} {} {error:?}", private(&error));
            assert!(!all.contains(secret), "{all}");
            assert!(all.contains("tests::"), "{all}");
        }
        assert!(!format!("{:?}", params![secret, 7, true]).contains(secret));
        let location = Location::Postgres(PostgresUrl::new(crate::Secret::new(
            "postgres://u:hunter2@h/x".into(),
        )));
        assert!(!format!("{location:?}").contains(secret));
    });
}

#[test]
fn a_second_writer_is_told_that_the_store_is_busy() {
    on_each("busy", |store, conn| {
        let mut other = store.open();
        other
            .batch(match other.engine() {
                Engine::Sqlite => "PRAGMA busy_timeout = 10",
                Engine::Postgres => "SET lock_timeout = '10ms'",
            })
            .expect("sets");
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        let outcome = other.begin(&[call(&ADD, params![1, "b"])]).map(drop);
        let error = outcome.expect_err("the row is locked");
        assert_eq!(
            (error.work_class(), error.code()),
            (Class::Unavailable, Code::Unavailable)
        );
        conn.commit(&[]).expect("commits");
        other.begin(&[call(&ADD, params![2, "b"])]).expect("begins");
        other.commit(&[]).expect("commits");
        assert_eq!(count(conn), 2);
    });
}

#[test]
fn a_deadlock_asks_to_run_again() {
    on_each("deadlock", |store, conn| {
        if conn.engine() == Engine::Sqlite {
            return;
        }
        conn.begin(&[call(&ADD, params![1, "a"]), call(&ADD, params![2, "b"])])
            .expect("begins");
        conn.commit(&[]).expect("commits");
        let location = store.location();
        let barrier = std::sync::Barrier::new(2);
        let lock = |first: i64, second: i64| {
            let mut conn = Conn::open(&location, Access::Write).expect("opens");
            conn.begin(&[call(&LOCK, params![first])]).expect("locks");
            barrier.wait();
            conn.savepoint().expect("opens");
            let outcome = conn.tx().execute(&LOCK, params![second]);
            if let Err(error) = &outcome {
                assert_eq!(class(conn.rollback_to()), Some(error.work_class()));
            }
            conn.rollback();
            class(outcome)
        };
        let mut classes = std::thread::scope(|scope| {
            let other = scope.spawn(|| lock(2, 1));
            [lock(1, 2), other.join().expect("no panic")]
        });
        classes.sort_by_key(Option::is_some);
        assert_eq!(classes, [None, Some(Class::Retry)]);
    });
}

#[test]
fn a_connection_may_be_opened_on_one_thread_and_used_on_another() {
    on_each("send", |store, _| {
        let mut conn = store.open();
        let used = std::thread::spawn(move || count(&mut conn));
        assert_eq!(used.join().expect("no panic"), 0);
    });
}

#[test]
fn a_store_that_cannot_be_reached_is_unavailable() {
    let nowhere = Location::Postgres(PostgresUrl::new(crate::Secret::new(
        "host=/nonexistent user=nobody".into(),
    )));
    assert_eq!(
        class(Conn::open(&nowhere, Access::Read)),
        Some(Class::Unavailable)
    );
    let nowhere = Location::Sqlite("/nonexistent/store.sqlite".into());
    assert_eq!(
        class(Conn::open(&nowhere, Access::Read)),
        Some(Class::Unavailable)
    );
}

/// Proves WK-1.
#[test]
fn sqlite_is_set_up_for_durability() {
    on_each("settings", |store, conn| {
        if conn.engine() == Engine::Postgres {
            return;
        }
        let settings = |conn: &mut Conn| {
            conn.read(|tx| {
                tx.query_opt(&SETTINGS, params![], |row| {
                    let numbers = (1..6).map(|index| row.get(index)).collect::<Result<Vec<i64>>>()?;
                    Ok((row.get::<String>(0)?, numbers))
                })
            })
            .expect("reads")
            .expect("row")
        };
        assert_eq!(settings(conn), ("wal".into(), vec![2, 1, 1, 0, 5000]));
        let mut reader = Conn::open(&store.location(), Access::Read).expect("opens");
        let (mode, numbers) = settings(&mut reader);
        assert_eq!((mode.as_str(), numbers[3], numbers[4]), ("wal", 1, 5000));
    });
}

const fn migration(number: u32, sqlite: &'static str, postgres: &'static str) -> Migration {
    Migration {
        number,
        name: "a step",
        sqlite,
        postgres,
    }
}

const STEPS: &[Migration] = &[
    migration(
        1,
        "CREATE TABLE one (id INTEGER NOT NULL PRIMARY KEY) STRICT",
        "CREATE TABLE one (id BIGINT NOT NULL PRIMARY KEY)",
    ),
    migration(
        2,
        "INSERT INTO one (id) VALUES (1); INSERT INTO one (id) VALUES (2);",
        "INSERT INTO one (id) VALUES (1); INSERT INTO one (id) VALUES (2);",
    ),
    migration(
        3,
        "CREATE TABLE three (id INTEGER NOT NULL PRIMARY KEY) STRICT",
        "CREATE TABLE three (id BIGINT NOT NULL PRIMARY KEY)",
    ),
];

#[test]
fn migrations_are_applied_once() {
    for store in testing::locations("migrate") {
        let (mut conn, now) = (store.open(), Timestamp::from_ms(5));
        assert!(!is_migrated(&mut conn, STEPS).expect("looks"));
        assert_eq!(migrate(&mut conn, &STEPS[..2], now).expect("migrates"), [1, 2]);
        assert!(is_migrated(&mut conn, &STEPS[..2]).expect("looks"));
        assert!(!is_migrated(&mut conn, STEPS).expect("looks"));
        assert_eq!(migrate(&mut conn, STEPS, now).expect("migrates"), [3]);
        assert_eq!(migrate(&mut conn, STEPS, now).expect("migrates"), [0_u32; 0]);
        assert!(is_migrated(&mut conn, STEPS).expect("looks"));
    }
}

#[test]
fn a_store_of_a_newer_or_another_program_is_refused() {
    for store in testing::locations("refuse") {
        let (mut conn, now) = (store.open(), Timestamp::from_ms(5));
        migrate(&mut conn, STEPS, now).expect("migrates");
        let edited = [STEPS[0], migration(2, "SELECT 1", "SELECT 1"), STEPS[2]];
        for (steps, words) in [
            (&STEPS[..2], "newer version"),
            (&edited[..], "migration 2 (a step)"),
        ] {
            for outcome in [
                migrate(&mut conn, steps, now).map(drop),
                is_migrated(&mut conn, steps).map(drop),
            ] {
                let error = outcome.expect_err("refused");
                assert!(error.message().contains(words), "{error}");
            }
        }
        assert!(is_migrated(&mut conn, STEPS).expect("nothing changed"));
    }
}

#[test]
fn a_failing_migration_leaves_nothing_behind() {
    for store in testing::locations("failing") {
        let (mut conn, now) = (store.open(), Timestamp::from_ms(5));
        let broken = "CREATE TABLE half (id INTEGER NOT NULL PRIMARY KEY); SELECT nothing FROM nowhere;";
        let steps = [STEPS[0], migration(2, broken, broken)];
        assert!(migrate(&mut conn, &steps, now).is_err());
        assert!(is_migrated(&mut conn, &STEPS[..1]).expect("looks"));
        assert_eq!(migrate(&mut conn, STEPS, now).expect("migrates"), [2, 3]);
        assert!(conn.batch("SELECT id FROM half").is_err());
    }
}

#[test]
fn servers_that_start_at_once_migrate_once() {
    for store in testing::locations("race") {
        let applied: Vec<u32> = std::thread::scope(|scope| {
            let servers: Vec<_> = (0..4)
                .map(|_| {
                    scope
                        .spawn(|| migrate(&mut store.open(), STEPS, Timestamp::from_ms(5)).expect("migrates"))
                })
                .collect();
            let mut all: Vec<u32> = servers
                .into_iter()
                .flat_map(|server| server.join().expect("no panic"))
                .collect();
            all.sort_unstable();
            all
        });
        assert_eq!(applied, [1, 2, 3]);
    }
}

#[test]
fn readers_answer_survive_a_panic_and_stop() {
    on_each("readers", |store, conn| {
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        conn.commit(&[]).expect("commits");
        let readers = Readers::start(store.location(), 1, 8, &nobody()).expect("starts");
        let ask = |kill: bool| {
            let (sender, receiver) = flume::bounded(1);
            let job = Box::new(move |conn: &mut Conn| {
                if kill {
                    let _ = conn.tx().execute(&KILL, params![]);
                }
                let _ = sender.send(count(conn));
            });
            readers.submit(job).expect("there is room");
            receiver
        };
        assert_eq!(ask(false).recv(), Ok(1));
        let panicking = Box::new(|conn: &mut Conn| {
            let _ = conn.read(|tx| -> Result<()> {
                tx.query_opt(&COUNT, params![], |row| row.get::<i64>(0))?;
                panic!("a job panics on purpose");
            });
        });
        readers.submit(panicking).expect("there is room");
        assert_eq!(ask(false).recv(), Ok(1));
        assert_eq!(ask(true).recv(), Ok(1), "a lost connection is opened again");
        let last = ask(false);
        readers.stop();
        assert_eq!(last.recv(), Ok(1), "what waited was served");
        assert_eq!(class(readers.submit(Box::new(|_| ()))), Some(Class::Unavailable));
    });
}

#[test]
fn a_full_queue_of_readers_is_unavailable() {
    let [store, ..] = &testing::locations("full")[..] else {
        panic!("SQLite is always there");
    };
    drop(store.open());
    let readers = Readers::start(store.location(), 1, 1, &nobody()).expect("starts");
    let (started, has_started) = flume::bounded(1);
    let (go, wait) = flume::bounded::<()>(0);
    readers
        .submit(Box::new(move |_| {
            let _ = started.send(());
            let _ = wait.recv();
        }))
        .expect("there is room");
    has_started.recv().expect("starts");
    readers.submit(Box::new(|_| ())).expect("there is room for one");
    assert_eq!(class(readers.submit(Box::new(|_| ()))), Some(Class::Unavailable));
    drop(go);
}

#[test]
fn readers_do_not_start_without_a_store() {
    let nowhere = Location::Sqlite("/nonexistent/store.sqlite".into());
    assert_eq!(
        class(Readers::start(nowhere, 2, 2, &nobody())),
        Some(Class::Unavailable)
    );
}

/// Lets nothing through once it is closed, and looks at what takes the place of a lost connection.
#[derive(Default)]
struct Gate {
    is_closed: std::sync::atomic::AtomicBool,
    refuses: std::sync::atomic::AtomicBool,
    looks: std::sync::atomic::AtomicUsize,
}

impl Watch for Gate {
    fn permit(&self) -> Result<()> {
        if self.is_closed.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(Error::unavailable("closed").class(Class::Broken));
        }
        Ok(())
    }

    fn look(&self, conn: &mut Conn) -> Result<()> {
        self.looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(conn.many(&[call(&COUNT, params![])])?.len(), 1, "it can be asked");
        if self.refuses.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(Error::unavailable("not this one"));
        }
        Ok(())
    }
}

/// Proves WT-1.
#[test]
fn what_takes_the_place_of_a_lost_connection_is_looked_at_before_it_serves() {
    use std::sync::atomic::Ordering::SeqCst;
    on_each("watched", |store, conn| {
        conn.begin(&[call(&ADD, params![1, "a"])]).expect("begins");
        conn.commit(&[]).expect("commits");
        let gate = std::sync::Arc::new(Gate::default());
        let mut watched = store.open().watched(gate.clone());
        assert_eq!(count(&mut watched), 1);
        assert_eq!(gate.looks.load(SeqCst), 0, "a first connection lost nothing");
        watched.reconnect().expect("reconnects");
        assert_eq!(gate.looks.load(SeqCst), 1);

        gate.refuses.store(true, SeqCst);
        assert!(watched.reconnect().is_err());
        let read = |conn: &mut Conn| conn.read(|tx| tx.query_opt(&COUNT, params![], |row| row.get::<i64>(0)));
        // Neither a read nor a transaction gets past what was not found good: it is looked at again.
        assert_eq!(
            read(&mut watched).expect_err("unproven").message(),
            "not this one"
        );
        assert_eq!(
            watched.begin(&[]).expect_err("unproven").message(),
            "not this one"
        );
        assert_eq!(gate.looks.load(SeqCst), 4);
        gate.refuses.store(false, SeqCst);
        assert_eq!(count(&mut watched), 1);
        assert_eq!(gate.looks.load(SeqCst), 5);

        gate.is_closed.store(true, SeqCst);
        assert_eq!(class(read(&mut watched)), Some(Class::Broken));
        assert_eq!(class(watched.begin(&[])), Some(Class::Broken));
    });
}
