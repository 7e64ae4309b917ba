//! Chunks to segments, beside readers, other servers and crashes; and the end of both (HS-2 to HS-4, HS-7).

#![expect(clippy::disallowed_methods, reason = "tasks of a test beside the server")]

use super::{all_events, assert_all, external, files, import, lines, place, seal, soon, status};
use crate::support::{App, each};
use bytes::Bytes;
use provost_areas_policy::history::{self, SegmentPlace};
use provost_history::{Listable, Storage, StoredObject};
use provost_kernel::db::{Access, Conn, Location};
use provost_kernel::kernel::Extras;
use provost_kernel::params;
use serde_json::json;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

provost_kernel::statements! {
    /// The states of an organization's segments.
    STATES = "SELECT state FROM history_segments WHERE organization_id = ?1 ORDER BY created_at, id";
    /// The numbers of an organization's chunks.
    NUMBERS = "SELECT sequence, CASE WHEN segment_id IS NULL THEN 0 ELSE 1 END FROM history_chunks WHERE organization_id = ?1 ORDER BY sequence";
    /// Damages a chunk.
    DAMAGE = "UPDATE history_chunks SET content = ?3 WHERE organization_id = ?1 AND sequence = ?2";
}

fn rows<T>(app: &App, f: impl FnOnce(&mut Conn) -> T + Send) -> T
where
    T: Send,
{
    let location = app.location();
    std::thread::scope(|scope| {
        let read = scope.spawn(move || f(&mut Conn::open(&location, Access::Write).unwrap()));
        read.join().unwrap()
    })
}

pub fn states(app: &App) -> Vec<String> {
    let org = app.organization.clone();
    rows(app, move |conn| {
        conn.read(|tx| tx.query(&STATES, params![org.as_str()], |row| row.get(0)))
            .unwrap()
    })
}

/// Changes rows beside the servers.
pub fn batch(app: &App, sql: &str) {
    rows(app, |conn| conn.batch(sql).unwrap());
}

/// The chunks' numbers, each with whether it is sealed.
pub fn numbers(app: &App) -> Vec<(i64, bool)> {
    let org = app.organization.clone();
    rows(app, move |conn| {
        let read = conn.read(|tx| {
            tx.query(&NUMBERS, params![org.as_str()], |row| {
                Ok((row.get(0)?, row.get::<i64>(1)? == 1))
            })
        });
        read.unwrap()
    })
}

/// Proves HS-2.
#[test]
fn a_segment_stands_for_its_chunks_and_they_go_two_hours_later() {
    each("history_seal", |app: Arc<App>| async move {
        import(&app, "a", lines(&app, 0, 2_000)).await.ok();
        import(&app, "b", lines(&app, 2_000, 2_096)).await.ok();
        let before = all_events(&app, "").await;
        // Young: not yet. Old, and one too few: not either.
        history::seal(&app.kernel).await.unwrap();
        assert_eq!(status(&app).await["segments"], 0);
        seal(&app).await;
        let sealed = status(&app).await;
        assert_eq!(
            (&sealed["segments"], &sealed["chunks"], &sealed["events"]),
            (&json!(1), &json!(0), &json!(4_096))
        );
        assert_eq!(numbers(&app), [(1, true), (2, true)]);
        assert_eq!(all_events(&app, "").await, before);
        let names = files(&app);
        assert_eq!(names.len(), 1);
        assert!(
            names[0].starts_with(&format!("segment-{}-hsg_", app.organization)),
            "{names:?}"
        );
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = app.keys_dir.join("history");
        assert_eq!((mode(&folder), mode(&folder.join(&names[0]))), (0o700, 0o600));
        // Copied ones may have come with another mode; the next start takes them from others.
        let segment = folder.join(&names[0]);
        std::fs::set_permissions(&segment, std::fs::Permissions::from_mode(0o644)).unwrap();
        history::SegmentPlace::folder(&folder).unwrap();
        assert_eq!(mode(&segment), 0o600);
        // A source is a chunk or a segment, never both.
        let org = app.organization.clone();
        let sources = app
            .kernel
            .read_system(move |tx| history::sources(tx, &org, 0, i64::MAX))
            .await
            .unwrap();
        assert_eq!(sources.len(), 1);
        import(&app, "c", lines(&app, 4_096, 10)).await.ok();
        app.advance(2 * 3_600);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(numbers(&app).len(), 3, "two hours are not over");
        app.advance(1);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(numbers(&app), [(3, false)]);
        // Too few to be sealed, however old.
        history::seal(&app.kernel).await.unwrap();
        assert_eq!(status(&app).await["segments"], 1);
        assert_all(&all_events(&app, "").await, 0..4_106);
        // What is numbered goes on without a gap (HS-6).
        import(&app, "d", lines(&app, 4_106, 1)).await.ok();
        assert_eq!(numbers(&app), [(3, false), (4, false)]);
    });
}

