//! What a gateway token may ask: about its own skill, as its own principal (D10.6).
//!
//! | of an event | rule |
//! | --- | --- |
//! | `occasion` | `skill`, or one of content (`prompt`, `pre_tool`, `post_tool`, `response`) |
//! | `skill.id` | the item that the token is bound to, by its id or its name |
//! | `identity.service_account_id` | the token's principal; filled in where it is absent |
//! | `identity.user_id`, `identity.group_ids`, `device.id` | absent: the token speaks for nobody else |
//!
//! Whoever decides for users needs a service account with the scope `policies:decide`.

use crate::areas::history::Incoming;
use provost_kernel::Result;
use provost_kernel::auth::Actor;
use provost_kernel::error::{Code, Error};
use provost_policy::{Family, Field};

/// Refuses what a gateway token may not ask, and says who its principal is.
///
/// INVARIANT DE-7. Errors: `InsufficientScope`.
pub fn admit(actor: &Actor, events: &mut [Incoming]) -> Result<()> {
    let Some(item) = actor.item.as_deref() else {
        return Ok(());
    };
    for event in events {
        let speaks_for_others = [Field::USER, Field::GROUPS, Field::DEVICE]
            .into_iter()
            .any(|field| names(event, field));
        let is_own = |field: Field, own: &str| {
            event
                .attributes
                .get(field.name())
                .is_some_and(|value| value == own)
        };
        let is_about_own = matches!(event.occasion.family(), Family::Content | Family::SkillAcl)
            && is_own(Field::SKILL, item)
            && (is_own(Field::SERVICE_ACCOUNT, &actor.id) || !names(event, Field::SERVICE_ACCOUNT));
        if speaks_for_others || !is_about_own {
            let message = "a gateway token decides about its own skill, as its own principal; anything else needs the \
                           scope policies:decide";
            return Err(Error::new(Code::InsufficientScope, message).with("scope", "policies:decide"));
        }
        let own = actor.id.as_str().into();
        event
            .attributes
            .insert(Field::SERVICE_ACCOUNT.name().to_owned(), own);
    }
    Ok(())
}

/// Returns whether an event says anything of an attribute.
fn names(event: &Incoming, field: Field) -> bool {
    let is_given = event
        .attributes
        .get(field.name())
        .is_some_and(|value| !value.is_null());
    is_given || event.missing.iter().any(|missing| missing == field.name())
}
