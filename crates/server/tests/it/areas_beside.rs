//! The product with one area more: what holds for every area holds for one that nobody thought of.

use crate::areas::Samples;
use crate::notes;
use crate::rights_graph::tables::Table;
use crate::support::{App, START, each_of, fresh_key, with_trio};
use provost_kernel::area::{Area, Areas, Check};
use provost_kernel::db::testing::migrated_file;
use provost_kernel::db::{Access, Conn, Engine, Tx};
use provost_kernel::expose::openapi;
use provost_server::areas::ALL;
use provost_server::commands::store;
use provost_server::{closing, proofs};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// The only line that names the area outside of its folder.
const BESIDE: &[(&Area, Samples, &[Table])] =
    &[(&notes::AREA, notes::samples::SAMPLES, notes::samples::RIGHTS)];

static WITH_NOTES: LazyLock<&'static Areas> = LazyLock::new(|| {
    let beside = BESIDE.iter().map(|(area, ..)| *area);
    let list: Vec<&'static Area> = ALL.iter().chain(beside).collect();
    Box::leak(Box::new(Areas::of(list.leak())))
});

/// Returns the areas that the nets go over: the product's, and those beside it.
pub fn every_area() -> &'static Areas {
    *WITH_NOTES
}

/// Returns what the nets must know of the areas beside the product, in the program of the application, or in any.
pub fn samples(app: Option<&App>) -> impl Iterator<Item = &'static Samples> {
    let is_there =
        move |area: &Area| app.is_none_or(|app| app.kernel.areas().iter().any(|one| one.name == area.name));
    let beside = BESIDE.iter().filter(move |(area, ..)| is_there(area));
    beside.map(|(_, samples, _)| samples)
}

/// Returns what the graph of rights must know of the tables of areas beside the product, in these areas.
pub fn tables(areas: &Areas) -> impl Iterator<Item = &'static Table> {
    let beside = BESIDE
        .iter()
        .filter(|(area, ..)| areas.iter().any(|one| one.name == area.name));
    beside.flat_map(|(_, _, tables)| *tables)
}

async fn write(app: &App, text: &str, keep_secs: Option<u32>) -> Value {
    let mut body = json!({ "text": text });
    if let Some(secs) = keep_secs {
        body["keepSecs"] = secs.into();
    }
    app.write("POST", "/notes", body).await.ok().clone()
}

