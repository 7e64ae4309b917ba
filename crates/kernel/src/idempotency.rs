//! A key acts once (D4).
//!
//! The record is written in the mutation's own transaction, for 2xx answers only. The key itself is stored
//! as a MAC; the fingerprint of the request is a MAC too, because bodies may carry secrets. An answer that
//! showed a secret is stored without it; the secret lies beside it in a *replay cell* that only the caller's
//! own key opens, and that is erased at the first use of the token (D4.8).
//!
//! INVARIANT ID-1: one organization, principal, operation and key have one effect and one answer.
//! INVARIANT ID-2: a replay is byte-identical, or refused; it never lacks the secret silently.
//! INVARIANT ID-3: after its cell ends, the store holds nothing from which the secret could be computed.
//! Keeps CX-3.

use crate::answer::Answer;
use crate::auth::Actor;
use crate::db::{Call, Param, Row};
use crate::effects::{Effects, Reveal};
use crate::error::{Code, Error, Result};
use crate::keys::{Keys, MacPurpose};
use crate::secret::Secret;
use crate::time::Timestamp;
use bytes::Bytes;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

crate::statements! {
    /// Finds the record of a key.
    FIND = "SELECT fingerprint, status, headers, body, media_type, audit_id, target_id, token_id, secret_at, cell_day, cell_salt, cell, cell_expires_at FROM idempotency_keys WHERE organization_id = ?1 AND principal_id = ?2 AND operation_id = ?3 AND key_mac = ?4";
    /// Stores the record of a key.
    INSERT = "INSERT INTO idempotency_keys (organization_id, principal_id, operation_id, key_mac, fingerprint, \
        status, headers, body, media_type, audit_id, target_id, token_id, secret_at, cell_day, cell_salt, \
        cell, cell_expires_at, created_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    /// Erases the replay cell of a token.
    ERASE_CELL = "UPDATE idempotency_keys SET cell = NULL, cell_salt = NULL WHERE organization_id = ?1 AND token_id = ?2 AND cell IS NOT NULL";
    /// Erases every replay cell of an organization: after a restore none may be read again (D12.9).
    ERASE_EVERY_CELL = "UPDATE idempotency_keys SET cell = NULL, cell_salt = NULL WHERE organization_id = ?1 AND cell IS NOT NULL";
    /// Erases cells that have ended.
    ERASE_EXPIRED_CELLS = unscoped("cells end by time in every organization") "UPDATE idempotency_keys SET cell = NULL, cell_salt = NULL WHERE (organization_id, principal_id, operation_id, key_mac) IN (SELECT k.organization_id, k.principal_id, k.operation_id, k.key_mac FROM idempotency_keys k WHERE k.cell IS NOT NULL AND k.cell_expires_at <= ?1 ORDER BY k.cell_expires_at, k.organization_id, k.principal_id, k.operation_id, k.key_mac LIMIT ?2)";
    /// How many records are beyond the retention.
    DUE = unscoped("retention is the installation's") "SELECT COUNT(*) FROM idempotency_keys WHERE created_at < ?1";
    /// How many are not, at most `?2`.
    LEFT = unscoped("retention is the installation's") "SELECT COUNT(*) FROM (SELECT 1 FROM idempotency_keys WHERE created_at >= ?1 LIMIT ?2) AS k";
    /// Forgets records beyond the retention.
    PRUNE = unscoped("retention is the installation's") "DELETE FROM idempotency_keys WHERE (organization_id, principal_id, operation_id, key_mac) IN (SELECT k.organization_id, k.principal_id, k.operation_id, k.key_mac FROM idempotency_keys k WHERE k.created_at < ?1 ORDER BY k.created_at, k.organization_id, k.principal_id, k.operation_id, k.key_mac LIMIT ?2)";
}

/// How long a record is kept. Units: seconds (D4.9: 30 days).
pub const RETENTION_SECS: i64 = 30 * 86_400;

/// The shortest key for which a token that rotated itself may fetch the lost answer (D5.5).
pub const UNGUESSABLE_KEY_CHARS: usize = 22;

/// The key of one request, and what it stands for.
pub(crate) struct KeyUse {
    raw: Secret<String>,
    /// The stored form of the key.
    pub mac: [u8; 32],
    fingerprint: [u8; 32],
}

