//! Who reads the details of what the area does, and what its events say.
//!
//! Hidden values stand in no entry (MC-5).

use super::model::{Principal, ProfileId, ReleaseId};
use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Testimony, Word};

provost_kernel::event_data! {
    /// A machine that two accounts report.
    ContestedTarget {
        /// The profile.
        profile_id: ProfileId,
        /// The machine.
        target_id: String,
        /// Who reported it first.
        belongs_to: Principal,
        /// Whose report was refused.
        reported_by: Principal,
    } like r#"{"profileId":"prof_01kaf9q2m4x7t8v3c5d6e0g1h2","targetId":"laptop-17","belongsTo":{"type":"service_account","id":"sa_01kaf9q2m4x7t8v3c5d6e0g1h3"},"reportedBy":{"type":"service_account","id":"sa_01kaf9q2m4x7t8v3c5d6e0g1h4"}}"#;

    /// A machine with other content than its profile says.
    DriftedTarget {
        /// The profile.
        profile_id: ProfileId,
        /// The machine.
        target_id: String,
        /// The release that it applied last.
        release_id: ReleaseId,
        /// A keyed hash of what is in place.
        content_digest: String,
        /// The same of what should be; null when the profile has no release.
        expected_digest: Option<String>,
    } like r#"{"profileId":"prof_01kaf9q2m4x7t8v3c5d6e0g1h2","targetId":"laptop-17","releaseId":"mcr_01kaf9q2m4x7t8v3c5d6e0g1h3","contentDigest":"hmac-sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","expectedDigest":"hmac-sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"}"#;

    /// A machine that could not apply a release.
    FailedTarget {
        /// The profile.
        profile_id: ProfileId,
        /// The machine.
        target_id: String,
        /// The release.
        release_id: ReleaseId,
    } like r#"{"profileId":"prof_01kaf9q2m4x7t8v3c5d6e0g1h2","targetId":"laptop-17","releaseId":"mcr_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;

    /// A release of a profile.
    NewRelease {
        /// The profile.
        profile_id: ProfileId,
        /// The release.
        release_id: ReleaseId,
        /// Its number within the profile.
        version: i64,
    } like r#"{"profileId":"prof_01kaf9q2m4x7t8v3c5d6e0g1h2","releaseId":"mcr_01kaf9q2m4x7t8v3c5d6e0g1h3","version":8}"#;

    /// A release with the content of an earlier one.
    Rollback {
        /// The profile.
        profile_id: ProfileId,
        /// The new release.
        release_id: ReleaseId,
        /// Its number within the profile.
        version: i64,
        /// The release whose content it has.
        source_release_id: ReleaseId,
        /// Whether publishing by itself was paused by it.
        auto_publish_paused: bool,
    } like r#"{"profileId":"prof_01kaf9q2m4x7t8v3c5d6e0g1h2","releaseId":"mcr_01kaf9q2m4x7t8v3c5d6e0g1h3","version":9,"sourceReleaseId":"mcr_01kaf9q2m4x7t8v3c5d6e0g1h4","autoPublishPaused":false}"#;
}

provost_kernel::fences! {
    acts Readers::Everybody, ["managed_config.target.drifted"];
    targets {
        /// A profile.
        PROFILE = "managed_config_profile" => Readers::Everybody;
    }
    events {
        // It names both accounts.
        /// An account reported a machine that belongs to another account, and was refused.
        TARGET_CONTESTED: ContestedTarget = "managed_config.target.contested" => Readers::Overseers;
        /// A machine has other content than its profile says.
        TARGET_DRIFTED: DriftedTarget = "managed_config.target.drifted" => Readers::Everybody;
        /// A machine could not apply a release.
        TARGET_FAILED: FailedTarget = "managed_config.target.failed" => Readers::Everybody;
        /// A release of a profile was published.
        RELEASE_PUBLISHED: NewRelease = "managed_config.release.published" => Readers::Everybody;
        /// A profile went back to the content of an earlier release.
        RELEASE_ROLLED_BACK: Rollback = "managed_config.release.rolled_back" => Readers::Everybody;
    }
    members {
        // Of entries of earlier builds, which have the digest itself (MC-12).
        "/contentDigest" => Readers::Overseers;
    }
}

/// What entries say of profiles.
pub static PROFILES: Testimony = Testimony {
    table: "managed_config_profiles",
    kind: &PROFILE,
    among: None,
    words: &[
        Word::new("name", "/name"),
        Word::new("auto_publish", "/autoPublish"),
        Word::new("on_unavailable", "/onUnavailable"),
        Word::new("poll_interval_secs", "/pollIntervalSeconds"),
        Word::new("status", "/status"),
    ],
};
