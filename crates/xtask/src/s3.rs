//! A throw-away S3-compatible server for the tests of the history's storage.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::failure::{Context, Failure, Outcome};
use crate::{process, python};

/// A running server; it ends with this value, and with the task in any case.
pub struct Server {
    child: Child,
    /// Where it listens, as in `http://127.0.0.1:4711`.
    pub endpoint: String,
}

impl Server {
    pub fn start() -> Outcome<Self> {
        let folder = process::root().join("crates/xtask/s3");
        let python = python::programs("s3", &folder.join("requirements.txt"))?.join("python");
        let mut child = Command::new(python)
            .arg(folder.join("serve.py"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the S3-compatible server")?;
        let mut endpoint = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output)
                .read_line(&mut endpoint)
                .context("cannot read where the S3-compatible server listens")?;
        }
        let server = Self {
            child,
            endpoint: endpoint.trim().to_owned(),
        };
        if server.endpoint.is_empty() {
            return Err(Failure::new("the S3-compatible server ended at once"));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}
