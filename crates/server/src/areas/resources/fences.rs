//! Who reads the details of what the area does.
//!
//! Resources are inventory.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
    targets {
        /// A resource.
        RESOURCE = "resource" => Readers::Everybody;
        /// A gateway of resources.
        GATEWAY = "resource_gateway" => Readers::Everybody;
    }
}
