//! Where people sign in: `[[oauth.sign_in]]` (D2.7).

use super::Problem;
use http::Uri;
use provost_areas_access::oauth::sign_in::{Http, ProviderDeclaration, Providers};
use provost_kernel::auth::OrganizationId;
use provost_outbound::{roots_of_file, system_roots};
use rustls::RootCertStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// An OpenID provider at which people sign in before they let a client act for them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct SignIn {
    /// What people read when they choose among several, 1 to 64 characters.
    pub name: String,
    /// The issuer, exactly as the provider writes it: `https://…`; `http://` on a loopback address alone. The provider
    /// must know `{public_url}/oauth/callback` as a redirect URI.
    pub issuer: String,
    /// What this server is called there.
    pub client_id: String,
    /// A file with the client's secret. It is read at every sign-in. Without it the server is a public client there.
    pub client_secret_file: Option<PathBuf>,
    /// The keys of the organizations whose people sign in there.
    pub organizations: Vec<String>,
    /// What the provider is asked for besides `openid`. Default: `email`.
    pub scopes: Option<Vec<String>>,
    /// The id of the directory for whose login names the provider's word counts: whoever signs in with a verified address
    /// for the first time is the user of that login name. Without it users must be linked otherwise.
    pub authoritative_for: Option<String>,
    /// A PEM file with the certificates that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
}

/// Checks what was declared and returns it as the program uses it; reads the certificate files.
///
/// Errors: a sentence that names the provider and the key.
pub fn declared(all: &[SignIn]) -> Result<Providers, Problem> {
    let mut found: Vec<ProviderDeclaration> = Vec::new();
    for one in all {
        let declared = one.declared()?;
        if found
            .iter()
            .any(|other| other.issuer == declared.issuer && other.client_id == declared.client_id)
        {
            return Err(one.problem("the same issuer and client_id are there twice"));
        }
        if found.iter().any(|other| other.name == declared.name) {
            return Err(one.problem("the name is there twice"));
        }
        found.push(declared);
    }
    Ok(Providers::new(found))
}

/// Checks that browsers keep what the sign-in gives them: cookies need HTTPS or this machine.
pub fn check_public_url(all: &[SignIn], public_url: &str) -> Result<(), Problem> {
    if all.is_empty() || public_url.starts_with("https://") || is_loopback(public_url) {
        return Ok(());
    }
    Err(Problem(format!(
        "oauth.sign_in needs http.public_url to begin with https:// (or a loopback address), not {public_url:?}"
    )))
}

impl SignIn {
    fn problem(&self, text: &str) -> Problem {
        Problem(format!("oauth.sign_in {:?}: {text}", self.name))
    }

    fn declared(&self) -> Result<ProviderDeclaration, Problem> {
        let length = self.name.chars().count();
        if !(1..=64).contains(&length) || self.name.chars().any(char::is_control) {
            return Err(self.problem("name must have 1 to 64 printable characters"));
        }
        self.check_issuer()?;
        if self.client_id.is_empty() || self.client_id.len() > 512 {
            return Err(self.problem("client_id must have 1 to 512 bytes"));
        }
        let organizations: Option<Vec<_>> = self
            .organizations
            .iter()
            .map(|key| OrganizationId::parse(key))
            .collect();
        let organizations = organizations
            .filter(|all| !all.is_empty())
            .ok_or_else(|| self.problem("organizations must be keys of organizations, one at least"))?;
        if self.authoritative_for.as_deref() == Some("") {
            return Err(self.problem("authoritative_for must be the id of a directory"));
        }
        Ok(ProviderDeclaration {
            name: self.name.clone(),
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret_file: self.client_secret_file.clone(),
            organizations,
            scopes: self.scopes()?,
            authoritative_for: self.authoritative_for.clone(),
            http: Http::new(self.roots()?)
                .map_err(|error| self.problem(&format!("TLS cannot be set up: {error}")))?,
        })
    }

    fn check_issuer(&self) -> Result<(), Problem> {
        let uri: Option<Uri> = self.issuer.parse().ok();
        let is_plain = uri.as_ref().is_some_and(|uri| {
            uri.query().is_none() && uri.authority().is_some_and(|a| !a.as_str().contains('@'))
        });
        if !is_plain || self.issuer.contains('#') {
            return Err(
                self.problem("issuer must be https://host[:port][/path], without user, query or fragment")
            );
        }
        if self.issuer.starts_with("https://") || is_loopback(&self.issuer) {
            return Ok(());
        }
        Err(self.problem("issuer: secrets do not cross a network in clear; use https"))
    }

