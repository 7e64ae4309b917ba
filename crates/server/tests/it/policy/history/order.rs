//! Events of one instant keep the order in which they were accepted (HS-9).

use super::{all_events, external, import, lines, seal, status};
use crate::policy::backtests_worker::{Worker, ended};
use crate::policy::decisions::{call, content, decide, policy};
use crate::support::{App, each};
use provost_kernel::time::ManualClock;
use provost_policy::Family;
use serde_json::{Value, json};
use std::sync::Arc;

/// Five calls of one user in one millisecond: the tools a to e, in this order.
const TIED: &str = include_str!("tied-times.jsonl");

fn tied() -> Vec<&'static str> {
    TIED.lines().collect()
}

/// Imports the lines in bodies of these sizes, one after the other.
async fn import_in(app: &App, source: &str, sizes: &[usize]) {
    let all = tied();
    let mut rest = &all[..];
    for size in sizes {
        let (body, behind) = rest.split_at(*size);
        import(app, source, body.join("\n")).await.ok();
        rest = behind;
    }
    assert!(rest.is_empty());
}

/// Returns the tools of a source's events, the oldest first.
async fn tools(app: &App, source: &str) -> String {
    let events = all_events(app, &format!("&source={source}&to=2026-10-01T00:00:00Z")).await;
    events
        .iter()
        .rev()
        .map(|event| event["tool"].as_str().unwrap())
        .collect()
}

/// Blocks the fourth tool, for whom three others were called within the hour.
fn after_three() -> Value {
    content(
        "after-three",
        "block",
        &json!({ "conditions": { "all": [
            { "field": "tool.id", "op": "eq", "value": "d" },
            { "priorDistinctValues": { "within": "1h", "field": "tool.id", "op": "gte", "value": 3 } },
        ] } }),
    )
}

/// Returns what a backtest over the day of the tied events says of that policy.
async fn backtest(app: &App) -> Value {
    let body = json!({
        "candidate": { "kind": "inline", "family": "content", "definition": after_three() },
        "window": { "from": "2026-08-31T12:00:00.000Z", "to": "2026-09-01T12:00:00.000Z" },
    });
    let made = app.write("POST", "/policies/backtests", body).await;
    let id = made.ok()["id"].as_str().unwrap().to_owned();
    let run = ended(app, &id).await;
    assert_eq!(run["status"], "succeeded", "{run}");
    run["results"].clone()
}

/// Proves HS-9.
#[test]
fn lines_of_one_instant_keep_their_order_under_any_name_and_in_any_bodies() {
    each("history_tied", |app: Arc<App>| async move {
        let splits: [&[usize]; 4] = [&[5], &[1, 4], &[2, 2, 1], &[1, 1, 1, 1, 1]];
        let names = ["a", "b", "laptops", "zz", "0"];
        for (number, sizes) in splits.iter().enumerate() {
            for name in names {
                let source = format!("{name}-{number}");
                import_in(&app, &source, sizes).await;
                assert_eq!(tools(&app, &source).await, "abcde", "{source}");
                let ids = all_events(&app, &format!("&source={source}")).await;
                assert_eq!(external(&ids), ["5", "4", "3", "2", "1"]);
            }
        }
        // A body that comes again is the one that came first.
        let again = import(&app, "a-0", tied().join("\n")).await;
        assert_eq!(again.ok()["duplicate"], true);
        // Sealed with others, they stand as they stood; and what comes later comes behind them.
        let before = all_events(&app, "&to=2026-10-01T00:00:00Z").await;
        assert_eq!(before.len(), 100);
        import(&app, "filler", lines(&app, 0, 4_096)).await.ok();
        seal(&app).await;
        assert_eq!(status(&app).await["segments"], 1);
        assert_eq!(all_events(&app, "&to=2026-10-01T00:00:00Z").await, before);
        import_in(&app, "later", &[3, 2]).await;
        let after = all_events(&app, "&to=2026-10-01T00:00:00Z").await;
        assert_eq!(after[5..], before);
        assert_eq!(tools(&app, "later").await, "abcde");
    });
}

