//! Who reads the details of what the area does.
//!
//! The operation shows callers themselves.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
}
