//! `POST …/devices/{deviceId}/profiles/{profileId}/reports`
//!
//! A device stands among the machines of a profile by its id. Only where it stands elsewhere than before is an entry of the audit log:
//! that all is well is said every hour.
//!
//! Keeps DC-4.

use super::assign::AssignmentPath;
use super::fences::REPORTED;
use super::own::{ITSELF, given, must_work};
use crate::managed_config::fences;
use crate::managed_config::machines;
use crate::managed_config::model::{Digest, NamedRelease, Principal, ProfileId, ReportedState, TargetState};
use crate::managed_config::report::{self, Said};
use provost_areas_fleet::fleet::{self, DeviceId};
use provost_kernel::auth::{Actor, OrganizationId, Origin};
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Operation, RateClass};
use provost_kernel::text::Description;
use provost_kernel::{Kernel, OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

pub struct ReportDeviceProfile;

/// What a device says of a profile.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ReportBody {
    /// The release that it applied last.
    release_id: NamedRelease,
    /// The manifest's digest if the enforced file is the manifest's, byte for byte; else the hash of what is there.
    content_digest: Digest,
    /// What came of the release.
    state: ReportedState,
    /// What it says besides; no secrets.
    message: Option<Description>,
}

/// Where the device stands with the profile.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ReportAnswer {
    state: TargetState,
}

impl Default for ReportAnswer {
    /// Stands for an answer that comes later.
    fn default() -> Self {
        Self {
            state: TargetState::Pending,
        }
    }
}

impl Operation for ReportDeviceProfile {
    const META: Meta = Meta::ingest(
        "reportHeadlessDeviceProfile",
        "/devices/{deviceId}/profiles/{profileId}/reports",
        "managed_config",
    )
    .rule(ITSELF)
    .rate(RateClass::Machine)
    .errors(&[400, 401, 403])
    .example(
        r#"{"releaseId": "mcr_01m7w5fpg4ctwq7mvve86yenbr",
           "contentDigest": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
           "state": "applied"}"#,
    )
    .says(
        "Report what a device applied of a profile",
        "A device calls this for itself. It stands among the machines of the profile by its id, and no account reports for it.",
    );
    type Path = AssignmentPath;
    type Query = Empty;
    type Body = ReportBody;
    type Output = ReportAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ReportAnswer> {
        let AssignmentPath {
            profile_id,
            device_id,
        } = &input.path;
        must_work(ctx, device_id)?;
        given(ctx, device_id, profile_id)?;
        let call = Reporting {
            organization: ctx.organization().clone(),
            actor: ctx.actor().clone(),
            origin: ctx.origin().cloned(),
            device: device_id.clone(),
            profile: profile_id.clone(),
            body: input.body.clone(),
            state: Arc::default(),
        };
        let kernel = Kernel::behind(ctx.services())?;
        Ok(ctx.later(async move { call.keep(&kernel).await }))
    }
}

/// One report on its way into the store.
struct Reporting {
    organization: OrganizationId,
    actor: Actor,
    origin: Option<Origin>,
    device: DeviceId,
    profile: ProfileId,
    body: ReportBody,
    /// Where the device stands, found by whoever writes.
    state: Arc<Mutex<Option<TargetState>>>,
}

impl Reporting {
    async fn keep(self, kernel: &Kernel) -> Result<ReportAnswer> {
        let (organization, state) = (self.organization.clone(), self.state.clone());
        let run = move |ctx: &mut OperationContext<'_>| self.write(ctx);
        kernel.system(organization, None, run).await?;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner).take();
        let state = state.ok_or_else(|| Error::internal("a report was not written"))?;
        Ok(ReportAnswer { state })
    }

    fn write(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        // It may have been retired, and the profile taken away, since a reader looked.
        must_work(ctx, &self.device)?;
        let (_, found) = given(ctx, &self.device, &self.profile)?;
        // Whoever reported by this id before: it is the device's.
        let last = machines::get(ctx, &self.profile, self.device.as_str())?;
        let said = Said {
            target_id: self.device.as_str(),
            // Who lists machines of a profile need not be allowed to see devices, which are called after people.
            name: None,
            release_id: &self.body.release_id,
            content_digest: &self.body.content_digest,
            state: self.body.state,
            message: self.body.message.as_ref(),
            by: Principal {
                kind: fleet::DEVICE_KIND.to_owned(),
                id: self.device.as_str().to_owned(),
            },
        };
        let kept = report::keep(ctx, &found, last, said)?;
        if kept.is_news {
            ctx.in_the_name_of(self.actor.clone(), self.origin.clone());
            ctx.action(REPORTED);
            ctx.target(&fences::PROFILE, self.profile.as_str());
        }
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept.state);
        Ok(())
    }
}
