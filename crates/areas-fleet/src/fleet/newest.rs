//! Which bundle of policies a device would be given now: a question to the area that makes them.

use super::model::DeviceId;
use provost_kernel::announcement::{Announcement, Question};

/// Asks for the name of the bundle that a device would be given. Nobody answers where it would be given none.
pub struct NewestBundle {
    /// The device.
    pub device: DeviceId,
}

impl Announcement for NewestBundle {}

impl Question for NewestBundle {
    type Answer = String;
}
