//! The one error of the kernel and of the areas.
//!
//! An [`Error`] has a public side (code, message, members that the code declares) and a private one (the
//! source chain). `Display` is the public message; nothing shows the private side but the log, once, where
//! the error is answered. Messages are sentences a stranger can act on: lower case, no trailing dot, no
//! secret, header value, SQL, path on disk or other organization's data (D1.5).

use serde_json::Value;
use std::borrow::Cow;

/// The result of everything that can be refused.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($name:ident $text:literal $status:literal $doc:literal;)*) => {
        /// The stable machine word of an error (D1.6).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $doc] $name,)* }

        impl Code {
            /// Every code, in declared order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// Returns the word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// Returns the HTTP status that goes with the code (D1.7).
            pub const fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }
        }
    };
}

codes! {
    InvalidRequest "invalid_request" 400 "The request breaks its schema.";
    UnknownParameter "unknown_parameter" 400 "A query parameter that the operation does not have.";
    ConfirmationRequired "confirmation_required" 400 "The act cannot be undone and `confirm` is not `true`.";
    Unauthenticated "unauthenticated" 401 "No token, or one that is not known.";
    TokenExpired "token_expired" 401 "The token has expired.";
    TokenRevoked "token_revoked" 401 "The token was revoked.";
    OrganizationForbidden "organization_forbidden" 403 "The token does not belong to the organization of the path.";
    RoleForbidden "role_forbidden" 403 "The role may not do this.";
    InsufficientScope "insufficient_scope" 403 "A scope is missing.";
    EscalationForbidden "escalation_forbidden" 403 "The result could do more than the caller.";
    ApprovalRequired "approval_required" 403 "A second person has to say yes before.";
    NotFound "not_found" 404 "Nothing of this name in the organization, or no such route.";
    MethodNotAllowed "method_not_allowed" 405 "The route does not have this method.";
    Conflict "conflict" 409 "The state forbids the act.";
    AlreadyTerminal "already_terminal" 409 "The record has ended.";
    AlreadyExists "already_exists" 409 "The name is taken.";
    LlmGatewayNotEnabled "llm_gateway_not_enabled" 404 "The organization has switched the LLM gateway off.";
    TooManyRemovals "too_many_removals" 409 "A file would remove more of a directory than one file may without a word.";
    Disabled "disabled" 409 "The record is disabled.";
    ApprovalMismatch "approval_mismatch" 409 "The approval is of another request.";
    SchemaIncompatible "schema_incompatible" 409 "A stored definition does not fit the rules of today.";
    NoEarlierRelease "no_earlier_release" 409 "There is no release to go back to.";
    SecretNoLongerRetrievable "secret_no_longer_retrievable" 409 "The secret of a replayed answer was erased.";
    IdempotencyInProgress "idempotency_in_progress" 409 "The same key is being worked on.";
    SequenceGone "sequence_gone" 410 "The events do not go on from this sequence: the store went back behind it.";
    PreconditionFailed "precondition_failed" 412 "`If-Match` is stale.";
    PayloadTooLarge "payload_too_large" 413 "The body is too large.";
    UriTooLong "uri_too_long" 414 "The target is too long.";
    UnsupportedMediaType "unsupported_media_type" 415 "The body is not JSON.";
    IdempotencyMismatch "idempotency_mismatch" 422 "The key was used for another request.";
    InvalidDefinition "invalid_definition" 422 "A definition breaks its contract.";
    RateLimited "rate_limited" 429 "Too many requests.";
    HeadersTooLarge "headers_too_large" 431 "The headers are too large.";
    Internal "internal" 500 "A fault of the server.";
    Unavailable "unavailable" 503 "Not now; try again.";
    AuditUnavailable "audit_unavailable" 503 "The audit log cannot be written.";
}

/// How the unit of work must treat an error. No caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The operation refused: its savepoint is rolled back, the others go on.
    Refused,
    /// The transaction is unusable but may succeed when run again.
    Retry,
    /// The connection is gone; the outcome of a COMMIT is unknown.
    Lost,
    /// The store cannot take work now (busy, full, unreachable).
    Unavailable,
    /// A write or an fsync failed: durability is in doubt, nothing more is acknowledged until a restart.
    Broken,
}

/// One member of a request that breaks its schema. `path` is a JSON Pointer (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FieldError {
    /// JSON Pointer into the body, or `/query/<name>`, `/path/<name>`, `/header/<name>`.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

type Source = Box<dyn std::error::Error + Send + Sync>;

/// A private cause that is a sentence for the operator who opens the store: what is wrong there, and the next step.
#[derive(Debug)]
pub struct OperatorNotice(pub String);

impl std::fmt::Display for OperatorNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OperatorNotice {}

