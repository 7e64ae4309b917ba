//! Who reads the details of what the area does, and what its events say.
//!
//! A lost reference of a policy is what everybody who reads the policy sees. The entry also names credentials.

use super::lost::LostReference;
use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
    events {
        /// A policy names a record that was deleted.
        REFERENCE_LOST: LostReference = "policy.reference_lost" => Readers::Everybody;
    }
    members {
        "/lostReferences" => Readers::Overseers;
    }
}
