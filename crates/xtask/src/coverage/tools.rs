//! The compiler's counters and their readers, which come with the toolchain as a component of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::process;

/// What no figure is about: dependencies, tests, and these tasks.
const IGNORED: &str =
    r"(/\.cargo/|/rustc/|/tests/|/tests\.rs$|_tests\.rs$|/testing\.rs$|/crates/xtask/|/target/|/examples/)";

/// The programs that read counts.
pub struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    /// Finds the toolchain's own readers, or installs them with rustup and says so: no other version reads its counts.
    pub fn find_or_install() -> Outcome<Self> {
        let tools = Self::of_toolchain()?;
        if tools.are_there() {
            return Ok(tools);
        }
        println!("The compiler's readers of counts are not installed: rustup component add llvm-tools");
        process::run(Command::new("rustup").args(["component", "add", "llvm-tools"])).context(
            "the readers of counts are missing: install the component llvm-tools of this toolchain and run this again",
        )?;
        if tools.are_there() {
            return Ok(tools);
        }
        Err(Failure::new(format!("{} is still missing", tools.cov.display())))
    }

    fn of_toolchain() -> Outcome<Self> {
        let mut rustc = Command::new("rustc");
        rustc.current_dir(process::root());
        let sysroot = process::output(rustc.args(["--print", "sysroot"]))?;
        let mut rustc = Command::new("rustc");
        let host = process::output(rustc.current_dir(process::root()).args(["--print", "host-tuple"]))?;
        let folder = Path::new(sysroot.trim())
            .join("lib/rustlib")
            .join(host.trim())
            .join("bin");
        Ok(Self {
            profdata: folder.join("llvm-profdata"),
            cov: folder.join("llvm-cov"),
        })
    }

    fn are_there(&self) -> bool {
        self.profdata.is_file() && self.cov.is_file()
    }

    /// Adds the counts of all programs up.
    pub fn merge(&self, counts: &Path, merged: &Path) -> Outcome {
        let files = std::fs::read_dir(counts)
            .context("there are no counts; run this without --again")?
            .map(|entry| Ok(entry.context("cannot read the folder of the counts")?.path()))
            .collect::<Outcome<Vec<_>>>()?;
        let mut merge = Command::new(&self.profdata);
        // A program that was killed while it wrote leaves a file that nobody can read.
        merge.args(["merge", "--sparse", "--failure-mode=all", "--output"]);
        process::run(merge.arg(merged).args(files))
    }

    /// Returns the counts by file of source, as llvm-cov's JSON.
    pub fn export(&self, merged: &Path, binaries: &[PathBuf]) -> Outcome<String> {
        let mut export = Command::new(&self.cov);
        export.args(["export", "--skip-functions", "--skip-expansions"]);
        export.arg(format!("--ignore-filename-regex={IGNORED}"));
        export.arg("--instr-profile").arg(merged);
        for binary in binaries {
            export.arg("--object").arg(binary);
        }
        process::output(&mut export)
    }
}

/// Writes the wrapper that gives the compiler the counters for the crates of the workspace.
pub fn write_wrapper(folder: &Path) -> Outcome<PathBuf> {
    const TEXT: &str =
        "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec \"$@\" -C instrument-coverage -Z coverage-options=branch\n";
    std::fs::create_dir_all(folder).context(format_args!("cannot make {}", folder.display()))?;
    let wrapper = folder.join("rustc-with-counters");
    // Written anew it would look changed, and everything would be built again.
    if std::fs::read_to_string(&wrapper).is_ok_and(|text| text == TEXT) {
        return Ok(wrapper);
    }
    std::fs::write(&wrapper, TEXT).context("cannot write the wrapper")?;
    process::run(Command::new("chmod").arg("+x").arg(&wrapper))?;
    Ok(wrapper)
}
