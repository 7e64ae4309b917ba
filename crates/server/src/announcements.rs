//! What areas tell those that stand on them: see [`provost_kernel::announcement`].

use crate::areas::resources::model::{Protocol, ResourceId};
use crate::areas::subjects::SubjectKind;
use provost_kernel::Timestamp;
use provost_kernel::announcement::Announcement;

/// How somebody stops acting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// For a time: a user was suspended or an account disabled.
    Stopped,
    /// The record was deleted.
    Deleted,
}

/// Somebody acts no more.
pub struct PrincipalEnded {
    /// What it was.
    pub kind: SubjectKind,
    /// Its id.
    pub id: String,
    /// How.
    pub how: Departure,
}

/// A user or an account is shown under another name.
pub struct PrincipalRenamed {
    /// What it is.
    pub kind: SubjectKind,
    /// Its id.
    pub id: String,
    /// As it was shown.
    pub before: String,
    /// As it is shown from now on.
    pub after: String,
}

/// A user of the directory has another login name.
pub struct LoginNameChanged {
    /// The user's id.
    pub user_id: String,
}

/// A generation of the directory that an import staged is visible, whomever it renames.
pub struct ImportApplied {
    /// Its number.
    pub generation: i64,
}

/// A token of a service account was revoked.
pub struct TokenRevoked {
    /// Its id.
    pub id: String,
    /// Why, as its row says it.
    pub reason: String,
}

/// A token of a service account was superseded and works until an instant.
pub struct TokenSuperseded {
    /// Its id.
    pub id: String,
    /// Until when.
    pub until: Timestamp,
}

/// Sessions of clients ended at an instant, for a reason.
pub struct SessionsEnded {
    /// When.
    pub at: Timestamp,
    /// Why, as their rows say it.
    pub reason: String,
}

/// A resource is about to be deleted; who still needs it refuses.
pub struct ResourceGoes {
    /// Which one.
    pub id: ResourceId,
}

/// A resource is about to speak another protocol; who does not fit it refuses.
pub struct ProtocolChanges {
    /// Of which resource.
    pub id: ResourceId,
    /// What it will speak.
    pub protocol: Protocol,
}

impl Announcement for PrincipalEnded {}
impl Announcement for TokenRevoked {}
impl Announcement for TokenSuperseded {}
impl Announcement for SessionsEnded {}
impl Announcement for ResourceGoes {}
impl Announcement for ProtocolChanges {}
impl Announcement for PrincipalRenamed {}
impl Announcement for LoginNameChanged {}
impl Announcement for ImportApplied {}
