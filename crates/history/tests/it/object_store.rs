//! The same storage in a real S3-compatible server, reached through a proxy that breaks connections.
//!
//! `PROVOST_TEST_S3_ENDPOINT` names the server, in which buckets can be made without a signature; `cargo xtask test`
//! starts one. With `PROVOST_TEST_REQUIRE_S3=1` its absence is a failure.

use crate::support::*;
use provost_history::object_store::{ObjectStore, Options};
use provost_history::*;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

/// What the proxy does with its next connections; it forwards when nothing is left.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Answers 503 in place of the server.
    Unavailable,
    /// Forwards, and cuts the answer after this many bytes.
    Cut(usize),
    /// Closes before anything is answered.
    Closed,
}

struct Place {
    runtime: Runtime,
    folder: PathBuf,
    server: String,
    bucket: String,
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where the server is; this is no configuration"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Place {
    /// A bucket of its own, or nothing where no server was named.
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(endpoint) = variable("PROVOST_TEST_S3_ENDPOINT") else {
            assert!(
                variable("PROVOST_TEST_REQUIRE_S3").as_deref() != Some("1"),
                "PROVOST_TEST_S3_ENDPOINT is not set, and PROVOST_TEST_REQUIRE_S3 is"
            );
            return None;
        };
        let server = endpoint.strip_prefix("http://").unwrap().to_owned();
        let bucket = format!(
            "history-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let mut stream = TcpStream::connect(&server).unwrap();
        let head = format!(
            "PUT /{bucket} HTTP/1.1\r\nhost: {server}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let folder = std::env::temp_dir().join(format!("provost-{bucket}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("id"), "AKIAEXAMPLE\n").unwrap();
        std::fs::write(folder.join("secret"), "the-secret-of-the-test\n").unwrap();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Some(Self {
            runtime: runtime.worker_threads(1).enable_all().build().unwrap(),
            folder,
            server,
            bucket,
        })
    }

    fn options(&self, server: &str) -> Options {
        Options {
            endpoint: Some(format!("http://{server}")),
            region: "us-east-1".to_owned(),
            path_style: true,
            access_key_id_file: self.folder.join("id"),
            secret_access_key_file: self.folder.join("secret"),
            ca_file: None,
            runtime: self.runtime.handle().clone(),
        }
    }

    fn store(&self) -> Arc<ObjectStore> {
        self.through(&self.server)
    }

    fn through(&self, server: &str) -> Arc<ObjectStore> {
        let url = format!("s3://{}/provost/history", self.bucket);
        ObjectStore::open(&url, &self.options(server)).unwrap()
    }

    /// A proxy with these faults, one a connection, the first one first.
    fn proxy(&self, faults: &[Fault]) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let left = Arc::new(Mutex::new(faults.iter().rev().copied().collect::<Vec<_>>()));
        let (server, faults) = (self.server.clone(), Arc::clone(&left));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (connection, server) = (connection.unwrap(), server.clone());
                let fault = faults.lock().unwrap().pop();
                std::thread::spawn(move || serve(connection, &server, fault));
            }
        });
        Proxy { address, left }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

struct Proxy {
    address: String,
    left: Arc<Mutex<Vec<Fault>>>,
}

impl Proxy {
    fn assert_used_up(&self) {
        assert_eq!(self.left.lock().unwrap().len(), 0, "faults that nobody met");
    }
}

