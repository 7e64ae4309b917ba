//! `provost doctor`: looks at everything between this machine and a server, and says for each thing what mends it.

use super::super::cell::Times;
use super::super::connection::{self, Connection, Place, TokenSource, place_and_token, profile_path};
use super::super::environment;
use super::super::failure::{Exit, Failure};
use super::super::instant::of_http_date;
use super::super::own::{CommandFuture, HandCommand};
use super::super::print::{Form, Printer};
use super::super::profile::is_private;
use super::super::proxy::{Proxy, is_this_machine};
use super::super::table;
use super::super::terminal::Terminal;
use super::doctor_machine;
use super::identity::Identity;
use super::status;
use clap::{ArgMatches, Command};
use provost_words::time::Timestamp;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Tells that the process runs, and with its answer the time of the server.
const ALIVE: &str = "/healthz";
/// Clocks that differ by this much are worth a look. Units: milliseconds.
const SKEW_MS: i64 = 5_000;
/// Signed requests and tokens of other issuers are refused from here on. Units: milliseconds.
const WRONG_MS: i64 = 60_000;
/// Where packages put the server's data.
pub(super) const DATA: &str = "/var/lib/provost";
/// A token that ends within this time wants to be renewed. Units: seconds.
const SOON_SECS: i64 = 14 * 86_400;

pub(super) const COMMAND: HandCommand = HandCommand {
    group: "doctor",
    verb: "",
    command,
    examples: &["provost doctor", "provost doctor --profile prod -o json"],
    run: |matches, terminal| -> CommandFuture<'_> { Box::pin(run(matches, terminal)) },
};

fn command() -> Command {
    Command::new("doctor")
        .about("Looks at URL, TLS, clock, token, versions, proxy, files, hooks and backups, and says what mends each")
        .args(connection::args())
        .mut_arg("global.timeout", |arg| arg.default_value("10"))
        .mut_arg("global.retries", |arg| arg.default_value("0"))
}

/// How something is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Warning,
    Failed,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// What was looked at.
struct Finding {
    what: &'static str,
    state: State,
    says: String,
    fix: Option<String>,
}

/// Everything that was looked at.
#[derive(Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    /// The exit code of the first failure.
    exit: Option<Exit>,
}

impl Findings {
    pub(super) fn ok(&mut self, what: &'static str, says: impl Into<String>) {
        self.add(what, State::Ok, says.into(), None);
    }

    pub(super) fn warn(&mut self, what: &'static str, says: impl Into<String>, fix: impl Into<String>) {
        self.add(what, State::Warning, says.into(), Some(fix.into()));
    }

    fn add(&mut self, what: &'static str, state: State, says: String, fix: Option<String>) {
        self.all.push(Finding {
            what,
            state,
            says,
            fix,
        });
    }

    pub(super) fn failed(&mut self, what: &'static str, failure: Failure) {
        self.exit.get_or_insert(failure.exit);
        let mut lines = failure.lines.into_iter();
        let says = lines.next().unwrap_or_default();
        // The envelope's last line names the request, which mends nothing.
        let fix: Vec<String> = lines.filter(|line| !line.contains(", request ")).collect();
        let fix = (!fix.is_empty()).then(|| fix.join("; "));
        self.add(what, State::Failed, says, fix);
    }
}

