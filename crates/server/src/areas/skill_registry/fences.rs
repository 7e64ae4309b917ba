//! Who reads the details of what the area does.
//!
//! The registry is inventory; the tokens that an installation gets are not.

use provost_kernel::fence::Readers;

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
        GATEWAY_TOKEN_REUSE_DETECTED = "gateway_token.reuse_detected" => Readers::Overseers;
        INSTALLED = "registry.item.installed" => Readers::Everybody;
        UNINSTALLED = "registry.item.uninstalled" => Readers::Everybody;
        PUBLISHED = "registry.item.published" => Readers::Everybody;
        WITHDRAWN = "registry.item.withdrawn" => Readers::Everybody;
    }
    members {
        "/gatewayTokens" => Readers::Overseers;
    }
}
