//! Who reads the details of what the area does, and what its events say.
//!
//! Ids alone, so that whoever reads the log reads them; what a call says is read from the record, by who may.

use super::delegations::{Delegation, DelegationId};
use super::model::{Approval, ApprovalId};
use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// An approval.
    OfApproval {
        /// The approval.
        approval_id: ApprovalId,
        /// `user` or `service_account`.
        subject_kind: String,
        /// Whose call it is.
        subject_id: String,
    } like r#"{"approvalId":"apr_01kaf9q2m4x7t8v3c5d6e0g1h2","subjectKind":"user","subjectId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;
    /// The routes.
    OfRoutes {
        /// How often they were written.
        revision: i64,
    } like r#"{"revision":3}"#;
    /// A delegation of votes.
    OfDelegation {
        /// The delegation.
        delegation_id: DelegationId,
        /// Who lends their vote.
        from_user_id: String,
        /// Who votes in their name.
        to_user_id: String,
    } like r#"{"delegationId":"dlg_01kaf9q2m4x7t8v3c5d6e0g1h2","fromUserId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h3","toUserId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h4"}"#;
    /// A use of an approval.
    UsedApproval {
        /// The approval.
        approval_id: ApprovalId,
        /// The decision that let the call pass, or the request that performed the operation.
        event_id: String,
        /// How many uses are left.
        uses_left: i64,
    } like r#"{"approvalId":"apr_01kaf9q2m4x7t8v3c5d6e0g1h2","eventId":"evt_01kaf9q2m4x7t8v3c5d6e0g1h4","usesLeft":0}"#;
}

impl OfApproval {
    /// Returns what is said of an approval.
    pub fn of(approval: &Approval) -> Self {
        Self {
            approval_id: approval.id.clone(),
            subject_kind: approval.subject.kind.clone(),
            subject_id: approval.subject.id.clone(),
        }
    }
}

impl OfDelegation {
    /// Returns what is said of a delegation.
    pub fn of(delegation: &Delegation) -> Self {
        Self {
            delegation_id: delegation.id.clone(),
            from_user_id: delegation.from_user_id.clone(),
            to_user_id: delegation.to_user_id.clone(),
        }
    }
}

/// The action under which the log has what decisions did with approvals.
pub const SETTLEMENT: &str = "approvals.settled";
/// The action under which the log has an approval whose time ran out.
pub const EXPIRY: &str = "approvals.expired";
/// The action under which the log has an approval that ended because the clock was set back.
pub const UNTIMED: &str = "approvals.clock_set_back";
/// The action under which the log has that somebody asked for a second person, in the place of what was asked about.
pub const ASKING: &str = "approvals.requested";

provost_kernel::fences! {
    acts Readers::Everybody, [SETTLEMENT, EXPIRY, UNTIMED, ASKING];
    targets {
        /// An approval.
        APPROVAL = "approval" => Readers::Everybody;
        /// A delegation of votes.
        DELEGATION = "approval_delegation" => Readers::Everybody;
        /// The routes; their id is the organization.
        ROUTES = "approval_routes" => Readers::Overseers;
    }
    events {
        /// A call waits for an approval.
        REQUESTED: OfApproval = "approval.requested" => Readers::Everybody;
        /// Somebody voted, or took a vote back, and nothing is decided yet.
        VOTED: OfApproval = "approval.voted" => Readers::Everybody;
        /// A call was approved: it passes when it is asked about again.
        APPROVED: OfApproval = "approval.approved" => Readers::Everybody;
        /// A call was denied.
        DENIED: OfApproval = "approval.denied" => Readers::Everybody;
        /// The time of an approval ran out.
        EXPIRED: OfApproval = "approval.expired" => Readers::Everybody;
        /// A request was taken back.
        CANCELED: OfApproval = "approval.canceled" => Readers::Everybody;
        /// Who decides about what is asked for is said otherwise.
        ROUTES_CHANGED: OfRoutes = "approval.routes_changed" => Readers::Everybody;
        /// Somebody has somebody else vote in their name for a time.
        DELEGATION_CREATED: OfDelegation = "approval.delegation_created" => Readers::Everybody;
        /// Nobody votes by a delegation any more: it was taken back, its time ran out, or one of the two acts no more.
        DELEGATION_ENDED: OfDelegation = "approval.delegation_ended" => Readers::Everybody;
        /// A call passed by an approval, or an operation was performed by it.
        USED: UsedApproval = "grant.consumed" => Readers::Everybody;
        /// What was approved was taken back.
        REVOKED: OfApproval = "grant.revoked" => Readers::Everybody;
        /// What an approval binds is not any more what it was.
        VOID: OfApproval = "grant.void" => Readers::Everybody;
    }
}
