//! `provost skills install`: from the registry to the client's place.

use super::receipt::{Receipt, Receipts, State, cannot};
use super::reference::{self, Reference};
use super::signed::Listing;
use super::skill_folder::{self, SkillFolder};
use crate::cli::{
    Client, Confirm, Consent, Exit, Failure, Form, Printer, Terminal, TrustedKeys, connection_args,
    consent_args, trust_args,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use provost_skill_package::{MEDIA_TYPES, Package};
use provost_words::Secret;
use provost_words::dsse::SignedKind;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::path::PathBuf;

pub fn command() -> Command {
    Command::new("install")
        .about("Install a skill of the registry on this machine, or update it")
        .long_about(
            "Install a skill of the registry on this machine, or update it.\n\n\
             What arrives is checked against the signature of the registry's key, which is pinned at the first \
             contact or given by --trust-key. A folder that this command did not write is never replaced, and one \
             whose files were changed only with --force. Files that others put into the folder stay.\n\n\
             A receipt of what was written stands in the folder skills beside the profiles, and the gateway token \
             of the install in a file beside it that is yours alone.",
        )
        .arg(reference::arg().required(true))
        .args(skill_folder::args())
        .arg(
            Arg::new("version")
                .long("version")
                .value_name("VERSION")
                .help("The version, instead of @VERSION behind the name [default: the latest]"),
        )
        .arg(
            Arg::new("force")
                .long("force")
                .action(ArgAction::SetTrue)
                .help("Replaces files of an earlier install that were changed since"),
        )
        .args(trust_args())
        .args(consent_args())
        .args(connection_args())
}

/// The answer of `cli-install`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstallAnswer {
    install: Install,
    version: Version,
    gateway_token: GatewayToken,
    envelope: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Install {
    #[serde(rename = "installId")]
    id: String,
    item_id: String,
    r#ref: String,
    updated_at: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    digest: String,
}

#[derive(Deserialize)]
struct GatewayToken {
    #[serde(deserialize_with = "secret")]
    token: Secret<String>,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret<String>, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let wanted = wanted(matches)?;
    let name = match &wanted.name {
        Some(name) => name.clone(),
        None => name_of(&client, &wanted).await?,
    };
    let receipts = Receipts::change(matches, terminal)?;
    let place = SkillFolder::chosen(matches, terminal, &name)?;
    let before = receipts.at(&place)?;
    judge(
        &place,
        before.as_ref(),
        &wanted,
        &client,
        matches.get_flag("force"),
    )?;
    let consent = Consent::of(matches, terminal, Confirm::Absent)?;
    let mut trusted = TrustedKeys::of(&client, matches)?;

    let client_name = matches.get_one::<String>("client").cloned().unwrap_or_default();
    let device = receipts.device()?;
    let body = json!({ "client": client_name, "device": device, "path": place.folder });
    let path = ["skill-registry", &wanted.segment(), "cli-install"];
    let answer = client.send_json(Method::POST, &path, &body, &consent).await?;
    let installed: InstallAnswer = serde_json::from_value(answer)
        .map_err(|error| Failure::new(Exit::ServerFault, format!("the answer is no install: {error}")))?;
    let mut receipt = Receipt {
        name,
        client: client_name,
        device,
        path: place.folder.clone(),
        previous: before.map(|before| before.known()).unwrap_or_default(),
        ..begun(&client, &installed)
    };
    // INVARIANT SL-3: the receipt is there before the first file.
    receipts.save(&receipt)?;
    let token_file = receipts.keep_token(&receipt, &installed.gateway_token.token)?;
    let done = fetch(&client, &wanted, &installed, &mut trusted).await;
    let (listing, package) = done.map_err(|failure| {
        let again =
            "nothing was written; repeat the command, or give the install back: provost skills uninstall";
        failure.and(format!("{again} {}", receipt.item_ref))
    })?;
    must_fit(&place, &receipt, &listing)?;
    receipt.files.clone_from(&listing.files);
    receipt.envelope = installed.envelope;
    receipts.save(&receipt)?;
    place.replace(&package, &receipt.known()).map_err(|error| {
        cannot("write", &place.folder, &error).and("repeat the command; it goes on where this one ended")
    })?;
    receipt.state = State::Installed;
    receipt.previous.clear();
    receipts.save(&receipt)?;
    client.note(&format!(
        "installed {}@{} in {}",
        receipt.item_ref,
        receipt.version,
        receipt.path.display()
    ));
    let shown = json!({
        "ref": receipt.item_ref,
        "version": receipt.version,
        "digest": receipt.digest,
        "path": receipt.path,
        "files": receipt.files.len(),
        "installId": receipt.install_id,
        "tokenFile": token_file,
    });
    Printer {
        form: Form::chosen(matches, terminal),
        terminal,
        quiet: client.quiet,
    }
    .object(&shown)?;
    Ok(())
}

/// Returns a receipt of what the server says; the place is still to be said.
fn begun(client: &Client<'_>, installed: &InstallAnswer) -> Receipt {
    Receipt {
        state: State::Installing,
        server: client.url().to_owned(),
        organization: client.organization().to_owned(),
        item_id: installed.install.item_id.clone(),
        item_ref: installed.install.r#ref.clone(),
        name: String::new(),
        version: installed.version.version.clone(),
        digest: installed.version.digest.clone(),
        client: String::new(),
        device: String::new(),
        path: PathBuf::new(),
        install_id: installed.install.id.clone(),
        installed_at: installed.install.updated_at.clone(),
        // Nothing that was not checked may say which files are ours.
        files: Vec::new(),
        previous: Vec::new(),
        envelope: Value::Null,
    }
}

fn wanted(matches: &ArgMatches) -> Result<Reference, Failure> {
    let mut wanted = Reference::of(matches)?.ok_or_else(|| Failure::usage("say which skill"))?;
    if let Some(version) = matches.get_one::<String>("version") {
        if wanted.version.as_ref().is_some_and(|said| said != version) {
            return Err(Failure::usage("REF names another version than --version"));
        }
        if wanted.name.is_none() {
            return Err(Failure::usage("an id takes no version; name the skill instead"));
        }
        wanted.version = Some(version.clone());
    }
    Ok(wanted)
}

/// Asks what the item behind an id is called; the place depends on it.
async fn name_of(client: &Client<'_>, wanted: &Reference) -> Result<String, Failure> {
    let item = client.get_json(&["skill-registry", &wanted.item], &[]).await?;
    let name = item.pointer("/item/name").and_then(Value::as_str);
    name.filter(|name| provost_skill_package::is_valid_name(name))
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(Exit::ServerFault, "the server's item has no name"))
}

