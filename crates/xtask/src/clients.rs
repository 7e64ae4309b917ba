//! Real MCP clients, and the conformance suite, against the real binary.
//!
//! Nothing here speaks the protocol: the official SDKs, the Inspector, the suite and the command lines of Claude Code and
//! Codex (whose client is `rmcp`) do, in processes of their own, each with the version that `crates/xtask/clients` pins. The driver makes accounts
//! and users, says which steps a client must report, revokes sessions in their midst, and compares the list of sessions
//! with a ledger of its own.
//!
//! Absent on purpose: models. The one that agents ask here is a script.

pub mod administrator;
mod commands;
mod conformance;
mod device_hooks;
mod directories;
mod generators;
mod hook_answers;
mod hooks;
mod install;
pub mod program;
mod scanners;
mod sdk;
mod served;
mod session_log;
mod sign_in;
mod telemetry;
mod terminal;
mod terraform;
mod traffic;

use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;

use crate::Engine;
use crate::failure::{Context, Outcome};
use crate::postgres::{Cluster, Durability};
use crate::process;
use crate::product::{self, Bootstrap, Installation, Server, Store, Workplace};
use administrator::Administrator;
use install::Tools;
pub use install::command_lines;
pub use scanners::snyk;
use served::Row;

/// Connect real MCP clients to the real binary and run the conformance suite
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these parts, in this order; all of them when none is named
    parts: Vec<Part>,
    /// Leave this part out
    #[arg(long, value_name = "PART", conflicts_with = "parts")]
    without: Vec<Part>,
    /// The engines that the server stores in
    #[arg(long, value_enum, default_value_t = Engine::Sqlite)]
    engine: Engine,
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Repeats the traffic of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// How many random acts the traffic has
    #[arg(long, default_value_t = 300)]
    acts: u32,
    /// Keep what works with which version, for docs/compatibility.md
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    device_hooks: device_hooks::Repeats,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The official SDKs and the Inspector, over HTTP and over stdio
    Sdks,
    /// The conformance suite, both revisions and the authorization server
    Conformance,
    /// Random traffic, and two lists of sessions that must agree
    Traffic,
    /// The whole way through the authorization server
    SignIn,
    /// The command lines of Claude Code and Codex, as the guide has them
    Commands,
    /// Generators of clients and linters, over the API document that the server serves
    Generators,
    /// What instrumentations and command lines tell of a question that needs a tool
    Telemetry,
    /// Whether the hook stops real agents, whatever fails between them and the server
    Hooks,
    /// What clients do with each answer of a hook and with hooks that fail, beside what is kept of their versions
    HookAnswers,
    /// Whether it stops them where a device judges, whatever fails on the device
    DeviceHooks,
    /// Whether a call that was approved passes once, and no other one, where a device judges
    DeviceApprovals,
    /// What the agent says of how far real clients are guarded, beside what they do
    DeviceCoverage,
    /// Exports of Okta, Entra ID and Google Workspace, imported by the command line
    Directories,
    /// The traffic of the family's Terraform provider
    Terraform,
    /// What a scan finds, beside another scanner, and what must not come out
    Scanners,
    /// Servers that Claude Code, Codex and Gemini CLI add by their own commands, found by a scan
    Additions,
}

const ALL: [Part; 16] = [
    Part::Sdks,
    Part::Conformance,
    Part::Traffic,
    Part::SignIn,
    Part::Commands,
    Part::Generators,
    Part::Telemetry,
    Part::Hooks,
    Part::HookAnswers,
    Part::DeviceHooks,
    Part::DeviceApprovals,
    Part::DeviceCoverage,
    Part::Directories,
    Part::Terraform,
    Part::Scanners,
    Part::Additions,
];

impl Part {
    fn word(self) -> &'static str {
        match self {
            Self::Sdks => "sdks",
            Self::Conformance => "conformance",
            Self::Traffic => "traffic",
            Self::SignIn => "sign-in",
            Self::Commands => "commands",
            Self::Generators => "generators",
            Self::Telemetry => "telemetry",
            Self::Hooks => "hooks",
            Self::HookAnswers => "hook-answers",
            Self::DeviceHooks => "device-hooks",
            Self::DeviceApprovals => "device-approvals",
            Self::DeviceCoverage => "device-coverage",
            Self::Directories => "directories",
            Self::Terraform => "terraform",
            Self::Scanners => "scanners",
            Self::Additions => "additions",
        }
    }
}

/// What cannot be installed is said and left out; parts that were named must run.
fn installed(named: &[Part], without: &[Part]) -> Outcome<Option<(Tools, Vec<Part>)>> {
    let tools = match Tools::install() {
        Err(why) if named.is_empty() => {
            println!("the MCP clients are not installed and could not be: nothing of this was run ({why})");
            return Ok(None);
        }
        tools => tools?,
    };
    let mut parts = Vec::new();
    let wanted = if named.is_empty() { &ALL } else { named };
    for &part in wanted.iter().filter(|part| !without.contains(part)) {
        match tools.install_for(part) {
            Err(why) if named.is_empty() => {
                println!(
                    "{} was NOT run: its clients could not be installed ({why})",
                    part.word()
                );
            }
            outcome => {
                outcome?;
                parts.push(part);
            }
        }
    }
    Ok(Some((tools, parts)))
}

