//! `PATCH …/automation/settings`

use super::model::{AutomationSettings, SettingsChange};
use super::write;
use provost_kernel::auth::Role;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

pub(super) struct Patch;

impl Operation for Patch {
    const META: Meta = Meta::write(
        "patchHeadlessAutomationSettings",
        Method::Patch,
        "/automation/settings",
        "automation_settings",
    )
    .access("automation_settings:write", &[Role::Admin])
    .says(
        "Change how automation behaves in the organization",
        "Members that are absent stay as they are. Changes act from the next request on; tokens that exist keep the \
         lifetime that they were made with. A shorter retention needs confirm: true and acts after 7 days, within which \
         a longer one takes it back. Retiring devices sooner, showing people again or names of projects, and what has devices let more pass or tell less need confirm: true as well. A role that everybody has is given by \
         who could give it to one user.",
    )
    .command("settings", "set")
    .example(r#"{"tokens": {"defaultGraceSeconds": 300}}"#)
    .of_deciders()
    .sensitive();
    type Path = Empty;
    type Query = Empty;
    type Body = SettingsChange;
    type Output = AutomationSettings;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AutomationSettings> {
        let before = write::before(ctx)?;
        let after = input.body.applied(before.settings());
        write::change(ctx, before, after, input.confirm)
    }
}
