//! What can be read of servers and other assets.

use super::model::{
    Asset, AssetKind, ObservationView, ServerId, ServerNow, ServerPath, ServerView, Standing,
};
use super::skills::{self, SkillStanding};
use super::store::{self, Age, AssetFilter, Filter, Used};
use super::{fences, observations, uses};
use crate::fleet::Sight;
use provost_inventory::wire::Transport;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::page::{self, Cursor, Limit};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ListServers;
pub struct GetServer;
pub struct ListInstances;
pub struct ListAssets;
pub struct Summarize;

provost_kernel::word! {
    /// How exactly a version is named.
    pub enum VersionPin {
        /// One release.
        Exact = "exact",
        /// Whatever is the newest, or the newest of a range.
        Floating = "floating",
        /// One content.
        Digest = "digest",
        /// It has no versions.
        None = "none",
    }
}

/// What can be asked; a server must fit all of it, and one of its places each of `client`, `transport` and `versionPin`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ServersQuery {
    /// Only servers that stand so.
    standing: Option<Standing>,
    /// Only servers that this client has: `claude_code`, `cursor`.
    client: Option<Name>,
    /// Only servers that are reached so.
    transport: Option<Transport>,
    /// Only servers whose version is named so.
    version_pin: Option<VersionPin>,
    /// Only servers that events named, or may have named, or that none did.
    used: Option<Used>,
    /// Only servers in whose name or key this stands, whatever its case.
    query: Option<Name>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

/// One page of servers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ServerPage {
    /// The servers, those that were found last first.
    servers: Vec<ServerView>,
    /// How old the data are.
    data_age: Age,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListServers {
    const META: Meta = Meta::read(
        "listHeadlessInventoryMcpServers",
        "/inventory/mcp-servers",
        "inventory",
    )
    .access("inventory:read", &[Admin, Operator, Auditor, Viewer])
    .command("inventory", "mcp-servers")
    .columns(&[
        "name",
        "standing",
        "key",
        "devices",
        "instances",
        "weakInstances as weak",
        "lastSeenAt as seen",
        "id",
        "accounts",
        "firstSeenAt as found",
        "standingSince as since",
        "standingUntil as until",
        "standingBy as by",
    ])
    .says(
        "List MCP servers that devices have configured",
        "Those that were found last first, by their identity and not by their names. What nobody decided about is shadow. \
         Configured is not used, and a server of no device is still listed.",
    );
    type Path = Empty;
    type Query = ServersQuery;
    type Body = Empty;
    type Output = ServerPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ServerPage> {
        let query = &input.query;
        let filter = Filter {
            standing: query.standing,
            client: query.client.as_ref().map(Name::as_str),
            transport: query.transport.map(Transport::as_str),
            version_pin: query.version_pin.map(VersionPin::as_str),
            query: query.query.as_ref().map(Name::as_str),
            used: query.used,
        };
        // A cursor is a place in the list that it was made for: with other filters it is another list.
        let list = [
            "listHeadlessInventoryMcpServers",
            filter.standing.map_or("", Standing::as_str),
            filter.client.unwrap_or_default(),
            filter.transport.unwrap_or_default(),
            filter.version_pin.unwrap_or_default(),
            filter.used.map_or("", Used::as_str),
            filter.query.unwrap_or_default(),
        ];
        let list = list.join("|");
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut found = store::list(ctx, &filter, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut found, |server| server.seq);
        let now = ctx.latest();
        let ids: Vec<&ServerId> = found.iter().map(|server| &server.id).collect();
        let mut used = uses::of_servers(ctx, &ids)?;
        let sight = Sight::load(ctx)?;
        Ok(ServerPage {
            servers: found
                .into_iter()
                .map(|server| {
                    let used = used.remove(&server.id).unwrap_or_default();
                    ServerView::of(server, now, used, &sight)
                })
                .collect(),
            data_age: store::age(ctx)?,
            next_cursor,
        })
    }
}

impl Operation for GetServer {
    const META: Meta = Meta::read(
        "getHeadlessInventoryMcpServer",
        "/inventory/mcp-servers/{serverId}",
        "inventory",
    )
    .access("inventory:read", &[Admin, Operator, Auditor, Viewer])
    .command("inventory", "mcp-server")
    .says("Get an MCP server that devices have configured", "");
    type Path = ServerPath;
    type Query = Empty;
    type Body = Empty;
    type Output = ServerNow;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ServerNow> {
        let id = &input.path.server_id;
        let server = store::get(ctx, id)?;
        let used = uses::of_servers(ctx, &[id])?.remove(id).unwrap_or_default();
        let sight = Sight::load(ctx)?;
        Ok(ServerNow {
            server: ServerView::of(server, ctx.latest(), used, &sight),
            data_age: store::age(ctx)?,
        })
    }
}

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PageQuery {
    /// How many at most.
    #[serde(default)]
    pub(super) limit: Limit,
    /// Where the list goes on.
    pub(super) cursor: Option<Cursor>,
}

