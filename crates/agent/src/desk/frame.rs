//! What a hook writes to the desk, and what it reads.
//!
//! ```text
//! question   provost-desk 1 judge|hold CLIENT MODE LENGTH[ by-hand][ preloaded]\n payload
//! reply      provost-desk 1 LENGTH\n a JSON object
//! ```
//!
//! A head has no word for who asks; where a hook was started by hand it says so, and the question then proves nothing of a client. One that was
//! started with code that is not its own says that, and its answers are not counted on. An agent of before a word hangs up on it, and the hook asks
//! again without. The length is known before anything of the payload is kept.

use provost_hooks::{Client, Mode};

/// LIMIT: bytes of what a client says; a hook with more asks the server.
pub const MOST_PAYLOAD: usize = 1 << 20;
/// LIMIT: bytes of a reply.
pub const MOST_REPLY: usize = 1 << 20;
/// LIMIT: bytes of a head.
const MOST_HEAD: usize = 80;
/// Says that no client stands behind the question.
const BY_HAND: &str = "by-hand";
/// Says that a loader brought code along.
const PRELOADED: &str = "preloaded";
const LEAD: &str = "provost-desk 1 ";

/// What is wanted of the desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To judge, and to say where the server has to be asked.
    Judge,
    /// To say what holds: the server was asked and gave no answer.
    Hold,
}

impl Intent {
    fn word(self) -> &'static str {
        match self {
            Self::Judge => "judge",
            Self::Hold => "hold",
        }
    }
}

/// The head of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What is wanted.
    pub intent: Intent,
    /// Whose event it is.
    pub client: Client,
    /// What the registration does with decisions.
    pub mode: Mode,
    /// How many bytes follow.
    pub length: usize,
    /// Whether somebody started the hook by hand, as far as that can be told.
    pub by_hand: bool,
    /// Whether the hook was started with code that is not its own, as far as it says so.
    pub preloaded: bool,
}

/// Why a question is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoQuestion;

impl Asked {
    /// Returns the head as it is written.
    pub fn head(&self) -> String {
        let (intent, client, mode) = (self.intent.word(), self.client.word(), self.mode.word());
        let mut head = format!("{LEAD}{intent} {client} {mode} {}", self.length);
        for (is_so, word) in [(self.by_hand, BY_HAND), (self.preloaded, PRELOADED)] {
            if is_so {
                head.push(' ');
                head.push_str(word);
            }
        }
        head.push('\n');
        head
    }

    /// Returns the head that these bytes begin with, and how long it is; `None` where more has to come.
    ///
    /// Errors: they begin otherwise, or announce more than may come.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, NoQuestion> {
        let Some((text, end)) = line_of(bytes)? else {
            return Ok(None);
        };
        let mut words = text.split(' ').peekable();
        let mut word = || words.next().unwrap_or_default();
        let intent = match word() {
            "judge" => Intent::Judge,
            "hold" => Intent::Hold,
            _ => return Err(NoQuestion),
        };
        let client = Client::named(word()).ok_or(NoQuestion)?;
        let mode = Mode::named(word()).ok_or(NoQuestion)?;
        let length = length_of(word(), MOST_PAYLOAD)?;
        let by_hand = words.next_if_eq(&BY_HAND).is_some();
        let preloaded = words.next_if_eq(&PRELOADED).is_some();
        if words.next().is_some() {
            return Err(NoQuestion);
        }
        let asked = Self {
            intent,
            client,
            mode,
            length,
            by_hand,
            preloaded,
        };
        Ok(Some((asked, end)))
    }
}

/// Returns a reply as it is written.
pub fn reply(json: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{LEAD}{}\n", json.len()).into_bytes();
    bytes.extend_from_slice(json);
    bytes
}

/// Returns what a whole reply says; `None` where these bytes are none.
pub fn reply_of(bytes: &[u8]) -> Option<&[u8]> {
    let (text, end) = line_of(bytes).ok()??;
    let length = length_of(text, MOST_REPLY).ok()?;
    let rest = bytes.get(end..)?;
    (rest.len() == length).then_some(rest)
}

/// Returns what stands behind the lead in the first line, and where the line ends.
fn line_of(bytes: &[u8]) -> Result<Option<(&str, usize)>, NoQuestion> {
    let head = &bytes[..bytes.len().min(MOST_HEAD)];
    let Some(end) = head.iter().position(|byte| *byte == b'\n') else {
        return if head.len() == MOST_HEAD {
            Err(NoQuestion)
        } else {
            Ok(None)
        };
    };
    let text = std::str::from_utf8(&head[..end]).map_err(|_| NoQuestion)?;
    let text = text.strip_prefix(LEAD).ok_or(NoQuestion)?;
    Ok(Some((text, end + 1)))
}

fn length_of(word: &str, most: usize) -> Result<usize, NoQuestion> {
    let is_plain = (1..=8).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    let length = word.parse().map_err(|_| NoQuestion)?;
    if is_plain && length <= most {
        Ok(length)
    } else {
        Err(NoQuestion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_what_is_asked_and_nothing_else() {
        let asked = Asked {
            intent: Intent::Hold,
            client: Client::Gemini,
            mode: Mode::Monitor,
            length: 7,
            by_hand: true,
            preloaded: false,
        };
        for (by_hand, preloaded) in [(true, false), (false, false), (false, true), (true, true)] {
            let asked = Asked {
                by_hand,
                preloaded,
                ..asked
            };
            let head = asked.head();
            assert_eq!(Asked::read(head.as_bytes()), Ok(Some((asked, head.len()))));
        }
        let head = asked.head();
        assert_eq!(Asked::read(&head.as_bytes()[..head.len() - 1]), Ok(None));
        for wrong in [
            "GET / HTTP/1.1\r\n",
            "provost-desk 1 judge codex enforce\n",
            "provost-desk 1 judge codex enforce 1048577\n",
            "provost-desk 1 judge codex enforce -1\n",
            "provost-desk 1 judge codex enforce +1\n",
            "provost-desk 1 judge codex enforce 1 ada\n",
            "provost-desk 1 judge codex enforce 1 by-hand by-hand\n",
            "provost-desk 1 judge codex enforce 1 preloaded by-hand\n",
            "provost-desk 1 judge codex enforce 1 preloaded preloaded\n",
            "provost-desk 1 judge codex enforce 1  preloaded\n",
            "provost-desk 1 judge cursor enforce 1\n",
            "provost-desk 2 judge codex enforce 1\n",
        ] {
            assert_eq!(Asked::read(wrong.as_bytes()), Err(NoQuestion), "{wrong}");
        }
        assert_eq!(Asked::read(&[b'a'; 4000]), Err(NoQuestion));
        assert_eq!(reply_of(&reply(b"{}")), Some(&b"{}"[..]));
        assert_eq!(reply_of(b"provost-desk 1 3\n{}"), None);
        assert_eq!(reply_of(b""), None);
    }
}
