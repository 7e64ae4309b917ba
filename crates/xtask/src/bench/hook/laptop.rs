//! A person's home with an agent that judges, and the hook as the product's own command registers it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::bench_store::BenchStore;
use crate::clients::administrator::{Administrator, text};
use crate::failure::{Context, Failure, Outcome};
use crate::product::{Bootstrap, Server};
use crate::{clock, process};

/// Who works at it.
pub const USER: &str = "ada@acme.example";
/// Overrides a person's file, and believes root's agent alone.
const OF_THE_MACHINE: &str = "/etc/provost/hook.toml";
/// LIMIT of the system: the bytes of a socket's path.
const LONGEST_SOCKET: usize = 107;
const READY: Duration = Duration::from_mins(1);

pub struct Laptop {
    home: PathBuf,
    binary: PathBuf,
    agent: Option<Child>,
    /// The device.
    pub id: String,
    /// The record of [`USER`].
    pub owner: String,
}

impl Laptop {
    /// Enrols a home of this name and person whose hooks have a token that asks for decisions.
    pub fn make(
        place: &BenchStore,
        (name, owner): (&str, &str),
        program: &Path,
        server: &Server,
        bootstrap: &Bootstrap,
    ) -> Outcome<Self> {
        if Path::new(OF_THE_MACHINE).exists() {
            return Err(Failure::new(format!(
                "{OF_THE_MACHINE} registers the hooks of this machine, and would be measured instead"
            )));
        }
        let home = std::path::absolute(place.folder().join(name)).context("cannot find a home")?;
        std::fs::create_dir_all(&home).context("cannot make a home")?;
        let mut administrator = Administrator::new(server, bootstrap);
        let mut laptop = Self {
            owner: owner.to_owned(),
            home,
            binary: std::path::absolute(program).context("cannot find the binary")?,
            agent: None,
            id: String::new(),
        };
        if laptop.socket().as_os_str().len() > LONGEST_SOCKET {
            return Err(Failure::new(format!(
                "{} is too long for a socket: have CARGO_TARGET_DIR name a shorter path",
                laptop.socket().display()
            )));
        }
        let origin = format!("http://{}", server.address);
        let token = administrator
            .account(&format!("hooks of {name}"), "operator", &["policies:decide"])?
            .token;
        laptop.write("hook.token", &token)?;
        let mut install = laptop.command(&[
            "hook",
            "install",
            "claude-code",
            "--mode",
            "enforce",
            "--user",
            USER,
        ]);
        install.args(["--token-file", "hook.token"]);
        install
            .env("PROVOST_URL", &origin)
            .env("PROVOST_ORGANIZATION", &bootstrap.organization);
        process::output(&mut install)?;
        let made = administrator.post(
            "devices/enrolment-tokens",
            json!({ "name": "a laptop", "mode": "user" }),
        )?;
        laptop.write("enrolment.token", &text(&made, "/token")?)?;
        let mut enrol = laptop.command(&[
            "agent",
            "enrol",
            "--server",
            &origin,
            "--token-file",
            "enrolment.token",
        ]);
        enrol.args(["--organization", &bootstrap.organization]);
        let said: Value =
            serde_json::from_str(&process::output(&mut enrol)?).context("enrol said no JSON")?;
        laptop.id = text(&said, "/deviceId")?;
        process::output(&mut laptop.command(&["agent", "run", "--once"]))?;
        let owner = json!({ "ownerUserId": laptop.owner });
        administrator.change("PATCH", &format!("devices/{}", laptop.id), owner)?;
        Ok(laptop)
    }

