//! Proofs: each row that decides what somebody may do carries a MAC, and each chain's head the sum of all.
//!
//! ```text
//! row      HMAC(table ‖ the deciding columns, the key and the organization among them)        right_proofs
//! head     rows added less rows taken, and the sum of what their proofs add, under a mask     chain_heads, under its MAC
//! ```
//!
//! A row that was changed or inserted from outside lacks its proof; a row that was taken away or put back as it once was
//! is missed by the sum. What a proof adds is a MAC of the proof that is stored nowhere, and the sum is hidden by a MAC of
//! the number of changes: whoever knew the addends could look for other rows with the same sum.
//!
//! Sums are kept by the chain whose unit made the change, because that chain's lock is held; only all of them together say
//! what there is. See ADR 0070.
//!
//! INVARIANT PF-1: each row of a table that decides rights has a proof from the commit that wrote it, whatever
//! statement that was, and the heads have the sum of all.
//! INVARIANT PF-2: a row that does not fit its proof is not vouched for by a later change of it, nor is what the same
//! commit adds to its table.
//! Keeps KY-1.

use crate::auth::OrganizationId;
use crate::db::{Call, Param, RightsTable, Row, TouchedRow};
use crate::error::{Error, Result};
use crate::hex::hex;
use crate::keys::{Keys, MacPurpose, missing};
use crate::merkle::Hash;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

mod testimony;

pub use testimony::{Form, Testimony, Word};

crate::statements! {
    /// Puts proofs in their place: a list of organization, table, key of the row, id of the key, MAC.
    PUT = unscoped("a transaction may touch several organizations") {
        sqlite: "INSERT INTO right_proofs (organization_id, table_name, row_key, key_id, mac) \
            SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 \
            FROM json_each(?1) \
            WHERE TRUE \
            ON CONFLICT (organization_id, table_name, row_key) DO UPDATE \
            SET key_id = excluded.key_id, mac = excluded.mac",
        postgres: "INSERT INTO right_proofs (organization_id, table_name, row_key, key_id, mac) \
            SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 \
            FROM jsonb_array_elements(CAST(CAST(?1 AS TEXT) AS JSONB)) AS e (value) \
            ON CONFLICT (organization_id, table_name, row_key) DO UPDATE \
            SET key_id = excluded.key_id, mac = excluded.mac",
    };
    /// Takes the proofs of rows that are gone: a list of organization, table, key of the row.
    DROP = unscoped("a transaction may touch several organizations") {
        sqlite: "DELETE FROM right_proofs WHERE (organization_id, table_name, row_key) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?1))",
        postgres: "DELETE FROM right_proofs WHERE (organization_id, table_name, row_key) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_array_elements(CAST(CAST(?1 AS TEXT) AS JSONB)) AS e (value))",
    };
}

/// A sum modulo 2^256, the highest byte first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum([u8; 32]);

impl Sum {
    /// Returns the sum with one more addend.
    #[must_use]
    pub fn plus(self, addend: &Hash) -> Self {
        let mut sum = [0; 32];
        let mut carry = 0;
        for place in (0..32).rev() {
            let digit = u16::from(self.0[place]) + u16::from(addend[place]) + carry;
            [_, sum[place]] = digit.to_be_bytes();
            carry = digit >> 8;
        }
        Self(sum)
    }

    /// Returns the sum without an addend.
    #[must_use]
    pub fn less(self, addend: &Hash) -> Self {
        // The other end of the circle: the complement and one.
        let complement = addend.map(|byte| !byte);
        let mut one = [0; 32];
        one[31] = 1;
        self.plus(&complement).plus(&one)
    }

    /// Returns the sum without another.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        self.less(&other.0)
    }

    /// Returns the sum of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.plus(&other.0)
    }
}

/// What a transaction did to the rows that decide rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Rows that came, less rows that went.
    pub rows: i64,
    /// What they add.
    pub sum: Sum,
}

impl Change {
    fn come(&mut self, share: &Hash) {
        self.rows += 1;
        self.sum = self.sum.plus(share);
    }

    fn go(&mut self, share: &Hash) {
        self.rows -= 1;
        self.sum = self.sum.less(share);
    }
}

/// What a head says of the changes of its chain's units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// How often it changed; what hides the sum is made of it.
    changes: i64,
    rows: i64,
    hidden: Hash,
    key_id: String,
}

impl Account {
    /// Reads the four columns from `first` on.
    ///
    /// Errors: `Internal` for columns that no unit wrote.
    pub(crate) fn read(row: &Row<'_>, first: usize) -> Result<Option<Self>> {
        let Some(changes) = row.get::<Option<i64>>(first)? else {
            return Ok(None);
        };
        let hidden: Vec<u8> = row.get(first + 2)?;
        let hidden = Hash::try_from(hidden.as_slice())
            .map_err(|_| Error::internal("a chain head's sum of rights has not 32 bytes"))?;
        Ok(Some(Self {
            changes,
            rows: row.get(first + 1)?,
            hidden,
            key_id: row.get(first + 3)?,
        }))
    }

