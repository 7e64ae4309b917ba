//! Where recorded events are kept once they are sealed.

use super::Problem;
use super::s3::s3_section;
use provost_areas_policy::history::SegmentPlace;
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

s3_section! {
    /// Where recorded events are kept once they are sealed: a folder, or an S3-compatible store. Servers on one database
    /// share it.
    pub struct History {
        /// A folder. Default: `history` in the data folder.
        pub folder: Option<PathBuf>,
        /// In place of a folder, the bucket and prefix of an S3-compatible store, as in `s3://provost/history`.
        pub url: Option<String>,
    }
}

/// What is said where the keys of the store are not.
const WITHOUT_KEYS: &str = "history.url needs history.access_key_id_file and history.secret_access_key_file";

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
        self.s3().check_endpoint("history")?;
        if self.s3().keys().is_none() {
            return problem(WITHOUT_KEYS);
        }
        Ok(())
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
        let store = self.s3().open(("history.url", url), WITHOUT_KEYS, runtime)?;
        Ok(SegmentPlace(store))
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
