//! Creates a service account and its first token.
//!
//! INVARIANT SA-9: the owner of an account is a user of the organization when it is named, and shown as orphaned when
//! that user is suspended or gone.
//! Keeps SA-2.

use super::model::{
    AccountView, MIN_LIFETIME_SECS, ScopeList, ServiceAccount, ServiceAccountId, Status, Token, TokenId,
    Warning, lifetime_secs, may_list, view,
};
use super::{FORM, store};
use crate::directory;
use crate::service_accounts::fences;
use provost_areas_platform::settings;
use provost_kernel::auth::Role::{self, Admin};
use provost_kernel::auth::{ScopeSet, may_mint};
use provost_kernel::context::SecretPlaceholder;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{Description, IntegerBetween, Name};
use provost_kernel::token;
use provost_kernel::{OperationContext, Result, Secret, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The life of a token as a client may ask for it. Units: seconds (D5.4).
pub type LifetimeSecs = IntegerBetween<MIN_LIFETIME_SECS, 31_536_000>;

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
    /// What the first token may do, if that is to be less than the account; absent: what the account may do, always.
    token_scopes: Option<ScopeList>,
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
    token: SecretPlaceholder,
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
    /// What does not act as it was written; absent when everything does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<Warning>,
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
    .example(
        r#"{"name": "deploy", "permissionRole": "operator", "scopes": ["policies:read"],
           "expiresInSeconds": 2592000}"#,
    )
    .status(201)
    .answers(&["Location"])
    .reveals_secret()
    .of_two(&["rights"])
    .says(
        "Create a service account",
        "The answer shows the first token once. Nobody creates an account that could do more than they can. The \
         token can do what its account can, also what the account gains later, unless tokenScopes narrows it.",
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

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AccountAndToken> {
        let body = &input.body;
        let mut account = ServiceAccount {
            id: ctx.new_id(),
            organization_id: ctx.org().to_owned(),
            name: body.name.as_str().to_owned(),
            description: body.description.as_ref().map(|d| d.as_str().to_owned()),
            role: body.permission_role,
            scopes: body.scopes.as_ref().map(ScopeList::set),
            status: Status::Active,
            owner_console_user_id: body.owner_console_user_id.as_ref().map(|o| o.as_str().to_owned()),
            is_orphaned: false,
            created_at: ctx.now(),
            updated_at: ctx.now(),
            disabled_at: None,
            disabled_reason: None,
            former: None,
        };
        ctx.target(&fences::ACCOUNT, account.id.as_str());
        may_mint(ctx.actor().permission, account.permission(None))?;
        may_list(ctx.actor().permission, account.scopes, None)?;
        let token_scopes = narrower(&account, body.token_scopes.as_ref(), "/tokenScopes")?;
        account.is_orphaned = is_orphaned_by(ctx, account.owner_console_user_id.as_deref())?;
        let settings = settings::load(ctx)?;
        let asked = body.expires_in_seconds.map(IntegerBetween::get);
        let lifetime = lifetime_secs(asked, None, settings.tokens.max_lifetime_seconds)?;
        store::keep_name_free(ctx, &account.name, account.id.as_str())?;
        store::insert(ctx, &account)?;
        let name = body.token_name.as_ref().map_or("default", |n| n.as_str());
        let wanted = NewToken {
            name,
            scopes: token_scopes,
            lifetime_secs: lifetime,
            lifetime_ceiling_secs: lifetime,
        };
        let (token, issued) = issue(ctx, &account.id, &wanted, settings.tokens.secret_replay_seconds)?;
        ctx.header(
            "location",
            format!("{}/service-accounts/{}", base_of(ctx), account.id),
        );
        ctx.change("/name", serde_json::Value::Null, account.name.as_str());
        ctx.change("/permissionRole", serde_json::Value::Null, account.role.as_str());
        ctx.emit(&fences::CREATED, &fences::OfAccount::of(&account.id));
        let warnings = account.warnings();
        let service_account = view(account, vec![token], ctx.now());
        Ok(AccountAndToken {
            service_account,
            token: issued,
            warnings,
        })
    }

    fn recheck(ctx: &mut OperationContext<'_>, _: &Input<Self>) -> Result<()> {
        // What the account may do now, and not what was asked for then: somebody may have given it more since.
        let Some(id) = ctx.target_id().map(str::to_owned) else {
            return Ok(());
        };
        match store::get(ctx, &ServiceAccountId::from_store(id)) {
            Ok((account, _)) => account.may_be_held_by(ctx.actor().permission),
            // What was deleted has no token that works, and its secret is erased.
            Err(error) if error.code() == Code::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Says whether an owner is suspended, and so answers for nothing now.
///
/// Errors: `InvalidDefinition` for somebody whom the directory does not know.
pub fn is_orphaned_by(ctx: &mut OperationContext<'_>, owner: Option<&str>) -> Result<bool> {
    let Some(owner) = owner else { return Ok(false) };
    let org = ctx.org();
    if let Some(user) = directory::principal(&mut ctx.tx(), org, owner)? {
        return Ok(!user.enabled);
    }
    let pointer = "/ownerConsoleUserId";
    let message = "is no user of the organization; the directory lists their ids";
    Err(Error::unfit(pointer, message))
}

fn base_of(ctx: &OperationContext<'_>) -> String {
    format!("/api/headless/v1/organizations/{}", ctx.org())
}

/// Returns the list that a token is narrowed to, if one was asked for.
///
/// Errors: `InvalidDefinition` for a scope that the account lacks: the list would promise what the token cannot do.
pub fn narrower(
    account: &ServiceAccount,
    asked: Option<&ScopeList>,
    pointer: &'static str,
) -> Result<Option<ScopeSet>> {
    let Some(asked) = asked.map(ScopeList::set) else {
        return Ok(None);
    };
    let held = account.permission(None).scopes;
    if held.covers(asked) {
        return Ok(Some(asked));
    }
    let lacking: Vec<&str> = asked.names().filter(|name| !held.has(name)).collect();
    let message = format!(
        "the account cannot do {}; widen the account first",
        lacking.join(", ")
    );
    Err(Error::unfit(pointer, message))
}

/// What a token is made of.
pub struct NewToken<'a> {
    /// Its name.
    pub name: &'a str,
    /// The narrower list that somebody asked for; `None` is what its account has.
    pub scopes: Option<ScopeSet>,
    /// Its life. Units: seconds.
    pub lifetime_secs: i64,
    /// The longest life that it may give its successor by itself. Units: seconds.
    pub lifetime_ceiling_secs: i64,
}

/// Mints and stores a token; its value goes into the answer alone (SA-2).
pub fn issue(
    ctx: &mut OperationContext<'_>,
    account: &ServiceAccountId,
    wanted: &NewToken<'_>,
    replay_secs: i64,
) -> Result<(Token, IssuedToken)> {
    let (token, lookup_id, secret) = mint(ctx, wanted);
    let (pepper, mac) = ctx.services().keys.token_mac_current(secret.expose());
    let mac = (pepper.as_str(), mac);
    store::insert_token(ctx, account, &token, &lookup_id, mac, replay_secs > 0)?;
    // Nobody is helped by the secret of a token that has expired (D4.8).
    let replay_secs = replay_secs.min(wanted.lifetime_secs);
    let issued = IssuedToken {
        id: token.id.clone(),
        name: token.name.clone(),
        token: ctx.reveal(token.id.as_str(), secret, replay_secs),
        token_prefix: token.token_prefix.clone(),
        expires_at: token.expires_at,
    };
    Ok((token, issued))
}

fn mint(ctx: &mut OperationContext<'_>, wanted: &NewToken<'_>) -> (Token, String, Secret<String>) {
    let minted = token::mint(FORM, ctx.rng());
    let now = ctx.now();
    let token = Token {
        id: ctx.new_id(),
        name: wanted.name.to_owned(),
        token_prefix: minted.prefix,
        scopes: wanted.scopes,
        lifetime_ceiling_secs: Some(wanted.lifetime_ceiling_secs),
        created_at: now,
        updated_at: now,
        expires_at: now.plus_secs(wanted.lifetime_secs),
        last_used_at: None,
        revoked_at: None,
        revoke_reason: None,
        superseded_by_id: None,
    };
    (token, minted.lookup_id, minted.token)
}

/// Makes an admin account of all its role's scopes and returns its id and token. For the first account of an
/// organization and for recovery; both run on the operator's machine, which holds the keys.
pub fn issue_admin(ctx: &mut OperationContext<'_>, name: &str) -> Result<(ServiceAccountId, Secret<String>)> {
    let account = ServiceAccount {
        id: ctx.new_id(),
        organization_id: ctx.org().to_owned(),
        name: name.to_owned(),
        description: None,
        role: Admin,
        scopes: None,
        status: Status::Active,
        owner_console_user_id: None,
        is_orphaned: false,
        created_at: ctx.now(),
        updated_at: ctx.now(),
        disabled_at: None,
        disabled_reason: None,
        former: None,
    };
    ctx.target(&fences::ACCOUNT, account.id.as_str());
    let max = settings::load(ctx)?.tokens.max_lifetime_seconds;
    store::insert(ctx, &account)?;
    let lifetime = lifetime_secs(None, None, max)?;
    let wanted = NewToken {
        name: "default",
        scopes: None,
        lifetime_secs: lifetime,
        lifetime_ceiling_secs: lifetime,
    };
    let (token, lookup_id, secret) = mint(ctx, &wanted);
    let (pepper, mac) = ctx.services().keys.token_mac_current(secret.expose());
    let mac = (pepper.as_str(), mac);
    store::insert_token(ctx, &account.id, &token, &lookup_id, mac, false)?;
    ctx.emit(&fences::CREATED, &fences::OfAccount::of(&account.id));
    Ok((account.id, secret))
}
