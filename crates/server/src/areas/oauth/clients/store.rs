//! All SQL of registered clients.

use super::super::grants::Client;
use super::model::{AuthMethod, ClientId, Jwks, Registered};
use crate::areas::service_accounts;
use provost_kernel::auth::{OrganizationId, Permission, ScopeSet, may_mint};
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::text::name_key;
use provost_kernel::{Cx, params, statements};
use provost_oauth::client_document::Authentication;

statements! {
    /// One client.
    GET = "SELECT id, organization_id, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, blocked_at, created_at, updated_at FROM oauth_clients WHERE organization_id = ?1 AND id = ?2";
    /// The client of an id, in whatever organization.
    RESOLVE = unscoped("a client's id is unique everywhere and says whose the client is") "SELECT id, organization_id, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, blocked_at, created_at, updated_at FROM oauth_clients WHERE id = ?1";
    /// A page of clients, the newest first.
    LIST = "SELECT id, organization_id, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, blocked_at, created_at, updated_at FROM oauth_clients WHERE organization_id = ?1 ORDER BY created_at DESC, id DESC LIMIT ?2 OFFSET ?3";
    /// How many there are.
    COUNT = "SELECT COUNT(*) FROM oauth_clients WHERE organization_id = ?1";
    /// Makes a client, unless its name is taken.
    INSERT = "INSERT INTO oauth_clients (organization_id, id, name, name_key, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, service_account_id, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12) ON CONFLICT DO NOTHING";
    /// Says whether another client has a name.
    NAME_TAKEN = "SELECT id FROM oauth_clients WHERE organization_id = ?1 AND name_key = ?2 AND id <> ?3";
    /// Replaces what can change of a client.
    SAVE = "UPDATE oauth_clients SET name = ?3, name_key = ?4, redirect_uris = ?5, grant_types = ?6, jwks = ?7, jwks_uri = ?8, scopes = ?9, blocked_at = ?10, updated_at = ?11 WHERE organization_id = ?1 AND id = ?2";
    /// Removes a client.
    DELETE = "DELETE FROM oauth_clients WHERE organization_id = ?1 AND id = ?2";
}

fn read(row: &Row<'_>) -> Result<Registered> {
    let list = |text: &str| serde_json::from_str::<Vec<String>>(text).map_err(Error::internal);
    let method = AuthMethod::parse(row.str(5)?);
    let jwks = row.get::<Option<String>>(6)?;
    let jwks = jwks.map(|text| serde_json::from_str::<Jwks>(&text).map_err(Error::internal));
    Ok(Registered {
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
    })
}

/// Returns a client.
///
/// Errors: `NotFound` for an unknown, a deleted and another organization's client alike.
pub fn get(cx: &mut Cx<'_>, id: &ClientId) -> Result<Registered> {
    let org = cx.org();
    cx.query_opt(&GET, params![org, id.as_str()], read)?
        .ok_or_else(|| Error::not_found("MCP client"))
}

/// Returns the client of an id as the token endpoint needs it; a blocked one is none.
pub fn resolve(tx: &mut Tx<'_>, id: &str) -> Result<Option<Client>> {
    let found = tx.query_opt(&RESOLVE, params![id], read)?;
    let Some(client) = found.filter(|client| client.blocked_at.is_none()) else {
        return Ok(None);
    };
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
        scopes: Some(client.scopes),
        authentication,
        service_account_id: client.service_account_id,
    }))
}

/// Returns a page of clients, the newest first, and how many there are.
pub fn list(cx: &mut Cx<'_>, limit: i64, offset: i64) -> Result<(Vec<Registered>, i64)> {
    let org = cx.org();
    let found = cx.query(&LIST, params![org, limit, offset], read)?;
    let total = cx.query_opt(&COUNT, params![org], |row| row.get::<i64>(0))?;
    Ok((found, total.unwrap_or(0)))
}

/// Refuses a client that is an account which can do more than the caller may (D3.3): who registers its keys can be it.
///
/// Errors: `NotFound` for an account that is none, `EscalationForbidden`.
pub fn may_be(cx: &mut Cx<'_>, client: &Registered) -> Result<()> {
    let Some(id) = &client.service_account_id else {
        return Ok(());
    };
    let org = cx.org();
    let account = service_accounts::principal(&mut cx.tx(), org, id)?;
    let account = account.ok_or_else(|| Error::not_found("service account"))?;
    let could = Permission::effective(account.role, account.scopes, Some(client.scopes));
    may_mint(cx.actor().permission, could)
}

fn lists(client: &Registered) -> Result<[String; 2]> {
    let text = |list: &Vec<String>| serde_json::to_string(list).map_err(Error::internal);
    Ok([text(&client.redirect_uris)?, text(&client.grant_types)?])
}

fn keys(client: &Registered) -> Result<Option<String>> {
    let keys = client.jwks.as_ref().map(serde_json::to_string);
    keys.transpose().map_err(Error::internal)
}

/// Stores a new client.
///
/// Errors: `AlreadyExists` when the name is taken.
pub fn insert(cx: &mut Cx<'_>, client: &Registered) -> Result<()> {
    let (org, [redirects, grants]) = (cx.org(), lists(client)?);
    let inserted = cx.execute(
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
pub fn save(cx: &mut Cx<'_>, client: &Registered) -> Result<()> {
    let (org, id, key) = (cx.org(), client.id.as_str(), name_key(&client.name));
    let taken = cx.query_opt(&NAME_TAKEN, params![org, key.as_str(), id], |_| Ok(()))?;
    if taken.is_some() {
        return Err(name_taken());
    }
    let [redirects, grants] = lists(client)?;
    cx.queue(
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
        ],
    )
}

/// Removes a client.
pub fn delete(cx: &mut Cx<'_>, id: &ClientId) -> Result<()> {
    let org = cx.org();
    cx.queue(&DELETE, params![org, id.as_str()])
}
