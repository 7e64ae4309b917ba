//! Creates a service account and its first token.

use super::model::{
    AccountView, MIN_LIFETIME_SECS, ScopeList, ServiceAccount, ServiceAccountId, Status, Token, TokenId,
    lifetime_secs, view,
};
use super::store;
use crate::areas::settings;
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::auth::{Permission, ScopeSet, may_mint};
use provost_kernel::cx::Revealed;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{Bounded, Description, Name};
use provost_kernel::token::{self, TokenKind};
use provost_kernel::{Cx, Result, Secret, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The life of a token as a client may ask for it. Units: seconds (D5.4).
pub type LifetimeSecs = Bounded<MIN_LIFETIME_SECS, 31_536_000>;

/// See [`Operation::META`].
pub struct CreateServiceAccount;

/// What an account is made of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("oneOf" = [
    { "required": ["scopes"], "properties": { "scopes": { "type": "array" }, "allOfRole": { "const": false } } },
    { "required": ["allOfRole"], "properties": { "scopes": { "type": "null" }, "allOfRole": { "const": true } } },
]))]
pub struct CreateBody {
    /// Unique in the organization, upper and lower case alike.
    name: Name,
    /// What the account is for.
    description: Option<Description>,
    /// What it may do at most.
    permission_role: Role,
    /// What it may do; either this or `allOfRole`.
    scopes: Option<ScopeList>,
    /// It may do everything that its role can, scopes of later areas included.
    #[serde(default)]
    all_of_role: bool,
    /// Who answers for it.
    owner_console_user_id: Option<Name>,
    /// The name of the first token.
    token_name: Option<Name>,
    /// The life of the first token, in seconds.
    expires_in_seconds: Option<LifetimeSecs>,
}

/// A newly issued token (specification §2.4). The value stands here and nowhere else.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct IssuedToken {
    id: TokenId,
    name: String,
    token: Revealed,
    token_prefix: String,
    expires_at: Timestamp,
}

/// An account and its new token.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct AccountAndToken {
    /// The account after the change.
    pub service_account: AccountView,
    /// The token, shown once.
    pub token: IssuedToken,
}

