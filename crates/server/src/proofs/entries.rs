//! What the audit log says of rows that decide rights.
//!
//! Each area declares which members of its entries say what stands in which columns. A row is compared with the newest entry of
//! its target that names a member and still exists; what no entry names is judged by its proof alone.
//!
//! ```text
//! row fits its proof, entry says another value   it was put back as it once was, with its proof, or the entry was changed
//! ```
//!
//! The sum says that some row was put back, and here is said which one.
//!
//! INVARIANT PF-7: a row that fits its proof and is not what the newest entry about it says is named; no row is that
//! Provost wrote. A column of a declaration is written in units alone whose entries name it, except by what a restore
//! holds back. Proof: every test of the whole application ends with the comparison.
//!
//! Whoever takes all rows as they are ([`super::seal`]) takes them although the log says otherwise, and a restore holds back
//! whom it finds: from where on the entries of each chain count stands in the store, with a MAC.
//!
//! Absent on purpose: what imports write (names, addresses, groups and members of users), because it stands in no entry of its own.

use super::{Fault, Finding, of_row};
use crate::closing;
use provost_areas_platform::store;
use provost_kernel::area::Areas;
use provost_kernel::audit::hex;
use provost_kernel::db::{Call, Param, Tx};
use provost_kernel::keys::{Keys, MacPurpose};
use provost_kernel::proofs::{Form, Testimony, Word};
use provost_kernel::{Error, OperationContext, Result, params, statements};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

statements! {
    /// The newest entries of some targets that name what changed, from the index of targets: SQLite would
    /// rather read the whole log of an organization, and is told.
    ENTRIES = {
        sqlite: "SELECT target_id, seq, entry FROM (SELECT target_id, seq, entry, ROW_NUMBER() OVER (PARTITION BY target_id ORDER BY seq DESC) AS place FROM audit_entries INDEXED BY audit_entries_by_target WHERE organization_id = ?1 AND target_id IN (SELECT value FROM json_each(?2)) AND decision = 'allowed' AND entry LIKE '%\"changes\":[%') e WHERE place <= 32 ORDER BY target_id, seq DESC",
        postgres: "SELECT target_id, seq, entry FROM (SELECT target_id, seq, entry, ROW_NUMBER() OVER (PARTITION BY target_id ORDER BY seq DESC) AS place FROM audit_entries WHERE organization_id = ?1 AND target_id IS NOT NULL AND target_id IN (SELECT jsonb_array_elements_text(CAST(CAST(?2 AS TEXT) AS JSONB))) AND decision = 'allowed' AND entry LIKE '%\"changes\":[%') e WHERE place <= 32 ORDER BY target_id, seq DESC",
    };
}

/// The fact that says from where on the entries of each chain count.
const COUNTED_FROM: &str = "rights_counted_from";

/// Returns what an entry says of a content in a form; nothing where no entry has to say it.
fn said(form: Form, content: &Value) -> Option<Value> {
    match (form, content) {
        (Form::Given, Value::Null) => None,
        (Form::Flag, Value::Number(number)) => Some(Value::from(number.as_i64() != Some(0))),
        (Form::Presence, content) => Some(Value::from(!content.is_null())),
        (Form::Words(none), Value::Null) => Some(Value::from(none)),
        (Form::Words(_), Value::String(text)) => {
            Some(text.split(' ').filter(|word| !word.is_empty()).collect())
        }
        (Form::Document, Value::String(text)) => {
            Some(serde_json::from_str(text).unwrap_or_else(|_| content.clone()))
        }
        (_, content) => Some(content.clone()),
    }
}