    fn scopes(&self) -> Result<Vec<String>, Problem> {
        let Some(scopes) = &self.scopes else {
            return Ok(vec!["email".to_owned()]);
        };
        let is_scope = |scope: &String| !scope.is_empty() && scope.bytes().all(|b| b.is_ascii_graphic());
        if scopes.len() > 32 || !scopes.iter().all(is_scope) {
            return Err(self.problem("scopes must be names without spaces, 32 at most"));
        }
        let more = scopes.iter().filter(|scope| *scope != "openid");
        Ok(more.cloned().collect())
    }

    fn roots(&self) -> Result<RootCertStore, Problem> {
        let Some(path) = &self.ca_file else {
            return Ok(system_roots());
        };
        roots_of_file(path)
            .map_err(|error| self.problem(&format!("ca_file {}: {error}", Path::display(path))))
    }
}

/// Says whether a URL is `http:` on this machine.
fn is_loopback(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    uri.filter(|uri| uri.scheme_str() == Some("http"))
        .and_then(|uri| uri.host().map(|host| host.trim_matches(['[', ']']).to_owned()))
        .is_some_and(|host| host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: &str) -> String {
        let text = format!("[[s]]\nname = \"Okta\"\nclient_id = \"c\"\n{change}");
        let table: Result<std::collections::BTreeMap<String, Vec<SignIn>>, _> = toml::from_str(&text);
        match table.map(|table| declared(&table["s"])) {
            Ok(Ok(_)) => String::new(),
            Ok(Err(Problem(text))) => text,
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_provider_is_checked_before_the_server_starts() {
        let good = "issuer = \"https://idp.example\"\norganizations = [\"acme\"]";
        assert_eq!(refusal(good), "");
        assert_eq!(
            refusal("issuer = \"http://127.0.0.1:4444/realm\"\norganizations = [\"acme\"]"),
            ""
        );
        for (change, expected) in [
            (
                "issuer = \"https://idp.example\"\norganizations = []",
                "one at least",
            ),
            (
                "issuer = \"https://idp.example\"\norganizations = [\"A B\"]",
                "keys of organizations",
            ),
            (
                "issuer = \"http://idp.example\"\norganizations = [\"acme\"]",
                "in clear",
            ),
            (
                "issuer = \"https://u@idp.example\"\norganizations = [\"acme\"]",
                "without user",
            ),
            (
                "issuer = \"https://idp.example?x\"\norganizations = [\"acme\"]",
                "without user",
            ),
            ("issuer = \"idp\"\norganizations = [\"acme\"]", "https"),
            (&format!("{good}\nscopes = [\"a b\"]"), "without spaces"),
            (&format!("{good}\nca_file = \"/none\""), "ca_file"),
            (&format!("{good}\nclient_secret = \"x\""), "unknown field"),
            (&format!("{good}\nauthoritative_for = \"\""), "directory"),
            (
                &format!("{good}\n[[s]]\nname = \"B\"\nclient_id = \"c\"\n{good}"),
                "twice",
            ),
            (
                &format!("{good}\n[[s]]\nname = \"Okta\"\nclient_id = \"d\"\n{good}"),
                "twice",
            ),
        ] {
            let text = refusal(change);
            assert!(text.contains(expected), "{change}: {text}");
        }
    }

    #[test]
    fn cookies_need_https_or_this_machine() {
        let one: SignIn = toml::from_str(
            "name = \"a\"\nissuer = \"https://i\"\nclient_id = \"c\"\norganizations = [\"acme\"]",
        )
        .unwrap();
        let all = [one];
        for good in [
            "https://provost.example",
            "http://127.0.0.1:8080",
            "http://[::1]:1",
            "http://localhost:1",
        ] {
            assert_eq!(check_public_url(&all, good), Ok(()));
        }
        assert!(check_public_url(&all, "http://provost.example").is_err());
        assert!(check_public_url(&all, "http://127.0.0.1.example").is_err());
        assert_eq!(check_public_url(&[], "http://provost.example"), Ok(()));
    }
}
