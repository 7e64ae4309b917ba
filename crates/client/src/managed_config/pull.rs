//! `provost managed-config pull`.

use super::applied_release::AppliedRelease;
use super::report::{MachineAccount, Target};
use super::round::Pull;
use crate::cli::sha256_hex;
use crate::cli::{Client, Exit, Failure, Form, Printer, Terminal, TrustedKeys, connection_args, trust_args};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use provost_words::entropy::{Entropy, SystemEntropy};
use provost_words::time::{Clock, SystemClock};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// LIMIT: the longest wait after a round that failed.
const RETRY_SECS: u64 = 60;

/// Returns the command.
pub fn command() -> Command {
    let file = |id: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .value_parser(value_parser!(PathBuf))
    };
    Command::new("pull")
        .about("Writes the profile's current release into a file, checked against its signature")
        .long_about(
            "Writes the profile's current release into a file, checked against its signature.\n\n\
             The file is replaced as a whole, never removed, and stays what it is when anything fails. A release \
             older than the last applied one is refused. A file that was changed on this machine is written \
             again, also from the kept copy when the server is away. What was applied is reported to the server.\n\n\
             Needs a service account with the role auditor and the scope managed_config:pull, and managed_config:read as well \
             where the profile is named by its name.",
        )
        .arg(
            Arg::new("profile")
                .long("profile")
                .value_name("ID|NAME")
                .required(true)
                .help("The profile of the managed configuration"),
        )
        .arg(file("to").required(true).help("The file that the managed client reads"))
        .arg(file("defaults-to").help("The file for the release's starting values"))
        .arg(
            Arg::new("once")
                .long("once")
                .action(ArgAction::SetTrue)
                .conflicts_with("watch")
                .help("Pulls once and ends [default]"),
        )
        .arg(
            Arg::new("watch")
                .long("watch")
                .action(ArgAction::SetTrue)
                .help("Pulls again and again until SIGTERM or Ctrl-C"),
        )
        .arg(
            Arg::new("interval")
                .long("interval")
                .value_name("SECONDS")
                .value_parser(value_parser!(u64).range(1..=86_400))
                .help("The time between two pulls [default: what the profile says]"),
        )
        .arg(
            Arg::new("target-id")
                .long("target-id")
                .value_name("ID")
                .value_parser(target_id)
                .help("This machine in the server's list of targets [default: made of /etc/machine-id]"),
        )
        .arg(
            Arg::new("target-name")
                .long("target-name")
                .value_name("NAME")
                .help("The machine's name for people [default: its host name]"),
        )
        .args(trust_args())
        .args(connection_args())
        // Here --profile names the configuration.
        .mut_arg("global.profile", |arg| arg.long("client-profile"))
}

fn target_id(text: &str) -> Result<String, &'static str> {
    let is_word = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._:@-".contains(&b));
    if matches!(text.len(), 1..=128) && is_word {
        return Ok(text.to_owned());
    }
    Err("1 to 128 letters, digits, . _ : @ -")
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
    let kept = AppliedRelease::load(&path("to").unwrap_or_default())?;
    // What was pulled before decides whose keys count, or another URL would be another first contact.
    let mut trusted = match kept {
        Some(kept) => TrustedKeys::offline((&kept.url, client.organization()), matches, terminal)?,
        None => TrustedKeys::of(&client, matches)?,
    };
    let mut pull = Pull {
        profile_id: String::new(),
        to: path("to").unwrap_or_default(),
        defaults_to: path("defaults-to"),
        may_change: false,
        target: None,
        highest: None,
    };
    let target = target(matches)?;
    let machine = MachineAccount {
        client: &client,
        target: &target,
    };
    let named = matches.get_one::<String>("profile").map_or("", String::as_str);
    if !matches.get_flag("watch") {
        pull.profile_id = profile_id(&client, named).await?;
        let done = pull.round(&machine, &mut trusted, true).await?;
        let printer = Printer {
            form: Form::chosen(matches, terminal),
            terminal,
            quiet: client.quiet,
        };
        return Ok(printer.object(&done.answer(&pull))?);
    }
    let cannot = |error| Failure::usage(format!("signals cannot be received: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let interval = matches.get_one::<u64>("interval").copied();
    // Between two awaits a round finishes what it writes, so it can be dropped at any of them.
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        ended = watch(&machine, &mut trusted, &mut pull, named, interval) => return Err(ended),
    }
    client.note("stopped");
    Ok(())
}

