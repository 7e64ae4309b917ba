//! Tokens that serve only whoever holds a key: the token alone, copied out of a file, opens nothing.
//!
//! Keeps CR-5.

use crate::auth::OrganizationId;
use crate::error::Result;

/// What the sender of a token has to prove beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Nothing: who has the token may use it.
    Bearer,
    /// Some key, which the operation learns from the caller.
    AnyKey,
    /// The key of this thumbprint (RFC 7638).
    Key(String),
}

impl Binding {
    /// Returns the binding of a caller who proved a key, or none; nothing where that is not what the token asks for.
    pub(super) fn met_by(self, proven: Option<&str>) -> Option<Self> {
        match (self, proven) {
            (Self::Bearer, None) => Some(Self::Bearer),
            (Self::AnyKey, Some(key)) => Some(Self::Key(key.to_owned())),
            (Self::Key(own), Some(key)) if own == key => Some(Self::Key(own)),
            _ => None,
        }
    }

    /// Returns the thumbprint of the key.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Key(thumbprint) => Some(thumbprint),
            Self::Bearer | Self::AnyKey => None,
        }
    }
}

/// A proof that was made for one request and one token by whoever holds a key.
pub trait KeyProof: Send + Sync + std::fmt::Debug {
    /// Returns the thumbprint of the key (RFC 7638).
    fn thumbprint(&self) -> &str;

    /// Remembers that the proof served beside a token of an organization; again for the same request, the same answer.
    ///
    /// Errors: `Unauthenticated` for a proof that served another request, `Unavailable` when nothing more can be remembered.
    fn spend(&self, organization: &OrganizationId) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::Binding::{AnyKey, Bearer, Key};

    /// Proves CR-5.
    #[test]
    fn a_binding_is_met_by_its_own_key_alone() {
        let own = || Key("a".to_owned());
        assert_eq!(Bearer.met_by(None), Some(Bearer));
        assert_eq!(Bearer.met_by(Some("a")), None);
        assert_eq!(AnyKey.met_by(None), None);
        assert_eq!(AnyKey.met_by(Some("a")), Some(own()));
        assert_eq!(own().met_by(Some("a")), Some(own()));
        assert_eq!(own().met_by(Some("b")), None);
        assert_eq!(own().met_by(None), None);
    }
}
