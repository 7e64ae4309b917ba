//! `POST …/inventory/imports`

use super::imported::{self, Source};
use super::{fences, known::Known, known::Room};
use provost_inventory::wire;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// LIMIT: servers of one request. Ours: what one unit writes.
const MOST: usize = 250;

pub struct ImportScan;

/// A server that another scanner found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ImportedServer {
    /// Its identity, as `provost scan --foreign` makes it.
    #[schemars(length(min = 1, max = 512))]
    key: String,
    /// How a client calls it.
    #[schemars(length(min = 1, max = 160))]
    name: String,
}

/// LIMIT: characters of a key and of a name, as the schema says.
const LONGEST_KEY: usize = 512;
const LONGEST_NAME: usize = 160;

/// What another scanner found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ImportBody {
    /// Which scanner.
    source: Source,
    /// The servers, without a value of their configurations.
    #[schemars(length(min = 1, max = 250))]
    servers: Vec<ImportedServer>,
}

/// What became of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Imported {
    /// How many servers are known by it.
    servers: usize,
    /// How many of them nobody had seen before.
    discovered: usize,
    /// For how many there was no room.
    not_kept: usize,
}

impl Operation for ImportScan {
    const META: Meta = Meta::write(
        "importHeadlessInventoryScan",
        Method::Post,
        "/inventory/imports",
        "inventory",
    )
    .access("inventory:write", &[Admin])
    .command("inventory", "import")
    .example(r#"{"source": "snyk_agent_scan", "servers": [{"key": "npm:@acme/files", "name": "files"}]}"#)
    .says(
        "Import what another scanner found",
        "Keys and names of servers, which provost scan --foreign makes of the other scanner's report on the machine where that lies. It is \
         evidence beside what devices say, and replaces nothing of it: no place, no name, no standing.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = ImportBody;
    type Output = Imported;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Imported> {
        let ImportBody { source, servers } = &input.body;
        if !(1..=MOST).contains(&servers.len()) {
            return Err(Error::invalid("/servers", "must have 1 to 250 servers"));
        }
        // What the schema says is asked of all before anything else is of one.
        let fits = |text: &str, most: usize| (1..=most).contains(&text.chars().count());
        let fits = |one: &ImportedServer| fits(&one.key, LONGEST_KEY) && fits(&one.name, LONGEST_NAME);
        if let Some(at) = servers.iter().position(|one| !fits(one)) {
            let message = "key must have 1 to 512 characters, and name 1 to 160";
            return Err(Error::invalid(format!("/servers/{at}"), message));
        }
        for (at, one) in servers.iter().enumerate() {
            let place = format!("/servers/{at}");
            let refusal = if !wire::is_server_key(&one.key) {
                "key must be the key of a server that says what runs, in its one spelling"
            } else if !wire::is_shown_name(&one.name) {
                "name must be a name, and nothing that looks like a credential, a path or an assignment"
            } else {
                continue;
            };
            return Err(Error::unfit(place, refusal));
        }
        let keys: BTreeSet<&str> = servers.iter().map(|one| one.key.as_str()).collect();
        let mut known = Known::look_up(ctx, &keys, &BTreeSet::new())?;
        let (mut room, finder) = (Room::default(), source.finder());
        let (mut taken, mut discovered, mut left_out) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
        for one in servers {
            match known.server(ctx, finder, (&one.key, &one.name), &mut room)? {
                Some((id, is_new)) => {
                    if is_new {
                        discovered.push(id.clone());
                    }
                    if taken.insert(id.clone()) {
                        imported::keep(ctx, *source, &id, &one.name)?;
                    }
                }
                None => {
                    left_out.insert(one.key.as_str());
                }
            }
        }
        let answer = Imported {
            servers: taken.len(),
            discovered: discovered.len(),
            not_kept: left_out.len(),
        };
        ctx.change("/source", serde_json::Value::Null, source.as_str());
        ctx.change("/servers", serde_json::Value::Null, answer.servers);
        ctx.change("/discovered", serde_json::Value::Null, answer.discovered);
        for server_id in discovered {
            ctx.emit(&fences::DISCOVERED, &fences::OfServer { server_id });
        }
        Ok(answer)
    }
}
