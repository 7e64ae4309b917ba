//! `provost demo`: a server with a sample organization that leaves nothing behind.
//!
//! ```text
//! stale folders · folder, locked · organization and token · serve, on a free port of this machine ──► its end ──► folder removed
//!                                                               └──► filled by the client's commands, then the words
//! ```
//!
//! It is the server that `provost serve` is, with nothing switched off but `/metrics` and the log below warnings. Configuration files
//! and `PROVOST_…` variables are not read: a demo must never reach a store that somebody works with.

mod commands;
mod folder;
mod history;
mod organization;
mod words;

use super::serve::{Serve, give_memory_back, stop};
use super::show;
use super::store_flags::{Absent, StoreLocation, block_on, brief};
use crate::app;
use crate::commands::failure::{Failure, Outcome};
use crate::config::Config;
use commands::Typist;
use folder::DemoFolder;
use provost_areas_platform::audit::{self, ForeignStorePolicy};
use provost_kernel::Secret;
use rustix::process::{Signal, getpid, kill_process};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A server that has been told to stop has gone by then.
const ENDING: Duration = Duration::from_secs(1);
const ORGANIZATION: &str = "acme";
const ORGANIZATION_NAME: &str = "Acme";

/// Run a throw-away server with a sample organization, to look around in.
///
/// It takes a free port of this machine and keeps everything in one temporary folder: people, groups, accounts, policies, a month of
/// events, machines and sessions, and a finished backtest with its report. The past is generated, except for 1 164 recorded tool
/// calls of tau-bench (© 2024 Sierra, MIT licence); its times are relative to now.
///
/// Ctrl-C, SIGTERM and a closed terminal end it and remove the folder. A kill -9 leaves the folder; the next demo removes it. No
/// configuration file and no PROVOST_… variable is read.
#[derive(clap::Parser)]
#[command(
    name = "demo",
    after_help = "Examples:
  provost demo
  provost demo --no-open
  provost demo --keep ./provost-demo"
)]
pub struct Demo {
    /// Do not open the report in a browser
    #[arg(long)]
    no_open: bool,
    /// Keep everything in this folder, which is empty or not there, and do not remove it
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Demo {
    /// Runs the command.
    pub fn run(&self) -> Outcome {
        // Before there is a folder: this starts the program anew.
        give_memory_back();
        for path in folder::remove_stale() {
            show::note(&format!(
                "removed {}, left by a demo that was killed",
                path.display()
            ));
        }
        let asked = StopRequest::listen()?;
        let folder = match &self.keep {
            Some(path) => DemoFolder::kept(path)?,
            None => DemoFolder::temporary()?,
        };
        let done = self.serve(&folder, &asked);
        // Whatever came of it, nothing stays behind.
        folder.end()?;
        done
    }

    fn serve(&self, folder: &DemoFolder, asked: &StopRequest) -> Outcome {
        show::out(&words::beginning(folder))?;
        let config = configuration(folder);
        let token = organization(&config)?;
        let token_file = folder.write("token", format!("{}\n", token.expose()).as_bytes())?;
        let (on_ready, ready) = channel();
        let server = Serve::telling(on_ready)?;
        let over = CancellationToken::new();
        thread::scope(|scope| {
            let (token, token_file, is_over) = (&token, &token_file, &over);
            let filling = scope.spawn(move || {
                let Ok(url) = ready.recv() else { return Ok(()) };
                asked.is_served();
                let filled = self.fill(&url, folder, token, token_file, is_over);
                if filled.is_err() {
                    end_this_process();
                }
                filled
            });
            let outcome = server.run_with(&config);
            // A server that never came to answer has told no address.
            drop(server);
            over.cancel();
            let filled = filling
                .join()
                .unwrap_or_else(|_| Err(Failure::new("filling the sample organization panicked")));
            outcome.and(filled)
        })
    }

    /// Fills the organization and says what there is.
    fn fill(
        &self,
        url: &str,
        folder: &DemoFolder,
        token: &Secret<String>,
        token_file: &Path,
        over: &CancellationToken,
    ) -> Outcome {
        let address = url.strip_prefix("http://").unwrap_or(url);
        let profile = format!("[profiles.demo]\nurl = \"{url}\"\norganization = \"{ORGANIZATION}\"\n");
        let profiles = folder.write("profiles.toml", profile.as_bytes())?;
        let typist = Typist::new(url, ORGANIZATION, token.clone(), &profiles);
        let filled = block_on(async {
            tokio::select! {
                biased;
                () = over.cancelled() => None,
                filled = organization::fill(&typist, folder, address) => Some(filled),
            }
        })?;
        // Somebody has ended it meanwhile.
        let Some(filled) = filled.filter(|_| !over.is_cancelled()) else {
            return Ok(());
        };
        let sample = filled?;
        let is_terminal = std::io::stdout().is_terminal();
        let program = std::env::args().next().filter(|name| name.contains('/'));
        let words = words::ready(
            &words::Running {
                url,
                organization: ORGANIZATION,
                token,
                token_file,
                is_terminal,
                program: program.as_deref().unwrap_or("provost"),
                folder,
            },
            &sample,
        );
        show::out(words.expose())?;
        if is_terminal && !self.no_open {
            open(&sample.report);
        }
        Ok(())
    }
}

fn configuration(folder: &DemoFolder) -> Config {
    let mut config = Config::default();
    config.http.listen = "127.0.0.1:0".into();
    config.http.metrics_listen = Some("off".into());
    config.store.data_dir = Some(folder.file("data"));
    config.log.filter = Some("warn".into());
    config
}

/// Makes the organization and returns the token of its admin.
fn organization(config: &Config) -> Result<Secret<String>, Failure> {
    let kernel = StoreLocation::find(config, Absent::Make)?.start(brief())?;
    block_on(async {
        let made = async {
            audit::verify_start(&kernel, ForeignStorePolicy::Refuse).await?;
            let made = app::bootstrap(&kernel, ORGANIZATION_NAME, Some(ORGANIZATION)).await?;
            audit::served(&kernel).await?;
            Ok::<_, Failure>(made.token)
        };
        let made = made.await;
        kernel.stop().await;
        made
    })?
}

/// Whether somebody has asked for the end. From its start on no signal ends the process by itself, which would leave the folder.
struct StopRequest {
    served: CancellationToken,
}

impl StopRequest {
    fn listen() -> Result<Self, Failure> {
        let served = CancellationToken::new();
        let (begun, has_begun) = channel();
        let is_served = served.clone();
        let listening = thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let listened = block_on(async {
                let mut signals = match stop::Signals::listen() {
                    Ok(signals) => signals,
                    Err(failure) => return drop(begun.send(Err(failure))),
                };
                drop(begun.send(Ok(())));
                loop {
                    let signal = signals.next().await;
                    let is_hang_up = matches!(signal, stop::SignalRequest::ReadAnew);
                    if is_served.is_cancelled() {
                        // The server hears the others itself, once it is there. A terminal that is closed ends a demo.
                        if is_hang_up {
                            end_this_process();
                        }
                        continue;
                    }
                    is_served.cancelled().await;
                    // It may have heard this one too, while it began; a second one would cut its end short.
                    tokio::time::sleep(ENDING).await;
                    end_this_process();
                }
            });
            drop(listened);
        });
        listening.map_err(|error| Failure::new(format!("signals cannot be received: {error}")))?;
        let begun = has_begun.recv();
        begun.map_err(|_| Failure::new("signals cannot be received"))??;
        Ok(Self { served })
    }

    /// Says that a server hears signals from now on.
    fn is_served(&self) {
        self.served.cancel();
    }
}

/// Asks for the end of this process, as somebody else would.
fn end_this_process() {
    // A process may always send itself a signal.
    let _ = kill_process(getpid(), Signal::TERM);
}

/// Opens the report where a person has a desktop. Whether that works changes nothing: its path was said.
fn open(report: &Path) {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let opener = match () {
        () if cfg!(target_os = "macos") => "open",
        () if has_display => "xdg-open",
        () => return,
    };
    let mut command = Command::new(opener);
    command.arg(report);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    drop(command.spawn());
}
