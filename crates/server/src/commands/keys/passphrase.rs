//! A passphrase comes from a file or from a terminal without echo; a flag or a variable would show it.

use crate::commands::failure::Failure;
use age::secrecy::SecretString;
use std::io::IsTerminal;
use std::path::Path;
use zeroize::Zeroizing;

/// LIMIT: characters of a passphrase that is to protect every key of an installation.
const SHORTEST: usize = 12;

/// Returns the passphrase of an export that is there.
pub fn known(file: Option<&Path>) -> Result<SecretString, Failure> {
    match file {
        Some(path) => read(path),
        None => ask(false),
    }
}

/// Returns the passphrase of a new export.
pub fn new(file: Option<&Path>) -> Result<SecretString, Failure> {
    use age::secrecy::ExposeSecret;
    let passphrase = match file {
        Some(path) => read(path)?,
        None => ask(true)?,
    };
    if passphrase.expose_secret().chars().count() < SHORTEST {
        return Err(Failure::new(format!(
            "the passphrase must have at least {SHORTEST} characters"
        )));
    }
    Ok(passphrase)
}

fn read(path: &Path) -> Result<SecretString, Failure> {
    let text = std::fs::read_to_string(path).map(Zeroizing::new);
    let text = text.map_err(|error| Failure::of_file("the passphrase file cannot be read", path, &error))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() || line.contains('\n') {
        return Err(Failure::new(format!(
            "{} must hold one line, the passphrase",
            path.display()
        )));
    }
    Ok(SecretString::from(line.to_owned()))
}

fn ask(is_new: bool) -> Result<SecretString, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "there is no terminal to ask for the passphrase; give --passphrase-file",
        ));
    }
    let prompt = dialoguer::Password::new().with_prompt("Passphrase");
    let prompt = if is_new {
        prompt.with_confirmation("Again", "the two differ")
    } else {
        prompt
    };
    let entered = prompt
        .interact()
        .map_err(|error| Failure::new(format!("no passphrase was read: {error}")))?;
    Ok(SecretString::from(entered))
}
