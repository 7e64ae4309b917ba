//! Delegated access: `[oauth]` and `[[oauth.issuers]]` (D2.6, D2.7).

use super::{Problem, SignIn};
use provost_areas_access::oauth::settings::{
    BlockedClient, Fetch, Introspection, KeySource, Settings, TrustedIssuer,
};
use provost_kernel::Secret;
use provost_kernel::auth::OrganizationId;
use provost_oauth::{Algorithm, KeySet};
use provost_outbound::Network;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Delegated access by OAuth.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OAuth {
    /// Whether this server gives out access tokens. Off where another server does; its tokens are accepted as `issuers`
    /// says.
    pub authorization_server: bool,
    /// Whether a client may be known by the URL of its metadata document instead of being registered.
    pub client_documents: bool,
    /// Whether people may sign in to the command line (`provost login`) with a browser, where `sign_in` says at which provider. A
    /// server that knows registered clients alone (`client_documents = false`) allows it when this says so. Where it is `false`,
    /// tokens that were given before are refused; their sessions end by being revoked.
    pub command_line: Option<bool>,
    /// Clients that are refused: URLs of their metadata documents, or `https://host` for all of a host. Their tokens are
    /// refused as well.
    pub blocked_clients: Vec<String>,
    /// Inner networks whose servers may be asked for keys and documents, for example `10.1.0.0/16`. Others must be public.
    pub allow_networks: Vec<String>,
    /// PEM file with certificates that are trusted besides the system's, for issuers and clients.
    pub ca_file: Option<PathBuf>,
    /// Issuers whose tokens are accepted, each for the organizations that it names.
    pub issuers: Vec<OAuthIssuer>,
    /// The OpenID providers at which people sign in to let a client act for them.
    pub sign_in: Vec<SignIn>,
}

impl Default for OAuth {
    fn default() -> Self {
        Self {
            authorization_server: true,
            client_documents: true,
            command_line: None,
            blocked_clients: Vec::new(),
            allow_networks: Vec::new(),
            ca_file: None,
            issuers: Vec::new(),
            sign_in: Vec::new(),
        }
    }
}

/// An issuer of tokens.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct OAuthIssuer {
    /// Its identifier, exactly as `iss` says it.
    pub url: String,
    /// The keys of the organizations whose tokens it may issue.
    pub organizations: Vec<String>,
    /// What it may sign with: `EdDSA`, `ES256`, `PS256`, `RS256`. Default: all of them but `RS256`.
    pub algorithms: Option<Vec<String>>,
    /// Where its public keys are, a JWK Set.
    pub jwks_url: Option<String>,
    /// Or a file with them, which is read when the server starts.
    pub jwks_file: Option<PathBuf>,
    /// Where it is asked about opaque tokens (RFC 7662). One issuer can have this.
    pub introspection_url: Option<String>,
    /// What this server is called there.
    pub client_id: Option<String>,
    /// A file with the secret of that.
    pub client_secret_file: Option<PathBuf>,
    /// The id of the directory for whose login names its word counts, where it says that the address is verified.
    pub authoritative_for: Option<String>,
    /// What this server is called in tokens that are exchanged here, besides its own URLs.
    #[serde(default)]
    pub audiences: Vec<String>,
}

impl OAuth {
    /// Checks what was declared and returns it as the program uses it; reads the files of keys and secrets.
    ///
    /// Errors: a sentence that names the key.
    pub fn settings(&self) -> Result<Settings, Problem> {
        let allow = self.allow_networks.iter().map(|text| {
            Network::parse(text)
                .map_err(|refusal| Problem(format!("oauth.allow_networks {text:?}: {refusal}")))
        });
        let blocked = self.blocked_clients.iter().map(|url| {
            BlockedClient::parse(url)
                .map_err(|refusal| Problem(format!("oauth.blocked_clients {url:?}: {refusal}")))
        });
        let mut issuers: Vec<TrustedIssuer> = Vec::new();
        for issuer in &self.issuers {
            let declared = issuer.declared()?;
            if issuers.iter().any(|other| other.url == declared.url) {
                return Err(issuer.problem("is there twice"));
            }
            let is_asked = |issuer: &TrustedIssuer| issuer.introspection.is_some();
            if is_asked(&declared) && issuers.iter().any(is_asked) {
                return Err(
                    issuer.problem("introspection_url: another issuer is asked about opaque tokens already")
                );
            }
            issuers.push(declared);
        }
        let interactive = self.authorization_server && !self.sign_in.is_empty();
        Ok(Settings {
            authorization_server: self.authorization_server,
            client_documents: self.client_documents,
            blocked: blocked.collect::<Result<_, _>>()?,
            command_line: interactive && self.command_line.unwrap_or(self.client_documents),
            interactive,
            issuers,
            fetch: Fetch {
                allow: allow.collect::<Result<_, _>>()?,
                roots: self.roots()?,
                plain_loopback: true,
            },
        })
    }

    fn roots(&self) -> Result<Vec<CertificateDer<'static>>, Problem> {
        let Some(path) = &self.ca_file else {
            return Ok(Vec::new());
        };
        let unreadable = |error: String| Problem(format!("oauth.ca_file {}: {error}", path.display()));
        let found = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
        let found: Result<Vec<_>, _> = found.collect();
        let found = found.map_err(|error| unreadable(error.to_string()))?;
        if found.is_empty() {
            return Err(unreadable("holds no certificate".into()));
        }
        Ok(found)
    }
}

