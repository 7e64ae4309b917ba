//! Removes the caller's installs of an item and revokes its gateway tokens (specification §4.7, D10.2 to D10.7).

use super::find;
use super::install_store;
use super::model::{GatewayTokenId, Install, InstallId, InstallStatus, SkillItemId};
use super::reference::ItemPath;
use crate::skill_registry::fences;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub struct UninstallSkillRegistryItem;

/// What an uninstall came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum UninstallStatus {
    /// Installs were removed.
    Uninstalled,
    /// There was nothing to remove.
    NotInstalled,
}

/// What a local client has to do now (D10.4).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct UninstallAnswer {
    /// The item's `[namespace/]name`.
    item_ref: String,
    item_id: SkillItemId,
    status: UninstallStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    uninstalled_at: Option<Timestamp>,
    /// The installs whose files the clients have to remove.
    installs: Vec<UninstalledInstall>,
    gateway_token: RevokedTokens,
    /// How many installs of the item the caller has left: those of other versions, when a version was named. They
    /// have no gateway token until they are installed again.
    remaining_installs: i64,
}

/// An install that is no more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct UninstalledInstall {
    install_id: InstallId,
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    version: String,
    installed_at: Timestamp,
}

/// What became of the gateway tokens of the caller for the item.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RevokedTokens {
    revoked: bool,
    revoked_count: usize,
    tokens: Vec<RevokedToken>,
}

/// A gateway token that is no more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RevokedToken {
    id: GatewayTokenId,
    token_prefix: String,
    revoked_at: Timestamp,
}

impl Operation for UninstallSkillRegistryItem {
    const META: Meta = Meta::write(
        "uninstallHeadlessSkillRegistryItem",
        Method::Post,
        "/skill-registry/{itemRef}/cli-uninstall",
        "registry",
    )
    .access("registry:install", &[Admin, Operator, Auditor, Viewer])
    .command("skills", "unregister-install")
    .consents_in_headers()
    .errors(&[401, 403, 404])
    .says(
        "Uninstall a skill for the caller",
        "Removes the caller's installs of the item, with a version in the reference those of that version, and \
         revokes every gateway token that the caller has for the item, all in one transaction. Nothing installed \
         is no error. The clients remove the files and report it.",
    );
    type Path = ItemPath;
    type Query = Empty;
    type Body = Empty;
    type Output = UninstallAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<UninstallAnswer> {
        // Withdrawn items can be uninstalled (D10.5).
        let (item, reference) = find::item(ctx, &input.path.item_ref)?;
        let installs = install_store::in_use(ctx, &item.id)?;
        let (mut meant, others): (Vec<Install>, Vec<Install>) = installs
            .into_iter()
            .partition(|i| i.is_meant(reference.version()));
        let mut result = UninstallAnswer {
            item_ref: item.full_name(),
            item_id: item.id,
            status: UninstallStatus::NotInstalled,
            uninstalled_at: None,
            installs: Vec::new(),
            gateway_token: RevokedTokens {
                revoked: false,
                revoked_count: 0,
                tokens: Vec::new(),
            },
            remaining_installs: i64::try_from(others.len()).unwrap_or(i64::MAX),
        };
        if meant.is_empty() {
            return Ok(result);
        }
        let now = ctx.now();
        for install in &mut meant {
            let at = install.changed_at(now);
            install.status = InstallStatus::PendingCleanup;
            install.uninstalled_at = Some(at);
            install.updated_at = at;
            install_store::save(ctx, install)?;
            ctx.change("/installs", install.id.as_str(), Value::Null);
        }
        // INVARIANT SK-3: the tokens end in the transaction that forgets the installs.
        let revoked = install_store::revoke_all(ctx, &result.item_id, "uninstalled")?;
        for token in &revoked {
            ctx.change("/gatewayTokens", token.id.as_str(), Value::Null);
        }
        ctx.emit(
            &fences::UNINSTALLED,
            &fences::EndedInstalls {
                item_id: result.item_id.clone(),
                principal_id: ctx.actor().id.clone(),
                install_ids: meant.iter().map(|install| install.id.clone()).collect(),
            },
        );
        result.status = UninstallStatus::Uninstalled;
        result.uninstalled_at = Some(now);
        result.gateway_token = tokens(revoked, now);
        result.installs = meant.into_iter().map(UninstalledInstall::from).collect();
        Ok(result)
    }
}

fn tokens(revoked: Vec<install_store::RevokedInstallToken>, revoked_at: Timestamp) -> RevokedTokens {
    RevokedTokens {
        revoked: !revoked.is_empty(),
        revoked_count: revoked.len(),
        tokens: revoked
            .into_iter()
            .map(|token| RevokedToken {
                id: token.id,
                token_prefix: token.token_prefix,
                revoked_at,
            })
            .collect(),
    }
}

impl From<Install> for UninstalledInstall {
    fn from(install: Install) -> Self {
        Self {
            install_id: install.id,
            client: install.place.client,
            device: install.place.device,
            path: install.place.path,
            version: install.version,
            installed_at: install.installed_at,
        }
    }
}
