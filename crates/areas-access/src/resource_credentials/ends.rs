//! What takes away from credentials, and how it is taken away again (EN-3).

use super::model::CredentialId;
use super::store;
use provost_areas_platform::ends::{by_hand, unclear};
use provost_kernel::area::{Again, RepeatedRevocation, Right};
use provost_kernel::db::Tx;
use provost_kernel::ends::{Revocation, RowChange};
use provost_kernel::{OperationContext, Result, Timestamp, params, statements};

const CREDENTIAL: &str = "credential";
const ASSIGNMENT: &str = "credential_assignment";
const DELETED: &str = "deleted";
const NO_DEFAULT: &str = "no_default";

statements! {
    /// Takes a credential from a subject.
    UNASSIGN = "DELETE FROM resource_credential_assignments WHERE organization_id = ?1 AND credential_id = ?2 AND subject_kind = ?3 AND subject_id = ?4";
    /// Takes a credential from everybody who is named.
    UNASSIGN_ALL = "DELETE FROM resource_credential_assignments WHERE organization_id = ?1 AND credential_id = ?2";
    /// Takes a credential from everybody else.
    NO_LONGER_DEFAULT = "UPDATE resource_credentials SET is_default = ?3, updated_at = CASE WHEN updated_at < ?4 THEN ?4 ELSE updated_at + 1 END WHERE organization_id = ?1 AND id = ?2 AND is_default = ?5";
}

/// The tables that decide what somebody may do.
pub const RIGHTS: &[Right] = &[
    Right::lasting("organization_keys", "wrap secrets; nobody's rights end with them"),
    Right::ending("resource_credential_assignments", assignment),
    Right::ending("resource_credential_secrets", secret),
    Right::ending("resource_credentials", credential).loose(&["last_used_at"]),
];

/// The ways back.
pub const RETAKINGS: &[RepeatedRevocation] = &[
    RepeatedRevocation {
        what: CREDENTIAL,
        again: credential_again,
    },
    RepeatedRevocation {
        what: ASSIGNMENT,
        again: assignment_again,
    },
];

fn credential(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    let Some(was) = change.was.as_ref() else {
        return Ok(Vec::new());
    };
    let secret = [
        "kind",
        "username",
        "header_name",
        "authentication",
        "management_mode",
        "external_path",
        "external_field",
    ];
    let how = match &change.is {
        None => DELETED,
        Some(is) if was.truth("is_default")? && !is.truth("is_default")? => NO_DEFAULT,
        Some(is) if !was.agrees(is, &secret)? => "changed",
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Revocation {
        what: CREDENTIAL,
        how,
        ids: was.ids(&["id"])?,
    }])
}

fn assignment(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    match (&change.was, &change.is) {
        (Some(was), None) => Ok(vec![Revocation {
            what: ASSIGNMENT,
            how: "removed",
            ids: was.ids(&["credential_id", "subject_kind", "subject_id"])?,
        }]),
        _ => Ok(Vec::new()),
    }
}

/// A secret that was replaced; that it was wrapped anew changes nothing.
fn secret(_: &mut Tx<'_>, change: &RowChange, _: Timestamp) -> Result<Vec<Revocation>> {
    match (&change.was, &change.is) {
        (Some(was), Some(is)) if !was.agrees(is, &["secret_version"])? => Ok(vec![Revocation {
            what: CREDENTIAL,
            how: "secret_replaced",
            ids: was.ids(&["credential_id"])?,
        }]),
        _ => Ok(Vec::new()),
    }
}

/// Nobody gets it any more. Its secret stays: what is erased cannot be brought back.
fn credential_again(ctx: &mut OperationContext<'_>, how: &str, ids: &[String]) -> Result<Again> {
    let [id] = ids else { return Ok(unclear()) };
    store::find(ctx, &CredentialId::from_store(id.clone()))?;
    if how != DELETED && how != NO_DEFAULT {
        return by_hand("its former secret, or place of it, is back; write the new one again");
    }
    let (org, now) = (ctx.org(), ctx.now());
    let mut changed = ctx.execute(&NO_LONGER_DEFAULT, params![org, id.as_str(), false, now, true])?;
    if how == NO_DEFAULT {
        ctx.change("/isDefault", changed > 0, false);
        return Ok(if changed > 0 {
            Again::Done("no longer for everybody")
        } else {
            Again::Already
        });
    }
    changed += ctx.execute(&UNASSIGN_ALL, params![org, id.as_str()])?;
    if changed == 0 {
        return by_hand("nobody gets it; delete it by hand");
    }
    ctx.change("/assignedTo", id.as_str(), serde_json::Value::Null);
    Ok(Again::Done("assigned to nobody; delete it by hand"))
}

fn assignment_again(ctx: &mut OperationContext<'_>, _: &str, ids: &[String]) -> Result<Again> {
    let [credential, kind, subject] = ids else {
        return Ok(unclear());
    };
    let org = ctx.org();
    let of = params![org, credential.as_str(), kind.as_str(), subject.as_str()];
    if ctx.execute(&UNASSIGN, of)? == 0 {
        return Ok(Again::Already);
    }
    ctx.change("/assignedTo", subject.as_str(), serde_json::Value::Null);
    Ok(Again::Done("removed"))
}
