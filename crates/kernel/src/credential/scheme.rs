//! The kinds of tokens, as the areas declare them that hold their rows.

use super::{Credential, McpClient, Use, VerifiedToken, invalid_token};
use crate::context::OperationContext;
use crate::db::{Param, Row, Statement, Tx};
use crate::error::{Error, Result};
use crate::operation::{Access, Meta};
use crate::time::Timestamp;
use crate::token::{self, Form};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// What a token of a scheme may call, whatever the role of its principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// What its principal may, by every door; at the MCP endpoint each client of it has a session ([`Sessions::admit`]).
    Principal,
    /// What the session says by which it acts.
    Session,
    /// The operations that take a token of one item, and these for that item alone (D10.6).
    Item,
    /// The operations that name its kind ([`crate::operation::Access::OfKind`]), by HTTP, and nothing else.
    Kind,
}

impl Reach {
    /// Says whether a token may come for an operation; `None` is a door that is no operation.
    pub(crate) fn includes(self, meta: Option<&Meta>) -> bool {
        match self {
            Self::Principal | Self::Session => true,
            Self::Item => meta.is_some_and(|meta| meta.of_item),
            Self::Kind => meta.is_some_and(|meta| matches!(meta.access, Access::OfKind { .. })),
        }
    }
}

/// A kind of token: how it is told from others, where its row lies, and what follows from its use.
pub trait TokenScheme: Send + Sync {
    /// Returns the name of the scheme, which no other has.
    fn name(&self) -> &'static str;

    /// Returns what tokens of this scheme look like; nothing for those that are signed, and that a
    /// [`super::Verifier`] checks.
    fn form(&self) -> Option<Form>;

    /// Returns what such tokens may call.
    fn reach(&self) -> Reach;

    /// Says whether such a token serves only beside a proof that its sender holds a key (RFC 9449).
    fn is_bound(&self) -> bool {
        false
    }

    /// Returns the statement that finds the row and its principal's state by the token's public lookup id, or by its
    /// grant (`?1`). Nothing where one statement cannot: such tokens call reads alone.
    fn lookup(&self) -> Option<&'static Statement>;

    /// Reads a row of that statement.
    fn read(&self, row: &Row<'_>) -> Result<Credential>;

    /// Finds a token and its principal's state in one snapshot.
    fn find(&self, tx: &mut Tx<'_>, lookup: &str) -> Result<Option<Credential>> {
        let statement = self
            .lookup()
            .ok_or_else(|| Error::internal("a scheme without a look-up"))?;
        tx.query_opt(statement, &[Param::from(lookup)], |row| self.read(row))
    }

    /// Notes that a token was used for the first time: its replay ends (D4.8).
    fn first_use(&self, ctx: &mut OperationContext<'_>, token_id: &str) -> Result<()>;

    /// Says whether an operation notes the first use of its caller's token by itself, because it is for the operation to say
    /// what that use was. Where the request is refused before the operation is called, the use is noted as any other.
    fn is_noted_by(&self, _operation: &str) -> bool {
        false
    }

    /// Notes a use that is 60 seconds newer than the stored one (D2.5).
    fn touch(&self, ctx: &mut OperationContext<'_>, used: &Use) -> Result<()>;

    /// Returns the action under which the audit log has that a revoked token was presented again (D2.10); nothing where
    /// that is no news.
    fn reuse(&self) -> Option<&'static str> {
        None
    }

    /// Reacts to a revoked token that was presented again (D2.10).
    fn reused(&self, _cx: &mut OperationContext<'_>, _token_id: &str) -> Result<()> {
        Ok(())
    }
}

/// The scheme of delegated tokens, and the sessions of other tokens at the MCP endpoint (D7). Its
/// rows are found by the grants of tokens, and the id of such a token is its session's.
pub trait Sessions: TokenScheme {
    /// Returns the action under which the audit log has a session that began.
    fn began(&self) -> &'static str;

    /// Makes the session of a token that another issuer gave out and that is seen for the first time (D7.1).
    ///
    /// Errors: `Unauthenticated` when the organization knows no such principal.
    fn open(&self, ctx: &mut OperationContext<'_>, verified: &VerifiedToken) -> Result<()>;

    /// Says whether a token may come by MCP from a client (D7.11).
    fn admit(&self, tx: &mut Tx<'_>, credential: &Credential, client: &McpClient) -> Result<Admission>;

    /// Makes the session of a token and a client.
    fn join(&self, ctx: &mut OperationContext<'_>, credential: &Credential, client: &McpClient)
    -> Result<()>;
}

/// What the sessions say of a token at the MCP endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A session of this token was cut.
    Refused,
    /// The session is there.
    Known {
        /// The session.
        session_id: String,
        /// Its last use, as stored.
        last_used_at: Timestamp,
    },
    /// There is none yet.
    New,
}

/// A scheme, known by its name.
#[derive(Clone, Copy)]
pub struct Scheme(pub &'static dyn TokenScheme);

impl Deref for Scheme {
    type Target = dyn TokenScheme;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl std::fmt::Debug for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Scheme {}

impl PartialOrd for Scheme {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheme {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl Hash for Scheme {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// Every scheme of an installation.
#[derive(Clone, Copy)]
pub struct Schemes {
    /// Those of the tokens that are told by their form.
    pub own: &'static [&'static dyn TokenScheme],
    /// That of delegated tokens; without it none is accepted, and nobody can come by MCP.
    pub delegated: Option<&'static dyn Sessions>,
}

impl Schemes {
    /// Returns the scheme of a token that was parsed.
    pub(crate) fn of(&self, parsed: &token::ParsedToken<'_>) -> Option<Scheme> {
        let is_of = |scheme: &&&'static dyn TokenScheme| scheme.form().is_some_and(|form| parsed.is_of(form));
        self.own.iter().find(is_of).map(|scheme| Scheme(*scheme))
    }

    /// Returns the sessions, and their scheme.
    ///
    /// Errors: `Unauthenticated` where there are none.
    pub(crate) fn sessions(&self) -> Result<(&'static dyn Sessions, Scheme)> {
        let sessions = self.delegated.ok_or_else(invalid_token)?;
        Ok((sessions, Scheme(sessions)))
    }
}