    /// Returns the values of the four columns.
    pub(crate) fn params(account: Option<&Self>) -> [Param<'static>; 4] {
        match account {
            None => [Param::Null, Param::Null, Param::Null, Param::Null],
            Some(account) => [
                Param::from(account.changes),
                Param::from(account.rows),
                Param::from(account.hidden.to_vec()),
                Param::from(account.key_id.clone()),
            ],
        }
    }

    pub(crate) fn numbers(&self) -> [[u8; 8]; 2] {
        [self.changes.to_be_bytes(), self.rows.to_be_bytes()]
    }

    pub(crate) fn hidden(&self) -> &Hash {
        &self.hidden
    }

    pub(crate) fn key_id(&self) -> &str {
        &self.key_id
    }

    pub(crate) fn open(&self, keys: &Keys, organization: &OrganizationId) -> Result<(i64, Sum)> {
        let mask = mask(keys, &self.key_id, organization, self.changes)?;
        Ok((self.rows, Sum(self.hidden).less(&mask)))
    }

    /// Returns the account after a change, hidden anew under the current key.
    pub(crate) fn after(
        before: Option<&Self>,
        keys: &Keys,
        organization: &OrganizationId,
        change: &Change,
    ) -> Result<Self> {
        let (changes, (rows, sum)) = match before {
            Some(before) => (before.changes, before.open(keys, organization)?),
            None => (0, (0, Sum::default())),
        };
        let key_id = keys.mac_key_id(MacPurpose::RightMask);
        let changes = changes + 1;
        let mask = mask(keys, &key_id, organization, changes)?;
        Ok(Self {
            changes,
            rows: rows + change.rows,
            hidden: sum.and(change.sum).plus(&mask).0,
            key_id,
        })
    }
}

fn mask(keys: &Keys, key_id: &str, organization: &OrganizationId, changes: i64) -> Result<Hash> {
    let parts: [&[u8]; 2] = [organization.as_str().as_bytes(), &changes.to_be_bytes()];
    let mask = keys.mac_under(MacPurpose::RightMask, key_id, &parts);
    mask.ok_or_else(|| missing(key_id))
}

/// The proof of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The key it was made with.
    pub key_id: String,
    /// Hexadecimal digits.
    pub mac: String,
}

impl Proof {
    /// Returns the proof of a row under the current key.
    ///
    /// Errors: `Internal` for a content that is no JSON object.
    pub fn of(keys: &Keys, deciding: &RightsTable, content: &str) -> Result<Self> {
        let canonical = canonical(deciding, content)?;
        Ok(Self::over(keys, deciding.table, &canonical))
    }

    fn over(keys: &Keys, table: &str, canonical: &str) -> Self {
        let parts: [&[u8]; 2] = [table.as_bytes(), canonical.as_bytes()];
        let (key_id, mac) = keys.named_mac(MacPurpose::RightProof, &parts);
        Self {
            key_id,
            mac: hex(&mac),
        }
    }

    /// Says whether this is the proof of the row. One whose key is not here is none that anybody can vouch for.
    ///
    /// Errors: as [`Self::of`].
    pub fn fits(&self, keys: &Keys, deciding: &RightsTable, content: &str) -> Result<bool> {
        let canonical = canonical(deciding, content)?;
        Ok(self.is_over(keys, deciding.table, &canonical).unwrap_or(false))
    }

    /// Errors: `Unavailable` when the key of the proof is not here.
    fn is_over(&self, keys: &Keys, table: &str, canonical: &str) -> Result<bool> {
        let parts: [&[u8]; 2] = [table.as_bytes(), canonical.as_bytes()];
        // Who may try here can read and write the whole store: there is no secret in how long this takes.
        let mac = keys.mac_under(MacPurpose::RightProof, &self.key_id, &parts);
        Ok(hex(&mac.ok_or_else(|| missing(&self.key_id))?) == self.mac)
    }

    /// Returns what the proof adds to the sum; `None` when its key is not here.
    pub fn share(&self, keys: &Keys) -> Option<Hash> {
        keys.mac_under(MacPurpose::RightShare, &self.key_id, &[self.mac.as_bytes()])
    }

    /// Returns the member of the list that [`PUT`] takes.
    pub fn member(&self, organization: &str, table: &str, key: &str) -> Value {
        Value::from(vec![organization, table, key, &self.key_id, &self.mac])
    }
}

/// Returns what a proof is over: the members in the order of their names, without those that are null, so that a column
/// that comes later changes nothing until it holds something.
fn canonical(deciding: &RightsTable, content: &str) -> Result<String> {
    let mut members: BTreeMap<String, Value> = serde_json::from_str(content).map_err(Error::internal)?;
    members.retain(|name, value| !value.is_null() && !deciding.loose.contains(&name.as_str()));
    for value in members.values_mut() {
        // SQLite keeps a truth value as a number.
        if let Value::Bool(truth) = value {
            *value = Value::from(i64::from(*truth));
        }
    }
    serde_json::to_string(&members).map_err(Error::internal)
}

