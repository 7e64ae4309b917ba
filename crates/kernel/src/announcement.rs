//! What an area tells the areas that stand on it, in the unit of work in which it happens.
//!
//! An area does not call what stands on it: it says what happened, and whoever has to act on that says so in its
//! [`crate::area::Area::on`]. All of it is one transaction, in the order of the areas.
//!
//! ```text
//! directory      cx.announce(&PrincipalEnded { … })
//! skill_registry on: &[&Hears(|cx, ended: &PrincipalEnded| …)]      runs then and there, and may refuse
//! ```
//!
//! Absent on purpose: announcements that are heard later. Those are events and jobs.

use crate::cx::Cx;
use crate::error::Result;
use std::any::Any;

/// Something that an area announces.
pub trait Announcement: Any {}

/// Who acts on announcements of one type.
pub trait Listener: Sync {
    /// Acts on an announcement, if it is of the listener's type.
    ///
    /// Errors: those of the act; a refusal refuses the unit.
    fn hear(&self, cx: &mut Cx<'_>, announcement: &dyn Any) -> Result<()>;
}

/// Acts on announcements of a type.
pub struct Hears<A>(pub fn(&mut Cx<'_>, &A) -> Result<()>);

impl<A: Announcement> Listener for Hears<A> {
    fn hear(&self, cx: &mut Cx<'_>, announcement: &dyn Any) -> Result<()> {
        match announcement.downcast_ref() {
            Some(announcement) => (self.0)(cx, announcement),
            None => Ok(()),
        }
    }
}
