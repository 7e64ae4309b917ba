//! Deletes a service account: soft for 30 days, then its rows are removed by a job (D5.7).

use super::model::{AccountPath, KEPT_AFTER_DELETION_SECS, not_oneself};
use super::store::{self, Ending};
use crate::areas::subjects::SubjectKind;
use crate::areas::{mcp_sessions, resource_credentials, skill_registry};
use provost_kernel::auth::Role::Admin;
use provost_kernel::jobs::NewJob;
use provost_kernel::operation::{Empty, Input, Meta, Method, NoContent, Operation};
use provost_kernel::{Cx, Result, params};
use serde_json::json;

/// See [`Operation::META`].
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
    .confirmed()
    .says(
        "Delete a service account",
        "All its tokens are revoked; its name can be used again at once.",
    );
    type Path = AccountPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<NoContent> {
        let id = &input.path.service_account_id;
        cx.target("service_account", id.as_str());
        let (account, mut tokens) = store::get(cx, id)?;
        not_oneself(&cx.actor().id, &account, "delete")?;
        store::keep_a_governor(cx, &account)?;
        for token in tokens.iter_mut().filter(|t| t.revoked_at.is_none()) {
            store::revoke(
                cx,
                token,
                &Ending {
                    reason: "account_deleted",
                    successor: None,
                    by_itself: false,
                },
            )?;
        }
        skill_registry::revoke_tokens_of(cx, id.as_str())?;
        mcp_sessions::account_left(cx, id.as_str())?;
        let (org, at) = (cx.org(), account.changed_at(cx.now()));
        cx.queue(&store::DELETE, params![org, id.as_str(), at])?;
        resource_credentials::forget_subject(cx, SubjectKind::ServiceAccount, id.as_str())?;
        cx.enqueue(NewJob {
            kind: super::worker::PURGE,
            payload: json!({ "serviceAccountId": id }),
            run_at: at.plus_secs(KEPT_AFTER_DELETION_SECS),
        });
        cx.emit("service_account.deleted", json!({ "serviceAccountId": id }));
        Ok(NoContent {})
    }
}
