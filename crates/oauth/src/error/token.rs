//! Errors of a token endpoint, in the words of their registries.

use super::Refusal;
use serde_json::json;

/// A registered error code (RFC 6749 §5.2, RFC 8707 §2, RFC 9449 §5 and §8, RFC 6750 §3.1, RFC 6749 §4.1.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A parameter is missing, repeated or malformed.
    InvalidRequest,
    /// The client is unknown or did not prove itself.
    InvalidClient,
    /// The code, assertion or refresh token is wrong, spent or another client's.
    InvalidGrant,
    /// The client may not use this grant.
    UnauthorizedClient,
    /// The grant is not one of those that are served.
    UnsupportedGrantType,
    /// The scope is unknown, malformed or more than may be granted.
    InvalidScope,
    /// The resource or audience is not one that tokens are issued for.
    InvalidTarget,
    /// The `DPoP` proof is not accepted.
    InvalidDpopProof,
    /// The resource server refuses the access token.
    InvalidToken,
    /// The access token's scope does not suffice.
    InsufficientScope,
    /// The client asks for more than it may within a time (RFC 8628 §3.5).
    SlowDown,
    /// The authorization server cannot answer now.
    TemporarilyUnavailable,
}

impl Code {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::InvalidDpopProof => "invalid_dpop_proof",
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
            Self::SlowDown => "slow_down",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
        }
    }

    /// Returns the status of the answer.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidClient | Self::InvalidToken => 401,
            Self::InsufficientScope => 403,
            Self::SlowDown => 429,
            Self::TemporarilyUnavailable => 503,
            _ => 400,
        }
    }
}

/// What a token endpoint answers when it refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    code: Code,
    description: String,
}

impl TokenError {
    /// Makes an error; characters that RFC 6749 §5.2 does not allow in a description become `'`.
    pub fn new(code: Code, description: impl AsRef<str>) -> Self {
        let allowed = |c: char| matches!(c, ' ' | '!' | '#'..='[' | ']'..='~');
        let words = description.as_ref().chars();
        let description = words.map(|c| if allowed(c) { c } else { '\'' }).collect();
        Self { code, description }
    }

    /// Returns the code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the status of the answer.
    pub fn status(&self) -> u16 {
        self.code.status()
    }

    /// Returns the sentence.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the body: `{"error": …, "error_description": …}`.
    pub fn json(&self) -> String {
        json!({ "error": self.code.as_str(), "error_description": self.description }).to_string()
    }
}

impl Refusal {
    /// Returns what a token endpoint answers when a request fails with this refusal at the place that `code` names.
    pub fn answer(self, code: Code) -> TokenError {
        let code = if self == Self::Busy {
            Code::TemporarilyUnavailable
        } else {
            code
        };
        TokenError::new(code, self.to_string())
    }
}
