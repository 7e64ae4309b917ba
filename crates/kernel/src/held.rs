//! What areas say of whom a restore holds back, and how they let it act again.

use crate::auth::Role;
use crate::context::OperationContext;
use crate::error::Result;
use crate::time::Timestamp;

/// Somebody who is held, without the kind.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its id; of an identity link the user's.
    pub id: String,
    /// A name for people; of an identity link its issuer and subject.
    pub name: String,
    /// What it may do once it is released.
    pub role: Option<Role>,
    /// When it last changed before the restore.
    pub last_changed_at: Timestamp,
    /// The ids of the users and accounts that act by it: itself, or those whose machine, sign-in or door it is.
    pub acting: Vec<String>,
}

/// One kind of records that act. Each function acts on the organization of the unit.
#[derive(Clone, Copy)]
pub struct HeldKind {
    /// Its word.
    pub word: &'static str,
    /// Holds back all that can act, in the unit that restores the organization.
    pub hold: fn(&mut OperationContext<'_>) -> Result<()>,
    /// Returns how many are held.
    pub count: fn(&mut OperationContext<'_>) -> Result<i64>,
    /// Returns so many of them, behind so many, by id.
    pub page: fn(&mut OperationContext<'_>, i64, i64) -> Result<Vec<Held>>,
    /// Returns those of an id that are held, found by their key however many are held: one, of a user every identity link, or none.
    pub of_id: fn(&mut OperationContext<'_>, &str) -> Result<Vec<Held>>,
    /// Lets those of an id act again, or all of them, and returns their ids; none where none is held.
    ///
    /// Errors: `EscalationForbidden` when one of them could do more than the caller (RH-2).
    pub release: fn(&mut OperationContext<'_>, Option<&str>) -> Result<Vec<String>>,
}
