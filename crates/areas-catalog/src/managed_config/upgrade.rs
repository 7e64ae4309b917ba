//! Gives `managed_config:pull` to the accounts that machines pulled with before there was the scope (ADR 0048).
//!
//! Once: the migration leaves a fact, and the first start takes it away in the transaction that gives. Whoever loses the scope
//! later does not get it back by another start.
//!
//! ```text
//! reported · a list with managed_config:read        the list and the scope; so for tokens with such a list of their own
//! reported · all of the role operator or auditor    what the role holds as a list, and the scope
//! reported · all of the role admin                  nothing: as a list it would lose the power to give all of a role
//! reported · anything else                          nothing: it could not fetch
//! ```
//!
//! Nobody can do more by it than before: all of them could fetch values in the clear. The log names each of them, and whoever
//! was left out and did report.
//!
//! Keeps MC-9.

use super::PULL;
use provost_kernel::auth::{Role, ScopeSet};
use provost_kernel::db::{Call, Conn, Param, Row, Statement, Tx};
use provost_kernel::{Error, Result, Timestamp, params, statements};

statements! {
    /// Says whether the scope is still to be given.
    DUE = "SELECT value FROM installation WHERE name = 'managed_config_pull'";
    /// The living accounts that reported.
    REPORTED = unscoped("a start looks at every organization") "SELECT a.organization_id, a.id, a.permission_role, a.scopes FROM service_accounts a WHERE a.deleted_at IS NULL AND EXISTS (SELECT 1 FROM managed_config_targets t WHERE t.organization_id = a.organization_id AND t.reported_by_type = 'service_account' AND t.reported_by_id = a.id) ORDER BY a.organization_id, a.id";
    /// Who reported and is no service account.
    OTHERS = unscoped("a start looks at every organization") "SELECT DISTINCT organization_id, reported_by_id FROM managed_config_targets WHERE reported_by_type <> 'service_account' ORDER BY organization_id, reported_by_id";
    /// An account's tokens that have a list of their own.
    TOKENS = "SELECT id, scopes FROM service_account_tokens WHERE organization_id = ?1 AND service_account_id = ?2 AND scopes IS NOT NULL AND revoked_at IS NULL ORDER BY id || ''";
    /// The clients that act as an account.
    CLIENTS = "SELECT id, scopes FROM oauth_clients WHERE organization_id = ?1 AND service_account_id = ?2 ORDER BY id";
    /// Replaces an account's list, unless another server gave the scope before.
    GIVE_ACCOUNT = "UPDATE service_accounts SET scopes = ?3, updated_at = CASE WHEN updated_at >= ?4 THEN updated_at + 1 ELSE ?4 END WHERE organization_id = ?1 AND id = ?2 AND EXISTS (SELECT 1 FROM installation WHERE name = 'managed_config_pull')";
    /// Replaces a token's list, unless another server gave the scope before.
    GIVE_TOKEN = "UPDATE service_account_tokens SET scopes = ?3 WHERE organization_id = ?1 AND id = ?2 AND EXISTS (SELECT 1 FROM installation WHERE name = 'managed_config_pull')";
    /// Remembers that the scope was given.
    GIVEN = "DELETE FROM installation WHERE name = 'managed_config_pull'";
}

/// An account that reported.
struct Reporter {
    organization: String,
    id: String,
    role: Role,
    /// As it is stored; nothing stands for all of the role.
    scopes: Option<String>,
}

fn reporter(row: &Row<'_>) -> Result<Reporter> {
    let role = Role::parse(row.str(2)?);
    Ok(Reporter {
        organization: row.get(0)?,
        id: row.get(1)?,
        role: role.ok_or_else(|| Error::internal("service_accounts.permission_role is not a role"))?,
        scopes: row.get(3)?,
    })
}

/// What becomes of an account that reported.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Its list and the scope.
    Added(String),
    /// What its role holds as a list, and the scope.
    Listed(String),
    /// It has all of the role admin, and keeps that.
    Admin,
    /// It could not fetch, or has the scope.
    Untouched,
}

fn outcome(role: Role, scopes: Option<&str>) -> Outcome {
    if matches!(role, Role::Viewer | Role::Member) {
        return Outcome::Untouched;
    }
    match scopes {
        Some(list) => with_pull(list).map_or(Outcome::Untouched, Outcome::Added),
        None if role == Role::Admin => Outcome::Admin,
        None => with_pull(&role.all_scopes().to_list().join(" ")).map_or(Outcome::Untouched, Outcome::Listed),
    }
}

/// Returns a stored list with the scope, if its holder could fetch by it and does not have the scope.
fn with_pull(list: &str) -> Option<String> {
    let held = ScopeSet::from_store(list);
    if held.has(PULL) || !held.closed().has("managed_config:read") {
        return None;
    }
    // Names that this program does not know stay.
    let mut names: Vec<&str> = list.split(' ').chain([PULL]).collect();
    names.sort_unstable();
    Some(names.join(" "))
}

