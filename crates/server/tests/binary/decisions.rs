//! Decisions of a server that is killed: what was answered as recorded is in the history.

use crate::harness::{Home, Server, get, homes, post};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const BASE: &str = "/api/headless/v1/organizations/default";

/// Asks until the server is gone; what was answered stands in `answered`.
fn ask_until_killed(port: u16, token: &str, asker: usize, answered: &Mutex<Vec<Value>>, count: &AtomicUsize) {
    for n in 0.. {
        let events: Vec<Value> = (0..3)
            .map(|at| json!({ "occasion": "pre_tool", "callId": format!("{asker}-{n}-{at}"), "attributes": { "tool.id": "t" } }))
            .collect();
        let body = json!({ "events": events }).to_string();
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return;
        };
        let head = format!(
            "POST {BASE}/policies/decisions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let mut answer = String::new();
        if stream.write_all(head.as_bytes()).is_err() || stream.read_to_string(&mut answer).is_err() {
            return;
        }
        // An answer counts when all of it arrived.
        let Some((head, body)) = answer.split_once("\r\n\r\n") else {
            return;
        };
        let Ok(body) = serde_json::from_str::<Value>(body) else {
            return;
        };
        assert!(head.starts_with("HTTP/1.1 200"), "{head} {body}");
        assert_eq!(body["recorded"], true);
        answered.lock().unwrap().push(body);
        count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Kills a server while eight connections ask; returns the answers that they got.
fn kill_while_asked(mut server: Server, token: &str) -> Vec<Value> {
    let answered = Arc::new(Mutex::new(Vec::new()));
    let count = Arc::new(AtomicUsize::new(0));
    let askers: Vec<_> = (0..8)
        .map(|asker| {
            let (answered, count, token, port) =
                (answered.clone(), count.clone(), token.to_owned(), server.port);
            thread::spawn(move || ask_until_killed(port, &token, asker, &answered, &count))
        })
        .collect();
    while count.load(Ordering::SeqCst) < 60 {
        thread::yield_now();
    }
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    for asker in askers {
        asker.join().unwrap();
    }
    Arc::try_unwrap(answered).unwrap().into_inner().unwrap()
}

fn policy(server: &Server, token: &str) {
    let definition = json!({ "id": "p", "name": "p", "action": "nudge", "evaluateOn": ["pre_tool"], "acknowledgeBroadScope": true,
        "conditions": { "field": "tool.id", "op": "exists" } });
    let (status, answer) = post(
        server.port,
        &format!("{BASE}/content-policies"),
        token,
        &json!({ "definition": definition }).to_string(),
    );
    assert_eq!(status, 201, "{answer}");
}

/// Proves DE-3.
#[test]
fn every_durable_decision_that_was_answered_is_in_the_history_after_a_kill() {
    for home in homes("decided") {
        let home: Home = home;
        let server = home.serve_unlimited();
        let token = server.token();
        policy(&server, &token);
        let mut answers = Vec::new();
        let mut server = server;
        for _ in 0..2 {
            answers.extend(kill_while_asked(server, &token));
            server = home.serve_unlimited();
            for answer in &answers {
                for decision in answer["decisions"].as_array().unwrap() {
                    let id = decision["eventId"].as_str().unwrap();
                    let (status, body) = get(
                        server.port,
                        &format!("{BASE}/policies/history/{id}"),
                        Some(&token),
                    );
                    assert_eq!(status, 200, "{id} was answered and is not recorded: {body}");
                    let event: Value = serde_json::from_str(&body).unwrap();
                    assert_eq!(event["decision"]["action"], "nudge");
                    assert_eq!(
                        event["decision"]["policySetVersionId"],
                        answer["policySetVersion"]["id"]
                    );
                }
            }
        }
        assert_eq!(server.stop(), 0);
    }
}
