//! A tour through the product with its own command line, on a real server, one engine after the other.
//!
//! It reads like a session of an administrator: every command is printed as it could be typed, with what it
//! answered. It fails at the first answer that is not what the guides say.

mod backtests;
mod configuration;
mod directory;
mod guide;
mod resources;
mod skills;

use std::path::{Path, PathBuf};

use crate::Engine;
use crate::failure::{Context, Failure, Outcome};
use crate::postgres::Durability;
use crate::process;
use crate::product::{self, Installation, Store, Workplace};
use guide::Guide;

/// Take the tour of the guides against the real binary
#[derive(clap::Args)]
pub struct Arguments {
    /// The engines that the server stores in
    #[arg(long, value_enum, default_value_t = Engine::Both)]
    engine: Engine,
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    // The commands are typed in a folder of their own.
    let binary = std::path::absolute(binary).context("cannot find the binary")?;
    for engine in arguments.engine.each() {
        let workplace = Workplace::create(&format!("tour-{}", engine.word()))?;
        let folder = workplace.folder.clone();
        let commands = take(engine, &binary, &folder).context(format_args!(
            "{}, everything is kept in {}",
            engine.name(),
            folder.display()
        ))?;
        workplace.remove()?;
        println!(
            "{}: the tour of {commands} commands went as the guides say",
            engine.name()
        );
    }
    Ok(())
}

fn take(engine: Engine, binary: &Path, folder: &Path) -> Outcome<usize> {
    let (store, cluster) = Store::create(engine, folder, Durability::None)?;
    // Secrets that the server only knows by name: its operator says where they lie.
    let secrets = folder.join("secrets/acme");
    std::fs::create_dir_all(&secrets).context("cannot make a folder")?;
    std::fs::write(secrets.join("orders"), "the password of the orders database")
        .context("cannot write a file")?;
    let configuration = folder.join("provost.toml");
    std::fs::write(&configuration, resources::configuration(&secrets)).context("cannot write a file")?;
    let installation = Installation {
        configuration: Some(configuration),
        ..Installation::new(binary, store, folder)
    };
    let bootstrap = installation.initialize()?;
    let server = installation.serve()?;
    let mut guide = Guide::new(binary, folder, &server, &bootstrap, process::root())?;
    directory::visit(&mut guide)?;
    configuration::visit(&mut guide)?;
    skills::visit(&mut guide)?;
    resources::visit(&mut guide)?;
    backtests::visit(&mut guide)?;
    let commands = guide.commands();
    server.stop()?;
    installation.check(&["audit", "verify"])?;
    installation.check(&["store", "check"])?;
    drop(cluster);
    Ok(commands)
}

/// Fails with a sentence unless something is so.
fn expect(is_so: bool, sentence: &str) -> Outcome {
    if is_so {
        return Ok(());
    }
    Err(Failure::new(format!("expected that {sentence}")))
}
