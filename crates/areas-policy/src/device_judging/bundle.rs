//! `GET …/devices/{deviceId}/policy-bundle`
//!
//! Keeps DJ-1, DJ-2.
//!
//! ```text
//!   on a reader   the live set, the people, the settings ─► a name for all of it: known? 304
//!   afterwards    the set made small ─► canonical bytes ─► signed
//! ```

use super::store;
use crate::modules;
use crate::policies::{self, Live};
use provost_areas_fleet::fleet::{self, Bypass, DeviceId, DevicePath, NewestBundle, Standing};
use provost_areas_fleet::inventory;
use provost_areas_identity::words::{self, Kind, WordQuery};
use provost_areas_platform::settings::{self, FleetHooks, Judging, Privacy};
use provost_bundle::{
    BundleBypass, BundleInputs, HookMode, Hooks, OnUnknown, People, PolicyBundle, Recording, ToldArguments,
    ToldContent, ToldPrompts,
};
use provost_kernel::auth::OrganizationId;
use provost_kernel::dsse::{Envelope, SignedKind};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation, Precondition, RateClass};
use provost_kernel::{Kernel, OperationContext, Result, Timestamp, json};
use provost_policy::sha256_hex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

pub struct GetPolicyBundle;

/// The form of names. Another one has every device fetch again.
const NAME_FORM: &str = "policy-bundle-3";
/// LIMIT: keys of denied servers that are read for a bundle: as many as an organization knows servers.
const MOST_DENIED: i64 = 50_000;
/// A bundle is made anew after this part of the time for which it is fresh, and at least once a day.
const RENEWALS: i64 = 4;
const DAY_SECS: i64 = 86_400;

/// The bundle; nothing where the device has it already.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct BundleAnswer(Option<Envelope>);

impl JsonSchema for BundleAnswer {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        Envelope::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Envelope::json_schema(generator)
    }
}

