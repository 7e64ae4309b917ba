//! Who reads the details of what the area does.
//!
//! Whoever reads policies reads runs; what their samples show has rules of its own.

use provost_kernel::fence::Readers;

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
        CANCELED = "policy.backtest.canceled" => Readers::Everybody;
        QUEUED = "policy.backtest.queued" => Readers::Everybody;
        STARTED = "policy.backtest.started" => Readers::Everybody;
        SUCCEEDED = "policy.backtest.succeeded" => Readers::Everybody;
        FAILED = "policy.backtest.failed" => Readers::Everybody;
    }
}
