//! The secret managers that the operator declares: `[[external_managers]]` (D11.3).

use super::Problem;
use http::Uri;
use provost_areas_access::resource_credentials::external::{Backend, ExternalManagers, SecretManager, Vault};
use provost_areas_access::resource_credentials::model::ExternalPath;
use provost_kernel::auth::OrganizationId;
use provost_outbound::{client_config, roots_of_file, system_roots};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
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
    let mut found: Vec<SecretManager> = Vec::new();
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
        manager.check_against(&managers[..found.len()])?;
        found.push(SecretManager {
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
                // Where it leads depends on what is there later.
                ExternalKind::File if Path::new(part).components().any(|at| at == Component::ParentDir) => {
                    return Err(self.problem(&format!("the folder {part:?} must not hold '..'")));
                }
                _ => {}
            }
        }
        self.check_against(std::slice::from_ref(self))
    }

    /// Refuses a part that another organization has a part of, in one of these managers: it would read what is not its own.
    fn check_against(&self, managers: &[Self]) -> Result<(), Problem> {
        for other in managers.iter().filter(|other| self.shares_with(other)) {
            for (organization, part) in &self.organizations {
                let others = other
                    .organizations
                    .iter()
                    .filter(|(name, _)| *name != organization);
                let (own, mut others) = (self.real(part), others.map(|(_, part)| other.real(part)));
                if others.any(|theirs| own.starts_with(&theirs) || theirs.starts_with(&own)) {
                    return Err(self.problem(&format!(
                        "the part {part:?} of {organization} lies within another organization's, or another's within it"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Whether another manager reads the same store: files do, and vaults of one address, mount and namespace.
    fn shares_with(&self, other: &Self) -> bool {
        let mount = |manager: &Self| manager.mount.clone().unwrap_or_else(|| "secret".into());
        self.kind == other.kind
            && (self.kind == ExternalKind::File
                || (self.host() == other.host()
                    && mount(self) == mount(other)
                    && self.namespace == other.namespace))
    }

    /// Returns host and port of a vault in one spelling; none for files and for an address that is refused elsewhere.
    fn host(&self) -> Option<(String, u16)> {
        let uri: Uri = self.address.as_deref()?.trim_end_matches('/').parse().ok()?;
        let usual = if uri.scheme_str() == Some("http") { 80 } else { 443 };
        Some((uri.host()?.to_ascii_lowercase(), uri.port_u16().unwrap_or(usual)))
    }

    /// Returns the place that a part names: of a folder the real one, as far as it is there, because links and dots make
    /// several names of one.
    fn real(&self, part: &str) -> PathBuf {
        let path = Path::new(part);
        if self.kind == ExternalKind::Vault {
            return path.to_owned();
        }
        let mut rest = Vec::new();
        for known in path.ancestors() {
            if let Ok(real) = known.canonicalize() {
                return rest.iter().rev().fold(real, |real, name| real.join(name));
            }
            rest.extend(known.file_name());
        }
        path.to_owned()
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
        let roots = match &self.ca_file {
            Some(path) => roots_of_file(path)
                .map_err(|error| self.problem(&format!("ca_file {}: {error}", path.display())))?,
            None => system_roots(),
        };
        let config = client_config(roots);
        let config = config.map_err(|error| self.problem(&format!("TLS cannot be set up: {error}")))?;
        Ok(Arc::new(config))
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
        assert!(file("umbrella = \"/s\"\nacme = \"/s/u\"").contains("within another"));
        assert!(file("ACME = \"/s\"").contains("key of an organization"));
        let twice = "[[external_managers]]\nname = \"a\"\nkind = \"file\"\norganizations = {}\n".repeat(2);
        assert!(refusal(&twice).contains("twice"));
        assert!(refusal(&twice.replace("\"a\"", "\"A b\"")).contains("1 to 64"));
    }

    fn two(kind: &str, more: [&str; 2], parts: [&str; 2]) -> String {
        let one = |name: &str, more: &str, organization: &str, part: &str| {
            format!(
                "[[external_managers]]\nname = \"{name}\"\nkind = \"{kind}\"\n{more}\n[external_managers.organizations]\n{organization} = \"{part}\"\n"
            )
        };
        refusal(&(one("a", more[0], "acme", parts[0]) + &one("b", more[1], "umbrella", parts[1])))
    }

    #[test]
    fn no_organization_reaches_anothers_part_by_another_name() {
        let folder = std::env::temp_dir().join(format!("provost-parts-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("acme/team")).unwrap();
        std::os::unix::fs::symlink(folder.join("acme"), folder.join("link")).unwrap();
        let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let files = |acme: &str, umbrella: &str| two("file", ["", ""], [&at(acme), &at(umbrella)]);
        assert_eq!(files("acme", "umbrella"), "");
        for (acme, umbrella) in [
            ("acme", "acme"),
            ("acme", "acme/team"),
            ("acme/team", "acme"),
            ("acme", "link"),
            ("acme", "link/team"),
            ("acme/team", "link"),
            ("acme", "link/not/there"),
        ] {
            let said = files(acme, umbrella);
            assert!(
                said.contains("another organization's"),
                "{acme} {umbrella}: {said}"
            );
        }
        assert!(files("acme", "umbrella/../acme").contains("must not hold '..'"));
        std::fs::remove_dir_all(&folder).unwrap();
        let vault =
            |address: &str, more: &str| format!("address = \"{address}\"\ntoken_file = \"t\"\n{more}");
        let (one, same, other) = (
            "https://vault.corp",
            "https://VAULT.corp:443/",
            "https://vault.corp:8200",
        );
        for (second, mounts, parts, is_refused) in [
            (same, ["", ""], ["p/acme", "p/umbrella"], false),
            (same, ["", ""], ["p", "p/umbrella"], true),
            (other, ["", ""], ["p", "p/umbrella"], false),
            (same, ["", "mount = \"secret\""], ["p/acme", "p/acme"], true),
            (same, ["", "mount = \"other\""], ["p/acme", "p/acme"], false),
            (
                same,
                ["namespace = \"a\"", "namespace = \"b\""],
                ["p", "p"],
                false,
            ),
            (
                same,
                ["namespace = \"a\"", "namespace = \"a\""],
                ["p/x", "p"],
                true,
            ),
        ] {
            let said = two(
                "vault",
                [&vault(one, mounts[0]), &vault(second, mounts[1])],
                parts,
            );
            assert_eq!(
                said.contains("another organization's"),
                is_refused,
                "{parts:?}: {said}"
            );
        }
    }
}
