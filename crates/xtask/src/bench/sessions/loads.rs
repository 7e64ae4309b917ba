//! What is asked of lists of sessions. The names follow from what the filling program writes.

use super::super::report::Goal;
use crate::Engine;

/// What the filling program writes.
const CLIENTS: usize = 40;
const ACCOUNTS: usize = 2000;
/// So many different queries are sent in turn.
const QUERIES: usize = 40;

/// One kind of filter: its name, its goal, and the queries that are sent in turn.
pub struct Load {
    pub name: &'static str,
    pub goals: Goals,
    pub queries: Vec<String>,
}

/// How many milliseconds 99 of 100 requests may take.
#[derive(Clone, Copy)]
pub enum Goals {
    /// Of exact filters.
    Exact,
    /// Of a substring of as many sessions as are counted.
    Substring,
    /// Measured for comparison.
    None,
}

impl Goals {
    /// Returns the goal on an engine.
    pub fn on(self, engine: Engine) -> Goal {
        match (self, engine) {
            (Self::Exact, Engine::Postgres) => Goal::AtMost(40.0),
            (Self::Exact, _) => Goal::AtMost(20.0),
            (Self::Substring, Engine::Postgres) => Goal::AtMost(100.0),
            (Self::Substring, _) => Goal::AtMost(50.0),
            (Self::None, _) => Goal::None,
        }
    }
}

fn client(n: usize) -> String {
    format!(
        "clientId=https%3A%2F%2Fclient-{:02}.example%2Fmetadata.json",
        n % CLIENTS
    )
}

/// The bits that the filling program makes of a number.
fn mixed(number: usize) -> u64 {
    crate::random::mixed(number as u64)
}

fn account_id(n: usize) -> String {
    let number = n * 7 % ACCOUNTS;
    format!(
        "sa_{:016x}{:010x}",
        mixed(number),
        mixed(number + 1_000_000) >> 24
    )
}

fn account(n: usize) -> String {
    format!("serviceAccountId={}", account_id(n))
}

fn status(n: usize) -> String {
    format!("status={}", ["active", "revoked", "expired"][n % 3])
}

fn actor(n: usize) -> String {
    format!(
        "actorType={}",
        ["service_account", "console_user", "agent"][n % 3]
    )
}

fn scope(n: usize) -> String {
    format!(
        "scope={}",
        ["policies%3Aread", "mcp%3Aread", "audit%3Aexport"][n % 3]
    )
}

fn toolset(n: usize) -> String {
    format!("toolset={}", ["mcp", "registry", "policies"][n % 3])
}

/// The pages of the goal: offsets up to 1 000.
fn offset(n: usize) -> String {
    format!("offset={}", n * 25 % 1001)
}

fn every(make: impl Fn(usize) -> Vec<String>) -> Vec<String> {
    (0..QUERIES).map(|n| format!("?{}", make(n).join("&"))).collect()
}

/// Every combination of the six exact filters, each with another page.
fn combinations() -> Vec<String> {
    let filters = [status, actor, account, client, scope, toolset];
    let one = |n: usize| {
        let chosen = filters.iter().enumerate();
        let chosen = chosen.filter(|(place, _)| n >> place & 1 == 1);
        let mut parts: Vec<String> = chosen.map(|(_, filter)| filter(n)).collect();
        parts.push(offset(n * 3));
        format!("?{}", parts.join("&"))
    };
    (0..1 << filters.len()).map(one).collect()
}

/// Returns all loads: those with a goal, then those that are measured for comparison.
pub fn all() -> Vec<Load> {
    let exact = |name, queries| Load {
        name,
        goals: Goals::Exact,
        queries,
    };
    let substring = |name, queries| Load {
        name,
        goals: Goals::Substring,
        queries,
    };
    let compared = |name, queries| Load {
        name,
        goals: Goals::None,
        queries,
    };
    vec![
        exact("no filter", every(|n| vec![offset(n)])),
        exact("status", every(|n| vec![status(n), offset(n)])),
        exact("client", every(|n| vec![client(n), offset(n)])),
        exact("account", every(|n| vec![account(n)])),
        exact("actor type", every(|n| vec![actor(n), offset(n)])),
        exact("scope", every(|n| vec![scope(n), offset(n)])),
        exact("toolset", every(|n| vec![toolset(n), offset(n)])),
        exact(
            "client, scope, status",
            every(|n| vec![client(n), scope(n), status(n), offset(n)]),
        ),
        exact("all 64 combinations of exact filters", combinations()),
        substring(
            "query of one person",
            every(|n| vec![format!("query=NUMBER{}%20of", 10_000 + n * 101)]),
        ),
        substring(
            "query of one session",
            every(|n| vec![format!("query=agent%20{:07}", n * 20_011)]),
        ),
        substring(
            "query of an account",
            every(|n| vec![format!("query={}", account_id(n))]),
        ),
        substring(
            "query of hundreds: a department, active",
            every(|n| vec![format!("query=department%20{}&status=active", 10 + n)]),
        ),
        compared(
            "query of thousands: a department, status",
            every(|n| vec![format!("query=department%20{}", 10 + n), status(n)]),
        ),
        compared(
            "query of tens of thousands: a client, status",
            every(|n| vec![format!("query=CLIENT-{:02}", n % CLIENTS), status(n)]),
        ),
        compared("query of four in ten", vec!["?query=robot".to_owned()]),
        compared("query of two characters", vec!["?query=zz".to_owned()]),
        compared("offset 500 000", vec!["?offset=500000".to_owned()]),
    ]
}
