//! A real OpenID provider from npm, for the tests of signing in; the tests start it themselves.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::failure::{Context, Failure, Outcome};
use crate::process;

const FILES: [&str; 3] = ["package.json", "package-lock.json", "serve.mjs"];

/// Returns the folder in which `node serve.mjs` runs: the script with its pinned packages.
pub fn install() -> Outcome<PathBuf> {
    let source = process::root().join("crates/xtask/oidc");
    let folder = process::target().join("tools/oidc");
    let same = |name: &&str| match (std::fs::read(source.join(name)), std::fs::read(folder.join(name))) {
        (Ok(wanted), Ok(there)) => wanted == there,
        _ => false,
    };
    if FILES.iter().all(same) {
        return Ok(folder);
    }
    eprintln!("installing an OpenID provider into {}", folder.display());
    // Made beside its place: what is there is complete.
    let staged = folder.with_extension("staged");
    drop(std::fs::remove_dir_all(&staged));
    copy(&source, &staged)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&staged).args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel",
        "error",
    ]);
    process::output(&mut npm).context("the OpenID provider needs Node 20 or newer with npm")?;
    drop(std::fs::remove_dir_all(&folder));
    std::fs::rename(&staged, &folder).context("cannot put the OpenID provider into its place")?;
    Ok(folder)
}

/// A running provider; it ends with this value, and with the task in any case.
pub struct Provider(Child);

impl Provider {
    /// Starts it for a server that it sends people back to.
    pub fn start(redirect_uri: &str, address: SocketAddr) -> Outcome<Self> {
        let mut child = Command::new("node")
            .current_dir(install()?)
            .args(["serve.mjs", redirect_uri, &address.port().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the OpenID provider (Node 20 or newer)")?;
        let mut issuer = String::new();
        if let Some(output) = child.stdout.take() {
            let read = BufReader::new(output).read_line(&mut issuer);
            read.context("cannot read where the OpenID provider listens")?;
        }
        let provider = Self(child);
        if issuer.trim().is_empty() {
            return Err(Failure::new("the OpenID provider ended at once"));
        }
        Ok(provider)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

fn copy(source: &Path, folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).context("cannot make a folder for the OpenID provider")?;
    for name in FILES {
        std::fs::copy(source.join(name), folder.join(name))
            .context(format_args!("cannot copy {name} of the OpenID provider"))?;
    }
    Ok(())
}
