//! Who reads the details of what the area does, and what its events say.
//!
//! Trusts say which programs elsewhere act as an account: as accounts, they are read by admins and auditors.

use super::model::{TrustId, WorkloadTrust};
use provost_kernel::fence::Readers;
use provost_kernel::proofs::{Form, Testimony, Word};

provost_kernel::event_data! {
    /// A trust and its account.
    OfTrust {
        /// The trust.
        workload_trust_id: TrustId,
        /// The account.
        service_account_id: String,
    } like r#"{"workloadTrustId":"wtr_01kaf9q2m4x7t8v3c5d6e0g1h2","serviceAccountId":"sa_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;
}

impl OfTrust {
    /// Returns what is said of a trust.
    pub fn of(trust: &WorkloadTrust) -> Self {
        Self {
            workload_trust_id: trust.id.clone(),
            service_account_id: trust.service_account_id.clone(),
        }
    }
}

provost_kernel::fences! {
    acts Readers::Overseers, [];
    targets {
        /// A workload trust.
        TRUST = "workload_trust" => Readers::Overseers;
    }
    events {
        /// Workloads of an issuer can act as a service account.
        CREATED: OfTrust = "workload_trust.created" => Readers::Overseers;
        /// A workload trust was changed; its sessions ended, unless it was its name.
        UPDATED: OfTrust = "workload_trust.updated" => Readers::Overseers;
        /// A workload trust was deleted, by itself or with its account; its sessions ended.
        DELETED: OfTrust = "workload_trust.deleted" => Readers::Overseers;
    }
    members {
        "/workloadTrusts" => Readers::Overseers;
    }
}

/// What entries say of trusts.
pub static TRUSTS: Testimony = Testimony {
    table: "workload_trusts",
    kind: &TRUST,
    among: None,
    words: &[
        Word::new("name", "/name"),
        Word::new("audience", "/audience"),
        Word::of("claims", "/claims", Form::Document),
        Word::of("scopes", "/scopes", Form::Words("")),
        Word::new("lifetime_secs", "/lifetimeSeconds"),
        Word::new("max_token_age_secs", "/maxTokenAgeSeconds"),
        Word::of("jwks", "/jwks", Form::Document),
        Word::of("suspended_at", "/suspended", Form::Presence).held(),
    ],
};