/// One page of instances.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct InstancePage {
    /// Where the server is and was, what was found last first.
    instances: Vec<ObservationView>,
    /// How old the data are.
    data_age: Age,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListInstances {
    const META: Meta = Meta::read(
        "listHeadlessInventoryMcpServerInstances",
        "/inventory/mcp-servers/{serverId}/instances",
        "inventory",
    )
    .access("inventory:read", &[Admin, Operator, Auditor])
    .command("inventory", "instances")
    .columns(&[
        "deviceId as device",
        "account",
        "client",
        "name",
        "standing",
        "firstSeenAt as found",
        "removedAt as removed",
        "id",
    ])
    .sensitive()
    .says(
        "List where an MCP server is configured",
        "On which devices and in whose homes, with the names of its variables and the kinds of its arguments; who reads this is noted.",
    );
    type Path = ServerPath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = InstancePage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<InstancePage> {
        let (id, query) = (&input.path.server_id, &input.query);
        ctx.target(&fences::SERVER, id.as_str());
        store::get(ctx, id)?;
        let list = format!("listHeadlessInventoryMcpServerInstances|{}", id.as_str());
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let mut instances = observations::of_server(ctx, id, before, query.limit.get() + 1)?;
        let next_cursor = page::end(ctx, &list, query.limit, &mut instances, |one| one.seq);
        Ok(InstancePage {
            instances,
            data_age: store::age(ctx)?,
            next_cursor,
        })
    }
}

/// What can be asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct AssetsQuery {
    /// Only assets of this kind.
    kind: Option<AssetKind>,
    /// Only skills that stand so, for readers of the registry. A page may be short, or empty, and go on.
    standing: Option<SkillStanding>,
    /// How many at most.
    #[serde(default)]
    limit: Limit,
    /// Where the list goes on.
    cursor: Option<Cursor>,
}

/// One page of assets.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct AssetPage {
    /// The assets, those that were found last first.
    assets: Vec<Asset>,
    /// How old the data are.
    data_age: Age,
    /// Where the list goes on; absent at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Cursor>,
}

impl Operation for ListAssets {
    const META: Meta = Meta::read("listHeadlessInventoryAssets", "/inventory/assets", "inventory")
        .access("inventory:read", &[Admin, Operator, Auditor, Viewer])
        .command("inventory", "assets")
        .columns(&[
            "name",
            "kind",
            "standing",
            "devices",
            "instances",
            "key",
            "lastSeenAt as seen",
            "firstSeenAt as found",
            "id",
        ])
        .says(
            "List skills and extensions that devices have",
            "A skill is the digest of its files, as the registry makes it: the same one under another name is one asset.",
        );
    type Path = Empty;
    type Query = AssetsQuery;
    type Body = Empty;
    type Output = AssetPage;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AssetPage> {
        let query = &input.query;
        if query.standing.is_some() {
            skills::may_find(ctx)?;
        }
        let list = [
            "listHeadlessInventoryAssets",
            query.kind.map_or("", AssetKind::as_str),
            query.standing.map_or("", SkillStanding::as_str),
        ];
        let list = list.join("|");
        let before = page::start(ctx, &list, query.cursor.as_ref(), i64::MAX)?;
        let filter = AssetFilter {
            kind: query.kind,
            standing: query.standing,
        };
        let (assets, goes_on) = store::assets(ctx, filter, before, query.limit.get())?;
        Ok(AssetPage {
            assets,
            data_age: store::age(ctx)?,
            next_cursor: goes_on.map(|place| Cursor::issue(&ctx.services().keys, ctx.org(), &list, place)),
        })
    }
}

/// Servers of one standing.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OfStanding {
    /// How they stand.
    standing: Standing,
    /// How many.
    servers: i64,
}

/// A client on devices.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OfClient {
    /// The client. Open.
    client: String,
    /// On how many devices it left something.
    devices: i64,
    /// In how many homes not everything could be read.
    incomplete_sections: i64,
}

/// What is known, in numbers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Summary {
    /// Servers by how they stand; what there is none of is left out.
    servers: Vec<OfStanding>,
    /// Clients, by their names.
    clients: Vec<OfClient>,
    /// How many names of servers events have that no known device of the person has: they are used and not configured.
    used_not_configured: i64,
    /// How old the data are.
    data_age: Age,
}

impl Operation for Summarize {
    const META: Meta = Meta::read("getHeadlessInventorySummary", "/inventory/summary", "inventory")
        .access("inventory:read", &[Admin, Operator, Auditor, Viewer])
        .command("inventory", "summary")
        .says(
            "Get what is known of all devices, in numbers",
            "The numbers are those of devices that reported; dataAge says of how many that is.",
        );
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = Summary;

    fn call(ctx: &mut OperationContext<'_>, _: &Input<Self>) -> Result<Summary> {
        let servers = store::by_standing(ctx)?;
        let clients = observations::by_client(ctx)?;
        Ok(Summary {
            servers: servers
                .into_iter()
                .map(|(standing, servers)| OfStanding { standing, servers })
                .collect(),
            clients: clients
                .into_iter()
                .map(|(client, devices, incomplete_sections)| OfClient {
                    client,
                    devices,
                    incomplete_sections,
                })
                .collect(),
            used_not_configured: uses::unresolved(ctx)?,
            data_age: store::age(ctx)?,
        })
    }
}
