//! Who reads the details of what the area does, and what its events say.
//!
//! Clients, sign-ins and identity links say who may become whom.

pub use crate::mcp_sessions::fences::CLIENT;

use super::clients::model::ClientId;
use provost_kernel::Timestamp;
use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::event_data! {
    /// A registered client.
    OfClient {
        /// The client.
        mcp_client_id: ClientId,
    } like r#"{"mcpClientId":"ocl_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;

    /// A user and the issuer of an identity.
    OfLink {
        /// The user.
        user_id: String,
        /// Who vouches for the identity.
        issuer: String,
    } like r#"{"userId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h2","issuer":"https://login.example.com"}"#;

    /// The leave to be linked anew.
    RelinkingLeave {
        /// Whose identities may be linked.
        issuer: String,
        /// Until when.
        expires_at: Timestamp,
    } like r#"{"issuer":"https://login.example.com","expiresAt":"2026-11-27T03:15:00.000Z"}"#;
}

provost_kernel::fences! {
    acts Readers::Overseers, [
        "oauth.consent.given",
        "oauth.session.opened",
        "oauth.token.issued",
        "oauth.token.refresh_repeated",
        "oauth.token.refreshed",
        "oauth.token.refused",
        "oauth.token.revoked",
        "oauth.user.signed_in",
        "oauth.user.withheld",
        "oauth.workload.admitted",
    ];
    targets {
        /// An issuer whose subjects are linked to users.
        ISSUER = "identity_issuer" => Readers::Overseers;
    }
    events {
        /// An MCP client was registered.
        CLIENT_CREATED: OfClient = "mcp.client.created" => Readers::Overseers;
        /// A registered MCP client was changed.
        CLIENT_UPDATED: OfClient = "mcp.client.updated" => Readers::Overseers;
        /// A registered MCP client was deleted; its sessions ended.
        CLIENT_DELETED: OfClient = "mcp.client.deleted" => Readers::Overseers;
        /// A user was linked to an identity of an issuer.
        LINKED: OfLink = "oauth.identity.linked" => Readers::Overseers;
        /// The link between a user and an identity was taken away.
        UNLINKED: OfLink = "oauth.identity.unlinked" => Readers::Overseers;
        /// A link is held, because its user got a role that whoever made the link could not give.
        HELD: OfLink = "oauth.identity.held" => Readers::Overseers;
        /// Users may be linked anew at their next sign-in.
        RELINKING_ALLOWED: RelinkingLeave = "oauth.identity.relinking_allowed" => Readers::Overseers;
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
