//! Deletes a service account: soft for 30 days, then its rows are removed by a job (D5.7).
//!
//! Keeps SA-5.

use super::model::{AccountPath, KEPT_AFTER_DELETION_SECS, ServiceAccount, not_oneself};
use super::rotate;
use super::store::{self, TokenEnd};
use crate::service_accounts::fences;
use crate::subjects::{DeletionAnswer, Record, SubjectKind, losing, weighed};
use crate::words::{self, Kind};
use provost_areas_platform::announcements::{Departure, PrincipalEnded};
use provost_kernel::auth::Role::Admin;
use provost_kernel::jobs::NewJob;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result, params};
use serde_json::{Value, json};

pub struct DeleteServiceAccount;

impl Operation for DeleteServiceAccount {
    const META: Meta = Meta::write(
        "deleteHeadlessServiceAccount",
        Method::Delete,
        "/service-accounts/{serviceAccountId}",
        "service_accounts",
    )
    .access("service_accounts:write", &[Admin])
    .command("service-accounts", "delete")
    .status(204)
    .also(200)
    .weighed()
    .of_two(&["removals"])
    .says(
        "Delete a service account",
        "All its tokens are revoked; its name can be used again at once. Without confirm the refusal names as \
         lostReferences which policies, ACLs, drafts and credentials name it; so does the answer, which is then 200.",
    );
    type Path = AccountPath;
    type Query = Empty;
    type Body = Empty;
    type Output = DeletionAnswer;

    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        rotate::standing(ctx, &input.path.service_account_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<DeletionAnswer> {
        let id = &input.path.service_account_id;
        ctx.target(&fences::ACCOUNT, id.as_str());
        let (account, mut tokens) = store::get(ctx, id)?;
        not_oneself(&ctx.actor().id, &account, "delete")?;
        store::keep_a_governor(ctx, &account)?;
        let deleted = losing(ctx, record(&account))?;
        for token in tokens.iter_mut().filter(|t| t.revoked_at.is_none()) {
            store::revoke(
                ctx,
                token,
                &TokenEnd {
                    reason: "account_deleted",
                    successor: None,
                    by_itself: false,
                },
            )?;
        }
        ctx.announce(&PrincipalEnded {
            kind: SubjectKind::ServiceAccount,
            id: id.as_str().to_owned(),
            how: Departure::Deleted,
        })?;
        let (org, at) = (ctx.org(), account.changed_at(ctx.now()));
        words::end(ctx, Kind::ServiceAccount, id.as_str(), [account.name.as_str()])?;
        ctx.queue(&store::DELETE, params![org, id.as_str(), at])?;
        ctx.enqueue(NewJob {
            kind: super::worker::PURGE,
            payload: json!({ "serviceAccountId": id }),
            run_at: at.plus_secs(KEPT_AFTER_DELETION_SECS),
        });
        ctx.emit(&fences::DELETED, &fences::OfAccount::of(id));
        Ok(deleted)
    }

    fn weigh(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Option<(&'static str, Value)>> {
        let (account, _) = store::get(ctx, &input.path.service_account_id)?;
        weighed(ctx, record(&account))
    }
}

/// Returns an account as policies may name it.
fn record(account: &ServiceAccount) -> Record {
    Record {
        kind: Kind::ServiceAccount,
        id: account.id.as_str().to_owned(),
        words: vec![account.name.clone()],
    }
}
