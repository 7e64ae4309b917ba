//! `POST …/workload-trusts`

use super::model::{
    LifetimeSecs, MAX_LIFETIME_SECS, OneTrust, TOKEN_AGE_SECS, TokenAgeSecs, WorkloadTrust, check_audience,
    check_issuer, check_keys, granted,
};
use super::rules::{ClaimInputs, ClaimRule, Kind, check};
use super::{TRUSTING, fences, store};
use crate::jwks::Jwks;
use crate::resources::definition::SingleLine;
use provost_areas_identity::service_accounts::{self, ScopeList};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{IntegerBetween, Name};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub struct CreateWorkloadTrust;

/// What a trust is made of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// Unique in the organization.
    name: Name,
    /// Whose tokens are meant.
    kind: Kind,
    /// Exactly what `iss` of the tokens says.
    issuer: SingleLine<1, 512>,
    /// Exactly what `aud` says; this server's URL when absent.
    audience: Option<SingleLine<1, 512>>,
    /// The account that a workload acts as.
    service_account_id: Name,
    /// What a token must say, all of it.
    claims: ClaimInputs,
    /// `true`: every repository or project of the owner that the rules name is meant.
    #[serde(default)]
    whole_owner: bool,
    /// The most that a session can do; when absent, what the account can do now.
    scopes: Option<ScopeList>,
    /// The life of a session, in seconds; 900 when absent.
    lifetime_seconds: Option<LifetimeSecs>,
    /// How long ago a token may have been issued, in seconds; 3600 when absent.
    max_token_age_seconds: Option<TokenAgeSecs>,
    /// The issuer's public keys, where this server cannot fetch them.
    jwks: Option<Jwks>,
}

/// Returns the names of keys; a key without one has none.
fn key_ids(jwks: &Jwks) -> Vec<Option<&str>> {
    let keys = jwks.0.get("keys").and_then(Value::as_array);
    let keys = keys.map(Vec::as_slice).unwrap_or_default();
    keys.iter().map(|key| key.get("kid")?.as_str()).collect()
}

impl Operation for CreateWorkloadTrust {
    const META: Meta = Meta::write(
        "createHeadlessWorkloadTrust",
        Method::Post,
        "/workload-trusts",
        "workload_trusts",
    )
    .rule(TRUSTING)
    .command("workload-trusts", "create")
    .example(
        r#"{"name": "deploy of the web shop", "kind": "github",
            "issuer": "https://token.actions.githubusercontent.com",
            "serviceAccountId": "sa_01kaf9q2m4x7t8v3c5d6e0g1h2",
            "claims": [{"claim": "repository_id", "value": "74"},
                       {"claim": "sub", "value": "repo:acme/shop:environment:production"}],
            "scopes": ["policies:read"]}"#,
    )
    .status(201)
    .answers(&["Location"])
    .of_two(&["rights"])
    .says(
        "Trust a workload's tokens",
        "A CI job or pod exchanges its token for a session of the account, at most 15 minutes long. Nobody writes a trust of \
         an account that could do more than they can.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = OneTrust;

    /// Who the account is that it is a door to.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        service_accounts::shown_to_voters(ctx, input.body.service_account_id.as_str())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneTrust> {
        let body = &input.body;
        let account_id = body.service_account_id.as_str();
        let mut trust = WorkloadTrust {
            id: ctx.new_id(),
            organization_id: ctx.org().to_owned(),
            name: body.name.as_str().to_owned(),
            kind: body.kind,
            issuer: body.issuer.as_str().to_owned(),
            audience: body.audience.as_ref().map(|text| text.as_str().to_owned()),
            service_account_id: account_id.to_owned(),
            claims: ClaimRule::of(&body.claims),
            scopes: provost_kernel::auth::ScopeSet::default(),
            lifetime_secs: body
                .lifetime_seconds
                .map_or(MAX_LIFETIME_SECS, IntegerBetween::get),
            max_token_age_secs: body
                .max_token_age_seconds
                .map_or(TOKEN_AGE_SECS, IntegerBetween::get),
            jwks: body.jwks.clone(),
            suspended_at: None,
            suspended_reason: None,
            tokens_from: None,
            created_at: ctx.now(),
            updated_at: ctx.now(),
        };
        ctx.target(&fences::TRUST, trust.id.as_str());
        check_issuer(&trust.issuer, &ctx.services().settings.public_url)?;
        check_audience(trust.audience.as_deref())?;
        check_keys(trust.jwks.as_ref())?;
        check(trust.kind, &trust.claims, body.whole_owner)?;
        let account = store::held_account(ctx, account_id)?;
        trust.scopes = granted(&account, body.scopes.as_ref())?;
        store::insert(ctx, &trust)?;
        let base = format!("/api/headless/v1/organizations/{}", ctx.org());
        ctx.header(
            "location",
            format!("{base}/workload-trusts/{}", trust.id.as_str()),
        );
        ctx.change("/name", Value::Null, trust.name.as_str());
        ctx.change("/kind", Value::Null, trust.kind.as_str());
        ctx.change("/issuer", Value::Null, trust.issuer.as_str());
        ctx.change("/audience", Value::Null, trust.audience.clone());
        ctx.change("/serviceAccountId", Value::Null, account_id);
        ctx.change("/claims", Value::Null, json!(trust.claims));
        ctx.change("/scopes", Value::Null, json!(trust.scopes.to_list()));
        ctx.change("/lifetimeSeconds", Value::Null, trust.lifetime_secs);
        ctx.change("/maxTokenAgeSeconds", Value::Null, trust.max_token_age_secs);
        if let Some(jwks) = &trust.jwks {
            // Which keys they are is enough; the whole of them can be long.
            ctx.change("/keyIds", Value::Null, json!(key_ids(jwks)));
        }
        ctx.emit(&fences::CREATED, &fences::OfTrust::of(&trust));
        Ok(trust.into())
    }
}
