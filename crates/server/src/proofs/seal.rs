//! Proofs for all rows at once.
//!
//! Keeps PF-4.

use super::entries::begin_anew;
use super::{FORGET, HEADS, kept};
use provost_kernel::area::Areas;
use provost_kernel::audit::{self, AuditRecord, Head};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{self, Call, Conn, Param, RightsTable, Tx};
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::proofs::{Change, PUT, Proof};
use provost_kernel::{Error, Result, Timestamp, params};
use serde_json::Value;

/// How many proofs travel together.
const PAGE: usize = 500;

/// Writes the proofs of a store of an earlier build, which has none, and returns how many. What is there is trusted, and the
/// installation's log says so. A store that has proofs, or no chain yet, is left alone.
///
/// Errors: those of the connection; `AuditUnavailable` for a head that another hand wrote.
pub fn write_once(areas: &Areas, conn: &mut Conn, keys: &Keys, now: Timestamp) -> Result<Option<u64>> {
    let heads = conn.read(heads)?;
    if heads.is_empty() || heads.iter().any(Head::has_rights) {
        return Ok(None);
    }
    all(areas, conn, keys, now, "rights.proven", false)
}

/// Makes every proof anew, whatever the rows are, and returns how many: the operator takes the store as it is.
///
/// Errors: as [`write_once`].
pub fn renew(areas: &Areas, conn: &mut Conn, keys: &Keys, now: Timestamp) -> Result<Option<u64>> {
    all(areas, conn, keys, now, "rights.accepted", true)
}

fn heads(tx: &mut Tx<'_>) -> Result<Vec<Head>> {
    tx.query(&HEADS, params![], |row| {
        Head::read(&OrganizationId::from_store(row.get(9)?), row)
    })
}

fn all(
    areas: &Areas,
    conn: &mut Conn,
    keys: &Keys,
    now: Timestamp,
    action: &'static str,
    again: bool,
) -> Result<Option<u64>> {
    conn.set_statement_timeouts(false)?;
    let done = in_one_transaction(areas, conn, keys, now, action, again);
    if done.is_err() {
        conn.rollback();
    }
    let restored = conn.set_statement_timeouts(true);
    let written = done?;
    restored?;
    Ok(written)
}

fn in_one_transaction(
    areas: &Areas,
    conn: &mut Conn,
    keys: &Keys,
    now: Timestamp,
    action: &'static str,
    again: bool,
) -> Result<Option<u64>> {
    let installation = OrganizationId::installation();
    let known = conn.read(heads)?;
    let mut chains: Vec<&str> = known.iter().map(|head| head.organization.as_str()).collect();
    chains.push(installation.as_str());
    chains.sort_unstable();
    chains.dedup();
    // Every chain is locked, in the order of all who lock: of two servers that start together one writes and the other sees
    // it, and nobody changes a row meanwhile.
    let locks: Vec<Call<'_>> = chains
        .into_iter()
        .map(|chain| Call {
            statement: &audit::HEAD,
            params: vec![Param::from(chain)],
        })
        .collect();
    conn.begin(&locks)?;
    let mut tx = conn.tx();
    let heads = heads(&mut tx)?;
    if !again && heads.iter().any(Head::has_rights) {
        conn.rollback();
        return Ok(None);
    }
    if let Some(head) = heads.iter().find(|head| !head.is_authentic(keys)) {
        return Err(Error::new(
            provost_kernel::Code::AuditUnavailable,
            format!(
                "the head of the audit log of {} does not carry this installation's MAC; restore a backup",
                head.organization
            ),
        ));
    }
    let mut change = Change::default();
    if again {
        for head in &heads {
            let (rows, sum) = head.rights(keys)?;
            change.rows -= rows;
            change.sum = change.sum.without(sum);
        }
        tx.execute(&FORGET, params![])?;
    }
    let mut count = 0;
    for deciding in areas.rights() {
        count += prove_table(&mut tx, keys, deciding, &mut change)?;
    }
    let own = heads.into_iter().find(|head| head.organization == installation);
    let mut head = own.unwrap_or_else(|| Head::empty(installation.clone()));
    let mut calls = Vec::new();
    let mut note = AuditRecord::new(installation, now, action);
    note.count = Some(count);
    let salt = |parts: &[&[u8]]| keys.mac(MacPurpose::AuditSalt, parts);
    head.append(&note, salt, &mut calls)?;
    head.book(keys, &change)?;
    calls.extend(head.store(keys, now));
    calls.push(begin_anew(&mut conn.tx(), keys)?);
    conn.commit(&calls)?;
    Ok(Some(count))
}

fn prove_table(tx: &mut Tx<'_>, keys: &Keys, deciding: &RightsTable, change: &mut Change) -> Result<u64> {
    let (engine, table) = (tx.engine(), deciding.table);
    let columns = db::columns(tx, table)?;
    let key = db::key_of(engine, "t", &columns);
    let content = db::content_of(engine, "t", &columns, deciding.loose);
    let statement = kept(format!(
        "SELECT t.organization_id, {key}, {content} FROM \"{table}\" t"
    ));
    let members = tx.query(statement, params![], |row| {
        let proof = Proof::of(keys, deciding, row.str(2)?)?;
        let share = proof.share(keys);
        let share = share.ok_or_else(|| Error::internal("the current audit key is not among the keys"))?;
        change.rows += 1;
        change.sum = change.sum.plus(&share);
        Ok(proof.member(row.str(0)?, table, row.str(1)?))
    })?;
    for page in members.chunks(PAGE) {
        tx.execute(&PUT, params![Value::from(page.to_vec()).to_string()])?;
    }
    u64::try_from(members.len()).map_err(Error::internal)
}
