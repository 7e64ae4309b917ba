//! The secret managers that the operator declares: `[[external_managers]]` (D11.3).

use super::Problem;
use crate::areas::resource_credentials::external::{Backend, Declared, ExternalManagers, Vault};
use crate::areas::resource_credentials::model::ExternalPath;
use http::Uri;
use provost_kernel::auth::OrganizationId;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A secret manager that keeps secrets of credentials.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ExternalManager {
    /// The name that credentials give as `managerInstance`: 1 to 64 of a-z, 0-9, '-'.
    pub name: String,
    /// What it is.
    pub kind: ExternalKind,
    /// The organizations that may use it, each with its own part: a path prefix in a vault, an absolute folder of
    /// files. No part may lie within another's.
    pub organizations: BTreeMap<String, String>,
    /// Vault: `https://host[:port]`; `http://` to a loopback address alone.
    pub address: Option<String>,
    /// Vault: where the key-value store (version 2) is mounted. Default: `secret`.
    pub mount: Option<String>,
    /// Vault: the namespace, where there are any.
    pub namespace: Option<String>,
    /// Vault: a file with the token. It is read at every fetch, so an agent may renew it.
    pub token_file: Option<PathBuf>,
    /// Vault: a PEM file with the certificates that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Vault: the address may be private or loopback, as it is in most installations of one's own.
    #[serde(default)]
    pub allow_private_address: bool,
}

/// What a secret manager is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ExternalKind {
    /// `HashiCorp` Vault or `OpenBao`.
    Vault,
    /// Files below a folder.
    File,
}

/// Checks what was declared and returns it as the program uses it; reads the certificate files.
///
/// Errors: a sentence that names the manager and the key.
pub fn declared(managers: &[ExternalManager]) -> Result<ExternalManagers, Problem> {
    let mut found: Vec<Declared> = Vec::new();
    for manager in managers {
        let name = manager.name.as_str();
        let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if !(1..=64).contains(&name.len()) || !name.bytes().all(is_inner) {
            return Err(Problem(format!(
                "external_managers: the name {name:?} must have 1 to 64 of a-z, 0-9, '-'"
            )));
        }
        if found.iter().any(|other| other.name == name) {
            return Err(Problem(format!(
                "external_managers: the name {name} is there twice"
            )));
        }
        let backend = manager.backend()?;
        manager.check_parts()?;
        found.push(Declared {
            name: name.to_owned(),
            backend,
            prefixes: manager.organizations.clone(),
        });
    }
    Ok(ExternalManagers::new(found))
}

impl ExternalManager {
    fn problem(&self, text: &str) -> Problem {
        Problem(format!("external_managers {}: {text}", self.name))
    }

    fn check_parts(&self) -> Result<(), Problem> {
        for (organization, part) in &self.organizations {
            if OrganizationId::parse(organization).is_none() {
                return Err(self.problem(&format!("{organization:?} is not the key of an organization")));
            }
            match self.kind {
                ExternalKind::Vault if ExternalPath::try_from(part.clone()).is_err() => {
                    return Err(self.problem(&format!(
                        "the prefix {part:?} must be segments of letters, digits, '.', '_' and '-' with '/' between them"
                    )));
                }
                ExternalKind::File if !Path::new(part).is_absolute() => {
                    return Err(self.problem(&format!("the folder {part:?} must be an absolute path")));
                }
                _ => {}
            }
            let mut others = self
                .organizations
                .iter()
                .filter(|(other, _)| *other != organization);
            if others.any(|(_, other)| Path::new(part).starts_with(other)) {
                return Err(self.problem(&format!("the part {part:?} lies within another organization's")));
            }
        }
        Ok(())
    }

    fn backend(&self) -> Result<Backend, Problem> {
        if self.kind == ExternalKind::File {
            let has_vault_keys = self.address.is_some()
                || self.mount.is_some()
                || self.namespace.is_some()
                || self.token_file.is_some()
                || self.ca_file.is_some()
                || self.allow_private_address;
            if has_vault_keys {
                return Err(self.problem("files need name, kind and organizations, and have no other keys"));
            }
            return Ok(Backend::File);
        }
        let missing = |key: &str| self.problem(&format!("{key} is missing"));
        let mount = self.mount.clone().unwrap_or_else(|| "secret".into());
        if ExternalPath::try_from(mount.clone()).is_err() {
            return Err(self.problem("mount must be a path without a slash at its ends"));
        }
        let namespace = self.namespace.clone();
        if namespace
            .as_ref()
            .is_some_and(|n| http::HeaderValue::from_str(n).is_err())
        {
            return Err(self.problem("namespace has characters that no namespace has"));
        }
        Ok(Backend::Vault(Vault {
            address: self.address(self.address.as_deref().ok_or_else(|| missing("address"))?)?,
            mount,
            namespace,
            token_file: self.token_file.clone().ok_or_else(|| missing("token_file"))?,
            tls: self.tls()?,
            allow_private_address: self.allow_private_address,
        }))
    }

