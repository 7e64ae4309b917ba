//! `provost config`: what is in effect, and what the file may hold.

use super::failure::{Failure, Outcome};
use super::show;
use super::store_flags::StoreFlags;
use crate::config::{self, Config, Environment};
use std::fmt::Write;

/// Print the configuration that is in effect, and say what is wrong with it.
///
/// What is shown is the file with the PROVOST_… environment and the flags laid over it. Secrets are not shown.
#[derive(clap::Parser)]
#[command(
    name = "check",
    after_help = "Examples:
  provost config check
  provost config check --config /etc/provost/provost.toml"
)]
pub struct Check {
    #[command(flatten)]
    store: StoreFlags,
}

impl Check {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        let config = self.store.load()?;
        config.check()?;
        config.http.tls()?.check()?;
        config.store.location()?;
        if let Some(sentence) = config.http.unnamed_proxy() {
            return Err(Failure::usage(sentence));
        }
        if let Some(sentence) = Environment::of_process().unread() {
            show::note(&format!("warning: {sentence}"));
        }
        show::out(&shown(&config)?)
    }
}

/// Print the JSON Schema of the configuration file.
#[derive(clap::Parser)]
#[command(
    name = "schema",
    after_help = "Example:
  provost config schema > provost.schema.json"
)]
pub struct Schema {}

impl Schema {
    /// Runs the command.
    pub fn run() -> Outcome {
        show::out(&format!("{:#}\n", config::schema()))
    }
}

/// JSON's strings, numbers, booleans and lists of strings read the same in TOML.
fn shown(config: &Config) -> Result<String, Failure> {
    let unreadable =
        |error: serde_json::Error| Failure::new(format!("the configuration cannot be shown: {error}"));
    let sections = serde_json::to_value(config).map_err(unreadable)?;
    let mut text = String::new();
    for (name, section) in sections.as_object().into_iter().flatten() {
        if let Some(items) = section.as_array() {
            for item in items {
                let _ = writeln!(text, "[[{name}]]");
                write_keys(&mut text, item);
                text.push('\n');
            }
            continue;
        }
        let _ = writeln!(text, "[{name}]");
        write_keys(&mut text, section);
        if name == "store" && config.store.database_url.is_some() {
            text.push_str("# database_url = …  (from PROVOST_DATABASE_URL or --database-url)\n");
        }
        text.push('\n');
    }
    text.pop();
    Ok(text)
}

fn write_keys(text: &mut String, section: &serde_json::Value) {
    let keys = section.as_object().into_iter().flatten();
    for (key, value) in keys.filter(|(_, value)| !value.is_null()) {
        let _ = match value.as_object() {
            Some(table) => {
                let pairs: Vec<String> = table
                    .iter()
                    .map(|(key, value)| format!("{} = {value}", serde_json::Value::from(key.as_str())))
                    .collect();
                writeln!(text, "{key} = {{ {} }}", pairs.join(", "))
            }
            None => writeln!(text, "{key} = {value}"),
        };
    }
}
