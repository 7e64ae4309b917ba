//! The supply chain of the binary (R41): which crates are linked into it, a bill of materials that other tools read, and
//! whether its source makes the same bits in every folder.
//!
//! A crate counts when its code is linked: macros and build scripts run while building and are listed in the bill alone.
//!
//! Absent on purpose: known vulnerabilities. Their list changes every day and is fetched; `cargo deny check advisories`
//! or whatever reads the bill of materials looks them up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Context, Failure, Outcome};
use crate::process;
use crate::record::Record;
use crate::scratch::Scratch;

const PACKAGE: &str = "provost-server";
/// The tool of the format's own project.
const TOOL: &str = "cargo-cyclonedx";
const VERSION: &str = "0.5.9";
/// The version of `CycloneDX`, the newest that the tool writes.
const FORMAT: &str = "1.5";
/// Two folders, one deeper than the other, so that a path in the binary changes its size too.
const FOLDERS: [&str; 2] = ["one", "another/and/deeper"];

/// Count the crates of the binary, write its bill of materials, and build it twice to compare the bits
#[derive(clap::Args)]
pub struct Arguments {
    /// Only count and list: two release builds take some ten minutes
    #[arg(long, conflicts_with = "record")]
    no_build: bool,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let workplace = process::target().join("supply");
    let linked = linked_crates()?;
    println!("{} crates of others are linked into the binary.", linked.len());
    let components = write_bill(&workplace)?;
    if arguments.no_build {
        return Ok(());
    }
    let digest = build_twice(&workplace)?;
    println!("Two builds in two folders are the same bits: SHA-256 {digest}");
    if arguments.record {
        let figure = format!(
            "{} crates of others linked into the binary; a CycloneDX bill of materials with {components} components; two \
             builds of one commit in two folders gave the same bits.",
            linked.len()
        );
        Record::new(&["R41"], figure, "cargo xtask supply").write("supply")?;
    }
    Ok(())
}

/// Returns name and version of every crate whose code is in the binary and that is not ours.
fn linked_crates() -> Outcome<BTreeSet<String>> {
    let mut cargo = process::cargo();
    cargo.args(["tree", "--locked", "--package", PACKAGE]);
    cargo.args([
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let tree = process::output(&mut cargo)?;
    // A crate of this repository is shown with its folder.
    let foreign = tree.lines().filter(|line| !line.contains(" (/"));
    let crates: BTreeSet<_> = foreign
        .map(|line| line.trim_end_matches(" (*)").trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    if crates.is_empty() {
        return Err(Failure::new("cargo tree names no crate"));
    }
    Ok(crates)
}

/// What is read of a bill to know that it is one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bill {
    bom_format: String,
    components: Vec<Value>,
}

/// Writes the bill of materials into the workplace and returns the number of its components.
fn write_bill(workplace: &Path) -> Outcome<usize> {
    // The tool writes beside the manifests, so it gets a tree of its own.
    let scratch = Scratch::prepare(&workplace.join(FOLDERS[0]))?;
    let mut tool = Command::new(process::find_or_install_crate(TOOL, VERSION)?);
    tool.current_dir(scratch.folder()).arg("cyclonedx");
    tool.args([
        "--format",
        "json",
        "--spec-version",
        FORMAT,
        "--describe",
        "binaries",
    ]);
    tool.args([
        "--manifest-path",
        &format!("{}/Cargo.toml", crate_folder(scratch.folder()).display()),
    ]);
    process::output(&mut tool)?;
    let written = crate_folder(scratch.folder()).join("provost_bin.cdx.json");
    let text =
        std::fs::read_to_string(&written).context(format_args!("{TOOL} left no {}", written.display()))?;
    // Our own crates are named by the folder that they were in, which says nothing to others.
    let text = text.replace(&*scratch.folder().to_string_lossy(), "/provost");
    let bill: Bill = serde_json::from_str(&text).context("the bill of materials cannot be read")?;
    if bill.bom_format != "CycloneDX" || bill.components.is_empty() {
        return Err(Failure::new("the bill of materials lists nothing"));
    }
    let file = workplace.join("provost.cdx.json");
    std::fs::write(&file, text).context(format_args!("cannot write {}", file.display()))?;
    scratch.revert()?;
    println!(
        "Its bill of materials, {} components, stands in {}.",
        bill.components.len(),
        file.display()
    );
    Ok(bill.components.len())
}

fn crate_folder(tree: &Path) -> PathBuf {
    tree.join("crates/server")
}

/// Builds the last commit in two folders and returns the digest of both binaries.
///
/// What build scripts generate names its own place, so that both builds go to one, one after the other: the binary knows
/// where it was built and not where its source was.
fn build_twice(workplace: &Path) -> Outcome<String> {
    // Both before either is built: a commit that is made meanwhile would be in one of them.
    let mut trees = Vec::new();
    for folder in FOLDERS {
        trees.push(Scratch::prepare(&workplace.join(folder))?);
    }
    let mut digests = Vec::new();
    for scratch in &trees {
        println!(
            "Building {:.12} in {} …",
            scratch.commit,
            scratch.folder().display()
        );
        let mut cargo = process::cargo();
        cargo.current_dir(scratch.folder());
        let built = workplace.join("build");
        drop(std::fs::remove_dir_all(&built));
        cargo.env("CARGO_TARGET_DIR", &built);
        cargo.args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--package",
            PACKAGE,
            "--bin",
            "provost",
        ]);
        process::run(&mut cargo)?;
        let binary = built.join("release/provost");
        let said = process::output(Command::new("sha256sum").arg(&binary))?;
        let digest = said.split_whitespace().next().context("sha256sum says nothing")?;
        digests.push(digest.to_owned());
    }
    digests.dedup();
    if digests.len() > 1 {
        return Err(Failure::new(format!(
            "two builds differ: {}",
            digests.join(" and ")
        )));
    }
    Ok(digests.remove(0))
}
