//! Everything that a program wrote to files, and every sync, from a trace of strace with the bytes in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::faults::strace;

/// The calls that are needed; a program that writes by another one is not understood, which the comparison of the last
/// state with the disk shows.
pub const CALLS: &str = "openat,open,creat,lseek,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,\
                         ftruncate,truncate,fallocate,unlink,unlinkat,rmdir,link,linkat,mkdir,mkdirat,copy_file_range";

/// One call that succeeded.
#[derive(Clone, Debug)]
pub struct Call {
    /// When it began. Units: time since the Unix epoch.
    pub at: Duration,
    pub op: Op,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Open {
        path: PathBuf,
        fd: i64,
        creates: bool,
        truncates: bool,
        appends: bool,
    },
    /// Without a place the bytes go where the descriptor is.
    Write {
        path: PathBuf,
        fd: i64,
        at: Option<usize>,
        bytes: Rc<[u8]>,
    },
    Seek {
        fd: i64,
        to: usize,
    },
    Size {
        path: PathBuf,
        size: usize,
    },
    Sync {
        path: PathBuf,
    },
    Folder {
        path: PathBuf,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
}

impl Op {
    /// What the call changes or makes durable; `None` of a call that does neither.
    pub fn changed(&self) -> Option<&Path> {
        match self {
            Self::Open { creates: false, .. } | Self::Seek { .. } => None,
            Self::Open { path, .. }
            | Self::Write { path, .. }
            | Self::Size { path, .. }
            | Self::Sync { path }
            | Self::Folder { path }
            | Self::Remove { path }
            | Self::Link { to: path, .. }
            | Self::Rename { to: path, .. } => Some(path),
        }
    }
}

/// Reads a trace, in the order in which the calls ended. Calls on nothing below `root` are left out, and those that
/// failed.
///
/// Errors: a call that the format says in a way that is not understood.
pub fn read(file: &Path, root: &Path) -> Outcome<Vec<Call>> {
    let text = std::fs::read(file).context(file.display())?;
    parse(&String::from_utf8_lossy(&text), root)
}

fn parse(text: &str, root: &Path) -> Outcome<Vec<Call>> {
    let mut calls = Vec::new();
    let mut open: BTreeMap<&str, (Duration, String)> = BTreeMap::new();
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some((at, rest)) = rest.trim_start().split_once(' ') else {
            continue;
        };
        let at = strace::instant(at);
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            open.insert(thread, (at, begun.to_owned()));
            continue;
        }
        let (at, whole) = match rest.strip_prefix("<... ") {
            Some(resumed) => {
                let (Some((at, begun)), Some((_, end))) =
                    (open.remove(thread), resumed.split_once(" resumed>"))
                else {
                    continue;
                };
                (at, format!("{begun}{end}"))
            }
            None => (at, rest.to_owned()),
        };
        if let Some(op) = operation(&whole, root).context(whole.chars().take(200).collect::<String>())? {
            calls.push(Call { at, op });
        }
    }
    Ok(calls)
}

fn operation(whole: &str, root: &Path) -> Outcome<Option<Op>> {
    // What a signal, an exit or a failed call says.
    let Some((name, rest)) = whole.split_once('(') else {
        return Ok(None);
    };
    let Some((words, result)) = rest.rsplit_once(" = ") else {
        return Ok(None);
    };
    if name.is_empty() || result.starts_with('-') || result.starts_with('?') {
        return Ok(None);
    }
    let words = words.trim_end().strip_suffix(')').unwrap_or(words);
    let words: Vec<&str> = words.split(", ").collect();
    let word = |place: usize| words.get(place).copied().unwrap_or_default();
    let is_here = |path: &Path| path.starts_with(root);
    let op = match name {
        "openat" | "open" | "creat" => {
            let (place, flags) = if name == "openat" {
                (1, word(2))
            } else {
                (0, word(1))
            };
            Op::Open {
                path: named(word(place))?,
                fd: number(result),
                creates: name == "creat" || flags.contains("O_CREAT"),
                truncates: name == "creat" || flags.contains("O_TRUNC"),
                appends: flags.contains("O_APPEND"),
            }
        }
        "lseek" => Op::Seek {
            fd: number(word(0)),
            to: usize::try_from(number(result)).context("a place")?,
        },
        "write" | "pwrite64" => {
            let path = described(word(0));
            if !is_here(&path) {
                return Ok(None);
            }
            let mut bytes = text(word(1))?;
            let length = usize::try_from(number(result)).context("a length")?;
            if bytes.len() < length {
                return Err(Failure::new("the trace has not all bytes of a write"));
            }
            bytes.truncate(length);
            let at = (name == "pwrite64").then(|| usize::try_from(number(word(3))).unwrap_or(usize::MAX));
            Op::Write {
                path,
                fd: number(word(0)),
                at,
                bytes: bytes.into(),
            }
        }
        "ftruncate" => Op::Size {
            path: described(word(0)),
            size: usize::try_from(number(word(1))).context("a size")?,
        },
        "fsync" | "fdatasync" => Op::Sync {
            path: described(word(0)),
        },
        "mkdir" => Op::Folder {
            path: named(word(0))?,
        },
        "mkdirat" => Op::Folder {
            path: named(word(1))?,
        },
        "unlink" | "rmdir" => Op::Remove {
            path: named(word(0))?,
        },
        "unlinkat" => Op::Remove {
            path: named(word(1))?,
        },
        "rename" | "link" => ends(name, named(word(0))?, named(word(1))?),
        "renameat" | "renameat2" | "linkat" => ends(name, named(word(1))?, named(word(3))?),
        _ if is_here(&described(word(0))) => {
            return Err(Failure::new(format!(
                "{name} writes in a way that is not understood"
            )));
        }
        _ => return Ok(None),
    };
    Ok(Some(op))
}

