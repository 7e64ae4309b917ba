//! What the operator declares, as the program uses it; `config::OAuth` makes it.

use super::command_line;
use provost_kernel::Secret;
use provost_kernel::auth::OrganizationId;
use provost_oauth::jwks::{Algorithm, KeySet};
use provost_oauth::{Refusal, client_document};
use provost_outbound::{Network, Options};
use rustls_pki_types::CertificateDer;
use std::sync::Arc;

/// One of the kernel's extras. The default: our own tokens alone, for clients of every kind.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the operator's, and none says anything of another"
)]
pub struct Settings {
    /// Whether this server gives out tokens; without it, it only accepts those of `issuers`.
    pub authorization_server: bool,
    /// Whether a client may be known by the URL of its document.
    pub client_documents: bool,
    /// Whether our own command line is a client, which nobody has to register.
    pub command_line: bool,
    /// Which clients are refused whatever they show.
    pub blocked: Vec<BlockedClient>,
    /// Whether people can sign in here, so that codes are given out.
    pub interactive: bool,
    /// Whose tokens are accepted besides our own.
    pub issuers: Vec<TrustedIssuer>,
    /// What may be fetched.
    pub fetch: Fetch,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            authorization_server: true,
            client_documents: true,
            command_line: false,
            blocked: Vec::new(),
            interactive: false,
            issuers: Vec::new(),
            fetch: Fetch::default(),
        }
    }
}

impl Settings {
    /// Says whether a client of ours is refused: one that is blocked, or the command line where it is none (OC-19). What another
    /// issuer calls its clients is its own business.
    pub fn keeps_out(&self, client_id: &str) -> bool {
        self.blocks(client_id) || client_id == command_line::ID && !self.command_line
    }

    /// Says whether a client is refused, whoever's it is.
    pub fn blocks(&self, client_id: &str) -> bool {
        self.blocked.iter().any(|blocked| blocked.names(client_id))
    }
}

/// A client that is refused, or every client whose document is at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockedClient {
    /// The URL of a document, exactly.
    Client(String),
    /// An origin.
    Origin {
        /// As written in lower case.
        host: String,
        /// Of `https:`, when the URL names none.
        port: u16,
    },
}

impl BlockedClient {
    /// Reads the URL of a document, or of a host without a path.
    ///
    /// Errors: why it is neither.
    pub fn parse(url: &str) -> Result<Self, Refusal> {
        // No document of a client is a host's front page: who names it means the host.
        let host = url.strip_suffix('/').unwrap_or(url);
        let is_origin = host
            .strip_prefix("https://")
            .is_some_and(|rest| !rest.contains('/'));
        if is_origin && let Some((host, port)) = client_document::origin(host) {
            return Ok(Self::Origin { host, port });
        }
        client_document::check_url(url).map(|()| Self::Client(url.to_owned()))
    }

    fn names(&self, client_id: &str) -> bool {
        match self {
            Self::Client(url) => url == client_id,
            Self::Origin { host, port } => {
                client_document::origin(client_id).is_some_and(|origin| origin == (host.clone(), *port))
            }
        }
    }
}

/// What may be fetched besides the public Internet.
#[derive(Clone, Debug, Default)]
pub struct Fetch {
    /// Inner networks.
    pub allow: Vec<Network>,
    /// Roots besides the system's.
    pub roots: Vec<CertificateDer<'static>>,
    /// Whether `http:` is served on loopback addresses of `allow`.
    pub plain_loopback: bool,
}

impl Fetch {
    /// Returns the options of a fetcher.
    pub fn options(&self) -> Options {
        Options {
            allow: self.allow.clone(),
            extra_roots: self.roots.clone(),
            plain_loopback: self.plain_loopback,
        }
    }
}

/// An issuer that is trusted for named organizations (D2.6).
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    /// Its identifier, exactly as `iss` says it.
    pub url: String,
    /// Whose tokens it may issue.
    pub organizations: Vec<OrganizationId>,
    /// What it may sign with.
    pub algorithms: Vec<Algorithm>,
    /// Where its public keys are.
    pub keys: KeySource,
    /// Where it is asked about opaque tokens.
    pub introspection: Option<Introspection>,
    /// The directory of which it knows the login names, where it says `email_verified` (OC-7).
    pub authoritative_for: Option<String>,
    /// How it names this server in tokens that are exchanged here.
    pub audiences: Vec<String>,
}

/// Where an issuer's public keys are.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// Read when the server started.
    Set(Arc<KeySet>),
    /// Fetched when they are needed.
    Url(String),
    /// Fetched when they are needed, from where the issuer's own document says.
    Discovered,
    /// It signs nothing: all of its tokens are opaque.
    None,
}

/// How an issuer is asked about opaque tokens (RFC 7662).
#[derive(Clone, Debug)]
pub struct Introspection {
    /// The endpoint.
    pub url: String,
    /// This server's name there.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret<String>,
}
