//! Who reads the details of what the area does, and what its events say.
//!
//! The registry is inventory; the tokens that an installation gets are not.

use super::model::{InstallId, SkillItemId};
use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// The use of a gateway token that had a successor.
    GatewayTokenReuse {
        /// The token.
        token_id: String,
        /// Whose token it is; null when it is forgotten.
        principal_id: Option<String>,
        /// The item that it opens; null when it is forgotten.
        item_id: Option<String>,
        /// `high`.
        severity: &'static str,
    } like r#"{"tokenId":"gwt_01kaf9q2m4x7t8v3c5d6e0g1h2","principalId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h3","itemId":"ski_01kaf9q2m4x7t8v3c5d6e0g1h4","severity":"high"}"#;

    /// An install of an item.
    NewInstall {
        /// The item.
        item_id: SkillItemId,
        /// The version.
        version: String,
        /// The install.
        install_id: InstallId,
        /// Who installed it.
        principal_id: String,
        /// The client that uses it.
        client: String,
    } like r#"{"itemId":"ski_01kaf9q2m4x7t8v3c5d6e0g1h2","version":"1.4.0","installId":"inst_01kaf9q2m4x7t8v3c5d6e0g1h3","principalId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h4","client":"claude-code"}"#;

    /// Installs of an item that ended together.
    EndedInstalls {
        /// The item.
        item_id: SkillItemId,
        /// Whose installs they were.
        principal_id: String,
        /// The installs.
        install_ids: Vec<InstallId>,
    } like r#"{"itemId":"ski_01kaf9q2m4x7t8v3c5d6e0g1h2","principalId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h4","installIds":["inst_01kaf9q2m4x7t8v3c5d6e0g1h3"]}"#;

    /// A version of an item.
    NewVersion {
        /// The item.
        item_id: SkillItemId,
        /// The version.
        version: String,
        /// The digest of its content.
        digest: String,
    } like r#"{"itemId":"ski_01kaf9q2m4x7t8v3c5d6e0g1h2","version":"1.4.0","digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}"#;

    /// An item, or a version of it, that nobody installs any more.
    Withdrawal {
        /// The item.
        item_id: SkillItemId,
        /// The version; absent when it is the whole item.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    } like r#"{"itemId":"ski_01kaf9q2m4x7t8v3c5d6e0g1h2","version":"1.4.0"}"#;
}

provost_kernel::fences! {
    acts Readers::Everybody, [];
    overseen ["gateway_token.reuse_detected"];
    targets {
        /// An item of the registry.
        SKILL = "skill" => Readers::Everybody;
        /// An item that somebody installed.
        INSTALL = "skill_install" => Readers::Everybody;
    }
    events {
        /// A gateway token was used although another one had taken its place: somebody may have copied it.
        GATEWAY_TOKEN_REUSE_DETECTED: GatewayTokenReuse = "gateway_token.reuse_detected" => Readers::Overseers;
        /// Somebody installed an item of the registry.
        INSTALLED: NewInstall = "registry.item.installed" => Readers::Everybody;
        /// Somebody uninstalled an item of the registry.
        UNINSTALLED: EndedInstalls = "registry.item.uninstalled" => Readers::Everybody;
        /// A version of an item was published.
        PUBLISHED: NewVersion = "registry.item.published" => Readers::Everybody;
        /// An item of the registry, or a version of it, was withdrawn.
        WITHDRAWN: Withdrawal = "registry.item.withdrawn" => Readers::Everybody;
    }
    members {
        "/gatewayTokens" => Readers::Overseers;
    }
}
