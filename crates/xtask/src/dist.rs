//! What carries the program to machines: a Debian package, a Python wheel and an npm package that hold the binary, and checksums.
//!
//! ```text
//! binary of `dist` ─► dist/provost_VERSION_ARCH.deb      user, folders, unit, configuration, completions, manual page
//!                ─► dist/provost-VERSION-py3-none-….whl  the program alone
//!                ─► dist/provost-VERSION.tgz             the program alone
//!                ─► dist/SHA256SUMS
//! ```
//!
//! Absent on purpose: images and charts, which `packaging` describes and others build; macOS and Windows, which no Linux machine makes.

mod check;
mod wheel;

pub use check::Arguments as CheckArguments;
pub use check::run as check;

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::{process, product};

/// Make the Debian package, the wheel and the npm package of a binary that is built for size
#[derive(clap::Args)]
pub struct Arguments {
    /// Use this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where the packages go
    #[arg(long, default_value = "dist")]
    out: PathBuf,
    /// The version that the packages say [default: that of the workspace]
    #[arg(long)]
    package_version: Option<String>,
}

/// The most that the binary may have. Units: bytes.
const MOST: u64 = 30 << 20;

/// What goes into a package.
struct Program {
    binary: PathBuf,
    version: String,
    machine: Machine,
    /// The newest version of the C library that it asks for, such as `2.34`.
    libc: String,
}

/// How the three kinds of packages call this machine.
struct Machine {
    debian: &'static str,
    python: &'static str,
    npm: &'static str,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let binary = product::given(arguments.binary.as_ref(), "dist")?;
    let out = std::path::absolute(&arguments.out).context("cannot find the folder of packages")?;
    std::fs::create_dir_all(&out).context(out.display())?;
    let program = Program::look(binary, arguments.package_version.clone())?;
    let packages = make(&program, &out)?;
    let sums = out.join("SHA256SUMS");
    let mut text = String::new();
    for package in &packages {
        let bytes = std::fs::read(package).context(package.display())?;
        let name = package.file_name().unwrap_or_default().display();
        writeln!(text, "{}  {name}", provost_words::digest::sha256_hex(&bytes)).unwrap_or_default();
        println!("{}: {:.1} MiB", package.display(), mib(bytes.len() as u64));
    }
    std::fs::write(&sums, text).context(sums.display())?;
    println!("{}", sums.display());
    Ok(())
}

fn make(program: &Program, out: &Path) -> Outcome<Vec<PathBuf>> {
    let stage = process::target().join("dist");
    drop(std::fs::remove_dir_all(&stage));
    std::fs::create_dir_all(&stage).context(stage.display())?;
    Ok(vec![
        debian(program, &stage, out)?,
        wheel::write(program, out)?,
        npm(program, &stage, out)?,
    ])
}

fn mib(bytes: u64) -> f64 {
    // No binary has as many bytes as a float cannot count.
    #[expect(clippy::cast_precision_loss, reason = "sizes of files")]
    let bytes = bytes as f64;
    bytes / 1_048_576.0
}

impl Program {
    fn look(binary: PathBuf, version: Option<String>) -> Outcome<Self> {
        let size = std::fs::metadata(&binary).context(binary.display())?.len();
        println!("{}: {:.1} MiB", binary.display(), mib(size));
        if size > MOST {
            println!("    that is more than the {} MiB of the goal", MOST >> 20);
        }
        let machine = match std::env::consts::ARCH {
            "x86_64" => Machine {
                debian: "amd64",
                python: "x86_64",
                npm: "x64",
            },
            "aarch64" => Machine {
                debian: "arm64",
                python: "aarch64",
                npm: "arm64",
            },
            other => {
                return Err(Failure::new(format!(
                    "packages are made on x86_64 and aarch64, not on {other}"
                )));
            }
        };
        let said = process::output(Command::new(&binary).arg("--version"))?;
        let own = said.split_whitespace().nth(1).unwrap_or_default().to_owned();
        Ok(Self {
            libc: libc(&binary)?,
            version: version.unwrap_or(own),
            binary,
            machine,
        })
    }

    /// Returns what the program prints.
    fn says(&self, words: &[&str]) -> Outcome<String> {
        let mut command = Command::new(&self.binary);
        command.args(words).env("COLUMNS", "100");
        process::without_settings(&mut command);
        process::output(&mut command)
    }
}

/// Returns the newest version of the C library whose symbols a binary has.
fn libc(binary: &Path) -> Outcome<String> {
    process::find_or_install("readelf")?;
    let symbols = process::output(
        Command::new("readelf")
            .args(["--version-info", "--wide"])
            .arg(binary),
    )?;
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let numbers = rest[..end.unwrap_or(rest.len())]
            .split('.')
            .map(str::parse::<u32>);
        numbers.collect::<Result<Vec<u32>, _>>().ok()
    });
    let newest = versions.max().context("the binary links no C library of GNU")?;
    let numbers: Vec<String> = newest.iter().take(2).map(u32::to_string).collect();
    Ok(numbers.join("."))
}

/// Puts a file below a folder, with the folders between.
fn put(stage: &Path, place: &str, bytes: &[u8], mode: u32) -> Outcome {
    let path = stage.join(place);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).context(folder.display())?;
    }
    std::fs::write(&path, bytes).context(path.display())?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).context(path.display())
}

