//! Lists installs: everybody's for those who answer for them, one's own for anybody.

use super::inputs::ClientName;
use super::inputs::Search;
use super::install_store::{self, InstallFilter};
use super::model::{InstallStatus, InstallView};
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

provost_kernel::page! {
    /// One page.
    pub struct InstallPage {

        installs: InstallView,
    }
}

pub struct ListSkillInstalls;

/// What can be asked of everybody's installs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct InstallsQuery {
    /// Only in this state.
    status: Option<InstallStatus>,
    /// Only of this item.
    item_id: Option<Search>,
    /// Only of this principal.
    principal_id: Option<Search>,
    /// Only of this client.
    client: Option<ClientName>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

impl Operation for ListSkillInstalls {
    const META: Meta = Meta::read("listHeadlessSkillInstalls", "/skill-installs", "registry")
        .access("registry:read", &[Admin, Operator, Auditor])
        .command("skills", "list-installs").columns(&["ref as skill", "version", "status", "device", "installedAt as installed", "principalId as by", "client", "installId as id", "path", "removedAt as removed", "digest"])
        .says(
            "List the installs of everybody",
            "Newest first. An install that was uninstalled is pending_cleanup until its client reports that the \
             files are gone.",
        );
    type Path = Empty;
    type Query = InstallsQuery;
    type Body = Empty;
    type Output = InstallPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<InstallPage> {
        let query = &input.query;
        let filter = InstallFilter {
            principal_id: query.principal_id.as_ref().map(|p| p.get().as_str()),
            item_id: query.item_id.as_ref().map(|i| i.get().as_str()),
            client: query.client.as_ref().map(|c| c.get().as_str()),
            status: query.status,
        };
        read(ctx, &filter, query.limit, query.cursor.as_ref(), Self::META.id)
    }
}

pub struct ListOwnSkillInstalls;

/// What can be asked of one's own installs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct OwnInstallsQuery {
    /// Only in this state.
    status: Option<InstallStatus>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where an earlier page ended.
    cursor: Option<Cursor>,
}

impl Operation for ListOwnSkillInstalls {
    const META: Meta = Meta::read("listHeadlessOwnSkillInstalls", "/skill-installs/own", "registry")
        .access("registry:install", &[Admin, Operator, Auditor, Viewer])
        .command("skills", "list-own-installs")
        .columns(&[
            "ref as skill",
            "version",
            "status",
            "device",
            "installedAt as installed",
            "installId as id",
            "client",
            "path",
            "removedAt as removed",
            "digest",
        ])
        .says("List the caller's installs", "Newest first.");
    type Path = Empty;
    type Query = OwnInstallsQuery;
    type Body = Empty;
    type Output = InstallPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<InstallPage> {
        let query = &input.query;
        let filter = InstallFilter {
            principal_id: Some(ctx.actor().id.as_str()),
            status: query.status,
            ..InstallFilter::default()
        };
        read(ctx, &filter, query.limit, query.cursor.as_ref(), Self::META.id)
    }
}

fn read(
    ctx: &mut OperationContext<'_>,
    filter: &InstallFilter<'_>,
    limit: Limit,
    cursor: Option<&Cursor>,
    operation: &str,
) -> Result<InstallPage> {
    let below = page::start(ctx, operation, cursor, i64::MAX)?;
    let mut found = install_store::list(ctx, filter, below, limit.get() + 1)?;
    let next_cursor = page::end(ctx, operation, limit, &mut found, |(place, _)| *place);
    Ok(InstallPage {
        installs: found.into_iter().map(|(_, install)| install.into()).collect(),
        next_cursor,
    })
}
