//! `POST …/devices/enrolment-tokens/{enrolmentTokenId}/revoke`

use super::enrolment::{self, EnrolmentToken, EnrolmentTokenPath};
use super::sight::Sight;
use super::{fences, store};
use provost_kernel::auth::Role::Admin;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;

pub struct RevokeEnrolmentToken;

/// An enrolment token, and what came of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Revoked {
    enrolment_token: EnrolmentToken,
    /// How many devices enrolled by it and are not retired. They stay; the filter `enrolmentTokenId` of the list finds them.
    devices: i64,
}

impl Operation for RevokeEnrolmentToken {
    const META: Meta = Meta::write(
        "revokeHeadlessEnrolmentToken",
        Method::Post,
        "/devices/enrolment-tokens/{enrolmentTokenId}/revoke",
        "fleet",
    )
    .access("fleet:enrol", &[Admin])
    .command("enrolment-tokens", "revoke")
    .says(
        "Revoke an enrolment token",
        "Nobody enrols by it any more. Devices that did stay, and are counted.",
    );
    type Path = EnrolmentTokenPath;
    type Query = Empty;
    type Body = Empty;
    type Output = Revoked;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Revoked> {
        let id = &input.path.enrolment_token_id;
        ctx.target(&fences::ENROLMENT_TOKEN, id.as_str());
        enrolment::get(ctx, id)?;
        if enrolment::revoke(ctx, id, None)? {
            ctx.change("/revoked", false, true);
            let of = fences::OfEnrolmentToken {
                enrolment_token_id: id.clone(),
            };
            ctx.emit(&fences::TOKEN_REVOKED, &of);
        }
        let sight = Sight::load(ctx)?;
        Ok(Revoked {
            devices: store::count_by_token(ctx, id)?,
            enrolment_token: enrolment::get(ctx, id)?.seen(&sight),
        })
    }
}