/// A file of `packaging`.
fn packaging(name: &str) -> Outcome<Vec<u8>> {
    let path = process::root().join("packaging").join(name);
    std::fs::read(&path).context(path.display())
}

fn debian(program: &Program, stage: &Path, out: &Path) -> Outcome<PathBuf> {
    process::find_or_install("dpkg-deb")?;
    let root = stage.join("deb");
    let binary = std::fs::read(&program.binary).context(program.binary.display())?;
    put(&root, "usr/bin/provost", &binary, 0o755)?;
    for unit in [
        "provost.service",
        "provost-backup.service",
        "provost-backup.timer",
    ] {
        put(
            &root,
            &format!("lib/systemd/system/{unit}"),
            &packaging(&format!("systemd/{unit}"))?,
            0o644,
        )?;
    }
    put(
        &root,
        "etc/provost/provost.toml",
        &packaging("provost.toml")?,
        0o644,
    )?;
    for (shell, place) in [
        ("bash", "usr/share/bash-completion/completions/provost"),
        ("zsh", "usr/share/zsh/vendor-completions/_provost"),
        ("fish", "usr/share/fish/vendor_completions.d/provost.fish"),
    ] {
        put(
            &root,
            place,
            program.says(&["completions", shell])?.as_bytes(),
            0o644,
        )?;
    }
    put(
        &root,
        "usr/share/man/man1/provost.1",
        manual(program)?.as_bytes(),
        0o644,
    )?;
    let licence = process::root().join("LICENSE");
    put(
        &root,
        "usr/share/doc/provost/copyright",
        &std::fs::read(&licence).context(licence.display())?,
        0o644,
    )?;
    let installed = binary.len() / 1024;
    let control = format!(
        "Package: provost\nVersion: {}\nArchitecture: {}\nMaintainer: Provost <security@provost.dev>\nInstalled-Size: {installed}\n\
         Depends: libc6 (>= {}), libgcc-s1, passwd\nRecommends: ca-certificates\nSection: admin\nPriority: optional\n\
         Homepage: https://github.com/provost-dev/provost\nDescription: control plane for an organization's use of AI\n \
         Decides who may use which model, MCP server, tool, skill and data source, and proves\n what happened.\n",
        program.version, program.machine.debian, program.libc
    );
    put(&root, "DEBIAN/control", control.as_bytes(), 0o644)?;
    put(&root, "DEBIAN/conffiles", b"/etc/provost/provost.toml\n", 0o644)?;
    for script in ["postinst", "prerm", "postrm"] {
        put(
            &root,
            &format!("DEBIAN/{script}"),
            &packaging(&format!("debian/{script}"))?,
            0o755,
        )?;
    }
    let package = out.join(format!(
        "provost_{}_{}.deb",
        program.version, program.machine.debian
    ));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&root)
        .arg(&package);
    process::output(&mut build)?;
    Ok(package)
}

/// The manual page: what the program says of itself, in the form of manual pages.
fn manual(program: &Program) -> Outcome<String> {
    let escaped = |text: &str| {
        let text = text.replace('\\', "\\e").replace('-', "\\-");
        let line = |line: &str| {
            // A line that begins with one of these would be an order.
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            format!("{guard}{line}")
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    };
    let mut page = format!(
        ".TH PROVOST 1 \"\" \"provost {}\" \"Provost\"\n.SH NAME\nprovost \\- control plane for an organization's use of AI\n",
        escaped(&program.version)
    );
    let mut section = |title: &str, text: &str| {
        write!(page, ".SH {title}\n.nf\n{}\n.fi\n", escaped(text)).unwrap_or_default();
    };
    section("DESCRIPTION", program.says(&["--help"])?.trim());
    section("THE SERVER", program.says(&["serve", "--help"])?.trim());
    section(
        "FILES",
        "/etc/provost/provost.toml   the configuration\n/var/lib/provost            the data\n\
         /var/lib/provost-keys       the keys, and the token of the first admin\n\
         /var/backups/provost        the backups of provost-backup.timer, which nobody starts but you",
    );
    Ok(page)
}

fn npm(program: &Program, stage: &Path, out: &Path) -> Outcome<PathBuf> {
    process::find_or_install("npm")?;
    let folder = stage.join("npm");
    let binary = std::fs::read(&program.binary).context(program.binary.display())?;
    put(&folder, "bin/provost", &binary, 0o755)?;
    let described = serde_json::json!({
        "name": "provost", "version": program.version, "license": "Apache-2.0",
        "description": "Control plane for an organization's use of AI: the program as one binary",
        "repository": { "type": "git", "url": "git+https://github.com/provost-dev/provost.git" },
        "bin": { "provost": "bin/provost" }, "files": ["bin/provost"],
        "os": ["linux"], "cpu": [program.machine.npm], "libc": ["glibc"],
    });
    let described = serde_json::to_vec_pretty(&described).context("cannot describe the package")?;
    put(&folder, "package.json", &described, 0o644)?;
    let readme = "# Provost\n\nThe program `provost`: server, command line and MCP bridge.\n";
    put(&folder, "README.md", readme.as_bytes(), 0o644)?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--ignore-scripts", "--pack-destination"])
        .arg(out)
        .current_dir(&folder);
    let name = process::output(&mut pack)?;
    Ok(out.join(name.trim()))
}
