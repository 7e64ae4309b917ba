//! Who reads the details of what the area does.
//!
//! Clients, sign-ins and identity links say who may become whom.

pub use crate::areas::mcp_sessions::fences::CLIENT;
use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

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

/// What entries say of clients.
pub static CLIENTS: Testimony = Testimony {
    table: "oauth_clients",
    kind: &CLIENT,
    among: None,
    words: &[
        Word::new("name", "/name"),
        Word::of("redirect_uris", "/redirectUris", Form::Document),
        Word::of("grant_types", "/grantTypes", Form::Document),
        Word::of("jwks", "/jwks", Form::Document),
        Word::new("jwks_uri", "/jwksUri"),
        Word::of("scopes", "/scopes", Form::Words("")),
        Word::of("ceiling", "/ceiling", Form::Words("")),
        Word::of("blocked_at", "/blocked", Form::Presence).held(),
    ],
};
