//! What a group opens to those who join it, for the audit entry: membership is what `directory:write` decides.

use super::super::model::GroupId;
use crate::areas::subjects::SubjectKind;
use crate::areas::{policies, resource_credentials};
use provost_kernel::{Cx, Result};
use serde_json::{Value, json};

/// Notes the credentials that are assigned to a group, and the allow lists and exceptions that name it.
pub fn note(cx: &mut Cx<'_>, group: &GroupId) -> Result<()> {
    let credentials = resource_credentials::assigned_to(cx, SubjectKind::Group, group.as_str())?;
    let policies = policies::opened_to(cx, SubjectKind::Group, group.as_str())?;
    if credentials.is_empty() && policies.is_empty() {
        return Ok(());
    }
    let policies: Vec<Value> = policies
        .into_iter()
        .map(|(id, places)| json!({ "policyId": id, "places": places }))
        .collect();
    cx.change(
        "/opens",
        Value::Null,
        json!({ "credentials": credentials, "policies": policies }),
    );
    Ok(())
}
