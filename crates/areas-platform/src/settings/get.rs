//! `GET …/automation/settings`

use super::model::AutomationSettings;
use super::store;
use crate::settings::fences;
use provost_kernel::auth::Role;
use provost_kernel::operation::{Empty, Input, Meta, Operation};
use provost_kernel::{OperationContext, Result};

pub(super) struct Get;

impl Operation for Get {
    const META: Meta = Meta::read(
        "getHeadlessAutomationSettings",
        "/automation/settings",
        "automation_settings",
    )
    .access(
        "automation_settings:read",
        &[Role::Admin, Role::Operator, Role::Auditor],
    )
    .says(
        "Show how automation behaves in the organization",
        "updatedAt is absent in the factory state. retentionShortening says what is kept until a shorter retention acts.",
    )
    .command("settings", "get")
    .sensitive();
    type Path = Empty;
    type Query = Empty;
    type Body = Empty;
    type Output = AutomationSettings;

    fn call(ctx: &mut OperationContext<'_>, _: &Input<Self>) -> Result<AutomationSettings> {
        let org = ctx.org();
        ctx.target(&fences::SETTINGS, org);
        let now = ctx.now();
        let stored = store::get(&mut ctx.tx(), org)?;
        let updated_at = stored.as_ref().map(|stored| stored.updated_at);
        Ok(AutomationSettings {
            settings: stored.map(|stored| stored.settings.at(now)).unwrap_or_default(),
            updated_at,
        })
    }
}
