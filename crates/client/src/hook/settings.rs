//! `hook.toml`: which server is asked, with which token, about whom.
//!
//! Keeps HK-7. The file of the machine counts before the file of the user: whoever may write `/etc` says which server is asked. The file of
//! the token is the user's own in both.

use crate::cli::{Failure, Terminal, checked_token, refuse_plain};
use provost_words::Secret;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file of the machine.
pub const OF_THE_MACHINE: &str = "/etc/provost/hook.toml";
const NAME: &str = "hook.toml";
/// LIMIT: bytes of the file; it has a few lines.
const MAX_BYTES: u64 = 64 << 10;

/// Who says who the user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UserFrom {
    /// The account of the system.
    Os,
    /// The address that the user's own settings of git have.
    Git,
}

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HookSettings {
    pub url: String,
    pub organization: String,
    /// A path, with `~/` for the home folder.
    pub token_file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_from: Option<UserFrom>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_plain_http: bool,
}

/// The folders of the person.
#[derive(Clone, Debug, Default)]
pub struct Homes {
    /// The home.
    pub home: Option<PathBuf>,
    /// Where settings of programs are.
    pub config: Option<PathBuf>,
    /// Where Claude Code was told to keep its settings.
    pub claude: Option<PathBuf>,
}

impl Homes {
    /// Returns those of a terminal.
    pub fn of(terminal: &Terminal) -> Self {
        let surroundings = &terminal.surroundings;
        let home = surroundings.home.clone();
        let config = surroundings.config_home.clone();
        let claude = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|folder| !folder.is_empty());
        Self {
            config: config.or_else(|| Some(home.as_ref()?.join(".config"))),
            claude: claude.map(PathBuf::from),
            home,
        }
    }
}

/// A token as it was read, with who can read its file.
pub struct KeptToken {
    pub token: Secret<String>,
    pub path: PathBuf,
    pub mode: u32,
}

/// Returns where the user's file is; `None` without a home folder.
pub fn of_the_user(homes: &Homes) -> Option<PathBuf> {
    Some(homes.config.as_ref()?.join("provost").join(NAME))
}

/// Returns the file that counts: the one that was named, the machine's, the user's.
///
/// Errors: a sentence, where there is none.
pub fn place(named: Option<&Path>, homes: &Homes) -> Result<PathBuf, String> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let machine = Path::new(OF_THE_MACHINE);
    // Only what is not there is passed over: what cannot be looked at may be what the machine's owner wants.
    match machine.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Ok(_) => return Ok(machine.to_owned()),
        Err(error) => return Err(format!("{OF_THE_MACHINE} cannot be looked at: {error}")),
    }
    of_the_user(homes).ok_or_else(|| "there is no home folder, and no /etc/provost/hook.toml".to_owned())
}

/// Says whether everybody can write a file, or put another one in its place.
fn is_writable_by_all(file: &File, path: &Path) -> std::io::Result<bool> {
    const OTHERS: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let of_file = file.metadata()?.mode();
    let of_folder = std::fs::metadata(folder_of(path))?.mode();
    Ok(of_file & OTHERS != 0 || of_folder & (OTHERS | STICKY) == OTHERS)
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

impl HookSettings {
    /// Reads the file.
    ///
    /// Errors: a sentence that names it, and what to do.
    pub fn load(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let mut text = String::new();
        let read = File::open(path).and_then(|file| {
            let writable = is_writable_by_all(&file, path)?;
            file.take(MAX_BYTES).read_to_string(&mut text)?;
            Ok(writable)
        });
        match read {
            Ok(false) => {}
            Ok(true) => {
                return Err(format!(
                    "everybody on this machine can write {shown} or its folder, and name another server to which calls and tokens go; run: chmod o-w {} {shown}",
                    folder_of(path).display()
                ));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(format!("there is no {shown}; run: provost hook install"));
            }
            Err(error) => return Err(format!("{shown} cannot be read: {error}")),
        }
        let settings: Self = toml::from_str(&text).map_err(|error| {
            format!(
                "{shown} is not understood: {}; run: provost hook install",
                error.message()
            )
        })?;
        settings.checked().map_err(|why| format!("{shown}: {why}"))
    }

    fn checked(self) -> Result<Self, String> {
        if self.user.is_some() && self.user_from.is_some() {
            return Err("user and user_from cannot both be said".to_owned());
        }
        if !self.allow_plain_http {
            refuse_plain(&self.url).map_err(|failure| failure.lines.join("; "))?;
        }
        Ok(self)
    }

    /// Returns the text of the file.
    pub fn text(&self) -> Result<String, Failure> {
        let members = toml::to_string(self)
            .map_err(|error| Failure::usage(format!("the settings cannot be written: {error}")))?;
        Ok(format!(
            "# Which server `provost hook run` asks, with which token, about whom. Written by `provost hook install`.\n{members}"
        ))
    }

    /// Reads the token.
    ///
    /// Errors: a sentence that names the file, and what to do.
    pub fn token(&self, homes: &Homes) -> Result<KeptToken, String> {
        let path = match self.token_file.strip_prefix("~/") {
            None => PathBuf::from(&self.token_file),
            Some(below) => {
                let home = homes.home.as_ref();
                home.ok_or("there is no home folder, in which the token should be")?
                    .join(below)
            }
        };
        let shown = path.display();
        let cannot = |error: std::io::Error| format!("the token {shown} cannot be read: {error}");
        let file = File::open(&path).map_err(cannot)?;
        // Of the open file, so that what is judged is what is read.
        let mode = file.metadata().map_err(cannot)?.mode();
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(cannot)?;
        let token =
            checked_token(&text).ok_or_else(|| format!("{shown} does not hold one token on one line"))?;
        Ok(KeptToken { token, path, mode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    /// Proves HK-7.
    #[test]
    fn what_everybody_may_write_names_no_server() {
        let folder = std::env::temp_dir().join(format!("provost-hook-settings-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(NAME);
        let text = "url = \"https://provost.example\"\norganization = \"acme\"\ntoken_file = \"~/token\"\n";
        for (of_file, of_folder, is_taken) in [
            (0o600, 0o700, true),
            (0o664, 0o775, true),
            (0o644, 0o1777, true),
            (0o646, 0o755, false),
            (0o666, 0o1777, false),
            (0o600, 0o777, false),
        ] {
            let _ = fs::remove_file(&file);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(of_file)).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(of_folder)).unwrap();
            let found = HookSettings::load(&file).map(|settings| settings.url);
            let modes = format!("{of_file:o} in {of_folder:o}: {found:?}");
            match found {
                Ok(url) => assert!(is_taken && url == "https://provost.example", "{modes}"),
                Err(why) => assert!(!is_taken && why.contains("chmod o-w"), "{modes}"),
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
