//! The job of a check: it has the secret, throws it away and notes what happened.

use super::model::Reason;
use crate::resource_credentials::external::ExternalManagers;
use crate::resource_credentials::fences;
use crate::resource_credentials::model::{CredentialId, Management};
use crate::resource_credentials::{secrets, store};
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::Error;
use provost_kernel::jobs::{Handler, Work};
use provost_kernel::{Kernel, OperationContext, Result};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The kind of job.
pub const KIND: &str = "resource_credential.verify";

/// Returns the handler of checks.
pub fn handler() -> Handler {
    Handler {
        kind: KIND,
        action: "resource_credential.verified",
        work: Work::Outside {
            ask: Box::new(|kernel, organization, payload| Box::pin(ask(kernel, organization, payload))),
            settle,
        },
    }
}

/// Answers `{"reason": …}` or `{}`. Only a store that cannot be read is an error: the job is run again then.
async fn ask(kernel: Arc<Kernel>, organization: OrganizationId, payload: Value) -> Result<Value> {
    let id = text(&payload, "credentialId")?.to_owned();
    let (org, wanted) = (organization.clone(), id.clone());
    let found = kernel
        .read_system(move |tx| store::find_outside(tx, org.as_str(), &wanted))
        .await?;
    // Deleted since: its checks went with it.
    let Some(credential) = found else {
        return Ok(json!({}));
    };
    let failure = match credential.management {
        Management::External {
            instance,
            path,
            field,
            ..
        } => {
            let managers = kernel.extra::<ExternalManagers>();
            let place = managers.and_then(|managers| managers.place(organization.as_str(), &instance));
            match place {
                Some(place) => place.fetch(&path, field.as_deref()).await.err(),
                None => Some(Reason::NotConfigured),
            }
        }
        Management::Here(_) => {
            let is_open = can_unseal(&kernel, organization, CredentialId::from_text(&id)).await?;
            (!is_open).then_some(Reason::NotUnsealed)
        }
    };
    Ok(match failure {
        Some(reason) => json!({ "reason": reason.as_str() }),
        None => json!({}),
    })
}

async fn can_unseal(kernel: &Arc<Kernel>, organization: OrganizationId, id: CredentialId) -> Result<bool> {
    let is_open = Arc::new(AtomicBool::new(false));
    let sink = is_open.clone();
    kernel
        .system(organization, None, move |ctx| {
            sink.store(matches!(secrets::unseal(ctx, &id), Ok(Some(_))), Ordering::SeqCst);
            Ok(())
        })
        .await?;
    Ok(is_open.load(Ordering::SeqCst))
}

fn settle(ctx: &mut OperationContext<'_>, payload: &Value, found: &Value) -> Result<()> {
    let (check, credential) = (text(payload, "checkId")?, text(payload, "credentialId")?);
    ctx.target(&fences::CREDENTIAL, credential);
    let reason = found["reason"].as_str();
    let state = if reason.is_some() { "failed" } else { "succeeded" };
    ctx.change("/check", Value::Null, reason.unwrap_or(state));
    store::settle_check(ctx, check, state, reason)
}

fn text<'a>(payload: &'a Value, member: &'static str) -> Result<&'a str> {
    let found = payload[member].as_str();
    found.ok_or_else(|| Error::internal(format!("a check's job has no {member}")))
}
