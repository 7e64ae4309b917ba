//! The keys of a store: two files, read for every request.

use super::Options;
use async_trait::async_trait;
use object_store::aws::AwsCredential;
use object_store::{CredentialProvider, Error as Failure};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// LIMIT: a file that is larger holds no key.
const MAX_KEY_BYTES: u64 = 4 << 10;

/// Where the keys are; holds none.
#[derive(Debug)]
pub struct Files {
    id: PathBuf,
    secret: PathBuf,
}

impl Files {
    /// Errors: a file that cannot be read or holds no key, so that a wrong path is found when the server starts.
    pub fn open(options: &Options) -> io::Result<Self> {
        let files = Self {
            id: options.access_key_id_file.clone(),
            secret: options.secret_access_key_file.clone(),
        };
        files.read()?;
        Ok(files)
    }

    fn read(&self) -> io::Result<AwsCredential> {
        Ok(AwsCredential {
            key_id: key(&self.id)?,
            secret_key: key(&self.secret)?,
            token: None,
        })
    }
}

/// Returns the one line that a file holds.
///
/// Errors: they name the file, and nothing of what it holds.
fn key(path: &Path) -> io::Result<String> {
    let fault = |kind, what: &str| io::Error::new(kind, format!("{} {what}", path.display()));
    let size = std::fs::metadata(path)
        .map_err(|cause| fault(cause.kind(), "cannot be read"))?
        .len();
    if size > MAX_KEY_BYTES {
        return Err(fault(io::ErrorKind::InvalidData, "is too large to hold a key"));
    }
    let text = std::fs::read_to_string(path).map_err(|cause| fault(cause.kind(), "cannot be read"))?;
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(fault(
            io::ErrorKind::InvalidData,
            "does not hold a key in one line",
        ));
    }
    Ok(key.to_owned())
}

#[async_trait]
impl CredentialProvider for Files {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        // Two small local files; the request that they are for takes a thousand times as long.
        match self.read() {
            Ok(credential) => Ok(Arc::new(credential)),
            Err(cause) => Err(Failure::Generic {
                store: "S3",
                source: Box::new(cause),
            }),
        }
    }
}
