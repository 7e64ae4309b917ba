//! The product as its users have it: a binary with arguments, a process, an address.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::postgres::{self, Cluster, Durability};
use crate::{Engine, clock, process, random};

/// How long a build may take, with the wait for another one. Ours: that of a release takes half an hour where others build beside it.
pub const LONGEST_BUILD: Duration = Duration::from_hours(2);

/// Builds the binary with a cargo profile and returns its path.
pub fn build(profile: &str) -> Outcome<PathBuf> {
    eprintln!("building provost with the profile {profile}");
    let mut build = process::cargo();
    build.args(["build", "--quiet", "--profile", profile]);
    build.args(match profile {
        // With the tests, whose dependencies have features of their own: the suite builds nothing a second time.
        "ci" => &["--workspace", "--all-targets"][..],
        _ => &["--package", "provost-server", "--bin", "provost"],
    });
    // Quietly cargo does not say either that it waits for another build, which holds the lock of the folder.
    let target = process::target();
    let what = format!(
        "the build of provost with the profile {profile}, or for another one that holds the lock of {} (a program that is there \
         is named by --binary where a task takes one)",
        target.display()
    );
    process::run_within(&mut build, LONGEST_BUILD, &what)?;
    Ok(target.join(profile).join("provost"))
}

/// Returns the binary that was named, or builds one with a cargo profile.
pub fn given(binary: Option<&PathBuf>, profile: &str) -> Outcome<PathBuf> {
    binary.map_or_else(|| build(profile), |binary| Ok(binary.clone()))
}

/// Builds an example of a package with the profile release, with these words more, and returns its path: a program that knows
/// what this crate does not.
pub fn example(package: &str, name: &str, words: &[&str]) -> Outcome<PathBuf> {
    let mut build = process::cargo();
    build.args([
        "build",
        "--quiet",
        "--release",
        "--package",
        package,
        "--example",
        name,
    ]);
    process::run(build.args(words))?;
    Ok(process::target().join("release").join("examples").join(name))
}

/// Where an installation keeps its records and keys.
#[derive(Clone)]
pub enum Store {
    Sqlite { data: PathBuf },
    Postgres { url: String, keys: PathBuf },
}

impl Store {
    /// Returns a new store of an engine in this folder, with a cluster of its own where the engine has one.
    pub fn create(engine: Engine, folder: &Path, durability: Durability) -> Outcome<(Self, Option<Cluster>)> {
        if engine != Engine::Postgres {
            let data = folder.join("data");
            return Ok((Self::Sqlite { data }, None));
        }
        let cluster = Cluster::start(&postgres::find_or_install()?, durability)?;
        let (url, keys) = (cluster.url("postgres"), folder.join("keys"));
        Ok((Self::Postgres { url, keys }, Some(cluster)))
    }

    fn arguments(&self) -> Vec<String> {
        match self {
            Self::Sqlite { data } => vec!["--data-dir".into(), data.display().to_string()],
            Self::Postgres { url, keys } => {
                vec![
                    "--database-url".into(),
                    url.clone(),
                    "--keys-dir".into(),
                    keys.display().to_string(),
                ]
            }
        }
    }
}

/// A binary and the store that it works on.
#[derive(Clone)]
pub struct Installation {
    pub binary: PathBuf,
    pub store: Store,
    /// Settings by environment, on top of switched-off rate limits.
    pub environment: Vec<(&'static str, Cow<'static, str>)>,
    /// Where the server's log goes.
    pub log: PathBuf,
    /// A configuration file, if there is one.
    pub configuration: Option<PathBuf>,
}

/// What `provost init` prints.
pub struct Bootstrap {
    pub organization: String,
    pub account: String,
    pub token: String,
}

impl Bootstrap {
    /// A path below the organization.
    pub fn path(&self, rest: &str) -> String {
        format!("/api/headless/v1/organizations/{}/{rest}", self.organization)
    }
}