/// What a row holds that entries speak of.
pub(super) struct Claim {
    organization: String,
    key: String,
    id: String,
    said: Vec<(&'static Word, Value)>,
}

/// Returns what a row holds that entries speak of; none for one that is not compared.
///
/// Errors: `Internal` for a content that is no row of this table.
pub(super) fn claim(
    testimony: &'static Testimony,
    organization: &str,
    key: &str,
    content: &str,
) -> Result<Option<Claim>> {
    let row: Map<String, Value> = serde_json::from_str(content).map_err(Error::internal)?;
    let column = |name: &str| {
        let content = row.get(name);
        content.ok_or_else(|| Error::internal(format!("the table {} has no column {name}", testimony.table)))
    };
    if let Some((name, value)) = testimony.among
        && column(name)?.as_i64() != Some(value)
    {
        return Ok(None);
    }
    let Some(id) = column("id")?.as_str() else {
        return Ok(None);
    };
    let mut members = Vec::new();
    for word in testimony.words {
        members.extend(said(word.form, column(word.column)?).map(|value| (word, value)));
    }
    Ok(Some(Claim {
        organization: organization.to_owned(),
        key: key.to_owned(),
        id: id.to_owned(),
        said: members,
    }))
}

/// Returns the rows of which the newest entry says something else.
///
/// Errors: those of the connection.
pub(super) fn contradictions(
    testimony: &Testimony,
    tx: &mut Tx<'_>,
    keys: &Keys,
    claims: Vec<Claim>,
) -> Result<Vec<Finding>> {
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let Some(beginning) = EntryHorizon::read(tx, keys)? else {
        return Ok(vec![Finding {
            organization: None,
            row: None,
            fault: Fault::Unreadable(
                "from where on the entries of the audit log count was changed from outside".into(),
            ),
        }]);
    };
    let mut of_organization: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
    for claim in claims {
        of_organization
            .entry(claim.organization.clone())
            .or_default()
            .push(claim);
    }
    let mut found = Vec::new();
    for (organization, claims) in of_organization {
        let ids: Value = claims.iter().map(|claim| claim.id.as_str()).collect();
        let mut entries: BTreeMap<String, Vec<(i64, Entry)>> = BTreeMap::new();
        let rows = tx.query(&ENTRIES, params![organization.as_str(), ids.to_string()], |row| {
            Ok((row.get::<String>(0)?, row.get::<i64>(1)?, row.get::<String>(2)?))
        })?;
        for (target, seq, text) in rows {
            // What is no entry breaks the chain, which is somebody else's finding.
            if let Ok(entry) = serde_json::from_str::<Entry>(&text)
                && entry
                    .target
                    .as_ref()
                    .is_some_and(|of| of.kind == testimony.kind.word())
            {
                entries.entry(target).or_default().push((seq, entry));
            }
        }
        for claim in &claims {
            let entries = entries.get(&claim.id).map(Vec::as_slice).unwrap_or_default();
            for (word, value) in &claim.said {
                let from = beginning.of(&organization, word.is_held);
                let contradiction = newest(entries, word.path, from).filter(|(_, after)| after != value);
                found.extend(contradiction.map(|(entry, _)| {
                    let fault = Fault::Contradicted {
                        path: word.path.to_owned(),
                        entry,
                    };
                    of_row(&organization, testimony.table, &claim.key, fault)
                }));
            }
        }
    }
    Ok(found)
}
/// Returns the id of the newest of some entries that names a member, and what it says; none that does not count.
fn newest(entries: &[(i64, Entry)], path: &str, from: i64) -> Option<(String, Value)> {
    entries
        .iter()
        .filter(|(seq, _)| *seq > from)
        .find_map(|(_, entry)| {
            let change = entry.changes.iter().find(|change| change.path == path)?;
            Some((entry.id.clone(), change.after.clone()))
        })
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    target: Option<EntryTarget>,
    #[serde(default)]
    changes: Vec<EntryChange>,
}

#[derive(Deserialize)]
struct EntryTarget {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct EntryChange {
    path: String,
    #[serde(default)]
    after: Value,
}

/// From where on the entries of each chain count.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryHorizon {
    /// For every column: the last entry of each chain when somebody took the rows as they were.
    #[serde(default)]
    all: BTreeMap<String, i64>,
    /// For those that a restore changes: the last entry of each chain after one.
    #[serde(default)]
    held: BTreeMap<String, i64>,
}

impl EntryHorizon {
    /// Returns what the store says; none when another hand changed it.
    fn read(tx: &mut Tx<'_>, keys: &Keys) -> Result<Option<Self>> {
        let known = store::fact(tx, COUNTED_FROM)?;
        Ok(match known {
            None => Some(Self::default()),
            Some(value) => Self::parse(&value, keys),
        })
    }

    fn parse(value: &str, keys: &Keys) -> Option<Self> {
        let (said, mac) = value.rsplit_once(' ')?;
        let mac: Vec<u8> = super::bytes(&format!("\\x{mac}"))?;
        let is_ours = keys.mac_matches(MacPurpose::RightProof, &parts(said), &mac);
        is_ours.then(|| serde_json::from_str(said).ok())?
    }

    fn value(&self, keys: &Keys) -> Result<String> {
        let said = serde_json::to_string(self).map_err(Error::internal)?;
        let mac = keys.mac(MacPurpose::RightProof, &parts(&said));
        Ok(format!("{said} {}", hex(&mac)))
    }

