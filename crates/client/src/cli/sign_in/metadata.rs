//! What a server says of signing in (RFC 8414).

use super::super::access::ask;
use super::super::connection::{Place, normal};
use super::super::failure::{Exit, Failure};
use super::super::print::parsed;
use super::super::terminal::Terminal;
use serde_json::Value;

const METADATA: &str = "/.well-known/oauth-authorization-server";
/// Stands for every scope that only looks, and for every scope.
const READ: &str = "read";
const ALL: &str = "all";

/// What the command line may ask for at a server.
#[derive(Debug)]
pub(in crate::cli) struct Offer {
    /// What the server calls itself.
    pub(super) issuer: String,
    /// Where people are sent.
    pub(super) authorize: String,
    /// What the command line is called there.
    pub(super) client_id: String,
    scopes: Vec<String>,
}

impl Offer {
    /// Asks a server; nothing when the command line cannot sign people in there.
    ///
    /// Errors: usage, when the server calls itself otherwise than it was called; what keeps it from answering.
    pub(in crate::cli) async fn of(
        place: &Place,
        terminal: &Terminal,
        quiet: bool,
    ) -> Result<Option<Self>, Failure> {
        let answer = match ask(place, METADATA, terminal, quiet).await {
            Ok(reply) => parsed(&reply)?,
            // A server that gives out no tokens has no such document.
            Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
            Err(failure) => return Err(failure),
        };
        Self::read(&answer, &place.url)
    }

    fn read(answer: &Value, url: &str) -> Result<Option<Self>, Failure> {
        let text = |member: &str| answer.get(member).and_then(Value::as_str);
        let (Some(client_id), Some(authorize), Some(issuer)) = (
            text("command_line_client_id"),
            text("authorization_endpoint"),
            text("issuer"),
        ) else {
            return Ok(None);
        };
        // INVARIANT CL-8: a server that lies here would have the code of another one sent to itself.
        if normal(issuer).is_ok_and(|issuer| issuer == url) && below(authorize, issuer) {
            let scopes = answer.get("scopes_supported").and_then(Value::as_array);
            let scopes = scopes.into_iter().flatten().filter_map(Value::as_str);
            return Ok(Some(Self {
                issuer: issuer.to_owned(),
                authorize: authorize.to_owned(),
                client_id: client_id.to_owned(),
                scopes: scopes.map(str::to_owned).collect(),
            }));
        }
        let line = format!("{url} calls itself {issuer}: people sign in under that name alone");
        Err(Failure::usage(line).and(format!("provost login --url {issuer}")))
    }

    /// Returns what is asked for, in the words of the request; nothing means all that only looks.
    ///
    /// Errors: usage, for a name that the server does not know.
    pub(super) fn scope(&self, wanted: &[String]) -> Result<Option<String>, Failure> {
        let mut names: Vec<&str> = Vec::new();
        for word in wanted {
            let before = names.len();
            let is_meant = |name: &&String| match word.as_str() {
                ALL => true,
                READ => name.ends_with(":read"),
                one => *name == one,
            };
            names.extend(self.scopes.iter().filter(is_meant).map(String::as_str));
            if names.len() == before {
                let line = format!("--scope {word}: {} knows no such scope", self.issuer);
                return Err(Failure::usage(line).and(format!("it knows {}", self.scopes.join(", "))));
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok((!names.is_empty()).then(|| names.join(" ")))
    }
}

/// Says whether an address lies below that of a server.
fn below(address: &str, server: &str) -> bool {
    let rest = address.strip_prefix(server.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "issuer": "https://provost.example/team",
            "authorization_endpoint": "https://provost.example/team/oauth/authorize",
            "command_line_client_id": "provost-cli",
            "scopes_supported": ["audit:read", "policies:read", "policies:write"],
        })
    }

    /// Proves CL-8.
    #[test]
    fn a_server_that_is_not_what_it_was_called_signs_nobody_in() {
        let read = |document: &Value, url: &str| Offer::read(document, url);
        let url = "https://provost.example/team";
        assert!(read(&document(), url).unwrap().is_some());
        for (member, value) in [
            ("issuer", "https://other.example"),
            ("authorization_endpoint", "https://other.example/oauth/authorize"),
            (
                "authorization_endpoint",
                "https://provost.example/teamster/oauth/authorize",
            ),
            (
                "authorization_endpoint",
                "https://provost.example/team@other.example/",
            ),
        ] {
            let mut lying = document();
            lying[member] = value.into();
            assert!(read(&lying, url).is_err(), "{member} {value}");
        }
        assert!(read(&document(), "https://provost.example").is_err());
        let mut without = document();
        without.as_object_mut().unwrap().remove("command_line_client_id");
        assert!(read(&without, url).unwrap().is_none());
    }

    #[test]
    fn scopes_are_asked_for_by_name_and_by_two_words() {
        let offer = Offer::read(&document(), "https://provost.example/team")
            .unwrap()
            .unwrap();
        let scope = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            offer.scope(&words)
        };
        assert_eq!(scope(&[]).unwrap(), None);
        assert_eq!(
            scope(&["read"]).unwrap().as_deref(),
            Some("audit:read policies:read")
        );
        assert_eq!(
            scope(&["policies:write", "read"]).unwrap().as_deref(),
            Some("audit:read policies:read policies:write")
        );
        assert_eq!(
            scope(&["all"]).unwrap(),
            scope(&["read", "policies:write"]).unwrap()
        );
        assert!(scope(&["policies:writ"]).is_err());
    }
}
