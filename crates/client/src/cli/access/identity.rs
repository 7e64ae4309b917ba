//! What a server says of a token: whose it is, what it may do, and when it ends.

use super::super::advice;
use super::super::connection::{Connection, Place};
use super::super::draft::target;
use super::super::failure::{Exit, Failure};
use super::super::print::parsed;
use super::super::send::Sender;
use super::super::server::{Call, Reply, Server};
use super::super::terminal::Terminal;
use http::{HeaderMap, Method};
use provost_words::time::Timestamp;
use provost_words::url::{BASE, encoded};
use serde_json::Value;

/// Stands in the path for an organization that is not known yet. No key of an organization is a lone hyphen.
const UNKNOWN: &str = "-";

/// The answer to "who am I".
pub(super) struct Identity {
    pub(super) organization: String,
    pub(super) answer: Value,
}

impl Identity {
    /// Asks the server. Without an organization the server's refusal says whose the token is.
    ///
    /// Errors: what the server refused, or why there is no answer.
    pub(super) async fn ask(
        connection: &Connection,
        terminal: &Terminal,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let server = Server::new(connection)?;
        let named = connection.place.organization.as_str();
        let asked = if named.is_empty() { UNKNOWN } else { named };
        let first = capabilities(&server, &connection.place, asked, (terminal, quiet)).await;
        let organization = match &first {
            Err(failure) if named.is_empty() => {
                failure.refused(advice::TOKEN_ORGANIZATION).map(str::to_owned)
            }
            _ => None,
        };
        let (reply, organization) = match organization {
            Some(organization) => {
                let reply = capabilities(&server, &connection.place, &organization, (terminal, quiet)).await;
                (reply, organization)
            }
            None => (first, named.to_owned()),
        };
        let reply = reply.map_err(|failure| {
            let is_unsaid =
                organization.is_empty() && failure.refused("code") == Some(advice::OTHER_ORGANIZATION);
            if is_unsaid {
                return failure.and("say which organization: --organization KEY");
            }
            advice::about_access(failure, connection)
        })?;
        let answer = parsed(&reply)?;
        if answer.get("principal").is_none() {
            return Err(Failure::new(
                Exit::ServerFault,
                "the server does not say whose the token is; is this a Provost server?",
            ));
        }
        Ok(Self { organization, answer })
    }

    fn text(&self, pointer: &str) -> &str {
        self.answer
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns the name of who it is.
    pub(super) fn name(&self) -> &str {
        self.text("/principal/name")
    }

    /// Returns the id of who it is.
    pub(super) fn id(&self) -> &str {
        self.text("/principal/id")
    }

    /// Returns the name with what it is: `deploy (service account)`.
    pub(super) fn who(&self) -> String {
        format!(
            "{} ({})",
            self.name(),
            self.text("/principal/type").replace('_', " ")
        )
    }

    pub(super) fn role(&self) -> &str {
        self.text("/permissionRole")
    }

    pub(super) fn token_id(&self) -> &str {
        self.text("/token/id")
    }

    /// Says whether the token is the principal's own, and not that of a session.
    pub(super) fn is_own_token(&self) -> bool {
        self.answer.pointer("/token/isOwn") == Some(&Value::Bool(true))
    }

    pub(super) fn issued_at(&self) -> Option<Timestamp> {
        Timestamp::parse(self.text("/token/issuedAt"))
    }

    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        Timestamp::parse(self.text("/token/expiresAt"))
    }

    pub(super) fn server_version(&self) -> Option<&str> {
        self.answer.get("serverVersion").and_then(Value::as_str)
    }

    /// Returns what the token may do.
    pub(super) fn scopes(&self) -> Vec<&str> {
        let scopes = self.answer.get("scopes").and_then(Value::as_array);
        scopes.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Says whether the scopes grow with the role.
    pub(super) fn has_all_of_role(&self) -> bool {
        self.answer.get("allOfRole") == Some(&Value::Bool(true))
    }
}

async fn capabilities(
    server: &Server,
    place: &Place,
    organization: &str,
    (terminal, quiet): (&Terminal, bool),
) -> Result<Reply, Failure> {
    let path = BASE.replacen("{organizationId}", &encoded(organization).to_string(), 1);
    let call = Call {
        method: Method::GET,
        target: target(&format!("{path}/capabilities"), &[]),
        headers: HeaderMap::new(),
        body: None,
        is_download: false,
    };
    let sender = Sender {
        server,
        terminal,
        retries: place.retries,
        quiet,
        repeat: None,
        unmodified: false,
        weighs: false,
    };
    sender.send(&call).await
}
