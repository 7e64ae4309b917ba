//! One line on a person's terminal that says how far a long command is. Nothing where nobody looks.

use super::terminal::Terminal;
use provost_words::time::{Clock, SystemClock};
use std::time::Duration;

const BETWEEN: Duration = Duration::from_millis(100);

/// The progress of one command.
pub struct Progress<'a> {
    terminal: &'a Terminal,
    is_shown: bool,
    /// What is counted: `lines`.
    unit: &'static str,
    clock: SystemClock,
    last: Option<Duration>,
}

impl<'a> Progress<'a> {
    /// Starts the time. Nothing is shown with `quiet` or without a terminal.
    pub fn start(terminal: &'a Terminal, quiet: bool, unit: &'static str) -> Self {
        Self {
            terminal,
            is_shown: terminal.stderr_is_terminal && !quiet,
            unit,
            clock: SystemClock::new(),
            last: None,
        }
    }

    /// Shows how much is done, ten times a second at most.
    ///
    /// `part` is what is done of what there is, in any unit, where the whole is known.
    pub fn show(&mut self, count: u64, part: Option<(u64, u64)>) {
        let now = self.clock.monotonic();
        if !self.is_shown || self.last.is_some_and(|last| now < last + BETWEEN) {
            return;
        }
        self.last = Some(now);
        let words = line(count, self.unit, now, part);
        self.terminal.progress(&words);
    }

    /// Shows words in the place of the line.
    pub fn say(&mut self, words: &str) {
        if self.is_shown {
            self.last = None;
            self.terminal.progress(words);
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.is_shown {
            self.terminal.progress("");
        }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock.monotonic()
    }
}

/// However the work ends, what is said next stands on a clean line.
impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns how many there were in a second.
pub fn per_second(count: u64, elapsed: Duration) -> u64 {
    let rate = u128::from(count) * 1000 / elapsed.as_millis().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

fn line(count: u64, unit: &str, elapsed: Duration, part: Option<(u64, u64)>) -> String {
    let mut words = format!("{count} {unit}, {}/s", per_second(count, elapsed));
    if let Some((done, whole)) = part.filter(|(done, whole)| *done > 0 && done <= whole) {
        let left = elapsed.as_millis() * u128::from(whole - done) / u128::from(done);
        let secs = left.div_ceil(1000);
        let percent = u128::from(done) * 100 / u128::from(whole);
        words = format!("{words}, {percent} %, {}:{:02} left", secs / 60, secs % 60);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_part_that_is_done() {
        let after = Duration::from_secs(10);
        assert_eq!(
            line(500, "lines", after, Some((25, 200))),
            "500 lines, 50/s, 12 %, 1:10 left"
        );
        assert_eq!(line(500, "lines", after, None), "500 lines, 50/s");
        assert_eq!(line(0, "lines", Duration::ZERO, Some((0, 9))), "0 lines, 0/s");
    }
}
