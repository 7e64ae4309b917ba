//! The audit log: one hash chain per organization (D12.4, D12.5).
//!
//! `hash = SHA-256(previousHash ‖ canonical(entry))`. The canonical form is the entry's JSON with members in
//! RFC 8785 order and without the two hashes; it is stored as written, so that verification reads bytes and
//! interprets nothing. The head of a chain carries a MAC under the audit key, renewed in every commit.
//! An entry's id is a ULID whose low bits are its sequence number: finding an entry needs no index.
//!
//! INVARIANT AD-1: no mutation is acknowledged without its audit entry, which is in the same transaction.
//! INVARIANT AD-2: sequence numbers of a chain have no gap; they are taken under the head's row lock.
//! INVARIANT AD-3: no audit entry holds a token, a secret or a body.
//! INVARIANT AD-4: the hash of an entry is over the hash of the one before it and over all of its own text.
//! INVARIANT AD-5: the hash of an entry cannot be found by trying: it holds the random id of its request, or a salt
//! that is a hash under a key.

use crate::auth::{Actor, OrganizationId, Origin};
use crate::db::{Call, Param, Row};
use crate::effects::{Change, Event};
use crate::error::{Error, Result};
use crate::fence::TargetKind;
pub use crate::hex::hex;
use crate::keys::{Keys, MacPurpose};
use crate::merkle::Hash;
use crate::proofs::{self, Account, Sum};
use crate::time::Timestamp;
use crate::witness::ChainPosition;
use serde::Serialize;
use std::borrow::Cow;

crate::statements! {
    /// Locks and reads a chain's head. Heads are always locked in the order of their names.
    HEAD = {
        sqlite: "SELECT seq, hash, mac, event_sequence, created_at, rights_changes, rights_rows, rights_sum, rights_key FROM chain_heads WHERE organization_id = ?1",
        postgres: "SELECT seq, hash, mac, event_sequence, created_at, rights_changes, rights_rows, rights_sum, rights_key FROM chain_heads WHERE organization_id = ?1 FOR UPDATE",
    };
    /// The audit keys that the store knows.
    KEYS = unscoped("keys are the installation's") "SELECT key_id FROM key_checks WHERE key_id LIKE 'audit/%' ORDER BY key_id";
    /// Makes the head of a new chain.
    CREATE_HEAD = "INSERT INTO chain_heads (organization_id, seq, hash, mac, event_sequence, rights_changes, rights_rows, rights_sum, rights_key, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    /// Moves a head.
    MOVE_HEAD = "UPDATE chain_heads SET seq = ?2, hash = ?3, mac = ?4, event_sequence = ?5, rights_changes = ?6, rights_rows = ?7, rights_sum = ?8, rights_key = ?9 WHERE organization_id = ?1";
    /// Appends an entry.
    APPEND = "INSERT INTO audit_entries (organization_id, seq, time, action, actor_id, target_id, decision, entry, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
}

provost_words::word! {
    /// What came of a request, in the audit log's words.
    pub enum Decision {
        /// Done.
        Allowed = "allowed",
        /// The caller may not.
        Denied = "denied",
        /// The state or the request forbids it.
        Refused = "refused",
        /// Answered from the stored answer.
        Replayed = "idempotent_replay",
        /// The server failed.
        Failed = "failed",
    }
}

impl Decision {
    /// Returns the decision behind an error's status.
    pub const fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Decision::Denied,
            500.. => Decision::Failed,
            _ => Decision::Refused,
        }
    }
}

