//! How an S3-compatible store is reached: the same keys in each section that names one.
//!
//! They stand in a macro and not in a type that sections flatten: what serde flattens has lost its place in the file, so that a
//! mistake in it would be told without its line, and unknown keys would be taken.

use super::Problem;
use http::Uri;
use provost_history::object_store::{ObjectStore, Options};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Declares a section of the configuration with keys of its own, and those of an S3-compatible store behind them.
macro_rules! s3_section {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$about_own:meta])* pub $own:ident: $kind:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$about_own])* pub $own: $kind,)*
            /// Where that store listens, as in `https://minio.example.com:9000`. Default: Amazon's service of the region.
            pub endpoint: Option<String>,
            /// The store's region.
            pub region: String,
            /// Whether the bucket is named in the path and not in the host. Default: yes, if an endpoint is given.
            pub path_style: Option<bool>,
            /// A file that holds the id of the access key. It is read anew for every request.
            pub access_key_id_file: Option<std::path::PathBuf>,
            /// A file that holds the secret of the access key. It is read anew for every request.
            pub secret_access_key_file: Option<std::path::PathBuf>,
            /// A PEM file with the certificates that the store's certificate must lead to. Default: those of the system.
            pub ca_file: Option<std::path::PathBuf>,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($own: Default::default(),)*
                    endpoint: None,
                    region: "us-east-1".into(),
                    path_style: None,
                    access_key_id_file: None,
                    secret_access_key_file: None,
                    ca_file: None,
                }
            }
        }

        impl $name {
            /// Returns how the store is reached.
            fn s3(&self) -> $crate::config::s3::S3<'_> {
                $crate::config::s3::S3 {
                    endpoint: self.endpoint.as_deref(),
                    region: &self.region,
                    path_style: self.path_style,
                    access_key_id_file: self.access_key_id_file.as_deref(),
                    secret_access_key_file: self.secret_access_key_file.as_deref(),
                    ca_file: self.ca_file.as_deref(),
                }
            }
        }
    };
}
pub(super) use s3_section;

/// What a section says of a store.
pub(super) struct S3<'a> {
    pub endpoint: Option<&'a str>,
    pub region: &'a str,
    pub path_style: Option<bool>,
    pub access_key_id_file: Option<&'a Path>,
    pub secret_access_key_file: Option<&'a Path>,
    pub ca_file: Option<&'a Path>,
}

impl S3<'_> {
    /// Checks that nobody on the way reads what is sent there.
    pub fn check_endpoint(&self, section: &str) -> Result<(), Problem> {
        if self.endpoint.is_none_or(is_private) {
            return Ok(());
        }
        Err(Problem(format!(
            "{section}.endpoint must be https://host[:port], or http:// to a loopback address"
        )))
    }

    /// Returns the files of the id and of the secret of the access key, if both are named.
    pub fn keys(&self) -> Option<(&Path, &Path)> {
        Some((self.access_key_id_file?, self.secret_access_key_file?))
    }

    /// Opens `s3://bucket/prefix`; nothing is asked of the store yet. Requests run on the runtime, which must have threads of its own.
    ///
    /// Errors: `without_keys` where they are not named; why it is no such URL, or a certificate cannot be read.
    pub fn open(
        &self,
        (what, url): (&str, &str),
        without_keys: &str,
        runtime: &Handle,
    ) -> Result<Arc<ObjectStore>, Problem> {
        let (id, secret) = self.keys().ok_or_else(|| Problem(without_keys.to_owned()))?;
        let options = Options {
            endpoint: self.endpoint.map(str::to_owned),
            region: self.region.to_owned(),
            path_style: self.path_style.unwrap_or(self.endpoint.is_some()),
            access_key_id_file: id.to_owned(),
            secret_access_key_file: secret.to_owned(),
            ca_file: self.ca_file.map(Path::to_owned),
            runtime: runtime.clone(),
        };
        ObjectStore::open(url, &options).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            Problem(format!("{what}: {error}{}", cause.unwrap_or_default()))
        })
    }
}

fn is_private(endpoint: &str) -> bool {
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
    use crate::config::{BackupStore, History};

    #[test]
    fn a_mistake_in_these_keys_is_told_with_its_line() {
        let text = "region = \"eu\"\nendpiont = \"https://minio.example.com\"\n";
        for said in [
            toml::from_str::<History>(text).unwrap_err().to_string(),
            toml::from_str::<BackupStore>(text).unwrap_err().to_string(),
        ] {
            assert!(said.contains("line 2") && said.contains("endpiont"), "{said}");
        }
        let said = toml::from_str::<BackupStore>("\npath_style = 1").unwrap_err();
        assert!(said.to_string().contains("line 2"), "{said}");
    }
}
