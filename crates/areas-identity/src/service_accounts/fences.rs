//! Who reads the details of what the area does, and what its events say.
//!
//! Accounts and tokens are read by admins and auditors.

use super::model::{ServiceAccountId, TokenId};
use provost_kernel::Timestamp;
use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::event_data! {
    /// An account.
    OfAccount {
        /// The account.
        service_account_id: ServiceAccountId,
    } like r#"{"serviceAccountId":"sa_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;

    /// An account without an owner.
    OrphanedAccount {
        /// The account.
        service_account_id: String,
        /// The user who owned it.
        owner_console_user_id: String,
    } like r#"{"serviceAccountId":"sa_01kaf9q2m4x7t8v3c5d6e0g1h2","ownerConsoleUserId":"usr_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;

    /// A token of an account.
    OfToken {
        /// The account.
        service_account_id: ServiceAccountId,
        /// The token.
        token_id: TokenId,
    } like r#"{"serviceAccountId":"sa_01kaf9q2m4x7t8v3c5d6e0g1h2","tokenId":"sat_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;

    /// The use of a token that had a successor.
    TokenReuse {
        /// The account; null when its token is forgotten.
        service_account_id: Option<String>,
        /// The token.
        token_id: String,
        /// `high`.
        severity: &'static str,
    } like r#"{"serviceAccountId":"sa_01kaf9q2m4x7t8v3c5d6e0g1h2","tokenId":"sat_01kaf9q2m4x7t8v3c5d6e0g1h3","severity":"high"}"#;

    /// The end of a token by time.
    TokenExpiry {
        /// The account.
        service_account_id: String,
        /// The token.
        token_id: String,
        /// When it ends, or ended.
        expires_at: Timestamp,
    } like r#"{"serviceAccountId":"sa_01kaf9q2m4x7t8v3c5d6e0g1h2","tokenId":"sat_01kaf9q2m4x7t8v3c5d6e0g1h3","expiresAt":"2026-12-04T03:15:00.000Z"}"#;
}

impl OfAccount {
    /// Returns the data about an account.
    pub fn of(id: &ServiceAccountId) -> Self {
        Self {
            service_account_id: id.clone(),
        }
    }
}

impl OfToken {
    /// Returns the data about a token of an account.
    pub fn of(account: &ServiceAccountId, token: &TokenId) -> Self {
        Self {
            service_account_id: account.clone(),
            token_id: token.clone(),
        }
    }
}

provost_kernel::fences! {
    acts Readers::Overseers, [
        "organization.created",
        "organization.recovered",
        "service_account.purge_postponed",
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
        /// A service account was made.
        CREATED: OfAccount = "service_account.created" => Readers::Overseers;
        /// A service account was changed.
        UPDATED: OfAccount = "service_account.updated" => Readers::Overseers;
        /// A service account was deleted; its tokens are refused.
        DELETED: OfAccount = "service_account.deleted" => Readers::Overseers;
        /// A service account was disabled; its tokens are refused.
        DISABLED: OfAccount = "service_account.disabled" => Readers::Overseers;
        /// A service account was enabled again.
        ENABLED: OfAccount = "service_account.enabled" => Readers::Overseers;
        /// The owner of a service account was suspended or deleted; the account keeps working.
        ORPHANED: OrphanedAccount = "service_account.orphaned" => Readers::Overseers;
        /// A service account got a new token.
        TOKEN_ROTATED: OfToken = "service_account.token.rotated" => Readers::Overseers;
        /// A token of a service account was revoked.
        TOKEN_REVOKED: OfToken = "service_account.token.revoked" => Readers::Overseers;
        /// A token was used although another one had taken its place: somebody may have copied it.
        TOKEN_REUSE_DETECTED: TokenReuse = "service_account.token.reuse_detected" => Readers::Overseers;
        /// A token ends in 14 days, in 7, or in one.
        TOKEN_EXPIRING: TokenExpiry = "service_account.token.expiring" => Readers::Overseers;
        /// A token has ended.
        TOKEN_EXPIRED: TokenExpiry = "service_account.token.expired" => Readers::Overseers;
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