    fn of(&self, organization: &str, is_held: bool) -> i64 {
        let from = |chains: &BTreeMap<String, i64>| chains.get(organization).copied().unwrap_or(0);
        let all = from(&self.all);
        if is_held { all.max(from(&self.held)) } else { all }
    }
}

/// No table has this name: a proof says nothing of what counts, and this nothing of a row.
fn parts(said: &str) -> [&[u8]; 2] {
    [COUNTED_FROM.as_bytes(), said.as_bytes()]
}

/// Returns the statement with which no entry that is there counts any more: the rows are taken as they are.
///
/// Errors: those of the connection.
pub(super) fn begin_anew(tx: &mut Tx<'_>, keys: &Keys) -> Result<Call<'static>> {
    let beginning = EntryHorizon {
        all: chain_ends(tx)?,
        held: BTreeMap::new(),
    };
    Ok(Call {
        statement: &store::SET_FACT,
        params: vec![
            Param::from(COUNTED_FROM.to_owned()),
            Param::from(beginning.value(keys)?),
        ],
    })
}

/// Lets no entry of the organization that is there count for what a restore holds back, in the unit that does it.
///
/// Errors: `AuditUnavailable` when another hand changed what the store says of it; those of the connection.
pub fn note_hold(ctx: &mut OperationContext<'_>) -> Result<()> {
    note(ctx, |known| &mut known.held)
}

/// Lets no entry of the organization that is there count for anything, in the unit that begins to take away by other ways than
/// those that leave an entry of each row.
///
/// Errors: as [`note_hold`].
pub fn note_loss(ctx: &mut OperationContext<'_>) -> Result<()> {
    note(ctx, |known| &mut known.all)
}

fn note(
    ctx: &mut OperationContext<'_>,
    side: impl Fn(&mut EntryHorizon) -> &mut BTreeMap<String, i64>,
) -> Result<()> {
    let (kernel, org) = (ctx.services(), ctx.org());
    let (known, ends) = {
        let mut tx = ctx.tx();
        (EntryHorizon::read(&mut tx, &kernel.keys)?, chain_ends(&mut tx)?)
    };
    let Some(mut known) = known else {
        return Err(Error::new(
            provost_kernel::Code::AuditUnavailable,
            "what the store says of the entries that count does not carry this installation's MAC: it was changed from outside; \
             restore another backup",
        ));
    };
    let end = ends.get(org).copied().unwrap_or(0);
    side(&mut known).insert(org.to_owned(), end);
    store::set_fact(ctx, COUNTED_FROM, &known.value(&kernel.keys)?)
}

fn chain_ends(tx: &mut Tx<'_>) -> Result<BTreeMap<String, i64>> {
    let ends = tx.query(&closing::HEADS, params![], |row| {
        Ok((row.get::<String>(0)?, row.get::<i64>(1)?))
    })?;
    Ok(ends.into_iter().collect())
}

/// Returns every contradiction of one snapshot.
///
/// Errors: those of the connection.
pub fn every_contradiction(areas: &Areas, tx: &mut Tx<'_>, keys: &Keys) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for testimony in areas.testimonies() {
        let deciding = areas
            .rights()
            .iter()
            .find(|deciding| deciding.table == testimony.table);
        let deciding = deciding
            .ok_or_else(|| Error::internal(format!("the table {} decides no rights", testimony.table)))?;
        found.extend(super::every_page(areas, tx, keys, deciding)?);
    }
    found.retain(|finding| matches!(finding.fault, Fault::Contradicted { .. }));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Proves PF-7.
    #[test]
    fn a_column_says_what_its_entry_says() {
        let words = Form::Words("allOfRole");
        for (form, content, expected) in [
            (Form::Plain, json!("admin"), Some(json!("admin"))),
            (Form::Plain, json!(null), Some(json!(null))),
            (Form::Given, json!("admin"), Some(json!("admin"))),
            (Form::Given, json!(null), None),
            (Form::Flag, json!(1), Some(json!(true))),
            (Form::Flag, json!(0), Some(json!(false))),
            (Form::Flag, json!(true), Some(json!(true))),
            (Form::Presence, json!(17), Some(json!(true))),
            (Form::Presence, json!(null), Some(json!(false))),
            (
                words,
                json!("audit:read events:read"),
                Some(json!(["audit:read", "events:read"])),
            ),
            (words, json!(""), Some(json!([]))),
            (words, json!(null), Some(json!("allOfRole"))),
            (Form::Document, json!("[\"a\"]"), Some(json!(["a"]))),
            (Form::Document, json!(null), Some(json!(null))),
        ] {
            assert_eq!(said(form, &content), expected, "{form:?} {content}");
        }
    }

    #[test]
    fn the_newest_entry_that_names_a_member_counts() {
        let entry = |seq: i64, changes: Value| {
            let entry = json!({ "id": format!("aud_{seq}"), "target": { "type": "user", "id": "u" }, "changes": changes });
            (seq, serde_json::from_value(entry).unwrap())
        };
        let entries = [
            entry(9, json!([{ "path": "/name", "after": "n" }])),
            entry(7, json!([{ "path": "/role", "before": "admin" }])),
            entry(3, json!([{ "path": "/role", "after": "admin" }])),
        ];
        let newest = |path: &str, from: i64| newest(&entries, path, from);
        assert_eq!(newest("/role", 0), Some(("aud_7".into(), Value::Null)));
        assert_eq!(newest("/name", 8), Some(("aud_9".into(), json!("n"))));
        assert_eq!(newest("/role", 7), None);
        assert_eq!(newest("/other", 0), None);
    }

    #[test]
    fn what_counts_is_said_for_all_columns_and_for_those_that_a_restore_changes() {
        let beginning = EntryHorizon {
            all: BTreeMap::from([("acme".into(), 5)]),
            held: BTreeMap::from([("acme".into(), 9), ("other".into(), 2)]),
        };
        assert_eq!((beginning.of("acme", false), beginning.of("acme", true)), (5, 9));
        assert_eq!(
            (beginning.of("other", false), beginning.of("other", true)),
            (0, 2)
        );
    }
}
