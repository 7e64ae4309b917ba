//! Modules in processes of their own: they say what they say in this one, and what does not end is killed.

use crate::policy::backtests_worker::{Worker, ask, asking, cancel, ended, record, slow};
use crate::policy::decisions::{call, decide, decide_one, policy, rego};
use crate::support::{App, START as NOW, each};
use provost_areas_policy::backtests;
use provost_areas_policy::history::{self, Durability, EventId, NewEvent};
use provost_areas_policy::modules::{self, WORD, Workers};
use provost_backtest::record::OwnedRecord;
use provost_kernel::kernel::Extras;
use provost_policy::{Family, Occasion, sha256_hex};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const START: &str = "package forge.content\nimport rego.v1\ndefault match := {\"matched\": false}\nmatch := {\"matched\": true} if";
/// A pattern that takes as many steps for each character as it has states; the engine's clock is read after it.
const HEAVY: &str = "regex.match(\"^[01]*1[01]{900}$\", input.tool.input.command)";

/// Starts one more server on the store, whose modules run in workers of the program.
fn with_workers(app: &App, image: &str) -> App {
    let workers = Workers::of(
        PathBuf::from(image),
        Duration::from_millis(300),
        Duration::from_millis(500),
    );
    app.restarted(Extras::default().with(workers)).unwrap()
}

fn program(app: &App) -> App {
    with_workers(app, env!("CARGO_BIN_EXE_provost"))
}

async fn check(app: &App, module: &str, input: Value) -> crate::support::Reply {
    let body = json!({ "family": "content", "module": module, "input": input });
    let call = app.request("POST", "/policy-code/rego/validate");
    call.json(body).send().await
}