/// A refusal or a fault; see the module's text.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    class: Class,
    message: Cow<'static, str>,
    source: Option<Source>,
    errors: Vec<FieldError>,
    members: Vec<(&'static str, Value)>,
    retry_after_secs: Option<u32>,
    headers: Vec<(&'static str, String)>,
}

impl Error {
    /// Returns an error of this code with a public message.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            code,
            class: Class::Refused,
            message: message.into(),
            source: None,
            errors: Vec::new(),
            members: Vec::new(),
            retry_after_secs: None,
            headers: Vec::new(),
        }))
    }

    /// Returns `invalid_request` about one member.
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        let (path, message) = (path.into(), message.into());
        let whole = if path.is_empty() {
            message.clone()
        } else {
            format!("{path}: {message}")
        };
        let mut error = Self::new(Code::InvalidRequest, whole);
        error.0.errors.push(FieldError { path, message });
        error
    }

    /// Returns `invalid_definition` about one member that can be read and does not fit: what no schema says is 422 (ADR 0015).
    pub fn unfit(path: impl Into<String>, message: impl Into<String>) -> Self {
        let (path, message) = (path.into(), message.into());
        let whole = format!("{path}: {message}");
        Self::new(Code::InvalidDefinition, whole).and_field(path, message)
    }

    /// Returns `not_found` for a kind of thing; the same for a foreign, a deleted and an absent one.
    pub fn not_found(kind: &str) -> Self {
        Self::new(
            Code::NotFound,
            format!("there is no such {kind} in this organization"),
        )
    }

    /// Returns `internal`: the caller sees nothing but that something failed.
    pub fn internal(source: impl Into<Source>) -> Self {
        Self::new(
            Code::Internal,
            "the server could not answer; the request id names the log entry",
        )
        .caused_by(source)
    }

    /// Returns `unavailable` with a public reason.
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Unavailable, message)
            .class(Class::Unavailable)
            .retry_after(1)
    }

    /// Adds the private cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Sets how the unit of work treats the error.
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.0.class = class;
        self
    }

    /// Adds a member that the code declares, for example `tokenId` (D1.5).
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.members.push((name, value.into()));
        self
    }

    /// Adds one more broken member; at most 20 are kept (D1.5).
    #[must_use]
    pub fn and_field(mut self, path: impl Into<String>, message: impl Into<String>) -> Self {
        if self.0.errors.len() < 20 {
            self.0.errors.push(FieldError {
                path: path.into(),
                message: message.into(),
            });
        }
        self
    }

    /// Adds a header to the refusal, for example the `ETag` of now to a 412. The name is in lower case.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    /// Sets `Retry-After`. Units: seconds.
    #[must_use]
    pub fn retry_after(mut self, secs: u32) -> Self {
        self.0.retry_after_secs = Some(secs);
        self
    }

    /// Returns the headers that were added with [`Error::with_header`].
    pub fn headers(&self) -> &[(&'static str, String)] {
        &self.0.headers
    }

    /// Returns the machine word.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Says whether the caller is refused, rather than the server unable to answer.
    pub fn is_refusal(&self) -> bool {
        self.0.code.status() < 500
    }

    /// Returns how the unit of work treats the error.
    pub fn work_class(&self) -> Class {
        self.0.class
    }

    /// Returns the public message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns a member that was added with [`Error::with`].
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.0
            .members
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Returns `Retry-After` in seconds, if the error has one.
    pub fn retry_after_secs(&self) -> Option<u32> {
        self.0.retry_after_secs
    }

    /// Returns the sentence for the operator, where the cause is one; no caller sees it.
    pub fn told(&self) -> Option<&str> {
        let source = self.0.source.as_deref()?;
        source
            .downcast_ref::<OperatorNotice>()
            .map(|told| told.0.as_str())
    }

    /// Returns the private cause for the log.
    pub fn private(&self) -> Option<String> {
        let mut source: Option<&dyn std::error::Error> = self.0.source.as_deref().map(|s| s as _);
        let mut words = Vec::new();
        while let Some(cause) = source {
            words.push(cause.to_string());
            source = cause.source();
        }
        (!words.is_empty()).then(|| words.join(": "))
    }

    /// Returns the envelope of D1.5; `retryable` says whether the same request may succeed later.
    pub fn envelope(&self, request_id: &str) -> Value {
        let mut envelope = serde_json::Map::new();
        envelope.insert(
            "message".into(),
            self.0.message.chars().take(500).collect::<String>().into(),
        );
        envelope.insert("code".into(), self.0.code.as_str().into());
        envelope.insert("requestId".into(), request_id.into());
        envelope.insert("retryable".into(), self.is_retryable().into());
        if !self.0.errors.is_empty() {
            envelope.insert("errors".into(), serde_json::json!(self.0.errors));
        }
        // `presented` and `scope` speak to the challenge header, not to the caller.
        for (name, value) in self
            .0
            .members
            .iter()
            .filter(|(name, _)| !matches!(*name, "presented" | "scope"))
        {
            envelope.insert((*name).into(), value.clone());
        }
        envelope.into()
    }

    fn is_retryable(&self) -> bool {
        matches!(
            self.0.code,
            Code::RateLimited | Code::Unavailable | Code::AuditUnavailable | Code::IdempotencyInProgress
        )
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|s| s as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_side_shows_nothing_of_the_cause() {
        let error = Error::internal("password=hunter2 refused");
        let shown = format!("{error} {}", error.envelope("req_1"));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(error.private().as_deref(), Some("password=hunter2 refused"));
    }

    #[test]
    fn a_fault_of_the_server_is_no_refusal() {
        let statuses = [401, 403, 404, 409, 429, 500, 503];
        for code in Code::ALL.iter().filter(|code| statuses.contains(&code.status())) {
            assert_eq!(
                Error::new(*code, "x").is_refusal(),
                code.status() < 500,
                "{code:?}"
            );
        }
        assert!(!Error::internal("x").is_refusal() && !Error::unavailable("x").is_refusal());
        assert!(Error::invalid("/x", "x").is_refusal());
    }

    #[test]
    fn codes_are_unique_words() {
        let mut words: Vec<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }
}
