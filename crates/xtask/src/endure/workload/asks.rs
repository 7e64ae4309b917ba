//! What a hand asks: one request of each kind, with the key that it is sent again with.

use serde_json::{Value, json};

use super::super::known::description;
use super::{Act, Workload};
use crate::clock;
use crate::http::Request;
use crate::product::Bootstrap;
use crate::traffic::{self, event, recorded};

const REASON: &str = "endurance";
const MOST_ACCOUNTS: usize = 6;
const TOOL: &str = "getHeadlessServiceAccount";

/// Every hand that makes backtests imports so many parts of this size into the days that they ask about. Nothing else is
/// recorded there: a backtest of all that there is would take more of the server with every minute of the load.
const PAST_PARTS: u64 = 5;
const PAST_EVENTS: usize = 1000;
const PAST_DAYS: u64 = 20;
/// Where all other imports go.
const RECENT_DAYS: u64 = 2;

impl Workload<'_> {
    pub(super) fn get(&self, rest: &str) -> Request {
        self.scene.bootstrap.get(rest)
    }

    fn post(&self, method: &'static str, rest: &str, body: Value) -> Request {
        let bootstrap = &self.scene.bootstrap;
        bootstrap.change(method, rest, body, &self.key(), REASON)
    }

    pub(super) fn key(&self) -> String {
        format!(
            "endure-{:016x}-{:03}-{:08}",
            self.scene.seed, self.number, self.keys
        )
    }

    pub(super) fn question(&mut self) -> Request {
        let account = self.account().map(|id| format!("service-accounts/{id}"));
        let questions = [
            "capabilities".to_owned(),
            account.unwrap_or_else(|| "policies".to_owned()),
            "service-accounts?limit=20".to_owned(),
            "audit/events?limit=20".to_owned(),
            "policies/history?limit=20".to_owned(),
            "mcp/sessions?limit=20".to_owned(),
        ];
        let question = self.random.pick(&questions).cloned().unwrap_or_default();
        self.get(&question)
    }

    fn account(&mut self) -> Option<String> {
        let ids: Vec<String> = self.look().known.accounts.keys().cloned().collect();
        self.random.pick(&ids).cloned()
    }

    pub(super) fn change(&mut self) -> (Act, Request) {
        let count = self.look().known.accounts.len();
        let chosen = self.account();
        let wants_another = count < MOST_ACCOUNTS && self.random.chance(20);
        let Some(account) = chosen.filter(|_| !wants_another) else {
            let name = format!("Hand {}", self.key());
            let body = traffic::account(&name, "viewer");
            return (Act::Create, self.post("POST", "service-accounts", body));
        };
        let path = format!("service-accounts/{account}");
        match self.random.between(1, 100) {
            ..=15 => {
                let body = json!({ "gracePeriodSeconds": 0 });
                let request = self.post("POST", &format!("{path}/tokens"), body);
                (Act::Rotate { account }, request)
            }
            16..=25 => {
                let request = self.scene.bootstrap.act("DELETE", &path, &self.key(), REASON);
                (Act::Delete { account }, request)
            }
            _ => {
                let now = self
                    .look()
                    .known
                    .accounts
                    .get(&account)
                    .map_or(0, |it| it.described);
                let count = now + 1;
                let request = self.post("PATCH", &path, json!({ "description": description(count) }));
                (Act::Describe { account, count }, request)
            }
        }
    }

    pub(super) fn decision(&self) -> Request {
        let tool = format!("tool-{}", self.keys % 5);
        self.scene
            .bootstrap
            .decide(&[event("pre_tool", &self.key(), &tool)])
    }

    pub(super) fn import(&mut self) -> Request {
        let count = usize::try_from(self.random.between(1, 40)).unwrap_or(1);
        import(&self.scene.bootstrap, &self.key(), count, RECENT_DAYS)
    }

    pub(super) fn call(&mut self) -> Request {
        let id = self
            .account()
            .unwrap_or_else(|| self.scene.bootstrap.account.clone());
        let arguments = json!({ "serviceAccountId": id });
        self.scene.bootstrap.call("/mcp?toolsets=all", TOOL, &arguments)
    }

    /// Makes a backtest, or asks how the last one is; before the first there is a past to be imported.
    pub(super) fn backtest(&mut self) -> (Act, Request) {
        if let Some(id) = &self.running {
            return (Act::Poll, self.get(&format!("policies/backtests/{id}")));
        }
        if self.past < PAST_PARTS {
            self.past += 1;
            let past = import(&self.scene.bootstrap, &self.key(), PAST_EVENTS, PAST_DAYS);
            return (Act::Import, past);
        }
        let body = json!({
            "candidate": { "kind": "inline", "family": "content", "definition": {
                "id": "endurance", "name": "Endurance", "action": "block", "evaluateOn": ["pre_tool", "post_tool"],
                "acknowledgeBroadScope": true, "message": "not now",
                "conditions": { "all": [{ "field": "tool.id", "op": "eq", "value": "tool-3" }] } } },
            "window": { "from": days_ago(PAST_DAYS + 1), "to": days_ago(PAST_DAYS - 1) },
        });
        (Act::Backtest, self.post("POST", "policies/backtests", body))
    }
}

/// An import of so many events of so many days ago, told apart by its key.
pub fn import(bootstrap: &Bootstrap, key: &str, count: usize, days: u64) -> Request {
    let at = days_ago(days);
    let line = |number| recorded(&format!("{key}-{number}"), &at, &format!("tool-{}", number % 5));
    bootstrap.import("endurance", &(0..count).map(line).collect::<Vec<_>>())
}

/// Midnight (UTC) so many days ago.
pub fn days_ago(days: u64) -> String {
    let (year, month, day) = clock::civil_date(clock::since_epoch().as_secs() / 86_400 - days);
    format!("{year:04}-{month:02}-{day:02}T00:00:00.000Z")
}
