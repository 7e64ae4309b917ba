//! Verifying the audit log in a store: every chain, its head, and the checkpoints inside and outside.

use super::anchors::{CheckpointFilter, TrustAnchors, about};
use crate::commands::failure::{Failure, Outcome};
use crate::commands::show;
use crate::commands::store;
use crate::config::Config;
use provost_areas_platform::audit::{Finding, Register, Verifier};
use provost_areas_platform::identity;
use provost_kernel::audit::{Head, hex};
use provost_kernel::auth::OrganizationId;
use provost_kernel::checkpoint::Checkpoint;
use provost_kernel::db::Tx;
use provost_kernel::{Result, params, statements};

statements! {
    /// Every organization that has a chain, or should.
    CHAINS = unscoped("every chain is verified") "SELECT organization_id FROM chain_heads UNION SELECT organization_id FROM audit_entries UNION SELECT organization_id FROM organizations ORDER BY 1";
    /// A chain's head, in the order of [`Head::read`].
    HEAD = "SELECT seq, hash, mac, event_sequence, created_at, rights_changes, rights_rows, rights_sum, rights_key FROM chain_heads WHERE organization_id = ?1";
    /// Entries after a place.
    ENTRIES = "SELECT seq, entry, hash FROM audit_entries WHERE organization_id = ?1 AND seq > ?2 ORDER BY seq LIMIT 2000";
    /// The checkpoints that the store keeps.
    NOTES = "SELECT note FROM audit_checkpoints WHERE organization_id = ?1 ORDER BY size";
}

/// What the store says of one chain.
struct Chain {
    organization: String,
    verifier: Option<Verifier>,
    changed: Option<Finding>,
    last_hash: Vec<u8>,
    head: Option<Head>,
    notes: Vec<String>,
}

/// Verifies one chain or all.
pub fn verify(
    config: &Config,
    wanted: Option<&str>,
    trusted: Option<&TrustAnchors>,
    given: &[Checkpoint],
) -> Outcome {
    let mut conn = store::open(&config.store.location()?)?;
    let wanted = wanted.map(str::to_owned);
    let chains = conn.read(|tx| {
        let mut chains = tx.query(&CHAINS, params![], |row| row.get::<String>(0))?;
        if let Some(wanted) = &wanted {
            chains.retain(|organization| organization == wanted);
        }
        chains
            .into_iter()
            .map(|organization| read(tx, organization))
            .collect::<Result<Vec<_>>>()
    })?;
    if chains.is_empty() {
        return Err(Failure::new("there is no such organization in the store"));
    }
    let (lines, own) = match trusted.and_then(|trusted| trusted.keys.as_ref()) {
        Some(keys) => {
            let identity = conn.read(|tx| identity::read(tx, keys))?;
            let lines = keys.checkpoint_lines()?;
            let unnamed = Register::of(&lines)?.are_unnamed_of(identity.as_ref());
            (lines, CheckpointFilter { identity, unnamed })
        }
        None => (
            Vec::new(),
            CheckpointFilter {
                identity: None,
                unnamed: false,
            },
        ),
    };
    let mut changed = 0;
    for chain in chains {
        let organization = chain.organization.clone();
        if let Err(failure) = judge(chain, trusted, (&lines, &own), given) {
            changed += 1;
            show::note(&format!("{organization}: {failure}"));
        }
    }
    if changed > 0 {
        return Err(Failure::new("the audit log was changed"));
    }
    show::out(
        "No checkpoint on this machine excludes that the machine was rolled back as a whole; one that was kept elsewhere does (--checkpoint).\n",
    )
}

fn read(tx: &mut Tx<'_>, organization: String) -> Result<Chain> {
    let owner = OrganizationId::from_store(organization.clone());
    let head = tx.query_opt(&HEAD, params![organization.as_str()], |row| {
        Head::read(&owner, row)
    })?;
    let notes = tx.query(&NOTES, params![organization.as_str()], |row| row.get(0))?;
    let mut chain = Chain {
        verifier: Some(Verifier::new(organization.clone())),
        changed: None,
        last_hash: vec![0; 32],
        head,
        notes,
        organization,
    };
    let mut after = 0_i64;
    loop {
        let page = tx.query(&ENTRIES, params![chain.organization.as_str(), after], |row| {
            Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<Vec<u8>>(2)?))
        })?;
        let Some((last, _, _)) = page.last() else {
            return Ok(chain);
        };
        after = *last;
        for (_, entry, hash) in page {
            chain.feed(&entry, hash);
            if chain.changed.is_some() {
                return Ok(chain);
            }
        }
    }
}

impl Chain {
    /// Feeds an entry as an export shows it, so that a changed hash is found as well.
    fn feed(&mut self, entry: &str, hash: Vec<u8>) {
        let members = entry.strip_suffix('}').unwrap_or(entry);
        let line = format!(
            r#"{members},"previousHash":"{}","hash":"{}"}}"#,
            hex(&self.last_hash),
            hex(&hash)
        );
        self.last_hash = hash;
        if let Some(Err(finding)) = self.verifier.as_mut().map(|verifier| verifier.feed(&line)) {
            self.changed = Some(finding);
        }
    }
}

fn judge(
    mut chain: Chain,
    trusted: Option<&TrustAnchors>,
    (lines, own): (&[String], &CheckpointFilter),
    given: &[Checkpoint],
) -> Outcome {
    let organization = chain.organization.clone();
    let changed = |finding: Finding| Failure::new(finding.to_string());
    if let Some(finding) = chain.changed.take() {
        return Err(changed(finding));
    }
    let mut checkpoints = about(given, &organization);
    if let Some(trusted) = trusted {
        for note in &chain.notes {
            checkpoints.push(trusted.verified(note)?);
        }
        checkpoints.extend(trusted.of_lines(lines, own, &organization)?);
    }
    let verifier = chain
        .verifier
        .take()
        .ok_or_else(|| Failure::new("the log was not read"))?;
    let report = verifier.finish(&checkpoints).map_err(changed)?;
    let Some(head) = chain.head else {
        return Err(Failure::new("the head of the log is missing"));
    };
    if let Some(keys) = trusted.and_then(|trusted| trusted.keys.as_ref())
        && !head.is_authentic(keys)
    {
        return Err(Failure::new(
            "the head of the log does not carry this installation's MAC",
        ));
    }
    if head.seq.unsigned_abs() != report.entries || head.hash.as_slice() != chain.last_hash {
        return Err(Failure::new(format!(
            "the log was truncated or extended: it ends with entry number {}, and its head names number {}",
            report.entries, head.seq
        )));
    }
    let mac = match trusted.and_then(|trusted| trusted.keys.as_ref()) {
        Some(_) => "its head carries this installation's MAC",
        None => "the MAC of its head was not checked: the keys are not here",
    };
    show::out(&format!("{report}; {mac}\n"))?;
    Ok(())
}