async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let quiet = matches.get_flag("global.quiet");
    let mut found = Findings::default();
    for line in environment::unknown(&terminal.surroundings) {
        let says = line.trim_start_matches("warning: ").to_owned();
        found.warn("variables", says, "correct the name, or remove the variable");
    }
    files(&mut found, matches, terminal);
    doctor_machine::hooks(&mut found, terminal).await;
    match place_and_token(matches, terminal) {
        Err(failure) => found.failed("settings", failure),
        Ok((place, token)) => {
            let url = format!("{}, from {}", place.url, place.url_source);
            found.ok("URL", url);
            proxy(&mut found, &place, terminal);
            let is_reached = server(&mut found, &place, terminal).await;
            disk(&mut found, &place);
            doctor_machine::backups(&mut found, &place, terminal.clock.now());
            match token {
                Err(failure) => found.failed("token", failure),
                Ok((token, token_source)) => {
                    let connection = Connection {
                        place,
                        token,
                        token_source,
                    };
                    who(&mut found, &connection, terminal, is_reached).await;
                }
            }
        }
    }
    tell(&found, matches, terminal, quiet)?;
    match found.exit {
        None => Ok(()),
        Some(exit) => {
            let count = found.all.iter().filter(|one| one.state == State::Failed).count();
            let noun = if count == 1 { "thing is" } else { "things are" };
            Err(Failure::new(
                exit,
                format!("{count} {noun} not as they should be"),
            ))
        }
    }
}

fn files(found: &mut Findings, matches: &ArgMatches, terminal: &Terminal) {
    let Some((path, _)) = profile_path(matches, terminal) else {
        found.warn(
            "profiles",
            "there is no home folder",
            "name the file: --profile-file FILE",
        );
        return;
    };
    let shown = path.display();
    let Ok(metadata) = fs::metadata(&path) else {
        found.ok(
            "profiles",
            format!("there is no file {shown}; `provost login` makes it"),
        );
        return;
    };
    if is_private(metadata.mode()) {
        found.ok("profiles", format!("{shown}, for you alone"));
    } else {
        let says = format!("others on this machine can read or change {shown}");
        found.warn("profiles", says, format!("chmod 600 {shown}"));
    }
}

fn proxy(found: &mut Findings, place: &Place, terminal: &Terminal) {
    match (&place.proxy, &terminal.surroundings.https_proxy) {
        (Some(proxy), _) => found.ok("proxy", format!("{}, from HTTPS_PROXY", Proxy::shown(proxy))),
        (None, Some(_)) => found.ok("proxy", "HTTPS_PROXY is set and not used for this server"),
        (None, None) => found.ok("proxy", "none"),
    }
}

/// Looks whether the server answers, what time it has, and whether it is ready.
async fn server(found: &mut Findings, place: &Place, terminal: &Terminal) -> bool {
    let reply = match status::ask(place, ALIVE, terminal, true).await {
        Ok(reply) => reply,
        Err(failure) => {
            found.failed("connection", failure);
            return false;
        }
    };
    if place.url.starts_with("https:") {
        let by = match &place.ca_cert {
            Some(path) => format!("the file {}", path.display()),
            None => "this machine".to_owned(),
        };
        found.ok("connection", format!("encrypted; {by} vouches for the server"));
    } else if is_this_machine(&place.url.parse().unwrap_or_default()) {
        found.ok("connection", "not encrypted, and it stays on this machine");
    } else {
        found.warn(
            "connection",
            "not encrypted",
            "let the server speak TLS: docs/guide/operating.md",
        );
    }
    let date = reply.headers.get("date").and_then(|date| date.to_str().ok());
    match date.and_then(of_http_date) {
        Some(theirs) => clock(found, theirs, terminal.clock.now()),
        None => found.warn(
            "clock",
            "the server does not tell its time",
            "is this a Provost server?",
        ),
    }
    match status::ready(place, terminal, true).await {
        Ok(_) => found.ok("server", "ready"),
        Err(failure) => found.failed("server", failure),
    }
    true
}

fn clock(found: &mut Findings, theirs: Timestamp, ours: Timestamp) {
    let behind = theirs.as_ms() - ours.as_ms();
    let secs = behind.abs() / 1000;
    let side = if behind > 0 { "behind" } else { "before" };
    let says = format!("this machine is {secs} s {side} the server");
    let fix = "let both take their time from the network: timedatectl set-ntp true";
    match behind.abs() {
        skew if skew < SKEW_MS => found.ok("clock", "as the server's"),
        skew if skew < WRONG_MS => found.warn("clock", says, fix),
        _ => found.failed("clock", Failure::new(Exit::Refused, says).and(fix)),
    }
}

