//! The token on the disk: its text and when it ends, in one file that is there wholly or not at all.
//!
//! ```text
//! token        the text, the end of its life
//! token.next   blanks before a renewal is asked for ──► overwritten with the answer ──► has the name of the first
//! ```
//! The room is taken before the server is asked, because its answer ends the earlier token. Where a disk copies what is written in place
//! (btrfs, ZFS), that write may still find no room: then the token serves out of memory and is written again in each round.

use crate::folder::Folder;
use crate::trouble::{ANEW, Cause, Trouble};
use provost_words::Secret;
use provost_words::time::Timestamp;

const NAME: &str = "token";
const NEXT: &str = "token.next";
/// How much room is taken: what is no longer than a sector is there wholly or not at all. Units: bytes.
const ROOM: usize = 512;

/// A token of a device.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub text: Secret<String>,
    pub expires_at: Timestamp,
}

/// Says whether a text can be the token of a device.
fn is_device_token(text: &str) -> bool {
    text.starts_with("prov_dvt_") && text.len() <= 8_192 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Token {
    /// Returns the token that an answer gives; `None` where it gives none.
    pub fn of(text: Secret<String>, expires_at: Option<&str>) -> Option<Self> {
        let expires_at = Timestamp::parse(expires_at?)?;
        is_device_token(text.expose()).then_some(Self { text, expires_at })
    }

    fn written(bytes: Vec<u8>) -> Option<Self> {
        let bytes = Secret::new(bytes);
        let mut lines = std::str::from_utf8(bytes.expose()).ok()?.lines();
        let text = Secret::new(lines.next()?.trim().to_owned());
        Self::of(text, lines.next().map(str::trim))
    }

    fn line(&self) -> Secret<String> {
        Secret::new(format!("{}\n{}\n", self.text.expose(), self.expires_at))
    }

    /// Reads the token. One whose place was not reached by a process that was killed counts: the earlier one may have ended since.
    ///
    /// Errors: folder, when there is none or it is not as it has to be.
    pub fn load(folder: &Folder) -> Result<Self, Trouble> {
        if let Some(next) = folder.read(NEXT)?.and_then(Self::written) {
            return Ok(next);
        }
        let shown = folder.file(NAME);
        let shown = shown.display();
        let Some(bytes) = folder.read(NAME)? else {
            return Err(Trouble::new(Cause::Folder, format!("{shown} is missing")).fix(ANEW));
        };
        Self::written(bytes).ok_or_else(|| {
            let line = format!("{shown} does not hold the token of a device and the end of its life");
            Trouble::new(Cause::Folder, line).fix(ANEW)
        })
    }

    /// Writes the token of an enrolment.
    ///
    /// Errors: disk.
    pub fn keep(&self, folder: &Folder) -> Result<(), Trouble> {
        folder.replace(NAME, self.line().expose().as_bytes())
    }

    /// Takes the room for the next token.
    ///
    /// Errors: folder, disk.
    pub fn make_room(folder: &Folder) -> Result<(), Trouble> {
        Self::settle(folder)?;
        folder.replace(NEXT, &[b' '; ROOM])
    }

    /// Writes the token in the place of the earlier one.
    ///
    /// Errors: folder, disk.
    pub fn succeed(&self, folder: &Folder) -> Result<(), Trouble> {
        let line = self.line();
        let padded = Secret::new(format!("{:ROOM$}", line.expose()));
        if !folder.overwrite(NEXT, padded.expose().as_bytes())? {
            folder.replace(NEXT, padded.expose().as_bytes())?;
        }
        Self::settle(folder)
    }

    /// Gives a token that was written, and not in its place when the process ended, its place.
    ///
    /// Errors: folder, disk.
    pub fn settle(folder: &Folder) -> Result<(), Trouble> {
        match folder.read(NEXT)?.and_then(Self::written) {
            Some(_) => folder.rename(NEXT, NAME),
            None => Ok(()),
        }
    }
}
