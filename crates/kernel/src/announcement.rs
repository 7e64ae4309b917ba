//! What an area tells and asks the areas that stand on it, in the unit of work in which it happens.
//!
//! An area does not call what stands on it: it says what happened, and whoever has to act on that says so in its
//! [`crate::area::Area::on`]. All of it is one transaction, in the order of the areas.
//!
//! ```text
//! directory      ctx.announce(&PrincipalEnded { … })
//! skill_registry on: &[&Subscriber(|ctx, ended: &PrincipalEnded| …)]      runs then and there, and may refuse
//!
//! subjects       ctx.ask(&LostWith { … })                           every answer, in the order of the areas
//! policies       on: &[&Answers(|ctx, lost: &LostWith| …)]
//! ```
//!
//! Absent on purpose: announcements that are heard later. Those are events and jobs.

use crate::context::OperationContext;
use crate::error::{Error, Result};
use std::any::{Any, TypeId};

/// Something that an area announces.
pub trait Announcement: Any {
    /// Whether what follows depends on a listener: where nobody listens the unit fails, in place of going on as if nobody
    /// minded.
    const IS_DECISIVE: bool = false;
}

/// An announcement that is answered.
pub trait Question: Announcement {
    /// One answer; an area may give several, or none.
    type Answer: 'static;
}

/// Who acts on announcements of one type.
pub trait Listener: Sync {
    /// Returns the type of announcements that it acts on.
    fn hears(&self) -> TypeId;

    /// Acts on an announcement, if it is of the listener's type, and adds its answers to the vector `answers`, if it is asked.
    ///
    /// Errors: those of the act; a refusal refuses the unit.
    fn hear(
        &self,
        ctx: &mut OperationContext<'_>,
        announcement: &dyn Any,
        answers: &mut dyn Any,
    ) -> Result<()>;
}

/// Acts on announcements of a type.
pub struct Subscriber<A>(pub fn(&mut OperationContext<'_>, &A) -> Result<()>);

impl<A: Announcement> Listener for Subscriber<A> {
    fn hears(&self) -> TypeId {
        TypeId::of::<A>()
    }

    fn hear(&self, ctx: &mut OperationContext<'_>, announcement: &dyn Any, _: &mut dyn Any) -> Result<()> {
        match announcement.downcast_ref() {
            Some(announcement) => (self.0)(ctx, announcement),
            None => Ok(()),
        }
    }
}

/// Answers questions of a type.
pub struct Answers<Q: Question>(pub fn(&mut OperationContext<'_>, &Q) -> Result<Vec<Q::Answer>>);

impl<Q: Question> Listener for Answers<Q> {
    fn hears(&self) -> TypeId {
        TypeId::of::<Q>()
    }

    fn hear(
        &self,
        ctx: &mut OperationContext<'_>,
        announcement: &dyn Any,
        answers: &mut dyn Any,
    ) -> Result<()> {
        let Some(question) = announcement.downcast_ref() else {
            return Ok(());
        };
        let given = (self.0)(ctx, question)?;
        match answers.downcast_mut::<Vec<Q::Answer>>() {
            Some(answers) => answers.extend(given),
            None => return Err(Error::internal("a question was announced and not asked")),
        }
        Ok(())
    }
}
