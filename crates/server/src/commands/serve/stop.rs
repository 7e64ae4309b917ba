//! The signals that end the server, and the one that has it read its certificate anew.

use crate::commands::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, SIGINT and SIGHUP.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// What a signal asks for.
pub enum SignalRequest {
    /// To stop, with the signal's name.
    Stop(&'static str),
    /// To read anew what can be read anew.
    ReadAnew,
}

impl Signals {
    /// Takes over the signals of the process.
    pub fn listen() -> Result<Self, Failure> {
        let failed = |error| Failure::new(format!("signals cannot be received: {error}"));
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            hang_up: signal(SignalKind::hangup()).map_err(failed)?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop("SIGTERM"),
            _ = self.interrupt.recv() => SignalRequest::Stop("SIGINT"),
            _ = self.hang_up.recv() => SignalRequest::ReadAnew,
        }
    }
}
