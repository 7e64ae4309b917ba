//! Programs from `PyPI`, in environments of their own below the build folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::failure::{Context, Outcome};
use crate::process;

/// How long an environment may take to be made. Ours: some hundred megabytes over a slow line.
const LONGEST: Duration = Duration::from_mins(30);

/// Returns the folder of programs of an environment that holds what a file of pinned requirements says.
pub fn programs(name: &str, requirements: &Path) -> Outcome<PathBuf> {
    let wanted = std::fs::read_to_string(requirements).context("cannot read the pinned requirements")?;
    let environment = process::target().join("tools").join(name);
    let programs = environment.join("bin");
    let installed = environment.join("requirements.txt");
    if programs.is_dir() && std::fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(programs);
    }
    eprintln!("installing {name} into {}", environment.display());
    drop(std::fs::remove_dir_all(&environment));
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&environment);
    process::output_within(&mut venv, LONGEST, "an environment of Python").context(format_args!(
        "{name} needs Python 3.10 or newer with venv (Debian: apt-get install python3-venv)"
    ))?;
    let mut pip = Command::new(programs.join("pip"));
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ])
    .arg(requirements);
    let what = format!("pip, which installs {name} from the package index");
    process::run_within(&mut pip, LONGEST, &what)?;
    std::fs::write(&installed, wanted).context("cannot note what is installed")?;
    Ok(programs)
}
