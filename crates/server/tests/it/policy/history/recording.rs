//! The recorder: what is durable when, what waits, in which order it is numbered (HS-1, HS-6, HS-8).

use super::{all_events, external, seal, status};
use crate::support::{App, each};
use provost_areas_policy::history::{self, Durability, EventId, NewEvent};
use provost_backtest::record::{self, OwnedRecord};
use provost_history::chunk;
use provost_kernel::db::Location;
use provost_policy::Occasion;
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

fn event(app: &App, number: usize, text: usize) -> NewEvent {
    let at = app.now().as_ms() - i64::try_from(number).unwrap();
    let mut attributes = Map::new();
    attributes.insert("tool.id".into(), format!("tool-{}", number % 3).into());
    if text > 0 {
        attributes.insert("request.prompt".into(), "x".repeat(text).into());
    }
    let mut record = OwnedRecord::read(at, Occasion::PreTool, &attributes, &[]).unwrap();
    record.source = Some("port".into());
    record.external_id = Some(format!("e{number}"));
    NewEvent {
        id: EventId::at(at, number as u64, 7).as_str().to_owned(),
        record,
    }
}

/// Proves HS-1, HS-6.
#[test]
fn what_is_durable_is_there_when_it_is_answered_in_as_few_chunks_as_commits() {
    each("history_durable", |app: Arc<App>| async move {
        let mut appends = JoinSet::new();
        for number in 0..400 {
            let app = app.clone();
            appends.spawn(async move {
                let events = vec![event(&app, 2 * number, 0), event(&app, 2 * number + 1, 0)];
                let recorder = history::recorder(&app.kernel);
                recorder
                    .append(&app.org(), events, Durability::Durable)
                    .await
                    .unwrap();
                let id = event(&app, 2 * number, 0).id;
                app.get(&format!("/policies/history/{id}")).await.ok();
            });
        }
        appends.join_all().await;
        let known = status(&app).await;
        assert_eq!(known["events"], 800);
        // Appends that wait at the same time share a commit.
        assert!(known["chunks"].as_i64().unwrap() < 400, "{known}");
        let events = all_events(&app, "").await;
        assert_eq!(
            events
                .iter()
                .map(|e| e["eventId"].as_str())
                .collect::<BTreeSet<_>>()
                .len(),
            800
        );
        let org = app.organization.clone();
        let live = app
            .kernel
            .read_system(move |tx| history::chunks_after(tx, &org, 0))
            .await
            .unwrap();
        assert!(live.iter().map(|chunk| chunk.sequence).eq((1..).take(live.len())));
        for chunk in &live {
            let batch = chunk::decode(&record::schema(), &chunk.content).unwrap();
            assert_eq!(batch.rows(), chunk.rows as usize);
        }
    });
}

/// Proves HS-1.
#[test]
fn what_is_buffered_is_answered_at_once_and_written_soon() {
    each("history_buffered", |app: Arc<App>| async move {
        let recorder = history::recorder(&app.kernel);
        for number in 0..50 {
            let (org, events) = (app.org(), vec![event(&app, number, 0)]);
            recorder.append(&org, events, Durability::Buffered).await.unwrap();
        }
        // Nobody asks for the disk; the recorder does by itself.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let known = status(&app).await;
        assert_eq!(known["events"], 50);
        assert!(known["chunks"].as_i64().unwrap() <= 5, "{known}");
        // What waits when the server stops is written.
        recorder
            .append(&app.org(), vec![event(&app, 50, 0)], Durability::Buffered)
            .await
            .unwrap();
        recorder.close().await;
        assert_eq!(status(&app).await["events"], 51);
        let late = recorder
            .append(&app.org(), vec![event(&app, 51, 0)], Durability::Durable)
            .await;
        assert_eq!(late.unwrap_err().code().as_str(), "unavailable");
        assert_eq!(status(&app).await["events"], 51);
    });
}

/// Proves HS-1.
#[test]
fn more_than_there_is_room_for_waits_and_nothing_is_dropped() {
    each("history_room", |app: Arc<App>| async move {
        // 12 × 16 MiB of texts, three times the room of an organization; a chunk takes at most 32 MiB.
        let mut appends = JoinSet::new();
        for part in 0..12 {
            let app = app.clone();
            appends.spawn(async move {
                let events = (0..80)
                    .map(|number| event(&app, part * 80 + number, 200 * 1024))
                    .collect();
                let recorder = history::recorder(&app.kernel);
                let durability = if part % 2 == 0 {
                    Durability::Durable
                } else {
                    Durability::Buffered
                };
                recorder.append(&app.org(), events, durability).await.unwrap();
            });
        }
        appends.join_all().await;
        super::soon("the last commit", async || status(&app).await["events"] == 960).await;
        let events = all_events(&app, "").await;
        let ids: BTreeSet<&str> = external(&events).into_iter().collect();
        assert_eq!((events.len(), ids.len()), (960, 960));
    });
}