impl Operation for GetPolicyBundle {
    const META: Meta = Meta::read(
        "getHeadlessDevicePolicyBundle",
        "/devices/{deviceId}/policy-bundle",
        "fleet",
    )
    .rule(Access::OfKind {
        kind: fleet::DEVICE_KIND,
        parameter: "deviceId",
    })
    .rate(RateClass::Machine)
    .also(304)
    .precondition(Precondition::NoneMatch)
    .answers(&["ETag"])
    .errors(&[401, 403, 404])
    .says(
        "Get what a device judges by",
        "A device calls this for itself: the policies that can concern its owner, with the words and groups by which events name the owner, \
         signed for this device. With If-None-Match it is answered with 304 while nothing of it changed, and anew at least once a day, so that it \
         stays fresh. A device that is not active gets none (409, with status), and one whose owner is in too many groups gets none that would \
         leave some out (409, status bundle_too_large).",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Empty;
    type Output = BundleAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<BundleAnswer> {
        let id = &input.path.device_id;
        must_be_active(ctx, id)?;
        must_be_on(ctx)?;
        let making = Making::of(ctx, id)?;
        let kernel = Kernel::behind(ctx.services())?;
        let etag = making.name(&kernel.keys.signing_key_id());
        ctx.header("etag", etag.clone());
        if input
            .if_none_match
            .as_deref()
            .is_some_and(|list| names(list, &etag))
        {
            ctx.status(304);
            return Ok(BundleAnswer::default());
        }
        Ok(ctx.later(making.make(kernel)))
    }
}

/// Returns the name of the bundle that a device would be given now; none where it would be given none.
pub(super) fn newest(ctx: &mut OperationContext<'_>, asked: &NewestBundle) -> Result<Vec<String>> {
    let org = ctx.org();
    let is_on = settings::of(&mut ctx.tx(), org)?.fleet.hooks.judging == Judging::On;
    let works = fleet::standing(ctx, &asked.device)? == Standing::Works
        && !fleet::is_quarantined(ctx, &asked.device)?;
    if !is_on || !works {
        return Ok(Vec::new());
    }
    let key = ctx.services().keys.signing_key_id();
    let name = Making::of(ctx, &asked.device)?.name(&key);
    Ok(vec![name.trim_matches('"').to_owned()])
}

/// Refuses where no device judges.
///
/// Keeps DJ-7.
///
/// Errors: `NotFound`, as of a server that has no such thing.
pub(super) fn must_be_on(ctx: &mut OperationContext<'_>) -> Result<()> {
    let org = ctx.org();
    match settings::of(&mut ctx.tx(), org)?.fleet.hooks.judging {
        Judging::On => Ok(()),
        Judging::Off => {
            let message = "devices of this organization judge nothing by themselves; the setting fleet.hooks.judging says so";
            Err(Error::new(Code::NotFound, message).with("status", "judging_off"))
        }
    }
}

/// Refuses a device that judges by nothing new.
///
/// Errors: those of a token that no longer works; `Conflict` with `status` for a device that is not active.
fn must_be_active(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<()> {
    let refusal = |status: &'static str, message: &'static str| {
        Err(Error::new(Code::Conflict, message).with("status", status))
    };
    match fleet::standing(ctx, id)? {
        Standing::Ended => Err(provost_kernel::credential::invalid_token()),
        Standing::Waits => refusal(
            "pending",
            "the device is not active yet: it has to be heard of, and to be approved where that is asked for",
        ),
        Standing::Works if fleet::is_quarantined(ctx, id)? => refusal(
            "quarantined",
            "the device is quarantined and learns nothing more of policies and people; an admin releases it",
        ),
        Standing::Works => Ok(()),
    }
}

/// Returns whom the bundle of a device names: its owner, if the owner's id means nobody else.
fn people(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<People> {
    let Some(owner) = fleet::people(ctx, id)?.owner else {
        return Ok(People::default());
    };
    let mut asked = WordQuery::default();
    asked.add(Kind::User, &owner);
    let (org, now) = (ctx.org(), ctx.now());
    let register = words::register(&mut ctx.tx(), org, &asked, now)?;
    // Of whom no word is sure nobody is named: the device asks then.
    Ok(People::of(&register, &owner).unwrap_or_default())
}

/// Returns what devices of an organization tell of the contents of the events that they judged.
pub(super) fn told(privacy: Privacy) -> ToldContent {
    ToldContent {
        prompts: match privacy.prompts {
            settings::Prompts::Off => ToldPrompts::Off,
            settings::Prompts::Full => ToldPrompts::Full,
        },
        tool_arguments: match privacy.tool_arguments {
            settings::ToolArguments::Nothing => ToldArguments::Nothing,
            settings::ToolArguments::Full => ToldArguments::Full,
        },
    }
}

/// Says whether a list of entity tags names this one (RFC 9110 §13.1.2).
fn names(list: &str, etag: &str) -> bool {
    let mut tags = list.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Everything of which a bundle is made.
struct Making {
    organization: OrganizationId,
    device: DeviceId,
    epoch: u64,
    sequence: u64,
    now: Timestamp,
    hooks: FleetHooks,
    told: ToldContent,
    people: People,
    live: Live,
    /// The keys of the MCP servers that are denied.
    denied: Vec<String>,
    /// The bypass that is live on the device.
    bypass: Option<Bypass>,
}

impl Making {
    fn of(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<Self> {
        let (org, now) = (ctx.org(), ctx.now());
        let fleet = settings::of(&mut ctx.tx(), org)?.fleet;
        let people = people(ctx, id)?;
        let live = policies::live(&mut ctx.tx(), org)?;
        let denied = inventory::denied(ctx, MOST_DENIED)?;
        let bypass = fleet::live_bypass(ctx, id)?;
        Ok(Self {
            epoch: store::epoch(ctx)?,
            sequence: store::changes(ctx)?,
            organization: ctx.organization().clone(),
            device: id.clone(),
            now,
            hooks: fleet.hooks,
            told: told(fleet.privacy),
            people,
            live,
            denied,
            bypass,
        })
    }

    /// Returns the name of the bundle: another one when anything is another that it says, but for when it was made and how many
    /// changes the organization had. It has an end of its own, so that a device always has one that is fresh.
    fn name(&self, signing_key: &str) -> String {
        let hooks = &self.hooks;
        let mut said = vec![serde_json::json!([
            NAME_FORM,
            provost_bundle::FORMAT,
            signing_key,
            self.organization.as_str(),
            self.device.as_str(),
            self.epoch,
            self.live.version_id,
            self.live.set.digest(),
            hooks.mode.as_str(),
            hooks.deadline_ms,
            hooks.blocks_unknown(),
            hooks.offline_days,
            hooks.record.as_str(),
            self.told,
            self.people.users,
            self.people.groups,
            self.denied,
            self.term(),
        ])];
        // Nobody fetches anew for what is not there.
        said.extend(
            self.bypass
                .as_ref()
                .map(|bypass| serde_json::json!([bypass.id, bypass.expires_at])),
        );
        let said = if said.len() == 1 {
            said.swap_remove(0)
        } else {
            said.into()
        };
        format!("\"{}\"", &sha256_hex(json::canonical(&said).as_bytes())[..32])
    }

    /// Returns the number of the stretch of time for which the name holds. Those of devices end at different instants.
    fn term(&self) -> i64 {
        let term = (self.hooks.offline_days * DAY_SECS / RENEWALS).min(DAY_SECS);
        let digest = sha256_hex(self.device.as_str().as_bytes());
        let spread = i64::from_str_radix(&digest[..8], 16).unwrap_or(0) % term;
        (self.now.as_ms() / 1000 + spread).div_euclid(term)
    }

    async fn make(self, kernel: Arc<Kernel>) -> Result<BundleAnswer> {
        // Making it small reads every policy: on a thread of its own, as what is heavy to judge (DE-8).
        let core = modules::core(&kernel, &self.organization).await?;
        let shared = kernel.clone();
        let work = move || {
            let _core = core;
            let bundle = PolicyBundle::of(&self.live.set.clone(), self.inputs());
            let bundle = bundle.map_err(|why| {
                let message = format!("{why}; take the owner out of groups, or name another owner");
                Error::new(Code::Conflict, message).with("status", "bundle_too_large")
            })?;
            let text = bundle.canonical();
            let envelope = shared.keys.sign(SignedKind::PolicyBundle, text.as_bytes());
            Ok(BundleAnswer(Some(envelope)))
        };
        kernel.blocking(work).await?
    }

    fn inputs(self) -> BundleInputs {
        let hooks = &self.hooks;
        BundleInputs {
            organization_id: self.organization.as_str().to_owned(),
            device_id: self.device.as_str().to_owned(),
            store_epoch: self.epoch,
            sequence: self.sequence,
            version: (self.live.version_id, self.live.sequence.unsigned_abs()),
            issued_at: self.now,
            not_after: self.now.plus_secs(hooks.offline_days * DAY_SECS),
            mode: match hooks.mode {
                settings::HookMode::Monitor => HookMode::Monitor,
                settings::HookMode::Enforce => HookMode::Enforce,
            },
            hooks: Hooks {
                deadline_ms: u32::try_from(hooks.deadline_ms).unwrap_or(u32::MAX),
                on_unknown: if hooks.blocks_unknown() {
                    OnUnknown::Block
                } else {
                    OnUnknown::Allow
                },
            },
            record: match hooks.record {
                settings::HookRecording::All => Recording::All,
                settings::HookRecording::Counted => Recording::Counted,
            },
            told: self.told,
            users: self.people.users,
            groups: self.people.groups,
            denied: self.denied,
            bypass: self.bypass.map(|bypass| BundleBypass {
                id: bypass.id.as_str().to_owned(),
                not_after: bypass.expires_at,
                clients: bypass
                    .clients
                    .iter()
                    .map(|client| client.as_str().to_owned())
                    .collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_bundle::BundleUser;
    use provost_policy::PolicySet;

    fn making(offline_days: i64, at_secs: i64) -> Making {
        Making {
            organization: OrganizationId::parse("acme").unwrap(),
            device: DeviceId::from_store("dev_01kaf9q2m4x7t8v3c5d6e0g1h2".into()),
            epoch: 3,
            sequence: 9,
            now: Timestamp::EPOCH.plus_secs(at_secs),
            hooks: FleetHooks {
                offline_days,
                ..FleetHooks::default()
            },
            told: ToldContent::LEAST,
            people: People::default(),
            live: Live {
                version_id: "psv_1".into(),
                sequence: 1,
                set: Arc::new(PolicySet::new([]).unwrap()),
            },
            denied: Vec::new(),
            bypass: None,
        }
    }

    fn bypass(id: &str) -> Bypass {
        Bypass {
            id: fleet::BypassId::from_store(id.into()),
            device_id: DeviceId::from_store("dev_01kaf9q2m4x7t8v3c5d6e0g1h2".into()),
            clients: Vec::new(),
            created_by: "usr_1".into(),
            created_at: Timestamp::EPOCH,
            expires_at: Timestamp::EPOCH.plus_secs(60),
            ended_at: None,
            end_reason: None,
        }
    }

    /// Proves DJ-2.
    #[test]
    fn a_name_holds_for_a_part_of_the_time_for_which_the_bundle_is_fresh() {
        for (days, most) in [(1, 21_600), (2, 43_200), (4, 86_400), (7, 86_400), (30, 86_400)] {
            let begin = 1_800_000_000;
            let first = making(days, begin).name("k");
            let ends = (1..=most).find(|secs| making(days, begin + secs).name("k") != first);
            let ends = ends.unwrap_or_else(|| panic!("{days} days: the name holds for more than {most} s"));
            // From there on for the whole of it.
            let second = making(days, begin + ends).name("k");
            assert_eq!(making(days, begin + ends + most - 1).name("k"), second, "{days}");
            assert_ne!(making(days, begin + ends + most).name("k"), second, "{days}");
        }
    }

    /// Proves DJ-2.
    #[test]
    fn whatever_it_says_has_a_name_of_its_own_but_for_the_count_of_changes() {
        let now = 1_800_000_000;
        let name = making(7, now).name("k");
        let other = |change: fn(&mut Making)| {
            let mut making = making(7, now);
            change(&mut making);
            making.name("k")
        };
        assert_eq!(other(|making| making.sequence += 1), name);
        let changes: [fn(&mut Making); 14] = [
            |making| making.bypass = Some(bypass("byp_1")),
            |making| making.bypass = Some(bypass("byp_2")),
            |making| making.denied.push("npm:evil".into()),
            |making| making.epoch += 1,
            |making| making.live.version_id.push('x'),
            |making| making.hooks.mode = settings::HookMode::Enforce,
            |making| making.hooks.deadline_ms += 1,
            |making| making.hooks.on_unknown = settings::OnUnknown::Block,
            |making| making.hooks.offline_days = 8,
            |making| making.hooks.record = settings::HookRecording::Counted,
            |making| making.told.prompts = ToldPrompts::Full,
            |making| making.told.tool_arguments = ToldArguments::Full,
            |making| making.device = DeviceId::from_store("dev_01kaf9q2m4x7t8v3c5d6e0g1h3".into()),
            |making| {
                making.people.users.push(BundleUser {
                    user_id: "usr_1".into(),
                    words: vec!["ada".into()],
                    shared: Vec::new(),
                    group_ids: None,
                });
            },
        ];
        for (at, change) in changes.into_iter().enumerate() {
            assert_ne!(other(change), name, "{at}");
        }
        assert_ne!(other(changes[0]), other(changes[1]), "another bypass");
        assert_ne!(making(7, now).name("another"), name);
    }
}
