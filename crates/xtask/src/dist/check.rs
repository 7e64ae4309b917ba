//! Installs what `dist` made as its users would, into places that know nothing of this repository, and uses it.
//!
//! Absent on purpose: systemd, which needs a machine of its own. The unit is read by `systemd-analyze`, and its command line is run as
//! its user and without privileges in a fresh Debian root; its system-call filter and its other walls are not.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::{clock, process};

/// Install the packages of `dist` into a fresh Debian root and fresh environments, and use them
#[derive(clap::Args)]
pub struct Arguments {
    /// Where the packages are
    #[arg(long, default_value = "dist")]
    out: PathBuf,
}

/// The suite of the fresh root.
const SUITE: &str = "bookworm";
/// Where the unit's configuration has the server listen.
const ADDRESS: &str = "127.0.0.1:8080";
const TOKEN: &str = "var/lib/provost-keys/first-token";

const MODULE: &str =
    "package forge.content\nimport rego.v1\nmatch := {\"matched\": input.tool.id == \"Bash\"}\n";

pub fn run(arguments: &Arguments) -> Outcome {
    let out = std::path::absolute(&arguments.out).context("cannot find the packages")?;
    let stage = process::target().join("dist-check");
    drop(std::fs::remove_dir_all(stage.join("home")));
    std::fs::create_dir_all(stage.join("home")).context(stage.display())?;
    wheel(&find(&out, ".whl")?, &stage)?;
    npm(&find(&out, ".tgz")?, &stage)?;
    unit()?;
    debian(&find(&out, ".deb")?, &stage)
}

fn find(out: &Path, end: &str) -> Outcome<PathBuf> {
    let entries = std::fs::read_dir(out).context(out.display())?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    found.sort();
    found.pop().context(format_args!(
        "{} has no {end}; make it with: cargo xtask dist",
        out.display()
    ))
}

fn wheel(package: &Path, stage: &Path) -> Outcome {
    let environment = stage.join("venv");
    drop(std::fs::remove_dir_all(&environment));
    process::output(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index"])
        .arg(package);
    process::output(&mut pip)?;
    says_its_version("wheel", &environment.join("bin/provost"))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    process::output(pip.args(["uninstall", "--quiet", "--yes", "provost"]))?;
    gone("wheel", &environment.join("bin/provost"))
}

fn npm(package: &Path, stage: &Path) -> Outcome {
    let folder = stage.join("npm");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).context(folder.display())?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--offline", "--ignore-scripts", "--prefix"])
        .arg(&folder)
        .arg(package);
    process::output(npm.env("HOME", stage.join("home")))?;
    says_its_version("npm package", &folder.join("node_modules/.bin/provost"))
}

fn says_its_version(what: &str, program: &Path) -> Outcome {
    let said = process::output(Command::new(program).arg("--version"))?;
    println!("{what}: {}", said.trim());
    Ok(())
}

fn gone(what: &str, path: &Path) -> Outcome {
    if path.exists() {
        return Err(Failure::new(format!(
            "the {what} leaves {} behind",
            path.display()
        )));
    }
    Ok(())
}

/// The unit is well formed, and exposes little.
fn unit() -> Outcome {
    if process::find_program("systemd-analyze").is_none() {
        println!("unit: NOT read, there is no systemd-analyze");
        return Ok(());
    }
    for name in ["provost.service", "provost-backup.service"] {
        let unit = process::root().join("packaging/systemd").join(name);
        let mut judge = Command::new("systemd-analyze");
        judge
            .args(["security", "--offline=true", "--threshold=20", "--no-pager"])
            .arg(&unit);
        let said = process::output(&mut judge)?;
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        println!("{name}: {}", last.unwrap_or_default().trim());
    }
    println!("unit: NOT run under systemd, which needs a machine of its own");
    Ok(())
}

