#![forbid(unsafe_code)]
//! Areas that judge and look back: policies, approvals, decisions, recorded history, backtests.

pub mod approvals;
pub mod backtests;
pub mod decisions;
pub mod device_judging;
pub mod history;
pub mod modules;
pub mod otlp;
mod paging;
pub mod policies;
pub mod violations;
