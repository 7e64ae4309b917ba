//! Policies, accounts, sessions and machines that somebody should look at.

use super::super::view::{Account, Machine, Posture};
use super::tables::{Cell, Row, Table};
use super::{DAY_MS, SHOWN, at_least, known};
use crate::backtests::page::section;
use crate::backtests::words::{date, instant, number};
use provost_words::html::Html;
use provost_words::time::Timestamp;
use std::collections::BTreeMap;

/// A token that ends within so many days is one to look after.
const SOON_DAYS: i64 = 30;

pub fn policies(html: &mut Html, posture: &Posture) {
    let hint = "Switched on, and named by no recorded decision of this time: nothing matched, or a stricter policy won.";
    section(html, "Policies that decided nothing", hint, |html| {
        let Some(policies) = known(html, &posture.policies) else {
            return;
        };
        let Some(decisions) = known(html, &posture.decisions) else {
            return;
        };
        let idle: Vec<Row> = policies
            .iter()
            .filter(|policy| !decisions.by_policy.contains_key(&policy.id))
            .map(|policy| {
                let name = policy.name.clone().unwrap_or_else(|| policy.id.clone());
                Row(vec![
                    Cell::named(name, Some(policy.id.clone())),
                    Cell::plain(policy.family.replace('_', " ")),
                    Cell::plain(policy.action.replace('_', " ")),
                ])
            })
            .collect();
        if idle.is_empty() {
            html.words("p", "hint", "There is none: every policy decided something.");
            return;
        }
        let heads = [("Policy", ""), ("Family", ""), ("Action", "")];
        Table::new("Policies without a decision", &heads).add(html, &idle, SHOWN);
    });
}

pub fn ends_soon(account: &Account, now: Timestamp) -> bool {
    let soon = now.plus_ms(SOON_DAYS * DAY_MS);
    !account.is_disabled && account.ends_at.is_none_or(|end| end <= soon)
}

pub fn accounts(html: &mut Html, posture: &Posture) {
    let hint = "Without a token that works after the next 30 days, disabled, or without anybody who answers for them.";
    section(html, "Accounts and tokens that end", hint, |html| {
        let Some(accounts) = known(html, &posture.accounts) else {
            return;
        };
        let mut those: Vec<&Account> = accounts
            .iter()
            .filter(|account| account.is_disabled || account.is_orphaned || ends_soon(account, posture.at))
            .collect();
        those.sort_by_key(|account| (account.is_disabled, account.ends_at, &account.id));
        if those.is_empty() {
            html.words("p", "hint", "There is none.");
            return;
        }
        let rows: Vec<Row> = those
            .into_iter()
            .map(|account| {
                Row(vec![
                    Cell::named(account.name.clone(), Some(account.id.clone())),
                    Cell::plain(account.role.clone()),
                    Cell::plain(state(account, posture.at)),
                    Cell::plain(
                        account
                            .used_at
                            .map_or_else(|| "never".to_owned(), |at| date(&at.to_rfc3339())),
                    ),
                ])
            })
            .collect();
        let heads = [
            ("Account", ""),
            ("Role", ""),
            ("What ends", ""),
            ("Last used", ""),
        ];
        Table::new("Service accounts to look after", &heads).add(html, &rows, SHOWN);
    });
}

pub fn state(account: &Account, now: Timestamp) -> String {
    let mut words = Vec::new();
    if account.is_disabled {
        words.push("disabled".to_owned());
    }
    if account.is_orphaned {
        words.push("nobody answers for it".to_owned());
    }
    words.push(match account.ends_at {
        None => "no token works".to_owned(),
        Some(end) => {
            let days = (end.as_ms() - now.as_ms()).div_euclid(DAY_MS);
            let left = match days {
                0 => "today".to_owned(),
                1 => "in a day".to_owned(),
                days => format!("in {days} days"),
            };
            format!("its last token ends {left}, on {}", date(&end.to_rfc3339()))
        }
    });
    words.join("; ")
}

pub fn sessions(html: &mut Html, posture: &Posture) {
    section(html, "MCP sessions", "", |html| {
        let Some(sessions) = known(html, &posture.sessions) else {
            return;
        };
        let shown = sessions.newest.len() as u64;
        let more = if sessions.total > shown {
            format!(", of which the newest {} are listed", number(shown))
        } else {
            String::new()
        };
        let total = at_least(sessions.total, sessions.is_exact);
        html.words("p", "hint", &format!("{total} active{more}."));
        if sessions.newest.is_empty() {
            return;
        }
        let rows: Vec<Row> = sessions
            .newest
            .iter()
            .map(|session| {
                Row(vec![
                    Cell::named(session.actor.clone(), None),
                    Cell::named(session.client.clone(), None),
                    Cell::plain(instant(&session.issued_at)),
                    Cell::plain(instant(&session.used_at)),
                ])
            })
            .collect();
        let heads = [("Who", ""), ("Client", ""), ("Since", ""), ("Last used", "")];
        Table::new("Active MCP sessions, the newest first", &heads).add(html, &rows, SHOWN);
    });
}

pub fn machines(html: &mut Html, posture: &Posture) {
    section(html, "Machines with managed configuration", "", |html| {
        let Some(profiles) = known(html, &posture.machines) else {
            return;
        };
        if profiles.is_empty() {
            html.words("p", "hint", "There is no profile.");
        }
        for profile in profiles {
            html.element("h3", &[], |html| {
                html.name(&profile.name);
                html.raw(" ");
                html.words("span", "kind", &profile.target.replace('_', " "));
            });
            let mut states: BTreeMap<&str, u64> = BTreeMap::new();
            for machine in &profile.machines {
                *states.entry(&machine.state).or_default() += 1;
            }
            let said: Vec<String> = states
                .iter()
                .map(|(state, count)| format!("{} {state}", number(*count)))
                .collect();
            let said = if said.is_empty() {
                "no machine has reported".to_owned()
            } else {
                said.join(", ")
            };
            html.words("p", "hint", &said);
            let ill: Vec<&Machine> = profile
                .machines
                .iter()
                .filter(|machine| !machine.is_well())
                .collect();
            if ill.is_empty() {
                continue;
            }
            let rows: Vec<Row> = ill
                .into_iter()
                .map(|machine| {
                    Row(vec![
                        Cell::named(machine.name.clone(), machine.message.clone()),
                        Cell::plain(machine.state.clone()),
                        Cell::plain(instant(&machine.reported_at)),
                    ])
                })
                .collect();
            let heads = [("Machine", ""), ("State", ""), ("Last report", "")];
            Table::new("Machines that do not have what is published", &heads).add(html, &rows, SHOWN);
        }
    });
}