/// Looks how much room the server's data has, where it lies on this machine in the place that packages use.
fn disk(found: &mut Findings, place: &Place) {
    if !is_this_machine(&place.url.parse().unwrap_or_default()) || !Path::new(DATA).is_dir() {
        return;
    }
    let Some((free, all)) = room(Path::new(DATA)) else {
        return;
    };
    let says = format!("{} MiB of {} MiB are free for {DATA}", free >> 20, all >> 20);
    // LIMIT: below a twentieth or 1 GiB, whichever is less, a day's history may fill it.
    if free < (all / 20).min(1 << 30) {
        found.warn("disk", says, "make room, or shorten how long history is kept");
    } else {
        found.ok("disk", says);
    }
}

/// Returns the bytes that are free for everybody, and all.
fn room(folder: &Path) -> Option<(u64, u64)> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some((
        disk.f_bavail.checked_mul(disk.f_frsize)?,
        disk.f_blocks.checked_mul(disk.f_frsize)?,
    ))
}

async fn who(found: &mut Findings, connection: &Connection, terminal: &Terminal, is_reached: bool) {
    if let TokenSource::File(path) = &connection.token_source {
        let shown = path.display();
        if fs::metadata(path).is_ok_and(|metadata| !is_private(metadata.mode())) {
            let says = format!("others on this machine can read {shown}");
            found.warn("token file", says, format!("chmod 600 {shown}"));
        }
    }
    if !is_reached {
        return;
    }
    let identity = match Identity::ask(connection, terminal, true).await {
        Ok(identity) => identity,
        Err(failure) => return found.failed("token", failure),
    };
    let now = terminal.clock.now();
    let says = format!(
        "{}, role {}, organization {}, from {}",
        identity.who(),
        identity.role(),
        identity.organization,
        connection.token_source
    );
    found.ok("token", says);
    if let Some(ends) = identity.expires_at().filter(|_| identity.is_own_token()) {
        let says = format!("expires {}", Times::Relative(now).write(&ends.to_rfc3339()));
        if ends < now.plus_secs(SOON_SECS) {
            found.warn("token's end", says, "provost token rotate --in-place");
        } else {
            found.ok("token's end", says);
        }
    }
    let ours = env!("CARGO_PKG_VERSION");
    match identity.server_version() {
        Some(theirs) if theirs == ours => found.ok("versions", format!("{ours} here and there")),
        Some(theirs) => {
            let says = format!("{ours} here, {theirs} on the server");
            found.warn("versions", says, format!("install {theirs} here"));
        }
        None => found.warn(
            "versions",
            format!("{ours} here; the server is older"),
            "update the server",
        ),
    }
}

fn tell(found: &Findings, matches: &ArgMatches, terminal: &Terminal, quiet: bool) -> Result<(), Failure> {
    let form = Form::chosen(matches, terminal);
    if form != Form::Table {
        let one = |finding: &Finding| {
            let mut one = json!({
                "check": finding.what,
                "status": finding.state.word(),
                "message": finding.says,
            });
            if let Some(fix) = &finding.fix {
                one["fix"] = fix.as_str().into();
            }
            one
        };
        let checks: Vec<Value> = found.all.iter().map(one).collect();
        let printer = Printer {
            form,
            terminal,
            quiet,
        };
        return Ok(printer.object(&json!({ "checks": checks }))?);
    }
    let mut rows = Vec::new();
    for finding in &found.all {
        let state = match finding.state {
            State::Ok => String::new(),
            other => format!("{}: ", other.word()),
        };
        rows.push((finding.what.to_owned(), format!("{state}{}", finding.says)));
        if let Some(fix) = &finding.fix {
            rows.push((String::new(), format!("→ {fix}")));
        }
    }
    Ok(terminal.print(table::facts(&rows, terminal.width).as_bytes())?)
}
