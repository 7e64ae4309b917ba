//! Who reads the details of what the area does.
//!
//! Definitions stand in no entry; everybody who reads the log reads policies.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
    targets {
        /// A policy.
        POLICY = "policy" => Readers::Everybody;
    }
    events {
        CREATED = "policy.created" => Readers::Everybody;
        UPDATED = "policy.updated" => Readers::Everybody;
        DELETED = "policy.deleted" => Readers::Everybody;
        CLAIMED = "policy.claimed" => Readers::Everybody;
        RELEASED = "policy.released" => Readers::Everybody;
        VERSION_CREATED = "policy_set.version_created" => Readers::Everybody;
    }
}
