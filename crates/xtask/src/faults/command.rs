//! Commands that write files: what they leave behind when they are killed or a call fails.
//!
//! `init` makes a store and runs every migration. Killed in the middle of the k-th, it leaves a store with the first
//! k-1 of them, and the next start begins there: so its points are those of a new program on every older store, too.
//! `start` is a server that begins on what a killed one left in SQLite's log.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::base::{self, Base};
use super::fault::{Fault, Point};
use super::judge::Violation;
use super::station::PointOutcome;
use super::strace::{self, Call};
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::product::{self, Bootstrap, Installation};
use crate::{clock, process};

/// What is run under faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Init,
    Start,
    Backup,
    Restore,
    Rotate,
}

pub const EACH: [Subject; 5] = [
    Subject::Init,
    Subject::Start,
    Subject::Backup,
    Subject::Restore,
    Subject::Rotate,
];

impl Subject {
    /// The name that `--operation` takes.
    pub fn id(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Start => "start",
            Self::Backup => "store-backup",
            Self::Restore => "store-restore",
            Self::Rotate => "keys-rotate",
        }
    }
}

/// A place where commands are tried, one after the other.
pub struct Bench<'a> {
    pub base: &'a Base,
    pub folder: PathBuf,
    /// A backup of the base, made when it is first needed.
    pub backup: PathBuf,
    /// A store that a killed server left, made when it is first needed.
    pub crashed: PathBuf,
}

/// A command takes tenths of a second. What it prints fits into a pipe.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a server says that it is not ready until it is taken to be broken.
const BROKEN: Duration = Duration::from_secs(3);

/// How a command ended.
struct CommandEnd {
    succeeded: bool,
    /// It was killed, because it did not end.
    hung: bool,
    printed: String,
    calls: Vec<Call>,
}

