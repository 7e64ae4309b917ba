//! `POST …/devices/{deviceId}/coverage`

use super::coverage::{AtMost, BundleReport, ClientCoverage, ClientReport, MOST_CLIENTS, kept};
use super::model::{DeviceId, Status};
use super::view::DevicePath;
use super::{coverage_store, credentials, fences, store};
use provost_kernel::auth::{Actor, OrganizationId, Origin};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation, RateClass};
use provost_kernel::rate::Bucket;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// LIMIT: reports of one device. Ours: it tells what changed at its next round, of which an hour has twelve.
const REPORTS: Bucket = Bucket {
    name: "device-coverage",
    burst: 12,
    per_second_num: 24,
    per_second_den: 3600,
};

pub struct ReportCoverage;

/// How far the clients of a device are guarded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CoverageBody {
    /// Every client that is there. What was said of others before is given up.
    clients: AtMost<ClientReport, MOST_CLIENTS>,
    /// The bundle of policies by which the device judges; absent where it has none.
    policy_bundle: Option<BundleReport>,
}

/// What became of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct CoverageAnswer {
    /// The server's clock.
    now: Timestamp,
}

impl Default for CoverageAnswer {
    /// Stands for an answer that comes later.
    fn default() -> Self {
        Self {
            now: Timestamp::EPOCH,
        }
    }
}

impl Operation for ReportCoverage {
    const META: Meta = Meta::ingest(
        "reportHeadlessDeviceCoverage",
        "/devices/{deviceId}/coverage",
        "fleet",
    )
    .rule(Access::OfKind {
        kind: credentials::DEVICE,
        parameter: "deviceId",
    })
    .rate(RateClass::Machine)
    .errors(&[400, 401, 403])
    .example(
        r#"{"clients": [{"client": "claude_code", "clientVersion": "2.1.331", "level": "observed", "basis": "measured", "reasons": ["monitor_mode"]}]}"#,
    )
    .says(
        "Report how far clients are guarded",
        "A device calls this for itself, where anything changed and every six hours. What it says is kept as its word, in the place of what it said \
         before. A level that is lower than before is told by an entry and an event, once. A device whose agent is a person's is taken for \
         observed at most.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = CoverageBody;
    type Output = CoverageAnswer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<CoverageAnswer> {
        let id = &input.path.device_id;
        let org = ctx.org();
        ctx.limit(&REPORTS, &[org, id.as_str()])?;
        let device = store::get(ctx, id)?;
        if device.status == Status::Pending {
            let message = "the device is not active yet: it has to be heard of, and to be approved where that is asked for";
            return Err(Error::new(Code::Conflict, message).with("status", "pending"));
        }
        let report = Report {
            organization: ctx.organization().clone(),
            actor: ctx.actor().clone(),
            origin: ctx.origin().cloned(),
            id: device.id,
            at: ctx.now(),
            clients: kept(device.mode, &input.body.clients.0)?,
            bundle: input.body.policy_bundle.clone(),
            has_dropped: AtomicBool::default(),
        };
        let kernel = Kernel::behind(ctx.services())?;
        Ok(ctx.later(async move { report.keep(kernel).await }))
    }
}

/// A report on its way into the store.
struct Report {
    organization: OrganizationId,
    actor: Actor,
    origin: Option<Origin>,
    id: DeviceId,
    at: Timestamp,
    clients: Vec<ClientCoverage>,
    bundle: Option<BundleReport>,
    /// Whether somebody is to be told of a drop, found by whoever writes.
    has_dropped: AtomicBool,
}

impl Report {
    /// Keeps it. Only a drop is an entry of the audit log; one that was kept and not told, because the process ended, is told with the next
    /// report.
    async fn keep(self, kernel: Arc<Kernel>) -> Result<CoverageAnswer> {
        let (organization, now) = (self.organization.clone(), self.at);
        let report = Arc::new(self);
        let writing = report.clone();
        let run = move |ctx: &mut OperationContext<'_>| {
            must_work(ctx, &writing.id)?;
            let has_dropped =
                coverage_store::say(ctx, &writing.id, &writing.clients, writing.bundle.as_ref())?;
            writing.has_dropped.store(has_dropped, Ordering::Relaxed);
            Ok(())
        };
        kernel.system(organization.clone(), None, run).await?;
        if report.has_dropped.load(Ordering::Relaxed) {
            let run = move |ctx: &mut OperationContext<'_>| report.tell(ctx);
            kernel
                .system(organization, Some(fences::NOT_EFFECTIVE), run)
                .await?;
        }
        Ok(CoverageAnswer { now })
    }

    /// Tells of every level that dropped, in one entry.
    ///
    /// Keeps CV-3.
    fn tell(&self, ctx: &mut OperationContext<'_>) -> Result<()> {
        ctx.in_the_name_of(self.actor.clone(), self.origin.clone());
        ctx.target(&fences::DEVICE, self.id.as_str());
        must_work(ctx, &self.id)?;
        let now = ctx.now();
        let (mut was, mut is) = (Map::new(), Map::new());
        for mut known in coverage_store::levels(ctx, &self.id)? {
            if !known.has_dropped(now) {
                continue;
            }
            let said = self.clients.iter().find(|said| said.client == known.client);
            let reasons = said.map_or_else(|| vec!["not_reported".to_owned()], |said| said.reasons.clone());
            was.insert(known.client.clone(), known.told.as_str().into());
            is.insert(known.client.clone(), known.level.as_str().into());
            ctx.emit(
                &fences::HOOKS_NOT_EFFECTIVE,
                &fences::Drop {
                    device_id: self.id.clone(),
                    client: known.client.clone(),
                    was: known.told.as_str(),
                    level: known.level.as_str(),
                    reasons,
                },
            );
            (known.told, known.told_at) = (known.level, Some(now));
            coverage_store::keep(ctx, &self.id, &known)?;
        }
        ctx.change("/coverage", Value::Object(was), Value::Object(is));
        Ok(())
    }
}

/// Refuses a device that was retired, or is held back, since a reader looked.
fn must_work(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<()> {
    let device = store::get(ctx, id)?;
    if device.status == Status::Retired || device.held_at.is_some() {
        return Err(provost_kernel::credential::invalid_token());
    }
    Ok(())
}
