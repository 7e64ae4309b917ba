//! A wheel that holds the program alone, as a script of the environment that it is installed into.
//!
//! Source: the binary distribution format of packaging.python.org.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::Program;
use crate::failure::{Context, Outcome};

/// Writes the wheel and returns where it is.
pub fn write(program: &Program, out: &Path) -> Outcome<PathBuf> {
    let tag = format!(
        "py3-none-manylinux_{}_{}",
        program.libc.replace('.', "_"),
        program.machine.python
    );
    let path = out.join(format!("provost-{}-{tag}.whl", program.version));
    let named = format!("provost-{}", program.version);
    let binary = std::fs::read(&program.binary).context(program.binary.display())?;
    let metadata = format!(
        "Metadata-Version: 2.1\nName: provost\nVersion: {}\nSummary: Control plane for an organization's use of AI: the program as one \
         binary\nLicense: Apache-2.0\nRequires-Python: >=3.8\n",
        program.version
    );
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: cargo xtask dist\nRoot-Is-Purelib: false\nTag: {tag}\n");
    let files = [
        (format!("{named}.data/scripts/provost"), binary, 0o755),
        (
            format!("{named}.dist-info/METADATA"),
            metadata.into_bytes(),
            0o644,
        ),
        (format!("{named}.dist-info/WHEEL"), wheel.into_bytes(), 0o644),
    ];
    let file = File::create(&path).context(path.display())?;
    let mut archive = ZipWriter::new(file);
    let mut record = String::new();
    for (name, bytes, mode) in &files {
        writeln!(record, "{name},sha256={},{}", digest(bytes)?, bytes.len()).unwrap_or_default();
        add(&mut archive, name, bytes, *mode)?;
    }
    let own = format!("{named}.dist-info/RECORD");
    writeln!(record, "{own},,").unwrap_or_default();
    add(&mut archive, &own, record.as_bytes(), 0o644)?;
    archive.finish().context(path.display())?;
    Ok(path)
}

fn add(archive: &mut ZipWriter<File>, name: &str, bytes: &[u8], mode: u32) -> Outcome {
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .unix_permissions(mode);
    archive
        .start_file(name, options)
        .context(format_args!("cannot add {name}"))?;
    archive
        .write_all(bytes)
        .context(format_args!("cannot write {name}"))
}

/// The SHA-256 of some bytes, as records of wheels have it.
fn digest(bytes: &[u8]) -> Outcome<String> {
    let hex = provost_words::digest::sha256_hex(bytes);
    let pairs = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
    let bytes: Vec<u8> = pairs
        .collect::<Result<_, _>>()
        .context("a digest is hexadecimal")?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