impl Bench<'_> {
    /// Tries one point of a command; without one, an undisturbed run.
    pub fn attempt(&self, subject: Subject, point: Option<&Point>) -> Outcome<PointOutcome> {
        drop(std::fs::remove_dir_all(&self.folder));
        std::fs::create_dir_all(&self.folder).context("cannot create a folder")?;
        let injection = point.map(Point::injection);
        let installation = base::installation(&self.base.binary, &self.folder);
        let (ended, mut violations) = match subject {
            Subject::Init => self.init(&installation, injection.as_deref())?,
            Subject::Start => self.start(&installation, injection.as_deref())?,
            Subject::Backup => self.back_up(&installation, injection.as_deref())?,
            Subject::Restore => self.restore(&installation, injection.as_deref())?,
            Subject::Rotate => self.rotate(&installation, injection.as_deref())?,
        };
        for words in [&["store", "check"][..], &["audit", "verify"]] {
            violations.extend(installation.check(words).err().map(|failure| failure.to_string()));
        }
        // strace counts in every thread by itself: an event or the log may have been hit, which no disk does.
        let is_lie = ended
            .calls
            .iter()
            .any(|call| call.injected && !self.is_ours(call));
        let injected = ended.calls.iter().any(|call| call.injected);
        let killed = point.is_some_and(|point| point.fault == Fault::Kill) && !ended.succeeded;
        if is_lie {
            return Ok(PointOutcome {
                calls: ended.calls,
                hit: false,
                violations: Vec::new(),
            });
        }
        let again = is_done_again(subject, &self.folder, &ended.calls);
        let must_fail = |point: &&Point| must_fail(subject, point) && !again;
        if ended.hung {
            violations.push(format!("it did not end within {} s", PATIENCE.as_secs()));
        }
        let lost = point.filter(|point| injected && point.loses() && must_fail(point));
        if let Some(point) = lost.filter(|_| ended.succeeded) {
            violations.push(format!("it succeeded although its {} failed", point.call.name));
        }
        if !violations.is_empty() {
            let kept = self.folder.with_extension(format!(
                "kept-{}-{}",
                subject.id(),
                clock::since_epoch().as_nanos()
            ));
            base::copy_folder(&self.folder, &kept)?;
        }
        Ok(PointOutcome {
            calls: ended.calls,
            hit: injected || killed,
            violations,
        })
    }

    pub fn is_ours(&self, call: &Call) -> bool {
        Path::new(&call.place).starts_with(&self.folder) && !call.place.ends_with("server.log")
    }

    fn traced(&self, program: &mut Command, injection: Option<&str>) -> Outcome<CommandEnd> {
        let trace = self.folder.join("trace");
        let mut running = strace::around(program, &trace, injection)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run strace")?;
        let ended = clock::poll_until(PATIENCE, Duration::from_millis(2), || {
            !matches!(running.try_wait(), Ok(None))
        });
        if !ended {
            strace::kill_children(running.id());
        }
        let output = running.wait_with_output().context("cannot wait for strace")?;
        Ok(CommandEnd {
            succeeded: output.status.success(),
            hung: !ended,
            printed: String::from_utf8_lossy(&output.stdout).into_owned(),
            calls: strace::read(&trace)?,
        })
    }

    fn init(
        &self,
        installation: &Installation,
        injection: Option<&str>,
    ) -> Outcome<(CommandEnd, Vec<Violation>)> {
        let words = ["init", "--organization", "Acme", "--json"];
        let ended = self.traced(&mut installation.command(&words), injection)?;
        let bootstrap = if ended.succeeded {
            product::parse_bootstrap(&ended.printed)?
        } else {
            match installation.initialize() {
                Ok(bootstrap) => bootstrap,
                // It is there, and its token was never shown: the way back is the one of lost tokens.
                Err(failure) if failure.to_string().contains("exists already") => {
                    let recover = ["recover", "--organization", "acme", "--json"];
                    product::parse_bootstrap(&process::output(&mut installation.command(&recover))?)?
                }
                Err(failure) => return Ok((ended, vec![format!("a second init says: {failure}")])),
            }
        };
        let violations = works(installation, &bootstrap)?;
        Ok((ended, violations))
    }

    fn rotate(
        &self,
        installation: &Installation,
        injection: Option<&str>,
    ) -> Outcome<(CommandEnd, Vec<Violation>)> {
        base::copy_folder(&self.base.folder.join("data"), &self.folder.join("data"))?;
        let ended = self.traced(
            &mut installation.command(&["keys", "rotate", "pepper"]),
            injection,
        )?;
        let mut violations = works(installation, &self.base.bootstrap)?;
        let listed = process::output(&mut installation.command(&["keys", "list", "--json"]))?;
        let peppers = listed.matches("\"id\":\"pepper-").count();
        if peppers > 2 || (ended.succeeded && peppers != 2) {
            violations.push(format!("{peppers} keys of the purpose are there"));
        }
        violations.extend(
            installation
                .check(&["keys", "rotate", "pepper", "--now"])
                .err()
                .map(|failure| failure.to_string()),
        );
        Ok((ended, violations))
    }

    fn back_up(
        &self,
        installation: &Installation,
        injection: Option<&str>,
    ) -> Outcome<(CommandEnd, Vec<Violation>)> {
        base::copy_folder(&self.base.folder.join("data"), &self.folder.join("data"))?;
        let file = self.folder.join("backup.db");
        let target = file.display().to_string();
        let ended = self.traced(
            &mut installation.command(&["store", "backup", &target]),
            injection,
        )?;
        let mut violations = Vec::new();
        // What a killed backup leaves is refused, or whole: nobody may mistake half a backup for one.
        let restored = self.restored(&file, "restored")?;
        match &restored {
            Ok(restored) => violations.extend(
                restored
                    .check(&["store", "check"])
                    .err()
                    .map(|one| one.to_string()),
            ),
            Err(said) if ended.succeeded => violations.push(format!("the backup cannot be restored: {said}")),
            Err(_) => {}
        }
        let again = self.folder.join("again.db").display().to_string();
        violations.extend(
            installation
                .check(&["store", "backup", &again])
                .err()
                .map(|failure| failure.to_string()),
        );
        violations.extend(works(installation, &self.base.bootstrap)?);
        Ok((ended, violations))
    }

    /// Restores a backup into a folder of its own.
    fn restored(&self, backup: &Path, name: &str) -> Outcome<Result<Installation, String>> {
        let folder = self.folder.join(name);
        self.keys_alone(&folder)?;
        let installation = base::installation(&self.base.binary, &folder);
        let backup = backup.display().to_string();
        let words = ["store", "restore", &backup, "--keep-tokens", "--replace-live"];
        let restored = installation.check(&words);
        Ok(restored
            .map(|()| installation)
            .map_err(|failure| failure.to_string()))
    }

    /// A data folder that holds the keys and no store.
    fn keys_alone(&self, folder: &Path) -> Outcome {
        drop(std::fs::remove_dir_all(folder));
        std::fs::create_dir_all(folder.join("data")).context("cannot create a folder")?;
        process::run(Command::new("chmod").arg("700").arg(folder.join("data")))?;
        base::copy_folder(&self.base.folder.join("data/keys"), &folder.join("data/keys"))
    }

    fn restore(
        &self,
        installation: &Installation,
        injection: Option<&str>,
    ) -> Outcome<(CommandEnd, Vec<Violation>)> {
        if !self.backup.is_file() {
            let base = base::installation(&self.base.binary, &self.base.folder);
            base.check(&["store", "backup", &self.backup.display().to_string()])?;
        }
        self.keys_alone(&self.folder)?;
        let backup = self.backup.display().to_string();
        // What a first attempt left beside the keys is given up for the second.
        let words = ["store", "restore", &backup, "--keep-tokens", "--replace-live"];
        let ended = self.traced(&mut installation.command(&words), injection)?;
        if !ended.succeeded {
            // The way back is the one that its message names: empty the folder, keep the keys, restore again.
            let data = self.folder.join("data");
            for entry in std::fs::read_dir(&data)
                .context("cannot read the data folder")?
                .flatten()
            {
                if entry.file_name() != "keys" {
                    let path = entry.path();
                    drop(std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)));
                }
            }
            if let Err(failure) = installation.check(&words) {
                return Ok((ended, vec![format!("a second restore says: {failure}")]));
            }
        }
        let violations = works(installation, &self.base.bootstrap)?;
        Ok((ended, violations))
    }

    fn start(
        &self,
        installation: &Installation,
        injection: Option<&str>,
    ) -> Outcome<(CommandEnd, Vec<Violation>)> {
        if !self.crashed.is_dir() {
            self.crash()?;
        }
        base::copy_folder(&self.crashed, &self.folder.join("data"))?;
        let (address, metrics) = (product::free_address()?, product::free_address()?);
        let words = [
            "serve",
            "--listen",
            &address.to_string(),
            "--metrics-listen",
            &metrics.to_string(),
        ]
        .map(str::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let trace = self.folder.join("trace");
        let mut program = strace::around(&installation.command(&words), &trace, injection);
        program
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut tracer = program.spawn().context("cannot run strace")?;
        let ready = Request {
            token: None,
            ..Request::get("/readyz", "")
        };
        let (mut is_ready, mut ended, mut unready) = (false, false, None);
        clock::poll_until(Duration::from_mins(1), Duration::from_millis(5), || {
            ended = !matches!(tracer.try_wait(), Ok(None));
            let status = Connection::new(address).send(&ready).map(|answer| answer.status);
            is_ready = status.as_ref().is_ok_and(|status| *status == 200);
            if !status.is_ok_and(|status| status == 503) {
                unready = None;
            }
            let since = *unready.get_or_insert_with(clock::now);
            // A server whose store is broken says so until it is started anew.
            is_ready || ended || since.elapsed() > BROKEN
        });
        let mut made = None;
        if is_ready {
            let request = user(&self.base.bootstrap, "after-the-start");
            made = Connection::new(address)
                .send(&request)
                .ok()
                .filter(crate::http::Answer::is_success);
        }
        kill_traced(&mut tracer)?;
        let ended = CommandEnd {
            hung: false,
            succeeded: is_ready,
            printed: String::new(),
            calls: strace::read(&trace)?,
        };
        let mut violations = works(installation, &self.base.bootstrap)?;
        let mut expected = vec!["before-the-crash"];
        expected.extend(made.is_some().then_some("after-the-start"));
        let mut server = installation.launch()?;
        server.wait_until_ready(Duration::from_mins(1))?;
        let path = self.base.bootstrap.path("directory/users?limit=100");
        let shown = Connection::new(server.address).fetch(&Request::get(path, &self.base.bootstrap.token))?;
        let shown = shown.to_string();
        violations.extend(
            expected
                .iter()
                .filter(|name| !shown.contains(*name))
                .map(|name| format!("the user {name} is gone")),
        );
        Ok((ended, violations))
    }

    /// Leaves acknowledged changes in the log of a killed server.
    fn crash(&self) -> Outcome {
        let folder = self.folder.join("to-crash");
        let installation = self.base.copy(&folder)?;
        let server = installation.serve()?;
        let mut connection = Connection::new(server.address);
        connection.fetch(&user(&self.base.bootstrap, "before-the-crash"))?;
        server.kill()?;
        base::copy_folder(&folder.join("data"), &self.crashed)?;
        std::fs::remove_dir_all(&folder).context("cannot remove a folder")
    }
}

