//! All SQL of registered clients.

use super::super::grants::Client;
use super::model::{AuthMethod, ClientId, Jwks, RegisteredClient};
use provost_areas_identity::service_accounts::{self, Rights, may_be_held};
use provost_kernel::auth::{OrganizationId, Permission, ScopeSet, may_mint};
use provost_kernel::db::{Call, Conn, Param, Row, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::text::name_key;
use provost_kernel::{OperationContext, params, statements};
use provost_oauth::client_document::Authentication;
use serde_json::{Value, json};

statements! {
    /// One client.
    GET = "SELECT id, organization_id, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, blocked_at, created_at, updated_at, ceiling FROM oauth_clients WHERE organization_id = ?1 AND id = ?2";
    /// The client of an id, in whatever organization.
    RESOLVE = unscoped("a client's id is unique everywhere and says whose the client is") "SELECT id, organization_id, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, blocked_at, created_at, updated_at, ceiling FROM oauth_clients WHERE id = ?1";
    /// A page of clients, the newest first.
    LIST = "SELECT id, organization_id, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, blocked_at, created_at, updated_at, ceiling FROM oauth_clients WHERE organization_id = ?1 ORDER BY created_at DESC, id DESC LIMIT ?2 OFFSET ?3";
    /// The clients that act as an account.
    OF_ACCOUNT = "SELECT id FROM oauth_clients WHERE organization_id = ?1 AND service_account_id = ?2 ORDER BY id";
    /// How many there are.
    COUNT = "SELECT COUNT(*) FROM oauth_clients WHERE organization_id = ?1";
    /// Makes a client, unless its name is taken.
    INSERT = "INSERT INTO oauth_clients (organization_id, id, name, name_key, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, created_at, updated_at, ceiling) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, ?13) ON CONFLICT DO NOTHING";
    /// Says whether another client has a name.
    NAME_TAKEN = "SELECT id FROM oauth_clients WHERE organization_id = ?1 AND name_key = ?2 AND id <> ?3";
    /// Replaces what can change of a client.
    SAVE = "UPDATE oauth_clients SET name = ?3, name_key = ?4, redirect_uris = ?5, grant_types = ?6, jwks = ?7, jwks_uri = ?8, scopes = ?9, blocked_at = ?10, updated_at = ?11, ceiling = ?12 WHERE organization_id = ?1 AND id = ?2";
    /// Forgets why a client is blocked.
    FORGET_HELD = "UPDATE oauth_clients SET blocked_reason = NULL WHERE organization_id = ?1 AND id = ?2";
    /// Clients that were made by a program that knew no ceilings.
    WITHOUT_CEILING = unscoped("a start looks at every organization") "SELECT id, organization_id, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, blocked_at, created_at, updated_at, ceiling FROM oauth_clients WHERE ceiling IS NULL ORDER BY organization_id, id";
    /// Writes a ceiling that is missing.
    WRITE_CEILING = "UPDATE oauth_clients SET ceiling = ?3 WHERE organization_id = ?1 AND id = ?2 AND ceiling IS NULL";
    /// Every client.
    EVERY = unscoped("a check looks at every organization") "SELECT id, organization_id, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, blocked_at, created_at, updated_at, ceiling FROM oauth_clients ORDER BY organization_id, id";
    /// Removes a client.
    DELETE = "DELETE FROM oauth_clients WHERE organization_id = ?1 AND id = ?2";
}

fn read(row: &Row<'_>) -> Result<RegisteredClient> {
    let list = |text: &str| serde_json::from_str::<Vec<String>>(text).map_err(Error::internal);
    let method = AuthMethod::parse(row.str(5)?);
    let jwks = row.get::<Option<String>>(6)?;
    let jwks = jwks.map(|text| serde_json::from_str::<Jwks>(&text).map_err(Error::internal));
    Ok(RegisteredClient {
        id: ClientId::from_store(row.get(0)?),
        organization_id: row.get(1)?,
        name: row.get(2)?,
        redirect_uris: list(row.str(3)?)?,
        grant_types: list(row.str(4)?)?,
        auth_method: method
            .ok_or_else(|| Error::internal("oauth_clients.auth_method is not a word of it"))?,
        jwks: jwks.transpose()?,
        jwks_uri: row.get(7)?,
        scopes: ScopeSet::from_store(row.str(8)?),
        service_account_id: row.get(9)?,
        blocked_at: row.get(10)?,
        created_at: row.get(11)?,
        updated_at: row.get(12)?,
        // Every start writes the ceilings that are missing; until then there is nothing to grant.
        ceiling: row
            .get::<Option<String>>(13)?
            .map_or_else(ScopeSet::default, |text| ScopeSet::from_store(&text)),
    })
}

/// Returns what a client is, and the account that it acts as, for who says yes to something about it: whatever changes of it stands in the instant
/// of its last change.
pub fn standing(ctx: &mut OperationContext<'_>, id: &ClientId) -> Result<Value> {
    let client = get(ctx, id)?;
    let account = match &client.service_account_id {
        Some(id) => service_accounts::shown_to_voters(ctx, id)?,
        None => Value::Null,
    };
    Ok(json!({
        "name": client.name, "updatedAt": client.updated_at, "redirectUris": client.redirect_uris, "grantTypes": client.grant_types,
        "scopes": client.scopes.to_list(), "jwksUri": client.jwks_uri, "blocked": client.blocked_at.is_some(),
        "serviceAccountId": client.service_account_id, "serviceAccount": account,
    }))
}

/// Returns a client.
///
/// Errors: `NotFound` for an unknown, a deleted and another organization's client alike.
pub fn get(ctx: &mut OperationContext<'_>, id: &ClientId) -> Result<RegisteredClient> {
    let org = ctx.org();
    ctx.query_opt(&GET, params![org, id.as_str()], read)?
        .ok_or_else(|| Error::not_found("MCP client"))
}

/// Returns the client of an id as the token endpoint needs it; a blocked one is none.
pub fn resolve(tx: &mut Tx<'_>, id: &str) -> Result<Option<Client>> {
    let found = tx.query_opt(&RESOLVE, params![id], read)?;
    let Some(client) = found.filter(|client| client.blocked_at.is_none()) else {
        return Ok(None);
    };
    let granted = client.granted();
    let authentication = match (client.auth_method, &client.jwks, client.jwks_uri) {
        (AuthMethod::None, ..) => Authentication::None,
        (AuthMethod::PrivateKeyJwt, _, Some(url)) => Authentication::KeysAt(url),
        (AuthMethod::PrivateKeyJwt, Some(keys), None) => {
            let keys = keys.parse();
            Authentication::Keys(keys.map_err(|refusal| Error::internal(refusal.to_string()))?)
        }
        (AuthMethod::PrivateKeyJwt, None, None) => {
            return Err(Error::internal("a client has no keys"));
        }
    };
    Ok(Some(Client {
        id: client.id.as_str().to_owned(),
        name: client.name,
        organization: Some(OrganizationId::from_store(client.organization_id)),
        redirect_uris: client.redirect_uris,
        grant_types: client.grant_types,
        scopes: Some(granted),
        authentication,
        service_account_id: client.service_account_id,
    }))
}

/// Returns a page of clients, the newest first, and how many there are.
pub fn list(ctx: &mut OperationContext<'_>, limit: i64, offset: i64) -> Result<(Vec<RegisteredClient>, i64)> {
    let org = ctx.org();
    let found = ctx.query(&LIST, params![org, limit, offset], read)?;
    let total = ctx.query_opt(&COUNT, params![org], |row| row.get::<i64>(0))?;
    Ok((found, total.unwrap_or(0)))
}

/// Refuses a client that could be granted more than the caller holds (D3.3): who registers its keys or the places where
/// answers are sent can have it, and an account that it is may be given more later.
///
/// Errors: `NotFound` for an account that is none, `EscalationForbidden`.
pub fn may_be(ctx: &mut OperationContext<'_>, client: &RegisteredClient) -> Result<()> {
    // What it is granted by people and by its account never reaches beyond the role of its maker either.
    let caller = ctx.actor().permission;
    let mut role = caller.role;
    if let Some(id) = &client.service_account_id {
        let org = ctx.org();
        let account = service_accounts::principal(&mut ctx.tx(), org, id)?;
        let account = account.ok_or_else(|| Error::not_found("service account"))?;
        role = account.role;
        // Whoever has the client is the account: what it made and claimed is theirs, whatever the scopes (SA-10).
        let rights = Rights {
            role,
            scopes: account.scopes,
        };
        may_be_held(rights, account.former, caller)?;
    }
    // The ceiling, which what was taken away by somebody who does not hold it leaves in place (OC-16).
    let could = Permission {
        role,
        scopes: client.ceiling.closed(),
        all_of_role: false,
    };
    may_mint(caller, could)
}

/// Returns the scopes of a client that the account which it is cannot use now; none for callers who may not read accounts.
pub fn idle(ctx: &mut OperationContext<'_>, client: &RegisteredClient) -> Result<Vec<&'static str>> {
    let Some(id) = &client.service_account_id else {
        return Ok(Vec::new());
    };
    if !ctx.actor().permission.scopes.has("service_accounts:read") {
        return Ok(Vec::new());
    }
    let org = ctx.org();
    let account = service_accounts::principal(&mut ctx.tx(), org, id)?;
    let can = account.map_or_else(ScopeSet::default, |account| {
        Permission::effective(account.role, account.scopes, None).scopes
    });
    Ok(client.scopes.names().filter(|name| !can.has(name)).collect())
}

/// As [`may_be`], of a client that is there.
pub fn may_be_known(ctx: &mut OperationContext<'_>, id: &str) -> Result<()> {
    let client = get(ctx, &ClientId::from_store(id.to_owned()))?;
    may_be(ctx, &client)
}

/// Forgets that a restore held a client back, when somebody blocks or unblocks it by its name.
pub fn forget_held(ctx: &mut OperationContext<'_>, id: &ClientId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&FORGET_HELD, params![org, id.as_str()])
}

/// Writes the ceilings of clients that were made by a program that knew none: their scopes, and of one that is an account
/// what that may do now. The log names each client whose scopes are wider than that.
pub fn write_ceilings(conn: &mut Conn) -> Result<()> {
    let written = conn.read(|tx| {
        let waiting = tx.query(&WITHOUT_CEILING, params![], read)?;
        let mut written = Vec::new();
        for client in waiting {
            let ceiling = ceiling_of(tx, &client)?;
            warn_of_wider(&client, ceiling);
            written.push((client.organization_id, client.id, ceiling));
        }
        Ok(written)
    })?;
    if written.is_empty() {
        return Ok(());
    }
    let calls = written.into_iter().map(|(organization, id, ceiling)| Call {
        statement: &WRITE_CEILING,
        params: vec![
            Param::from(organization),
            Param::from(id.as_str().to_owned()),
            Param::from(super::super::store::joined(ceiling)),
        ],
    });
    let calls: Vec<Call<'_>> = calls.collect();
    conn.change(&calls)
}

fn ceiling_of(tx: &mut Tx<'_>, client: &RegisteredClient) -> Result<ScopeSet> {
    let Some(id) = &client.service_account_id else {
        return Ok(client.scopes.closed());
    };
    let account = service_accounts::principal(tx, &client.organization_id, id)?;
    Ok(account.map_or_else(ScopeSet::default, |account| {
        Permission::effective(account.role, account.scopes, Some(client.scopes)).scopes
    }))
}

fn warn_of_wider(client: &RegisteredClient, ceiling: ScopeSet) {
    let beyond: Vec<&str> = client.scopes.names().filter(|name| !ceiling.has(name)).collect();
    if beyond.is_empty() {
        return;
    }
    tracing::warn!(
        organization = client.organization_id,
        client = client.id.as_str(),
        beyond = beyond.join(" "),
        "an MCP client was registered with more scopes than its account has; the others are not granted until somebody \
         who holds them gives them to the client again"
    );
}

/// Returns a sentence for every client whose scopes are wider than what it can be granted.
pub fn wider_than_granted(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let all = tx.query(&EVERY, params![], read)?;
    let wider = all.into_iter().filter(|client| {
        let has = client.ceiling.closed();
        !has.covers(client.scopes.closed())
    });
    Ok(wider
        .map(|client| {
            format!(
                "the MCP client {} of {} has scopes that it is not granted; who holds them gives them to it again, or takes \
                 them from it",
                client.id.as_str(),
                client.organization_id
            )
        })
        .collect())
}

fn lists(client: &RegisteredClient) -> Result<[String; 2]> {
    let text = |list: &Vec<String>| serde_json::to_string(list).map_err(Error::internal);
    Ok([text(&client.redirect_uris)?, text(&client.grant_types)?])
}

fn keys(client: &RegisteredClient) -> Result<Option<String>> {
    let keys = client.jwks.as_ref().map(serde_json::to_string);
    keys.transpose().map_err(Error::internal)
}

/// Stores a new client.
///
/// Errors: `AlreadyExists` when the name is taken.
pub fn insert(ctx: &mut OperationContext<'_>, client: &RegisteredClient) -> Result<()> {
    let (org, [redirects, grants]) = (ctx.org(), lists(client)?);
    let inserted = ctx.execute(
        &INSERT,
        params![
            org,
            client.id.as_str(),
            client.name.as_str(),
            name_key(&client.name),
            redirects,
            grants,
            client.auth_method.as_str(),
            keys(client)?,
            client.jwks_uri.as_deref(),
            super::super::store::joined(client.scopes),
            client.service_account_id.as_deref(),
            client.created_at,
            super::super::store::joined(client.ceiling),
        ],
    )?;
    if inserted == 1 { Ok(()) } else { Err(name_taken()) }
}

fn name_taken() -> Error {
    Error::new(Code::AlreadyExists, "an MCP client of this name exists already")
}

/// Stores what changed of a client.
///
/// Errors: `AlreadyExists` when a new name is taken.
pub fn save(ctx: &mut OperationContext<'_>, client: &RegisteredClient) -> Result<()> {
    let (org, id, key) = (ctx.org(), client.id.as_str(), name_key(&client.name));
    let taken = ctx.query_opt(&NAME_TAKEN, params![org, key.as_str(), id], |_| Ok(()))?;
    if taken.is_some() {
        return Err(name_taken());
    }
    let [redirects, grants] = lists(client)?;
    ctx.queue(
        &SAVE,
        params![
            org,
            id,
            client.name.as_str(),
            key,
            redirects,
            grants,
            keys(client)?,
            client.jwks_uri.as_deref(),
            super::super::store::joined(client.scopes),
            client.blocked_at,
            client.updated_at,
            super::super::store::joined(client.ceiling),
        ],
    )
}

/// Removes a client.
pub fn delete(ctx: &mut OperationContext<'_>, id: &ClientId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&DELETE, params![org, id.as_str()])
}

/// Returns the ids of the clients that act as an account.
pub fn ids_of_account(tx: &mut Tx<'_>, org: &str, account: &str) -> Result<Vec<String>> {
    tx.query(&OF_ACCOUNT, params![org, account], |row| row.get(0))
}
