//! The secrets of credentials: sealing, opening, erasing, re-wrapping (D11.8).
//!
//! Keeps RC-2.
//! Keeps RC-3.

mod rewrap;
mod store;

pub use rewrap::{rewrap, step};
pub use store::{STATEMENTS, sealing_keys_in_use};

use super::model::{Credential, CredentialId};
use provost_kernel::error::{Error, Result};
use provost_kernel::keys::{Keys, OrganizationKey};
use provost_kernel::{OperationContext, Secret};

/// An organization's key as its row holds it.
struct StoredKey {
    version: i64,
    sealing_key_id: String,
    sealed: Vec<u8>,
}

impl StoredKey {
    fn open(&self, keys: &Keys, organization: &str) -> Result<OrganizationKey> {
        let opened =
            keys.open_organization_key(organization, self.version, &self.sealing_key_id, &self.sealed);
        opened.ok_or_else(|| {
            let cause = format!(
                "version {} of the key of {organization} needs {}, which is not among the keys or not the same",
                self.version, self.sealing_key_id
            );
            unreadable("the organization's key cannot be opened; the log names the sealing key it needs")
                .caused_by(cause)
        })
    }
}

/// Refuses the one unit: what is wrong is this organization's keys, not the store.
fn unreadable(message: &'static str) -> Error {
    Error::unavailable(message).class(provost_kernel::error::Class::Refused)
}

/// Where a secret belongs: what its ciphertext is bound to.
struct SecretBinding<'a> {
    organization: &'a str,
    resource: &'a str,
    credential: &'a str,
    version: [u8; 8],
}

impl<'a> SecretBinding<'a> {
    fn new(organization: &'a str, resource: &'a str, credential: &'a str, version: i64) -> Self {
        Self {
            organization,
            resource,
            credential,
            version: version.to_be_bytes(),
        }
    }

    fn aad(&self) -> [&[u8]; 4] {
        [
            self.organization.as_bytes(),
            self.resource.as_bytes(),
            self.credential.as_bytes(),
            &self.version,
        ]
    }
}

/// Stores the secret of a credential's current version in place of an earlier one.
pub fn put(ctx: &mut OperationContext<'_>, credential: &Credential, secret: &Secret<String>) -> Result<()> {
    let key = current_key(ctx)?;
    let place = SecretBinding::new(
        ctx.org(),
        credential.resource_id.as_str(),
        credential.id.as_str(),
        credential.secret_version,
    );
    let sealed = key.seal(&place.aad(), secret.expose().as_bytes(), ctx.rng())?;
    store::put(
        ctx,
        &credential.id,
        credential.secret_version,
        key.version(),
        &sealed,
    )
}

/// Erases the secret of a credential, if there is one.
pub fn erase(ctx: &mut OperationContext<'_>, id: &CredentialId) -> Result<()> {
    store::erase(ctx, id)
}

/// Returns the secret of a credential, or `None` when none is stored here.
///
/// Errors: `Unavailable` when the organization's key cannot be opened, `Internal` when the secret does not open.
pub fn unseal(ctx: &mut OperationContext<'_>, id: &CredentialId) -> Result<Option<Secret<Vec<u8>>>> {
    let Some(found) = store::sealed(ctx, id)? else {
        return Ok(None);
    };
    let key = found
        .key
        .ok_or_else(|| unreadable("the organization's key is gone, and with it everything that it kept"))?;
    let key = key.open(&ctx.services().keys, ctx.org())?;
    let place = SecretBinding::new(ctx.org(), &found.resource, id.as_str(), found.version);
    let opened = key.open(&place.aad(), &found.envelope);
    opened
        .map(Some)
        .ok_or_else(|| Error::internal("the secret of a credential does not open"))
}

/// Returns the newest key of the organization; makes the first.
fn current_key(ctx: &mut OperationContext<'_>) -> Result<OrganizationKey> {
    if let Some(stored) = store::newest_key(ctx)? {
        return stored.open(&ctx.services().keys, ctx.org());
    }
    make_key(ctx, 1)
}

fn make_key(ctx: &mut OperationContext<'_>, version: i64) -> Result<OrganizationKey> {
    let (kernel, org) = (ctx.services(), ctx.org());
    let (sealing_key_id, sealed) = kernel.keys.make_organization_key(org, version, ctx.rng())?;
    let stored = StoredKey {
        version,
        sealing_key_id,
        sealed,
    };
    store::insert_key(ctx, &stored)?;
    stored.open(&kernel.keys, org)
}
