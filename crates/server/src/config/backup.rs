//! How `provost store backup --to s3://…` reaches the store of backups.

use super::Problem;
use super::history::is_private;
use provost_history::object_store::{ObjectStore, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;

/// How `provost store backup --to s3://…` reaches the S3-compatible store of backups.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BackupStore {
    /// Where that store listens, as in `https://minio.example.com:9000`. Default: Amazon's service of the region.
    pub endpoint: Option<String>,
    /// The store's region.
    pub region: String,
    /// Whether the bucket is named in the path and not in the host. Default: yes, if an endpoint is given.
    pub path_style: Option<bool>,
    /// A file that holds the id of the access key. It is read anew for every request.
    pub access_key_id_file: Option<PathBuf>,
    /// A file that holds the secret of the access key. It is read anew for every request.
    pub secret_access_key_file: Option<PathBuf>,
    /// A PEM file with the certificates that the store's certificate must lead to. Default: those of the system.
    pub ca_file: Option<PathBuf>,
}

impl Default for BackupStore {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: "us-east-1".into(),
            path_style: None,
            access_key_id_file: None,
            secret_access_key_file: None,
            ca_file: None,
        }
    }
}

impl BackupStore {
    /// Checks what the types do not say.
    pub fn check(&self) -> Result<(), Problem> {
        if self
            .endpoint
            .as_ref()
            .is_some_and(|endpoint| !is_private(endpoint))
        {
            return Err(Problem(
                "backup.endpoint must be https://host[:port], or http:// to a loopback address".into(),
            ));
        }
        if self.access_key_id_file.is_some() != self.secret_access_key_file.is_some() {
            return Err(Problem(
                "backup.access_key_id_file and backup.secret_access_key_file belong together".into(),
            ));
        }
        Ok(())
    }

    /// Opens `s3://bucket/prefix`; nothing is asked of the store yet. Requests run on the runtime, which must have threads of its own.
    pub fn open(&self, url: &str, runtime: &Handle) -> Result<Arc<ObjectStore>, Problem> {
        self.check()?;
        let (Some(id), Some(secret)) = (&self.access_key_id_file, &self.secret_access_key_file) else {
            return Err(Problem(
                "a backup to s3:// needs backup.access_key_id_file and backup.secret_access_key_file".into(),
            ));
        };
        let options = Options {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            path_style: self.path_style.unwrap_or(self.endpoint.is_some()),
            access_key_id_file: id.clone(),
            secret_access_key_file: secret.clone(),
            ca_file: self.ca_file.clone(),
            runtime: runtime.clone(),
        };
        ObjectStore::open(url, &options).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            Problem(format!(
                "the store of backups: {error}{}",
                cause.unwrap_or_default()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_belong_together_and_the_way_is_private() {
        let whole = BackupStore {
            access_key_id_file: Some("id".into()),
            secret_access_key_file: Some("secret".into()),
            ..BackupStore::default()
        };
        assert!(BackupStore::default().check().is_ok() && whole.check().is_ok());
        let with = |change: fn(&mut BackupStore)| {
            let mut store = whole.clone();
            change(&mut store);
            store.check()
        };
        assert!(with(|store| store.endpoint = Some("http://127.0.0.1:9000".into())).is_ok());
        assert!(with(|store| store.endpoint = Some("http://minio:9000".into())).is_err());
        assert!(with(|store| store.secret_access_key_file = None).is_err());
    }
}
