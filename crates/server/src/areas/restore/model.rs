//! The words of the area, without storage.

use provost_kernel::auth::Role;
use provost_kernel::held::{Held, HeldKind};
use provost_kernel::{Error, OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
    /// A workload trust.
    WorkloadTrust,
    /// A machine.
    Device,
}

impl Kind {
    /// Returns the kind that an area names.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "service_account" => Some(Self::ServiceAccount),
            "user" => Some(Self::User),
            "mcp_client" => Some(Self::McpClient),
            "identity_link" => Some(Self::IdentityLink),
            "workload_trust" => Some(Self::WorkloadTrust),
            "device" => Some(Self::Device),
            _ => None,
        }
    }

    /// Returns what begins the ids of the kind; those of a link are those of users.
    fn prefix(self) -> &'static str {
        match self {
            Self::ServiceAccount => "sa_",
            Self::User | Self::IdentityLink => "usr_",
            Self::McpClient => "ocl_",
            Self::WorkloadTrust => "wtr_",
            Self::Device => "dev_",
        }
    }
}

/// Returns what a restore holds back, as the areas of the program declare it, in their order.
///
/// Errors: `Internal` when an area names a kind that the API does not have, or none names any: nobody would be held.
pub fn kinds(ctx: &OperationContext<'_>) -> Result<Vec<(Kind, &'static HeldKind)>> {
    let declared = ctx.services().areas().iter().flat_map(|area| area.held);
    let kind = |held: &'static HeldKind| {
        let unknown = || Error::internal(format!("the API has no word for what is held as {}", held.word));
        Ok((Kind::of(held.word).ok_or_else(unknown)?, held))
    };
    let kinds: Vec<_> = declared.map(kind).collect::<Result<_>>()?;
    if kinds.is_empty() {
        return Err(Error::internal(
            "the program was started without areas whose records act",
        ));
    }
    Ok(kinds)
}

/// LIMIT: what a yes to a release shows. Ours: nobody reads more.
const MOST_SHOWN: i64 = 100;

/// Returns what is held back, of these ids or all of it.
///
/// Errors: `InvalidDefinition` where all of it is more than anybody would read.
/// Cost: by ids a statement for each, and two for that of a user, however many are held; of all two statements for each kind.
pub fn of(ctx: &mut OperationContext<'_>, ids: Option<&[String]>) -> Result<Vec<(Kind, Held)>> {
    let Some(ids) = ids else {
        return every(ctx);
    };
    // PostgreSQL takes no NUL in a text, and no id has one.
    let ids: BTreeSet<&str> = ids
        .iter()
        .map(String::as_str)
        .filter(|id| !id.contains('\0'))
        .collect();
    let mut found = Vec::new();
    for (kind, held) in kinds(ctx)? {
        for id in ids.iter().filter(|id| id.starts_with(kind.prefix())) {
            found.extend((held.of_id)(ctx, id)?.into_iter().map(|one| (kind, one)));
        }
    }
    Ok(found)
}

/// Returns all that is held back.
///
/// Errors: `InvalidDefinition` where it is more than anybody would read.
fn every(ctx: &mut OperationContext<'_>) -> Result<Vec<(Kind, Held)>> {
    let mut found = Vec::new();
    let mut total = 0;
    for (kind, held) in kinds(ctx)? {
        let count = (held.count)(ctx)?;
        total += count;
        if total > MOST_SHOWN {
            let message = "more than 100 are held back: nobody says yes to what nobody reads; release them by their ids, 100 at a time";
            return Err(Error::unfit("/all", message));
        }
        found.extend((held.page)(ctx, count, 0)?.into_iter().map(|one| (kind, one)));
    }
    Ok(found)
}

/// Somebody who is held.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HeldPrincipal")]
pub struct HeldView {
    /// What it is: `service_account`, `user`, `mcp_client`, `identity_link`, `workload_trust` or `device`.
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