pub fn run(arguments: &Arguments) -> Outcome {
    let Some((tools, parts)) = installed(&arguments.parts, &arguments.without)? else {
        return Ok(());
    };
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let binary = std::path::absolute(binary).context("cannot find the binary")?;
    let mut served = Vec::new();
    for engine in arguments.engine.each() {
        for &part in &parts {
            println!("\n# {}, {}", part.word(), engine.name());
            let workplace = Workplace::create(&format!("clients-{}-{}", part.word(), engine.word()))?;
            let folder = workplace.folder.clone();
            let kept = format!(
                "{}, server log and store are kept in {}",
                part.word(),
                folder.display()
            );
            let scene = Scene::set(&tools, engine, &binary, folder)?;
            served.extend(perform(part, scene, arguments).context(kept)?);
            workplace.remove()?;
        }
    }
    if arguments.record {
        served::record(&served, &parts, arguments.engine.name())?;
    }
    Ok(())
}

/// Runs a part; returns which MCP clients it served.
fn perform(part: Part, mut scene: Scene<'_>, arguments: &Arguments) -> Outcome<Vec<Row>> {
    let mut served = Vec::new();
    match part {
        Part::Sdks => served = sdk::run(&mut scene)?,
        Part::Conformance => served = conformance::run(&mut scene)?,
        Part::Traffic => traffic::run(&mut scene, arguments.seed, arguments.acts)?,
        Part::SignIn => served = sign_in::run(&mut scene)?,
        Part::Commands => served = commands::run(&mut scene)?,
        Part::Generators => generators::run(&scene, arguments.record)?,
        Part::Telemetry => telemetry::run(&scene, arguments.record)?,
        Part::Hooks => hooks::run(&scene)?,
        Part::HookAnswers => hook_answers::run(&scene, arguments.record)?,
        Part::DeviceHooks => device_hooks::run(&mut scene, &arguments.device_hooks, arguments.record)?,
        Part::DeviceApprovals => device_hooks::approve(&scene, &arguments.device_hooks)?,
        Part::DeviceCoverage => device_hooks::look(&scene, &arguments.device_hooks)?,
        Part::Directories => directories::run(&scene, arguments.record)?,
        Part::Terraform => terraform::run(&scene, arguments.record)?,
        Part::Scanners => scanners::run(&scene)?,
        Part::Additions => scanners::additions(&scene)?,
    }
    scene.strike()?;
    Ok(served)
}

/// A server with one organization, its admin, and the tools.
struct Scene<'a> {
    tools: &'a Tools,
    folder: PathBuf,
    installation: Installation,
    bootstrap: Bootstrap,
    server: Server,
    provider: sign_in::Provider,
    cluster: Option<Cluster>,
}

impl<'a> Scene<'a> {
    fn set(tools: &'a Tools, engine: Engine, binary: &std::path::Path, folder: PathBuf) -> Outcome<Self> {
        let (store, cluster) = Store::create(engine, &folder, Durability::None)?;
        let address = product::free_address()?;
        let provider = sign_in::Provider::start(tools, address)?;
        let configuration = folder.join("provost.toml");
        std::fs::write(
            &configuration,
            sign_in::configuration(&folder, address, &provider)?,
        )
        .context("cannot write a file")?;
        let installation = Installation {
            configuration: Some(configuration),
            ..Installation::new(binary, store, &folder)
        };
        let bootstrap = installation.initialize()?;
        let mut server = installation.launch_at(address)?;
        server.wait_until_ready(std::time::Duration::from_mins(1))?;
        Ok(Self {
            tools,
            folder,
            installation,
            bootstrap,
            server,
            provider,
            cluster,
        })
    }

    fn origin(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The program with these words, as the administrator types them.
    fn command_line(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.installation.binary);
        process::without_settings(&mut command);
        command
            .args(words)
            .env("PROVOST_URL", self.origin())
            .env("PROVOST_ORGANIZATION", &self.bootstrap.organization)
            .env("PROVOST_TOKEN", &self.bootstrap.token)
            .env("HOME", &self.folder)
            .env("XDG_CONFIG_HOME", self.folder.join(".config"))
            .current_dir(&self.folder);
        command
    }

    fn administrator(&self) -> Administrator {
        Administrator::new(&self.server, &self.bootstrap)
    }

    /// Stops everything; what the clients did has left a store without contradictions.
    fn strike(self) -> Outcome {
        self.server.stop()?;
        self.provider.stop()?;
        self.installation.check(&["audit", "verify"])?;
        self.installation.check(&["store", "check"])?;
        drop(self.cluster);
        Ok(())
    }
}