/// Pulls until something cannot get better by trying again.
async fn watch(
    machine: &MachineAccount<'_>,
    trusted: &mut TrustedKeys,
    pull: &mut Pull,
    named: &str,
    interval: Option<u64>,
) -> Failure {
    let (client, clock) = (machine.client, SystemClock::new());
    let mut last_report: Option<(Duration, u64)> = None;
    loop {
        let is_due = last_report.is_none_or(|(at, secs)| clock.monotonic() >= at + Duration::from_secs(secs));
        let round = async {
            if pull.profile_id.is_empty() {
                pull.profile_id = profile_id(client, named).await?;
            }
            pull.round(machine, trusted, is_due).await
        };
        let wait = match round.await {
            Ok(done) => {
                if done.outcome != "unchanged" {
                    let version = done.manifest.version;
                    client.note(&format!(
                        "{}: version {version} {}",
                        pull.to.display(),
                        done.outcome
                    ));
                }
                if is_due || done.outcome != "unchanged" {
                    last_report = Some((clock.monotonic(), done.poll_interval_seconds));
                }
                interval.unwrap_or(done.poll_interval_seconds)
            }
            Err(failure) if failure.exit == Exit::Usage => return failure,
            Err(failure) => {
                for line in &failure.lines {
                    client.note(line);
                }
                interval.unwrap_or(RETRY_SECS).min(RETRY_SECS)
            }
        };
        tokio::time::sleep(spread(Duration::from_secs(wait))).await;
    }
}

/// Takes up to a tenth off by chance, so that many machines do not ask at the same moment.
fn spread(wait: Duration) -> Duration {
    wait.saturating_sub(wait * u32::from(SystemEntropy.seed()[0]) / 2560)
}

/// Finds a profile by its id, or by its name whatever the case.
/// Returns the id of the profile that an id or a name means.
///
/// Errors: not found, when no profile has the name.
pub async fn profile_id(client: &Client<'_>, named: &str) -> Result<String, Failure> {
    if named.starts_with("prof_") {
        return Ok(named.to_owned());
    }
    let all = client
        .get_all(&["managed-config", "profiles"], &[("limit", "100")], "profiles")
        .await?;
    let text = |profile: &Value, member: &str| profile.get(member).and_then(Value::as_str).map(str::to_owned);
    let wanted = named.to_lowercase();
    let found = all
        .iter()
        .find(|profile| text(profile, "name").is_some_and(|name| name.to_lowercase() == wanted));
    found
        .and_then(|profile| text(profile, "id"))
        .ok_or_else(|| Failure::new(Exit::NotFound, format!("there is no profile {named}")))
}

fn target(matches: &ArgMatches) -> Result<Target, Failure> {
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    // The machine's own id is kept to itself: what is sent is made of it and of nothing else.
    let machine = || {
        let id = read("/etc/machine-id").or_else(|| read("/var/lib/dbus/machine-id"))?;
        Some(format!(
            "m-{}",
            &sha256_hex(format!("provost managed-config {id}").as_bytes())[..32]
        ))
    };
    let id = matches.get_one::<String>("target-id").cloned().or_else(machine);
    let name = matches.get_one::<String>("target-name").cloned();
    Ok(Target {
        id: id.ok_or_else(|| Failure::usage("this machine has no /etc/machine-id: say --target-id ID"))?,
        name: name.or_else(|| read("/proc/sys/kernel/hostname")),
    })
}
