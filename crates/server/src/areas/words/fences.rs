//! Who reads the details of what the area does.
//!
//! Operators read which words are mapped to which users.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
    events {
        MAPPED = "directory.identity.mapped" => Readers::Everybody;
        UNMAPPED = "directory.identity.unmapped" => Readers::Everybody;
    }
}
