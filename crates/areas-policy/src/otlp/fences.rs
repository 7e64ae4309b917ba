//! Who reads the details of what the area does.
//!
//! What arrives is named by the area of history.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
}
