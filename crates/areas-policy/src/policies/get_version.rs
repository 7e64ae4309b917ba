//! `GET …/policies/versions/{versionId}`

use super::model::SetVersionId;
use super::store;
use super::views::VersionView;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::error::Error;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct GetVersion;

/// The path of operations on one version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct VersionPath {
    /// The version.
    version_id: SetVersionId,
}

impl Operation for GetVersion {
    const META: Meta = Meta::read(
        "getHeadlessPolicyVersion",
        "/policies/versions/{versionId}",
        "policies",
    )
    .access("policies:read", &[Admin, Operator, Auditor, Viewer])
    .command("policies", "version")
    .says(
        "Read a version of the policy set",
        "A version never changes, and none is ever removed.",
    );
    type Path = VersionPath;
    type Query = Empty;
    type Body = Empty;
    type Output = VersionView;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<VersionView> {
        let version = store::full_version(ctx, input.path.version_id.as_str())?;
        let version = version.ok_or_else(|| Error::not_found("policy set version"))?;
        VersionView::from(version).with_ids(ctx)
    }
}
