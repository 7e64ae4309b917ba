//! `POST …/credentials/{credentialId}/verify`
//!
//! Keeps RC-9.

use super::job;
use super::model::{CheckId, State};
use crate::resource_credentials::fences;
use crate::resource_credentials::model::CredentialPath;
use crate::resource_credentials::store;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::jobs::NewJob;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

pub struct VerifyCredential;

/// A check that has begun.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct StartedCheck {
    check_id: CheckId,
    state: State,
}

impl Operation for VerifyCredential {
    const META: Meta = Meta::write(
        "verifyHeadlessResourceCredential",
        Method::Post,
        "/resources/{resourceId}/credentials/{credentialId}/verify",
        "resource_credentials",
    )
    .access("resource_credentials:write", &[Admin])
    .command("resource-credentials", "verify")
    .status(202)
    .says(
        "Begin a check that a credential's secret can be had",
        "The secret is fetched from its secret manager, or opened here, and thrown away. Ask for the check by its \
         id until it is no longer pending. A check of the same credential that is still under way is not begun twice: its \
         id is answered.",
    );
    type Path = CredentialPath;
    type Query = Empty;
    type Body = Empty;
    type Output = StartedCheck;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<StartedCheck> {
        let path = &input.path;
        ctx.target(&fences::CREDENTIAL, path.credential_id.as_str());
        let credential = store::get(ctx, &path.resource_id, &path.credential_id)?;
        if !credential.kind.keeps_secret() {
            let message = "this kind of credential has no secret that could be checked";
            return Err(Error::new(Code::Conflict, message));
        }
        // RC-9.
        if let Some(check_id) = store::open_check(ctx, &credential)? {
            return Ok(StartedCheck {
                check_id,
                state: State::Pending,
            });
        }
        let check_id: CheckId = ctx.new_id();
        store::insert_check(ctx, &check_id, &credential.id)?;
        ctx.enqueue(NewJob {
            kind: job::KIND,
            payload: json!({ "checkId": check_id, "credentialId": credential.id }),
            run_at: ctx.now(),
        });
        Ok(StartedCheck {
            check_id,
            state: State::Pending,
        })
    }
}