#[test]
fn an_append_larger_than_a_chunk_is_recorded_whole() {
    each("history_large", |app: Arc<App>| async move {
        let events = (0..12_000).map(|number| event(&app, number, 0)).collect();
        let recorder = history::recorder(&app.kernel);
        recorder
            .append(&app.org(), events, Durability::Durable)
            .await
            .unwrap();
        let known = status(&app).await;
        assert_eq!((&known["events"], &known["chunks"]), (&json!(12_000), &json!(3)));
        seal(&app).await;
        let known = status(&app).await;
        assert_eq!(
            (&known["events"], &known["segments"]),
            (&json!(12_000), &json!(1))
        );
    });
}

/// Proves HS-8.
#[test]
fn an_id_that_does_not_say_when_its_event_happened_is_refused() {
    each("history_ids", |app: Arc<App>| async move {
        let recorder = history::recorder(&app.kernel);
        let mut wrong = event(&app, 1, 0);
        wrong.id = event(&app, 2, 0).id;
        let mut none = event(&app, 1, 0);
        none.id = "hev_none".into();
        for bad in [wrong, none] {
            let refused = recorder
                .append(&app.org(), vec![event(&app, 3, 0), bad], Durability::Durable)
                .await;
            assert_eq!(refused.unwrap_err().code().as_str(), "internal");
        }
        assert_eq!(status(&app).await["events"], 0);
        recorder
            .append(&app.org(), Vec::new(), Durability::Durable)
            .await
            .unwrap();
    });
}

/// Proves HS-1.
#[test]
fn a_commit_that_fails_is_told_to_everybody_who_waits() {
    each("history_failure", |app: Arc<App>| async move {
        // An organization that does not exist: the rows have nothing to belong to.
        let nowhere = provost_kernel::auth::OrganizationId::parse("nowhere").unwrap();
        let recorder = history::recorder(&app.kernel);
        let mut appends = JoinSet::new();
        for number in 0..20 {
            let (recorder, nowhere, event) = (recorder.clone(), nowhere.clone(), event(&app, number, 0));
            appends.spawn(async move { recorder.append(&nowhere, vec![event], Durability::Durable).await });
        }
        for answer in appends.join_all().await {
            assert_eq!(answer.unwrap_err().code().as_str(), "unavailable");
        }
        // Others are not touched by it.
        recorder
            .append(&app.org(), vec![event(&app, 1, 0)], Durability::Durable)
            .await
            .unwrap();
        assert_eq!(status(&app).await["events"], 1);
    });
}

/// Proves HS-6.
#[test]
fn two_servers_number_their_chunks_together() {
    each("history_numbers", |app: Arc<App>| async move {
        if matches!(app.location(), Location::Sqlite(_)) {
            return;
        }
        let settings = app.kernel.settings.clone();
        let other = Arc::new(app.beside(Vec::new(), app.clock.clone(), settings, app.location()));
        let mut appends = JoinSet::new();
        for number in 0..60 {
            let server = if number % 2 == 0 {
                app.clone()
            } else {
                other.clone()
            };
            appends.spawn(async move {
                tokio::time::sleep(Duration::from_millis(u64::try_from(number).unwrap())).await;
                let recorder = history::recorder(&server.kernel);
                recorder
                    .append(
                        &server.org(),
                        vec![event(&server, number, 0)],
                        Durability::Durable,
                    )
                    .await
                    .unwrap();
            });
        }
        appends.join_all().await;
        let org = app.organization.clone();
        let live = app
            .kernel
            .read_system(move |tx| history::chunks_after(tx, &org, 0))
            .await
            .unwrap();
        assert!(live.iter().map(|chunk| chunk.sequence).eq((1..).take(live.len())));
        assert_eq!(live.iter().map(|chunk| chunk.rows).sum::<u32>(), 60);
        let org = app.organization.clone();
        let rest = app
            .kernel
            .read_system(move |tx| history::chunks_after(tx, &org, 3))
            .await
            .unwrap();
        assert_eq!(rest.len(), live.len() - 3);
        other.kernel.stop().await;
    });
}
