//! Who reads the details of what the area does.
//!
//! Clients, sign-ins and identity links say who may become whom.

use provost_kernel::fence::Readers;

provost_kernel::fences! {
    acts Readers::Overseers, [
        "oauth.consent.given",
        "oauth.session.opened",
        "oauth.token.issued",
        "oauth.token.refreshed",
        "oauth.token.refused",
        "oauth.token.revoked",
        "oauth.user.signed_in",
        "oauth.user.withheld",
    ];
    targets {
        /// A registered client.
        CLIENT = "mcp_client" => Readers::Overseers;
        /// An issuer whose subjects are linked to users.
        ISSUER = "identity_issuer" => Readers::Overseers;
    }
    events {
        CLIENT_CREATED = "mcp.client.created" => Readers::Overseers;
        CLIENT_UPDATED = "mcp.client.updated" => Readers::Overseers;
        CLIENT_DELETED = "mcp.client.deleted" => Readers::Overseers;
        LINKED = "oauth.identity.linked" => Readers::Overseers;
        UNLINKED = "oauth.identity.unlinked" => Readers::Overseers;
        HELD = "oauth.identity.held" => Readers::Overseers;
        RELINKING_ALLOWED = "oauth.identity.relinking_allowed" => Readers::Overseers;
    }
    members {
        "/identityLink" => Readers::Overseers;
        "/heldIdentityLinks" => Readers::Overseers;
    }
}