/// Returns bits that no two places of which look alike.
fn bits(count: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & 1 == 0 { '0' } else { '1' }
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn a_worker_says_what_this_process_says() {
    each("module_workers_equal", |app: Arc<App>| async move {
        let server = program(&app);
        let input = json!({ "tool": { "id": "Bash", "input": { "n": 5, "f": 1e18, "part": -0.5, "long": 18_446_744_073_709_551_615_u64,
            "list": [1, "a", null, true, {"b": []}] } }, "identity": { "user_id": "usr_01m7w5ws2557r5efywan1hf0t3",
            "user_words": ["ada", "ada@acme.test"] } });
        for condition in [
            "input.tool.id == \"Bash\"",
            "input.tool.id == \"Read\"",
            "input.tool.input.f + 1 == 1000000000000000001",
            "input.tool.input.long > 18446744073709551614",
            "input.tool.input.part == -0.5",
            "input.tool.input.list == [1, \"a\", null, true, {\"b\": []}]",
            "count(input.tool.input.n) == 1",
            "input.identity.user_id == \"ada\"",
            "{ x := 1; x == input.nothing }",
            "every a in numbers { every b in numbers { every c in numbers { a + b + c < 4000 } } }\nnumbers := [n | some n in input.many]",
            "input.tool.input.n / 0 == 1",
        ] {
            let module = format!("{START} {condition}");
            let mut input = input.clone();
            input["many"] = json!((0..400).collect::<Vec<u32>>());
            let (here, there) = (
                check(&app, &module, input.clone()).await,
                check(&server, &module, input).await,
            );
            assert_eq!(here.ok(), there.ok(), "{condition}");
        }
        for (id, condition) in [
            (
                "bash",
                "{ input.tool.id == \"Bash\"; input.tool.input.command == \"ls\" }",
            ),
            ("groups", "\"grp_x\" in input.identity.group_ids"),
            (
                "broken",
                "count(input.tool.input.command) == 1 + input.tool.input.command",
            ),
        ] {
            policy(&app, Family::Content, rego(id, &format!("{START} {condition}"))).await;
        }
        let events: Vec<Value> = (0..200)
            .map(|n| {
                call(&json!({ "tool.id": (if n % 2 == 0 { "Bash" } else { "Read" }), "identity.user_id": format!("stranger {n}"),
                    "tool.input": { "command": (if n % 3 == 0 { "ls" } else { "rm" }) } }))
            })
            .collect();
        let strip = |mut found: Vec<Value>| {
            for one in &mut found {
                one.as_object_mut().unwrap().remove("eventId");
                one.as_object_mut().unwrap().remove("id");
            }
            found
        };
        assert_eq!(
            strip(decide(&app, &events).await),
            strip(decide(&server, &events).await)
        );
        assert_eq!(modules::trouble(&server.kernel), None);
        assert!(!children().is_empty());
    });
}

/// Proves DE-8, MW-1.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test is about the time that passes")]
fn what_does_not_end_is_killed_and_counts_as_matched() {
    each("module_workers_kill", |app: Arc<App>| async move {
        let server = program(&app);
        let module = format!("{START} {HEAVY}");
        let begin = Instant::now();
        let long = json!({ "tool": { "input": { "command": bits(900_000) } } });
        let reply = check(&server, &module, long).await;
        let found = reply.ok();
        assert_eq!(
            found["result"],
            json!({ "matched": true, "evaluationFailed": true })
        );
        let said = found["diagnostics"][0]["message"].as_str().unwrap();
        assert!(said.contains("ended with its process"), "{said}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        // The others of the same batch are judged as if nothing had been.
        policy(&app, Family::Content, rego("heavy", &module)).await;
        let short = |command: &str| call(&json!({ "tool.id": "Bash", "tool.input": { "command": command } }));
        let one = format!("1{}", "0".repeat(900));
        let events = [short("ls"), short(&bits(100_000)), short(&one)];
        let found = decide(&server, &events).await;
        let actions: Vec<_> = found
            .iter()
            .map(|one| (one["action"].as_str().unwrap(), one["unknown"].as_bool().unwrap()))
            .collect();
        assert_eq!(actions, [("allow", false), ("block", true), ("block", false)]);
        // And who asks next is served.
        assert_eq!(
            decide_one(&server, &json!({ "tool.id": "Read" })).await["action"],
            "allow"
        );
    });
}

/// Proves BT-11.
#[test]
fn a_backtest_in_workers_finds_the_same_and_one_that_was_killed_has_no_digest() {
    each("module_workers_backtest", |app: Arc<App>| async move {
        record(&app, 600).await;
        let worker = Worker::start(&app);
        let here = ended(&app, &ask(&app, asking(slow())).await).await;
        worker.stop().await;
        let server = program(&app);
        let worker = Worker::start(&server);
        let there = ended(&server, &ask(&server, asking(slow())).await).await;
        assert_eq!(here["status"], "succeeded");
        assert_eq!(here["results"], there["results"]);
        assert!(here["resultDigest"].is_string());
        assert_eq!(here["resultDigest"], there["resultDigest"]);
        // One event over which a module does not end.
        let at = NOW.as_ms() - 60_000;
        let attributes =
            json!({ "identity.user_id": "u", "tool.id": "t", "tool.input.command": bits(200_000) });
        let event = NewEvent {
            id: EventId::at(at, 1, 9).as_str().to_owned(),
            record: OwnedRecord::read(at, Occasion::PreTool, attributes.as_object().unwrap(), &[]).unwrap(),
        };
        let recorder = history::recorder(&app.kernel);
        recorder
            .append(&app.org(), vec![event], Durability::Durable)
            .await
            .unwrap();
        let module = format!("{START} {HEAVY}");
        let mut candidate = slow();
        candidate["definition"]["logic"]["module"] = module.clone().into();
        candidate["definition"]["logic"]["moduleSha256"] = sha256_hex(module.as_bytes()).into();
        let killed = ended(&server, &ask(&server, asking(candidate)).await).await;
        assert_eq!(killed["status"], "succeeded", "{killed}");
        assert_eq!(killed["results"]["unknown"], 1, "{killed}");
        assert!(killed.get("resultDigest").is_none(), "{killed}");
        worker.stop().await;
    });
}

/// A run is left where it stands, although a worker is in the middle of a module and has a minute for it.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test is about the time that passes")]
fn a_canceled_backtest_waits_for_no_module() {
    const PATIENCE: Duration = Duration::from_mins(1);
    each("module_workers_cancel", |app: Arc<App>| async move {
        let event = |n: i64| {
            let at = NOW.as_ms() - 60_000 + n;
            let attributes = json!({
                "identity.user_id": "u", "tool.id": "t",
                "tool.input.command": format!("{n}{}", bits(200_000)),
            });
            NewEvent {
                id: EventId::at(at, n.unsigned_abs(), 9).as_str().to_owned(),
                record: OwnedRecord::read(at, Occasion::PreTool, attributes.as_object().unwrap(), &[])
                    .unwrap(),
            }
        };
        for n in 0..40 {
            let recorder = history::recorder(&app.kernel);
            recorder
                .append(&app.org(), vec![event(n)], Durability::Durable)
                .await
                .unwrap();
        }
        let image = PathBuf::from(env!("CARGO_BIN_EXE_provost"));
        let workers = Workers::of(image, PATIENCE, PATIENCE);
        let server = app.restarted(Extras::default().with(workers)).unwrap();
        let worker = Worker::start(&server);
        let module = format!("{START} {HEAVY}");
        let mut candidate = slow();
        candidate["definition"]["logic"]["module"] = module.clone().into();
        candidate["definition"]["logic"]["moduleSha256"] = sha256_hex(module.as_bytes()).into();
        let id = ask(&server, asking(candidate)).await;
        let begin = Instant::now();
        while backtests::at_work(&server.kernel) == 0 || children().is_empty() {
            assert!(begin.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The module is at work by now: the first event alone takes it longer than what follows.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(backtests::at_work(&server.kernel) > 0, "it takes longer");
        let begin = Instant::now();
        cancel(&server, &id).await.ok();
        while backtests::at_work(&server.kernel) > 0 {
            assert!(begin.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert_eq!(ended(&server, &id).await["status"], "canceled");
        worker.stop().await;
        server.kernel.stop().await;
    });
}

/// Proves MW-3.
#[test]
fn without_workers_modules_count_as_matched_and_a_backtest_fails() {
    each("module_workers_none", |app: Arc<App>| async move {
        record(&app, 50).await;
        let server = with_workers(&app, "/nonexistent/provost");
        let module = format!("{START} input.tool.id == \"Bash\"");
        check(&server, &module, json!({}))
            .await
            .refused(503, "unavailable");
        // Who asks whether it is ready is told, and it is: the rest is answered.
        let ready = server.request("GET", "").anonymous().at("/readyz").send().await;
        assert_eq!(ready.ok()["modules"], "no process for modules can be started");
        policy(&app, Family::Content, rego("r", &module)).await;
        let found = decide_one(&server, &json!({ "tool.id": "Read" })).await;
        assert_eq!(
            (found["action"].as_str(), found["unknown"].as_bool()),
            (Some("block"), Some(true))
        );
        assert_eq!(found["reasons"][0]["reason"], "evaluation_failed");
        let worker = Worker::start(&server);
        let run = ended(&server, &ask(&server, asking(slow())).await).await;
        assert_eq!(run["status"], "failed");
        assert_eq!(run["failure"]["code"], "engine_unavailable", "{run}");
        assert!(run.get("resultDigest").is_none());
        worker.stop().await;
    });
}

/// Returns the folders of this process's workers under `/proc`.
fn children() -> Vec<PathBuf> {
    let me = std::process::id().to_string();
    let all = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    all.filter(|path| {
        let of = |name: &str| std::fs::read(path.join(name)).unwrap_or_default();
        let stat = String::from_utf8_lossy(&of("stat")).into_owned();
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1));
        parent == Some(me.as_str()) && String::from_utf8_lossy(&of("cmdline")).contains(WORD)
    })
    .collect()
}

/// Proves MW-2.
#[test]
fn a_worker_has_nothing_that_it_could_take_away() {
    each("module_workers_bare", |app: Arc<App>| async move {
        let server = program(&app);
        let module = format!("{START} input.tool.id == \"Bash\"");
        check(&server, &module, json!({})).await.ok();
        let workers = children();
        assert!(!workers.is_empty());
        for worker in workers {
            // One of another test of this process may have ended meanwhile.
            let Ok(limits) = std::fs::read_to_string(worker.join("limits")) else {
                continue;
            };
            assert_eq!(std::fs::read(worker.join("environ")).unwrap(), b"");
            let mut open: Vec<String> = std::fs::read_dir(worker.join("fd"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            open.sort_unstable();
            // Its socket twice: as it was given, and as it is used.
            assert_eq!(open, ["0", "1", "2", "3"]);
            for (name, limit) in [
                ("Max open files", "0"),
                ("Max data size", "268435456"),
                ("Max file size", "0"),
                ("Max core file size", "0"),
                ("Max processes", "0"),
            ] {
                let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
                let found: Vec<&str> = line[name.len()..].split_whitespace().take(2).collect();
                assert_eq!(found, [limit, limit], "{line}");
            }
        }
    });
}
