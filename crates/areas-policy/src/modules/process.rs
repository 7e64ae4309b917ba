//! One worker, seen from the server: started, asked, watched, killed.
//!
//! Keeps MW-2.

use super::frames::{self, ANSWERS, ASK, FORGET, FrameBuffer, HELLO, LOAD, LOADED};
use provost_policy::rego::wire::{Bytes, put_question, put_text};
use provost_policy::rego::{Module, ModuleAnswer, Question, compiler_fingerprint};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The word that makes this program a worker; nobody types it.
pub const WORD: &str = "run-modules";
/// LIMIT: how long a worker may take to begin.
const START: Duration = Duration::from_secs(10);
/// How often whoever waits for an answer asks whether there is still time.
const LOOK: Duration = Duration::from_millis(20);
/// LIMIT: modules, and bytes of their sources, that a worker keeps compiled; then it forgets all of them.
const KEPT_MODULES: usize = 256;
const KEPT_BYTES: usize = 8 << 20;

/// A worker that waits to be asked.
pub struct Process {
    child: Child,
    socket: UnixStream,
    arriving: FrameBuffer,
    /// The numbers of the modules that it has.
    loaded: HashMap<String, u32>,
    bytes: usize,
    /// What could not be taken away from it.
    pub left: String,
}

/// How asking ended.
#[derive(Debug)]
pub enum End {
    /// Every question has its answer.
    Whole,
    /// There is no time for the rest; the worker was ended in the middle of it.
    NoTime,
    /// The worker was killed, or ended by itself, over the first question that has no answer.
    Ended,
}

impl Process {
    /// Starts a worker of an image.
    ///
    /// Errors: those of the system, or a worker that does not begin.
    #[expect(
        clippy::disallowed_methods,
        reason = "the time that a process takes to start is the system's"
    )]
    pub fn start(image: &Path) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(START))?;
        let child = Command::new(image)
            .arg0("provost")
            .arg(WORD)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut process = Self {
            child,
            socket,
            arriving: FrameBuffer::default(),
            loaded: HashMap::new(),
            bytes: 0,
            left: String::new(),
        };
        let end = Instant::now() + START;
        let hello = loop {
            match process.receive()? {
                Some((HELLO, bytes)) => break bytes,
                Some(_) => return Err(io::Error::other("the worker says something else than hello")),
                None if Instant::now() >= end => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "the worker does not begin"));
                }
                None => {}
            }
        };
        let mut hello = Bytes(&hello);
        let mut text = || hello.text().map_err(io::Error::other);
        if text()? != frames::VERSION || text()? != compiler_fingerprint() {
            return Err(io::Error::other("the worker is of another build"));
        }
        text()?.clone_into(&mut process.left);
        Ok(process)
    }

    /// Asks modules; the answers are added to `sayings`, in order. Whoever is not through with a question within `patience` is
    /// killed.
    pub fn ask(
        &mut self,
        questions: &[Question<'_>],
        patience: Duration,
        has_time: &dyn Fn() -> bool,
        sayings: &mut Vec<ModuleAnswer>,
    ) -> End {
        match self.asked(questions, patience, has_time, sayings) {
            Ok(true) => End::Whole,
            Ok(false) => End::NoTime,
            Err(_) => End::Ended,
        }
    }

    /// Errors: the worker has ended, is too slow, or says what nobody understands.
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a process works is measured by the system's clock"
    )]
    fn asked(
        &mut self,
        questions: &[Question<'_>],
        patience: Duration,
        has_time: &dyn Fn() -> bool,
        sayings: &mut Vec<ModuleAnswer>,
    ) -> io::Result<bool> {
        let mut message = Vec::with_capacity(1024);
        message.extend_from_slice(&u32::try_from(questions.len()).unwrap_or(u32::MAX).to_le_bytes());
        let sources: usize = questions
            .iter()
            .map(|question| question.module.source().len())
            .sum();
        if self.loaded.len() + questions.len() > KEPT_MODULES || self.bytes + sources > KEPT_BYTES {
            self.loaded.clear();
            self.bytes = 0;
            frames::write(&mut self.socket, FORGET, &[])?;
        }
        let mut loading = 0_usize;
        for question in questions {
            let number = self.number(question.module, &mut loading)?;
            message.extend_from_slice(&number.to_le_bytes());
            put_question(&mut message, question);
        }
        frames::write(&mut self.socket, ASK, &message)?;
        let mut open = questions.len();
        let mut moved = Instant::now();
        while open > 0 {
            let Some((kind, bytes)) = self.receive()? else {
                if !has_time() {
                    return Ok(false);
                }
                // What compiles is bounded by itself, and no evaluation.
                let most = if loading > 0 { START } else { patience };
                if moved.elapsed() > most {
                    return Err(ErrorKind::TimedOut.into());
                }
                continue;
            };
            moved = Instant::now();
            if kind == LOADED {
                loading = loading.checked_sub(1).ok_or(ErrorKind::InvalidData)?;
                continue;
            }
            if kind != ANSWERS {
                return Err(ErrorKind::InvalidData.into());
            }
            let mut bytes = Bytes(&bytes);
            while !bytes.0.is_empty() {
                open = open.checked_sub(1).ok_or(ErrorKind::InvalidData)?;
                sayings.push(bytes.saying().map_err(io::Error::other)?);
            }
        }
        Ok(true)
    }

    /// Returns the number of a module, which the worker is told if it has it not.
    fn number(&mut self, module: &Module, loading: &mut usize) -> io::Result<u32> {
        let key = module.key();
        if let Some(number) = self.loaded.get(key) {
            return Ok(*number);
        }
        let number = u32::try_from(self.loaded.len()).unwrap_or(u32::MAX);
        let mut message = number.to_le_bytes().to_vec();
        put_text(&mut message, module.family().word());
        put_text(&mut message, module.source());
        frames::write(&mut self.socket, LOAD, &message)?;
        self.loaded.insert(key.to_owned(), number);
        self.bytes += module.source().len();
        *loading += 1;
        Ok(number)
    }

    /// Returns the next message, if it arrives in time.
    ///
    /// Errors: the worker has ended.
    fn receive(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        if let Some(message) = self.arriving.next(frames::ANSWERS_BYTES)? {
            return Ok(Some(message));
        }
        let mut bytes = [0; 16 << 10];
        match self.socket.read(&mut bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.arriving.push(&bytes[..count]);
                self.arriving.next(frames::ANSWERS_BYTES)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; nothing is left of it either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns what a worker is started from: on Linux the running image itself, whatever has become of its path since.
pub fn image() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
}