/// Proves HS-2.
#[test]
fn a_list_beside_the_sealing_holds_each_event_once() {
    each("history_beside", |app: Arc<App>| async move {
        for part in 0..6 {
            import(&app, "beside", lines(&app, part * 1_500, 1_500))
                .await
                .ok();
        }
        app.advance(601);
        let (done, shared) = (Arc::new(AtomicBool::new(false)), app.clone());
        // A chunk goes two hours after its segment came. No request takes as long, so none spans the clock's step.
        let hours = Arc::new(RwLock::new(()));
        let reading = {
            let (done, hours) = (done.clone(), hours.clone());
            tokio::spawn(async move {
                let mut rounds = 0;
                while !done.load(Ordering::SeqCst) || rounds == 0 {
                    let _same_hour = hours.read().await;
                    assert_all(
                        &all_events(&shared, "&tool=tool-1").await,
                        (0..9_000).filter(|n| n % 5 == 1),
                    );
                    rounds += 1;
                }
                rounds
            })
        };
        for _ in 0..3 {
            history::seal(&app.kernel).await.unwrap();
            {
                let _nobody_reads = hours.write().await;
                app.advance(3 * 3_600);
            }
            history::retain(&app.kernel).await.unwrap();
            tokio::task::yield_now().await;
        }
        done.store(true, Ordering::SeqCst);
        assert!(reading.await.unwrap() >= 1);
        assert_eq!(status(&app).await["segments"], 1);
        assert_eq!(numbers(&app), []);
        assert_all(&all_events(&app, "").await, 0..9_000);
    });
}

/// Proves HS-3.
#[test]
fn two_servers_seal_no_chunk_twice() {
    each("history_servers", |app: Arc<App>| async move {
        if matches!(app.location(), Location::Sqlite(_)) {
            // One server at a time works on a data folder.
            return;
        }
        let settings = app.kernel.settings.clone();
        let other = Arc::new(app.beside(Vec::new(), app.clock.clone(), settings, app.location()));
        let mut events = 0;
        for round in 0..4 {
            for (part, server) in [&app, &other].into_iter().enumerate() {
                import(
                    server,
                    "servers",
                    lines(&app, round * 5_000 + part * 2_500, 2_500),
                )
                .await
                .ok();
            }
            events += 5_000;
            app.advance(601);
            let mut sealing = JoinSet::new();
            for server in [app.clone(), other.clone(), app.clone(), other.clone()] {
                sealing.spawn(async move { history::seal(&server.kernel).await });
            }
            for sealed in sealing.join_all().await {
                sealed.unwrap();
            }
            let known = status(&app).await;
            assert_eq!(
                (&known["segments"], &known["chunks"]),
                (&json!(round + 1), &json!(0))
            );
            assert_eq!(known["events"], events);
        }
        // Who looked before the other one had sealed claims when that is done, finds nothing left, and gives the claim up: it has no file.
        let states = states(&app);
        let sealed = states.iter().filter(|state| *state == "sealed").count();
        assert_eq!(sealed, 4, "{states:?}");
        assert!(states.iter().all(|state| state != "writing"), "{states:?}");
        assert_eq!(files(&app).len(), 4);
        assert_all(&all_events(&other, "").await, 0..20_000);
        other.kernel.stop().await;
    });
}

