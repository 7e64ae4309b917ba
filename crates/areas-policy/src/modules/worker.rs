//! A worker: a process of this program that runs modules and can do nothing else.
//!
//! It has no environment and no descriptor but its socket, may open none, write no file and start no process, and may have so
//! much memory. What it is asked it answers in order, soon after each answer is there. It ends when its socket does.
//!
//! Keeps MW-2.

use super::frames::{self, ANSWERS, ASK, FORGET, HELLO, LOAD, LOADED};
use super::process::{WORD, image};
use provost_policy::Family;
use provost_policy::rego::wire::{Bytes, put_saying, put_text};
use provost_policy::rego::{Failure, Module, ModuleAnswer, compiler_fingerprint};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// LIMIT: memory that a worker may write to. What of the program's image is only read does not count, nor do addresses that are
/// merely reserved: the allocator reserves more than this before it uses any.
const MEMORY_BYTES: u64 = 256 << 20;
/// How long answers may wait for others.
const PATIENCE: Duration = Duration::from_millis(1);
/// Answers are sent when there are so many bytes of them.
const ANSWERS_BYTES: usize = 64 << 10;

/// The word that makes a worker begin again under its limit of memory.
const BOUNDED: &str = "run-modules-bounded";

/// What a worker may do, and what it is called where it could not be taken away.
const LIMITS: [(Resource, u64, &str); 4] = [
    (Resource::Core, 0, "core dumps"),
    (Resource::Fsize, 0, "writing files"),
    (Resource::Nproc, 0, "starting processes"),
    // What is open stays open; no file is opened any more, and no socket.
    (Resource::Nofile, 0, "opening files and connections"),
];

/// Runs a worker until its socket ends, if the program's first word says so.
///
/// The allocator takes a gibibyte of addresses that may be written to before the program's first line, and would work within it whatever the
/// limit: so the limit is set, and the program begins again under it.
pub fn run_if_asked(word: &OsStr) -> Option<ExitCode> {
    if word == WORD {
        // Its own descriptors end when the program begins again, and so does whatever the server had inherited itself.
        close_fds::set_fds_cloexec(3, &[]);
        limit(Resource::Data, MEMORY_BYTES);
        let mut again = Command::new(image().ok()?);
        // It returns if it fails, and only then.
        drop(again.arg0("provost").arg(BOUNDED).exec());
        return Some(ExitCode::FAILURE);
    }
    if word != BOUNDED {
        return None;
    }
    // Nobody reads what it would print.
    Some(run().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

fn limit(resource: Resource, most: u64) -> bool {
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(resource, limit).is_ok()
}

fn run() -> io::Result<()> {
    let mut left = Vec::new();
    if has_others() {
        left.push("inherited descriptors");
    }
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    if getrlimit(Resource::Data)
        .current
        .is_none_or(|most| most > MEMORY_BYTES)
    {
        left.push("unlimited memory");
    }
    for (resource, most, freedom) in LIMITS {
        if !limit(resource, most) {
            left.push(freedom);
        }
    }
    let mut hello = Vec::new();
    put_text(&mut hello, frames::VERSION);
    put_text(&mut hello, &compiler_fingerprint());
    put_text(&mut hello, &left.join(", "));
    let mut writer = &socket;
    frames::write(&mut writer, HELLO, &hello)?;
    let mut reader = BufReader::new(&socket);
    let mut modules: HashMap<u32, Option<Module>> = HashMap::new();
    while let Some((kind, bytes)) = frames::read(&mut reader, frames::QUESTIONS_BYTES)? {
        match kind {
            LOAD => {
                load(&bytes, &mut modules)?;
                frames::write(&mut writer, LOADED, &[])?;
            }
            FORGET => modules.clear(),
            ASK => answer(&bytes, &modules, &mut writer)?,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok(())
}

/// Returns whether something is open beside the socket, the empty output, and the list itself.
fn has_others() -> bool {
    std::fs::read_dir("/proc/self/fd").map_or(true, |open| open.count() > 4)
}

fn load(bytes: &[u8], modules: &mut HashMap<u32, Option<Module>>) -> io::Result<()> {
    let mut bytes = Bytes(bytes);
    let number = bytes.number().map_err(io::Error::other)?;
    let family = bytes.text().map_err(io::Error::other)?;
    let source = bytes.text().map_err(io::Error::other)?;
    let family = Family::ALL.into_iter().find(|known| known.word() == family);
    let module = family.and_then(|family| Module::compile(family, source).ok());
    modules.insert(number, module);
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a worker has no clock but the system's, and decides nothing by it"
)]
fn answer(bytes: &[u8], modules: &HashMap<u32, Option<Module>>, writer: &mut impl Write) -> io::Result<()> {
    let mut bytes = Bytes(bytes);
    let count = bytes.number().map_err(io::Error::other)?;
    let mut answers = Vec::new();
    let mut sent = Instant::now();
    for nth in 0..count {
        let number = bytes.number().map_err(io::Error::other)?;
        let question = bytes.question().map_err(io::Error::other)?;
        let saying = match modules.get(&number).and_then(Option::as_ref) {
            Some(module) => question.question(module).ask(),
            None => ModuleAnswer::failed(Failure::Failed),
        };
        put_saying(&mut answers, &saying);
        if nth + 1 == count || answers.len() > ANSWERS_BYTES || sent.elapsed() >= PATIENCE {
            frames::write(writer, ANSWERS, &answers)?;
            answers.clear();
            sent = Instant::now();
        }
    }
    Ok(())
}
