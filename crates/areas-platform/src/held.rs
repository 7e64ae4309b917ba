//! What areas say of whom a restore holds back.

use provost_kernel::Timestamp;
use provost_kernel::auth::Role;

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
}