/// What an entry says, before it has a place in a chain.
#[derive(Clone, Debug)]
pub struct AuditRecord {
    /// The chain.
    pub organization: OrganizationId,
    /// When.
    pub time: Timestamp,
    /// The operation's id, or the name of the program's own act.
    pub action: Cow<'static, str>,
    /// Who.
    pub actor: Option<Actor>,
    /// On what.
    pub target: Option<(&'static TargetKind, String)>,
    /// With what result.
    pub decision: Decision,
    /// The HTTP status.
    pub status: u16,
    /// The error's word.
    pub code: Option<&'static str>,
    /// Why, as the caller says.
    pub reason: Option<String>,
    /// Where from.
    pub origin: Option<Origin>,
    /// The stored form of the idempotency key (never the key).
    pub key_hash: Option<[u8; 32]>,
    /// What changed.
    pub changes: Vec<Change>,
    /// How many requests the entry stands for, when not one.
    pub count: Option<u64>,
    /// The first entry, when this is a replay.
    pub replay_of: Option<String>,
    /// Events that belong to it.
    pub(crate) events: Vec<Event>,
}

impl AuditRecord {
    /// Returns a note of an act that was done, without details.
    pub fn new(organization: OrganizationId, time: Timestamp, action: impl Into<Cow<'static, str>>) -> Self {
        Self {
            organization,
            time,
            action: action.into(),
            actor: None,
            target: None,
            decision: Decision::Allowed,
            status: 200,
            code: None,
            reason: None,
            origin: None,
            key_hash: None,
            changes: Vec::new(),
            count: None,
            replay_of: None,
            events: Vec::new(),
        }
    }
}

// Members stand in the order of RFC 8785: serde_json then writes the canonical form directly. A test
// compares with the canonicalizer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Canonical<'a> {
    action: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<CanonicalActor<'a>>,
    #[serde(skip_serializing_if = "<[Change]>::is_empty")]
    changes: &'a [Change],
    #[serde(skip_serializing_if = "Option::is_none")]
    client_request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager: Option<CanonicalManager<'a>>,
    organization_id: &'a str,
    outcome: CanonicalOutcome<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay_of: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    seq: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_ip: Option<std::net::IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<CanonicalTarget<'a>>,
    time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CanonicalActor<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    all_of_role: bool,
    display: &'a str,
    id: &'a str,
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_prefix: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'a str,
}

#[derive(Serialize)]
struct CanonicalManager<'a> {
    id: &'a str,
    instance: &'a str,
}

#[derive(Serialize)]
struct CanonicalOutcome<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    decision: &'a str,
    status: u16,
}

#[derive(Serialize)]
struct CanonicalTarget<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

impl AuditRecord {
    fn canonical(&self, id: &str, seq: i64, salt: Option<String>) -> Result<String> {
        let actor = self.actor.as_ref().map(|actor| {
            let permission = actor.permission;
            CanonicalActor {
                all_of_role: permission.all_of_role,
                display: &actor.display,
                id: &actor.id,
                role: permission.role.as_str(),
                // An account of all its role's scopes is named as such: fifty words in every entry say less.
                scopes: (!permission.all_of_role).then(|| permission.scopes.to_list()),
                token_id: actor.token.as_ref().map(|t| t.id.as_str()),
                token_prefix: actor.token.as_ref().map(|t| t.prefix.as_str()),
                kind: actor.kind,
            }
        });
        let origin = self.origin.as_ref();
        let canonical = Canonical {
            action: &self.action,
            actor,
            changes: &self.changes,
            client_request_id: origin.and_then(|o| o.client_request_id.as_deref()),
            count: self.count,
            id,
            idempotency_key_hash: self.key_hash.map(|h| hex(&h)),
            manager: origin
                .and_then(|o| o.manager.as_ref())
                .map(|manager| CanonicalManager {
                    id: &manager.id,
                    instance: &manager.instance,
                }),
            organization_id: self.organization.as_str(),
            outcome: CanonicalOutcome {
                code: self.code,
                decision: self.decision.as_str(),
                status: self.status,
            },
            reason: self.reason.as_deref(),
            replay_of: self.replay_of.as_deref(),
            request_id: origin.map(|o| o.request_id.as_str()),
            salt,
            seq,
            source_ip: origin.map(|o| o.source_ip),
            target: self.target.as_ref().map(|(kind, id)| CanonicalTarget {
                id,
                kind: kind.word(),
            }),
            time: self.time,
            user_agent: origin.and_then(|o| o.user_agent.as_deref()),
        };
        serde_json::to_string(&canonical).map_err(Error::internal)
    }
}

