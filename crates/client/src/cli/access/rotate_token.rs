//! `provost token rotate --in-place`: replaces the own token where it lies, in the profile or in the token file.
//!
//! Keeps CL-2, CL-6.

use super::super::connection::{self, Connection, TokenSource, profile_path};
use super::super::draft::target;
use super::super::failure::{Exit, Failure};
use super::super::instant::duration_secs;
use super::super::own::{CommandFuture, HandCommand};
use super::super::print::parsed;
use super::super::profile::Profiles;
use super::super::secret_file;
use super::super::send::Sender;
use super::super::server::{Call, Server};
use super::super::terminal::Terminal;
use super::super::whole_file::replace_file_of;
use super::identity::Identity;
use super::rotation_note::{NoteFile, Rotation};
use super::whoami::ends;
use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use http::{HeaderMap, Method};
use provost_words::Secret;
use provost_words::time::Timestamp;
use provost_words::url::{BASE, encoded};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

pub(super) const COMMAND: HandCommand = HandCommand {
    group: "token",
    verb: "rotate",
    command,
    examples: &[
        "provost token rotate --in-place",
        "PROVOST_TOKEN_FILE=/etc/ci/token provost token rotate --in-place --if-older-than 20d   # daily, by a timer",
    ],
    run: |matches, terminal| -> CommandFuture<'_> { Box::pin(run(matches, terminal)) },
};

