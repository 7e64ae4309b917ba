//! Poolers, encodings and search paths, at a real PostgreSQL.

use super::tests::{COUNT, KILL, PATH, WHICH};
use super::*;
use crate::secret::Secret;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Returns the same database with these options, without what the url of the test says of a schema.
fn with(url: &str, database: Option<&str>, options: &str) -> Location {
    let config: Config = url.parse().expect("the url was used before");
    let host = match &config.get_hosts()[0] {
        Host::Tcp(host) => host.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    };
    let password = config
        .get_password()
        .map(|word| format!(" password='{}'", String::from_utf8_lossy(word)));
    let text = format!(
        "host={host} port={} user={} dbname={}{} {options}",
        config.get_ports().first().copied().unwrap_or(5432),
        config.get_user().unwrap_or("postgres"),
        database.or(config.get_dbname()).unwrap_or("postgres"),
        password.unwrap_or_default(),
    );
    Location::Postgres(PostgresUrl::new(Secret::new(text)))
}

/// Runs `f` with each PostgreSQL store's url, its own schema and a connection.
fn on_postgres(name: &str, f: impl Fn(&str, &str, &mut Conn)) {
    for store in testing::locations(name) {
        let Location::Postgres(url) = store.location() else {
            look_around(&store.location()).expect("a file lies in nothing");
            continue;
        };
        let config: Config = url.expose().parse().expect("the url was used before");
        let options = config.get_options().expect("the schema of the test").to_owned();
        let schema = options.split_once('=').expect("-csearch_path=…").1.to_owned();
        f(url.expose(), &schema, &mut store.open());
    }
}

fn told(location: &Location) -> String {
    let outcome = look_around(location).and_then(|()| Conn::open(location, Access::Write).map(drop));
    let error = outcome.expect_err("refused");
    error
        .told()
        .unwrap_or_else(|| panic!("{error}: {:?}", error.private()))
        .to_owned()
}

fn read(conn: &mut Conn, statement: &'static Statement) -> String {
    let read = conn.read(|tx| tx.query_opt(statement, params![], |row| row.get(0)));
    read.expect("reads").expect("a row")
}

fn table(schema: &str) -> String {
    format!(
        "CREATE TABLE {schema}.things (id BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL);
         INSERT INTO {schema}.things VALUES (1, '{schema}')"
    )
}

#[test]
fn a_database_that_cannot_hold_every_text_is_refused() {
    on_postgres("encoding", |url, schema, conn| {
        conn.set_statement_timeouts(false).expect("takes its time");
        for (encoding, is_refused) in [("LATIN1", true), ("SQL_ASCII", true), ("UTF8", false)] {
            let database = format!("{schema}_{}", encoding.to_lowercase());
            conn.batch(&format!("DROP DATABASE IF EXISTS {database}"))
                .expect("drops");
            conn.batch(&format!(
                "CREATE DATABASE {database} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
            ))
            .expect("creates");
            let location = with(url, Some(&database), "");
            let outcome = look_around(&location);
            conn.batch(&format!("DROP DATABASE {database} WITH (FORCE)"))
                .expect("drops");
            let said = outcome
                .err()
                .map(|error| error.told().unwrap_or_default().to_owned());
            assert_eq!(said.is_some(), is_refused, "{encoding}: {said:?}");
            if let Some(said) = said {
                assert!(
                    said.contains(encoding) && said.contains("ENCODING 'UTF8'"),
                    "{said}"
                );
            }
        }
    });
}

/// Proves DB-1.
#[test]
fn every_connection_is_pinned_to_one_schema() {
    on_postgres("pinned", |url, schema, conn| {
        let (later, now) = (format!("{schema}_later"), format!("{schema}_now"));
        let path = with(
            url,
            None,
            &format!("options=-csearch_path={later},{now},{schema}"),
        );
        conn.batch(&format!("CREATE SCHEMA {now}")).expect("creates");
        conn.batch(&table(&now)).expect("creates");
        for access in [Access::Read, Access::Write] {
            let mut one = Conn::open(&path, access).expect("opens");
            assert_eq!(read(&mut one, &PATH), format!("{now}, pg_temp"));
        }
        let mut pinned = Conn::open(&path, Access::Write).expect("opens");
        // Neither a temporary table nor a schema that appears before the one of now changes what is read.
        pinned
            .batch("CREATE TEMPORARY TABLE things (id BIGINT, name TEXT); INSERT INTO pg_temp.things VALUES (1, 'temporary')")
            .expect("creates");
        assert_eq!(read(&mut pinned, &WHICH), now);
        conn.batch(&format!("CREATE SCHEMA {later}")).expect("creates");
        conn.batch(&table(&later)).expect("creates");
        let _ = pinned.tx().execute(&KILL, params![]);
        assert_eq!(read(&mut pinned, &WHICH), now, "after it came back");
        // Where it is gone, nothing else is read in its place.
        conn.batch(&format!("DROP SCHEMA {now} CASCADE")).expect("drops");
        let _ = pinned.tx().execute(&KILL, params![]);
        let lost = pinned.read(|tx| tx.query_opt(&COUNT, params![], |row| row.get::<i64>(0)));
        let lost = lost.expect_err("its schema is gone");
        assert!(
            lost.told().is_some_and(|said| said.contains(&now)),
            "{lost}: {:?}",
            lost.private()
        );
        conn.batch(&format!("DROP SCHEMA {later} CASCADE"))
            .expect("drops");
    });
}

