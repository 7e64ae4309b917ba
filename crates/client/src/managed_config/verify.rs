//! `provost managed-config verify`: is FILE what was signed? Offline.

use super::applied_release::AppliedRelease;
use super::file::FileState;
use super::manifest::{Manifest, OnUnavailable};
use crate::cli::{Exit, Failure, Terminal, TrustedKeys, offline_trust_args};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use provost_words::Timestamp;
use provost_words::dsse::SignedKind;
use provost_words::time::{Clock, SystemClock};
use std::path::PathBuf;

/// A machine is out of contact after this many intervals, the same number after which the server would worry.
const INTERVALS: i64 = 3;

/// Returns the command.
pub fn command() -> Command {
    Command::new("verify")
        .about("Checks FILE against the signed release that was pulled last; asks no server")
        .long_about(
            "Checks FILE against the signed release that was pulled last; asks no server.\n\n\
             Exit code 0: FILE is the file that was signed, and may be used. 1: FILE is another one, or gone. \
             4: nothing was pulled into FILE. 5: the kept release is not signed by a trusted key. 6: the profile \
             says fail_closed, and the server has not confirmed the release for three poll intervals.",
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("The file that was pulled"),
        )
        .args(offline_trust_args())
}

/// Does it.
pub fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let Some(file) = matches.get_one::<PathBuf>("file") else {
        return Err(Failure::usage("say which file"));
    };
    let shown = file.display();
    let kept = AppliedRelease::load(file)?;
    let kept =
        kept.ok_or_else(|| Failure::new(Exit::NotFound, format!("nothing was pulled into {shown}")))?;
    let trusted = TrustedKeys::offline((&kept.url, &kept.organization), matches, terminal)?;
    let payload = trusted.verified(&kept.envelope, SignedKind::Release)?;
    let manifest = Manifest::checked(&payload, &kept.files)?;
    manifest.is_of(&kept.organization, &kept.profile_id)?;
    let is_it = match manifest.file("enforced") {
        Some(entry) => FileState::at(file)?.is(entry),
        None => false,
    };
    if !is_it {
        return Err(Failure::new(
            Exit::Refused,
            format!(
                "{shown} is not the file of version {} that was signed",
                manifest.version
            ),
        )
        .and("`provost managed-config pull` puts it back"));
    }
    if is_overdue(&manifest, &kept, SystemClock::new().now()) {
        return Err(overdue(&kept));
    }
    terminal.note(&format!(
        "{shown} is version {} of {}, confirmed at {}",
        manifest.version, manifest.profile_id, kept.confirmed_at
    ));
    Ok(())
}

/// Says whether a profile that fails closed was out of contact for too long.
pub fn is_overdue(manifest: &Manifest, kept: &AppliedRelease, now: Timestamp) -> bool {
    let secs = i64::try_from(kept.poll_interval_seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(INTERVALS);
    manifest.on_unavailable == OnUnavailable::FailClosed && kept.confirmed_at.plus_secs(secs) < now
}

/// Returns what is said of such a profile.
pub fn overdue(kept: &AppliedRelease) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!(
            "the profile fails closed and its server has confirmed the release last at {}",
            kept.confirmed_at
        ),
    )
}
