//! An object store that answers 200 and keeps nothing: sealing into it costs nothing (HS-12).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::scene::{Scene, metric, wait};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};

/// As many as make a segment, and some more.
const BODIES: u64 = 53;
const EVENTS: u64 = 5_000;
/// In a body of its own, as the others.
const SOURCE: &str = "liar";

/// What a store that lies was told.
#[derive(Default)]
struct LyingStore {
    /// The small objects, which it does keep: it is no stranger, it only forgets.
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
    forgotten: AtomicU64,
}

pub fn run(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let (liar, port) = listen()?;
    let mut scene = Scene::create(place, "segments", seed)?;
    let key = place.folder().join("access-key");
    std::fs::write(&key, "a-key-of-a-drill").context("cannot write the access key")?;
    let file = place.folder().join("segments.toml");
    let settings = format!(
        "[history]\nurl = \"s3://drill/segments\"\nendpoint = \"http://127.0.0.1:{port}\"\n\
         access_key_id_file = \"{0}\"\nsecret_access_key_file = \"{0}\"\n",
        key.display()
    );
    std::fs::write(&file, settings).context("cannot write the settings")?;
    scene.installation.configuration = Some(file);
    let server = scene.installation.serve()?;
    let mut connection = Connection::new(server.address);
    for number in 0..BODIES {
        let request = Request {
            content: Some(("application/x-ndjson", body(number).into_bytes())),
            ..Request::new(
                "POST",
                scene
                    .bootstrap
                    .path(&format!("policies/history/import?source={SOURCE}{number}")),
                &scene.bootstrap.token,
            )
        };
        connection.fetch(&request)?;
    }
    // Sealing takes some seconds on a machine with nothing else to do.
    wait(
        Duration::from_mins(5),
        "nothing was given to the store that lies",
        || liar.forgotten.load(Ordering::SeqCst) > 0,
    )?;
    // It comes back to it, and is lied to again.
    std::thread::sleep(Duration::from_secs(3));
    let request = Request::get(
        scene.bootstrap.path("policies/history/status"),
        &scene.bootstrap.token,
    );
    let status = connection.fetch(&request)?;
    if status["segments"] != 0 || status["events"] != BODIES * EVENTS {
        return Err(Failure::new(format!(
            "VIOLATION: a store that keeps nothing was believed: {status}"
        )));
    }
    wait(
        Duration::from_secs(30),
        "what was not kept was not counted",
        || {
            metric(&server, "provost_history_not_kept_total")
                .is_ok_and(|lines| !lines.is_empty() && !lines.contains(" 0\n"))
        },
    )?;
    let listed = list_of(&scene, &mut connection, &format!("{SOURCE}7"))?;
    if listed != EVENTS {
        return Err(Failure::new(format!(
            "VIOLATION: of {EVENTS} events of one body the list shows {listed}"
        )));
    }
    server.stop()?;
    scene.installation.check(&["audit", "verify"])?;
    Ok(Report::Seen(format!(
        "an object store that answered 200 to {} segments and kept none was not believed: all {} events are there",
        liar.forgotten.load(Ordering::SeqCst),
        BODIES * EVENTS
    )))
}

/// How many events of a source a list shows on all its pages; a page holds what it can find in its time.
fn list_of(scene: &Scene, connection: &mut Connection, source: &str) -> Outcome<u64> {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let path = format!("policies/history?limit=100&source={source}{cursor}");
        let page = connection.fetch(&Request::get(scene.bootstrap.path(&path), &scene.bootstrap.token))?;
        count += page["events"].as_array().map_or(0, Vec::len) as u64;
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(count),
        }
    }
}

fn body(part: u64) -> String {
    let secs = clock::since_epoch().as_secs() - 3_600;
    let (year, month, day) = clock::civil_date(secs / 86_400);
    let (hour, minute) = (secs / 3_600 % 24, secs / 60 % 60);
    let line = |number: u64| {
        json!({ "id": format!("{part}-{number}"), "occasion": "pre_tool",
                "at": format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{:03}Z", number / 1_000, number % 1_000),
                "attributes": { "tool.id": format!("tool-{}", number % 5) } })
        .to_string()
    };
    let lines: Vec<String> = (0..EVENTS).map(line).collect();
    lines.join("\n")
}

