//! Who reads the details of what the area does.
//!
//! Reading events is counted.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
}
