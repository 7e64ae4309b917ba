//! `provost skills publish`: a folder or an archive becomes a version in the registry.

use super::receipt::cannot;
use crate::cli::{
    Client, Confirm, Consent, Exit, Failure, Form, Printer, Progress, Terminal, connection_args,
    consent_args, counted,
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
             kept, whatever it came from. Content that is published already makes no new version.\n\n\
             The registry's name is that of SKILL.md if it is 1 to 64 of a-z, 0-9 and -, else the folder's, else --name. \
             Events and policies that say any of them mean the skill.",
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
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .help("The name in the registry, where neither that of SKILL.md nor the folder's fits"),
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
    let package = read(from, matches.get_one::<String>("name").map(String::as_str))?;
    let consent = Consent::of(matches, terminal, Confirm::Absent)?;
    let archive = package.to_archive();
    let mut query: Vec<(&str, &str)> = ["namespace", "version"]
        .into_iter()
        .filter_map(|name| Some((name, matches.get_one::<String>(name)?.as_str())))
        .collect();
    // The archive's folder has the name of the registry; the server must know what it was.
    let folder = package.names().folder.as_deref();
    query.extend(
        folder
            .filter(|folder| *folder != package.manifest().name)
            .map(|folder| ("folder", folder)),
    );
    let mut progress = Progress::start(terminal, client.quiet, "bytes");
    let manifest = package.manifest();
    let (name, files, bytes) = (&manifest.name, manifest.files.len(), archive.len());
    progress.say(&format!(
        "sending {name}: {}, {bytes} bytes",
        counted(files, "files")
    ));
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
    // Those of the package are known here as well, and those of an older server are none.
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    let told: Vec<&str> = warnings.filter_map(Value::as_str).collect();
    let own = package.warnings().iter().map(String::as_str);
    let own = own.filter(|warning| !told.contains(warning));
    for warning in own.chain(told.iter().copied()) {
        client.terminal.note(&format!("warning: {warning}"));
    }
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

fn read(from: &Path, name: Option<&str>) -> Result<Package, Failure> {
    let read = if from.is_dir() {
        Package::from_folder_named(from, name)
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
        Package::from_archive_named(media_type, &bytes, name)
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
