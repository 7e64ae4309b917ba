//! The words of the area, without storage.

use provost_areas_platform::held::Held;
use provost_kernel::Timestamp;
use provost_kernel::auth::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Kind {
    /// A service account.
    ServiceAccount,
    /// A user who has a role.
    User,
    /// A registered client.
    McpClient,
    /// Who a user is at an issuer; its id is the user's.
    IdentityLink,
}

impl Kind {
    /// Every kind, in the order of the list.
    pub const ALL: [Self; 4] = [
        Self::ServiceAccount,
        Self::User,
        Self::McpClient,
        Self::IdentityLink,
    ];
}

/// Somebody who is held.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HeldPrincipal")]
pub struct HeldView {
    /// What it is: `service_account`, `user`, `mcp_client` or `identity_link`.
    kind: Kind,
    /// Its id; of an identity link that of its user.
    id: String,
    /// Its name; of an identity link the issuer and the subject.
    name: String,
    /// The role that it acts in once it is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_role: Option<Role>,
    /// When it last changed before the backup was made.
    last_changed_at: Timestamp,
}

impl HeldView {
    /// Returns what a reader sees.
    pub fn of(kind: Kind, held: Held) -> Self {
        Self {
            kind,
            id: held.id,
            name: held.name,
            permission_role: held.role,
            last_changed_at: held.last_changed_at,
        }
    }
}
