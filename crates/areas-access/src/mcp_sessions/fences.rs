//! Who reads the details of what the area does, and what its events say.
//!
//! Sessions are read by admins alone, and by auditors in the log.

use super::model::SessionId;
use provost_kernel::Timestamp;
use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// A session that began.
    NewSession {
        /// The session.
        session_id: SessionId,
        /// Whom it acts for: `console_user` or `service_account`.
        actor_type: &'static str,
        /// When it ends by itself.
        expires_at: Timestamp,
    } like r#"{"sessionId":"mcps_01kaf9q2m4x7t8v3c5d6e0g1h2","actorType":"console_user","expiresAt":"2026-11-21T03:15:00.000Z"}"#;

    /// The end of a session before its time.
    SessionRevocation {
        /// The session.
        session_id: SessionId,
        /// Why: a word of the program, or what somebody said.
        revoke_reason: String,
    } like r#"{"sessionId":"mcps_01kaf9q2m4x7t8v3c5d6e0g1h2","revokeReason":"admin_revoked"}"#;

    /// The end of a session by time.
    SessionExpiry {
        /// The session.
        session_id: SessionId,
        /// When it ended.
        expired_at: Timestamp,
    } like r#"{"sessionId":"mcps_01kaf9q2m4x7t8v3c5d6e0g1h2","expiredAt":"2026-11-20T03:15:00.000Z"}"#;
}

provost_kernel::fences! {
    acts Readers::Overseers, ["mcp.session.issued", "mcp.sessions.expired", "mcp.sessions.revoked"];
    targets {
        /// A session.
        SESSION = "mcp_session" => Readers::Overseers;
        /// A registered client, which sessions name and the area above keeps.
        CLIENT = "mcp_client" => Readers::Overseers;
    }
    events {
        /// A session of an MCP client began.
        ISSUED: NewSession = "mcp.session.issued" => Readers::Overseers;
        /// A session of an MCP client was ended.
        REVOKED: SessionRevocation = "mcp.session.revoked" => Readers::Overseers;
        /// A session of an MCP client ran out.
        EXPIRED: SessionExpiry = "mcp.session.expired" => Readers::Overseers;
    }
}
