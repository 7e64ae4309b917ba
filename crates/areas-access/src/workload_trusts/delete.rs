//! `DELETE …/workload-trusts/{workloadTrustId}`

use super::model::TrustPath;
use super::{end_sessions, fences, store};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::{Value, json};

pub struct DeleteWorkloadTrust;

impl Operation for DeleteWorkloadTrust {
    const META: Meta = Meta::write(
        "deleteHeadlessWorkloadTrust",
        Method::Delete,
        "/workload-trusts/{workloadTrustId}",
        "workload_trusts",
    )
    .access("workload_trusts:write", &[Admin])
    .command("workload-trusts", "delete")
    .confirmed()
    .status(204)
    .of_two(&["removals"])
    .says("Delete a workload trust", "All of its sessions end.");
    type Path = TrustPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        store::standing(ctx, &input.path.workload_trust_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.workload_trust_id;
        ctx.target(&fences::TRUST, id.as_str());
        let trust = store::get(ctx, id)?;
        end_sessions(ctx, id)?;
        store::delete(ctx, id)?;
        ctx.change("/name", trust.name.as_str(), Value::Null);
        ctx.change("/issuer", trust.issuer.as_str(), Value::Null);
        ctx.change("/claims", json!(trust.claims), Value::Null);
        ctx.change("/scopes", json!(trust.scopes.to_list()), Value::Null);
        ctx.emit(&fences::DELETED, &fences::OfTrust::of(&trust));
        Ok(NoContent {})
    }
}