    fn write(&self, name: &str, content: &str) -> Outcome {
        use std::os::unix::fs::PermissionsExt;
        let path = self.home.join(name);
        std::fs::write(&path, content).context(path.display())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).context(path.display())
    }

    /// The program in this home, with nothing of the developer's environment.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(words)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.home)
            .current_dir(&self.home);
        command
    }

    /// The file of the hook.
    pub fn registration(&self) -> PathBuf {
        self.home.join(".config/provost/hook.toml")
    }

    /// Where hooks ask the agent.
    pub fn socket(&self) -> PathBuf {
        self.home.join(".config/provost/agent.sock")
    }

    /// The folder of the agent.
    pub fn state(&self) -> PathBuf {
        self.home.join(".local/state/provost-agent")
    }

    /// Starts the agent, and does not wait for anything that it does; what it says goes behind what earlier ones said.
    pub fn starts(&mut self) -> Outcome {
        self.rest()?;
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.agent_log())
            .context("cannot open a log")?;
        let mut command = self.command(&["agent", "run", "--judge"]);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share a log")?)
            .stderr(log);
        self.agent = Some(command.spawn().context("cannot start an agent")?);
        Ok(())
    }

    /// Where stands what its agents said.
    pub fn agent_log(&self) -> PathBuf {
        self.home.join("agent.log")
    }

    /// Ends the agent as a loss of it does. Errors: it had ended of itself.
    pub fn dies(&mut self) -> Outcome {
        let Some(mut agent) = self.agent.take() else {
            return Ok(());
        };
        if let Ok(Some(status)) = agent.try_wait() {
            return Err(Failure::new(format!("the agent ended of itself with {status}")));
        }
        agent.kill().context("cannot kill an agent")?;
        agent.wait().context("cannot wait for an agent").map(drop)
    }

    /// Starts the agent anew, and returns when it judges by the newest policies. Those that concern others alone are none of its own.
    pub fn judges(&mut self) -> Outcome {
        let before = self.judging();
        self.starts()?;
        let mut said = Value::Null;
        let judges = clock::poll_until(READY, Duration::from_millis(50), || {
            said = self.judging();
            said["listens"] == true && said["bundle"].is_object() && said["askedAt"] != before["askedAt"]
        });
        if judges {
            return Ok(());
        }
        let log = std::fs::read_to_string(self.agent_log()).unwrap_or_default();
        Err(Failure::new(format!(
            "the agent does not judge: {said}; it said:\n{log}"
        )))
    }

    /// What `status` says of judging.
    fn judging(&self) -> Value {
        let mut status = self.command(&["agent", "status", "--json"]);
        let said: Value =
            serde_json::from_str(&process::output(&mut status).unwrap_or_default()).unwrap_or_default();
        said["judging"].clone()
    }

    /// Ends the agent.
    pub fn rest(&mut self) -> Outcome {
        let Some(mut agent) = self.agent.take() else {
            return Ok(());
        };
        process::signal(agent.id(), "TERM");
        let ended = clock::poll_until(Duration::from_secs(20), Duration::from_millis(5), || {
            !matches!(agent.try_wait(), Ok(None))
        });
        drop(agent.kill());
        drop(agent.wait());
        if ended {
            return Ok(());
        }
        Err(Failure::new("the agent does not end"))
    }

    pub fn agent(&self) -> Outcome<u32> {
        Ok(self.agent.as_ref().context("no agent works")?.id())
    }

    /// Asks the agent as a hook does, and returns what it tells. `intent` is `judge`, or `hold` where a server gave no answer.
    pub fn tells(&self, intent: &str, payload: &[u8]) -> Outcome<Value> {
        let mut stream = UnixStream::connect(self.socket()).context("the agent does not listen")?;
        let head = format!("provost-desk 1 {intent} claude-code enforce {}\n", payload.len());
        let mut told = Vec::new();
        stream
            .write_all(&[head.as_bytes(), payload].concat())
            .and_then(|()| stream.read_to_end(&mut told))
            .context("the agent does not answer")?;
        let end = told
            .iter()
            .position(|byte| *byte == b'\n')
            .context("a reply without a head")?;
        serde_json::from_slice(&told[end + 1..]).context("a reply that is no JSON")
    }
}

impl Drop for Laptop {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            drop(agent.kill());
            drop(agent.wait());
        }
    }
}
