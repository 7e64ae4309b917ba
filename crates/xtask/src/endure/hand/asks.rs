//! What a hand asks: one request of each kind, with the key that it is sent again with.

use serde_json::{Value, json};

use super::super::known::description;
use super::{Act, Hand};
use crate::clock;
use crate::http::Request;
use crate::product::Bootstrap;

const REASON: &str = "endurance";
const MOST_ACCOUNTS: usize = 6;
const TOOL: &str = "getHeadlessServiceAccount";
const REVISION: &str = "2025-11-25";

/// Every hand that makes backtests imports so many parts of this size into the days that they ask about. Nothing else is
/// recorded there: a backtest of all that there is would take more of the server with every minute of the load.
const PAST_PARTS: u64 = 5;
const PAST_EVENTS: usize = 1000;
const PAST_DAYS: u64 = 20;
/// Where all other imports go.
const RECENT_DAYS: u64 = 2;

impl Hand<'_> {
    pub(super) fn get(&self, rest: &str) -> Request {
        let bootstrap = &self.scene.bootstrap;
        Request::get(bootstrap.path(rest), &bootstrap.token)
    }

    pub(super) fn post(&self, method: &'static str, rest: &str, mut body: Value) -> Request {
        let bootstrap = &self.scene.bootstrap;
        body["reason"] = json!(REASON);
        body["idempotencyKey"] = json!(self.key());
        Request::new(method, bootstrap.path(rest), &bootstrap.token).with_body(body)
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

    /// One of its accounts.
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
            let body = json!({ "name": name, "permissionRole": "viewer", "allOfRole": true });
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
                let mut request = Request {
                    method: "DELETE",
                    ..self.get(&path)
                };
                request.headers = vec![
                    ("Idempotency-Key", self.key()),
                    ("X-Reason", REASON.to_owned()),
                    ("X-Confirm", "true".to_owned()),
                ];
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
        let event = json!({
            "occasion": "pre_tool", "callId": self.key(), "attributes": { "tool.id": format!("tool-{}", self.keys % 5) },
        });
        let bootstrap = &self.scene.bootstrap;
        let path = bootstrap.path("policies/decisions");
        Request::new("POST", path, &bootstrap.token).with_body(json!({ "events": [event] }))
    }

    pub(super) fn import(&mut self) -> Request {
        let count = usize::try_from(self.random.between(1, 40)).unwrap_or(1);
        import(&self.scene.bootstrap, &self.key(), count, RECENT_DAYS)
    }

    pub(super) fn call(&mut self) -> Request {
        let id = self
            .account()
            .unwrap_or_else(|| self.scene.bootstrap.account.clone());
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": TOOL, "arguments": { "serviceAccountId": id } } });
        let mut request = Request::new("POST", "/mcp", &self.scene.bootstrap.token).with_body(message);
        request.headers.extend([
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("MCP-Protocol-Version", REVISION.to_owned()),
        ]);
        request
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
    let line = |number: usize| {
        json!({ "id": format!("{key}-{number}"), "at": at, "occasion": "post_tool",
                "attributes": { "tool.id": format!("tool-{}", number % 5) } })
    };
    let lines: Vec<String> = (0..count).map(|number| line(number).to_string()).collect();
    let path = bootstrap.path("policies/history/import?source=endurance");
    let mut request = Request::new("POST", path, &bootstrap.token);
    request.content = Some(("application/x-ndjson", lines.join("\n").into_bytes()));
    request
}

/// Midnight (UTC) so many days ago.
pub fn days_ago(days: u64) -> String {
    let (year, month, day) = clock::civil_date(clock::since_epoch().as_secs() / 86_400 - days);
    format!("{year:04}-{month:02}-{day:02}T00:00:00.000Z")
}