/// A storage that never answers a put: before the file is there, or behind it. What happens to its writer then is
/// what happens to one that is killed.
struct StuckStorage {
    inner: SegmentPlace,
    is_behind: bool,
    has_begun: AtomicBool,
    released: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
}

impl Storage for StuckStorage {
    fn size(&self, name: &str) -> io::Result<u64> {
        self.inner.0.size(name)
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Bytes> {
        self.inner.0.read(name, offset, length)
    }

    fn put(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut (dyn Write + Send)) -> provost_history::Result<()>,
    ) -> provost_history::Result<()> {
        if self.is_behind {
            self.inner.0.put(name, write)?;
        }
        self.has_begun.store(true, Ordering::SeqCst);
        let released = self.released.lock().unwrap().take();
        if let Some(released) = released {
            let _ = released.recv();
        }
        if !self.is_behind {
            self.inner.0.put(name, write)?;
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.0.remove(name)
    }
}

impl Listable for StuckStorage {
    fn list(&self) -> io::Result<Vec<StoredObject>> {
        self.inner.0.list()
    }

    fn create(&self, name: &str, content: &[u8]) -> io::Result<bool> {
        self.inner.0.create(name, content)
    }

    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.inner.0.replace(name, content)
    }
}

/// Proves HS-3, HS-4.
#[test]
fn a_writer_that_dies_or_is_overdue_costs_nothing_and_its_file_goes() {
    for is_behind in [false, true] {
        each("history_overdue", |app: Arc<App>| async move {
            import(&app, "overdue", lines(&app, 0, 5_000)).await.ok();
            app.advance(601);
            let (release, released) = std::sync::mpsc::channel();
            let stuck = Arc::new(StuckStorage {
                inner: place(&app),
                is_behind,
                has_begun: AtomicBool::new(false),
                released: Mutex::new(Some(released)),
            });
            let slow = app
                .restarted(Extras::default().with(SegmentPlace(stuck.clone())))
                .unwrap();
            let kernel = slow.kernel.clone();
            let sealing = tokio::spawn(async move { history::seal(&kernel).await });
            soon("the writing", async || stuck.has_begun.load(Ordering::SeqCst)).await;
            assert_eq!(states(&app), ["writing"]);
            assert_eq!(files(&app).len(), usize::from(is_behind));
            // The claim holds for ten minutes, then another writer takes over.
            history::seal(&app.kernel).await.unwrap();
            assert_eq!(states(&app), ["writing"]);
            assert_all(&all_events(&app, "").await, 0..5_000);
            app.advance(601);
            history::seal(&app.kernel).await.unwrap();
            assert_eq!(states(&app), ["removing", "sealed"]);
            // The late writer goes on: its segment does not count, and its chunks stay with the other one.
            drop(release);
            sealing.await.unwrap().unwrap();
            assert_eq!(states(&app), ["removing", "sealed"]);
            assert_eq!(files(&app).len(), 2);
            assert_all(&all_events(&app, "").await, 0..5_000);
            app.advance(3_599);
            history::retain(&app.kernel).await.unwrap();
            assert_eq!(files(&app).len(), 2, "an hour is not over");
            app.advance(2);
            history::retain(&app.kernel).await.unwrap();
            assert_eq!((files(&app).len(), states(&app)), (1, vec!["sealed".to_owned()]));
            assert_all(&all_events(&app, "").await, 0..5_000);
            slow.kernel.stop().await;
        });
    }
}

/// What a storage makes of what it says that it took.
#[derive(Clone, Copy, Debug)]
enum Lie {
    Nothing,
    Half,
    Other,
}

struct LyingStorage {
    inner: SegmentPlace,
    lie: Lie,
}

