//! Who reads events while a store is restored, over the wire.

use crate::harness::{Home, Server, get, homes, post, succeed};
use serde_json::{Value, json};

const EVENTS: &str = "/api/headless/v1/organizations/default/events";

fn events(server: &Server, token: &str, query: &str) -> (u16, Value) {
    let (status, body) = get(server.port, &format!("{EVENTS}?{query}"), Some(token));
    (status, serde_json::from_str(&body).unwrap())
}

/// Returns the ids and the sequences of a page.
fn read(page: &Value) -> Vec<(String, i64)> {
    let of = |event: &Value| {
        let sequence = event["data"]["sequence"].as_i64().unwrap();
        (event["id"].as_str().unwrap().to_owned(), sequence)
    };
    page["events"].as_array().unwrap().iter().map(of).collect()
}

fn make_account(server: &Server, token: &str, name: &str) {
    let path = "/api/headless/v1/organizations/default/service-accounts";
    let body = json!({ "name": name, "permissionRole": "viewer", "allOfRole": true });
    let (status, answer) = post(server.port, path, token, &body.to_string());
    assert_eq!(status, 201, "{answer}");
}

fn with_keys_of(home: &Home, target: &Home, words: &[&str]) -> std::process::Command {
    let mut command = target.command(words);
    command
        .current_dir(&home.dir)
        .env("PROVOST_KEYS_DIR", home.path("keys"));
    command
}

/// Proves EV-2.
#[test]
fn a_consumer_of_events_misses_none_when_the_store_is_restored() {
    for (home, target) in homes("epochs").into_iter().zip(homes("epochs_restored")) {
        let server = home.serve(&[]);
        let token = server.token();
        make_account(&server, &token, "before");
        home.run(&["store", "backup", "backup.db"]);
        let shared = read(&events(&server, &token, "").1);
        for name in ["lost one", "lost two", "lost three", "lost four"] {
            make_account(&server, &token, name);
        }
        let (status, page) = events(&server, &token, "");
        assert_eq!(status, 200);
        let (epoch, after) = (
            page["epoch"].as_str().unwrap(),
            page["nextAfter"].as_i64().unwrap(),
        );
        let lived = read(&page);
        assert_eq!(lived.len(), shared.len() + 4);
        server.stop();
        let restore = ["store", "restore", "backup.db", "--json"];
        let printed = succeed(with_keys_of(&home, &target, &restore));
        let made: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
        let token = made["token"].as_str().unwrap();
        let serve = ["serve", "--listen", "127.0.0.1:0", "--metrics-listen", "off"];
        let server = Server::start(with_keys_of(&home, &target, &serve), &target.path("stdout"));
        for name in ["new one", "new two", "new three", "new four", "new five"] {
            make_account(&server, token, name);
        }
        let (_, all) = events(&server, token, "");
        let all = read(&all);
        assert!(
            all.last().unwrap().1 > after,
            "the numbers of before are given again"
        );
        let (status, gone) = events(&server, token, &format!("after={after}&epoch={epoch}"));
        assert_eq!((status, &gone["code"]), (410, &json!("sequence_gone")), "{gone}");
        assert_eq!(
            gone["nextAfter"].as_i64(),
            shared.last().map(|(_, sequence)| *sequence)
        );
        let query = format!(
            "after={}&epoch={}",
            gone["nextAfter"],
            gone["epoch"].as_str().unwrap()
        );
        let (status, rest) = events(&server, token, &query);
        assert_eq!(status, 200, "{rest}");
        let seen: Vec<_> = lived.iter().map(|(id, _)| id).collect();
        let new: Vec<_> = all
            .iter()
            .filter(|(id, _)| !seen.contains(&id))
            .cloned()
            .collect();
        assert!(new.len() >= 5, "{all:?}");
        assert_eq!(read(&rest), new, "everything that was not read, and nothing else");
        // Who says no epoch reads on as before, and is told when there is nothing of that number.
        let last = all.last().unwrap().1;
        let (status, end) = events(&server, token, &format!("after={last}"));
        assert_eq!((status, &end["events"]), (200, &json!([])));
        assert_eq!(events(&server, token, &format!("after={}", last + 1)).0, 410);
        server.stop();
    }
}
