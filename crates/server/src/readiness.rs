//! Whether the process runs, and whether it takes requests.
//!
//! INVARIANT RY-1: whether the process runs depends on no reader, no writer and no count of requests; whether it
//! takes requests is answered in time, also while the server is full.
//! Keeps MW-3.
//!
//! Questions that come together are answered together: whoever asks without a token moves the store once, not once for each time.

use crate::app::{json_bytes, refusal};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use provost_areas_platform::identity;
use provost_areas_policy::modules;
use provost_kernel::Kernel;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::{Error, Result};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// The process runs.
pub const ALIVE: &str = "/healthz";
/// The store is read and takes changes.
pub const READY: &str = "/readyz";

/// LIMIT: how long readers and writers may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the two routes.
pub fn routes(kernel: &Arc<Kernel>, probe: &Arc<Probe>) -> Router {
    let state = (kernel.clone(), probe.clone());
    Router::new()
        .route(ALIVE, get(alive))
        .route(READY, get(ready))
        .with_state(state)
}

/// Returns whether requests are taken, as [`READY`] says it.
pub async fn is_ready(kernel: &Kernel, probe: &Probe) -> bool {
    !kernel.is_broken() && probe.ask(kernel).await.is_ok() && !kernel.is_broken()
}

async fn alive() -> Response {
    json_bytes(json!({ "status": "ok" }).to_string().into())
}

async fn ready(State((kernel, probe)): State<(Arc<Kernel>, Arc<Probe>)>, request: Request) -> Response {
    let outcome = if kernel.is_broken() {
        Err(kernel.brokenness())
    } else {
        probe.ask(&kernel).await
    };
    match outcome {
        // It may have broken meanwhile, and by this very question.
        Ok(()) if !kernel.is_broken() => {
            let mut said = json!({ "status": "ready" });
            if identity::is_rehearsal(&kernel) {
                said["rehearsal"] = true.into();
            }
            // Decisions are answered all the same, and count modules as matched (MW-3). What the system said is in the log.
            if modules::trouble(&kernel).is_some() {
                said["modules"] = "no process for modules can be started".into();
            }
            json_bytes(said.to_string().into())
        }
        Ok(()) => refusal(&kernel.brokenness(), &request),
        Err(_) if kernel.is_broken() => refusal(&kernel.brokenness(), &request),
        Err(error) => refusal(&kernel.disagreement().unwrap_or(error), &request),
    }
}

/// The question that is asked of the store, one at a time.
#[derive(Default)]
pub struct Probe {
    /// How many were begun.
    begun: AtomicU64,
    /// The number of the last one that was answered, and why it was not well.
    last: Mutex<(u64, Option<&'static str>)>,
}

impl Probe {
    /// Asks, or takes the answer to a question that began after this one came.
    ///
    /// Errors: `Unavailable`, with a sentence that says what does not answer.
    async fn ask(&self, kernel: &Kernel) -> Result<()> {
        let before = self.begun.load(Ordering::Acquire);
        let mut last = self.last.lock().await;
        if last.0 <= before {
            let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
            *last = (number, probe(kernel).await);
        }
        last.1
            .map_or(Ok(()), |sentence| Err(Error::unavailable(sentence)))
    }
}

async fn probe(kernel: &Kernel) -> Option<&'static str> {
    let change = kernel.system(OrganizationId::installation(), None, |_| Ok(()));
    let change = tokio::time::timeout(PATIENCE, change);
    let (read, change) = tokio::join!(kernel.readers_answer(PATIENCE), change);
    if let Err(error) = read {
        tracing::warn!(cause = error.private(), "not ready: {error}");
        return Some("the store is not read now: its readers do not answer");
    }
    match change {
        Ok(Ok(())) => None,
        Ok(Err(_)) | Err(_) => Some("the store does not take changes"),
    }
}
