//! Who reads the details of what the area does, and what its events say.
//!
//! What a restore holds back is accounts, clients, identity links and workload trusts.

use provost_kernel::fence::Readers;
use schemars::JsonSchema;
use serde::Serialize;

/// What is wrong with a row, or with rows together.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DisagreeingRow {
    /// What is wrong, in a word.
    pub fault: &'static str,
    /// The same as a sentence.
    pub message: String,
    /// Whose row it is; absent when no single row is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// Its table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

provost_kernel::event_data! {
    /// How many may act again.
    ReleasedPrincipals {
        /// Service accounts.
        service_accounts: usize,
        /// Users.
        users: usize,
        /// Registered MCP clients.
        mcp_clients: usize,
        /// Workload trusts.
        workload_trusts: usize,
        /// Devices.
        devices: usize,
    } like r#"{"serviceAccounts":2,"users":14,"mcpClients":1,"workloadTrusts":3,"devices":3}"#;

    /// Rows that are not what Provost wrote.
    Disagreement {
        /// How many there are.
        count: usize,
        /// The first of them.
        findings: Vec<DisagreeingRow>,
    } like r#"{"count":1,"findings":[{"fault":"changed","message":"the row sa_01kaf9q2m4x7t8v3c5d6e0g1h2 of the table service_accounts, of acme, was changed from outside: it is not what Provost wrote","organizationId":"acme","table":"service_accounts","row":"sa_01kaf9q2m4x7t8v3c5d6e0g1h2"}]}"#;
}

provost_kernel::fences! {
    acts Readers::Overseers, [
        "rights.accepted",
        "rights.disagreed",
        "rights.proven",
        "store.accepted",
        "store.clock_accepted",
        "store.loss_accepted",
        "store.removals_released",
        "store.restored",
    ];
    targets {
        /// Everybody whom a restore holds back.
        HELD = "restore" => Readers::Overseers;
        /// The store of the installation; its id is the epoch.
        STORE = "store" => Readers::Overseers;
    }
    events {
        /// Whom a restore held back may act again.
        RELEASED: ReleasedPrincipals = "restore.released" => Readers::Overseers;
        /// Rows that decide rights are not what Provost wrote.
        DISAGREED: Disagreement = "rights.disagreed" => Readers::Overseers;
    }
}
