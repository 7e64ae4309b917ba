//! Who reads the details of what the area does.
//!
//! What a restore holds back is accounts, clients and identity links.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Overseers, ["rights.accepted", "rights.disagreed", "rights.proven", "store.accepted", "store.loss_accepted", "store.restored"];
    targets {
        /// Everybody whom a restore holds back.
        HELD = "restore" => Readers::Overseers;
        /// The store of the installation; its id is the epoch.
        STORE = "store" => Readers::Overseers;
    }
    events {
        RELEASED = "restore.released" => Readers::Overseers;
        /// Rows that decide rights are not what Provost wrote.
        DISAGREED = "rights.disagreed" => Readers::Overseers;
    }
}
