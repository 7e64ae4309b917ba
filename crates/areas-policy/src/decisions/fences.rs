//! Who reads the details of what the area does.
//!
//! Decisions leave no entry of their own.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, [];
}
