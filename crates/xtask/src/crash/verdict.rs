//! After a restart: does the server say what the connections were told?

use std::collections::BTreeMap;
use std::sync::PoisonError;

use serde_json::Value;

use super::model::{TokenState, account_in, is_current};
use super::worker::{Scene, Worker, lifetime_in};
use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};

/// What is wrong, each with a sentence.
#[derive(Default)]
pub struct Verdict {
    /// Acknowledged and not there.
    pub lost: Vec<String>,
    /// There without having been asked for, or in part.
    pub half_applied: Vec<String>,
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.half_applied.is_empty()
    }

    pub fn print(&self) {
        for sentence in &self.lost {
            println!("  LOST: {sentence}");
        }
        for sentence in &self.half_applied {
            println!("  HALF-APPLIED: {sentence}");
        }
    }
}

/// Compares every account, token and setting; every request has been answered by now.
pub fn judge(scene: &Scene, workers: &[Worker], connection: &mut Connection) -> Outcome<Verdict> {
    let mut verdict = Verdict::default();
    let mut shown = list_accounts(scene, connection, &mut verdict)?;

    if shown.remove(&scene.bootstrap.account).is_none() {
        verdict.lost.push("the first admin is gone".into());
    }
    match shown.remove(&scene.shared_account) {
        Some(account) => judge_shared(scene, &account, connection, &mut verdict)?,
        None => verdict.lost.push("the shared account is gone".into()),
    }
    for worker in workers {
        judge_worker(scene, worker, &mut shown, connection, &mut verdict)?;
    }
    for (id, account) in shown {
        let deleted = workers
            .iter()
            .any(|worker| worker.model.deleted.contains_key(&id));
        let sentence = format!("account {id} ({}) exists", account["name"]);
        if deleted {
            verdict
                .lost
                .push(format!("{sentence} although its deletion was acknowledged"));
        } else {
            verdict
                .half_applied
                .push(format!("{sentence} although nobody created it"));
        }
    }
    Ok(verdict)
}

/// Every account by id; reading page by page must show each one once (D5.8).
pub fn list_accounts(
    scene: &Scene,
    connection: &mut Connection,
    verdict: &mut Verdict,
) -> Outcome<BTreeMap<String, Value>> {
    let mut accounts = BTreeMap::new();
    let mut names = BTreeMap::new();
    let mut offset = 0;
    loop {
        let path = scene
            .bootstrap
            .path(&format!("service-accounts?limit=100&offset={offset}"));
        let page = connection.fetch(&Request::get(path, &scene.bootstrap.token))?;
        let page = page["serviceAccounts"]
            .as_array()
            .context("a list without serviceAccounts")?;
        for account in page {
            let id = account["id"]
                .as_str()
                .context("an account without an id")?
                .to_owned();
            if let Some(other) = names.insert(account["name"].to_string().to_lowercase(), id.clone()) {
                verdict
                    .half_applied
                    .push(format!("accounts {other} and {id} have the same name"));
            }
            if accounts.insert(id.clone(), account.clone()).is_some() {
                verdict.half_applied.push(format!("account {id} is listed twice"));
            }
        }
        if page.len() < 100 {
            return Ok(accounts);
        }
        offset += 100;
    }
}

fn judge_worker(
    scene: &Scene,
    worker: &Worker,
    shown: &mut BTreeMap<String, Value>,
    connection: &mut Connection,
    verdict: &mut Verdict,
) -> Outcome {
    for (id, account) in &worker.model.accounts {
        let Some(record) = shown.remove(id) else {
            verdict
                .lost
                .push(format!("account {id} ({}) is gone", account.name));
            continue;
        };
        for difference in account.differences(&record) {
            verdict
                .lost
                .push(format!("account {id} ({}): {difference}", account.name));
        }
        let newest_ended = account
            .tokens
            .iter()
            .rev()
            .find(|token| token.state == TokenState::Ended);
        for token in account.current().into_iter().chain(newest_ended) {
            let should_work = token.state == TokenState::Current && !account.disabled;
            judge_secret(scene, &token.id, &token.secret, should_work, connection, verdict)?;
        }
    }
    // Ids grow with time: the last ones are those of this cycle.
    for (id, secret) in worker.model.deleted.iter().rev().take(5) {
        if let Some(secret) = secret {
            judge_secret(scene, id, secret, false, connection, verdict)?;
        }
    }
    if let Some((id, account)) = worker.model.accounts.first_key_value() {
        let path = scene.bootstrap.path(&format!("service-accounts/{id}"));
        let body = connection.fetch(&Request::get(path, &scene.bootstrap.token))?;
        for difference in account.differences(account_in(&body)) {
            verdict
                .lost
                .push(format!("account {id}, read alone: {difference}"));
        }
    }
    if let Some(believed) = worker.model.lifetime {
        let path = scene.bootstrap.path("automation/settings");
        let settings = connection.fetch(&Request::get(path, &scene.bootstrap.token))?;
        let read = lifetime_in(&settings);
        if read != Some(believed) {
            verdict
                .lost
                .push(format!("the lifetime limit is {read:?} instead of {believed}"));
        }
    }
    Ok(())
}

/// All connections rotated this account at once: one current token, and only such as were answered.
fn judge_shared(
    scene: &Scene,
    account: &Value,
    connection: &mut Connection,
    verdict: &mut Verdict,
) -> Outcome {
    let answered = scene
        .shared_tokens
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let tokens = account["tokens"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let current = tokens.iter().filter(|token| is_current(token)).count();
    if current != 1 {
        verdict
            .half_applied
            .push(format!("the shared account has {current} current tokens"));
    }
    if tokens.len() < answered.len().min(20) {
        verdict.lost.push(format!(
            "the shared account shows {} of {} tokens",
            tokens.len(),
            answered.len()
        ));
    }
    for token in tokens {
        let id = token["id"].as_str().unwrap_or_default();
        match answered.get(id) {
            Some(Some(secret)) => judge_secret(scene, id, secret, is_current(token), connection, verdict)?,
            Some(None) => {}
            None => verdict
                .half_applied
                .push(format!("token {id} of the shared account was never answered")),
        }
    }
    Ok(())
}

fn judge_secret(
    scene: &Scene,
    id: &str,
    secret: &str,
    should_work: bool,
    connection: &mut Connection,
    verdict: &mut Verdict,
) -> Outcome {
    let request = Request::get(scene.bootstrap.path("capabilities"), secret);
    let answer = connection
        .send(&request)
        .map_err(|lost| lost.why)
        .context("capabilities")?;
    match (should_work, answer.status) {
        (true, 200) | (false, 401) => {}
        (true, _) => verdict
            .lost
            .push(format!("the current token {id} is answered {}", answer.summary())),
        (false, _) => verdict
            .lost
            .push(format!("the ended token {id} is answered {}", answer.status)),
    }
    Ok(())
}
