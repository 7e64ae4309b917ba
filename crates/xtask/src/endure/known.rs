//! What a connection knows of the server's state by what it was answered, and the comparison with the server.
//!
//! Every account has a description that only counts upwards, so that what it was before a backup and what it is
//! after it can be told from each other without a history of everything.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use serde_json::Value;

use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;

/// So many ended tokens and events are remembered; the newest are the ones that a loss would take.
const REMEMBERED: usize = 24;

/// An account as it was last answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    pub token: String,
    /// The number in its description.
    pub described: u64,
}

#[derive(Clone, Debug, Default)]
pub struct KnownRecords {
    pub accounts: BTreeMap<String, Account>,
    /// Tokens whose end was acknowledged.
    pub ended: VecDeque<String>,
    /// Ids of durable decisions.
    pub events: VecDeque<String>,
    /// Backtests that were made.
    pub backtests: VecDeque<String>,
}

impl KnownRecords {
    pub fn end(&mut self, token: String) {
        remember(&mut self.ended, token);
    }

    pub fn decide(&mut self, event: String) {
        remember(&mut self.events, event);
    }

    pub fn backtest(&mut self, id: String) {
        remember(&mut self.backtests, id);
    }
}

fn remember(all: &mut VecDeque<String>, one: String) {
    all.push_back(one);
    if all.len() > REMEMBERED {
        all.pop_front();
    }
}

/// The description of an account that was described so often.
pub fn description(count: u64) -> String {
    format!("as of {count}")
}

/// Who compares: a server, and the token to read with.
pub struct Judge<'a> {
    pub bootstrap: &'a Bootstrap,
    pub token: &'a str,
    pub connection: Connection,
    /// What is compared, for the sentence at the end.
    pub compared: u64,
    pub faults: Vec<String>,
}

impl<'a> Judge<'a> {
    pub fn new(address: SocketAddr, bootstrap: &'a Bootstrap, token: &'a str) -> Self {
        Self {
            bootstrap,
            token,
            connection: Connection::new(address),
            compared: 0,
            faults: Vec::new(),
        }
    }

    /// Compares the server with what was known `before` an instant; `after` says what may have come since.
    ///
    /// `tokens_live` is false where every token is to be refused.
    pub fn compare(&mut self, before: &KnownRecords, after: &KnownRecords, tokens_live: bool) -> Outcome {
        for (id, account) in &before.accounts {
            self.account(id, account, after.accounts.get(id))?;
            let is_steady = after
                .accounts
                .get(id)
                .is_some_and(|now| now.token == account.token);
            let statuses: &[u16] = match (tokens_live, is_steady) {
                (false, _) => &[401],
                (true, true) => &[200],
                (true, false) => &[200, 401],
            };
            self.token(&account.token, statuses, "a current token")?;
        }
        for token in &before.ended {
            self.token(token, &[401], "an ended token")?;
        }
        for event in &before.events {
            let answer = self.status(&format!("policies/history/{event}"))?;
            if answer.0 != 200 {
                self.faults
                    .push(format!("the decision {event} is answered {}", answer.1));
            }
        }
        Ok(())
    }

    fn account(&mut self, id: &str, account: &Account, now: Option<&Account>) -> Outcome {
        let (status, text, body) = self.read(&format!("service-accounts/{id}"))?;
        if status == 404 && now.is_none() {
            return Ok(());
        }
        let shown = body["serviceAccount"]["description"].as_str();
        let shown = shown.or_else(|| body["description"].as_str());
        let number = shown.map_or(Some(0), |text| text.strip_prefix("as of ")?.parse::<u64>().ok());
        // An account that went later may have been described more often before that.
        let most = now.map_or(u64::MAX, |now| now.described);
        let is_right = status == 200 && number.is_some_and(|n| (account.described..=most).contains(&n));
        if !is_right {
            self.faults.push(format!(
                "account {id} was described {} to {most} times and is answered {text}",
                account.described
            ));
        }
        Ok(())
    }

    fn token(&mut self, token: &str, statuses: &[u16], what: &str) -> Outcome {
        self.compared += 1;
        let request = Request::get(self.bootstrap.path("capabilities"), token);
        let answer = self.connection.send(&request).map_err(|lost| lost.why);
        let answer = answer.context("capabilities")?;
        if !statuses.contains(&answer.status) {
            let prefix: String = token.chars().take(21).collect();
            self.faults.push(format!(
                "{what}, {prefix}, is answered {} instead of {statuses:?}",
                answer.status
            ));
        }
        Ok(())
    }

    fn status(&mut self, rest: &str) -> Outcome<(u16, String)> {
        let (status, text, _) = self.read(rest)?;
        Ok((status, text))
    }

    /// Status, summary and body of a read.
    pub fn read(&mut self, rest: &str) -> Outcome<(u16, String, Value)> {
        self.compared += 1;
        let request = Request::get(self.bootstrap.path(rest), self.token);
        let answer = self.connection.send(&request).map_err(|lost| lost.why);
        let answer = answer.context(rest)?;
        let body = answer.json().unwrap_or_default();
        Ok((answer.status, answer.summary(), body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_are_remembered() {
        let mut known = KnownRecords::default();
        (0..100).for_each(|n| known.end(n.to_string()));
        assert_eq!(
            (known.ended.len(), known.ended.front().map(String::as_str)),
            (24, Some("76"))
        );
    }
}
