//! The flags that say which server, organization and token a command uses, and in which form it answers.

use super::connection::DEFAULT_URL;
use super::flags::file_arg;
use super::jq::jq_arg;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ValueHint, value_parser};
use std::path::PathBuf;

const HEADING: &str = "Connection and output";

/// Returns the flags that say it, for every command that talks to a server.
pub(super) fn args() -> Vec<Arg> {
    let args = [
        Arg::new("global.url")
            .long("url")
            .env("PROVOST_URL")
            .hide_env_values(true)
            .value_name("URL")
            .value_hint(ValueHint::Url)
            .help(format!("The server [profile, else {DEFAULT_URL}]")),
        Arg::new("global.organization")
            .long("organization")
            .env("PROVOST_ORGANIZATION")
            .value_name("KEY")
            .help("The organization's key [or profile]"),
        file_arg("global.token-file", "token-file")
            .help("Reads the token from a file [else PROVOST_TOKEN or PROVOST_TOKEN_FILE, else the profile; never a flag]"),
        file_arg("global.ca-cert", "ca-cert")
            .help("Trusts these certificates (PEM) instead of the system's [else PROVOST_CA_CERT]"),
        Arg::new("global.allow-plain-http")
            .long("allow-plain-http")
            .action(ArgAction::SetTrue)
            .help("Sends the token unencrypted to a host that is not this machine"),
        Arg::new("global.timeout")
            .long("timeout")
            .value_name("SECONDS")
            .default_value("60")
            .value_parser(value_parser!(u64).range(1..=3600))
            .help("Gives up on one request after this time, its repetitions and the waits between them included"),
        Arg::new("global.retries")
            .long("retries")
            .value_name("N")
            .default_value("4")
            .value_parser(value_parser!(u32).range(0..=20))
            .help("Sends the same request again this often when the answer is lost, 429 or 503"),
        Arg::new("global.quiet")
            .short('q')
            .long("quiet")
            .action(ArgAction::SetTrue)
            .help("No notes and no progress on standard error"),
    ];
    args.into_iter()
        .chain(profile_args())
        .chain([output_arg(), jq_arg()])
        .map(|arg| arg.help_heading(HEADING))
        .collect()
}

/// Returns the flags that choose a profile.
fn profile_args() -> Vec<Arg> {
    vec![
        Arg::new("global.profile")
            .long("profile")
            .env("PROVOST_PROFILE")
            .value_name("NAME")
            .help("Takes server, organization and token from this profile"),
        profile_file_arg(),
    ]
}

/// Returns the flag that names the profile file.
pub(super) fn profile_file_arg() -> Arg {
    Arg::new("global.profile-file")
        .long("profile-file")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
        .help("The profile file [default: $XDG_CONFIG_HOME/provost/profiles.toml]")
}

/// Returns the flag for the form of the answer.
pub fn output_arg() -> Arg {
    Arg::new("global.output")
        .short('o')
        .long("output")
        .value_name("FORM")
        .value_parser(PossibleValuesParser::new(["table", "yaml", "json", "jsonl"]))
        .help("The form of the answer [default: table on a terminal, else json]")
}

/// Returns the flag for the form of a list.
pub fn list_output_arg() -> Arg {
    output_arg()
        .value_parser(PossibleValuesParser::new([
            "table", "wide", "csv", "yaml", "json", "jsonl",
        ]))
        .help_heading(HEADING)
}