/// What a transaction writes besides.
#[derive(Debug, Default)]
pub struct ProofWrites {
    /// What changed, by the organization of the rows.
    pub changes: BTreeMap<OrganizationId, Change>,
    /// The statements that store the proofs.
    pub calls: Vec<Call<'static>>,
}

/// The two sides of one row.
#[derive(Default)]
struct Sides {
    was: Vec<String>,
    is: Vec<String>,
    proof: Option<Proof>,
}

impl Sides {
    /// Takes away what was undone within the transaction.
    fn settle(&mut self) {
        let is = &mut self.is;
        self.was.retain(|was| match is.iter().position(|is| is == was) {
            Some(place) => {
                is.swap_remove(place);
                false
            }
            None => true,
        });
    }
}

/// Returns the proofs of what a transaction touched, and what they change in the sum.
///
/// A row that did not verify before is left without (PF-2), and so is every row that the same transaction adds to its table:
/// what was wrong may have been copied.
///
/// Errors: `Internal` for a table that is not of the list, `Unavailable` when a row's proof names a key that is not here.
pub fn prove(keys: &Keys, rights: &'static [RightsTable], touched: Vec<TouchedRow>) -> Result<ProofWrites> {
    let mut rows: BTreeMap<(String, &'static str, String), Sides> = BTreeMap::new();
    for one in touched {
        let deciding = rights.iter().find(|deciding| deciding.table == one.table);
        let deciding =
            deciding.ok_or_else(|| Error::internal(format!("the table {} carries no proofs", one.table)))?;
        let content = canonical(deciding, &one.content)?;
        let sides = rows
            .entry((one.organization, deciding.table, one.key))
            .or_default();
        sides.proof = one.proof.map(|(key_id, mac)| Proof { key_id, mac });
        let side = if one.is_new { &mut sides.is } else { &mut sides.was };
        side.push(content);
    }
    rows.values_mut().for_each(Sides::settle);
    let mut doubted = BTreeSet::new();
    for ((organization, table, key), sides) in &rows {
        let was_proven = match (&sides.proof, sides.was.as_slice()) {
            (None, []) => true,
            // Another server may have made the proof with a key that is yet to come: nothing is said of the row then.
            (Some(proof), [was]) => proof.is_over(keys, table, was)?,
            (Some(_), []) => sides.is.is_empty(),
            _ => false,
        };
        if !was_proven {
            tell(organization, table, key);
            doubted.insert(*table);
        }
    }
    let mut proven = ProofWrites::default();
    let (mut put, mut drop) = (Vec::new(), Vec::new());
    for ((organization, table, key), sides) in &rows {
        let change = proven
            .changes
            .entry(OrganizationId::from_store(organization.clone()))
            .or_default();
        let share = match &sides.proof {
            Some(proof) => Some(proof.share(keys).ok_or_else(|| missing(&proof.key_id))?),
            None => None,
        };
        let fits = match (&sides.proof, sides.was.as_slice()) {
            (Some(proof), [was]) => proof.is_over(keys, table, was)?,
            _ => false,
        };
        match (sides.was.as_slice(), sides.is.as_slice()) {
            ([_], []) => {
                if let Some(share) = share {
                    change.go(&share);
                    drop.push(Value::from(vec![organization.as_str(), *table, key.as_str()]));
                }
            }
            ([_], [is]) if fits => {
                let proof = Proof::over(keys, table, is);
                if let (Some(before), Some(after)) = (share, proof.share(keys)) {
                    change.go(&before);
                    change.come(&after);
                    put.push(proof.member(organization, table, key));
                }
            }
            ([], [is]) if !doubted.contains(table) => {
                let proof = Proof::over(keys, table, is);
                if let Some(share) = proof.share(keys) {
                    change.come(&share);
                    put.push(proof.member(organization, table, key));
                }
            }
            // Undone, or not to be vouched for.
            _ => {}
        }
    }
    proven.changes.retain(|_, change| *change != Change::default());
    for (statement, list) in [(&DROP, drop), (&PUT, put)] {
        if !list.is_empty() {
            proven.calls.push(Call {
                statement,
                params: vec![Param::from(Value::from(list).to_string())],
            });
        }
    }
    Ok(proven)
}

fn tell(organization: &str, table: &str, key: &str) {
    metrics::counter!("provost_rights_unproven_total").increment(1);
    tracing::error!(
        organization,
        table,
        key,
        "a change met a row that decides rights and that Provost did not write as it was; `provost store check` names what \
         disagrees"
    );
}

#[cfg(test)]
mod tests;
