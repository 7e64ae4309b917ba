//! Which clients were served, for the page of what works with what.

use serde_json::Value;

use super::{Part, install};
use crate::compatibility::Table;
use crate::failure::{Context, Outcome};
use crate::process;

/// Client, way, revision and what it does.
pub type Row = [String; 4];

/// Pins what is built with Cargo.
pub const LOCK: &str = "Cargo.lock";

/// The parts that the table is made of.
const PARTS: [Part; 4] = [Part::Sdks, Part::Conformance, Part::SignIn, Part::Commands];

/// Keeps the table, when every part of it ran.
pub fn record(rows: &[Row], parts: &[Part], engines: &str) -> Outcome {
    if rows.is_empty() {
        return Ok(());
    }
    if !PARTS.iter().all(|part| parts.contains(part)) {
        let missing: Vec<&str> = PARTS
            .iter()
            .filter(|part| !parts.contains(part))
            .map(|part| part.word())
            .collect();
        println!(
            "the table of MCP clients is not recorded: it needs {} as well",
            missing.join(", ")
        );
        return Ok(());
    }
    let mut table = Table::new(
        "MCP clients",
        &["client", "over", "revision", "what it does"],
        &[&format!(
            "How: `cargo xtask clients sdks conformance sign-in commands --record`, with the store in {engines}. The clients run unmodified in \
             processes of their own against `/mcp` of a running server, or against `provost mcp` where they start a program. What \
             the conformance suite asks of a demonstration server alone is listed with its reason beside the task and must fail; an entry \
             that passes fails the task too. No model is asked."
        )],
    );
    for row in rows {
        if !table.rows.iter().any(|known| known == row) {
            table.rows.push(row.to_vec());
        }
    }
    table.write("mcp")
}

/// A package with the version that a file of the repository pins.
pub fn named(package: &str, file: &str) -> Outcome<String> {
    let path = match file {
        LOCK => process::root().join(LOCK),
        _ => install::sources().join(file),
    };
    let text = std::fs::read_to_string(&path).context(path.display())?;
    let of_npm = || {
        let pinned: Value = serde_json::from_str(&text).ok()?;
        Some(pinned["dependencies"][package].as_str()?.to_owned())
    };
    let of_python = || {
        let mut lines = text.lines();
        lines.find_map(|line| Some(line.strip_prefix(package)?.strip_prefix("==")?.to_owned()))
    };
    let of_cargo = || {
        let (_, rest) = text.split_once(&format!("name = \"{package}\"\nversion = \""))?;
        Some(rest.split('"').next()?.to_owned())
    };
    let version = match file {
        LOCK => of_cargo(),
        _ => of_npm().or_else(of_python),
    };
    let version = version.context(format_args!("{package} is not pinned"))?;
    Ok(format!("`{package}` {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_the_version_that_is_pinned() {
        for (package, file) in [
            ("@modelcontextprotocol/sdk", "package.json"),
            ("mcp", "python-1.txt"),
            ("rmcp", LOCK),
            ("@openai/codex", "commands/package.json"),
        ] {
            let named = named(package, file).unwrap();
            let version = named.rsplit(' ').next().unwrap();
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{named}");
        }
        assert!(super::named("nobody", "python-2.txt").is_err());
    }
}
