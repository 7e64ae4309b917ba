//! Whether the store answers those who read.
//!
//! ```text
//! asked ── own question waits for a reader ──────────────► its answer, or its failure
//!   └───── meanwhile: did any reader answer anything? ──► that counts as well
//!            └── neither for the whole patience ────────► it does not answer
//! ```
//!
//! Readers that work off a long queue are slow and not stuck: what they answer to others says that they live.
//!
//! Keeps RY-1.

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::params;
use crate::witness::ANSWER;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often it is looked whether somebody else was answered.
const STEP: Duration = Duration::from_millis(10);

impl Kernel {
    /// Waits until a reader of the store has answered, this question or any other, for `patience` at most.
    ///
    /// Errors: `Unavailable` when none has; what the store says when it cannot be read.
    pub async fn readers_answer(&self, patience: Duration) -> Result<()> {
        let before = self.witness.reads();
        let (reply, mut answer) = oneshot::channel();
        // A queue that is full says nothing yet: those who work it off may answer.
        let _ = self.submit_read(move |conn| {
            let _ = reply.send(conn.read(|tx| tx.query_opt(&ANSWER, params![], |_| Ok(()))));
        });
        let somebody = async {
            while self.witness.reads() == before {
                tokio::time::sleep(STEP).await;
            }
        };
        tokio::select! {
            biased;
            Ok(answered) = &mut answer => answered.map(drop),
            () = somebody => Ok(()),
            () = tokio::time::sleep(patience) => Err(Error::unavailable(format!(
                "no reader of the store has answered for {} s",
                patience.as_secs()
            ))),
        }
    }
}
