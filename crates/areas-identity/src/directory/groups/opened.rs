//! What a group opens to those who join it, for the audit entry: membership is what `directory:write` decides.

use super::super::model::GroupId;
use crate::subjects::SubjectKind;
use provost_areas_platform::announcements::{OpenedTo, Opening};
use provost_kernel::{OperationContext, Result};
use serde_json::{Value, json};

/// Notes the credentials that are assigned to a group, and the allow lists and exceptions that name it.
pub fn note(ctx: &mut OperationContext<'_>, group: &GroupId) -> Result<()> {
    let openings = ctx.ask(&OpenedTo {
        kind: SubjectKind::Group,
        id: group.as_str().to_owned(),
    })?;
    if openings.is_empty() {
        return Ok(());
    }
    let (mut credentials, mut policies): (Vec<Value>, Vec<Value>) = Default::default();
    for opening in openings {
        match opening {
            Opening::Credential { id } => credentials.push(id.into()),
            Opening::Policy { id, places } => policies.push(json!({ "policyId": id, "places": places })),
        }
    }
    ctx.change(
        "/opens",
        Value::Null,
        json!({ "credentials": credentials, "policies": policies }),
    );
    Ok(())
}
