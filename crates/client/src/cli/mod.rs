//! The client commands: `provost <group> <verb>`, made at run time from what the OpenAPI document says (D13).
//!
//! The document is the only source: an operation that is declared has a command, with its parameters,
//! limits and rights in the help, and no line of code here. A write asks for its reason, carries a key under
//! which the server acts once, and is sent again under that key when the answer is lost.
//!
//! The token is never a flag: process lists and shell histories show flags.
//!
//! INVARIANT CL-1: a token is sent to the server it was given for, never after a redirect, and over an unencrypted
//! connection only to this machine or when `--allow-plain-http` is said.
//! INVARIANT CL-2: all attempts of one command carry the same idempotency key.
//! INVARIANT CL-3: nothing that a server answers can steer a terminal.

mod access;
mod advice;
mod api;
pub mod catalogue;
mod cell;
mod client;
mod column;
mod commands;
mod connection;
mod connection_flags;
mod consent;
mod content;
mod device;
mod draft;
mod environment;
mod export;
mod failure;
mod flags;
mod instant;
mod invoke;
mod jq;
mod kinds;
mod known;
mod layout;
mod members;
mod names;
mod own;
mod pages;
mod print;
mod profile;
mod profile_command;
mod progress;
mod proxy;
mod refusal;
mod relay;
mod schema;
mod secret_file;
mod send;
mod server;
mod sign_in;
mod table;
mod terminal;
mod trouble;
mod trust;
mod whole_file;
mod yaml;

pub use access::own as access_commands;
pub use access::{EnrolmentWish, OwnEnrolment};
pub use api::Api;
pub use cell::counted;
pub use client::{Answer, Client, Request, connection_args};
pub use column::Column;
pub use commands::{command_of, commands, fill};
pub(crate) use connection::{checked_token, refuse_plain, server_named};
pub use connection::{config_folder, list_output_arg, output_arg};
pub use consent::{Confirm, Consent, confirm_arg, consent_args, sha256_hex};
pub use device::{DeviceServer, enrolment_token};
pub use draft::body_of;
pub use failure::{EXIT_CODES, Exit, Failure};
pub use instant::of_http_date;
pub use invoke::lost_references;
pub use jq::{JqFilter, jq_arg, prepare as prepare_jq};
pub use known::{KnownWord, profiles as known_profiles, records as known_records};
pub use own::{CommandFuture, HandCommand, report};
pub use pages::Trail;
pub use print::{Form, Printer};
pub use profile_command::command as profile;
pub use progress::{Progress, per_second};
pub use provost_words::visible::{lines_visible, visible};
pub use relay::relay;
pub use table::plain as plain_table;
pub use terminal::{Prompt, Surroundings, Terminal};
pub(crate) use trust::Signer;
pub use trust::{TrustedKeys, offline_trust_args, trust_args};
pub use whole_file::replace_file;

use clap::ArgMatches;

/// The group that keeps names for servers and asks none.
pub const PROFILE: &str = "profile";

/// Does what an operation's command says, for a command that adds something to it.
///
/// Errors: usage, when there is no such operation; whatever the operation comes to.
pub async fn perform(
    api: &Api,
    (group, verb): (&str, &str),
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<(), Failure> {
    match api.find(group, verb) {
        Some(operation) => invoke::invoke(operation, matches, terminal).await,
        None => Err(Failure::usage(format!("there is no command {group} {verb}"))),
    }
}

/// Does what a command of [`commands`] says and returns the exit code of the process ([`EXIT_CODES`]).
///
/// `matches` are those of the group's command.
pub async fn run(api: &Api, group: &str, matches: &ArgMatches, terminal: &Terminal) -> u8 {
    let done = match matches.subcommand() {
        Some((_, own)) if group == PROFILE => {
            jq::prepare(own, terminal).and_then(|()| profile_command::run(matches, terminal))
        }
        Some((verb, matches)) => match jq::prepare(matches, terminal) {
            Ok(()) => perform(api, (group, verb), matches, terminal).await,
            Err(failure) => Err(failure),
        },
        None => Err(Failure::usage(format!("say what to do with {group}"))),
    };
    report(done, terminal)
}