impl Storage for LyingStorage {
    fn size(&self, name: &str) -> io::Result<u64> {
        self.inner.0.size(name)
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Bytes> {
        self.inner.0.read(name, offset, length)
    }

    fn put(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut (dyn Write + Send)) -> provost_history::Result<()>,
    ) -> provost_history::Result<()> {
        let mut bytes: Vec<u8> = Vec::new();
        write(&mut bytes)?;
        match self.lie {
            Lie::Nothing => return Ok(()),
            Lie::Half => bytes.truncate(bytes.len() / 2),
            // Its size and its end are those that were written.
            Lie::Other => bytes[40] ^= 1,
        }
        self.inner.0.put(name, &mut |out| Ok(out.write_all(&bytes)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.0.remove(name)
    }
}

impl Listable for LyingStorage {
    fn list(&self) -> io::Result<Vec<StoredObject>> {
        self.inner.0.list()
    }

    fn create(&self, name: &str, content: &[u8]) -> io::Result<bool> {
        self.inner.0.create(name, content)
    }

    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.inner.0.replace(name, content)
    }
}

/// Proves HS-12.
#[test]
fn a_storage_that_does_not_keep_what_it_takes_costs_nothing() {
    for lie in [Lie::Nothing, Lie::Half, Lie::Other] {
        each("history_lies", |app: Arc<App>| async move {
            import(&app, "lies", lines(&app, 0, 5_000)).await.ok();
            app.advance(601);
            let inner = place(&app);
            let lying = app
                .restarted(Extras::default().with(SegmentPlace(Arc::new(LyingStorage { inner, lie }))))
                .unwrap();
            history::seal(&lying.kernel).await.unwrap();
            assert_eq!(states(&app), ["removing"], "{lie:?}");
            assert_eq!(numbers(&app), [(1, false)], "{lie:?}");
            app.advance(3 * 3_600);
            history::retain(&lying.kernel).await.unwrap();
            assert_all(&all_events(&app, "").await, 0..5_000);
            lying.kernel.stop().await;
            // One that keeps it seals what waited.
            history::seal(&app.kernel).await.unwrap();
            assert_eq!(numbers(&app), [(1, true)], "{lie:?}");
            assert_all(&all_events(&app, "").await, 0..5_000);
        });
    }
}

/// Proves HS-12.
#[test]
fn a_chunk_stays_until_its_segment_was_read_back() {
    each("history_read_back", |app: Arc<App>| async move {
        import(&app, "back", lines(&app, 0, 5_000)).await.ok();
        seal(&app).await;
        assert_eq!(numbers(&app), [(1, true)]);
        let file = app.keys_dir.join("history").join(&files(&app)[0]);
        let whole = std::fs::read(&file).unwrap();
        app.advance(2 * 3_600 + 1);
        let mut other = whole.clone();
        other[40] ^= 1;
        for damaged in [None, Some(&whole[..whole.len() - 1]), Some(&other[..])] {
            std::fs::remove_file(&file).unwrap();
            if let Some(bytes) = damaged {
                std::fs::write(&file, bytes).unwrap();
            }
            history::retain(&app.kernel).await.unwrap();
            assert_eq!(numbers(&app), [(1, true)], "the last other copy stays");
            std::fs::write(&file, &whole).unwrap();
        }
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(numbers(&app), []);
        assert_all(&all_events(&app, "").await, 0..5_000);
    });
}

/// Proves CK-4, HS-4.
#[test]
fn what_is_older_than_the_retention_goes_whole() {
    each("history_retention", |app: Arc<App>| async move {
        let days = |days: i64| json!({ "retention": { "historyDays": days }, "confirm": true });
        let week = 7 * 86_400;
        import(&app, "old", lines(&app, 0, 5_000)).await.ok();
        seal(&app).await;
        app.advance(10 * 86_400);
        import(&app, "young", lines(&app, 5_000, 5_000)).await.ok();
        seal(&app).await;
        import(&app, "small", lines(&app, 10_000, 5)).await.ok();
        app.advance(5 * 86_400);
        assert_eq!(status(&app).await["retentionDays"], 400);
        for (wanted, refused) in [(0, true), (1, false), (3_650, false), (3_651, true)] {
            let reply = app.write("PATCH", "/automation/settings", days(wanted)).await;
            assert_eq!(reply.status.as_u16(), if refused { 400 } else { 200 });
        }
        app.write("PATCH", "/automation/settings", days(30)).await.ok();
        app.advance(week);
        assert_eq!(status(&app).await["retentionDays"], 30);
        app.write("PATCH", "/automation/settings", days(29)).await.ok();
        // A day before their end everything is still there.
        app.advance(week - 86_400);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(status(&app).await["segments"], 2);
        app.advance(86_400);
        history::retain(&app.kernel).await.unwrap();
        // The oldest are no longer listed, and their segment is gone with its newest event.
        assert_eq!(status(&app).await["segments"], 1);
        assert_all(&all_events(&app, "").await, 5_000..10_005);
        assert_eq!(files(&app).len(), 2);
        app.advance(3_601);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(files(&app).len(), 1);
        // The body that was imported then can be imported again, and is too old.
        app.write("PATCH", "/automation/settings", days(4)).await.ok();
        app.advance(week);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(all_events(&app, "").await, Vec::<serde_json::Value>::new());
        let left = status(&app).await;
        assert_eq!(
            (&left["events"], &left["chunks"], &left["segments"]),
            (&json!(0), &json!(0), &json!(0))
        );
        assert!(left.get("newestEventAt").is_none());
        app.advance(3_601);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(files(&app), Vec::<String>::new());
    });
}

/// Proves CK-4.
#[test]
fn most_of_a_history_goes_only_after_a_day_of_running() {
    each("history_waits", |app: Arc<App>| async move {
        import(&app, "all", lines(&app, 0, 5_000)).await.ok();
        seal(&app).await;
        app.advance(401 * 86_400);
        for _ in 0..144 {
            history::retain(&app.kernel).await.unwrap();
            assert_eq!(states(&app), ["sealed"]);
            app.advance(600);
        }
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(states(&app), ["removing"]);
    });
}

/// Proves HS-7.
#[test]
fn what_cannot_be_read_is_named() {
    each("history_damage", |app: Arc<App>| async move {
        import(&app, "one", lines(&app, 0, 4_500)).await.ok();
        seal(&app).await;
        // The rows that the segment stands for are gone, so that nothing can be read in its place.
        app.advance(2 * 3_600 + 1);
        history::retain(&app.kernel).await.unwrap();
        import(&app, "two", lines(&app, 4_500, 20)).await.ok();
        import(&app, "three", lines(&app, 4_520, 20)).await.ok();
        let known = all_events(&app, "").await;
        let (segment, chunk) = (known[4_539].clone(), known[39].clone());
        let event =
            |event: &serde_json::Value| format!("/policies/history/{}", event["eventId"].as_str().unwrap());
        // A chunk that is no chunk any more, and a file that lost its end.
        let org = app.organization.clone();
        rows(&app, move |conn| {
            conn.begin(&[]).unwrap();
            conn.tx()
                .execute(&DAMAGE, params![org.as_str(), 2_i64, b"damaged".as_slice()])
                .unwrap();
            conn.commit(&[]).unwrap();
        });
        let file = app.keys_dir.join("history").join(&files(&app)[0]);
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let page = app.get("/policies/history?limit=100").await.ok().clone();
        assert_eq!(page["events"].as_array().unwrap().len(), 20);
        let missing = page["unreadable"].as_array().unwrap();
        let events: Vec<_> = missing
            .iter()
            .map(|part| part["events"].as_i64().unwrap())
            .collect();
        assert_eq!(events, [20, 4_500]);
        assert!(missing[1]["name"].as_str().unwrap().starts_with("segment-"));
        app.get(&event(&segment)).await.refused(503, "unavailable");
        app.get(&event(&chunk)).await.refused(503, "unavailable");
        app.get(&event(&known[0])).await.ok();
        // The rest is sealed around the damaged chunk, and the file's damage ends with the file's return.
        std::fs::write(&file, &whole).unwrap();
        import(&app, "four", lines(&app, 4_540, 4_500)).await.ok();
        seal(&app).await;
        assert_eq!(numbers(&app), [(2, false), (3, true), (4, true)]);
        app.get(&event(&segment)).await.ok();
        let mut ids = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = app
                .get(&format!("/policies/history?limit=100{cursor}"))
                .await
                .ok()
                .clone();
            ids.extend(
                external(page["events"].as_array().unwrap())
                    .into_iter()
                    .map(str::to_owned),
            );
            let Some(next) = page["nextCursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(ids.len(), 4_500 + 20 + 4_500);
        tokio::time::sleep(Duration::ZERO).await;
    });
}
