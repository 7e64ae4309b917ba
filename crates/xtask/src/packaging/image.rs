//! The image, built from its recipe and started, where there is neither an engine nor a registry.
//!
//! The base is a Debian that debootstrap makes, under the name that the recipe asks for; buildah runs in another one. Both are kept below
//! the target folder.

use std::path::Path;
use std::process::Command;

use super::settings;
use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::product::free_address;

pub fn run(dist: &Path) -> Outcome<String> {
    let may_mount = || process::works(Command::new("unshare").args(["--mount", "true"]));
    if !process::is_root() || process::find_program("unshare").is_none() || !may_mount() {
        return Ok("NOT built: it needs root and unshare".to_owned());
    }
    let dist = std::path::absolute(dist).context("cannot find the packages")?;
    let is_package = |path: &Path| path.extension().is_some_and(|end| end == "deb");
    let mut files = std::fs::read_dir(&dist).context(dist.display())?.flatten();
    if !files.any(|entry| is_package(&entry.path())) {
        return Err(Failure::new(format!(
            "{} holds no package: cargo xtask dist makes one",
            dist.display()
        )));
    }
    process::find_or_install("debootstrap")?;
    let tools = process::target().join("tools/image");
    std::fs::create_dir_all(&tools).context(tools.display())?;
    let (address, metrics) = (free_address()?, free_address()?);
    let mut build = Command::new("unshare");
    build
        .args(["--mount", "sh"])
        .arg(settings().join("image.sh"))
        .args([&tools, &dist])
        .args([address.port().to_string(), metrics.port().to_string()])
        .current_dir(process::root());
    process::output(&mut build)?;
    Ok(
        "built by buildah on a fresh Debian, started as user 10001, healthy by its own check, gone after SIGTERM"
            .to_owned(),
    )
}
