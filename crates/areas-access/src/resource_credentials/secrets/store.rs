//! All SQL of secrets and of the keys that wrap them.

use super::StoredKey;
use crate::resource_credentials::model::CredentialId;
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Row, Tx};
use provost_kernel::error::Result;
use provost_kernel::keys::Envelope;
use provost_kernel::{OperationContext, params, statements};

statements! {
    /// The newest key of an organization.
    NEWEST_KEY = "SELECT version, sealing_key_id, sealed FROM organization_keys WHERE organization_id = ?1 ORDER BY version DESC LIMIT 1";
    /// Every key of an organization, the oldest first.
    KEYS = "SELECT version, sealing_key_id, sealed FROM organization_keys WHERE organization_id = ?1 ORDER BY version";
    /// Stores a key.
    INSERT_KEY = "INSERT INTO organization_keys (organization_id, version, sealing_key_id, sealed, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
    /// Stores a secret in place of an earlier one.
    PUT = "INSERT INTO resource_credential_secrets (organization_id, credential_id, secret_version, \
        organization_key_version, wrapped_key, ciphertext) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
        ON CONFLICT (organization_id, credential_id) DO UPDATE \
        SET secret_version = excluded.secret_version, \
        organization_key_version = excluded.organization_key_version, wrapped_key = excluded.wrapped_key, \
        ciphertext = excluded.ciphertext";
    /// Erases a secret.
    ERASE = "DELETE FROM resource_credential_secrets WHERE organization_id = ?1 AND credential_id = ?2";
    /// A secret with the key that wraps it.
    SEALED = "SELECT c.resource_id, s.secret_version, s.wrapped_key, s.ciphertext, k.version, k.sealing_key_id, \
        k.sealed \
        FROM resource_credential_secrets s \
        JOIN resource_credentials c ON c.organization_id = s.organization_id AND c.id = s.credential_id \
        LEFT JOIN organization_keys k ON k.organization_id = s.organization_id \
        AND k.version = s.organization_key_version \
        WHERE s.organization_id = ?1 AND s.credential_id = ?2";
    /// Secrets under older keys than the newest.
    BEHIND = "SELECT s.credential_id, c.resource_id, s.secret_version, s.organization_key_version, s.wrapped_key \
        FROM resource_credential_secrets s \
        JOIN resource_credentials c ON c.organization_id = s.organization_id AND c.id = s.credential_id \
        WHERE s.organization_id = ?1 AND s.organization_key_version < ?2 \
        ORDER BY s.organization_key_version, s.credential_id LIMIT ?3";
    /// How many secrets are under older keys.
    COUNT_BEHIND = "SELECT COUNT(*) FROM resource_credential_secrets WHERE organization_id = ?1 AND organization_key_version < ?2";
    /// Puts a secret's data key under the newest key.
    REWRAP = "UPDATE resource_credential_secrets SET organization_key_version = ?3, wrapped_key = ?4 WHERE organization_id = ?1 AND credential_id = ?2";
    /// Removes older keys that wrap nothing.
    RETIRE = "DELETE FROM organization_keys WHERE organization_id = ?1 AND version < ?2 AND NOT EXISTS (SELECT 1 FROM resource_credential_secrets s WHERE s.organization_id = organization_keys.organization_id AND s.organization_key_version = organization_keys.version)";
    /// Every organization that has keys, with its newest key's sealing key and how many keys there are.
    NEWEST_OF_ALL = unscoped("the worker serves every organization") "\
        SELECT k.organization_id, k.sealing_key_id, \
        (SELECT COUNT(*) FROM organization_keys o WHERE o.organization_id = k.organization_id) \
        FROM organization_keys k \
        WHERE k.version = (SELECT MAX(m.version) FROM organization_keys m \
        WHERE m.organization_id = k.organization_id) \
        ORDER BY k.organization_id";
    /// The sealing keys that the store cannot be read without.
    SEALING_KEYS = unscoped("the keys folder belongs to the installation") "SELECT DISTINCT sealing_key_id FROM organization_keys ORDER BY sealing_key_id";
}

/// A secret as its row holds it.
pub(super) struct SealedSecret {
    /// The resource of its credential.
    pub resource: String,
    /// Which of the credential's secrets it is.
    pub version: i64,
    /// The ciphertexts.
    pub envelope: Envelope,
    /// The key that wraps it, unless it is gone.
    pub key: Option<StoredKey>,
}

/// A secret's data key under an older key.
pub(super) struct OutdatedSecret {
    /// The credential.
    pub credential: String,
    /// Its resource.
    pub resource: String,
    /// Which of its secrets it is.
    pub version: i64,
    /// The version of the key that wraps it.
    pub key_version: i64,
    /// The data key.
    pub wrapped_key: Vec<u8>,
}

