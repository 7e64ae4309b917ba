//! Where recorded events are kept once they are sealed.

use super::Problem;
use http::Uri;
use provost_areas_policy::history::SegmentPlace;
use provost_history::object_store::{ObjectStore, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// Where recorded events are kept once they are sealed: a folder, or an S3-compatible store. Servers on one database
/// share it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct History {
    /// A folder. Default: `history` in the data folder.
    pub folder: Option<PathBuf>,
    /// In place of a folder, the bucket and prefix of an S3-compatible store, as in `s3://provost/history`.
    pub url: Option<String>,
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

impl Default for History {
    fn default() -> Self {
        Self {
            folder: None,
            url: None,
            endpoint: None,
            region: "us-east-1".into(),
            path_style: None,
            access_key_id_file: None,
            secret_access_key_file: None,
            ca_file: None,
        }
    }
}

impl History {
    /// Checks what the types do not say.
    pub fn check(&self) -> Result<(), Problem> {
        let problem = |text: &str| Err(Problem(text.to_owned()));
        if self
            .folder
            .as_ref()
            .is_some_and(|folder| folder.as_os_str().is_empty())
        {
            return problem("history.folder must not be empty");
        }
        let Some(url) = &self.url else {
            return if self.endpoint.is_some() {
                problem("history.endpoint is of no use without history.url")
            } else {
                Ok(())
            };
        };
        if self.folder.is_some() {
            return problem("history.folder and history.url exclude each other");
        }
        if !url.starts_with("s3://") {
            return problem("history.url must be of the form s3://bucket/prefix");
        }
        if self
            .endpoint
            .as_ref()
            .is_some_and(|endpoint| !is_private(endpoint))
        {
            return problem("history.endpoint must be https://host[:port], or http:// to a loopback address");
        }
        self.keys().map(drop)
    }

    fn keys(&self) -> Result<(&Path, &Path), Problem> {
        match (&self.access_key_id_file, &self.secret_access_key_file) {
            (Some(id), Some(secret)) => Ok((id, secret)),
            _ => Err(Problem(
                "history.url needs history.access_key_id_file and history.secret_access_key_file".into(),
            )),
        }
    }

    /// Returns the folder of the segments; `None` when they are in an object store.
    pub fn folder(&self, data_dir: &Path) -> Option<PathBuf> {
        let folder = || self.folder.clone().unwrap_or_else(|| data_dir.join("history"));
        self.url.is_none().then(folder)
    }

    /// Opens the place of the segments to read them: nothing is made in a folder, and nothing is removed from it.
    pub fn open_to_inspect(&self, data_dir: &Path, runtime: &Handle) -> Result<SegmentPlace, Problem> {
        match self.folder(data_dir) {
            Some(folder) => Ok(SegmentPlace::folder_as_it_is(&folder)),
            None => self.open(data_dir, runtime),
        }
    }

    /// Opens the place of the segments; a folder is made if it is absent. Requests to an object store run on the
    /// runtime, which must have threads of its own.
    pub fn open(&self, data_dir: &Path, runtime: &Handle) -> Result<SegmentPlace, Problem> {
        let Some(url) = &self.url else {
            let folder = self.folder(data_dir).unwrap_or_default();
            return SegmentPlace::folder(&folder).map_err(|error| {
                Problem(format!(
                    "history.folder: {} cannot be opened: {error}",
                    folder.display()
                ))
            });
        };
        let (access_key_id_file, secret_access_key_file) = self.keys()?;
        let options = Options {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            path_style: self.path_style.unwrap_or(self.endpoint.is_some()),
            access_key_id_file: access_key_id_file.to_owned(),
            secret_access_key_file: secret_access_key_file.to_owned(),
            ca_file: self.ca_file.clone(),
            runtime: runtime.clone(),
        };
        let store = ObjectStore::open(url, &options).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            Problem(format!("history.url: {error}{}", cause.unwrap_or_default()))
        })?;
        Ok(SegmentPlace(store))
    }
}

/// Whether nobody on the way reads what is sent there.
pub(super) fn is_private(endpoint: &str) -> bool {
    let Ok(uri) = endpoint.parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    match uri.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => address.is_ok_and(|address| address.is_loopback()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_needs_its_keys_in_files_and_a_private_way() {
        let whole = History {
            url: Some("s3://bucket/history".into()),
            access_key_id_file: Some("id".into()),
            secret_access_key_file: Some("secret".into()),
            ..History::default()
        };
        let with = |change: fn(&mut History)| {
            let mut history = whole.clone();
            change(&mut history);
            history.check()
        };
        assert!(History::default().check().is_ok());
        assert!(with(|_| {}).is_ok());
        assert!(with(|history| history.endpoint = Some("https://minio.example.com:9000".into())).is_ok());
        assert!(with(|history| history.endpoint = Some("http://127.0.0.1:9000".into())).is_ok());
        assert!(with(|history| history.endpoint = Some("http://[::1]:9000".into())).is_ok());
        for wrong in [
            with(|history| history.url = Some("https://bucket".into())),
            with(|history| history.endpoint = Some("http://minio:9000".into())),
            with(|history| history.endpoint = Some("minio:9000".into())),
            with(|history| history.secret_access_key_file = None),
            with(|history| history.access_key_id_file = None),
            with(|history| history.folder = Some("folder".into())),
            with(|history| {
                history.url = None;
                history.endpoint = Some("https://minio.example.com".into());
            }),
        ] {
            assert!(wrong.is_err());
        }
    }
}
