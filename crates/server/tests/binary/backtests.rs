//! A server that is killed while it works on a backtest, and the next one on the same store (D9.7).

use super::harness::{Home, Server, get, homes, post, refuse, succeed};
use provost_areas_policy::history::{self, Durability, EventId, NewEvent};
use provost_backtest::record::OwnedRecord;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Access, Conn};
use provost_kernel::entropy::SystemEntropy;
use provost_kernel::kernel::{Extras, Settings};
use provost_kernel::keys::Keys;
use provost_kernel::time::{Clock, SystemClock};
use provost_policy::{Occasion, sha256_hex};
use provost_server::app;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const RUNS: &str = "/api/headless/v1/organizations/acme/policies/backtests";
/// So many that judging them takes seconds.
const EVENTS: i64 = 100_000;

/// Records so many events of the hour before now and returns that hour.
fn record(home: &Home, count: i64) -> (String, String) {
    let clock = Arc::new(SystemClock::new());
    let to = clock.now();
    let from = to.plus_secs(-3600);
    let installation = app::Installation {
        areas: &provost_server::areas::ALL,
        location: home.location(),
        keys: Keys::open(&home.path("keys")).unwrap(),
        clock,
        entropy: Arc::new(SystemEntropy),
        settings: Settings::default(),
        extras: Extras::default(),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let kernel = app::start(installation).unwrap();
        let organization = OrganizationId::parse("acme").unwrap();
        let recorder = history::recorder(&kernel).clone();
        let event = |n: i64| {
            let at = from.as_ms() + n * 3_600_000 / count;
            // No two events are alike: the module is asked about each.
            let attributes = json!({
                "identity.user_id": format!("user {}", n % 50), "tool.id": format!("tool {}", n % 20),
                "tool.input.command": format!("run {n}"),
            });
            NewEvent {
                id: EventId::at(at, n.unsigned_abs(), 7).as_str().to_owned(),
                record: OwnedRecord::read(at, Occasion::PreTool, attributes.as_object().unwrap(), &[])
                    .unwrap(),
            }
        };
        for start in (0..count).step_by(5_000) {
            let some = (start..count.min(start + 5_000)).map(event).collect();
            recorder
                .append(&organization, some, Durability::Durable)
                .await
                .unwrap();
        }
        recorder.close().await;
        kernel.stop().await;
    });
    (from.to_rfc3339(), to.to_rfc3339())
}

/// Asks for a run whose candidate is a module, which is asked about every event.
fn ask(server: &Server, token: &str, name: &str, (from, to): &(String, String)) -> String {
    let module = "package forge.content\nimport rego.v1\nmatch := {\"matched\": true} if input.tool.id == \"tool 3\"\n\
        match := {\"matched\": false} if input.tool.id != \"tool 3\"";
    let definition = json!({
        "id": "module", "name": "A module", "enabled": true, "action": "block", "evaluateOn": ["pre_tool"],
        "acknowledgeBroadScope": true,
        "logic": {
            "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match",
            "module": module, "moduleSha256": sha256_hex(module.as_bytes()),
        },
    });
    let candidate = json!({ "kind": "inline", "family": "content", "definition": definition });
    let window = json!({ "from": from, "to": to });
    // The harness makes its key of the body's first characters, so the name stands first.
    let body = format!("{{\"name\":\"{name}\",\"window\":{window},\"candidate\":{candidate}}}");
    let (status, answer) = post(server.port, RUNS, token, &body);
    assert_eq!(status, 201, "{answer}");
    let run: Value = serde_json::from_str(&answer).unwrap();
    run["id"].as_str().unwrap().to_owned()
}