/// An organization that has keys.
pub(super) struct Holder {
    /// The organization.
    pub organization: OrganizationId,
    /// The sealing key of its newest key.
    pub sealing_key_id: String,
    /// How many keys it has.
    pub keys: i64,
}

fn stored_key(row: &Row<'_>) -> Result<StoredKey> {
    Ok(StoredKey {
        version: row.get(0)?,
        sealing_key_id: row.get(1)?,
        sealed: row.get(2)?,
    })
}

/// Returns the newest key of the organization.
pub(super) fn newest_key(ctx: &mut OperationContext<'_>) -> Result<Option<StoredKey>> {
    let org = ctx.org();
    ctx.query_opt(&NEWEST_KEY, params![org], stored_key)
}

/// Returns every key of the organization, the oldest first.
pub(super) fn keys(ctx: &mut OperationContext<'_>) -> Result<Vec<StoredKey>> {
    let org = ctx.org();
    ctx.query(&KEYS, params![org], stored_key)
}

/// Stores a key.
pub(super) fn insert_key(ctx: &mut OperationContext<'_>, key: &StoredKey) -> Result<()> {
    let (org, now) = (ctx.org(), ctx.now());
    let (id, sealed) = (key.sealing_key_id.as_str(), key.sealed.as_slice());
    ctx.queue(&INSERT_KEY, params![org, key.version, id, sealed, now])
}

/// Stores a secret in place of an earlier one.
pub(super) fn put(
    ctx: &mut OperationContext<'_>,
    id: &CredentialId,
    version: i64,
    key_version: i64,
    envelope: &Envelope,
) -> Result<()> {
    let org = ctx.org();
    let (wrapped, ciphertext) = (envelope.wrapped_key.as_slice(), envelope.ciphertext.as_slice());
    ctx.queue(
        &PUT,
        params![org, id.as_str(), version, key_version, wrapped, ciphertext],
    )
}

/// Erases a secret.
pub(super) fn erase(ctx: &mut OperationContext<'_>, id: &CredentialId) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&ERASE, params![org, id.as_str()])
}

/// Returns a secret with the key that wraps it.
pub(super) fn sealed(ctx: &mut OperationContext<'_>, id: &CredentialId) -> Result<Option<SealedSecret>> {
    let org = ctx.org();
    ctx.query_opt(&SEALED, params![org, id.as_str()], |row| {
        let version: Option<i64> = row.get(4)?;
        let key = match version {
            Some(version) => Some(StoredKey {
                version,
                sealing_key_id: row.get(5)?,
                sealed: row.get(6)?,
            }),
            None => None,
        };
        Ok(SealedSecret {
            resource: row.get(0)?,
            version: row.get(1)?,
            envelope: Envelope {
                wrapped_key: row.get(2)?,
                ciphertext: row.get(3)?,
            },
            key,
        })
    })
}

/// Returns at most `limit` secrets under older keys than `newest`.
pub(super) fn behind(ctx: &mut OperationContext<'_>, newest: i64, limit: i64) -> Result<Vec<OutdatedSecret>> {
    let org = ctx.org();
    ctx.query(&BEHIND, params![org, newest, limit], |row| {
        Ok(OutdatedSecret {
            credential: row.get(0)?,
            resource: row.get(1)?,
            version: row.get(2)?,
            key_version: row.get(3)?,
            wrapped_key: row.get(4)?,
        })
    })
}

/// Returns how many secrets are under older keys than `newest`.
pub(super) fn count_behind(ctx: &mut OperationContext<'_>, newest: i64) -> Result<i64> {
    let org = ctx.org();
    let count = ctx.query_opt(&COUNT_BEHIND, params![org, newest], |row| row.get(0))?;
    Ok(count.unwrap_or(0))
}

/// Puts a secret's data key under another key.
pub(super) fn rewrap(
    ctx: &mut OperationContext<'_>,
    credential: &str,
    key_version: i64,
    wrapped_key: &[u8],
) -> Result<()> {
    let org = ctx.org();
    ctx.queue(&REWRAP, params![org, credential, key_version, wrapped_key])
}

/// Removes older keys than `newest` that wrap nothing and returns how many there were.
pub(super) fn retire(ctx: &mut OperationContext<'_>, newest: i64) -> Result<u64> {
    let org = ctx.org();
    ctx.execute(&RETIRE, params![org, newest])
}

/// Returns every organization that has keys.
pub(super) fn holders(tx: &mut Tx<'_>) -> Result<Vec<Holder>> {
    tx.query(&NEWEST_OF_ALL, params![], |row| {
        Ok(Holder {
            organization: OrganizationId::from_store(row.get(0)?),
            sealing_key_id: row.get(1)?,
            keys: row.get(2)?,
        })
    })
}

/// Returns the ids of the sealing keys that the store cannot be read without.
pub fn sealing_keys_in_use(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    tx.query(&SEALING_KEYS, params![], |row| row.get(0))
}
