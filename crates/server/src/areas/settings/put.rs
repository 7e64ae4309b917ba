//! `PUT …/automation/settings`

use super::model::{AutomationSettings, Wanted};
use super::store::{self, Stored};
use provost_kernel::auth::Role;
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::{Cx, Result};

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
        "The body is the whole of the settings: what it leaves out gets its factory value. Changes act \
                 from the next request on; tokens that exist keep the lifetime that they were made with.",
    )
    .command("settings", "set")
    .sensitive();
    type Path = Empty;
    type Query = Empty;
    type Body = Wanted;
    type Output = AutomationSettings;

    fn call(cx: &mut Cx<'_>, input: &Input<Self>) -> Result<AutomationSettings> {
        let org = cx.org();
        cx.target("automation_settings", org);
        let before = store::get(&mut cx.tx(), org)?;
        // Time moves on with every change, even when the clock does not (D1.2).
        let updated_at = before
            .as_ref()
            .map_or(cx.now(), |before| cx.now().max(before.updated_at.plus_ms(1)));
        let before = before.map(|before| before.settings).unwrap_or_default();
        let after = Stored {
            settings: input.body.settings(),
            updated_at,
        };
        store::put(cx, &after)?;
        for ((path, old), (_, new)) in before.members().into_iter().zip(after.settings.members()) {
            cx.change(path, old, new);
        }
        Ok(AutomationSettings {
            settings: after.settings,
            updated_at: Some(updated_at),
        })
    }
}
