//! Who reads the details of what the area does.
//!
//! Nothing of the area itself is withheld: what an entry says of another area's record, that area declares.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Everybody, ["audit.checkpoint.created"];
    targets {
        /// The log itself, when it is exported.
        LOG = "audit_log" => Readers::Everybody;
        /// A signed checkpoint; its id is its size.
        CHECKPOINT = "audit_checkpoint" => Readers::Everybody;
    }
    events {
        CHECKPOINT_CREATED = "audit.checkpoint.created" => Readers::Everybody;
    }
}
