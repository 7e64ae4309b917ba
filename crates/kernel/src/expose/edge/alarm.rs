//! A timer of one connection.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A timer that is only made when somebody waits for it.
#[derive(Default)]
pub(super) struct Alarm {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Sets the alarm unless it is set.
    pub(super) fn set_once(&mut self, after: Duration) {
        self.at.get_or_insert_with(|| Instant::now() + after);
    }

    pub(super) fn clear(&mut self) {
        self.at = None;
    }

    /// Is ready when the alarm is set and its time has come.
    pub(super) fn poll(&mut self, ctx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(ctx)
    }
}