impl Operation for CreateServiceAccount {
    const META: Meta = Meta::write(
        "createHeadlessServiceAccount",
        Method::Post,
        "/service-accounts",
        "service_accounts",
    )
    .access("service_accounts:write", &[Admin])
    .command("service-accounts", "create")
    .status(201)
    .reveals_secret()
    .says(
        "Create a service account",
        "The answer shows the first token once. Nobody creates an account that could do more than they can.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = AccountAndToken;

    fn validate(input: &Input<Self>) -> Result<()> {
        match (&input.body.scopes, input.body.all_of_role) {
            (Some(_), true) => Err(Error::invalid(
                "/allOfRole",
                "cannot be given together with scopes",
            )),
            (None, false) => Err(Error::invalid("/scopes", "is required, unless allOfRole is true")),
            _ => Ok(()),
        }
    }

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<AccountAndToken> {
        let body = &input.body;
        let account = ServiceAccount {
            id: cx.new_id(),
            organization_id: cx.org().to_owned(),
            name: body.name.as_str().to_owned(),
            description: body.description.as_ref().map(|d| d.as_str().to_owned()),
            role: body.permission_role,
            scopes: body.scopes.as_ref().map(ScopeList::set),
            status: Status::Active,
            owner_console_user_id: body.owner_console_user_id.as_ref().map(|o| o.as_str().to_owned()),
            created_at: cx.now(),
            updated_at: cx.now(),
            disabled_at: None,
        };
        cx.target("service_account", account.id.as_str());
        may_mint(cx.actor().permission, body.permission())?;
        let settings = settings::load(cx)?;
        let asked = body.expires_in_seconds.map(Bounded::get);
        let lifetime = lifetime_secs(asked, None, settings.tokens.max_lifetime_seconds)?;
        store::keep_name_free(cx, &account.name, account.id.as_str())?;
        store::insert(cx, &account)?;
        let name = body.token_name.as_ref().map_or("default", |n| n.as_str());
        let (token, issued) = issue(
            cx,
            &account.id,
            name,
            account.scopes,
            lifetime,
            settings.tokens.secret_replay_seconds,
        )?;
        cx.header(
            "location",
            format!("{}/service-accounts/{}", base_of(cx), account.id),
        );
        cx.change("/name", serde_json::Value::Null, account.name.as_str());
        cx.change("/permissionRole", serde_json::Value::Null, account.role.as_str());
        cx.emit(
            "service_account.created",
            json!({ "serviceAccountId": account.id }),
        );
        let service_account = view(account, vec![token], cx.now());
        Ok(AccountAndToken {
            service_account,
            token: issued,
        })
    }

    fn recheck(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<()> {
        may_mint(cx.actor().permission, input.body.permission())
    }
}

impl CreateBody {
    /// Returns what the account will be able to do.
    fn permission(&self) -> Permission {
        Permission::effective(
            self.permission_role,
            self.scopes.as_ref().map(ScopeList::set),
            None,
        )
    }
}

fn base_of(cx: &Cx<'_>) -> String {
    format!("/api/headless/v1/organizations/{}", cx.org())
}

/// Mints and stores a token; its value goes into the answer alone (SA-2).
pub fn issue(
    cx: &mut Cx<'_>,
    account: &ServiceAccountId,
    name: &str,
    scopes: Option<ScopeSet>,
    lifetime_secs: i64,
    replay_secs: i64,
) -> Result<(Token, IssuedToken)> {
    let (token, lookup_id, secret) = mint(cx, name, scopes, lifetime_secs);
    let mac = cx.kernel().keys.token_mac_current(secret.expose());
    store::insert_token(cx, account, &token, &lookup_id, mac, replay_secs > 0)?;
    // Nobody is helped by the secret of a token that has expired (D4.8).
    let replay_secs = replay_secs.min(lifetime_secs);
    let issued = IssuedToken {
        id: token.id.clone(),
        name: token.name.clone(),
        token: cx.reveal(token.id.as_str(), secret, replay_secs),
        token_prefix: token.token_prefix.clone(),
        expires_at: token.expires_at,
    };
    Ok((token, issued))
}

fn mint(
    cx: &mut Cx<'_>,
    name: &str,
    scopes: Option<ScopeSet>,
    lifetime_secs: i64,
) -> (Token, String, Secret<String>) {
    let minted = token::mint(TokenKind::ServiceAccount, cx.rng());
    let now = cx.now();
    let token = Token {
        id: cx.new_id(),
        name: name.to_owned(),
        token_prefix: minted.prefix,
        scopes,
        created_at: now,
        updated_at: now,
        expires_at: now.plus_secs(lifetime_secs),
        last_used_at: None,
        revoked_at: None,
        revoke_reason: None,
        superseded_by_id: None,
    };
    (token, minted.lookup_id, minted.token)
}

/// Makes an admin account of all its role's scopes and returns its id and token. For the first account of an
/// organization and for recovery; both run on the operator's machine, which holds the keys.
pub fn issue_admin(cx: &mut Cx<'_>, name: &str) -> Result<(ServiceAccountId, Secret<String>)> {
    let account = ServiceAccount {
        id: cx.new_id(),
        organization_id: cx.org().to_owned(),
        name: name.to_owned(),
        description: None,
        role: Admin,
        scopes: None,
        status: Status::Active,
        owner_console_user_id: None,
        created_at: cx.now(),
        updated_at: cx.now(),
        disabled_at: None,
    };
    cx.target("service_account", account.id.as_str());
    let max = settings::load(cx)?.tokens.max_lifetime_seconds;
    store::insert(cx, &account)?;
    let (token, lookup_id, secret) = mint(cx, "default", None, lifetime_secs(None, None, max)?);
    let mac = cx.kernel().keys.token_mac_current(secret.expose());
    store::insert_token(cx, &account.id, &token, &lookup_id, mac, false)?;
    cx.emit(
        "service_account.created",
        json!({ "serviceAccountId": account.id }),
    );
    Ok((account.id, secret))
}