/// Installs into a fresh root, runs the unit's command line, upgrades with the data kept, and removes.
fn debian(package: &Path, stage: &Path) -> Outcome {
    if !process::is_root() {
        println!("Debian package: NOT installed, a root of its own needs the rights of root");
        return Ok(());
    }
    let root = fresh_root(stage)?;
    let name = package.file_name().context("a package has a name")?;
    std::fs::copy(package, root.join("tmp").join(name)).context("cannot hand over the package")?;
    let inside = format!("/tmp/{}", name.display());
    inside_of(&root, &["dpkg", "--install", &inside])?;
    for place in [
        "usr/bin/provost",
        "etc/provost/provost.toml",
        "lib/systemd/system/provost.service",
        "lib/systemd/system/provost-backup.timer",
        "var/lib/provost-keys",
    ] {
        if !root.join(place).exists() {
            return Err(Failure::new(format!("the package has no {place}")));
        }
    }
    let mut server = Service::start(&root)?;
    let token = std::fs::read_to_string(root.join(TOKEN)).context("there is no token of the first admin")?;
    let token = token.trim();
    asks_a_module(token)?;
    println!("Debian package: the unit's command line is ready, tells it, and a Rego policy decides");
    for kept in [1, 2, 2] {
        backs_up(&root, kept)?;
    }
    println!(
        "Debian package: the timer's command line makes backups beside the server, and removes old ones"
    );
    server.stop()?;
    // The same package once more is an upgrade to its scripts.
    inside_of(&root, &["dpkg", "--install", &inside])?;
    let mut server = Service::start(&root)?;
    let policies = fetch("policies", token)?;
    let kept = policies.to_string().contains("no-shell");
    server.stop()?;
    if !kept {
        return Err(Failure::new("the data is not there after an upgrade"));
    }
    println!("Debian package: installed again, the data is kept");
    inside_of(&root, &["dpkg", "--purge", "provost"])?;
    gone("package", &root.join("usr/bin/provost"))?;
    if !root.join("var/lib/provost/provost.db").exists() {
        return Err(Failure::new("the package takes the data away"));
    }
    println!("Debian package: removed, the data stays");
    Ok(())
}

/// A Debian that nothing was installed into.
fn fresh_root(stage: &Path) -> Outcome<PathBuf> {
    process::find_or_install("debootstrap")?;
    let base = stage.join("base.tar");
    let root = stage.join("root");
    drop(std::fs::remove_dir_all(&root));
    std::fs::create_dir_all(&root).context(root.display())?;
    if base.is_file() {
        process::output(
            Command::new("tar")
                .arg("--extract")
                .arg("--file")
                .arg(&base)
                .arg("--directory")
                .arg(&root),
        )?;
        return Ok(root);
    }
    println!("making a Debian root in {}", root.display());
    let mut make = Command::new("debootstrap");
    process::output(make.args(["--variant=minbase", SUITE]).arg(&root))?;
    let mut keep = Command::new("tar");
    process::output(
        keep.arg("--create")
            .arg("--file")
            .arg(&base)
            .arg("--directory")
            .arg(&root)
            .arg("."),
    )?;
    Ok(root)
}

fn inside_of(root: &Path, words: &[&str]) -> Outcome<String> {
    let mut command = Command::new("chroot");
    command
        .arg(root)
        .args(words)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C");
    process::output(&mut command)
}

/// Returns the command line of a unit.
fn command_line(unit: &str) -> Outcome<String> {
    let unit = process::root().join("packaging/systemd").join(unit);
    let text = std::fs::read_to_string(&unit).context(unit.display())?;
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart="));
    line.map(str::to_owned).context("the unit starts something")
}

/// Runs the timer's command line as its user, keeping two; afterwards there are so many backups.
fn backs_up(root: &Path, expected: usize) -> Outcome {
    let line = command_line("provost-backup.service")?.replace("--keep 14", "--keep 2");
    let mut command = Command::new("chroot");
    command
        .arg("--userspec=provost:provost")
        .arg(root)
        .args(line.split_whitespace())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    process::output(&mut command)?;
    let folder = root.join("var/backups/provost");
    let found = std::fs::read_dir(&folder).context(folder.display())?.flatten();
    let whole = found
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".db.mac"))
        .count();
    if whole != expected {
        return Err(Failure::new(format!(
            "{} holds {whole} backups and not {expected}",
            folder.display()
        )));
    }
    Ok(())
}

