//! `PUT …/automation/settings`
//!
//! Keeps SE-5.

use super::model::{AutomationSettings, SettingsChange};
use super::write;
use provost_kernel::auth::Role;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{OperationContext, Result};

pub(super) struct Put;

impl Operation for Put {
    const META: Meta = Meta::write(
        "updateHeadlessAutomationSettings",
        Method::Put,
        "/automation/settings",
        "automation_settings",
    )
    .access("automation_settings:write", &[Role::Admin])
    .says(
        "Replace how automation behaves in the organization",
        "The body is the whole of the settings. What it leaves out has its factory value; a body that would reset a \
         member without naming it is refused, and PATCH changes single members. Changes act from the next request \
         on; tokens that exist keep the lifetime that they were made with. A shorter retention needs confirm: true and \
         acts after 7 days, within which a longer one takes it back. Retiring devices sooner, showing people again or names of projects, and what has devices let more pass or tell less need confirm: true as well. A role \
         that everybody has is given by who could give it to one user.",
    )
    .command("settings", "replace")
    .example(
        r#"{"tokens": {"secretReplaySeconds": 86400, "defaultGraceSeconds": 0,
           "maxLifetimeSeconds": 31536000, "revokeFamilyOnReuse": false},
           "managedConfig": {"requirePreview": false}, "llmGateway": {"enabled": true},
           "policies": {"maxBacktestDays": 90}, "history": {"countImports": false},
           "retention": {"historyDays": 400}, "directory": {"complete": false, "maxRemovalPercent": 10}}"#,
    )
    .of_deciders()
    .sensitive();
    type Path = Empty;
    type Query = Empty;
    type Body = SettingsChange;
    type Output = AutomationSettings;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AutomationSettings> {
        let before = write::before(ctx)?;
        let unnamed = input.body.unnamed(before.settings());
        if !unnamed.is_empty() {
            return Err(would_reset(&unnamed));
        }
        let after = input.body.applied(before.settings());
        write::change(ctx, before, after, input.confirm)
    }
}

/// Refuses a body that would take back what somebody set without a word about it.
fn would_reset(unnamed: &[&'static str]) -> Error {
    let message = format!(
        "the body leaves out what is not in its factory state: {}; name it, or change single members with PATCH",
        unnamed.join(", ")
    );
    unnamed
        .iter()
        .fold(Error::new(Code::Conflict, message), |error, pointer| {
            error.and_field(*pointer, "is set, and the body does not name it")
        })
}
