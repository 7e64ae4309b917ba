//! `GET …/workload-trusts/{workloadTrustId}`

use super::model::{OneTrust, TrustPath};
use super::store;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetWorkloadTrust;

impl Operation for GetWorkloadTrust {
    const META: Meta = Meta::read(
        "getHeadlessWorkloadTrust",
        "/workload-trusts/{workloadTrustId}",
        "workload_trusts",
    )
    .access("workload_trusts:read", &[Admin, Auditor])
    .command("workload-trusts", "get")
    .says("Show a workload trust", "");
    type Path = TrustPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneTrust;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneTrust> {
        store::get(ctx, &input.path.workload_trust_id).map(OneTrust::from)
    }
}
