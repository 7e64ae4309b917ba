//! `provost skills publish`: a folder or an archive becomes a version in the registry.

use super::receipt::cannot;
use crate::cli::{
    Client, Confirm, Consent, Exit, Failure, Form, Printer, Progress, Terminal, connection_args, consent_args,
};
use bytes::Bytes;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use http::Method;
use provost_skill_package::{Fault, MAX_ARCHIVE_BYTES, Package};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub fn command() -> Command {
    Command::new("publish")
        .about("Publish a skill from a folder, a tar.gz or a zip")
        .long_about(
            "Publish a skill from a folder, a tar.gz or a zip.\n\n\
             It is checked here first, and every fault is told; then it travels in the one form in which skills are \
             kept, whatever it came from. Content that is published already makes no new version.",
        )
        .arg(
            Arg::new("from")
                .value_name("FOLDER|ARCHIVE")
                .required(true)
                .value_hint(ValueHint::AnyPath)
                .value_parser(value_parser!(PathBuf))
                .help("The skill: SKILL.md and what belongs to it"),
        )
        .arg(
            Arg::new("namespace")
                .long("namespace")
                .value_name("NAMESPACE")
                .help("Publishes as NAMESPACE/NAME: @team or io.example.team"),
        )
        .arg(
            Arg::new("version")
                .long("version")
                .value_name("VERSION")
                .help("The version, as 1.2.3 [default: the highest and one patch more, first 1.0.0]"),
        )
        .args(consent_args())
        .args(connection_args())
}

pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let from = matches
        .get_one::<PathBuf>("from")
        .ok_or_else(|| Failure::usage("say what to publish"))?;
    let package = read(from)?;
    let consent = Consent::of(matches, terminal, Confirm::Absent)?;
    let archive = package.to_archive();
    let query: Vec<(&str, &str)> = ["namespace", "version"]
        .into_iter()
        .filter_map(|name| Some((name, matches.get_one::<String>(name)?.as_str())))
        .collect();
    let mut progress = Progress::start(terminal, client.quiet, "bytes");
    let manifest = package.manifest();
    let (name, files, bytes) = (&manifest.name, manifest.files.len(), archive.len());
    progress.say(&format!("sending {name}: {files} files, {bytes} bytes"));
    let sent = ("application/gzip", Bytes::from(archive));
    let sent = client
        .send_content(Method::POST, &["skill-registry"], &query, sent, &consent)
        .await;
    progress.clear();
    let answer = sent?;
    let text = |pointer: &str| {
        let value = answer.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let (item, version) = (text("/item/ref"), text("/version/version"));
    client.note(&match answer["created"].as_bool() {
        Some(false) => format!("{item}@{version} has this content already; nothing is new"),
        _ => format!("published {item}@{version}"),
    });
    let shown = json!({
        "ref": item,
        "version": version,
        "created": answer["created"],
        "digest": text("/version/digest"),
        "files": files,
        "itemId": text("/item/id"),
        "publishedAt": text("/version/publishedAt"),
    });
    Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: client.quiet,
    }
    .object(&shown)?;
    Ok(())
}

fn read(from: &Path) -> Result<Package, Failure> {
    let read = if from.is_dir() {
        Package::from_folder(from)
    } else {
        let mut bytes = Vec::new();
        File::open(from)
            .and_then(|file| file.take(MAX_ARCHIVE_BYTES as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| cannot("read", from, &error))?;
        let media_type = match bytes.as_slice() {
            [0x1f, 0x8b, ..] => "application/gzip",
            [b'P', b'K', ..] => "application/zip",
            _ => {
                let line = format!("{} is no folder, no tar.gz and no zip", from.display());
                return Err(Failure::new(Exit::Conflict, line));
            }
        };
        Package::from_archive(media_type, &bytes)
    };
    read.map_err(|faults| told(from, &faults))
}

fn told(from: &Path, faults: &[Fault]) -> Failure {
    let line = format!(
        "{} is no skill that can be published; nothing was sent",
        from.display()
    );
    faults
        .iter()
        .fold(Failure::new(Exit::Conflict, line), |failure, fault| {
            let place = if fault.path.is_empty() {
                "the whole"
            } else {
                &fault.path
            };
            failure.and(format!("{place}: {}", fault.message))
        })
}
