//! Who reads the details of what the area does.
//!
//! Operators read the settings as they are; who changed them, and what they were, is for admins and auditors.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Overseers, [];
    targets {
        /// The settings; their id is the organization.
        SETTINGS = "automation_settings" => Readers::Overseers;
    }
}
