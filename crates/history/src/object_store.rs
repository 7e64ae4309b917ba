//! An S3-compatible store as storage.
//!
//! Storage is synchronous and the network is not: every call waits on the runtime that the store was opened with, so
//! it must come from a thread that may block, never from an asynchronous one.
//!
//! INVARIANT HI-8: a put into an S3-compatible store never replaces an object of other content. It asks the store to
//! refuse an existing name (`If-None-Match: *`); of an existing object the bytes are compared, so that doing a put
//! anew succeeds. Proof: against a real S3-compatible server.
//!
//! HI-5 holds by the protocol: an object of one PUT appears whole or not at all, and is durable when it is answered.
//!
//! Absent on purpose: credentials in the configuration's text, in the environment or of the machine (they are in
//! files, read anew for every request, so that they can be rotated); segments in parts, which S3 cannot make refuse an
//! existing name (a segment is far below the 5 GiB of one PUT; a backup is not, and has a name of its own); other clouds' protocols.

mod credentials;
mod http;

use crate::error::{Error, Result, invalid};
use crate::storage::{Listable, Storage, StoredObject, is_plain};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, Error as Failure, MultipartUpload, ObjectStore as _, ObjectStoreExt, PutMode, PutPayload,
    PutPayloadMut, RetryConfig,
};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How a store is reached. It names files that hold secrets, and holds none.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the store listens, as in `https://minio.example.com:9000`; else Amazon's service of the region. Without
    /// TLS (`http:`) what is sent can be read on the way.
    pub endpoint: Option<String>,
    /// The region, of which signatures speak; many stores call theirs `us-east-1`.
    pub region: String,
    /// Whether the bucket is named in the path and not in the host; most stores but Amazon's need it.
    pub path_style: bool,
    /// The file that holds the id of the access key.
    pub access_key_id_file: PathBuf,
    /// The file that holds the access key's secret.
    pub secret_access_key_file: PathBuf,
    /// The certificates, in PEM, that the store's certificate must lead to; else those of the system.
    pub ca_file: Option<PathBuf>,
    /// The runtime on which requests run.
    pub runtime: Handle,
}

/// LIMIT: S3 takes 10 000 parts, so that an object has at most 160 GB.
const PART_BYTES: usize = 16 << 20;

/// A place of objects below a prefix of a bucket.
pub struct ObjectStore {
    store: AmazonS3,
    prefix: Key,
    runtime: Handle,
}

