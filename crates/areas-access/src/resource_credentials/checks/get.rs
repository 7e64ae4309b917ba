//! `GET …/credentials/{credentialId}/checks/{checkId}`

use super::model::{Check, CheckPath, KEPT_SECS, State};
use crate::resource_credentials::store;
use provost_kernel::auth::Role::{Admin, Auditor};
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub struct GetCheck;

impl Operation for GetCheck {
    const META: Meta = Meta::read(
        "getHeadlessResourceCredentialCheck",
        "/resources/{resourceId}/credentials/{credentialId}/checks/{checkId}",
        "resource_credentials",
    )
    .access("resource_credentials:read", &[Admin, Auditor])
    .command("resource-credentials", "check")
    .answers(&["Retry-After"])
    .says(
        "Show a check of a credential",
        "While it is pending, Retry-After says when to ask again. A check is kept for 7 days.",
    );
    type Path = CheckPath;
    type Query = Empty;
    type Body = Empty;
    type Output = Check;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Check> {
        let path = &input.path;
        let after = ctx.now().plus_secs(-KEPT_SECS);
        let check = store::get_check(ctx, &path.resource_id, &path.credential_id, &path.check_id, after)?;
        if check.state == State::Pending {
            ctx.header("retry-after", "1".into());
        }
        Ok(check)
    }
}
