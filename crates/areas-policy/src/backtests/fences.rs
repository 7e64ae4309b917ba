//! Who reads the details of what the area does, and what its events say.
//!
//! Whoever reads policies reads runs; what their samples show has rules of its own.

use super::model::{BacktestId, Status};
use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// Where a run stands.
    RunStanding {
        /// The run.
        run_id: BacktestId,
        /// Where it stands.
        status: Status,
        /// Of a run that failed: why.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    } like r#"{"runId":"btr_01kaf9q2m4x7t8v3c5d6e0g1h2","status":"running"}"#;

    /// A run that somebody ended.
    CanceledRun {
        /// The run.
        run_id: BacktestId,
        /// `canceled`.
        status: Status,
        /// Whether it keeps results of a part.
        partial: bool,
    } like r#"{"runId":"btr_01kaf9q2m4x7t8v3c5d6e0g1h2","status":"canceled","partial":true}"#;
}

provost_kernel::fences! {
    acts Readers::Everybody, [
        "policy.backtest.started",
        "policy.backtest.resumed",
        "policy.backtest.succeeded",
        "policy.backtest.failed",
    ];
    targets {
        /// A run.
        RUN = "policy_backtest" => Readers::Everybody;
    }
    events {
        /// Somebody canceled a backtest.
        CANCELED: CanceledRun = "policy.backtest.canceled" => Readers::Everybody;
        /// A backtest waits for a worker.
        QUEUED: RunStanding = "policy.backtest.queued" => Readers::Everybody,
            like r#"{"runId":"btr_01kaf9q2m4x7t8v3c5d6e0g1h2","status":"queued"}"#;
        /// A worker began with a backtest.
        STARTED: RunStanding = "policy.backtest.started" => Readers::Everybody;
        /// A backtest has its results.
        SUCCEEDED: RunStanding = "policy.backtest.succeeded" => Readers::Everybody,
            like r#"{"runId":"btr_01kaf9q2m4x7t8v3c5d6e0g1h2","status":"succeeded"}"#;
        /// A backtest could not be finished.
        FAILED: RunStanding = "policy.backtest.failed" => Readers::Everybody,
            like r#"{"runId":"btr_01kaf9q2m4x7t8v3c5d6e0g1h2","status":"failed","code":"unreadable_history"}"#;
    }
}
