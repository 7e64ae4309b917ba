//! Sessions on the wire, and what is asked of them.

use super::model::{Session, SessionId, State};
use provost_kernel::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a list can narrow to: every session is exactly one of these (D7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum StatusFilter {
    /// Usable now.
    Active,
    /// Ended for any cause but expiry.
    Revoked,
    /// Ended by expiry.
    Expired,
}

impl StatusFilter {
    /// Returns the state that it asks for.
    pub const fn state(self) -> State {
        match self {
            Self::Active => State::Active,
            Self::Revoked => State::Revoked,
            Self::Expired => State::Expired,
        }
    }
}

/// The two words of a record (specification §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Status {
    /// Usable now.
    Active,
    /// Not any more.
    Revoked,
}

/// An MCP session (specification §2.1).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HeadlessMcpSession")]
pub struct SessionView {
    id: SessionId,
    organization_id: String,
    /// `console_user`, `service_account` or `agent`. Open.
    actor_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_display: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    console_user_id: Option<String>,
    scopes: Vec<&'static str>,
    status: Status,
    issued_at: Timestamp,
    /// To the minute; of a session that was not used yet, when it was issued.
    last_used_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    /// What was given, or a word of the program; `expired` for a session whose time ran out. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoke_reason: Option<String>,
}

impl From<Session> for SessionView {
    fn from(session: Session) -> Self {
        let status = match session.state {
            State::Active => Status::Active,
            State::Revoked | State::Expired => Status::Revoked,
        };
        let (revoked_at, revoke_reason) = session.ended.map(|ended| (ended.at, ended.reason)).unzip();
        Self {
            id: session.id,
            organization_id: session.organization_id,
            actor_type: session.actor_type,
            actor_display: session.actor_display,
            mcp_client_id: session.mcp_client_id,
            service_account_id: session.service_account_id,
            console_user_id: session.console_user_id,
            scopes: session.scopes.to_list(),
            status,
            issued_at: session.issued_at,
            last_used_at: session.last_used_at,
            revoked_at,
            revoke_reason,
        }
    }
}

/// One session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneSession {
    /// It.
    pub session: SessionView,
}

/// The path of operations on one session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct SessionPath {
    /// The session.
    pub session_id: SessionId,
}
