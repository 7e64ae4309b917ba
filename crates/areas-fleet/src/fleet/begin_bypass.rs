//! `POST`, `DELETE …/devices/{deviceId}/bypass`

use super::bypass::{self, BypassClient, BypassView};
use super::coverage::AtMost;
use super::model::Device;
use super::sight::Sight;
use super::view::DevicePath;
use super::{fences, standing, store};
use provost_areas_platform::settings::{self, HookMode, Judging};
use provost_kernel::auth::Role::{Admin, Operator};
use provost_kernel::error::Error;
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result, word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub struct BeginBypass;
pub struct EndBypass;

/// The scope by which bypasses are begun.
pub const SCOPE: &str = "fleet:bypass";
const PATH: &str = "/devices/{deviceId}/bypass";
/// LIMIT: clients that are named: as many as there are.
const MOST_CLIENTS: usize = BypassClient::ALL.len();

/// For how long, and for whom.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct BeginBody {
    /// For how long, in minutes.
    minutes: IntegerBetween<1, 1440>,
    /// The clients that it is for; every one that asks the agent when absent.
    clients: Option<AtMost<BypassClient, MOST_CLIENTS>>,
}

word! {
    /// What a bypass changes on the machine.
    #[schemars(extend("x-open" = true))]
    pub enum BypassEffect {
        /// The device said that it judges: its agent obeys as soon as it has the next bundle, with its next heartbeat.
        NextBundle = "next_bundle",
        /// Nothing: the device did not say that it holds a bundle. Its hooks ask the server, which knows no device behind them, and refuse as
        /// before.
        NotJudging = "not_judging",
        /// Nothing: no device of the organization judges (fleet.hooks.judging is off), and hooks ask the server.
        JudgingOff = "judging_off",
        /// Nothing but for a hook that is registered to enforce: the organization only monitors.
        Monitoring = "monitoring",
    }
}

impl BypassEffect {
    fn of(ctx: &mut OperationContext<'_>, device: &Device) -> Result<Self> {
        let hooks = settings::load(ctx)?.fleet.hooks;
        let holds = device.coverage.as_ref().is_some_and(|said| said.bundle.is_some());
        Ok(match (hooks.judging, holds, hooks.mode) {
            (Judging::Off, ..) => Self::JudgingOff,
            (Judging::On, false, _) => Self::NotJudging,
            (Judging::On, true, HookMode::Monitor) => Self::Monitoring,
            (Judging::On, true, HookMode::Enforce) => Self::NextBundle,
        })
    }
}

/// A bypass, and what it changes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct BegunBypass {
    bypass: BypassView,
    effect: BypassEffect,
}

/// Returns the clients that a body names.
///
/// Errors: `InvalidDefinition` for none, and for one that stands twice.
fn named(body: &BeginBody) -> Result<Vec<BypassClient>> {
    let Some(clients) = &body.clients else {
        return Ok(Vec::new());
    };
    if clients.0.is_empty() {
        let message = "names no client; leave it out for a bypass of every client";
        return Err(Error::unfit("/clients", message));
    }
    let mut named: Vec<BypassClient> = Vec::with_capacity(clients.0.len());
    for (at, client) in clients.0.iter().enumerate() {
        if named.contains(client) {
            return Err(Error::unfit(
                format!("/clients/{at}"),
                "stands twice; name each client once",
            ));
        }
        named.push(*client);
    }
    named.sort_by_key(|client| client.as_str());
    Ok(named)
}

impl Operation for BeginBypass {
    const META: Meta = Meta::write("beginHeadlessDeviceBypass", Method::Post, PATH, "fleet")
        .access(SCOPE, &[Admin])
        .command("devices", "bypass")
        .example(r#"{"minutes": 60, "clients": ["claude_code"]}"#)
        .for_people()
        .of_two(&["devices"])
        .status(201)
        .says(
            "Let a device work without enforcement for a time",
            "For somebody who is locked out: what policies refuse passes on this device, is recorded with the bypass, and its clients count as \
             observed. The agent obeys with its next heartbeat; effect says where it changes nothing. 24 hours at most, together with what ended \
             within the last 24 hours.",
        );
    type Path = DevicePath;
    type Query = Empty;
    type Body = BeginBody;
    type Output = BegunBypass;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        super::shown_to_voters(ctx, &input.path.device_id)
    }

    fn gains(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        standing::owner(ctx, &input.path.device_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<BegunBypass> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        let device = store::get(ctx, id)?;
        let clients = named(&input.body)?;
        let bypass = bypass::begin(ctx, &device, input.body.minutes.get(), clients)?;
        let effect = BypassEffect::of(ctx, &device)?;
        let (now, sight) = (ctx.latest(), Sight::load(ctx)?);
        Ok(BegunBypass {
            bypass: BypassView::seen(bypass, now, &sight),
            effect,
        })
    }
}

impl Operation for EndBypass {
    const META: Meta = Meta::write("endHeadlessDeviceBypass", Method::Delete, PATH, "fleet")
        .rule(Access::ScopedEither {
            scope: "fleet:write",
            other: SCOPE,
            roles: &[Admin, Operator],
        })
        .command("devices", "end-bypass")
        .status(204)
        .says(
            "End the bypass of a device",
            "Its agent enforces again with its next heartbeat. A machine that is offline does at the end of the bypass.",
        );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.device_id;
        ctx.target(&fences::DEVICE, id.as_str());
        let device = store::get(ctx, id)?;
        bypass::end_of(ctx, &device, "taken_back")?;
        Ok(NoContent {})
    }
}
