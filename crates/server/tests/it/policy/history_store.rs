//! Segments in an S3-compatible store: sealed, listed and removed as in a folder.
//!
//! `PROVOST_TEST_S3_ENDPOINT` names the server, in which buckets can be made without a signature; `cargo xtask test`
//! starts one. With `PROVOST_TEST_REQUIRE_S3=1` its absence is a failure.

use crate::support::{App, each};
use provost_areas_policy::history::{self, SegmentPlace};
use provost_kernel::kernel::Extras;
use provost_server::config::History;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where the server is; this is no configuration"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn make_bucket(endpoint: &str, bucket: &str) {
    let server = endpoint.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(server).unwrap();
    let head =
        format!("PUT /{bucket} HTTP/1.1\r\nhost: {server}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

async fn events(app: &App, query: &str) -> Vec<Value> {
    let (mut events, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app
            .get(&format!("/policies/history?limit=100{query}{cursor}"))
            .await;
        let page = page.ok().clone();
        assert!(page.get("unreadable").is_none(), "{page}");
        events.extend(page["events"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return events,
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story")]
fn segments_in_a_store_are_sealed_and_read() {
    let Some(endpoint) = variable("PROVOST_TEST_S3_ENDPOINT") else {
        assert!(
            variable("PROVOST_TEST_REQUIRE_S3").as_deref() != Some("1"),
            "PROVOST_TEST_S3_ENDPOINT is not set, and PROVOST_TEST_REQUIRE_S3 is"
        );
        return;
    };
    each("history_store", |first: Arc<App>| {
        let endpoint = endpoint.clone();
        async move {
            let bucket = format!(
                "sealed-{}-{}",
                std::process::id(),
                first.now().as_ms() % 1_000_000
            );
            let bucket = format!(
                "{bucket}-{}",
                crate::support::fresh_key().to_ascii_lowercase().replace('_', "-")
            );
            make_bucket(&endpoint, &bucket);
            std::fs::write(first.keys_dir.join("id"), "an-id").unwrap();
            std::fs::write(first.keys_dir.join("secret"), "a-secret").unwrap();
            let config = History {
                url: Some(format!("s3://{bucket}/provost")),
                endpoint: Some(endpoint.clone()),
                path_style: Some(true),
                access_key_id_file: Some(first.keys_dir.join("id")),
                secret_access_key_file: Some(first.keys_dir.join("secret")),
                ..History::default()
            };
            config.check().unwrap();
            let runtime = tokio::runtime::Handle::current();
            let place: SegmentPlace = config.open(Path::new("unused"), &runtime).unwrap();
            let app = first.restarted(Extras::default().with(place)).unwrap();

            let line = |number: usize| {
                let at = app
                    .now()
                    .plus_secs(-10_000)
                    .plus_ms(i64::try_from(number).unwrap());
                json!({ "at": at.to_rfc3339(), "occasion": "pre_tool", "id": format!("e{number}"),
                        "attributes": { "tool.id": format!("tool-{}", number % 50) } })
                .to_string()
            };
            let body: Vec<String> = (0..5_000).map(line).collect();
            let call = app.request("POST", "/policies/history/import?source=a");
            let call = call.content("application/x-ndjson", body.join("\n").into_bytes());
            assert_eq!(call.send().await.ok()["accepted"], 5_000);
            app.advance(601);
            history::seal(&app.kernel).await.unwrap();
            let status = app.get("/policies/history/status").await.ok().clone();
            assert_eq!(
                (&status["segments"], &status["events"]),
                (&json!(1), &json!(5_000)),
                "{status}"
            );
            assert!(
                !first.keys_dir.join("history").read_dir().unwrap().any(|_| true),
                "nothing lies in a folder"
            );

            // The chunks are gone two hours later; what is read then comes from the store alone.
            app.advance(3 * 3_600);
            history::retain(&app.kernel).await.unwrap();
            let status = app.get("/policies/history/status").await.ok().clone();
            assert_eq!(status["events"], 5_000, "{status}");
            let found = events(&app, "&tool=tool-7").await;
            assert_eq!(found.len(), 100);
            assert_eq!(found[0]["externalId"], "e4957");

            // Retention removes the object from the store: all that there is goes after a day of running time (CK-4).
            app.advance(401 * 86_400);
            for _ in 0..144 {
                history::retain(&app.kernel).await.unwrap();
                app.advance(600);
            }
            history::retain(&app.kernel).await.unwrap();
            app.advance(2 * 3_600);
            history::retain(&app.kernel).await.unwrap();
            // No token lives as long as that.
            let admin = provost_server::app::recover(&app.kernel, &app.organization, false)
                .await
                .unwrap();
            let status = app.request("GET", "/policies/history/status");
            let status = status.token(admin.token.expose()).send().await.ok().clone();
            assert_eq!(
                (&status["segments"], &status["events"]),
                (&json!(0), &json!(0)),
                "{status}"
            );
            let runtime = tokio::runtime::Handle::current();
            let listed = tokio::task::spawn_blocking(move || {
                use provost_history::Listable;
                use provost_history::object_store::{ObjectStore, Options};
                let options = Options {
                    endpoint: config.endpoint,
                    region: config.region,
                    path_style: true,
                    access_key_id_file: config.access_key_id_file.unwrap(),
                    secret_access_key_file: config.secret_access_key_file.unwrap(),
                    ca_file: None,
                    runtime,
                };
                ObjectStore::open(&config.url.unwrap(), &options)
                    .unwrap()
                    .list()
                    .unwrap()
            });
            let names: Vec<String> = listed
                .await
                .unwrap()
                .into_iter()
                .map(|stored| stored.name)
                .collect();
            assert_eq!(names, ["place.json"]);
        }
    });
}
