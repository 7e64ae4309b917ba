//! What the operator's commands ask of the area: the check of a store and its notes.

use super::model::MAX_LIFETIME_SECS;
use super::rules::{ClaimRule, Kind, Named, named};
use provost_kernel::auth::ScopeSet;
use provost_kernel::db::Tx;
use provost_kernel::{Result, Timestamp, params, statements};

statements! {
    /// Every trust, and whether its account is there.
    EVERY = unscoped("a check looks at every organization") concat!("SELECT w.organization_id, w.id, w.kind, w.claims, w.scopes, w.lifetime_secs, a.id FROM workload_trusts w ", provost_areas_identity::joined_account!("w.organization_id", "w.service_account_id"), "ORDER BY w.organization_id, w.id");
}

struct Found {
    organization: String,
    id: String,
    named: Option<Named>,
    scopes: ScopeSet,
    lifetime_secs: i64,
    has_account: bool,
}

fn every(tx: &mut Tx<'_>) -> Result<Vec<Found>> {
    tx.query(&EVERY, params![], |row| {
        let kind = Kind::parse(row.str(2)?);
        let claims: Option<Vec<ClaimRule>> = serde_json::from_str(row.str(3)?).ok();
        Ok(Found {
            organization: row.get(0)?,
            id: row.get(1)?,
            named: kind.zip(claims).map(|(kind, claims)| named(kind, &claims)),
            scopes: ScopeSet::from_store(row.str(4)?),
            lifetime_secs: row.get(5)?,
            has_account: row.get::<Option<String>>(6)?.is_some(),
        })
    })
}

/// Returns a sentence for every trust that breaks an invariant of the area.
pub fn broken_invariants(tx: &mut Tx<'_>, _: Timestamp) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for trust in every(tx)? {
        let of = format!("the workload trust {} of {}", trust.id, trust.organization);
        match trust.named {
            None => found.push(format!("{of} has rules that cannot be read")),
            Some(Named::Nobody) => found.push(format!("{of} names no repository, project or account")),
            Some(_) => {}
        }
        if trust.scopes.and(ScopeSet::lasting()) != ScopeSet::default() {
            found.push(format!(
                "{of} has scopes with which something can be made that outlives a session"
            ));
        }
        if !(1..=MAX_LIFETIME_SECS).contains(&trust.lifetime_secs) {
            found.push(format!("{of} makes sessions that live too long"));
        }
        if !trust.has_account {
            found.push(format!("{of} is of an account that is gone"));
        }
    }
    Ok(found)
}

/// Returns a sentence for every trust that means all of an owner.
pub fn whole_owners(tx: &mut Tx<'_>) -> Result<Vec<String>> {
    let all = every(tx)?.into_iter();
    let whole = all.filter(|trust| trust.named == Some(Named::Owner));
    Ok(whole
        .map(|trust| {
            format!(
                "the workload trust {} of {} lets every repository of an owner act as its account",
                trust.id, trust.organization
            )
        })
        .collect())
}
