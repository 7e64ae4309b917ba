//! The program as the image and the chart start it: user 10001, no capabilities, a read-only root, the packaged configuration.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::settings;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::free_address;
use crate::{clock, process};

/// The user of the image.
const USER: u32 = 10_001;
/// LIMIT: until it is ready, and until it is gone after SIGTERM: what Docker and Kubernetes are told to wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that ends with this value.
struct Confined(Child);

impl Drop for Confined {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub fn run(binary: &Path, folder: &Path) -> Outcome<String> {
    let is_there = |name: &str| process::find_program(name).is_some();
    let may_mount = || process::works(Command::new("unshare").args(["--mount", "true"]));
    if !process::is_root() || !["unshare", "setpriv", "chroot"].into_iter().all(is_there) || !may_mount() {
        return Ok("NOT run: it needs root, unshare and setpriv".to_owned());
    }
    let place = folder.join("confined");
    for name in ["root", "data", "keys"] {
        fs::create_dir_all(place.join(name)).context("cannot make a folder")?;
    }
    let (address, metrics) = (free_address()?, free_address()?);
    let log = place.join("log");
    let out = File::create(&log).context("cannot create a log")?;
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh"])
        .arg(settings().join("confined.sh"))
        .args([binary, &place])
        .args([address.port().to_string(), metrics.port().to_string()])
        .current_dir(process::root())
        .stdin(Stdio::null())
        .stdout(out.try_clone().context("cannot share the log")?)
        .stderr(out);
    let mut confined = Confined(command.spawn().context("cannot run unshare")?);
    judge(&mut confined.0, (address, metrics), binary, &place).context(format_args!(
        "the end of its log: {}",
        fs::read_to_string(&log)
            .unwrap_or_default()
            .lines()
            .last()
            .unwrap_or_default()
    ))?;
    Ok("ready, measured, healthy, and gone after SIGTERM".to_owned())
}

fn judge(
    child: &mut Child,
    (address, metrics): (SocketAddr, SocketAddr),
    binary: &Path,
    place: &Path,
) -> Outcome {
    let is_ready = clock::poll_until(PATIENCE, Duration::from_millis(20), || {
        answers(address, "/readyz") || !matches!(child.try_wait(), Ok(None))
    });
    if !is_ready || !answers(address, "/healthz") {
        return Err(Failure::new("it does not get ready"));
    }
    // What cannot work under these rules is said beside it.
    let ready = Connection::new(address)
        .fetch(&stranger("/readyz"))
        .context("/readyz")?;
    if ready != serde_json::json!({ "status": "ready" }) {
        return Err(Failure::new(format!("/readyz answers {ready}")));
    }
    if !answers(metrics, "/metrics") {
        return Err(Failure::new("it shows no figures"));
    }
    let mut status = Command::new(binary);
    process::without_settings(&mut status);
    status
        .arg("status")
        .env("PROVOST_URL", format!("http://{address}"));
    if !process::works(&mut status) {
        return Err(Failure::new("the image's health check fails"));
    }
    let token = place.join("data/first-token");
    let found = fs::metadata(&token).context("there is no first token in the data folder")?;
    if (found.uid(), found.mode() & 0o777) != (USER, 0o600) {
        return Err(Failure::new(format!(
            "the first token belongs to {} with the mode {:o}",
            found.uid(),
            found.mode() & 0o777
        )));
    }
    process::signal(child.id(), "TERM");
    let mut ended: Option<ExitStatus> = None;
    clock::poll_until(PATIENCE, Duration::from_millis(20), || {
        ended = child.try_wait().ok().flatten();
        ended.is_some()
    });
    match ended {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Failure::new(format!("SIGTERM ended it with {status}"))),
        None => Err(Failure::new("SIGTERM does not end it")),
    }
}

fn answers(address: SocketAddr, path: &str) -> bool {
    Connection::new(address)
        .send(&stranger(path))
        .is_ok_and(|answer| answer.status == 200)
}

/// A request without a token.
fn stranger(path: &str) -> Request {
    Request {
        token: None,
        ..Request::get(path, "")
    }
}
