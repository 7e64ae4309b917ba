//! What a shell is told.

use crate::http::{Server, json, refusal};
use crate::provost::{Provost, folder};
use provost_client::complete::{Shell, completions, script};
use serde_json::json;

pub async fn offered(provost: Provost, words: &[&str]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let outcome = provost.played(clap::Command::new("provost"), &[], async |_, terminal| {
        for (word, _) in completions(provost_client::command(), &words, terminal).await {
            terminal.print(format!("{word}\n").as_bytes()).expect("a buffer");
        }
        0
    });
    outcome.await.out.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn groups_verbs_flags_and_their_words_are_offered() {
    let offers = async |words: &[&str]| offered(Provost::script(), words).await;
    assert_eq!(offers(&["service-acc"]).await, ["service-accounts"]);
    assert!(offers(&[""]).await.len() > 25);
    let verbs = offers(&["service-accounts", ""]).await;
    assert!(
        verbs.contains(&"rotate".to_owned()) && verbs.contains(&"list".to_owned()),
        "{verbs:?}"
    );
    assert_eq!(
        offers(&["service-accounts", "list", "--col"]).await,
        ["--columns"]
    );
    assert_eq!(
        offers(&["service-accounts", "list", "-o", "js"]).await,
        ["json", "jsonl"]
    );
    assert_eq!(
        offers(&["service-accounts", "list", "--output", "=", "cs"]).await,
        ["csv"]
    );
    assert_eq!(
        offers(&["nothing", "x", ""]).await.len(),
        offers(&[""]).await.len()
    );
    assert!(offers(&[]).await.is_empty());
}

#[tokio::test]
async fn names_of_the_server_are_offered_and_nothing_where_it_refuses() {
    let accounts = json!([{ "id": "sa_1", "name": "deploy" }, { "id": "sa_2", "name": "a b" }, { "id": "sa_3", "name": "depth" }]);
    let page = json(200, &json!({ "serviceAccounts": accounts, "total": 3 }));
    let server = Server::playing([page, refusal(403, "insufficient_scope", "no")]).await;
    let words = [
        "service-accounts",
        "rotate",
        "--url",
        &server.url,
        "--organization",
        "acme",
        "--reason",
        "x",
        "de",
    ];
    assert_eq!(offered(Provost::script(), &words).await, ["deploy", "depth"]);
    assert!(offered(Provost::script(), &words).await.is_empty());
    assert_eq!(server.asked().len(), 2);
    assert!(
        server.asked()[0].target.ends_with("/service-accounts?limit=100"),
        "{:?}",
        server.asked()
    );
    assert!(offered(Provost::script().token(None), &words).await.is_empty());
}

#[tokio::test]
async fn profiles_are_offered() {
    let home = folder();
    let set = [
        "profile",
        "set",
        "prod",
        "--url",
        "https://provost.example",
        "--no-token",
    ];
    assert_eq!(Provost::script().home(home.clone()).says(&set).await.code, 0);
    for words in [&["users", "list", "--profile", ""][..], &["profile", "use", "pr"]] {
        assert_eq!(
            offered(Provost::script().home(home.clone()), words).await,
            ["prod"],
            "{words:?}"
        );
    }
}

#[test]
fn the_script_of_a_shell_only_asks_the_program() {
    for shell in [
        Shell::Bash,
        Shell::Zsh,
        Shell::Fish,
        Shell::Elvish,
        Shell::PowerShell,
    ] {
        let script = script(shell);
        assert!(
            script.contains("provost __complete -- ") && script.len() < 2_000,
            "{shell:?}"
        );
    }
}
