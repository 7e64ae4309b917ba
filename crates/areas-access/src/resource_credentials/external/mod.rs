//! Secret managers that keep secrets in our stead, as the operator declares them (D11.3).
//!
//! Keeps RC-7.

mod address;
mod file;
mod vault;

pub use vault::Vault;

use super::checks::model::Reason;
use provost_kernel::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// LIMIT: bytes of an answer or of a file; a secret has 65536 characters at most.
const MAX_BYTES: usize = 64 << 10;
/// How long one fetch may take; a job waits 30 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// Every declared secret manager. The kernel carries it; without one, nothing is declared.
#[derive(Debug, Default)]
pub struct ExternalManagers(Vec<SecretManager>);

/// One declared secret manager.
#[derive(Debug)]
pub struct SecretManager {
    /// The name that credentials give as `managerInstance`.
    pub name: String,
    /// What it is.
    pub backend: Backend,
    /// What each organization that may use it has: a path prefix in a vault, a folder of files.
    pub prefixes: BTreeMap<String, String>,
}

/// What a secret manager is.
#[derive(Debug)]
pub enum Backend {
    /// A key-value store of version 2 in `HashiCorp` Vault or `OpenBao`.
    Vault(Vault),
    /// A folder.
    File,
}

impl ExternalManagers {
    /// Returns what was declared.
    pub fn new(declared: Vec<SecretManager>) -> Self {
        Self(declared)
    }

    /// Returns the part of a secret manager that an organization may use, if there is one of this name.
    pub fn place(&self, organization: &str, name: &str) -> Option<ManagerPart<'_>> {
        let declared = self.0.iter().find(|declared| declared.name == name)?;
        let prefix = declared.prefixes.get(organization)?;
        Some(ManagerPart {
            backend: &declared.backend,
            prefix,
        })
    }
}

/// The part of a secret manager that one organization may use.
pub struct ManagerPart<'a> {
    backend: &'a Backend,
    prefix: &'a str,
}

impl ManagerPart<'_> {
    /// Returns what the secret manager is, as `managerId` shows it.
    pub fn kind(&self) -> &'static str {
        match self.backend {
            Backend::Vault(_) => "vault",
            Backend::File => "file",
        }
    }

    /// Fetches a secret. `path` is one that a credential may have: it leads nowhere above the prefix.
    ///
    /// Errors: why it could not be had.
    pub async fn fetch(&self, path: &str, field: Option<&str>) -> Result<Secret<Vec<u8>>, Reason> {
        let fetched = async {
            match self.backend {
                Backend::Vault(vault) => vault.fetch(self.prefix, path, field.unwrap_or("value")).await,
                Backend::File => {
                    let (root, path) = (PathBuf::from(self.prefix), path.to_owned());
                    let read = tokio::task::spawn_blocking(move || file::read(&root, &path));
                    read.await.unwrap_or(Err(Reason::Unreachable))
                }
            }
        };
        tokio::time::timeout(PATIENCE, fetched)
            .await
            .unwrap_or(Err(Reason::Timeout))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