fn command() -> Command {
    Command::new("rotate")
        .about("Replaces the own token where it lies: in the profile, or in the token file")
        .long_about(
            "Asks the server for a new token in the place of the one that the command comes with, and writes it where that one \
             lies, as a whole. The key of the request is written down before it is sent: when the answer is lost, the same \
             command asks again under the same key and gets the same token.\n\nNeeds the scope service_accounts:rotate_self. \
             The old token still works for an hour, unless --grace-period-seconds says another time; a lost answer can be asked for until ten minutes after its end.",
        )
        .arg(
            Arg::new("in-place")
                .long("in-place")
                .action(ArgAction::SetTrue)
                .required(true)
                .help("Writes the new token over the old one, and shows it nowhere"),
        )
        .arg(
            Arg::new("if-older-than")
                .long("if-older-than")
                .value_name("DURATION")
                .value_parser(duration_secs)
                .help("Does nothing while the token is younger: 20d, 12h"),
        )
        .arg(
            Arg::new("grace-period-seconds")
                .long("grace-period-seconds")
                .value_name("N")
                .value_parser(value_parser!(i64).range(0..=604_800))
                .default_value("3600")
                .help("How long the old token still works, for who holds it in memory and for a lost answer"),
        )
        .arg(
            Arg::new("global.reason")
                .long("reason")
                .value_name("TEXT")
                .value_parser(NonEmptyStringValueParser::new())
                .default_value("rotated in place by its holder")
                .help("Why; goes into the audit log (1 to 500 characters)"),
        )
        .args(connection::args())
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let connection = Connection::resolve_unbound(matches, terminal)?;
    let quiet = matches.get_flag("global.quiet");
    let holder = Holder::of(&connection, matches, terminal)?;
    let note = holder.note();
    let rotation = match note.of(&connection.token, &connection.place.url)? {
        Some(rotation) => {
            if !quiet {
                terminal.note("an earlier rotation of this token was interrupted; asking for its answer");
            }
            rotation
        }
        None => match begin(&connection, matches, terminal, quiet).await? {
            Some(rotation) => rotation,
            None => return Ok(()),
        },
    };
    note.write(&rotation)?;
    let answer = ask(&connection, &rotation, (terminal, quiet)).await;
    let mut answer = answer.inspect_err(|failure| {
        // What the server refused was not done; only an unknown outcome is worth the note.
        if matches!(
            failure.exit,
            Exit::Refused | Exit::Forbidden | Exit::NotFound | Exit::Conflict
        ) {
            note.remove();
        }
    })?;
    let Some(token) = secret_file::take(&mut answer) else {
        note.remove();
        let account = &rotation.service_account_id;
        let line = "the server does not show the new token any more";
        return Err(Failure::new(Exit::Conflict, line).and(format!(
            "somebody with the scope service_accounts:rotate makes another one: provost service-accounts rotate {account}"
        )));
    };
    holder.replace(&connection.token, &token).map_err(|failure| {
        failure.and("the new token exists: repeat the command before the old token ends, to write it")
    })?;
    note.remove();
    if !quiet {
        let text = |pointer: &str| {
            answer
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let ends = Timestamp::parse(text("/token/expiresAt")).map(|at| ends(at, terminal));
        terminal.note(&format!(
            "rotated: the token {} is in {}{}",
            text("/token/id"),
            connection.token_source,
            ends.unwrap_or_default()
        ));
    }
    Ok(())
}

/// Asks whose the token is, and whether it is time; nothing when it is not.
async fn begin(
    connection: &Connection,
    matches: &ArgMatches,
    terminal: &Terminal,
    quiet: bool,
) -> Result<Option<Rotation>, Failure> {
    let identity = Identity::ask(connection, terminal, quiet).await?;
    if !identity.is_own_token() {
        return Err(Failure::usage(format!(
            "this token is one of a session of {}; only the own token of a service account is rotated",
            identity.who()
        )));
    }
    if let Some(age) = matches.get_one::<i64>("if-older-than") {
        let issued = identity.issued_at().ok_or_else(|| {
            Failure::usage("the server does not say when the token was issued: leave out --if-older-than")
        })?;
        if issued.plus_secs(*age) > terminal.clock.now() {
            if !quiet {
                terminal.note(&format!(
                    "nothing to do: the token was issued at {}",
                    issued.to_rfc3339()
                ));
            }
            return Ok(None);
        }
    }
    let reason = matches
        .get_one::<String>("global.reason")
        .map_or("", String::as_str);
    let grace = matches.get_one::<i64>("grace-period-seconds").copied();
    let place = (
        connection.place.url.as_str(),
        identity.organization.as_str(),
        identity.id(),
    );
    Ok(Some(Rotation::begin(&connection.token, place, reason, grace)))
}

async fn ask(
    connection: &Connection,
    rotation: &Rotation,
    (terminal, quiet): (&Terminal, bool),
) -> Result<Value, Failure> {
    let path = BASE.replacen(
        "{organizationId}",
        &encoded(&rotation.organization).to_string(),
        1,
    );
    let account = encoded(&rotation.service_account_id);
    let mut body = json!({ "reason": rotation.reason, "idempotencyKey": rotation.idempotency_key });
    if let Some(grace) = rotation.grace_period_seconds {
        body["gracePeriodSeconds"] = grace.into();
    }
    let call = Call {
        method: Method::POST,
        target: target(&format!("{path}/service-accounts/{account}/tokens"), &[]),
        headers: HeaderMap::new(),
        body: Some(body.to_string().into()),
        is_download: false,
    };
    let server = Server::new(connection)?;
    let sender = Sender {
        server: &server,
        terminal,
        retries: connection.place.retries,
        quiet,
        repeat: Some("the key that is written down beside the token".to_owned()),
        unmodified: false,
        weighs: false,
    };
    let reply = sender.send(&call).await;
    let reply = reply.map_err(|failure| super::super::advice::about_access(failure, connection))?;
    parsed(&reply)
}

/// What holds the token.
enum Holder {
    File(PathBuf),
    Profile { file: PathBuf, name: String },
}

impl Holder {
    /// Errors: usage, when the token lies where nothing can be written.
    fn of(connection: &Connection, matches: &ArgMatches, terminal: &Terminal) -> Result<Self, Failure> {
        match &connection.token_source {
            // Behind a link lies the file that is to be replaced.
            TokenSource::File(path) => {
                Ok(Self::File(fs::canonicalize(path).map_err(|error| {
                    Failure::usage(format!("cannot find {}: {error}", path.display()))
                })?))
            }
            TokenSource::Profile(name) => {
                let (file, _) = profile_path(matches, terminal)
                    .ok_or_else(|| Failure::usage("there is no home folder; say --profile-file FILE"))?;
                Ok(Self::Profile {
                    file,
                    name: name.clone(),
                })
            }
            TokenSource::SignIn { .. } => Err(Failure::usage(
                "a sign-in renews itself: there is nothing to rotate",
            )),
            TokenSource::Variable | TokenSource::Typed => {
                let line = "a token in PROVOST_TOKEN cannot be replaced from here";
                Err(Failure::usage(line)
                    .and("keep it in a file and name that: PROVOST_TOKEN_FILE, or `provost login`"))
            }
        }
    }

    fn note(&self) -> NoteFile {
        match self {
            Self::File(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                NoteFile::beside(path, &name)
            }
            Self::Profile { file, name } => NoteFile::beside(file, &format!("profile-{name}")),
        }
    }

    /// Puts the new token where the old one lies.
    ///
    /// Errors: output, when it cannot be written; conflict, when somebody else replaced it meanwhile.
    fn replace(&self, old: &Secret<String>, new: &Secret<String>) -> Result<(), Failure> {
        match self {
            Self::File(path) => {
                let line = Secret::new(format!("{}\n", new.expose()));
                let replaced = replace_like(path, line.expose().as_bytes());
                replaced.map_err(|error| {
                    Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display()))
                })
            }
            Self::Profile { file, name } => {
                // Read anew: another command may have changed another profile.
                let _lock = Profiles::lock(file)?;
                let mut profiles = Profiles::load(file)?.unwrap_or_default();
                let profile = profiles.by_name.get_mut(name);
                let is_old = |token: &Secret<String>| token.expose().trim_ascii() == old.expose();
                let Some(profile) = profile.filter(|profile| profile.token.as_ref().is_some_and(is_old))
                else {
                    let line = format!("the profile {name} got another token meanwhile, which stays");
                    return Err(Failure::new(Exit::Conflict, line));
                };
                profile.token = Some(new.clone());
                profiles.save(file).map_err(|error| {
                    Failure::new(Exit::Output, format!("cannot write {}: {error}", file.display()))
                })
            }
        }
    }
}

