//! `provost hook uninstall CLIENT`: the client asks no more; everything else in its settings stays.

use super::places::{self, Whose};
use super::run::client_arg;
use super::settings::Homes;
use super::settings_text::SettingsFile;
use crate::cli::{Failure, Terminal};
use clap::{ArgMatches, Command};

/// Returns the command.
pub fn command() -> Command {
    Command::new("uninstall")
        .about("Take the hook out of a client's settings")
        .arg(client_arg().required(true))
        .args(places::args())
}

/// Does it.
pub fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = super::install::chosen(matches)?;
    let path = places::file(
        client,
        Whose::said(matches),
        &places::root(matches),
        &Homes::of(terminal),
    )?;
    let file = SettingsFile::read(client, path)?;
    let shown = file.path().display();
    if file.found()?.is_none() {
        terminal.note(&format!(
            "{shown}: no hook of Provost stands there; nothing was changed"
        ));
        return Ok(());
    }
    file.replace(&file.without()?, 0o600)?;
    terminal.note(&format!("{shown}: {} asks no more", client.name()));
    terminal.note("the file of the hook and its token stay: remove them if no other client needs them");
    Ok(())
}