impl Installation {
    /// An installation that nothing is in yet; its log lies in this folder.
    pub fn new(binary: &Path, store: Store, folder: &Path) -> Self {
        Self {
            binary: binary.to_path_buf(),
            store,
            environment: Vec::new(),
            log: folder.join("server.log"),
            configuration: None,
        }
    }

    /// The command, with everything that says where the installation is.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).args(self.store.arguments());
        process::without_settings(&mut command);
        if let Some(file) = &self.configuration {
            command.arg("--config").arg(file);
        }
        // Loads are what these tasks are about; the limits have tests of their own.
        command.env("PROVOST_RATE_LIMITS_ENABLED", "false");
        command.envs(
            self.environment
                .iter()
                .map(|(name, value)| (name, value.as_ref())),
        );
        command
    }

    /// Creates the organization Acme and its admin.
    pub fn initialize(&self) -> Outcome<Bootstrap> {
        let printed = process::output(&mut self.command(&["init", "--organization", "Acme", "--json"]))?;
        parse_bootstrap(&printed)
    }

    /// Starts the server on a free port and returns at once.
    pub fn launch(&self) -> Outcome<Server> {
        self.launch_at(free_address()?)
    }

    /// Starts the server where it was said before that it would be, and returns at once.
    pub fn launch_at(&self, address: SocketAddr) -> Outcome<Server> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .context("cannot open the log")?;
        let listen = address.to_string();
        let mut command = self.command(&["serve", "--listen", &listen]);
        let metrics = free_address()?;
        command.args(["--metrics-listen", &metrics.to_string()]);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share the log")?)
            .stderr(log);
        let process = command
            .spawn()
            .context(format_args!("cannot start {}", self.binary.display()))?;
        Ok(Server {
            process,
            address,
            metrics,
            log: self.log.clone(),
        })
    }

    /// Starts the server and waits until it is ready.
    pub fn serve(&self) -> Outcome<Server> {
        let mut server = self.launch()?;
        server.wait_until_ready(Duration::from_mins(1))?;
        Ok(server)
    }

    /// Runs an offline command such as `audit verify`, which says what it found by its exit code.
    pub fn check(&self, words: &[&str]) -> Outcome {
        self.ask(words).map(drop)
    }

    /// Runs an offline command and returns what it printed.
    pub fn ask(&self, words: &[&str]) -> Outcome<String> {
        process::output(&mut self.command(words)).context(format_args!("provost {}", words.join(" ")))
    }
}

/// Reads what `init --json` and `recover --json` print.
pub fn parse_bootstrap(printed: &str) -> Outcome<Bootstrap> {
    let object: Value =
        serde_json::from_str(printed).context("provost init --json printed no JSON object")?;
    let word = |name: &str| {
        object[name]
            .as_str()
            .map(str::to_owned)
            .context(format_args!("provost init printed no {name}"))
    };
    Ok(Bootstrap {
        organization: word("organizationId")?,
        account: word("serviceAccountId")?,
        token: word("token")?,
    })
}

