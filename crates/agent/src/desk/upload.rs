//! From the log to the server, in order, from where the server says that it stands.
//!
//! ```text
//! batch ──► POST decisions ──► expected, head ──► ours at that number: what is before it goes
//!              ├── 409                       └──► another one: what waits is bound anew behind it, and nothing is lost
//!              └── 429, the day is full: what was refused goes first, and the rest stays until there is room again
//! ```

use super::chain::{Link, is_hash};
use super::log::Log;
use super::serve::lock;
use crate::sent::keep_decisions;
use crate::station::Visit;
use crate::trouble::{Cause, Trouble};
use serde_json::Value;
use std::sync::Mutex;

/// LIMIT: requests of one round.
const MOST_REQUESTS: usize = 64;

/// The log of an agent, which its desk and its loop share.
#[derive(Debug)]
pub struct SharedLog(pub(crate) std::sync::Arc<Mutex<Log>>);

impl SharedLog {
    /// Opens the log of an agent. Whoever calls has the lock of the folder.
    ///
    /// Errors: folder, disk.
    pub fn open(agent: &crate::Folder, say: &dyn Fn(&str)) -> Result<Self, Trouble> {
        let log = Log::open(agent, say)?;
        Ok(Self(std::sync::Arc::new(Mutex::new(log))))
    }

    /// Returns the same log, for somebody else who works with it.
    #[must_use]
    pub fn share(&self) -> Self {
        Self(self.0.clone())
    }

    /// Sends what waits, until there is nothing more or something is in the way. Returns how many entries the server took.
    ///
    /// Errors: refused, gone, unreachable, folder, disk.
    pub async fn upload(&self, visit: &Visit<'_>) -> Result<u64, Trouble> {
        let mut taken = 0;
        lock(&self.0).settle()?;
        for _ in 0..MOST_REQUESTS {
            let Some(batch) = lock(&self.0).batch(visit.say)? else {
                return Ok(taken);
            };
            let body = batch.body();
            let stands = match visit.post("decisions", &body).await {
                Ok(answer) => {
                    // What `explain` shows of it is worth no failure.
                    let _ = keep_decisions(&visit.agent.folder, body.to_string().as_bytes());
                    lock(&self.0).rest(false);
                    tell_refused(&answer, visit.say);
                    told(&answer).ok_or_else(|| {
                        let line = "the answer says nothing of what was taken; is this a Provost server?";
                        Trouble::new(Cause::Refused(200), line)
                    })?
                }
                // It takes no more for today: what was refused, or asked an approval for, comes first, and the rest waits.
                Err(trouble) if trouble.status.as_deref() == Some("day_is_full") => {
                    let mut log = lock(&self.0);
                    let stands = trouble
                        .resume
                        .clone()
                        .and_then(|stands| link(stands.0, &stands.1));
                    let is_here = stands.as_ref() == Some(&batch.from);
                    let is_other =
                        is_here && log.put_weighty_first(&batch.from, visit.clock.since_boot(), visit.say)?;
                    log.rest(!is_other);
                    if is_other {
                        continue;
                    }
                    // Heartbeats go on meanwhile.
                    return Err(Trouble {
                        wait: None,
                        ..trouble
                    });
                }
                // An earlier server has no such operation.
                Err(trouble) if matches!(trouble.cause, Cause::Refused(404 | 405)) => return Ok(taken),
                Err(trouble) => {
                    // Who waits for its approval stands nowhere yet.
                    let may_go_on =
                        trouble.cause == Cause::Refused(409) && trouble.status.as_deref() != Some("pending");
                    let resume = trouble.resume.clone().filter(|_| may_go_on);
                    let link = resume.and_then(|stands| link(stands.0, &stands.1));
                    link.ok_or(trouble)?
                }
            };
            let mut log = lock(&self.0);
            if log.at(stands.next)?.as_ref() == Some(&stands) {
                if stands.next <= batch.from.next {
                    let line = "the server takes nothing of the log of decisions, and does not say why";
                    return Err(Trouble::new(Cause::Refused(200), line));
                }
                taken += stands.next - batch.from.next;
                log.taken(&stands)?;
            } else {
                log.rebind(&stands, visit.say)?;
            }
        }
        Ok(taken)
    }
}

fn told(answer: &Value) -> Option<Link> {
    link(
        answer.get("expected").and_then(Value::as_u64)?,
        answer.get("head").and_then(Value::as_str)?,
    )
}

fn link(next: u64, previous: &str) -> Option<Link> {
    (next > 0 && is_hash(previous)).then(|| Link {
        next,
        previous: previous.to_owned(),
    })
}

/// Says what the server has and will never record.
fn tell_refused(answer: &Value, say: &dyn Fn(&str)) {
    let refused = answer.get("refused").and_then(Value::as_array);
    let Some(first) = refused.and_then(|refused| refused.first()) else {
        return;
    };
    let text = |member: &str| first.get(member).and_then(Value::as_str).unwrap_or_default();
    say(&format!(
        "warning: the server refused {} recorded decisions for ever, the first for {}: {}",
        refused.map_or(0, Vec::len),
        text("path"),
        text("message")
    ));
}
