//! Who reads the details of what the area does.
//!
//! Definitions stand in no entry; everybody who reads the log reads policies.

use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::fences! {
    acts Readers::Everybody, [];
    targets {
        /// A policy.
        POLICY = "policy" => Readers::Everybody;
    }
    events {
        CREATED = "policy.created" => Readers::Everybody;
        UPDATED = "policy.updated" => Readers::Everybody;
        DELETED = "policy.deleted" => Readers::Everybody;
        CLAIMED = "policy.claimed" => Readers::Everybody;
        RELEASED = "policy.released" => Readers::Everybody;
        VERSION_CREATED = "policy_set.version_created" => Readers::Everybody;
    }
}

/// What entries say of policies; their definitions stand in none.
pub static POLICIES: Testimony = Testimony {
    table: "policies",
    kind: &POLICY,
    among: None,
    words: &[
        Word::new("current_revision", "/revision"),
        Word::new("definition_sha256", "/definitionSha256"),
        Word::new("action", "/action"),
        Word::of("enabled", "/enabled", Form::Flag),
    ],
};
