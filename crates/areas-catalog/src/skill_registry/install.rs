//! Notes an install of an item for the caller and issues its gateway token (D10.6).
//!
//! Keeps SK-5, SK-6.

use super::inputs::{ClientName, LocalPath, Shown};
use super::install_store::{self, NewToken};
use super::model::{
    GATEWAY_LIFETIME_SECS, GatewayTokenId, Install, InstallPlace, InstallStatus, InstallView, Item,
    MAX_PLACES, VersionSummary, VersionView,
};
use super::reference::ItemPath;
use super::{find, store};
use crate::skill_registry::fences;
use provost_areas_platform::settings;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::context::SecretPlaceholder;
use provost_kernel::dsse::Envelope;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::token;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub struct InstallSkillRegistryItem;

/// Where it is installed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct InstallBody {
    /// The local client that will use it.
    client: ClientName,
    /// That client's version.
    client_version: Option<Shown>,
    /// A name of the machine that stays the same.
    device: Option<Shown>,
    /// The folder on that machine.
    path: Option<LocalPath>,
}

/// The receipt.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct InstallReceipt {
    install: InstallView,
    version: VersionView,
    gateway_token: IssuedGatewayToken,
    /// The signed manifest of the version.
    envelope: Envelope,
}

/// A gateway token, shown once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuedGatewayToken {
    id: GatewayTokenId,
    token: SecretPlaceholder,
    token_prefix: String,
    expires_at: Timestamp,
}

impl Operation for InstallSkillRegistryItem {
    const META: Meta = Meta::write(
        "installHeadlessSkillRegistryItem",
        Method::Post,
        "/skill-registry/{itemRef}/cli-install",
        "registry",
    )
    .access("registry:install", &[Admin, Operator, Auditor, Viewer])
    .command("skills", "register-install")
    .example(
        r#"{"client": "claude-code", "device": "laptop-17", "path": "/home/ada/.claude/skills/reading"}"#,
    )
    .status(201)
    .reveals_secret()
    .says(
        "Install a skill for the caller",
        "Notes the install and answers a gateway token, shown once, that fetches the content and the manifest of \
         this item and nothing else. Installing again at the same place keeps the install, sets its version and \
         replaces its token. The token ends when the session or token that installed it is revoked, not when that expires or is rotated. A retry with the same idempotency key shows the token again until it was used, at \
         most 24 hours.",
    );
    type Path = ItemPath;
    type Query = Empty;
    type Body = InstallBody;
    type Output = InstallReceipt;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<InstallReceipt> {
        let (item, known) = find::installable(ctx, &input.path.item_ref)?;
        let version = VersionView {
            manifest: None,
            ..store::version_of(ctx, &item.id, &known.version.to_string())?
        };
        let envelope = store::envelope(ctx, &item.id, &version.version)?;
        let install = note(ctx, &item, &known, &input.body)?;
        let gateway_token = issue(ctx, &install)?;
        ctx.change("/installs", Value::Null, install.id.as_str());
        ctx.change("/gatewayTokens", Value::Null, gateway_token.id.as_str());
        ctx.emit(
            &fences::INSTALLED,
            &fences::NewInstall {
                item_id: item.id.clone(),
                version: version.version.clone(),
                install_id: install.id.clone(),
                principal_id: install.principal_id.clone(),
                client: install.place.client.clone(),
            },
        );
        Ok(InstallReceipt {
            install: install.into(),
            version,
            gateway_token,
            envelope,
        })
    }
}

/// Makes the install, or moves the one at this place to the version (SK-5).
fn note(
    ctx: &mut OperationContext<'_>,
    item: &Item,
    known: &VersionSummary,
    body: &InstallBody,
) -> Result<Install> {
    let place = InstallPlace {
        client: body.client.get().clone(),
        device: body.device.as_ref().map(|d| d.get().clone()),
        path: body.path.as_ref().map(|p| p.get().clone()),
    };
    let client_version = body.client_version.as_ref().map(|v| v.get().clone());
    let there = install_store::in_use(ctx, &item.id)?;
    let count = there.len();
    let now = ctx.now();
    if let Some(mut install) = there.into_iter().find(|install| install.place == place) {
        ctx.change("/version", install.version.as_str(), known.version.to_string());
        install.client_version = client_version;
        install.version = known.version.to_string();
        install.digest.clone_from(&known.digest);
        install.updated_at = install.changed_at(now);
        install_store::save(ctx, &install)?;
        install_store::revoke_of_install(ctx, &install, "installed_again")?;
        return Ok(install);
    }
    if count >= MAX_PLACES {
        let message = format!("this skill is installed in {MAX_PLACES} places already; uninstall it first");
        return Err(Error::new(Code::Conflict, message));
    }
    ctx.change("/version", Value::Null, known.version.to_string());
    let install = Install {
        id: ctx.new_id(),
        item_id: item.id.clone(),
        item_ref: item.full_name(),
        principal_id: ctx.actor().id.clone(),
        place,
        client_version,
        version: known.version.to_string(),
        digest: known.digest.clone(),
        status: InstallStatus::Installed,
        installed_at: now,
        updated_at: now,
        uninstalled_at: None,
        removed_at: None,
    };
    install_store::insert(ctx, &install)?;
    Ok(install)
}

/// Mints and stores the token of an install; its value goes into the answer alone (SK-6).
fn issue(ctx: &mut OperationContext<'_>, install: &Install) -> Result<IssuedGatewayToken> {
    let tokens = settings::load(ctx)?.tokens;
    let lifetime = GATEWAY_LIFETIME_SECS.min(tokens.max_lifetime_seconds);
    let replay_secs = tokens.secret_replay_seconds.min(lifetime);
    let minted = token::mint(super::FORM, ctx.rng());
    let id: GatewayTokenId = ctx.new_id();
    let expires_at = ctx.now().plus_secs(lifetime);
    // INVARIANT SK-8: it ends with what it came by.
    let came_by = ctx.actor().token.as_ref().map(|token| token.id.clone());
    let token = NewToken {
        id: &id,
        lookup_id: &minted.lookup_id,
        token_prefix: &minted.prefix,
        mac: ctx.services().keys.token_mac_current(minted.token.expose()),
        expires_at,
        replay_pending: replay_secs > 0,
        came_by: came_by.as_deref(),
    };
    install_store::insert_token(ctx, install, &token)?;
    Ok(IssuedGatewayToken {
        token: ctx.reveal(id.as_str(), minted.token, replay_secs),
        id,
        token_prefix: minted.prefix,
        expires_at,
    })
}
