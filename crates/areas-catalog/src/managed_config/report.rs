//! Takes a machine's report of what it applied.
//!
//! Whoever may pull may report: the account of a machine needs no right to write. A report changes what people see
//! of the machine and nothing that a machine gets; who sent it is shown.
//!
//! ```text
//! nobody's     ─ first report ─► of the account that sent it
//! of an account ─ its report ──► the same            ─ another's ─► 409, and an event
//!               ─ forgotten, or its account deleted, or not an account ─► nobody's
//! ```
//!
//! Keeps MC-11, DC-5.

use super::digest::ContentDigest;
use super::model::{
    Digest, Machine, MachineId, NamedRelease, Principal, ProfileId, ProfilePath, ReportedState, TargetState,
};
use super::store::{self, ProfileWithRelease};
use super::told::told;
use super::views::{MachineView, ReleaseRef};
use super::{PULL, READERS, machines};
use crate::managed_config::fences;
use provost_areas_identity::service_accounts;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{Description, Name};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct Report;

/// What a machine says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ReportBody {
    /// The machine's own name for itself, the same at every report.
    target_id: MachineId,
    /// Its name for people.
    target_name: Option<Name>,
    /// The release that it applied last.
    release_id: NamedRelease,
    /// The manifest's digest if the enforced file is the manifest's, byte for byte; else the hash of what is there.
    content_digest: Digest,
    /// What came of the release.
    state: ReportedState,
    /// What it says besides; no secrets.
    message: Option<Description>,
}

/// Where the machine stands, and what should be in place.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ReportAnswer {
    target: MachineView,
    /// Absent before the first publication.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<ReleaseRef>,
}

impl Operation for Report {
    const META: Meta = Meta::write(
        "reportHeadlessManagedConfigTarget",
        Method::Post,
        "/managed-config/profiles/{profileId}/reports",
        "managed_config",
    )
    .access(PULL, READERS)
    .command("managed-config", "report")
    .example(
        r#"{"targetId": "laptop-17", "releaseId": "mcr_01m7w5fpg4ctwq7mvve86yenbr",
           "contentDigest": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
           "state": "applied"}"#,
    )
    .says(
        "Report what a machine applied",
        "A machine belongs to the account that reported it first: another one's report is 409 until the machine is forgotten.",
    );
    type Path = ProfilePath;
    type Query = Empty;
    type Body = ReportBody;
    type Output = ReportAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ReportAnswer> {
        let body = &input.body;
        ctx.target(&fences::PROFILE, input.path.profile_id.as_str());
        let found = store::get(ctx, &input.path.profile_id)?;
        let profile = &found.profile;
        let last = machines::get(ctx, &profile.id, body.target_id.as_str())?;
        let actor = ctx.actor();
        let reporter = Principal {
            kind: actor.kind.to_owned(),
            id: actor.id.clone(),
        };
        if let Some(last) = &last {
            must_belong(ctx, &profile.id, last, &reporter)?;
        }
        let said = Said {
            target_id: body.target_id.as_str(),
            name: body.target_name.as_ref().map(Name::as_str),
            release_id: &body.release_id,
            content_digest: &body.content_digest,
            state: body.state,
            message: body.message.as_ref(),
            by: reporter,
        };
        let kept = keep(ctx, &found, last, said)?;
        Ok(ReportAnswer {
            target: MachineView::of(ctx, kept.machine, kept.state),
            expected: found.current.as_ref().map(|current| ReleaseRef::of(ctx, current)),
        })
    }
}

/// What is said of a machine, and by whom.
pub(crate) struct Said<'a> {
    /// The machine.
    pub target_id: &'a str,
    /// Its name for people.
    pub name: Option<&'a str>,
    /// The release that it applied last.
    pub release_id: &'a NamedRelease,
    /// What is in place.
    pub content_digest: &'a Digest,
    /// What came of the release.
    pub state: ReportedState,
    /// What it says besides.
    pub message: Option<&'a Description>,
    /// Who says it; whoever calls has found that it may.
    pub by: Principal,
}

