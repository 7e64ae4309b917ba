//! Who reads the details of what the area does, and what its events say.
//!
//! Whoever reads the log may see that a device judged otherwise; what it judged is for those who read decisions.

use provost_areas_fleet::fleet::DeviceId;
use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// A device that judged otherwise than the server.
    Mismatch {
        /// The device.
        device_id: DeviceId,
        /// How many of what it told last was judged otherwise, of the hundredth that was judged again.
        events: i64,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2","events":1}"#;
}

/// The action under which the log has that a device judged otherwise.
pub const MISMATCH: &str = "fleet.device.decision_mismatch";

provost_kernel::fences! {
    acts Readers::Everybody, [MISMATCH];
    targets {
        /// What a device told of what it judged.
        DECISIONS = "device_decisions" => Readers::Everybody;
    }
    events {
        /// A device told a decision that the server does not come to by the policies that it names.
        MISMATCHED: Mismatch = "fleet.device.decision_mismatch" => Readers::Everybody;
    }
}
