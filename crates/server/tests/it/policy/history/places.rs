//! Whose place the segments lie in (HS-13), and what is read where a segment is not (HS-14).

use super::sealing::{numbers, states};
use super::{all_events, assert_all, files, import, lines, seal, status};
use crate::support::{App, each};
use provost_areas_policy::history::{self, SegmentPlace};
use provost_kernel::kernel::Extras;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn folder(app: &App) -> PathBuf {
    app.keys_dir.join("history")
}

/// Returns the same application with another folder for its segments.
fn elsewhere(app: &App, name: &str) -> (App, PathBuf) {
    let folder = app.keys_dir.join(name);
    let place = SegmentPlace::folder(&folder).unwrap();
    (app.restarted(Extras::default().with(place)).unwrap(), folder)
}

/// Proves HS-13.
#[test]
fn a_place_without_the_stores_marker_takes_and_loses_nothing() {
    each("place_other", |app: Arc<App>| async move {
        import(&app, "a", lines(&app, 0, 5_000)).await.ok();
        seal(&app).await;
        assert!(folder(&app).join("place.json").is_file());
        import(&app, "b", lines(&app, 5_000, 5_000)).await.ok();
        let known = all_events(&app, "").await;
        // A folder of its own, which the store does not name, with a file of somebody's in it.
        let (other, strange) = elsewhere(&app, "strange");
        std::fs::write(strange.join("notes.txt"), "mine").unwrap();
        app.advance(601);
        history::seal(&other.kernel).await.unwrap();
        assert_eq!(states(&app), ["sealed"], "nothing is sealed into it");
        app.advance(2 * 3_600);
        history::retain(&other.kernel).await.unwrap();
        assert_eq!(numbers(&app), [(1, true), (2, false)], "and no row goes");
        // What the segment holds is read from the rows that it stands for.
        assert_eq!(all_events(&other, "").await, known);
        let event = known.last().unwrap()["eventId"].as_str().unwrap();
        other.get(&format!("/policies/history/{event}")).await.ok();
        history::watch(&other.kernel, true).await.unwrap();
        let left: Vec<_> = std::fs::read_dir(&strange).unwrap().collect();
        assert_eq!(left.len(), 1, "not even a marker was left there");
        // The right place goes on.
        history::seal(&app.kernel).await.unwrap();
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(numbers(&app), [(2, true)]);
        assert_all(&all_events(&app, "").await, 0..10_000);
        other.kernel.stop().await;
    });
}

/// Proves HS-13.
#[test]
fn a_place_that_lost_its_marker_is_left_alone_until_it_is_back() {
    each("place_lost", |app: Arc<App>| async move {
        let days = json!({ "retention": { "historyDays": 1 }, "confirm": true });
        import(&app, "a", lines(&app, 0, 5_000)).await.ok();
        seal(&app).await;
        app.write("PATCH", "/automation/settings", days).await.ok();
        app.advance(10 * 86_400);
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(states(&app), ["removing"]);
        app.advance(3_601);
        // The share is not mounted: an empty folder where it was.
        let (real, away) = (folder(&app), app.keys_dir.join("away"));
        std::fs::rename(&real, &away).unwrap();
        std::fs::create_dir(&real).unwrap();
        history::retain(&app.kernel).await.unwrap();
        assert_eq!(
            states(&app),
            ["removing"],
            "the row knows of a file that was not seen to go"
        );
        std::fs::remove_dir(&real).unwrap();
        std::fs::rename(&away, &real).unwrap();
        // Another store's marker, and one that is none.
        let marker = std::fs::read(real.join("place.json")).unwrap();
        for other in ["{\"placeId\":\"plc_other\"}", "{}", ""] {
            std::fs::write(real.join("place.json"), other).unwrap();
            history::retain(&app.kernel).await.unwrap();
            assert_eq!((files(&app).len(), states(&app).len()), (1, 1), "{other}");
        }
        std::fs::write(real.join("place.json"), marker).unwrap();
        history::retain(&app.kernel).await.unwrap();
        assert_eq!((files(&app).len(), states(&app).len()), (0, 0));
    });
}