/// The unit's command line, as its user.
struct Service {
    process: Child,
    told: UnixDatagram,
}

impl Service {
    fn start(root: &Path) -> Outcome<Self> {
        let line = command_line("provost.service")?;
        let socket = root.join("tmp/notify");
        drop(std::fs::remove_file(&socket));
        let told = UnixDatagram::bind(&socket).context("cannot listen for the service")?;
        process::output(Command::new("chmod").arg("0777").arg(&socket))?;
        told.set_read_timeout(Some(Duration::from_secs(30)))
            .context("cannot listen for the service")?;
        // The server asks `/proc` where its own image is, for the processes that run modules. The mount ends with the process.
        let enter = "mount -t proc proc \"$0/proc\" && exec chroot --userspec=provost:provost \"$0\" \"$@\"";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", enter])
            .arg(root)
            .args(line.split_whitespace())
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("MIMALLOC_PURGE_DELAY", "0")
            .env("NOTIFY_SOCKET", "/tmp/notify")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let process = command.spawn().context("cannot start the service")?;
        let mut service = Self { process, told };
        service.is_told("READY=1")?;
        Ok(service)
    }

    fn is_told(&mut self, word: &str) -> Outcome {
        let mut said = [0; 256];
        let told = self
            .told
            .recv(&mut said)
            .map(|length| String::from_utf8_lossy(&said[..length]).into_owned());
        match told {
            Ok(told) if told.contains(word) => Ok(()),
            other => {
                drop(self.process.kill());
                let log = self.process.stderr.take().map(BufReader::new);
                let log: Vec<String> = log
                    .into_iter()
                    .flat_map(|log| log.lines().map_while(Result::ok))
                    .collect();
                Err(Failure::new(format!(
                    "the service says {other:?} and not {word}: {}",
                    log.join("\n")
                )))
            }
        }
    }

    fn stop(&mut self) -> Outcome {
        process::signal(self.process.id(), "TERM");
        self.is_told("STOPPING=1")?;
        let is_over = clock::poll_until(Duration::from_secs(30), Duration::from_millis(50), || {
            self.process.try_wait().is_ok_and(|status| status.is_some())
        });
        if is_over {
            return Ok(());
        }
        Err(Failure::new("the service does not stop"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn path(rest: &str) -> String {
    format!("/api/headless/v1/organizations/default/{rest}")
}

fn connection() -> Outcome<Connection> {
    Ok(Connection::new(ADDRESS.parse().context("an address")?))
}

fn fetch(rest: &str, token: &str) -> Outcome<Value> {
    connection()?.fetch(&Request::get(path(rest), token))
}

fn post(rest: &str, token: &str, body: Value) -> Outcome<Value> {
    connection()?.fetch(&Request::new("POST", path(rest), token).with_body(body))
}

/// A policy whose Rego module blocks one tool: its worker is a process of its own.
fn asks_a_module(token: &str) -> Outcome {
    let definition = json!({
        "id": "no-shell", "name": "No shell", "action": "block", "evaluateOn": ["pre_tool"], "appliesTo": {},
        "acknowledgeBroadScope": true, "logic": { "kind": "rego", "languageVersion": "forge.rego.v1", "entrypoint": "data.forge.content.match", "module": MODULE,
            "moduleSha256": provost_words::digest::sha256_hex(MODULE.as_bytes()) },
    });
    let body = json!({ "definition": definition, "reason": "a check of the package", "idempotencyKey": "dist-check" });
    post("content-policies", token, body)?;
    let event = |tool: &str| json!({ "occasion": "pre_tool", "attributes": { "tool.id": tool } });
    let answer = post(
        "policies/decisions",
        token,
        json!({ "events": [event("Bash"), event("Read")] }),
    )?;
    let actions = [
        &answer["decisions"][0]["action"],
        &answer["decisions"][1]["action"],
    ];
    if actions != ["block", "allow"] {
        return Err(Failure::new(format!("the policy decides otherwise: {answer}")));
    }
    Ok(())
}