/// Returns the hash of an entry whose predecessor has `previous`.
pub fn entry_hash(previous: &Hash, canonical: &str) -> Hash {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    context.update(previous);
    context.update(canonical.as_bytes());
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Returns the id of the entry at a place of a chain.
pub fn entry_id(time: Timestamp, seq: i64) -> String {
    crate::id::compose("aud", time, u128::from(seq.unsigned_abs()))
}

/// Returns the place that an entry's id names.
pub fn entry_seq(id: &str) -> Option<i64> {
    i64::try_from(crate::id::parse("aud", id)?.random()).ok()
}

/// How many bytes of a keyed hash an entry is salted with.
const SALT_LEN: usize = 16;

/// A chain's head, locked by the transaction that read it.
#[derive(Clone, Debug)]
pub struct Head {
    /// The chain.
    pub organization: OrganizationId,
    /// The number of entries; also the last one's sequence number.
    pub seq: i64,
    /// The last entry's hash; zeros before the first.
    pub hash: Hash,
    /// The number of events of the organization.
    pub event_sequence: i64,
    /// What the chain's units added to the rows that decide rights, and took from them; none in a chain that has not yet.
    rights: Option<Account>,
    mac: Option<Vec<u8>>,
    moved: bool,
}

impl Head {
    /// Returns the head of a chain that has no entry yet.
    pub fn empty(organization: OrganizationId) -> Self {
        Self {
            organization,
            seq: 0,
            hash: [0; 32],
            event_sequence: 0,
            rights: None,
            mac: None,
            moved: false,
        }
    }

    /// Reads a row of [`HEAD`].
    pub fn read(organization: &OrganizationId, row: &Row<'_>) -> Result<Self> {
        let hash: Vec<u8> = row.get(1)?;
        let hash = Hash::try_from(hash.as_slice())
            .map_err(|_| Error::internal("a chain head's hash has not 32 bytes"))?;
        Ok(Self {
            organization: organization.clone(),
            seq: row.get(0)?,
            hash,
            event_sequence: row.get(3)?,
            rights: Account::read(row, 5)?,
            mac: Some(row.get(2)?),
            moved: false,
        })
    }

    /// Returns the place that the head names.
    pub(crate) fn place(&self) -> ChainPosition {
        ChainPosition {
            seq: self.seq,
            hash: self.hash,
        }
    }

    /// Says whether the head's MAC is the one that this installation's key makes.
    pub fn is_authentic(&self, keys: &Keys) -> bool {
        match &self.mac {
            // Any version of the key will do: the key may have been rotated since.
            Some(mac) => self.with_parts(|parts| keys.mac_matches(MacPurpose::ChainHead, parts, mac)),
            None => true,
        }
    }

    fn with_parts<T>(&self, f: impl FnOnce(&[&[u8]]) -> T) -> T {
        let (seq, events) = (self.seq.to_be_bytes(), self.event_sequence.to_be_bytes());
        let organization = self.organization.as_str().as_bytes();
        let Some(rights) = &self.rights else {
            // The parts of a head before rows carried proofs: its MAC is as good as it was.
            return f(&[organization, &seq, &self.hash, &events]);
        };
        let [changes, rows] = rights.numbers();
        f(&[
            organization,
            &seq,
            &self.hash,
            &events,
            &changes,
            &rows,
            rights.hidden(),
            rights.key_id().as_bytes(),
        ])
    }

    /// Says whether the chain accounts for rows that decide rights.
    pub fn has_rights(&self) -> bool {
        self.rights.is_some()
    }

    /// Returns how many rows the chain's units added, less those they took, and the sum of what these add.
    ///
    /// Errors: `Internal` when the key that hides the sum is not here.
    pub fn rights(&self, keys: &Keys) -> Result<(i64, Sum)> {
        match &self.rights {
            Some(account) => account.open(keys, &self.organization),
            None => Ok((0, Sum::default())),
        }
    }

    /// Books what a transaction changed in the rows that decide rights.
    ///
    /// Errors: as [`Self::rights`].
    pub fn book(&mut self, keys: &Keys, change: &proofs::Change) -> Result<()> {
        let account = Account::after(self.rights.as_ref(), keys, &self.organization, change)?;
        self.rights = Some(account);
        self.moved = true;
        Ok(())
    }

    /// Appends a note with the statements that store it, and returns its id. `mac` is a hash under a key that no reader
    /// has ([`MacPurpose::AuditSalt`]).
    ///
    /// An entry without the random id of a request gets a salt, so that nobody who is shown its hash can find out the
    /// rest by trying (AD-5).
    pub fn append(
        &mut self,
        note: &AuditRecord,
        mac: impl FnOnce(&[&[u8]]) -> [u8; 32],
        calls: &mut Vec<Call<'static>>,
    ) -> Result<String> {
        self.seq += 1;
        self.moved = true;
        let id = entry_id(note.time, self.seq);
        let salt = note
            .origin
            .is_none()
            .then(|| hex(&self.with_parts(mac)[..SALT_LEN]));
        let canonical = note.canonical(&id, self.seq, salt)?;
        self.hash = entry_hash(&self.hash, &canonical);
        let actor = note.actor.as_ref().map(|a| a.id.clone());
        calls.push(Call {
            statement: &APPEND,
            params: vec![
                Param::from(self.organization.as_str().to_owned()),
                Param::from(self.seq),
                Param::from(note.time),
                Param::Text(note.action.clone()),
                Param::from(actor),
                Param::from(note.target.as_ref().map(|(_, id)| id.clone())),
                Param::from(note.decision.as_str()),
                Param::from(canonical),
                Param::from(self.hash.to_vec()),
            ],
        });
        for event in &note.events {
            self.event_sequence += 1;
            calls.push(crate::outbox::insert(
                &self.organization,
                self.event_sequence,
                note.time,
                event,
            ));
        }
        Ok(id)
    }

    /// Returns the statement that stores the head, when it moved.
    pub fn store(&mut self, keys: &Keys, now: Timestamp) -> Option<Call<'static>> {
        if !self.moved {
            return None;
        }
        let mac = self
            .with_parts(|parts| keys.mac(MacPurpose::ChainHead, parts))
            .to_vec();
        let is_new = self.mac.replace(mac.clone()).is_none();
        let mut params = vec![
            Param::from(self.organization.as_str().to_owned()),
            Param::from(self.seq),
            Param::from(self.hash.to_vec()),
            Param::from(mac),
            Param::from(self.event_sequence),
        ];
        params.extend(Account::params(self.rights.as_ref()));
        if is_new {
            params.push(Param::from(now));
        }
        Some(Call {
            statement: if is_new { &CREATE_HEAD } else { &MOVE_HEAD },
            params,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Permission, Role, ScopeSet, TokenRef};

    static ACCOUNT: TargetKind = TargetKind::new("service_account", crate::fence::Readers::Overseers);

    fn full_note() -> AuditRecord {
        let organization = OrganizationId::parse("acme").unwrap();
        let mut note = AuditRecord::new(
            organization.clone(),
            Timestamp::from_ms(1_795_144_500_000),
            "doIt",
        );
        note.actor = Some(Actor {
            organization,
            kind: "service_account",
            id: "sa_1".into(),
            display: "deploy \u{2028} \"bot\" \u{1b}".into(),
            permission: Permission::effective(Role::Admin, Some(ScopeSet::of(&["audit:read"])), None),
            has_role: true,
            token: Some(TokenRef {
                id: "sat_1".into(),
                prefix: "prov_sat_x".into(),
                is_own: true,
                issued_at: None,
                expires_at: Timestamp::from_ms(1),
            }),
            replay_only: false,
            item: None,
            key: None,
        });
        note.target = Some((&ACCOUNT, "sa_2".into()));
        note.reason = Some("because".into());
        note.key_hash = Some([7; 32]);
        note.count = Some(3);
        note.replay_of = Some("aud_x".into());
        note.code = Some("conflict");
        note.changes = vec![Change {
            after: "b".into(),
            before: "a".into(),
            path: "/name",
        }];
        note.origin = Some(Origin {
            request_id: "req_1".into(),
            client_request_id: Some("c".into()),
            source_ip: "::1".parse().unwrap(),
            is_of_unknown_proxy: false,
            user_agent: Some("curl".into()),
            manager: Some(crate::operation::Manager {
                id: "m".into(),
                instance: "i".into(),
            }),
            arrival: crate::arrival::Arrival::default(),
        });
        note
    }

    #[test]
    fn what_is_written_is_the_canonical_form() {
        let text = full_note().canonical("aud_1", 9, Some("ab".into())).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text, crate::json::canonical(&value));
    }

    fn salted(parts: &[&[u8]]) -> [u8; 32] {
        entry_hash(&[7; 32], &hex(&parts.concat()))
    }

    fn salt_of(call: &Call<'static>) -> Option<String> {
        let Param::Text(entry) = &call.params[7] else {
            panic!("the entry is text")
        };
        let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
        entry["salt"].as_str().map(str::to_owned)
    }

    /// Proves AD-5.
    #[test]
    fn the_hash_of_an_entry_without_a_request_cannot_be_tried_out() {
        let organization = OrganizationId::parse("acme").unwrap();
        let mut head = Head::empty(organization.clone());
        let (mut calls, mut again) = (Vec::new(), Vec::new());
        let own = AuditRecord::new(organization, Timestamp::from_ms(1), "access.summary");
        // A transaction that runs again writes the same.
        head.clone().append(&own, salted, &mut again).unwrap();
        head.append(&own, salted, &mut calls).unwrap();
        head.append(&own, salted, &mut calls).unwrap();
        head.append(&full_note(), salted, &mut calls).unwrap();
        let salts: Vec<Option<String>> = calls.iter().map(salt_of).collect();
        assert_eq!(salt_of(&again[0]), salts[0]);
        assert_eq!(salts[0].as_ref().unwrap().len(), 2 * SALT_LEN);
        assert_ne!(salts[0], salts[1]);
        assert_eq!(salts[2], None, "the id of a request is random");
    }

    #[test]
    fn an_entry_id_names_its_place() {
        let id = entry_id(Timestamp::from_ms(1_795_144_500_000), 123_456);
        assert_eq!(entry_seq(&id), Some(123_456));
        assert_eq!(entry_seq("aud_nonsense"), None);
    }

    /// Proves AD-2.
    #[test]
    fn appending_chains_the_hashes() {
        let mut head = Head::empty(OrganizationId::parse("acme").unwrap());
        let mut calls = Vec::new();
        head.append(&full_note(), salted, &mut calls).unwrap();
        let first = head.hash;
        head.append(&full_note(), salted, &mut calls).unwrap();
        assert_eq!((head.seq, calls.len()), (2, 2));
        let Param::Text(second) = &calls[1].params[7] else {
            panic!("the entry is text")
        };
        assert_eq!(entry_hash(&first, second), head.hash);
    }

    /// Computed with another program: whoever keeps an export can check it without ours.
    /// Proves AD-4.
    #[test]
    fn a_hash_is_over_the_one_before_and_the_entry() {
        let previous = std::array::from_fn(|place| u8::try_from(place).unwrap());
        let canonical = r#"{"seq":1}"#;
        assert_eq!(
            hex(&entry_hash(&previous, canonical)),
            "01763f2818131249c7c7151c48341b04f82ab3aa796aef566f02ad09ad81d0e9"
        );
        assert_eq!(
            hex(&entry_hash(&[0; 32], canonical)),
            "ff44e121014845ba9f060b9dd529b57e3706d9dcbf47ce18d6a7e50bea6c7e46"
        );
    }
}
