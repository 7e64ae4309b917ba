//! By what key the session of another issuer's token is found: a digest, for the names are a stranger's.
//!
//! INVARIANT OC-11: a session of another issuer is that of organization, issuer, subject, client and `sid` or `jti`.

use crate::mcp_sessions::LASTING_GRANT;
use aws_lc_rs::digest::{SHA256, digest};
use provost_oauth::Claims;
use std::fmt::Write;

/// What makes the session of another issuer's token the one.
#[derive(Clone, Copy, Debug)]
pub struct ForeignSession<'a> {
    pub organization: &'a str,
    pub issuer: &'a str,
    pub subject: &'a str,
    pub client: &'a str,
    pub id: Id<'a>,
}

/// What the issuer calls a session.
#[derive(Clone, Copy, Debug)]
pub enum Id<'a> {
    /// `sid`: many tokens share it.
    Session(&'a str),
    /// `jti`: the token is the whole session.
    Token(&'a str),
}

/// The key of a grant, today's and that of programs before 0016, which named neither subject nor client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub own: String,
    pub former: String,
}

impl<'a> ForeignSession<'a> {
    /// Returns the one of an access token.
    pub fn of(claims: &'a Claims) -> Self {
        Self {
            organization: &claims.organization,
            issuer: &claims.issuer,
            subject: &claims.subject,
            client: &claims.client_id,
            id: match claims.session.as_deref() {
                Some(session) => Id::Session(session),
                None => Id::Token(&claims.id),
            },
        }
    }

    /// Returns the keys.
    ///
    /// INVARIANT OC-11: a session's identity is organization, issuer, subject, client and `sid`, or `jti`. None of them
    /// holds the control character that stands between them.
    pub fn keys(&self) -> Keys {
        let (lead, former_lead, id) = match self.id {
            Id::Session(id) => (format!("{LASTING_GRANT}2|"), format!("{LASTING_GRANT}|"), id),
            Id::Token(id) => ("ext2|".to_owned(), "ext|".to_owned(), id),
        };
        let all = [self.organization, self.issuer, self.subject, self.client, id];
        Keys {
            own: lead + &hexadecimal(&all),
            former: former_lead + &hexadecimal(&[self.issuer, id]),
        }
    }
}

/// Returns the digest of names in hexadecimal digits.
pub fn hexadecimal(names: &[&str]) -> String {
    let mut text = String::new();
    for byte in digest(&SHA256, names.join("\0").as_bytes()).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ForeignSession<'_> = ForeignSession {
        organization: "acme",
        issuer: "https://issuer.example",
        subject: "alice",
        client: "client",
        id: Id::Session("s"),
    };

    /// Each part alone makes another session.
    /// Proves OC-11.
    #[test]
    fn a_session_is_another_by_each_of_its_five_names() {
        let all = [
            ONE,
            ForeignSession {
                organization: "umbrella",
                ..ONE
            },
            ForeignSession {
                issuer: "https://other.example",
                ..ONE
            },
            ForeignSession {
                subject: "bob",
                ..ONE
            },
            ForeignSession {
                client: "client-2",
                ..ONE
            },
            ForeignSession {
                id: Id::Session("t"),
                ..ONE
            },
            ForeignSession {
                id: Id::Token("s"),
                ..ONE
            },
        ];
        let keys: std::collections::BTreeSet<String> = all.iter().map(|named| named.keys().own).collect();
        assert_eq!(keys.len(), all.len());
        // Subject and client do not run into each other.
        let apart = [
            ForeignSession {
                subject: "alicec",
                client: "lient",
                ..ONE
            },
            ONE,
        ];
        assert_ne!(apart[0].keys().own, apart[1].keys().own);
        assert_eq!(ONE.keys().former, all[3].keys().former);
    }
}