/// Below the ports that systems hand out by themselves, so that no connection takes one before the server does.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// A port that nobody had a moment ago, and that no other thread of this program is given.
pub fn free_address() -> Outcome<SocketAddr> {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    static FIRST: LazyLock<u64> = LazyLock::new(random::fresh_seed);
    let count = u64::from(PORTS.end - PORTS.start);
    for _ in 0..count {
        let place = FIRST.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % count;
        let port = PORTS.start + u16::try_from(place).unwrap_or_default();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(Failure::new("cannot find a free port"))
}

/// A running server; killed when dropped.
pub struct Server {
    process: Child,
    pub address: SocketAddr,
    /// Where `/metrics` is.
    pub metrics: SocketAddr,
    log: PathBuf,
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether the process is gone.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Waits for `/readyz` to answer 200.
    pub fn wait_until_ready(&mut self, limit: Duration) -> Outcome {
        let request = Request {
            token: None,
            ..Request::get("/readyz", "")
        };
        let (mut ready, mut ended) = (false, None);
        clock::poll_until(limit, Duration::from_millis(2), || {
            ended = self.process.try_wait().ok().flatten();
            ready = Connection::new(self.address)
                .send(&request)
                .is_ok_and(|answer| answer.status == 200);
            ready || ended.is_some()
        });
        if ready {
            return Ok(());
        }
        let what = ended.map_or_else(
            || format!("is not ready after {limit:?}"),
            |status| format!("ended ({status})"),
        );
        Err(Failure::new(format!(
            "the server {what}; the end of its log:\n{}",
            tail(&self.log)
        )))
    }

    /// `kill -9`, and the process is gone when this returns.
    pub fn kill(mut self) -> Outcome {
        if let Some(status) = self.process.try_wait().context("cannot ask for the server")? {
            return Err(Failure::new(format!(
                "the server ended by itself before it was killed ({status}); the end of its log:\n{}",
                tail(&self.log)
            )));
        }
        self.process.kill().context("cannot kill the server")?;
        self.process
            .wait()
            .context("cannot wait for the server")
            .map(drop)
    }

    /// Waits for the end that a signal has brought about, and says how it ended.
    pub fn await_end(mut self, limit: Duration) -> Outcome<ExitStatus> {
        let mut status = None;
        clock::poll_until(limit, Duration::from_millis(5), || {
            status = self.process.try_wait().ok().flatten();
            status.is_some()
        });
        status.context(format_args!("the server does not end within {limit:?}"))
    }

    /// `SIGTERM`, and success only if the server ends by itself with 0 within the promised time (R9).
    pub fn stop(mut self) -> Outcome {
        process::signal(self.pid(), "TERM");
        let mut status: Option<ExitStatus> = None;
        clock::poll_until(Duration::from_secs(15), Duration::from_millis(5), || {
            status = self.process.try_wait().ok().flatten();
            status.is_some()
        });
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Failure::new(format!(
                "a graceful stop ended with {status}:\n{}",
                tail(&self.log)
            ))),
            None => Err(Failure::new(format!(
                "the server does not stop within 15 s:\n{}",
                tail(&self.log)
            ))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone after kill() and stop(); here for every other way out.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// A folder below `target/xtask` that is removed when everything went well.
pub struct Workplace {
    pub folder: PathBuf,
}

impl Workplace {
    pub fn create(purpose: &str) -> Outcome<Self> {
        let folder = process::target()
            .join("xtask")
            .join(format!("{purpose}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).context(format_args!("cannot create {}", folder.display()))?;
        Ok(Self { folder })
    }

    pub fn file(&self, name: &str) -> Outcome<File> {
        let path = self.folder.join(name);
        File::create(&path).context(format_args!("cannot create {}", path.display()))
    }

    /// Tries for a while: a program that was killed may have children that still write for a moment.
    pub fn remove(self) -> Outcome {
        let mut outcome = Ok(());
        clock::poll_until(Duration::from_secs(10), Duration::from_millis(50), || {
            outcome = std::fs::remove_dir_all(&self.folder);
            outcome.is_ok()
        });
        outcome.context(format_args!("cannot remove {}", self.folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice_at_once() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| [(); 50].map(|()| free_address().unwrap())))
            .collect();
        let given: Vec<_> = threads.into_iter().flat_map(|one| one.join().unwrap()).collect();
        let distinct: std::collections::BTreeSet<_> = given.iter().collect();
        assert_eq!(distinct.len(), given.len());
    }

    #[test]
    fn init_must_print_all_three_members() {
        let printed = r#"{"organizationId":"acme","serviceAccountId":"sa_1","token":"t"}"#;
        let bootstrap = parse_bootstrap(printed).unwrap();
        assert_eq!(
            bootstrap.path("capabilities"),
            "/api/headless/v1/organizations/acme/capabilities"
        );
        assert!(parse_bootstrap(r#"{"organizationId":"acme","token":"t"}"#).is_err());
        assert!(parse_bootstrap("Created acme.").is_err());
    }
}
