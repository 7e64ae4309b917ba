//! What a gateway token may ask: about its own skill, as its own principal (D10.6).
//!
//! | of an event | rule |
//! | --- | --- |
//! | `occasion` | `skill`, or one of content (`prompt`, `pre_tool`, `post_tool`, `response`) |
//! | `skill.id` | the item that the token is bound to, by its id or a name that no other has; its id is put in place of it |
//! | `identity.service_account_id`, of a person's token `identity.user_id` | the token's principal; filled in where it is absent |
//! | the other of the two, `identity.group_ids`, `device.id` | absent: the token speaks for nobody else |
//!
//! Whoever decides for users needs a service account with the scope `policies:decide`.

use crate::history::IncomingEvent;
use provost_areas_identity::words::{self, Kind, WordQuery};
use provost_kernel::error::{Code, Error};
use provost_kernel::{OperationContext, Result};
use provost_policy::{Family, Field};

/// Refuses what a gateway token may not ask, and says who its principal is.
///
/// INVARIANT DE-7. Errors: `InsufficientScope`.
/// Cost: one statement, for gateway tokens alone.
pub fn admit(ctx: &mut OperationContext<'_>, events: &mut [IncomingEvent]) -> Result<()> {
    let (actor, org) = (ctx.actor(), ctx.org());
    let Some(item) = actor.item.as_deref() else {
        return Ok(());
    };
    let mut asked = WordQuery::default();
    for word in events.iter().flat_map(|event| event.words(Kind::Skill)) {
        asked.add(Kind::Skill, word);
    }
    let found = words::living(&mut ctx.tx(), org, &asked)?;
    // A name that several skills have is not this one's.
    let is_item = |word: &str| matches!(found.of(Kind::Skill, word), [skill] if skill.id == item);
    let (principal, other) = if actor.kind == "service_account" {
        (Field::SERVICE_ACCOUNT, Field::USER)
    } else {
        (Field::USER, Field::SERVICE_ACCOUNT)
    };
    for event in events {
        let speaks_for_others = [other, Field::GROUPS, Field::DEVICE]
            .into_iter()
            .any(|field| names(event, field));
        let is_own = |field: Field, own: &str| {
            event
                .attributes
                .get(field.name())
                .is_some_and(|value| value == own)
        };
        let is_about_own = matches!(event.occasion.family(), Family::Content | Family::SkillAcl)
            && event.words(Kind::Skill).next().is_some_and(is_item)
            && (is_own(principal, &actor.id) || !names(event, principal));
        if speaks_for_others || !is_about_own {
            let message = "a gateway token decides about its own skill, as its own principal; anything else needs the \
                           scope policies:decide";
            return Err(Error::new(Code::InsufficientScope, message).with("scope", "policies:decide"));
        }
        // What is judged is what was admitted, and no second reading of the caller's words: the actor's own skill and
        // principal stand in place of them.
        let own = actor.id.as_str().into();
        event.attributes.insert(principal.name().to_owned(), own);
        // What is no text is refused when the event is read.
        let skill = event.attributes.get_mut(Field::SKILL.name());
        if let Some(skill) = skill.filter(|skill| skill.is_string()) {
            *skill = item.into();
        }
    }
    Ok(())
}

/// Returns whether an event says anything of an attribute.
fn names(event: &IncomingEvent, field: Field) -> bool {
    let is_given = event
        .attributes
        .get(field.name())
        .is_some_and(|value| !value.is_null());
    is_given || event.missing.iter().any(|missing| missing == field.name())
}