fn listen() -> Outcome<(Arc<LyingStore>, u16)> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
    let port = listener
        .local_addr()
        .context("cannot say where it listens")?
        .port();
    let liar = Arc::new(LyingStore::default());
    let own = liar.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let liar = own.clone();
            std::thread::spawn(move || while liar.answer(&stream).is_some() {});
        }
    });
    Ok((liar, port))
}

impl LyingStore {
    /// Answers one request; `None` when the connection ends.
    fn answer(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let (method, rest) = line.split_once(' ')?;
        let target = rest.split(' ').next()?.to_owned();
        let (mut length, mut only_new, mut range) = (0, false, None::<(usize, usize)>);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok().filter(|length| *length > 0)?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            only_new |= header.starts_with("if-none-match:");
            if let Some(value) = header.strip_prefix("range: bytes=") {
                let (first, last) = value.split_once('-')?;
                range = Some((first.parse().ok()?, last.parse().unwrap_or(usize::MAX)));
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (mut status, mut body) = self.obey(method, &target, body, only_new);
        let mut content_range = String::new();
        if let (Some((first, last)), "200 OK") = (range, status) {
            let whole = body.len();
            let end = whole.min(last.saturating_add(1));
            body = body.get(first..end)?.to_vec();
            status = "206 Partial Content";
            content_range = format!("Content-Range: bytes {first}-{}/{whole}\r\n", end - 1);
        }
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nETag: \"liar\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n{content_range}\
             Content-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        if method != "HEAD" {
            answer.extend(body);
        }
        (&*stream).write_all(&answer).ok()
    }

    fn obey(&self, method: &str, target: &str, body: Vec<u8>, only_new: bool) -> (&'static str, Vec<u8>) {
        let Ok(mut kept) = self.kept.lock() else {
            return ("500 Broken", Vec::new());
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match method {
            "PUT" if path.ends_with(".parquet") => {
                self.forgotten.fetch_add(1, Ordering::SeqCst);
                ("200 OK", Vec::new())
            }
            "PUT" if only_new && kept.contains_key(path) => ("412 Precondition Failed", Vec::new()),
            "PUT" => {
                kept.insert(path.to_owned(), body);
                ("200 OK", Vec::new())
            }
            "DELETE" => {
                kept.remove(path);
                ("204 No Content", Vec::new())
            }
            _ if query.contains("list-type") => ("200 OK", list(&kept)),
            _ => match kept.get(path) {
                Some(bytes) => ("200 OK", bytes.clone()),
                None => ("404 Not Found", Vec::new()),
            },
        }
    }
}

/// The list of a bucket in the words of S3, whatever prefix was asked for: all lie below one.
fn list(kept: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let item = |(path, bytes): (&String, &Vec<u8>)| {
        let key = path
            .trim_start_matches('/')
            .split_once('/')
            .map_or("", |(_, key)| key);
        format!(
            "<Contents><Key>{key}</Key><Size>{}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>",
            bytes.len()
        )
    };
    let items: String = kept.iter().map(item).collect();
    format!("<ListBucketResult><IsTruncated>false</IsTruncated>{items}</ListBucketResult>").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_is_small_and_forgets_segments() {
        let liar = LyingStore::default();
        let put = |path: &str, only_new| liar.obey("PUT", path, vec![1, 2], only_new).0;
        assert_eq!(put("/drill/segments/place.json", true), "200 OK");
        assert_eq!(put("/drill/segments/place.json", true), "412 Precondition Failed");
        assert_eq!(put("/drill/segments/a.parquet", false), "200 OK");
        let read = |path: &str| liar.obey("GET", path, Vec::new(), false);
        assert_eq!(read("/drill/segments/place.json"), ("200 OK", vec![1, 2]));
        assert_eq!(read("/drill/segments/a.parquet").0, "404 Not Found");
        let listed = String::from_utf8(read("/drill?list-type=2").1).unwrap();
        assert!(listed.contains("<Key>segments/place.json</Key>"), "{listed}");
        assert_eq!(liar.forgotten.load(Ordering::SeqCst), 1);
    }
}
