//! What the area tells those that stand on it.

use super::model::{Protocol, ResourceId};
use provost_kernel::announcement::Announcement;

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

impl Announcement for ResourceGoes {
    const IS_DECISIVE: bool = true;
}
impl Announcement for ProtocolChanges {
    const IS_DECISIVE: bool = true;
}
