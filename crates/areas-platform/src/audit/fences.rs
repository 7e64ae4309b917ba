//! Who reads the details of what the area does, and what its events say.
//!
//! Nothing of the area itself is withheld: what an entry says of another area's record, that area declares.

use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// A checkpoint of the log.
    NewCheckpoint {
        /// How many entries it covers.
        size: i64,
        /// The root of the tree over them.
        root_hash: String,
    } like r#"{"size":1000,"rootHash":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}"#;
}

provost_kernel::fences! {
    acts Readers::Everybody, ["audit.checkpoint.created"];
    targets {
        /// The log itself, when it is exported.
        LOG = "audit_log" => Readers::Everybody;
        /// A signed checkpoint; its id is its size.
        CHECKPOINT = "audit_checkpoint" => Readers::Everybody;
    }
    events {
        /// A checkpoint over the audit log was signed.
        CHECKPOINT_CREATED: NewCheckpoint = "audit.checkpoint.created" => Readers::Everybody;
    }
}