impl KeyUse {
    /// Computes what is stored of a key and of the request that it stands for (D4.4).
    ///
    /// Callers who proved keys of their own (`proven`) and share a token, as the machines do that enrol by one, share none of
    /// their keys: what one of them was answered, and the secret in it, is no other's (ID-1).
    pub fn new(
        keys: &Keys,
        raw: &str,
        org: &str,
        proven: Option<&str>,
        operation: &str,
        request: &Value,
    ) -> Self {
        let canonical = crate::json::canonical(request);
        let parts: [&[u8]; 3] = [org.as_bytes(), operation.as_bytes(), canonical.as_bytes()];
        let mut key_parts = vec![org.as_bytes(), raw.as_bytes()];
        key_parts.extend(proven.map(str::as_bytes));
        Self {
            raw: Secret::new(raw.to_owned()),
            mac: keys.mac(MacPurpose::IdempotencyKey, &key_parts),
            fingerprint: keys.mac(MacPurpose::Fingerprint, &parts),
        }
    }

    /// Says whether nobody can guess the key.
    pub fn is_unguessable(&self) -> bool {
        self.raw.expose().len() >= UNGUESSABLE_KEY_CHARS
    }

    /// Returns the call that looks for the key's record.
    pub fn find(&self, actor_org: &str, principal: &str, operation: &str) -> Call<'static> {
        Call {
            statement: &FIND,
            params: vec![
                Param::from(actor_org.to_owned()),
                Param::from(principal.to_owned()),
                Param::from(operation.to_owned()),
                Param::from(self.mac.to_vec()),
            ],
        }
    }
}

/// A stored answer.
#[derive(Clone)]
pub(crate) struct StoredAnswer {
    fingerprint: Vec<u8>,
    status: i64,
    headers: String,
    body: String,
    media_type: String,
    /// The audit entry of the first request.
    pub audit_id: String,
    /// The record that it changed.
    pub target_id: Option<String>,
    token_id: Option<String>,
    secret_at: Option<i64>,
    cell: Option<Cell>,
}

#[derive(Clone)]
struct Cell {
    day: i64,
    salt: [u8; 16],
    sealed: Vec<u8>,
    expires_at: Timestamp,
}