/// Proves DB-1.
#[test]
fn a_path_that_leads_past_the_store_is_refused() {
    on_postgres("path", |url, schema, conn| {
        let before = format!("{schema}_Before");
        conn.batch(&format!(
            "CREATE SCHEMA \"{before}\"; CREATE TABLE {schema}.schema_lease (id BIGINT)"
        ))
        .expect("creates");
        let past = with(
            url,
            None,
            &format!("options='-csearch_path=\\\\\"{before}\\\\\",{schema}'"),
        );
        let said = told(&past);
        assert!(
            said.contains(&format!("lie in the schema {schema},")) && said.contains(&before),
            "{said}"
        );
        // The store's own schema first, or alone, is no question; nor is a schema of its own for another store.
        let right = with(url, None, &format!("options='-csearch_path={schema},public'"));
        Conn::open(&right, Access::Write).expect("opens");
        let other = with(
            url,
            None,
            &format!("options='-csearch_path=\\\\\"{before}\\\\\"'"),
        );
        let mut other = Conn::open(&other, Access::Write).expect("opens");
        assert_eq!(read(&mut other, &PATH), format!("\"{before}\", pg_temp"));
        conn.batch(&format!("DROP SCHEMA \"{before}\" CASCADE"))
            .expect("drops");
        let nowhere = with(url, None, &format!("options=-csearch_path={schema}_none"));
        assert!(told(&nowhere).contains("names no schema"), "{}", told(&nowhere));
    });
}

/// Proves DB-1.
#[test]
fn a_direct_connection_is_never_taken_for_a_pooler() {
    on_postgres("direct", |url, schema, _| {
        let location = with(url, None, &format!("options=-csearch_path={schema}"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| look_around(&location).expect("nothing is between")));
            }
        });
    });
}

/// Proves DB-1.
#[test]
fn a_pooler_that_shares_sessions_is_refused() {
    on_postgres("pooler", |url, _, _| {
        let said = told(&pooled(url));
        assert!(said.contains("pool_mode = session"), "{said}");
    });
}

trait Line: Read + Write + Send {}
impl<T: Read + Write + Send> Line for T {}

/// Reads one message: its letter, its length and what follows.
fn message(line: &mut dyn Line) -> Option<Vec<u8>> {
    let mut head = [0; 5];
    line.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let mut whole = head.to_vec();
    whole.resize(length + 1, 0);
    line.read_exact(&mut whole[5..]).ok()?;
    Some(whole)
}

fn first_message(line: &mut dyn Line) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    line.read_exact(&mut length).ok()?;
    let mut whole = length.to_vec();
    whole.resize(u32::from_be_bytes(length) as usize, 0);
    line.read_exact(&mut whole[4..]).ok()?;
    Some(whole)
}

/// Returns the same database behind a pooler with one session, which each statement of each client gets in turn.
fn pooled(url: &str) -> Location {
    let config: Config = url.parse().expect("the url was used before");
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let own = listener.local_addr().expect("it is bound").port();
    let mut server: Box<dyn Line> = match &config.get_hosts()[0] {
        Host::Tcp(host) => Box::new(TcpStream::connect((host.as_str(), port)).expect("PostgreSQL answers")),
        Host::Unix(folder) => Box::new(
            UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).expect("PostgreSQL answers"),
        ),
    };
    std::thread::spawn(move || {
        // The first client speaks with the server itself until it is let in; what it is told then, each later one is told.
        let (mut client, _) = listener.accept().expect("the test connects");
        let hello = first_message(&mut client).expect("it begins");
        server.write_all(&hello).expect("writes");
        let mut welcome = vec![b'R', 0, 0, 0, 8, 0, 0, 0, 0];
        let mut is_in = false;
        loop {
            let said = message(&mut server).expect("the server answers");
            client.write_all(&said).expect("writes");
            if is_in {
                welcome.extend_from_slice(&said);
            }
            match said.as_slice() {
                [b'Z', ..] => break,
                [b'R', _, _, _, _, 0, 0, 0, 0] => is_in = true,
                // SASL's last word wants no answer.
                [b'R', _, _, _, _, 0, 0, 0, wish, ..] if *wish != 12 => {
                    let answer = message(&mut client).expect("it answers");
                    server.write_all(&answer).expect("writes");
                }
                _ => {}
            }
        }
        let server = Arc::new(Mutex::new(server));
        let first = Arc::clone(&server);
        std::thread::spawn(move || take_turns(client, &first));
        while let Ok((mut client, _)) = listener.accept() {
            if first_message(&mut client).is_some() && client.write_all(&welcome).is_ok() {
                let server = Arc::clone(&server);
                std::thread::spawn(move || take_turns(client, &server));
            }
        }
    });
    let password = config
        .get_password()
        .map(|word| format!(" password='{}'", String::from_utf8_lossy(word)));
    Location::Postgres(PostgresUrl::new(Secret::new(format!(
        "host=127.0.0.1 port={own} user={} dbname={}{}",
        config.get_user().unwrap_or("postgres"),
        config.get_dbname().unwrap_or("postgres"),
        password.unwrap_or_default()
    ))))
}

/// Gives the session to a client for as long as each of its questions takes.
fn take_turns(mut client: TcpStream, server: &Mutex<Box<dyn Line>>) {
    let mut question = Vec::new();
    while let Some(said) = message(&mut client) {
        let is_whole = matches!(said[0], b'Q' | b'S');
        if said[0] == b'X' {
            return;
        }
        question.extend_from_slice(&said);
        if !is_whole {
            continue;
        }
        let mut server = server.lock().expect("no panic");
        server.write_all(&question).expect("writes");
        question.clear();
        loop {
            let Some(answer) = message(&mut **server) else {
                return;
            };
            let is_last = answer[0] == b'Z';
            if client.write_all(&answer).is_err() && is_last {
                return;
            }
            if is_last {
                break;
            }
        }
    }
}
