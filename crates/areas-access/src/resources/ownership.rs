//! Who manages a record: the service itself, or one Terraform manager (client contract §3.12, D11.3).
//!
//! | record is managed by | writer | outcome |
//! | --- | --- | --- |
//! | the service | without labels | may write |
//! | the service | with labels | 409: a manager does not take over what it did not make |
//! | Terraform | the principal that made it, with the same two labels | may write |
//! | Terraform | that principal with other labels or none; anybody else | 409 |
//! | Terraform | anybody, once that principal is deleted | may write, and owns it from then on |
//!
//! Keeps RS-1, RS-4.
//!
//! The labels coordinate; the principal is the boundary: who copies the headers gains nothing. The last line
//! exists because a record whose owner is gone could never be changed again.
//!
//! A manager that lost the answer to a create says it again under another key. Within a day it is answered with the record,
//! if that is the caller's own under the same labels, never changed, and exactly what is said; else with 409 and whose it is.

use provost_areas_identity::subjects::{self, SubjectKind};
use provost_kernel::db::Row;
use provost_kernel::error::{Code, Error, Result};
use provost_kernel::operation::Manager;
use provost_kernel::{OperationContext, Timestamp};

/// Who manages a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The service: whoever may write at all.
    Service,
    /// One Terraform manager.
    Terraform {
        /// Its label.
        manager: String,
        /// Its workspace's label.
        instance: String,
        /// The principal that made the record.
        principal: String,
    },
}

impl Owner {
    /// Returns the owner that the caller would be.
    pub fn calling(ctx: &OperationContext<'_>, manager: Option<&Manager>) -> Self {
        manager.map_or(Self::Service, |manager| Self::Terraform {
            manager: manager.id.clone(),
            instance: manager.instance.clone(),
            principal: ctx.actor().id.clone(),
        })
    }

    /// Returns the word on the wire.
    pub const fn mode(&self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Terraform { .. } => "terraform",
        }
    }

    /// Returns `manager_id`, `manager_instance`, `owner_id` as rows keep them.
    pub fn columns(&self) -> [Option<&str>; 3] {
        match self {
            Self::Service => [None; 3],
            Self::Terraform {
                manager,
                instance,
                principal,
            } => [Some(manager), Some(instance), Some(principal)],
        }
    }

    /// Reads the three columns that begin at `index`.
    pub fn read(row: &Row<'_>, index: usize) -> Result<Self> {
        let (manager, instance) = (row.get(index)?, row.get(index + 1)?);
        let principal: Option<String> = row.get(index + 2)?;
        Ok(match (manager, instance, principal) {
            (Some(manager), Some(instance), Some(principal)) => Self::Terraform {
                manager,
                instance,
                principal,
            },
            _ => Self::Service,
        })
    }

    /// Returns who owns the record after a write by `writer`.
    ///
    /// Errors: `Conflict` when the record is somebody else's.
    pub fn admit(&self, ctx: &mut OperationContext<'_>, writer: Self) -> Result<Self> {
        if *self == writer {
            return Ok(writer);
        }
        let Self::Terraform { principal, .. } = self else {
            return Err(Error::new(
                Code::Conflict,
                "this record is managed by the service; Terraform manages only what it made itself",
            ));
        };
        if !is_alive(ctx, principal)? {
            return Ok(writer);
        }
        Err(Error::new(
            Code::Conflict,
            "this record is managed by Terraform: only the service account that made it may change it, with the \
             same manager and instance",
        ))
    }
}

/// How long a create can be said again (client contract §1.5). Units: seconds.
const AGAIN_SECS: i64 = 86_400;

/// Says whether a create that this caller sends may be the one that made a record of this owner. What both say is compared by
/// whoever asks.
pub fn may_be_said_again(
    ctx: &OperationContext<'_>,
    caller: &Owner,
    owner: &Owner,
    created_at: Timestamp,
) -> bool {
    matches!(caller, Owner::Terraform { .. })
        && caller == owner
        && ctx.now() < created_at.plus_secs(AGAIN_SECS)
}

/// Answers a create that was said again: nothing is made.
pub fn answer_again(ctx: &mut OperationContext<'_>) {
    ctx.status(200);
    ctx.header("idempotent-replayed", "true".to_owned());
}

/// Adds to the refusal of a create which record is there, and whose it is.
pub fn naming(error: Error, id: &str, owner: &Owner) -> Error {
    let [manager, instance, _] = owner.columns();
    let named = error.with("id", id);
    let labels = [("managerId", manager), ("managerInstance", instance)];
    labels
        .into_iter()
        .filter_map(|(member, label)| Some((member, label?)))
        .fold(named, |error, (member, label)| error.with(member, label))
}

fn is_alive(ctx: &mut OperationContext<'_>, principal: &str) -> Result<bool> {
    let kind = if principal.starts_with("usr_") {
        SubjectKind::User
    } else {
        SubjectKind::ServiceAccount
    };
    Ok(subjects::missing(ctx, kind, &[principal])?.is_empty())
}
