//! What areas tell and ask those that stand on them: see [`provost_kernel::announcement`].

use provost_kernel::Timestamp;
use provost_kernel::announcement::{Announcement, Question};

provost_kernel::word! {
    /// Who can be named as somebody that something is assigned to.
    #[derive(Hash, PartialOrd, Ord)]
    #[schemars(extend("x-open" = true))]
    pub enum SubjectKind {
        /// A person of the directory.
        User = "user",
        /// A group of the directory.
        Group = "group",
        /// A service account.
        ServiceAccount = "service_account",
    }
}

/// How somebody stops acting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// For a time: a user was suspended or an account disabled.
    Stopped,
    /// The record was deleted.
    Deleted,
}

/// Somebody acts no more.
pub struct PrincipalEnded {
    /// What it was.
    pub kind: SubjectKind,
    /// Its id.
    pub id: String,
    /// How.
    pub how: Departure,
}

/// A user or an account is shown under another name.
pub struct PrincipalRenamed {
    /// What it is.
    pub kind: SubjectKind,
    /// Its id.
    pub id: String,
    /// As it was shown.
    pub before: String,
    /// As it is shown from now on.
    pub after: String,
}

/// A user of the directory has another login name.
pub struct LoginNameChanged {
    /// The user's id.
    pub user_id: String,
}

/// A generation of the directory that an import staged is visible, whomever it renames.
pub struct ImportApplied {
    /// Its number.
    pub generation: i64,
}

/// A token of a service account was revoked.
pub struct TokenRevoked {
    /// Its id.
    pub id: String,
    /// Why, as its row says it.
    pub reason: String,
}

/// A token of a service account was superseded and works until an instant.
pub struct TokenSuperseded {
    /// Its id.
    pub id: String,
    /// Until when.
    pub until: Timestamp,
}

/// Sessions of clients ended at an instant, for a reason.
pub struct SessionsEnded {
    /// When.
    pub at: Timestamp,
    /// Why, as their rows say it.
    pub reason: String,
}

/// A service account can do less than it could.
pub struct AccountNarrowed {
    /// Its id.
    pub id: String,
}

/// A user of the directory can do less than it could: it has a lesser role, or none.
pub struct UserNarrowed {
    /// Its id.
    pub id: String,
}

/// A service account is about to give itself a successor of the token that it comes with; who forbids that refuses.
pub struct AccountRotatesItself {
    /// The token's id.
    pub token_id: String,
}

/// What is opened to a subject?
pub struct OpenedTo {
    /// What it is.
    pub kind: SubjectKind,
    /// Its id.
    pub id: String,
}

/// Something that is opened to a subject.
pub enum Opening {
    /// A credential that is assigned to it.
    Credential {
        /// The credential.
        id: String,
    },
    /// A policy that allows it something, or excepts it from what is forbidden.
    Policy {
        /// The policy.
        id: String,
        /// JSON Pointers into the policy's definition.
        places: Vec<String>,
    },
}

impl Question for OpenedTo {
    type Answer = Opening;
}

/// By what it is known that an MCP server was called, or was about to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UseWitness {
    /// Somebody asked for a decision where no gateway was: a hook.
    Hook,
    /// A gateway asked for a decision.
    Gateway,
    /// A client's telemetry.
    Telemetry,
    /// A device that judged by itself, which says so.
    Device,
}

/// What events say of an MCP server, by the name that a person's client has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUse {
    /// By what it is known.
    pub by: UseWitness,
    /// The id of the user; absent where the events name nobody whom the directory knows.
    pub user: Option<String>,
    /// What the client calls the server: nothing that says what runs.
    pub name: String,
    /// How many events.
    pub events: i64,
    /// When the first of them happened.
    pub first_at: Timestamp,
    /// When the last one did.
    pub last_at: Timestamp,
}

/// Events that were recorded some time ago name MCP servers. It is told behind the recorder, so that no decision waits for it.
pub struct ServersUsed {
    /// What they say.
    pub uses: Vec<ServerUse>,
    /// How many there are beyond these, which nobody is told of.
    pub not_kept: i64,
}

impl Announcement for PrincipalEnded {
    const IS_DECISIVE: bool = true;
}
impl Announcement for TokenRevoked {
    const IS_DECISIVE: bool = true;
}
impl Announcement for TokenSuperseded {}
impl Announcement for SessionsEnded {}
impl Announcement for AccountNarrowed {
    const IS_DECISIVE: bool = true;
}
impl Announcement for UserNarrowed {
    const IS_DECISIVE: bool = true;
}
impl Announcement for PrincipalRenamed {}
impl Announcement for LoginNameChanged {}
impl Announcement for ImportApplied {}
impl Announcement for AccountRotatesItself {
    const IS_DECISIVE: bool = true;
}
impl Announcement for OpenedTo {}
impl Announcement for ServersUsed {}

#[cfg(test)]
mod tests;
