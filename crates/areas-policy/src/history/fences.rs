//! Who reads the details of what the area does.
//!
//! Whoever reads the log may read which sources brought events.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, ["history.adopted", "policy.history.imported"];
    targets {
        /// A recorded event.
        EVENT = "event" => Readers::Everybody;
        /// A source of imported events.
        SOURCE = "history_source" => Readers::Everybody;
    }
}