fn serve(mut client: TcpStream, server: &str, fault: Option<Fault>) {
    match fault {
        Some(Fault::Closed) => {
            drop(client.read(&mut [0; 64]));
        }
        Some(Fault::Unavailable) => {
            drop(client.read(&mut vec![0; 65_536]));
            drop(
                client.write_all(b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
            );
            drop(client.shutdown(Shutdown::Write));
            // Read on, so that the answer is not lost to a reset.
            drop(client.read_to_end(&mut Vec::new()));
        }
        Some(Fault::Cut(bytes)) => {
            let upstream = TcpStream::connect(server).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
            drop(std::io::copy(&mut upstream.take(bytes as u64), &mut client));
            drop(client.shutdown(Shutdown::Both));
        }
        None => {
            let mut upstream = TcpStream::connect(server).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            std::thread::spawn(move || {
                drop(std::io::copy(&mut from, &mut to));
                drop(to.shutdown(Shutdown::Write));
            });
            drop(std::io::copy(&mut upstream, &mut client));
            drop(client.shutdown(Shutdown::Both));
        }
    }
}

fn put(store: &dyn Storage, name: &str, bytes: &[u8]) -> Result<()> {
    store.put(name, &mut |out| Ok(out.write_all(bytes)?))
}

fn kind_of(outcome: Result<()>) -> ErrorKind {
    match outcome {
        Err(Error::Storage(cause)) => cause.kind(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn history_in_a_store_reads_back_as_recorded() {
    let Some(place) = Place::new() else { return };
    let store: Arc<dyn Storage> = place.store();
    let schema = plain();
    let rows: Vec<Row> = ["search", "cancel", "refund"]
        .iter()
        .cycle()
        .zip(0..5_000)
        .map(|(tool, index)| row(&format!("{index:05}"), index * 3, tool))
        .collect();
    let encoded = chunk::encode(&schema, &batch(&schema, &rows[..2_000])).unwrap();
    put(store.as_ref(), "hch_1", &encoded).unwrap();
    let mut sealer = Sealer::new(Arc::clone(&schema));
    sealer.add(&batch(&schema, &rows[2_000..])).unwrap();
    sealer.seal(store.as_ref(), "hsg_1.parquet").unwrap();

    let reader: Arc<dyn Storage> = place.store();
    let summary = chunk::summary(&encoded).unwrap();
    let sources = vec![
        Source::Chunk(Chunk::new(Arc::clone(&reader), "hch_1", summary)),
        Source::Segment(Segment::open(reader, "hsg_1.parquet", &schema).unwrap()),
    ];
    assert_eq!(read(&whole(&schema, sources)), expected(&rows));
}

#[test]
fn ranges_are_exact_and_what_is_absent_is_not_found() {
    let Some(place) = Place::new() else { return };
    let store = place.store();
    // More than one block of the buffer.
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
    put(store.as_ref(), "object", &bytes).unwrap();
    assert_eq!(store.size("object").unwrap(), 3_000_000);
    for (offset, length) in [
        (0, 0),
        (0, 1),
        (1_048_570, 100),
        (2_999_999, 1),
        (0, 3_000_000),
        (3_000_000, 0),
    ] {
        let range = usize::try_from(offset).unwrap()..usize::try_from(offset).unwrap() + length;
        assert_eq!(
            store.read("object", offset, length).unwrap(),
            &bytes[range],
            "{offset} {length}"
        );
    }
    for (offset, length) in [
        (3_000_000, 1),
        (2_999_999, 2),
        (4_000_000, 0),
        (u64::MAX, 1),
        (0, 1 << 40),
    ] {
        let kind = store.read("object", offset, length).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::UnexpectedEof, "{offset} {length}");
    }
    assert_eq!(store.size("absent").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        store.read("absent", 0, 1).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        store.read("absent", 0, 0).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    for name in ["../object", "a/b", "", ".hidden", "x.partial"] {
        assert_eq!(
            store.read(name, 0, 1).unwrap_err().kind(),
            ErrorKind::InvalidInput,
            "{name}"
        );
    }
}

/// Proves HI-8.
#[test]
fn a_put_never_replaces_other_content() {
    let Some(place) = Place::new() else { return };
    let store = place.store();
    put(store.as_ref(), "object", b"first").unwrap();
    put(store.as_ref(), "object", b"first").unwrap();
    for other in [&b"other"[..], b"longer than it", b""] {
        assert_eq!(
            kind_of(put(store.as_ref(), "object", other)),
            ErrorKind::AlreadyExists
        );
    }
    assert_eq!(store.read("object", 0, 5).unwrap(), &b"first"[..]);
    let failed = store.put("unfinished", &mut |out| {
        out.write_all(b"half")?;
        Err(Error::Canceled)
    });
    assert!(matches!(failed, Err(Error::Canceled)));
    assert_eq!(store.size("unfinished").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_listing_has_what_was_put_here_and_not_removed() {
    let Some(place) = Place::new() else { return };
    let store = place.store();
    let url = format!("s3://{}/provost/history/deeper", place.bucket);
    let deeper = ObjectStore::open(&url, &place.options(&place.server)).unwrap();
    let url = format!("s3://{}/provost/history-of-others", place.bucket);
    let beside = ObjectStore::open(&url, &place.options(&place.server)).unwrap();
    put(deeper.as_ref(), "deep", b"x").unwrap();
    put(beside.as_ref(), "beside", b"x").unwrap();
    // More than one page of 1 000.
    for index in 0..1_005 {
        put(store.as_ref(), &format!("object-{index:04}"), b"x").unwrap();
    }
    store.remove("object-0003").unwrap();
    store.remove("object-0003").unwrap();
    store.remove("never-put").unwrap();
    let mut names: Vec<String> = store
        .list()
        .unwrap()
        .into_iter()
        .map(|stored| stored.name)
        .collect();
    names.sort();
    let expected = (0..1_005)
        .filter(|index| *index != 3)
        .map(|index| format!("object-{index:04}"));
    assert_eq!(names, expected.collect::<Vec<_>>());
    let age = store.list().unwrap()[0].modified.elapsed().unwrap();
    assert!(age.as_secs() < 600, "{age:?}");
}

#[test]
fn a_folder_lists_whole_objects_alone() {
    let path = std::env::temp_dir().join(format!("provost-listing-{}", std::process::id()));
    let folder = Folder::open(&path).unwrap();
    put(&folder, "one", b"x").unwrap();
    put(&folder, "two", b"x").unwrap();
    folder.remove("two").unwrap();
    std::fs::write(path.join("three.partial"), b"x").unwrap();
    std::fs::create_dir(path.join("inner")).unwrap();
    let names: Vec<String> = folder
        .list()
        .unwrap()
        .into_iter()
        .map(|stored| stored.name)
        .collect();
    assert_eq!(names, ["one"]);
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn what_fails_for_a_moment_is_tried_again() {
    let Some(place) = Place::new() else { return };
    let bytes = vec![7; 2_000_000];
    let proxy = place.proxy(&[Fault::Unavailable, Fault::Unavailable]);
    put(place.through(&proxy.address).as_ref(), "object", &bytes).unwrap();
    proxy.assert_used_up();

    let proxy = place.proxy(&[
        Fault::Closed,
        Fault::Unavailable,
        Fault::Cut(700_000),
        Fault::Cut(20),
    ]);
    assert_eq!(
        place
            .through(&proxy.address)
            .read("object", 0, bytes.len())
            .unwrap(),
        bytes
    );
    proxy.assert_used_up();
}

/// Proves HI-8.
#[test]
fn a_put_whose_answer_was_lost_succeeds_when_done_anew() {
    let Some(place) = Place::new() else { return };
    let proxy = place.proxy(&[Fault::Cut(5)]);
    let store = place.through(&proxy.address);
    // The store has it, and the client cannot know.
    assert!(put(store.as_ref(), "object", b"content").is_err());
    put(store.as_ref(), "object", b"content").unwrap();
    assert_eq!(place.store().read("object", 0, 7).unwrap(), &b"content"[..]);
}

#[test]
fn a_store_that_nobody_answers_for_is_an_error() {
    let Some(place) = Place::new() else { return };
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let store = place.through(&nobody);
    let failure = store.read("object", 0, 1).unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Other);
    assert!(
        !format!("{failure:?}").contains("the-secret-of-the-test"),
        "{failure:?}"
    );
    assert!(kind_of(put(store.as_ref(), "object", b"x")) == ErrorKind::Other);
}

#[test]
fn keys_are_read_from_files_and_never_shown() {
    let Some(place) = Place::new() else { return };
    let options = place.options(&place.server);
    assert!(!format!("{options:?}").contains("the-secret-of-the-test"));
    let store = place.store();
    put(store.as_ref(), "object", b"x").unwrap();
    // Rotated to something that is no key: the next request says so, without saying what it is.
    std::fs::write(place.folder.join("secret"), "two lines\nof-a-secret\n").unwrap();
    let failure = store.read("object", 0, 1).unwrap_err();
    let shown = format!("{failure:?} {failure}");
    assert!(shown.contains("does not hold a key in one line"), "{shown}");
    assert!(!shown.contains("of-a-secret"), "{shown}");
    let refused = ObjectStore::open("s3://bucket/x", &options).err().unwrap();
    assert!(matches!(refused, Error::Storage(_)));
    std::fs::remove_file(place.folder.join("id")).unwrap();
    assert!(ObjectStore::open("s3://bucket/x", &options).is_err());
    let missing = Options {
        ca_file: Some(place.folder.join("secret")),
        ..place.options(&place.server)
    };
    std::fs::write(place.folder.join("id"), "id").unwrap();
    std::fs::write(place.folder.join("secret"), "secret").unwrap();
    assert!(ObjectStore::open("s3://bucket/x", &missing).is_err());
}
