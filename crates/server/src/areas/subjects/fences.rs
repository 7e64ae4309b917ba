//! Who reads the details of what the area does.
//!
//! A lost reference of a policy is what everybody who reads the policy sees. The entry also names credentials.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
    events {
        REFERENCE_LOST = "policy.reference_lost" => Readers::Everybody;
    }
    members {
        "/lostReferences" => Readers::Overseers;
    }
}
