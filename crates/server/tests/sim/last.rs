//! What is looked at when nothing moves any more: the log as a whole, the events, the file, every token and account.

use crate::judge::{self, Book};
use crate::life::Life;
use provost_areas_platform::audit::Verifier;
use serde_json::Value;
use std::path::Path;

provost_kernel::statements! {
    /// The places of the events that are there.
    SEQUENCES = "SELECT sequence FROM outbox WHERE organization_id = ?1 ORDER BY sequence";
}

/// Finishes what was never answered, then looks at everything through the application.
pub async fn look(life: &Life) {
    if life.is_far() {
        life.come_back();
    }
    settle(life).await;
    life.app.settle().await;
    life.read_log().await;
    tokens(life).await;
    accounts(life).await;
    chain(life).await;
    events(life).await;
}

/// Asks once more for what has no answer: it has to have one effect now.
async fn settle(life: &Life) {
    let count = life.lock().clients.len();
    for place in 0..count {
        let pending = life.lock().clients[place].pending.take();
        let Some(tag) = pending else { continue };
        let asked = {
            let state = life.lock();
            let known = &state.book.known[&tag];
            if known.is_stale {
                continue;
            }
            known.asked.clone()
        };
        let before = life.lock().book.before(&life.app, &life.weather);
        let reply = asked.send(&life.app).await;
        life.read_log().await;
        let mut state = life.lock();
        state.book.answered(&asked.tag, &reply);
        state.book.judge(&life.app, &life.weather, &asked, before, &reply);
        let is_answered = reply.status.as_u16() < 500 || judge::is_behind(&reply);
        assert!(is_answered, "{}: {}", asked.tag, reply.text());
    }
}

async fn tokens(life: &Life) {
    let secrets: Vec<String> = life.lock().book.model.secrets().cloned().collect();
    for secret in secrets {
        let now = life.app.kernel.latest().as_ms();
        let expected = life.lock().book.model.answer(&secret, now).unwrap().0;
        let (status, code) = life.app.used(&secret).await;
        let after = life.app.kernel.latest().as_ms();
        let later = life.lock().book.model.answer(&secret, after).unwrap().0;
        let seen = (status, code.as_str());
        assert!(
            seen == expected || seen == later,
            "a token is answered {seen:?}, not {expected:?}"
        );
    }
}

async fn accounts(life: &Life) {
    let accounts: Vec<_> = life.lock().book.model.accounts.values().cloned().collect();
    for account in accounts {
        let reply = life.app.get(&format!("/service-accounts/{}", account.id)).await;
        if account.deleted {
            reply.refused(404, "not_found");
            continue;
        }
        let seen = &reply.ok()["serviceAccount"];
        let status = if account.enabled { "active" } else { "disabled" };
        assert_eq!(seen["status"], status, "{}", account.id);
        assert_eq!(
            seen["description"].as_str(),
            account.description.as_deref(),
            "{}",
            account.id
        );
    }
    let grace = life.lock().book.model.grace;
    let settings = life.app.get("/automation/settings").await;
    let shown = settings.ok().pointer("/tokens/defaultGraceSeconds").cloned();
    let nested = settings
        .json
        .pointer("/settings/tokens/defaultGraceSeconds")
        .cloned();
    assert_eq!(shown.or(nested), Some(Value::from(grace)));
}

/// Verifies the chain as an auditor does, with the product's own verifier and the count of the book.
async fn chain(life: &Life) {
    let mut verifier = Verifier::new(life.app.organization.as_str());
    let mut after = 0;
    loop {
        let page = life
            .app
            .get(&format!("/audit/export?limit=1000&after={after}"))
            .await;
        for line in page.text().lines() {
            verifier.feed(line).unwrap_or_else(|found| panic!("{found}"));
        }
        match page.header("x-provost-next-after").parse() {
            Ok(next) => after = next,
            Err(_) => break,
        }
    }
    verifier.finish(&[]).unwrap_or_else(|found| panic!("{found}"));
}

async fn events(life: &Life) {
    let organization = life.app.organization.clone();
    let sequences = life.app.kernel.read_system(move |tx| {
        tx.query(
            &SEQUENCES,
            provost_kernel::params![organization.as_str()],
            |row| row.get::<i64>(0),
        )
    });
    let sequences = sequences.await.unwrap();
    let has_gap = sequences.windows(2).any(|pair| pair[1] != pair[0] + 1);
    assert!(!has_gap, "the events have a gap: {sequences:?}");
}

/// Asks the engine whether the file is whole.
pub fn integrity(store: &Path) {
    let connection = rusqlite::Connection::open(store).unwrap();
    let answer: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(answer, "ok");
}

/// Looks for secrets in the bytes of the store.
pub fn secrets(store: &Path, book: &Book) {
    let folder = store.parent().unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for (place, _) in bytes.windows(5).enumerate().filter(|(_, word)| *word == b"prov_") {
            let found = book
                .model
                .secrets()
                .find(|secret| bytes[place..].starts_with(secret.as_bytes()));
            assert!(found.is_none(), "a secret lies in the store at {place}");
        }
    }
}
