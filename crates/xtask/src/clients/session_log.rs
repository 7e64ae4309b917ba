//! What the driver knows of sessions because it made and ended them, beside what the server lists.

use std::collections::BTreeSet;

use serde_json::Value;

use super::administrator::{Account, Administrator, sorted, text};
use crate::failure::{Failure, Outcome};

pub const ACCOUNT: &str = "service_account";
pub const PERSON: &str = "console_user";

/// What both lists say of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// `service_account` or `console_user`.
    pub kind: String,
    /// The account or the user.
    pub principal: String,
    pub actor: String,
    pub client: String,
    pub scopes: Vec<String>,
    /// Why it ended, if it has.
    pub ended: Option<String>,
}

impl Entry {
    fn of(session: &Value) -> Outcome<Self> {
        let ended = match session["status"].as_str() {
            Some("active") => None,
            Some("revoked") => Some(text(session, "/revokeReason")?),
            _ => return Err(Failure::new(format!("a session without a status: {session}"))),
        };
        let kind = text(session, "/actorType")?;
        let member = if kind == PERSON {
            "/consoleUserId"
        } else {
            "/serviceAccountId"
        };
        Ok(Self {
            principal: text(session, member)?,
            kind,
            actor: text(session, "/actorDisplay")?,
            client: text(session, "/mcpClientId")?,
            scopes: sorted(&session["scopes"]),
            ended,
        })
    }
}

/// Filters of the list, and what the ledger has for them.
type Question<'a> = (Vec<(&'a str, &'a str)>, Vec<Entry>);

/// A session, with the token that it came with (accounts rotate).
struct SessionLine {
    entry: Entry,
    token: String,
}

#[derive(Default)]
pub struct SessionLog {
    lines: Vec<SessionLine>,
}

impl SessionLog {
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether a token may come to the endpoint: none of its sessions was ended for more than its account's rest (D7.11).
    pub fn is_welcome(&self, token: &str) -> bool {
        let blames = |reason: &String| reason != "service_account_disabled";
        !self
            .lines
            .iter()
            .any(|line| line.token == token && line.entry.ended.as_ref().is_some_and(blames))
    }

    /// Notes that a client came with an account's token.
    pub fn came(&mut self, account: &Account, client: &str) {
        let is_known = |line: &SessionLine| {
            line.token == account.token && line.entry.client == client && line.entry.ended.is_none()
        };
        if self.lines.iter().any(is_known) {
            return;
        }
        let entry = Entry {
            kind: ACCOUNT.to_owned(),
            principal: account.id.clone(),
            actor: account.name.clone(),
            client: client.to_owned(),
            scopes: account.scopes.clone(),
            ended: None,
        };
        self.opened(entry, &account.token);
    }

    /// Notes a session, and the token that came with it.
    pub fn opened(&mut self, entry: Entry, token: &str) {
        self.lines.push(SessionLine {
            entry,
            token: token.to_owned(),
        });
    }

    /// Ends every active session of which something is so.
    pub fn end(&mut self, reason: &str, is_meant: impl Fn(&Entry) -> bool) {
        for line in &mut self.lines {
            if line.entry.ended.is_none() && is_meant(&line.entry) {
                line.entry.ended = Some(reason.to_owned());
            }
        }
    }

    fn entries(&self, is_meant: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let mut entries: Vec<_> = self.lines.iter().map(|line| line.entry.clone()).collect();
        entries.retain(is_meant);
        entries.sort();
        entries
    }

    /// Compares with what the server lists, as a whole and by each filter that the ledger can answer.
    pub fn compare(&self, administrator: &Administrator) -> Outcome<usize> {
        let mut questions: Vec<Question<'_>> = vec![
            (vec![], self.entries(|_| true)),
            (vec![("status", "active")], self.entries(|e| e.ended.is_none())),
            (vec![("status", "revoked")], self.entries(|e| e.ended.is_some())),
            (vec![("status", "expired")], vec![]),
            (vec![("actorType", ACCOUNT)], self.entries(|e| e.kind == ACCOUNT)),
            (vec![("actorType", PERSON)], self.entries(|e| e.kind == PERSON)),
            (vec![("actorType", "agent")], vec![]),
        ];
        let all = self.entries(|_| true);
        let mut words = BTreeSet::new();
        for entry in &all {
            if entry.kind == ACCOUNT {
                words.insert(("serviceAccountId", entry.principal.as_str()));
            }
            words.insert(("clientId", entry.client.as_str()));
            words.extend(entry.scopes.iter().map(|scope| ("scope", scope.as_str())));
        }
        for (name, value) in words {
            let has = |entry: &Entry| match name {
                "serviceAccountId" => entry.principal == value,
                "clientId" => entry.client == value,
                _ => entry.scopes.iter().any(|scope| scope == value),
            };
            questions.push((vec![(name, value)], self.entries(has)));
            let is_active = |entry: &Entry| has(entry) && entry.ended.is_none();
            questions.push((vec![(name, value), ("status", "active")], self.entries(is_active)));
        }
        for (query, known) in &questions {
            let sessions = administrator.sessions(query)?;
            let mut listed = sessions.iter().map(Entry::of).collect::<Outcome<Vec<_>>>()?;
            listed.sort();
            if listed != *known {
                return Err(disagreement(query, known, &listed));
            }
        }
        Ok(questions.len())
    }
}

fn disagreement(query: &[(&str, &str)], known: &[Entry], listed: &[Entry]) -> Failure {
    let without = |some: &[Entry], others: &[Entry]| {
        let rest = some.iter().filter(|entry| !others.contains(entry));
        rest.fold(String::new(), |all, entry| all + &format!("\n  {entry:?}"))
    };
    Failure::new(format!(
        "the lists differ for {query:?}: {} known, {} listed\nonly known:{}\nonly listed:{}",
        known.len(),
        listed.len(),
        without(known, listed),
        without(listed, known),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(token: &str) -> Account {
        Account {
            id: "sa_1".into(),
            name: "one".into(),
            token: token.into(),
            scopes: vec!["policies:read".into()],
        }
    }

    #[test]
    fn a_token_and_a_client_have_one_active_session() {
        let mut ledger = SessionLog::default();
        ledger.came(&account("a"), "x");
        ledger.came(&account("a"), "x");
        ledger.came(&account("a"), "y");
        assert_eq!(ledger.len(), 2);
        ledger.end("service_account_disabled", |entry| entry.client == "x");
        assert!(ledger.is_welcome("a"));
        ledger.came(&account("a"), "x");
        assert_eq!(ledger.len(), 3);
    }

    #[test]
    fn a_token_of_a_revoked_session_is_not_welcome_under_any_name_and_its_successor_is() {
        let mut ledger = SessionLog::default();
        ledger.came(&account("a"), "x");
        ledger.end("lost", |_| true);
        assert!(!ledger.is_welcome("a"));
        assert!(ledger.is_welcome("b"));
    }

    #[test]
    fn a_session_of_the_server_is_read() {
        let session = serde_json::json!({
            "actorType": "service_account", "serviceAccountId": "sa_1", "actorDisplay": "one", "mcpClientId": "x",
            "scopes": ["policies:read"], "status": "revoked", "revokeReason": "lost",
        });
        let entry = Entry::of(&session).unwrap();
        assert_eq!(entry.ended.as_deref(), Some("lost"));
        assert!(Entry::of(&serde_json::json!({ "status": "active" })).is_err());
    }
}