/// What was kept.
pub(crate) struct Kept {
    /// The machine.
    pub machine: Machine,
    /// Where it stands.
    pub state: TargetState,
    /// Whether it stood elsewhere before, and that is told (DC-5).
    pub is_news: bool,
}

/// Keeps what is said of a machine.
///
/// Errors: `Conflict` when the profile has too many.
pub(crate) fn keep(
    ctx: &mut OperationContext<'_>,
    found: &ProfileWithRelease,
    last: Option<Machine>,
    said: Said<'_>,
) -> Result<Kept> {
    let (profile, current, now) = (&found.profile, found.current.as_ref(), ctx.now());
    let digest = ContentDigest::from_text(said.content_digest.as_str());
    let machine = Machine {
        target_id: said.target_id.to_owned(),
        seq: 0,
        name: said.name.map(str::to_owned),
        release_id: said.release_id.id().clone(),
        digest_since: last
            .as_ref()
            .filter(|last| last.content_digest == digest)
            .map_or(now, |last| last.digest_since),
        content_digest: digest.clone(),
        state: said.state,
        message: said.message.map(|text| text.as_str().to_owned()),
        first_reported_at: last.as_ref().map_or(now, |last| last.first_reported_at),
        last_reported_at: last.as_ref().map_or(now, |last| last.last_reported_at.max(now)),
        reported_by: said.by,
    };
    let heals = current.is_some_and(|current| current.content_digest == digest);
    machines::put(ctx, &profile.id, &machine, last.is_none(), heals)?;
    let state = machine.state(profile, current, now);
    if let Some(last) = &last {
        ctx.change("/reportedBy", json!(last.reported_by), json!(machine.reported_by));
    }
    let is_other = last
        .as_ref()
        .is_some_and(|last| last.reported_by != machine.reported_by);
    let was = last.map(|last| last.state(profile, current, now));
    let is_change = is_other || was != Some(state);
    if was != Some(state) {
        let was = was.map(TargetState::as_str);
        ctx.change("/state", was, state.as_str());
    }
    let told = told(ctx, &profile.id, &machine.target_id, is_change);
    // Each report of an account is an entry; of a device nobody was told what it was in between.
    if let Some(untold @ 1..) = told
        && machine.reported_by.kind == "device"
    {
        ctx.change("/statesUntold", Value::Null, untold);
    }
    let was_failed = was == Some(TargetState::Failed) && told == Some(0);
    if state == TargetState::Failed && !was_failed && told.is_some() {
        let data = fences::FailedTarget {
            profile_id: profile.id.clone(),
            target_id: machine.target_id.clone(),
            release_id: machine.release_id.clone(),
        };
        ctx.emit(&fences::TARGET_FAILED, &data);
    }
    Ok(Kept {
        machine,
        state,
        is_news: told.is_some(),
    })
}

/// Refuses a report about a machine that belongs to another account (MC-11).
///
/// Errors: `Conflict`.
fn must_belong(
    ctx: &mut OperationContext<'_>,
    profile: &ProfileId,
    last: &Machine,
    reporter: &Principal,
) -> Result<()> {
    let owner = &last.reported_by;
    if owner == reporter || !is_there(ctx, owner)? {
        return Ok(());
    }
    let data = fences::ContestedTarget {
        profile_id: profile.clone(),
        target_id: last.target_id.clone(),
        belongs_to: owner.clone(),
        reported_by: reporter.clone(),
    };
    ctx.emit_if_refused(&fences::TARGET_CONTESTED, &data);
    Err(Error::new(
        Code::Conflict,
        "this machine belongs to another account, which reported it first; report it by that account, or ask an \
         administrator to forget it (DELETE …/targets/{targetId})",
    ))
}

/// Says whether machines can belong to a principal: to service accounts until they are deleted, and to devices, of which nothing is
/// kept when they are retired. People and sessions of people reported before there was a scope for it, and cannot now.
fn is_there(ctx: &mut OperationContext<'_>, owner: &Principal) -> Result<bool> {
    if owner.kind == "device" {
        return Ok(true);
    }
    let org = ctx.org();
    Ok(owner.kind == "service_account"
        && service_accounts::principal(&mut ctx.tx(), org, &owner.id)?.is_some())
}