/// Replaces a file by one of the same owner and the same permissions.
fn replace_like(path: &PathBuf, bytes: &[u8]) -> io::Result<()> {
    let before = fs::metadata(path)?;
    // Whoever runs this for another user, as root does, must leave a file that the other can read.
    let owner = (before.uid(), before.gid());
    replace_file_of(path, bytes, before.mode() & 0o777, Some(owner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_file_keeps_its_permissions() {
        let folder = std::env::temp_dir().join(format!("provost-rotate-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("token");
        fs::write(&path, "old\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace_like(&path, b"new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// As root does it for another account.
    #[test]
    fn a_token_file_keeps_its_owner_and_what_a_link_in_its_place_names_keeps_its_own() {
        // Only root can give files away; as another account there is nothing to try.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = std::env::temp_dir().join(format!("provost-rotate-owner-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, other) = (folder.join("token"), folder.join("other"));
        fs::write(&path, "old\n").unwrap();
        fs::write(&other, "other\n").unwrap();
        let file = fs::File::open(&path).unwrap();
        std::os::unix::fs::fchown(&file, Some(12_345), Some(12_346)).unwrap();
        replace_like(&path, b"new\n").unwrap();
        let owner = |path: &PathBuf| {
            let found = fs::symlink_metadata(path).unwrap();
            (found.is_file(), found.uid(), found.gid())
        };
        assert_eq!(owner(&path), (true, 12_345, 12_346));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        replace_file_of(&path, b"new\n", 0o600, Some((12_345, 12_346))).unwrap();
        assert_eq!(owner(&path), (true, 12_345, 12_346));
        assert_eq!(owner(&other), (true, 0, 0));
        assert_eq!(fs::read_to_string(&other).unwrap(), "other\n");
        fs::remove_dir_all(&folder).unwrap();
    }
}
