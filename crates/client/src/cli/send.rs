//! The same request until there is an answer: safe because a write carries its idempotency key (D4).
//!
//! ```text
//! client: POST key=K ──►            server: acts, stores the answer, the connection breaks
//! client: POST key=K ──►            server: finds K, repeats the stored answer
//! ```
//!
//! INVARIANT CL-5: a command gives up on a request in time, with its repetitions and waits, reads no answer without
//! end, and ends a walk through pages that leads nowhere.
//! Keeps CL-2.

use super::failure::{Exit, Failure};
use super::refusal;
use super::server::{Call, Reply, Server, Silence};
use super::terminal::Terminal;
use super::trouble::Trouble;
use http::{HeaderMap, header};
use provost_words::entropy::{Entropy, SystemEntropy};
use serde_json::Value;
use std::time::Duration;

/// LIMIT: who is told to wait longer than this gives up and says so.
const MAX_WAIT: Duration = Duration::from_mins(1);
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// How a request is sent and what is said about it.
pub(super) struct Sender<'a> {
    pub(super) server: &'a Server,
    pub(super) terminal: &'a Terminal,
    pub(super) retries: u32,
    pub(super) quiet: bool,
    /// The flags that repeat a write under its key; absent for a read.
    pub(super) repeat: Option<String>,
    /// 304 is an answer too: the request says what it has.
    pub(super) unmodified: bool,
    /// The refusal of what is not confirmed is an answer too: it says what would be lost.
    pub(super) weighs: bool,
}

/// How one attempt ended, other than well.
struct Setback {
    failure: Failure,
    /// How long to wait before the next attempt; absent when there is no use in one.
    wait: Option<Wait>,
    /// The server may have acted without our knowing.
    is_unknown: bool,
}

enum Wait {
    Backoff,
    Told(Duration),
}

/// How far a request got, for whoever gives up on it.
#[derive(Default)]
struct Course {
    /// The request is on its way.
    is_asking: bool,
    /// The server may have acted without our knowing.
    is_unknown: bool,
    /// What came of the attempt before.
    setback: Option<String>,
}

impl Sender<'_> {
    /// Returns the answer of success. All attempts and the waits between them have one time limit.
    ///
    /// INVARIANT CL-5: a command gives up on a request in time, whatever the server does.
    pub(super) async fn send(&self, call: &Call) -> Result<Reply, Failure> {
        self.server.renew().await?;
        let mut course = Course::default();
        let limit = self.server.timeout();
        let done = tokio::time::timeout(limit, self.attempts(call, &mut course)).await;
        if let Ok(done) = done {
            return done;
        }
        let mut line = format!(
            "{} gave no answer within {} s",
            self.server.url(),
            limit.as_secs()
        );
        if let Some(setback) = course.setback {
            line = format!("{line}; before: {setback}");
        }
        let failure = Failure::new(Exit::Unreachable, line).and("--timeout SECONDS waits longer");
        Err(self.end(failure, course.is_asking || course.is_unknown))
    }

    async fn attempts(&self, call: &Call, course: &mut Course) -> Result<Reply, Failure> {
        let mut attempt = 0;
        loop {
            course.is_asking = true;
            let asked = self.unless_interrupted(self.server.ask(call)).await?;
            course.is_asking = false;
            let setback = match asked {
                Ok(reply)
                    if reply.status.is_success() || self.is_unmodified(&reply) || self.is_weighed(&reply) =>
                {
                    return Ok(reply);
                }
                Ok(reply) => refused(&reply, self.server.url()),
                Err(silence) => silent(silence, self.server.url()),
            };
            course.is_unknown |= setback.is_unknown;
            course.setback = setback.failure.lines.first().cloned();
            let wait = match setback.wait {
                Some(Wait::Told(wait)) => wait,
                Some(Wait::Backoff) => backoff(attempt),
                None => return Err(self.end(setback.failure, course.is_unknown)),
            };
            if attempt >= self.retries || wait > MAX_WAIT {
                let mut failure = setback.failure;
                if wait > MAX_WAIT {
                    failure = failure.and(format!("the server asks to wait {} s", wait.as_secs()));
                }
                return Err(self.end(failure, course.is_unknown));
            }
            attempt += 1;
            if !self.quiet {
                let what = setback.failure.lines.first().map_or("", String::as_str);
                let seconds = wait.as_secs_f32();
                self.terminal.note(&format!(
                    "{what}; trying again in {seconds:.1} s ({attempt} of {})",
                    self.retries
                ));
            }
            self.unless_interrupted(tokio::time::sleep(wait)).await?;
        }
    }

    fn is_unmodified(&self, reply: &Reply) -> bool {
        self.unmodified && reply.status == http::StatusCode::NOT_MODIFIED
    }

    fn is_weighed(&self, reply: &Reply) -> bool {
        let code = || {
            serde_json::from_slice::<Value>(&reply.body)
                .ok()?
                .get("code")
                .cloned()
        };
        self.weighs
            && reply.status == http::StatusCode::BAD_REQUEST
            && code().is_some_and(|c| c == "confirmation_required")
    }

    /// Ends a write that is interrupted with the words that learn its outcome; a read just ends.
    async fn unless_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        if self.repeat.is_none() {
            return Ok(work.await);
        }
        tokio::select! {
            done = work => Ok(done),
            Ok(()) = tokio::signal::ctrl_c() => {
                Err(self.end(Failure::new(Exit::Unreachable, "interrupted"), true))
            }
        }
    }

    /// Says of a write whose outcome nobody knows how to learn it without acting twice.
    fn end(&self, failure: Failure, is_unknown: bool) -> Failure {
        match &self.repeat {
            Some(repeat) if is_unknown => failure
                .and("the outcome is unknown: the server may have acted")
                .and(format!(
                    "repeat the same command with {repeat}: it acts at most once"
                )),
            _ => failure,
        }
    }
}

