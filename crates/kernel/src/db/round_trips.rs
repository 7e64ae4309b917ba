//! On PostgreSQL round trips decide the throughput, so they are counted, by a proxy between the two.

use super::tests::{ADD, COUNT};
use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Who spoke last, and how often the client spoke after the server.
#[derive(Default)]
pub(super) struct Talk {
    client_spoke: bool,
    round_trips: usize,
}

fn relay(mut from: impl Read, mut to: impl Write, is_client: bool, talk: &Mutex<Talk>) {
    let mut buffer = vec![0; 65536];
    while let Ok(size @ 1..) = from.read(&mut buffer) {
        let mut talk = talk.lock().expect("no panic");
        talk.round_trips += usize::from(is_client && !talk.client_spoke);
        talk.client_spoke = is_client;
        drop(talk);
        if to.write_all(&buffer[..size]).is_err() {
            break;
        }
    }
}

fn relay_both<S: Read + Write + Send + 'static>(client: TcpStream, server: [S; 2], talk: &Arc<Mutex<Talk>>) {
    let [to_server, from_server] = server;
    let from_client = client.try_clone().expect("clones");
    let (up, down) = (Arc::clone(talk), Arc::clone(talk));
    std::thread::spawn(move || relay(from_client, to_server, true, &up));
    std::thread::spawn(move || relay(from_server, client, false, &down));
}

/// Returns the same store behind a proxy, under this name of this machine, that serves one connection.
pub(super) fn behind_proxy(host: &str, url: &str, talk: Arc<Mutex<Talk>>) -> Location {
    let config: Config = url.parse().expect("the url was used before");
    let listener = TcpListener::bind((host, 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let password = config
        .get_password()
        .map(|word| format!(" password='{}'", String::from_utf8_lossy(word)));
    let proxied = format!(
        "host={host} port={port} sslmode=disable user={} dbname={} options={}{}",
        config.get_user().unwrap_or("postgres"),
        config.get_dbname().unwrap_or("postgres"),
        config.get_options().expect("the schema of the test"),
        password.unwrap_or_default(),
    );
    std::thread::spawn(move || {
        let (client, _) = listener.accept().expect("the test connects");
        client.set_nodelay(true).expect("a socket");
        let port = config.get_ports().first().copied().unwrap_or(5432);
        match &config.get_hosts()[0] {
            Host::Tcp(host) => {
                let server = TcpStream::connect((host.as_str(), port)).expect("PostgreSQL answers");
                server.set_nodelay(true).expect("a socket");
                relay_both(client, [server.try_clone().expect("clones"), server], &talk);
            }
            Host::Unix(folder) => {
                let socket = folder.join(format!(".s.PGSQL.{port}"));
                let server = UnixStream::connect(socket).expect("PostgreSQL answers");
                relay_both(client, [server.try_clone().expect("clones"), server], &talk);
            }
        }
    });
    Location::Postgres(PostgresUrl::new(crate::Secret::new(proxied)).allow_plaintext(true))
}

#[test]
fn a_unit_costs_the_round_trips_that_it_must() {
    for store in testing::locations("trips") {
        let Location::Postgres(url) = store.location() else {
            continue;
        };
        let talk = Arc::new(Mutex::new(Talk::default()));
        let mut conn = Conn::open(
            &behind_proxy("127.0.0.1", url.expose(), Arc::clone(&talk)),
            Access::Write,
        )
        .expect("opens");
        conn.batch("CREATE TABLE things (id BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)")
            .expect("creates");
        let add = |id: i64| Call {
            statement: &ADD,
            params: params![id, "a thing"].to_vec(),
        };
        let count = || Call {
            statement: &COUNT,
            params: Vec::new(),
        };
        conn.begin(&[add(1), count()])
            .expect("everything is prepared once");
        conn.commit(&[]).expect("commits");

        let mut seen = 0;
        let mut trips = |what: &str, expected: usize| {
            let now = talk.lock().expect("no panic").round_trips;
            assert_eq!(now - std::mem::replace(&mut seen, now), expected, "{what}");
        };
        let before = talk.lock().expect("no panic").round_trips;
        trips("so far", before);
        conn.begin(&[add(2), count(), add(3)]).expect("begins");
        trips("BEGIN and the prologue", 1);
        conn.savepoint().expect("opens");
        conn.tx().execute(&ADD, params![4, "a thing"]).expect("writes");
        trips("SAVEPOINT and a statement", 1);
        conn.tx().queue(&ADD, params![5, "a thing"]).expect("queues");
        conn.release().expect("releases");
        conn.savepoint().expect("opens");
        conn.release().expect("releases");
        conn.savepoint().expect("opens");
        trips("nothing that needs an answer", 0);
        conn.tx().execute(&ADD, params![6, "a thing"]).expect("writes");
        trips("a queued statement, RELEASE, SAVEPOINT and a statement", 1);
        conn.rollback_to().expect("undoes");
        conn.tx().execute(&ADD, params![7, "a thing"]).expect("writes");
        trips("ROLLBACK TO and a statement", 1);
        conn.release().expect("releases");
        conn.many(&[count(), count()]).expect("counts");
        trips("two independent statements", 1);
        let rows = conn.commit(&[add(8), add(9), count()]).expect("commits");
        trips("the epilogue and COMMIT", 1);
        assert_eq!(rows[2].first().expect("row").get::<i64>(0).expect("count"), 8);
    }
}
