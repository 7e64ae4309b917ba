//! Who reads the details of what the area does.
//!
//! Who says something of a decision tells that it was about them: that is for those who may read decisions whole.

use provost_kernel::fence::Readers;

/// The action under which the log has that somebody said something of a decision.
pub const FEEDBACK: &str = "policy.violation.feedback_given";

provost_kernel::fences! {
    acts Readers::Overseers, [FEEDBACK];
    targets {
        /// A decision that did not simply allow.
        VIOLATION = "policy_violation" => Readers::Overseers;
    }
}