impl OAuthIssuer {
    fn problem(&self, text: &str) -> Problem {
        Problem(format!("oauth.issuers {:?}: {text}", self.url))
    }

    fn declared(&self) -> Result<TrustedIssuer, Problem> {
        if !self.url.starts_with("https://") && !self.url.starts_with("http://") {
            return Err(self.problem("url must begin with https://"));
        }
        let organizations: Option<Vec<_>> = self
            .organizations
            .iter()
            .map(|key| OrganizationId::parse(key))
            .collect();
        let organizations = organizations
            .filter(|all| !all.is_empty())
            .ok_or_else(|| self.problem("organizations must be keys of organizations, one at least"))?;
        let keys = match (&self.jwks_url, &self.jwks_file) {
            (Some(_), Some(_)) => return Err(self.problem("jwks_url and jwks_file exclude each other")),
            (Some(url), None) => KeySource::Url(url.clone()),
            (None, Some(path)) => KeySource::Set(self.keys(path)?),
            (None, None) if self.introspection_url.is_some() => KeySource::None,
            (None, None) => return Err(self.problem("jwks_url, jwks_file or introspection_url is missing")),
        };
        if self.authoritative_for.as_deref() == Some("") {
            return Err(self.problem("authoritative_for must be the id of a directory"));
        }
        Ok(TrustedIssuer {
            url: self.url.clone(),
            organizations,
            algorithms: self.algorithms()?,
            keys,
            introspection: self.introspection()?,
            authoritative_for: self.authoritative_for.clone(),
            audiences: self.audiences.clone(),
        })
    }

    fn algorithms(&self) -> Result<Vec<Algorithm>, Problem> {
        let Some(words) = &self.algorithms else {
            return Ok(vec![Algorithm::EdDsa, Algorithm::Es256, Algorithm::Ps256]);
        };
        let known: Option<Vec<_>> = words.iter().map(|word| Algorithm::parse(word)).collect();
        known
            .filter(|all| !all.is_empty())
            .ok_or_else(|| self.problem("algorithms must be of EdDSA, ES256, PS256, RS256"))
    }

    fn keys(&self, path: &Path) -> Result<Arc<KeySet>, Problem> {
        let wrong = |cause: String| self.problem(&format!("jwks_file {}: {cause}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let keys = KeySet::parse(&bytes).map_err(|refusal| wrong(refusal.to_string()))?;
        if keys.is_empty() {
            return Err(wrong("holds no key that can be used".into()));
        }
        Ok(Arc::new(keys))
    }

    fn introspection(&self) -> Result<Option<Introspection>, Problem> {
        let Some(url) = &self.introspection_url else {
            if self.client_id.is_some() || self.client_secret_file.is_some() {
                return Err(self.problem("client_id and client_secret_file belong to introspection_url"));
            }
            return Ok(None);
        };
        let (Some(id), Some(path)) = (&self.client_id, &self.client_secret_file) else {
            return Err(self.problem("introspection_url needs client_id and client_secret_file"));
        };
        let read = std::fs::read_to_string(path);
        let secret = Secret::new(
            read.map_err(|error| self.problem(&format!("client_secret_file {}: {error}", path.display())))?,
        );
        let secret = Secret::new(secret.expose().trim().to_owned());
        if secret.expose().is_empty() {
            return Err(self.problem("client_secret_file is empty"));
        }
        Ok(Some(Introspection {
            url: url.clone(),
            client_id: id.clone(),
            client_secret: secret,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(issuer: &str) -> String {
        let text = format!("[[issuers]]\nurl = \"https://idp.example\"\n{issuer}");
        match toml::from_str::<OAuth>(&text).map(|oauth| oauth.settings()) {
            Ok(Ok(_)) => String::new(),
            Ok(Err(Problem(text))) => text,
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_issuer_is_checked_before_the_server_starts() {
        let good = "organizations = [\"acme\"]\njwks_url = \"https://idp.example/keys\"";
        assert_eq!(refusal(good), "");
        for (change, expected) in [
            ("organizations = []\njwks_url = \"https://i\"", "one at least"),
            ("organizations = [\"acme\"]", "is missing"),
            (&format!("{good}\njwks_file = \"x\""), "exclude"),
            (&format!("{good}\nalgorithms = [\"HS256\"]"), "algorithms"),
            (&format!("{good}\nalgorithms = []"), "algorithms"),
            (&format!("{good}\nclient_id = \"c\""), "belong"),
            (&format!("{good}\nintrospection_url = \"https://i\""), "needs"),
            (&format!("{good}\nsecret = \"c\""), "unknown field"),
            (
                &format!("{good}\n[[issuers]]\nurl = \"https://idp.example\"\n{good}"),
                "twice",
            ),
            ("organizations = [\"acme\"]\njwks_file = \"/none\"", "jwks_file"),
        ] {
            let text = refusal(change);
            assert!(text.contains(expected), "{change}: {text}");
        }
        for (urls, is_right) in [
            (
                "\"https://a.example/client.json\", \"https://a.example:8443\"",
                true,
            ),
            ("\"http://a.example/client.json\"", false),
            ("\"a.example\"", false),
            ("\"https://a.example/\"", true),
            ("\"ocl_1\"", false),
        ] {
            let text = format!("blocked_clients = [{urls}]");
            let settings = toml::from_str::<OAuth>(&text).unwrap().settings();
            assert_eq!(settings.is_ok(), is_right, "{urls}");
        }
        let network = "allow_networks = [\"10.0.0.1/8\"]";
        assert!(toml::from_str::<OAuth>(network).unwrap().settings().is_err());
    }
}