/// The lock file only tells people who holds it. What SQLite does when its last connection closes is done again at the
/// next start, and a log that could not be copied stays.
fn must_fail(subject: Subject, point: &Point) -> bool {
    let file = Path::new(&point.call.place)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    subject != Subject::Start && !["provost.lock", "provost.db"].contains(&file)
}

/// Until a restore gives the staged copy its name, its folder is synced for names alone that go away, those of logs. The
/// sync behind the renaming is another one, and has to succeed. When a store or a backup is made, SQLite syncs the folder
/// for a journal that goes away, and passes over a failure; the product's own sync behind that has to succeed. SQLite syncs
/// it once more with the first commit to a new log, whose name is durable by then: the product's own sync is the last one
/// before, and nothing but the log was written since.
fn is_done_again(subject: Subject, home: &Path, calls: &[Call]) -> bool {
    let folder = match subject {
        Subject::Init | Subject::Restore => home.join("data"),
        Subject::Backup => home.to_path_buf(),
        Subject::Start | Subject::Rotate => return false,
    };
    let is_folder = |call: &Call| call.name == "fsync" && Path::new(&call.place) == folder;
    let is_sound = |call: &Call| is_folder(call) && !call.injected;
    let is_repeated = |failed: &Call| {
        let follows = calls.iter().any(|call| is_sound(call) && call.at > failed.at);
        let before = calls
            .iter()
            .filter(|call| call.thread == failed.thread && call.at < failed.at)
            .filter(|call| !call.place.ends_with("-wal"))
            .max_by_key(|call| call.at);
        follows || before.is_some_and(is_sound)
    };
    let mut failed = calls.iter().filter(|call| call.injected);
    failed.all(|call| is_folder(call) && is_repeated(call))
}