/// Gives the scope, if that is still to be done.
pub fn give_pull(conn: &mut Conn, now: Timestamp) -> Result<()> {
    let Some(calls) = conn.read(|tx| plan(tx, now))? else {
        return Ok(());
    };
    conn.begin(&[])?;
    if let Err(error) = conn.commit(&calls) {
        conn.rollback();
        return Err(error);
    }
    Ok(())
}

/// Returns what is to be written, and says it; nothing when the scope was given before.
fn plan(tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<Vec<Call<'static>>>> {
    if tx.query_opt(&DUE, params![], |_| Ok(()))?.is_none() {
        return Ok(None);
    }
    let mut calls = Vec::new();
    for one in tx.query(&REPORTED, params![], reporter)? {
        let outcome = outcome(one.role, one.scopes.as_deref());
        say(&one, &outcome);
        let (Outcome::Added(list) | Outcome::Listed(list)) = outcome else {
            continue;
        };
        let whose = || vec![Param::from(one.organization.clone())];
        let mut params = whose();
        params.extend([Param::from(one.id.clone()), Param::from(list), Param::from(now)]);
        calls.push(call(&GIVE_ACCOUNT, params));
        for (id, list) in lists(tx, &TOKENS, &one)? {
            if let Some(list) = with_pull(&list) {
                let mut params = whose();
                params.extend([Param::from(id), Param::from(list)]);
                calls.push(call(&GIVE_TOKEN, params));
            }
        }
        for (client, list) in lists(tx, &CLIENTS, &one)? {
            if with_pull(&list).is_some() {
                tracing::warn!(
                    organization = one.organization,
                    account = one.id,
                    client,
                    "this MCP client is an account that reported for machines. The client was not given managed_config:pull: \
                     if machines fetch through it, give it the scope"
                );
            }
        }
    }
    for (organization, principal) in tx.query(&OTHERS, params![], |row| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?))
    })? {
        tracing::warn!(
            organization,
            principal,
            "this person reported for machines, which takes managed_config:pull from now on; only a service account can have \
             the scope. Make one for the machines"
        );
    }
    calls.push(call(&GIVEN, vec![]));
    Ok(Some(calls))
}

fn call(statement: &'static Statement, params: Vec<Param<'static>>) -> Call<'static> {
    Call { statement, params }
}

/// Returns the ids and lists of what belongs to an account.
fn lists(tx: &mut Tx<'_>, statement: &'static Statement, of: &Reporter) -> Result<Vec<(String, String)>> {
    let whose = params![of.organization.as_str(), of.id.as_str()];
    tx.query(statement, whose, |row| Ok((row.get(0)?, row.get(1)?)))
}

fn say(of: &Reporter, outcome: &Outcome) {
    let (organization, account) = (of.organization.as_str(), of.id.as_str());
    match outcome {
        Outcome::Added(_) => tracing::warn!(
            organization,
            account,
            "this account reported for machines and was given the scope managed_config:pull, without which they would get \
             configuration with its secret values hidden. Take it away where it is not wanted"
        ),
        Outcome::Listed(_) => tracing::warn!(
            organization,
            account,
            "this account reported for machines and had all scopes of its role. It has them as a list now, with \
             managed_config:pull, without which the machines would get configuration with its secret values hidden; it does \
             not gain scopes of later versions by itself"
        ),
        Outcome::Admin => tracing::warn!(
            organization,
            account,
            "this account reported for machines and has all scopes of the role admin, which hold no managed_config:pull: \
             machines that use it get configuration with its secret values hidden, refuse it, and keep the release that they \
             have. Make an account with managed_config:pull for them"
        ),
        Outcome::Untouched => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_could_fetch_is_given_the_scope() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let list = |text: &str| outcome(Role::Auditor, Some(text));
        assert_eq!(
            list("audit:read managed_config:read zoo:feed"),
            Outcome::Added("audit:read managed_config:pull managed_config:read zoo:feed".into())
        );
        assert_eq!(
            list("managed_config:write"),
            Outcome::Added("managed_config:pull managed_config:write".into())
        );
        assert_eq!(list("audit:read"), Outcome::Untouched);
        assert_eq!(
            list("managed_config:pull managed_config:read"),
            Outcome::Untouched
        );
        assert_eq!(
            outcome(Role::Viewer, Some("managed_config:read")),
            Outcome::Untouched
        );
        assert_eq!(outcome(Role::Viewer, None), Outcome::Untouched);
        assert_eq!(outcome(Role::Admin, None), Outcome::Admin);
        for role in [Role::Operator, Role::Auditor] {
            let Outcome::Listed(list) = outcome(role, None) else {
                panic!("{role:?}")
            };
            let expected = role.all_scopes().or(ScopeSet::of(&[PULL]));
            assert_eq!(ScopeSet::from_store(&list), expected);
        }
    }
}