/// Proves HS-13.
#[test]
fn a_store_of_before_takes_the_place_that_holds_its_segments_and_no_other() {
    each("place_upgrade", |app: Arc<App>| async move {
        import(&app, "a", lines(&app, 0, 5_000)).await.ok();
        seal(&app).await;
        import(&app, "b", lines(&app, 5_000, 5_000)).await.ok();
        app.advance(601);
        // An earlier build named no place and left no marker.
        super::sealing::batch(&app, "DELETE FROM installation WHERE name LIKE 'history_place%'");
        std::fs::remove_file(folder(&app).join("place.json")).unwrap();
        let (other, empty) = elsewhere(&app, "empty");
        history::seal(&other.kernel).await.unwrap();
        assert_eq!(states(&app), ["sealed"], "it holds none of the segments");
        assert!(!empty.join("place.json").exists());
        history::seal(&app.kernel).await.unwrap();
        assert_eq!(states(&app), ["sealed", "sealed"]);
        assert!(folder(&app).join("place.json").is_file());
        other.kernel.stop().await;
    });
}

#[test]
fn a_file_without_a_row_goes_after_a_week_and_nothing_else_does() {
    each("place_orphans", |app: Arc<App>| async move {
        import(&app, "a", lines(&app, 0, 5_000)).await.ok();
        seal(&app).await;
        let known = files(&app);
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(app.now().as_ms().unsigned_abs());
        let day = Duration::from_hours(24);
        let put = |name: &str, age: Duration| {
            let file = std::fs::File::create(folder(&app).join(name)).unwrap();
            file.set_modified(at - age).unwrap();
        };
        for name in &known {
            let file = std::fs::File::options()
                .write(true)
                .open(folder(&app).join(name))
                .unwrap();
            file.set_modified(at - 30 * day).unwrap();
        }
        put("segment-acme-hsg_old.parquet", 8 * day);
        put("segment-acme-hsg_young.parquet", 6 * day);
        put("notes.parquet", 30 * day);
        put("segment-notes.txt", 30 * day);
        history::watch(&app.kernel, false).await.unwrap();
        let mut left = known;
        let stay = [
            "notes.parquet",
            "segment-acme-hsg_young.parquet",
            "segment-notes.txt",
        ];
        left.extend(stay.map(str::to_owned));
        left.sort();
        assert_eq!(files(&app), left);
        assert_all(&all_events(&app, "").await, 0..5_000);
    });
}

/// Proves HS-14.
#[test]
fn where_a_segment_is_bad_the_rows_that_are_still_there_are_listed() {
    each("place_rows", |app: Arc<App>| async move {
        for part in 0..3 {
            import(&app, "rows", lines(&app, part * 2_000, 2_000)).await.ok();
        }
        seal(&app).await;
        let known = all_events(&app, "").await;
        let filtered = all_events(&app, "&tool=tool-1").await;
        let file = folder(&app).join(&files(&app)[0]);
        let whole = std::fs::read(&file).unwrap();
        // Gone; without its end; with one damaged page somewhere in the middle.
        let mut pages = Vec::new();
        for at in [whole.len() / 8, whole.len() / 3, whole.len() / 2] {
            let mut other = whole.clone();
            other[at] ^= 0x55;
            pages.push(other);
        }
        let mut damaged = vec![None, Some(whole[..whole.len() / 2].to_vec())];
        damaged.extend(pages.into_iter().map(Some));
        for (place, bytes) in damaged.into_iter().enumerate() {
            match bytes {
                None => std::fs::remove_file(&file).unwrap(),
                Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            }
            assert_eq!(all_events(&app, "").await, known, "{place}");
            assert_eq!(all_events(&app, "&tool=tool-1").await, filtered, "{place}");
        }
        assert_eq!(status(&app).await["segments"], 1);
    });
}
