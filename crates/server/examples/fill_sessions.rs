//! Fills a store with MCP sessions for `cargo xtask bench sessions`, and prints how the engine reads their lists.
//!
//! `fill_sessions fill|plans (sqlite FILE | postgres URL) ORGANIZATION COUNT`. What it writes follows from the number of
//! a session alone, so that whoever asks knows what there is: 40 clients, 2 000 accounts, 20 000 users, 30 sets of scopes.
#![forbid(unsafe_code)]

use provost_areas_access::mcp_sessions::{self, NewSession, SessionActor, SessionId};
use provost_kernel::auth::ScopeSet;
use provost_kernel::db::{Access, Conn, Location, Param, PostgresUrl, Statement};
use provost_kernel::{Secret, Timestamp, params};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

const CLIENTS: usize = 40;
const ACCOUNTS: usize = 2000;
const USERS: usize = 20_000;
const SETS: usize = 30;
/// Rows of one statement.
const ROWS: usize = 2000;
const DAY_MS: i64 = 86_400_000;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [task, engine, place, organization, count] = words.as_slice() else {
        return Err("needs: fill|plans sqlite|postgres PLACE ORGANIZATION COUNT".into());
    };
    let location = match engine.as_str() {
        "sqlite" => Location::Sqlite(place.into()),
        _ => Location::Postgres(PostgresUrl::new(Secret::new(place.clone()))),
    };
    provost_server::areas::ALL.install_scopes().map_err(said)?;
    let mut conn = Conn::open(&location, Access::Write).map_err(said)?;
    match task.as_str() {
        "fill" => fill(&mut conn, engine == "postgres", organization, count.parse()?),
        _ => plans(&mut conn, engine == "postgres", organization),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it serves map_err")]
fn said(error: provost_kernel::Error) -> String {
    format!("{error}: {}", error.private().unwrap_or_default())
}

/// Bits that look like chance and follow from a number.
fn mixed(number: usize) -> u64 {
    provost_history::synthetic::mixed(number as u64)
}

/// A few common things and many rare ones.
fn skewed(bits: u64, among: usize) -> usize {
    let unit = usize::try_from(bits % 10_000).unwrap_or(0);
    unit * unit * among / 100_000_000
}

/// An id that looks like others and follows from a number.
fn id(kind: &str, number: usize) -> String {
    format!(
        "{kind}_{:016x}{:010x}",
        mixed(number),
        mixed(number + 1_000_000) >> 24
    )
}

fn scopes(set: usize) -> ScopeSet {
    let chosen: Vec<&str> = ScopeSet::all()
        .names()
        .enumerate()
        .filter(|(place, _)| mixed(set * 100 + place).is_multiple_of(6))
        .map(|(_, scope)| scope)
        .collect();
    ScopeSet::of(&chosen)
}

fn session(number: usize, now: i64) -> (NewSession, usize) {
    let bits = mixed(number);
    let (account, user) = (
        id("sa", skewed(bits >> 8, ACCOUNTS)),
        id("usr", skewed(bits >> 12, USERS)),
    );
    let (actor, kind) = match bits % 10 {
        0..4 => (
            SessionActor::ServiceAccount {
                display: format!("robot {account}"),
                id: account,
            },
            0,
        ),
        4..9 => (
            SessionActor::ConsoleUser {
                display: {
                    let person = (bits >> 12) % 10_000;
                    format!("Person Number{} of Department {}", 10_000 + person, person % 97)
                },
                id: user,
            },
            1,
        ),
        _ => (
            SessionActor::Agent {
                console_user: Some(user),
                service_account: None,
                display: format!("agent {number:07}"),
            },
            2,
        ),
    };
    let set = skewed(bits >> 20, SETS);
    let new = NewSession {
        grant_key: format!("grant-{number}"),
        actor,
        client_id: Some(format!(
            "https://client-{:02}.example/metadata.json",
            skewed(bits >> 28, CLIENTS)
        )),
        client_display: None,
        scopes: scopes(set),
        token_id: None,
        expires_at: Timestamp::from_ms(now + DAY_MS),
    };
    (new, kind * SETS + set + 1)
}

fn fill(conn: &mut Conn, is_postgres: bool, organization: &str, count: usize) -> Outcome {
    let now = provost_kernel::time::Clock::now(&provost_kernel::time::SystemClock::new()).as_ms();
    let mut kinds =
        String::from("INSERT INTO mcp_session_kinds (organization_id, kind, actor_type, scopes) VALUES ");
    for (place, actor) in ["service_account", "console_user", "agent"]
        .into_iter()
        .enumerate()
    {
        for set in 0..SETS {
            let text = scopes(set).to_list().join(" ");
            let comma = if place + set == 0 { "" } else { ", " };
            write!(
                kinds,
                "{comma}('{organization}', {}, '{actor}', '{text}')",
                place * SETS + set + 1
            )?;
        }
    }
    kinds.push_str(" ON CONFLICT DO NOTHING");
    conn.batch(&kinds).map_err(said)?;
    // Rows first, then indexes of all of them: many times as fast, and the same in the end.
    let indexes = indexes(conn, is_postgres)?;
    for (name, _) in &indexes {
        conn.batch(&format!("DROP INDEX {name}")).map_err(said)?;
    }
    // An index of a million texts takes PostgreSQL longer than any request may take.
    conn.set_statement_timeouts(false).map_err(said)?;
    if !is_postgres {
        // Nobody needs what a crash leaves of this.
        conn.batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
            .map_err(said)?;
    }
    let (mut known, mut clients) = (HashMap::new(), HashSet::new());
    for first in (0..count).step_by(ROWS) {
        let mut text = String::from(
            "INSERT INTO mcp_sessions (organization_id, id, seq, grant_key, kind, actor, actor_display, mcp_client_id, service_account_id, console_user_id, issued_at, last_used_at, expires_at, state, ended_at, revoke_reason) VALUES ",
        );
        let mut named = String::new();
        for number in first..(first + ROWS).min(count) {
            // Oldest first, over 80 days.
            let at = now - 80 * DAY_MS + i64::try_from(number)? * (80 * DAY_MS) / i64::try_from(count)?;
            let low = u128::from(mixed(number)) << 16;
            let id = SessionId::from_store(provost_kernel::id::compose("mcps", Timestamp::from_ms(at), low));
            let (new, kind) = session(number, now);
            // A tenth is active, the others ended in both ways.
            let (state, ended, expires) = match mixed(number + 7) % 10 {
                0 => (0, "NULL, NULL".to_owned(), now + DAY_MS),
                1..5 => (1, format!("{}, 'admin_revoked'", at + 1000), at + DAY_MS),
                _ => (2, format!("{}, 'expired'", at + DAY_MS / 2), at + DAY_MS / 2),
            };
            let null = |id: Option<&str>| id.map_or("NULL".to_owned(), |id| format!("'{id}'"));
            let comma = if number == first { "" } else { ", " };
            let (seq, searched) = (
                mcp_sessions::seq(&id).map_err(said)?,
                mcp_sessions::searched(&new.actor),
            );
            let actor = *known.entry(searched.clone()).or_insert(seq);
            if actor == seq {
                write!(
                    named,
                    "INSERT INTO mcp_session_actors (organization_id, actor, display, service_account_id, console_user_id, search) VALUES ('{organization}', {seq}, '{}', '{}', '{}', '{searched}');",
                    new.actor.display(),
                    new.actor.service_account().unwrap_or_default(),
                    new.actor.console_user().unwrap_or_default(),
                )?;
            }
            if let Some(client) = new.client_id.clone().filter(|client| !clients.contains(client)) {
                write!(
                    named,
                    "INSERT INTO mcp_session_clients (organization_id, mcp_client_id, search) VALUES ('{organization}', '{client}', '{client}');"
                )?;
                clients.insert(client);
            }
            write!(
                text,
                "{comma}('{organization}', '{id}', {seq}, '{}', {kind}, {actor}, '{}', {}, {}, {}, {at}, {at}, {expires}, {state}, {ended})",
                new.grant_key,
                new.actor.display(),
                null(new.client_id.as_deref()),
                null(new.actor.service_account()),
                null(new.actor.console_user()),
            )?;
        }
        // What sessions name stands before them.
        conn.batch(&format!("{named}{text}")).map_err(said)?;
        if !is_postgres {
            // Nobody else does, and a long log is slow to read.
            conn.batch("PRAGMA wal_checkpoint(PASSIVE)").map_err(said)?;
        }
    }
    for (_, made) in &indexes {
        conn.batch(made).map_err(said)?;
    }
    if is_postgres {
        conn.batch("VACUUM ANALYZE mcp_sessions").map_err(said)?;
        for table in ["actors", "clients"] {
            conn.batch(&format!("VACUUM ANALYZE mcp_session_{table}"))
                .map_err(said)?;
        }
    }
    Ok(())
}

/// Returns the indexes of the table that can be made again, by name.
fn indexes(conn: &mut Conn, is_postgres: bool) -> Outcome<Vec<(String, String)>> {
    let text = if is_postgres {
        "SELECT CAST(indexname AS TEXT), indexdef FROM pg_indexes WHERE tablename = 'mcp_sessions' AND indexname LIKE 'mcp\\_sessions\\_by\\_%'"
    } else {
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'mcp_sessions' AND sql IS NOT NULL"
    };
    let asked: &'static Statement = Box::leak(Box::new(Statement {
        name: "indexes",
        sqlite: text,
        postgres: text,
        unscoped: Some("no row of anybody"),
    }));
    let found = conn.read(|tx| tx.query(asked, &[], |row| Ok((row.get(0)?, row.get(1)?))));
    Ok(found.map_err(said)?)
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Returns the area's statements of one module.
fn statements_of(module: &'static str) -> impl Iterator<Item = &'static Statement> {
    let all = mcp_sessions::AREA
        .statements
        .iter()
        .flat_map(|list| list.iter().copied());
    all.filter(move |statement| statement.name.contains(module))
}

fn plans(conn: &mut Conn, is_postgres: bool, organization: &str) -> Outcome {
    let account = id("sa", 3);
    for statement in statements_of("::find::") {
        let name = statement.name.rsplit("::").next().unwrap_or_default();
        let leads = |lead: &str| name.starts_with("NEWEST") && name.contains(lead);
        let mut values = params![
            organization,
            0_i64,
            Param::Null,
            leads("CLIENT").then_some("https://client-07.example/metadata.json"),
            leads("ACCOUNT").then_some(account.as_str()),
            leads("USER").then_some(account.as_str()),
            Param::Null,
            leads("KINDS").then_some(" mcp:read "),
            Param::Null,
            1001_i64
        ]
        .to_vec();
        let text = ["%number11234 %", "%umber11234 %"];
        match name {
            "NAMED" => values.extend(text.map(Param::from)),
            "SCAN" => {
                values.extend(text.map(Param::from));
                values.push(Param::from(0_i64));
            }
            "FETCH" => values = provost_kernel::listing::places(&[1]),
            _ => values.push(Param::from(-1_i64)),
        }
        let asked: &'static Statement = Box::leak(Box::new(Statement {
            name: statement.name,
            sqlite: leaked(format!("EXPLAIN QUERY PLAN {}", statement.sqlite)),
            postgres: leaked(format!(
                "EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF) {}",
                statement.postgres
            )),
            unscoped: Some("a plan"),
        }));
        let column = if is_postgres { 0 } else { 3 };
        let lines = conn.read(|tx| tx.query(asked, &values, |row| row.get::<String>(column)));
        println!("{name}\n  {}", brief(lines.map_err(said)?).join("\n  "));
    }
    Ok(())
}

/// Says what a plan does many times only once: lines that differ in numbers alone.
fn brief(lines: Vec<String>) -> Vec<String> {
    let mut seen: Vec<(String, String, usize)> = Vec::new();
    for line in lines {
        let kind = line.replace(|c: char| c.is_ascii_digit() || "._<-> ".contains(c), "");
        let kind = kind.replace("neverexecuted", "actualtime=rows=loops=");
        match seen.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., count)) => *count += 1,
            None => seen.push((kind, line, 1)),
        }
    }
    let told = |(_, line, count): (String, String, usize)| match count {
        1 => line,
        count => format!("{line}  [{count} times]"),
    };
    seen.into_iter().map(told).collect()
}
