//! A machine of its own for a client: its own /etc, /run and /var, a home, a device of the server, and an agent that judges there.

use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, People};
use crate::clients::Scene;
use crate::clients::administrator::text;
use crate::clients::hooks::{OF_ETC, USER, write};
use crate::failure::{Context, Failure, Outcome};
use crate::{clock, process};

/// The folders of a place that stand over the machine's. A home has a short name there: that of a socket has 107 bytes at most.
pub const OVER: [&str; 4] = ["etc", "run", "var", "home"];
const ALONE: &str = r#"for name in etc run var home; do mount --bind "$0/$name" "/$name" || exit 1; done"#;
/// A disk of its own for the agent's folder, with what was in it.
const SMALL_DISK: &str = r#"rm -rf "$0/kept" && cp -a "$STATE" "$0/kept" && mount -t tmpfs -o size=4m,mode=700 small "$STATE" && cp -a "$0/kept/." "$STATE""#;
const READY: Duration = Duration::from_mins(1);

/// How an agent is started.
#[derive(Default)]
pub struct Start {
    /// Whether its folder lies on a disk of four mebibytes, which only this process sees.
    pub has_small_disk: bool,
    /// A library and how far the agent's clock is off.
    pub clock: Option<(PathBuf, &'static str)>,
}

pub struct Device {
    pub folder: PathBuf,
    is_of_the_machine: bool,
    mode: &'static str,
    pub binary: PathBuf,
    agent: Option<Child>,
    pub id: String,
}

impl Device {
    /// Enrols a machine as ada's, registers the hook on it by the product's own command, and has its agent judge.
    pub fn make(scene: &Scene<'_>, client: &Client, mode: &'static str, people: &People) -> Outcome<Self> {
        let whose = if client.is_of_the_machine {
            "machine"
        } else {
            "person"
        };
        let folder = scene.folder.join(format!("{}-{whose}-{mode}", client.word));
        for name in ["home", "work", "etc", "run", "var/lib", "var/cache", "var/tmp"] {
            std::fs::create_dir_all(folder.join(name)).context("cannot make a place")?;
        }
        for name in OF_ETC {
            let text = std::fs::read_to_string(Path::new("/etc").join(name)).unwrap_or_default();
            write(&folder.join("etc").join(name), &text, 0o644)?;
        }
        // No name can be looked up: nothing but the model and the server is reached.
        write(&folder.join("etc/resolv.conf"), "", 0o644)?;
        write(&folder.join("home/hook.token"), &people.token, 0o600)?;
        let mut device = Self {
            folder,
            is_of_the_machine: client.is_of_the_machine,
            mode,
            binary: scene.installation.binary.clone(),
            agent: None,
            id: String::new(),
        };
        device.put_program()?;
        device.register(scene, client)?;
        device.enrol(scene, &people.ada)?;
        device.start(&Start::default())?;
        device.wait_until_it_judges()?;
        Ok(device)
    }

    /// A program in this machine, with nothing of the developer's environment.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.command_after("true", program)
    }

    fn command_after(&self, words: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--map-root-user", "sh", "-c"])
            .arg(format!("{ALONE}; {{ {words}; }} && exec \"$@\""))
            .arg(&self.folder)
            .arg(program)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/home")
            .env("STATE", self.state_inside())
            .current_dir(self.folder.join("work"));
        command
    }

