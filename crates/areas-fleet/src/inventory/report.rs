//! `POST …/devices/{deviceId}/scans`

use super::model::ObservationId;
use super::sections::Ready;
use super::taking::Taking;
use crate::fleet::{self, DeviceId, DevicePath};
use provost_inventory::wire::{MAX_BYTES, Report};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Operation};
use provost_kernel::rate::Bucket;
use provost_kernel::{Kernel, OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// LIMIT: reports of one device. Ours: it sends one an hour, and some again; each may write thousands of rows.
const REPORTS: Bucket = Bucket {
    name: "device-scans",
    burst: 20,
    per_second_num: 20,
    per_second_den: 3600,
};
/// LIMIT: levels of a report; it has seven.
const LEVELS: usize = 12;

pub struct ReportScan;

provost_kernel::word! {
    /// Why nothing of a report was taken.
    pub enum Ignored {
        /// A scan that the device counted later was taken before.
        OlderScan = "older_scan",
    }
}

/// What became of a report.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Answer {
    /// How many sections were taken.
    pub(super) accepted: usize,
    /// Digests of unchanged sections that are not known, or not wholly kept: these sections are to be sent whole.
    pub(super) unknown_digests: Vec<String>,
    /// Why nothing was taken; absent where something could be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ignored: Option<Ignored>,
    /// Where a scan is ignored, the count above which the device goes on: its file may have been put back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_counter: Option<i64>,
    /// Whether there is more than is kept.
    pub(super) truncated: bool,
    /// How many observations there was no room for.
    pub(super) not_kept: i64,
}

impl Operation for ReportScan {
    const META: Meta = Meta::ingest(
        "reportHeadlessDeviceScan",
        "/devices/{deviceId}/scans",
        "inventory",
    )
    .rule(Access::OfKind {
        kind: fleet::DEVICE_KIND,
        parameter: "deviceId",
    })
    .errors(&[400, 401, 403])
    .reads_up_to(MAX_BYTES, LEVELS)
    .example(
        r#"{"scanId": "scan-1", "startedAt": "2026-11-27T10:00:00.000Z", "finishedAt": "2026-11-27T10:00:01.000Z", "sections": []}"#,
    )
    .says(
        "Report what a scan found",
        "A device calls this for itself. A complete section replaces what is known of its client and account; one with faults \
         adds to it and removes nothing. Sections of which nothing is said stay. A scan that the device counted before the last one \
         that was taken is ignored, and the answer says so.",
    );
    type Path = DevicePath;
    type Query = Empty;
    type Body = Report;
    type Output = Answer;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Answer> {
        let id = &input.path.device_id;
        let org = ctx.org();
        ctx.limit(&REPORTS, &[org, id.as_str()])?;
        if let Some(refusal) = input.body.refusal() {
            return Err(Error::invalid("/body", refusal));
        }
        may_report(ctx, id)?;
        // Whoever writes holds up everybody: all that needs no store is done before.
        let taking: ObservationId = ctx.new_id();
        let (scan, sections, unchanged) = Ready::of(input.body.clone().kept(), taking.as_str().to_owned())?;
        let call = Taking {
            organization: ctx.organization().clone(),
            actor: ctx.actor().clone(),
            origin: ctx.origin().cloned(),
            id: id.clone(),
            scan,
            sections,
            unchanged,
        };
        let kernel = Kernel::behind(ctx.services())?;
        Ok(ctx.later(async move { call.keep(kernel).await }))
    }
}

/// Refuses a device that may not report.
pub(super) fn may_report(ctx: &mut OperationContext<'_>, id: &DeviceId) -> Result<()> {
    match fleet::standing(ctx, id)? {
        fleet::Standing::Ended => Err(provost_kernel::credential::invalid_token()),
        fleet::Standing::Waits => {
            let message = "the device is not active yet: it has to be heard of, and to be approved where that is asked for";
            Err(Error::new(Code::Conflict, message).with("status", "pending"))
        }
        fleet::Standing::Works => Ok(()),
    }
}
