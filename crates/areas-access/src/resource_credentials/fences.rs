//! Who reads the details of what the area does, and what its events say.
//!
//! An operator reads the credentials that are assigned to it and no others (RC-5), in the log as well.

use super::model::CredentialId;
use super::{asking, store};
use crate::resources::model::ResourceId;
use provost_kernel::Result;
use provost_kernel::auth::Actor;
use provost_kernel::db::Tx;
use provost_kernel::fence::{Assignment, Readers};
use provost_kernel::proofs::{Form, Testimony, Word};
use std::collections::BTreeSet;

/// Whether a credential is assigned to the caller, as [`super::asking`] says who that is.
static ASSIGNMENT: Assignment = Assignment {
    member: "credentialId",
    of_caller,
};

provost_kernel::event_data! {
    /// A credential of a resource.
    OfCredential {
        /// The resource.
        resource_id: ResourceId,
        /// The credential.
        credential_id: CredentialId,
    } like r#"{"resourceId":"res_01kaf9q2m4x7t8v3c5d6e0g1h2","credentialId":"cred_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;
}

provost_kernel::fences! {
    acts Readers::Assignees(&ASSIGNMENT), [
        "organization_key.created",
        "organization_key.retired",
        "resource_credential.verified",
    ];
    targets {
        /// A credential of a resource.
        CREDENTIAL = "resource_credential" => Readers::Assignees(&ASSIGNMENT);
        /// A key that wraps the secrets of credentials; its id is its version.
        KEY = "organization_key" => Readers::Overseers;
    }
    events {
        /// A credential has another secret.
        ROTATED: OfCredential = "credential.rotated" => Readers::Assignees(&ASSIGNMENT);
        /// A credential is for others than before.
        ASSIGNED: OfCredential = "credential.assigned" => Readers::Assignees(&ASSIGNMENT);
    }
}

fn of_caller(tx: &mut Tx<'_>, caller: &Actor) -> Result<BTreeSet<String>> {
    let asking = asking(tx, caller)?;
    let mut ids = BTreeSet::new();
    for (kind, subjects) in asking.subjects() {
        for subject in subjects {
            ids.extend(store::assigned_to(
                tx,
                caller.organization.as_str(),
                kind,
                subject,
            )?);
        }
    }
    Ok(ids)
}

/// What entries say of credentials, never of their secrets.
pub static CREDENTIALS: Testimony = Testimony {
    table: "resource_credentials",
    kind: &CREDENTIAL,
    among: None,
    words: &[
        Word::new("name", "/name"),
        Word::new("kind", "/kind"),
        Word::of("is_default", "/default", Form::Flag),
        Word::new("username", "/username"),
        Word::new("header_name", "/headerName"),
        Word::new("management_mode", "/managementMode"),
        Word::new("external_path", "/externalPath"),
        Word::new("external_field", "/externalField"),
        Word::new("secret_version", "/secretVersion"),
    ],
};