/// Proves HS-9.
#[test]
fn a_condition_on_the_past_reads_lines_of_one_instant_in_their_order() {
    each("history_tied_past", |app: Arc<App>| async move {
        let worker = Worker::start(&app);
        for (number, sizes) in [&[5][..], &[1, 1, 1, 1, 1]].iter().enumerate() {
            // Another user for each, so that the pasts of two imports are two.
            let lines = tied().join("\n").replace("\"u\"", &format!("\"u{number}\""));
            let all: Vec<&str> = lines.lines().collect();
            let mut rest = &all[..];
            for size in *sizes {
                let (body, behind) = rest.split_at(*size);
                import(&app, "tied", body.join("\n")).await.ok();
                rest = behind;
            }
            // One more import, and one event more that had three before it.
            let results = backtest(&app).await;
            assert_eq!(results["eventsEvaluated"], 5 * (number + 1));
            assert_eq!(results["changed"], number + 1, "{results}");
            let samples = results["samples"].as_array().unwrap();
            assert!(samples.iter().all(|sample| sample["tool"] == "d"), "{samples:?}");
        }
        let before = backtest(&app).await;
        import(&app, "filler", lines(&app, 0, 4_096)).await.ok();
        seal(&app).await;
        assert_eq!(status(&app).await["segments"], 1);
        assert_eq!(backtest(&app).await, before);
        worker.stop().await;
    });
}

/// Proves HS-9.
#[test]
fn a_body_comes_behind_one_that_was_answered_before_whatever_server_took_it_and_whatever_its_clock_says() {
    each("history_tied_servers", |app: Arc<App>| async move {
        let all = tied();
        let clock = Arc::new(ManualClock::new(app.now().plus_secs(-7_200)));
        let other = app.beside(Vec::new(), clock, app.kernel.settings.clone(), app.location());
        for (number, line) in all.iter().enumerate() {
            let server = if number % 2 == 0 { &*app } else { &other };
            import(server, "two", *line).await.ok();
        }
        assert_eq!(tools(&app, "two").await, "abcde");
        other.kernel.stop().await;
        // A process that begins anew remembers nothing, and its clock went back by a day.
        let again = app.beside(
            Vec::new(),
            Arc::new(ManualClock::new(app.now().plus_secs(-86_400))),
            app.kernel.settings.clone(),
            app.location(),
        );
        import_in(&again, "again", &[2, 3]).await;
        let mut both: Vec<String> = all_events(&again, "&to=2026-10-01T00:00:00Z")
            .await
            .iter()
            .map(|event| event["source"].as_str().unwrap().to_owned())
            .collect();
        both.dedup();
        assert_eq!(both, ["again", "two"]);
        assert_eq!(tools(&again, "again").await, "abcde");
        again.kernel.stop().await;
    });
}

/// Proves HS-9.
#[test]
fn decisions_and_telemetry_of_one_instant_keep_their_order() {
    each("history_tied_live", |app: Arc<App>| async move {
        policy(&app, Family::Content, content("p", "nudge", &json!({}))).await;
        let of = |tools: &str| -> Vec<Value> {
            let each = tools.chars();
            each.map(|tool| call(&json!({ "identity.user_id": "u", "tool.id": tool.to_string() })))
                .collect()
        };
        // The clock stands still.
        for tools in ["abc", "d", "efgh"] {
            decide(&app, &of(tools)).await;
        }
        let events = all_events(&app, "&source=decisions").await;
        let found: String = events
            .iter()
            .rev()
            .map(|event| event["tool"].as_str().unwrap())
            .collect();
        assert_eq!(found, "abcdefgh");

        let at = (app.now().as_ms() * 1_000_000).to_string();
        for tools in ["ab", "cde"] {
            let records: Vec<Value> = tools
                .chars()
                .map(|tool| {
                    json!({ "eventName": "codex.tool_result", "timeUnixNano": at, "attributes": [
                        { "key": "tool_name", "value": { "stringValue": tool.to_string() } },
                    ] })
                })
                .collect();
            let payload = json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": records }] }] });
            let call = app.request("POST", "/otlp/v1/logs");
            call.content("application/json", payload.to_string().into_bytes())
                .send()
                .await
                .ok();
        }
        let events = all_events(&app, "&source=otlp&occasion=pre_tool").await;
        let found: String = events
            .iter()
            .rev()
            .map(|event| event["tool"].as_str().unwrap())
            .collect();
        assert_eq!(found, "abcde");
    });
}
