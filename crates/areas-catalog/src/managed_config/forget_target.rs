//! Forgets a machine, so that another account may report it.

use super::model::{MachineId, TargetPath};
use super::{machines, store};
use crate::managed_config::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{OperationContext, Result};
use serde_json::{Value, json};

pub struct ForgetTarget;

impl Operation for ForgetTarget {
    const META: Meta = Meta::write(
        "forgetHeadlessManagedConfigTarget",
        Method::Delete,
        "/managed-config/profiles/{profileId}/targets/{targetId}",
        "managed_config",
    )
    .access("managed_config:write", &[Admin])
    .command("managed-config", "forget-target")
    .status(204)
    .says(
        "Forget a machine of a profile",
        "It belongs to the account that reports it next.",
    );
    type Path = TargetPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<NoContent> {
        let none = || Error::not_found("managed configuration target");
        let named = MachineId::try_from(input.path.target_id.clone());
        ctx.target(&fences::PROFILE, input.path.profile_id.as_str());
        let profile = store::get(ctx, &input.path.profile_id)?.profile;
        let target = named.map_err(|_| none())?;
        let machine = machines::get(ctx, &profile.id, target.as_str())?.ok_or_else(none)?;
        machines::remove(ctx, &profile.id, &machine.target_id)?;
        ctx.change("/targetId", machine.target_id, Value::Null);
        ctx.change("/reportedBy", json!(machine.reported_by), Value::Null);
        Ok(NoContent {})
    }
}
