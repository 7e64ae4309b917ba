//! Who reads the details of what the area does.
//!
//! Hidden values stand in no entry (MC-5).

use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Testimony, Word};

provost_kernel::fences! {
    acts Readers::Everybody, ["managed_config.target.drifted"];
    targets {
        /// A profile.
        PROFILE = "managed_config_profile" => Readers::Everybody;
    }
    events {
        // It names both accounts.
        TARGET_CONTESTED = "managed_config.target.contested" => Readers::Overseers;
        TARGET_DRIFTED = "managed_config.target.drifted" => Readers::Everybody;
        TARGET_FAILED = "managed_config.target.failed" => Readers::Everybody;
        RELEASE_PUBLISHED = "managed_config.release.published" => Readers::Everybody;
        RELEASE_ROLLED_BACK = "managed_config.release.rolled_back" => Readers::Everybody;
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