fn user(bootstrap: &Bootstrap, name: &str) -> Request {
    let key = format!("the-key-of-{name}");
    let request = bootstrap.act("POST", "directory/users", &key, "a start");
    request.with_body(json!({ "loginName": format!("{name}@example.com") }))
}

/// Starts the server and does something with the token.
fn works(installation: &Installation, bootstrap: &Bootstrap) -> Outcome<Vec<Violation>> {
    let mut server = installation.launch()?;
    if let Err(failure) = server.wait_until_ready(Duration::from_mins(1)) {
        return Ok(vec![format!("the next start: {failure}")]);
    }
    let mut connection = Connection::new(server.address);
    let shown = connection.fetch(&Request::get(
        bootstrap.path("service-accounts?limit=100"),
        &bootstrap.token,
    ));
    let made = connection.fetch(&user(bootstrap, "works"));
    let outcome: Result<(Value, Value), Failure> = shown.and_then(|shown| Ok((shown, made?)));
    Ok(outcome
        .err()
        .map(|failure| failure.to_string())
        .into_iter()
        .collect())
}

/// strace lets go of what it traces when it is killed itself, so its child is killed.
fn kill_traced(tracer: &mut Child) -> Outcome {
    let id = tracer.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    for child in children.split_whitespace() {
        process::signal(child.parse().unwrap_or(0), "KILL");
    }
    tracer.wait().context("cannot wait for strace").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sync(thread: u32, at: u64, place: &str, injected: bool) -> Call {
        Call {
            thread,
            name: "fsync".to_owned(),
            number: 1,
            place: place.to_owned(),
            injected,
            at: Duration::from_millis(at),
        }
    }

    #[test]
    fn a_failed_sync_of_a_folder_matters_unless_another_covers_it() {
        let again = |calls: &[Call]| is_done_again(Subject::Init, Path::new("/h"), calls);
        let folder = |thread, at, injected| sync(thread, at, "/h/data", injected);
        assert!(again(&[folder(1, 1, true), folder(2, 2, false)]), "one follows");
        let log = sync(1, 2, "/h/data/provost.db-wal", false);
        assert!(
            again(&[folder(1, 1, false), log.clone(), folder(1, 3, true)]),
            "only the log was written since"
        );
        assert!(!again(&[folder(1, 1, true)]));
        assert!(
            !again(&[folder(2, 1, false), folder(1, 3, true)]),
            "of another thread"
        );
        let key = sync(1, 2, "/h/data/keys/x", false);
        assert!(
            !again(&[folder(1, 1, false), key, folder(1, 3, true)]),
            "a name may be new"
        );
        assert!(!again(&[
            folder(1, 1, false),
            sync(1, 2, "/h/data/provost.db", true)
        ]));
    }
}