impl ObjectStore {
    /// Opens `s3://bucket/prefix`. Nothing is asked of the store yet.
    ///
    /// Errors: `Invalid` for a URL or an endpoint of another form; `Storage` for a file of keys or certificates that
    /// cannot be read.
    pub fn open(url: &str, options: &Options) -> Result<Arc<Self>> {
        let Some((bucket, prefix)) = bucket_and_prefix(url) else {
            return invalid("the store's URL is not of the form s3://bucket/prefix");
        };
        let prefix = Key::parse(prefix).map_err(|_| {
            Error::Invalid(
                "the store's prefix has an empty segment, a dot segment or a control character".to_owned(),
            )
        })?;
        let credentials = credentials::Files::open(options)?;
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&options.region)
            .with_credentials(Arc::new(credentials))
            .with_virtual_hosted_style_request(!options.path_style)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_http_connector(http::Connector::new(options)?)
            .with_retry(RetryConfig {
                backoff: BackoffConfig {
                    init_backoff: Duration::from_millis(100),
                    max_backoff: Duration::from_secs(2),
                    base: 2.0,
                },
                max_retries: 5,
                retry_timeout: Duration::from_secs(30),
            });
        if let Some(endpoint) = &options.endpoint {
            builder = builder.with_endpoint(addressed(endpoint, bucket, options.path_style)?);
        }
        Ok(Arc::new(Self {
            store: builder.build().map_err(storage)?,
            prefix,
            runtime: options.runtime.clone(),
        }))
    }

    fn key(&self, name: &str) -> io::Result<Key> {
        if is_plain(name) {
            Ok(self.prefix.clone().join(name))
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    /// Makes an object of all that a source holds, part by part, so that it may be larger than what is kept in memory, or than one PUT.
    ///
    /// Errors: `AlreadyExists` for a name that is there. Between two who begin with one name at once S3 does not choose: who calls gives
    /// names that nobody else gives.
    pub fn upload(&self, name: &str, source: &mut dyn Read) -> io::Result<()> {
        let key = self.key(name)?;
        match self.runtime.block_on(self.store.head(&key)) {
            Err(Failure::NotFound { .. }) => {}
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(failure) => return Err(cause(failure)),
        }
        let mut upload = self
            .runtime
            .block_on(self.store.put_multipart(&key))
            .map_err(cause)?;
        let sent = self.send_parts(upload.as_mut(), source);
        if sent.is_err() {
            // The parts cost room until somebody gives them up; the first failure is the one to tell.
            drop(self.runtime.block_on(upload.abort()));
        }
        sent
    }

    fn send_parts(&self, upload: &mut dyn MultipartUpload, source: &mut dyn Read) -> io::Result<()> {
        let mut is_first = true;
        loop {
            let mut part = Vec::with_capacity(PART_BYTES);
            source.take(PART_BYTES as u64).read_to_end(&mut part)?;
            if part.is_empty() && !is_first {
                break;
            }
            let is_last = part.len() < PART_BYTES;
            self.runtime
                .block_on(upload.put_part(PutPayload::from(part)))
                .map_err(cause)?;
            if is_last {
                break;
            }
            is_first = false;
        }
        self.runtime.block_on(upload.complete()).map(drop).map_err(cause)
    }

    /// Compares what is there with what was to be put.
    fn is_same(&self, key: &Key, payload: &PutPayload) -> io::Result<bool> {
        let there = async { self.store.get(key).await?.bytes().await };
        let there = self.runtime.block_on(there).map_err(cause)?;
        if there.len() != payload.content_length() {
            return Ok(false);
        }
        let mut rest = &there[..];
        Ok(payload.iter().all(|part| {
            let (head, tail) = rest.split_at(part.len());
            rest = tail;
            head == part
        }))
    }
}

impl Storage for ObjectStore {
    fn size(&self, name: &str) -> io::Result<u64> {
        let key = self.key(name)?;
        let head = self.runtime.block_on(self.store.head(&key));
        Ok(head.map_err(cause)?.size)
    }

    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Bytes> {
        let key = self.key(name)?;
        let end = offset
            .checked_add(length as u64)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        if length > 0 {
            match self.runtime.block_on(self.store.get_range(&key, offset..end)) {
                Ok(bytes) if bytes.len() == length => return Ok(bytes),
                Err(failure @ Failure::NotFound { .. }) => return Err(cause(failure)),
                // A range beyond the end is an error of some stores, and a shorter answer of others.
                outcome => {
                    if end <= self.size(name)? {
                        return Err(outcome.map_or_else(cause, |_| io::ErrorKind::InvalidData.into()));
                    }
                }
            }
        } else if end <= self.size(name)? {
            // S3 has no range without bytes.
            return Ok(Bytes::new());
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn put(&self, name: &str, write: &mut dyn FnMut(&mut (dyn Write + Send)) -> Result<()>) -> Result<()> {
        let key = self.key(name)?;
        let mut whole = Whole(PutPayloadMut::new().with_block_size(1 << 20));
        write(&mut whole)?;
        let payload = whole.0.freeze();
        let put = self.store.put_opts(&key, payload.clone(), PutMode::Create.into());
        match self.runtime.block_on(put) {
            Ok(_) => Ok(()),
            // INVARIANT HI-8.
            Err(Failure::AlreadyExists { .. }) if self.is_same(&key, &payload)? => Ok(()),
            Err(failure) => Err(storage(failure)),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let key = self.key(name)?;
        match self.runtime.block_on(self.store.delete(&key)) {
            Err(Failure::NotFound { .. }) => Ok(()),
            other => other.map_err(cause),
        }
    }
}

impl Listable for ObjectStore {
    fn list(&self) -> io::Result<Vec<StoredObject>> {
        let listing = self
            .store
            .list(Some(&self.prefix))
            .try_filter_map(|object| async move {
                let name = object.location.filename().filter(|name| is_plain(name));
                let is_child = name.is_some_and(|name| self.prefix.clone().join(name) == object.location);
                Ok(name.filter(|_| is_child).map(|name| StoredObject {
                    name: name.to_owned(),
                    modified: object.last_modified.into(),
                }))
            });
        self.runtime.block_on(listing.try_collect()).map_err(cause)
    }

    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let key = self.key(name)?;
        let payload = PutPayload::from(content.to_vec());
        let put = self.store.put_opts(&key, payload, PutMode::Overwrite.into());
        self.runtime.block_on(put).map(drop).map_err(cause)
    }

    fn create(&self, name: &str, content: &[u8]) -> io::Result<bool> {
        let key = self.key(name)?;
        let payload = PutPayload::from(content.to_vec());
        let put = self.store.put_opts(&key, payload, PutMode::Create.into());
        match self.runtime.block_on(put) {
            Ok(_) => Ok(true),
            Err(Failure::AlreadyExists { .. }) => Ok(false),
            Err(failure) => Err(cause(failure)),
        }
    }
}

/// An object before it is sent: S3 wants its length and a digest first.
struct Whole(PutPayloadMut);

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the bucket and the prefix, which may be empty, of `s3://bucket/prefix`.
fn bucket_and_prefix(url: &str) -> Option<(&str, &str)> {
    let place = url.strip_prefix("s3://")?;
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let is_bucket = !bucket.is_empty()
        && bucket
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
    is_bucket.then(|| (bucket, prefix.trim_end_matches('/')))
}

/// Returns the endpoint as `object_store` wants it: with the bucket as its first label, if that is how it is named.
fn addressed(endpoint: &str, bucket: &str, path_style: bool) -> Result<String> {
    let endpoint = endpoint.trim_end_matches('/');
    match endpoint.split_once("://") {
        Some(("http" | "https", host)) if path_style && is_host(host) => Ok(endpoint.to_owned()),
        Some((scheme @ ("http" | "https"), host)) if is_host(host) => {
            Ok(format!("{scheme}://{bucket}.{host}"))
        }
        _ => invalid("the store's endpoint is not of the form https://host:port"),
    }
}

/// A host with a port at most: no user, who would be a secret in the text, no path and no query.
fn is_host(host: &str) -> bool {
    !host.is_empty()
        && !host.contains(['@', '/', '?', '#'])
        && host.bytes().all(|byte| byte.is_ascii_graphic())
}

fn storage(failure: Failure) -> Error {
    Error::Storage(cause(failure))
}

fn cause(failure: Failure) -> io::Error {
    let kind = match &failure {
        Failure::NotFound { .. } => io::ErrorKind::NotFound,
        Failure::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_endpoints_have_one_form() {
        assert_eq!(bucket_and_prefix("s3://b-1/a/b/"), Some(("b-1", "a/b")));
        assert_eq!(bucket_and_prefix("s3://b"), Some(("b", "")));
        for url in ["s3:///a", "s3://key:secret@b/a", "s3://B", "https://b/a", "b"] {
            assert_eq!(bucket_and_prefix(url), None, "{url}");
        }
        let styled = |path_style| addressed("https://minio:9000/", "b", path_style).unwrap();
        assert_eq!(styled(true), "https://minio:9000");
        assert_eq!(styled(false), "https://b.minio:9000");
        for endpoint in [
            "minio",
            "ftp://minio",
            "https://",
            "https://k:s@minio",
            "https://minio/b",
        ] {
            assert!(addressed(endpoint, "b", true).is_err(), "{endpoint}");
        }
    }
}