    fn address(&self, text: &str) -> Result<Uri, Problem> {
        let wrong = || self.problem("address must be https://host[:port], without user, path or query");
        let uri: Uri = text.trim_end_matches('/').parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        let is_bare =
            matches!(uri.path(), "" | "/") && uri.query().is_none() && !authority.as_str().contains('@');
        if !is_bare {
            return Err(wrong());
        }
        let host = authority.host().trim_matches(['[', ']']);
        match uri.scheme_str() {
            Some("https") => Ok(uri),
            Some("http") if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()) => Ok(uri),
            Some("http") => {
                Err(self.problem("address: the vault's token does not cross a network in clear; use https"))
            }
            _ => Err(wrong()),
        }
    }

    fn tls(&self) -> Result<Arc<rustls::ClientConfig>, Problem> {
        let mut roots = rustls::RootCertStore::empty();
        if let Some(path) = &self.ca_file {
            let unreadable = |error: String| self.problem(&format!("ca_file {}: {error}", path.display()));
            let certificates = CertificateDer::pem_file_iter(path).map_err(|e| unreadable(e.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|e| unreadable(e.to_string()))?;
                roots.add(certificate).map_err(|e| unreadable(e.to_string()))?;
            }
            if roots.is_empty() {
                return Err(unreadable("holds no certificate".into()));
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| self.problem(&format!("TLS cannot be set up: {error}")))?;
        Ok(Arc::new(
            config.with_root_certificates(roots).with_no_client_auth(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(toml: &str) -> String {
        let config: Result<super::super::Config, _> = toml.parse::<toml::Table>().unwrap().try_into();
        match config.map(|config| declared(&config.external_managers)) {
            Ok(Ok(_)) => String::new(),
            Ok(Err(Problem(text))) => text,
            Err(error) => error.to_string(),
        }
    }

    fn vault(change: &str) -> String {
        refusal(&format!(
            "[[external_managers]]\nname = \"corp\"\nkind = \"vault\"\n{change}\n[external_managers.organizations]\nacme = \"provost/acme\"\n"
        ))
    }

    #[test]
    fn a_declaration_is_checked_before_the_server_starts() {
        let good = "address = \"https://vault.corp.example:8200\"\ntoken_file = \"/etc/provost/token\"";
        assert_eq!(vault(good), "");
        assert_eq!(
            vault("address = \"http://127.0.0.1:8200\"\ntoken_file = \"t\""),
            ""
        );
        for (change, expected) in [
            ("token_file = \"t\"", "address is missing"),
            ("address = \"https://v\"", "token_file is missing"),
            ("address = \"http://vault.corp\"\ntoken_file = \"t\"", "in clear"),
            (
                "address = \"https://u@vault.corp\"\ntoken_file = \"t\"",
                "without user",
            ),
            (
                "address = \"https://vault.corp/v1\"\ntoken_file = \"t\"",
                "without user",
            ),
            (
                "address = \"ftp://vault.corp\"\ntoken_file = \"t\"",
                "https://host",
            ),
            (
                "address = \"https://v\"\ntoken_file = \"t\"\nmount = \"/kv/\"",
                "mount",
            ),
            (
                "address = \"https://v\"\ntoken_file = \"t\"\nca_file = \"/none\"",
                "ca_file",
            ),
            (
                "address = \"https://v\"\ntoken_file = \"t\"\ntoken = \"s.x\"",
                "unknown field",
            ),
        ] {
            let text = vault(change);
            assert!(text.contains(expected), "{change}: {text}");
        }
        let file = |parts: &str| {
            refusal(&format!(
                "[[external_managers]]\nname = \"files\"\nkind = \"file\"\n[external_managers.organizations]\n{parts}\n"
            ))
        };
        assert_eq!(
            file("acme = \"/run/secrets/acme\"\numbrella = \"/run/secrets/umbrella\""),
            ""
        );
        assert!(file("acme = \"secrets\"").contains("absolute"));
        assert!(file("acme = \"/s\"\numbrella = \"/s/u\"").contains("within another"));
        assert!(file("ACME = \"/s\"").contains("key of an organization"));
        let twice = "[[external_managers]]\nname = \"a\"\nkind = \"file\"\norganizations = {}\n".repeat(2);
        assert!(refusal(&twice).contains("twice"));
        assert!(refusal(&twice.replace("\"a\"", "\"A b\"")).contains("1 to 64"));
    }
}