impl StoredAnswer {
    /// Makes the record of an answer that was just computed.
    #[expect(
        clippy::too_many_arguments,
        reason = "a record has these parts; a struct would be built once"
    )]
    pub fn new(
        keys: &Keys,
        actor: &Actor,
        operation: &str,
        key: &KeyUse,
        answer: &Answer,
        effects: &Effects,
        audit_id: String,
        now: Timestamp,
        salt: [u8; 16],
    ) -> Result<Self> {
        let target_id = effects.target.as_ref().map(|(_, id)| id.clone());
        let mut stored = Self {
            fingerprint: key.fingerprint.to_vec(),
            status: i64::from(answer.status),
            headers: json!(answer.headers).to_string(),
            body: String::from_utf8(answer.body.to_vec()).map_err(Error::internal)?,
            media_type: answer.media_type.to_owned(),
            audit_id,
            target_id,
            token_id: None,
            secret_at: None,
            cell: None,
        };
        if let (Some(reveal), Some(place)) = (&effects.reveal, effects.secret_at) {
            stored.token_id = Some(reveal.token_id.clone());
            stored.secret_at = i64::try_from(place).ok();
            if reveal.replay_secs > 0 {
                stored.cell = Some(stored.seal(keys, actor, operation, key, reveal, now, salt)?);
            }
        }
        Ok(stored)
    }

    #[expect(clippy::too_many_arguments, reason = "the cell is bound to all of these")]
    fn seal(
        &self,
        keys: &Keys,
        actor: &Actor,
        operation: &str,
        key: &KeyUse,
        reveal: &Reveal,
        now: Timestamp,
        salt: [u8; 16],
    ) -> Result<Cell> {
        let day = now.as_ms().div_euclid(86_400_000);
        let aad = self.aad(actor, operation);
        let secret = reveal.secret.expose().as_bytes();
        let sealed = keys.seal_cell(day, &salt, &as_slices(&aad), key.raw.expose(), secret)?;
        Ok(Cell {
            day,
            salt,
            sealed,
            expires_at: now.plus_secs(reveal.replay_secs),
        })
    }

    fn aad(&self, actor: &Actor, operation: &str) -> [String; 5] {
        [
            actor.organization.as_str().to_owned(),
            actor.id.clone(),
            operation.to_owned(),
            self.target_id.clone().unwrap_or_default(),
            self.token_id.clone().unwrap_or_default(),
        ]
    }

    /// Reads a row of [`FIND`].
    pub fn read(row: &Row<'_>) -> Result<Self> {
        let sealed: Option<Vec<u8>> = row.get(11)?;
        let salt: Option<Vec<u8>> = row.get(10)?;
        let day: Option<i64> = row.get(9)?;
        let expires_at: Option<Timestamp> = row.get(12)?;
        let cell = match (sealed, salt, day, expires_at) {
            (Some(sealed), Some(salt), Some(day), Some(expires_at)) => Some(Cell {
                day,
                salt: salt
                    .try_into()
                    .map_err(|_| Error::internal("a replay cell's salt has not 16 bytes"))?,
                sealed,
                expires_at,
            }),
            _ => None,
        };
        Ok(Self {
            fingerprint: row.get(0)?,
            status: row.get(1)?,
            headers: row.get(2)?,
            body: row.get(3)?,
            media_type: row.get(4)?,
            audit_id: row.get(5)?,
            target_id: row.get(6)?,
            token_id: row.get(7)?,
            secret_at: row.get(8)?,
            cell,
        })
    }

    /// Returns the statement that stores the record.
    pub fn insert(&self, actor: &Actor, operation: &str, key: &KeyUse, now: Timestamp) -> Call<'static> {
        let cell = self.cell.as_ref();
        Call {
            statement: &INSERT,
            params: vec![
                Param::from(actor.organization.as_str().to_owned()),
                Param::from(actor.id.clone()),
                Param::from(operation.to_owned()),
                Param::from(key.mac.to_vec()),
                Param::from(self.fingerprint.clone()),
                Param::from(self.status),
                Param::from(self.headers.clone()),
                Param::from(self.body.clone()),
                Param::from(self.media_type.clone()),
                Param::from(self.audit_id.clone()),
                Param::from(self.target_id.clone()),
                Param::from(self.token_id.clone()),
                Param::from(self.secret_at),
                Param::from(cell.map(|c| c.day)),
                Param::from(cell.map(|c| c.salt.to_vec())),
                Param::from(cell.map(|c| c.sealed.clone())),
                Param::from(cell.map(|c| c.expires_at)),
                Param::from(now),
            ],
        }
    }

    /// Repeats the stored answer.
    ///
    /// Errors: `IdempotencyMismatch` for another request, `SecretNoLongerRetrievable` when the cell ended.
    pub fn replay(
        &self,
        keys: &Keys,
        actor: &Actor,
        operation: &str,
        key: &KeyUse,
        now: Timestamp,
        media_types: &[&'static str],
    ) -> Result<Answer> {
        if !bool::from(self.fingerprint.as_slice().ct_eq(&key.fingerprint)) {
            return Err(Error::new(
                Code::IdempotencyMismatch,
                "this idempotency key was used for another request; use a new key",
            ));
        }
        let mut body = self.body.clone();
        if let Some(place) = self.secret_at {
            let secret = self
                .open(keys, actor, operation, key, now)?
                .ok_or_else(|| self.erased())?;
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            if !body.is_char_boundary(place) {
                return Err(Error::internal("a stored answer has no place for its secret"));
            }
            body.insert_str(place, secret.expose());
        }
        let headers: Vec<(String, String)> = serde_json::from_str(&self.headers).map_err(Error::internal)?;
        let named = |name: String, value| {
            let known = REPEATED.iter().find(|known| **known == name)?;
            Some((*known, value))
        };
        let media_type = media_types.iter().find(|m| **m == self.media_type).copied();
        Ok(Answer {
            status: u16::try_from(self.status).map_err(Error::internal)?,
            headers: headers
                .into_iter()
                .filter_map(|(name, value)| named(name, value))
                .collect(),
            body: Bytes::from(body),
            media_type: media_type.unwrap_or("application/json"),
            replayed: true,
        })
    }

    fn open(
        &self,
        keys: &Keys,
        actor: &Actor,
        operation: &str,
        key: &KeyUse,
        now: Timestamp,
    ) -> Result<Option<Secret<String>>> {
        let Some(cell) = self.cell.as_ref().filter(|cell| now < cell.expires_at) else {
            return Ok(None);
        };
        let aad = self.aad(actor, operation);
        keys.open_cell(
            cell.day,
            &cell.salt,
            &as_slices(&aad),
            key.raw.expose(),
            &cell.sealed,
        )
    }

    /// Forgets the replay cell, as the store did, when it belongs to one of these tokens.
    pub fn forget_cell_of(&mut self, tokens: &[String]) {
        if self.token_id.as_ref().is_some_and(|id| tokens.contains(id)) {
            self.cell = None;
        }
    }

    fn erased(&self) -> Error {
        let token_id = self.token_id.clone().unwrap_or_default();
        Error::new(
            Code::SecretNoLongerRetrievable,
            "the secret of this answer was erased; rotate again with a new key",
        )
        .with("tokenId", token_id)
    }
}

/// The headers of answers, in lower case, that are repeated with them: whatever an operation that writes declares (ID-2).
pub const REPEATED: [&str; 3] = ["etag", "location", "x-policy-id"];

fn as_slices(parts: &[String; 5]) -> [&[u8]; 5] {
    parts.each_ref().map(String::as_bytes)
}

#[cfg(test)]
mod tests;
