//! Takes a client's word that the files of an uninstalled skill are gone (D10.7).

use super::install_store;
use super::model::{InstallId, InstallStatus, InstallView};
use crate::skill_registry::fences;
use provost_kernel::auth::Role::{Admin, Auditor, Operator, Viewer};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub struct ReportSkillInstallRemoved;

/// Names an install.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct InstallPath {
    /// The install.
    install_id: InstallId,
}

/// The install after the report.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct OneInstall {
    install: InstallView,
}

impl Operation for ReportSkillInstallRemoved {
    const META: Meta = Meta::write(
        "reportHeadlessSkillInstallRemoved",
        Method::Post,
        "/skill-installs/{installId}/removed",
        "registry",
    )
    .access("registry:install", &[Admin, Operator, Auditor, Viewer])
    .command("skills", "report-removed")
    .says(
        "Report that the files of an uninstalled skill are gone",
        "For the caller's own installs. An install that is still in use is 409: uninstall it first. Reporting it \
         again changes nothing.",
    );
    type Path = InstallPath;
    type Query = Empty;
    type Body = Empty;
    type Output = OneInstall;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<OneInstall> {
        let id = &input.path.install_id;
        ctx.target(&fences::INSTALL, id.as_str());
        let mut install = install_store::own(ctx, id)?;
        match install.status {
            InstallStatus::Installed => {
                let message = "this skill is still installed; uninstall it first";
                return Err(Error::new(Code::Conflict, message).with("status", install.status.as_str()));
            }
            InstallStatus::Removed => {}
            InstallStatus::PendingCleanup => {
                let at = install.changed_at(ctx.now());
                ctx.change(
                    "/status",
                    install.status.as_str(),
                    InstallStatus::Removed.as_str(),
                );
                install.status = InstallStatus::Removed;
                install.removed_at = Some(at);
                install.updated_at = at;
                install_store::save(ctx, &install)?;
            }
        }
        Ok(OneInstall {
            install: install.into(),
        })
    }
}
