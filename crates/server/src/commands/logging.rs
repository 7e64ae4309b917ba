//! The log: standard error, for people on a terminal, JSON for everything else.
//!
//! ```text
//!   any thread ── a line ──► queue of 4 096 ──► one thread ──► standard error
//!                              full: dropped, counted            closed: dropped, counted
//! ```
//!
//! INVARIANT LG-1: a log that nobody reads, or reads too slowly, holds nothing up and ends nothing; what it did not
//! take is counted. The reader of a pipe is another program, and what it does must not be felt by those who are
//! served.

use super::failure::Failure;
use crate::config::{Log, LogFormat};
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// The target of the lines that drivers wait for; no filter takes them out.
pub const ANNOUNCE: &str = "provost::announce";

/// What the server logs when nobody says what.
pub const SERVER: &str = "info,rmcp=warn";

/// What other commands log.
pub const BRIEF: &str = "warn,provost::fatal=off";

/// LIMIT: lines that wait for the reader of standard error.
const WAITING: usize = 4096;

/// How long the end of the process waits for the lines that are on their way.
const FLUSH: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<SyncSender<Entry>> = OnceLock::new();
static LOST: AtomicU64 = AtomicU64::new(0);

/// What the thread of the log is given.
enum Entry {
    Line(Vec<u8>),
    /// Everything before it was written.
    Flush(SyncSender<()>),
}

/// Returns how many lines standard error did not take.
pub fn lost_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Waits until what was logged is written, for a moment at most.
pub fn flush() {
    let Some(queue) = QUEUE.get() else { return };
    let (done, is_done) = sync_channel(1);
    if queue.try_send(Entry::Flush(done)).is_ok() {
        // Nobody reads, or too slowly: the end is not kept waiting for it.
        let _ = is_done.recv_timeout(FLUSH);
    }
}

fn lose() {
    LOST.fetch_add(1, Ordering::Relaxed);
}

fn write_all(entries: &Receiver<Entry>, mut out: impl Write) {
    while let Ok(entry) = entries.recv() {
        match entry {
            Entry::Line(line) if out.write_all(&line).is_err() => lose(),
            Entry::Line(_) => {}
            Entry::Flush(done) => {
                let _ = done.try_send(());
            }
        }
    }
}

/// The end of the queue that lines are put into.
struct LineQueue(SyncSender<Entry>);

impl Write for LineQueue {
    /// Takes a whole line: that is what the formatter hands over.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.try_send(Entry::Line(line.to_vec())).is_err() {
            lose();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the thread that writes lines.
fn start_thread() -> Result<SyncSender<Entry>, Failure> {
    let (queue, entries) = sync_channel(WAITING);
    let thread = std::thread::Builder::new().name("log".to_owned());
    thread
        .spawn(move || write_all(&entries, io::stderr()))
        .map_err(|error| Failure::new(format!("the log cannot be started: {error}")))?;
    Ok(queue)
}

/// Starts the log.
///
/// Errors: a filter that cannot be understood.
pub fn start(log: &Log, default_filter: &str) -> Result<(), Failure> {
    let words = log.filter.as_deref().unwrap_or(default_filter);
    let filter = EnvFilter::try_new(words).ok().and_then(|filter| {
        let announced = format!("{ANNOUNCE}=info").parse().ok()?;
        Some(filter.add_directive(announced))
    });
    let filter = filter.ok_or_else(|| {
        Failure::usage(format!(
            "log.filter: {words:?} is no filter; try info, warn or provost_kernel=debug"
        ))
    })?;
    let is_terminal = io::stderr().is_terminal();
    let is_human = match log.format {
        LogFormat::Human => true,
        LogFormat::Json => false,
        LogFormat::Auto => is_terminal,
    };
    let queue = start_thread()?;
    let _ = QUEUE.set(queue.clone());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Otherwise it would say on standard error that standard error cannot be written, and panic.
        .log_internal_errors(false)
        .with_writer(move || LineQueue(queue.clone()));
    let started = if is_human {
        lines
            .with_ansi(is_terminal)
            .with_target(false)
            .finish()
            .try_init()
    } else {
        lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .finish()
            .try_init()
    };
    started.map_err(|_| Failure::new("the log was started twice"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// A reader that takes a line when it is told to, or never.
    struct Slow(std::sync::mpsc::Receiver<()>, Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.1.extend(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Proves LG-1.
    #[test]
    fn a_log_that_takes_no_line_holds_nothing_up() {
        let (queue, entries) = sync_channel(4);
        let (go_on, told) = channel();
        let thread = std::thread::spawn(move || {
            let mut out = Slow(told, Vec::new());
            write_all(&entries, &mut out);
            out.1
        });
        let before = lost_lines();
        let mut lines = LineQueue(queue);
        // One is with the reader, four wait; the others find no room, and none of them waits for it.
        for n in 0..20 {
            assert_eq!(
                lines.write(format!("{n}\n").as_bytes()).unwrap(),
                if n < 10 { 2 } else { 3 }
            );
        }
        let lost = lost_lines() - before;
        assert!((15..=16).contains(&lost), "{lost}");
        (0..2).for_each(|_| go_on.send(()).unwrap());
        // The reader is gone: what is left is lost, and the thread goes on to the end.
        drop(go_on);
        drop(lines);
        let written = thread.join().unwrap();
        assert_eq!(written, b"0\n1\n");
        assert_eq!(lost_lines() - before, 18);
    }
}
