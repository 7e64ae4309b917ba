//! Who reads the details of what the area does.
//!
//! Accounts and tokens are read by admins and auditors.

use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::fences! {
    acts Readers::Overseers, [
        "organization.created",
        "organization.recovered",
        "service_account.purged",
        "service_account.token.reuse_detected",
        "service_account.token.expiring",
        "service_account.token.expired",
    ];
    targets {
        /// An account, with its tokens.
        ACCOUNT = "service_account" => Readers::Overseers;
    }
    events {
        CREATED = "service_account.created" => Readers::Overseers;
        UPDATED = "service_account.updated" => Readers::Overseers;
        DELETED = "service_account.deleted" => Readers::Overseers;
        DISABLED = "service_account.disabled" => Readers::Overseers;
        ENABLED = "service_account.enabled" => Readers::Overseers;
        ORPHANED = "service_account.orphaned" => Readers::Overseers;
        TOKEN_ROTATED = "service_account.token.rotated" => Readers::Overseers;
        TOKEN_REVOKED = "service_account.token.revoked" => Readers::Overseers;
        TOKEN_REUSE_DETECTED = "service_account.token.reuse_detected" => Readers::Overseers;
        TOKEN_EXPIRING = "service_account.token.expiring" => Readers::Overseers;
        TOKEN_EXPIRED = "service_account.token.expired" => Readers::Overseers;
    }
    members {
        "/orphaned_service_account" => Readers::Overseers;
    }
}

/// What entries say of accounts.
pub static ACCOUNTS: Testimony = Testimony {
    table: "service_accounts",
    kind: &ACCOUNT,
    among: None,
    words: &[
        Word::new("name", "/name"),
        Word::new("permission_role", "/permissionRole"),
        Word::of("scopes", "/scopes", Form::Words("allOfRole")),
        Word::new("owner_console_user_id", "/ownerConsoleUserId"),
        Word::new("status", "/status").held(),
    ],
};