/// Returns what the audit log says that happened, the newest first, as action and target.
async fn acts(app: &App) -> Vec<(String, String)> {
    let entries = app.get("/audit/events?limit=20").await.ok()["events"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = entries.as_array().unwrap();
    entries
        .iter()
        .map(|entry| (text(&entry["action"]), text(&entry["target"]["id"])))
        .collect()
}

#[test]
fn a_new_area_is_served_authorized_audited_and_repeated_safely() {
    each_of(every_area(), "beside_served", |app: Arc<App>| async move {
        let first = write(&app, "first", None).await;
        let id = first["id"].as_str().unwrap().to_owned();
        assert!(id.starts_with("nte_"), "{first}");
        let again = with_trio(json!({ "text": "once" }), &fresh_key());
        let once = app.request("POST", "/notes").json(again.clone()).send().await;
        let twice = app.request("POST", "/notes").json(again).send().await;
        assert_eq!(once.ok(), twice.ok());
        let page = app.get("/notes?limit=1").await;
        assert_eq!(page.ok()["notes"], json!([first]));
        let next = page.ok()["nextCursor"].as_str().unwrap().to_owned();
        let rest = app.get(&format!("/notes?cursor={next}")).await;
        assert_eq!(rest.ok()["notes"].as_array().unwrap().len(), 1);
        let path = format!("/notes/{id}");
        let changed = app.write("PUT", &path, json!({ "text": "anew" })).await;
        assert_eq!(changed.ok()["text"], "anew");
        assert_eq!(app.get(&path).await.ok()["text"], "anew");
        app.write("POST", "/notes", json!({ "text": "" }))
            .await
            .refused(400, "invalid_request");
        // Rights are those of every area.
        let (_, reader) = app.account("reader", "auditor", &["operations:read"]).await;
        let (_, stranger) = app.account("viewer", "viewer", &[]).await;
        app.request("GET", &path).token(&reader).send().await.ok();
        let body = with_trio(json!({ "text": "no" }), &fresh_key());
        let refused = app
            .request("POST", "/notes")
            .token(&reader)
            .json(body)
            .send()
            .await;
        refused.refused(403, "role_forbidden");
        app.request("GET", &path)
            .token(&stranger)
            .send()
            .await
            .refused(403, "role_forbidden");
        let (organization, admin) = app.other_organization("Other").await;
        let other = app.view_of(organization, admin);
        other.get(&path).await.refused(404, "not_found");
        // What cannot be undone is confirmed, and stands in the log.
        let deleting = || {
            let deleting = app.request("DELETE", &path).header("x-reason", "a test");
            deleting.header("idempotency-key", &fresh_key())
        };
        deleting().send().await.refused(400, "confirmation_required");
        deleting().header("x-confirm", "true").send().await.ok();
        app.get(&path).await.refused(404, "not_found");
        assert!(acts(&app).await.contains(&("deleteHeadlessNote".into(), id)));
        let tools = provost_kernel::expose::mcp::tools(&app.kernel.registry);
        assert!(
            serde_json::to_string(&tools)
                .unwrap()
                .contains("createHeadlessNote")
        );
        let document = openapi::document(&app.kernel.registry).to_string();
        assert!(document.contains("/notes/{noteId}"));
    });
}

#[test]
fn the_timer_of_a_new_area_runs_and_tells() {
    each_of(every_area(), "beside_timer", |app: Arc<App>| async move {
        let short = write(&app, "short", Some(60)).await["id"].clone();
        let long = write(&app, "long", Some(3_600)).await["id"].clone();
        let [timer] = notes::AREA.timers else {
            panic!("one timer");
        };
        (timer.run)(app.kernel.clone(), false).await.unwrap();
        assert_eq!(app.get("/notes").await.ok()["notes"].as_array().unwrap().len(), 2);
        app.advance(61);
        (timer.run)(app.kernel.clone(), false).await.unwrap();
        assert_eq!(app.get("/notes").await.ok()["notes"][0]["id"], long);
        let told = app.get("/events?after=0").await.ok()["events"].clone();
        let told = told.as_array().unwrap();
        let told = told.iter().find(|event| event["type"] == "note.expired").unwrap();
        assert_eq!(told["data"]["noteId"], short);
        assert_eq!(acts(&app).await[0].0, "note.expired");
    });
}

#[test]
fn what_another_hand_does_to_a_right_of_a_new_area_is_found() {
    each_of(every_area(), "beside_rights", |app: Arc<App>| async move {
        let id = write(&app, "kept", None).await["id"].as_str().unwrap().to_owned();
        write(&app, "other", None).await;
        let found = || async {
            let kernel = app.kernel.clone();
            let found = app
                .kernel
                .read_system(move |tx| proofs::findings(kernel.areas(), tx, &kernel.keys));
            found
                .await
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(found().await, [""; 0]);
        let sealed = async || {
            let kernel = app.kernel.clone();
            let read = move |tx: &mut Tx<'_>| closing::finding_of_closed(every_area(), tx, &kernel.keys);
            app.kernel.read_system(read).await.unwrap()
        };
        closing::mark(every_area(), &app.location(), &app.kernel.keys).unwrap();
        assert_eq!(sealed().await, None);
        let sql = format!("UPDATE notes SET text = '' WHERE id = '{id}'");
        std::thread::scope(|scope| {
            let run = scope.spawn(|| Conn::open(&app.location(), Access::Write).unwrap().batch(&sql));
            run.join().unwrap().unwrap();
        });
        // A store of PostgreSQL is never closed.
        assert_eq!(
            sealed().await.is_some(),
            app.location().engine() == Engine::Sqlite
        );
        let said = found().await;
        assert!(
            said.iter()
                .any(|line| line.contains("table notes") && line.contains(&id)),
            "{said:?}"
        );
        let Check::Find(check) = notes::AREA.check else {
            panic!("a check");
        };
        let now = app.now();
        let said = app.kernel.read_system(move |tx| check(tx, now)).await.unwrap();
        assert_eq!(said.len(), 1);
        assert!(said[0].ends_with("has no text"), "{said:?}");
    });
}

#[test]
fn a_store_with_a_new_area_is_checked_copied_and_checked_again() {
    each_of(every_area(), "beside_store", |app: Arc<App>| async move {
        let id = write(&app, "kept", None).await["id"].as_str().unwrap().to_owned();
        let (location, keys, now) = (app.location(), app.kernel.keys.clone(), app.now());
        let copied = migrated_file("beside_copy", every_area().migrations(), START);
        let found = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let mut all = vec![store::findings(every_area(), &location, &keys, now)];
                let mut to = copied.open();
                let mut from = Conn::open(&location, Access::Read).unwrap();
                let rows = store::copy_all(&mut from, &mut to);
                assert!(rows.is_ok_and(|rows| rows > 0));
                all.push(store::findings(every_area(), &copied.location(), &keys, now));
                let sql = format!("UPDATE notes SET text = '' WHERE id = '{id}'");
                to.batch(&sql).unwrap();
                all.push(store::findings(every_area(), &copied.location(), &keys, now));
                all
            });
            run.join().unwrap()
        });
        assert_eq!(found[..2], [[""; 0], [""; 0]]);
        for words in ["table notes", "has no text"] {
            assert!(found[2].iter().any(|line| line.contains(words)), "{:?}", found[2]);
        }
    });
}
