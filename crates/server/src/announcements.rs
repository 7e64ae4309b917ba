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