// INVARIANT SL-1: judged before the server is asked for anything.
fn judge(
    place: &SkillFolder,
    before: Option<&Receipt>,
    wanted: &Reference,
    client: &Client<'_>,
    force: bool,
) -> Result<(), Failure> {
    let shown = place.folder.display();
    let Some(before) = before else {
        if place.is_taken() {
            let line = format!("{shown} is there and was not installed by this program; it stays as it is");
            return Err(
                Failure::new(Exit::Conflict, line).and("move it away, or say another folder: --into FOLDER")
            );
        }
        return Ok(());
    };
    let any_version = Reference {
        version: None,
        ..wanted.clone()
    };
    let is_here = before.server == client.url() && before.organization == client.organization();
    if !any_version.names(before) || !is_here {
        let line = format!(
            "{shown} belongs to {} of {} at {}",
            before.item_ref, before.organization, before.server
        );
        return Err(Failure::new(Exit::Conflict, line).and("uninstall that one first"));
    }
    let known = before.known();
    let sight = place
        .settle(&known)
        .and_then(|()| place.survey(&known))
        .map_err(|error| cannot("read", &place.folder, &error))?;
    if sight.changed.is_empty() || force {
        return Ok(());
    }
    let line = format!("files in {shown} were changed since they were installed");
    let failure = Failure::new(Exit::Conflict, line);
    let failure = sight
        .changed
        .iter()
        .fold(failure, |failure, path| failure.and(format!("changed: {path}")));
    Err(failure.and("say --force to replace them, or keep a copy elsewhere first"))
}

/// Refuses a version that has a file where somebody else's file lies.
// INVARIANT SL-1: not even with --force; nobody could get that file back.
pub fn must_fit(place: &SkillFolder, receipt: &Receipt, listing: &Listing) -> Result<(), Failure> {
    let sight = place
        .survey(&receipt.previous)
        .map_err(|error| cannot("read", &place.folder, &error))?;
    let meets = |foreign: &&String| {
        let below = |path: &str, folder: &str| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let mut files = listing.files.iter().map(|file| file.path.as_str());
        files.any(|path| path == foreign.as_str() || below(path, foreign) || below(foreign, path))
    };
    let Some(foreign) = sight.foreign.iter().find(meets) else {
        return Ok(());
    };
    let there = place.folder.join(foreign);
    let line = format!(
        "{} was not written by this program, and {}@{} has a file in its place",
        there.display(),
        receipt.item_ref,
        receipt.version
    );
    Err(Failure::new(Exit::Conflict, line).and("nothing was written; move it away and repeat the command"))
}

/// Returns the checked listing and the package that it lists.
async fn fetch(
    client: &Client<'_>,
    wanted: &Reference,
    installed: &InstallAnswer,
    trusted: &mut TrustedKeys,
) -> Result<(Listing, Package), Failure> {
    let payload = trusted
        .open(client, &installed.envelope, SignedKind::Skill)
        .await?;
    let listing = Listing::read(&payload)?;
    // INVARIANT SL-2: in this order; the archive is read only to be compared with what was signed.
    listing.must_answer(wanted, client.organization())?;
    let version = format!("{}@{}", listing.item_ref(), listing.version);
    let token = Some(&installed.gateway_token.token);
    let bytes = client
        .get_bytes(&["skill-registry", &version, "content"], &[], token)
        .await
        .map_err(about_the_gateway_token)?;
    let package = checked(&bytes, &listing)?;
    Ok((listing, package))
}

/// Returns the package of an archive, which is the one that was signed (SL-2).
///
/// Errors: conflict, when it is none or another one.
pub fn checked(archive: &[u8], listing: &Listing) -> Result<Package, Failure> {
    let package = Package::from_archive(MEDIA_TYPES[0], archive).map_err(|faults| {
        let failure = Failure::new(Exit::Conflict, "the archive of the server is no skill");
        faults.iter().fold(failure, |failure, fault| {
            failure.and(format!("{}: {}", fault.path, fault.message))
        })
    })?;
    let package = package.called(&listing.name);
    listing.must_list(package.manifest())?;
    Ok(package)
}

/// Says of a 401 whose token it was: the one of this install, not the one that the caller came with.
fn about_the_gateway_token(failure: Failure) -> Failure {
    if failure.status != Some(401) {
        return failure;
    }
    let line = "the server does not take the gateway token that it gave for this install";
    Failure {
        status: failure.status,
        ..Failure::new(failure.exit, line)
            .and("your own token is fine; somebody may have uninstalled the skill: install it again")
    }
}