fn ends(name: &str, from: PathBuf, to: PathBuf) -> Op {
    if name.starts_with("link") {
        Op::Link { from, to }
    } else {
        Op::Rename { from, to }
    }
}

/// The number that a word begins with.
fn number(word: &str) -> i64 {
    let end = word
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(word.len());
    word[..end].parse().unwrap_or(0)
}

/// The file of a descriptor: `18</d/a>`.
fn described(word: &str) -> PathBuf {
    let path = word.split_once('<').map_or("", |(_, path)| path);
    let path = path.strip_suffix('>').unwrap_or(path);
    unescaped(path)
        .map(|bytes| PathBuf::from(String::from_utf8_lossy(&bytes).into_owned()))
        .unwrap_or_default()
}

/// A path between quotes; all of ours are absolute.
fn named(word: &str) -> Outcome<PathBuf> {
    Ok(PathBuf::from(String::from_utf8_lossy(&text(word)?).into_owned()))
}

/// The bytes between quotes.
fn text(word: &str) -> Outcome<Vec<u8>> {
    let quoted = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
    unescaped(quoted.context("a text without its end")?)
}

/// Bytes that are written as `\x2f`, or as they are.
fn unescaped(text: &str) -> Outcome<Vec<u8>> {
    let letters = text.as_bytes();
    let mut bytes = Vec::with_capacity(letters.len() / 4);
    let mut place = 0;
    while place < letters.len() {
        if letters[place] != b'\\' {
            bytes.push(letters[place]);
            place += 1;
            continue;
        }
        let digits = text.get(place + 2..place + 4).context("a cut byte")?;
        bytes.push(u8::from_str_radix(digits, 16).context("a byte")?);
        place += 4;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_with_their_bytes_in_the_order_in_which_they_ended() {
        let text = r#"
7 1795345478.000001 openat(AT_FDCWD</x>, "\x2f\x64\x2f\x61", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3</d/a>
7 1795345478.000002 pwrite64(3</d/a>, "\x00\x22\x2c\x20", 4, 8) = 4
8 1795345478.000003 fsync(4</d> <unfinished ...>
7 1795345478.000004 write(5<socket:[1]>, "\x00", 1) = 1
7 1795345478.000005 pwrite64(3</d/a>, "\x01", 1, 0) = -1 EIO (Input/output error)
7 1795345478.000006 renameat2(AT_FDCWD</x>, "\x2f\x64\x2f\x61", AT_FDCWD</x>, "\x2f\x64\x2f\x62", 0) = 0
8 1795345478.000007 <... fsync resumed>) = 0
8 1795345478.000008 +++ killed by SIGKILL +++
"#;
        let calls = parse(text, Path::new("/d")).unwrap();
        assert_eq!(calls.len(), 4);
        assert!(
            matches!(&calls[0].op, Op::Open { path, fd: 3, creates: true, .. } if path == Path::new("/d/a"))
        );
        let bytes: Rc<[u8]> = Rc::from(*b"\0\", ");
        assert!(matches!(&calls[1].op, Op::Write { at: Some(8), bytes: read, .. } if *read == bytes));
        assert!(matches!(&calls[2].op, Op::Rename { to, .. } if to == Path::new("/d/b")));
        assert!(matches!(&calls[3].op, Op::Sync { path } if path == Path::new("/d")));
        assert_eq!(calls[3].at, Duration::from_micros(1_795_345_478_000_003));
    }

    #[test]
    fn a_write_that_is_not_whole_is_no_trace() {
        let cut = "7 1795345478.1 pwrite64(3</d/a>, \"\\x00\"..., 4, 8) = 4";
        assert!(parse(cut, Path::new("/d")).is_err());
    }
}