fn refused(reply: &Reply, url: &str) -> Setback {
    let status = reply.status.as_u16();
    let envelope: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let is_in_progress = envelope
        .get("code")
        .is_some_and(|code| code == "idempotency_in_progress");
    let is_temporary = matches!(status, 429 | 502 | 503 | 504) || is_in_progress;
    let wait = is_temporary.then(|| retry_after(&reply.headers).map_or(Wait::Backoff, Wait::Told));
    // 429 and most 4xx are answered before anything is done; a 5xx can come from behind the act.
    Setback {
        failure: refusal::describe(reply, &envelope, url),
        wait,
        is_unknown: status >= 500 || is_in_progress,
    }
}

/// Says why there is no answer, for who asks once.
pub(super) fn unanswered(silence: Silence, url: &str) -> Failure {
    silent(silence, url).failure
}

fn silent(silence: Silence, url: &str) -> Setback {
    let says = |line: String, exit: Exit, trouble: Trouble| {
        let failure = Failure::new(exit, format!("{line}: {trouble}"));
        trouble.steps.into_iter().fold(failure, Failure::and)
    };
    let unreachable = |trouble: Trouble| says(format!("cannot reach {url}"), Exit::Unreachable, trouble);
    match silence {
        Silence::NotSent(trouble) => Setback {
            failure: unreachable(trouble),
            wait: None,
            is_unknown: false,
        },
        Silence::NobodyThere(trouble) => Setback {
            failure: unreachable(trouble),
            wait: Some(Wait::Backoff),
            is_unknown: false,
        },
        Silence::Refused(failure) => Setback {
            failure,
            wait: None,
            is_unknown: false,
        },
        Silence::TooLong(trouble) => Setback {
            failure: says(url.to_owned(), Exit::ServerFault, trouble),
            wait: None,
            is_unknown: true,
        },
        Silence::Lost(trouble) => Setback {
            failure: says(
                format!("the answer of {url} was lost"),
                Exit::Unreachable,
                trouble,
            ),
            wait: Some(Wait::Backoff),
            is_unknown: true,
        },
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).max(FIRST_WAIT))
}

/// Doubles from a quarter of a second to eight, up to a half longer by chance so that many callers spread.
fn backoff(attempt: u32) -> Duration {
    let wait = FIRST_WAIT * 2u32.pow(attempt.min(5));
    wait + wait * u32::from(SystemEntropy.seed()[0]) / 512
}