    /// Takes the hook out of the client's settings, by the product's own command.
    pub fn unregister(&self, client: &Client) -> Outcome {
        let mut uninstall = Command::new(&self.binary);
        uninstall.args(["hook", "uninstall", client.word]);
        if self.is_of_the_machine {
            uninstall.arg("--system").arg("--root").arg(&self.folder);
        }
        process::without_settings(&mut uninstall);
        uninstall
            .env("HOME", self.folder.join("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CLAUDE_CONFIG_DIR");
        process::output(&mut uninstall).map(drop)
    }

    /// Puts the hook into the client's settings, by the product's own command.
    pub fn register(&self, scene: &Scene<'_>, client: &Client) -> Outcome {
        let mut install = Command::new(&self.binary);
        install
            .args([
                "hook",
                "install",
                client.word,
                "--mode",
                self.mode,
                "--user",
                USER,
                "--token-file",
            ])
            .arg(self.folder.join("home/hook.token"))
            .arg("--program")
            .arg(self.program());
        if self.is_of_the_machine {
            install.arg("--system").arg("--root").arg(&self.folder);
        }
        process::without_settings(&mut install);
        install
            .env("HOME", self.folder.join("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CLAUDE_CONFIG_DIR")
            .env("PROVOST_URL", scene.origin())
            .env("PROVOST_ORGANIZATION", &scene.bootstrap.organization);
        process::output(&mut install).map(drop)
    }

    fn enrol(&mut self, scene: &Scene<'_>, ada: &str) -> Outcome {
        let mut administrator = scene.administrator();
        let asked = json!({
            "name": self.folder.file_name().unwrap_or_default().display().to_string(),
            "mode": if self.is_of_the_machine { "system" } else { "user" },
        });
        let made = administrator.post("devices/enrolment-tokens", asked)?;
        let file = self.folder.join("enrolment.token");
        write(&file, &text(&made, "/token")?, 0o600)?;
        let mut enrol = self.command(&self.binary);
        enrol.args(["agent", "enrol", "--server", &scene.origin()]);
        enrol.args(["--organization", &scene.bootstrap.organization, "--token-file"]);
        enrol.arg(file).args(self.flags());
        let said: Value =
            serde_json::from_str(&process::output(&mut enrol)?).context("enrol said no JSON")?;
        self.id = text(&said, "/deviceId")?;
        // Its first heartbeat makes it active.
        let mut once = self.command(&self.binary);
        process::output(once.args(["agent", "run", "--once"]).args(self.flags()))?;
        administrator
            .change(
                "PATCH",
                &format!("devices/{}", self.id),
                json!({ "ownerUserId": ada }),
            )
            .map(drop)
    }

    pub fn flags(&self) -> &'static [&'static str] {
        if self.is_of_the_machine {
            &["--system"]
        } else {
            &[]
        }
    }

    /// Starts the agent, and returns when hooks find it.
    pub fn start(&mut self, how: &Start) -> Outcome {
        self.kill()?;
        drop(std::fs::remove_file(self.socket()));
        let words = if how.has_small_disk { SMALL_DISK } else { "true" };
        let mut command = self.command_after(words, "env");
        if let Some((library, by)) = &how.clock {
            command
                .arg(format!("LD_PRELOAD={}", library.display()))
                .arg(format!("FAKETIME={by}"))
                .arg("FAKETIME_DONT_FAKE_MONOTONIC=1");
        }
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log())
            .context("cannot open a log")?;
        command
            .arg(&self.binary)
            .args(["agent", "run", "--judge"])
            .args(self.flags())
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share a log")?)
            .stderr(log);
        self.agent = Some(command.spawn().context("cannot start an agent")?);
        let socket = self.socket();
        let listens = clock::poll_until(READY, Duration::from_millis(10), || reaches(&socket));
        if listens {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the agent does not listen; it said:\n{}",
            self.said()
        )))
    }

    /// Waits until the agent judges by a bundle of the mode that this machine is about.
    pub fn wait_until_it_judges(&self) -> Outcome {
        let mut said = Value::Null;
        let judges = clock::poll_until(READY, Duration::from_millis(100), || {
            said = self.judging().unwrap_or_default();
            said["listens"] == true && said["bundle"]["mode"] == self.mode
        });
        if judges {
            return Ok(());
        }
        let log = self.said();
        Err(Failure::new(format!(
            "the agent does not judge: {said}; it said:\n{log}"
        )))
    }

    /// What `status` says of judging.
    fn judging(&self) -> Outcome<Value> {
        let mut status = self.command(&self.binary);
        status.args(["agent", "status", "--json"]).args(self.flags());
        let said: Value =
            serde_json::from_str(&process::output(&mut status)?).context("status said no JSON")?;
        Ok(said["judging"].clone())
    }

    /// Starts the agent anew, and returns when the server has everything that was judged here.
    pub fn tells(&mut self, scene: &Scene<'_>) -> Outcome {
        self.start(&Start::default())?;
        let segments = self.state().join("decisions");
        let mut waits = 0;
        let told = clock::poll_until(READY, Duration::from_millis(100), || {
            waits = entries(&segments);
            waits == 0
        });
        let said = scene
            .administrator()
            .get(&format!("devices/{}/decisions", self.id))?;
        if !told {
            let log = self.said();
            return Err(Failure::new(format!(
                "{waits} entries wait, and the server says {said}; the agent said:\n{log}"
            )));
        }
        println!("      the server has every entry of its log: {said}");
        Ok(())
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> Outcome {
        let Some(mut agent) = self.agent.take() else {
            return Ok(());
        };
        drop(agent.kill());
        agent.wait().context("cannot wait for an agent").map(drop)
    }

    pub fn pid(&self) -> Outcome<u32> {
        Ok(self.agent.as_ref().context("no agent works")?.id())
    }

    fn log(&self) -> PathBuf {
        self.folder.join("agent.log")
    }

    fn said(&self) -> String {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    /// The folder of the agent, as its processes see it.
    pub fn state_inside(&self) -> PathBuf {
        PathBuf::from(if self.is_of_the_machine {
            "/var/lib/provost-agent"
        } else {
            "/home/.local/state/provost-agent"
        })
    }

    /// The folder of the agent, from outside.
    pub fn state(&self) -> PathBuf {
        self.folder.join(if self.is_of_the_machine {
            "var/lib/provost-agent"
        } else {
            "home/.local/state/provost-agent"
        })
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join(if self.is_of_the_machine {
            "run/provost-agent/agent.sock"
        } else {
            "home/.config/provost/agent.sock"
        })
    }

    /// The file that keeps the organization's mode.
    pub fn mode_file(&self) -> PathBuf {
        self.folder.join(if self.is_of_the_machine {
            "var/cache/provost-agent/mode.json"
        } else {
            "home/.config/provost/mode.json"
        })
    }

    /// The file of the hook.
    pub fn registration(&self) -> PathBuf {
        self.folder.join(if self.is_of_the_machine {
            "etc/provost/hook.toml"
        } else {
            "home/.config/provost/hook.toml"
        })
    }

    /// The program that the client's settings name.
    pub fn program(&self) -> PathBuf {
        self.folder.join("provost")
    }

    pub fn put_program(&self) -> Outcome {
        drop(std::fs::remove_file(self.program()));
        symlink(&self.binary, self.program()).context("cannot link the program")
    }

    /// Has the machine's file of accounts say that root lives in the home of this machine, where its clients have their settings.
    pub fn name_home(&self) -> Outcome {
        let path = self.folder.join("etc/passwd");
        let accounts = std::fs::read_to_string(&path).context(path.display())?;
        let lines: Vec<String> = accounts
            .lines()
            .map(|line| {
                let mut fields: Vec<&str> = line.split(':').collect();
                if fields.get(2) == Some(&"0") && fields.len() == 7 {
                    fields[5] = "/home";
                }
                fields.join(":")
            })
            .collect();
        write(&path, &(lines.join("\n") + "\n"), 0o644)
    }

    pub fn victim(&self) -> String {
        self.folder.join("work/victim").display().to_string()
    }

    pub fn put_victim(&self) -> Outcome {
        write(Path::new(&self.victim()), "x", 0o644)
    }

    /// The line that the client runs before a tool, as it stands in its settings.
    pub fn registered_line(&self, client: &Client) -> Outcome<String> {
        let in_json = |file: &str, event: &str| {
            let path = self.folder.join(file);
            let settings = std::fs::read_to_string(&path).context(path.display())?;
            let settings: Value = serde_json::from_str(&settings).context("the settings are no JSON")?;
            text(&settings, &format!("/hooks/{event}/0/hooks/0/command"))
        };
        match client.word {
            "claude-code" if self.is_of_the_machine => {
                return in_json("etc/claude-code/managed-settings.json", "PreToolUse");
            }
            "claude-code" => return in_json("home/.claude/settings.json", "PreToolUse"),
            "gemini" => return in_json("etc/gemini-cli/settings.json", "BeforeTool"),
            _ => {}
        }
        let path = self.folder.join("etc/codex/requirements.toml");
        let settings = std::fs::read_to_string(&path).context(path.display())?;
        let (_, hook) = settings
            .split_once("[[hooks.PreToolUse]]")
            .context("no hook before tools")?;
        let line = hook
            .lines()
            .find_map(|line| line.strip_prefix("command = "))
            .context("a hook without a command")?;
        // A basic string of TOML is one of JSON, as far as the product writes them.
        match line.strip_prefix('\'') {
            Some(rest) => Ok(rest.trim_end_matches('\'').to_owned()),
            None => serde_json::from_str(line).context(format_args!("{line} is no text")),
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        drop(self.kill());
    }
}

/// Says whether somebody listens at a socket. From outside its path is too long for one, so that its folder is named by a number.
fn reaches(socket: &Path) -> bool {
    let Some((folder, name)) = socket.parent().zip(socket.file_name()) else {
        return false;
    };
    std::fs::File::open(folder).is_ok_and(|folder| {
        let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
        UnixStream::connect(short.join(name)).is_ok()
    })
}

/// How many entries wait in a log: a segment is a line that says where the chain stands, and a line for each entry. What the agent itself
/// tries once a day is none of them: it may be due at any moment, and goes with the next round.
fn entries(segments: &Path) -> usize {
    let files = std::fs::read_dir(segments).into_iter().flatten().flatten();
    files
        .map(|file| {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            let waits = text.lines().skip(1);
            waits.filter(|line| !line.contains("provost-hook-doctor")).count()
        })
        .sum()
}
