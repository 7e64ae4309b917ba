//! Who reads the details of what the area does.
//!
//! What is done stands in the entries of profiles, which everybody reads who reads the log; no entry has a value of a release.

/// The action under which the log has that a device stands elsewhere with a profile than before.
pub const REPORTED: &str = "managed_config.device.reported";

provost_kernel::fences! {
    acts provost_kernel::fence::Readers::Everybody, [REPORTED];
}