fn until(server: &Server, token: &str, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..6_000 {
        let (status, answer) = get(server.port, &format!("{RUNS}/{id}"), Some(token));
        assert_eq!(status, 200, "{answer}");
        let run: Value = serde_json::from_str(&answer).unwrap();
        if is_so(&run) {
            return run;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{id} does not come there")
}

/// Proves BT-5.
#[test]
fn a_run_of_a_killed_server_is_taken_up_again_with_the_same_result() {
    for home in homes("backtests") {
        let token = home.init();
        let window = record(&home, EVENTS);
        let server = home.serve(&[]);
        let is_over = |run: &Value| run["finishedAt"].is_string();
        let id = ask(&server, &token, "undisturbed", &window);
        let whole = until(&server, &token, &id, is_over);
        assert_eq!(
            (&whole["status"], &whole["attempt"]),
            (&json!("succeeded"), &json!(1)),
            "{whole}"
        );
        assert_eq!(whole["results"]["eventsEvaluated"], EVENTS);

        let id = ask(&server, &token, "killed", &window);
        let far = until(&server, &token, &id, |run| {
            run["progress"]["eventsProcessed"].as_i64() > Some(0)
        });
        assert_eq!(far["status"], "running", "{far}");
        drop(server);

        let server = home.serve(&[]);
        let run = until(&server, &token, &id, is_over);
        assert_eq!(
            (&run["status"], &run["attempt"]),
            (&json!("succeeded"), &json!(2)),
            "{run}"
        );
        for same in ["results", "resultDigest", "policySet"] {
            assert_eq!(run[same], whole[same], "{same}");
        }
        assert_eq!(server.stop(), 0);
    }
}

/// A gate of a pipeline passes no run that could not read all.
#[test]
fn a_gate_fails_where_events_could_not_be_read() {
    for home in homes("backtests_gate") {
        let token = home.init();
        let (from, _) = record(&home, 4_000);
        let (_, to) = record(&home, 20);
        let definition = json!({
            "id": "no-tool", "name": "No tool", "enabled": true, "action": "block", "evaluateOn": ["pre_tool"],
            "acknowledgeBroadScope": true, "conditions": { "field": "tool.id", "op": "eq", "value": "tool 999" },
        });
        let candidate = json!({ "family": "content", "definition": definition });
        std::fs::write(home.path("candidate.json"), candidate.to_string()).unwrap();
        let server = home.serve(&[]);
        let run = |gates: &[&str]| {
            let words = [
                "backtests",
                "run",
                "--candidate",
                "candidate.json",
                "--reason",
                "CI",
            ];
            let mut command = home.command(&words);
            command.args(["--from", &from, "--to", &to]);
            for gate in gates {
                command.args(["--fail-on", gate]);
            }
            command
                .env("PROVOST_URL", format!("http://127.0.0.1:{}", server.port))
                .env("PROVOST_ORGANIZATION", "acme")
                .env("PROVOST_TOKEN", &token);
            command
        };
        succeed(run(&["changed>0"]));
        let damage = |events: i64| {
            let nothing = if home.is_sqlite() {
                "X'00'"
            } else {
                "CAST('\\x00' AS BYTEA)"
            };
            let sql = format!("UPDATE history_chunks SET content = {nothing} WHERE event_count = {events}");
            let mut conn = Conn::open(&home.location(), Access::Write).unwrap();
            conn.batch(&sql).unwrap();
        };
        damage(20);
        // None of the events that were read changes: without a word about errors the gate closes all the same.
        let (code, said) = refuse(run(&["changed>0"]));
        assert!(
            code == 10 && said.contains("20 events could not be read"),
            "{code}: {said}"
        );
        let (code, said) = refuse(run(&["errors>19"]));
        assert!(
            code == 10 && said.contains("--fail-on errors>19 holds: it is 20"),
            "{code}: {said}"
        );
        // Whoever says how many may be, has said it.
        succeed(run(&["changed>0", "errors>20"]));
        damage(4_000);
        let (code, said) = refuse(run(&["changed>0", "errors>9999"]));
        assert!(
            code == 1 && said.contains("the backtest failed"),
            "{code}: {said}"
        );
        assert_eq!(server.stop(), 0);
    }
}
