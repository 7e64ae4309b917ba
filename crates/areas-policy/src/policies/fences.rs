//! Who reads the details of what the area does, and what its events say.
//!
//! Definitions stand in no entry; everybody who reads the log reads policies.

use super::model::PolicyId;
use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::event_data! {
    /// A policy as it stands.
    OfPolicy {
        /// The policy.
        policy_id: PolicyId,
        /// Its family.
        family: &'static str,
        /// The number of its newest revision.
        revision: i64,
        /// The digest of that definition.
        definition_sha256: String,
        /// Whether it takes part in decisions.
        enabled: bool,
        /// Who manages it.
        management_mode: &'static str,
    } like r#"{"policyId":"pol_01kaf9q2m4x7t8v3c5d6e0g1h2","family":"access","revision":3,"definitionSha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","enabled":true,"managementMode":"forge"}"#;

    /// A version of the policy set.
    NewSetVersion {
        /// The version.
        version_id: String,
        /// Its number, from 1 on without a gap.
        number: i64,
        /// The digest of its policies as they decide.
        digest: String,
        /// How many there are.
        policies: i64,
    } like r#"{"versionId":"psv_01kaf9q2m4x7t8v3c5d6e0g1h2","number":12,"digest":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","policies":7}"#;
}

provost_kernel::fences! {
    acts Readers::Everybody, [];
    targets {
        /// A policy.
        POLICY = "policy" => Readers::Everybody;
    }
    events {
        /// A policy was made.
        CREATED: OfPolicy = "policy.created" => Readers::Everybody;
        /// A policy was changed.
        UPDATED: OfPolicy = "policy.updated" => Readers::Everybody;
        /// A policy was deleted; it decides nothing any more.
        DELETED: OfPolicy = "policy.deleted" => Readers::Everybody;
        /// A policy is managed by a program from now on.
        CLAIMED: OfPolicy = "policy.claimed" => Readers::Everybody;
        /// A policy is managed by people again.
        RELEASED: OfPolicy = "policy.released" => Readers::Everybody;
        /// The policies that decide are others from now on.
        VERSION_CREATED: NewSetVersion = "policy_set.version_created" => Readers::Everybody;
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
